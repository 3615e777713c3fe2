//! The shared environment: two hubs that the tests take turns to use, Applications with works, and replicas of the controller.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use testbed::application::{CLUSTER, INFO, PULL, SKIP_RECONCILE, messages};
use testbed::process::{self, Process};
use testbed::proxy::{Proxy, RecordedRequest};
use testbed::{Hub, ObjectRef, new_condition, tracked_work, wait};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// The kinds of the objects that tests leave behind.
const TEST_KINDS: &str = "applications.argoproj.io,manifestworks.work.open-cluster-management.io,\
                     manifestworkreplicasets.work.open-cluster-management.io,events";

/// A hub, for one test at a time: a controller processes all its objects.
pub(crate) struct Stage {
    pub(crate) hub: Arc<Hub>,
    /// The namespace of the managed cluster, and of the Lease.
    pub(crate) cluster: String,
    folder: tempfile::TempDir,
    _turn: Option<MutexGuard<'static, ()>>,
}

/// Waits for the first of two hubs that no other test uses, and keeps it until the turn is dropped. Tests mostly wait: more than two
/// hubs would compete for processors.
pub(crate) async fn take_turn<H>(hubs: &'static [(Mutex<()>, H); 2]) -> (MutexGuard<'static, ()>, &'static H) {
    tokio::select! {
        turn = hubs[0].0.lock() => (turn, &hubs[0].1),
        turn = hubs[1].0.lock() => (turn, &hubs[1].1),
    }
}

/// Returns a hub with only a managed cluster of that name.
pub(crate) async fn stage(cluster: &str) -> Result<Stage> {
    static HUBS: [(Mutex<()>, OnceCell<Arc<Hub>>); 2] = [const { (Mutex::const_new(()), OnceCell::const_new()) }; 2];
    let (turn, hub) = take_turn(&HUBS).await;
    let hub = hub.get_or_try_init(async || Hub::start().await.map(Arc::new)).await?;
    let hub = Arc::clone(hub);
    hub.kubectl(&["delete", "--all", "--all-namespaces", TEST_KINDS])?;
    hub.kubectl("delete --all managedclusters")?;
    hub.declare_managed_cluster(cluster).await?;
    Ok(Stage {
        hub,
        cluster: cluster.to_owned(),
        folder: tempfile::tempdir()?,
        _turn: Some(turn),
    })
}

/// Returns a separate hub with only a managed cluster of that name, for a test that changes the whole hub.
pub(crate) async fn own_stage(cluster: &str) -> Result<Stage> {
    let hub = Arc::new(Hub::start().await?);
    hub.declare_managed_cluster(cluster).await?;
    Ok(Stage {
        hub,
        cluster: cluster.to_owned(),
        folder: tempfile::tempdir()?,
        _turn: None,
    })
}

/// The health of a work, as an agent reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WorkHealth {
    Healthy,
    /// Degraded, with this message of its condition rule.
    Degraded(&'static str),
    /// Not applied, with this message of the API server of its cluster.
    ApplyFailed(&'static str),
}

impl Stage {
    pub(crate) async fn proxy(&self) -> Result<Proxy> {
        Proxy::start(&self.hub).await
    }

    /// Creates an Application that Argo CD has synced to one work, of the same name.
    pub(crate) async fn application(&self, name: &str, health: WorkHealth) -> Result<ObjectRef> {
        let application = ObjectRef::cluster("argoproj.io/v1alpha1", "Application", name).with(json!({
            "spec": {"project": "default", "destination": {}, "source": {"repoURL": "https://example.com/git"}},
        }));
        let application = ObjectRef::of(&self.hub.create_application(&application).await?);
        self.work(name, health).await?;
        Ok(application)
    }

    /// Creates an Application of the pull model, which has no finalizer, and returns it with its work, once the controller has
    /// created that.
    pub(crate) async fn pulled_application(&self, name: &str) -> Result<(ObjectRef, ObjectRef)> {
        let application = ObjectRef::cluster("argoproj.io/v1alpha1", "Application", name).with(json!({
            "metadata": {"labels": {PULL: "true"}, "annotations": {CLUSTER: self.cluster, SKIP_RECONCILE: "true"}},
            "spec": {
                "project": "default",
                "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
                "source": {"repoURL": "https://example.com/git", "path": "."},
            },
        }));
        let created = self.hub.create_application(&application).await?;
        let uid = created["metadata"]["uid"].as_str().context("a UID")?;
        let work = ObjectRef::manifest_work(&self.cluster, &format!("{name}-{}", &uid[..5]));
        self.hub.wait_for(&work, |_| true).await?;
        Ok((ObjectRef::of(&created), work))
    }

    async fn work(&self, application: &str, health: WorkHealth) -> Result<()> {
        let work = tracked_work(application, &self.cluster, application, &[config_map(application)]);
        self.hub.create(&work).await?;
        self.report_health(application, health).await
    }

    /// Writes the health of an Application's work as the agent does.
    pub(crate) async fn report_health(&self, application: &str, health: WorkHealth) -> Result<()> {
        let [applied, healthy] = match health {
            WorkHealth::Healthy => [("True", ""), ("True", "")],
            WorkHealth::Degraded(why) => [("True", ""), ("False", why)],
            WorkHealth::ApplyFailed(why) => [("False", why), ("True", "")],
        };
        let conditions = [("Applied", applied), ("Available", ("True", "")), ("Healthy", healthy)]
            .map(|(kind, (status, message))| new_condition(kind, status, message, &json!(1)));
        let status = json!({
            "conditions": conditions[..2],
            "resourceStatus": {"manifests": [{
                "resourceMeta": {
                    "ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
                    "namespace": "shop", "name": application,
                },
                "conditions": conditions,
            }]},
        });
        let work = ObjectRef::manifest_work(&self.cluster, application);
        self.hub.patch_status(&work, &json!({"status": status})).await.map(drop)
    }

    /// Waits until the Application has a condition of that type whose message contains that text.
    pub(crate) async fn wait_for_condition(&self, application: &ObjectRef, kind: &str, text: &str) -> Result<Value> {
        let has_message = |object: &Value| messages(object, kind).iter().any(|message| message.contains(text));
        self.hub.wait_for(application, has_message).await
    }

    /// Returns the Events of an object.
    pub(crate) async fn events(&self, object: &ObjectRef) -> Result<Vec<Value>> {
        let mut events = self.hub.list("v1", "Event").await?;
        events.retain(|event| {
            let involved = &event["involvedObject"];
            involved["kind"] == *object.kind && involved["name"] == *object.name
        });
        Ok(events)
    }

    /// Waits for an Event of an object that warns with this reason and message.
    pub(crate) async fn wait_for_warning(&self, object: &ObjectRef, reason: &str, message: &str) -> Result<()> {
        let recorded = async || {
            let events = self.events(object).await.ok()?;
            let is_it =
                |event: &Value| event["type"] == "Warning" && event["reason"] == reason && event["message"] == message;
            events.iter().any(is_it).then_some(())
        };
        wait::eventually(message, wait::DEADLINE, recorded).await
    }

    pub(crate) async fn wait_until_healthy(&self, application: &ObjectRef) -> Result<Value> {
        self.wait_for_condition(application, INFO, "healthy on 1").await
    }

    /// Starts a replica of the controller behind a proxy.
    pub(crate) async fn replica(&self, name: &str, proxy: &Proxy) -> Result<Replica> {
        self.replica_for("application-status", name, proxy).await
    }

    /// Starts one with these controllers.
    async fn replica_for(&self, controllers: &str, name: &str, proxy: &Proxy) -> Result<Replica> {
        self.replica_with(&[&format!("--controllers={controllers}")], name, proxy)
            .await
    }

    /// Starts one with these arguments.
    pub(crate) async fn replica_with(&self, arguments: &[&str], name: &str, proxy: &Proxy) -> Result<Replica> {
        let port = testbed::ports::free()?;
        let fixed = ["--log-level=debug", "--leader-election-namespace", &self.cluster];
        let command = process::controller(
            env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
            self.folder.path(),
            &[&fixed, arguments].concat(),
            port,
            proxy.kubeconfig(self.hub.kubeconfig_path())?,
        );
        let log: PathBuf = self.hub.logs().join(format!("{}-{name}.log", self.cluster));
        let process = Process::start(name, command, &log)?;
        process.until_listening(port).await?;
        Ok(Replica { process, port })
    }

    /// Starts the only replica, and waits until its caches are synced and it may write.
    pub(crate) async fn controller(&self, proxy: &Proxy) -> Result<Replica> {
        self.controller_for("application-status", proxy).await
    }

    /// Starts the only replica with these controllers, and waits until its caches are synced and it may write.
    pub(crate) async fn controller_for(&self, controllers: &str, proxy: &Proxy) -> Result<Replica> {
        let replica = self.replica_for(controllers, "controller", proxy).await?;
        replica.until_ready().await?;
        replica.until_metric("argocd_ocm_cmp_leader", |leads| leads > 0).await?;
        Ok(replica)
    }
}

/// Returns the manifest of every work: OCM rejects an empty work.
pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}})
}

/// Returns the requests that write an Application.
pub(crate) fn writes_of<'s>(requests: &'s [RecordedRequest], application: &ObjectRef) -> Vec<&'s RecordedRequest> {
    let of_it = |request: &&RecordedRequest| {
        request.resource == "applications" && request.name.as_ref() == Some(&application.name)
    };
    requests
        .iter()
        .filter(|request| request.is_write())
        .filter(of_it)
        .collect()
}

/// Returns the requests that write anything but a Lease.
pub(crate) fn writes(requests: &[RecordedRequest]) -> Vec<String> {
    let write_status = requests
        .iter()
        .filter(|request| request.is_write() && request.resource != "leases");
    write_status.map(RecordedRequest::to_string).collect()
}

/// Returns the requests for all objects of a kind.
pub(crate) fn lists(requests: &[RecordedRequest]) -> Vec<String> {
    let lists = requests.iter().filter(|request| request.is_initial_list());
    lists.map(RecordedRequest::to_string).collect()
}

/// Checks that the pauses between requests grow: long failures are retried seldom.
pub(crate) fn backs_off<'s>(requests: impl IntoIterator<Item = &'s RecordedRequest>) -> Result<()> {
    /// The minimum pause before the fifth attempt: four times the maximum pause before the second.
    const FOURTH: Duration = Duration::from_secs(2);
    let times: Vec<_> = requests.into_iter().map(|request| request.at).collect();
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let grows = pauses.len() >= 4 && pauses[3..].iter().all(|pause| *pause >= FOURTH);
    ensure!(grows, "the pauses are {pauses:?}");
    Ok(())
}

/// The number of attempts that [`backs_off`] needs.
pub(crate) const RETRIES: usize = 5;

/// A running controller.
pub(crate) struct Replica {
    process: Process,
    port: u16,
}

impl Replica {
    /// Returns the status code and the body of an answer.
    pub(crate) async fn get(&self, path: &str) -> Result<(u16, String)> {
        process::http_get(self.port, path).await
    }

    pub(crate) async fn until_ready(&self) -> Result<()> {
        let ready = async || (self.get("/readyz").await.ok()?.0 == 200).then_some(());
        wait::eventually("the controller is ready", wait::DEADLINE, ready).await
    }

    /// Returns the sum of all samples whose lines have this prefix.
    pub(crate) async fn metric(&self, start: &str) -> Result<u64> {
        let (code, metrics) = self.get("/metrics").await?;
        ensure!(code == 200, "/metrics answers with {code}");
        let samples = metrics.lines().filter(|line| line.starts_with(start));
        samples
            .map(|line| Ok(line.rsplit(' ').next().unwrap_or_default().parse::<u64>()?))
            .sum()
    }

    pub(crate) async fn until_metric(&self, start: &str, is_enough: impl Fn(u64) -> bool) -> Result<()> {
        let enough = async || is_enough(self.metric(start).await.ok()?).then_some(());
        wait::eventually(start, wait::DEADLINE, enough).await
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.process.log())?)
    }

    /// Stops it, as Kubernetes does, and waits until it has ended.
    pub(crate) async fn stop(self) -> Result<()> {
        let status = self.process.terminate().await?;
        ensure!(status.success(), "the controller ended with {status}");
        Ok(())
    }

    /// Kills it, as when a machine fails.
    pub(crate) fn kill(self) {
        drop(self.process);
    }
}
