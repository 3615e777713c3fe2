//! Tests of the shipped triggers and templates in Argo CD's notifications controller, with a receiver of webhooks.

use crate::stage::{Stage, WorkHealth, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testbed::process::Process;
use testbed::{ObjectRef, wait};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const SHIPPED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/notifications_cm.yaml"));

/// The time in which the controller sees a change that sends no message.
const SETTLING: Duration = Duration::from_millis(500);

/// Argo CD's notifications controller, and the messages that it has sent.
struct Notifications {
    sent: Arc<Mutex<Vec<String>>>,
    _controller: Process,
}

impl Notifications {
    async fn start(stage: &Stage) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let sent = Arc::<Mutex<Vec<String>>>::default();
        let received = Arc::clone(&sent);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(body) = receive(stream).await else { continue };
                received.lock().expect("no panic").push(body);
            }
        });
        stage.hub.apply_yaml(SHIPPED)?;
        let config_map = ObjectRef::config_map("argocd", "argocd-notifications-cm");
        let service = json!({"data": {"service.webhook.receiver": format!("url: http://127.0.0.1:{port}")}});
        stage.hub.patch(&config_map, &service).await?;
        let secret = ObjectRef::secret("argocd", "argocd-notifications-secret").with(json!({}));
        stage.hub.apply(&secret).await?;
        Ok(Self {
            sent,
            _controller: stage.hub.start_notifications()?,
        })
    }

    /// Waits until that many messages about an Application are sent, and returns them.
    async fn about(&self, application: &str, number: usize) -> Result<Vec<String>> {
        let start = format!("/applications/argocd/{application}");
        let what = format!("{number} messages about {application}");
        wait::eventually(&what, wait::DEADLINE, async || {
            let sent = self.sent.lock().expect("no panic");
            let about: Vec<String> = sent
                .iter()
                .filter(|message| message.trim_end().ends_with(&start))
                .cloned()
                .collect();
            (about.len() >= number).then_some(about)
        })
        .await
    }

    /// Writes the status of an Application, and returns all messages about it, once the controller has seen it and that many are sent.
    async fn after(
        &self,
        stage: &Stage,
        application: &ObjectRef,
        status: &Value,
        number: usize,
    ) -> Result<Vec<String>> {
        stage.hub.patch(application, &json!({"status": status})).await?;
        tokio::time::sleep(SETTLING).await;
        self.about(&application.name, number).await
    }
}

/// Reads a request, and returns its body.
async fn receive(stream: TcpStream) -> Result<String> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if line.trim().is_empty() {
            break;
        }
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(answer).await?;
    Ok(String::from_utf8(body)?)
}

async fn subscribe(stage: &Stage, application: &ObjectRef, trigger: &str) -> Result<()> {
    let annotation = format!("notifications.argoproj.io/subscribe.{trigger}.receiver");
    let patch = json!({"metadata": {"annotations": {annotation: ""}}});
    stage.hub.patch(application, &patch).await.map(drop)
}

#[tokio::test]
async fn every_trigger_sends_its_message() -> Result<()> {
    let stage = stage("triggers").await?;
    let condition = |kind: &str, message: &str| {
        let condition = json!({"type": kind, "message": message, "lastTransitionTime": "2026-06-01T12:00:00Z"});
        json!({"conditions": [condition]})
    };
    let problem = "has a problem on managed clusters:\n- ";
    let refusal = "the policy has no entry for project web, so it may deliver nothing";
    let hold = "managed cluster eu1 is on hold: storage migration";
    let mut cases: Vec<(&str, Value, String)> = [
        ("on-work-refused", "ManifestWorkApplyError"),
        ("on-work-degraded", "ManifestWorkDegradedWarning"),
        ("on-work-overdue", "ManifestWorkOverdueWarning"),
        ("on-cluster-unreachable", "ManagedClusterUnreachableWarning"),
        ("on-no-cluster", "ManifestWorkNoClusterWarning"),
        ("on-shared-object", "ManifestWorkSharedObjectWarning"),
    ]
    .map(|(trigger, kind)| {
        (
            trigger,
            condition(kind, "eu1: a reason"),
            format!("{problem}eu1: a reason\n"),
        )
    })
    .into();
    cases.push((
        "on-policy-refusal",
        condition("ComparisonError", refusal),
        format!("{refusal}\n"),
    ));
    let operation = json!({"operationState": {
        "operation": {},
        "phase": "Running",
        "startedAt": "2026-06-01T12:00:00Z",
        "message": hold,
    }});
    cases.push(("on-hold", operation, format!("{hold}\n")));
    let shipped = SHIPPED
        .lines()
        .filter_map(|line| line.strip_prefix("  trigger.")?.strip_suffix(": |"));
    let mut tested: Vec<&str> = cases.iter().map(|(trigger, ..)| *trigger).collect();
    let mut shipped: Vec<&str> = shipped.collect();
    tested.sort_unstable();
    shipped.sort_unstable();
    assert_eq!(shipped, tested);

    let notifications = Notifications::start(&stage).await?;
    for (trigger, status, expected) in &cases {
        let application = stage.application(trigger, WorkHealth::Healthy).await?;
        // For all triggers, so that one that answers to another's condition sends a second message.
        for other in &tested {
            subscribe(&stage, &application, other).await?;
        }
        stage.hub.patch(&application, &json!({"status": status})).await?;
        let sent = notifications.about(trigger, 1).await?;
        let message = sent.first().context("a message")?;
        assert!(sent.len() == 1 && message.contains(expected), "{trigger}: {sent:?}");
    }
    for (trigger, ..) in &cases {
        assert_eq!(notifications.about(trigger, 1).await?.len(), 1, "{trigger}");
    }
    Ok(())
}

/// A cluster that recovers is no news about the others.
#[tokio::test]
async fn recovered_cluster_sends_no_message() -> Result<()> {
    let stage = stage("recovery").await?;
    let application = stage.application("recovery", WorkHealth::Healthy).await?;
    subscribe(&stage, &application, "on-work-degraded").await?;
    let notifications = Notifications::start(&stage).await?;
    let degraded = |number: usize| {
        let (message, since) = (format!("eu{number}: a reason"), format!("2026-06-01T12:00:0{number}Z"));
        json!({"type": "ManifestWorkDegradedWarning", "message": message, "lastTransitionTime": since})
    };
    for (clusters, messages) in [
        (&[1][..], 1),
        (&[1, 2], 2),
        (&[2], 2),
        (&[2, 3], 3),
        (&[2], 3),
        (&[2, 4], 4),
    ] {
        let conditions: Vec<_> = clusters.iter().copied().map(degraded).collect();
        let status = json!({"conditions": conditions});
        let sent = notifications.after(&stage, &application, &status, messages).await?;
        assert_eq!(sent.len(), messages, "{clusters:?}: {sent:?}");
    }
    Ok(())
}

/// A failed hydration is in no condition, and Argo CD repeats it every two minutes.
#[tokio::test]
async fn refused_hydration_sends_a_message_for_each_commit() -> Result<()> {
    let stage = stage("hydration").await?;
    let application = stage.application("hydration", WorkHealth::Healthy).await?;
    subscribe(&stage, &application, "on-policy-refusal").await?;
    let dry = json!({"repoURL": "https://git.example.com/shop.git", "path": ".", "targetRevision": "main"});
    let hydrator = json!({"drySource": dry, "syncSource": {"targetBranch": "hydrated", "path": "shop"}});
    let spec = json!({"spec": {"source": null, "sourceHydrator": hydrator}});
    stage.hub.patch(&application, &spec).await?;
    let notifications = Notifications::start(&stage).await?;
    let refusal = "Failed to hydrate: the policy has no entry for project web";
    // Argo CD names no commit if it cannot generate the first manifests.
    for (phase, commit, last_success, messages) in [
        ("Failed", Some("a1"), None, 1),
        ("Hydrating", Some("a1"), None, 1),
        ("Failed", Some("a1"), None, 1),
        ("Hydrating", Some("b2"), None, 1),
        ("Failed", Some("b2"), None, 2),
        ("Failed", None, None, 3),
        ("Hydrated", None, Some("c3"), 3),
        ("Failed", None, Some("c3"), 4),
    ] {
        let operation = json!({
            "phase": phase, "message": refusal, "drySHA": commit, "startedAt": "2026-06-01T12:00:00Z", "sourceHydrator": hydrator,
        });
        let success = last_success.map(|commit| json!({"drySHA": commit, "sourceHydrator": hydrator}));
        let hydration = json!({"currentOperation": operation, "lastSuccessfulOperation": success});
        let status = json!({"sourceHydrator": hydration});
        let sent = notifications.after(&stage, &application, &status, messages).await?;
        assert!(
            sent.len() == messages && sent.iter().all(|message| message.contains(refusal)),
            "{phase} {commit:?}: {sent:?}"
        );
    }
    Ok(())
}
