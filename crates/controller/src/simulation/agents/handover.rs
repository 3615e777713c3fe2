//! Tests of clusters that move from one GitOpsCluster to another.

use super::*;

#[test]
fn deleting_one_of_two_gitopsclusters_removes_only_its_agents() {
    let mut hub = Hub::with_all_agents();
    hub.add_other(&["eu2", "eu3"], &bringing("others", &[]));
    assert_eq!(hub.with_addon(), ["eu1", "eu2", "eu3"]);
    hub.is_at_rest();
    hub.delete(&all());
    hub.settle();
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu2", "eu3"], vec!["eu1"]));
    assert!(!hub.objects.contains_key(&all()));
    assert_eq!(
        [Kind::Templates, Kind::OwnPlacements].map(|kind| hub.kept(kind).len()),
        [1, 1]
    );
    hub.is_at_rest();
}

/// Returns the ManifestWork with the ArgoCD resource of a GitOpsCluster on a cluster.
pub(super) fn argocd(cluster: &str, gitops: &str) -> ObjectRef {
    ObjectRef::new(cluster, &format!("argocd-agent-cr-argocd-{gitops}"))
}

/// Returns a GitOpsCluster whose clusters have an operator that is not ours.
pub(super) fn operated(placement: &str) -> Value {
    let mut spec = bringing(placement, &[]);
    let argocd = json!({"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": {"name": "argocd"}});
    spec["argoCDAgentAddon"] = json!({"argoCDCRManifestWork": {"manifests": [argocd]}});
    spec
}

#[test]
fn disabling_the_operator_deletes_the_argocd_works() {
    let mut hub = Hub::with_all_agents();
    let has = |hub: &Hub, cluster, gitops| {
        hub.kept(Kind::AgentWorks)
            .iter()
            .any(|(at, _)| **at == argocd(cluster, gitops))
    };
    hub.write(&all(), &operated("some"));
    hub.settle();
    assert_eq!(["eu1", "eu2"].map(|cluster| has(&hub, cluster, "all")), [true; 2]);
    hub.is_at_rest();
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(["eu1", "eu2"].map(|cluster| has(&hub, cluster, "all")), [false; 2]);
    assert_eq!(hub.taken(), [""; 0]);
    hub.is_at_rest();
}

#[test]
fn new_owner_creates_its_argocd_work_before_the_old_is_deleted() {
    let mut hub = Hub::with_all_agents();
    hub.write(&all(), &operated("some"));
    hub.settle();
    hub.add_other(&["eu1", "eu2"], &operated("others"));
    hub.select(&["eu2"]);
    let written = hub.settle();
    let made = position(&written, "create ManifestWork eu1/argocd-agent-cr-argocd-other");
    let gone = position(&written, "delete ManifestWork eu1/argocd-agent-cr-argocd-all");
    assert!(made < gone, "{written:#?}");
    assert_eq!(hub.taken(), [""; 0]);
    hub.is_at_rest();
}

#[test]
fn previous_owner_names_a_cluster_until_the_add_on_has_the_entry_of_the_next() {
    let mut hub = Hub::with_all_agents();
    hub.select_for(&of_argocd("others"), &["eu2"]);
    hub.write(&of_argocd("other"), &bringing("others", &[]));
    hub.select(&["eu1"]);
    // The ClusterManagementAddOn is reconciled last.
    hub.tick();
    while !hub.affected.is_empty() {
        hub.affected.sort_by_key(|(kind, _)| *kind != Kind::Namespace);
        hub.settle_steps(1);
    }
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1", "eu2"], vec![]));
    assert_eq!(hub.decided_by(&of_argocd("other")), ["eu2"].into());
    assert_eq!(hub.decided_by(&all()), ["eu1"].into());
    hub.is_at_rest();
}

/// Starts to move eu2 to a GitOpsCluster of another namespace, which that of Argo CD then no longer allows: eu2 is in its decision,
/// but it has no entry in the add-on yet.
fn with_interrupted_handover() -> (Hub, ObjectRef) {
    let mut hub = Hub::with_all_agents();
    let far = ObjectRef::new("team", "far");
    hub.open(true);
    hub.select_for(&ObjectRef::new("team", "some"), &["eu2"]);
    hub.write(&far, &bringing("some", &[]));
    hub.select(&["eu1"]);
    hub.tick();
    while hub.decided_by(&far).is_empty() {
        hub.affected.sort_by_key(|(kind, _)| *kind != Kind::Namespace);
        hub.settle_steps(1);
    }
    hub.open(false);
    hub.settle();
    (hub, far)
}

#[test]
fn handover_to_a_gitopscluster_that_is_no_longer_served_removes_no_agent() {
    let (mut hub, far) = with_interrupted_handover();
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1", "eu2"], vec![]));
    assert_eq!(hub.decided_by(&all()), ["eu1", "eu2"].into());
    hub.is_at_rest();
    hub.open(true);
    hub.settle();
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1", "eu2"], vec![]));
    assert_eq!(
        (hub.decided_by(&all()), hub.decided_by(&far)),
        (["eu1"].into(), ["eu2"].into())
    );
    hub.is_at_rest();
    // The last counts for a cluster in both. Users of a namespace could change the Placement there.
    let placements = &hub.kept(Kind::ManagementAddOn)[0].1["spec"]["installStrategy"]["placements"];
    let namespaces: Vec<_> = placements
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| &entry["namespace"])
        .collect();
    assert_eq!(namespaces, ["team", "argocd"]);
}

#[test]
fn deletion_during_an_interrupted_handover_names_the_gitopscluster_that_it_waits_for() {
    for is_served_again in [true, false] {
        let (mut hub, far) = with_interrupted_handover();
        hub.delete(&all());
        hub.settle();
        assert_eq!(
            hub.condition_of(&all(), "Ready")[2],
            "being deleted, waiting for the deletion of Secret argocd/cluster-eu1; the objects of its agents; the handover of its clusters to \
             GitOpsCluster team/far, which is not served"
        );
        assert_eq!(hub.taken(), [""; 0]);
        if is_served_again {
            hub.open(true);
        } else {
            hub.delete(&far);
        }
        hub.settle();
        assert!(!hub.objects.contains_key(&all()));
        let (with_addon, taken): (&[&str], &[&str]) = if is_served_again {
            (&["eu2"], &["eu1"])
        } else {
            (&[], &["eu1", "eu2"])
        };
        assert_eq!((&*hub.with_addon(), &*hub.taken()), (with_addon, taken));
    }
}

impl Hub {
    /// Returns the clusters in the decisions of a GitOpsCluster.
    fn decided_by(&self, object_ref: &ObjectRef) -> BTreeSet<&str> {
        let gitops = GitOpsClusterRef::get(&self.cache, object_ref).expect("it is there");
        gitops.decided_clusters()
    }

    /// Returns the GitOpsClusters that own the cluster Secrets and ManifestWorks of agents.
    fn owners(&self) -> BTreeSet<&str> {
        let works = self.kept(Kind::AgentWorks).into_iter().map(|(_, work)| work);
        let all = works.chain(self.secrets.values());
        all.filter_map(|object| object["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"].as_str())
            .collect()
    }
}

#[test]
fn gitopscluster_that_is_missing_from_the_list_keeps_its_clusters() {
    let mut hub = Hub::with_all_agents();
    let other = hub.add_other(&["eu1", "eu2"], &bringing("others", &[]));
    // It cannot be read, or is not restored yet.
    hub.apply(listed(Kind::GitOpsClusters, &["argocd/other"]));
    hub.settle();
    hub.reconcile_all();
    assert_eq!(hub.owners(), ["argocd/all"].into());
    assert_eq!(hub.decided_by(&other), [].into());
    // Its Secrets are deleted meanwhile.
    for name in hub.secrets.keys().cloned().collect::<Vec<_>>() {
        hub.secret(&name, None);
    }
    hub.settle();
    assert_eq!(hub.owners(), ["argocd/all"].into());
    assert_eq!(hub.decided_by(&other), [].into());
    hub.restart_controller();
    assert_eq!((hub.owners(), hub.secrets.len()), (["argocd/all"].into(), 2));
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1", "eu2"], vec![]));
    // A watch event proves the deletion.
    hub.delete(&all());
    hub.settle();
    assert_eq!(hub.owners(), ["argocd/other"].into());
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1", "eu2"], vec![]));
    hub.is_at_rest();
}

#[test]
fn deleting_the_only_gitopscluster_in_the_list_takes_nothing_from_a_missing_one() {
    let mut hub = Hub::with_all_agents();
    let other = hub.add_other(&["eu3"], &bringing("others", &[]));
    hub.apply(listed(Kind::GitOpsClusters, &["argocd/other"]));
    hub.delete(&other);
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2", "eu3"]);
    assert_eq!(
        hub.condition_of(&other, "Ready")[2],
        "being deleted, waiting for the deletion of Secret argocd/cluster-eu3; the objects of its agents; GitOpsCluster argocd/all, \
         which is missing without a deletion"
    );
    // An administrator who removes what names the missing one ends the wait.
    let secret = hub.secrets["cluster-eu1"].clone();
    hub.secret("cluster-eu1", None);
    assert!(hub.affected.contains(&(Kind::Namespace, ObjectRef::new("", "argocd"))));
    hub.secret("cluster-eu1", Some(secret));
    let missing = hub.objects[&all()].clone();
    hub.handle_event(Kind::GitOpsClusters, &all(), Some(&missing));
    hub.settle();
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1", "eu2"], vec!["eu3"]));
    assert!(!hub.objects.contains_key(&other));
}

#[test]
fn objects_in_other_namespaces_belong_to_no_gitopscluster() {
    let mut hub = Hub::with_all_agents();
    for (kind, name) in [
        (Kind::OwnPlacements, "forged"),
        (Kind::OwnDecisions, "forged-1"),
        (Kind::AddOnConfigs, "forged"),
    ] {
        let at = ObjectRef::new("tenant", name);
        let forged = json!({
            "metadata": {
                "namespace": "tenant",
                "name": name,
                "labels": {"app.kubernetes.io/managed-by": "argocd-ocm-cmp"},
                "annotations": {"argocd-ocm-cmp.github.io/gitopscluster": "argocd/all"},
                "finalizers": ["example.com/stay"],
            },
            "status": {"decisions": [{"clusterName": "eu3", "reason": ""}]},
        });
        hub.handle_event(kind, &at, Some(&forged));
    }
    hub.settle();
    assert_eq!(hub.decided_by(&all()), ["eu1", "eu2"].into());
    hub.delete(&all());
    hub.settle();
    assert!(!hub.objects.contains_key(&all()));
    assert_eq!((hub.with_addon(), hub.taken()), (vec![], vec!["eu1", "eu2"]));
}
