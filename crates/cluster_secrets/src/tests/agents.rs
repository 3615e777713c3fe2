//! Tests of cluster Secrets for clusters with argocd-agent.

use super::*;
use hub_state::cluster_secret::CLUSTER_NAME;
use hub_state::testing::certificates::{authorities, authority, both};
use jiff::SignedDuration;
use std::sync::OnceLock;

const OWNER_NAME: &str = "argocd/all";
const NAME: &str = "cluster-eu1";

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

const AGENT: SecretManager<'_> = SecretManager::Agent {
    proxy: "https://argocd-agent-resource-proxy:9090",
};

/// Returns a hub whose cluster has an agent.
fn hub() -> Hub<'static> {
    let labels = [
        ("env", "prod"),
        (AGENT_NAME, "us1"),
        ("argocd-agent.argoproj-labs.io/ignore-sync", "true"),
    ];
    Hub {
        manager: AGENT,
        owner: Some(OWNER_NAME),
        authority: Some(&authorities()[0]),
        tracking_label: "x",
        ..super::hub(&labels)
    }
}

/// Returns the Secret after the write, and the recipe of the new certificate.
fn written(mut hub: Hub<'_>) -> (Value, Option<Recipe>) {
    let (write, recipe) = hub.write();
    assert!(write.is_some(), "something is written");
    (hub.own().clone(), recipe)
}

fn made() -> &'static Value {
    static MADE: OnceLock<Value> = OnceLock::new();
    MADE.get_or_init(|| hub().made())
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
            "name": NAME,
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
    assert_eq!(config["tlsClientConfig"]["caData"], authorities()[0]["data"]["tls.crt"]);
    let seen = read(made);
    let key = config["tlsClientConfig"]["keyData"].as_str().expect("a key");
    let shown = format!("{seen:?} {:?}", hub().decide());
    assert!(!shown.contains(key) && !shown.contains("PRIVATE"), "{shown}");
    assert_eq!(
        seen.renews_at(),
        Some(now() - SignedDuration::from_mins(5) + days(24) + SignedDuration::from_mins(4))
    );
}

#[test]
fn reissues_a_certificate_only_for_a_reason() {
    let at = |now: Timestamp| Hub { now, ..hub() }.with(NAME, made().clone());
    assert_eq!(at(now() + days(23)).decide(), SecretUpdate::default());
    let (renewed, recipe) = written(at(now() + days(24)));
    assert!(matches!(recipe, Some(Recipe::Client { validity, .. }) if validity.end == now() + days(54)));
    assert_eq!(renewed["metadata"]["labels"], made()["metadata"]["labels"]);
    // The clock was a day ahead when the certificate was issued, so it is not valid yet.
    let early = now() - days(1);
    let (_, recipe) = written(at(early));
    assert!(matches!(recipe, Some(Recipe::Client { validity, .. }) if validity.start < early));

    let [one, other] = authorities();
    for authority in [other, &both(one, other), &both(other, one)] {
        let hub = Hub {
            authority: Some(authority),
            ..hub()
        };
        let (_, recipe) = written(hub.with(NAME, made().clone()));
        assert!(recipe.is_some_and(|recipe| recipe.authority().is_some()));
    }

    let foreign = config(
        &Hub {
            cluster: "us1",
            ..hub()
        }
        .made(),
    );
    let mut other_key = config(made());
    other_key["tlsClientConfig"]["keyData"] = foreign["tlsClientConfig"]["keyData"].clone();
    let of_other = Hub {
        authority: Some(other),
        ..hub()
    };
    let mut other_signer = config(&of_other.made());
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
        let (written, recipe) = written(hub().with(NAME, with_config(&config)));
        assert!(recipe.is_some(), "{config}");
        assert_eq!(written["metadata"], made()["metadata"]);
    }
    let mut none = made().clone();
    none["data"] = json!({"name": encoded("eu1"), "server": made()["data"]["server"]});
    assert!(written(hub().with(NAME, none)).1.is_some());
}

#[test]
fn ignores_fields_that_argo_cd_writes_to_an_agent_secret() {
    let mut config = config(made());
    config["tlsClientConfig"]["insecure"] = json!(false);
    let mut written = with_config(&config);
    written["metadata"]["annotations"]["managed-by"] = json!("argocd.argoproj.io");
    assert_eq!(hub().with(NAME, written).decide(), SecretUpdate::default());
}

#[test]
fn does_not_reissue_a_certificate_that_expires_with_its_ca() {
    let end = now() + days(10);
    let authority = authority("short", end);
    let mut hub = Hub {
        authority: Some(&authority),
        ..hub()
    };
    hub.write();
    hub.now = end - SignedDuration::from_secs(10);
    assert_eq!(
        hub.decide(),
        SecretUpdate::default(),
        "certificates never outlive their CA"
    );
    (hub.now, hub.secrets) = (end, BTreeMap::new());
    assert_eq!(
        hub.decide(),
        SecretUpdate::default(),
        "an authority that is over signs nothing"
    );
}

#[test]
fn without_a_ca_writes_nothing_but_reports_conflicts() {
    let broken = json!({"metadata": {}, "data": {"tls.crt": authorities()[0]["data"]["tls.crt"]}});
    let mut other_key = authorities()[0].clone();
    other_key["data"]["tls.key"] = authorities()[1]["data"]["tls.key"].clone();
    for authority in [&broken, &other_key] {
        let hub = Hub {
            authority: Some(authority),
            ..hub()
        };
        assert_eq!(hub.decide(), SecretUpdate::default());
        let beside = hub.with("push", secret("eu1", "https://eu1", &json!({})));
        assert!(beside.conflict().contains("argocd/push"));
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
        let (written, recipe) = written(hub().with(NAME, of_the_peer(more, true)));
        assert_eq!(recipe, None, "its certificate is good");
        for part in ["name", "server"] {
            assert_eq!(written["data"][part], made()["data"][part], "{more}");
        }
        assert_eq!(written["metadata"]["annotations"], made()["metadata"]["annotations"]);
        assert_eq!(written["metadata"]["labels"][MANAGED_BY], OURS);
    }

    let by_hand = of_the_peer(&of_acm, false);
    assert_eq!(
        hub().with(NAME, by_hand.clone()).conflict(),
        "Argo CD knows this cluster by Secret argocd/cluster-eu1, which stays unchanged, so the controller creates no \
         other: delete it, or hand \
         argocd/cluster-eu1 over by the label app.kubernetes.io/managed-by=argocd-ocm-cmp"
    );
    for other in [
        labelled(&json!({AGENT_NAME: "us1"})),
        managed_by("Helm"),
        json!({"data": {"server": encoded("https://eu1.example.com")}}),
        json!({"data": {"config": encoded("hunter2")}}),
    ] {
        let conflict = hub().with(NAME, of_the_peer(&other, true)).conflict();
        assert!(conflict.contains("stays unchanged"), "{other}");
    }
    let mut handed_over = by_hand;
    merge(&mut handed_over, &managed_by(OURS));
    let (written, recipe) = written(hub().with(NAME, handed_over));
    assert_eq!(written["metadata"]["annotations"][OWNER], OWNER_NAME);
    assert_eq!(recipe, None);
}

#[test]
fn secret_of_the_hub_has_no_agent_and_no_credential() {
    let hub = |manager| Hub {
        manager,
        cluster: "local-cluster",
        ..hub()
    };
    let itself = SecretManager::Hub;
    let (made, recipe) = written(hub(itself));
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

    for (manager, other) in [(AGENT, &made), (itself, &hub(AGENT).made())] {
        let conflict = hub(manager).with("cluster-local-cluster", other.clone()).conflict();
        let stays = "Argo CD knows this cluster by Secret argocd/cluster-local-cluster, which stays unchanged";
        assert!(conflict.starts_with(stays), "{conflict}");
    }

    let of_acm = secret(
        "local-cluster",
        "https://kubernetes.default.svc",
        &json!({"data": {"config": encoded("{}")}}),
    );
    let (adopted, _) = written(hub(itself).with("cluster-local-cluster", of_acm));
    assert_eq!(adopted["metadata"]["annotations"], made["metadata"]["annotations"]);
    let by_hand = secret("in-cluster", "https://kubernetes.default.svc/", &json!({}));
    let conflict = hub(itself).with("in-cluster", by_hand).conflict();
    assert!(conflict.contains("argocd/in-cluster, which stays"), "{conflict}");
}
