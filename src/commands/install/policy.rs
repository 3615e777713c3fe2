//! The policy of the sidecar on a hub: the current one, and whether the ConfigMap to be mounted exists.

use super::{InstallHub, qualified_name};
use crate::cli::HubInstallArgs;
use crate::install::{
    Feature, InstallOptions, POLICY, POLICY_KEY, PolicySource, ShippedObject, decide, has_other_limits,
    is_open_project, live_policy,
};
use crate::workload::named;
use generate::policy;
use generate::policy::Policy;
use manifest::problem::Problems;
use serde_json::Value;

/// Returns the policy from the flags, if any. Checks the file as `policy check` does.
pub(super) fn requested(args: &HubInstallArgs) -> Result<Option<PolicySource>, Problems> {
    let is_named = args.features.contains(&Feature::POLICY);
    if args.no_policy && is_named {
        return Err(Problems::one(
            "--no-policy and the feature policy contradict each other: leave one of the two out",
        ));
    }
    Ok(match (&args.policy, &args.policy_configmap) {
        _ if args.no_policy => Some(PolicySource::None),
        (Some(file), _) => Some(PolicySource::Text(policy::load_with_text(file)?.1)),
        (_, Some(name)) => Some(PolicySource::ConfigMap(name.clone())),
        _ => is_named.then_some(PolicySource::Sample),
    })
}

/// Decides the policy of the sidecar from its current one, with a line for the user where needed.
pub(super) async fn decided(
    hub: &InstallHub,
    options: &InstallOptions,
    workloads: &[Value],
    requested: Option<PolicySource>,
) -> Result<(PolicySource, Option<String>), Problems> {
    if !options.has_feature(Feature::PLUGIN) && requested.is_none() {
        return Ok((PolicySource::Sample, None));
    }
    let (namespace, name) = (&options.namespace, &options.argo_cd.repo_server);
    let live = live_policy(named(workloads, name));
    let is_requested = requested.is_some();
    let (source, about) = decide(requested, &live, &format!("Deployment {namespace}/{name}"))?;
    let to_mount = match &source {
        PolicySource::ConfigMap(name) if is_requested => Some(name.as_str()),
        PolicySource::Sample | PolicySource::Text(_) if options.additions_only => Some(POLICY),
        _ => None,
    };
    if let Some(name) = to_mount {
        check_mounted(hub, &options.namespace, name).await?;
    }
    Ok((source, about))
}

/// Checks the ConfigMap that is to be mounted and that this command does not write: without it, the Pod does not start.
async fn check_mounted(hub: &InstallHub, namespace: &str, name: &str) -> Result<(), Problems> {
    let live = hub.config_map(namespace, name).await?;
    let text = live.as_ref().and_then(|live| live["data"][POLICY_KEY].as_str());
    let Some(text) = text else {
        return Err(Problems::one(format!(
            "ConfigMap {namespace}/{name} does not exist or has no key {POLICY_KEY}: create it first, or pass --no-policy"
        )));
    };
    Policy::parse(text, &format!("ConfigMap {namespace}/{name}")).map(drop)
}

/// The decision of `install` about an object that exists.
pub(super) enum Existing {
    /// The object is applied.
    Overwrite,
    /// The object stays, with this text to add to the line about it.
    Keep(&'static str),
    /// The object prevents the installation.
    Reject(String),
}

/// Decides if an existing policy, AppProject or role for others stays. None of them is overwritten.
pub(super) fn kept(args: &HubInstallArgs, source: &PolicySource, object: &ShippedObject, live: &Value) -> Existing {
    match (object.kind(), object.name()) {
        ("ConfigMap", POLICY) => match source {
            PolicySource::Text(text) if live["data"][POLICY_KEY] != text.as_str() => {
                if args.force_conflicts {
                    return Existing::Overwrite;
                }
                Existing::Reject(format!(
                    "{}: its policy differs from --policy: leave --policy out to keep it, or pass --force-conflicts to replace it",
                    qualified_name(object)
                ))
            }
            _ => Existing::Keep(""),
        },
        ("AppProject", _) if is_open_project(live) && !args.force_conflicts => Existing::Keep(
            ": its destinations permit every namespace of the hub: replace them with those of proj.yaml, or pass --force-conflicts",
        ),
        _ if has_other_limits(object, live) && !args.force_conflicts => {
            Existing::Keep(": its limits differ from ours: to replace them, pass --force-conflicts")
        }
        _ => Existing::Overwrite,
    }
}

/// Returns a line about the sample, if it was just created.
pub(super) fn about_sample(source: &PolicySource, object: &ShippedObject, live: Option<&Value>) -> Option<String> {
    let is_new =
        live.is_none() && *source == PolicySource::Sample && object.kind() == "ConfigMap" && object.name() == POLICY;
    is_new.then(|| {
        format!(
            "{}: the sample policy allows only the quick start of the README: add what your AppProjects need\n",
            qualified_name(object)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::install::tests::args;
    use crate::install::objects;
    use serde_json::json;

    #[test]
    fn narrowed_project_stays_unless_forced() {
        let objects = objects(&InstallOptions::everything("argocd"));
        let project = objects.iter().find(|object| object.kind() == "AppProject");
        let project = project.expect("the project");
        let decide = |flags: &[&str], live: &Value| kept(&args(flags), &PolicySource::Sample, project, live);
        let mut live = project.value.clone();
        assert!(matches!(decide(&[], &live), Existing::Overwrite));
        live["spec"]["destinations"] = json!([{"namespace": "cluster1", "server": "https://kubernetes.default.svc"}]);
        assert!(matches!(decide(&[], &live), Existing::Keep(_)));
        assert!(matches!(decide(&["--force-conflicts"], &live), Existing::Overwrite));
    }
}
