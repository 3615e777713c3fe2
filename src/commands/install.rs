//! `install`: prints the objects, or applies them to a hub.

mod hub;
mod images;
mod live;
mod policy;
mod principal;
mod settings;

use super::additions::{find_additions, release_fields, restore_redis};
use super::{Exit, show};
use crate::cli::HubInstallArgs;
use crate::diff::{DiffStyle, object_text};
use crate::doctor;
use crate::doctor::{HubNode, Severity};
use crate::install;
use crate::install::{
    ArgoCd, CONTROLLER, Feature, InstallOptions, Installed, MANAGER, PolicySource, REDIS_PROXY, ShippedObject,
    belongs_to_another_product, is_unchanged, keep_in_gitops, keep_tuned, merged_managers, mounted_config_maps,
    objects, objects_of, other_namespace, our_managers, owns_argocd_fields, replaces_only_redis,
};
use argocd_agent::state::condition;
pub(super) use hub::{ApplyFailure, ApplyOptions, InstallHub, finish, qualified_name, with_hub};
use hub_state::json::borrowed;
use manifest::problem::Problems;
use ocm::resources::{CONFIG_MAPS, NAMESPACES, NODES, SERVICES};
use policy::Existing;
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The time that the API server has to serve a new kind, or the view to publish its certificate, and the interval of the checks.
const POLL_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The maximum number of attempts to take over an object whose status changes.
const TAKE_OVER_ATTEMPTS: u32 = 5;

pub(super) fn run(args: &HubInstallArgs) -> Result<Exit, Problems> {
    let requested = policy::requested(args)?;
    let options = InstallOptions {
        images: images::selected(args, &Installed::default(), &ArgoCd::default()),
        image_pull_secrets: args.image_pull_secrets.clone(),
        features: args.features.iter().copied().collect(),
        replicas: args.replicas,
        pull_dialect: args.pull_dialect,
        policy: requested.clone().unwrap_or_default(),
        additions_only: args.additions_only,
        ..InstallOptions::everything(&args.argo_cd.namespace)
    };
    if args.print {
        let mut objects = objects(&options);
        Problems::or(images::missing(args, &Installed::default(), &objects), ())?;
        keep_in_gitops(&mut objects);
        return show("objects", &install::format_objects(&objects, args.output.into()));
    }
    let mut lines = String::new();
    let done = with_hub(&args.hub, "installing", async |hub| {
        apply(&hub, args, options, requested, &mut lines).await
    });
    finish(&lines, done)
}

/// Applies all objects or none, and adds a line about each to `summary`, which stays empty if nothing is applied. `requested` is the
/// policy from the flags.
async fn apply(
    hub: &InstallHub,
    args: &HubInstallArgs,
    mut options: InstallOptions,
    requested: Option<PolicySource>,
    summary: &mut String,
) -> Result<(), Problems> {
    let mut workloads = hub.workloads(&options.namespace).await?;
    let argo_cd = ArgoCd::among(&workloads);
    if let Some(name) = &argo_cd.resource {
        let path = format!("/apis/argoproj.io/v1beta1/namespaces/{}/argocds", options.namespace);
        if let Some(resource) = hub.get(&path, name).await? {
            argo_cd.reconcile(&mut workloads, &resource);
        }
    }
    let workloads = &workloads;
    // Additions to Argo CD's objects do not depend on the settings.
    let settings = if args.additions_only {
        None
    } else {
        hub.config_map(&options.namespace, CONTROLLER).await?
    };
    let (mut installed, features) = options.adopt(workloads, settings.as_ref())?;
    if features.contains(&Feature::ARGOCD_ADDON) && !args.additions_only {
        installed.argocd_image = images::read_addon_image(hub).await?;
    }
    options.images = images::selected(args, &installed, &options.argo_cd);
    let is_about_policy = requested.is_some() || features.contains(&Feature::PLUGIN);
    let (source, about_policy) = policy::decided(hub, &options, workloads, requested).await?;
    options.policy = source;
    let (principal, about_principal) = principal::decided(hub, &options, &features, workloads).await?;
    options.principal = principal;
    let (view, about_view) = live::completed(hub, args, &options, &features).await?;
    options.live = view;
    let objects = &objects_of(&options, &features);
    let mut problems = images::missing(args, &installed, objects);
    problems.extend(images::unknown_tools(args, &options, objects));
    Problems::or(problems, ())?;
    if args.additions_only {
        Problems::or(find_missing_parts(hub, &options, objects).await?, ())?;
    }
    let (served, note) = served(hub, objects).await?;
    let (live_objects, mut lines) = fetch_live(hub, args, &options, served).await?;
    lines.push_str(&note);
    // The chart's Job, which applies the additions, lacks the permission to list Nodes.
    if features.contains(&Feature::PLUGIN) && !args.additions_only {
        lines.push_str(&about_nodes(hub).await);
    }
    lines.push_str(&about_principal);
    lines.push_str(&about_view);
    let inherited = take_over_all(hub, &live_objects, args.dry_run).await?;
    let how = |object: &ShippedObject, live: Option<&Value>, dry_run| ApplyOptions {
        manager: MANAGER,
        // The lists of an ArgoCD have one manager each, so force would remove the entries of others. In a dry run the fields that an
        // installation would inherit have their old manager.
        force: !object.is_argo_cd()
            && (args.force_conflicts
                || args.dry_run && inherited.contains(&object.to_string())
                || live.is_some_and(|live| replaces_only_redis(object, live))),
        dry_run,
    };
    let mut rehearsal = rehearse(hub, &live_objects, |object, live| how(object, live, true)).await?;
    let superfluous = if args.additions_only {
        find_superfluous(hub, &options, workloads, objects).await?
    } else {
        Vec::new()
    };
    if args.dry_run {
        lines.push_str(&rehearsal.lines);
    }
    lines.push_str(&images::kept(args, &installed, objects));
    summary.push_str(&lines);
    // Before the objects below are applied, which restarts argocd-server: it reads its settings only at its start.
    for (object, live) in superfluous {
        let release = release_fields(hub, &object, live, args.dry_run).await?;
        summary.push_str(&release.lines);
        rehearsal.changes.push_str(&release.changes);
    }
    if args.dry_run {
        summary.push_str(&rehearsal.changes);
        return Ok(());
    }
    for (object, live) in &live_objects {
        if let Some(live) = live
            .as_ref()
            .filter(|_| rehearsal.unchanged.contains(&object.to_string()))
        {
            summary.push_str(&result_line(object, Some(live), live, ""));
            continue;
        }
        summary.push_str(&apply_object(hub, object, live.as_ref(), how(object, live.as_ref(), false)).await?);
    }
    summary.extend(settings.as_ref().and_then(|live| settings::left(live, objects)));
    for (object, live) in &live_objects {
        summary.extend(policy::about_sample(&options.policy, object, live.as_ref()));
    }
    summary.extend(about_policy.filter(|_| is_about_policy).map(|line| line + "\n"));
    Ok(())
}

/// Returns Argo CD's own objects with fields of ours, of which the features need none.
async fn find_superfluous(
    hub: &InstallHub,
    options: &InstallOptions,
    workloads: &[Value],
    objects: &[ShippedObject],
) -> Result<Vec<(ShippedObject, Value)>, Problems> {
    let all = install::objects(&InstallOptions {
        argo_cd: options.argo_cd.clone(),
        ..InstallOptions::everything(&options.namespace)
    });
    // The workloads are known already, and the Jobs of the chart may not get each of them.
    let others: Vec<_> = all.into_iter().filter(|object| object.kind() != "Deployment").collect();
    let mut additions = find_additions(hub, &others, workloads).await?;
    additions.retain(|(addition, live)| {
        our_managers(live).next().is_some() && !objects.iter().any(|object| object.is_same(addition))
    });
    Ok(additions)
}

/// Returns a line for each object of the chart without which the additions would stop Argo CD: a ConfigMap that its Pods mount, or the
/// Service before its Redis.
async fn find_missing_parts(
    hub: &InstallHub,
    options: &InstallOptions,
    objects: &[ShippedObject],
) -> Result<Vec<String>, String> {
    let namespace = &options.namespace;
    // A policy of another name is none of the chart.
    let of_chart = mounted_config_maps(objects)
        .into_iter()
        .filter(|name| name.starts_with("argocd-ocm-cmp"));
    let mut parts: Vec<_> = of_chart.map(|name| (&CONFIG_MAPS, name)).collect();
    if objects.iter().any(|object| object.json().contains(REDIS_PROXY)) {
        parts.push((&SERVICES, REDIS_PROXY.to_owned()));
    }
    let mut missing = Vec::new();
    for (resource, name) in parts {
        if hub.get(&resource.path(namespace), &name).await?.is_none() {
            missing.push(format!(
                "{} {namespace}/{name} does not exist: install or upgrade the Helm release with these features first",
                resource.kind
            ));
        }
    }
    Ok(missing)
}

/// Takes over the objects whose fields an earlier kubectl apply manages, except in a dry run. Returns the names of these objects.
async fn take_over_all(
    hub: &InstallHub,
    live_objects: &LiveObjects,
    dry_run: bool,
) -> Result<HashSet<String>, Problems> {
    let mut inherited = HashSet::new();
    for (object, live) in live_objects {
        let Some(live) = live else { continue };
        if merged_managers(live, object.is_addition()).is_none() {
            continue;
        }
        inherited.insert(object.to_string());
        if !dry_run {
            take_over(hub, object, live).await?;
        }
    }
    Ok(inherited)
}

/// The results of a dry run on the API server.
#[derive(Default)]
struct Rehearsal {
    /// A line for each object.
    lines: String,
    /// The changes of the objects of others to which we add fields.
    changes: String,
    /// The names of the objects that would stay as they are, even the managers of their fields.
    unchanged: HashSet<String>,
}

/// Applies all objects in a dry run.
///
/// # Errors
/// The reasons why objects cannot be applied.
async fn rehearse(
    hub: &InstallHub,
    live_objects: &LiveObjects,
    how: impl Fn(&ShippedObject, Option<&Value>) -> ApplyOptions,
) -> Result<Rehearsal, Problems> {
    let mut rehearsal = Rehearsal::default();
    let mut problems = Vec::new();
    for (object, live) in live_objects {
        match hub.apply(object, how(object, live.as_ref())).await {
            Ok(applied) => {
                let (note, restart) = restore_redis(hub, object, live.as_ref(), object, true).await?;
                let line = result_line(object, live.as_ref(), &applied, &(note + " (dry run)"));
                rehearsal.lines.push_str(&(line + &restart));
                if let Some(live) = live.as_ref().filter(|_| object.is_addition()) {
                    rehearsal.changes.push_str(&changes_of(object, live, &applied));
                }
                if live.as_ref() == Some(&applied) {
                    rehearsal.unchanged.insert(object.to_string());
                }
            }
            Err(ApplyFailure::Other(line)) => problems.push(line),
            Err(ApplyFailure::Conflict(fields)) => problems.extend(conflict_lines(object, &fields)),
        }
    }
    Problems::or(problems, rehearsal)
}

/// Returns the objects to apply, each with its live object, and one line for each object that is left as it is.
///
/// # Errors
/// Every reason not to apply any of them.
async fn fetch_live(
    hub: &InstallHub,
    args: &HubInstallArgs,
    options: &InstallOptions,
    objects: Vec<&ShippedObject>,
) -> Result<(LiveObjects, String), Problems> {
    let namespace = args.argo_cd.namespace.as_str();
    if hub.get(&NAMESPACES.path(""), namespace).await?.is_none() {
        return Err(Problems::one(format!(
            "Namespace {namespace} does not exist on the hub: install Argo CD first, or pass its namespace with --namespace"
        )));
    }
    let (mut live_objects, mut lines, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for object in objects {
        let live = hub.get(&object.path(), object.name()).await?;
        let other = live.as_ref().and_then(|live| other_namespace(live, namespace));
        match (&live, other) {
            // A core installation has no UI, whose only use of the principal this is.
            (None, _) if object.name() == options.argo_cd.server && !args.features.contains(&Feature::UI) => {
                lines.push(format!("{object} left out: this Argo CD has no UI\n"));
                continue;
            }
            (None, _) if object.is_addition() => problems.push(format!(
                "{} does not exist: install Argo CD first, or pass its namespace with --namespace",
                qualified_name(object)
            )),
            (_, Some(other)) => problems.push(format!(
                "{} belongs to the installation in namespace {other}: pass --namespace {other}, or uninstall that one first; a hub has \
                 one installation",
                qualified_name(object)
            )),
            (Some(live), _) if owns_argocd_fields(live) && object.is_addition() => problems.extend(argocd_fields_error(object, live)),
            (Some(live), _) if belongs_to_another_product(object, live) => {
                lines.push(format!("{object} kept\n"));
                continue;
            }
            (Some(live), _) => match policy::kept(args, &options.policy, object, live) {
                Existing::Overwrite => {}
                Existing::Keep(why) => {
                    lines.push(format!("{object} kept{why}\n"));
                    continue;
                }
                Existing::Reject(problem) => problems.push(problem),
            },
            _ => {}
        }
        let mut object = match &live {
            Some(live) => object.clone().of_live(live),
            None => object.clone(),
        };
        if let Some(live) = live.as_ref().filter(|_| !args.force_conflicts) {
            for what in keep_tuned(&mut object, live) {
                lines.push(format!("{object}: {what} kept: for ours, pass --force-conflicts\n"));
            }
        }
        live_objects.push((object, live));
    }
    Problems::or(problems, (live_objects, lines.concat()))
}

/// Returns the objects whose kinds the hub serves, and a line about those that are left out: an old API server has no admission
/// policies.
async fn served<'o>(
    hub: &InstallHub,
    objects: &'o [ShippedObject],
) -> Result<(Vec<&'o ShippedObject>, String), Problems> {
    if let Some(policy) = objects.iter().find(|object| object.is_admission_policy())
        && hub.list(&policy.path(), "").await?.is_none()
    {
        let others = objects.iter().filter(|object| !object.is_admission_policy());
        let note = "admission policies left out: the hub does not serve ValidatingAdmissionPolicy; upgrade it to \
                    Kubernetes 1.30 or later and install again\n";
        return Ok((others.collect(), note.to_owned()));
    }
    Ok((objects.iter().collect(), String::new()))
}

/// Returns a line for each reason why the kernels of nodes may not confine helm and kustomize.
async fn about_nodes(hub: &InstallHub) -> String {
    let nodes: Vec<HubNode> = match hub.list(&NODES.path(""), "").await {
        Ok(nodes) => nodes.iter().flatten().map(HubNode::from_object).collect(),
        Err(line) => return format!("warning: the kernels of the nodes are unknown: {line}\n"),
    };
    let findings = doctor::about_nodes(&nodes).into_iter();
    let warnings = findings.filter(|finding| finding.message.level != Severity::Ok);
    let lines: Vec<String> = warnings
        .map(|finding| format!("warning: {}\n", finding.line()))
        .collect();
    lines.concat()
}

/// Objects, each with its live object.
type LiveObjects = Vec<(ShippedObject, Option<Value>)>;

/// Makes us the manager of fields that kubectl's field manager would otherwise keep for ever, and changes nothing else.
///
/// The API server may write the status of an object between our read and our write, as it does with each FlowSchema. Then the object
/// is read again.
async fn take_over(hub: &InstallHub, object: &ShippedObject, live: &Value) -> Result<(), String> {
    let mut current = live.clone();
    for _ in 0..TAKE_OVER_ATTEMPTS {
        let Some(managers) = merged_managers(&current, object.is_addition()) else {
            return Ok(());
        };
        if hub.manage(object, &current, &managers).await? {
            return Ok(());
        }
        match hub.get(&object.path(), object.name()).await? {
            Some(changed) if is_unchanged(live, &changed) => current = changed,
            _ => break,
        }
    }
    Err(format!(
        "{} changed while it was taken over: install again",
        qualified_name(object)
    ))
}

async fn apply_object(
    hub: &InstallHub,
    object: &ShippedObject,
    before: Option<&Value>,
    how: ApplyOptions,
) -> Result<String, Problems> {
    // The ConfigMap stays for the other features when the principal's proxy is removed.
    let (note, restart) = restore_redis(hub, object, before, object, false).await?;
    let applied = match hub.apply(object, how).await {
        Ok(applied) => applied,
        Err(ApplyFailure::Other(line)) => return Err(Problems::one(line)),
        Err(ApplyFailure::Conflict(fields)) => return Problems::or(conflict_lines(object, &fields), String::new()),
    };
    if object.kind() == "CustomResourceDefinition" {
        until_established(hub, object).await?;
    }
    Ok(result_line(object, before, &applied, &note) + &restart)
}

/// Returns the line about an object that was applied, as kubectl prints it.
fn result_line(object: &ShippedObject, before: Option<&Value>, applied: &Value, note: &str) -> String {
    let done = match before {
        None => "created",
        Some(before) if is_unchanged(before, applied) => "unchanged",
        Some(_) => "configured",
    };
    format!("{object} {done}{note}\n")
}

/// Returns the changes of one of Argo CD's objects, as `kubectl diff` shows them: without what every write changes.
pub(super) fn changes_of(object: &ShippedObject, live: &Value, changed: &Value) -> String {
    let shown = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|key, _| !["generation", "managedFields", "resourceVersion"].contains(&key.as_str()));
        }
        object
    };
    let style = DiffStyle {
        colours: false,
        live: "live".to_owned(),
        changed: "changed",
    };
    let (live, changed) = (shown(live), shown(changed));
    object_text(&object.to_string(), &borrowed(&live), &borrowed(&changed), &style)
}

/// Waits until the API server serves the kind.
async fn until_established(hub: &InstallHub, crd: &ShippedObject) -> Result<(), String> {
    let established = poll(async || {
        let live = hub.get(&crd.path(), crd.name()).await?;
        Ok(live.filter(|live| condition(live, "Established")["status"] == "True"))
    });
    if established.await?.is_some() {
        return Ok(());
    }
    let (crd, seconds) = (qualified_name(crd), POLL_TIMEOUT.as_secs());
    Err(format!("{crd} is not served after {seconds} s: see its conditions"))
}

/// Reads until there is a value; returns `None` if that takes too long.
async fn poll<T>(read: impl AsyncFn() -> Result<Option<T>, String>) -> Result<Option<T>, String> {
    let value = async {
        loop {
            if let Some(value) = read().await? {
                return Ok(Some(value));
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(POLL_TIMEOUT, value).await.unwrap_or(Ok(None))
}

/// Returns a line about fields of Argo CD that our field manager owns and that applying would remove, with the remediation.
pub(super) fn argocd_fields_error(object: &ShippedObject, live: &Value) -> Option<String> {
    (object.is_addition() && owns_argocd_fields(live)).then(|| {
        format!(
            "{}: our field manager owns fields of Argo CD (an earlier kubectl apply), and applying would remove them: apply Argo CD's own \
             manifests again with kubectl apply --server-side --force-conflicts, then retry",
            qualified_name(object)
        )
    })
}

/// Returns the conflicts of an object, one line each, with the remediation.
fn conflict_lines(object: &ShippedObject, fields: &[(String, String)]) -> Vec<String> {
    let line = |(field, manager): &(String, String)| {
        let remediation = if object.is_argo_cd() {
            "add our entries there by hand, from install --print"
        } else if manager == "helm" {
            "change it with helm, or pass --force-conflicts to take it over"
        } else {
            "undo that change, or pass --force-conflicts to take it over"
        };
        format!(
            "{}: {field} is managed by {manager:?} with another value: {remediation}",
            qualified_name(object)
        )
    };
    fields.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    /// Returns the arguments of `install` with these flags.
    pub(super) fn args(flags: &[&str]) -> HubInstallArgs {
        let words = ["argocd-ocm-cmp", "install"].into_iter().chain(flags.iter().copied());
        match Cli::try_parse_from(words).expect("flags of install").command {
            Command::Install(args) => args,
            _ => panic!("another command"),
        }
    }
}
