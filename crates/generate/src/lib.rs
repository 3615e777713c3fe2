//! `generate`: wraps the manifests of a folder in `ManifestWork`s per managed cluster.
//!
//! ```text
//! policy → source (files, kustomize, helm → load) → hooks → namespaces → validate → partition (order, buckets) → content_hash
//!        → manifestwork → print
//! ```
//!
//! A pure function of the files and the settings: it never asks an API server, because Argo CD caches the output for a day and the
//! sidecar has no token. Only kustomize and helm may fetch remote bases, from addresses that the platform allows.

pub mod annotations;
pub mod buckets;
mod canonical;
pub mod confine;
pub mod content_hash;
pub mod discover;
pub mod documents;
pub mod env;
pub mod health_rules;
pub mod hooks;
pub mod load;
pub mod manifest_configs;
pub mod manifestwork;
pub mod namespaces;
pub mod object;
pub mod order;
pub mod partition;
pub mod placement;
pub mod policy;
pub mod print;
pub mod settings;
pub mod source;
pub mod update_strategy;
mod validate;

use manifest::problem::Problems;
use manifest_configs::{Plurals, WorkOptions};
use manifestwork::{Template, Work};
use object::Object;
use policy::Rules;
use settings::{Settings, Target};
use source::{Manifests, Variant};

use std::collections::HashSet;

/// The result of `generate`.
#[derive(Debug)]
pub struct Generated {
    deliveries: Vec<Delivery>,
    /// Warnings about skipped content or from tools, one line each.
    pub notices: Vec<String>,
}

/// The ManifestWorks of a group of clusters.
#[derive(Debug)]
struct Delivery {
    /// The clusters, as indexes into the target's list; empty for a placement.
    clusters: Vec<usize>,
    /// All objects, in the order of application.
    objects: Vec<Object>,
    /// The ManifestWorks of each cluster.
    templates: Vec<Template>,
}

/// Reads the manifests and creates the ManifestWorks that carry their objects.
///
/// # Errors
/// Returns an error with one line per problem in the manifests. There is no partial output: Argo CD prunes what is no longer
/// printed, so an error yields no ManifestWorks at all.
pub fn generate(settings: &Settings) -> Result<Generated, Problems> {
    let policy = settings.policy.as_deref().map(policy::load).transpose()?;
    let rules = policy
        .as_ref()
        .map(|policy| policy.rules_for(settings.project.as_deref()))
        .transpose()?;
    let options = settings.work_options(rules)?;
    Problems::or(validate::clusters(settings), ())?;
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
        match delivery(clusters, manifests, rules, &options, settings) {
            Ok(delivery) => generated.deliveries.push(delivery),
            Err(found) => problems.extend(found.into_lines()),
        }
    }
    // Report a problem of a shared source once, not per cluster.
    Problems::or(once(problems), ())?;
    let sizes = generated.deliveries.iter().map(|delivery| {
        let objects = delivery.objects.iter().map(|object| object.size() as u64).sum();
        (objects, delivery.clusters.len())
    });
    Problems::or(validate::output(sizes, settings.max_output), ())?;
    generated.notices = once(generated.notices);
    Ok(generated)
}

/// Creates the ManifestWorks of a group of clusters.
fn delivery(
    clusters: Vec<usize>,
    Manifests { objects, files, .. }: Manifests,
    rules: Option<Rules<'_>>,
    options: &WorkOptions,
    settings: &Settings,
) -> Result<Delivery, Problems> {
    let mut objects = hooks::in_phases(objects);
    if objects.is_empty() && !settings.allow_empty {
        return Err(Problems::one(
            "no manifests: the folder has no Kubernetes object in a .yaml, .yml or .json file that include and exclude select; \
             to remove everything from the cluster on purpose, set allow-empty",
        ));
    }
    let missing_namespace =
        namespaces::in_namespaces(&mut objects, &settings.cluster_scoped, settings.namespace.as_deref());
    let created = settings.created_namespace(&objects);
    let place = |object: &Object| object.source.place(&files[object.source.file as usize]);
    let problems = validate::objects(&objects, created.as_ref(), &missing_namespace, rules, settings, place);
    Problems::or(problems, ())?;

    let plurals = Plurals::new(&objects, &settings.plurals);
    let mut partitions = partition::partitions(&mut objects, settings.capacity());
    if let Some(namespace) = created {
        partition::add_namespace(namespace, &mut objects, &mut partitions);
    }
    content_hash::mark(&mut objects, &mut partitions, options);
    Problems::or(validate::partitions(&partitions, settings), ())?;
    let templates = partitions
        .into_iter()
        .map(|partition| Template::new(&settings.name, &settings.target, partition, &objects, &plurals, options))
        .collect();
    Ok(Delivery {
        clusters,
        objects,
        templates,
    })
}

/// Removes repeated lines, keeping the first of each.
fn once(mut lines: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines
}

impl Generated {
    /// Renames the ManifestWorks after the current Application in `settings`.
    pub fn rename(&mut self, settings: &Settings) {
        let templates = self.deliveries.iter_mut().flat_map(|delivery| &mut delivery.templates);
        for template in templates {
            template.rename(&settings.name, &settings.target);
        }
    }

    /// Returns the ManifestWorks, cluster by cluster; none if there is nothing to deliver.
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
