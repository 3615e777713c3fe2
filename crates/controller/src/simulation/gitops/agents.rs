//! Tests of clusters with argocd-agent.

use super::*;
use assignment::GitOpsClusterRef;
use hub_state::model::{Availability, Cluster, Kind, Object, TlsSecret};
use hub_state::model::{DesiredAgent, Images, Mode};
use hub_state::testing::certificates::{authorities, both};
use hub_state::testing::cluster;
use jiff::{SignedDuration, Timestamp};
use ocm::argocd_agent as names;
use runtime::store::Update;

fn desired(revoked: &[&str]) -> DesiredAgent {
    DesiredAgent {
        follows_principal: true,
        mode: Mode::Managed,
        address: None,
        port: None,
        namespace: "argocd".into(),
        images: Images::default(),
        rollout: None,
        revoked: revoked.iter().map(|cluster| (*cluster).into()).collect(),
        operator: false,
        argocd_manifests: None,
    }
}

fn agent_name(cluster: &str) -> String {
    format!("cluster-{cluster}")
}

impl Hub {
    /// Returns a hub with a CA and a GitOpsCluster that requests agents, after all writes.
    fn with_agents() -> Self {
        let mut hub = Self::new();
        hub.authority(&authorities()[0]);
        hub.ask(&all(), Some(desired(&[])));
        hub.settle();
        hub
    }

    /// Sets or removes the agent settings of a GitOpsCluster.
    fn ask(&mut self, object_ref: &ObjectRef, agent: Option<DesiredAgent>) {
        match agent {
            Some(agent) => self.agents.insert(object_ref.clone(), agent),
            None => self.agents.remove(object_ref),
        };
        self.write(object_ref, &acm(&json!({})));
    }

    /// Returns the clusters that have a Secret of their agent.
    fn agents(&self) -> Vec<&str> {
        self.secrets
            .keys()
            .filter_map(|name| name.strip_prefix("cluster-"))
            .collect()
    }

    fn agent_owner(&self, cluster: &str) -> &Value {
        &self.secrets[&agent_name(cluster)]["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"]
    }

    fn availability(&mut self, name: &str, availability: Availability) {
        self.apply(cluster(name, availability));
    }

    /// Returns the time when a cluster is reconciled again without watch events.
    fn requeue_after(&self, cluster: &str) -> Option<Timestamp> {
        let settings = Settings {
            argocd: self.argocd.to_owned(),
            ..Settings::default()
        };
        let context = hub_state::testing::context(self.now, &settings);
        (AGENT_SECRETS.requeue_after)(&self.cache, &ObjectRef::new("", cluster), &context)
    }

    /// Reconciles every cluster, as may happen at any time.
    fn look_at_all(&mut self) -> Vec<String> {
        let all = ["eu1", "eu2", "eu3"].map(|cluster| (Kind::Clusters, ObjectRef::new("", cluster)));
        self.affected.extend(all);
        self.settle()
    }

    /// Writes PlacementDecisions with these clusters for a GitOpsCluster.
    fn list(&mut self, of: &ObjectRef, clusters: &[&str]) {
        let object_ref = ObjectRef::new(&of.namespace, &format!("{}-argocd-agent-decision-1", of.name));
        let decisions: Vec<_> = clusters.iter().map(|cluster| json!({"clusterName": cluster})).collect();
        let text = json!({
            "metadata": {
                "labels": {"app.kubernetes.io/managed-by": "argocd-ocm-cmp"},
                "annotations": {"argocd-ocm-cmp.github.io/gitopscluster": of.to_string()},
            },
            "status": {"decisions": decisions},
        });
        let object = Object::from_json(Kind::OwnDecisions, &text.to_string()).expect("a PlacementDecision");
        self.apply(Change::objects(Kind::OwnDecisions, Update::Set(object_ref, object)));
    }

    /// Returns the clusters on which a GitOpsCluster runs argocd-agent.
    fn has(&self, object_ref: &ObjectRef) -> Vec<&str> {
        let gitops = GitOpsClusterRef::get(&self.cache, object_ref).expect("it exists");
        let agents = gitops.agent_clusters();
        for cluster in ["eu1", "eu2", "eu3"] {
            assert_eq!(gitops.runs_agent(cluster), agents.contains(cluster), "{cluster}");
        }
        agents.into_iter().collect()
    }
}

fn secrets_of(written: &[String]) -> Vec<&str> {
    let of_secrets = written.iter().filter(|write| write.contains("cluster-"));
    let mut all: Vec<_> = of_secrets.map(String::as_str).collect();
    all.sort_unstable();
    all
}

const RENEWED: [&str; 2] = [
    "patch cluster-eu1 with a certificate",
    "patch cluster-eu2 with a certificate",
];

#[test]
fn registers_agent_secrets_and_updates_the_status() {
    let mut hub = Hub::with_agents();
    assert_eq!(hub.agents(), ["eu1", "eu2"]);
    assert_eq!(hub.registered(), [""; 0]);
    assert_eq!(hub.agent_owner("eu1"), "argocd/all");
    assert_eq!(hub.is("ClustersRegistered"), ["True", "Success"]);
    assert_eq!(hub.look_at_all(), [""; 0]);
    assert_eq!(hub.restarted().settle(), [""; 0], "once is enough");
    hub.cluster("eu1", &json!({"env": "prod"}));
    assert_eq!(hub.settle(), ["patch cluster-eu1"], "without a new certificate");
    hub.delete(&all());
    let written = hub.settle();
    assert_eq!(written.last().map(String::as_str), Some("finalizers argocd/all"));
    assert_eq!(hub.agents(), [""; 0]);
}

#[test]
fn hub_is_registered_without_an_agent() {
    let mut hub = Hub::with_agents();
    hub.cache.name_hub(Some("hub"));
    hub.cluster("hub", &json!({}));
    hub.select(&["eu1", "eu2", "hub"]);
    assert_eq!(secrets_of(&hub.settle()), ["create cluster-hub"]);
    assert_eq!(hub.has(&all()), ["eu1", "eu2"]);
    assert_eq!(hub.requeue_after("hub"), None);
    let by_hand = json!({
        "metadata": {"labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "data": {"server": hub.secrets["cluster-hub"]["data"]["server"]},
    });
    hub.secret("cluster-hub", None);
    hub.secret("in-cluster", Some(by_hand));
    assert_eq!(
        secrets_of(&hub.settle()),
        [""; 0],
        "no second Secret beside another owner's"
    );
    assert!(hub.condition_of(&all(), "ClustersRegistered")[2].contains("argocd/in-cluster"));
}

/// The server of the hub in a Secret.
fn server_of(hub: &Hub, cluster: &str) -> Value {
    hub.secrets[&agent_name(cluster)]["data"]["server"].clone()
}

#[test]
fn label_of_a_cluster_never_makes_it_the_hub() {
    let mut hub = Hub::with_agents();
    let before = server_of(&hub, "eu1");
    hub.cluster("eu1", &json!({"local-cluster": "true"}));
    // The label is copied like any other, and nothing else changes.
    assert_eq!(hub.settle(), ["patch cluster-eu1"]);
    assert_eq!((server_of(&hub, "eu1"), hub.has(&all())), (before, vec!["eu1", "eu2"]));
    assert_eq!(hub.is("ClustersRegistered"), ["True", "Success"]);
    // Before a cluster has an agent, the label withholds it, until the administrator names the hub.
    hub.cluster("eu3", &json!({"local-cluster": "true"}));
    hub.select(&["eu1", "eu2", "eu3"]);
    assert_eq!(secrets_of(&hub.settle()), [""; 0]);
    assert_eq!(hub.has(&all()), ["eu1", "eu2"]);
    let [status, _, message] = hub.condition_of(&all(), "ClustersRegistered");
    assert_eq!(status, "False");
    let way_out = "eu3: the cluster may be the hub itself, so it gets no Secret and no agent: if it is, set \
                   ARGOCD_OCM_CMP_HUB_CLUSTER=eu3 for the controller, otherwise set ARGOCD_OCM_CMP_HUB_CLUSTER to the \
                   name of the hub, or to none";
    assert!(message.contains(way_out), "{message}");
    hub.cache.name_hub(Some("none"));
    assert_eq!(
        secrets_of(&hub.look_at_all()),
        ["create cluster-eu3 with a certificate"]
    );
    assert_eq!(hub.has(&all()), ["eu1", "eu2", "eu3"]);
}

#[test]
fn agent_stays_an_agent_if_its_cluster_is_named_as_the_hub() {
    let mut hub = Hub::with_agents();
    let before = server_of(&hub, "eu1");
    hub.cache.name_hub(Some("eu1"));
    assert_eq!(secrets_of(&hub.look_at_all()), [""; 0]);
    hub.affected.push((Kind::GitOpsClusters, all()));
    hub.settle();
    assert_eq!((server_of(&hub, "eu1"), hub.has(&all())), (before, vec!["eu1", "eu2"]));
    let message = hub.condition_of(&all(), "ClustersRegistered")[2];
    let way_out = "ARGOCD_OCM_CMP_HUB_CLUSTER names this cluster, but Secret argocd/cluster-eu1 is that of an agent, which \
                   never becomes that of the hub: delete it if the cluster is the hub, otherwise correct \
                   ARGOCD_OCM_CMP_HUB_CLUSTER";
    assert!(message.contains(way_out), "{message}");
    hub.secret("cluster-eu1", None);
    assert_eq!(secrets_of(&hub.settle()), ["create cluster-eu1"]);
    assert_eq!(hub.has(&all()), ["eu2"]);
}

#[test]
fn upgrade_keeps_the_secret_of_an_unnamed_hub() {
    let mut hub = Hub::with_agents();
    hub.cache.name_hub(Some("local-cluster"));
    hub.cluster("local-cluster", &json!({"local-cluster": "true"}));
    hub.select(&["eu1", "eu2", "local-cluster"]);
    assert_eq!(secrets_of(&hub.settle()), ["create cluster-local-cluster"]);
    let before = hub.secrets.clone();
    for named in [None, Some("none"), Some("eu1")] {
        hub.cache.name_hub(named);
        hub.cluster(
            "local-cluster",
            &json!({"local-cluster": "true", "env": named.unwrap_or_default()}),
        );
        hub.affected.push((Kind::GitOpsClusters, all()));
        assert_eq!(secrets_of(&hub.settle()), [""; 0], "{named:?}");
        assert_eq!(hub.secrets["cluster-local-cluster"], before["cluster-local-cluster"]);
        assert_eq!(hub.has(&all()), ["eu1", "eu2"]);
        let message = hub.condition_of(&all(), "ClustersRegistered")[2];
        let way_out = "Secret argocd/cluster-local-cluster reaches the hub itself, and stays unchanged because \
                       ARGOCD_OCM_CMP_HUB_CLUSTER does not name this cluster: if it is the hub, set \
                       ARGOCD_OCM_CMP_HUB_CLUSTER=local-cluster for the controller, otherwise delete the Secret";
        assert!(message.contains(way_out), "{message}");
    }
    // A Secret with the hub's server removes no agent.
    hub.list(&all(), &["eu1", "eu2"]);
    let by_hand = json!({"data": {"name": "ZXUx", "server": before["cluster-local-cluster"]["data"]["server"]}});
    hub.secret("by-hand", Some(by_hand));
    hub.settle();
    assert_eq!(hub.has(&all()), ["eu1", "eu2"]);
    hub.secret("by-hand", None);
    hub.cache.name_hub(None);
    hub.secret("cluster-local-cluster", None);
    assert_eq!(secrets_of(&hub.settle()), [""; 0], "the name alone withholds");
    assert_eq!(hub.has(&all()), ["eu1", "eu2"]);
}

#[test]
fn agent_secrets_wait_for_the_ca_and_follow_it() {
    let [one, other] = authorities();
    let mut hub = Hub::new();
    hub.ask(&all(), Some(desired(&[])));
    hub.settle();
    assert_eq!(hub.agents(), [""; 0]);
    assert_eq!(hub.is("ClustersRegistered"), ["Unknown", "Reconciling"]);
    hub.authority(one);
    hub.settle();
    assert_eq!(hub.agents(), ["eu1", "eu2"]);
    // Another CA is trusted, signs, and is the only one.
    for authority in [&both(one, other), &both(other, one), other] {
        hub.authority(authority);
        assert_eq!(secrets_of(&hub.settle()), RENEWED);
        assert_eq!(hub.look_at_all(), [""; 0], "once is enough");
    }
    hub.apply(Change::objects::<TlsSecret>(
        Kind::Certificates,
        Update::Deleted(names::CA_SECRET.into()),
    ));
    assert_eq!(
        secrets_of(&hub.look_at_all()),
        [""; 0],
        "what there is stays without one"
    );
    assert_eq!(hub.agents(), ["eu1", "eu2"]);
}

#[test]
fn renews_certificates_before_they_expire() {
    let mut hub = Hub::with_agents();
    let at = hub.requeue_after("eu1").expect("a time");
    assert!(at > hub.now + SignedDuration::from_hours(23 * 24) && at < hub.now + SignedDuration::from_hours(24 * 24));
    hub.now = at - SignedDuration::from_secs(1);
    assert_eq!(hub.look_at_all(), [""; 0]);
    hub.now = at;
    assert_eq!(hub.requeue_after("eu1"), None, "it is due, and nothing is waited for");
    assert_eq!(secrets_of(&hub.look_at_all()), RENEWED);
    assert!(hub.requeue_after("eu1").is_some_and(|next| next > at));
    assert_eq!(hub.look_at_all(), [""; 0]);
}

#[test]
fn renews_certificates_although_the_selection_is_uncertain() {
    let doubts: [fn(&mut Hub); 3] = [
        |hub| hub.select(&[]),
        |hub| {
            hub.list_none::<Placement>(Kind::Placements);
            hub.list_none::<PlacementDecision>(Kind::Decisions);
        },
        |hub| {
            hub.availability("eu2", Availability::Unknown);
            hub.select(&["eu1"]);
        },
    ];
    for doubt in doubts {
        let mut hub = Hub::with_agents();
        doubt(&mut hub);
        hub.settle();
        hub.now = hub.requeue_after("eu1").expect("a time");
        assert_eq!(secrets_of(&hub.look_at_all()), RENEWED);
        assert_eq!(hub.look_at_all(), [""; 0]);
    }
}

#[test]
fn switching_agents_on_or_off_replaces_the_secrets() {
    let mut hub = Hub::with_all();
    hub.ask(&all(), Some(desired(&[])));
    assert_eq!(
        secrets_of(&hub.settle()),
        [""; 0],
        "without an authority, what there is stays"
    );
    assert_eq!(hub.registered(), ["eu1", "eu2"]);
    hub.authority(&authorities()[0]);
    let written = hub.settle();
    let replaced = ["eu1", "eu2"]
        .map(|it| format!("delete {it}-application-manager-cluster-secret, create cluster-{it} with a certificate"));
    assert_eq!(secrets_of(&written), replaced);
    assert_eq!((hub.registered(), hub.agents()), (vec![], vec!["eu1", "eu2"]));
    assert_eq!(hub.is("ClustersRegistered"), ["True", "Success"]);
    hub.ask(&all(), None);
    hub.settle();
    assert_eq!((hub.registered(), hub.agents()), (vec!["eu1", "eu2"], vec![]));
    assert_eq!(hub.look_at_all(), [""; 0]);
}

#[test]
fn uncertain_selection_keeps_the_kind_of_secret() {
    let mut hub = Hub::with_all();
    hub.authority(&authorities()[0]);
    hub.select(&[]);
    hub.ask(&all(), Some(desired(&[])));
    hub.settle();
    hub.look_at_all();
    assert_eq!((hub.registered(), hub.agents()), (vec!["eu1", "eu2"], vec![]));
    // A Secret from a backup, beside the other, is deleted.
    hub.select(&["eu1", "eu2"]);
    let old = hub.secret_of("eu1");
    hub.settle();
    assert_eq!(hub.registered(), [""; 0]);
    hub.secret(&secret_name("eu1"), Some(old));
    hub.settle();
    assert_eq!((hub.registered(), hub.agents()), (vec![], vec!["eu1", "eu2"]));
}

#[test]
fn revoked_cluster_loses_its_secret_immediately() {
    let mut hub = Hub::with_agents();
    // Also while the selection is in doubt.
    hub.select(&[]);
    hub.availability("eu2", Availability::Unknown);
    hub.ask(&all(), Some(desired(&["eu2"])));
    hub.settle();
    assert_eq!(hub.agents(), ["eu1"]);
    hub.availability("eu2", Availability::Available);
    hub.select(&["eu1", "eu2"]);
    hub.settle();
    assert_eq!(hub.agents(), ["eu1"]);
    let counted = &hub.objects[&all()]["status"]["clusters"];
    assert_eq!(["selected", "registered"].map(|key| &counted[key]), [1, 1]);
    hub.list(&all(), &["eu2"]);
    assert_eq!(hub.has(&all()), ["eu1"]);
    hub.ask(&all(), Some(desired(&[])));
    hub.settle();
    assert_eq!(hub.agents(), ["eu1", "eu2"]);
}

#[test]
fn unreachable_cluster_keeps_its_secret() {
    for availability in [Availability::Unknown, Availability::Unavailable] {
        for mut hub in [Hub::with_agents(), Hub::with_all()] {
            let both = |hub: &Hub| [hub.registered(), hub.agents()].concat().join(" ");
            hub.list(&all(), &["eu1", "eu2"]);
            hub.availability("eu2", availability);
            hub.select(&["eu1"]);
            hub.settle();
            hub.look_at_all();
            assert_eq!(both(&hub), "eu1 eu2");
            let is_of_agents = !hub.agents().is_empty();
            if is_of_agents {
                assert_eq!(hub.has(&all()), ["eu1", "eu2"]);
            }
            hub.availability("eu2", Availability::Available);
            let is_looked_at = hub.affected.contains(&(Kind::GitOpsClusters, all()));
            assert!(is_looked_at, "it may have to give it up");
            hub.settle();
            assert_eq!(both(&hub), "eu1");
            if is_of_agents {
                assert_eq!(hub.has(&all()), ["eu1"]);
            }
        }
    }
}

#[test]
fn first_of_two_agent_owners_keeps_its_clusters() {
    let mut hub = Hub::with_agents();
    let other = ObjectRef::new("argocd", "aaa");
    hub.ask(&other, Some(desired(&[])));
    assert_eq!(secrets_of(&hub.settle()), [""; 0]);
    assert_eq!(hub.agent_owner("eu1"), "argocd/all");
    let message = hub.condition_of(&other, "ClustersRegistered")[2];
    assert!(
        message.contains("eu1: GitOpsCluster argocd/all already registers it"),
        "{message}"
    );
    assert_eq!((hub.has(&all()), hub.has(&other)), (vec!["eu1", "eu2"], vec![]));
    hub.delete(&all());
    assert_eq!(hub.has(&other), ["eu1", "eu2"]);
    assert_eq!(hub.has(&all()), [""; 0]);
    let written = hub.settle();
    assert_eq!(
        secrets_of(&written),
        ["patch cluster-eu1", "patch cluster-eu2"],
        "without a gap"
    );
    assert_eq!(hub.agent_owner("eu1"), "argocd/aaa");
}

#[test]
fn installs_no_agent_where_another_owner_registered_without() {
    let mut hub = Hub::with_all();
    hub.authority(&authorities()[0]);
    let other = ObjectRef::new("argocd", "aaa");
    hub.ask(&other, Some(desired(&[])));
    assert_eq!(secrets_of(&hub.settle()), [""; 0]);
    assert_eq!(hub.registered(), ["eu1", "eu2"]);
    assert_eq!(hub.has(&other), [""; 0]);
    // Running agents continue.
    hub.list(&other, &["eu2"]);
    assert_eq!(hub.has(&other), ["eu2"]);
    hub.delete(&all());
    hub.settle();
    assert_eq!((hub.registered(), hub.agents()), (vec![], vec!["eu1", "eu2"]));
    assert!(!hub.objects.contains_key(&all()));
}

#[test]
fn deletion_does_not_wait_for_a_successor_without_a_ca() {
    let mut hub = Hub::with_all();
    let other = ObjectRef::new("argocd", "aaa");
    hub.ask(&other, Some(desired(&[])));
    hub.settle();
    hub.delete(&all());
    hub.settle();
    assert_eq!((hub.registered(), hub.agents()), (vec![], vec![]));
    assert!(!hub.objects.contains_key(&all()));
}

#[test]
fn clusters_keep_their_agents_and_owner_in_doubt() {
    let mut hub = Hub::new();
    let other = ObjectRef::new("argocd", "aaa");
    // Without a CA there are no Secrets that show which GitOpsCluster was first.
    for object_ref in [&all(), &other] {
        hub.ask(object_ref, Some(desired(&[])));
        hub.settle();
    }
    assert_eq!(
        (hub.has(&all()), hub.has(&other)),
        (vec![], vec!["eu1", "eu2"]),
        "no GitOpsCluster has them"
    );
    hub.list(&all(), &["eu1", "eu2", "eu3"]);
    assert_eq!(
        (hub.has(&all()), hub.has(&other)),
        (vec!["eu1", "eu2"], vec![]),
        "eu3 is out for certain"
    );
    hub.select(&[]);
    assert_eq!(hub.has(&all()), ["eu1", "eu2", "eu3"]);
    hub.list_none::<PlacementDecision>(Kind::Decisions);
    hub.list_none::<Placement>(Kind::Placements);
    assert_eq!(hub.has(&all()), ["eu1", "eu2", "eu3"]);
    hub.apply(Change::objects::<Cluster>(
        Kind::Clusters,
        Update::Deleted("eu2".into()),
    ));
    assert_eq!(hub.has(&all()), ["eu1", "eu3"]);
    hub.ask(&all(), None);
    assert_eq!(hub.has(&all()), [""; 0], "it asks for none");
}

#[test]
fn certificates_that_their_owner_should_have_renewed_are_reported() {
    let mut hub = Hub::with_agents();
    let ready = |hub: &Hub| hub.condition_of(&all(), "CertificatesReady").map(str::to_owned);
    assert!(!ready(&hub)[2].contains("is valid until"), "{:?}", ready(&hub));
    // 80 % of a year.
    let late = now() + SignedDuration::from_hours(292 * 24);
    let settings = hub.settings();
    let context = hub_state::testing::context(hub.now, &settings);
    assert_eq!((GITOPS.requeue_after)(&hub.cache, &all(), &context), Some(late));
    hub.now = late;
    hub.reconcile_one(Kind::GitOpsClusters, &all());
    let [is, _, message] = ready(&hub);
    assert_eq!(is, "False");
    assert!(
        message.starts_with("the certificate one in Secret argocd/argocd-agent-ca is valid until 2"),
        "{message}"
    );
    hub.now = now();
    hub.reconcile_one(Kind::GitOpsClusters, &all());
    assert!(!ready(&hub)[2].contains("is valid until"), "{:?}", ready(&hub));
}
