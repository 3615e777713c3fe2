//! Tests of the actions on works in deploy/argocd_cm.yaml: with the real argocd-server and a real agent, and for unusual works with
//! Argo CD's own command alone.

use crate::documents::documents;
use crate::stage::{program, shipped};
use anyhow::{Context, Result, ensure};
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::time::Duration;
use testbed::application::is_healthy;
use testbed::{
    CompleteHub, CompleteHubOptions, GitRepository, ManagedCluster, ObjectRef, Part, Parts, is_synced, wait,
};

const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";
const ACTION: &str = "argocd-ocm-cmp.github.io/action";

/// A user of argocd-server.
struct User {
    client: Client,
    token: String,
}

impl User {
    async fn log_in(hub: &CompleteHub) -> Result<Self> {
        let server = hub.argocd_server().context("argocd-server runs")?;
        let client = Client::try_from(Config::new(format!("http://{server}").parse()?))?;
        let mut user = Self {
            client,
            token: String::new(),
        };
        let password = hub.admin_password().await?;
        let session = user
            .post("/api/v1/session", &json!({"username": "admin", "password": password}))
            .await?;
        let token = session["token"].as_str().context("a token")?;
        token.clone_into(&mut user.token);
        Ok(user)
    }

    /// Returns another user, whose account Argo CD's settings have.
    async fn other(&self, name: &str) -> Result<Self> {
        let answer = self
            .post(&format!("/api/v1/account/{name}/token"), &json!({"name": name}))
            .await?;
        Ok(Self {
            client: self.client.clone(),
            token: answer["token"].as_str().context("a token")?.to_owned(),
        })
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Request::post(path), body.to_string()).await
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.send(Request::get(path), String::new()).await
    }

    async fn send(&self, request: http::request::Builder, body: String) -> Result<Value> {
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .body(body.into_bytes())?;
        let answer = self.client.request_text(request).await?;
        Ok(serde_json::from_str(&answer)?)
    }

    /// Runs an action on the work, for one of its objects or for all.
    async fn run(&self, action: &str, object: Option<&str>) -> Result<()> {
        let parameters = object.map(|object| json!([{"name": "object", "value": object}]));
        let body = json!({
            "namespace": "cluster1",
            "resourceName": "shop",
            "version": "v1",
            "group": "work.open-cluster-management.io",
            "kind": "ManifestWork",
            "action": action,
            "resourceActionParameters": parameters.unwrap_or(json!([])),
        });
        self.post("/api/v1/applications/shop/resource/actions/v2", &body)
            .await
            .map(drop)
    }

    /// Runs an action, in another second than the last one.
    async fn run_next(&self, action: &str, object: Option<&str>) -> Result<()> {
        let run = async || match self.run(action, object).await {
            Err(error) if format!("{error:#}").contains("already exists") => None,
            result => Some(result),
        };
        wait::eventually(action, wait::DEADLINE, run).await?
    }

    async fn refusal(&self, action: &str, object: Option<&str>) -> Result<String> {
        let error = self.run(action, object).await.err();
        let error = error.with_context(|| format!("{action} of {object:?} was not refused"))?;
        Ok(format!("{error:#}"))
    }
}

/// The hub, its cluster, and the Application `shop` with a work there.
struct Shop {
    hub: CompleteHub,
    _git: GitRepository,
}

impl Shop {
    async fn start() -> Result<Self> {
        let hub = CompleteHub::start(&CompleteHubOptions {
            program: program(),
            clusters: 1,
            ocm_controllers: false,
            pull: false,
        })
        .await?;
        hub.run(program(), "install --features argocd-rbac")?;
        let accounts = json!({"accounts.operator": "apiKey", "accounts.admin": "apiKey, login"});
        for (name, data) in [
            ("argocd-cm", accounts),
            ("argocd-rbac-cm", json!({"policy.csv": POLICY})),
        ] {
            let config_map = ObjectRef::config_map("argocd", name);
            hub.patch(&config_map, &json!({"data": data})).await?;
        }
        let git = GitRepository::new()?;
        git.commit(&[("shop/work.json", &work(&[]).to_string())])?;
        hub.create_application(
            &ObjectRef::cluster("argoproj.io/v1alpha1", "Application", "shop").with(json!({
                "metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": git.url(), "path": "shop"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "cluster1"},
                    "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
                },
            })),
        )
        .await?;
        hub.wait_for(&ObjectRef::application("shop"), is_healthy).await?;
        Ok(Self { hub, _git: git })
    }

    fn cluster(&self) -> Result<&ManagedCluster> {
        self.hub.managed_clusters().first().context("a cluster")
    }

    /// Returns the works of actions.
    fn actions(&self) -> Result<Vec<Value>> {
        let listed = self
            .hub
            .kubectl(&["get", "manifestworks", "-A", "-l", ACTION, "-o", "json"])?;
        let mut list: Value = serde_json::from_str(&listed)?;
        Ok(serde_json::from_value(list["items"].take())?)
    }

    /// Waits until the agent has done all actions, and makes it reconcile the works of the actions and of the Application again.
    async fn settle(&self, again: &str) -> Result<()> {
        for action in self.actions()? {
            let is_complete = |work: &Value| testbed::is_true(work, "Complete");
            self.hub.wait_for(&ObjectRef::of(&action), is_complete).await?;
        }
        let mut works: Vec<_> = self.actions()?.iter().map(ObjectRef::of).collect();
        works.push(ObjectRef::manifest_work("cluster1", "shop"));
        for work in works {
            let label = json!({"metadata": {"labels": {"again": again}}});
            self.hub.patch(&work, &label).await?;
        }
        Ok(())
    }
}

const POLICY: &str = "p, role:restart, applications, get, */*, allow
p, role:restart, applications, action/work.open-cluster-management.io/ManifestWork/restart, */*, allow
g, operator, role:restart
";

/// Returns the work that the program generates for the objects of the tests.
fn work(more: &[Value]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("objects.yaml"), OBJECTS).expect("a file");
    for (index, object) in more.iter().enumerate() {
        fs::write(folder.path().join(format!("{index}.json")), object.to_string()).expect("a file");
    }
    let output = Command::new(program())
        .args("generate --cluster=cluster1 --name=shop --namespace=shop --work-size=0".split(' '))
        .args(["--output=json", "--manifest-limit=0"])
        .arg(folder.path())
        .env_clear()
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one work")
}

const OBJECTS: &str = r#"
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: legacy, annotations: {argocd-ocm-cmp.github.io/update-strategy: Update}}
spec:
  replicas: 1
  selector: {matchLabels: {app: legacy}}
  template:
    metadata: {labels: {app: legacy}}
    spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "0 3 1 1 *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          volumes: [{name: tmp, emptyDir: {}}]
          affinity:
            podAntiAffinity:
              preferredDuringSchedulingIgnoredDuringExecution:
              - {weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {}, namespaceSelector: {}}}
          containers: [{name: report, image: nginx, args: [], resources: {}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: frozen}
spec:
  suspend: true
  schedule: "0 3 1 1 *"
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: report, image: nginx}]}}}
"#;

fn restarted_at(deployment: &Value) -> Option<&str> {
    deployment["spec"]["template"]["metadata"]["annotations"][RESTARTED].as_str()
}

fn is_rolled_out(deployment: &Value) -> bool {
    let status = &deployment["status"];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && status["updatedReplicas"] == 1
        && status["replicas"] == 1
        && status["availableReplicas"] == 1
}

#[tokio::test]
async fn actions_change_the_cluster_once_and_leave_no_difference() -> Result<()> {
    let shop = Shop::start().await?;
    let (hub, cluster) = (&shop.hub, shop.cluster()?);
    let admin = User::log_in(hub).await?;
    let operator = admin.other("operator").await?;
    let web = ObjectRef::deployment("shop", "web");
    let before = cluster.wait_for(&web, is_rolled_out).await?;

    // Argo CD's RBAC decides, for each action.
    let refused = operator.refusal("suspend", None).await?;
    ensure!(refused.contains("permission denied"), "{refused}");
    ensure!(shop.actions()?.is_empty(), "{:#?}", shop.actions()?);

    // One restart, once. A second one in the same second is refused.
    let (one, other) = tokio::join!(
        operator.run("restart", Some("web")),
        operator.run("restart", Some("web"))
    );
    let results = [one, other];
    let ran = results.iter().filter(|result| result.is_ok()).count();
    for error in results.iter().filter_map(|result| result.as_ref().err()) {
        ensure!(format!("{error:#}").contains("already exists"), "{error:#}");
    }
    ensure!(ran >= 1 && shop.actions()?.len() == ran, "{:#?}", shop.actions()?);
    let restarted = cluster
        .wait_for(&web, |deployment| {
            restarted_at(deployment).is_some() && is_rolled_out(deployment)
        })
        .await?;
    ensure!(restarted["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]);
    shop.settle("1").await?;
    let same = |deployment: &Value| {
        restarted_at(deployment) == restarted_at(&restarted) && deployment["spec"] == restarted["spec"]
    };
    if ran == 1 {
        cluster.holds_for(&web, Duration::from_secs(10), same).await?;
    }

    // Argo CD sees no difference, neither prunes nor shows the works of the actions, and names the user.
    let app = hub.refresh_application("shop", "hard").await?;
    ensure!(is_synced(&app), "{:#}", app["status"]["sync"]);
    let tree = admin.get("/api/v1/applications/shop/resource-tree").await?;
    ensure!(!tree.to_string().contains("shop-restart-"), "{tree:#}");
    let events = admin.get("/api/v1/applications/shop/events").await?;
    let ran_by = "operator ran action restart on resource work.open-cluster-management.io/ManifestWork/shop";
    ensure!(events.to_string().contains(ran_by), "{events:#}");
    for action in shop.actions()? {
        hub.delete_and_wait(&ObjectRef::of(&action)).await?;
    }
    let after = cluster.read(&web).await?;
    ensure!(
        restarted_at(&after).is_some() && after["metadata"]["uid"] == before["metadata"]["uid"],
        "{after:#}"
    );

    // Suspended, until it is resumed.
    let report = ObjectRef::namespaced("batch/v1", "CronJob", "shop", "report");
    admin.run_next("suspend", Some("CronJob/shop/report")).await?;
    cluster.wait_for_value(&report, "/spec/suspend", true).await?;
    admin.run_next("resume", Some("shop/report")).await?;
    cluster.wait_for_value(&report, "/spec/suspend", false).await?;
    shop.settle("2").await?;
    let resumed = |cron_job: &Value| cron_job["spec"]["suspend"] == false;
    cluster.holds_for(&report, Duration::from_secs(10), resumed).await?;

    // A paused Deployment, and a Job of a CronJob.
    admin.run_next("pause", Some("web")).await?;
    cluster.wait_for_value(&web, "/spec/paused", true).await?;
    admin.run_next("run-now", Some("report")).await?;
    let job = wait::eventually("the Job exists", wait::DEADLINE, async || {
        let jobs = cluster.kubectl("get jobs -n shop -o json").ok()?;
        let jobs: Value = serde_json::from_str(&jobs).ok()?;
        jobs["items"].get(0).cloned()
    })
    .await?;
    let spec = &job["spec"]["template"]["spec"];
    let affinity = &spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0];
    ensure!(affinity["podAffinityTerm"]["namespaceSelector"].is_object(), "{job:#}");
    ensure!(affinity["podAffinityTerm"]["labelSelector"].is_object(), "{job:#}");
    ensure!(spec["volumes"][0]["emptyDir"].is_object(), "{job:#}");
    ensure!(job["spec"]["ttlSecondsAfterFinished"] == 86_400, "{job:#}");
    ensure!(job["metadata"]["ownerReferences"].is_null(), "{job:#}");
    shop.settle("3").await?;

    // What would not last is refused, and a hold refuses everything.
    let undone =
        "Deployment shop/legacy: its update strategy is not ServerSideApply, so the agent would undo the change";
    let by_git = "CronJob shop/frozen: Git sets spec.suspend: change it there";
    for (action, object, reason) in [("restart", "legacy", undone), ("suspend", "frozen", by_git)] {
        let refused = admin.refusal(action, Some(object)).await?;
        ensure!(refused.contains(reason), "{refused}");
    }
    hub.run(program(), &["hold", "cluster1", "--reason", "storage migration"])?;
    wait::eventually("the hold is enforced", wait::DEADLINE, async || {
        let refused = admin.refusal("restart", Some("web")).await.ok()?;
        refused
            .contains("managed cluster cluster1 is on hold: storage migration")
            .then_some(())
    })
    .await?;
    hub.run(program(), "release cluster1")?;

    update_strategy_undoes_changes(&shop).await
}

/// This is why the actions refuse objects with the strategy `Update`.
async fn update_strategy_undoes_changes(shop: &Shop) -> Result<()> {
    let cluster = shop.cluster()?;
    let legacy = ObjectRef::deployment("shop", "legacy");
    cluster.kubectl("rollout restart deployment/legacy -n shop")?;
    shop.settle("4").await?;
    cluster
        .wait_for(&legacy, |deployment| restarted_at(deployment).is_none())
        .await?;
    Ok(())
}

/// Runs an action with Argo CD's own command, and returns the created work, or the error.
fn run_offline(work: &Value, action: &str, object: Option<&str>) -> Result<Value, String> {
    let run = || -> Result<Result<Value, String>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("work.json");
        fs::write(&file, work.to_string())?;
        let mut command = Command::new(Parts::ensure()?.program(Part::ArgoCd));
        command
            .args(["admin", "settings", "resource-overrides", "run-action"])
            .arg(&file)
            .arg(action)
            .arg("--argocd-cm-path")
            .arg(shipped("deploy/argocd_cm.yaml"));
        if let Some(object) = object {
            command.args(["--param", &format!("object={object}")]);
        }
        let output = command
            .env_clear()
            .env("ARGOCD_BINARY_NAME", "argocd")
            .env("HOME", folder.path())
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Ok(Err(errors.lines().last().unwrap_or_default().to_owned()));
        }
        let text = String::from_utf8(output.stdout)?;
        let yaml = text
            .strip_prefix("Following resource was created:\n")
            .context("no work")?;
        Ok(Ok(documents(yaml)?.pop().context("no work")?))
    };
    run().unwrap_or_else(|error| panic!("{action}: {error:#}"))
}

fn restarted_names(work: &Value) -> Vec<&str> {
    let manifests = work["spec"]["workload"]["manifests"].as_array().expect("manifests");
    manifests
        .iter()
        .filter_map(|manifest| manifest["metadata"]["name"].as_str())
        .collect()
}

#[test]
fn parameter_selects_objects_and_reaches_nothing_else() {
    let work = work(&[]);
    let all = run_offline(&work, "restart", None).expect("a work");
    assert_eq!(restarted_names(&all), ["web"]);
    for object in ["web", "shop/web", "Deployment/web", "Deployment/shop/web"] {
        let created = run_offline(&work, "restart", Some(object)).expect("a work");
        assert_eq!(restarted_names(&created), ["web"], "{object}");
        assert_eq!(created["metadata"]["namespace"], "cluster1");
        assert_eq!(created["spec"]["deleteOption"]["propagationPolicy"], "Orphan");
        assert!(created["metadata"].get("ownerReferences").is_none());
        let annotations = &created["metadata"]["annotations"];
        assert!(annotations.get("argocd.argoproj.io/tracking-id").is_none());
    }
    for object in "*¦report¦kube-system/web¦web' || 'a' == 'a¦\"] error(obj) --¦../web¦%s".split('¦') {
        let error = run_offline(&work, "restart", Some(object)).expect_err(object);
        assert!(error.contains("the work has no such object"), "{object}: {error}");
    }
}

#[test]
fn actions_keep_the_executor_and_refuse_works_that_are_deleted() {
    let mut work = work(&[]);
    let executor =
        json!({"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "shop", "name": "deployer"}}});
    work["spec"]["executor"] = executor.clone();
    for action in ["restart", "run-now", "suspend", "pause", "resume"] {
        let created = run_offline(&work, action, None).expect(action);
        assert_eq!(created["spec"]["executor"], executor, "{action}");
    }
    work["metadata"]["name"] = json!("a".repeat(188));
    work["metadata"]["uid"] = json!("3f1c7a52-0d7e-4b52-9b44-0f7a1f3b6f10");
    let created = run_offline(&work, "restart", None).expect("a work");
    let name = created["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("3f1c7a52-") && name.len() <= 188, "{name}");
    work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let error = run_offline(&work, "restart", None).expect_err("a work");
    assert!(error.contains("the work is being deleted"), "{error}");
}

#[test]
fn objects_that_the_work_does_not_deliver_are_refused() {
    let mut work = work(&[]);
    for config in work["spec"]["manifestConfigs"].as_array_mut().expect("configs") {
        config["updateStrategy"] = json!({"type": "ReadOnly"});
    }
    for line in [
        "restart web",
        "run-now report",
        "suspend report",
        "pause web",
        "resume web",
    ] {
        let (action, object) = line.split_once(' ').expect("two words");
        let error = run_offline(&work, action, Some(object)).expect_err(action);
        assert!(error.contains("its update strategy is ReadOnly"), "{action}: {error}");
    }
}

#[test]
fn a_work_of_a_thousand_deployments_is_restarted_at_once() {
    let deployment = |index: usize| {
        let labels = json!({"app": format!("a{index}")});
        ObjectRef::cluster("apps/v1", "Deployment", &format!("a{index}")).with(json!({"spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
        }}))
    };
    let work = work(&(0..1000).map(deployment).collect::<Vec<_>>());
    let created = run_offline(&work, "restart", None).expect("a work");
    assert_eq!(restarted_names(&created).len(), 1001);
    let created = run_offline(&work, "restart", Some("a999")).expect("a work");
    assert_eq!(restarted_names(&created), ["a999"]);
}
