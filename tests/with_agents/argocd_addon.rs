//! The OCM add-on that installs Argo CD on managed clusters: it replaces the add-on of argocd-pull-integration, runs
//! Applications of the pull model, changes one cluster after the other, and leaves the Applications when it is removed.
//!
//! `TESTBED_PULL_INTEGRATION` names a file with the add-on that is replaced, instead of our imitation: the output of
//! `helm template argocd charts/argocd-pull-integration --show-only …` for the templates `argocd-addon-template.yaml` and
//! `argocd-clustermanagement-addon.yaml`.

use crate::agent_controller::ACCOUNT;
use crate::stage::{self, run};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::time::Instant;
use testbed::application::is_healthy;
use testbed::process::{self, Process};
use testbed::{ArgoCd, Container, GitRepository, Hub, ManagedCluster, ObjectRef, Part, Parts, is_true, ports, wait};

const PROGRAM: &str = env!("CARGO_BIN_EXE_argocd-ocm-cmp");
const CONTROLLER: &str = "argocd-application-controller";
const NEXT_IMAGE: &str = "example.com/argocd:next";

#[tokio::test]
async fn clusters_get_argocd_from_the_add_on() -> Result<()> {
    let since = Instant::now();
    let log_step = |what: &str| println!("{what} after {:.1?}", since.elapsed());
    let (hub, first, second) = stage::joined_hub().await?;
    let clusters = [&first, &second];
    stage::assign_users(&second).await?;
    let created_before = install_the_other(&hub, &clusters).await?;
    log_step("the add-on of argocd-pull-integration is installed");

    let image = "--image=registry.example.com/argocd-ocm-cmp:0.1.0";
    let lines = run(
        &hub,
        &["install", "--features=argocd-addon", "--force-conflicts", image],
    )?;
    assert!(
        lines.contains("clustermanagementaddon.addon.open-cluster-management.io/argocd configured\n"),
        "{lines}"
    );
    for cluster in clusters {
        cluster.wait_for(&redis(), |_| true).await?;
        hub.wait_for(&addon(cluster), |addon| is_true(addon, "Available"))
            .await?;
        check_nothing_was_recreated(cluster, &created_before).await?;
    }
    log_step("it is replaced");

    let _controller = start_controller(&hub).await?;
    let git = GitRepository::new()?;
    git.commit(&[("app/config.yaml", CONFIG)])?;
    start_argocd(&first).await?;
    hub.create(&application(&git, "cluster1")).await?;
    hub.wait_for(&ObjectRef::application("shop"), is_healthy).await?;
    ensure!(first.get(&config()).await?.is_some(), "it is deployed");
    log_step("an Application is Synced and Healthy");

    check_rollout(&hub, &clusters).await?;
    log_step("the next version has replaced it, one cluster after the other");
    check_role(&hub, &clusters).await?;
    log_step("it has the permissions of cluster-admin");

    let lines = run(&hub, &["uninstall"])?;
    let expected = "clustermanagementaddon.addon.open-cluster-management.io/argocd kept: it installs Argo CD on 2 managed clusters";
    assert!(lines.contains(expected), "{lines}");
    select(&hub, json!([])).await?;
    for cluster in clusters {
        cluster.wait_gone(&controller()).await?;
        hub.wait_gone(&addon(cluster)).await?;
        check_nothing_was_recreated(cluster, &created_before).await?;
        check_stays(cluster, &ObjectRef::crd("applications.argoproj.io")).await?;
    }
    check_stays(&first, &ObjectRef::application("shop")).await?;
    check_stays(&first, &config()).await?;
    log_step("it is removed, and the Application stays");
    let lines = run(&hub, &["uninstall"])?;
    assert!(
        lines.contains("clustermanagementaddon.addon.open-cluster-management.io/argocd deleted\n"),
        "{lines}"
    );
    for object in [management(), template_of(&lines)?] {
        ensure!(hub.get(&object).await?.is_none(), "{object} is left");
    }
    Ok(())
}

/// Installs the add-on of argocd-pull-integration on both clusters. Returns the objects that it has created and that must outlive
/// it, with their UIDs.
async fn install_the_other(hub: &Hub, clusters: &[&ManagedCluster; 2]) -> Result<Vec<(ObjectRef, [String; 2])>> {
    let given = env::var_os("TESTBED_PULL_INTEGRATION")
        .map(fs::read_to_string)
        .transpose()?;
    let other = given.unwrap_or_else(imitation);
    hub.kubectl_with_input("create --validate=false -f -", &other)?;
    hub.bind_global_cluster_set().await?;
    hub.create(&stage::placement_named("pull", &json!({}))).await?;
    let rollout = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1, "minSuccessTime": "20s"}});
    select(
        hub,
        json!([{"namespace": "argocd", "name": "pull", "rolloutStrategy": rollout}]),
    )
    .await?;
    let mut created = Vec::new();
    for object in [
        ObjectRef::crd("applications.argoproj.io"),
        ObjectRef::crd("appprojects.argoproj.io"),
        ObjectRef::namespace("argocd"),
    ] {
        created.push((object.clone(), uids(clusters, &object).await?));
    }
    for cluster in clusters {
        cluster.wait_for(&controller(), |_| true).await?;
        let application = ObjectRef::application("earlier").with(json!({"spec": {
            "project": "default",
            "source": {"repoURL": "https://example.com/earlier.git", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        }}));
        cluster.create(&application).await?;
    }
    let earlier = ObjectRef::application("earlier");
    created.push((earlier.clone(), uids(clusters, &earlier).await?));
    Ok(created)
}

async fn uids(clusters: &[&ManagedCluster; 2], object: &ObjectRef) -> Result<[String; 2]> {
    let [one, other] = clusters.map(|cluster| cluster.wait_for(object, |_| true));
    let uid = |object: Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    Ok([uid(one.await?), uid(other.await?)])
}

/// Checks that these objects of a cluster are still the same.
async fn check_nothing_was_recreated(cluster: &ManagedCluster, before: &[(ObjectRef, [String; 2])]) -> Result<()> {
    for (object, uids) in before {
        let live = check_stays(cluster, object).await?;
        let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
        ensure!(uids.iter().any(|id| id == uid), "{object} was recreated");
    }
    Ok(())
}

async fn check_stays(cluster: &ManagedCluster, object: &ObjectRef) -> Result<Value> {
    let live = cluster.get(object).await?;
    let live = live.with_context(|| format!("{object} was deleted on {}", cluster.name()))?;
    ensure!(
        live["metadata"]["deletionTimestamp"].is_null(),
        "{object} is being deleted on {}",
        cluster.name()
    );
    Ok(live)
}

/// Checks that the clusters get another image one after the other.
async fn check_rollout(hub: &Hub, clusters: &[&ManagedCluster; 2]) -> Result<()> {
    let before = run(hub, "install --features=argocd-addon")?;
    ensure!(
        !before.contains(" created\n"),
        "the same content has the same name: {before}"
    );
    let image = format!("--argocd-image={NEXT_IMAGE}");
    run(hub, &["install", "--features=argocd-addon", &image])?;
    let has_next = async |cluster: &ManagedCluster| {
        let live = cluster.get(&controller()).await.ok()??;
        Some(stage::image(&live) == NEXT_IMAGE)
    };
    let has_one = async || {
        let both = [has_next(clusters[0]).await?, has_next(clusters[1]).await?];
        both.contains(&true).then_some(both)
    };
    let both = wait::eventually("a cluster has the next version", wait::DEADLINE, has_one).await?;
    assert_ne!(both, [true, true], "the other cluster waits for it");
    for cluster in clusters {
        cluster
            .wait_for(&controller(), |controller| stage::image(controller) == NEXT_IMAGE)
            .await?;
    }
    Ok(())
}

/// Checks that Argo CD gets another ClusterRole by a configuration of the Placement.
async fn check_role(hub: &Hub, clusters: &[&ManagedCluster; 2]) -> Result<()> {
    let role = json!([{"name": "CLUSTER_ROLE", "value": "cluster-admin"}]);
    hub.create(
        &ObjectRef::namespaced(
            "addon.open-cluster-management.io/v1alpha1",
            "AddOnDeploymentConfig",
            "argocd",
            "argocd-cluster-admin",
        )
        .with(json!({"spec": {"agentInstallNamespace": "argocd", "customizedVariables": role}})),
    )
    .await?;
    let config = json!({
        "group": "addon.open-cluster-management.io",
        "resource": "addondeploymentconfigs",
        "namespace": "argocd",
        "name": "argocd-cluster-admin",
    });
    let all = json!([{"namespace": "argocd", "name": "pull", "configs": [config]}]);
    select(hub, all).await?;
    let binding = |role: &str| {
        let name = format!("argocd-addon:application-controller-{role}");
        ObjectRef::cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", &name)
    };
    for cluster in clusters {
        let bound = cluster.wait_for(&binding("cluster-admin"), |_| true).await?;
        assert_eq!(bound["roleRef"]["name"], "cluster-admin");
        cluster.wait_gone(&binding("admin")).await?;
    }
    Ok(())
}

/// Starts the Argo CD that the add-on has installed on a cluster, with its permissions.
async fn start_argocd(cluster: &ManagedCluster) -> Result<()> {
    let argocd = Parts::ensure()?.program(Part::ArgoCd).to_owned();
    let container = Container::of(cluster, &controller(), "redis-password").await?;
    let mut command = container.command(&argocd, &[("argocd", &argocd)]).await?;
    // The image calls the program so, and a Pod's namespace is the default.
    command.env("ARGOCD_BINARY_NAME", "argocd").arg("--namespace=argocd");
    let done = command.output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    ensure!(
        cluster
            .get(&ObjectRef::secret("argocd", "argocd-redis"))
            .await?
            .is_some_and(|secret| secret["data"]["auth"].is_string()),
        "Redis has a password"
    );
    let argocd = ArgoCd {
        account: Some(CONTROLLER.to_owned()),
        environment: vec![("ARGOCD_APPLICATION_NAMESPACES".to_owned(), "*".to_owned())],
        ..ArgoCd::default()
    };
    cluster.start_argocd(&argocd).await?;
    Ok(())
}

/// Starts the controller as installed, for the pull model.
async fn start_controller(hub: &Hub) -> Result<Process> {
    let permission = "create manifestworks.work.open-cluster-management.io --all-namespaces";
    hub.wait_for_permissions("argocd", ACCOUNT, &[permission]).await?;
    let command = process::controller(
        PROGRAM,
        env!("CARGO_TARGET_TMPDIR").as_ref(),
        &["--controllers=pull"],
        ports::free()?,
        hub.service_account_kubeconfig("argocd", ACCOUNT)?,
    );
    Process::start("controller", command, &hub.logs().join("controller.log"))
}

/// Sets the Placements whose clusters have the add-on.
async fn select(hub: &Hub, placements: Value) -> Result<()> {
    let strategy = json!({"type": "Placements", "placements": placements});
    hub.patch(&management(), &json!({"spec": {"installStrategy": strategy}}))
        .await?;
    Ok(())
}

/// Returns the AddOnTemplate that a line of `uninstall` names.
fn template_of(lines: &str) -> Result<ObjectRef> {
    let mut lines = lines.lines();
    let name = lines.find_map(|line| {
        line.strip_prefix("addontemplate.addon.open-cluster-management.io/")?
            .strip_suffix(" deleted")
    });
    Ok(stage::template(name.context("no AddOnTemplate was deleted")?))
}

fn management() -> ObjectRef {
    ObjectRef::cluster_management_addon("argocd")
}

fn addon(cluster: &ManagedCluster) -> ObjectRef {
    ObjectRef::managed_cluster_addon(cluster.name(), "argocd")
}

fn controller() -> ObjectRef {
    ObjectRef::namespaced("apps/v1", "StatefulSet", "argocd", CONTROLLER)
}

/// Returns an object of our add-on that the other does not have.
fn redis() -> ObjectRef {
    ObjectRef::role_binding("argocd", "argocd-redis-user")
}

fn config() -> ObjectRef {
    ObjectRef::config_map("default", "shop")
}

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shop\n";

fn application(git: &GitRepository, cluster: &str) -> Value {
    ObjectRef::application("shop").with(json!({
        "metadata": {"labels": {"apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "true"}, "annotations": {
                "apps.open-cluster-management.io/ocm-managed-cluster": cluster,
                "argocd.argoproj.io/skip-reconcile": "true",
            }},
        "spec": {
            "project": "default",
            "source": {"repoURL": git.url(), "path": "app", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": {"automated": {}},
        },
    }))
}

/// Returns an add-on with the names of argocd-pull-integration's, and like it with more content than one work can have, none of
/// which stays when it is removed.
fn imitation() -> String {
    let crd = |kind: &str, plural: &str| {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        ObjectRef::crd(&format!("{plural}.argoproj.io")).with(json!({"spec": {
            "group": "argoproj.io",
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "description": "long ".repeat(12_000),
                "properties": {"spec": any, "status": any, "operation": any},
            }}}],
        }}))
    };
    let labels = json!({"app.kubernetes.io/name": CONTROLLER});
    let container = json!({"name": CONTROLLER, "image": "example.com/argocd:other"});
    let controller = ObjectRef::namespaced("apps/v1", "StatefulSet", "argocd", CONTROLLER).with(json!({"spec": {
        "serviceName": CONTROLLER,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }}));
    let manifests = json!([
        crd("Application", "applications"),
        crd("AppProject", "appprojects"),
        crd("ApplicationSet", "applicationsets"),
        controller,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}},
    ]);
    let template = ObjectRef::cluster("addon.open-cluster-management.io/v1alpha1", "AddOnTemplate", "argocd")
        .with(json!({"spec": {"addonName": "argocd", "agentSpec": {"workload": {"manifests": manifests}}}}));
    let management = ObjectRef::cluster_management_addon("argocd").with(json!({
        "metadata": {"annotations": {"addon.open-cluster-management.io/lifecycle": "addon-manager"}},
        "spec": {"supportedConfigs": [{
            "group": "addon.open-cluster-management.io",
            "resource": "addontemplates",
            "defaultConfig": {"name": "argocd"},
        }]},
    }));
    format!("{template}\n{management}\n")
}
