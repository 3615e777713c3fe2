//! What can be wrong with objects that are each fine by themselves.

use super::arrange::Part;
use super::object::Object;
use super::order;
use super::policy::{self, Delivered, Rules};
use super::problem::Place;
use super::settings::{Settings, Target};

/// Everything that is wrong with the objects of a folder: one line each, none when they can be delivered. `homeless` are the
/// places of those that need a namespace, `created` is the one that no file has, and `place` tells where the others come from.
pub(super) fn objects<'a>(
    objects: &'a [Object],
    created: Option<&'a Object>,
    homeless: &[usize],
    rules: Option<Rules<'_>>,
    settings: &Settings,
    place: impl Fn(&'a Object) -> Place<'a>,
) -> Vec<String> {
    let homeless = homeless.iter().map(|&at| {
        format!(
            "{}: {}: it names no namespace and the Application has none: set metadata.namespace, or spec.destination.namespace \
             of the Application",
            place(&objects[at]),
            objects[at].key
        )
    });
    let twice = order::duplicates(objects).into_iter().map(|(earlier, later)| {
        format!(
            "{}: {}: it is also in {}: keep one of the two",
            place(later),
            later.key,
            place(earlier)
        )
    });
    let limit = settings.manifest_limit.unwrap_or(u64::MAX);
    let large = objects.iter().filter_map(|object| {
        let size = object.size() as u64;
        (size > limit).then(|| {
            format!(
                "{}: {}: it has {size} bytes, and OCM takes at most {limit} in a work: make it smaller, or leave it out with exclude",
                place(object),
                object.key
            )
        })
    });
    let delivered = objects.iter().map(|object| Delivered {
        key: &object.key,
        built_in: object.scope,
        place: place(object),
    });
    let refused = policy::violations(rules, settings.allow_secrets, settings.target.clusters(), delivered);
    let created = rules.and_then(|rules| rules.against_created_namespace(&created?.key.name));
    let placement = rules.and_then(|rules| match &settings.target {
        Target::Placement(placement) => rules.against_placement(&placement.to_string()),
        Target::Clusters(_) => None,
    });
    homeless
        .chain(placement)
        .chain(twice)
        .chain(large)
        .chain(refused)
        .chain(created)
        .collect()
}

/// What keeps works from being taken by OCM because of their size: only a placement's can be too large, which are not split.
pub(super) fn parts(parts: &[Part], settings: &Settings) -> Vec<String> {
    let (Target::Placement(_), Some(limit)) = (&settings.target, settings.manifest_limit) else {
        return Vec::new();
    };
    let large = parts.iter().filter(|part| part.size > limit);
    large
        .map(|part| {
            format!(
                "the objects have {} bytes, and OCM takes at most {limit} in a work: a progressive rollout goes by whole works, so \
                 nothing is split: set rollout to All, or deliver them by several Applications",
                part.size
            )
        })
        .collect()
}
