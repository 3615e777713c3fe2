//! The policy of the sidecar: kept by an existing installation, and set by a new one.

use super::argo_cd::SIDECAR;
use super::{PROJECT, ShippedObject, is_our_manager, parse_shipped_file};
use crate::workload::{item, items, name};
use generate::policy;
use serde_json::Value;

/// The ConfigMap of deploy/policy_cm.yaml.
pub const POLICY: &str = policy::CONFIG_MAP;

/// The only key of the ConfigMap.
pub const POLICY_KEY: &str = policy::CONFIG_MAP_KEY;

/// The variable that names the policy, and its value in deploy/deploy_policy.yaml.
const VARIABLE: (&str, &str) = ("ARGOCD_OCM_CMP_POLICY_FILE", policy::MOUNTED);

/// The source of the sidecar's policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PolicySource {
    /// The sample of deploy/policy_cm.yaml.
    #[default]
    Sample,
    /// This text, in the same ConfigMap.
    Text(String),
    /// Another ConfigMap, which `install` does not write.
    ConfigMap(String),
    /// The sidecar has no policy.
    None,
}

/// The policy of a live sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LivePolicy {
    /// There is no sidecar yet.
    NoSidecar,
    /// There is a sidecar without a policy.
    Open,
    /// The sidecar reads this ConfigMap, mounted as in deploy/deploy_policy.yaml.
    Mounted(String),
    /// The variable has another value.
    Foreign {
        /// True if one of our field managers owns a part of it.
        ours: bool,
    },
}

/// Reads the policy of the sidecar from the Deployment of the repo-server.
pub fn live_policy(repo_server: Option<&Value>) -> LivePolicy {
    let pod = &repo_server.unwrap_or(&Value::Null)["spec"]["template"]["spec"];
    let Some(sidecar) = item(&pod["containers"], SIDECAR) else {
        return LivePolicy::NoSidecar;
    };
    let Some(variable) = item(&sidecar["env"], VARIABLE.0) else {
        return LivePolicy::Open;
    };
    let volume = item(&pod["volumes"], POLICY);
    let config_map = volume.and_then(|volume| volume["configMap"]["name"].as_str());
    match config_map {
        Some(config_map) if variable["value"] == VARIABLE.1 => LivePolicy::Mounted(config_map.to_owned()),
        _ => LivePolicy::Foreign {
            ours: repo_server.is_some_and(has_applied_variable),
        },
    }
}

/// Returns true if one of our field managers has applied the variable.
fn has_applied_variable(repo_server: &Value) -> bool {
    let entries = items(&repo_server["metadata"]["managedFields"]).iter();
    let mut of_ours = entries.filter(|entry| is_our_manager(&entry["manager"]));
    of_ours.any(|entry| entry["fieldsV1"].to_string().contains(VARIABLE.0))
}

/// The policy of an installation, and a line for the user if the decision needs one.
pub(crate) type PolicyDecision = (PolicySource, Option<String>);

/// Decides the policy of the sidecar. `requested` is the policy from the flags, if any; `repo_server` names the Deployment for
/// people. Without a flag, an installation without a policy stays without one, and an existing policy stays; no flag removes a
/// policy.
///
/// # Errors
/// Returns an error if the flags request no policy, and the sidecar has one.
pub fn decide(requested: Option<PolicySource>, live: &LivePolicy, repo_server: &str) -> Result<PolicyDecision, String> {
    let of_config_map = |name: &String| {
        if name == POLICY {
            PolicySource::Sample
        } else {
            PolicySource::ConfigMap(name.clone())
        }
    };
    let decided = match (requested, live) {
        (Some(PolicySource::None), LivePolicy::Mounted(_) | LivePolicy::Foreign { ours: true }) => {
            return Err(format!(
                "{repo_server}: the sidecar has a policy, which --no-policy would remove: leave the flag out, or allow more in the policy"
            ));
        }
        (Some(PolicySource::Sample) | None, LivePolicy::Mounted(name)) => of_config_map(name),
        (None, LivePolicy::Open) => {
            let about = format!(
                "{repo_server}: the sidecar still has no policy, so AppProjects may deliver anything but plain Secrets: pass --policy \
                 FILE, or install the feature policy for the sample"
            );
            return Ok((PolicySource::None, Some(about)));
        }
        (None, LivePolicy::Foreign { ours: false }) => {
            let about = format!("{repo_server}: the sidecar keeps its own {}", VARIABLE.0);
            return Ok((PolicySource::None, Some(about)));
        }
        (requested, _) => requested.unwrap_or_default(),
    };
    Ok((decided, None))
}

/// Returns true if a ConfigMap, under any name, holds a policy that is not just the sample of this release.
pub fn is_own_policy(config_map: &Value) -> bool {
    let mut samples = parse_shipped_file("deploy/policy_cm.yaml");
    let is_policy = name(config_map) == POLICY || config_map["data"][POLICY_KEY].is_string();
    let is_sample =
        config_map["binaryData"].is_null() && samples.any(|sample| sample.value["data"] == config_map["data"]);
    is_policy && !is_sample
}

/// The objects that limit others on the hub and that an administrator narrows, as the comments of their files describe; each with the
/// field that has the limits.
const LIMITS: [(&str, &str, &str); 3] = [
    ("AppProject", PROJECT, "spec"),
    ("ClusterRole", "argocd-ocm-cmp", "rules"),
    ("ClusterRole", "argocd-ocm-cmp-actions", "rules"),
];

/// Returns true if a live object has other limits than ours: applying ours could lift them.
pub fn has_other_limits(object: &ShippedObject, live: &Value) -> bool {
    let limits = LIMITS
        .iter()
        .find(|(kind, name, _)| (object.kind(), object.name()) == (*kind, *name));
    limits.is_some_and(|(_, _, field)| object.value[field] != live[field])
}

/// Returns true if an AppProject permits every namespace of the hub, as that of an earlier release does.
pub fn is_open_project(project: &Value) -> bool {
    let mut destinations = items(&project["spec"]["destinations"]).iter();
    destinations.any(|destination| destination["namespace"] == "*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::tests::shipped_object;
    use crate::install::{MANAGER, PART_MANAGERS};
    use serde_json::json;

    fn repo_server(env: &Value, volume: &str) -> Value {
        let sidecar = json!({"name": SIDECAR, "env": env});
        let volumes = json!([{"name": "plugins"}, {"name": POLICY, "configMap": {"name": volume}}]);
        let spec = json!({"containers": [{"name": "argocd-repo-server"}, sidecar], "volumes": volumes});
        json!({"spec": {"template": {"spec": spec}}})
    }

    fn set_to(value: &str) -> Value {
        json!([{"name": VARIABLE.0, "value": value}])
    }

    #[test]
    fn reads_the_policy_of_a_sidecar() {
        let mounted = |name: &str| live_policy(Some(&repo_server(&set_to(VARIABLE.1), name)));
        assert_eq!(live_policy(None), LivePolicy::NoSidecar);
        let without = json!({"spec": {"template": {"spec": {"containers": [{"name": "argocd-repo-server"}]}}}});
        assert_eq!(live_policy(Some(&without)), LivePolicy::NoSidecar);
        assert_eq!(live_policy(Some(&repo_server(&json!([]), POLICY))), LivePolicy::Open);
        assert_eq!(mounted(POLICY), LivePolicy::Mounted(POLICY.to_owned()));
        assert_eq!(mounted("theirs"), LivePolicy::Mounted("theirs".to_owned()));
        let mut other = repo_server(&set_to("/elsewhere"), POLICY);
        assert_eq!(live_policy(Some(&other)), LivePolicy::Foreign { ours: false });
        for (manager, ours) in [("kubectl", false), (MANAGER, true), (PART_MANAGERS[0], true)] {
            let fields = json!({"f:env": {"k:{\"name\":\"ARGOCD_OCM_CMP_POLICY_FILE\"}": {}}});
            other["metadata"]["managedFields"] = json!([{"manager": manager, "fieldsV1": fields}]);
            assert_eq!(live_policy(Some(&other)), LivePolicy::Foreign { ours }, "{manager}");
        }
        // For the plugin, an empty variable, or one with `valueFrom`, does not mean "no policy" either.
        let from = json!([{"name": VARIABLE.0, "valueFrom": {}}]);
        for env in [set_to(""), from] {
            let live = live_policy(Some(&repo_server(&env, POLICY)));
            assert_eq!(live, LivePolicy::Foreign { ours: false }, "{env}");
        }
    }

    #[test]
    fn keeps_an_open_sidecar_open_and_a_closed_one_closed() {
        use LivePolicy::{Foreign, Mounted, NoSidecar, Open};
        use PolicySource::{ConfigMap, None as NoPolicy, Sample, Text};
        let (mounted, theirs) = (Mounted(POLICY.to_owned()), Mounted("theirs".to_owned()));
        let (text, named) = (Text("x".to_owned()), ConfigMap("theirs".to_owned()));
        let [foreign, half] = [false, true].map(|ours| Foreign { ours });
        for (requested, live, expected) in [
            (None, &NoSidecar, Ok(&Sample)),
            (None, &Open, Ok(&NoPolicy)),
            (None, &mounted, Ok(&Sample)),
            (None, &theirs, Ok(&named)),
            (None, &foreign, Ok(&NoPolicy)),
            // Otherwise our applied part would be removed: this is a conflict, which the API server reports.
            (None, &half, Ok(&Sample)),
            (Some(&Sample), &Open, Ok(&Sample)),
            (Some(&Sample), &theirs, Ok(&named)),
            (Some(&text), &NoSidecar, Ok(&text)),
            (Some(&text), &Open, Ok(&text)),
            (Some(&text), &mounted, Ok(&text)),
            (Some(&named), &Open, Ok(&named)),
            (Some(&NoPolicy), &NoSidecar, Ok(&NoPolicy)),
            (Some(&NoPolicy), &Open, Ok(&NoPolicy)),
            (Some(&NoPolicy), &foreign, Ok(&NoPolicy)),
            (Some(&NoPolicy), &mounted, Err(())),
            (Some(&NoPolicy), &theirs, Err(())),
            (Some(&NoPolicy), &half, Err(())),
        ] {
            let decided = decide(requested.cloned(), live, "Deployment argocd/argocd-repo-server");
            let source = decided.as_ref().map(|(source, _)| source).map_err(|_| ());
            assert_eq!(source, expected, "{requested:?} {live:?}");
            let has_line = decided.is_ok_and(|(_, line)| line.is_some());
            assert_eq!(
                has_line,
                requested.is_none() && (*live == Open || *live == foreign),
                "{requested:?} {live:?}"
            );
        }
    }

    #[test]
    fn edited_and_copied_policies_are_not_the_sample() {
        let mut live = shipped_object("ConfigMap", POLICY).value;
        assert!(!is_own_policy(&live));
        live["metadata"]["labels"] = json!({});
        assert!(!is_own_policy(&live), "only the text is compared");
        for (key, value) in [
            ("data", json!({})),
            ("data", json!({POLICY_KEY: "x"})),
            ("binaryData", json!({"a": ""})),
        ] {
            let mut changed = live.clone();
            changed[key] = value;
            assert!(is_own_policy(&changed), "{changed}");
        }
        live["data"]["more"] = json!("");
        assert!(is_own_policy(&live), "the sample has no such key");
        live["metadata"]["name"] = json!("ours");
        assert!(is_own_policy(&live), "a copy for --policy-configmap");
        live["data"] = json!({"plugin.yaml": ""});
        assert!(!is_own_policy(&live), "no policy");
    }

    #[test]
    fn narrowed_limits_differ_and_labels_do_not() {
        let role = shipped_object("ClusterRole", "argocd-ocm-cmp");
        let mut live = role.value.clone();
        live["metadata"]["labels"] = json!({"earlier": "release"});
        assert!(!has_other_limits(&role, &live));
        live["rules"][1]["resourceNames"] = json!(["system:serviceaccount:shop:deployer"]);
        assert!(has_other_limits(&role, &live));
        let project = shipped_object("AppProject", PROJECT);
        let mut live = project.value.clone();
        assert!(!has_other_limits(&project, &live));
        live["spec"]["syncWindows"] = json!([{"kind": "deny"}]);
        assert!(has_other_limits(&project, &live));
        let controllers = shipped_object("ClusterRole", "argocd-ocm-cmp-controller");
        assert!(
            !has_other_limits(&controllers, &json!({})),
            "the controller needs its permissions"
        );
    }

    #[test]
    fn every_object_with_limits_is_ours() {
        for (kind, name, field) in LIMITS {
            assert!(!shipped_object(kind, name).value[field].is_null(), "{kind} {name}");
        }
    }

    #[test]
    fn a_project_is_open_if_it_permits_every_namespace() {
        let project = |namespaces: &[&str]| {
            let all: Vec<_> = namespaces
                .iter()
                .map(|namespace| json!({"server": "x", "namespace": namespace}))
                .collect();
            json!({"spec": {"destinations": all}})
        };
        assert!(is_open_project(&project(&["a", "*"])));
        assert!(!is_open_project(&project(&["!argocd", "!kube-*"])) && !is_open_project(&json!({})));
    }
}
