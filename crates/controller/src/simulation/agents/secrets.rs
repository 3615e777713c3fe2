//! Tests of the cluster Secrets of clusters with argocd-agent, and of that of the hub itself.

use super::*;

impl Hub {
    /// Returns the clusters that have a Secret of their agent.
    fn agents(&self) -> Vec<&str> {
        let names = self.secrets.keys();
        names.filter_map(|name| name.strip_prefix("cluster-")).collect()
    }

    /// Returns the time when a cluster is reconciled again without watch events.
    fn requeue_after(&self, cluster: &str) -> Option<Timestamp> {
        let settings = self.settings();
        let context = hub_state::testing::context(self.now, &settings);
        (AGENT_SECRETS.requeue_after)(&self.cache, &ObjectRef::new("", cluster), &context)
    }

    /// Writes PlacementDecisions with these clusters for a GitOpsCluster.
    fn list(&mut self, of: &ObjectRef, clusters: &[&str]) {
        let object_ref = ObjectRef::new(&of.namespace, &format!("{}-argocd-agent-decision-1", of.name));
        let decisions: Vec<_> = clusters.iter().map(|cluster| json!({"clusterName": cluster})).collect();
        let decision = json!({
            "metadata": {
                "labels": {"app.kubernetes.io/managed-by": "argocd-ocm-cmp"},
                "annotations": {"argocd-ocm-cmp.github.io/gitopscluster": of.to_string()},
            },
            "status": {"decisions": decisions},
        });
        self.put(Kind::OwnDecisions, &object_ref, Some(decision));
    }

    /// Returns the clusters on which a GitOpsCluster runs argocd-agent.
    fn has(&self, object_ref: &ObjectRef) -> Vec<&str> {
        let gitops = GitOpsClusterRef::get(&self.cache, object_ref).expect("it exists");
        let agents = gitops.agent_clusters();
        for cluster in CLUSTERS {
            assert_eq!(gitops.runs_agent(cluster), agents.contains(cluster), "{cluster}");
        }
        agents.into_iter().collect()
    }

    /// Returns the server of a cluster in its Secret.
    fn server_of(&self, cluster: &str) -> Value {
        self.secrets[&format!("cluster-{cluster}")]["data"]["server"].clone()
    }

    fn assert_registered_says(&self, part: &str) {
        let message = self.condition_of(&all(), "ClustersRegistered")[2];
        assert!(message.contains(part), "{message}");
    }
}

fn secrets_of(written: &[String]) -> Vec<&str> {
    let of_secrets = written.iter().filter(|write| write.contains("cluster-"));
    let mut all: Vec<_> = of_secrets.map(String::as_str).collect();
    all.sort_unstable();
    all
}

#[test]
fn hub_is_registered_without_an_agent() {
    let mut hub = Hub::with_all_agents();
    hub.cache.name_hub(Some("hub"));
    hub.cluster("hub", &json!({}));
    hub.select(&["eu1", "eu2", "hub"]);
    assert_eq!(secrets_of(&hub.settle()), ["create cluster-hub"]);
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    assert_eq!(hub.requeue_after("hub"), None);
    let by_hand = json!({
        "metadata": {"labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "data": {"server": hub.server_of("hub")},
    });
    hub.secret("cluster-hub", None);
    hub.secret("in-cluster", Some(by_hand));
    let written = hub.settle();
    assert_eq!(secrets_of(&written), [""; 0], "no second Secret beside another owner's");
    hub.assert_registered_says("argocd/in-cluster");
}

#[test]
fn label_of_a_cluster_never_makes_it_the_hub() {
    let mut hub = Hub::with_all_agents();
    let before = hub.server_of("eu1");
    hub.cluster("eu1", &json!({"local-cluster": "true"}));
    // The label is copied like any other, without a new certificate, and nothing else changes.
    assert_eq!(hub.settle(), ["patch cluster-eu1"]);
    assert_eq!((hub.server_of("eu1"), hub.has(&all())), (before, vec!["eu1", "eu2"]));
    assert_eq!(hub.is("ClustersRegistered"), ["True", "Success"]);
    // Before a cluster has an agent, the label withholds it, until the administrator names the hub.
    hub.cluster("eu3", &json!({"local-cluster": "true"}));
    hub.select(&CLUSTERS);
    assert_eq!(secrets_of(&hub.settle()), [""; 0]);
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    assert_eq!(hub.is("ClustersRegistered")[0], "False");
    hub.assert_registered_says(
        "eu3: the cluster may be the hub itself, so it gets no Secret and no agent: if it is, set \
         ARGOCD_OCM_CMP_HUB_CLUSTER=eu3 for the controller, otherwise set ARGOCD_OCM_CMP_HUB_CLUSTER to the name of the \
         hub, or to none",
    );
    hub.cache.name_hub(Some("none"));
    let written = hub.reconcile_all();
    assert_eq!(secrets_of(&written), ["create cluster-eu3 with a certificate"]);
    assert_eq!(hub.with_addon(), CLUSTERS);
}

#[test]
fn agent_stays_an_agent_if_its_cluster_is_named_as_the_hub() {
    let mut hub = Hub::with_all_agents();
    let before = hub.server_of("eu1");
    hub.cache.name_hub(Some("eu1"));
    assert_eq!(secrets_of(&hub.reconcile_all()), [""; 0]);
    assert_eq!((hub.server_of("eu1"), hub.has(&all())), (before, vec!["eu1", "eu2"]));
    hub.assert_registered_says(
        "ARGOCD_OCM_CMP_HUB_CLUSTER names this cluster, but Secret argocd/cluster-eu1 is that of an agent, which never \
         becomes that of the hub: delete it if the cluster is the hub, otherwise correct ARGOCD_OCM_CMP_HUB_CLUSTER",
    );
    hub.secret("cluster-eu1", None);
    let written = hub.reconcile_one(Kind::Clusters, &ObjectRef::new("", "eu1"));
    assert_eq!(secrets_of(&written), ["create cluster-eu1"]);
    assert_eq!(hub.has(&all()), ["eu2"]);
}

#[test]
fn upgrade_keeps_the_secret_of_an_unnamed_hub() {
    let mut hub = Hub::with_all_agents();
    hub.cache.name_hub(Some("local-cluster"));
    hub.cluster("local-cluster", &json!({"local-cluster": "true"}));
    hub.select(&["eu1", "eu2", "local-cluster"]);
    assert_eq!(secrets_of(&hub.settle()), ["create cluster-local-cluster"]);
    let before = hub.secrets["cluster-local-cluster"].clone();
    for named in [None, Some("none"), Some("eu1")] {
        hub.cache.name_hub(named);
        let labels = json!({"local-cluster": "true", "env": named.unwrap_or_default()});
        hub.cluster("local-cluster", &labels);
        hub.affected.push((Kind::GitOpsClusters, all()));
        assert_eq!(secrets_of(&hub.settle()), [""; 0], "{named:?}");
        assert_eq!(hub.secrets["cluster-local-cluster"], before);
        assert_eq!(hub.has(&all()), ["eu1", "eu2"]);
        hub.assert_registered_says(
            "Secret argocd/cluster-local-cluster reaches the hub itself, and stays unchanged because \
             ARGOCD_OCM_CMP_HUB_CLUSTER does not name this cluster: if it is the hub, set \
             ARGOCD_OCM_CMP_HUB_CLUSTER=local-cluster for the controller, otherwise delete the Secret",
        );
    }
    // A Secret with the hub's server removes no agent.
    let by_hand = json!({"data": {"name": "ZXUx", "server": before["data"]["server"]}});
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
fn renews_certificates_before_they_expire_although_the_selection_is_uncertain() {
    let renewed = ["eu1", "eu2"].map(|cluster| format!("patch cluster-{cluster} with a certificate"));
    let certain: (_, Doubt) = ("nothing is in doubt", |_| ());
    // Without a known owner, nothing is renewed.
    for (why, doubt) in DOUBTS[..DOUBTS.len() - 1].iter().copied().chain([certain]) {
        let mut hub = Hub::with_all_agents();
        doubt(&mut hub);
        hub.settle();
        let at = hub.requeue_after("eu1").expect("a time");
        assert!(at > hub.now + days(23) && at < hub.now + days(24), "{why}");
        hub.advance_to(at - SignedDuration::from_secs(1));
        assert_eq!(secrets_of(&hub.reconcile_all()), [""; 0], "{why}");
        assert_eq!(secrets_of(&hub.advance_to(at)), renewed, "{why}");
        assert_eq!(secrets_of(&hub.reconcile_all()), [""; 0], "{why}");
        assert!(hub.requeue_after("eu1").is_some_and(|next| next > at), "{why}");
    }
}

#[test]
fn agent_replaces_the_secret_of_its_cluster_unless_the_selection_is_uncertain() {
    let mut hub = Hub::with_all();
    let old = hub.secrets[&secret_name("eu1")].clone();
    hub.select(&[]);
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    hub.reconcile_all();
    assert_eq!((hub.registered(), hub.agents()), (vec!["eu1", "eu2"], vec![]));
    hub.select(&["eu1", "eu2"]);
    let written = hub.settle();
    let [made, gone] = ["create cluster-eu1 with", "delete eu1-"].map(|what| position(&written, what));
    assert!(made < gone, "{written:#?}");
    assert_eq!((hub.registered(), hub.agents()), (vec![], vec!["eu1", "eu2"]));
    // A Secret from a backup, beside the other, is deleted.
    hub.secret(&secret_name("eu1"), Some(old));
    hub.settle();
    assert_eq!((hub.registered(), hub.agents()), (vec![], vec!["eu1", "eu2"]));
    hub.write(&all(), &acm(&json!({})));
    let written = hub.settle();
    let [made, gone] = ["create eu1-", "delete cluster-eu1"].map(|what| position(&written, what));
    assert!(made < gone, "{written:#?}");
}

#[test]
fn revoked_cluster_loses_its_secret_although_the_selection_is_uncertain() {
    let mut hub = Hub::with_all_agents();
    hub.select(&[]);
    hub.availability("eu2", Availability::Unknown);
    hub.write(&all(), &bringing("some", &["eu2"]));
    hub.settle();
    assert_eq!(hub.agents(), ["eu1"]);
    hub.availability("eu2", Availability::Available);
    hub.select(&["eu1", "eu2"]);
    hub.settle();
    assert_eq!(hub.agents(), ["eu1"]);
    let counted = &hub.objects[&all()]["status"]["clusters"];
    assert_eq!(["selected", "registered"].map(|key| &counted[key]), [1, 1]);
    assert_eq!(hub.has(&all()), ["eu1"]);
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(hub.agents(), ["eu1", "eu2"]);
}

#[test]
fn unreachable_cluster_keeps_its_secret() {
    for availability in [Availability::Unknown, Availability::Unavailable] {
        for mut hub in [Hub::with_all_agents(), Hub::with_all()] {
            let both = |hub: &Hub| [hub.registered(), hub.agents()].concat().join(" ");
            hub.availability("eu2", availability);
            hub.select(&["eu1"]);
            hub.settle();
            hub.reconcile_all();
            assert_eq!(both(&hub), "eu1 eu2");
            hub.availability("eu2", Availability::Available);
            hub.settle_at_once();
            hub.reconcile_all_at_once();
            assert_eq!(
                both(&hub),
                "eu1 eu2",
                "OCM has not yet decided about the cluster that is back"
            );
            hub.select(&["eu1", "eu2"]);
            hub.settle();
            assert_eq!(both(&hub), "eu1 eu2", "it is selected again");
            hub.availability("eu2", availability);
            hub.select(&["eu1"]);
            hub.settle();
            hub.availability("eu2", Availability::Available);
            hub.settle();
            assert_eq!(both(&hub), "eu1", "it is not selected again");
        }
    }
}

impl Hub {
    /// Lets a cluster report that it has been available for this long.
    fn report_available(&mut self, cluster: &str, duration: SignedDuration) {
        let since = self.now - duration;
        let condition =
            json!({"type": "ManagedClusterConditionAvailable", "status": "True", "lastTransitionTime": since});
        let status = json!({"status": {"conditions": [condition]}});
        self.edit(Kind::Clusters, &ObjectRef::new("", cluster), &status);
    }
}

/// Checks that a deselected eu2 keeps its Secret, although the selection is settled, until OCM has had the time to decide.
fn keeps_until_ocm_has_decided(hub: &mut Hub) {
    hub.tick();
    assert!(hub.cache.is_settled(&some()));
    hub.reconcile_all_at_once();
    assert_eq!(hub.agents(), ["eu1", "eu2"]);
    hub.settle();
    assert_eq!(hub.agents(), ["eu1"]);
}

#[test]
fn cluster_that_returned_before_a_restart_keeps_its_secret_until_ocm_has_decided() {
    let mut hub = Hub::with_all_agents();
    hub.select(&["eu1"]);
    hub.report_available("eu2", SignedDuration::from_mins(1));
    hub.forget_all();
    keeps_until_ocm_has_decided(&mut hub);
}

#[test]
fn cluster_that_returned_while_the_watch_was_lost_keeps_its_secret_until_ocm_has_decided() {
    let mut hub = Hub::with_all_agents();
    hub.report_available("eu2", SignedDuration::from_hours(1));
    hub.settle();
    hub.report_available("eu2", SignedDuration::from_mins(1));
    hub.select(&["eu1"]);
    keeps_until_ocm_has_decided(&mut hub);
}

/// Otherwise ApplicationSets that select clusters by argocd-pull-integration's label miss new clusters.
#[test]
fn secret_names_the_placement_for_users_of_argocd_pull_integration() {
    for (is_pull_integration, expected) in [(true, json!("some")), (false, Value::Null)] {
        let mut hub = Hub::new();
        let mut spec = bringing("some", &[]);
        if is_pull_integration {
            spec = json!({"placementRef": {"name": "some"}, "argoCDAgentAddon": {}});
        }
        hub.write(&all(), &spec);
        hub.settle();
        assert_eq!(
            hub.secrets["cluster-eu1"]["metadata"]["labels"]["placement-name"],
            expected
        );
        hub.is_at_rest();
    }
}

#[test]
fn agent_wins_over_secrets_without_credentials_unless_it_is_disabled() {
    let mut hub = Hub::with_all();
    let both = |mut spec: Value| {
        spec["createBlankClusterSecrets"] = json!(true);
        spec
    };
    hub.cache.serve_agents(false);
    hub.write(&all(), &both(bringing("some", &[])));
    hub.settle();
    assert_eq!((hub.registered(), hub.agents()), (vec!["eu1", "eu2"], vec![]));
    for (serves_agents, spec) in [
        (true, bringing("some", &[])),
        (true, invalid("some")),
        (false, bringing("some", &[])),
    ] {
        hub.cache.serve_agents(serves_agents);
        hub.write(&all(), &both(spec));
        hub.reconcile_all();
        assert_eq!((hub.registered(), hub.agents()), (vec![], vec!["eu1", "eu2"]));
    }
}

#[test]
fn installs_no_agent_where_another_owner_registered_without() {
    let mut hub = Hub::with_all();
    let other = of_argocd("aaa");
    hub.write(&other, &bringing("some", &[]));
    assert_eq!(secrets_of(&hub.settle()), [""; 0]);
    assert_eq!((hub.registered(), hub.with_addon()), (vec!["eu1", "eu2"], vec![]));
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
    hub.break_ca();
    hub.write(&of_argocd("aaa"), &bringing("some", &[]));
    hub.settle();
    hub.delete(&all());
    hub.settle();
    assert_eq!((hub.registered(), hub.agents()), (vec![], vec![]));
    assert!(!hub.objects.contains_key(&all()));
}

#[test]
fn clusters_keep_their_agents_and_owner_in_doubt() {
    let mut hub = Hub::new();
    let other = of_argocd("aaa");
    // There are no Secrets yet that show which GitOpsCluster was first.
    for object_ref in [&all(), &other] {
        hub.write(object_ref, &bringing("some", &[]));
        hub.finalize(object_ref, &[&ocm::gitops_cluster::finalizer("argocd")]);
    }
    while hub.tick() {}
    let have = |hub: &Hub| [all(), of_argocd("aaa")].map(|object_ref| hub.has(&object_ref).join(" "));
    assert_eq!(have(&hub), ["", "eu1 eu2"], "no GitOpsCluster has them");
    hub.list(&all(), &CLUSTERS);
    assert_eq!(have(&hub), ["eu1 eu2", ""], "eu3 is out for certain");
    hub.select(&[]);
    assert_eq!(hub.has(&all()), CLUSTERS);
    hub.list_none(Kind::Decisions);
    hub.list_none(Kind::Placements);
    assert_eq!(hub.has(&all()), CLUSTERS);
    hub.put(Kind::Clusters, &ObjectRef::new("", "eu2"), None);
    assert_eq!(hub.has(&all()), ["eu1", "eu3"]);
    hub.write(&all(), &bringing("some", &["eu1"]));
    assert_eq!(hub.has(&all()), ["eu3"], "eu1 is revoked");
    hub.write(&all(), &acm(&json!({})));
    assert_eq!(hub.has(&all()), [""; 0], "it asks for none");
}
