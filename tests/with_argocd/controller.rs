//! Tests of the controller with its shipped permissions, between the real Argo CD and the real OCM: its conditions and Events on
//! Applications.
//!
//! One controller runs on each shared hub from its start. So all other tests also run beside it, and detect unwanted writes to an
//! Application.

mod race;
mod refresh;
pub(crate) mod rights;
mod silence;

use crate::app::App;
use crate::stage::{apply, program, stage};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testbed::application::{APPLY_ERROR, DEGRADED, INFO, messages};
use testbed::process::{self, Process};
use testbed::{Container, Hub, ObjectRef, ports, wait};

/// Its ServiceAccount, which is in Argo CD's namespace.
pub(crate) const ACCOUNT: &str = "argocd-ocm-cmp-controller";

/// The running controller of a hub.
pub(crate) struct Controller {
    process: Process,
}

impl Controller {
    /// Applies deploy/deploy_controller.yaml and deploy/admission_policy.yaml, and runs the controller as its ServiceAccount, as
    /// its Deployment would. Returns when it is ready.
    pub(crate) async fn start(hub: &Hub) -> Result<Self> {
        Self::start_with(hub, "", &[], &[]).await
    }

    /// Starts it with `more` of the shipped files, and with these settings instead of those in the files.
    pub(crate) async fn start_with(hub: &Hub, files: &str, settings: &[(&str, &str)], more: &[&str]) -> Result<Self> {
        apply(hub, "deploy/deploy_controller.yaml deploy/admission_policy.yaml")?;
        apply(hub, files)?;
        if !settings.is_empty() {
            let data: BTreeMap<_, _> = settings.iter().copied().collect();
            hub.patch(&ObjectRef::config_map("argocd", ACCOUNT), &json!({"data": data}))
                .await?;
        }
        // Otherwise it might be denied only because the API server has not processed its permissions yet.
        let permissions: [&str; 2] = [
            "patch applications.argoproj.io --all-namespaces",
            "create leases --namespace=argocd",
        ];
        hub.wait_for_permissions("argocd", ACCOUNT, &[&permissions, more].concat())
            .await?;
        let (deployment, program) = (ObjectRef::deployment("argocd", ACCOUNT), program());
        let container = Container::of(hub, &deployment, "controller").await?;
        let mut command = container.command(&program, &[("argocd-ocm-cmp", &program)]).await?;
        let port = ports::free()?;
        command.arg(format!("--bind-address=127.0.0.1:{port}"));
        let process = Process::start(ACCOUNT, command, &hub.logs().join(format!("{ACCOUNT}.log")))?;
        let deployment = hub.read(&deployment).await?;
        for probe in ["livenessProbe", "readinessProbe"] {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let path = container[probe]["httpGet"]["path"].as_str().context(probe)?;
            let succeeds = async || process::http_get(port, path).await.is_ok_and(|answer| answer.0 == 200);
            process.until_ready(succeeds).await?;
        }
        Ok(Self { process })
    }

    /// Stops it, as Kubernetes does.
    pub(crate) async fn stop(self) -> Result<()> {
        let status = self.process.terminate().await?;
        ensure!(status.success(), "the controller ended with {status}");
        Ok(())
    }

    /// Returns its log so far.
    fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.process.log())?)
    }
}

/// Returns the conditions of an Application that are not the controller's.
pub(crate) fn of_argocd(application: &Value) -> Vec<&Value> {
    let conditions = application["status"]["conditions"].as_array();
    let is_own = |condition: &Value| {
        let kind = condition["type"].as_str().unwrap_or_default();
        ocm::pull_model::OWN_CONDITIONS
            .iter()
            .any(|prefix| kind.starts_with(prefix))
    };
    let conditions = conditions.map_or(&[][..], Vec::as_slice).iter();
    conditions.filter(|condition| !is_own(condition)).collect()
}

pub(crate) fn health(application: &Value) -> &str {
    application["status"]["health"]["status"].as_str().unwrap_or_default()
}

/// Returns the Events of an Application as Argo CD's API server lists them for its UI, in the order of their first times.
fn events(hub: &Hub, application: &Value) -> Result<Vec<Value>> {
    let text = |key| application["metadata"][key].as_str().unwrap_or_default();
    let (name, namespace, uid) = (text("name"), text("namespace"), text("uid"));
    let fields = format!("involvedObject.name={name},involvedObject.uid={uid},involvedObject.namespace={namespace}");
    let list = hub.kubectl(&["get", "events", "-n", namespace, "--field-selector", &fields, "-o=json"])?;
    let mut list: Value = serde_json::from_str(&list)?;
    let items = list["items"].as_array_mut().context("a list")?;
    let mut events: Vec<Value> = items
        .drain(..)
        .filter(|event| event["source"]["component"] == "argocd-ocm-cmp")
        .collect();
    events.sort_by_key(|event| event["firstTimestamp"].to_string());
    Ok(events)
}

/// Waits for an Event of an Application with this type and reason, with `words` in its message, and with this count.
pub(crate) async fn wait_for_event(
    hub: &Hub,
    application: &Value,
    (kind, reason): (&str, &str),
    count: u64,
    words: &str,
) -> Result<()> {
    let of_it = |event: &Value| {
        let message = event["message"].as_str().unwrap_or_default();
        event["reason"] == reason && event["type"] == kind && message.contains(words)
    };
    let counted = |event: &Value| event["count"].as_u64().is_some_and(|counted| counted >= count);
    let noted = async || {
        events(hub, application)
            .ok()?
            .into_iter()
            .find(|event| of_it(event) && counted(event))
    };
    let noted = wait::eventually("the Event is recorded", wait::DEADLINE, noted).await;
    let all = events(hub, application)?;
    let noted = noted.with_context(|| format!("{count} {kind} {reason} with {words:?} in {all:#?}"))?;
    let same = all
        .iter()
        .filter(|event| of_it(event) && event["message"] == noted["message"]);
    ensure!(
        same.count() == 1,
        "the Event is recorded again instead of counted: {all:#?}"
    );
    Ok(())
}

/// Returns the health of a work in the resource tree of an Application, with its message.
fn shown(hub: &Hub, application: &str) -> Option<(String, String)> {
    let tree = hub.resource_tree(application).ok()??;
    let work = tree["nodes"]
        .as_array()?
        .iter()
        .find(|node| node["kind"] == "ManifestWork")?;
    let text = |key| work["health"][key].as_str().map(str::to_owned);
    Some((text("status")?, text("message").unwrap_or_default()))
}

/// Returns a Deployment with a short deadline, with an image that runs on nodes that match the selector.
pub(crate) fn web(image: &str, node_selector: &Value) -> String {
    ObjectRef::cluster("apps/v1", "Deployment", "web")
        .with(json!({"spec": {
            "progressDeadlineSeconds": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"nodeSelector": node_selector, "containers": [{"name": "web", "image": image}]},
            },
        }}))
        .to_string()
}

#[tokio::test]
async fn broken_image_sets_a_condition_until_it_is_fixed_with_exactly_the_shipped_permissions() -> Result<()> {
    let stage = stage().await?;
    let (hub, name) = (&stage.hub, "controller-image");
    stage.cluster1.create_namespace(name).await?;
    let runnable = web("example.com/web:1", &Value::Null);
    // The testbed pulls no images: a node selector without a match keeps the Pod from running.
    let broken = web("example.com/web:none", &json!({"runs": "none"}));
    let app = App::start(stage, name, &[], &[("web.json", &runnable)]).await?;
    let is_healthy_again = |app: &Value| {
        health(app) == "Healthy"
            && messages(app, DEGRADED).is_empty()
            && messages(app, INFO) == ["applied on 1 of 1 clusters, healthy on 1; 1 object in 1 work"]
    };
    let application = hub.wait_for(&app.application(), is_healthy_again).await?;

    let start = format!("cluster1: Deployment {name}/web: ");
    let warned = |app: &Value| {
        let warnings = messages(app, DEGRADED);
        let is_it = |message: &str| message.starts_with(&start) && message.ends_with("has timed out progressing.");
        health(app) == "Degraded" && warnings.len() == 1 && is_it(warnings[0])
    };
    for round in 1..=2 {
        app.commit(&[("web.json", &broken)]).await?;
        let now = hub.wait_for(&app.application(), warned).await?;
        let totals = ["applied on 1 of 1 clusters, healthy on 0, 1 degraded; 1 object in 1 work"];
        assert_eq!(messages(&now, INFO), totals);
        assert!(messages(&now, APPLY_ERROR).is_empty(), "{now:#}");
        // The message equals Argo CD's message about the work.
        let message = messages(&now, DEGRADED)[0].trim_start_matches("cluster1: ");
        let expected = ("Degraded".to_owned(), message.to_owned());
        let is_shown = async || (shown(hub, name)? == expected).then_some(());
        wait::eventually("Argo CD shows it", wait::DEADLINE, is_shown).await?;
        wait_for_event(hub, &application, ("Warning", "ManifestWorkDegraded"), round, message).await?;

        app.commit(&[("web.json", &runnable)]).await?;
        hub.wait_for(&app.application(), is_healthy_again).await?;
        wait_for_event(
            hub,
            &application,
            ("Normal", "ManifestWorkRecovered"),
            round,
            "cluster1",
        )
        .await?;
    }
    rights::check_exact_permissions(hub, "deploy/deploy_controller.yaml").await?;
    let log = stage.controller.log()?;
    assert!(!log.to_lowercase().contains("forbidden"), "{log}");
    app.end().await
}
