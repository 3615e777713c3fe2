//! docs/messages.md: every message of the program, taken out of its sources, so that whoever meets one finds where it comes from.

mod source;

use crate::page::{pages, root};
use source::{Text, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

/// A place where messages are met.
struct Place {
    title: &'static str,
    about: &'static str,
    /// The beginnings of the paths of the sources that say it.
    sources: &'static [&'static str],
}

/// The first whose sources fit is the place; the last takes what none before it has.
const PLACES: &[Place] = &[
    Place {
        title: "On a work and the objects in it",
        about: "Argo CD shows them as the message of the work's health, `status` and the extension of Argo CD's pages in the column MESSAGE, the \
                controller in its conditions.",
        sources: &[
            "src/generate/behaviour",
            "src/generate/configure.rs",
            "src/status/conditions.rs",
            "src/status/set.rs",
            "src/status/work.rs",
        ],
    },
    Place {
        title: "In the condition ComparisonError of an Application",
        about: "`generate` and `diff` print the same. The file, the document in it and the object stand before it. Nothing is delivered until it \
                is put right, and nothing is removed.",
        sources: &["src/generate", "src/yaml", "src/json.rs", "src/value.rs"],
    },
    Place {
        title: "On an Application, from the controller",
        about: "As a condition, as the message of its health, or as an Event: `kubectl describe application`.",
        sources: &[
            "src/controller/promises/application_status",
            "src/controller/promises/pull.rs",
            "src/pull",
        ],
    },
    Place {
        title: "In a MulticlusterApplicationSetReport",
        about: "In its annotation `argocd-ocm-cmp.github.io/cut`, or with a cluster.",
        sources: &["src/report"],
    },
    Place {
        title: "On a ManagedCluster",
        about: "As a warning: `kubectl describe managedcluster`.",
        sources: &["src/cluster_secret", "src/controller/promises/cluster_secrets.rs"],
    },
    Place {
        title: "On a GitOpsCluster",
        about: "As a condition or as an Event: `kubectl describe gitopscluster`, or `argocd-ocm-cmp gitopscluster status`. Those of the CRD are \
                what `kubectl apply` answers.",
        sources: &[
            "src/agent",
            "src/controller/promises/argocd_agent",
            "src/controller/promises/gitopscluster",
            "src/gitopscluster",
            "src/pki",
        ],
    },
    Place {
        title: "In the log of the controller",
        about: "`kubectl -n argocd logs deployment/argocd-ocm-cmp-controller`.",
        sources: &["src/controller", "src/telemetry.rs"],
    },
    Place {
        title: "In the log of a Pod on a managed cluster",
        about: "Of `argocd-ocm-cmp agent …`, beside argocd-agent.",
        sources: &["src/commands/agent", "src/prepare.rs", "src/supervise.rs"],
    },
    Place {
        title: "On a terminal",
        about: "Of the commands that people type.",
        sources: &["src"],
    },
];

/// Sources whose sentences are documented elsewhere, and where.
const ELSEWHERE: &[(&str, &str)] = &[
    ("src/agent/template/argocd.rs", "a setting of Argo CD's, in YAML"),
    ("src/controller/metrics.rs", "the help of metrics, which /metrics shows"),
    ("src/generate/settings/table.rs", "docs/settings.md has the table"),
];

const HEAD: &str = "\
# All messages

For everybody who has met one and looks for it: every message of the program, by where it is met. `…` stands for what differs. Search the page for
words of yours; most say the way out themselves, and [when something is wrong](troubleshooting.md) has more on those that are met often.

This page is made of the sources: `REWRITE=1 cargo test --test docs messages` writes it.
";

#[test]
fn every_message_is_in_the_page() {
    let page = written(&sources(ELSEWHERE));
    let path = root().join("docs/messages.md");
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, &page).expect("docs/messages.md can be written");
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let differing = page.lines().zip(there.lines()).find(|(one, other)| one != other);
    assert!(
        page == there,
        "docs/messages.md is not what the sources say, first in {differing:?}: write it anew by REWRITE=1 cargo test --test docs messages"
    );
}

/// The page: place by place, and there source by source.
fn written(sources: &[(String, Text)]) -> String {
    let mut page = HEAD.to_owned();
    let mut of_places: BTreeMap<usize, Vec<&(String, Text)>> = BTreeMap::new();
    for source in sources {
        let fits = |place: &Place| place.sources.iter().any(|it| source.0.starts_with(it));
        let place = PLACES.iter().position(fits).expect("the last takes all");
        of_places.entry(place).or_default().push(source);
    }
    for (place, sources) in of_places {
        let Place { title, about, .. } = &PLACES[place];
        writeln!(page, "\n## {title}\n\n{about}").expect("a String takes all");
        for (path, text) in sources {
            let about = &text.about;
            writeln!(page, "\n**{about}** ([`{path}`](../{path}))\n").expect("a String takes all");
            for message in &text.messages {
                writeln!(page, "- {}", code(message)).expect("a String takes all");
            }
        }
    }
    page
}

/// A text as code, whatever is in it.
fn code(text: &str) -> String {
    if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

/// Types of conditions and reasons of Events are names, not sentences: they are looked up in the pages that people read.
#[test]
fn every_condition_and_reason_is_in_a_page() {
    let pages = pages();
    let prose: String = pages
        .iter()
        .filter(|page| page.path != "docs/messages.md")
        .flat_map(|page| page.lines.iter().map(|line| format!("{line}\n")))
        .collect();
    let mut missing = BTreeSet::new();
    for (path, text) in sources(&[]) {
        if !path.starts_with("src/controller/promises/") {
            continue;
        }
        missing.extend(
            text.names
                .into_iter()
                .filter(|name| !prose.contains(&format!("`{name}`"))),
        );
    }
    assert!(
        missing.is_empty(),
        "no page has {missing:?}: docs/troubleshooting.md has a table for them"
    );
}
