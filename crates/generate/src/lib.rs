//! `generate`: wraps the manifests of a folder in `ManifestWork`s per managed cluster.
//!
//! ```text
//!                        hooks                   order, buckets      content_hash, manifest_configs
//! files ─▶ source, load ─▶ placed ─▶ validate ─▶ partition ─▶ manifestwork ─▶ print
//!                     Object      Placed          Partition    Template, ManifestWork
//! ```
//!
//! The output of each stage is the input of the next. An object is serialized to JSON when it is read, because text needs less memory
//! than the value, and again if it gets a content hash. Its namespace is inserted when it is printed; YAML output and `diff` parse the
//! text of one object at a time.
//!
//! A pure function of the files and the settings: it never asks an API server, because Argo CD caches the output for a day and
//! the sidecar has no token. Only kustomize and helm may fetch remote bases, from addresses that the platform allows.

pub mod annotations;
mod buckets;
mod canonical;
pub mod confine;
pub mod content_hash;
pub mod discover;
pub mod documents;
mod feedback_watch;
pub mod fetched;
mod fields_of_others;
pub mod health_rules;
mod hooks;
mod identity;
pub mod ignored_fields;
mod likely_mistakes;
mod list_keys;
pub mod load;
mod manifest_configs;
pub mod manifestwork;
pub mod object;
mod order;
pub mod partition;
pub mod placed;
mod placement;
mod plurals;
pub mod policy;
pub mod print;
mod rights;
pub mod schema;
pub mod settings;
pub mod similar;
pub mod source;
mod update_strategy;
mod validate;

use feedback_watch::Watched;
use manifest::problem::Problems;
use manifest::text::{count, unique};
use manifest_configs::WorkOptions;
use manifestwork::{ManifestWork, Template};
use ocm::names::WorkName;
use placed::Placed;
use plurals::Plurals;
use policy::Rules;
use rights::Resources;
use settings::{Recipient, Settings};
use source::{Manifests, Variant};
use std::mem;

/// The result of `generate`.
#[derive(Debug)]
pub struct GeneratedWorks<'s> {
    deliveries: Vec<GroupDelivery<'s>>,
    /// Warnings about skipped content or from tools, one line each.
    pub notices: Vec<String>,
}

/// The ManifestWorks of a group of recipients.
#[derive(Debug)]
struct GroupDelivery<'s> {
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
pub fn generate(settings: &Settings) -> Result<GeneratedWorks<'_>, Problems> {
    let policy = settings.policy.as_deref().map(policy::load).transpose()?;
    let rules = policy
        .as_ref()
        .map(|policy| policy.rules_for(settings.project.as_deref()))
        .transpose()?;
    let health_rules = settings
        .health_rules
        .as_deref()
        .map(health_rules::custom::load)
        .transpose()?;
    let options = settings.work_options(rules)?;
    validate::clusters(settings)?;
    let overrides = validate::overrides(settings)?;
    let mut variants = source::variants(settings)?;
    let of_variants = variants
        .iter_mut()
        .flat_map(|variant| variant.manifests.notices.split_off(0));
    let mut notices: Vec<String> = settings
        .notices
        .iter()
        .cloned()
        .chain(overrides)
        .chain(health_rules.unwrap_or_default())
        .chain(of_variants)
        .collect();
    let objects = variants.iter().flat_map(|variant| &variant.manifests.objects);
    notices.extend(validate::annotations_without_effect(objects.map(|object| &**object)));
    let has_overlays = variants.len() > 1;
    let deliveries = collect_all(variants.into_iter().map(|Variant { recipients, manifests }| {
        let overlaid = recipients.first().copied().filter(|_| has_overlays);
        let templates = templates(manifests, overlaid, rules, &options, settings, &mut notices)?;
        Ok(GroupDelivery { recipients, templates })
    }))?;
    let works = deliveries.iter().map(GroupDelivery::count).sum();
    let stored = deliveries.iter().map(|delivery| delivery.stored_size(&settings.name));
    let printed = deliveries.iter().map(|delivery| delivery.printed_size(&settings.name));
    validate::output(works, stored.sum(), printed.sum(), settings.max_output)?;
    let sizes: Vec<_> = deliveries.iter().map(GroupDelivery::size).collect();
    notices.extend(validate::repeated_output(&sizes));
    let notices = bounded(unique(notices));
    Ok(GeneratedWorks { deliveries, notices })
}

/// Returns the YAML of roles with the permissions that OCM's agent, or the executor, needs on the managed clusters for the objects of all
/// recipients.
///
/// # Errors
/// Returns an error with one line per problem in the manifests.
pub fn rights(settings: &Settings) -> Result<String, Problems> {
    let policy = settings.policy.as_deref().map(policy::load).transpose()?;
    let rules = policy
        .as_ref()
        .map(|policy| policy.rules_for(settings.project.as_deref()))
        .transpose()?;
    let options = settings.work_options(rules)?;
    let variants = source::variants(settings)?;
    let mut resources = Resources::default();
    collect_all(variants.into_iter().map(|Variant { mut manifests, .. }| {
        let (placed, created) = place(&mut manifests, None, rules, &options, settings)?;
        let plurals = Plurals::new(&placed, &settings.plurals);
        resources.add(&placed, &plurals);
        resources.add(created.as_slice(), &plurals);
        Ok(())
    }))?;
    Ok(resources.roles(settings.name.application(), options.executor.as_ref()))
}

/// Takes the objects of a folder, and returns them with the Namespace to create.
fn place(
    manifests: &mut Manifests,
    overlaid: Option<Recipient<'_>>,
    rules: Option<Rules<'_>>,
    options: &WorkOptions,
    settings: &Settings,
) -> Result<(Vec<Placed>, Option<Placed>), Problems> {
    let objects = mem::take(&mut manifests.objects);
    let read = objects.len();
    let placed = placed::placed(objects, &settings.cluster_scoped, settings.namespace.as_deref());
    validate::not_empty(&placed, read, manifests.kind, overlaid, settings)?;
    let created = settings.created_namespace(&placed);
    validate::objects(&placed, created.as_ref(), &manifests.files, rules, options, settings)?;
    Ok((placed, created))
}

/// Creates the ManifestWorks that carry the objects of a folder; `overlaid` is a cluster with them, if others have other ones.
fn templates(
    mut manifests: Manifests,
    overlaid: Option<Recipient<'_>>,
    rules: Option<Rules<'_>>,
    options: &WorkOptions,
    settings: &Settings,
    notices: &mut Vec<String>,
) -> Result<Vec<Template>, Problems> {
    let (placed, created) = place(&mut manifests, overlaid, rules, options, settings)?;
    let plurals = Plurals::new(&placed, &settings.plurals);
    notices.extend(plurals.guesses(&placed, &settings.cluster_scoped));
    notices.extend(ignored_fields::warnings(&placed, options));
    notices.extend(update_strategy::warnings(&placed, options.strategy));
    let watched = Watched::new(options.feedback, &placed);
    let partitions = partition::partitions(placed, created, settings.capacity());
    validate::work_names(&partitions, &manifests.files)?;
    let templates = manifestwork::templates(partitions, &plurals, &watched, options);
    validate::works(&templates, settings)?;
    Ok(templates)
}

/// Returns all results, or each problem once: a problem of a shared source would be there once per variant.
fn collect_all<T>(results: impl Iterator<Item = Result<T, Problems>>) -> Result<Vec<T>, Problems> {
    let mut values = Vec::new();
    let mut problems = Vec::new();
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(errors) => problems.extend(errors.into_lines()),
        }
    }
    Problems::or(unique(problems), values)
}

/// The maximum number of warnings; the others are counted. They would fill the log of the sidecar at every refresh.
const NOTICES_MAX: usize = 100;

fn bounded(mut notices: Vec<String>) -> Vec<String> {
    let more = notices.len().saturating_sub(NOTICES_MAX);
    if more > 0 {
        notices.truncate(NOTICES_MAX);
        notices.push(format!("and {}", count(more, "more warning")));
    }
    notices
}

impl GroupDelivery<'_> {
    /// Returns the number of bytes of the objects, and the number of recipients.
    fn size(&self) -> (u64, usize) {
        (self.templates.iter().map(Template::size).sum(), self.recipients.len())
    }

    fn count(&self) -> u64 {
        self.templates.len() as u64 * self.recipients.len() as u64
    }

    /// Returns the number of bytes that Argo CD stores of the ManifestWorks in the Application.
    fn stored_size(&self, application: &WorkName) -> u64 {
        let names = self.recipients.iter().map(cluster_name_size).sum();
        // Argo CD lists hooks that it starts itself only after they have run.
        let works = self.works_of(self.recipients[0], application);
        works
            .filter(|work| work.template.step.hook().is_none())
            .map(|work| validate::listed_size(&work.name(), self.recipients.len(), names))
            .sum()
    }

    /// Returns the number of bytes of the ManifestWorks as JSON lines. Those of several clusters differ only in the name of the cluster.
    fn printed_size(&self, application: &WorkName) -> u64 {
        let (first, count) = (cluster_name_size(&self.recipients[0]), self.recipients.len() as u64);
        let names: u64 = self.recipients.iter().map(cluster_name_size).sum();
        let works = self.works_of(self.recipients[0], application);
        works.map(|work| (work.printed_size() - first) * count + names).sum()
    }

    /// Returns the ManifestWorks of a recipient.
    fn works_of<'a>(
        &'a self,
        recipient: Recipient<'a>,
        application: &'a WorkName,
    ) -> impl Iterator<Item = ManifestWork<'a>> {
        self.templates.iter().map(move |template| ManifestWork {
            template,
            recipient,
            application,
        })
    }
}

fn cluster_name_size(recipient: &Recipient<'_>) -> u64 {
    match recipient {
        Recipient::Cluster { name, .. } => name.to_string().len() as u64,
        Recipient::Placement(_) => 0,
    }
}

impl GeneratedWorks<'_> {
    /// Returns the ManifestWorks of the Application called `application`, recipient by recipient; none if there is nothing to
    /// deliver.
    pub fn works<'a>(&'a self, application: &'a WorkName) -> impl Iterator<Item = ManifestWork<'a>> {
        let of_recipients = |delivery: &'a GroupDelivery<'a>| delivery.recipients.iter().map(move |&to| (to, delivery));
        let mut deliveries: Vec<_> = self.deliveries.iter().flat_map(of_recipients).collect();
        deliveries.sort_by_key(|(recipient, _)| recipient.position());
        let works = |(recipient, delivery): (_, &'a GroupDelivery<'a>)| delivery.works_of(recipient, application);
        deliveries.into_iter().flat_map(works)
    }
}
