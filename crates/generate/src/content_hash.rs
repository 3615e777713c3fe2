//! Content hashes, which limit health to objects that the current ManifestWork has applied.
//!
//! OCM's agent evaluates the objects of a ManifestWork as soon as it receives a change, possibly before applying it; the
//! resulting status describes the old objects but has the new generation, and nothing in it shows that it is stale. If a later
//! wave or another cluster waits for the health, it would continue too early. So the objects of such a ManifestWork carry an
//! annotation with a hash of their content, and its rules accept only objects with a known hash.

use super::health_rules;
use super::hooks::Role;
use super::manifest_configs::WorkOptions;
use super::partition::Partition;
use super::place::Placed;
use super::update_strategy::Strategy;
use ocm::hash;

/// The number of hex digits of a content hash: 40 bits are enough for the few contents of one object.
pub const HASH_DIGITS: usize = 10;

/// The annotation with the hash of the object's content.
pub const CONTENT: &str = "argocd-ocm-cmp.github.io/content-hash";

/// Adds the annotation to the objects of ManifestWorks that a later wave or another cluster waits for.
pub fn mark(partitions: &mut [Partition], options: &WorkOptions) {
    let last = partitions
        .iter()
        .filter(|partition| partition.hook.is_none())
        .map(|partition| partition.wave)
        .max();
    for partition in partitions {
        let waited_for = partition.hook.is_none() && Some(partition.wave) != last || options.goes_by_cluster();
        if !waited_for || !options.condition_rules {
            continue;
        }
        let objects = &mut partition.objects;
        // For a rollout across clusters all objects share one hash: the agent does not evaluate an added object at first, and the
        // changed hash of the existing objects shows that the ManifestWork is not applied yet.
        let of_all = options
            .goes_by_cluster()
            .then(|| hash::hash(objects.iter().flat_map(|placed| placed.object.pieces()), HASH_DIGITS));
        for placed in objects {
            let kind = &placed.object.key.kind;
            let is_judged = health_rules::of(&kind.group, &kind.kind, kind.built_in().is_none()).is_some();
            if is_judged && placed.role != Role::Run && Strategy::of(placed, options.strategy).applies() {
                let object = &mut placed.object;
                let hash = of_all
                    .clone()
                    .unwrap_or_else(|| hash::hash(object.pieces(), HASH_DIGITS));
                let size = object.size() as u64;
                object.annotate(CONTENT, &hash);
                object.content = Some(Box::new(hash));
                partition.size += object.size() as u64 - size;
            }
        }
    }
}

/// Returns CEL that is true for an object of this kind with the content of the ManifestWork; `None` if its objects have no
/// content hash.
#[must_use]
pub fn test(objects: &[&Placed]) -> Option<String> {
    let mut hashes: Vec<&str> = objects
        .iter()
        .filter_map(|placed| placed.object.content.as_deref().map(String::as_str))
        .collect();
    hashes.dedup();
    // One string instead of a list: it is shorter and cheaper to search.
    (!hashes.is_empty()).then(|| {
        format!(
            "'{}'.contains(object.metadata.?annotations[?'{CONTENT}'].orValue('none'))",
            hashes.join(" ")
        )
    })
}
