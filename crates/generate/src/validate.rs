//! Checks across objects that are each valid.

use super::discover;
use super::ignored_fields;
use super::manifest_configs::WorkOptions;
use super::manifestwork::Template;
use super::object::Object;
use super::order;
use super::partition::Partition;
use super::placed::Placed;
use super::policy::{self, DeliveredObject, Rules};
use super::settings::{DeliveryTarget, Recipient, Settings};
use super::source::FolderKind;
use super::update_strategy::UpdateStrategy;
use manifest::problem::Problems;
use manifest::text::and_more_objects;
use std::collections::HashMap;

/// Checks that there are objects of the `read` ones from a folder of this type, `None` for standard input; `overlaid` is a cluster with
/// them, if others have other ones.
pub(super) fn not_empty(
    placed: &[Placed],
    read: usize,
    kind: Option<FolderKind>,
    overlaid: Option<Recipient<'_>>,
    settings: &Settings,
) -> Result<(), Problems> {
    if !placed.is_empty() || settings.allow_empty {
        return Ok(());
    }
    let whose = overlaid.map_or_else(String::new, |cluster| format!(" for cluster {cluster}"));
    let why = match kind {
        _ if read > 0 => "every object is a hook that is never applied, such as a test of a chart",
        None => "standard input has no Kubernetes object",
        Some(FolderKind::Helm) => "the chart renders no Kubernetes object: correct its values",
        Some(FolderKind::Kustomize) => "the kustomization has no Kubernetes object: correct its resources",
        Some(FolderKind::Directory) => {
            "the folder has no Kubernetes object in a .yaml, .yml or .json file that include and exclude select"
        }
    };
    Err(Problems::one(format!(
        "no manifests{whose}: {why}; to remove everything from the cluster on purpose, set allow-empty"
    )))
}

/// Checks the objects of a folder; `created` is the Namespace that is in no file, and `files` are the names of the files.
pub(super) fn objects(
    placed: &[Placed],
    created: Option<&Placed>,
    files: &[String],
    rules: Option<Rules<'_>>,
    options: &WorkOptions,
    settings: &Settings,
) -> Result<(), Problems> {
    let location = |object: &Object| object.source.location(&files[object.source.file as usize]);
    let named = |object: &Object| format!("{}: {}", location(object), object.key);
    let objects = || placed.iter().map(|placed| &*placed.object);
    let missing_namespace = placed.iter().filter(|placed| placed.lacks_namespace());
    let missing_namespace = missing_namespace.map(|Placed { object, .. }| {
        format!(
            "{}: it names no namespace and the Application has none: set metadata.namespace, or spec.destination.namespace of the \
             Application",
            named(object)
        )
    });
    let twice = order::duplicates(placed).into_iter().map(|(earlier, later)| {
        format!(
            "{}: it is also in {}: keep one of the two",
            named(later),
            location(earlier)
        )
    });
    let limit = settings.manifest_limit.unwrap_or(u64::MAX);
    let large = objects().filter_map(|object| {
        let size = object.size() as u64;
        let remedy = match &object.defines {
            Some(_) if !settings.source.reading.strips_descriptions => "set strip-crd-descriptions",
            _ => SMALLER,
        };
        (size > limit).then(|| {
            format!(
                "{}: it has {size} bytes, and OCM accepts at most {limit} in a work: {remedy}",
                named(object)
            )
        })
    });
    let repeated = placed.iter().filter_map(|placed| {
        let object = &placed.object;
        let repeated = object.repeated.as_deref()?;
        let is_applied = UpdateStrategy::choose(placed, options.strategy) == UpdateStrategy::ServerSideApply;
        is_applied.then(|| {
            format!(
                "{}: {repeated} twice, which server-side apply refuses: keep one of the two",
                named(object)
            )
        })
    });
    let excess = objects().filter_map(|object| {
        let excess = ignored_fields::excess(object, options)?;
        Some(format!("{}: {excess}", named(object)))
    });
    let delivered = objects().map(|object| DeliveredObject::new(object, location(object)));
    let refused = policy::violations(rules, settings.allow_secrets, settings.target.clusters(), delivered);
    let created = rules.and_then(|rules| rules.against_created_namespace(&created?.object.key.name));
    let placement = rules.and_then(|rules| match &settings.target {
        DeliveryTarget::Placement(placement) => rules.against_placement(&placement.to_string()),
        DeliveryTarget::Clusters(_) => None,
    });
    let problems = missing_namespace
        .chain(placement)
        .chain(twice)
        .chain(large)
        .chain(repeated)
        .chain(excess)
        .chain(refused)
        .chain(created);
    Problems::or(problems.collect(), ())
}

/// Checks that the ManifestWorks have different names: Argo CD delivers only one of two with the same name, and the agent
/// deletes the objects of the other. A name contains the kind in lower case, for example.
pub(super) fn work_names(partitions: &[Partition], files: &[String]) -> Result<(), Problems> {
    let location = |object: &Object| object.source.location(&files[object.source.file as usize]);
    let mut known: HashMap<&str, &Object> = HashMap::new();
    let mut problems = Vec::new();
    for Partition { suffix, objects, .. } in partitions {
        let object = &*objects[0].object;
        if let Some(earlier) = known.insert(suffix, object) {
            problems.push(format!(
                "{}: {}: its work would have the same name as the work of {} in {}: correct the kind of one of the two, or deliver \
                 them with two Applications",
                location(object),
                object.key,
                earlier.key,
                location(earlier)
            ));
        }
    }
    Problems::or(problems, ())
}

/// Checks the number of clusters.
pub(super) fn clusters(settings: &Settings) -> Result<(), Problems> {
    let count = settings.target.clusters().len();
    match settings.max_clusters.filter(|&max| count as u64 > max) {
        None => Ok(()),
        Some(max) => Err(Problems::one(format!(
            "the Application has {count} clusters, and the limit is {max}: use a placement or several Applications, or ask an \
             administrator to raise --max-clusters (ARGOCD_OCM_CMP_MAX_CLUSTERS in the sidecar)"
        ))),
    }
}

/// Checks that no file of the folder changes the settings of the Application, if the platform refuses that. Returns a warning for each
/// such file outside Argo CD, which applies them there.
pub(super) fn overrides(settings: &Settings) -> Result<Vec<String>, Problems> {
    let application = settings.application.as_deref();
    let is_shown = settings.refuses_overrides || application.is_none();
    let Some(folder) = settings.source.folder.as_deref().filter(|_| is_shown) else {
        return Ok(Vec::new());
    };
    let files = discover::source_overrides(folder, application.or(Some(settings.name.application())));
    let line = |file: String| {
        let why = if settings.refuses_overrides {
            "and ARGOCD_OCM_CMP_SOURCE_OVERRIDES refuses that: move them into spec.source of the Application, and remove the file"
        } else {
            "which are not applied here: pass them as flags"
        };
        format!("{file}: Argo CD takes settings of the Application from it, {why}")
    };
    let lines: Vec<String> = files.into_iter().map(line).collect();
    if settings.refuses_overrides {
        return Problems::or(lines, Vec::new());
    }
    Ok(lines)
}

/// The remedy for a large object. The setting `exclude` does not apply to charts and kustomizations.
pub(super) const SMALLER: &str =
    "make it smaller, or leave it out: exclude its file, or what renders it in the chart or kustomization";

/// The entries of a ManifestWork, without names, that Argo CD stores in the Application: of the list of resources, and of the result of
/// a sync.
const LISTED: [&str; 2] = [
    concat!(
        r#"{"group":"work.open-cluster-management.io","kind":"ManifestWork","name":"","namespace":"","#,
        r#""status":"Synced","version":"v1"},"#,
    ),
    concat!(
        r#"{"group":"work.open-cluster-management.io","hookPhase":"Running","kind":"ManifestWork","#,
        r#""message":"manifestwork.work.open-cluster-management.io/ created","name":"","namespace":"","#,
        r#""status":"Synced","syncPhase":"Sync","version":"v1"},"#,
    ),
];

/// The maximum number of bytes of an object in etcd. Argo CD retries the write of a larger Application forever (`setOperationState` in
/// its `controller`), and meanwhile has one worker less for other syncs.
const APPLICATION_MAX: u64 = 3 << 19;

/// Returns the number of bytes that Argo CD stores at least of the ManifestWorks of this name for clusters whose names have this number of
/// bytes together.
pub(super) fn listed_size(name: &str, clusters: usize, cluster_names: u64) -> u64 {
    let entries: usize = LISTED.iter().map(|entry| entry.len() + name.len()).sum();
    // The message of the sync has the name, too.
    let each = (entries + name.len()) as u64;
    each * clusters as u64 + LISTED.len() as u64 * cluster_names
}

/// Checks the number of bytes that Argo CD stores of all ManifestWorks, and that they have as JSON lines, which Argo CD receives in one
/// message of 200 MiB.
pub(super) fn output(works: u64, stored: u64, bytes: u64, max: Option<u64>) -> Result<(), Problems> {
    if max.is_some() && stored > APPLICATION_MAX {
        return Err(Problems::one(format!(
            "the Application has {works} works, of which Argo CD stores {stored} bytes in it, and the limit of etcd is {APPLICATION_MAX}: use \
             fewer waves, a placement, or several Applications"
        )));
    }
    within(bytes, max)
}

/// Returns the number of bytes that the objects of a delivery have for all recipients together.
fn printed((bytes, recipients): (u64, usize)) -> u64 {
    bytes.saturating_mul(recipients as u64)
}

/// Checks the number of bytes of all ManifestWorks together.
pub(super) fn within(bytes: u64, max: Option<u64>) -> Result<(), Problems> {
    match max.filter(|&max| bytes > max) {
        None => Ok(()),
        Some(max) => Err(Problems::one(format!(
            "the works of all clusters have more than {max} bytes together: deliver fewer objects, use a placement or several \
             Applications, or ask an administrator to raise --max-output (ARGOCD_OCM_CMP_MAX_OUTPUT in the sidecar)"
        ))),
    }
}

/// The number of bytes of the same objects for several clusters from which a placement is much faster: see docs/scaling.md.
const REPEATED_MAX: u64 = 10_000_000;

/// Returns a warning if many clusters get the same objects; `deliveries` are the bytes of objects and the number of recipients.
pub(super) fn repeated_output(deliveries: &[(u64, usize)]) -> Option<String> {
    let shared = deliveries.iter().copied().filter(|&(_, recipients)| recipients > 1);
    let largest = shared.max_by_key(|&delivery| printed(delivery))?;
    let (bytes, recipients) = largest;
    let total = printed(largest);
    (total > REPEATED_MAX).then(|| {
        format!(
            "{recipients} clusters get the same objects of {bytes} bytes each, so Argo CD renders, caches and compares {total} bytes: use \
             a placement, whose objects it compares once"
        )
    })
}

/// Returns a warning for each annotation of Argo CD that has no effect, with the first object that has it.
pub(super) fn annotations_without_effect<'a>(objects: impl Iterator<Item = &'a Object>) -> Vec<String> {
    let mut without_effect: Vec<(&str, &Object, usize)> = Vec::new();
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for object in objects {
        for warning in object
            .annotations
            .iter()
            .flat_map(|annotations| &annotations.without_effect)
        {
            if let Some(&at) = positions.get(&**warning) {
                without_effect[at].2 += 1;
            } else {
                positions.insert(warning, without_effect.len());
                without_effect.push((warning, object, 0));
            }
        }
    }
    let line = |(warning, object, more): (&str, &Object, usize)| {
        format!("{}{}: {warning}", object.key, and_more_objects(more))
    };
    without_effect.into_iter().map(line).collect()
}

/// The maximum number of bytes of an object in etcd, whose default is 1.5 MiB for a request.
const STORED_MAX: u64 = 1_500_000;

/// Checks the size of each ManifestWork as OCM and etcd count it. With the default limits, only a progressive rollout can be too large,
/// because it is not split.
pub(super) fn works(works: &[Template], settings: &Settings) -> Result<(), Problems> {
    let Some(limit) = settings.manifest_limit else {
        return Ok(());
    };
    // Whoever lets OCM accept more than etcd does has raised the limit of etcd, too.
    let stored_max = STORED_MAX.max(limit);
    let remedy = if settings.target.is_progressive() {
        "a progressive rollout cannot be split into several works: set rollout to All, or deliver them with several Applications"
    } else {
        "deliver them with several Applications, or ask an administrator to lower --work-size (ARGOCD_OCM_CMP_WORK_SIZE in the sidecar)"
    };
    let problem = |work: &Template| {
        let (size, stored) = (work.size(), work.stored_size());
        if size > limit {
            let bytes = format!("the objects have {size} bytes, and OCM accepts at most {limit} in a work");
            return Some(format!("{bytes}: {remedy}"));
        }
        (stored > stored_max).then(|| {
            let count = work.objects.len();
            format!(
                "a work of {count} objects has {stored} bytes with its status, and etcd accepts at most {stored_max}: {remedy}"
            )
        })
    };
    Problems::or(works.iter().filter_map(problem).collect(), ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Arguments;

    #[test]
    fn warns_of_overrides_outside_argo_cd_only() {
        let folder = tempfile::TempDir::new().expect("a folder");
        std::fs::write(folder.path().join(".argocd-source-shop.yaml"), "").expect("a file");
        let warnings = |name: &str| {
            let env = [(name, "shop"), ("TARGET_CLUSTER", "eu1")];
            let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let args = Arguments {
                folder: Some(folder.path().to_owned()),
                ..Arguments::default()
            };
            overrides(&Settings::resolve(args, &env).expect("valid settings")).expect("no problem")
        };
        assert_eq!(warnings("ARGOCD_APP_NAME"), [""; 0]);
        let warnings = warnings("ARGOCD_ENV_NAME");
        assert!(
            warnings.len() == 1 && warnings[0].starts_with(".argocd-source-shop.yaml: "),
            "{warnings:?}"
        );
    }

    #[test]
    fn names_the_cause_of_no_objects() {
        let env = [("ARGOCD_APP_NAME", "shop"), ("TARGET_CLUSTER", "eu1")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let settings = Settings::resolve(Arguments::default(), &env).expect("valid settings");
        for (read, kind, cause) in [
            (0, None, "standard input has no Kubernetes object; "),
            (
                0,
                Some(FolderKind::Helm),
                "the chart renders no Kubernetes object: correct its values; ",
            ),
            (
                0,
                Some(FolderKind::Kustomize),
                "the kustomization has no Kubernetes object: ",
            ),
            (
                0,
                Some(FolderKind::Directory),
                "the folder has no Kubernetes object in a .yaml, .yml or .json file ",
            ),
            (
                1,
                Some(FolderKind::Helm),
                "every object is a hook that is never applied, ",
            ),
        ] {
            let problems = not_empty(&[], read, kind, None, &settings)
                .expect_err(cause)
                .to_string();
            assert!(
                problems.starts_with(&format!("error: no manifests: {cause}")),
                "{problems}"
            );
        }
    }

    #[test]
    fn warns_of_large_output_that_clusters_share() {
        for few in [
            vec![],
            vec![(20_000_000, 1)],
            vec![(10_000, 1000)],
            vec![(9_000, 1000), (5_000_000, 1)],
        ] {
            assert_eq!(repeated_output(&few), None, "{few:?}");
        }
        assert_eq!(
            repeated_output(&[(100, 2), (20_000, 1000)]).as_deref(),
            Some(
                "1000 clusters get the same objects of 20000 bytes each, so Argo CD renders, caches and compares 20000000 bytes: use a \
                 placement, whose objects it compares once"
            )
        );
    }

    #[test]
    fn refuses_output_beyond_the_limit() {
        let refused = |stored, bytes, max| {
            let problems = output(3000, stored, bytes, max).err();
            problems.map_or(Vec::new(), Problems::into_lines)
        };
        let message = refused(500, 200_000_001, Some(200_000_000));
        assert!(
            message.len() == 1 && message[0].contains("200000000 bytes"),
            "{message:?}"
        );
        assert!(message[0].contains("ARGOCD_OCM_CMP_MAX_OUTPUT"), "{message:?}");
        let message = refused(APPLICATION_MAX + 1, 1, Some(200_000_000));
        assert!(message.len() == 1 && message[0].contains("3000 works"), "{message:?}");
        assert_eq!(refused(APPLICATION_MAX, 200_000_000, Some(200_000_000)), [""; 0]);
        assert_eq!(refused(APPLICATION_MAX + 1, u64::MAX, None), [""; 0]);
    }
}
