//! `uninstall`: removes from a hub what `install`, or kubectl with our files, has created.

use super::Exit;
use super::additions::{dry_run_note, find_additions, release_fields};
use super::hold::read_holds;
use super::install::{InstallHub, finish, with_hub};
use crate::cli::HubUninstallArgs;
use crate::install::{
    ArgoCd, CMD_PARAMS, InstallOptions, LABELS, PROJECT, REDIS_PROXY, ShippedObject, belongs_to_added_controller,
    belongs_to_another_argocd, content_of_administrator, helm_release, is_beside_installation, is_ours,
    needs_redis_proxy, objects, other_namespace, stuck_deletions,
};
use crate::workload::{items, name};
use controller::LEASE;
use jiff::Timestamp;
use manifest::problem::Problems;
use manifest::text::count;
use ocm::resources::{ADDONS, APPLICATIONS, GITOPS_CLUSTERS, LEASES};
use primitives::resource::Resource;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn run(args: &HubUninstallArgs) -> Result<Exit, Problems> {
    let mut lines = String::new();
    let done = with_hub(&args.hub, "uninstalling", async |hub| {
        remove_all(&hub, args, &mut lines).await
    });
    if lines.is_empty() && done.is_ok() {
        lines = format!(
            "argocd-ocm-cmp is not installed in namespace {}\n",
            args.argo_cd.namespace
        );
    }
    finish(&lines, done)
}

/// One of our objects on the hub.
struct InstalledObject {
    /// An embedded object of the same kind, with the name of the live object.
    shipped: ShippedObject,
    live: Value,
}

/// Removes all objects, and adds a line about each as soon as it is removed.
async fn remove_all(hub: &InstallHub, args: &HubUninstallArgs, lines: &mut String) -> Result<(), Problems> {
    let workloads = hub.workloads(&args.argo_cd.namespace).await?;
    let ours = objects(&InstallOptions {
        argo_cd: ArgoCd::among(&workloads),
        ..InstallOptions::everything(&args.argo_cd.namespace)
    });
    let installed = if args.additions_only {
        Vec::new()
    } else {
        let mut installed = find(hub, &ours).await?;
        let namespace = &args.argo_cd.namespace;
        let bindings: Vec<Value> = installed
            .iter()
            .filter(|object| object.shipped.kind() == "ClusterRoleBinding")
            .map(|object| object.live.clone())
            .collect();
        installed.retain(|object| {
            !belongs_to_another_argocd(&object.shipped, &object.live, namespace)
                && !belongs_to_added_controller(&object.live, &ours, &bindings, namespace)
        });
        // Several Argo CDs may have the plugin, or a controller that an administrator has added.
        let is_elsewhere = |object: &InstalledObject| other_namespace(&object.live, namespace).is_some();
        let is_here = |object: &InstalledObject| object.live["metadata"]["namespace"] == **namespace;
        if installed.iter().any(is_elsewhere) && installed.iter().any(is_here) {
            installed.retain(|object| is_beside_installation(&object.shipped, &object.live, &bindings, namespace));
        }
        check(hub, &installed, args).await?;
        installed
    };
    let (mut changes, mut mounted) = (String::new(), BTreeSet::new());
    for (object, live) in find_additions(hub, &ours, &workloads).await? {
        let release = release_fields(hub, &object, live, args.dry_run).await?;
        lines.push_str(&release.lines);
        changes.push_str(&release.changes);
        mounted.extend(release.mounted);
    }
    // Workloads first, and last the objects that they need.
    for installed_object in installed.iter().rev() {
        let line = remove(hub, installed_object, &mounted, args).await?;
        lines.push_str(&line);
    }
    if !args.additions_only {
        lines.push_str(&remove_lease(hub, args).await?);
    }
    lines.push_str(&changes);
    Ok(())
}

/// Finds all our objects, by labels or, where our files set none, by name, in the order in which they were applied. Secrets are found
/// by name, too: those of clusters, which the controller writes, have the same labels and stay.
async fn find(hub: &InstallHub, ours: &[ShippedObject]) -> Result<Vec<InstalledObject>, String> {
    let mut installed: Vec<InstalledObject> = Vec::new();
    for shipped in ours.iter().filter(|object| !object.is_addition()) {
        let path = shipped.path();
        let live = if shipped.label("app.kubernetes.io/name").is_none() || shipped.kind() == "Secret" {
            let live = hub.get(&path, shipped.name()).await?;
            live.filter(|live| is_ours(shipped, live)).into_iter().collect()
        } else if installed.iter().any(|object| object.shipped.path() == path) {
            continue;
        } else {
            hub.list(&path, LABELS).await?.unwrap_or_default()
        };
        installed.extend(live.into_iter().map(|mut live| {
            live["kind"] = shipped.kind().into();
            let mut shipped = shipped.clone();
            shipped.value["metadata"]["name"] = name(&live).into();
            InstalledObject { shipped, live }
        }));
    }
    Ok(installed)
}

/// Returns all reasons against removing the objects.
async fn check(hub: &InstallHub, objects: &[InstalledObject], args: &HubUninstallArgs) -> Result<(), Problems> {
    let mut problems = Vec::new();
    if let Some(release) = objects.iter().find_map(|object| helm_release(&object.live)) {
        problems.push(format!(
            "it was installed by Helm: remove the additions to Argo CD with --additions-only, then run helm uninstall {release}"
        ));
    }
    if let Some(other) = objects
        .iter()
        .find_map(|object| other_namespace(&object.live, &args.argo_cd.namespace))
    {
        problems.push(format!(
            "it is installed in namespace {other}: pass --namespace {other}"
        ));
    }
    let namespace = &args.argo_cd.namespace;
    let has_proxy = objects.iter().any(|object| name(&object.live) == REDIS_PROXY);
    if has_proxy
        && let Some(settings) = hub.config_map(namespace, CMD_PARAMS).await?
        && needs_redis_proxy(&settings)
    {
        problems.push(format!(
            "ConfigMap {namespace}/{CMD_PARAMS}: redis.server names our principal, and another field manager has set it too: set \
             the address of Argo CD's Redis first"
        ));
    }
    let all = async |resource: &Resource| hub.list(&resource.path(""), "").await;
    let enforces_holds = |object: &InstalledObject| name(&object.live).starts_with("argocd-ocm-cmp-holds.");
    if objects.iter().any(enforces_holds) {
        let holds = read_holds(hub).await?.into_iter();
        problems.extend(holds.filter(|hold| !hold.is_over(Timestamp::now())).map(|hold| {
            format!(
                "{}, which its admission policy enforces: run argocd-ocm-cmp release {}",
                hold.describe(),
                hold.cluster
            )
        }));
    }
    problems.extend(stuck_deletions(
        &args.argo_cd.namespace,
        &all(&GITOPS_CLUSTERS).await?.unwrap_or_default(),
        &all(&APPLICATIONS).await?.unwrap_or_default(),
    ));
    Problems::or(problems, ())
}

/// Deletes one of our objects, unless others need it, and returns a line about it. `mounted` are the ConfigMaps that Argo CD's Pods need.
async fn remove(
    hub: &InstallHub,
    object: &InstalledObject,
    mounted: &BTreeSet<String>,
    args: &HubUninstallArgs,
) -> Result<String, String> {
    let shown = &object.shipped;
    match object.shipped.kind() {
        "CustomResourceDefinition" => match objects_of(hub, &object.live).await? {
            Some(0) => {}
            Some(left) => return Ok(format!("{shown} kept: it has {}\n", count(left, "object"))),
            None => {
                return Ok(format!(
                    "{shown} kept: it is not served and may have objects: see its conditions\n"
                ));
            }
        },
        "AppProject" => {
            let all = hub.list(&APPLICATIONS.path(""), "").await?.unwrap_or_default();
            let belongs_to_it = |application: &&Value| application["spec"]["project"] == PROJECT;
            let left = all.iter().filter(belongs_to_it).count();
            if left > 0 {
                return Ok(format!("{shown} kept: it has {}\n", count(left, "Application")));
            }
        }
        "ClusterManagementAddOn" | "AddOnTemplate" | "AddOnDeploymentConfig" => {
            let clusters = clusters_with_argocd(hub).await?;
            if clusters > 0 {
                return Ok(format!(
                    "{shown} kept: it installs Argo CD on {}: to remove Argo CD there, run kubectl delete \
                     clustermanagementaddon {}, then uninstall again\n",
                    count(clusters, "managed cluster"),
                    ocm::pull_model::ADDON
                ));
            }
        }
        "ConfigMap" if mounted.contains(name(&object.live)) => {
            return Ok(format!(
                "{shown} kept: Argo CD's Pods need it to start: remove the volume there, then uninstall again\n"
            ));
        }
        "ConfigMap" => {
            if let Some(why) = content_of_administrator(&object.live) {
                let (namespace, name) = (&args.argo_cd.namespace, name(&object.live));
                return Ok(format!(
                    "{shown} kept: {why}: to delete it, run kubectl -n {namespace} delete configmap {name}\n"
                ));
            }
        }
        _ => {}
    }
    if !args.dry_run {
        hub.delete(&object.shipped.path(), &object.live).await?;
    }
    Ok(format!("{shown} deleted{}\n", dry_run_note(args.dry_run)))
}

/// Counts the managed clusters on which the add-on has installed Argo CD.
async fn clusters_with_argocd(hub: &InstallHub) -> Result<usize, String> {
    let all = hub.list(&ADDONS.path(""), "").await?.unwrap_or_default();
    let is_it = |addon: &&Value| addon["metadata"]["name"] == ocm::pull_model::ADDON;
    Ok(all.iter().filter(is_it).count())
}

/// Counts the objects of the kind of a CRD, if the API server serves it.
async fn objects_of(hub: &InstallHub, crd: &Value) -> Result<Option<usize>, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &crd["spec"];
    let mut versions = items(&spec["versions"]).iter();
    let Some(version) = versions.find(|version| version["served"] == true) else {
        return Ok(None);
    };
    let [group, version, plural] = [&spec["group"], &version["name"], &spec["names"]["plural"]].map(text);
    let all = hub.list(&format!("/apis/{group}/{version}/{plural}"), "").await?;
    Ok(all.map(|all| all.len()))
}

/// Deletes the Lease of the controller, which cannot create a new one without its permissions.
async fn remove_lease(hub: &InstallHub, args: &HubUninstallArgs) -> Result<String, String> {
    let path = LEASES.path(&args.argo_cd.namespace);
    let Some(live) = hub.get(&path, LEASE).await? else {
        return Ok(String::new());
    };
    if !args.dry_run {
        hub.delete(&path, &live).await?;
    }
    Ok(format!(
        "lease.coordination.k8s.io/{LEASE} deleted{}\n",
        dry_run_note(args.dry_run)
    ))
}
