//! The commands of all pages, and the test that runs each: a quick test, a test with a hub of the testbed, or, for a reason, none.

use crate::page::{Page, pages};
use argocd_ocm_cmp::cli::Cli;
use clap::Parser as _;

/// A command in a page.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The location, such as `README.md:24`.
    pub(crate) location: String,
    /// The section, such as `README.md#two-commands`.
    pub(crate) section: String,
    /// The typed text.
    pub(crate) text: String,
    /// The output that the page shows; empty if it shows none.
    pub(crate) output: Vec<String>,
}

/// The test that runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// The quick tests, without a cluster.
    Locally,
    /// The test with a hub.
    OnHub,
    /// No test of the documentation.
    Never,
}

/// The commands that the tests of the documentation do not run, with the reasons.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "cargo run -- generate guestbook --clusters cluster1 --name guestbook",
        "tests/command runs the built program and compares its output with the README; .ci/run runs this command",
    ),
    ("cargo xtask test", "it runs these tests"),
    ("cargo xtask test --quick", "it runs these tests"),
    (
        "export REPOSITORY=https://git.example.com/ours/argocd-ocm-cmp.git REGISTRY=registry.example.com/ours",
        "tests/docs/shell.rs sets these variables",
    ),
    (
        "git clone \"$REPOSITORY\" argocd-ocm-cmp && cd argocd-ocm-cmp",
        "the hub's commands begin in such a clone",
    ),
    (
        "docker build --push --build-arg VERSION=0.1.0 --tag \"$REGISTRY/argocd-ocm-cmp:0.1.0\" .",
        "the machine may have no Docker and no registry; .ci/image builds the program and the last stage of the image",
    ),
    (
        "cargo build --release && export PATH=\"$PWD/target/release:$PATH\"",
        "a test builds nothing: the program that cargo has built for it is on the PATH",
    ),
    (
        "cargo run -p testbed -- up",
        "it runs until a signal stops it; tests/docs/quick_start.rs runs the built testbed",
    ),
    (
        "kubectl label managedcluster cluster1 guestbook=canary",
        "OCM's placement controller does not run here; tests/with_argocd/rolling_sync.rs follows the page",
    ),
    (
        "kubectl apply -f examples/rolling_sync.yaml",
        "OCM's placement controller does not run here; tests/with_argocd/rolling_sync.rs follows the page",
    ),
    (
        "kubectl -n argocd get applicationset guestbook-waves -o jsonpath='{.status.applicationStatus[*].status}'",
        "OCM's placement controller does not run here; tests/with_argocd/rolling_sync.rs follows the page",
    ),
    ("cargo bench --bench generate", "it takes minutes"),
    ("cargo bench --bench render -- 101", "it takes minutes"),
    ("cargo bench --bench controller -- 3000 300", "it takes minutes"),
    (
        "GOMEMLIMIT=14GiB cargo bench --bench controller -- 50000 5000",
        "it takes an hour",
    ),
    (
        "cargo bench --bench pull -- 1000 100 --peer PROGRAM",
        "it takes minutes",
    ),
    (
        "GOMEMLIMIT=14GiB cargo bench --bench pull -- 50000 5000",
        "it takes half an hour",
    ),
    ("cargo bench --bench agents", "it takes minutes"),
    ("cargo bench --bench agents -- 5 --peer PROGRAM", "it takes minutes"),
    (
        "cargo bench --bench commit -- 1000 6 clusters placement set pull",
        "it takes half an hour",
    ),
    (
        "cargo bench --bench commit -- 1000 6 clusters groups",
        "it takes minutes",
    ),
    (
        "cargo bench --bench commit -- 1000 60 clusters placement pull",
        "it takes minutes",
    ),
    (
        "cargo bench --bench commit -- 50 300 clusters placement",
        "it takes minutes",
    ),
    (
        "cargo bench --bench commit -- 50 3000 clusters placement",
        "it takes minutes",
    ),
    ("cargo bench --bench feedback", "it takes minutes"),
    ("cargo bench --bench live -- 15", "it takes minutes"),
    ("cargo bench --bench reports", "it takes minutes"),
    (
        "kubectl -n argocd rollout status deployment/argocd-repo-server",
        "Argo CD runs as processes on the testbed's hub, so Deployments are not rolled out",
    ),
    (
        "argocd-ocm-cmp man | man -l -",
        "man may not be installed; tests/command/shell.rs runs the first half",
    ),
    (
        "buildah build --build-arg VERSION=0.1.0 --tag argocd-ocm-cmp:0.1.0 .",
        "it builds or copies an image; .ci/image does all that needs no registry",
    ),
    (
        "cargo xtask release --to oci://registry.example.com/ours",
        "tests/with_image/release.rs runs it with a registry on this machine",
    ),
    ("image/reproduce", "it compiles a release, twice and for minutes"),
    (
        "cargo run -p xtask -- sbom > argocd-ocm-cmp.cdx.json",
        "xtask has tests of the bill of materials, and .ci/image creates it",
    ),
    (
        "skopeo copy --all --preserve-digests docker://ghcr.io/argocd-ocm-cmp/argocd-ocm-cmp:0.1.0 docker://registry.example.com/argocd-ocm-cmp:0.1.0",
        "it builds or copies an image; .ci/image does all that needs no registry",
    ),
    (
        "skopeo inspect docker://registry.example.com/argocd-ocm-cmp:0.1.0",
        "it builds or copies an image; .ci/image does all that needs no registry",
    ),
    (
        "helm package chart",
        "tests/with_faults/install/helm.rs packages the chart, and installs it on a separate hub",
    ),
    (
        "helm install argocd-ocm-cmp argocd-ocm-cmp-0.1.0.tgz --namespace argocd --set 'features={plugin,project,pull}'",
        "tests/with_faults/install/helm.rs packages the chart, and installs it on a separate hub",
    ),
    (
        "helm template argocd-ocm-cmp-0.1.0.tgz --namespace argocd --set 'features={plugin,project,pull}' --set additions=true \\\n    --show-only templates/additions.yaml | kubectl apply --server-side --field-manager argocd-ocm-cmp -f -",
        "tests/with_faults/install/helm.rs packages the chart, and installs it on a separate hub",
    ),
    (
        "argocd-ocm-cmp install --image registry.example.com/argocd-ocm-cmp:0.1.0 --namespace openshift-gitops",
        "there is one Argo CD here; tests/with_faults/install.rs installs into another namespace",
    ),
    (
        "argocd-ocm-cmp uninstall --dry-run",
        "tests/with_faults/install.rs uninstalls from a separate hub",
    ),
    (
        "argocd-ocm-cmp uninstall",
        "tests/with_faults/install.rs uninstalls from a separate hub",
    ),
    (
        "argocd-ocm-cmp doctor --context hub",
        "this hub has other problems; tests/with_argocd/doctor.rs breaks one part after the other",
    ),
    (
        "kubectl apply -f monitoring/servicemonitor.yaml -f monitoring/prometheusrule.yaml",
        "the hub has no prometheus-operator; tests/command/monitoring.rs reads the files",
    ),
    (
        "kubectl -n monitoring create configmap argocd-ocm-cmp --from-file monitoring/dashboard.json",
        "the hub has no Grafana; tests/command/monitoring.rs reads the file",
    ),
    (
        "kubectl -n monitoring label configmap argocd-ocm-cmp grafana_dashboard=1",
        "the hub has no Grafana",
    ),
    (
        "kubectl -n argocd logs -l app.kubernetes.io/name=argocd-ocm-cmp-controller --prefix --tail 200",
        "there are no pods here",
    ),
];

/// The subcommands that need a hub, unless a file is given.
const NEEDS_HUB: [&str; 9] = [
    "diff",
    "doctor",
    "gitopscluster",
    "hold",
    "install",
    "migrate",
    "release",
    "status",
    "uninstall",
];

/// Returns the commands of all pages, in order.
pub(crate) fn commands() -> Vec<Shown> {
    pages().iter().flat_map(of_page).collect()
}

/// Returns the commands of a page: the lines with `$` in its console blocks.
fn of_page(page: &Page) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for block in page.blocks.iter().filter(|block| block.language == "console") {
        let before = all.len();
        let mut continues = false;
        for (number, line) in (block.line + 1..).zip(block.text.lines()) {
            if let Some(text) = line.strip_prefix("$ ") {
                all.push(Shown {
                    location: format!("{}:{number}", page.path),
                    section: format!("{}#{}", page.path, block.section),
                    text: text.to_owned(),
                    output: Vec::new(),
                });
            } else {
                let last = all[before..]
                    .last_mut()
                    .unwrap_or_else(|| panic!("{}:{number}: a command is missing", page.path));
                if continues {
                    last.text.push('\n');
                    last.text.push_str(line);
                } else {
                    last.output.push(line.to_owned());
                    continue;
                }
            }
            continues = line.ends_with('\\') || line.ends_with('|');
        }
        assert!(
            all.len() > before,
            "{}:{}: a console without a command",
            page.path,
            block.line
        );
    }
    all
}

/// Returns the test that runs a command; `None` if the command is not classified.
pub(crate) fn runs(text: &str) -> Option<Runs> {
    let of_program: Vec<&str> = text
        .split("argocd-ocm-cmp ")
        .skip(1)
        .filter_map(|rest| rest.split(' ').next())
        .collect();
    let needs_hub = of_program.iter().any(|word| NEEDS_HUB.contains(word)) && !text.contains(" --file ");
    if NOT_RUN.iter().any(|(it, _)| *it == text) {
        Some(Runs::Never)
    } else if text.contains("kubectl ") || needs_hub {
        Some(Runs::OnHub)
    } else {
        (!of_program.is_empty()).then_some(Runs::Locally)
    }
}

#[test]
fn every_command_is_run_or_excluded_with_a_reason() {
    let all = commands();
    let unknown: Vec<String> = all
        .iter()
        .filter(|it| runs(&it.text).is_none())
        .map(|it| format!("{}: {}", it.location, it.text))
        .collect();
    assert!(
        unknown.is_empty(),
        "commands that no test runs or excludes:\n{}",
        unknown.join("\n")
    );
    for (text, reason) in NOT_RUN {
        assert!(
            all.iter().any(|it| it.text == *text),
            "no page has {text}, which is excluded because {reason}"
        );
    }
}

#[test]
fn program_parses_every_documented_command() {
    for command in commands() {
        for part in command.text.replace(['(', ')'], "|").split('|') {
            let part = [" #", " 2>", ">"]
                .into_iter()
                .fold(part, |part, mark| part.split(mark).next().unwrap_or_default());
            let Some((_, words)) = part
                .split_once("argocd-ocm-cmp ")
                .filter(|(before, _)| !before.contains("kubectl"))
            else {
                continue;
            };
            if runs(&command.text) == Some(Runs::Never) && !part.trim_start().starts_with("argocd-ocm-cmp") {
                continue;
            }
            let words = words.split_whitespace().map(|word| word.trim_matches('\''));
            if let Err(error) = Cli::try_parse_from(["argocd-ocm-cmp"].into_iter().chain(words)) {
                panic!("{}: {part}: {error}", command.location);
            }
        }
    }
}
