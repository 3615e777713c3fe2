//! Which objects stand together in a work, and in which sync wave of the hub's each work comes.
//!
//! Works are cut by what the hub or the agent can only do for a whole work:
//!
//! - the hub applies wave by wave and waits until the works of a wave are healthy, so each phase and wave has its own;
//! - the agent stops pruning a whole work while it cannot tell the resource of one object in it, so each kind that a cluster
//!   may lack has its own;
//! - the agent stops applying a whole work when a run in it is complete, so each run has its own;
//! - what does not fit is cut by [`split`].

use super::object::{Object, Role};
use super::order::{self, WAVE_MAX};
use super::split;
use super::wishes::Phase;
use std::ops::Range;

/// The objects of one work.
#[derive(Debug)]
pub struct Part {
    /// What tells its work from the others of the Application; empty for the one that has no need of it.
    pub suffix: String,
    /// The sync wave of its work on the hub.
    pub wave: i32,
    /// The hook of Argo CD's that its work is, where the hub has to run it.
    pub hook: Option<Phase>,
    /// Its objects among all, in the order they are applied.
    pub objects: Range<usize>,
    /// How many bytes they have together.
    pub size: u64,
}

/// How far the phases are apart in waves of the hub.
const PHASE: i32 = 2 * (WAVE_MAX + 1);

/// The phase for which a wave of the hub's stands, and the wave in that.
#[must_use]
pub fn phase_of(wave: i32) -> (Phase, i32) {
    let phases = wave.saturating_add(PHASE / 2).div_euclid(PHASE);
    let phase = match phases {
        ..0 => Phase::PreSync,
        0 => Phase::Sync,
        1.. => Phase::PostSync,
    };
    (phase, wave - phases * PHASE)
}

/// Brings objects into the order for applying and arranges them in parts of at most `capacity` bytes. An object that is
/// larger has a part of its own.
#[must_use]
pub fn parts(objects: &mut [Object], capacity: u64) -> Vec<Part> {
    order::for_apply(objects);
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(first) = objects.get(start) {
        let together = objects[start..]
            .iter()
            .take_while(|object| order::stand_together(first, object))
            .count();
        let end = start + together;
        let words = words(first);
        let (wave, hook) = match first.phase {
            Phase::PreSync => (first.wave - PHASE, None),
            Phase::Sync => (first.wave, None),
            Phase::PostSync => (first.wave + PHASE, None),
            other => (first.wave, Some(other)),
        };
        for (bucket, size, length) in cut(&mut objects[start..end], capacity) {
            let bucket = (!bucket.is_empty()).then(|| format!("b{bucket}"));
            parts.push(Part {
                suffix: words.iter().cloned().chain(bucket).collect::<Vec<_>>().join("-"),
                wave,
                hook,
                objects: start..start + length,
                size,
            });
            start += length;
        }
    }
    parts
}

/// Adds a part with a Namespace, before all others.
pub fn add_namespace(namespace: Object, objects: &mut Vec<Object>, parts: &mut Vec<Part>) {
    let first = parts
        .iter()
        .filter(|part| part.hook.is_none())
        .map(|part| part.wave)
        .min();
    parts.push(Part {
        suffix: "namespace".to_owned(),
        wave: first.map_or(0, |wave| wave - 1),
        hook: None,
        objects: objects.len()..objects.len() + 1,
        size: namespace.size() as u64,
    });
    objects.push(namespace);
}

/// What names the part that an object is in, word by word: nothing for ordinary objects of wave 0.
fn words(object: &Object) -> Vec<String> {
    let mut words = Vec::new();
    if object.role != Role::Ordinary {
        words.push(object.phase.name().to_ascii_lowercase());
    }
    if object.wave != 0 {
        words.push(format!("wave{}", object.wave));
    }
    let kind = &object.key.kind;
    if object.role == Role::Run {
        words.push(object.key.name.to_string());
    } else if !object.everywhere {
        let group = if kind.group.is_empty() { "core" } else { &kind.group };
        words.push(format!("{}.{group}", kind.kind.to_ascii_lowercase()));
    }
    words
}

/// Puts objects that stand together bucket by bucket, and gives the prefix, the bytes and the number of objects of each.
fn cut(objects: &mut [Object], capacity: u64) -> Vec<(String, u64, usize)> {
    let sizes: Vec<u64> = objects.iter().map(Object::weight).collect();
    let total = sizes.iter().sum();
    if total <= capacity {
        return vec![(String::new(), total, objects.len())];
    }
    let items: Vec<(u64, u64)> = objects
        .iter()
        .map(|object| split::hash(&object.key))
        .zip(sizes)
        .collect();
    let buckets = split::buckets(&items, capacity);
    let size = |these: &[usize]| these.iter().map(|&at| items[at].1).sum();
    let cuts = buckets
        .iter()
        .map(|bucket| (bucket.prefix.clone(), size(&bucket.items), bucket.items.len()))
        .collect();
    bring_to_order(objects, buckets.into_iter().flat_map(|bucket| bucket.items).collect());
    cuts
}

/// Brings items to a new order in place: to each place the item that was at `from` there. Another list of all the objects of
/// a large folder would be most of the memory that is needed.
fn bring_to_order<T>(items: &mut [T], mut from: Vec<usize>) {
    for at in 0..items.len() {
        // What stood before `at` has been swapped away, to where it was swapped with.
        let mut source = from[at];
        while source < at {
            source = from[source];
        }
        from[at] = source;
        items.swap(at, source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::hooks;
    use crate::generate::object::tests::object;

    fn arranged(yaml: &[&str], capacity: u64) -> Vec<(String, i32, Option<Phase>, Vec<String>)> {
        let objects = yaml.iter().map(|yaml| object(yaml)).collect();
        let mut objects = hooks::in_phases(objects);
        parts(&mut objects, capacity)
            .into_iter()
            .map(|part| {
                let keys = objects[part.objects]
                    .iter()
                    .map(|object| object.key.to_string())
                    .collect();
                (part.suffix, part.wave, part.hook, keys)
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
    fn ordinary_objects_of_wave_0_stand_in_one_part_without_a_suffix() {
        let parts = arranged(
            &[
                &annotated("v1 Service", "web", ""),
                &annotated("apps/v1 Deployment", "web", ""),
            ],
            10_000,
        );
        assert_eq!(
            parts,
            [(
                String::new(),
                0,
                None,
                vec!["Service web".to_owned(), "Deployment.apps web".to_owned()]
            )]
        );
    }

    #[test]
    fn phases_and_waves_become_waves_of_the_hub() {
        let wave = |wave: i64| format!("argocd.argoproj.io/sync-wave: '{wave}'");
        let hook =
            |hook: &str, wave: i32| format!("argocd.argoproj.io/hook: {hook}, argocd.argoproj.io/sync-wave: '{wave}'");
        let parts = arranged(
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
        let parts: Vec<_> = parts
            .into_iter()
            .map(|(suffix, wave, hook, _)| (suffix, wave, hook))
            .collect();
        let part = |suffix: &str, wave, hook| (suffix.to_owned(), wave, hook);
        assert_eq!(
            parts,
            [
                part("presync-wave3", -1_999_997, None),
                part("wave-7", -7, None),
                part("", 0, None),
                part("sync", 0, None),
                part("wave7", 7, None),
                part("postsync-wave-999999", 1_000_001, None),
                part("syncfail", 0, Some(Phase::SyncFail)),
            ]
        );
    }

    #[test]
    fn what_a_hook_needs_comes_with_the_hooks() {
        let hook = "argocd.argoproj.io/hook: PreSync";
        let account = annotated("v1 ServiceAccount", "a", hook).replace("name: a,", "name: a, namespace: shop,");
        let parts = arranged(
            &[
                &account,
                "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
                &annotated("v1 ConfigMap", "a", ""),
            ],
            10_000,
        );
        let parts: Vec<(&str, &[String])> = parts.iter().map(|part| (part.0.as_str(), part.3.as_slice())).collect();
        assert_eq!(
            parts,
            [
                (
                    "presync",
                    &["Namespace shop".to_owned(), "ServiceAccount shop/a".to_owned()][..]
                ),
                ("", &["ConfigMap a".to_owned()]),
            ]
        );
    }

    #[test]
    fn kinds_that_a_cluster_may_lack_stand_apart_each_by_itself() {
        let parts = arranged(
            &[
                &annotated("v1 ConfigMap", "a", ""),
                &annotated("cert-manager.io/v1 Certificate", "a", ""),
                &annotated("cert-manager.io/v1 Issuer", "a", ""),
                &annotated("networking.k8s.io/v1beta1 Ingress", "a", ""),
            ],
            10_000,
        );
        let suffixes: Vec<_> = parts.iter().map(|part| part.0.as_str()).collect();
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
    fn items_are_brought_to_a_new_order() {
        for from in [vec![0, 1, 2, 3], vec![3, 2, 1, 0], vec![1, 2, 3, 0], vec![2, 0, 3, 1]] {
            let mut items = ['a', 'b', 'c', 'd'];
            let wanted: Vec<char> = from.iter().map(|&at| items[at]).collect();
            bring_to_order(&mut items, from);
            assert_eq!(items.as_slice(), wanted);
        }
    }

    #[test]
    fn each_run_stands_alone() {
        let hook = "argocd.argoproj.io/hook: PreSync";
        let parts = arranged(
            &[
                &annotated("batch/v1 Job", "a", hook),
                &annotated("batch/v1 Job", "b", hook),
            ],
            10_000,
        );
        assert_eq!(parts.len(), 2);
        assert!(parts[0].0.starts_with("presync-a-"), "{parts:?}");
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let objects: Vec<String> = (0..20)
            .map(|at| annotated("v1 ConfigMap", &format!("c{at}"), ""))
            .collect();
        let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
        let parts = arranged(&objects, 400);
        assert!(parts.len() > 3, "{parts:?}");
        assert!(parts.iter().all(|part| part.0.starts_with('b')), "{parts:?}");
        assert_eq!(parts.iter().map(|part| part.3.len()).sum::<usize>(), 20);
    }
}
