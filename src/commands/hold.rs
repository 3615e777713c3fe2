//! `hold` and `release`: freeze managed clusters, list the frozen ones, and end that.

use super::admission::{POLICIES, why_unenforced};
use super::install::{InstallHub, finish, with_hub};
use super::{Exit, warn};
use crate::cli::{HoldArgs, ReleaseArgs};
use crate::doctor::is_renewed;
use crate::hold::{Holds, end};
use crate::list;
use crate::workload::name;
use controller::LEASE;
use generate::similar::similar;
use jiff::Timestamp;
use manifest::problem::Problems;
use ocm::hold::{Hold, LABEL, policy_time};
use ocm::resources::{CLUSTERS, LEASES, NAMESPACES};
use serde_json::Value;
use std::collections::BTreeSet;

/// The name of the policy, before the namespace of Argo CD.
const POLICY: &str = "argocd-ocm-cmp-holds.";

pub(super) fn run(args: &HoldArgs) -> Result<Exit, Problems> {
    let mut lines = String::new();
    let done = if args.clusters.is_empty() {
        let listed = with_hub(&args.hub, "reading the hub", async |hub| list_holds(&hub, args).await);
        listed.map(|(text, unenforced)| {
            warn(&unenforced);
            lines = text;
        })
    } else {
        with_hub(&args.hub, "holding", async |hub| hold(&hub, args, &mut lines).await)
    };
    finish(&lines, done)
}

pub(super) fn run_release(args: &ReleaseArgs) -> Result<Exit, Problems> {
    let mut lines = String::new();
    let done = with_hub(&args.hub, "releasing", async |hub| {
        release(&hub, args, &mut lines).await
    });
    finish(&lines, done)
}

/// Reads the holds of all managed clusters.
pub(super) async fn read_holds(hub: &InstallHub) -> Result<Vec<Hold>, String> {
    let namespaces = hub.list(&NAMESPACES.path(""), LABEL).await?.unwrap_or_default();
    Ok(namespaces.iter().filter_map(Hold::from_namespace).collect())
}

/// Returns the holds, and a line about each type of hold that the hub does not enforce.
async fn list_holds(hub: &InstallHub, args: &HoldArgs) -> Result<(String, Vec<String>), Problems> {
    let now = Timestamp::now();
    let lease = read_lease(hub, &args.argo_cd.namespace).await;
    let holds = Holds {
        all: read_holds(hub).await?,
        now,
        policy_time: lease.map_or(now, |lease| policy_time(lease.as_ref())),
    };
    let mut unenforced = Vec::new();
    let types: BTreeSet<bool> = holds.all.iter().map(|hold| hold.until.is_some()).collect();
    for has_end in types {
        unenforced.extend(check_policy(hub, &args.argo_cd.namespace, has_end).await.err());
    }
    Ok((list::format_list(&holds, args.output)?, unenforced))
}

/// Begins the holds, and adds a line about each.
async fn hold(hub: &InstallHub, args: &HoldArgs, lines: &mut String) -> Result<(), Problems> {
    let until = args.until.as_deref().map(|text| end(text, Timestamp::now()));
    let until = until.transpose()?;
    check_clusters(hub, &args.clusters).await?;
    check_policy(hub, &args.argo_cd.namespace, until.is_some()).await?;
    for cluster in &args.clusters {
        let hold = Hold {
            cluster: cluster.clone(),
            until: until.clone(),
            reason: args.reason.clone(),
        };
        // The right to patch is sufficient.
        let namespace = hub.get(&NAMESPACES.path(""), cluster).await.ok().flatten();
        let earlier = namespace.as_ref().and_then(Hold::from_namespace);
        hub.patch(&NAMESPACES.path(""), cluster, &hold.patch()).await?;
        lines.push_str(&hold.describe());
        // It may be that of another user.
        if let Some(earlier) = earlier.filter(|earlier| *earlier != hold) {
            lines.extend([", before ", &earlier.state()]);
        }
        lines.push('\n');
    }
    Ok(())
}

/// Ends the holds, and adds a line about each.
async fn release(hub: &InstallHub, args: &ReleaseArgs, lines: &mut String) -> Result<(), Problems> {
    let mut problems = Vec::new();
    let mut held = Vec::new();
    for cluster in &args.clusters {
        match hub.get(&NAMESPACES.path(""), cluster).await? {
            Some(namespace) => held.push((cluster, Hold::from_namespace(&namespace).is_some())),
            None => problems.push(format!(
                "managed cluster {cluster} has no namespace on the hub: check its name"
            )),
        }
    }
    Problems::or(problems, ())?;
    for (cluster, is_held) in held {
        if is_held {
            hub.patch(&NAMESPACES.path(""), cluster, &Hold::release()).await?;
        }
        let what = if is_held { "released" } else { "was not on hold" };
        lines.extend(["managed cluster ", cluster.as_str(), " ", what, "\n"]);
    }
    Ok(())
}

/// Checks that all clusters are registered: a typing error must not leave a cluster unprotected.
async fn check_clusters(hub: &InstallHub, clusters: &[String]) -> Result<(), Problems> {
    let registered = hub.list(&CLUSTERS.path(""), "").await?.unwrap_or_default();
    let registered: Vec<&str> = registered.iter().map(name).collect();
    let unknown = clusters
        .iter()
        .filter(|cluster| !registered.contains(&cluster.as_str()));
    let problems = unknown.map(|cluster| {
        let meant = similar(cluster, registered.iter().copied());
        let meant = meant.map_or(String::new(), |meant| format!(": did you mean {meant}?"));
        format!("managed cluster {cluster} is not registered{meant}")
    });
    Problems::or(problems.collect(), ())
}

/// Checks that the hub enforces holds; with a time, that it knows when the time has come.
async fn check_policy(hub: &InstallHub, namespace: &str, has_end: bool) -> Result<(), String> {
    let policy = format!("{POLICY}{namespace}");
    let binding = if has_end { "timedholds" } else { "holds" };
    let binding = format!("argocd-ocm-cmp-{binding}.{namespace}");
    if let Some(missing) = why_unenforced(hub, &policy, &binding).await? {
        // Without the permission to list them, the message about the missing policy is sufficient.
        let policies = hub.list(POLICIES, "").await.ok().flatten().unwrap_or_default();
        return Err(describe_other_namespaces(namespace, &policies).unwrap_or_else(|| {
            format!(
                "the hub enforces no holds: {missing}: run argocd-ocm-cmp install with the feature controller, which requires Kubernetes 1.30"
            )
        }));
    }
    if !has_end {
        return Ok(());
    }
    let problem = match read_lease(hub, namespace).await? {
        None => "does not exist",
        // The policy reads the time of the last renewal.
        Some(lease) if !is_renewed(&lease, Timestamp::now()) => "is not renewed",
        Some(_) => return Ok(()),
    };
    Err(format!(
        "Lease {namespace}/{LEASE} {problem}, so a hold would not end by itself: start the controller, or hold without --until"
    ))
}

/// Reads the Lease of the controller.
async fn read_lease(hub: &InstallHub, namespace: &str) -> Result<Option<Value>, String> {
    hub.get(&LEASES.path(namespace), LEASE).await
}

/// Returns the error about a namespace without the policy, if the policies of the hub have it for an Argo CD elsewhere.
fn describe_other_namespaces(namespace: &str, policies: &[Value]) -> Option<String> {
    let names = policies.iter().map(name);
    let others: Vec<_> = names.filter_map(|name| name.strip_prefix(POLICY)).collect();
    (!others.is_empty() && !others.contains(&namespace)).then(|| {
        format!(
            "namespace {namespace} has no policy for holds: pass the namespace of Argo CD with --namespace: {}",
            others.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_the_namespace_of_an_argo_cd_elsewhere() {
        let policy = |name: &str| json!({"metadata": {"name": name}});
        let mut policies = vec![policy("argocd-ocm-cmp-works.gitops"), policy("other")];
        assert_eq!(describe_other_namespaces("argocd", &policies), None);
        policies.push(policy("argocd-ocm-cmp-holds.gitops"));
        assert_eq!(
            describe_other_namespaces("argocd", &policies).as_deref(),
            Some("namespace argocd has no policy for holds: pass the namespace of Argo CD with --namespace: gitops")
        );
        assert_eq!(
            describe_other_namespaces("gitops", &policies),
            None,
            "its binding is missing"
        );
    }
}
