//! Hooks. On the hub a sync is a sequence of ManifestWorks, so a hook is an object in an earlier or later ManifestWork; it need
//! not be deleted and recreated.
//!
//! A Job or Pod that is a hook is a *run*: it runs again only if its content changes. Its name on the cluster therefore ends in a
//! hash of its content, and it has its own ManifestWork, which is replaced with it. The agent never applies that ManifestWork
//! again once the run is complete, so a deleted run does not start anew. A hook of a custom kind that runs to completion is a run
//! too, and so is every hook with `generateName`, whose name no other object can refer to. Other hooks keep their name, under which
//! others refer to them, and are updated.
//!
//! Hooks that Argo CD must start itself, after a failed sync or when the Application is deleted, are recreated each time and
//! never pruned: their name does not depend on the content, else the ManifestWork of the old content would remain.

use super::annotations::{Annotations, Phase};
use super::health_rules;
use super::object::{Object, ObjectFault};
use super::order;
use manifest::kinds::GroupKind;
use manifest::value::{Map, Value};
use primitives::hash;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

/// The number of hex digits of the hash in a run's name: 40 bits are enough for the few runs of a folder.
const HASH_DIGITS: usize = 10;

/// The maximum length of the name of a Job, which becomes a label of its pods.
const NAME_MAX: usize = 63;

/// The custom kinds whose objects run to completion and never again.
const RUNS: [(&str, &str); 20] = [
    ("argoproj.io", "AnalysisRun"),
    ("argoproj.io", "Experiment"),
    ("argoproj.io", "Workflow"),
    ("batch.volcano.sh", "Job"),
    ("k6.io", "TestRun"),
    ("kubeflow.org", "JAXJob"),
    ("kubeflow.org", "MPIJob"),
    ("kubeflow.org", "PaddleJob"),
    ("kubeflow.org", "PyTorchJob"),
    ("kubeflow.org", "TFJob"),
    ("kubeflow.org", "XGBoostJob"),
    ("postgresql.cnpg.io", "Backup"),
    ("ray.io", "RayJob"),
    ("sparkoperator.k8s.io", "SparkApplication"),
    ("tekton.dev", "CustomRun"),
    ("tekton.dev", "PipelineRun"),
    ("tekton.dev", "TaskRun"),
    ("trainer.kubeflow.org", "TrainJob"),
    ("velero.io", "Backup"),
    ("velero.io", "Restore"),
];

/// Prepares a hook before its content is hashed: replaces `generateName` by a name, as Argo CD does, and removes the time to live of a
/// finished Job. The agent creates a missing Job again until it reads on the hub that the work is complete: not while it cannot reach the
/// hub, nor before it has reported that, nor after the work has been created again.
pub(super) fn prepare(
    kind: &GroupKind,
    annotations: &mut Annotations,
    metadata: &mut Map<'_>,
    fields: &mut Map<'_>,
) -> Result<(), ObjectFault> {
    if let Some(Value::String(prefix)) = metadata.remove("generateName")
        && metadata.get("name").is_none_or(|name| *name == Value::Null)
    {
        let name = hash::without_separator(&prefix).to_owned();
        if name.is_empty() {
            return Err(ObjectFault::Missing("metadata.name"));
        }
        metadata.insert("name", Value::String(name.into()));
        annotations.name_prefix = Some(prefix.as_ref().into());
        if health_rules::of_kind(kind).is_none() && !annotations.skip {
            return Err(ObjectFault::HookWithoutHealth(kind.to_string()));
        }
    }
    if kind.is("batch", "Job")
        && let Some(Value::Map(spec)) = fields.get_mut("spec")
    {
        spec.remove("ttlSecondsAfterFinished");
    }
    Ok(())
}

/// The role of an object in a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// An object of the Application, or a hook of Sync that does not run.
    Ordinary,
    /// A hook that stays applied from its phase on.
    Hook,
    /// A hook that runs to completion.
    Run,
    /// A Namespace or CRD that objects of earlier steps need.
    Creator,
}

/// Assigns every object to its phases, and removes those that are never applied.
#[expect(clippy::vec_box, reason = "objects are large, and move several times")]
pub(crate) fn in_phases(objects: Vec<Box<Object>>) -> Vec<(Box<Object>, Phase, Role)> {
    let mut all = Vec::with_capacity(objects.len());
    for object in objects {
        let phases = match &object.annotations {
            Some(annotations) if annotations.skip => continue,
            Some(annotations) => annotations.hooks.clone(),
            None => BTreeSet::new(),
        };
        match phases.first() {
            None => all.push((object, Phase::Sync, Role::Ordinary)),
            Some(_) if runs(&object) => all.extend(phases.into_iter().map(|phase| run(object.clone(), phase))),
            // A hook that does not run stays from its first phase on, until all works are deleted: then PostDelete begins.
            Some(&phase) => {
                if phase != Phase::PostDelete && phases.contains(&Phase::PostDelete) && is_applied_again(&object) {
                    all.push((object.clone(), Phase::PostDelete, Role::Hook));
                }
                // An object that becomes a hook of Sync, or no longer is one, stays in its ManifestWork.
                let is_sync = phase == Phase::Sync;
                all.push((object, phase, if is_sync { Role::Ordinary } else { Role::Hook }));
            }
        }
    }
    without_created(all)
}

/// Removes the PreDelete hooks that a sync creates already: Argo CD, too, creates only hooks that do not exist.
fn without_created(all: Vec<(Box<Object>, Phase, Role)>) -> Vec<(Box<Object>, Phase, Role)> {
    let is_pre_delete = |(_, phase, role): &_| *phase == Phase::PreDelete && *role == Role::Hook;
    let (mut before, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_pre_delete);
    if before.is_empty() {
        return others;
    }
    let created = others.iter().filter(|(_, phase, _)| *phase <= Phase::PostSync);
    let created: HashSet<_> = created.map(|(object, ..)| &object.key).collect();
    before.retain(|(object, ..)| !created.contains(&object.key));
    others.append(&mut before);
    others
}

/// Returns true if a hook runs again when its content changes.
fn runs(object: &Object) -> bool {
    let kind = &object.key.kind;
    let generates_name = object
        .annotations
        .as_ref()
        .is_some_and(|annotations| annotations.name_prefix.is_some());
    generates_name || kind.is("batch", "Job") || kind.is("", "Pod") || RUNS.iter().any(|(group, of)| kind.is(group, of))
}

/// Returns true if a hook that does not run, and was applied in an earlier phase, is applied again for PostDelete. A Namespace or CRD stays
/// on the cluster.
fn is_applied_again(object: &Object) -> bool {
    object.defines.is_none() && !order::is_namespace(object)
}

fn run(mut object: Box<Object>, phase: Phase) -> (Box<Object>, Phase, Role) {
    let phase_name = std::iter::once(Cow::Borrowed(phase.name()));
    let hash = if phase.is_hook_of_hub() {
        hash::hash(phase_name.chain([Cow::Owned(object.key.to_string())]), HASH_DIGITS)
    } else {
        hash::hash(phase_name.chain(object.pieces()), HASH_DIGITS)
    };
    let name = hash::with_hash(object.key.name.to_string(), "-", &hash, NAME_MAX);
    object.rename(&name);
    (object, phase, Role::Run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::tests::object;
    use crate::placed::tests::placed;

    fn run(kind: &str, name: &str, hook: &str, spec: &str) -> Vec<(Box<Object>, Phase, Role)> {
        let object = object(&format!(
            "{{apiVersion: batch/v1, kind: {kind}, spec: {spec}, metadata: {{{name}, annotations: {{argocd.argoproj.io/hook: '{hook}'}}}}}}"
        ));
        in_phases(vec![Box::new(object)])
    }

    fn names(objects: &[(Box<Object>, Phase, Role)]) -> Vec<String> {
        objects.iter().map(|(object, ..)| object.key.name.to_string()).collect()
    }

    #[test]
    fn names_a_hook_run_by_its_content() {
        let first = run("Job", "name: migrate", "PreSync", "{a: 1}");
        let same = run("Job", "name: migrate", "PreSync", "{a: 1}");
        let other = run("Job", "name: migrate", "PreSync", "{a: 2}");
        assert_eq!(names(&first), names(&same));
        assert_ne!(names(&first), names(&other));
        let name = &names(&first)[0];
        assert!(
            name.starts_with("migrate-") && name.len() == "migrate-".len() + HASH_DIGITS,
            "{name}"
        );
        assert!(first[0].0.pieces().concat().contains(&format!("\"name\":\"{name}\"")));
        let long = run("Job", &format!("name: {}", "a".repeat(80)), "PreSync", "{}");
        assert_eq!(names(&long)[0].len(), NAME_MAX);
        let odd = run("Job", &format!("name: {}", "\u{e9}".repeat(40)), "PreSync", "{}");
        assert!(names(&odd)[0].len() <= NAME_MAX, "{odd:?}");
    }

    #[test]
    fn hook_run_by_argo_cd_keeps_its_name() {
        let first = run("Job", "name: alarm", "SyncFail,PostDelete", "{a: 1}");
        let other = run("Job", "name: alarm", "SyncFail,PostDelete", "{a: 2}");
        assert_eq!(names(&first), names(&other));
        assert_ne!(names(&first)[0], names(&first)[1]);
        assert_ne!(
            names(&first),
            names(&run("Job", "name: alarm-2", "SyncFail,PostDelete", "{a: 1}"))
        );
    }

    #[test]
    fn generates_names_for_generate_name() {
        let generated = names(&run("Job", "generateName: migrate-", "PreSync", "{a: 1}"));
        assert!(
            generated[0].starts_with("migrate-") && !generated[0].starts_with("migrate--"),
            "{generated:?}"
        );
    }

    #[test]
    fn custom_hooks_run_again_if_nothing_refers_to_their_name() {
        let hook = |api_version: &str, kind: &str, name: &str, size: u8| {
            let hook = object(&format!(
                "{{apiVersion: {api_version}, kind: {kind}, spec: {{size: {size}}}, \
                 metadata: {{{name}: a, annotations: {{argocd.argoproj.io/hook: PreSync}}}}}}"
            ));
            let hooks = in_phases(vec![Box::new(hook)]);
            (hooks[0].2, names(&hooks))
        };
        for (api_version, kind, name, role) in [
            ("argoproj.io/v1alpha1", "Workflow", "name", Role::Run),
            ("example.com/v1", "Check", "generateName", Role::Run),
            ("apps/v1", "Deployment", "generateName", Role::Run),
            ("cert-manager.io/v1", "Issuer", "name", Role::Hook),
            ("v1", "ConfigMap", "name", Role::Hook),
        ] {
            let (one, other) = (hook(api_version, kind, name, 1), hook(api_version, kind, name, 2));
            assert_eq!((one.0, one.1 != other.1), (role, role == Role::Run), "{kind}");
        }
    }

    #[test]
    fn refuses_a_generated_name_of_a_kind_without_health() {
        let yaml =
            "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-, annotations: {helm.sh/hook: pre-install}}}";
        assert_eq!(
            crate::object::tests::try_object(yaml)
                .expect_err("an error")
                .to_string(),
            "metadata.generateName is only allowed for a hook that runs, and ConfigMap has no health that shows its end: set \
             metadata.name"
        );
    }

    #[test]
    fn jobs_of_two_hook_phases_run_twice_other_kinds_once() {
        let twice = run("Job", "name: check", "PreSync,PostSync", "{}");
        assert_eq!(
            twice.iter().map(|(_, phase, _)| *phase).collect::<Vec<_>>(),
            [Phase::PreSync, Phase::PostSync]
        );
        assert_ne!(names(&twice)[0], names(&twice)[1]);
        let once = run("CronJob", "name: check", "PreSync,PostSync", "{}");
        assert_eq!(names(&once), ["check"]);
        assert_eq!((once[0].1, once[0].2), (Phase::PreSync, Role::Hook));
    }

    /// Argo CD deletes all works before it starts PostDelete hooks.
    #[test]
    fn hooks_that_do_not_run_are_applied_again_after_the_deletion() {
        let phases = |kind: &str, hook: &str| -> Vec<Phase> {
            let hooks = run(kind, "name: a", hook, "{}");
            hooks.into_iter().map(|(_, phase, _)| phase).collect()
        };
        for hook in ["PreSync,PostDelete", "PostDelete,Sync,PreSync,PreDelete"] {
            assert_eq!(phases("CronJob", hook), [Phase::PostDelete, Phase::PreSync], "{hook}");
        }
        assert_eq!(phases("CronJob", "PostDelete"), [Phase::PostDelete]);
        assert_eq!(phases("CronJob", "PreSync,PreDelete"), [Phase::PreSync]);
        let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: a, annotations: {helm.sh/hook: 'pre-install,post-delete'}}}";
        assert_eq!(in_phases(vec![Box::new(object(namespace))]).len(), 1);
        let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, annotations: {helm.sh/hook: 'pre-install,post-delete'}}}";
        assert!(order::duplicates(&placed(&[account])).is_empty());
        assert_eq!(order::duplicates(&placed(&[account, account])).len(), 2);
        // The deletion of the work for PostDelete would delete an object that stays otherwise.
        let other = account.replace("pre-install,post-delete", "post-delete");
        assert_eq!(order::duplicates(&placed(&[account, &other])).len(), 1);
    }

    #[test]
    fn a_hook_of_pre_delete_is_not_created_again() {
        let account = |hook: &str| {
            let account = "apiVersion: v1, kind: ServiceAccount";
            object(&format!(
                "{{{account}, metadata: {{name: a, annotations: {{helm.sh/hook: {hook}}}}}}}"
            ))
        };
        let phases = |hooks: [&str; 2]| -> Vec<Phase> {
            let hooks = in_phases(hooks.map(|hook| Box::new(account(hook))).into());
            hooks.into_iter().map(|(_, phase, _)| phase).collect()
        };
        assert_eq!(phases(["pre-delete", "pre-install"]), [Phase::PreSync]);
        assert_eq!(
            phases(["pre-delete", "post-delete"]),
            [Phase::PostDelete, Phase::PreDelete]
        );
    }

    #[test]
    fn skips_skipped_hooks() {
        for (kind, name) in [
            ("Job", "name: a"),
            ("Job", "generateName: a-"),
            ("CronJob", "generateName: a-"),
        ] {
            assert!(run(kind, name, "Skip", "{}").is_empty(), "{kind} {name}");
        }
    }

    #[test]
    fn finished_hook_run_stays() {
        let text = run("Job", "name: a", "PreSync", "{ttlSecondsAfterFinished: 900}")[0]
            .0
            .pieces()
            .concat();
        assert!(text.contains(r#""spec":{}"#), "{text}");
    }
}
