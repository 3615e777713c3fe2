//! Tests of the health checks of works in deploy/argocd_cm.yaml, with the real Argo CD, one object at a time, without a hub.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use ocm::health;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use testbed::{Part, Parts};
use testing::HealthCase;

use crate::stage::shipped;

/// Argo CD's command line, which needs no running Argo CD.
struct ArgoCd {
    parts: Parts,
    folder: tempfile::TempDir,
}

/// Evaluates the shipped health checks for an object as it is on the hub.
pub(crate) fn health(object: &Value) -> Result<(String, String)> {
    ArgoCd::new()?.health(0, object, "UTC")
}

impl ArgoCd {
    fn new() -> Result<Self> {
        Ok(Self {
            parts: Parts::ensure()?,
            folder: tempfile::tempdir()?,
        })
    }

    fn health(&self, index: usize, object: &Value, zone: &str) -> Result<(String, String)> {
        let file = self.folder.path().join(format!("{index}.json"));
        fs::write(&file, object.to_string())?;
        let output = Command::new(self.parts.program(Part::ArgoCd))
            .args(["admin", "settings", "resource-overrides", "health"])
            .arg(&file)
            .arg("--argocd-cm-path")
            .arg(shipped("deploy/argocd_cm.yaml"))
            .env_clear()
            .env("ARGOCD_BINARY_NAME", "argocd")
            .env("HOME", self.folder.path())
            .env("TZ", zone)
            .output()?;
        let (stdout, stderr) = (
            String::from_utf8(output.stdout)?,
            String::from_utf8_lossy(&output.stderr),
        );
        // The last line has the error, those before it the steps.
        ensure!(output.status.success(), "{}", stderr.lines().last().unwrap_or_default());
        let (status, message) = stdout
            .strip_prefix("STATUS: ")
            .and_then(|rest| rest.trim_end_matches('\n').split_once("\nMESSAGE: "))
            .with_context(|| format!("no health: {stdout}"))?;
        Ok((status.to_owned(), message.to_owned()))
    }

    /// Returns the error in the answer to a case, in one line.
    fn mismatch(&self, index: usize) -> Option<String> {
        let case = &cases()[index];
        // Argo CD's own time zone must not matter.
        let zone = ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"][index % 3];
        // Before 3.6, Argo CD does not check objects that are being deleted, unless they are hooks.
        let is_skipped = testbed::argocd_version() == "3.2"
            && case.object.pointer("/metadata/deletionTimestamp").is_some()
            && case.object.pointer("/metadata/finalizers").is_none();
        let expected = match (&case.argocd, &*case.health) {
            (Value::Null, _) if is_skipped => json!(["Progressing", "Pending deletion"]),
            (Value::Null, "Waiting" | "Unknown") => json!(["Progressing", case.message]),
            (Value::Null, "Missing") => json!(["Degraded", case.message]),
            (Value::Null, health) => json!([health, case.message]),
            (argocd, _) => argocd.clone(),
        };
        match self.health(index, &case.object, zone) {
            Ok((status, message)) if json!([status, message]) == expected => None,
            Ok((status, message)) => Some(format!("{}, {zone}: {status}: {message}", case.name)),
            Err(error) => Some(format!("{}, {zone}: {error:#}", case.name)),
        }
    }
}

/// Returns the cases with times relative to now.
fn cases() -> Vec<HealthCase> {
    let now = Timestamp::now().as_second();
    testing::health_cases(|seconds| Timestamp::from_second(now - seconds).expect("a time").to_string())
}

#[test]
fn lua_health_checks_handle_every_status() -> Result<()> {
    let argo_cd = ArgoCd::new()?;
    let count = cases().len();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut mistakes = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return mistakes;
            }
            mistakes.extend(argo_cd.mismatch(index));
        }
    };
    let mistakes: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("the thread does not panic"))
            .collect()
    });
    assert!(mistakes.is_empty(), "of {count} cases:\n{}", mistakes.join("\n"));
    Ok(())
}

/// The check of one work must not fail, because Argo CD would compare and sync nothing of its Application, for no cluster; nor may its
/// message fill the Application.
#[test]
fn lua_handles_statuses_of_any_size() -> Result<()> {
    let argo_cd = ArgoCd::new()?;
    let condition = |kind: &str, status: &str, message: &str| {
        json!({
            "type": kind, "status": status, "message": message, "observedGeneration": 1,
            "lastTransitionTime": "2026-06-01T11:00:00Z",
        })
    };
    let manifests = |count: usize| -> Value {
        let names = (0..count).map(|number| format!("a{number}"));
        let manifest = |name| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        names.map(manifest).collect()
    };
    let long = "x".repeat(100_000);
    let refused = json!([{
        "resourceMeta": {"kind": "ConfigMap", "name": long, "ordinal": 0},
        "conditions": [condition("Applied", "False", &long)],
    }]);
    for (spec, reported, expected) in [
        (manifests(3000), json!([]), "; and 2997 more"),
        (
            manifests(1),
            json!(vec![json!({}); 2000]),
            "its status is malformed: it has 2000 manifests",
        ),
        (json!([]), refused, "manifests[0]: its message has 100000 bytes"),
    ] {
        let work = json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {"namespace": "eu1", "name": "shop", "generation": 1},
            "spec": {"workload": {"manifests": spec}},
            "status": {"conditions": [condition("Applied", "True", "")], "resourceStatus": {"manifests": reported}},
        });
        let (status, message) = argo_cd.health(0, &work, "UTC")?;
        let now = health::Clock::at(Timestamp::now());
        let evaluated = health::evaluate(&work.to_string(), &now).map_err(anyhow::Error::msg)?;
        assert_eq!(status, evaluated.health.in_argo_cd(), "{expected}");
        assert!(
            message.ends_with(expected) && message.len() < 1000,
            "{expected}: {message:.2000}"
        );
    }
    Ok(())
}

/// The program and the UI extension have the same cases.
#[test]
fn lua_evaluates_values_as_the_program_does() -> Result<()> {
    let argo_cd = ArgoCd::new()?;
    let cases: Value = serde_json::from_str(include_str!("../../ui/test/verdict_cases.json"))?;
    for (at, case) in cases["works"].as_array().context("works")?.iter().enumerate() {
        let work = &case["work"];
        let (status, message) = argo_cd.health(at, work, "UTC")?;
        let now = health::Clock::at(Timestamp::now());
        let evaluated = health::evaluate(&work.to_string(), &now).map_err(anyhow::Error::msg)?;
        assert_eq!(status, evaluated.health.in_argo_cd(), "{work}");
        let is_deleted_in_old_argo_cd = message.starts_with("Pending deletion");
        assert!(
            message == evaluated.summary() || is_deleted_in_old_argo_cd,
            "{message}: {work}"
        );
    }
    Ok(())
}
