//! The table of settings, the single source of flags, plugin parameters, defaults, descriptions in Argo CD's UI, and
//! docs/settings.md.

use crate::source::FolderKind;
use std::borrow::Cow;

/// A setting: its names and its documentation.
#[derive(Debug)]
pub struct Setting {
    /// The name of the flag (without dashes) and of the plugin parameter, if there is one.
    pub name: &'static str,
    /// True if an Application may set it, as a plugin parameter or plugin environment variable.
    pub parameter: bool,
    /// Other environment variables; the first that is set wins.
    env: &'static [&'static str],
    /// The format of the value.
    pub value_type: ValueType,
    /// The title in Argo CD's UI.
    pub title: &'static str,
    /// The default, in Markdown: a value in backticks, or a description.
    pub default: &'static str,
    /// The description, in Markdown.
    pub about: &'static str,
}

/// The format of a setting's value; the text is the placeholder on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A boolean.
    Flag,
    /// A string.
    Text(&'static str),
    /// A list of strings.
    List(&'static str),
    /// A map of strings.
    Map(&'static str),
}

impl Setting {
    const fn new(name: &'static str, value_type: ValueType, title: &'static str) -> Self {
        Self {
            name,
            parameter: true,
            env: &[],
            value_type,
            title,
            default: match value_type {
                Flag => "`false`",
                _ => "–",
            },
            about: "",
        }
    }

    /// Restricts the setting to the platform. Applications cannot set it, because Argo CD prefixes their plugin environment
    /// variables.
    const fn of_the_platform(mut self, env: &'static [&'static str]) -> Self {
        self.parameter = false;
        self.also(env)
    }

    const fn also(mut self, env: &'static [&'static str]) -> Self {
        self.env = env;
        self
    }

    const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Returns the only type of folders to which the setting applies; `None` for all.
    pub(super) fn folder_kind(&self) -> Option<FolderKind> {
        match self.name {
            "recurse" | "include" | "exclude" => Some(FolderKind::Directory),
            name if name.starts_with("helm-") => Some(FolderKind::Helm),
            name if name.starts_with("kustomize-") => Some(FolderKind::Kustomize),
            _ => None,
        }
    }

    /// Returns the default if it is a literal value rather than a description.
    pub fn default_value(&self) -> Option<&'static str> {
        self.default.strip_prefix('`')?.strip_suffix('`')
    }

    /// Returns the environment variables of the setting; the first that is set wins. Argo CD passes a plugin environment variable
    /// `X` of an Application as `ARGOCD_ENV_X`.
    pub fn variables(&self) -> impl Iterator<Item = Cow<'static, str>> {
        let of_the_plugin = || format!("ARGOCD_ENV_{}", self.name.to_uppercase().replace('-', "_"));
        let others = self.env.iter().map(|&name| Cow::Borrowed(name));
        self.parameter
            .then(of_the_plugin)
            .map(Cow::Owned)
            .into_iter()
            .chain(others)
    }
}

use ValueType::{Flag, List, Map, Text};

/// Declares the settings, and lists them in this order, which is that of the documentation.
macro_rules! settings {
    ($($(#[$comment:meta])* $name:ident = $setting:expr;)*) => {
        $($(#[$comment])* pub(super) static $name: Setting = $setting;)*

        /// All settings, in the order of the documentation.
        pub static SETTINGS: &[&Setting] = &[$(&$name),*];
    };
}

settings! {
    CLUSTERS = Setting::new("clusters", List("NAME"), "Managed clusters")
        .also(&["ARGOCD_ENV_TARGET_CLUSTER", "TARGET_CLUSTER"])
        .about("Managed clusters to deliver to, also separated by commas");
    NAME = Setting::new("name", Text("NAME"), "Name of the work")
        .also(&["ARGOCD_APP_NAME"])
        .default("the Application")
        .about("Name of the work");
    NAMESPACE = Setting::new("namespace", Text("NAME"), "Namespace")
        .also(&["ARGOCD_APP_NAMESPACE"])
        .default("the Application's destination; outside Argo CD `default`")
        .about("Namespace on the managed cluster of namespaced objects that name none");
    SOURCE = Setting::new("source", Text("KIND"), "Source type")
        .default("detected from the root of the folder")
        .about("Type of the source: `directory` (plain manifests), `kustomize` or `helm`");
    RECURSE = Setting::new("recurse", Flag, "Read sub-folders")
        .default("`true`")
        .about("Read sub-folders");
    INCLUDE = Setting::new("include", List("GLOB"), "Files to read")
        .default("everything")
        .about("Globs of the files to read; `*` crosses `/`, `{a,b}` is either");
    EXCLUDE = Setting::new("exclude", List("GLOB"), "Files to leave out")
        .default("nothing")
        .about("Globs of the files to leave out");
    OVERLAYS = Setting::new("overlays", Map("CLUSTER=PATH"), "Overlays by cluster")
        .default("none")
        .about("Overlay of each cluster: a sub-folder, or a value file for a chart, as in `helm-value-files`");
    CLUSTER_SCOPED_KINDS = Setting::new("cluster-scoped-kinds", List("KIND.GROUP"), "Cluster-scoped kinds")
        .default("none")
        .about("Cluster-scoped custom kinds, as `Kind.group`, whose CRD is not in the folder");
    RESOURCE_NAMES = Setting::new("resource-names", List("KIND.GROUP=RESOURCE"), "Resource names of kinds")
        .default("the regular English plural")
        .about("Resource names (plurals) of custom kinds, as `Kind.group=resource`, whose CRD is not in the folder");
    CREATE_NAMESPACE = Setting::new("create-namespace", Flag, "Create the namespace")
        .about("Create the namespace of objects that name none, before all other objects; it is never deleted");
    DELETE_NAMESPACES = Setting::new("delete-namespaces", Flag, "Delete Namespaces")
        .about("Delete Namespaces and their contents when they leave Git or the Application is deleted; otherwise they stay");
    DELETE_CRDS = Setting::new("delete-crds", Flag, "Delete CRDs")
        .about("Delete CRDs and all their objects when they leave Git or the Application is deleted; otherwise they stay");
    STRIP_CRD_DESCRIPTIONS = Setting::new("strip-crd-descriptions", Flag, "Strip descriptions of CRDs")
        .about("Deliver CRDs without the descriptions of their fields, which `kubectl explain` shows; large CRDs then fit into a work");
    UPDATE_STRATEGY = Setting::new("update-strategy", Text("STRATEGY"), "Update strategy")
        .default("chosen for each object")
        .about("Update strategy of OCM's agent: `ServerSideApply`, `Update`, `CreateOnly` or `ReadOnly`");
    IGNORE_FIELDS = Setting::new("ignore-fields", List("KIND.GROUP=FIELD"), "Ignored fields")
        .default("none")
        .about("Fields of a kind that the agent leaves to other writers, as `Kind.group=/json/pointer` or `Kind.group=.jq.path`");
    CONDITION_RULES = Setting::new("condition-rules", Flag, "Condition rules")
        .default("`true`")
        .about("Add condition rules for the health of objects to works; set `false` for a hub with OCM before v1.0");
    FEEDBACK = Setting::new("feedback", Text("MODE"), "Feedback")
        .also(&["ARGOCD_OCM_CMP_FEEDBACK"])
        .default("`poll`")
        .about(
            "Let agents `poll` the health of objects every 10 to 60 seconds, or `watch` it and report within a second, which needs \
             OCM 1.2"
        );
    EXECUTOR = Setting::new("executor", Text("NAMESPACE/NAME"), "Executor")
        .default("the agent itself")
        .about("ServiceAccount on the managed cluster, as `NAMESPACE/NAME`, whose permissions the agent uses to apply objects");
    VALIDATE = Setting::new("validate", Text("MODE"), "Validation")
        .also(&["ARGOCD_OCM_CMP_VALIDATE"])
        .default("`warn`")
        .about(
            "Compare objects with the kinds and fields of Kubernetes 1.29 to 1.37: `strict` refuses what none of these versions accepts, \
             `warn` only warns, `ignore` does not compare; custom resources are not compared"
        );
    ALLOW_SECRETS = Setting::new("allow-secrets", Flag, "Deliver Secrets")
        .about("Deliver Secrets unencrypted; everyone who can see the Application can read them");
    ALLOW_EMPTY = Setting::new("allow-empty", Flag, "Allow empty output")
        .about("Allow empty output; Argo CD then prunes everything");

    PLACEMENT = Setting::new("placement", Text("NAMESPACE/NAME"), "Placement")
        .about("Placement that selects the clusters, instead of `clusters`; the works are ManifestWorkReplicaSets in its namespace");
    ROLLOUT = Setting::new("rollout", Text("TYPE"), "Rollout")
        .default("`All`")
        .about("Rollout of a change to the clusters of the placement: `All` at once, `Progressive`, or `ProgressivePerGroup`");
    ROLLOUT_MAX_CONCURRENCY = Setting::new("rollout-max-concurrency", Text("NUMBER"), "Clusters at a time")
        .about("Number or percentage of clusters that change at a time, for `Progressive`");
    ROLLOUT_MAX_FAILURES = Setting::new("rollout-max-failures", Text("NUMBER"), "Failures that stop the rollout")
        .default("`0`")
        .about("Number or percentage of clusters that may exceed the progress deadline before the rollout stops");
    ROLLOUT_MIN_SUCCESS_TIME = Setting::new("rollout-min-success-time", Text("DURATION"), "Soak time")
        .default("`10s`")
        .about("Time that a cluster must be healthy, such as `10m`, before the next one changes");
    ROLLOUT_PROGRESS_DEADLINE = Setting::new("rollout-progress-deadline", Text("DURATION"), "Progress deadline")
        .default("`None`")
        .about("Time, such as `1h`, after which the rollout continues without a cluster that has not succeeded");
    ROLLOUT_GROUPS = Setting::new("rollout-groups", List("GROUP"), "Groups to change first")
        .default("none")
        .about("Decision groups of the placement, by name or index, that must succeed before all others");

    HELM_RELEASE_NAME = Setting::new("helm-release-name", Text("NAME"), "Release name")
        .default("the Application")
        .about("Name of the release");
    HELM_VALUE_FILES = Setting::new("helm-value-files", List("FILE"), "Value files")
        .default("none")
        .about(
            "Value files besides the chart's own, or globs of them (`**` for all sub-folders); the last wins; relative to the chart, or with \
             a leading `/` to the repository"
        );
    HELM_VALUES = Setting::new("helm-values", Text("YAML"), "Values")
        .default("none")
        .about("Values as YAML, which override value files");
    HELM_PARAMETERS = Setting::new("helm-parameters", Map("KEY=VALUE"), "Parameters")
        .default("none")
        .about("Single values, which override all others: Helm's `--set`");
    HELM_STRING_PARAMETERS = Setting::new("helm-string-parameters", Map("KEY=VALUE"), "String parameters")
        .default("none")
        .about("Single values that are always strings: Helm's `--set-string`");
    HELM_FILE_PARAMETERS = Setting::new("helm-file-parameters", Map("KEY=FILE"), "File parameters")
        .default("none")
        .about("Single values that are read from files: Helm's `--set-file`");
    HELM_KUBE_VERSION = Setting::new("helm-kube-version", Text("VERSION"), "Kubernetes version")
        .also(&["KUBE_VERSION"])
        .default("the hub's; for `generate` outside Argo CD, that of Helm")
        .about("Kubernetes version for which the chart is rendered");
    HELM_API_VERSIONS = Setting::new("helm-api-versions", List("VERSION"), "API versions")
        .default("those of Kubernetes")
        .about("Additional API versions for which the chart is rendered, as `group/version` or `group/version/Kind`");
    HELM_SKIP_CRDS = Setting::new("helm-skip-crds", Flag, "Skip CRDs")
        .about("Leave out the CRDs of the folder `crds`");
    HELM_SKIP_TESTS = Setting::new("helm-skip-tests", Flag, "Skip tests")
        .about("Do not render the chart's tests; they are never delivered");
    HELM_SKIP_SCHEMA_VALIDATION = Setting::new("helm-skip-schema-validation", Flag, "Skip schema validation")
        .about("Do not validate the values against the chart's `values.schema.json`");
    HELM_IGNORE_MISSING_VALUE_FILES = Setting::new("helm-ignore-missing-value-files", Flag, "Ignore missing value files")
        .about("Ignore value files that do not exist");

    HELM_NAMESPACE = Setting::new("helm-namespace", Text("NAME"), "Release namespace")
        .default("the setting `namespace`")
        .about("Namespace of the release, for charts that use it");

    KUSTOMIZE_NAME_PREFIX = Setting::new("kustomize-name-prefix", Text("PREFIX"), "Name prefix")
        .default("the kustomization's")
        .about("Prefix of all names: `namePrefix`");
    KUSTOMIZE_NAME_SUFFIX = Setting::new("kustomize-name-suffix", Text("SUFFIX"), "Name suffix")
        .default("the kustomization's")
        .about("Suffix of all names: `nameSuffix`");
    KUSTOMIZE_IMAGES = Setting::new("kustomize-images", List("IMAGE"), "Images")
        .default("none")
        .about("Images to replace, as `name=new-name:tag`, `name:tag` or `name@digest`, also separated by commas");
    KUSTOMIZE_REPLICAS = Setting::new("kustomize-replicas", Map("NAME=COUNT"), "Replicas")
        .default("none")
        .about("Replicas of workloads by their names in the kustomization");
    KUSTOMIZE_COMMON_LABELS = Setting::new("kustomize-common-labels", Map("KEY=VALUE"), "Common labels")
        .default("none")
        .about("Labels to add to all objects, and to selectors and templates");
    KUSTOMIZE_FORCE_COMMON_LABELS = Setting::new("kustomize-force-common-labels", Flag, "Overwrite common labels")
        .about("Overwrite common labels of the kustomization");
    KUSTOMIZE_LABEL_WITHOUT_SELECTOR = Setting::new("kustomize-label-without-selector", Flag, "Labels without selectors")
        .about("Add the common labels neither to selectors nor to templates");
    KUSTOMIZE_LABEL_INCLUDE_TEMPLATES = Setting::new("kustomize-label-include-templates", Flag, "Labels in templates")
        .about("With `kustomize-label-without-selector`, add the common labels to templates");
    KUSTOMIZE_COMMON_ANNOTATIONS = Setting::new("kustomize-common-annotations", Map("KEY=VALUE"), "Common annotations")
        .default("none")
        .about("Annotations to add to all objects");
    KUSTOMIZE_FORCE_COMMON_ANNOTATIONS = Setting::new("kustomize-force-common-annotations", Flag, "Overwrite common annotations")
        .about("Overwrite common annotations of the kustomization");
    KUSTOMIZE_COMMON_ANNOTATIONS_ENVSUBST = Setting::new("kustomize-common-annotations-envsubst", Flag, "Variables in common annotations")
        .about("Replace variables such as `$ARGOCD_APP_NAME` in the common annotations");
    KUSTOMIZE_NAMESPACE = Setting::new("kustomize-namespace", Text("NAME"), "Namespace")
        .default("the kustomization's")
        .about("Namespace of all namespaced objects: kustomize's `namespace`");
    KUSTOMIZE_PATCHES = Setting::new("kustomize-patches", Text("YAML"), "Patches")
        .default("none")
        .about("Patches to add, as a YAML list like `patches` in a kustomization");
    KUSTOMIZE_COMPONENTS = Setting::new("kustomize-components", List("PATH"), "Components")
        .default("none")
        .about("Components to add, relative to the kustomization");
    KUSTOMIZE_IGNORE_MISSING_COMPONENTS = Setting::new("kustomize-ignore-missing-components", Flag, "Ignore missing components")
        .about("Ignore components that do not exist");
    KUSTOMIZE_KUBE_VERSION = Setting::new("kustomize-kube-version", Text("VERSION"), "Kubernetes version")
        .also(&["KUBE_VERSION"])
        .default("the hub's; for `generate` outside Argo CD, that of Helm")
        .about("Kubernetes version for the charts of a kustomization");
    KUSTOMIZE_API_VERSIONS = Setting::new("kustomize-api-versions", List("VERSION"), "API versions")
        .default("those of Kubernetes")
        .about("Additional API versions for the charts of a kustomization, like `helm-api-versions`");

    /// Reserved for the platform, because some options of `kustomize build` let a folder start programs.
    KUSTOMIZE_OPTIONS = Setting::new("kustomize-options", Text("OPTIONS"), "Kustomize options")
        .of_the_platform(&["ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS"])
        .default("none")
        .about("Options of `kustomize build`, separated by spaces, as `kustomize.buildOptions` of `argocd-cm`");
    /// Reserved for the platform, because content is fetched with the sidecar's network access and Git credentials.
    REMOTE_BASES = Setting::new("remote-bases", List("URL"), "URLs that may be fetched")
        .of_the_platform(&["ARGOCD_OCM_CMP_REMOTE_BASES"])
        .default("none")
        .about("URL prefixes, separated by commas, from which remote bases, files and charts may be fetched");
    /// The time limit of Argo CD for the tools it starts itself, under the same name and with the same default.
    EXEC_TIMEOUT = Setting::new("exec-timeout", Text("DURATION"), "Tool timeout")
        .of_the_platform(&["ARGOCD_EXEC_TIMEOUT"])
        .default("`90s`")
        .about("Time limit of kustomize and helm");
    /// Protects the sidecar from a chart or kustomization that uses all of its memory. The default is enough for large charts, and a
    /// fraction of a node's memory.
    TOOL_MEMORY = Setting::new("tool-memory", Text("QUANTITY"), "Tool memory")
        .of_the_platform(&["ARGOCD_OCM_CMP_TOOL_MEMORY"])
        .default("`1Gi`")
        .about("Memory limit of kustomize and helm in bytes, 0 for no limit");
    /// Turned off only where the kernel has no isolation, or if a program that the platform lets kustomize start needs more access.
    TOOL_ISOLATION = Setting::new("tool-isolation", Text("ISOLATION"), "Isolation of tools")
        .of_the_platform(&["ARGOCD_OCM_CMP_TOOL_ISOLATION"])
        .default("`all`")
        .about("Required isolation of kustomize and helm: `all` that is available, `landlock`, `namespaces`, or `none` to trust all sources");
    SOURCE_OVERRIDES = Setting::new("source-overrides", Text("MODE"), "Settings from Git")
        .of_the_platform(&["ARGOCD_OCM_CMP_SOURCE_OVERRIDES"])
        .default("`allow`")
        .about("Folders with a `.argocd-source.yaml` or `.argocd-source-APPLICATION.yaml`, from which Argo CD takes settings: `allow` or `refuse`");
    /// Protects the sidecar from a source with very many manifests. The default is twice what the largest accepted folders need.
    MEMORY = Setting::new("memory", Text("QUANTITY"), "Memory")
        .of_the_platform(&["ARGOCD_OCM_CMP_MEMORY"])
        .default("`2Gi`")
        .about("Memory limit of the plugin itself in bytes, 0 for no limit");
    /// Protects the sidecar from too many clusters. The default is more than OCM manages from one hub.
    MAX_CLUSTERS = Setting::new("max-clusters", Text("NUMBER"), "Cluster limit")
        .of_the_platform(&["ARGOCD_OCM_CMP_MAX_CLUSTERS"])
        .default("`10000`")
        .about("Maximum number of managed clusters of one Application, 0 for no limit");
    /// Slightly below Argo CD's message limit: its `ARGOCD_GRPC_MAX_SIZE_MB` is 200 MiB by default.
    MAX_OUTPUT = Setting::new("max-output", Text("QUANTITY"), "Output limit")
        .of_the_platform(&["ARGOCD_OCM_CMP_MAX_OUTPUT"])
        .default("`200M`")
        .about("Maximum bytes of all works together, as JSON, 0 for no limit");
    /// Protects the repo-server, under Argo CD's own name for this limit and with the same default.
    MAX_SIZE = Setting::new("max-size", Text("QUANTITY"), "Input limit")
        .of_the_platform(&["ARGOCD_REPO_SERVER_MAX_COMBINED_DIRECTORY_MANIFESTS_SIZE"])
        .default("`10M`")
        .about("Maximum bytes of all files together, or of the rendered manifests, 0 for no limit");
    /// Follows the `--manifestLimit` of OCM's webhook, 500 KiB by default.
    MANIFEST_LIMIT = Setting::new("manifest-limit", Text("BYTES"), "Work limit")
        .of_the_platform(&["ARGOCD_OCM_CMP_MANIFEST_LIMIT"])
        .default("`512000`")
        .about("Maximum bytes of one work that OCM accepts, as its webhook counts them (its `--manifestLimit`), 0 for no limit");
    /// Reserved for the platform: a change splits an Application into other ManifestWorks. The default leaves room for the
    /// configuration of the objects within the 262,144 bytes that Argo CD can apply client-side.
    WORK_SIZE = Setting::new("work-size", Text("BYTES"), "Work size")
        .of_the_platform(&["ARGOCD_OCM_CMP_WORK_SIZE"])
        .default("`200000`")
        .about("Bytes of objects above which works are split, 0 for never");
    /// Reserved for the platform: it depends on the version of OCM on the hub, and a change rewrites all ManifestWorks.
    SERVER_SIDE_APPLY = Setting::new("server-side-apply", Flag, "Server-side apply")
        .of_the_platform(&["ARGOCD_OCM_CMP_SERVER_SIDE_APPLY"])
        .about("Let Argo CD apply works server-side, without a copy of each in an annotation, which needs OCM 1.2 on the hub");
    /// Reserved for the platform: limits what projects may deliver, so Applications must not set it.
    POLICY = Setting::new("policy", Text("FILE"), "Policy")
        .of_the_platform(&["ARGOCD_OCM_CMP_POLICY_FILE"])
        .default("none")
        .about("Policy file, which limits what each AppProject may deliver");
    /// Reserved for the platform: the rules decide when a sync continues.
    HEALTH = Setting::new("health-rules", Text("FILE"), "Health rules")
        .of_the_platform(&["ARGOCD_OCM_CMP_HEALTH_FILE"])
        .default("none")
        .about("File with health rules of custom kinds, which take precedence over the built-in ones");
}
