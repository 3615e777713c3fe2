//! Partitions objects into ManifestWorks, and assigns each ManifestWork its sync wave on the hub.
//!
//! Some operations of the hub or the agent apply to a whole ManifestWork, so objects are separated accordingly:
//!
//! - the hub applies wave by wave and waits until the ManifestWorks of a wave are healthy: one per phase and wave;
//! - the agent stops pruning a whole ManifestWork while it cannot map one object in it to a resource: one per kind that a cluster
//!   may lack;
//! - the agent stops applying a whole ManifestWork when a run in it is complete: one per run;
//! - the agent deletes what a ManifestWork drops: one per Namespace or CRD whose step depends on other objects;
//! - objects that exceed the size limit are divided by [`buckets`].

use super::annotations::Phase;
use super::buckets::{self, Bucket, Item};
use super::hooks::Role;
use super::order::{self, WAVE_MAX};
use super::placed::Placed;

/// The objects of one ManifestWork.
#[derive(Debug)]
pub struct Partition {
    /// The name suffix that distinguishes the ManifestWork from others of the Application; may be empty for one of them.
    pub suffix: String,
    /// The step of a sync that applies it.
    pub step: SyncStep,
    /// Its objects, in the order of application.
    pub objects: Vec<Placed>,
    /// The total number of bytes.
    pub size: u64,
}

/// A step of a sync: a wave in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncStep {
    /// The phase.
    pub phase: Phase,
    /// The wave in the phase.
    pub wave: i32,
}

/// The distance between two phases in waves of the hub.
const PHASE: i32 = 2 * (WAVE_MAX + 1);

impl SyncStep {
    /// Returns the Argo CD hook type of a ManifestWork of this step, if the hub must run it as a hook.
    pub fn hook(self) -> Option<Phase> {
        Some(self.phase).filter(|phase| phase.is_hook_of_hub())
    }

    /// Returns the sync wave on the hub of a ManifestWork of this step.
    pub(crate) fn hub_wave(self) -> i32 {
        match self.phase {
            Phase::PreSync => self.wave - PHASE,
            Phase::PostSync => self.wave + PHASE,
            _ => self.wave,
        }
    }
}

/// Sorts objects into the order of application and partitions them into parts of at most `capacity` bytes. A larger object gets
/// its own part, and so does the Namespace `created` that is in no file.
pub(crate) fn partitions(mut objects: Vec<Placed>, created: Option<Placed>, capacity: u64) -> Vec<Partition> {
    order::for_apply(&mut objects);
    let groups = groups(objects).into_iter();
    let mut partitions: Vec<Partition> = groups.flat_map(|group| partitions_of_group(group, capacity)).collect();
    if let Some(namespace) = created {
        partitions.push(of_namespace(namespace, &partitions));
    }
    partitions
}

/// Returns the last step that is no hook.
pub fn last_step(partitions: &[Partition]) -> Option<SyncStep> {
    waves(partitions).max_by_key(|step| step.hub_wave())
}

/// Splits sorted objects into those that belong in the same ManifestWork unless it is too large.
fn groups(objects: Vec<Placed>) -> Vec<Vec<Placed>> {
    let mut groups: Vec<Vec<Placed>> = Vec::new();
    for placed in objects {
        match groups.last_mut() {
            Some(group) if order::share_work(&group[0], &placed) => group.push(placed),
            _ => groups.push(vec![placed]),
        }
    }
    groups
}

/// Creates the parts of the objects of a group, at least one.
fn partitions_of_group(group: Vec<Placed>, capacity: u64) -> Vec<Partition> {
    let words = suffix_words(&group[0]);
    let step = SyncStep {
        phase: group[0].phase,
        wave: group[0].wave,
    };
    let partition = |Bucket { prefix, items }| {
        let bucket = Some(format!("b{prefix}")).filter(|_| !prefix.is_empty());
        Partition {
            suffix: words.iter().cloned().chain(bucket).collect::<Vec<_>>().join("-"),
            step,
            size: size(&items),
            objects: items,
        }
    };
    let items = group.into_iter().map(|placed| Item {
        hash: buckets::hash(&placed.object.key),
        size: placed.object.weight_unless_kept(),
        value: placed,
    });
    let buckets = buckets::buckets(items.collect(), capacity);
    buckets.into_iter().map(partition).collect()
}

fn size(objects: &[Placed]) -> u64 {
    objects.iter().map(|placed| placed.object.weight()).sum()
}

/// Returns the part with a Namespace, which is applied before all others.
fn of_namespace(namespace: Placed, others: &[Partition]) -> Partition {
    let first = waves(others).min_by_key(|step| step.hub_wave());
    Partition {
        suffix: "namespace".to_owned(),
        step: SyncStep {
            phase: first.map_or(Phase::Sync, |step| step.phase),
            wave: first.map_or(0, |step| step.wave - 1),
        },
        size: namespace.object.size() as u64,
        objects: vec![namespace],
    }
}

/// Returns the steps that are no hooks.
fn waves(partitions: &[Partition]) -> impl Iterator<Item = SyncStep> {
    let steps = partitions.iter().map(|partition| partition.step);
    steps.filter(|step| step.hook().is_none())
}

/// Returns the words of the name of an object's part; none for ordinary objects of wave 0.
fn suffix_words(placed: &Placed) -> Vec<String> {
    if placed.role == Role::Creator {
        // Its step changes with the objects that need it, and its ManifestWork stays the same.
        let kind = if placed.object.defines.is_some() {
            "crd"
        } else {
            "namespace"
        };
        return vec![format!("{kind}-{}", placed.object.key.name)];
    }
    let mut words = Vec::new();
    if placed.role != Role::Ordinary {
        words.push(placed.phase.name().to_ascii_lowercase());
    }
    if placed.wave != 0 {
        words.push(format!("wave{}", placed.wave));
    }
    let key = &placed.object.key;
    let kind = &key.kind;
    if placed.role == Role::Run {
        words.push(key.name.to_string());
        // The agent ignores changes of a complete ManifestWork. The hash in the name contains only the object's own namespace, because a
        // Job that exists need not run again. What Argo CD starts itself has no hash: it is deleted and created each time.
        if placed.has_default_namespace
            && !placed.phase.is_hook_of_hub()
            && let Some(namespace) = &key.namespace
        {
            words.push(namespace.to_string());
        }
    } else if !placed.object.always_served {
        let group = if kind.group.is_empty() { "core" } else { &kind.group };
        words.push(format!("{}.{group}", kind.kind.to_ascii_lowercase()));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets::tests::numbers;
    use crate::placed::tests::placed;
    use crate::{object, placed, validate};

    fn texts(objects: &[String]) -> Vec<&str> {
        objects.iter().map(String::as_str).collect()
    }

    fn arranged(yaml: &[&str], capacity: u64) -> Vec<(String, i32, Option<Phase>, Vec<String>)> {
        partitions(placed(yaml), None, capacity)
            .into_iter()
            .map(|partition| {
                let objects = partition.objects.iter();
                let keys = objects.map(|placed| placed.object.key.to_string()).collect();
                (partition.suffix, partition.step.hub_wave(), partition.step.hook(), keys)
            })
            .collect()
    }

    fn annotated(kind: &str, name: &str, annotations: &str) -> String {
        let (api_version, kind) = kind.split_once(' ').expect("two words");
        format!(
            "{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: {name}, annotations: {{{annotations}}}}}}}"
        )
    }

    #[test]
    fn maps_phases_and_waves_to_waves_of_the_hub() {
        let wave = |wave: i64| format!("argocd.argoproj.io/sync-wave: '{wave}'");
        let hook =
            |hook: &str, wave: i32| format!("argocd.argoproj.io/hook: {hook}, argocd.argoproj.io/sync-wave: '{wave}'");
        let partitions = arranged(
            &[
                &annotated("v1 ConfigMap", "late", &wave(7)),
                &annotated("v1 ConfigMap", "early", &wave(-7)),
                &annotated("v1 ConfigMap", "usual", ""),
                &annotated("v1 ServiceAccount", "before", &hook("PreSync", 3)),
                &annotated("v1 ConfigMap", "after", &hook("PostSync", -WAVE_MAX)),
                &annotated("v1 ConfigMap", "during", &hook("Sync", 0)),
                &annotated("v1 ConfigMap", "sad", &hook("SyncFail", 0)),
            ],
            10_000,
        );
        let partitions: Vec<_> = partitions
            .into_iter()
            .map(|(suffix, wave, hook, _)| (suffix, wave, hook))
            .collect();
        let partition = |suffix: &str, wave, hook| (suffix.to_owned(), wave, hook);
        assert_eq!(
            partitions,
            [
                partition("presync-wave3", -1_999_997, None),
                partition("wave-7", -7, None),
                partition("", 0, None),
                partition("wave7", 7, None),
                partition("postsync-wave-999999", 1_000_001, None),
                partition("syncfail", 0, Some(Phase::SyncFail)),
            ]
        );
    }

    #[test]
    fn namespace_that_an_earlier_object_needs_precedes_it_alone() {
        let shop = |hook: &str| annotated("v1 Namespace", "shop", hook);
        let in_shop =
            |hook: &str| annotated("v1 ConfigMap", "a", hook).replace("name: a,", "name: a, namespace: shop,");
        let [presync, postsync] = ["PreSync", "PostSync"].map(|hook| format!("argocd.argoproj.io/hook: {hook}"));
        let works = |objects: &[String]| -> Vec<(String, i32, usize)> {
            let partitions = arranged(&texts(objects), 10_000);
            let works = partitions.into_iter();
            works
                .map(|(suffix, wave, _, keys)| (suffix, wave, keys.len()))
                .collect()
        };
        let work = |suffix: &str, wave, objects| (suffix.to_owned(), wave, objects);
        assert_eq!(
            works(&[in_shop(&presync), shop(""), annotated("v1 ConfigMap", "b", "")]),
            [
                work("namespace-shop", -2_000_001, 1),
                work("presync", -2_000_000, 1),
                work("", 0, 1)
            ]
        );
        assert_eq!(
            works(&[in_shop(""), shop(&postsync), annotated("v1 ConfigMap", "b", &postsync)]),
            [
                work("namespace-shop", -1, 1),
                work("", 0, 1),
                work("postsync", 2_000_000, 1)
            ]
        );
        assert_eq!(works(&[in_shop(""), shop("")]), [work("", 0, 2)]);
    }

    /// A ManifestWork that stays deletes what it drops, unless another one has it by then.
    #[test]
    fn no_change_of_other_objects_moves_an_object_to_a_later_step() {
        let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tanks.x.io ANNOTATIONS}, \
                   spec: {group: x.io, scope: Namespaced, names: {kind: Tank, plural: tanks}}}";
        let mut pool = Vec::new();
        for (at, step) in [
            "sync-wave: '-2'",
            "sync-wave: '-1'",
            "hook: PreSync",
            "hook: PostSync",
            "sync-wave: '2'",
            "",
        ]
        .into_iter()
        .enumerate()
        {
            let step = if step.is_empty() {
                String::new()
            } else {
                format!("argocd.argoproj.io/{step}")
            };
            for namespace in ["n1", "n2"] {
                for kind in ["v1 ConfigMap", "x.io/v1 Tank"] {
                    let object = annotated(kind, &format!("o{at}"), &step);
                    pool.push(object.replace("annotations", &format!("namespace: {namespace}, annotations")));
                }
            }
            pool.push(annotated("v1 Namespace", ["n1", "n2"][at % 2], &step));
            pool.push(crd.replace(" ANNOTATIONS", &format!(", annotations: {{{step}}}")));
        }
        let id = |text: &str| text.split("annotations").next().unwrap_or_default().to_owned();
        let mut number = numbers(7);
        let mut moves = 0;
        let mut objects: Vec<String> = Vec::new();
        let mut before: Vec<(String, i32, Option<Phase>, Vec<String>)> = Vec::new();
        for _ in 0..5000 {
            let changed = pool[usize::try_from(number()).unwrap() % pool.len()].clone();
            let others = objects.iter().filter(|object| id(object) != id(&changed)).cloned();
            let mut next: Vec<String> = others.collect();
            if next.len() == objects.len() && next.len() < 16 {
                next.push(changed.clone());
            }
            let after = arranged(&texts(&next), 700);
            for (name, _, _, keys) in &before {
                let Some((_, old_wave, ..)) = after.iter().find(|work| work.0 == *name) else {
                    continue;
                };
                for key in keys {
                    let new = after.iter().find(|work| work.3.contains(key));
                    let Some((new, new_wave, ..)) = new.filter(|new| new.0 != *name) else {
                        continue;
                    };
                    moves += 1;
                    assert!(
                        new_wave < old_wave,
                        "{key} moves from {name} to {new} for a change of {changed}"
                    );
                }
            }
            (objects, before) = (next, after);
        }
        assert!(moves > 5, "{moves} moves");
    }

    #[test]
    fn kinds_that_may_be_missing_get_separate_partitions() {
        let partitions = arranged(
            &[
                &annotated("v1 ConfigMap", "a", ""),
                &annotated("v1 Service", "a", ""),
                &annotated("apps/v1 Deployment", "a", ""),
                &annotated("cert-manager.io/v1 Certificate", "a", ""),
                &annotated("cert-manager.io/v1 Issuer", "a", ""),
                &annotated("networking.k8s.io/v1beta1 Ingress", "a", ""),
            ],
            10_000,
        );
        let suffixes: Vec<_> = partitions.iter().map(|partition| partition.0.as_str()).collect();
        assert_eq!(
            suffixes,
            [
                "",
                "certificate.cert-manager.io",
                "issuer.cert-manager.io",
                "ingress.networking.k8s.io"
            ]
        );
    }

    #[test]
    fn each_hook_run_has_its_own_partition() {
        let hook = "argocd.argoproj.io/hook: PreSync";
        let partitions = arranged(
            &[
                &annotated("batch/v1 Job", "a", hook),
                &annotated("batch/v1 Job", "b", hook),
            ],
            10_000,
        );
        assert_eq!(partitions.len(), 2);
        assert!(partitions[0].0.starts_with("presync-a-"), "{partitions:?}");
    }

    /// The agent never applies a complete ManifestWork again, so a run in another namespace needs another one.
    #[test]
    fn hook_run_in_another_default_namespace_has_another_partition() {
        let suffixes = |hook: &str, own: &str, default: &str| -> Vec<String> {
            let job = annotated("batch/v1 Job", "a", &format!("argocd.argoproj.io/hook: {hook}"));
            let job = job.replace("name: a,", &format!("name: a, {own}"));
            let objects = vec![Box::new(object::tests::object(&job))];
            let partitions = partitions(placed::placed(objects, &[], Some(default)), None, 10_000);
            partitions.into_iter().map(|partition| partition.suffix).collect()
        };
        for (hook, own, differs) in [
            ("PreSync", "", true),
            ("PostSync", "", true),
            ("PreSync", "namespace: c,", false),
            ("SyncFail", "", false),
        ] {
            let (one, other) = (suffixes(hook, own, "a"), suffixes(hook, own, "b"));
            assert_eq!(one != other, differs, "{one:?} {other:?}");
        }
    }

    /// Objects of the first wave would fail without their Namespace, and nothing waits for the last one.
    #[test]
    fn created_namespace_precedes_the_first_wave() {
        let waves = ["-2", "0", "3"].map(|wave| format!("argocd.argoproj.io/sync-wave: '{wave}'"));
        let objects = waves.map(|wave| annotated("v1 ConfigMap", "a", &wave));
        let namespace = placed(&["{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"]).pop();
        let partitions = partitions(placed(&objects.each_ref().map(String::as_str)), namespace, 10_000);
        let waves: Vec<_> = partitions.iter().map(|partition| partition.step.hub_wave()).collect();
        assert_eq!(waves, [-2, 0, 3, -3]);
        assert_eq!(last_step(&partitions).map(SyncStep::hub_wave), Some(3));
    }

    /// Argo CD would deliver only one of two ManifestWorks with the same name.
    #[test]
    fn refuses_objects_whose_works_would_have_the_same_name() {
        let each_alone = |objects: &[String]| {
            let objects = texts(objects);
            partitions(placed(&objects), None, 1)
        };
        let is_refused = |objects: &[String]| validate::work_names(&each_alone(objects), &[String::new()]).is_err();
        let tank = |kind: &str| annotated(kind, "a", "");
        let hook = annotated("g/v1 Tank", "a", "argocd.argoproj.io/hook: PreSync");
        assert!(is_refused(&[tank("g/v1 Tank"), tank("g/v1 tank")]));
        assert!(is_refused(&[tank("v1 Tank"), tank("core/v1 Tank")]));
        assert!(is_refused(&[hook.clone(), tank("g/v1 PreSync-Tank")]));
        assert!(!is_refused(&[
            hook,
            tank("g/v1 Tank"),
            tank("g/v1 Tanks"),
            tank("v1 Tank"),
            tank("g-b0/v1 Tank")
        ]));

        let mut objects = ["a", "b", "c"].map(|name| annotated("g/v1 Tank", name, "")).to_vec();
        assert!(!is_refused(&objects));
        let bucket = each_alone(&objects)[0].suffix.clone();
        let (_, group) = bucket.split_once('.').expect("a kind and a group");
        objects.push(tank(&format!("{group}/v1 Tank")));
        assert!(is_refused(&objects), "{bucket}");
    }

    /// The old ManifestWork would delete an object that the new one keeps and does not own.
    #[test]
    fn keeping_objects_moves_none() {
        let options = "argocd.argoproj.io/sync-options";
        let variants = [
            ("", format!("{options}: Prune=false")),
            ("", "helm.sh/resource-policy: keep".to_owned()),
            ("a: <b>", format!("a: <b>, {options}: 'Delete=confirm,Prune=false'")),
            (
                "argocd.argoproj.io/sync-options: Replace=true",
                format!("{options}: 'Replace=true, Prune=false'"),
            ),
            (
                "kubectl.kubernetes.io/last-applied-configuration: x",
                format!("kubectl.kubernetes.io/last-applied-configuration: x, {options}: Prune=false"),
            ),
        ];
        let objects = |is_kept: bool| -> Vec<String> {
            let objects = (0..20).map(|at: usize| {
                let (plain, kept) = &variants[at % variants.len()];
                annotated("v1 ConfigMap", &format!("c{at}"), if is_kept { kept } else { plain })
            });
            objects.collect()
        };
        let works = |objects: &[String], capacity| arranged(&texts(objects), capacity);
        let (plain, kept) = (objects(false), objects(true));
        for capacity in (300..6000).step_by(7) {
            assert_eq!(works(&plain, capacity), works(&kept, capacity), "{capacity}");
        }
    }

    #[test]
    fn splits_partitions_beyond_the_limit() {
        let objects: Vec<String> = (0..20)
            .map(|at| annotated("v1 ConfigMap", &format!("c{at}"), ""))
            .collect();
        let objects = texts(&objects);
        let partitions = arranged(&objects, 400);
        assert!(partitions.len() > 3, "{partitions:?}");
        assert!(
            partitions.iter().all(|partition| partition.0.starts_with('b')),
            "{partitions:?}"
        );
        assert_eq!(partitions.iter().map(|partition| partition.3.len()).sum::<usize>(), 20);
    }
}
