//! What can be wrong with objects that are each fine by themselves.

use super::object::Object;
use super::order;
use super::problem::Place;
use super::settings::Settings;

/// Everything that is wrong with the objects of a folder: one line each, none when they can be delivered. `homeless` are the
/// places of those that need a namespace, and `place` tells where an object comes from.
pub(super) fn objects<'a>(
    objects: &'a [Object],
    homeless: &[usize],
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
    let secrets = objects.iter().filter(|object| is_secret(object) && !settings.allow_secrets).map(|object| {
        format!(
            "{}: {}: a Secret in a work can be read by everyone who sees the Application in Argo CD: deliver a SealedSecret or an \
             ExternalSecret instead, or set allow-secrets",
            place(object),
            object.key
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
    homeless.chain(twice).chain(secrets).chain(large).collect()
}

fn is_secret(object: &Object) -> bool {
    object.key.kind.group.is_empty() && &*object.key.kind.kind == "Secret"
}
