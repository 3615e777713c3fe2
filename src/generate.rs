//! `generate`: wraps the manifests of a folder in `ManifestWork`s per managed cluster.
//!
//! ```text
//! settings → source (files, kustomize, helm) → load (documents → objects) → hooks → place → policy → order → arrange (split)
//!          → wrap → print
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
pub mod placement;
pub mod policy;
pub mod print;
pub mod problem;
pub mod settings;
pub mod source;
pub mod split;
pub mod strategy;
pub mod summary;
pub mod wishes;
pub mod wrap;

use configure::{Plurals, Wanted};
use object::Object;
use policy::Rules;
use problem::Problems;
use settings::{Settings, Target};
use source::{Manifests, Variant};
use wrap::{Template, Work};

use std::collections::HashSet;

/// What became of the manifests.
#[derive(Debug)]
pub struct Generated {
    deliveries: Vec<Delivery>,
    /// What was left out and might be missed, or what a tool warned of: one line each.
    pub notices: Vec<String>,
}

/// What some clusters are given.
#[derive(Debug)]
struct Delivery {
    /// The clusters, by their places in the target's list; none for a placement.
    clusters: Vec<usize>,
    /// All objects, in the order they are applied.
    objects: Vec<Object>,
    /// The works that each cluster is given of them.
    templates: Vec<Template>,
}

/// Reads the manifests and makes the works that carry their objects.
///
/// # Errors
/// With everything that is wrong with them. Nothing is half done: an error means no works at all, because Argo CD
/// removes from a cluster what is no longer printed.
pub fn generate(settings: &Settings) -> Result<Generated, Problems> {
    let policy = settings.policy.as_deref().map(policy::load).transpose()?;
    let rules = policy
        .as_ref()
        .map(|policy| policy.rules_for(settings.project.as_deref()))
        .transpose()?;
    let wanted = settings.wanted(rules)?;
    Problems::or(check::clusters(settings), ())?;
    let variants = source::variants(
        &settings.source,
        &settings.target,
        settings.namespace.as_deref(),
        settings.max_output,
    )?;
    let mut generated = Generated {
        deliveries: Vec::new(),
        notices: Vec::new(),
    };
    let mut problems: Vec<String> = Vec::new();
    for Variant {
        clusters,
        mut manifests,
    } in variants
    {
        generated.notices.append(&mut manifests.notices);
        match delivery(clusters, manifests, rules, &wanted, settings) {
            Ok(delivery) => generated.deliveries.push(delivery),
            Err(found) => problems.extend(found.into_lines()),
        }
    }
    // What several clusters share is wrong only once.
    Problems::or(once(problems), ())?;
    let sizes = generated.deliveries.iter().map(|delivery| {
        let objects = delivery.objects.iter().map(|object| object.size() as u64).sum();
        (objects, delivery.clusters.len())
    });
    Problems::or(check::output(sizes, settings.max_output), ())?;
    generated.notices = once(generated.notices);
    Ok(generated)
}

/// Brings manifests into the works for some clusters.
fn delivery(
    clusters: Vec<usize>,
    Manifests { objects, files, .. }: Manifests,
    rules: Option<Rules<'_>>,
    wanted: &Wanted,
    settings: &Settings,
) -> Result<Delivery, Problems> {
    let mut objects = hooks::in_phases(objects);
    if objects.is_empty() && !settings.allow_empty {
        return Err(Problems::one(
            "no manifests: the folder has no Kubernetes object in a .yaml, .yml or .json file that include and exclude select; \
             to remove everything from the cluster on purpose, set allow-empty",
        ));
    }
    let homeless = place::in_namespaces(&mut objects, &settings.cluster_scoped, settings.namespace.as_deref());
    let created = settings.created_namespace(&objects);
    let place = |object: &Object| object.source.place(&files[object.source.file as usize]);
    let problems = check::objects(&objects, created.as_ref(), &homeless, rules, settings, place);
    Problems::or(problems, ())?;

    let plurals = Plurals::new(&objects, &settings.plurals);
    let mut parts = arrange::parts(&mut objects, settings.capacity());
    if let Some(namespace) = created {
        arrange::add_namespace(namespace, &mut objects, &mut parts);
    }
    fresh::mark(&mut objects, &mut parts, wanted);
    Problems::or(check::parts(&parts, settings), ())?;
    let templates = parts
        .into_iter()
        .map(|part| Template::new(&settings.name, &settings.target, part, &objects, &plurals, wanted))
        .collect();
    Ok(Delivery {
        clusters,
        objects,
        templates,
    })
}

/// Each line where it stands first.
fn once(mut lines: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines
}

impl Generated {
    /// Names the works again, after the Application as `settings` has it now.
    pub fn rename(&mut self, settings: &Settings) {
        let templates = self.deliveries.iter_mut().flat_map(|delivery| &mut delivery.templates);
        for template in templates {
            template.rename(&settings.name, &settings.target);
        }
    }

    /// The works, cluster by cluster; none when there is nothing to deliver.
    pub fn works<'a>(&'a self, settings: &'a Settings) -> impl Iterator<Item = Work<'a>> {
        let mut given: Vec<(Option<usize>, &Delivery)> = Vec::new();
        for delivery in &self.deliveries {
            match settings.target {
                Target::Clusters(_) => given.extend(delivery.clusters.iter().map(|&at| (Some(at), delivery))),
                Target::Placement(_) => given.push((None, delivery)),
            }
        }
        given.sort_by_key(|(at, _)| *at);
        given.into_iter().flat_map(move |(at, delivery)| {
            let objects = &delivery.objects;
            delivery
                .templates
                .iter()
                .map(move |template| match (&settings.target, at) {
                    (Target::Clusters(clusters), Some(at)) => template.for_cluster(&clusters[at], objects),
                    (Target::Clusters(_), None) => unreachable!("a cluster has its place"),
                    (Target::Placement(placement), _) => template.for_placement(placement, objects),
                })
        })
    }
}
