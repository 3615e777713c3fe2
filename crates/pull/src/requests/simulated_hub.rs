//! Tests of requests end to end, in every order of delayed steps: each component may be slow or may restart.

use super::tests::{ask, click};
use super::*;
use crate::tests::work;
use hub_state::annotations::REFRESH;
use hub_state::json::borrowed;
use hub_state::testing::pull::{object, read_application, read_work, reported};
use ocm::pull_model as names;
use serde_json::{Value, json};

/// A simulated hub with an Application and its work, the controller's cache of them, and a cluster with an Argo CD.
#[derive(Default)]
struct SimulatedHub {
    hub: Value,
    seen_hub: Value,
    work: Option<Value>,
    seen_work: Option<Value>,
    applied: Value,
    /// The cluster's Application: its payload hash, its `operation`, its refresh request, and the last operation that was
    /// started.
    form: Option<String>,
    operation: Value,
    refresh: Value,
    begun: Value,
    runs: bool,
    clock: u32,
    asked: Vec<String>,
    done: Vec<String>,
    asked_at: u32,
    refreshed_at: u32,
}

impl SimulatedHub {
    fn new() -> Self {
        let hub = object(|_| ());
        Self {
            seen_hub: hub.clone(),
            hub,
            ..Self::default()
        }
    }

    fn step(&mut self, which: usize) {
        self.clock += 1;
        match which {
            0 => self.seen_hub = self.hub.clone(),
            1 => self.seen_work = self.work.clone(),
            2 => self.write_work(),
            3 => self.take(),
            4 => self.apply(),
            5 => self.begin(),
            6 => self.finish(),
            7 => self.feed_back(),
            8 => self.refresh_there(),
            9 => self.click(),
            _ => self.ask(),
        }
    }

    fn time(&self) -> String {
        format!(
            "2026-06-01T{:02}:{:02}:{:02}Z",
            self.clock / 3600,
            self.clock / 60 % 60,
            self.clock % 60
        )
    }

    fn decide(&self) -> (Application, Requests, Forwarded) {
        let application = read_application(&self.seen_hub);
        let pull_work = self.seen_work.as_ref().map(read_work);
        let (requests, forwarded) = requests(&application, pull_work.as_ref());
        (application, requests, forwarded)
    }

    /// Writes the work as the API server does: only if the resource version is current.
    fn write_work(&mut self) {
        let version = |work: &Option<Value>| work.as_ref().map(|work| work["metadata"]["resourceVersion"].clone());
        if version(&self.work) != version(&self.seen_work) {
            return;
        }
        let (application, requests, _) = self.decide();
        let mut work = work(&application, &requests, None);
        if let Some(before) = &self.work {
            if before["spec"] == work["spec"] {
                return;
            }
            work["status"] = before["status"].clone();
            work["metadata"]["generation"] = json!(before["metadata"]["generation"].as_i64().expect("one") + 1);
        }
        work["metadata"]["resourceVersion"] = json!(self.clock.to_string());
        self.work = Some(work);
    }

    fn take(&mut self) {
        if self.hub["metadata"]["resourceVersion"] != self.seen_hub["metadata"]["resourceVersion"] {
            return;
        }
        let (_, _, forwarded) = self.decide();
        if forwarded.operation {
            self.hub["operation"] = Value::Null;
        }
        if forwarded.refresh {
            self.hub["metadata"]["annotations"][REFRESH] = Value::Null;
        }
        self.hub["metadata"]["resourceVersion"] = json!(self.clock.to_string());
    }

    fn apply(&mut self) {
        let Some(work) = &self.work else { return };
        let object = &work["spec"]["workload"]["manifests"][0];
        if *object == self.applied {
            return;
        }
        let set = |field: &mut Value, path: &str| match object.pointer(path) {
            Some(value) => *field = value.clone(),
            None if self.applied.pointer(path) == Some(field) => *field = Value::Null,
            None => {}
        };
        let before = self.operation.clone();
        set(&mut self.operation, "/operation");
        set(&mut self.refresh, "/metadata/annotations/argocd.argoproj.io~1refresh");
        assert!(!self.runs || self.operation == before, "it runs, and would never end");
        self.form = object["metadata"]["annotations"][names::PAYLOAD]
            .as_str()
            .map(ToOwned::to_owned);
        self.applied = object.clone();
    }

    fn begin(&mut self) {
        if !self.operation.is_null() {
            self.begun = self.operation.clone();
            self.runs = true;
        }
    }

    fn finish(&mut self) {
        if self.runs {
            let revision = self.begun["sync"]["revision"].as_str().expect("a revision");
            self.done.push(revision.to_owned());
            self.operation = Value::Null;
            self.runs = false;
        }
    }

    fn feed_back(&mut self) {
        let Some(work) = self.work.as_mut() else { return };
        let Some(form) = &self.form else { return };
        let named = |operation: &Value| {
            OperationRequest::of_payload(&borrowed(&json!({"operation": operation}))).map(|request| request.id)
        };
        let (pending, begun) = (named(&self.operation), named(&self.begun));
        let mut values = vec![("payload", &**form)];
        values.extend(pending.as_deref().map(|id| ("operationPending", id)));
        values.extend(begun.as_deref().map(|id| ("operationBegun", id)));
        values.extend(self.refresh.as_str().map(|kind| ("refreshPending", kind)));
        work["status"] = json!({"resourceStatus": {"manifests": [reported(&values)]}});
        work["metadata"]["resourceVersion"] = json!(self.clock.to_string());
    }

    fn refresh_there(&mut self) {
        if !self.refresh.is_null() {
            self.refresh = Value::Null;
            self.refreshed_at = self.clock;
        }
    }

    /// Requests an operation as Argo CD does: not while another one is present.
    fn click(&mut self) {
        if self.hub["operation"].is_null() {
            let (revision, time) = (self.asked.len().to_string(), self.time());
            click(&mut self.hub, &revision, &time);
            self.hub["metadata"]["resourceVersion"] = json!(self.clock.to_string());
            self.asked.push(revision);
        }
    }

    fn ask(&mut self) {
        let time = self.time();
        ask(&mut self.hub, "normal", &time);
        self.hub["metadata"]["resourceVersion"] = json!(self.clock.to_string());
        self.asked_at = self.clock;
    }
}

#[test]
fn random_crashes_and_delays_run_each_operation_once() {
    for seed in 0..100 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = SimulatedHub::new();
        for _ in 0..60 {
            world.step(random.usize(..11));
        }
        for _ in 0..12 {
            for which in [0, 1, 2, 0, 1, 3, 4, 5, 6, 8, 7] {
                world.step(which);
            }
        }
        assert_eq!(world.done, world.asked, "seed {seed}");
        assert!(world.refreshed_at >= world.asked_at, "seed {seed}");
        assert!(world.hub["operation"].is_null(), "seed {seed}");
        assert!(world.hub["metadata"]["annotations"][REFRESH].is_null(), "seed {seed}");
        let left = read_work(world.work.as_ref().expect("a work"));
        assert_eq!((left.operation, left.refresh), (None, None), "seed {seed}");
    }
}
