//! Annotations of objects: those of Argo CD and Helm that Argo CD honours, and the plugin's own. They have no effect on the
//! managed cluster, so the ManifestWorks implement them.

mod effects;

use super::canonical::SET_BY_OTHERS;
use super::ignored_fields::{self, FieldPath, IGNORE_FIELDS};
use super::update_strategy::UpdateStrategy;
pub use effects::{Effect, KNOWN, KnownAnnotation};
use effects::{IGNORE_HEALTH, REPLACE};
use manifest::json;
use manifest::value::{Map, Value};
use ocm::pull_model::SYNC_OPTIONS;
use std::collections::BTreeSet;

/// The annotation for the update strategy of an object: one of [`UpdateStrategy`]'s names.
pub(crate) const UPDATE_STRATEGY: &str = "argocd-ocm-cmp.github.io/update-strategy";

/// The phase of a sync in which an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Before all other phases of a sync.
    PreSync,
    /// The main phase.
    Sync,
    /// After all objects of the Sync phase are healthy.
    PostSync,
    /// After a failed sync.
    SyncFail,
    /// Before the Application is deleted.
    PreDelete,
    /// After all objects of a deleted Application are removed.
    PostDelete,
}

impl Phase {
    /// Returns Argo CD's name of the phase.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreSync => "PreSync",
            Self::Sync => "Sync",
            Self::PostSync => "PostSync",
            Self::SyncFail => "SyncFail",
            Self::PreDelete => "PreDelete",
            Self::PostDelete => "PostDelete",
        }
    }

    /// Returns true if the hub must run it as a hook, which it deletes and creates each time.
    pub(crate) fn is_hook_of_hub(self) -> bool {
        !matches!(self, Self::PreSync | Self::Sync | Self::PostSync)
    }
}

/// The options that the annotations of an object set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The phases in which it is a hook; empty for an ordinary object.
    pub hooks: BTreeSet<Phase>,
    /// True if it is never applied: a hook of type Skip, or of a type that only Helm runs.
    pub skip: bool,
    /// True if it stays on the cluster when it leaves Git or the Application is deleted.
    pub keep: bool,
    /// The number of bytes that the object has more because of the annotations that keep it.
    pub keep_length: u32,
    /// The update strategy.
    pub strategy: Option<UpdateStrategy>,
    /// The fields that the agent leaves to other writers.
    pub ignored_fields: Vec<FieldPath>,
    /// The `generateName` of a hook.
    pub name_prefix: Option<Box<str>>,
    /// True if it counts as healthy when it is applied.
    pub ignores_health: bool,
    /// A warning for each annotation and option of Argo CD and Helm that has no effect on it.
    pub without_effect: Vec<String>,
}

/// An annotation with an unknown value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationFault {
    /// A hook type that Argo CD does not have. Argo CD treats such an object as a hook and never applies it.
    #[error(
        "{HOOK}: {0:?} is not a hook: Argo CD has PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete and Skip"
    )]
    Hook(String),
    /// A hook type that Helm does not have.
    #[error(
        "{HELM_HOOK}: {0:?} is not a hook: Helm has pre-install, post-install, pre-upgrade, post-upgrade, pre-delete, \
         post-delete, pre-rollback, post-rollback and test"
    )]
    HelmHook(String),
    /// An unknown update strategy.
    #[error("{UPDATE_STRATEGY}: {0}")]
    Strategy(String),
    /// An object that is never released, although it is to stay.
    #[error(
        "{UPDATE_STRATEGY}: ReadOnly does not keep the object: the agent would still delete it if it has applied it before: set \
         CreateOnly, which keeps it, or remove the option that keeps it"
    )]
    ReadOnlyKept,
    /// A field in another spelling.
    #[error("{IGNORE_FIELDS}: {0}")]
    IgnoredField(String),
    /// An annotation with the plugin's prefix that the plugin does not have.
    #[error("the annotation {0} is unknown: {1}")]
    Unknown(String, String),
}

/// Helm's annotation for what happens to an object that leaves a chart.
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

const HOOK: &str = "argocd.argoproj.io/hook";
const HELM_HOOK: &str = "helm.sh/hook";
const HELM_WEIGHT: &str = "helm.sh/hook-weight";

/// Parses the annotations in an object's `metadata`; `None` if they set no option.
///
/// # Errors
/// Returns an error with the annotation that is invalid.
pub fn annotations(metadata: &Map<'_>) -> Result<Option<Annotations>, AnnotationFault> {
    let Some(Value::Map(annotations)) = metadata.get("annotations") else {
        return Ok(None);
    };
    let text = |name| annotations.get(name).and_then(Value::as_str);
    let sync_options = text(SYNC_OPTIONS).unwrap_or_default();
    effects::check_own(annotations)?;
    let without_keep = without_keep(annotations);
    let mut annotations = Annotations {
        keep: without_keep.is_some(),
        keep_length: without_keep.map_or(0, |others| length(annotations).saturating_sub(length(&others))),
        strategy: text(UPDATE_STRATEGY)
            .map(|name| name.parse().map_err(AnnotationFault::Strategy))
            .transpose()?,
        ignored_fields: text(IGNORE_FIELDS)
            .map(|fields| ignored_fields::of_object(fields).map_err(AnnotationFault::IgnoredField))
            .transpose()?
            .unwrap_or_default(),
        ignores_health: text(IGNORE_HEALTH) == Some("true"),
        without_effect: effects::without_effect(annotations),
        ..Annotations::default()
    };
    // Helm's hooks count only if Argo CD's annotation is absent or empty. `crd-install` is Helm 2's way to install CRDs first, and no hook.
    let phases: Option<Vec<_>> = match (text(HOOK), text(HELM_HOOK)) {
        (Some(hooks), helm) if helm.is_none() || items(hooks).next().is_some() => {
            let none = items(hooks).next().is_none().then_some("");
            Some(items(hooks).chain(none).map(argo_cd_phase).collect::<Result<_, _>>()?)
        }
        (_, Some(hooks)) if hooks != "crd-install" => Some(items(hooks).map(helm_phase).collect::<Result<_, _>>()?),
        _ => None,
    };
    if let Some(phases) = phases {
        annotations.hooks = phases.into_iter().flatten().collect();
        annotations.skip = annotations.hooks.is_empty();
    }
    if annotations.skip {
        // It is never applied, so no annotation has an effect.
        annotations.without_effect.clear();
    }
    // A hook is created and never updated.
    if annotations.hooks.is_empty()
        && annotations.strategy.is_none()
        && items(sync_options).any(|sync_option| sync_option == REPLACE)
    {
        annotations.strategy = Some(UpdateStrategy::Update);
    }
    if annotations.keep && annotations.strategy == Some(UpdateStrategy::ReadOnly) && !annotations.skip {
        // The agent removes its owner reference only when it applies an object.
        return Err(AnnotationFault::ReadOnlyKept);
    }
    Ok(Some(annotations).filter(|annotations| *annotations != Annotations::default()))
}

/// Returns the sync wave from an object's `metadata`, as Argo CD does: the annotation if it is an integer, else Helm's hook
/// weight, else 0.
pub fn wave(metadata: &Map<'_>) -> i64 {
    let Some(Value::Map(annotations)) = metadata.get("annotations") else {
        return 0;
    };
    let number = |name| annotations.get(name).and_then(Value::as_str)?.parse().ok();
    number("argocd.argoproj.io/sync-wave")
        .or_else(|| number(HELM_WEIGHT))
        .unwrap_or(0)
}

/// Returns the items of a list in an annotation, split as Argo CD does.
fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

impl Annotations {
    /// Returns true if the object is a hook, even if it is never applied.
    pub(crate) fn is_hook(&self) -> bool {
        self.skip || !self.hooks.is_empty()
    }

    /// Returns true if they set more than that the object stays.
    pub fn has_other_options(&self) -> bool {
        let only_kept = Self {
            keep: self.keep,
            keep_length: self.keep_length,
            ..Self::default()
        };
        *self != only_kept
    }
}

/// Returns the annotations without the options that keep the object; `None` if there are none.
fn without_keep<'a>(annotations: &Map<'a>) -> Option<Map<'a>> {
    let mut without = None;
    for (name, keeps) in [
        (SYNC_OPTIONS, keeps as fn(&str) -> bool),
        (RESOURCE_POLICY, is_kept_by_helm),
    ] {
        let Some(options) = annotations.get(name).and_then(Value::as_str) else {
            continue;
        };
        let rest: Vec<&str> = options.split(',').filter(|option| !keeps(option.trim())).collect();
        if rest.len() == options.split(',').count() {
            continue;
        }
        let others = without.get_or_insert_with(|| annotations.clone());
        others.remove(name);
        if !rest.is_empty() {
            others.insert(name, Value::from_text(rest.join(",")));
        }
    }
    without
}

/// Returns true if the sync option keeps the object. OCM cannot distinguish pruning from the deletion of the whole Application,
/// and the cluster has no way to confirm, so each of these options keeps the object in both cases.
fn keeps(option: &str) -> bool {
    matches!(
        option,
        "Prune=false" | "Prune=confirm" | "Delete=false" | "Delete=confirm"
    )
}

/// Returns true if Helm or Argo CD keeps an object with this resource policy. Helm ignores case, and Argo CD reads a list.
fn is_kept_by_helm(resource_policy: &str) -> bool {
    resource_policy.eq_ignore_ascii_case("keep")
}

/// Returns the length of annotations within a delivered object, in bytes in Go's JSON encoding.
fn length(annotations: &Map<'_>) -> u32 {
    let mut delivered = annotations.clone();
    delivered.retain(|name, _| !SET_BY_OTHERS.contains(&name));
    let mut json = String::new();
    if !delivered.is_empty() && json::write_map(&delivered, &mut json).is_ok() {
        json.push_str(r#""annotations":,"#);
    }
    u32::try_from(json::passage(&json).length).unwrap_or(u32::MAX)
}

/// Returns the phase of Argo CD's hook; `None` for one that is never applied.
fn argo_cd_phase(hook: &str) -> Result<Option<Phase>, AnnotationFault> {
    Ok(Some(match hook {
        "PreSync" => Phase::PreSync,
        "Sync" => Phase::Sync,
        "PostSync" => Phase::PostSync,
        "SyncFail" => Phase::SyncFail,
        "PreDelete" => Phase::PreDelete,
        "PostDelete" => Phase::PostDelete,
        "Skip" => return Ok(None),
        _ => return Err(AnnotationFault::Hook(hook.to_owned())),
    }))
}

/// Returns the phase in which Argo CD runs Helm's hook; `None` for one that it does not run.
fn helm_phase(hook: &str) -> Result<Option<Phase>, AnnotationFault> {
    Ok(Some(match hook {
        "pre-install" | "pre-upgrade" => Phase::PreSync,
        "post-install" | "post-upgrade" => Phase::PostSync,
        "pre-delete" => Phase::PreDelete,
        "post-delete" => Phase::PostDelete,
        "pre-rollback" | "post-rollback" | "test" | "test-success" | "test-failure" | "crd-install" => return Ok(None),
        _ => return Err(AnnotationFault::HelmHook(hook.to_owned())),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::tests::fields;
    use Phase::{PostDelete, PostSync, PreDelete, PreSync, Sync, SyncFail};
    use ocm::pull_model::OWN;

    fn parsed(annotations: &str) -> Result<Annotations, String> {
        super::annotations(&fields(&format!("annotations: {annotations}")))
            .map(Option::unwrap_or_default)
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn prefers_argo_cds_hooks_to_helms() {
        for (annotations, hooks) in [
            ("{argocd.argoproj.io/hook: PreSync}", &[PreSync][..]),
            ("{argocd.argoproj.io/hook: 'PostSync, PreSync,'}", &[PreSync, PostSync]),
            ("{argocd.argoproj.io/hook: 'Skip,Sync'}", &[Sync]),
            (
                "{argocd.argoproj.io/hook: SyncFail, helm.sh/hook: pre-install}",
                &[SyncFail],
            ),
            ("{argocd.argoproj.io/hook: '', helm.sh/hook: pre-install}", &[PreSync]),
            (
                "{helm.sh/hook: 'pre-install,pre-upgrade,post-upgrade'}",
                &[PreSync, PostSync],
            ),
            ("{helm.sh/hook: 'post-delete,pre-delete'}", &[PreDelete, PostDelete]),
            ("{helm.sh/hook: crd-install}", &[]),
            ("{helm.sh/hook-weight: '5'}", &[]),
        ] {
            let read = parsed(annotations).unwrap();
            let phases: Vec<Phase> = read.hooks.into_iter().collect();
            assert_eq!((phases.as_slice(), read.skip), (hooks, false), "{annotations}");
        }
    }

    #[test]
    fn skips_manifests_that_argo_cd_never_applies() {
        for annotations in [
            "{argocd.argoproj.io/hook: Skip}",
            "{helm.sh/hook: test}",
            "{helm.sh/hook: post-rollback}",
        ] {
            assert!(parsed(annotations).unwrap().skip, "{annotations}");
        }
    }

    #[test]
    fn an_unknown_hook_is_an_error() {
        assert_eq!(
            parsed("{argocd.argoproj.io/hook: 'PreSync,PreSink'}"),
            Err(
                "argocd.argoproj.io/hook: \"PreSink\" is not a hook: Argo CD has PreSync, Sync, PostSync, SyncFail, PreDelete, \
                 PostDelete and Skip"
                    .to_owned()
            )
        );
        assert!(parsed("{argocd.argoproj.io/hook: ' '}").is_err());
        assert_eq!(
            parsed("{helm.sh/hook: 'post-install,after-install'}"),
            Err(
                "helm.sh/hook: \"after-install\" is not a hook: Helm has pre-install, post-install, pre-upgrade, post-upgrade, \
                 pre-delete, post-delete, pre-rollback, post-rollback and test"
                    .to_owned()
            )
        );
    }

    #[test]
    fn keep_annotations_orphan_the_object() {
        for annotations in [
            "{argocd.argoproj.io/sync-options: 'ServerSideApply=true, Prune=false'}",
            "{argocd.argoproj.io/sync-options: 'Delete=confirm'}",
            "{helm.sh/resource-policy: keep}",
            "{helm.sh/resource-policy: ' Keep'}",
            "{helm.sh/resource-policy: 'other,keep'}",
        ] {
            assert!(parsed(annotations).unwrap().keep, "{annotations}");
        }
        assert!(
            !parsed("{argocd.argoproj.io/sync-options: 'Prune=true,Delete=falsely'}")
                .unwrap()
                .keep
        );
    }

    #[test]
    fn refuses_to_keep_an_object_that_is_only_read() {
        let read_only = "argocd-ocm-cmp.github.io/update-strategy: ReadOnly";
        for keep in [
            "argocd.argoproj.io/sync-options: Prune=false",
            "helm.sh/resource-policy: keep",
        ] {
            let error = parsed(&format!("{{{read_only}, {keep}}}")).expect_err(keep);
            assert!(error.contains("ReadOnly does not keep the object"), "{error}");
            assert!(parsed(&format!("{{{}, {keep}}}", read_only.replace("ReadOnly", "CreateOnly"))).is_ok());
        }
        assert!(parsed(&format!("{{{read_only}}}")).is_ok());
    }

    #[test]
    fn replace_selects_the_update_strategy_of_objects_that_are_no_hooks() {
        for (annotations, strategy) in [
            (
                "argocd.argoproj.io/sync-options: 'Prune=false, Replace=true'",
                Some(UpdateStrategy::Update),
            ),
            ("argocd.argoproj.io/sync-options: Replace=false", None),
            (
                "argocd.argoproj.io/sync-options: Replace=true, argocd.argoproj.io/hook: PreSync",
                None,
            ),
            (
                "argocd.argoproj.io/sync-options: Replace=true, argocd-ocm-cmp.github.io/update-strategy: CreateOnly",
                Some(UpdateStrategy::CreateOnly),
            ),
        ] {
            assert_eq!(
                parsed(&format!("{{{annotations}}}")).unwrap().strategy,
                strategy,
                "{annotations}"
            );
        }
    }

    #[test]
    fn each_annotation_without_effect_has_a_warning() {
        let warnings = |annotations: &str| -> Vec<String> { parsed(annotations).unwrap().without_effect };
        assert_eq!(
            warnings(
                "{argocd.argoproj.io/sync-options: 'Force=true,Prune=false', link.argocd.argoproj.io/x: 'http://x'}"
            ),
            [
                "the annotation argocd.argoproj.io/sync-options: Force=true has no effect: OCM does not delete an object to \
                 apply it: rename it",
                "the annotation link.argocd.argoproj.io/ has no effect: Argo CD does not see the object",
            ]
        );
        for known in KNOWN {
            let (name, option) = (known.annotation, known.option.unwrap_or("x"));
            if name != HOOK {
                let name = if name.ends_with('/') {
                    format!("{name}x")
                } else {
                    name.to_owned()
                };
                let is_warned = !warnings(&format!("{{'{name}': '{option}'}}")).is_empty();
                assert_eq!(is_warned, matches!(known.effect, Effect::None(_)), "{name} {option}");
            }
        }
        assert_eq!(warnings("{argocd.argoproj.io/ignore-healthcheck: 'false'}"), [""; 0]);
    }

    #[test]
    fn misspelled_annotations_of_others_have_a_warning() {
        let table = "
            {argocd.argoproj.io/sync-options: 'Prune=False,Prune=true'} => the annotation argocd.argoproj.io/sync-options: Prune=False has no effect: did you mean Prune=false?
            {argocd.argoproj.io/sync-options: 'CreateNamespace=true'} => the annotation argocd.argoproj.io/sync-options: CreateNamespace=true has no effect: Argo CD has no such option for objects: remove it
            {argocd.argoproj.io/hook-delete-policy: hook-succeeded} => the annotation argocd.argoproj.io/hook-delete-policy: hook-succeeded has no effect: Argo CD has no such option for objects: remove it
            {argocd.argoproj.io/hook-delete-policy: BeforeHookCreaton} => the annotation argocd.argoproj.io/hook-delete-policy: BeforeHookCreaton has no effect: did you mean BeforeHookCreation?
            {argocd.argoproj.io/sync-option: Prune=false} => the annotation argocd.argoproj.io/sync-option has no effect: did you mean argocd.argoproj.io/sync-options?
            {helm.sh/resource-polcy: keep} => the annotation helm.sh/resource-polcy has no effect: did you mean helm.sh/resource-policy?
            {helm.sh/hook: post-install, helm.sh/hook-delete-policy: 'before-hook-creation,hook-succeeded'} => the annotation helm.sh/hook-delete-policy: hook-succeeded has no effect: a hook stays until its content changes";
        for (annotations, expected) in testing::rows(table) {
            assert_eq!(parsed(annotations).unwrap().without_effect, [expected], "{annotations}");
        }
        for known in [
            "{argocd.argoproj.io/tracking-id: x, argocd.argoproj.io/refresh: normal, argocd.argoproj.io/instance: x}",
            "{argocd.argoproj.io/sync-options: 'Delete=confirm, Force=false,,Validate=true'}",
            "{helm.sh/hook: test, helm.sh/hook-delete-policy: hook-succeeded}",
            "{helm.sh/chart: shop, helm.sh/hook-weight: '1', example.com/sync-option: x}",
        ] {
            assert_eq!(parsed(known).unwrap().without_effect, [""; 0], "{known}");
        }
    }

    #[test]
    fn misspelled_annotations_of_the_plugin_are_errors() {
        let table = "
            argocd-ocm-cmp.github.io/update-stategy => did you mean argocd-ocm-cmp.github.io/update-strategy?
            argocd-ocm-cmp.github.io/ignore-field => did you mean argocd-ocm-cmp.github.io/ignore-fields?
            argocd-ocm-cmp.github.com/ignore-fields => did you mean argocd-ocm-cmp.github.io/ignore-fields?
            argocd-ocm-cmp.github.io/strategy => objects may have argocd-ocm-cmp.github.io/update-strategy and argocd-ocm-cmp.github.io/ignore-fields: correct or remove it";
        for (annotation, remedy) in testing::rows(table) {
            assert_eq!(
                parsed(&format!("{{{annotation}: CreateOnly}}")).unwrap_err(),
                format!("the annotation {annotation} is unknown: {remedy}")
            );
        }
        let delivered =
            "{argocd-ocm-cmp.github.io/content-hash: x, argocd-ocm-cmp.github.io/hold-until: x, argocd-ocm-other/x: y}";
        assert_eq!(parsed(delivered), Ok(Annotations::default()));
    }

    /// Otherwise an object that the program itself has annotated could not be delivered.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test reads the sources of the program")]
    fn annotations_that_the_program_writes_are_no_errors() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut count = 0;
        for folder in ["crates", "src", "deploy"] {
            for file in walkdir::WalkDir::new(root.join(folder)).into_iter().flatten() {
                let text = std::fs::read_to_string(file.path()).unwrap_or_default();
                // In Rust, others are in tests.
                let lines = text
                    .lines()
                    .filter(|line| folder == "deploy" || line.contains("const "));
                for name in lines.flat_map(|line| line.split(OWN).skip(1)) {
                    let end = name
                        .find(|char: char| !char.is_ascii_lowercase() && char != '-')
                        .unwrap_or(name.len());
                    // The rest are versions of kinds, labels of ClusterRoles, and finalizers.
                    if end > 1 && !name.starts_with("aggregate-to-") {
                        let error = parsed(&format!("{{{OWN}{}: x}}", &name[..end]))
                            .err()
                            .unwrap_or_default();
                        assert!(!error.contains("is unknown"), "{error}");
                        count += 1;
                    }
                }
            }
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn rejects_unknown_update_strategies() {
        let expected = parsed("{argocd-ocm-cmp.github.io/update-strategy: CreateOnly}").unwrap();
        assert_eq!(expected.strategy, Some(UpdateStrategy::CreateOnly));
        assert_eq!(
            parsed("{argocd-ocm-cmp.github.io/update-strategy: Never}").unwrap_err(),
            "argocd-ocm-cmp.github.io/update-strategy: \"Never\" is not an update strategy: OCM has ServerSideApply, Update, \
             CreateOnly and ReadOnly"
        );
    }

    #[test]
    fn parses_the_sync_wave_like_argo_cd() {
        for (annotations, expected) in [
            ("{argocd.argoproj.io/sync-wave: '-5'}", -5),
            ("{argocd.argoproj.io/sync-wave: '+5'}", 5),
            ("{argocd.argoproj.io/sync-wave: five, helm.sh/hook-weight: '2'}", 2),
            ("{argocd.argoproj.io/sync-wave: ' 5'}", 0),
            ("{argocd.argoproj.io/sync-wave: '1.5'}", 0),
            ("{argocd.argoproj.io/sync-wave: '99999999999999999999'}", 0),
            ("{}", 0),
        ] {
            let yaml = format!("annotations: {annotations}");
            assert_eq!(wave(&fields(&yaml)), expected, "{annotations}");
        }
    }
}
