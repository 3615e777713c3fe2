//! Checks that the remediations in docs/troubleshooting.md are for messages that exist.

use crate::page::pages;

/// The messages of other programs, which a page explains too.
const OF_OTHERS: &[&str] = &[
    // Argo CD
    "could not find cmp-server plugin with name",
    " is not permitted in project",
    "do not match any of the allowed destinations in project",
    "app path does not exist",
    "referencing project",
    "there are no clusters with this name",
    // Kubernetes and cluster components
    "is forbidden: User",
    "is forbidden: exceeded quota",
    "because it is being terminated",
    "no matches for kind",
    "field is immutable",
    "duplicate entries for key",
    "ProgressDeadlineExceeded",
    "ImagePullBackOff",
    // OCM's agent
    "not allowed to apply the resource",
    "Resource is not available",
    // kustomize and Helm, with their own messages after these
    "kustomize build:",
    "helm template:",
];

/// The minimum length of a piece of a message; a shorter one is not significant.
const SHORTEST: usize = 8;

#[test]
fn every_explained_message_exists() {
    let pages = pages();
    let text = |path: &str| {
        let page = pages.iter().find(|page| page.path == path).expect("a page");
        page.lines.join("\n")
    };
    let (ways_out, messages) = (text("docs/troubleshooting.md"), text("docs/messages.md"));
    let mut pieces = Vec::new();
    let mut unknown = Vec::new();
    for piece in explained(&ways_out) {
        if OF_OTHERS.contains(&piece.as_str()) {
            pieces.push(piece);
        } else if !messages.contains(&piece) {
            unknown.push(piece);
        }
    }
    assert!(unknown.is_empty(), "the program has no message {unknown:?}");
    let stale: Vec<_> = OF_OTHERS
        .iter()
        .filter(|message| !pieces.iter().any(|piece| piece == *message))
        .collect();
    assert!(stale.is_empty(), "docs/troubleshooting.md does not explain {stale:?}");
    assert!(pieces.len() < 20, "most explained messages are those of this program");
}

/// Returns the code in the first column of the tables of messages, without the variable parts.
fn explained(page: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut within = false;
    for line in page.lines() {
        let Some(row) = line.strip_prefix('|') else {
            within = false;
            continue;
        };
        let first = row.split(" | ").next().unwrap_or_default().trim();
        if first == "Message" || first.starts_with("In the log") {
            within = true;
        } else if within {
            let codes = first.split('`').skip(1).step_by(2);
            let parts = codes.flat_map(|code| code.split('…'));
            pieces.extend(parts.filter(|part| part.len() >= SHORTEST).map(str::to_owned));
        }
    }
    pieces
}
