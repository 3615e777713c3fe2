mod agents;

use super::*;
use hub_state::annotations::{OWNER, SKIP_RECONCILE};
use hub_state::cluster_secret::{ACM, AGENT_NAME, CLUSTER, COPIED, ClusterSecret, SECRET_TYPE, SecretManager};
use hub_state::model::Labels;
use k8s_openapi::ByteString;
use ocm::work::{MANAGED_BY, OURS};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testing::merge;

/// A simulated hub: the labels of its cluster `eu1`, and the Secrets in Argo CD's namespace by name.
struct Hub {
    labels: BTreeMap<String, String>,
    secrets: BTreeMap<String, Value>,
    tracking_label: &'static str,
}

fn hub(labels: &[(&str, &str)]) -> Hub {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Hub {
        labels: labels.iter().map(owned).collect(),
        secrets: BTreeMap::new(),
        tracking_label: "app.kubernetes.io/instance",
    }
}

/// Returns a cluster Secret with this name and server, and additional labels.
fn secret(name: &str, server: &str, more: &Value) -> Value {
    let mut secret = json!({
        "metadata": {"uid": "u", "resourceVersion": "7", "labels": {SECRET_TYPE: CLUSTER}},
        "type": "Opaque",
        "data": {"name": encoded(name), "server": encoded(server)},
    });
    merge(&mut secret, more);
    secret
}

fn of_the_peer() -> Value {
    secret("eu1", "https://eu1-control-plane:6443", &json!({}))
}

fn encoded(text: &str) -> Value {
    json!(ByteString(text.as_bytes().to_vec()))
}

impl Hub {
    fn with(mut self, name: &str, secret: Value) -> Self {
        self.secrets.insert(name.to_owned(), secret);
        self
    }

    fn parse_secrets(&self) -> BTreeMap<String, ClusterSecret> {
        let read = |secret: &Value| ClusterSecret::from_json(&secret.to_string()).expect("a Secret");
        let all = self.secrets.iter().map(|(name, secret)| (name.clone(), read(secret)));
        all.filter(|(name, secret)| secret.concerns(name).contains("eu1"))
            .collect()
    }

    fn decide(&self) -> SecretUpdate {
        let labels = Labels::from_sorted(&self.labels);
        let cluster = RegisteredCluster {
            name: "eu1",
            labels: &labels,
            argocd: "argocd",
            tracking_label: self.tracking_label,
            manager: SecretManager::Controller,
            issuer: None,
        };
        let secrets = self.parse_secrets();
        decide(&cluster, secrets.iter().map(|(name, secret)| (name.as_str(), secret)))
    }

    /// Applies the decision and checks that nothing is left to write.
    fn write(&mut self) -> Option<Write> {
        let write = self.decide().write?;
        match write.clone() {
            Write::Create(mut object) => {
                let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
                object["metadata"]["resourceVersion"] = json!("8");
                assert!(self.secrets.insert(name, object).is_none(), "it was not there");
            }
            Write::Patch(patch) => {
                let secret = self.secrets.get_mut("eu1-secret").expect("it is there");
                let version = &secret["metadata"]["resourceVersion"];
                assert_eq!(patch["metadata"]["resourceVersion"], *version, "the form that was seen");
                merge(secret, &patch);
            }
        }
        assert_eq!(self.decide().write, None, "once is enough");
        Some(write)
    }

    fn labels(&self) -> Value {
        self.secrets["eu1-secret"]["metadata"]["labels"].clone()
    }

    fn conflict(&self) -> String {
        let decision = self.decide();
        assert_eq!(decision.write, None, "nothing is written");
        decision.conflict.expect("a conflict")
    }
}

#[test]
fn creates_a_secret_with_the_clusters_labels() {
    let mut hub = hub(&[
        ("env", "prod"),
        ("cluster.open-cluster-management.io/clusterset", "default"),
    ]);
    let Some(Write::Create(object)) = hub.write() else {
        panic!("it is made");
    };
    let mut without_version = object;
    without_version["metadata"]
        .as_object_mut()
        .expect("metadata")
        .remove("resourceVersion");
    assert_eq!(
        without_version,
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "eu1-secret",
                "namespace": "argocd",
                "labels": {
                    "argocd.argoproj.io/secret-type": "cluster",
                    "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
                    "cluster.open-cluster-management.io/clusterset": "default",
                    "env": "prod",
                },
                "annotations": {
                    "argocd.argoproj.io/skip-reconcile": "true",
                    "argocd-ocm-cmp.github.io/labels": "cluster.open-cluster-management.io/clusterset,env",
                },
            },
            "type": "Opaque",
            "data": {"name": "ZXUx", "server": "aHR0cHM6Ly9ldTEtY29udHJvbC1wbGFuZTo2NDQz"},
        })
    );
}

#[test]
fn labels_follow_the_cluster_and_foreign_labels_stay() {
    let mut hub = hub(&[("env", "test"), ("tier", "a")]);
    hub.write();
    let secret = hub.secrets.get_mut("eu1-secret").expect("it is there");
    secret["metadata"]["labels"]["team"] = json!("web");
    secret["metadata"]["annotations"]["note"] = json!("mine");
    secret["data"]["project"] = encoded("web");
    assert_eq!(hub.write(), None, "what others add is no difference");

    hub.labels = [("env", "prod"), ("zone", "1")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let write = hub.write();
    let patch = json!({
        "metadata": {
            "resourceVersion": "8",
            "labels": {"env": "prod", "tier": null, "zone": "1"},
            "annotations": {"argocd-ocm-cmp.github.io/labels": "env,zone"},
        },
        "data": {},
    });
    assert_eq!(write, Some(Write::Patch(patch)), "only what differs");
    assert_eq!(hub.labels()["team"], "web");

    hub.labels.clear();
    hub.write();
    let own = json!({SECRET_TYPE: CLUSTER, MANAGED_BY: OURS, "team": "web"});
    assert_eq!(hub.labels(), own);
    assert_eq!(
        hub.secrets["eu1-secret"]["metadata"]["annotations"],
        json!({"argocd.argoproj.io/skip-reconcile": "true", "note": "mine"})
    );
    assert_eq!(hub.secrets["eu1-secret"]["data"]["project"], encoded("web"));
}

#[test]
fn does_not_copy_reserved_labels() {
    let mut hub = hub(&[
        ("argocd.argoproj.io/secret-type", "repository"),
        ("argocd.argoproj.io/auto-label-cluster-info", "true"),
        ("argocd-ocm-cmp.github.io/x", "y"),
        ("app.kubernetes.io/managed-by", "Helm"),
        ("app.kubernetes.io/instance", "clusters"),
        ("apps.open-cluster-management.io/acm-cluster", "true"),
        ("apps.open-cluster-management.io/cluster-name", "eu2"),
        ("apps.open-cluster-management.io/cluster-server", "eu2-control-plane"),
        ("apps.open-cluster-management.io/data-source", "push"),
        ("env", "prod"),
    ]);
    hub.write();
    assert_eq!(
        hub.labels(),
        json!({SECRET_TYPE: CLUSTER, MANAGED_BY: OURS, "env": "prod"})
    );
    assert_eq!(hub.secrets["eu1-secret"]["metadata"]["annotations"][COPIED], "env");
    hub.tracking_label = "example.com/app";
    hub.labels.insert("example.com/app".to_owned(), "clusters".to_owned());
    hub.write();
    let labels = hub.labels();
    assert_eq!(
        labels["app.kubernetes.io/instance"], "clusters",
        "Argo CD does not track by it"
    );
    assert_eq!(labels["example.com/app"], Value::Null);
}

#[test]
fn repairs_changed_fields_of_our_secret() {
    let mut hub = hub(&[("env", "prod")]);
    hub.write();
    let written = hub.secrets["eu1-secret"].clone();
    for damage in [
        json!({"metadata": {"labels": {"env": "test"}}}),
        json!({"metadata": {"labels": {"env": null}}}),
        json!({"metadata": {"annotations": {SKIP_RECONCILE: null}}}),
        json!({"metadata": {"annotations": {SKIP_RECONCILE: "false"}}}),
        json!({"metadata": {"annotations": {COPIED: null}}}),
        json!({"metadata": {"annotations": null}}),
        json!({"data": {"server": encoded("https://elsewhere")}}),
        json!({"data": {"name": encoded("eu2")}}),
        json!({"data": null}),
    ] {
        merge(hub.secrets.get_mut("eu1-secret").expect("it is there"), &damage);
        assert!(hub.write().is_some(), "{damage}");
        assert_eq!(hub.secrets["eu1-secret"], written, "{damage}");
    }
}

#[test]
fn ignores_fields_that_argo_cd_writes() {
    let mut hub = hub(&[("env", "prod")]);
    hub.write();
    // The form in which Argo CD's API server writes a cluster back after a user invalidated its cache.
    let by_argo_cd = json!({
        "metadata": {"annotations": {"managed-by": "argocd.argoproj.io", "argocd.argoproj.io/refresh": "2026-06-01T12:00:00Z"}},
        "data": {"config": encoded(r#"{"tlsClientConfig":{"insecure":false}}"#)},
    });
    merge(hub.secrets.get_mut("eu1-secret").expect("it is there"), &by_argo_cd);
    assert_eq!(hub.decide(), SecretUpdate::default());
}

#[test]
fn adopts_secrets_of_argocd_pull_integration() {
    let labelled = json!({"metadata": {"labels": {"team": "web"}, "annotations": {"note": "mine"}}});
    for by_hand in [json!({}), labelled] {
        let mut peers = of_the_peer();
        merge(&mut peers, &by_hand);
        let mut hub = hub(&[("env", "prod")]).with("eu1-secret", peers);
        assert!(matches!(hub.write(), Some(Write::Patch(_))), "{by_hand}");
        assert_eq!(hub.labels()[MANAGED_BY], OURS);
        assert_eq!(hub.labels()["env"], "prod");
        assert_eq!(hub.decide(), SecretUpdate::default());
    }
}

#[test]
fn leaves_a_foreign_secret_of_the_same_name_alone() {
    let server = "https://eu1-control-plane:6443";
    let foreign = [
        secret("eu1", server, &json!({"data": {"config": encoded("{}")}})),
        secret("eu1", server, &json!({"metadata": {"labels": {MANAGED_BY: "Helm"}}})),
        secret(
            "eu1",
            server,
            &json!({"metadata": {"labels": {"apps.open-cluster-management.io/acm-cluster": "true"}}}),
        ),
        secret("eu1", "https://eu1.example.com", &json!({})),
    ];
    for foreign in foreign {
        let hub = hub(&[]).with("eu1-secret", foreign.clone());
        assert_eq!(
            hub.conflict(),
            "Argo CD knows this cluster by Secret argocd/eu1-secret, which stays unchanged, so the controller creates \
             no other",
            "{foreign}"
        );
    }
    let hub = hub(&[]).with("eu1-secret", secret("us1", "https://us1.example.com", &json!({})));
    assert_eq!(
        hub.conflict(),
        "Secret argocd/eu1-secret is not managed by the controller and stays unchanged, so Argo CD does not know this \
         cluster: delete it, or hand it over by the label app.kubernetes.io/managed-by=argocd-ocm-cmp"
    );
}

#[test]
fn repairs_a_secret_handed_over_by_label() {
    let handed_over = secret(
        "us1",
        "https://us1.example.com",
        &json!({"metadata": {"labels": {MANAGED_BY: OURS}}, "data": {"config": encoded("{}")}}),
    );
    let mut hub = hub(&[("env", "prod")]).with("eu1-secret", handed_over);
    hub.write();
    let data =
        json!({"name": encoded("eu1"), "server": encoded("https://eu1-control-plane:6443"), "config": encoded("{}")});
    assert_eq!(hub.secrets["eu1-secret"]["data"], data);
}

#[test]
fn secret_of_another_cluster_with_the_same_name_is_not_handed_over() {
    // The controller's Secret of cluster-1 has the name of the Secret of this cluster's agent.
    let server = SecretManager::Controller.server("cluster-1");
    let ours = json!({"metadata": {"labels": {MANAGED_BY: OURS}}});
    let secret = ClusterSecret::from_json(&secret("cluster-1", &server, &ours).to_string()).expect("a Secret");
    let manager = SecretManager::Agent {
        owner: "argocd/all",
        before: None,
        proxy: "https://proxy",
    };
    assert_eq!(manager.name("1-secret"), SecretManager::Controller.name("cluster-1"));
    assert!(!secret.is_managed_by(manager, "1-secret") && secret.is_managed_by(SecretManager::Controller, "cluster-1"));
}

#[test]
fn creates_no_secret_beside_a_foreign_one() {
    for (name, foreign) in [
        (
            "eu1-application-manager-cluster-secret",
            secret("eu1", "https://eu1-control-plane", &json!({})),
        ),
        (
            "cluster-eu1",
            secret("eu1", "https://principal:9090?agentName=eu1", &json!({})),
        ),
        ("push", secret("europe", "https://eu1-control-plane:6443/", &json!({}))),
        // A copy of our Secret under another name.
        (
            "copy",
            secret(
                "eu1",
                "https://eu1-control-plane:6443",
                &json!({"metadata": {"labels": {MANAGED_BY: OURS}}}),
            ),
        ),
    ] {
        let mut hub = hub(&[]).with(name, foreign);
        assert_eq!(
            hub.conflict(),
            format!(
                "Argo CD knows this cluster by Secret argocd/{name}, which stays unchanged, so the controller \
                 creates no other"
            )
        );
        hub.secrets.remove(name);
        assert!(matches!(hub.write(), Some(Write::Create(_))), "when it has gone");
    }
}

#[test]
fn keeps_both_secrets_and_reports_a_duplicate() {
    let mut hub = hub(&[("env", "prod")]);
    hub.write();
    hub = hub.with("push", secret("eu1", "https://eu1.example.com", &json!({})));
    assert_eq!(
        hub.conflict(),
        "Argo CD knows this cluster by Secret argocd/push as well as by argocd/eu1-secret: delete all but one; until \
         then, ApplicationSets and destinations that name the cluster fail"
    );
    hub.labels.insert("env".to_owned(), "test".to_owned());
    assert!(hub.write().is_some(), "ours is kept up");
}

#[test]
fn creates_no_secret_for_a_cluster_named_in_cluster() {
    let labels = Labels::default();
    let cluster = RegisteredCluster {
        name: "in-cluster",
        labels: &labels,
        argocd: "argocd",
        tracking_label: "x",
        manager: SecretManager::Controller,
        issuer: None,
    };
    let decision = decide(&cluster, std::iter::empty());
    assert_eq!(decision.write, None);
    assert_eq!(
        decision.conflict.as_deref(),
        Some(
            "Argo CD uses the name in-cluster for the hub: register this cluster with OCM under another name to get a \
             cluster Secret"
        )
    );
}

#[test]
fn only_our_secret_becomes_obsolete() {
    let ours = secret(
        "eu1",
        "https://eu1-control-plane:6443",
        &json!({"metadata": {"labels": {MANAGED_BY: OURS}}}),
    );
    let mut going = ours.clone();
    going["metadata"]["deletionTimestamp"] = json!("2026-06-01T12:00:00Z");
    for (name, secret, desired) in [
        ("eu1-secret", &ours, true),
        ("eu1-secret", &going, false),
        ("copy", &ours, false),
        ("eu1-secret", &of_the_peer(), false),
    ] {
        let secret = ClusterSecret::from_json(&secret.to_string()).expect("a Secret");
        let obsolete = obsolete(SecretManager::Controller, "eu1", std::iter::once((name, &secret)));
        assert_eq!(obsolete.is_some(), desired, "{name}");
    }
}

#[test]
fn secret_enqueues_clusters_by_name_content_and_server() {
    let concerns = |name: &str, cluster: &str, server: &str| {
        let secret = ClusterSecret::from_json(&secret(cluster, server, &json!({})).to_string()).expect("a Secret");
        secret.concerns(name).into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(concerns("eu1-secret", "eu1", "https://eu1-control-plane:6443"), "eu1");
    assert_eq!(concerns("a-secret", "b", "https://c-control-plane:6443/"), "a b c");
    assert_eq!(concerns("push", "eu1", "https://eu1.example.com"), "eu1");
    assert_eq!(concerns("push", "", ""), "");
    assert_eq!(concerns("cluster-a", "b", "https://proxy:9090?agentName=c"), "a b c");
    assert_eq!(concerns("x", "", "https://proxy:9090/?processId=1&agentName=c"), "");
    assert_eq!(
        concerns("hub", "hub", "https://kubernetes.default.svc"),
        "hub local-cluster"
    );
}

#[test]
fn parse_error_does_not_show_the_secret() {
    let broken = r#"{"metadata":{},"data":{"name":"hunter2!","config":"aHVudGVyMg=="}}"#;
    let error = ClusterSecret::from_json(broken).expect_err("its name is not base64");
    assert_eq!(error.to_string(), "not a valid Secret");
    let read =
        ClusterSecret::from_json(r#"{"metadata":{},"data":{"name":null,"config":"aHVudGVyMg=="}}"#).expect("one");
    assert!(!format!("{read:?}").contains("aHVudGVyMg"), "no credential is kept");
}

/// Decides for a GitOpsCluster and the cluster `eu1` with the label `env: prod`.
fn gitops<'k>(owner: &'k str, before: Option<&'k str>, secrets: &[(&str, &Value)]) -> SecretUpdate {
    let labels = [
        ("env", "prod"),
        ("apps.open-cluster-management.io/cluster-name", "other"),
    ];
    let hub = hub(&labels);
    let labels = Labels::from_sorted(&hub.labels);
    let cluster = RegisteredCluster {
        name: "eu1",
        labels: &labels,
        argocd: "argocd",
        tracking_label: hub.tracking_label,
        manager: SecretManager::GitOps { owner, before },
        issuer: None,
    };
    let read = |secret: &Value| ClusterSecret::from_json(&secret.to_string()).expect("a Secret");
    let secrets: Vec<_> = secrets.iter().map(|(name, secret)| (*name, read(secret))).collect();
    for (name, secret) in &secrets {
        assert!(secret.concerns(name).contains("eu1"), "{name}");
    }
    decide(&cluster, secrets.iter().map(|(name, secret)| (*name, secret)))
}

const GITOPS_NAME: &str = "eu1-application-manager-cluster-secret";

fn made_by(owner: &str) -> Value {
    let Some(Write::Create(mut object)) = gitops(owner, None, &[]).write else {
        panic!("it is made");
    };
    object["metadata"]["resourceVersion"] = json!("7");
    object
}

#[test]
fn secret_of_a_gitopscluster_matches_acm_and_names_its_owner() {
    let owner = format!("{}/{}", "n".repeat(63), "g".repeat(253));
    let made = made_by(&owner);
    assert_eq!(
        made["metadata"],
        json!({
            "name": GITOPS_NAME,
            "namespace": "argocd",
            "resourceVersion": "7",
            "labels": {
                "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
                "apps.open-cluster-management.io/acm-cluster": "true",
                "apps.open-cluster-management.io/cluster-name": "eu1",
                "apps.open-cluster-management.io/cluster-server": "eu1-control-plane",
                "apps.open-cluster-management.io/data-source": "blank",
                "argocd.argoproj.io/secret-type": "cluster",
                "env": "prod",
            },
            "annotations": {
                "argocd.argoproj.io/skip-reconcile": "true",
                "argocd-ocm-cmp.github.io/gitopscluster": owner,
                "argocd-ocm-cmp.github.io/labels": "env",
            },
        })
    );
    let server = json!(ByteString(b"https://eu1-control-plane".to_vec()));
    assert_eq!(made["data"], json!({"name": "ZXUx", "server": server}));
    assert_eq!(gitops(&owner, None, &[(GITOPS_NAME, &made)]), SecretUpdate::default());
}

#[test]
fn server_label_of_a_long_name_is_valid() {
    let manager = SecretManager::GitOps {
        owner: "argocd/all",
        before: None,
    };
    let cluster = "c".repeat(62);
    let labels: BTreeMap<_, _> = manager.labels(&cluster).into_iter().collect();
    assert_eq!(labels["apps.open-cluster-management.io/cluster-server"], cluster);
}

#[test]
fn adopts_acms_secret_and_no_other() {
    let of_acm = |more: &Value| {
        let mut secret = secret(
            "eu1",
            "https://eu1-control-plane",
            &json!({"metadata": {"labels": {ACM: "true"}}}),
        );
        merge(&mut secret, more);
        secret
    };
    let Some(Write::Patch(patch)) = gitops("argocd/all", None, &[(GITOPS_NAME, &of_acm(&json!({})))]).write else {
        panic!("it is taken over");
    };
    assert_eq!(patch["metadata"]["annotations"][OWNER], "argocd/all");
    assert_eq!(patch["metadata"]["labels"][MANAGED_BY], OURS);
    assert_eq!(patch["data"], json!({}));
    let handed_over = of_acm(&json!({"metadata": {"labels": {MANAGED_BY: OURS}}, "data": {"name": encoded("us1")}}));
    let decision = gitops("argocd/all", None, &[(GITOPS_NAME, &handed_over)]);
    assert!(
        matches!(decision.write, Some(Write::Patch(_))),
        "the message names this remedy"
    );
    for other in [
        json!({"data": {"config": encoded("{}")}}),
        json!({"data": {"server": encoded("https://eu1.example.com:6443")}}),
        json!({"metadata": {"labels": {ACM: null}}}),
        json!({"metadata": {"labels": {MANAGED_BY: "somebody"}}}),
    ] {
        let decision = gitops("argocd/all", None, &[(GITOPS_NAME, &of_acm(&other))]);
        assert_eq!(decision.write, None, "{other}");
        assert!(
            decision
                .conflict
                .is_some_and(|conflict| conflict.contains("stays unchanged")),
            "{other}"
        );
    }
}

#[test]
fn secret_changes_owner_only_when_the_old_owner_releases_it() {
    let (one, other) = ("argocd/one", "argocd/other");
    let made = made_by(one);
    assert_eq!(gitops(other, None, &[(GITOPS_NAME, &made)]).write, None);
    let Some(Write::Patch(patch)) = gitops(other, Some(one), &[(GITOPS_NAME, &made)]).write else {
        panic!("it is taken over");
    };
    assert_eq!(patch["metadata"]["annotations"], json!({OWNER: other}));
}

#[test]
fn controller_and_gitopsclusters_leave_each_others_secrets_alone() {
    let theirs = made_by("argocd/all");
    let conflict = hub(&[]).with(GITOPS_NAME, theirs).conflict();
    assert!(
        conflict.contains("argocd/eu1-application-manager-cluster-secret, which stays"),
        "{conflict}"
    );
    let ours = secret(
        "eu1",
        "https://eu1-control-plane:6443",
        &json!({"metadata": {"labels": {MANAGED_BY: OURS}}}),
    );
    let decision = gitops("argocd/all", None, &[("eu1-secret", &ours)]);
    assert_eq!(decision.write, None);
    assert!(
        decision
            .conflict
            .is_some_and(|conflict| conflict.contains("argocd/eu1-secret, which stays"))
    );
}
