//! `generate`: wraps the manifests of a folder in a ManifestWork per managed cluster.
//!
//! ```text
//! settings → discover → load (documents → objects) → place → order → wrap → print
//! ```
//!
//! A pure function of the files and the settings: it never talks to Kubernetes or the network, because Argo CD keeps what
//! it prints for a day and the sidecar has no token.

mod canonical;
pub mod discover;
pub mod documents;
pub mod glob;
pub mod load;
pub mod names;
pub mod object;
pub mod order;
pub mod place;
pub mod print;
pub mod problem;
pub mod settings;
pub mod wrap;

use object::Object;
use problem::Problems;
use settings::Settings;
use wrap::Work;

/// What became of a folder.
#[derive(Debug)]
pub struct Generated {
    /// The objects that every cluster is given, in the order they are applied.
    objects: Vec<Object>,
    /// What was left out of the folder and might be missed: one line each.
    pub notices: Vec<String>,
}

/// Reads the folder and makes the objects that the works carry.
///
/// # Errors
/// With everything that is wrong with the folder. Nothing is half done: an error means no works at all, because Argo CD
/// removes from a cluster what is no longer printed.
pub fn generate(settings: &Settings) -> Result<Generated, Problems> {
    let found = discover::manifests(&settings.folder, &settings.source_path, &settings.selection)?;
    let mut objects = load::objects(&found.files, settings.selection.max_size)?;
    if objects.is_empty() && !settings.allow_empty {
        return Err(Problems::one(
            "no manifests: the folder has no Kubernetes object in a .yaml, .yml or .json file that include and exclude select; \
             to remove everything from the cluster on purpose, set allow-empty",
        ));
    }
    let place = |object: &Object| object.source.place(&found.files[object.source.file as usize].name);

    let homeless = place::in_namespaces(&mut objects, &settings.cluster_scoped, settings.namespace.as_deref());
    let no_namespace = homeless.iter().map(|&at| {
        let object = &objects[at];
        format!(
            "{}: {}: it names no namespace and the Application has none: set metadata.namespace, or spec.destination.namespace \
             of the Application",
            place(object),
            object.key
        )
    });
    Problems::or(no_namespace.collect(), ())?;

    let twice = order::duplicates(&objects).into_iter().map(|(earlier, later)| {
        format!(
            "{}: {}: it is also in {}: keep one of the two",
            place(later),
            later.key,
            place(earlier)
        )
    });
    Problems::or(twice.collect(), ())?;

    order::for_apply(&mut objects);
    if let Some(limit) = settings.manifest_limit {
        wrap::check_size(&objects, limit).map_err(Problems::one)?;
    }
    Ok(Generated {
        objects,
        notices: found.notices,
    })
}

impl Generated {
    /// The works, one per cluster; none when there is nothing to deliver.
    pub fn works<'a>(&'a self, settings: &'a Settings) -> impl Iterator<Item = Work<'a>> {
        let clusters = if self.objects.is_empty() {
            &[]
        } else {
            settings.clusters.as_slice()
        };
        clusters
            .iter()
            .map(|cluster| Work::new(&settings.name, cluster, &self.objects))
    }
}
