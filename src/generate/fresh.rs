//! Verdicts on what a work has applied, not on what was there before.
//!
//! OCM's agent judges the objects of a work as soon as it hears of a change, maybe before it has applied it; what it then says
//! of the old objects bears the new generation, and nothing in the status tells that it is stale. Where a later wave waits
//! for the verdict, or another cluster, that would let it go too early. So the objects of such a work carry an annotation with a hash of their
//! content, and its rules believe only in an object with a hash that they know.

use super::arrange::Part;
use super::behaviour;
use super::configure::Wanted;
use super::names;
use super::object::{Object, Role};
use super::strategy::Strategy;

/// How many hex digits of a hash tell an object's contents apart: 40 bits, of which one object has few.
pub const HASH_DIGITS: usize = 10;

/// Holds a hash of the object's content.
pub const CONTENT: &str = "argocd-ocm-cmp.github.io/content";

/// Marks the objects of the works on which a later wave waits, or another cluster.
pub fn mark(objects: &mut [Object], parts: &mut [Part], wanted: &Wanted) {
    let last = parts
        .iter()
        .filter(|part| part.hook.is_none())
        .map(|part| part.wave)
        .max();
    for part in parts {
        let waited_for = part.hook.is_none() && Some(part.wave) != last || wanted.goes_by_cluster();
        if !waited_for || !wanted.condition_rules {
            continue;
        }
        let objects = &mut objects[part.objects.clone()];
        // An object that a change adds is not judged at first. Where that matters, the others tell by one hash that there is
        // something to wait for.
        let of_all = wanted
            .goes_by_cluster()
            .then(|| names::hash(objects.iter().flat_map(Object::pieces), HASH_DIGITS));
        for object in objects {
            let kind = &object.key.kind;
            let is_judged = behaviour::of(&kind.group, &kind.kind, kind.built_in().is_none()).is_some();
            if is_judged && object.role != Role::Run && Strategy::of(object, wanted.strategy).applies() {
                let hash = of_all
                    .clone()
                    .unwrap_or_else(|| names::hash(object.pieces(), HASH_DIGITS));
                let size = object.size() as u64;
                object.annotate(CONTENT, &hash);
                object.content = Some(Box::new(hash));
                part.size += object.size() as u64 - size;
            }
        }
    }
}

/// CEL that is true for an object of this kind as the work has it; `None` where its objects are not marked.
#[must_use]
pub fn test(objects: &[&Object]) -> Option<String> {
    let mut hashes: Vec<&str> = objects
        .iter()
        .filter_map(|object| object.content.as_deref().map(String::as_str))
        .collect();
    hashes.dedup();
    // One text instead of a list: it is shorter, and searched at less cost.
    (!hashes.is_empty()).then(|| {
        format!(
            "'{}'.contains(object.metadata.?annotations[?'{CONTENT}'].orValue('none'))",
            hashes.join(" ")
        )
    })
}
