//! Checks docs/messages.md, which lists every message of the program, extracted from its sources, with its origin.

mod source;

use crate::generated::compare_page;
use crate::page::{pages, root};
use source::{Text, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A section of the page.
struct MessageSource {
    title: &'static str,
    about: &'static str,
    /// The path prefixes of the sources with these messages, with spaces between them.
    sources: &'static str,
}

/// The sections. A message belongs to the section with the longest matching path, so those of a new crate to the log.
const MESSAGE_SOURCES: &[MessageSource] = &[
    MessageSource {
        title: "On a work and the objects in it",
        about: "Argo CD shows them as the message of the work's health, `status` and the extension of Argo CD's pages in the column MESSAGE, the \
                controller in its conditions.",
        sources: "crates/generate/src/health_rules crates/generate/src/manifest_configs.rs crates/ocm/src/health crates/ocm/src/verdicts",
    },
    MessageSource {
        title: "In the condition ComparisonError of an Application",
        about: "`generate` and `diff` print the same. The message begins with the file, the document in it and the object. Until the error is \
                fixed, nothing is delivered and nothing is removed.",
        sources: "crates/generate crates/manifest crates/ocm/src/names crates/ocm/src/glob crates/ocm/src/duration.rs",
    },
    MessageSource {
        title: "On an Application, from the controller",
        about: "As a condition, as the message of its health, or as an Event: `kubectl describe application`.",
        sources: "crates/application_status crates/pull crates/hub_state/src/condition_types.rs crates/hub_state/src/pull",
    },
    MessageSource {
        title: "In a MulticlusterApplicationSetReport",
        about: "In its annotation `argocd-ocm-cmp.github.io/truncated`, or with a cluster.",
        sources: "crates/application_set_report",
    },
    MessageSource {
        title: "On a ManagedCluster",
        about: "As a warning: `kubectl describe managedcluster`.",
        sources: "crates/cluster_secrets",
    },
    MessageSource {
        title: "On a GitOpsCluster",
        about: "As a condition or as an Event: `kubectl describe gitopscluster`, or `argocd-ocm-cmp gitopscluster status`. Those of the CRD are \
                what `kubectl apply` answers.",
        sources: "crates/argocd_agent crates/gitopscluster crates/ocm/src/gitops_cluster crates/pki",
    },
    MessageSource {
        title: "In the log of the controller",
        about: "`kubectl -n argocd logs deployment/argocd-ocm-cmp-controller`.",
        sources: "crates",
    },
    MessageSource {
        title: "In the view into the clusters",
        about: "As the answer to a request of Argo CD's pages, and in the log of `argocd-ocm-cmp live`.",
        sources: "crates/live",
    },
    MessageSource {
        title: "In the log of a Pod on a managed cluster",
        about: "From `argocd-ocm-cmp agent …`, which runs beside argocd-agent.",
        sources: "src/commands/agent",
    },
    MessageSource {
        title: "On a terminal",
        about: "Errors and notes of the commands.",
        sources: "src crates/hub/ crates/ocm",
    },
];

/// The sources whose messages are documented elsewhere, with the page.
const DOCUMENTED_ELSEWHERE: &[(&str, &str)] = &[
    (
        "crates/controller/src/metrics.rs",
        "the help of metrics, which /metrics shows",
    ),
    (
        "crates/runtime/src/metrics.rs",
        "the help of metrics, which /metrics shows",
    ),
    (
        "crates/generate/src/settings/table.rs",
        "docs/settings.md has the table",
    ),
];

const HEAD: &str = "\
# All messages

For users who search for a message: every message of the program, by the place where it appears. Words in capitals and `…` replace the variable
parts. Search this page for the words of your message: the program may add a reason or a remedy to it. Most messages name the remedy;
[troubleshooting](troubleshooting.md) explains the frequent ones.

This page is generated from the sources: `REWRITE=1 cargo test --test docs messages` writes it.
";

#[test]
fn page_lists_every_message() {
    compare_page("docs/messages.md", &page_text(&sources(DOCUMENTED_ELSEWHERE)));
}

/// Returns the page: by section, and in each by source.
fn page_text(sources: &[(String, Text)]) -> String {
    for prefix in MESSAGE_SOURCES.iter().flat_map(|section| section.sources.split(' ')) {
        let is_used = sources.iter().any(|(path, _)| path.starts_with(prefix));
        assert!(is_used, "{prefix} has no messages: correct its path");
    }
    let mut page = HEAD.to_owned();
    let mut of_places: BTreeMap<usize, Vec<&(String, Text)>> = BTreeMap::new();
    for source in sources {
        let sections = MESSAGE_SOURCES.iter().enumerate();
        let prefixes =
            sections.flat_map(|(number, section)| section.sources.split(' ').map(move |prefix| (prefix, number)));
        let fitting = prefixes.filter(|(prefix, _)| source.0.starts_with(prefix));
        let (_, source_group) = fitting.max_by_key(|(prefix, _)| prefix.len()).expect("a section");
        of_places.entry(source_group).or_default().push(source);
    }
    for (source_group, sources) in of_places {
        let MessageSource { title, about, .. } = &MESSAGE_SOURCES[source_group];
        writeln!(page, "\n## {title}\n\n{about}").expect("writing to a String never fails");
        for (path, text) in sources {
            let about = &text.about;
            writeln!(page, "\n**{about}** ([`{path}`](../{path}))\n").expect("writing to a String never fails");
            for message in &text.messages {
                writeln!(page, "- {}", code(message)).expect("writing to a String never fails");
            }
        }
    }
    page
}

/// Formats any text as code.
fn code(text: &str) -> String {
    if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

/// Returns the path prefixes of the sources that decide conditions and Events: those of every controller, in its module `reconcile` if
/// it has one.
fn deciding_sources() -> BTreeSet<String> {
    let table = include_str!("../../crates/controller/src/controllers.rs").lines();
    let names = table.filter_map(|line| Some(line.strip_prefix("    ")?.split_once("::")?.0));
    let prefix = |name: &str| {
        let reconcile = format!("crates/{name}/src/reconcile");
        let has_module = root().join(format!("{reconcile}.rs")).exists();
        if has_module {
            reconcile
        } else {
            format!("crates/{name}/")
        }
    };
    names.map(prefix).collect()
}

/// Types of conditions and reasons of Events are names, not sentences: users look them up in the other pages.
#[test]
fn every_condition_and_reason_is_documented() {
    let pages = pages();
    let prose: String = pages
        .iter()
        .filter(|page| page.path != "docs/messages.md")
        .flat_map(|page| page.lines.iter().map(|line| format!("{line}\n")))
        .collect();
    let prefixes = deciding_sources();
    let names: BTreeSet<String> = sources(&[])
        .into_iter()
        .filter(|(path, _)| prefixes.iter().any(|prefix| path.starts_with(prefix)))
        .flat_map(|(_, text)| text.names)
        .collect();
    assert!(names.len() > 20, "{names:?}");
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !prose.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "no page has {missing:?}: add them to the table in docs/troubleshooting.md"
    );
}
