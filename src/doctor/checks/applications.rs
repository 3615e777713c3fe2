//! Checks that Argo CD delivers the current version of Applications that use the plugin.

use crate::diagnosis::{DiagnosedApplication, Diagnosis, ProblemCause, problems};
use crate::doctor::hub_state::HubState;
use crate::doctor::message::{APPLICATIONS, Finding, Message, check};
use jiff::Timestamp;
use manifest::text::{count, without_middle};
use ocm::work::GROUP;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

check! {
    "applications"
    error PLUGIN_NAME "applications-plugin-name":
        "the plugin's name is wrong in {applications}: {names}: {why}",
        "set spec.source.plugin.name to argocd-ocm-cmp";
    error SETTING "applications-setting":
        "settings of {applications} are wrong or missing: {names}: {why}",
        "correct the plugin's parameters and env in spec.source.plugin";
    error POLICY "applications-policy":
        "the plugin's policy rejects {applications}: {names}: {why}",
        "ask the owner of the policy to permit it, or remove it from the source";
    error MANIFESTS "applications-manifests":
        "the plugin rejects the sources of {applications}: {names}: {why}",
        "correct them in Git; `argocd-ocm-cmp generate` prints the same errors";
    error SOURCE "applications-source":
        "Argo CD cannot read the sources of {applications}: {names}: {why}",
        "correct the repository, path and revision in spec.source";
    error DESTINATION "applications-destination":
        "Argo CD rejects the destination or the AppProject of {applications}: {names}: {why}",
        "set spec.destination.server to https://kubernetes.default.svc, the hub, and an AppProject that permits it";
    error CLUSTER "applications-cluster":
        "{applications} with managed clusters that are not registered or not accepted: {names}: {why}",
        "correct their names, or accept them, such as with clusteradm accept --clusters";
    error NOT_SYNCED "applications-not-synced":
        "Argo CD could not sync {applications}: {names}: {why}",
        "see the reason with `argocd-ocm-cmp status` of the Application";
    error OTHER "applications-error":
        "Argo CD reports an error of {applications}: {names}: {why}",
        "see the reason with `argocd-ocm-cmp status` of the Application";
    warning FREEZES "applications-freeze-works":
        "syncs of {applications} succeed and leave works unchanged, because RespectIgnoreDifferences=true applies to ignored \
         differences of works: {names}",
        "remove the sync option, and name the fields in the plugin's setting ignore-fields";
    warning PRUNES_EARLY "applications-prune-early":
        "repeated syncs of {applications} prune replaced works before the new ones are healthy, because of \
         ApplyOutOfSyncOnly=true: {names}",
        "remove the sync option; otherwise objects may be deleted and created again";
    warning EVERY_COMMIT "applications-render-every-commit":
        "every commit to {repository} renders all {applications} of it: {names}",
        "annotate them with argocd.argoproj.io/manifest-generate-paths, as docs/ways-in.md describes";
    ok OK "applications":
        "no errors of Argo CD: {applications}";
}

/// The maximum length of a reason in a finding, in bytes.
const WHY_MAX: usize = 200;

/// The prefix of the keys of argocd-cm for ignored differences, before GROUP_KIND or `all`.
const IGNORED: &str = "resource.customizations.ignoreDifferences.";

/// The number of Applications of a repository from which their rendering at every commit is reported.
const MANY: usize = 20;

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    // Another check reports Applications that cannot be read.
    let applications = hub_state.applications.items();
    let mut reports: Vec<(&'static str, &str, String)> = Vec::new();
    for application in applications {
        for diagnosis in problems(application, hub_state.clusters.found()) {
            if let Some(message) = message(&diagnosis, hub_state) {
                reports.push((message.id, &application.qualified_name, diagnosis.problem));
            }
        }
    }
    let warnings = warnings(applications, hub_state.config.found());
    if reports.is_empty() && warnings.is_empty() && !applications.is_empty() {
        return vec![OK.finding(&[("applications", &count(applications.len(), "Application"))])];
    }
    reports.sort_unstable();
    let finding = |message: &&'static Message| {
        let of_it: Vec<_> = reports.iter().filter(|(id, ..)| *id == message.id).collect();
        let (_, _, why) = of_it.first()?;
        let names: BTreeSet<_> = of_it.iter().map(|(_, name, _)| *name).collect();
        message.about(APPLICATIONS, names, &[("why", &without_middle(why, WHY_MAX))])
    };
    CHECK.messages.iter().filter_map(finding).chain(warnings).collect()
}

/// Returns the findings about Applications without errors that Argo CD delivers otherwise than expected.
fn warnings(applications: &[DiagnosedApplication], config: Option<&Value>) -> Vec<Finding> {
    let ignored_by_all = config.is_some_and(ignores_works);
    let frozen = applications.iter();
    let frozen =
        frozen.filter(|application| application.respects_ignored && (application.ignores_works || ignored_by_all));
    let frozen = frozen.map(|application| &application.qualified_name);
    let early = applications.iter().filter(|application| application.skips_synced);
    let early = early.map(|application| &application.qualified_name);
    let findings = [
        FREEZES.about(APPLICATIONS, frozen, &[]),
        PRUNES_EARLY.about(APPLICATIONS, early, &[]),
    ];
    let mut findings: Vec<_> = findings.into_iter().flatten().collect();
    let mut repositories: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for application in applications {
        for repository in &application.rendered_by_every_commit {
            let of_repository = repositories.entry(repository).or_default();
            of_repository.insert(&application.qualified_name);
        }
    }
    for (repository, names) in repositories.into_iter().filter(|(_, names)| names.len() >= MANY) {
        findings.extend(EVERY_COMMIT.about(APPLICATIONS, names, &[("repository", &repository)]));
    }
    findings
}

/// Returns the message about a problem, unless another check reports it.
fn message(diagnosis: &Diagnosis, hub_state: &HubState) -> Option<&'static Message> {
    match diagnosis.cause {
        ProblemCause::PluginName => Some(&PLUGIN_NAME),
        ProblemCause::Setting => Some(&SETTING),
        ProblemCause::Policy => Some(&POLICY),
        ProblemCause::Manifests => Some(&MANIFESTS),
        ProblemCause::Path | ProblemCause::Repository => Some(&SOURCE),
        // The check `projects` reports AppProjects that do not exist.
        ProblemCause::ProjectMissing if hub_state.projects.found().is_some() => None,
        ProblemCause::ProjectMissing | ProblemCause::Destination | ProblemCause::Project => Some(&DESTINATION),
        ProblemCause::ClusterUnknown | ProblemCause::ClusterNotAccepted => Some(&CLUSTER),
        // The check `works` reports works that are too large.
        ProblemCause::SyncFailed if diagnosis.problem.contains("the size of manifests is") => None,
        ProblemCause::SyncFailed => Some(&NOT_SYNCED),
        ProblemCause::Other => Some(&OTHER),
        // The checks `socket` and `clusters` report these, and the rest is no error.
        ProblemCause::PluginMissing
        | ProblemCause::ClusterNotJoined
        | ProblemCause::NoPlugin
        | ProblemCause::PullModel
        | ProblemCause::NotTarget
        | ProblemCause::NotSynced
        | ProblemCause::NotCompared
        | ProblemCause::PlacementEmpty
        | ProblemCause::Overdue => None,
    }
}

/// Returns true if argocd-cm ignores differences of the manifests in works.
fn ignores_works(config: &Value) -> bool {
    let data = config["data"].as_object().into_iter().flatten();
    let mut ignored = data.filter_map(|(key, value)| Some((key.strip_prefix(IGNORED)?, value.as_str()?)));
    ignored.any(|(kind, paths)| {
        let is_of_works = kind == "all" || kind.strip_prefix(GROUP).is_some_and(|text| text.starts_with('_'));
        is_of_works && paths.contains("workload")
    })
}
