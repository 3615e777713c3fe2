//! `generate`: wraps the manifests of a folder in `ManifestWork`s per managed cluster.
//!
//! ```text
//! settings → discover → load (documents → objects) → hooks → place → policy → order → arrange (split) → wrap → print
//! ```
//!
//! A pure function of the files and the settings: it never talks to Kubernetes or the network, because Argo CD keeps what
//! it prints for a day and the sidecar has no token.

pub mod arrange;
pub mod behaviour;
mod canonical;
mod check;
pub mod configure;
pub mod discover;
pub mod documents;
pub mod fresh;
pub mod glob;
pub mod hooks;
pub mod kinds;
pub mod load;
pub mod names;
pub mod object;
pub mod order;
pub mod place;
pub mod policy;
pub mod print;
pub mod problem;
pub mod settings;
pub mod split;
pub mod strategy;
pub mod wishes;
pub mod wrap;

use configure::Plurals;
use object::Object;
use problem::Problems;
use settings::Settings;
use wrap::{Template, Work};

/// What became of a folder.
#[derive(Debug)]
pub struct Generated {
    /// All objects, in the order they are applied.
    objects: Vec<Object>,
    /// The works that every cluster is given of them.
    templates: Vec<Template>,
    /// What was left out of the folder and might be missed: one line each.
    pub notices: Vec<String>,
}

/// Reads the folder and makes the works that carry its objects.
///
/// # Errors
/// With everything that is wrong with the folder. Nothing is half done: an error means no works at all, because Argo CD
/// removes from a cluster what is no longer printed.
pub fn generate(settings: &Settings) -> Result<Generated, Problems> {
    let policy = settings.policy.as_deref().map(policy::load).transpose()?;
    let rules = policy
        .as_ref()
        .map(|policy| policy.rules_for(settings.project.as_deref()))
        .transpose()?;
    let wanted = settings.wanted(rules)?;

    let found = discover::manifests(&settings.folder, &settings.source_path, &settings.selection)?;
    let objects = load::objects(&found.files, settings.selection.max_size)?;
    let mut objects = hooks::in_phases(objects);
    if objects.is_empty() && !settings.allow_empty {
        return Err(Problems::one(
            "no manifests: the folder has no Kubernetes object in a .yaml, .yml or .json file that include and exclude select; \
             to remove everything from the cluster on purpose, set allow-empty",
        ));
    }
    let homeless = place::in_namespaces(&mut objects, &settings.cluster_scoped, settings.namespace.as_deref());
    let created = settings.created_namespace(&objects);
    let place = |object: &Object| object.source.place(&found.files[object.source.file as usize].name);
    let problems = check::objects(&objects, created.as_ref(), &homeless, rules, settings, place);
    Problems::or(problems, ())?;

    let plurals = Plurals::new(&objects, &settings.plurals);
    let mut parts = arrange::parts(&mut objects, settings.capacity());
    if let Some(namespace) = created {
        arrange::add_namespace(namespace, &mut objects, &mut parts);
    }
    fresh::mark(&mut objects, &mut parts, &wanted);
    let templates = parts
        .into_iter()
        .map(|part| Template::new(&settings.name, part, &objects, &plurals, &wanted))
        .collect();
    Ok(Generated {
        objects,
        templates,
        notices: found.notices,
    })
}

impl Generated {
    /// The works, cluster by cluster; none when there is nothing to deliver.
    pub fn works<'a>(&'a self, settings: &'a Settings) -> impl Iterator<Item = Work<'a>> {
        let of_cluster = move |cluster| {
            let templates = self.templates.iter();
            templates.map(move |template| template.for_cluster(cluster, &self.objects))
        };
        settings.clusters.iter().flat_map(of_cluster)
    }
}
