//! Checks across objects that are each valid.

use super::manifestwork::Template;
use super::object::Object;
use super::order;
use super::place::Placed;
use super::policy::{self, Delivered, Rules};
use super::settings::{Settings, Target};
use manifest::problem::Place;

/// Returns all problems of the objects of a folder, one line each. `created` is the object that is in no file, and `place` returns
/// the location of the others.
pub(super) fn objects<'a>(
    placed: &'a [Placed],
    created: Option<&Placed>,
    rules: Option<Rules<'_>>,
    settings: &Settings,
    place: impl Fn(&'a Object) -> Place<'a>,
) -> Vec<String> {
    let objects = || placed.iter().map(|placed| &*placed.object);
    let missing_namespace = placed.iter().filter(|placed| placed.lacks_namespace());
    let missing_namespace = missing_namespace.map(|Placed { object, .. }| {
        format!(
            "{}: {}: it names no namespace and the Application has none: set metadata.namespace, or spec.destination.namespace \
             of the Application",
            place(object),
            object.key
        )
    });
    let twice = order::duplicates(placed).into_iter().map(|(earlier, later)| {
        format!(
            "{}: {}: it is also in {}: keep one of the two",
            place(later),
            later.key,
            place(earlier)
        )
    });
    let limit = settings.manifest_limit.unwrap_or(u64::MAX);
    let large = objects().filter_map(|object| {
        let size = object.size() as u64;
        (size > limit).then(|| {
            format!(
                "{}: {}: it has {size} bytes, and OCM takes at most {limit} in a work: make it smaller, or leave it out with exclude",
                place(object),
                object.key
            )
        })
    });
    let delivered = objects().map(|object| Delivered {
        key: &object.key,
        built_in: object.scope,
        place: place(object),
    });
    let refused = policy::violations(rules, settings.allow_secrets, settings.target.clusters(), delivered);
    let created = rules.and_then(|rules| rules.against_created_namespace(&created?.object.key.name));
    let placement = rules.and_then(|rules| match &settings.target {
        Target::Placement(placement) => rules.against_placement(&placement.to_string()),
        Target::Clusters(_) => None,
    });
    missing_namespace
        .chain(placement)
        .chain(twice)
        .chain(large)
        .chain(refused)
        .chain(created)
        .collect()
}

/// Returns the problem of too many clusters, if any.
pub(super) fn clusters(settings: &Settings) -> Vec<String> {
    let count = settings.target.clusters().len();
    let max = settings.max_clusters.filter(|&max| count as u64 > max);
    let line = max.map(|max| {
        format!(
            "the Application has {count} clusters, and the limit is {max}: use a placement or several Applications, or ask an \
             administrator to raise --max-clusters (ARGOCD_OCM_CMP_MAX_CLUSTERS in the sidecar)"
        )
    });
    line.into_iter().collect()
}

/// Returns the problem that the ManifestWorks together are too large, if any. `deliveries` are the bytes of objects and the
/// number of recipients.
pub(super) fn output(deliveries: impl Iterator<Item = (u64, usize)>, max: Option<u64>) -> Vec<String> {
    let total = deliveries.fold(0_u64, |total, (objects, recipients)| {
        total.saturating_add(objects.saturating_mul(recipients as u64))
    });
    let max = max.filter(|&max| total > max);
    max.map(too_large).into_iter().collect()
}

/// Returns the problem that all ManifestWorks together exceed `max` bytes.
pub(super) fn too_large(max: u64) -> String {
    format!(
        "the works of all clusters have more than {max} bytes together: deliver fewer objects, use a placement or several \
         Applications, or ask an administrator to raise --max-output (ARGOCD_OCM_CMP_MAX_OUTPUT in the sidecar)"
    )
}

/// Returns a problem for each ManifestWork that OCM rejects because of its size. Only those of a placement can be too large,
/// because a progressive rollout is not split.
pub(super) fn works(works: &[Template], settings: &Settings) -> Vec<String> {
    let (Target::Placement(_), Some(limit)) = (&settings.target, settings.manifest_limit) else {
        return Vec::new();
    };
    let large = works.iter().map(Template::weight).filter(|&weight| weight > limit);
    large
        .map(|weight| {
            format!(
                "the objects have {weight} bytes, and OCM takes at most {limit} in a work: a progressive rollout goes by whole works, so \
                 nothing is split: set rollout to All, or deliver them by several Applications"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_output_beyond_the_limit() {
        let told = output([(8_700_000, 500)].into_iter(), Some(200_000_000));
        assert!(told.len() == 1 && told[0].contains("200000000 bytes"), "{told:?}");
        assert!(told[0].contains("ARGOCD_OCM_CMP_MAX_OUTPUT"), "{told:?}");
        assert_eq!(
            output([(8_700_000, 20), (26_000_000, 1)].into_iter(), Some(200_000_000)),
            [""; 0]
        );
        assert_eq!(output([(8_700_000, 500)].into_iter(), None), [""; 0]);
        assert_eq!(output([(u64::MAX, 500), (u64::MAX, 1)].into_iter(), Some(1)).len(), 1);
    }
}
