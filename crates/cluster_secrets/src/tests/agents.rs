//! Tests of cluster Secrets for clusters with argocd-agent.

use super::*;
use hub_state::cluster_secret::CLUSTER_NAME;
use hub_state::model::TlsSecret;
use hub_state::testing::certificates::{authorities, authority, both, put};
use hub_state::testing::now;
use jiff::{SignedDuration, Timestamp};
use pki::Recipe;
use std::sync::OnceLock;

const OWNER_NAME: &str = "argocd/all";
const PROXY: &str = "https://argocd-agent-resource-proxy:9090";

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

/// A simulated hub at a point in time, with the Secret of its CA.
struct Hub<'h> {
    authority: &'h Value,
    now: Timestamp,
    manager: SecretManager<'h>,
    name: &'h str,
}

const AGENT: SecretManager<'_> = SecretManager::Agent {
    owner: OWNER_NAME,
    before: None,
    proxy: PROXY,
};

fn hub() -> Hub<'static> {
    Hub {
        authority: &authorities()[0],
        now: now(),
        manager: AGENT,
        name: "eu1",
    }
}

impl Hub<'_> {
    fn decide(&self, secrets: &[(&str, &Value)]) -> SecretUpdate {
        let labels = [
            ("env", "prod"),
            (AGENT_NAME, "us1"),
            ("argocd-agent.argoproj-labs.io/ignore-sync", "true"),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let labels = Labels::from_sorted(labels);
        let authority = TlsSecret::from_json(&self.authority.to_string()).expect("a Secret");
        let cluster = RegisteredCluster {
            name: self.name,
            labels: &labels,
            argocd: "argocd",
            tracking_label: "x",
            manager: self.manager,
            issuer: Issuer::from_secret(&authority, self.now),
        };
        let read = |secret: &Value| ClusterSecret::from_json(&secret.to_string()).expect("a Secret");
        let secrets: Vec<_> = secrets.iter().map(|(name, secret)| (*name, read(secret))).collect();
        for (name, secret) in &secrets {
            assert!(secret.concerns(name).contains(self.name), "{name}");
        }
        decide(&cluster, secrets.iter().map(|(name, secret)| (*name, secret)))
    }

    /// Returns the write and the certificate to issue.
    fn write(&self, secret: Option<&Value>) -> (Value, Option<Recipe>) {
        let name = self.manager.name(self.name);
        let secrets: Vec<_> = secret.into_iter().map(|secret| (name.as_str(), secret)).collect();
        let SecretUpdate {
            write,
            recipe,
            conflict,
        } = self.decide(&secrets);
        assert_eq!(conflict, None);
        let mut written = match write.expect("something is written") {
            Write::Create(object) => object,
            Write::Patch(patch) => {
                let mut written = secret.expect("it is there").clone();
                merge(&mut written, &patch);
                written
            }
        };
        written["metadata"]["resourceVersion"] = json!("8");
        if let Some(recipe) = &recipe {
            put(recipe, self.authority, &mut written);
        }
        assert_eq!(
            self.decide(&[(&name, &written)]),
            SecretUpdate::default(),
            "once is enough"
        );
        (written, recipe)
    }

    fn conflict(&self, name: &str, secret: &Value) -> String {
        let decision = self.decide(&[(name, secret)]);
        assert_eq!(decision.write, None);
        decision.conflict.expect("a conflict")
    }
}

fn made() -> &'static Value {
    static MADE: OnceLock<Value> = OnceLock::new();
    MADE.get_or_init(|| hub().write(None).0)
}

fn config(secret: &Value) -> Value {
    let ByteString(text) = serde_json::from_value(secret["data"]["config"].clone()).expect("base64");
    serde_json::from_slice(&text).expect("JSON")
}

fn with_config(config: &Value) -> Value {
    let mut secret = made().clone();
    secret["data"]["config"] = encoded(&config.to_string());
    secret
}

#[test]
fn agent_secret_matches_argocd_agentctl() {
    let made = made();
    assert_eq!(
        made["metadata"],
        json!({
            "name": "cluster-eu1",
            "namespace": "argocd",
            "resourceVersion": "8",
            "labels": {
                "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
                "apps.open-cluster-management.io/cluster-name": "eu1",
                "argocd-agent.argoproj-labs.io/agent-name": "eu1",
                "argocd.argoproj.io/secret-type": "cluster",
                "env": "prod",
            },
            "annotations": {
                "argocd.argoproj.io/skip-reconcile": "true",
                "argocd-ocm-cmp.github.io/gitopscluster": "argocd/all",
                "argocd-ocm-cmp.github.io/labels": "env",
                "managed-by": "argocd-agent",
            },
        })
    );
    assert_eq!(made["data"]["name"], encoded("eu1"));
    assert_eq!(
        made["data"]["server"],
        encoded("https://argocd-agent-resource-proxy:9090?agentName=eu1")
    );
    let config = config(made);
    assert_eq!(config["tlsClientConfig"]["caData"], hub().authority["data"]["tls.crt"]);
    let seen = ClusterSecret::from_json(&made.to_string()).expect("a Secret");
    let key = config["tlsClientConfig"]["keyData"].as_str().expect("a key");
    let shown = format!("{seen:?} {:?}", hub().decide(&[]));
    assert!(!shown.contains(key) && !shown.contains("PRIVATE"), "{shown}");
    assert_eq!(
        seen.renews_at(),
        Some(now() - SignedDuration::from_mins(5) + days(24) + SignedDuration::from_mins(4))
    );
}

#[test]
fn reissues_a_certificate_only_for_a_reason() {
    let mut later = hub();
    later.now = now() + days(23);
    assert_eq!(later.decide(&[("cluster-eu1", made())]), SecretUpdate::default());
    later.now = now() + days(24);
    let (renewed, recipe) = later.write(Some(made()));
    assert!(matches!(recipe, Some(Recipe::Client { validity, .. }) if validity.end == now() + days(54)));
    assert_eq!(renewed["metadata"]["labels"], made()["metadata"]["labels"]);
    // The clock was a day ahead when the certificate was issued, so it is not valid yet.
    later.now = now() - days(1);
    let (_, recipe) = later.write(Some(made()));
    assert!(matches!(recipe, Some(Recipe::Client { validity, .. }) if validity.start < later.now));

    let [one, other] = authorities();
    let (grown, turned) = (both(one, other), both(other, one));
    for authority in [other, &grown, &turned] {
        let hub = Hub { authority, ..hub() };
        let (_, recipe) = hub.write(Some(made()));
        assert!(recipe.is_some_and(|recipe| recipe.authority().is_some()));
    }

    let foreign = {
        let hub = Hub { name: "us1", ..hub() };
        config(&hub.write(None).0)
    };
    let mut other_key = config(made());
    other_key["tlsClientConfig"]["keyData"] = foreign["tlsClientConfig"]["keyData"].clone();
    let mut other_signer = {
        let hub = Hub {
            authority: other,
            ..hub()
        };
        config(&hub.write(None).0)
    };
    other_signer["tlsClientConfig"]["caData"] = config(made())["tlsClientConfig"]["caData"].clone();
    let mut insecure = config(made());
    insecure["tlsClientConfig"]["insecure"] = json!(true);
    for config in [
        foreign,
        other_key,
        other_signer,
        insecure,
        json!({}),
        json!("hunter2"),
        json!(null),
    ] {
        let (written, recipe) = hub().write(Some(&with_config(&config)));
        assert!(recipe.is_some(), "{config}");
        assert_eq!(written["metadata"], made()["metadata"]);
    }
    let mut none = made().clone();
    none["data"] = json!({"name": encoded("eu1"), "server": made()["data"]["server"]});
    assert!(hub().write(Some(&none)).1.is_some());
}

#[test]
fn ignores_fields_that_argo_cd_writes_to_an_agent_secret() {
    let mut config = config(made());
    config["tlsClientConfig"]["insecure"] = json!(false);
    let mut written = with_config(&config);
    written["metadata"]["annotations"]["managed-by"] = json!("argocd.argoproj.io");
    assert_eq!(hub().decide(&[("cluster-eu1", &written)]), SecretUpdate::default());
}

#[test]
fn does_not_reissue_a_certificate_that_expires_with_its_ca() {
    let end = now() + days(10);
    let authority = authority("short", end);
    let mut hub = Hub {
        authority: &authority,
        ..hub()
    };
    let (secret, _) = hub.write(None);
    hub.now = end - SignedDuration::from_secs(10);
    let decision = hub.decide(&[("cluster-eu1", &secret)]);
    // Certificates never outlive their CA.
    assert_eq!(decision, SecretUpdate::default());
    hub.now = end;
    assert_eq!(
        hub.decide(&[]),
        SecretUpdate::default(),
        "an authority that is over signs nothing"
    );
}

#[test]
fn without_a_ca_writes_nothing_but_reports_conflicts() {
    let broken = json!({"metadata": {}, "data": {"tls.crt": authorities()[0]["data"]["tls.crt"]}});
    let other_key = {
        let mut secret = authorities()[0].clone();
        secret["data"]["tls.key"] = authorities()[1]["data"]["tls.key"].clone();
        secret
    };
    for authority in [&broken, &other_key] {
        let hub = Hub { authority, ..hub() };
        assert_eq!(hub.decide(&[]), SecretUpdate::default());
        assert!(
            hub.conflict("push", &secret("eu1", "https://eu1", &json!({})))
                .contains("argocd/push")
        );
    }
}

/// Returns a Secret as the peer integration writes it, with or without a user name.
fn of_the_peer(more: &Value, is_with_user: bool) -> Value {
    let mut config = config(made());
    if is_with_user {
        config["username"] = json!("eu1");
        config["password"] = json!("eu1");
    }
    let mut secret = secret(
        "eu1",
        "https://principal:9090?agentName=eu1",
        &json!({"metadata": {"labels": {AGENT_NAME: "eu1"}}, "data": {"config": encoded(&config.to_string())}}),
    );
    merge(&mut secret, more);
    secret
}

#[test]
fn adopts_agent_secrets_of_peers_but_not_of_argocd_agentctl() {
    let of_pull = json!({
        "metadata": {"labels": {CLUSTER_NAME: "eu1", "placement-name": "all"}},
        "data": {"server": encoded("https://eu1-control-plane")},
    });
    let of_acm = json!({"metadata": {"annotations": {SKIP_RECONCILE: "true", "managed-by": "argocd-agent"}}});
    for more in [&of_pull, &of_acm] {
        let (written, recipe) = hub().write(Some(&of_the_peer(more, true)));
        assert_eq!(recipe, None, "its certificate is good");
        for part in ["name", "server"] {
            assert_eq!(written["data"][part], made()["data"][part], "{more}");
        }
        assert_eq!(written["metadata"]["annotations"], made()["metadata"]["annotations"]);
        assert_eq!(written["metadata"]["labels"][MANAGED_BY], OURS);
    }

    let by_hand = of_the_peer(&of_acm, false);
    assert_eq!(
        hub().conflict("cluster-eu1", &by_hand),
        "Argo CD knows this cluster by Secret argocd/cluster-eu1, which stays unchanged, so the controller creates no \
         other: delete it, or hand \
         argocd/cluster-eu1 over by the label app.kubernetes.io/managed-by=argocd-ocm-cmp"
    );
    for other in [
        json!({"metadata": {"labels": {AGENT_NAME: "us1"}}}),
        json!({"metadata": {"labels": {MANAGED_BY: "Helm"}}}),
        json!({"data": {"server": encoded("https://eu1.example.com")}}),
        json!({"data": {"config": encoded("hunter2")}}),
    ] {
        let conflict = hub().conflict("cluster-eu1", &of_the_peer(&other, true));
        assert!(conflict.contains("stays unchanged"), "{other}");
    }
    let mut handed_over = by_hand;
    handed_over["metadata"]["labels"][MANAGED_BY] = json!(OURS);
    let (written, recipe) = hub().write(Some(&handed_over));
    assert_eq!(written["metadata"]["annotations"][OWNER], OWNER_NAME);
    assert_eq!(recipe, None);
}

#[test]
fn creates_no_agent_secret_beside_a_foreign_one() {
    let of_agent = secret("europe", "https://principal:9090?agentName=eu1", &json!({}));
    assert!(
        hub()
            .conflict("by-hand", &of_agent)
            .contains("argocd/by-hand, which stays")
    );
    let blank = secret("eu1", "https://eu1-control-plane", &json!({}));
    let conflict = hub().conflict(GITOPS_NAME, &blank);
    assert!(conflict.ends_with("so the controller creates no other"), "{conflict}");
}

#[test]
fn secret_of_the_hub_has_no_agent_and_no_credential() {
    let (owner, before) = (OWNER_NAME, None);
    let hub = |manager| Hub {
        manager,
        name: "local-cluster",
        ..hub()
    };
    let (itself, agent) = (hub(SecretManager::Hub { owner, before }), hub(AGENT));
    let (made, recipe) = itself.write(None);
    assert_eq!(recipe, None);
    assert_eq!(made["metadata"]["name"], "cluster-local-cluster");
    assert_eq!(
        made["metadata"]["labels"],
        json!({
            MANAGED_BY: OURS, SECRET_TYPE: CLUSTER, "env": "prod",
            "apps.open-cluster-management.io/cluster-name": "local-cluster",
        })
    );
    assert_eq!(
        made["metadata"]["annotations"],
        json!({COPIED: "env", OWNER: OWNER_NAME})
    );
    let server = encoded("https://kubernetes.default.svc");
    assert_eq!(
        made["data"],
        json!({"name": encoded("local-cluster"), "server": server, "config": encoded("{}")})
    );

    let (of_agent, _) = agent.write(None);
    for (manager, other) in [(&agent, &made), (&itself, &of_agent)] {
        let conflict = manager.conflict("cluster-local-cluster", other);
        let stays = "Argo CD knows this cluster by Secret argocd/cluster-local-cluster, which stays unchanged";
        assert!(conflict.starts_with(stays), "{conflict}");
    }

    let of_acm = secret(
        "local-cluster",
        "https://kubernetes.default.svc",
        &json!({"data": {"config": encoded("{}")}}),
    );
    assert_eq!(
        itself.write(Some(&of_acm)).0["metadata"]["annotations"],
        made["metadata"]["annotations"]
    );
    let by_hand = secret("in-cluster", "https://kubernetes.default.svc/", &json!({}));
    assert!(
        itself
            .conflict("in-cluster", &by_hand)
            .contains("argocd/in-cluster, which stays")
    );
}
