//! Tests of `status` and `gitopscluster status` without a hub, and of `status` with a hub of fixed objects.

use crate::fake_hub::{FakeHub, application, application_path, objects, set_path, work, work_path};
use crate::program::{UNREACHABLE_KUBECONFIG, assert_needs_a_hub, assert_refused, refused};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[test]
fn fails_without_a_hub() {
    // `--wait` does not wait for a hub that never answered.
    assert_needs_a_hub("status shop", &["--wait", "--watch", "--wait --timeout=1h", "-o json"]);
    assert_needs_a_hub("gitopscluster status", &["fleet", "-A", ""]);
}

/// As for kubectl, a file may be missing, and the proxy is not for this machine.
#[test]
fn kubeconfig_variable_selects_the_hub() {
    let folder = TempDir::new().expect("a scratch folder");
    fs::write(folder.path().join("config"), UNREACHABLE_KUBECONFIG).expect("a file");
    for (context, printed) in [
        (
            "a",
            "the hub at http://127.0.0.1:1/ cannot be reached: connection refused",
        ),
        (
            "b",
            "no hub to read from: the kubeconfig has no context b: set --kubeconfig or --context",
        ),
    ] {
        let words = format!("KUBECONFIG=missing:config HTTPS_PROXY=http://127.0.0.1:2 status shop --context {context}");
        assert_eq!(refused(folder.path(), &words), format!("error: {printed}\n"));
    }
}

#[test]
fn refuses_invalid_arguments() {
    assert_refused(&[
        ("status", "<APP>"),
        ("status shop --timeout=5m", "--wait"),
        (
            "status shop --wait --timeout=5",
            "\"5\" is not a duration: write it like 90s, 10m or 2h",
        ),
        ("status shop --wait --timeout=99999999999h", "is not a duration"),
        ("status shop --wait --timeout=1ä", "is not a duration"),
        ("status shop -o xml", "possible values: table, wide, json, yaml, name"),
        ("gitopscluster status a/b/c", "not a Kubernetes name"),
        ("gitopscluster status ..", "not a Kubernetes name"),
        ("gitopscluster status fleet -n Team", "not a Kubernetes name"),
        ("gitopscluster status fleet -A", "cannot be used with"),
        ("gitopscluster status -n team --all-namespaces", "cannot be used with"),
        (
            "gitopscluster status -o xml",
            "possible values: table, wide, json, yaml, name",
        ),
    ]);
    let unnamed = refused(Path::new("/"), &["gitopscluster", "status", ""]);
    assert!(unnamed.contains("not a Kubernetes name"), "{unnamed}");
}

/// The client repeats requests for a minute that the hub rejects because it is busy.
#[test]
fn wait_ends_in_time_while_the_hub_is_busy() {
    let busy = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "busy", "code": 503});
    let mut objects = objects();
    objects.insert(application_path("shop"), busy);
    let started = Instant::now();
    let printed = FakeHub::start(objects).run("status shop --wait --timeout 1s");
    assert!(printed.contains("has not answered in time"), "{printed}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// The works of a version before the current one are healthy, too.
#[test]
fn waits_until_the_current_version_is_delivered() {
    let path = application_path("shop");
    let printed = FakeHub::start(objects()).run("status shop --wait --timeout 1s");
    assert!(printed.starts_with("exit code: 0\n"), "{printed}");
    // A user who may not read it.
    let mut without_application = objects();
    let forbidden =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "forbidden", "code": 403});
    without_application.insert(path.clone(), forbidden);
    let printed = FakeHub::start(without_application.clone()).run("status shop");
    assert!(printed.starts_with("exit code: 0\n"), "{printed}");
    // The next read may succeed.
    without_application.get_mut(&path).expect("an answer")["code"] = 500.into();
    let hub = FakeHub::start(without_application);
    assert!(hub.run("status shop").starts_with("exit code: 2\n"));
    let printed = hub.run("status shop --wait --timeout 1s");
    assert!(printed.contains("gave up after 1s: the hub at"), "{printed}");
    // `argocd app delete --cascade=false` leaves the works. Those made with `kubectl apply` never had an Application.
    let mut left = objects();
    left.remove(&path);
    let printed = FakeHub::start(left.clone()).run("status shop");
    assert!(
        printed.starts_with("exit code: 1\n")
            && printed.contains("the hub has no Application argocd/shop any more, so nothing updates its works"),
        "{printed}"
    );
    for cluster in ["eu1", "eu2"] {
        let work = left.get_mut(&work_path(cluster, "shop")).expect("a work");
        work["metadata"]["annotations"] = json!({});
    }
    let printed = FakeHub::start(left).run("status shop");
    assert!(printed.starts_with("exit code: 0\n"), "{printed}");
    for (field, text) in [
        ("/status/sync/status", json!("OutOfSync")),
        ("/metadata/annotations", json!({"argocd.argoproj.io/refresh": "normal"})),
        (
            "/status/sync/comparedTo",
            json!({"source": {"repoURL": "https://git/other"}}),
        ),
        ("/operation", json!({"sync": {"revision": "abc"}})),
    ] {
        let mut objects = objects();
        let application = objects.get_mut(&path).expect("an Application");
        let (parent, key) = field.rsplit_once('/').expect("a path");
        application.pointer_mut(parent).expect("an object")[key] = text;
        if field == "/operation" {
            // The requested sync replaces this one.
            application["status"]["operationState"]["phase"] = "Failed".into();
            application["status"]["sync"]["status"] = "OutOfSync".into();
        }
        let printed = FakeHub::start(objects).run("status shop --wait --timeout 1s");
        assert!(
            printed.starts_with("exit code: 1\n") && printed.contains("gave up after 1s"),
            "{field}: {printed}"
        );
    }
}

/// Otherwise one cluster on hold, or not synced yet, blocks the deliveries to all others.
#[test]
fn waits_only_for_the_works_on_the_named_clusters() {
    let mut objects = objects();
    let mut canary = application(
        "canary",
        &[("ManifestWork", "eu1", "canary"), ("ManifestWork", "eu2", "canary")],
    );
    canary["status"]["sync"]["status"] = "OutOfSync".into();
    canary["status"]["resources"][1]["status"] = "OutOfSync".into();
    canary["status"]["operationState"] = json!({"phase": "Failed", "message": "eu2 is on hold"});
    objects.insert(application_path("canary"), canary);
    for cluster in ["eu1", "eu2"] {
        objects.insert(work_path(cluster, "canary"), work(cluster, "canary", "canary"));
    }
    let hub = FakeHub::start(objects);
    let printed = hub.run("status canary --clusters eu1 --wait --timeout 1s");
    assert!(printed.starts_with("exit code: 0\n"), "{printed}");
    for command in ["canary --clusters eu2", "canary --clusters eu1,eu2", "canary"] {
        let printed = hub.run(&format!("status {command}"));
        assert!(printed.starts_with("exit code: 1\n"), "{command}: {printed}");
    }
}

#[test]
fn finds_works_with_another_name_after_a_failed_comparison_and_on_some_clusters() {
    let mut objects = objects();
    let mut renamed = application("renamed", &[("ManifestWork", "eu1", "custom")]);
    renamed["spec"]["source"]["plugin"]["parameters"] = json!([{"name": "name", "string": "custom"}]);
    renamed["status"]["resources"][0]["requiresPruning"] = true.into();
    renamed["status"]["resources"][0]["status"] = "Unknown".into();
    objects.insert(application_path("renamed"), renamed);
    objects.insert(work_path("eu1", "custom"), work("eu1", "custom", "renamed"));

    let mut of_set = work("eu1", "set-x", "placed");
    of_set["metadata"]["labels"] =
        json!({"work.open-cluster-management.io/manifestworkreplicaset": "fleet.other-name"});
    objects.insert(work_path("eu1", "set-x"), of_set);
    objects.insert(
        set_path("fleet", "other-name"),
        json!({
            "apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
            "metadata": {"name": "other-name", "namespace": "fleet"}, "spec": {"placementRefs": [{"name": "all"}]},
        }),
    );
    objects.insert(
        application_path("placed"),
        application("placed", &[("ManifestWorkReplicaSet", "fleet", "other-name")]),
    );
    let hub = FakeHub::start(objects);
    let printed = hub.run("status renamed");
    assert!(printed.contains("ConfigMap shop/settings"), "{printed}");
    let printed = hub.run("status placed --clusters eu1");
    assert!(printed.contains("ConfigMap shop/settings"), "{printed}");
}

#[test]
fn clusters_are_listed_with_their_problems() {
    let mut objects = objects();
    let cluster = "/apis/cluster.open-cluster-management.io/v1/managedclusters/eu1";
    objects.get_mut(cluster).expect("a cluster")["status"]["conditions"][2] =
        json!({"type": "ManagedClusterConditionAvailable", "status": "Unknown"});
    objects.insert(
        "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/web".to_owned(),
        json!({"metadata": {"name": "web", "namespace": "argocd"}}),
    );
    let hub = FakeHub::start(objects.clone());
    let printed = hub.run("status --clusters eu1 --project web");
    assert!(
        printed.contains("warning: eu1 is unreachable: showing its last reported state"),
        "{printed}"
    );
    assert!(printed.contains("1 Application: 1 Healthy"), "{printed}");
    let printed = hub.run("status --clusters eu1 --project wbe");
    assert!(
        printed.contains("AppProject argocd/wbe does not exist: correct its name"),
        "{printed}"
    );
    // A misspelled name must not look healthy, beside another one and without the permission to list clusters.
    let printed = hub.run("status shop --clusters eu1,eu9");
    assert!(
        printed.starts_with("exit code: 1\n") && printed.contains("managed cluster eu9 is not registered"),
        "{printed}"
    );
    let forbidden =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "forbidden", "code": 403});
    objects.insert(
        "/apis/cluster.open-cluster-management.io/v1/managedclusters".to_owned(),
        forbidden,
    );
    let hub = FakeHub::start(objects);
    assert!(hub.run("status --clusters eu1").starts_with("exit code: 0\n"));
    let printed = hub.run("status shop --clusters eu1,eu9");
    assert!(
        printed.starts_with("exit code: 1\n") && printed.contains("it has no work on eu9"),
        "{printed}"
    );
    let printed = hub.run("status --clusters eu1,eu9");
    assert!(
        printed.starts_with("exit code: 2\n") && printed.contains("managed cluster eu9 has no works"),
        "{printed}"
    );
}
