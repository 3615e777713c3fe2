//! Tests of the real argocd-agent: its principal as `install` deploys it, and its agents as the add-on does, one cluster in the
//! mode managed and one in the mode autonomous, each with an Argo CD that has the permissions of our manifests.
//!
//! They need a Git checkout of argocd-agent, and the ports 6379 and 9090, which the principal does not let change:
//!
//! ```text
//! TESTBED_ARGOCD_AGENT=FOLDER cargo test --test with_argocd_agent -- --ignored --nocapture
//! ```
//!
//! There is one hub, and the steps run in sequence.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "clippy.toml restricts the program; tests may read files and the clock, and print"
)]

#[path = "../common/agent_controller.rs"]
mod agent_controller;
mod stage;

use anyhow::{Context, Result, ensure};
use ocm::argocd_agent::{BLOCKLIST, CA_SECRET, CLIENT_SECRET};
use serde_json::{Value, json};
use stage::{Stage, TEAM_NAMESPACE, guestbook};
use std::fs;
use std::time::{Duration, Instant};
use testbed::application::is_healthy;
use testbed::{ObjectRef, wait};

/// The time of an idle connection, more than the five minutes after which gRPC rejects pings by default.
const IDLE: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a checkout of argocd-agent in TESTBED_ARGOCD_AGENT"]
async fn applications_go_to_clusters_and_back_by_argocd_agent() -> Result<()> {
    let mut stage = Box::pin(Stage::start()).await?;
    managed_application(&stage).await?;
    application_set(&stage).await?;
    live_objects(&stage).await?;
    terminal(&stage).await?;
    application_in_a_namespace_of_its_team(&stage).await?;
    adopted_application(&stage).await?;
    autonomous_application(&stage).await?;
    followed_image(&stage).await?;
    renewed_certificates(&mut stage).await?;
    rotated_authority(&mut stage).await?;
    idle(&stage).await?;
    deleted_application(&stage).await?;
    revoked_cluster(&stage).await?;
    stage.check_permissions()
}

/// An Application of the hub is synced on its cluster, and its state comes back; so does that of the next commit.
async fn managed_application(stage: &Stage) -> Result<()> {
    let Stage { hub, managed, git, .. } = stage;
    let started = Instant::now();
    hub.create_application(&guestbook("guestbook", git, "cluster1")).await?;
    hub.wait_for(&ObjectRef::application("guestbook"), is_healthy).await?;
    stage.log_step(&format!(
        "an Application is Synced and Healthy after {:.1?}",
        started.elapsed()
    ));
    let on_cluster = managed.cluster.get(&ObjectRef::application("guestbook")).await?;
    let on_cluster = on_cluster.context("the Application on the cluster")?;
    assert_eq!(
        on_cluster["spec"]["destination"]["name"], "in-cluster",
        "{on_cluster:#}"
    );

    let started = Instant::now();
    delivers(stage, "two").await?;
    stage.log_step(&format!("a refresh delivers a commit in {:.1?}", started.elapsed()));
    Ok(())
}

/// Checks that a refresh on the hub delivers a commit with this value, and that the hub shows it.
async fn delivers(stage: &Stage, value: &str) -> Result<()> {
    let commit = stage.git.commit(&[("guestbook/config.yaml", &stage::config(value))])?;
    let application = ObjectRef::application("guestbook");
    let refresh = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
    let is_shown =
        |application: &Value| is_healthy(application) && application["status"]["sync"]["revision"] == commit.trim();
    // The principal removes the request when it gets a status, also one from before it: the request may be lost, and is repeated.
    let is_requested = |application: &Value| {
        application["metadata"]["annotations"]
            .get("argocd.argoproj.io/refresh")
            .is_some()
    };
    wait::eventually("the hub shows the commit", wait::DEADLINE, async || {
        let current = stage.hub.get(&application).await.ok()??;
        if !is_shown(&current) && !is_requested(&current) {
            stage.hub.patch(&application, &refresh).await.ok()?;
        }
        is_shown(&current).then_some(())
    })
    .await?;
    let config = ObjectRef::config_map("guestbook", "config");
    let cluster = &stage.managed.cluster;
    cluster.wait_for_value(&config, "/data/value", value).await?;
    Ok(())
}

/// An `ApplicationSet` of the hub selects clusters by their Secrets, and its Applications go to them.
async fn application_set(stage: &Stage) -> Result<()> {
    let Stage { hub, git, .. } = stage;
    let mut template = guestbook("{{.name}}-set", git, "{{.name}}");
    template["spec"]["destination"]["namespace"] = "set".into();
    let set = ObjectRef::application_set("set").with(json!({"spec": {
        "goTemplate": true,
        "generators": [{"clusters": {"selector": {"matchLabels": {"mode": "managed"}}}}],
        "template": {"metadata": template["metadata"], "spec": template["spec"]},
    }}));
    hub.create(&set).await?;
    hub.wait_for(&ObjectRef::application("cluster1-set"), is_healthy)
        .await?;
    stage.log_step("an ApplicationSet delivers an Application");
    Ok(())
}

/// Argo CD's pages show the cluster's objects: the tree by the principal's Redis proxy, and manifests by its resource proxy.
async fn live_objects(stage: &Stage) -> Result<()> {
    let tree = wait::eventually("the tree of the Application", wait::DEADLINE, async || {
        let tree = testbed::resource_tree("127.0.0.1:6379", "guestbook").ok()??;
        tree.to_string().contains("\"ReplicaSet\"").then_some(tree)
    });
    let tree = tree.await?;
    assert!(tree.to_string().contains("\"guestbook-ui\""), "{tree:#}");
    let client = stage.resource_proxy("cluster1").await?;
    let get = async |path: &str| {
        let request = http::Request::get(format!("/api/v1/namespaces/guestbook/{path}")).body(Vec::new())?;
        Ok::<_, anyhow::Error>(client.request_text(request).await?)
    };
    let shown: Value = serde_json::from_str(&get("configmaps/config").await?)?;
    assert_eq!(shown["data"]["value"], "two", "{shown:#}");
    let pods = stage.managed.cluster.list("v1", "Pod").await?;
    let pod = pods.iter().find(|pod| pod["metadata"]["namespace"] == "guestbook");
    let pod = pod.and_then(|pod| pod["metadata"]["name"].as_str()).context("a Pod")?;
    let log = format!("pods/{pod}/log?container=guestbook-ui&tailLines=1");
    let line = wait::eventually("the log of the Pod", wait::DEADLINE, async || get(&log).await.ok()).await?;
    assert!(line.contains("listening on :8080"), "{line}");
    stage.log_step("the hub shows live objects and logs");
    Ok(())
}

/// The agent may not start a terminal until the administrator of the cluster permits it, as docs/argocd-agent.md describes.
async fn terminal(stage: &Stage) -> Result<()> {
    let cluster = &stage.managed.cluster;
    let question = "auth can-i create pods --subresource=exec --namespace=guestbook \
                    --as=system:serviceaccount:argocd:argocd-agent-agent";
    ensure!(
        cluster.kubectl(question).is_err(),
        "the agent may start a terminal by default"
    );
    cluster
        .apply(&ObjectRef::cluster_role("terminal").with(json!({
            "metadata": {"labels": {"argocd-ocm-cmp.github.io/aggregate-to-argocd-agent": "true"}},
            "rules": [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}],
        })))
        .await?;
    let permitted = async || cluster.kubectl(question).ok();
    wait::eventually("the agent may start a terminal", wait::DEADLINE, permitted).await?;
    stage.log_step("the agent may start a terminal");
    Ok(())
}

/// An Application outside of Argo CD's namespace comes to the namespace of the same name on its cluster.
async fn application_in_a_namespace_of_its_team(stage: &Stage) -> Result<()> {
    let Stage { hub, managed, git, .. } = stage;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM_NAMESPACE}});
    hub.create(&namespace).await?;
    let project = ObjectRef::app_project("default");
    hub.patch(&project, &json!({"spec": {"sourceNamespaces": [TEAM_NAMESPACE]}}))
        .await?;
    let mut application = guestbook("shop", git, "cluster1");
    application["metadata"]["namespace"] = TEAM_NAMESPACE.into();
    application["spec"]["destination"]["namespace"] = "shop".into();
    hub.create(&application).await?;
    let shown = ObjectRef::namespaced("argoproj.io/v1alpha1", "Application", TEAM_NAMESPACE, "shop");
    hub.wait_for(&shown, is_healthy).await?;
    let on_cluster = managed.cluster.read(&shown).await?;
    assert_eq!(
        on_cluster["spec"]["destination"]["name"], "in-cluster",
        "{on_cluster:#}"
    );
    stage.log_step("an Application of another namespace is delivered");
    Ok(())
}

/// An Application that the cluster has already is adopted, with v0.9.0 as soon as it names the one of the hub. Neither it nor its objects
/// are deleted meanwhile.
async fn adopted_application(stage: &Stage) -> Result<()> {
    let Stage { hub, managed, git, .. } = stage;
    let cluster = &managed.cluster;
    let application = ObjectRef::application("adopted");
    let mut created = guestbook("adopted", git, "in-cluster");
    created["metadata"]["namespace"] = "argocd".into();
    created["spec"]["destination"]["namespace"] = "adopted".into();
    cluster.create(&created).await?;
    cluster.wait_for(&application, is_healthy).await?;
    let uids = async || -> Result<[Value; 2]> {
        let deployment = ObjectRef::deployment("adopted", "guestbook-ui");
        let application = cluster.read(&application).await?;
        let deployment = cluster.read(&deployment).await?;
        Ok([application, deployment].map(|object| object["metadata"]["uid"].clone()))
    };
    let before = uids().await?;

    created["spec"]["destination"]["name"] = "cluster1".into();
    let on_hub = hub.create(&created).await?;
    let log = managed.process.log();
    let what = format!("the agent refuses or adopts the Application; see {}", log.display());
    let is_refused = wait::eventually(&what, wait::DEADLINE, async || {
        let log = fs::read_to_string(log).ok()?;
        let is_refused = log.contains("application already exists on agent but is unmanaged");
        (is_refused || log.contains("Adopting existing application")).then_some(is_refused)
    })
    .await?;
    assert_eq!(uids().await?, before);

    // Later versions than 0.9.0 adopt it without the annotation.
    if is_refused {
        let annotations = json!({"argocd.argoproj.io/source-uid": on_hub["metadata"]["uid"]});
        cluster
            .patch(&application, &json!({"metadata": {"annotations": annotations}}))
            .await?;
    }
    let change = json!({"metadata": {"annotations": {"example.com/adopted": "true"}}});
    hub.patch(&application, &change).await?;
    hub.wait_for(&application, is_healthy).await?;
    cluster
        .wait_for_value(&application, "/metadata/annotations/example.com~1adopted", "true")
        .await?;
    assert_eq!(uids().await?, before);
    stage.log_step("the hub's Application adopts that of the cluster");
    Ok(())
}

/// An Application of an autonomous cluster is shown in the cluster's namespace on the hub.
async fn autonomous_application(stage: &Stage) -> Result<()> {
    let Stage {
        hub, autonomous, git, ..
    } = stage;
    let mut application = guestbook("local", git, "in-cluster");
    application["metadata"]["namespace"] = "argocd".into();
    autonomous.cluster.create(&application).await?;
    let shown = ObjectRef::namespaced("argoproj.io/v1alpha1", "Application", "cluster2", "local");
    let shown = hub.wait_for(&shown, is_healthy).await?;
    assert_eq!(shown["spec"]["destination"]["name"], "cluster2", "{shown:#}");
    stage.log_step("the hub shows the Application of an autonomous cluster");
    Ok(())
}

/// The agent goes on with a new certificate, and with a principal that has a new one.
async fn renewed_certificates(stage: &mut Stage) -> Result<()> {
    let secret = ObjectRef::secret("argocd", CLIENT_SECRET);
    let cluster = &stage.managed.cluster;
    let certificate = async || -> Result<Value> {
        let object = cluster.get(&secret).await?.unwrap_or_default();
        Ok(object["data"]["tls.crt"].clone())
    };
    let before = certificate().await?;
    cluster.delete(&secret).await?;
    cluster
        .wait_for(&secret, |secret| {
            secret["data"]["tls.crt"].is_string() && secret["data"]["tls.crt"] != before
        })
        .await?;
    let connections = stage.connections("cluster1")?;
    stage.update_files_of_agents().await?;
    stage.wait_for_connection("cluster1", connections).await?;
    stage.log_step("the agent is connected with a new certificate");

    let hub = &stage.hub;
    let principal = ObjectRef::secret("argocd", "argocd-agent-principal-tls");
    let before = hub.read(&stage::principal()).await?;
    hub.delete(&principal).await?;
    let template = |deployment: &Value| deployment["spec"]["template"]["metadata"]["annotations"].clone();
    hub.wait_for(&stage::principal(), |deployment| {
        template(deployment) != template(&before)
    })
    .await?;
    let connections = stage.connections("cluster1")?;
    stage.restart_principal().await?;
    stage.wait_for_connection("cluster1", connections).await?;
    delivers(stage, "three").await?;
    stage.log_step("both go on after the principal has a new certificate");
    Ok(())
}

/// The agents have the image of the principal, also after it changes.
async fn followed_image(stage: &Stage) -> Result<()> {
    let image = "registry.example.com/argocd-agent:v0.9.0";
    let [deployment, container] = [
        format!("deployment/{}", stage::PRINCIPAL),
        format!("{}={image}", stage::PRINCIPAL),
    ];
    stage
        .hub
        .kubectl(&["-n", "argocd", "set", "image", &deployment, &container])?;
    let has_image = |deployment: &Value| {
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
        let mut containers = containers.into_iter().flatten();
        containers.any(|container| container["name"] == stage::AGENT && container["image"] == image)
    };
    for agent in [&stage.managed, &stage.autonomous] {
        agent.cluster.wait_for(&stage::agent(), has_image).await?;
    }
    stage.log_step("the agents have the new image of the principal");
    Ok(())
}

/// Principal and agents go on when the next CA signs.
async fn rotated_authority(stage: &mut Stage) -> Result<()> {
    let hub = &stage.hub;
    let certificate = |secret: &Value| secret["data"]["tls.crt"].clone();
    let ca = ObjectRef::secret("argocd", CA_SECRET);
    let principal = ObjectRef::secret("argocd", "argocd-agent-principal-tls");
    let before = hub.read(&principal).await?;
    let is_rotated = |secret: &Value| secret["metadata"]["annotations"].to_string().contains("signs-since");
    hub.wait_for(&ca, is_rotated).await?;
    hub.wait_for(&principal, |secret| certificate(secret) != certificate(&before))
        .await?;
    stage.update_files_of_agents().await?;
    let connections = stage.connections("cluster1")?;
    stage.restart_principal().await?;
    stage.wait_for_connection("cluster1", connections).await?;
    delivers(stage, "four").await?;
    stage.log_step("both go on after the CA is rotated");
    Ok(())
}

/// Idle agents stay connected: gRPC's server closes connections of clients that send pings too often.
async fn idle(stage: &Stage) -> Result<()> {
    let before = [stage.connections("cluster1")?, stage.connections("cluster2")?];
    wait::holds_for(
        &stage.hub.client().await?,
        &ObjectRef::application("guestbook"),
        IDLE,
        is_healthy,
    )
    .await?;
    let after = [stage.connections("cluster1")?, stage.connections("cluster2")?];
    assert_eq!(before, after, "no agent connects again");
    for agent in [&stage.managed, &stage.autonomous] {
        let log = fs::read_to_string(agent.process.log())?;
        ensure!(!log.contains("too_many_pings") && !log.contains("GoAway"), "{log}");
    }
    stage.log_step("idle agents stay connected");
    Ok(())
}

/// The deletion of an Application on the hub deletes it, and what it deployed, on the cluster.
async fn deleted_application(stage: &Stage) -> Result<()> {
    let application = ObjectRef::application("guestbook");
    stage.hub.delete(&application).await?;
    stage.managed.cluster.wait_gone(&application).await?;
    stage
        .managed
        .cluster
        .wait_gone(&ObjectRef::deployment("guestbook", "guestbook-ui"))
        .await?;
    stage.hub.wait_gone(&application).await?;
    stage.log_step("a deletion reaches the cluster");
    Ok(())
}

/// A revoked cluster loses its Secret on the hub, and a principal that reads the list of blocked certificates refuses it at once, although
/// the cluster keeps its agent and its certificate.
async fn revoked_cluster(stage: &Stage) -> Result<()> {
    let hub = &stage.hub;
    let connections = stage.connections("cluster1")?;
    let gitops_cluster = ObjectRef::gitops_cluster("managed");
    let revoked = json!({"spec": {"agent": {"revokedClusters": ["cluster1"]}}});
    hub.patch(&gitops_cluster, &revoked).await?;
    hub.wait_gone(&ObjectRef::secret("argocd", "cluster-cluster1")).await?;
    let blocklist = ObjectRef::config_map("argocd", BLOCKLIST);
    hub.wait_for(&blocklist, |blocklist| {
        blocklist["data"].as_object().is_some_and(|data| !data.is_empty())
    })
    .await?;
    if stage.reads_blocklist()? {
        let what = "the principal refuses the certificate of the revoked cluster";
        wait::eventually(what, wait::DEADLINE, async || {
            stage.has_refused_certificate().ok()?.then_some(())
        })
        .await?;
        assert_eq!(stage.connections("cluster1")?, connections, "it does not connect again");
        stage.log_step("the principal refuses a revoked cluster");
    } else {
        stage.log_step("the cluster is revoked, but this principal does not read the list of blocked certificates");
    }
    Ok(())
}
