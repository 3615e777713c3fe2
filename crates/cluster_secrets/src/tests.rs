mod agents;

use super::*;
use hub_state::annotations::{OWNER, SKIP_RECONCILE};
use hub_state::cluster_secret::{ACM, AGENT_NAME, CLUSTER, COPIED, ClusterSecret, SECRET_TYPE, SecretManager};
use hub_state::model::{Labels, TlsSecret};
use hub_state::testing::certificates::put;
use hub_state::testing::now;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use ocm::work::{MANAGED_BY, OURS};
use pki::Recipe;
use runtime::action::{Verb, Write};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testing::merge;

/// A simulated hub at a point in time: a managed cluster, the manager of its Secret, the Secrets in Argo CD's namespace by name, and the
/// Secret of the CA.
struct Hub<'h> {
    cluster: &'h str,
    labels: BTreeMap<String, String>,
    manager: SecretManager<'h>,
    owner: Option<&'h str>,
    before: Option<&'h str>,
    secrets: BTreeMap<String, Value>,
    tracking_label: &'static str,
    authority: Option<&'h Value>,
    now: Timestamp,
}

fn hub(labels: &[(&str, &str)]) -> Hub<'static> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Hub {
        cluster: "eu1",
        labels: labels.iter().map(owned).collect(),
        manager: SecretManager::Controller,
        owner: None,
        before: None,
        secrets: BTreeMap::new(),
        tracking_label: "app.kubernetes.io/instance",
        authority: None,
        now: now(),
    }
}

fn read(secret: &Value) -> ClusterSecret {
    ClusterSecret::from_json(&secret.to_string()).expect("a Secret")
}

/// Returns a cluster Secret with this name and server, and additional labels.
pub(crate) fn secret(name: &str, server: &str, more: &Value) -> Value {
    let mut secret = json!({
        "metadata": {"uid": "u", "resourceVersion": "7", "labels": {SECRET_TYPE: CLUSTER}},
        "type": "Opaque",
        "data": {"name": encoded(name), "server": encoded(server)},
    });
    merge(&mut secret, more);
    secret
}

pub(crate) const SERVER: &str = "https://eu1-control-plane:6443";

fn labelled(labels: &Value) -> Value {
    json!({"metadata": {"labels": labels}})
}

pub(crate) fn managed_by(manager: &str) -> Value {
    labelled(&json!({MANAGED_BY: manager}))
}

fn encoded(text: &str) -> Value {
    json!(ByteString(text.as_bytes().to_vec()))
}

impl Hub<'_> {
    fn with(mut self, name: &str, secret: Value) -> Self {
        self.secrets.insert(name.to_owned(), secret);
        self
    }

    fn decide(&self) -> SecretUpdate {
        let labels = Labels::from_sorted(&self.labels);
        let authority = self
            .authority
            .map(|secret| TlsSecret::from_json(&secret.to_string()).expect("a Secret"));
        let cluster = RegisteredCluster {
            name: self.cluster,
            labels: &labels,
            placement: None,
            argocd: "argocd",
            tracking_label: self.tracking_label,
            manager: self.manager,
            owner: self.owner,
            before: self.before,
            ca: authority.as_ref().map(|ca| (ca, self.now)),
        };
        let secrets: Vec<_> = self
            .secrets
            .iter()
            .map(|(name, secret)| (name.as_str(), read(secret)))
            .collect();
        for (name, secret) in &secrets {
            assert!(secret.concerns(name).contains(self.cluster), "{name}");
        }
        decide(&cluster, secrets.iter().map(|(name, secret)| (*name, secret)))
    }

    fn own_name(&self) -> String {
        self.manager.name(self.cluster)
    }

    fn own(&mut self) -> &mut Value {
        let name = self.own_name();
        self.secrets.get_mut(&name).expect("it is there")
    }

    /// Applies the decision and checks that nothing is left to write. Returns the write, and the recipe of the certificate.
    fn write(&mut self) -> (Option<Write>, Option<Recipe>) {
        let Some(write) = self.decide().write else {
            return (None, None);
        };
        match write.verb.clone() {
            Verb::Create(mut object) => {
                assert_eq!(*write.object_ref.name, self.own_name());
                object["metadata"]["resourceVersion"] = json!("8");
                assert!(
                    self.secrets.insert(self.own_name(), object).is_none(),
                    "it was not there"
                );
            }
            Verb::Patch(body) => {
                let version = &self.own()["metadata"]["resourceVersion"];
                assert_eq!(body["metadata"]["resourceVersion"], *version, "the form that was seen");
                merge(self.own(), &body);
            }
            other @ (Verb::JsonPatch(_) | Verb::Delete { .. }) => panic!("unexpected {other:?}"),
        }
        if let Some(recipe) = &write.recipe {
            put(recipe, self.authority.expect("a CA"), self.own());
        }
        assert_eq!(self.decide(), SecretUpdate::default(), "once is enough");
        let recipe = write.recipe.clone();
        (Some(write), recipe)
    }

    /// Returns the created Secret.
    fn made(mut self) -> Value {
        assert!(matches!(self.write(), (Some(write), _) if matches!(write.verb, Verb::Create(_))));
        self.own().clone()
    }

    /// Returns the patch of the Secret.
    fn patched(&mut self) -> Value {
        match self.write().0 {
            Some(Write {
                verb: Verb::Patch(body),
                ..
            }) => body,
            other => panic!("not a patch: {other:?}"),
        }
    }

    fn conflict(&self) -> String {
        let decision = self.decide();
        assert_eq!(decision.write, None, "nothing is written");
        decision.conflict.expect("a conflict")
    }
}

#[test]
fn creates_a_secret_with_the_clusters_labels() {
    let made = hub(&[
        ("env", "prod"),
        ("cluster.open-cluster-management.io/clusterset", "default"),
    ])
    .made();
    assert_eq!(
        made,
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "eu1-secret",
                "namespace": "argocd",
                "resourceVersion": "8",
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
    let foreign = json!({
        "metadata": {"labels": {"team": "web"}, "annotations": {"note": "mine"}},
        "data": {"project": encoded("web")},
    });
    merge(hub.own(), &foreign);
    assert_eq!(
        hub.decide(),
        SecretUpdate::default(),
        "what others add is no difference"
    );

    hub.labels = [("env", "prod"), ("zone", "1")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let patch = json!({
        "metadata": {
            "resourceVersion": "8",
            "labels": {"env": "prod", "tier": null, "zone": "1"},
            "annotations": {"argocd-ocm-cmp.github.io/labels": "env,zone"},
        },
        "data": {},
    });
    assert_eq!(hub.patched(), patch, "only what differs");
    assert_eq!(hub.own()["metadata"]["labels"]["team"], "web");

    hub.labels.clear();
    hub.write();
    let (metadata, data) = (hub.own()["metadata"].clone(), &hub.own()["data"]);
    assert_eq!(data["project"], encoded("web"));
    assert_eq!(
        metadata["labels"],
        json!({SECRET_TYPE: CLUSTER, MANAGED_BY: OURS, "team": "web"})
    );
    assert_eq!(
        metadata["annotations"],
        json!({"argocd.argoproj.io/skip-reconcile": "true", "note": "mine"})
    );
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
    let metadata = &hub.own()["metadata"];
    assert_eq!(
        metadata["labels"],
        json!({SECRET_TYPE: CLUSTER, MANAGED_BY: OURS, "env": "prod"})
    );
    assert_eq!(metadata["annotations"][COPIED], "env");
    hub.tracking_label = "example.com/app";
    hub.labels.insert("example.com/app".to_owned(), "clusters".to_owned());
    hub.write();
    let labels = &hub.own()["metadata"]["labels"];
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
    let written = hub.own().clone();
    for damage in [
        labelled(&json!({"env": "test"})),
        labelled(&json!({"env": null})),
        json!({"metadata": {"annotations": {SKIP_RECONCILE: null}}}),
        json!({"metadata": {"annotations": {SKIP_RECONCILE: "false"}}}),
        json!({"metadata": {"annotations": {COPIED: null}}}),
        json!({"metadata": {"annotations": null}}),
        json!({"data": {"server": encoded("https://elsewhere")}}),
        json!({"data": {"name": encoded("eu2")}}),
        json!({"data": null}),
    ] {
        merge(hub.own(), &damage);
        assert!(hub.write().0.is_some(), "{damage}");
        assert_eq!(*hub.own(), written, "{damage}");
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
    merge(hub.own(), &by_argo_cd);
    assert_eq!(hub.decide(), SecretUpdate::default());
}

#[test]
fn adopts_secrets_of_argocd_pull_integration() {
    for by_hand in [
        json!({}),
        json!({"metadata": {"labels": {"team": "web"}, "annotations": {"note": "mine"}}}),
    ] {
        let mut hub = hub(&[("env", "prod")]).with("eu1-secret", secret("eu1", SERVER, &by_hand));
        hub.patched();
        let labels = &hub.own()["metadata"]["labels"];
        assert_eq!(
            (&labels[MANAGED_BY], &labels["env"]),
            (&json!(OURS), &json!("prod")),
            "{by_hand}"
        );
    }
}

#[test]
fn leaves_a_foreign_secret_of_the_same_name_alone() {
    for foreign in [
        secret("eu1", SERVER, &json!({"data": {"config": encoded("{}")}})),
        secret("eu1", SERVER, &managed_by("Helm")),
        secret("eu1", SERVER, &labelled(&json!({ACM: "true"}))),
        secret("eu1", "https://eu1.example.com", &json!({})),
    ] {
        assert_eq!(
            hub(&[]).with("eu1-secret", foreign.clone()).conflict(),
            "Argo CD knows this cluster by Secret argocd/eu1-secret, which stays unchanged, so the controller creates \
             no other",
            "{foreign}"
        );
    }
    let of_another = secret("us1", "https://us1.example.com", &json!({}));
    assert_eq!(
        hub(&[]).with("eu1-secret", of_another).conflict(),
        "Secret argocd/eu1-secret is not managed by the controller and stays unchanged, so Argo CD does not know this \
         cluster: delete it, or hand it over by the label app.kubernetes.io/managed-by=argocd-ocm-cmp"
    );
}

#[test]
fn repairs_a_secret_handed_over_by_label() {
    let mut handed_over = secret("us1", "https://us1.example.com", &managed_by(OURS));
    handed_over["data"]["config"] = encoded("{}");
    let mut hub = hub(&[("env", "prod")]).with("eu1-secret", handed_over);
    hub.write();
    let data = json!({"name": encoded("eu1"), "server": encoded(SERVER), "config": encoded("{}")});
    assert_eq!(hub.own()["data"], data);
}

#[test]
fn secret_of_another_cluster_with_the_same_name_is_not_handed_over() {
    // The controller's Secret of cluster-1 has the name of the Secret of this cluster's agent.
    let server = SecretManager::Controller.server("cluster-1");
    let secret = read(&secret("cluster-1", &server, &managed_by(OURS)));
    let manager = SecretManager::Agent { proxy: "https://proxy" };
    let owners = [Some("argocd/all"), None];
    assert_eq!(manager.name("1-secret"), SecretManager::Controller.name("cluster-1"));
    assert!(!secret.is_managed_by(manager, owners, "1-secret"));
    assert!(secret.is_managed_by(SecretManager::Controller, [None; 2], "cluster-1"));
}

#[test]
fn creates_no_secret_beside_a_foreign_one() {
    for (name, foreign) in [
        (GITOPS_NAME, secret("eu1", "https://eu1-control-plane", &json!({}))),
        (GITOPS_NAME, gitops("argocd/all", None).made()),
        (
            "cluster-eu1",
            secret("eu1", "https://principal:9090?agentName=eu1", &json!({})),
        ),
        ("push", secret("europe", "https://eu1-control-plane:6443/", &json!({}))),
        // A copy of our Secret under another name.
        ("copy", secret("eu1", SERVER, &managed_by(OURS))),
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
        hub.made();
    }
    let ours = secret("eu1", SERVER, &managed_by(OURS));
    let conflict = gitops("argocd/all", None).with("eu1-secret", ours).conflict();
    assert!(conflict.contains("argocd/eu1-secret, which stays"), "{conflict}");
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
    assert!(hub.decide().write.is_some(), "ours is kept up");
}

#[test]
fn creates_no_secret_for_a_cluster_named_in_cluster() {
    let hub = Hub {
        cluster: "in-cluster",
        ..hub(&[])
    };
    assert_eq!(
        hub.conflict(),
        "Argo CD uses the name in-cluster for the hub: register this cluster with OCM under another name to get a \
         cluster Secret"
    );
}

#[test]
fn secret_enqueues_clusters_by_name_content_and_server() {
    for (name, cluster, server, concerns) in [
        ("eu1-secret", "eu1", SERVER, "eu1"),
        ("a-secret", "b", "https://c-control-plane:6443/", "a b c"),
        ("push", "eu1", "https://eu1.example.com", "eu1"),
        ("push", "", "", ""),
        ("cluster-a", "b", "https://proxy:9090?agentName=c", "a b c"),
        ("x", "", "https://proxy:9090/?processId=1&agentName=c", ""),
        ("hub", "hub", "https://kubernetes.default.svc", "hub local-cluster"),
    ] {
        let secret = read(&secret(cluster, server, &json!({})));
        let all: Vec<_> = secret.concerns(name).into_iter().collect();
        assert_eq!(all.join(" "), concerns);
    }
}

#[test]
fn parse_error_does_not_show_the_secret() {
    let broken = r#"{"metadata":{},"data":{"name":"hunter2!","config":"aHVudGVyMg=="}}"#;
    let error = ClusterSecret::from_json(broken).expect_err("its name is not base64");
    assert_eq!(error, "not a valid Secret");
    let read = read(&json!({"metadata": {}, "data": {"name": null, "config": "aHVudGVyMg=="}}));
    assert!(!format!("{read:?}").contains("aHVudGVyMg"), "no credential is kept");
}

/// Returns a hub whose cluster has the label `env: prod` and belongs to a GitOpsCluster.
fn gitops<'k>(owner: &'k str, before: Option<&'k str>) -> Hub<'k> {
    let labels = [
        ("env", "prod"),
        ("apps.open-cluster-management.io/cluster-name", "other"),
    ];
    Hub {
        manager: SecretManager::GitOps,
        owner: Some(owner),
        before,
        ..hub(&labels)
    }
}

const GITOPS_NAME: &str = "eu1-application-manager-cluster-secret";

#[test]
fn secret_of_a_gitopscluster_matches_acm_and_names_its_owner() {
    let owner = format!("{}/{}", "n".repeat(63), "g".repeat(253));
    let made = gitops(&owner, None).made();
    assert_eq!(
        made["metadata"],
        json!({
            "name": GITOPS_NAME,
            "namespace": "argocd",
            "resourceVersion": "8",
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
    assert_eq!(
        made["data"],
        json!({"name": "ZXUx", "server": encoded("https://eu1-control-plane")})
    );
}

#[test]
fn server_label_of_a_long_name_is_valid() {
    let cluster = "c".repeat(62);
    let labels: BTreeMap<_, _> = gitops("argocd/all", None)
        .manager
        .labels(&cluster)
        .into_iter()
        .collect();
    assert_eq!(labels["apps.open-cluster-management.io/cluster-server"], cluster);
}

#[test]
fn adopts_acms_secret_and_no_other() {
    let with = |more: &Value| {
        let mut secret = secret("eu1", "https://eu1-control-plane", &labelled(&json!({ACM: "true"})));
        merge(&mut secret, more);
        gitops("argocd/all", None).with(GITOPS_NAME, secret)
    };
    let patch = with(&json!({})).patched();
    assert_eq!(patch["metadata"]["annotations"][OWNER], "argocd/all");
    assert_eq!(patch["metadata"]["labels"][MANAGED_BY], OURS);
    assert_eq!(patch["data"], json!({}));
    // The message names this remedy.
    with(&json!({"metadata": {"labels": {MANAGED_BY: OURS}}, "data": {"name": encoded("us1")}})).patched();
    for other in [
        json!({"data": {"config": encoded("{}")}}),
        json!({"data": {"server": encoded("https://eu1.example.com:6443")}}),
        labelled(&json!({ACM: null})),
        managed_by("somebody"),
    ] {
        assert!(with(&other).conflict().contains("stays unchanged"), "{other}");
    }
}

#[test]
fn secret_changes_owner_only_when_the_old_owner_releases_it() {
    let (one, other) = ("argocd/one", "argocd/other");
    let made = gitops(one, None).made();
    assert_eq!(gitops(other, None).with(GITOPS_NAME, made.clone()).decide().write, None);
    let patch = gitops(other, Some(one)).with(GITOPS_NAME, made).patched();
    assert_eq!(patch["metadata"]["annotations"], json!({OWNER: other}));
}
