//! What can be wrong with objects that are each fine by themselves.

use super::object::Object;
use super::order;
use super::policy::{self, Delivered, Rules};
use super::problem::Place;
use super::settings::Settings;
use std::fmt;

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
    let found = objects.iter().map(|object| (object, Origin::File(place(object))));
    let made = created.map(|object| (object, Origin::Setting("create-namespace")));
    let delivered = found.chain(made).map(|(object, place)| Delivered {
        key: &object.key,
        built_in: object.built_in.map(|known| known.scope),
        place,
    });
    let refused = policy::violations(rules, settings.allow_secrets, &settings.clusters, delivered);
    homeless.chain(twice).chain(large).chain(refused).collect()
}

/// Where an object comes from.
enum Origin<'a> {
    File(Place<'a>),
    Setting(&'static str),
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(place) => place.fmt(f),
            Self::Setting(name) => f.write_str(name),
        }
    }
}
