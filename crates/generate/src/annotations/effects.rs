//! The annotations and sync options that Argo CD reads from the objects that it applies, what they do here, and misspelled ones.

use super::{AnnotationFault, HELM_HOOK, HELM_WEIGHT, HOOK, IGNORE_FIELDS, RESOURCE_POLICY, UPDATE_STRATEGY, items};
use crate::similar::similar;
use manifest::value::{Map, Value};
use ocm::pull_model::{OWN, SYNC_OPTIONS};

/// The effect of an annotation, or of an option in an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// As in Argo CD, in the way that the text describes.
    Honoured(&'static str),
    /// None, for the reason in the text. An object that has it gets a warning.
    None(&'static str),
}

/// An annotation, or an option in an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownAnnotation {
    /// The name of the annotation. A name that ends with a slash is the start of names.
    pub annotation: &'static str,
    /// The option in its list; `None` for every value.
    pub option: Option<&'static str>,
    /// Its effect.
    pub effect: Effect,
}

const fn honoured(annotation: &'static str, option: Option<&'static str>, how: &'static str) -> KnownAnnotation {
    KnownAnnotation {
        annotation,
        option,
        effect: Effect::Honoured(how),
    }
}

const fn without(annotation: &'static str, option: Option<&'static str>, why: &'static str) -> KnownAnnotation {
    KnownAnnotation {
        annotation,
        option,
        effect: Effect::None(why),
    }
}

/// The annotation that takes an object out of the health of its Application.
pub(super) const IGNORE_HEALTH: &str = "argocd.argoproj.io/ignore-healthcheck";
/// The sync option that selects [`super::UpdateStrategy::Update`].
pub(super) const REPLACE: &str = "Replace=true";

const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
const HELM_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
const STAYS: &str = "the object stays on the cluster, also when the Application is deleted";
const BY_AGENT: &str = "the agent does so by default";
const BY_FORCE: &str = "the agent takes over fields by force";
const HOOK_STAYS: &str = "a hook stays until its content changes";
const NOT_SEEN: &str = "Argo CD does not see the object";
const SEE_HOOKS: &str = "see [Waves and hooks](#waves-and-hooks)";
const NOT_COMPARED: &str = "Argo CD compares the work, not the objects in it";

/// All annotations of Argo CD 3.6 for objects, with their options. Those for Applications and other objects of Argo CD itself are not
/// among them. A test compares with the code of Argo CD.
pub static KNOWN: &[KnownAnnotation] = &[
    honoured(HOOK, None, SEE_HOOKS),
    honoured("argocd.argoproj.io/sync-wave", None, SEE_HOOKS),
    honoured(
        HOOK_DELETE_POLICY,
        Some("BeforeHookCreation"),
        "when the content changes",
    ),
    without(HOOK_DELETE_POLICY, Some("HookSucceeded"), HOOK_STAYS),
    without(HOOK_DELETE_POLICY, Some("HookFailed"), HOOK_STAYS),
    honoured(
        HELM_DELETE_POLICY,
        Some("before-hook-creation"),
        "when the content changes",
    ),
    without(HELM_DELETE_POLICY, Some("hook-succeeded"), HOOK_STAYS),
    without(HELM_DELETE_POLICY, Some("hook-failed"), HOOK_STAYS),
    honoured(SYNC_OPTIONS, Some("Prune=false"), STAYS),
    honoured(SYNC_OPTIONS, Some("Prune=confirm"), STAYS),
    honoured(SYNC_OPTIONS, Some("Delete=false"), STAYS),
    honoured(SYNC_OPTIONS, Some("Delete=confirm"), STAYS),
    honoured(
        SYNC_OPTIONS,
        Some(REPLACE),
        "the update strategy `Update`, unless the object names another or is a hook",
    ),
    honoured(SYNC_OPTIONS, Some("Replace=false"), BY_AGENT),
    honoured(SYNC_OPTIONS, Some("ServerSideApply=true"), BY_AGENT),
    honoured(SYNC_OPTIONS, Some("SkipDryRunOnMissingResource=true"), BY_AGENT),
    honoured(SYNC_OPTIONS, Some("ApplyOutOfSyncOnly=false"), BY_AGENT),
    without(
        SYNC_OPTIONS,
        Some("ServerSideApply=false"),
        "the agent applies server-side: set the annotation argocd-ocm-cmp.github.io/update-strategy to Update",
    ),
    without(
        SYNC_OPTIONS,
        Some("ApplyOutOfSyncOnly=true"),
        "the agent applies all objects of a work",
    ),
    without(
        SYNC_OPTIONS,
        Some("Force=true"),
        "OCM does not delete an object to apply it: rename it",
    ),
    without(
        SYNC_OPTIONS,
        Some("Validate=false"),
        "the API server of the cluster validates",
    ),
    without(
        SYNC_OPTIONS,
        Some("PruneLast=true"),
        "the agent deletes what left the work at once",
    ),
    without(SYNC_OPTIONS, Some("ClientSideApplyMigration=true"), BY_FORCE),
    without(SYNC_OPTIONS, Some("ClientSideApplyMigration=false"), BY_FORCE),
    honoured(
        IGNORE_HEALTH,
        Some("true"),
        "the object counts as healthy when it is applied, unless it is a hook that runs",
    ),
    without("argocd.argoproj.io/compare-options", None, NOT_COMPARED),
    without("argocd.argoproj.io/ignore-differences", None, NOT_COMPARED),
    without("argocd.argoproj.io/ignore-resource-updates", None, NOT_COMPARED),
    without("argocd.argoproj.io/client-side-apply-migration-manager", None, BY_FORCE),
    without(
        "argocd.argoproj.io/ignore-restart-policy",
        None,
        "the health of a Pod does not depend on its restart policy",
    ),
    without(
        "argocd.argoproj.io/deletion-approved",
        None,
        "set Prune=false or Delete=false, which keep the object",
    ),
    without("argocd.argoproj.io/ignore-default-links", None, NOT_SEEN),
    without("link.argocd.argoproj.io/", None, NOT_SEEN),
];

impl KnownAnnotation {
    fn is_set(&self, annotations: &Map<'_>) -> bool {
        let matches = |value: &Value<'_>| {
            let is_option = |option| items(value.as_str().unwrap_or_default()).any(|item| item == option);
            self.option.is_none_or(is_option)
        };
        if self.annotation.ends_with('/') {
            let mut named = annotations.iter().filter(|(name, _)| name.starts_with(self.annotation));
            return named.any(|(_, value)| matches(value));
        }
        annotations.get(self.annotation).is_some_and(matches)
    }

    /// Returns the warning for objects that have it.
    fn warning(&self) -> Option<String> {
        let Effect::None(why) = self.effect else {
            return None;
        };
        let option = self.option.map_or(String::new(), |option| format!(": {option}"));
        Some(no_effect(&format!("{}{option}", self.annotation), why))
    }
}

fn no_effect(annotation: &str, why: &str) -> String {
    format!("the annotation {annotation} has no effect: {why}")
}

/// Returns a warning for each annotation and option of an object that has no effect.
pub(super) fn without_effect(annotations: &Map<'_>) -> Vec<String> {
    let known = KNOWN.iter().filter(|known| known.is_set(annotations));
    let mut warnings: Vec<_> = known.filter_map(KnownAnnotation::warning).collect();
    for (name, value) in annotations.iter() {
        warnings.extend(misspelled_name(name));
        if [HOOK_DELETE_POLICY, HELM_DELETE_POLICY, SYNC_OPTIONS].contains(&name) {
            let options = items(value.as_str().unwrap_or_default());
            warnings.extend(options.filter_map(|option| unknown_option(name, option)));
        }
    }
    warnings
}

/// Returns the warning about an option that is not in the table for this annotation.
fn unknown_option(annotation: &str, option: &str) -> Option<String> {
    let known = || {
        let rows = KNOWN.iter().filter(|known| known.annotation == annotation);
        rows.filter_map(|known| known.option)
    };
    // The table lacks values that are the default of Argo CD, such as Prune=true.
    let name = |option: &'static str| option.split_once('=').map(|(name, _)| name);
    let is_default = option.split_once('=').is_some_and(|(given, value)| {
        matches!(value, "true" | "false") && known().any(|known| name(known) == Some(given))
    });
    if is_default || known().any(|known| known == option) {
        return None;
    }
    let meant = known().find(|known| known.eq_ignore_ascii_case(option));
    let why = meant.or_else(|| similar(option, known())).map_or_else(
        || "Argo CD has no such option for objects: remove it".to_owned(),
        |meant| format!("did you mean {meant}?"),
    );
    Some(no_effect(&format!("{annotation}: {option}"), &why))
}

/// Returns the warning about an annotation that is almost one of Argo CD or Helm.
fn misspelled_name(name: &str) -> Option<String> {
    let of_helm = [HELM_HOOK, HELM_WEIGHT, RESOURCE_POLICY];
    let known = || KNOWN.iter().map(|known| known.annotation).chain(of_helm);
    let is_near = name.starts_with("argocd.argoproj.io/") || name.starts_with("helm.sh/");
    if !is_near || known().any(|known| known == name) {
        return None;
    }
    let meant = similar(name, known())?;
    Some(no_effect(name, &format!("did you mean {meant}?")))
}

/// The annotations of the program, without their prefix, that are not settings of a delivered object: it writes them itself, or reads
/// them from objects of the hub.
const OF_PROGRAM: [&str; 27] = [
    "action",
    "action-of",
    "agent-certificates",
    "agent-image",
    "agent-namespace",
    "application",
    "application-uid",
    "argocd",
    "certificates",
    "content-hash",
    "gitopscluster",
    "hold",
    "hold-reason",
    "hold-until",
    "labels",
    "live-certificate",
    "of-the-hub",
    "operation",
    "operator-managed",
    "payload",
    "redis-server",
    "refresh-request",
    "requested-by",
    "rollout-undone",
    "signs-since",
    "suspend-changed-at",
    "truncated",
];

/// Checks the names of annotations with the prefix of the plugin. A misspelled one would set nothing.
///
/// # Errors
/// Returns an error with the first annotation that is unknown.
pub(super) fn check_own(annotations: &Map<'_>) -> Result<(), AnnotationFault> {
    let settings = [UPDATE_STRATEGY, IGNORE_FIELDS];
    let names = annotations.iter().map(|(name, _)| name);
    for name in names.filter(|name| name.starts_with("argocd-ocm")) {
        let own = name.strip_prefix(OWN);
        if settings.contains(&name) || own.is_some_and(|own| OF_PROGRAM.contains(&own)) {
            continue;
        }
        let remedy = match similar(name, settings.into_iter()) {
            Some(meant) => format!("did you mean {meant}?"),
            None if own.is_none() => continue,
            None => format!("objects may have {UPDATE_STRATEGY} and {IGNORE_FIELDS}: correct or remove it"),
        };
        return Err(AnnotationFault::Unknown(name.to_owned(), remedy));
    }
    Ok(())
}
