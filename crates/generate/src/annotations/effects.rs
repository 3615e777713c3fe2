//! The annotations and sync options that Argo CD reads from the objects that it applies, and what they do here.

use super::{HOOK, items};
use manifest::value::{Map, Value};
use ocm::pull_model::SYNC_OPTIONS;

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

    /// Returns the warning about an object that has it.
    pub fn warning(&self, object: &str) -> Option<String> {
        let Effect::None(why) = self.effect else {
            return None;
        };
        let option = self.option.map_or(String::new(), |option| format!(": {option}"));
        Some(format!(
            "{object}: the annotation {}{option} has no effect: {why}",
            self.annotation
        ))
    }
}

/// Returns the annotations and options of an object that have no effect.
pub(super) fn without_effect(annotations: &Map<'_>) -> Vec<&'static KnownAnnotation> {
    let known = KNOWN.iter().filter(|known| matches!(known.effect, Effect::None(_)));
    known.filter(|known| known.is_set(annotations)).collect()
}
