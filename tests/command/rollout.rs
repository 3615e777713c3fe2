//! Tests of `rollout` with a hub of fixed objects.

use crate::fake_hub::{FakeHub, Objects, application, application_path, failures, objects, set_path, work, work_path};
use serde_json::json;

/// Returns the hub of a rollout that has reached `eu1`; the agent of `eu2` has replaced the objects in its work.
fn half_a_rollout() -> Objects {
    let mut objects = objects();
    let of_set = |cluster: &str| {
        let mut work = work(cluster, "fleet-x", "fleet");
        work["metadata"]["labels"] = json!({"work.open-cluster-management.io/manifestworkreplicaset": "argocd.fleet"});
        work["metadata"]["annotations"] = json!({});
        work
    };
    let (updated, mut other) = (of_set("eu1"), of_set("eu2"));
    let name = "fleet";
    let id = format!("{name}:work.open-cluster-management.io/ManifestWorkReplicaSet:argocd/{name}");
    let set = json!({
        "apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
        "metadata": {
            "name": name, "namespace": "argocd", "generation": 1, "resourceVersion": "7",
            "labels": {"argocd-ocm-cmp.github.io/application": name}, "annotations": {"argocd.argoproj.io/tracking-id": id},
        },
        "spec": {"placementRefs": [{"name": "all", "rolloutStrategy": {"type": "Progressive"}}], "manifestWorkTemplate": updated["spec"]},
    });
    other["spec"]["workload"]["manifests"][0] =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "x"}});
    objects.insert(work_path("eu1", "fleet-x"), updated);
    objects.insert(work_path("eu2", "fleet-x"), other);
    objects.insert(set_path("argocd", name), set);
    objects.insert(
        application_path(name),
        application(name, &[("ManifestWorkReplicaSet", "argocd", name)]),
    );
    let decisions = json!([{"clusterName": "eu1"}, {"clusterName": "eu2"}]);
    objects.insert(
        "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/argocd/placementdecisions/all-1".to_owned(),
        json!({
            "metadata": {"name": "all-1", "namespace": "argocd", "labels": {"cluster.open-cluster-management.io/placement": "all"}},
            "status": {"decisions": decisions},
        }),
    );
    objects
}

/// The agent of a cluster may write its work, whose content would go to all clusters.
#[test]
fn undo_needs_the_policy_that_limits_agents() {
    let hub = FakeHub::start(half_a_rollout());
    let printed = hub.run("rollout undo fleet");
    assert!(
        printed.contains("agents of managed clusters may change works: ValidatingAdmissionPolicy argocd-ocm-cmp-clusters.argocd does not exist"),
        "{printed}"
    );
    assert_eq!(hub.changes(), [""; 0]);

    let api = "/apis/admissionregistration.k8s.io/v1";
    let mut objects = half_a_rollout();
    objects.insert(
        format!("{api}/validatingadmissionpolicies/argocd-ocm-cmp-clusters.argocd"),
        json!({"metadata": {"name": "argocd-ocm-cmp-clusters.argocd"}}),
    );
    let binding = |actions: &str| {
        json!({
            "metadata": {"name": "argocd-ocm-cmp-clusters.argocd"},
            "spec": {"policyName": "argocd-ocm-cmp-clusters.argocd", "validationActions": [actions]},
        })
    };
    let binding_path = format!("{api}/validatingadmissionpolicybindings/argocd-ocm-cmp-clusters.argocd");
    objects.insert(binding_path.clone(), binding("Warn"));
    let hub = FakeHub::start(objects.clone());
    assert!(
        hub.run("rollout undo fleet")
            .contains("argocd-ocm-cmp-clusters.argocd denies nothing")
    );
    assert_eq!(hub.changes(), [""; 0]);

    objects.insert(binding_path, binding("Deny"));
    // OCM writes the status of the set at each step of a rollout.
    let conflict =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409});
    objects.insert(failures(&set_path("argocd", "fleet")), json!([conflict]));
    let hub = FakeHub::start(objects.clone());
    let printed = hub.run("rollout undo fleet");
    for part in [
        "ClusterRoleBinding.rbac.authorization.k8s.io x\n",
        "+++ earlier: fleet\n",
        "+kind: ClusterRoleBinding\n",
        "returns to the earlier content; 1 cluster to take back",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert_eq!(hub.changes().len(), 2, "{printed}");

    let application = objects.get_mut(&application_path("fleet")).expect("an Application");
    application["operation"] = json!({"sync": {}});
    let hub = FakeHub::start(objects);
    let printed = hub.run("rollout undo fleet");
    assert!(
        printed.contains("Argo CD is syncing Application fleet, and would go on with the new version: run argocd app terminate-op fleet"),
        "{printed}"
    );
    assert_eq!(hub.changes(), [""; 0]);
}

/// The ApplicationSet controller reverts a change of the Application at once.
#[test]
fn remedy_for_a_generated_application_names_its_set() {
    let mut objects = half_a_rollout();
    let application = objects.get_mut(&application_path("fleet")).expect("the Application");
    application["metadata"]["ownerReferences"] = json!([{"kind": "ApplicationSet", "name": "fleets"}]);
    application["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}});
    let hub = FakeHub::start(objects);
    let printed = hub.run("rollout undo fleet");
    let remedy =
        "set selfHeal to false in the template of ApplicationSet fleets, or change Git or the settings in the template";
    assert!(printed.contains(remedy), "{printed}");
    assert_eq!(hub.changes(), [""; 0]);
}

#[test]
fn rollout_of_an_earlier_version_is_not_complete() {
    let mut objects = half_a_rollout();
    let set = objects[&set_path("argocd", "fleet")].clone();
    for cluster in ["eu1", "eu2"] {
        let work = objects.get_mut(&work_path(cluster, "fleet-x")).expect("a work");
        work["spec"] = set["spec"]["manifestWorkTemplate"].clone();
        let mut progressing = work["status"]["conditions"][0].clone();
        progressing["type"] = "Progressing".into();
        progressing["status"] = "False".into();
        work["status"]["conditions"]
            .as_array_mut()
            .expect("a list")
            .push(progressing);
    }
    let printed = FakeHub::start(objects.clone()).run("rollout status fleet");
    assert!(
        printed.contains("complete, 2 of 2 clusters updated") && !printed.contains("warning"),
        "{printed}"
    );
    let application = objects.get_mut(&application_path("fleet")).expect("an Application");
    application["status"]["sync"]["status"] = "OutOfSync".into();
    let printed = FakeHub::start(objects).run("rollout status fleet");
    assert!(
        printed.contains("exit code: 1")
            && printed.contains("warning: Application argocd/fleet: it is OutOfSync: sync it"),
        "{printed}"
    );
}
