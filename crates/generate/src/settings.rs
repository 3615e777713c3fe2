//! Settings of `generate`: everything it needs besides the files.
//!
//! `table` lists the names of each setting, `sources` decides which source of a value wins, and `values` parses the values.

mod kustomize;
mod parameter_announcements;
#[cfg(test)]
mod properties;
mod sources;
mod suggestions;
mod table;
mod values;

use super::discover::FileSelection;
use super::feedback_watch::ScrapeType;
use super::ignored_fields;
use super::manifest_configs::WorkOptions;
use super::order;
use super::placed::Placed;
use super::placement::{PlacementTarget, RolloutStrategy};
use super::policy::{Executor, Rules};
use super::source::{CompletedCharts, FolderKind, HelmSettings, Remote, SKIP_SCHEMA_VALIDATION, Source, Tools};
use super::update_strategy::UpdateStrategy;
use crate::confine::Isolation;
use crate::documents::ReadOptions;
use crate::schema::FieldValidation;
use manifest::kinds::GroupKind;
use manifest::problem::Problems;
use ocm::names::{ClusterName, WorkName};
use sources::{SourceKind, Sources};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;
use values::{expanded, glob, plural, unset_variables};

pub(crate) use kustomize::COMMON_LABELS;
pub use parameter_announcements::announcements;
pub use suggestions::misspelled_variable;
pub use table::{SETTINGS, Setting, ValueType};

/// The environment variables of a process, by name.
pub type Env = BTreeMap<String, String>;

/// The values typed on the command line, by the name of the setting.
#[derive(Clone, Debug, Default)]
pub struct FlagValues(BTreeMap<&'static str, Vec<String>>);

impl FlagValues {
    /// Adds the typed values of a setting.
    pub fn add(&mut self, setting: &Setting, texts: impl IntoIterator<Item = String>) {
        self.0.entry(setting.name).or_default().extend(texts);
    }

    fn get(&self, setting: &Setting) -> &[String] {
        self.0.get(setting.name).map_or(&[], Vec::as_slice)
    }
}

/// The target of the ManifestWorks.
#[derive(Debug)]
pub enum DeliveryTarget {
    /// The managed clusters, each once, in the given order; at least one.
    Clusters(Vec<ClusterName>),
    /// A placement: the managed clusters that it selects now and later.
    Placement(PlacementTarget),
}

impl DeliveryTarget {
    /// Returns the managed clusters that are known by name.
    pub fn clusters(&self) -> &[ClusterName] {
        match self {
            Self::Clusters(clusters) => clusters,
            Self::Placement(_) => &[],
        }
    }

    /// Returns true if it is a placement of which some clusters wait for others.
    pub(crate) fn is_progressive(&self) -> bool {
        matches!(self, Self::Placement(placement) if placement.rollout.is_progressive())
    }

    /// Returns the recipients, in the given order.
    pub(crate) fn recipients(&self) -> impl Iterator<Item = Recipient<'_>> {
        let placement = match self {
            Self::Clusters(_) => None,
            Self::Placement(placement) => Some(Recipient::Placement(placement)),
        };
        let clusters = self.clusters().iter().enumerate();
        clusters
            .map(|(at, name)| Recipient::Cluster { at, name })
            .chain(placement)
    }
}

/// A recipient of `ManifestWorks`.
#[derive(Clone, Copy, Debug)]
pub enum Recipient<'s> {
    /// A managed cluster.
    Cluster {
        /// The position in the order of the output.
        at: usize,
        /// The name.
        name: &'s ClusterName,
    },
    /// A placement.
    Placement(&'s PlacementTarget),
}

impl Display for Recipient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster { name, .. } => name.fmt(f),
            Self::Placement(placement) => placement.fmt(f),
        }
    }
}

impl Recipient<'_> {
    /// Returns the position in the order of the output.
    pub fn position(&self) -> usize {
        match self {
            Self::Cluster { at, .. } => *at,
            Self::Placement(_) => 0,
        }
    }
}

/// All settings of `generate`.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub struct Settings {
    /// Warnings about settings, one line each.
    pub notices: Vec<String>,
    /// The source of the manifests.
    pub source: Source,
    /// The target of the ManifestWorks.
    pub target: DeliveryTarget,
    /// The base name of the ManifestWorks. Under a policy it contains a hash of the Application.
    pub name: WorkName,
    /// The default namespace of namespaced objects.
    pub namespace: Option<String>,
    /// Cluster-scoped kinds, besides the built-in ones and those whose CRD is in the folder.
    pub cluster_scoped: Vec<GroupKind>,
    /// The resource names of custom kinds with an irregular plural.
    pub plurals: Vec<(GroupKind, String)>,
    /// True if empty input is valid.
    pub allow_empty: bool,
    /// True if plain Secrets may be delivered.
    pub allow_secrets: bool,
    /// True if the default namespace is created.
    pub create_namespace: bool,
    /// The options of all ManifestWorks that the Application sets.
    requested_options: WorkOptions,
    /// True to refuse files in the folder from which Argo CD takes settings of the Application.
    pub(super) refuses_overrides: bool,
    /// The policy file, which lists what each AppProject may deliver.
    pub policy: Option<PathBuf>,
    /// The file with the health rules of the user.
    pub health_rules: Option<PathBuf>,
    /// The AppProject, as Argo CD passes it.
    pub project: Option<String>,
    /// The Application, as Argo CD passes it in `ARGOCD_APP_NAME`; `None` outside Argo CD.
    pub(super) application: Option<String>,
    /// The maximum number of bytes of objects in one ManifestWork; a single larger object is allowed. `None` for no limit.
    pub work_size: Option<u64>,
    /// The maximum number of managed clusters; `None` for no limit.
    pub max_clusters: Option<u64>,
    /// The maximum number of bytes of the objects in all ManifestWorks together; `None` for no limit.
    pub max_output: Option<u64>,
    /// The maximum number of bytes of memory of this process; `None` for no limit.
    pub memory: Option<u64>,
    /// The maximum number of bytes of a ManifestWork, as OCM's webhook counts them; `None` for no limit.
    pub manifest_limit: Option<u64>,
}

/// The command-line arguments of `generate`.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The folder with the manifests, or `-` for standard input; the current folder by default.
    pub folder: Option<PathBuf>,
    /// The settings given as flags.
    pub given: FlagValues,
    /// The AppProject; by default as Argo CD passes it.
    pub project: Option<String>,
    /// The path of this program, which confines the tools that render manifests: see [`Tools::launcher`].
    pub launcher: Option<PathBuf>,
}

impl Settings {
    /// Merges the command line, the plugin parameters and the environment.
    ///
    /// # Errors
    /// Returns an error that names every missing or malformed setting and the source of its value.
    pub fn resolve(args: Arguments, env: &Env) -> Result<Self, Problems> {
        let mut sources = Sources::new(&args.given, env)?;
        let mut namespace = sources.read_optional(&table::NAMESPACE, ocm::names::namespace);
        if namespace.is_none() && !sources.within_argo_cd() {
            // At a terminal, use kubectl's default. Argo CD has no default and rejects objects without a namespace.
            namespace = Some("default".to_owned());
        }
        let target = target(&mut sources);
        let name = sources.read_optional(&table::NAME, WorkName::from_str);
        sources.need(&table::NAME, name.is_none(), "no name for the work: pass --name NAME");
        let build_env = if sources.within_argo_cd() {
            Cow::Borrowed(env)
        } else {
            let application = name.as_ref().map(WorkName::application);
            Cow::Owned(build_environment(
                env,
                application,
                namespace.as_deref(),
                args.project.as_deref(),
            ))
        };
        let source = source(&mut sources, args.folder, args.launcher, namespace.clone(), &build_env);
        let cluster_scoped = sources.list(&table::CLUSTER_SCOPED_KINDS, true, GroupKind::from_str);
        let plurals = sources.list(&table::RESOURCE_NAMES, true, plural);
        let ignored_fields = sources.list(&table::IGNORE_FIELDS, false, ignored_fields::of_kind);
        let create_namespace = sources.flag(&table::CREATE_NAMESPACE);
        sources.need(
            &table::NAMESPACE,
            create_namespace && namespace.is_none(),
            "create-namespace is set, but the Application has no destination namespace: set spec.destination.namespace",
        );
        let requested_options = WorkOptions {
            strategy: sources.read_optional(&table::UPDATE_STRATEGY, UpdateStrategy::from_str),
            ignored_fields,
            delete_namespaces: sources.flag(&table::DELETE_NAMESPACES),
            delete_crds: sources.flag(&table::DELETE_CRDS),
            condition_rules: sources.flag(&table::CONDITION_RULES),
            feedback: sources.read_or_default(&table::FEEDBACK, ScrapeType::from_str),
            server_side_apply: sources.flag(&table::SERVER_SIDE_APPLY),
            executor: sources.read_optional(&table::EXECUTOR, Executor::from_str),
            rollout: match &target {
                Some(DeliveryTarget::Placement(placement)) => Some(placement.rollout.kind),
                _ => None,
            },
        };
        let allow_secrets = sources.flag(&table::ALLOW_SECRETS);
        let allow_empty = sources.flag(&table::ALLOW_EMPTY);
        let manifest_limit = sources.limit(&table::MANIFEST_LIMIT);
        let work_size = sources.limit(&table::WORK_SIZE);
        let max_clusters = sources.limit(&table::MAX_CLUSTERS);
        let max_output = sources.limit(&table::MAX_OUTPUT);
        let memory = sources.limit(&table::MEMORY);
        let policy = policy_file(&mut sources);
        let health_rules = sources.any_text(&table::HEALTH).map(PathBuf::from);
        let refuses_overrides = sources.read_or_default(&table::SOURCE_OVERRIDES, values::refuses);
        let misspelled = suggestions::misspelled_variables(env);
        let mut notices = misspelled.warnings;
        let unset = unset_build_variables(&mut sources, &build_env);
        let mut problems = std::mem::take(&mut sources.problems);
        if !problems.is_empty() {
            // A misspelled variable may be the cause of the first problem.
            problems.extend(notices.iter().cloned());
        }
        problems.extend(misspelled.problems);
        notices.extend(unset);
        let (Some(name), Some(target)) = (name, target) else {
            return Err(Problems::or(problems, ()).expect_err("a missing name or target is a problem"));
        };
        let name = if policy.is_some() {
            name_under_policy(name, env)
        } else {
            name
        };
        if let DeliveryTarget::Placement(placement) = &target {
            problems.extend(placement.objections(&source.overlays, requested_options.condition_rules));
        }
        Problems::or(
            problems,
            Self {
                notices,
                source,
                target,
                name,
                namespace,
                cluster_scoped,
                plurals,
                allow_empty,
                allow_secrets,
                create_namespace,
                requested_options,
                refuses_overrides,
                policy,
                health_rules,
                project: args.project.or_else(|| env.get("ARGOCD_APP_PROJECT_NAME").cloned()),
                application: env.get("ARGOCD_APP_NAME").cloned(),
                max_clusters,
                max_output,
                memory,
                manifest_limit,
                work_size,
            },
        )
    }

    /// Returns the options of all ManifestWorks.
    ///
    /// # Errors
    /// Returns an error if a policy applies and the Application sets another executor than the policy's, or another name than its
    /// own.
    pub(crate) fn work_options(&self, rules: Option<Rules<'_>>) -> Result<WorkOptions, Problems> {
        let mut wanted = self.requested_options.clone();
        if let Some(rules) = rules {
            self.own_name()?;
            wanted.executor = rules.executor(wanted.executor)?;
        }
        Ok(wanted)
    }

    /// Checks that the names of the ManifestWorks belong to the Application. Under another name they could belong to another project,
    /// and Argo CD would let this Application replace them.
    fn own_name(&self) -> Result<(), Problems> {
        let Some(application) = self.application.as_deref() else {
            return Ok(());
        };
        WorkName::from_str(application).map_err(|error| {
            Problems::one(format!(
                "env ARGOCD_APP_NAME: {error}: under a policy the works of an Application are named after it, so set it to the \
                 Application's name"
            ))
        })?;
        if self.name.application() == application {
            return Ok(());
        }
        Err(Problems::one(format!(
            "name {}: under a policy the works are named after the Application {application} and this name together: use a shorter name of \
             lower-case letters, digits, '-' and '.'",
            self.name.application()
        )))
    }

    /// Returns the maximum number of bytes of objects in one ManifestWork.
    pub fn capacity(&self) -> u64 {
        // OCM rolls out each ManifestWork separately: if the Application were split, its parts would reach a cluster at different times.
        if self.target.is_progressive() {
            return u64::MAX;
        }
        let limit = |bytes: Option<u64>| bytes.unwrap_or(u64::MAX);
        limit(self.work_size).min(limit(self.manifest_limit))
    }

    /// Returns the Namespace to create, unless `objects` contains it.
    pub(crate) fn created_namespace(&self, objects: &[Placed]) -> Option<Placed> {
        let name = self.namespace.as_deref().filter(|_| self.create_namespace)?;
        let given = |placed: &Placed| order::is_namespace(&placed.object) && &*placed.object.key.name == name;
        (!objects.is_empty() && !objects.iter().any(given)).then(|| Placed::namespace(name))
    }
}

fn policy_file(sources: &mut Sources<'_>) -> Option<PathBuf> {
    let policy = sources.any_text(&table::POLICY).map(PathBuf::from);
    if policy.is_none()
        && let Some(origin) = sources.set_but_empty(&table::POLICY)
    {
        sources.problems.push(format!(
            "{origin} is empty: set it to the file of the policy, or remove it for no policy"
        ));
    }
    policy
}

/// Returns the name of the works under a policy: that of the Application, or of one of its sources, with a hash of the Application, so that
/// they are those of no other Application. [`Settings::own_name`] reports a name that is too long.
fn name_under_policy(name: WorkName, env: &Env) -> WorkName {
    let application = env
        .get("ARGOCD_APP_NAME")
        .filter(|application| *application != name.application());
    let application = application.and_then(|application| WorkName::from_str(application).ok());
    let of_source = application.and_then(|application| application.of_source(name.application()));
    of_source.unwrap_or_else(|| name.under_policy())
}

fn target(sources: &mut Sources<'_>) -> Option<DeliveryTarget> {
    let mut seen = HashSet::new();
    let mut clusters = sources.list(&table::CLUSTERS, true, ClusterName::from_str);
    clusters.retain(|cluster| seen.insert(cluster.to_string()));
    let mut placement = sources.read_optional(&table::PLACEMENT, PlacementTarget::from_str);
    // Between the two, precedence decides as for one setting: an Application may name a Placement although the sidecar has a
    // TARGET_CLUSTER for the others.
    match sources.kind(&table::CLUSTERS).cmp(&sources.kind(&table::PLACEMENT)) {
        Ordering::Less => placement = None,
        Ordering::Greater => clusters.clear(),
        Ordering::Equal => {}
    }
    let rollout = rollout(sources);
    match (placement, clusters.is_empty()) {
        (Some(placement), true) => Some(DeliveryTarget::Placement(PlacementTarget { rollout, ..placement })),
        (Some(_), false) => {
            sources.problems.push(
                "clusters and a placement are both set: set only one of the parameters clusters (or the plugin env TARGET_CLUSTER) \
                 and placement"
                    .to_owned(),
            );
            None
        }
        (None, false) => Some(DeliveryTarget::Clusters(clusters)),
        (None, true) => {
            let has_placement = sources.origin(&table::PLACEMENT).is_some();
            if let Some(origin) = sources.origin(&table::CLUSTERS).filter(|_| sources.problems.is_empty()) {
                let line =
                    format!("{origin}: it names no cluster, only commas: write the names of the target clusters");
                sources.problems.push(line);
            }
            sources.need(
                &table::CLUSTERS,
                !has_placement,
                "no target cluster: set the plugin env TARGET_CLUSTER or one of the parameters clusters and placement of the \
                 Application, or pass --clusters NAME",
            );
            None
        }
    }
}

fn rollout(sources: &mut Sources<'_>) -> RolloutStrategy {
    let rollout = RolloutStrategy {
        kind: sources.read_or_default(&table::ROLLOUT, FromStr::from_str),
        max_concurrency: sources.read_optional(&table::ROLLOUT_MAX_CONCURRENCY, FromStr::from_str),
        max_failures: sources.read_optional(&table::ROLLOUT_MAX_FAILURES, FromStr::from_str),
        min_success_time: sources.read_optional(&table::ROLLOUT_MIN_SUCCESS_TIME, FromStr::from_str),
        progress_deadline: sources.read_optional(&table::ROLLOUT_PROGRESS_DEADLINE, FromStr::from_str),
        mandatory_groups: sources.list(&table::ROLLOUT_GROUPS, true, FromStr::from_str),
    };
    if sources.kind(&table::PLACEMENT) == SourceKind::Default
        && let Some(origin) = sources.origin_of_group(|setting| setting.name.starts_with("rollout"))
    {
        let line = format!("{origin}: a rollout needs a placement: set placement, or leave it out");
        sources.problems.push(line);
    }
    rollout
}

/// Returns the environment with the variables of the Application that Argo CD would set, as far as the command line knows them.
fn build_environment(env: &Env, name: Option<&str>, namespace: Option<&str>, project: Option<&str>) -> Env {
    let mut env = env.clone();
    let is_set = |env: &Env, variable: &str| env.get(variable).is_some_and(|value| !value.is_empty());
    for (variable, value) in [
        ("ARGOCD_APP_NAME", name),
        ("ARGOCD_APP_NAMESPACE", namespace),
        ("ARGOCD_APP_PROJECT_NAME", project),
    ] {
        if let Some(value) = value
            && (!is_set(&env, variable) || variable == "ARGOCD_APP_PROJECT_NAME")
        {
            env.insert(variable.to_owned(), value.to_owned());
        }
    }
    env
}

/// Returns a notice for each variable in a setting that Argo CD would replace, and that is not set outside of it.
fn unset_build_variables(sources: &mut Sources<'_>, env: &Env) -> Vec<String> {
    if sources.within_argo_cd() {
        return Vec::new();
    }
    let mut expanded = vec![
        &table::HELM_VALUE_FILES,
        &table::HELM_PARAMETERS,
        &table::HELM_STRING_PARAMETERS,
        &table::HELM_FILE_PARAMETERS,
        &table::KUSTOMIZE_IMAGES,
        &table::KUSTOMIZE_COMMON_LABELS,
    ];
    if sources.flag(&table::KUSTOMIZE_COMMON_ANNOTATIONS_ENVSUBST) {
        expanded.push(&table::KUSTOMIZE_COMMON_ANNOTATIONS);
    }
    let texts = expanded.into_iter().flat_map(|setting| sources.texts(setting));
    let unset: BTreeSet<String> = texts.flat_map(|text| unset_variables(&text, env)).collect();
    let notice = |variable| format!("${variable} is empty outside Argo CD: set {variable} in the environment");
    unset.into_iter().map(notice).collect()
}

fn source(
    sources: &mut Sources<'_>,
    folder: Option<PathBuf>,
    launcher: Option<PathBuf>,
    namespace: Option<String>,
    env: &Env,
) -> Source {
    let folder = match folder {
        Some(folder) if folder.as_os_str() == "-" => None,
        folder => Some(folder.unwrap_or_else(|| PathBuf::from("."))),
    };
    let overlays = sources.map(&table::OVERLAYS, true, |cluster| {
        ClusterName::from_str(cluster).map(|cluster| cluster.to_string())
    });
    // An overlay belongs to its clusters alone, so it is excluded from the shared part and from an overlay around it, whether or not
    // the target has these clusters.
    let leave_out = folder
        .iter()
        .flat_map(|folder| overlays.values().map(|path| folder.join(path)))
        .collect();
    let selection = FileSelection {
        recurse: sources.flag(&table::RECURSE),
        include: sources.list(&table::INCLUDE, false, glob),
        exclude: sources.list(&table::EXCLUDE, false, glob),
        max_size: sources.limit(&table::MAX_SIZE),
        leave_out,
    };
    let tools = Tools {
        launcher,
        memory: sources.limit(&table::TOOL_MEMORY),
        isolation: sources.read_or_default(&table::TOOL_ISOLATION, Isolation::from_str),
        env: Tools::environment(env),
        timeout: sources.read_or_default(&table::EXEC_TIMEOUT, ocm::duration::parse),
        max_size: selection.max_size,
        project: env.get("ARGOCD_APP_PROJECT_NAME").cloned(),
    };
    Source {
        folder,
        path: env.get("ARGOCD_APP_SOURCE_PATH").cloned().unwrap_or_default(),
        kind: sources.read_optional(&table::SOURCE, FolderKind::from_str),
        for_plain_manifests: sources.origin_for_folders(FolderKind::Directory),
        helm: helm(sources, namespace, env),
        kustomize: kustomize::settings(sources, env),
        remotes: sources
            .list(&table::REMOTE_BASES, true, Remote::from_str)
            .into_iter()
            .collect(),
        completed: CompletedCharts::default(),
        tools,
        selection,
        reading: ReadOptions {
            validation: sources.read_or_default(&table::VALIDATE, FieldValidation::from_str),
            strips_descriptions: sources.flag(&table::STRIP_CRD_DESCRIPTIONS),
        },
        overlays,
    }
}

fn helm(sources: &mut Sources<'_>, namespace: Option<String>, env: &Env) -> HelmSettings {
    let path = |path: &str| Ok::<_, String>(expanded(path, env));
    let expand = |mut values: BTreeMap<String, String>| {
        for value in values.values_mut() {
            *value = expanded(value, env);
        }
        values
    };
    let application = env.get("ARGOCD_APP_NAME").filter(|name| !name.is_empty()).cloned();
    let application = application
        .or_else(|| sources.any_text(&table::NAME))
        .unwrap_or_default();
    HelmSettings {
        given: sources.origin_for_folders(FolderKind::Helm),
        // For an Application outside Argo CD's namespace, the release has the name without the namespace prefix.
        release_name: sources
            .any_text(&table::HELM_RELEASE_NAME)
            .unwrap_or_else(|| application.rsplit('_').next().unwrap_or_default().to_owned()),
        namespace: sources
            .read_optional(&table::HELM_NAMESPACE, ocm::names::namespace)
            .or(namespace),
        value_files: sources.list(&table::HELM_VALUE_FILES, false, path),
        values: sources.any_text(&table::HELM_VALUES),
        parameters: expand(sources.map(&table::HELM_PARAMETERS, false, String::from_str)),
        string_parameters: expand(sources.map(&table::HELM_STRING_PARAMETERS, false, String::from_str)),
        file_parameters: expand(sources.map(&table::HELM_FILE_PARAMETERS, false, String::from_str)),
        kube_version: sources.any_text(&table::HELM_KUBE_VERSION),
        api_versions: sources.list(&table::HELM_API_VERSIONS, true, String::from_str),
        flags: [
            ("--include-crds", !sources.flag(&table::HELM_SKIP_CRDS)),
            ("--skip-tests", sources.flag(&table::HELM_SKIP_TESTS)),
            (
                SKIP_SCHEMA_VALIDATION,
                sources.flag(&table::HELM_SKIP_SCHEMA_VALIDATION),
            ),
        ]
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag))
        .collect(),
        ignore_missing_value_files: sources.flag(&table::HELM_IGNORE_MISSING_VALUE_FILES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    fn resolve(args: Arguments, env: &[(&str, &str)]) -> Result<Settings, String> {
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Settings::resolve(args, &env).map_err(|problems| problems.to_string())
    }

    fn typed(flags: &[(&Setting, &str)]) -> Arguments {
        let mut args = Arguments::default();
        for (setting, text) in flags {
            args.given.add(setting, [(*text).to_owned()]);
        }
        args
    }

    fn clusters(settings: &Settings) -> Vec<String> {
        settings.target.clusters().iter().map(ToString::to_string).collect()
    }

    const PLUGIN: &[(&str, &str)] = &[
        ("ARGOCD_APP_NAME", "guestbook"),
        ("ARGOCD_APP_NAMESPACE", "shop"),
        ("ARGOCD_ENV_TARGET_CLUSTER", "cluster1, cluster2,cluster1 ,"),
    ];

    fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        PLUGIN.iter().chain(more).copied().collect()
    }

    #[test]
    fn plugin_environment_is_sufficient() {
        let settings = resolve(Arguments::default(), PLUGIN).unwrap();
        assert_eq!(clusters(&settings), ["cluster1", "cluster2"]);
        assert_eq!(settings.name.to_string(), "guestbook");
        assert_eq!(settings.namespace.as_deref(), Some("shop"));
        assert!(settings.source.selection.recurse);
        assert_eq!(settings.source.selection.max_size, Some(10_000_000));
        assert_eq!(settings.manifest_limit, Some(512_000));
    }

    #[test]
    fn map_value_may_have_several_lines() {
        let parameters = r#"[{"name": "helm-parameters", "map": {"note": "one\ntwo=2,three"}}]"#;
        let settings = resolve(Arguments::default(), &with(&[("ARGOCD_APP_PARAMETERS", parameters)])).unwrap();
        assert_eq!(settings.source.helm.parameters["note"], "one\ntwo=2,three");
    }

    #[test]
    fn parameter_overrides_env_and_flag_overrides_both() {
        let env = with(&[(
            "ARGOCD_APP_PARAMETERS",
            r#"[{"name":"clusters","array":["a","b"]},{"name":"recurse","string":"false"}]"#,
        )]);
        let settings = resolve(Arguments::default(), &env).unwrap();
        assert_eq!(clusters(&settings), ["a", "b"]);
        assert!(!settings.source.selection.recurse);
        let args = typed(&[(&table::CLUSTERS, "c"), (&table::RECURSE, "true")]);
        let settings = resolve(args, &env).unwrap();
        assert_eq!(clusters(&settings), ["c"]);
        assert!(settings.source.selection.recurse);
    }

    #[test]
    fn precedence_decides_between_clusters_and_placement() {
        let placement = r#"{"name":"placement","string":"argocd/europe"}"#;
        let rollout = r#"{"name":"rollout","string":"Progressive"}"#;
        let target = |args: Arguments, parameters: &str, variable: &str| {
            let parameters = format!("[{parameters}]");
            let env = [
                ("ARGOCD_APP_NAME", "shop"),
                ("ARGOCD_APP_PARAMETERS", &parameters),
                (variable, "eu1"),
            ];
            resolve(args, &env).map(|settings| match settings.target {
                DeliveryTarget::Placement(placement) => placement.name,
                DeliveryTarget::Clusters(_) => clusters(&settings).join(","),
            })
        };
        let none = Arguments::default;
        assert_eq!(target(none(), placement, "TARGET_CLUSTER").unwrap(), "europe");
        assert_eq!(
            target(none(), placement, "ARGOCD_ENV_TARGET_CLUSTER").unwrap(),
            "europe"
        );
        assert_eq!(target(none(), "", "TARGET_CLUSTER").unwrap(), "eu1");
        let both = format!("{placement},{rollout}");
        let args = typed(&[(&table::CLUSTERS, "us1")]);
        assert_eq!(target(args, &both, "TARGET_CLUSTER").unwrap(), "us1");
        let clusters_too = format!(r#"{placement},{{"name":"clusters","array":["us1"]}}"#);
        assert!(
            target(none(), &clusters_too, "TARGET_CLUSTER")
                .unwrap_err()
                .contains("both set")
        );
    }

    #[test]
    fn accepts_every_form_of_absent_parameters() {
        for none in ["", "null", "[]", r#"[{"name":"include","string":""}]"#] {
            let env = with(&[("ARGOCD_APP_PARAMETERS", none)]);
            let settings = resolve(Arguments::default(), &env).unwrap();
            assert!(settings.source.selection.include.is_empty(), "{none}");
        }
    }

    #[test]
    fn namespace_defaults_only_outside_argo_cd() {
        let args = || typed(&[(&table::CLUSTERS, "c"), (&table::NAME, "web")]);
        let settings = resolve(args(), &[]).unwrap();
        assert_eq!(settings.namespace.as_deref(), Some("default"));
        let settings = resolve(args(), &[("ARGOCD_APP_NAME", "web"), ("ARGOCD_APP_NAMESPACE", "")]).unwrap();
        assert_eq!(settings.namespace, None);
    }

    #[test]
    fn clusters_without_a_name_and_repeated_parameters_are_errors() {
        for (parameter, expected) in [
            (r#""clusters","array":[",", " , "]"#, "clusters: it names no cluster"),
            (
                r#""clusters","array":["a"]},{"name":"clusters""#,
                "clusters is given twice: keep",
            ),
            (r#""exclude","map":{"a":"b"}"#, "exclude: it is a map: pass a string"),
        ] {
            let parameters = format!(r#"[{{"name":{parameter}}}]"#);
            let env = with(&[("ARGOCD_APP_PARAMETERS", &parameters)]);
            let message = resolve(Arguments::default(), &env).unwrap_err();
            assert!(
                message.starts_with(&format!("error: parameter {expected}")),
                "{message}"
            );
        }
        let message = resolve(Arguments::default(), &[PLUGIN[0], ("ARGOCD_ENV_TARGET_CLUSTER", ",")]).unwrap_err();
        assert!(
            message.starts_with("error: plugin env TARGET_CLUSTER: it names no cluster"),
            "{message}"
        );
    }

    #[test]
    fn variables_of_the_application_come_from_the_command_line_outside_argo_cd() {
        let texts = "a=$ARGOCD_APP_NAME,b=$ARGOCD_APP_NAMESPACE";
        let parameters = [
            "name=$ARGOCD_APP_NAME",
            "place=$ARGOCD_APP_NAMESPACE/${ARGOCD_APP_PROJECT_NAME}",
            "region=$ARGOCD_ENV_REGION$ARGOCD_ENV_REGION$HOME",
        ];
        let mut args = typed(&[
            (&table::CLUSTERS, "c"),
            (&table::NAME, "rel"),
            (&table::NAMESPACE, "shop"),
            (&table::KUSTOMIZE_IMAGES, texts),
        ]);
        args.given.add(&table::HELM_PARAMETERS, parameters.map(str::to_owned));
        args.project = Some("team".to_owned());
        let settings = resolve(args.clone(), &[("ARGOCD_APP_PROJECT_NAME", "other")]).unwrap();
        let parameters = &settings.source.helm.parameters;
        assert_eq!(
            (&*parameters["name"], &*parameters["place"], &*parameters["region"]),
            ("rel", "shop/team", "")
        );
        let images = settings.source.kustomize.edits[0].arguments.join(" ");
        assert!(images.ends_with("a=rel b=shop"), "{images}");
        assert_eq!(
            settings.notices,
            ["$ARGOCD_ENV_REGION is empty outside Argo CD: set ARGOCD_ENV_REGION in the environment"]
        );
        let in_argo_cd = resolve(args, &[("ARGOCD_APP_NAME", "web")]).unwrap();
        assert_eq!(in_argo_cd.source.helm.parameters["name"], "web");
        assert_eq!(in_argo_cd.notices, [""; 0]);
    }

    #[test]
    fn a_map_may_have_several_lines_but_no_key_twice() {
        let overlays = |text: &str| {
            resolve(Arguments::default(), &with(&[("ARGOCD_ENV_OVERLAYS", text)]))
                .map(|settings| settings.source.overlays.into_iter().collect::<Vec<_>>())
        };
        let two = [("eu1", "eu"), ("us1", "us")].map(|(cluster, path)| (cluster.to_owned(), path.to_owned()));
        for text in ["eu1=eu\nus1=us\n", "eu1=eu,us1=us", "eu1=eu,\n us1=us"] {
            assert_eq!(overlays(text), Ok(two.to_vec()), "{text:?}");
        }
        assert_eq!(
            overlays("eu1=us,eu1=eu"),
            Err("error: plugin env OVERLAYS: eu1 is given twice: keep one\n".to_owned())
        );
    }

    #[test]
    fn empty_policy_file_setting_is_an_error() {
        for empty in ["", " "] {
            let message = resolve(Arguments::default(), &with(&[("ARGOCD_OCM_CMP_POLICY_FILE", empty)])).unwrap_err();
            assert_eq!(
                message,
                "error: env ARGOCD_OCM_CMP_POLICY_FILE is empty: set it to the file of the policy, or remove it for no policy\n"
            );
        }
        let message = resolve(typed(&[(&table::POLICY, "")]), &with(&[])).unwrap_err();
        assert!(message.starts_with("error: --policy is empty: "), "{message}");
    }

    #[test]
    fn policy_names_works_after_the_application() {
        let text = "{apiVersion: argocd-ocm-cmp.github.io/v1alpha1, kind: Policy, projects: [{names: [shop]}]}";
        let policy = Policy::parse(text, "policy.yaml").unwrap();
        let rules = policy.rules_for(Some("shop")).unwrap();
        let message = |rules, env: &[(&str, &str)]| {
            let expected = resolve(Arguments::default(), env).unwrap().work_options(rules);
            expected.map_or_else(|problems| problems.to_string(), |_| String::new())
        };
        let own: WorkName = "guestbook".parse().unwrap();
        let of_source = own.of_source("other").unwrap();
        let parameter = r#"[{"name":"name","string":"other"}]"#;
        for (more, expected) in [
            (None, own.clone().under_policy()),
            (Some(("ARGOCD_ENV_NAME", "guestbook")), own.under_policy()),
            (Some(("ARGOCD_ENV_NAME", "other")), of_source.clone()),
            (Some(("ARGOCD_APP_PARAMETERS", parameter)), of_source),
        ] {
            let mut env = with(more.as_slice());
            env.push(("ARGOCD_OCM_CMP_POLICY_FILE", "policy.yaml"));
            assert_eq!(resolve(Arguments::default(), &env).unwrap().name, expected, "{env:?}");
            assert_eq!(message(Some(rules), &env), "", "{env:?}");
        }
        let long = "a".repeat(90);
        let env = with(&[
            ("ARGOCD_ENV_NAME", &long),
            ("ARGOCD_OCM_CMP_POLICY_FILE", "policy.yaml"),
        ]);
        assert_eq!(
            message(Some(rules), &env),
            format!(
                "error: name {long}: under a policy the works are named after the Application guestbook and this name together: use a \
                 shorter name of lower-case letters, digits, '-' and '.'\n"
            )
        );
        for unusable in ["", " ", "A_b"] {
            let env = [
                ("ARGOCD_ENV_TARGET_CLUSTER", "eu"),
                ("ARGOCD_ENV_NAME", "other"),
                ("ARGOCD_APP_NAME", unusable),
            ];
            assert!(
                message(Some(rules), &env).starts_with("error: env ARGOCD_APP_NAME: "),
                "{unusable:?}"
            );
        }
        // The work name of an Application outside Argo CD's namespace combines its namespace and name.
        let elsewhere = ("ARGOCD_APP_NAME", "team-a_guestbook");
        assert_eq!(message(Some(rules), &with(&[elsewhere])), "");
    }
}
