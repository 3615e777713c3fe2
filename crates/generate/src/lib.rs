//! `generate`: wraps the manifests of a folder in `ManifestWork`s per managed cluster.
//!
//! ```text
//! policy → source (files, kustomize, helm → load) → hooks → namespaces → validate → partition (order, buckets) → content_hash
//!        → manifestwork → print
//! ```
//!
//! A pure function of the files and the settings: it never asks an API server, because Argo CD caches the output for a day and the
//! sidecar has no token. Only kustomize and helm may fetch remote bases, from addresses that the platform allows.

#![expect(
    clippy::vec_box,
    reason = "objects are large and pass from stage to stage: a pointer moves, and no stage needs a second copy of all"
)]

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
pub mod place;
pub mod placement;
pub mod policy;
pub mod print;
pub mod settings;
pub mod source;
pub mod update_strategy;
mod validate;

use manifest::problem::Problems;
use manifest_configs::{Plurals, WorkOptions};
use manifestwork::{ManifestWork, Template};
use object::Object;
use ocm::names::WorkName;
use policy::Rules;
use settings::{Recipient, Settings};
use source::{Manifests, Variant};
use std::collections::HashSet;

/// The result of `generate`.
#[derive(Debug)]
pub struct Generated<'s> {
    deliveries: Vec<Delivery<'s>>,
    /// Warnings about skipped content or from tools, one line each.
    pub notices: Vec<String>,
}

/// The ManifestWorks of a group of recipients.
#[derive(Debug)]
struct Delivery<'s> {
    /// The recipients, at least one.
    recipients: Vec<Recipient<'s>>,
    /// The ManifestWorks of each recipient.
    templates: Vec<Template>,
}

/// Reads the manifests and creates the ManifestWorks that carry their objects.
///
/// # Errors
/// Returns an error with one line per problem in the manifests. There is no partial output: Argo CD prunes what is no longer
/// printed, so an error yields no ManifestWorks at all.
pub fn generate(settings: &Settings) -> Result<Generated<'_>, Problems> {
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
    let mut deliveries = Vec::new();
    let mut notices: Vec<String> = Vec::new();
    let mut problems: Vec<String> = Vec::new();
    for mut variant in variants {
        notices.append(&mut variant.manifests.notices);
        match Delivery::new(variant, rules, &options, settings) {
            Ok(delivery) => deliveries.push(delivery),
            Err(found) => problems.extend(found.into_lines()),
        }
    }
    // Report a problem of a shared source once, not per cluster.
    Problems::or(once(problems), ())?;
    Problems::or(
        validate::output(deliveries.iter().map(Delivery::size), settings.max_output),
        (),
    )?;
    Ok(Generated {
        deliveries,
        notices: once(notices),
    })
}

/// Removes repeated lines, keeping the first of each.
fn once(mut lines: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines
}

impl<'s> Delivery<'s> {
    /// Creates the ManifestWorks of a group of recipients.
    fn new(
        Variant { recipients, manifests }: Variant<'s>,
        rules: Option<Rules<'_>>,
        options: &WorkOptions,
        settings: &Settings,
    ) -> Result<Self, Problems> {
        let Manifests { objects, files, .. } = manifests;
        let placed = place::placed(objects, &settings.cluster_scoped, settings.namespace.as_deref());
        if placed.is_empty() && !settings.allow_empty {
            return Err(Problems::one(
                "no manifests: the folder has no Kubernetes object in a .yaml, .yml or .json file that include and exclude select; \
                 to remove everything from the cluster on purpose, set allow-empty",
            ));
        }
        let created = settings.created_namespace(&placed);
        let place_of = |object: &Object| object.source.place(&files[object.source.file as usize]);
        let problems = validate::objects(&placed, created.as_ref(), rules, settings, place_of);
        Problems::or(problems, ())?;

        let plurals = Plurals::new(&placed, &settings.plurals);
        let mut partitions = partition::partitions(placed, settings.capacity());
        if let Some(namespace) = created {
            partitions.push(partition::of_namespace(namespace, &partitions));
        }
        let last = partition::last_step(&partitions);
        let templates: Vec<Template> = partitions
            .into_iter()
            .map(|partition| Template::new(partition, last, &plurals, options))
            .collect();
        Problems::or(validate::works(&templates, settings), Self { recipients, templates })
    }

    /// Returns the number of bytes of the objects, and the number of recipients.
    fn size(&self) -> (u64, usize) {
        (self.templates.iter().map(Template::size).sum(), self.recipients.len())
    }
}

impl Generated<'_> {
    /// Returns the ManifestWorks of the Application called `application`, recipient by recipient; none if there is nothing to
    /// deliver.
    pub fn works<'a>(&'a self, application: &'a WorkName) -> impl Iterator<Item = ManifestWork<'a>> {
        let of_recipients = |delivery: &'a Delivery<'a>| delivery.recipients.iter().map(move |&to| (to, delivery));
        let mut deliveries: Vec<_> = self.deliveries.iter().flat_map(of_recipients).collect();
        deliveries.sort_by_key(|(recipient, _)| recipient.position());
        deliveries.into_iter().flat_map(move |(recipient, delivery)| {
            delivery.templates.iter().map(move |template| ManifestWork {
                template,
                recipient,
                application,
            })
        })
    }
}
