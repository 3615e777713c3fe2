//! What the annotations of an object ask for: Argo CD's and Helm's, which Argo CD honours, and this program's own. On the
//! managed cluster nothing reads them, so what they mean is built into the works.

use super::strategy::Strategy;
use crate::value::{Map, Value};

/// Names how the agent is to update the object: one of [`Strategy`]'s names.
pub const UPDATE_STRATEGY: &str = "argocd-ocm-cmp.github.io/update-strategy";

/// When in a sync an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Before everything else.
    PreSync,
    /// With everything else.
    Sync,
    /// When all that is healthy.
    PostSync,
    /// When a sync has failed.
    SyncFail,
    /// Before the Application is removed.
    PreDelete,
    /// When all of a removed Application is gone.
    PostDelete,
}

impl Phase {
    /// Argo CD's name for it.
    #[must_use]
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
}

/// What an object asks for besides being applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The phases it is a hook of; none for an ordinary object.
    pub hooks: Vec<Phase>,
    /// Whether it is not applied at all: a hook of type Skip, or of a type that only Helm runs.
    pub skip: bool,
    /// Whether it stays on the cluster when it leaves Git or the Application is removed.
    pub keep: bool,
    /// How the agent is to update it.
    pub strategy: Option<Strategy>,
}

/// An annotation that says nothing known.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A hook type that Argo CD does not have. It takes such an object for a hook and never applies it.
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
    /// No strategy of this name.
    #[error("{UPDATE_STRATEGY}: {0}")]
    Strategy(String),
}

const HOOK: &str = "argocd.argoproj.io/hook";
const HELM_HOOK: &str = "helm.sh/hook";

/// Reads the annotations in an object's `metadata`; `None` when they ask for nothing.
///
/// # Errors
/// With the annotation that cannot be understood.
pub fn wishes(metadata: &Map<'_>) -> Result<Option<Wishes>, Fault> {
    let Some(Value::Map(annotations)) = metadata.get("annotations") else {
        return Ok(None);
    };
    let text = |name| annotations.get(name).and_then(Value::as_str);
    let mut wishes = Wishes {
        keep: keeps(text("argocd.argoproj.io/sync-options").unwrap_or_default())
            || text("helm.sh/resource-policy") == Some("keep"),
        strategy: text(UPDATE_STRATEGY)
            .map(|name| name.parse().map_err(Fault::Strategy))
            .transpose()?,
        ..Wishes::default()
    };
    // Helm's hooks count only where Argo CD's do not say anything.
    match (text(HOOK), text(HELM_HOOK)) {
        (Some(hooks), helm) if helm.is_none() || items(hooks).next().is_some() => argo_cd_hooks(hooks, &mut wishes)?,
        (_, Some(hooks)) => helm_hooks(hooks, &mut wishes)?,
        _ => {}
    }
    Ok(Some(wishes).filter(|wishes| *wishes != Wishes::default()))
}

/// The sync wave that an object's `metadata` names, as Argo CD has it: the annotation where it is a whole number, else
/// Helm's hook weight, else 0.
#[must_use]
pub fn wave(metadata: &Map<'_>) -> i64 {
    let Some(Value::Map(annotations)) = metadata.get("annotations") else {
        return 0;
    };
    let number = |name| annotations.get(name).and_then(Value::as_str)?.parse().ok();
    number("argocd.argoproj.io/sync-wave")
        .or_else(|| number("helm.sh/hook-weight"))
        .unwrap_or(0)
}

/// The items of a list in an annotation, as Argo CD takes them apart.
fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// OCM cannot tell pruning from the removal of the whole app, and nobody can confirm anything on the cluster: each of these
/// options keeps the object in both cases.
fn keeps(options: &str) -> bool {
    items(options).any(|option| {
        matches!(
            option,
            "Prune=false" | "Prune=confirm" | "Delete=false" | "Delete=confirm"
        )
    })
}

fn argo_cd_hooks(hooks: &str, wishes: &mut Wishes) -> Result<(), Fault> {
    for hook in items(hooks).chain(items(hooks).next().is_none().then_some("")) {
        let phase = match hook {
            "PreSync" => Phase::PreSync,
            "Sync" => Phase::Sync,
            "PostSync" => Phase::PostSync,
            "SyncFail" => Phase::SyncFail,
            "PreDelete" => Phase::PreDelete,
            "PostDelete" => Phase::PostDelete,
            "Skip" => continue,
            _ => return Err(Fault::Hook(hook.to_owned())),
        };
        add(phase, wishes);
    }
    wishes.skip = wishes.hooks.is_empty();
    Ok(())
}

fn helm_hooks(hooks: &str, wishes: &mut Wishes) -> Result<(), Fault> {
    // Helm 2's way to have CRDs first, which is no hook.
    if hooks == "crd-install" {
        return Ok(());
    }
    for hook in items(hooks) {
        match hook {
            "pre-install" | "pre-upgrade" => add(Phase::PreSync, wishes),
            "post-install" | "post-upgrade" => add(Phase::PostSync, wishes),
            "post-delete" => add(Phase::PostDelete, wishes),
            // Argo CD does not run these either.
            "pre-delete" | "pre-rollback" | "post-rollback" | "test" | "test-success" | "test-failure"
            | "crd-install" => {}
            _ => return Err(Fault::HelmHook(hook.to_owned())),
        }
    }
    wishes.skip = wishes.hooks.is_empty();
    Ok(())
}

fn add(phase: Phase, wishes: &mut Wishes) {
    if !wishes.hooks.contains(&phase) {
        wishes.hooks.push(phase);
        wishes.hooks.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Phase::{PostDelete, PostSync, PreSync, Sync, SyncFail};

    fn asked(annotations: &str) -> Result<Wishes, String> {
        let yaml = format!("annotations: {annotations}");
        let document = crate::yaml::documents(&yaml).next().expect("a document").expect(&yaml);
        let Value::Map(metadata) = document.value else {
            panic!("{yaml}");
        };
        wishes(&metadata)
            .map(Option::unwrap_or_default)
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn hooks_are_argo_cds_else_helms() {
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
            ("{helm.sh/hook: 'post-delete,pre-delete'}", &[PostDelete]),
            ("{helm.sh/hook: crd-install}", &[]),
            ("{helm.sh/hook-weight: '5'}", &[]),
        ] {
            let wishes = asked(annotations).unwrap();
            assert_eq!((wishes.hooks.as_slice(), wishes.skip), (hooks, false), "{annotations}");
        }
    }

    #[test]
    fn what_argo_cd_never_applies_is_skipped() {
        for annotations in [
            "{argocd.argoproj.io/hook: Skip}",
            "{helm.sh/hook: test}",
            "{helm.sh/hook: pre-delete}",
        ] {
            assert!(asked(annotations).unwrap().skip, "{annotations}");
        }
    }

    #[test]
    fn an_unknown_hook_is_an_error() {
        assert_eq!(
            asked("{argocd.argoproj.io/hook: 'PreSync,PreSink'}"),
            Err(
                "argocd.argoproj.io/hook: \"PreSink\" is not a hook: Argo CD has PreSync, Sync, PostSync, SyncFail, PreDelete, \
                 PostDelete and Skip"
                    .to_owned()
            )
        );
        assert!(asked("{argocd.argoproj.io/hook: ' '}").is_err());
        assert!(asked("{helm.sh/hook: before-install}").is_err());
    }

    #[test]
    fn what_is_to_stay_is_kept() {
        for annotations in [
            "{argocd.argoproj.io/sync-options: 'ServerSideApply=true, Prune=false'}",
            "{argocd.argoproj.io/sync-options: 'Delete=confirm'}",
            "{helm.sh/resource-policy: keep}",
        ] {
            assert!(asked(annotations).unwrap().keep, "{annotations}");
        }
        assert!(
            !asked("{argocd.argoproj.io/sync-options: 'Prune=true,Delete=falsely'}")
                .unwrap()
                .keep
        );
    }

    #[test]
    fn a_strategy_is_one_of_ocms() {
        let wanted = asked("{argocd-ocm-cmp.github.io/update-strategy: CreateOnly}").unwrap();
        assert_eq!(wanted.strategy, Some(Strategy::CreateOnly));
        assert_eq!(
            asked("{argocd-ocm-cmp.github.io/update-strategy: Never}").unwrap_err(),
            "argocd-ocm-cmp.github.io/update-strategy: \"Never\" is not an update strategy: OCM has ServerSideApply, Update, \
             CreateOnly and ReadOnly"
        );
    }

    #[test]
    fn the_sync_wave_is_read_as_argo_cd_reads_it() {
        for (annotations, wanted) in [
            ("{argocd.argoproj.io/sync-wave: '-5'}", -5),
            ("{argocd.argoproj.io/sync-wave: '+5'}", 5),
            ("{argocd.argoproj.io/sync-wave: five, helm.sh/hook-weight: '2'}", 2),
            ("{argocd.argoproj.io/sync-wave: ' 5'}", 0),
            ("{}", 0),
        ] {
            let yaml = format!("annotations: {annotations}");
            let document = crate::yaml::documents(&yaml).next().expect("a document").expect(&yaml);
            assert_eq!(
                wave(document.value.as_map().expect("a mapping")),
                wanted,
                "{annotations}"
            );
        }
    }
}
