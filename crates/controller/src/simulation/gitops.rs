//! Tests of the GitOpsCluster controller on a simulated hub that stores its writes.

use super::*;
use cluster_secrets::reconcile::CONTROLLER as CLUSTER_SECRETS;
use hub_state::cache::Refusal;
use ocm::gitops_cluster::{SHARED_FINALIZER, finalizer};
use runtime::queue::Refresh;

#[test]
fn registers_selected_clusters_and_updates_the_status() {
    let mut hub = Hub::new();
    hub.write(&all(), &acm(&json!({})));
    let written = hub.settle();
    assert_eq!(written[0], "finalizers argocd/all", "before the first Secret");
    assert_eq!(hub.registered(), ["eu1", "eu2"]);
    assert_eq!(hub.owner("eu1"), "argocd/all");
    for kind in [
        "PlacementResolved",
        "ArgoServerVerified",
        "ClustersRegistered",
        "SpecImplemented",
        "Ready",
    ] {
        assert_eq!(hub.is(kind), ["True", "Success"], "{kind}");
    }
    let status = &hub.objects[&all()]["status"];
    assert_eq!(status["clusters"], json!({"selected": 2, "registered": 2}));
    assert_eq!(status["phase"], "successful");
    assert_eq!(status["conditions"][0]["observedGeneration"], 1);
    assert_eq!(hub.restart_controller(), [""; 0], "once is enough");
}

#[test]
fn follows_changes_and_reconciles_nothing_else() {
    let mut hub = Hub::with_all();
    hub.cluster("eu1", &json!({"env": "prod"}));
    // The GitOpsCluster is reconciled first; a changed label does not affect its status.
    hub.affected.push((Kind::GitOpsClusters, all()));
    assert_eq!(hub.settle(), [format!("patch {}", secret_name("eu1"))]);
    assert_eq!(hub.secrets[&secret_name("eu1")]["metadata"]["labels"]["env"], "prod");
    let gone = hub.secret_of("eu2");
    hub.secret(&secret_name("eu2"), None);
    hub.settle();
    assert_eq!(hub.secret_of("eu2")["data"], gone["data"], "it is made again");
    hub.select(&["eu1", "eu2", "eu3"]);
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2", "eu3"]);
    assert_eq!(hub.is("Ready"), ["True", "Success"]);
    hub.decide(&some(), 1, Some(&["eu1", "eu2", "eu3"]));
    assert_eq!(hub.affected, [], "which is no news");
}

#[test]
fn deselected_cluster_loses_its_secret_once_counts_agree() {
    let mut hub = Hub::with_all();
    hub.decide(&some(), 1, Some(&["eu1"]));
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2"], "the Placement still says two");
    hub.says(
        &all(),
        "PlacementResolved",
        ["Unknown", "Reconciling"],
        "no cluster is removed",
    );
    hub.set_selected_count(&some(), Some(1));
    hub.settle();
    assert_eq!(hub.registered(), ["eu1"]);
    assert_eq!(hub.is("Ready"), ["True", "Success"]);
}

#[test]
fn cluster_between_two_decisions_keeps_its_secret() {
    let mut hub = Hub::new();
    hub.decide(&some(), 1, Some(&["eu1"]));
    hub.decide(&some(), 2, Some(&["eu2"]));
    hub.write(&all(), &acm(&json!({})));
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2"]);
    // OCM sorts the clusters, fills one decision after the other, and writes the number of all of them last.
    hub.cluster("eu0", &json!({}));
    hub.decide(&some(), 1, Some(&["eu0"]));
    hub.settle_at_once();
    assert_eq!(
        hub.registered(),
        ["eu0", "eu1", "eu2"],
        "two clusters are named, and the status says two"
    );
    hub.decide(&some(), 2, Some(&["eu2"]));
    hub.decide(&some(), 3, Some(&["eu2"]));
    hub.set_selected_count(&some(), Some(3));
    hub.settle();
    assert_eq!(
        hub.registered(),
        ["eu0", "eu1", "eu2"],
        "the second decision was refused"
    );
    hub.decide(&some(), 2, Some(&["eu1"]));
    hub.settle();
    hub.decide(&some(), 3, None);
    hub.set_selected_count(&some(), Some(2));
    hub.settle_at_once();
    assert_eq!(hub.registered(), ["eu0", "eu1", "eu2"], "a moment ago it was selected");
    hub.settle();
    assert_eq!(hub.registered(), ["eu0", "eu1"]);
}

#[test]
fn cluster_does_not_take_the_secret_of_another_by_its_name() {
    // The Secret of cluster-1 without a credential has the name of the Secret of this cluster's agent.
    let other = "1-application-manager-cluster-secret";
    let mut hub = Hub::new();
    hub.cluster("cluster-1", &json!({}));
    hub.select(&["cluster-1"]);
    hub.write(&all(), &acm(&json!({})));
    hub.settle();
    assert_eq!(hub.registered(), ["cluster-1"]);
    hub.cluster(other, &json!({}));
    assert_eq!(hub.settle(), [""; 0]);
}

#[test]
fn uncertain_selection_removes_no_secret() {
    type Doubt = fn(&mut Hub);
    let doubts: [(&str, Doubt, [&str; 2]); 5] = [
        (
            "no decision names any",
            |hub| hub.select(&[]),
            ["False", "ManagedClustersNotFound"],
        ),
        (
            "a decision is gone",
            |hub| hub.decide(&some(), 1, None),
            ["Unknown", "Reconciling"],
        ),
        (
            "the Placement is gone with all it decided",
            |hub| {
                hub.list_none(Kind::Decisions);
                hub.list_none(Kind::Placements);
            },
            ["False", "PlacementNotFound"],
        ),
        (
            "the Placement says nothing",
            |hub| hub.put(Kind::Placements, &some(), Some(json!({"metadata": {}}))),
            ["Unknown", "Reconciling"],
        ),
        (
            "no GitOpsCluster is listed",
            |hub| {
                hub.list_none(Kind::GitOpsClusters);
            },
            ["True", "Success"],
        ),
    ];
    for (why, doubt, says) in doubts {
        let mut hub = Hub::with_all();
        doubt(&mut hub);
        hub.affected
            .extend(["eu1", "eu2"].map(|cluster| (Kind::Clusters, ObjectRef::new("", cluster))));
        let written = hub.settle();
        assert_eq!(hub.registered(), ["eu1", "eu2"], "{why}: {written:?}");
        assert_eq!(hub.is("PlacementResolved"), says, "{why}");
    }
}

#[test]
fn deletes_the_secret_of_a_removed_cluster() {
    let mut hub = Hub::with_all();
    hub.put(Kind::Clusters, &ObjectRef::new("", "eu2"), None);
    hub.settle();
    assert_eq!(hub.registered(), ["eu1"]);
    hub.says(
        &all(),
        "ClustersRegistered",
        ["Unknown", ""],
        "eu2 (no accepted ManagedCluster)",
    );
}

#[test]
fn deletion_removes_own_secrets_before_its_finalizer() {
    let mut hub = Hub::with_all();
    let other = ObjectRef::new("argocd", "other");
    hub.write(&other, &acm(&json!({"placementRef": {"name": "others"}})));
    hub.select_for(&of_argocd("others"), &["eu3"]);
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2", "eu3"]);
    hub.delete(&all());
    let written = hub.settle();
    assert_eq!(
        written.last().map(String::as_str),
        Some("finalizers argocd/all"),
        "{written:?}"
    );
    assert_eq!(hub.registered(), ["eu3"]);
    assert!(!hub.objects.contains_key(&all()));
    assert_eq!(hub.owner("eu3"), "argocd/other");
}

#[test]
fn a_copied_secret_does_not_hold_up_deletion() {
    let mut hub = Hub::with_all();
    let mut copy = hub.secrets[&secret_name("eu1")].clone();
    copy["metadata"]["name"] = json!("backup");
    hub.secret("backup", Some(copy));
    hub.settle();
    hub.delete(&all());
    assert_eq!(hub.settle().last().map(String::as_str), Some("finalizers argocd/all"));
    assert!(hub.objects.is_empty());
    assert_eq!(
        hub.secrets.keys().collect::<Vec<_>>(),
        ["backup"],
        "foreign Secrets are not deleted"
    );
}

#[test]
fn status_names_secrets_that_block_deletion() {
    let mut hub = Hub::with_all();
    hub.delete(&all());
    let written = hub.reconcile_one(Kind::GitOpsClusters, &all());
    assert_eq!(written, ["status argocd/all"]);
    let [status, reason, message] = hub.condition_of(&all(), "Ready");
    assert_eq!([status, reason], ["False", "Deleting"]);
    assert_eq!(
        message,
        "being deleted, waiting for the deletion of Secret argocd/eu1-application-manager-cluster-secret; \
         Secret argocd/eu2-application-manager-cluster-secret"
    );
    assert_eq!(
        hub.reconcile_one(Kind::GitOpsClusters, &all()),
        [""; 0],
        "once is enough"
    );
    hub.settle();
    assert!(hub.objects.is_empty());
}

#[test]
fn acms_default_push_mode_prevents_ready() {
    let mut hub = Hub::new();
    hub.write(&all(), &acm(&json!({"createBlankClusterSecrets": null})));
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2"], "they are registered all the same");
    hub.says(
        &all(),
        "SpecImplemented",
        ["False", "NotImplemented"],
        "set spec.createBlankClusterSecrets to true",
    );
    assert_eq!(hub.is("Ready"), ["False", "NotImplemented"]);
    hub.write(&all(), &acm(&json!({})));
    hub.settle();
    assert_eq!(hub.is("Ready"), ["True", "Success"]);
}

#[test]
fn first_of_two_owners_keeps_a_cluster_until_it_leaves() {
    let mut hub = Hub::with_all();
    let other = ObjectRef::new("argocd", "aaa");
    hub.write(&other, &acm(&json!({})));
    let written = hub.settle();
    assert!(written.iter().all(|write| !write.contains("secret")), "{written:?}");
    hub.says(
        &other,
        "ClustersRegistered",
        ["False", "ClusterRegistrationFailed"],
        "eu1: GitOpsCluster argocd/all already registers it",
    );
    assert_eq!(hub.events.len(), 1, "{:?}", hub.events);
    hub.delete(&all());
    let written = hub.settle();
    assert!(written.iter().all(|write| !write.starts_with("delete")), "{written:?}");
    assert_eq!(["eu1", "eu2"].map(|cluster| hub.owner(cluster)), ["argocd/aaa"; 2]);
    assert_eq!(hub.condition_of(&other, "Ready")[0], "True");
}

#[test]
fn reports_a_foreign_secret_once_and_leaves_it_alone() {
    let mut hub = Hub::new();
    let encoded = |text: &str| json!(k8s_openapi::ByteString(text.as_bytes().to_vec()));
    let theirs = json!({
        "metadata": {"labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "data": {"name": encoded("eu1"), "server": encoded("https://eu1.example.com")},
    });
    hub.secret("push", Some(theirs));
    hub.write(&all(), &acm(&json!({})));
    hub.settle();
    assert_eq!(hub.registered(), ["eu2"]);
    assert_eq!(hub.is("Ready"), ["False", "ClusterRegistrationFailed"]);
    let status = &hub.objects[&all()]["status"];
    assert_eq!(status["phase"], "failed");
    assert_eq!(status["clusters"], json!({"selected": 2, "registered": 1}));
    assert_eq!(hub.events.len(), 1, "{:?}", hub.events);
    assert!(hub.events[0].contains("eu1: Argo CD knows this cluster by Secret argocd/push"));
    hub.cluster("eu2", &json!({"env": "prod"}));
    hub.settle();
    hub.select(&["eu1", "eu2", "eu3"]);
    hub.settle();
    assert!(hub.condition_of(&all(), "ClustersRegistered")[2].starts_with("2 of 3 clusters"));
    assert_eq!(hub.events.len(), 1, "it is known, whatever else changes");
    hub.secret("push", None);
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2", "eu3"]);
    assert_eq!(hub.is("Ready"), ["True", "Success"]);
}

#[test]
fn all_cluster_controller_skips_clusters_of_gitopsclusters() {
    let mut hub = Hub::new();
    hub.write(&all(), &acm(&json!({})));
    let writes = |hub: &Hub, cluster: &str| hub.next_writes(&CLUSTER_SECRETS, &ObjectRef::new("", cluster)).len();
    assert_eq!(writes(&hub, "eu1"), 1, "no GitOpsCluster may have written one yet");
    hub.finalize(&all(), &[&finalizer("argocd")]);
    assert_eq!((writes(&hub, "eu1"), writes(&hub, "eu3")), (0, 1));
    hub.settle();
    assert_eq!((writes(&hub, "eu1"), writes(&hub, "eu3")), (0, 1));
}

#[test]
fn gitopscluster_in_another_namespace_needs_the_open_label() {
    let mut hub = Hub::new();
    let tenant = ObjectRef::new("argocd", "all");
    // The served Argo CD is in another namespace.
    hub.serve("gitops");
    hub.write(&tenant, &acm(&json!({"argoServer": {"argoNamespace": "gitops"}})));
    hub.settle();
    assert_eq!(hub.registered(), [""; 0]);
    assert_eq!(hub.is("ArgoServerVerified"), ["False", "InvalidConfiguration"]);
    assert_eq!(hub.objects[&tenant]["metadata"]["finalizers"], Value::Null);
    hub.open(true);
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2"]);
    assert_eq!(hub.is("Ready"), ["True", "Success"]);
    // Closing it keeps existing objects, but they are not updated any more.
    hub.open(false);
    hub.cluster("eu1", &json!({"env": "prod"}));
    hub.select(&["eu1"]);
    let written = hub.settle();
    assert_eq!(written, ["status argocd/all"]);
}

#[test]
fn gitopscluster_for_an_unserved_argo_cd_is_refused() {
    let mut hub = Hub::with_all();
    hub.write(&all(), &acm(&json!({"argoServer": {"argoNamespace": "gitops"}})));
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2"], "it may be a typing error");
    hub.says(
        &all(),
        "ArgoServerVerified",
        ["False", "ArgoServerNotFound"],
        "--argocd-namespace gitops",
    );
    hub.finalize(
        &all(),
        &["argocd", "gitops"].map(finalizer).each_ref().map(String::as_str),
    );
    hub.settle();
    assert_eq!(hub.registered(), [""; 0], "the other controller has taken it over");
    assert_eq!(
        hub.finalizers(),
        [finalizer("gitops")],
        "nothing is left to be waited for"
    );
    hub.answer_for("gitops");
    assert_eq!(hub.settle(), [""; 0], "which is the other's");
    hub.delete(&all());
    assert_eq!(hub.settle(), [""; 0], "so is the finalizer");
    assert!(hub.objects.contains_key(&all()));
}

#[test]
fn leaves_the_finalizers_of_others_on_deletion() {
    for others in [&finalizer("gitops"), SHARED_FINALIZER, "example.com/mine"] {
        let mut hub = Hub::new();
        hub.write(&all(), &acm(&json!({"argoServer": {"argoNamespace": "gitops"}})));
        hub.settle();
        hub.finalize(&all(), &[others]);
        hub.delete(&all());
        assert_eq!(hub.settle(), [""; 0], "{others}");
        assert_eq!(hub.finalizers(), [others]);
    }
}

#[test]
fn removes_only_its_own_finalizer() {
    let mut hub = Hub::with_all();
    let (ours, others) = (finalizer("argocd"), [&finalizer("gitops"), "example.com/mine"]);
    assert_eq!(hub.finalizers(), [&*ours]);
    hub.finalize(&all(), &[others[0], &ours, others[1]]);
    hub.delete(&all());
    hub.settle();
    assert_eq!(hub.registered(), [""; 0], "its Secrets are deleted first");
    assert_eq!(hub.finalizers(), others);
    assert_eq!(hub.settle(), [""; 0]);
}

#[test]
fn replaces_the_finalizer_of_earlier_versions_in_one_write() {
    let mut hub = Hub::with_all();
    hub.finalize(&all(), &["example.com/mine", SHARED_FINALIZER]);
    hub.affected.clear();
    let written = hub.reconcile_one(Kind::GitOpsClusters, &all());
    assert_eq!(written, ["finalizers argocd/all"]);
    assert_eq!(hub.finalizers(), ["example.com/mine", &finalizer("argocd")]);
    assert_eq!(hub.settle(), [""; 0], "nothing else changes");
    assert_eq!(hub.registered(), ["eu1", "eu2"]);
    // Beside its own, as after a downgrade to an earlier version.
    hub.finalize(&all(), &[SHARED_FINALIZER, &finalizer("argocd")]);
    hub.settle();
    assert_eq!(hub.finalizers(), [finalizer("argocd")]);
}

#[test]
fn keeps_an_earlier_versions_finalizer_for_another_argo_cd() {
    let mut hub = Hub::new();
    hub.write(&all(), &acm(&json!({"argoServer": {"argoNamespace": "gitops"}})));
    hub.finalize(&all(), &[SHARED_FINALIZER]);
    hub.settle();
    assert_eq!(hub.finalizers(), [SHARED_FINALIZER]);
    assert_eq!(hub.is("ArgoServerVerified"), ["False", "ArgoServerNotFound"]);
}

#[test]
fn deletion_with_an_earlier_finalizer_waits_for_its_secrets() {
    let mut hub = Hub::with_all();
    hub.finalize(&all(), &[SHARED_FINALIZER]);
    hub.delete(&all());
    let written = hub.settle();
    let last = |what: &str| written.iter().rposition(|write| write.contains(what));
    assert!(last("delete") < last("finalizers"), "{written:?}");
    assert_eq!(hub.registered(), [""; 0]);
    assert!(!hub.objects.contains_key(&all()), "{written:?}");
}

#[test]
fn two_controllers_agree_on_a_gitopscluster_that_neither_serves() {
    let mut hub = Hub::new();
    hub.write(&all(), &acm(&json!({"argoServer": {"argoNamespace": "third"}})));
    hub.settle();
    let status = hub.objects[&all()]["status"].clone();
    assert_eq!(hub.is("ArgoServerVerified")[0], "False");
    hub.serve("gitops");
    assert_eq!(hub.reconcile_one(Kind::GitOpsClusters, &all()), [""; 0]);
    assert_eq!(hub.objects[&all()]["status"], status);
}

#[test]
fn a_refusal_by_another_controller_is_not_answered() {
    let mut hub = Hub::new();
    // The other controller does not serve it, and so has no finalizer on it.
    let mut spec = acm(&json!({"argoServer": {"argoNamespace": "gitops"}}));
    hub.serve("gitops");
    hub.write(&all(), &spec);
    hub.settle();
    let refused = ["False", "InvalidConfiguration"];
    assert_eq!(hub.is("ArgoServerVerified"), refused);
    assert_eq!(hub.finalizers(), [""; 0]);
    hub.serve("argocd");
    spec["createPolicyTemplate"] = json!(true);
    hub.write(&all(), &spec);
    assert_eq!(hub.settle(), [""; 0], "after a change of the spec");
    // A CRD without the field drops it.
    let status = hub.objects.get_mut(&all()).expect("it is there")["status"].as_object_mut();
    status.expect("a status").remove("argoNamespace");
    hub.serve("gitops");
    hub.written(&all());
    hub.settle();
    hub.serve("argocd");
    assert_eq!(hub.reconcile_one(Kind::GitOpsClusters, &all()), [""; 0]);
    assert_eq!(hub.is("ArgoServerVerified"), refused);
    // It moves to an Argo CD without a controller.
    hub.write(&all(), &acm(&json!({"argoServer": {"argoNamespace": "third"}})));
    hub.settle();
    assert_eq!(hub.is("ArgoServerVerified"), ["False", "ArgoServerNotFound"]);
    assert_eq!(hub.objects[&all()]["status"]["argoNamespace"], Value::Null);
}

#[test]
fn a_spec_edit_keeps_the_answer_of_another_controller() {
    let mut hub = Hub::new();
    let other = json!({"argoServer": {"argoNamespace": "gitops"}});
    hub.write(&all(), &acm(&other));
    hub.settle();
    hub.answer_for("gitops");
    let mut edited = other;
    edited["createPolicyTemplate"] = json!(true);
    hub.write(&all(), &acm(&edited));
    assert_eq!(hub.settle(), [""; 0]);
    assert_eq!(hub.is("ArgoServerVerified")[0], "True");
}

#[test]
fn gitopscluster_moved_and_deleted_loses_our_finalizer() {
    let mut hub = Hub::with_all();
    hub.write(&all(), &acm(&json!({"argoServer": {"argoNamespace": "gitops"}})));
    hub.delete(&all());
    hub.settle();
    assert_eq!(hub.registered(), [""; 0]);
    assert!(!hub.objects.contains_key(&all()));
}

#[test]
fn a_placement_of_another_namespace_is_refused() {
    let mut hub = Hub::new();
    hub.write(&all(), &acm(&json!({"placementRef": {"namespace": "other"}})));
    hub.settle();
    assert_eq!(hub.registered(), [""; 0]);
    assert_eq!(hub.is("PlacementResolved"), ["False", "InvalidConfiguration"]);
}

#[test]
fn unsupported_field_prevents_ready() {
    let mut hub = Hub::new();
    hub.write(
        &all(),
        &acm(&json!({"createPolicyTemplate": true, "managedServiceAccountRef": "push"})),
    );
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2"]);
    let [status, reason, message] = hub.condition_of(&all(), "SpecImplemented");
    assert_eq!([status, reason], ["False", "NotImplemented"]);
    assert_eq!(
        message,
        "not implemented: spec.createPolicyTemplate, spec.managedServiceAccountRef"
    );
    assert_eq!(hub.is("Ready"), ["False", "NotImplemented"]);
}

#[test]
fn clusters_stay_registered_until_agents_can_be_installed() {
    let mut hub = Hub::with_all();
    hub.break_ca();
    let agent = json!({"enabled": true, "argoCDAgent": {"enabled": true}});
    hub.write(&all(), &acm(&json!({"gitopsAddon": agent})));
    hub.cluster("eu1", &json!({"env": "prod"}));
    hub.settle();
    assert_eq!(hub.registered(), ["eu1", "eu2"]);
    assert_eq!(hub.is("ClustersRegistered"), ["Unknown", "Reconciling"]);
    assert_eq!(hub.secret_of("eu1")["metadata"]["labels"]["env"], Value::Null);
}

#[test]
fn v1alpha1_gitopscluster_gets_its_own_condition_types() {
    let mut hub = Hub::new();
    let spec = json!({
        "placementRef": {"name": "some"}, "argoCDAgentAddon": {}, "createBlankClusterSecrets": true,
        "createPolicyTemplate": true,
    });
    hub.write(&all(), &spec);
    hub.settle();
    assert_eq!(hub.is("PlacementEvaluated"), ["True", "Success"]);
    assert_eq!(hub.is("ClustersImported"), ["True", "Success"]);
    assert_eq!(hub.is("SpecImplemented"), ["False", "NotImplemented"]);
    assert_eq!(hub.is("PlacementResolved"), ["", ""]);
    hub.select(&[]);
    hub.settle();
    let message = "Placement argocd/some selects no cluster; registered clusters stay registered";
    assert_eq!(
        hub.condition_of(&all(), "PlacementEvaluated"),
        ["True", "NoClusters", message]
    );
}

#[test]
fn fields_that_acms_crd_drops_are_written_once() {
    let mut hub = Hub::with_all();
    let status = hub.objects.get_mut(&all()).expect("it is there")["status"].as_object_mut();
    status
        .expect("a status")
        .retain(|field, _| ["conditions", "lastUpdateTime", "message", "phase"].contains(&&**field));
    hub.written(&all());
    assert_eq!(hub.settle(), [""; 0], "otherwise each write would cause the next one");
    hub.select(&["eu1", "eu2", "eu3"]);
    hub.settle();
    assert_eq!(hub.objects[&all()]["status"]["clusters"]["registered"], 3);
}

#[test]
fn unchanged_condition_keeps_its_transition_time() {
    let mut hub = Hub::with_all();
    let object = hub.objects.get_mut(&all()).expect("it is there");
    for condition in object["status"]["conditions"].as_array_mut().expect("a list") {
        condition["lastTransitionTime"] = json!("2020-01-01T00:00:00Z");
    }
    hub.written(&all());
    hub.select(&["eu1", "eu2", "eu3"]);
    hub.settle();
    let status = &hub.objects[&all()]["status"];
    assert_eq!(status["clusters"]["registered"], 3);
    assert_eq!(status["conditions"][1]["lastTransitionTime"], "2020-01-01T00:00:00Z");
    assert_eq!(status["lastUpdateTime"], "2026-06-01T12:00:00Z");
}

#[test]
fn deletes_a_late_secret_of_a_deleted_gitopscluster() {
    let mut hub = Hub::with_all();
    let late = hub.secret_of("eu1");
    hub.delete(&all());
    hub.settle();
    assert_eq!(hub.registered(), [""; 0]);
    hub.secret(&secret_name("eu1"), Some(late));
    hub.settle();
    assert_eq!(hub.registered(), [""; 0]);
}

#[test]
fn large_fleet_has_short_messages_and_no_extra_reconciles() {
    let mut hub = Hub::new();
    let names: Vec<_> = (0..1_000).map(|number| format!("c{number:03}")).collect();
    for name in &names {
        hub.cluster(name, &json!({}));
    }
    hub.select(&names.iter().map(String::as_str).collect::<Vec<_>>());
    hub.affected.clear();
    hub.write(&all(), &acm(&json!({})));
    hub.affected.clear();
    hub.finalize(&all(), &[&finalizer("argocd")]);
    hub.affected.retain(|(kind, _)| *kind == Kind::GitOpsClusters);
    hub.settle();
    let [_, _, message] = hub.condition_of(&all(), "ClustersRegistered");
    assert_eq!(
        message,
        "0 of 1000 clusters are registered, pending: c000; c001; c002 (1000 in total)"
    );

    for name in &names {
        let made = hub.reconcile_one(Kind::Clusters, &ObjectRef::new("", name));
        assert_eq!(made, [format!("create {}", secret_name(name))]);
    }
    hub.affected.clear();
    assert_eq!(hub.reconcile_one(Kind::GitOpsClusters, &all()), ["status argocd/all"]);
    assert_eq!(hub.is("Ready"), ["True", "Success"]);
    // A changed cluster is reconciled, and no other.
    hub.affected.clear();
    let (one, patched) = (ObjectRef::new("", "c007"), format!("patch {}", secret_name("c007")));
    hub.cluster("c007", &json!({"env": "prod"}));
    assert_eq!(std::mem::take(&mut hub.affected), [(Kind::Clusters, one.clone())]);
    assert_eq!(hub.reconcile_one(Kind::Clusters, &one), [patched]);
    // Its Secret has the name that the other controller would use for the Secret of a missing cluster.
    let other = ObjectRef::new("", "c007-application-manager-cluster");
    assert_eq!(
        hub.affected,
        [
            (Kind::Clusters, one),
            (Kind::Clusters, other),
            (Kind::GitOpsClusters, all())
        ]
    );
    assert_eq!(hub.settle(), [""; 0]);
}

#[test]
fn refused_write_sets_a_condition_until_it_is_accepted() {
    let mut hub = Hub::with_all();
    let eu1 = (Kind::Clusters, ObjectRef::new("", "eu1"));
    hub.refuse(&eu1, Some("Secret argocd/eu1 cannot be changed: forbidden"));
    assert_eq!(hub.settle(), ["status argocd/all"]);
    let [status, reason, message] = hub.condition_of(&all(), "WritesAccepted");
    assert_eq!([status, reason], ["False", "WriteRefused"]);
    assert_eq!(message, "Secret argocd/eu1 cannot be changed: forbidden");
    assert_eq!(hub.is("Ready"), ["False", "WriteRefused"]);
    hub.refuse(&eu1, None);
    assert_eq!(hub.settle(), ["status argocd/all"]);
    assert_eq!(hub.condition_of(&all(), "WritesAccepted"), [""; 3]);
    assert_eq!(hub.is("Ready"), ["True", "Success"]);
}

#[test]
fn new_leader_keeps_the_refusals_that_it_may_not_have_met_yet() {
    let mut hub = Hub::with_all();
    let eu1 = (Kind::Clusters, ObjectRef::new("", "eu1"));
    let eu2 = (Kind::Clusters, ObjectRef::new("", "eu2"));
    let look = |hub: &mut Hub| hub.reconcile_one(Kind::GitOpsClusters, &all());
    for (cluster, why) in [(&eu1, "eu1: forbidden"), (&eu2, "eu2: forbidden")] {
        hub.refuse(cluster, Some(why));
    }
    hub.settle();
    assert_eq!(
        hub.condition_of(&all(), "WritesAccepted")[2],
        "eu1: forbidden; eu2: forbidden"
    );
    // The successor knows no refusal, and then the first one.
    hub.new_leader_for = Some(Duration::from_secs(100));
    hub.refuse(&eu1, None);
    hub.refuse(&eu2, None);
    assert_eq!(look(&mut hub), [""; 0]);
    hub.refuse(&eu1, Some("eu1: forbidden"));
    assert_eq!(look(&mut hub), [""; 0]);
    let at = (GITOPS.requeue_after)(
        &hub.cache,
        &all(),
        &Context {
            now: now(),
            stale: false,
            new_leader_for: hub.new_leader_for,
            settings: &Settings::default(),
        },
    );
    assert_eq!(at, Some(now() + Duration::from_secs(100)));
    hub.refuse(&eu2, Some("eu2: too large"));
    assert_ne!(look(&mut hub), [""; 0], "a new reason");
    assert_eq!(
        hub.condition_of(&all(), "WritesAccepted")[2],
        "eu1: forbidden; eu2: too large"
    );
    hub.new_leader_for = None;
    hub.refuse(&eu2, None);
    assert_ne!(look(&mut hub), [""; 0]);
    assert_eq!(hub.condition_of(&all(), "WritesAccepted")[2], "eu1: forbidden");
}

#[test]
fn refused_finalizer_is_reported_and_retried() {
    let mut hub = Hub::new();
    hub.write(&all(), &acm(&json!({})));
    hub.affected.clear();
    let itself = (Kind::GitOpsClusters, all());
    hub.refuse(&itself, Some("GitOpsCluster argocd/all cannot be changed: no"));
    let look = |hub: &mut Hub| hub.reconcile_one(Kind::GitOpsClusters, &all());
    assert_eq!(look(&mut hub), ["status argocd/all"]);
    assert_eq!(hub.is("WritesAccepted"), ["False", "WriteRefused"]);
    assert_eq!(look(&mut hub), ["finalizers argocd/all"]);
    hub.refuse(&itself, None);
    hub.settle();
    assert_eq!(hub.is("Ready"), ["True", "Success"]);
}

#[test]
fn deletion_reports_refused_writes() {
    let mut hub = Hub::with_all();
    hub.delete(&all());
    let eu1 = (Kind::Clusters, ObjectRef::new("", "eu1"));
    hub.refuse(&eu1, Some("Secret argocd/eu1 cannot be deleted: forbidden"));
    hub.reconcile_one(Kind::GitOpsClusters, &all());
    assert_eq!(hub.is("WritesAccepted"), ["False", "WriteRefused"]);
    let [_, reason, message] = hub.condition_of(&all(), "Ready");
    assert_eq!(reason, "Deleting");
    assert!(
        message.ends_with("; WritesAccepted: Secret argocd/eu1 cannot be deleted: forbidden"),
        "{message}"
    );
    hub.refuse(&eu1, None);
    hub.settle();
    assert!(!hub.objects.contains_key(&all()));
}

impl Hub {
    /// Simulates the answer of the controller of another Argo CD.
    fn answer_for(&mut self, argocd: &str) {
        let object = self.objects.get_mut(&all()).expect("it is there");
        object["metadata"]["finalizers"] = json!([finalizer(argocd)]);
        object["status"]["argoNamespace"] = json!(argocd);
        object["status"]["conditions"] = json!([{
            "type": "ArgoServerVerified",
            "status": "True",
            "observedGeneration": object["metadata"]["generation"],
            "message": format!("clusters are registered in the namespace {argocd}"),
        }]);
        self.written(&all());
    }

    /// Makes the API server refuse the last write of an object for the GitOpsCluster, or accept it.
    fn refuse(&mut self, (kind, object_ref): &(Kind, ObjectRef), why: Option<&str>) {
        let affected = ReconcileRequest {
            kind: *kind,
            object_ref: object_ref.clone(),
            refresh: Refresh::Unchanged,
        };
        let refusal = why.map(|why| Refusal {
            why: why.into(),
            gitops: Some(all()),
            is_of_status: false,
        });
        let affected = self.cache.record_write(GITOPS.name, 0, affected, refusal);
        self.affected
            .extend(affected.into_iter().map(|request| (request.kind, request.object_ref)));
    }

    fn finalizers(&self) -> Vec<&str> {
        let all = self.objects[&all()]["metadata"]["finalizers"].as_array();
        all.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn secret_of(&self, cluster: &str) -> Value {
        self.secrets[&secret_name(cluster)].clone()
    }
}
