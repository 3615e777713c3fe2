use super::*;
use crate::tests::{SERVER, managed_by, secret};
use hub_state::annotations::SKIP_RECONCILE;
use hub_state::cache::Change;
use hub_state::reconcile::{Settings, mappers};
use hub_state::testing::{deleted, listed, now, stored};
use ocm::work::OURS;
use serde_json::{Value, json};

/// A simulated hub after a restart: the listed clusters and Secrets, and later changes.
struct Hub(Cache);

impl Hub {
    /// Creates a hub with these managed clusters and a Secret of ours for each of `secrets`.
    fn new(clusters: &[&str], secrets: &[&str]) -> Self {
        let mut hub = Self(Cache::new("argocd").with_mappers(mappers([&CONTROLLER])));
        for name in clusters {
            hub.cluster(name, &json!({}));
        }
        hub.apply(listed(Kind::Clusters, clusters));
        for cluster in secrets {
            hub.secret(&format!("{cluster}-secret"), &ours(cluster));
        }
        let names: Vec<_> = secrets.iter().map(|cluster| format!("{cluster}-secret")).collect();
        hub.apply(listed(
            Kind::Secrets,
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        ));
        hub
    }

    /// Returns the managed clusters to reconcile.
    fn apply(&mut self, change: Change) -> Vec<String> {
        let clusters = self
            .0
            .apply(change)
            .into_iter()
            .filter(|request| request.kind == Kind::Clusters);
        clusters.map(|request| request.object_ref.to_string()).collect()
    }

    fn cluster(&mut self, name: &str, labels: &Value) -> Vec<String> {
        let cluster = json!({
            "metadata": {"name": name, "uid": "c", "labels": labels},
            "spec": {"hubAcceptsClient": true},
        });
        self.apply(stored(Kind::Clusters, &cluster))
    }

    fn secret(&mut self, name: &str, secret: &Value) -> Vec<String> {
        if secret.is_null() {
            return self.apply(deleted(Kind::Secrets, name));
        }
        let mut secret = secret.clone();
        secret["metadata"]["name"] = json!(name);
        self.apply(stored(Kind::Secrets, &secret))
    }

    fn decide(&self, cluster: &str) -> Option<Action> {
        let settings = Settings {
            argocd: "argocd".to_owned(),
            ..Settings::default()
        };
        let context = hub_state::testing::context(now(), &settings);
        reconcile(&self.0, &ObjectRef::new("", cluster), &context)
    }

    /// Returns the verb of the write and the recorded Event.
    fn does(&self, cluster: &str) -> String {
        let Some(action) = self.decide(cluster) else {
            return String::new();
        };
        assert_eq!(action.involved_object.object_ref, ObjectRef::new("", cluster));
        let secret = ObjectRef::new("argocd", &format!("{cluster}-secret"));
        let writes = action.writes.iter().map(|write| match &write.verb {
            _ if write.object_ref != secret => "something else",
            Verb::Delete { .. } if write.unless_exists.is_some() => {
                let cluster = ObjectRef::new("", cluster);
                assert_eq!(write.unless_exists, Some((&CLUSTERS, cluster)));
                "delete unless there"
            }
            verb => verb.name(),
        });
        let events = action.events.iter().map(|event| event.reason);
        writes.chain(events).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the Secret that the controller writes for a cluster without labels.
fn ours(cluster: &str) -> Value {
    let mut ours = secret(
        cluster,
        &format!("https://{cluster}-control-plane:6443"),
        &managed_by(OURS),
    );
    ours["metadata"]["annotations"] = json!({SKIP_RECONCILE: "true"});
    ours
}

const NOTHING: &str = "";

#[test]
fn enqueues_new_and_relabelled_clusters() {
    let mut hub = Hub::new(&["eu1"], &["eu1"]);
    assert_eq!(hub.does("eu1"), NOTHING);
    assert_eq!(hub.cluster("eu1", &json!({})), [""; 0], "which is no news");
    assert_eq!(hub.secret("eu1-secret", &ours("eu1")), [""; 0]);
    assert_eq!(hub.cluster("eu1", &json!({"env": "prod"})), ["eu1"]);
    assert_eq!(hub.does("eu1"), "patch");
    assert_eq!(hub.cluster("us1", &json!({})), ["us1"]);
    assert_eq!(hub.does("us1"), "create");
    assert_eq!(hub.secret("eu1-secret", &Value::Null), ["eu1"]);
    assert_eq!(hub.does("eu1"), "create");
}

#[test]
fn does_not_copy_the_tracking_label() {
    let mut hub = Hub::new(&[], &["eu1"]);
    hub.cluster("eu1", &json!({"example.com/app": "clusters"}));
    assert_eq!(hub.does("eu1"), "patch");
    let data = json!({"application.instanceLabelKey": "example.com/app"});
    let config = json!({"metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": data});
    assert_eq!(hub.apply(stored(Kind::Config, &config)), ["eu1"]);
    assert_eq!(hub.does("eu1"), NOTHING);
    assert_eq!(hub.apply(stored(Kind::Config, &config)), [""; 0]);
}

#[test]
fn a_cluster_gets_its_secret_when_the_hub_accepts_it() {
    let mut hub = Hub::new(&["eu1"], &[]);
    let joined = |accepts: bool| {
        let metadata = json!({"name": "us1", "uid": "c", "labels": {"env": "prod"}});
        stored(
            Kind::Clusters,
            &json!({"metadata": metadata, "spec": {"hubAcceptsClient": accepts}}),
        )
    };
    assert_eq!(hub.apply(joined(false)), ["us1"]);
    assert_eq!(hub.does("us1"), NOTHING, "anyone with a token to join can create it");
    assert_eq!(hub.apply(joined(true)), ["us1"]);
    assert_eq!(hub.does("us1"), "create");
}

#[test]
fn deletes_the_secret_of_a_deleted_cluster() {
    let mut hub = Hub::new(&["eu1"], &["eu1"]);
    let deleting = json!({"metadata": {"name": "eu1", "uid": "c", "deletionTimestamp": "2026-06-01T12:00:00Z"}});
    assert_eq!(hub.apply(stored(Kind::Clusters, &deleting)), ["eu1"]);
    assert_eq!(hub.does("eu1"), "delete");
    assert_eq!(hub.apply(deleted(Kind::Clusters, "eu1")), ["eu1"]);
    assert_eq!(hub.does("eu1"), "delete unless there", "though it was the last");
    let write = hub.decide("eu1").expect("an action").writes.remove(0);
    assert!(matches!(&write.verb, Verb::Delete { uid, version } if (&**uid, &**version) == ("u", "7")));
    hub.secret("eu1-secret", &Value::Null);
    assert_eq!(hub.does("eu1"), NOTHING);
}

#[test]
fn empty_cluster_list_deletes_no_secret() {
    let mut hub = Hub::new(&[], &["eu1", "us1"]);
    assert_eq!([hub.does("eu1"), hub.does("us1")], [NOTHING; 2]);
    // Until this watch event, the hub has listed no cluster.
    let mut affected = hub.cluster("us1", &json!({}));
    affected.sort_unstable();
    assert_eq!(affected, ["eu1", "us1"]);
    assert_eq!([hub.does("eu1"), hub.does("us1")], ["delete unless there", NOTHING]);

    let mut hub = Hub::new(&["eu1", "us1"], &["eu1", "us1"]);
    hub.apply(listed(Kind::Clusters, &[]));
    assert_eq!([hub.does("eu1"), hub.does("us1")], [NOTHING; 2]);
}

#[test]
fn keeps_other_secrets_of_a_deleted_cluster() {
    let foreign = secret("eu1", "https://eu1.example.com", &json!({}));
    let of_peer = secret("eu1", SERVER, &json!({}));
    let mut being_deleted = ours("eu1");
    being_deleted["metadata"]["deletionTimestamp"] = json!("2026-06-01T12:00:00Z");
    for (name, secret) in [
        ("eu1-secret", &foreign),
        ("eu1-secret", &of_peer),
        ("eu1-secret", &being_deleted),
        ("push", &foreign),
        ("copy", &ours("eu1")),
    ] {
        let mut hub = Hub::new(&["eu1", "us1"], &[]);
        hub.secret(name, secret);
        hub.apply(deleted(Kind::Clusters, "eu1"));
        assert_eq!(hub.does("eu1"), NOTHING, "{secret}");
    }
}

#[test]
fn reports_a_conflicting_secret_on_the_cluster_until_removed() {
    let foreign = secret("eu1", "https://eu1.example.com", &json!({}));
    let mut hub = Hub::new(&["eu1"], &[]);
    assert_eq!(hub.secret("push", &foreign), ["eu1"]);
    assert_eq!(hub.does("eu1"), "ClusterSecretConflict");
    let action = hub.decide("eu1").expect("an action");
    assert_eq!(
        (action.involved_object.resource, &*action.involved_object.uid),
        (&CLUSTERS, "c")
    );
    assert!(action.events[0].warning);
    assert!(
        action.recorded_events("").all(|recorded| recorded.is_persistent),
        "once"
    );
    assert_eq!(hub.secret("push", &Value::Null), ["eu1"]);
    assert_eq!(hub.does("eu1"), "create");

    // Ours is corrected first, then the conflict is recorded.
    hub.secret("eu1-secret", &ours("eu1"));
    hub.secret("push", &foreign);
    hub.cluster("eu1", &json!({"env": "prod"}));
    assert_eq!(hub.does("eu1"), "patch");
    hub.cluster("eu1", &json!({}));
    assert_eq!(hub.does("eu1"), "ClusterSecretConflict");
}
