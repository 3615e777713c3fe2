//! The principal of argocd-agent on a hub: ours, or one that was there before, whose settings are checked.

use super::ShippedObject;
use super::argo_cd::{NAME, OURS};
use super::ownership::is_ours_alone;
use crate::workload::{arguments, containers, setting};
use ocm::boolean::is_true;
use serde_json::Value;
use std::fmt;

/// The Deployments of a principal, as named by argocd-agent and by Red Hat's operator.
pub const PRINCIPALS: [&str; 2] = ocm::argocd_agent::PRINCIPAL_DEPLOYMENTS;

/// The ConfigMap with the settings of argocd-agent's own manifests.
pub const PARAMS: &str = "argocd-agent-params";

/// The ConfigMap with Argo CD's own settings.
pub const CMD_PARAMS: &str = "argocd-cmd-params-cm";

/// The Service of our principal before Argo CD's Redis, which deploy/redis_proxy.yaml names.
pub const REDIS_PROXY: &str = "argocd-agent-redis-proxy";

/// Argo CD's Redis without a setting.
const REDIS: &str = "argocd-redis:6379";

/// The installer of the hub's principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The principal of deploy/deploy_principal.yaml.
    Ours {
        /// True if Argo CD reaches its Redis through it. Argo CD has no Redis while the principal is not ready.
        serves_redis: bool,
    },
    /// Another's, which `install` does not write.
    Theirs {
        /// See [`maps_by_destination`].
        maps_by_destination: bool,
    },
}

impl Principal {
    /// Returns true if a file of the feature argocd-agent is not installed.
    pub(super) fn leaves_out(self, file: &str) -> bool {
        match (file, self) {
            ("deploy/redis_proxy.yaml", Self::Ours { serves_redis }) => !serves_redis,
            ("deploy/deploy_principal.yaml" | "deploy/redis_proxy.yaml", Self::Theirs { .. }) => true,
            ("deploy/principal_admission.yaml", Self::Theirs { maps_by_destination }) => !maps_by_destination,
            _ => false,
        }
    }
}

/// Returns true if we have installed a principal. Another's has the label of argocd-agent's manifests.
pub fn is_our_principal(principal: &Value) -> bool {
    principal["metadata"]["labels"][NAME] == OURS
}

/// A setting of the principal: its flag, its environment variable, and its key in the ConfigMap argocd-agent-params of
/// argocd-agent's own manifests.
struct PrincipalSetting {
    flag: &'static str,
    variable: &'static str,
    key: &'static str,
}

const AUTH: PrincipalSetting = PrincipalSetting {
    flag: "--auth",
    variable: "ARGOCD_PRINCIPAL_AUTH",
    key: "principal.auth",
};
const LISTEN_HOST: PrincipalSetting = PrincipalSetting {
    flag: "--listen-host",
    variable: "ARGOCD_PRINCIPAL_LISTEN_HOST",
    key: "principal.listen.host",
};
const MAPPING: PrincipalSetting = PrincipalSetting {
    flag: "--destination-based-mapping",
    variable: "ARGOCD_PRINCIPAL_DESTINATION_BASED_MAPPING",
    key: "principal.destination-based-mapping",
};

/// The start of a pattern that takes the name of the cluster from the certificates of this add-on's agents.
const PATTERN: &str = "CN=system:open-cluster-management:cluster:(";

/// The value of `--auth` in deploy/deploy_principal.yaml.
const AUTH_VALUE: &str = "mtls:subject:^CN=system:open-cluster-management:cluster:([^:,]+):addon:argocd-agent-addon:agent:\
                          argocd-agent-addon-agent(,|$)";

/// A setting of a principal with which agents cannot connect, or get no Applications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongSetting {
    /// The problem.
    pub problem: &'static str,
    /// The remediation.
    pub remediation: String,
}

impl fmt::Display for WrongSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem, self.remediation)
    }
}

/// Returns the wrong settings of a principal. `params` is the ConfigMap argocd-agent-params, if it exists.
pub fn wrong_settings(principal: &Value, params: Option<&Value>) -> Vec<WrongSetting> {
    let value = |setting: &PrincipalSetting| effective(principal, params, setting);
    let mut wrong = Vec::new();
    let mut report = |setting: &PrincipalSetting, problem: &'static str, right: &str| {
        let PrincipalSetting { flag, variable, key } = setting;
        wrong.push(WrongSetting {
            problem,
            remediation: format!("set {flag}, {variable}, or {key} in ConfigMap {PARAMS}, to {right}"),
        });
    };
    if !value(&AUTH).is_some_and(|value| value.starts_with("mtls:") && value.contains(PATTERN)) {
        report(
            &AUTH,
            "it does not take the names of clusters from their certificates",
            AUTH_VALUE,
        );
    }
    if value(&LISTEN_HOST).is_some_and(|value| ["127.0.0.1", "localhost", "::1"].contains(&value)) {
        report(
            &LISTEN_HOST,
            "it cannot be reached from outside its Pod",
            "an empty value",
        );
    }
    if !maps_by_destination(principal, params) {
        report(
            &MAPPING,
            "in the mode managed, it finds no cluster by spec.destination.name",
            "true",
        );
    }
    wrong
}

/// Returns true if a principal assigns Applications to agents by `spec.destination.name`. Only such a principal needs the limits of
/// deploy/principal_admission.yaml. They would stop others, whose agents may have Applications with any destination in their namespaces.
pub fn maps_by_destination(principal: &Value, params: Option<&Value>) -> bool {
    effective(principal, params, &MAPPING).is_some_and(is_true)
}

/// Returns Argo CD's Redis if Argo CD has another one than the principal, which is to stand before it. `cmd_params` and `params` are
/// the ConfigMaps [`CMD_PARAMS`] and [`PARAMS`], if they exist.
pub fn unknown_redis<'v>(cmd_params: Option<&'v Value>, params: Option<&Value>) -> Option<&'v str> {
    let redis = cmd_params?["data"]["redis.server"].as_str()?;
    let known = params.and_then(principals_redis).unwrap_or(REDIS);
    (!is_redis_proxy(redis) && !redis.is_empty() && redis != known).then_some(redis)
}

/// Returns true if Argo CD is to reach its Redis through our principal: it does already, or the feature is requested and the principal is
/// ready. Without a ready principal, Argo CD would have no Redis. `cmd_params` is the ConfigMap [`CMD_PARAMS`], if it exists.
pub fn serves_redis(is_requested: bool, is_ready: bool, cmd_params: Option<&Value>) -> bool {
    cmd_params.and_then(find_redis_proxy).is_some() || is_requested && is_ready
}

/// Returns true if `object` replaces no setting of Argo CD but the address of Redis. `live` is the ConfigMap on the hub. The caller has
/// checked with [`unknown_redis`] that the principal knows that address.
pub fn replaces_only_redis(object: &ShippedObject, live: &Value) -> bool {
    let settings = object.value["data"].as_object();
    let is_kept = |(key, value): (&String, &Value)| {
        key == "redis.server" || live["data"].get(key).is_none_or(|present| present == value)
    };
    object.name() == CMD_PARAMS && settings.is_some_and(|settings| settings.iter().all(is_kept))
}

/// Returns true if Argo CD would no longer reach its Redis through our principal. `live` and `desired` are the ConfigMap [`CMD_PARAMS`] on
/// the hub, and as it will be applied. A field that another manager owns too stays.
pub fn drops_redis_proxy(live: &Value, desired: &Value) -> bool {
    desired["data"]["redis.server"].is_null() && find_redis_proxy(live).is_some() && !needs_redis_proxy(live)
}

/// Returns true if Argo CD needs the proxy of our principal also without our fields, because another manager has set it. `live` is the
/// ConfigMap [`CMD_PARAMS`].
pub fn needs_redis_proxy(live: &Value) -> bool {
    find_redis_proxy(live).is_some() && !is_ours_alone(live, "/f:data/f:redis.server")
}

/// Returns Argo CD's Redis as the principal knows it, unless it is the default. `params` is the ConfigMap [`PARAMS`].
pub fn other_redis(params: &Value) -> Option<&str> {
    principals_redis(params).filter(|redis| *redis != REDIS)
}

/// Returns Argo CD's setting `redis.server` if it names the proxy of our principal. `cmd_params` is the ConfigMap [`CMD_PARAMS`].
pub fn find_redis_proxy(cmd_params: &Value) -> Option<&str> {
    let redis = cmd_params["data"]["redis.server"].as_str();
    redis.filter(|redis| is_redis_proxy(redis))
}

fn principals_redis(params: &Value) -> Option<&str> {
    params["data"]["principal.redis.server.address"].as_str()
}

fn is_redis_proxy(redis: &str) -> bool {
    redis.split([':', '.']).next() == Some(REDIS_PROXY)
}

/// Returns the value of a setting in the container of the principal; other containers have other commands.
fn effective<'v>(principal: &'v Value, params: Option<&'v Value>, wanted: &PrincipalSetting) -> Option<&'v str> {
    let containers = containers(principal);
    let is_principal = |container: &&Value| arguments(container).any(|word| word == "principal");
    let container = containers.iter().find(is_principal).or(containers.first())?;
    setting(container, params, wanted.flag, wanted.variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::tests::shipped_object;
    use crate::install::{MANAGER, PART_MANAGERS};
    use serde_json::json;

    /// Returns the Deployment of argocd-agent's own manifests, which takes its settings from a ConfigMap.
    fn theirs() -> Value {
        let variable = |name: &str, key: &str| json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": "argocd-agent-params", "key": key, "optional": true}}});
        let env = [AUTH, LISTEN_HOST, MAPPING].map(|setting| variable(setting.variable, setting.key));
        let container = json!({"name": "argocd-agent-principal", "args": ["principal"], "env": env});
        json!({
            "metadata": {"name": PRINCIPALS[0], "labels": {"app.kubernetes.io/name": PRINCIPALS[0]}},
            "spec": {"template": {"spec": {"containers": [container]}}},
        })
    }

    #[test]
    fn our_principal_is_recognized_and_has_the_right_settings() {
        let live = shipped_object("Deployment", PRINCIPALS[0]).value;
        assert!(is_our_principal(&live) && !is_our_principal(&theirs()));
        assert_eq!(wrong_settings(&live, None), []);
        assert!(live.to_string().contains(AUTH_VALUE));
    }

    #[test]
    fn only_the_redis_that_the_principal_knows_is_replaced() {
        let object = |data| {
            let mut object = shipped_object("ConfigMap", CMD_PARAMS);
            object.value["data"] = data;
            object
        };
        let live =
            json!({"data": {"redis.server": "argocd-redis-ha-haproxy:6379", "server.enable.proxy.extension": "false"}});
        let redis = object(json!({"redis.server": "argocd-agent-redis-proxy:6379"}));
        assert!(replaces_only_redis(&redis, &live));
        let other = object(json!({"redis.server": "x", "server.enable.proxy.extension": "true"}));
        assert!(!replaces_only_redis(&other, &live), "an administrator has set it");
        assert!(!replaces_only_redis(
            &shipped_object("Deployment", PRINCIPALS[0]),
            &live
        ));
    }

    #[test]
    fn settings_of_argocd_agents_own_manifests_are_reported() {
        let defaults = json!({"data": {
            "principal.auth": "mtls:CN=([^,]+)",
            "principal.listen.host": "127.0.0.1",
            "principal.destination-based-mapping": "false",
        }});
        let settings = wrong_settings(&theirs(), Some(&defaults));
        let wrong: Vec<&str> = settings.iter().map(|setting| setting.problem).collect();
        assert_eq!(
            wrong,
            [
                "it does not take the names of clusters from their certificates",
                "it cannot be reached from outside its Pod",
                "in the mode managed, it finds no cluster by spec.destination.name",
            ]
        );
        assert_eq!(
            settings[1].remediation,
            "set --listen-host, ARGOCD_PRINCIPAL_LISTEN_HOST, or principal.listen.host in ConfigMap argocd-agent-params, to an empty value"
        );
        let right = json!({"data": {
            "principal.auth": AUTH_VALUE,
            "principal.listen.host": "",
            "principal.destination-based-mapping": "true",
        }});
        assert_eq!(wrong_settings(&theirs(), Some(&right)), []);
        let short = json!({"data": {"principal.destination-based-mapping": "1"}});
        assert!(maps_by_destination(&theirs(), Some(&short)), "it gets the limits");
    }

    #[test]
    fn another_redis_than_the_principals_is_found() {
        let argocd = |redis: &str| json!({"data": {"redis.server": redis}});
        let ha = "argocd-redis-ha-haproxy:6379";
        assert_eq!(unknown_redis(Some(&argocd(ha)), None), Some(ha));
        let known = json!({"data": {"principal.redis.server.address": ha}});
        assert_eq!(unknown_redis(Some(&argocd(ha)), Some(&known)), None);
        for redis in ["", "argocd-redis:6379", "argocd-agent-redis-proxy:6379"] {
            assert_eq!(unknown_redis(Some(&argocd(redis)), None), None, "{redis}");
        }
        assert_eq!(unknown_redis(Some(&json!({})), None), None);
        assert_eq!(unknown_redis(None, None), None);
    }

    #[test]
    fn redis_is_put_behind_a_ready_principal_only() {
        let argocd = |redis: &str| json!({"data": {"redis.server": redis}});
        let proxy = argocd("argocd-agent-redis-proxy:6379");
        for (is_requested, is_ready, cmd_params, expected) in [
            (true, false, None, false),
            (true, true, None, true),
            (false, true, None, false),
            (false, false, Some(&proxy), true),
            (true, false, Some(&argocd("argocd-redis:6379")), false),
        ] {
            let decided = serves_redis(is_requested, is_ready, cmd_params);
            assert_eq!(decided, expected, "{is_requested} {is_ready} {cmd_params:?}");
            let principal = Principal::Ours { serves_redis: decided };
            assert_eq!(principal.leaves_out("deploy/redis_proxy.yaml"), !expected);
        }
    }

    #[test]
    fn argo_cds_redis_is_given_back_when_the_proxy_is_dropped() {
        let argocd = |redis: Value| json!({"data": {"redis.server": redis}});
        let ha = "argocd-redis-ha-haproxy:6379";
        let known = |redis: &str| json!({"data": {"principal.redis.server.address": redis}});
        let proxy = argocd(json!("argocd-agent-redis-proxy:6379"));
        let none = argocd(Value::Null);
        assert_eq!(other_redis(&known(ha)), Some(ha));
        assert_eq!(other_redis(&known(REDIS)), None, "it is the default");
        assert_eq!(other_redis(&json!({})), None);
        let owned = |mut live: Value, managers: &[&str]| {
            let fields = json!({"f:data": {"f:redis.server": {}}});
            let entries = managers
                .iter()
                .map(|manager| json!({"manager": manager, "fieldsV1": fields}));
            live["metadata"]["managedFields"] = entries.collect();
            live
        };
        let ours = owned(proxy.clone(), &[PART_MANAGERS[1]]);
        assert!(drops_redis_proxy(&ours, &none) && !drops_redis_proxy(&ours, &proxy));
        assert!(!drops_redis_proxy(&owned(argocd(json!("other")), &[MANAGER]), &none));
        let shared = owned(proxy, &[MANAGER, "kubectl"]);
        assert!(!drops_redis_proxy(&shared, &none), "it stays");
        assert!(needs_redis_proxy(&shared) && !needs_redis_proxy(&ours));
    }

    #[test]
    fn malformed_deployments_are_reported_and_never_panic() {
        for malformed in [
            Value::Null,
            json!({"spec": {"template": {"spec": {"containers": "none"}}}}),
        ] {
            assert_eq!(
                wrong_settings(&malformed, Some(&Value::Null)).len(),
                2,
                "it has no settings"
            );
        }
    }
}
