//! Argo CD's options of sources, and the settings that do the same.

/// The counterpart of an option of Argo CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counterpart {
    /// A setting, and what else there is to know.
    Setting(&'static str, &'static str),
    /// None, for the reason in the text.
    None(&'static str),
}

use Counterpart::{None, Setting};

const ONE_VERSION: &str = "the sidecar has one version";
const FOR_TYPES: &str = "set `source`, or `exclude` the files";

/// The fields of a source of an Application, and the keys of `argocd-cm`, that change how Argo CD 3.6 renders. A test compares with the
/// code of Argo CD.
pub static OPTIONS: &[(&str, Counterpart)] = &[
    ("helm.apiVersions", Setting("helm-api-versions", "")),
    ("helm.fileParameters", Setting("helm-file-parameters", "")),
    (
        "helm.ignoreMissingValueFiles",
        Setting("helm-ignore-missing-value-files", ""),
    ),
    ("helm.kubeVersion", Setting("helm-kube-version", "")),
    ("helm.namespace", Setting("helm-namespace", "")),
    (
        "helm.parameters",
        Setting("helm-parameters", "with `forceString`: `helm-string-parameters`"),
    ),
    (
        "helm.passCredentials",
        None("credentials are those that the sidecar has for the host of each address"),
    ),
    ("helm.releaseName", Setting("helm-release-name", "")),
    ("helm.skipCrds", Setting("helm-skip-crds", "")),
    ("helm.skipSchemaValidation", Setting("helm-skip-schema-validation", "")),
    ("helm.skipTests", Setting("helm-skip-tests", "")),
    (
        "helm.valueFiles",
        Setting(
            "helm-value-files",
            "without URLs, other sources (`$ref`), and braces in globs",
        ),
    ),
    ("helm.values", Setting("helm-values", "")),
    ("helm.valuesObject", Setting("helm-values", "as text")),
    ("helm.version", None(ONE_VERSION)),
    ("kustomize.apiVersions", Setting("kustomize-api-versions", "")),
    (
        "kustomize.commonAnnotations",
        Setting("kustomize-common-annotations", ""),
    ),
    (
        "kustomize.commonAnnotationsEnvsubst",
        Setting("kustomize-common-annotations-envsubst", ""),
    ),
    ("kustomize.commonLabels", Setting("kustomize-common-labels", "")),
    ("kustomize.components", Setting("kustomize-components", "")),
    (
        "kustomize.forceCommonAnnotations",
        Setting("kustomize-force-common-annotations", ""),
    ),
    (
        "kustomize.forceCommonLabels",
        Setting("kustomize-force-common-labels", ""),
    ),
    (
        "kustomize.ignoreMissingComponents",
        Setting(
            "kustomize-ignore-missing-components",
            "Argo CD 3.6.1 also ignores those after the first that exists",
        ),
    ),
    ("kustomize.images", Setting("kustomize-images", "")),
    ("kustomize.kubeVersion", Setting("kustomize-kube-version", "")),
    (
        "kustomize.labelIncludeTemplates",
        Setting("kustomize-label-include-templates", ""),
    ),
    (
        "kustomize.labelWithoutSelector",
        Setting("kustomize-label-without-selector", ""),
    ),
    ("kustomize.namePrefix", Setting("kustomize-name-prefix", "")),
    ("kustomize.nameSuffix", Setting("kustomize-name-suffix", "")),
    ("kustomize.namespace", Setting("kustomize-namespace", "")),
    ("kustomize.patches", Setting("kustomize-patches", "")),
    ("kustomize.replicas", Setting("kustomize-replicas", "")),
    ("kustomize.version", None(ONE_VERSION)),
    (
        "directory.disableExtensionFilter",
        None("rename the files to `.yaml` or `.json`"),
    ),
    ("directory.exclude", Setting("exclude", "")),
    ("directory.include", Setting("include", "")),
    (
        "directory.jsonnet",
        None("commit the JSON, because Jsonnet would run without confinement"),
    ),
    ("directory.recurse", Setting("recurse", "`true` by default")),
    ("plugin.env", None("the same")),
    ("plugin.name", None("the same")),
    ("plugin.parameters", None("the same")),
    ("argocd-cm: helm.enable", None(FOR_TYPES)),
    (
        "argocd-cm: helm.valuesFileSchemes",
        None("Helm has no network: commit the files"),
    ),
    ("argocd-cm: jsonnet.enable", None("Jsonnet is always off")),
    (
        "argocd-cm: kustomize.buildOptions",
        Setting("kustomize-options", "in the sidecar"),
    ),
    ("argocd-cm: kustomize.enable", None(FOR_TYPES)),
    ("argocd-cm: kustomize.path", None(ONE_VERSION)),
    ("argocd-cm: kustomize.version", None(ONE_VERSION)),
];
