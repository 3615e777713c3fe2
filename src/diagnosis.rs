//! Finds out why Argo CD delivers nothing of an Application, or not its current version, for `status` and `doctor`.
//!
//! ```text
//! Application, ManagedClusters ─▶ problems ─▶ Diagnosis: the cause, the problem, the remedy
//! ```
//!
//! All functions are pure functions of the objects on the hub. Causes are recognized by the texts of Argo CD 3.2 to 3.6, which
//! `tests/with_argocd/diagnosis.rs` compares with a real one.

#[cfg(test)]
mod tests;

use crate::doctor::PLUGIN;
use argocd_agent::state::condition;
use generate::similar::similar;
use hub::HubObject;
use manifest::text::with_reason;
use ocm::health::WorkStatus;
use ocm::tracking::TRACKING_ID;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The type of the condition that reports a failed automated sync.
pub(crate) const SYNC_ERROR: &str = "SyncError";

/// An Application, with the fields that tell why it delivers nothing.
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiagnosedApplication {
    /// Its namespace and name.
    pub(crate) qualified_name: String,
    pub(crate) project: String,
    /// The names of the plugins of its sources; an empty one leaves the choice to Argo CD.
    pub(crate) plugins: Vec<String>,
    /// The managed clusters that its settings name.
    pub(crate) targets: BTreeSet<String>,
    /// True if it is for the clusters of a Placement.
    pub(crate) placement: bool,
    /// The managed clusters with works that Argo CD lists as not synced, if it is known which these are.
    pub(crate) unsynced: Option<BTreeSet<String>>,
    /// True if several of its sources use the plugin, and their works have the same names.
    pub(crate) sources_share_works: bool,
    /// True if it ignores differences of the manifests in works.
    pub(crate) ignores_works: bool,
    /// True if its syncs leave ignored fields as they are on the hub.
    pub(crate) respects_ignored: bool,
    /// True if its syncs leave out synced works, and so do not wait for them.
    pub(crate) skips_synced: bool,
    /// The Git repositories of the plugin's sources, unless it names the paths from which it is made.
    pub(crate) rendered_by_every_commit: BTreeSet<String>,
    /// True if it has the label of the pull model.
    pub(crate) pull: bool,
    /// True if Argo CD has not compared its current spec yet, or not started a requested sync.
    pub(crate) stale: bool,
    /// Its sync status in Argo CD; empty before the first comparison.
    pub(crate) sync: String,
    /// Its health in Argo CD; empty before the first comparison.
    pub(crate) health: String,
    /// The errors among its conditions.
    pub(crate) conditions: Vec<ApplicationCondition>,
    /// The last sync.
    pub(crate) operation: Option<SyncOperation>,
}

/// An entry of `status.conditions` of an Application: Argo CD and the controller report problems there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct ApplicationCondition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) message: String,
}

/// A sync of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SyncOperation {
    pub(crate) phase: String,
    pub(crate) message: String,
    /// The messages of the objects that could not be applied.
    pub(crate) failures: Vec<String>,
}

impl SyncOperation {
    pub(crate) fn is_running(&self) -> bool {
        self.phase == "Running"
    }

    /// Returns true if it has ended, and not all objects were applied.
    pub(crate) fn has_failed(&self) -> bool {
        self.phase == "Failed" || self.phase == "Error"
    }
}

impl DiagnosedApplication {
    /// Returns true if it is OutOfSync only because of other managed clusters.
    pub(crate) fn is_synced_on(&self, clusters: &[String]) -> bool {
        let is_synced = |unsynced: &BTreeSet<String>| clusters.iter().all(|name| !unsynced.contains(name));
        self.sync == "OutOfSync" && !clusters.is_empty() && self.unsynced.as_ref().is_some_and(is_synced)
    }

    /// Returns the sync that is running or requested.
    pub(crate) fn running_sync(&self) -> Option<&SyncOperation> {
        self.operation.as_ref().filter(|operation| operation.is_running())
    }

    /// Returns the texts of all errors: of the conditions, and of the last sync if it failed.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &str> {
        let conditions = self.conditions.iter().map(|condition| &*condition.message);
        let failed = self.operation.iter().filter(|operation| operation.has_failed());
        conditions.chain(failed.flat_map(|operation| operation.failures.iter().map(String::as_str)))
    }
}

/// A managed cluster.
#[expect(clippy::struct_excessive_bools, reason = "each is a condition of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiagnosedCluster {
    /// True if the hub accepts it.
    pub(crate) accepted: bool,
    /// True if it was accepted and has joined.
    pub(crate) joined: bool,
    /// The availability that it reports to the hub; `None` if it is silent.
    pub(crate) available: Option<bool>,
    /// True if OCM has noticed that it no longer contacts the hub.
    pub(crate) unreachable: bool,
    /// True if OCM has noticed that its clock differs from the hub's by minutes. Its agent then reports no other change of its state.
    pub(crate) has_wrong_clock: bool,
}

/// The managed clusters, if the user is permitted to read them.
pub(crate) type KnownClusters<'c> = Option<&'c BTreeMap<String, DiagnosedCluster>>;

/// Returns the managed clusters that no longer contact the hub.
pub(crate) fn unreachable(clusters: &BTreeMap<String, DiagnosedCluster>) -> BTreeSet<String> {
    let unreachable = clusters.iter().filter(|(_, cluster)| cluster.unreachable);
    unreachable.map(|(name, _)| name.clone()).collect()
}

/// The cause of a problem; `doctor` and `status` print a remediation for each. The names in JSON do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProblemCause {
    /// No sidecar has the plugin.
    PluginMissing,
    /// No sidecar has a plugin of this name.
    PluginName,
    /// No source uses a plugin.
    NoPlugin,
    /// The Application uses the pull model.
    PullModel,
    /// A setting is wrong or missing.
    Setting,
    /// The policy does not permit an object, a cluster or the project.
    Policy,
    /// The plugin rejects the manifests.
    Manifests,
    /// The path does not exist in the repository.
    Path,
    /// The repository or its revision cannot be read.
    Repository,
    /// The AppProject does not exist.
    ProjectMissing,
    /// The AppProject does not permit the repository or works.
    Project,
    /// The destination is not the hub, or is not permitted.
    Destination,
    /// The managed cluster is not registered.
    ClusterUnknown,
    /// The hub has not accepted the managed cluster.
    ClusterNotAccepted,
    /// The managed cluster was accepted, and has not joined.
    ClusterNotJoined,
    /// The Application is not for this managed cluster.
    NotTarget,
    /// The last sync failed.
    SyncFailed,
    /// Argo CD waits for a request to sync.
    NotSynced,
    /// Argo CD has not compared the Application.
    NotCompared,
    /// The Placement selects no managed cluster.
    PlacementEmpty,
    /// The agent of a managed cluster, or OCM, has done nothing for minutes.
    Overdue,
    /// Another error of Argo CD.
    Other,
}

impl ProblemCause {
    /// Returns true if waiting does not help.
    fn is_permanent(self) -> bool {
        !matches!(
            self,
            Self::ClusterNotJoined
                | Self::NotSynced
                | Self::NotCompared
                | Self::PlacementEmpty
                | Self::Overdue
                | Self::Other
        )
    }
}

/// A problem of an Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    pub(crate) cause: ProblemCause,
    /// The general problem, if `problem` is an error of the plugin; otherwise empty.
    pub(crate) context: &'static str,
    pub(crate) problem: String,
    /// The remedy; empty if the problem names it.
    pub(crate) remedy: String,
    /// True if waiting does not help.
    pub(crate) permanent: bool,
}

impl Diagnosis {
    fn new(cause: ProblemCause, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            cause,
            context: "",
            problem: problem.into(),
            remedy: remedy.into(),
            permanent: cause.is_permanent(),
        }
    }

    /// Formats the problem with its context.
    pub(crate) fn message(&self) -> String {
        match self.context {
            "" => self.problem.clone(),
            context => format!("{context}: {}", self.problem),
        }
    }

    /// Formats the problem and the remedy as one line.
    pub(crate) fn line(&self) -> String {
        with_reason(&self.message(), &self.remedy)
    }
}

/// Returns the reasons why an Application has no works, or none for the managed clusters in `shown`, if these are named; at least one.
pub(crate) fn absence(
    application: &DiagnosedApplication,
    shown: &[String],
    clusters: KnownClusters<'_>,
) -> Vec<Diagnosis> {
    let elsewhere = absence_on(shown, application, clusters);
    if !elsewhere.is_empty() {
        return elsewhere;
    }
    if application.pull {
        let problem = format!(
            "it uses the pull model, because it has the label {}, and not the plugin",
            ocm::pull_model::PULL
        );
        return vec![Diagnosis::new(
            ProblemCause::PullModel,
            problem,
            "see its state in Argo CD",
        )];
    }
    if application.plugins.is_empty() {
        let remedy = format!("set spec.source.plugin.name to {PLUGIN}");
        return vec![Diagnosis::new(
            ProblemCause::NoPlugin,
            "none of its sources uses a plugin",
            remedy,
        )];
    }
    let mut diagnoses = problems(application, clusters);
    if diagnoses.is_empty() {
        diagnoses.push(pending(application, shown));
    }
    diagnoses
}

/// Returns why an Application has no works for these managed clusters, of which it may name none; empty if it should have.
fn absence_on(names: &[String], application: &DiagnosedApplication, clusters: KnownClusters<'_>) -> Vec<Diagnosis> {
    let targets = &application.targets;
    let problem = |name: &String| {
        let of_cluster = clusters.and_then(|clusters| cluster_problem(name, clusters));
        of_cluster.or_else(|| {
            // Its Placement may select the cluster.
            let is_other = !application.placement && !targets.is_empty() && !targets.contains(name);
            let targets: Vec<_> = targets.iter().map(String::as_str).collect();
            is_other.then(|| {
                let problem = format!("it is not for managed cluster {name}, but for {}", targets.join(", "));
                Diagnosis::new(ProblemCause::NotTarget, problem, "")
            })
        })
    };
    names.iter().filter_map(problem).collect()
}

/// Returns why an Application that has works on other managed clusters has none on these.
pub(crate) fn absence_besides(
    names: &[String],
    application: &DiagnosedApplication,
    clusters: KnownClusters<'_>,
) -> Vec<Diagnosis> {
    let mut diagnoses = absence_on(names, application, clusters);
    if diagnoses.is_empty() && !names.is_empty() {
        let problem = format!("it has no work on {}", names.join(", "));
        diagnoses.push(Diagnosis::new(ProblemCause::Other, problem, ""));
    }
    diagnoses
}

/// Returns why an Application without errors has no works yet.
fn pending(application: &DiagnosedApplication, shown: &[String]) -> Diagnosis {
    if let Some(running) = application.running_sync() {
        let message = with_reason("Argo CD is syncing it", &running.message);
        return Diagnosis::new(ProblemCause::NotCompared, message, "");
    }
    undelivered(application).unwrap_or_else(|| {
        if application.placement && !shown.is_empty() {
            let problem = format!("its Placement has no work on {}", shown.join(", "));
            let remedy = "check that the Placement selects it, and without --clusters, how far the rollout is";
            return Diagnosis::new(ProblemCause::Other, problem, remedy);
        }
        let problem = format!("it is {}, and Argo CD lists no works of it", application.sync);
        let remedy =
            "check that its source has manifests, and that Argo CD watches works with argocd-ocm-cmp doctor argocd-cm";
        Diagnosis::new(ProblemCause::Other, problem, remedy)
    })
}

/// Returns why works of an Application without errors and without a running sync may be of an earlier version.
fn undelivered(application: &DiagnosedApplication) -> Option<Diagnosis> {
    let name = &application.qualified_name;
    match &*application.sync {
        "" => Some(Diagnosis::new(
            ProblemCause::NotCompared,
            "Argo CD has not compared it with its source yet, or hides an error for its first three minutes",
            format!("see errors at once with argocd app get {name} --hard-refresh"),
        )),
        _ if application.stale => Some(Diagnosis::new(
            ProblemCause::NotCompared,
            "Argo CD has not compared its current spec with its source yet",
            "",
        )),
        "OutOfSync" => Some(Diagnosis::new(
            ProblemCause::NotSynced,
            "it is OutOfSync",
            format!("sync it, such as with argocd app sync {name}; after rollout undo or resume, change Git first"),
        )),
        _ => None,
    }
}

/// Returns the problems because of which the works of an Application are not, or not yet, those of its current version. A running sync is
/// none.
pub(crate) fn problems_of_works(application: &DiagnosedApplication, clusters: KnownClusters<'_>) -> Vec<Diagnosis> {
    let mut diagnoses = problems(application, clusters);
    if diagnoses.is_empty() && !application.pull && application.running_sync().is_none() {
        diagnoses.extend(undelivered(application));
    }
    diagnoses
}

/// Returns the problems because of which Argo CD does not deliver the current version of an Application. `clusters` are the managed
/// clusters, if they could be read.
pub(crate) fn problems(application: &DiagnosedApplication, clusters: KnownClusters<'_>) -> Vec<Diagnosis> {
    let of_condition = |condition: &ApplicationCondition| match of_message(&condition.message, application, clusters) {
        Some(cluster) => cluster,
        // The sync has the same error.
        None if condition.kind == SYNC_ERROR && application.operation.is_some() => Vec::new(),
        None => vec![Diagnosis::new(
            ProblemCause::Other,
            format!("Argo CD reports {}: {}", condition.kind, condition.message),
            "",
        )],
    };
    let mut diagnoses: Vec<Diagnosis> = application.conditions.iter().flat_map(of_condition).collect();
    if diagnoses.is_empty()
        && let Some(operation) = &application.operation
    {
        diagnoses = of_operation(operation, application, clusters);
    }
    for diagnosis in &mut diagnoses {
        diagnosis.permanent &= !application.stale;
    }
    for name in &application.targets {
        diagnoses.extend(clusters.and_then(|clusters| cluster_problem(name, clusters)));
    }
    let mut known = BTreeSet::new();
    diagnoses.retain(|diagnosis| known.insert(diagnosis.line()));
    diagnoses
}

/// Returns the problems that a sync met. A sync that Argo CD retries has a cause only if no retry can remove it.
fn of_operation(
    operation: &SyncOperation,
    application: &DiagnosedApplication,
    clusters: KnownClusters<'_>,
) -> Vec<Diagnosis> {
    let is_running = operation.is_running();
    if !is_running && !operation.has_failed() || application.sync == "Synced" {
        return Vec::new();
    }
    let texts = operation.failures.iter().chain([&operation.message]);
    let recognized: Vec<_> = texts
        .filter_map(|text| of_message(text, application, clusters))
        .flatten()
        .collect();
    if !recognized.is_empty() || is_running {
        return recognized;
    }
    let problem = format!("Argo CD could not sync it: {}", operation.message);
    let remedy = format!(
        "correct it, and sync it again, such as with argocd app sync {}",
        application.qualified_name
    );
    vec![Diagnosis::new(ProblemCause::SyncFailed, problem, remedy)]
}

/// Recognizes the cause in an error of Argo CD.
fn of_message(
    message: &str,
    application: &DiagnosedApplication,
    clusters: KnownClusters<'_>,
) -> Option<Vec<Diagnosis>> {
    if let Some(errors) = plugin_errors(message) {
        return Some(errors.into_iter().map(of_plugin).collect());
    }
    if let Some(name) = between(message, "namespaces \"", "\" not found") {
        return Some(vec![of_namespace(name, clusters)]);
    }
    let is_recognized = |(texts, ..): &&ErrorText| texts.iter().any(|text| message.contains(text));
    let (_, cause, remedy) = ERROR_TEXTS.iter().find(is_recognized)?;
    let words = message.rsplit(" desc = ").next().unwrap_or(message);
    let problem = match cause {
        ProblemCause::PluginMissing => match between(message, "plugin with name \"", "\"") {
            Some(name) if name != PLUGIN => {
                let problem = format!("no sidecar of Argo CD's repo-server runs a plugin named {name}");
                let remedy = "set spec.source.plugin.name to argocd-ocm-cmp";
                return Some(vec![Diagnosis::new(ProblemCause::PluginName, problem, remedy)]);
            }
            _ => format!("no sidecar of Argo CD's repo-server runs the plugin {PLUGIN}"),
        },
        ProblemCause::Path => {
            let path = words.split(": app path does not exist").next().unwrap_or_default();
            let path = path.rsplit(": ").next().unwrap_or(path);
            format!("the path {path} does not exist in the repository")
        }
        ProblemCause::ProjectMissing => format!("AppProject {} does not exist", application.project),
        ProblemCause::Repository => format!("Argo CD cannot read the repository: {words}"),
        // The errors of all works are one problem.
        ProblemCause::SyncFailed => match between(message, "User \"", "\" cannot ") {
            Some(user) => format!("user {user} lacks the permission to write works"),
            None => words.to_owned(),
        },
        _ => words.to_owned(),
    };
    Some(vec![Diagnosis::new(*cause, problem, *remedy)])
}

/// Words of an error of Argo CD, the cause, and the remedy.
type ErrorText = (&'static [&'static str], ProblemCause, &'static str);

/// The errors of Argo CD that are recognized.
static ERROR_TEXTS: [ErrorText; 9] = [
    (
        &[
            "could not find cmp-server plugin",
            "could not find plugin supporting the given repository",
            "plugin.sock",
        ],
        ProblemCause::PluginMissing,
        "install it with argocd-ocm-cmp install --features plugin, or see why it does not run with argocd-ocm-cmp doctor \
         plugin socket",
    ),
    (
        &["app path does not exist"],
        ProblemCause::Path,
        "correct spec.source.path, or commit the folder to the target revision",
    ),
    (
        &["Application referencing project "],
        ProblemCause::ProjectMissing,
        "apply it, such as proj.yaml, or set another one in spec.project",
    ),
    (
        &["do not match any of the allowed destinations in project"],
        ProblemCause::Destination,
        "set spec.destination.server to https://kubernetes.default.svc, the hub, and permit its namespace in the AppProject",
    ),
    (
        &[
            "there are no clusters with this name",
            "clusters with the same name",
            "error getting cluster by",
            "application destination can't have both name and server",
            "Destination server missing from app spec",
        ],
        ProblemCause::Destination,
        "set spec.destination.server to https://kubernetes.default.svc, the hub, without spec.destination.name",
    ),
    (
        &["is not permitted in project"],
        ProblemCause::Project,
        "permit it in the AppProject, as proj.yaml does, or set another one in spec.project",
    ),
    (
        &[
            "repository not found",
            "authentication required",
            "does not appear to be a git repository",
            "out-of-bounds symlinks",
            "to a commit SHA",
            "couldn't find remote ref",
        ],
        ProblemCause::Repository,
        "correct spec.source, the repository, or its credentials in Argo CD",
    ),
    // An Argo CD with a list of namespaces, as argocd-operator creates it by default.
    (
        &["\" is not managed"],
        ProblemCause::SyncFailed,
        "let Argo CD manage all namespaces: add its own to ARGOCD_CLUSTER_CONFIG_NAMESPACES of argocd-operator, or without the operator \
         remove namespaces from the cluster Secret of the hub",
    ),
    (
        &[
            "resource \"manifestworks\" in API group",
            "resource \"manifestworkreplicasets\" in API group",
        ],
        ProblemCause::SyncFailed,
        "grant it as deploy/argocd_rbac.yaml does, such as with argocd-ocm-cmp install --features argocd-rbac, and sync again",
    ),
];

/// Returns the diagnosis of a missing namespace on the hub: the hub has one for each managed cluster that it accepted.
fn of_namespace(name: &str, clusters: KnownClusters<'_>) -> Diagnosis {
    let problem = clusters.and_then(|clusters| cluster_problem(name, clusters));
    problem.unwrap_or_else(|| {
        Diagnosis::new(
            ProblemCause::ClusterUnknown,
            format!("the hub has no namespace {name}, which each managed cluster has"),
            "correct the name of the cluster, or register it",
        )
    })
}

/// The beginnings of the plugin's errors about settings.
const ABOUT_SETTINGS: [&str; 7] = [
    "no target cluster",
    "no name for the work",
    "clusters and a placement are both set",
    "unknown parameter ",
    "parameter ",
    "plugin env ",
    "env ",
];

/// Returns the diagnosis of an error that the plugin printed.
fn of_plugin(error: &str) -> Diagnosis {
    let is_about_policy = error.contains("the policy ") || error.starts_with("a policy is set");
    let (cause, context) = if is_about_policy {
        (ProblemCause::Policy, "the plugin's policy rejects it")
    } else if ABOUT_SETTINGS.iter().any(|start| error.starts_with(start)) {
        (ProblemCause::Setting, "a setting is wrong")
    } else {
        (ProblemCause::Manifests, "the plugin rejects its source")
    };
    Diagnosis {
        context,
        ..Diagnosis::new(cause, error, "")
    }
}

/// Returns the errors that the plugin printed, if Argo CD reports its failure.
fn plugin_errors(message: &str) -> Option<Vec<&str>> {
    let (_, printed) = message.split_once("failed exit status ")?;
    let errors: Vec<_> = printed
        .split('\n')
        .filter_map(|line| {
            // The first line begins with the exit code.
            let (before, error) = line.split_once("error: ")?;
            let is_code = |character: char| character.is_ascii_digit() || character == ':' || character == ' ';
            before.chars().all(is_code).then_some(error.trim())
        })
        .collect();
    (!errors.is_empty()).then_some(errors)
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(quoted, _)| quoted)
}

/// Returns the problem because of which nothing reaches a managed cluster, if any.
pub(crate) fn cluster_problem(name: &str, clusters: &BTreeMap<String, DiagnosedCluster>) -> Option<Diagnosis> {
    let Some(cluster) = clusters.get(name) else {
        return Some(Diagnosis::new(
            ProblemCause::ClusterUnknown,
            format!("managed cluster {name} is not registered on the hub"),
            "correct its name, or register it, such as with clusteradm join",
        ));
    };
    if !cluster.accepted {
        return Some(Diagnosis::new(
            ProblemCause::ClusterNotAccepted,
            format!("managed cluster {name} is not accepted on the hub"),
            format!("accept it, such as with clusteradm accept --clusters {name}"),
        ));
    }
    (!cluster.joined && !cluster.unreachable).then(|| {
        Diagnosis::new(
            ProblemCause::ClusterNotJoined,
            format!("managed cluster {name} has not joined the hub"),
            "check that its registration agent runs",
        )
    })
}

/// Returns the reason why a Placement selects no managed cluster, in the words of OCM; `None` if it selects some.
pub(crate) fn unsatisfied(placement: &Value) -> Option<String> {
    let condition = condition(placement, "PlacementSatisfied");
    let selected = placement["status"]["numberOfSelectedClusters"].as_i64();
    if condition["status"] != "False" || selected.is_some_and(|number| number > 0) {
        return None;
    }
    let text = |key: &str| condition[key].as_str().unwrap_or_default();
    Some(match (text("message"), text("reason")) {
        ("", reason) => reason.to_owned(),
        (message, reason) => format!("{message} ({reason})"),
    })
}

/// Returns true if Argo CD has applied this work, in JSON. `kubectl apply` of a printed work leaves no such mark.
pub(crate) fn is_tracked(work: &str) -> bool {
    let work = serde_json::from_str::<HubObject>(work);
    work.is_ok_and(|HubObject(work)| work["metadata"]["annotations"][TRACKING_ID].is_string())
}

/// Returns the problem of works that Argo CD has applied for an Application that does not exist any more.
pub(crate) fn describe_abandoned(namespace: &str, name: &str) -> Diagnosis {
    Diagnosis::new(
        ProblemCause::Other,
        format!("the hub has no Application {namespace}/{name} any more, so nothing updates its works"),
        "create it again, or delete the works",
    )
}

/// Returns the problems of works to which nothing happens: their Placement selects no managed cluster, or the agent or OCM has done
/// nothing for minutes. `placements` are the reasons why Placements select none.
pub(crate) fn standstill(
    works: &[WorkStatus],
    clusters: KnownClusters<'_>,
    placements: &BTreeMap<String, String>,
) -> Vec<Diagnosis> {
    let of_placement = placements.iter().map(|(name, why)| {
        let remedy =
            "correct it, the ManagedClusterSetBindings in its namespace, or the labels and taints of the clusters";
        let problem = format!("Placement {name} selects no managed cluster: {why}");
        Diagnosis::new(ProblemCause::PlacementEmpty, problem, remedy)
    });
    let is_available = |work: &WorkStatus| match (work.cluster(), clusters) {
        (Some(name), Some(clusters)) => clusters
            .get(name)
            .is_some_and(|cluster| cluster.available == Some(true)),
        _ => true,
    };
    let overdue = works.iter().filter(|work| is_available(work)).filter_map(|work| {
        let (place, remedy) = match work.cluster() {
            Some(cluster) => (
                cluster.to_owned(),
                "check that klusterlet-work-agent runs there, and read its log",
            ),
            None => (
                format!("{} {}/{}", work.kind, work.namespace, work.name),
                "check OCM's work manager",
            ),
        };
        let problem = format!("{place}: {}", work.overdue.as_ref()?);
        Some(Diagnosis::new(ProblemCause::Overdue, problem, remedy))
    });
    of_placement.chain(overdue).collect()
}

/// Returns true if a plugin's name was meant for this program: Argo CD chooses it, or it is similar.
pub(crate) fn is_our_plugin(name: &str) -> bool {
    name.is_empty() || name.starts_with(PLUGIN) || similar(name, [PLUGIN].into_iter()).is_some()
}
