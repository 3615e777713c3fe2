//! The requests of `ServiceAccount`s to an API server, from its audit log.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::ControlPlane;
use crate::argocd;

/// The file name of the log, in the folder of a control plane.
const LOG: &str = "audit.log";

/// Enables the audit log of an API server: only for the accounts of Argo CD's namespace, and for a watch when it begins.
pub(super) fn turn_on(command: &mut Command, folder: &Path) -> Result<()> {
    let group = format!("system:serviceaccounts:{}", argocd::NAMESPACE);
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "userGroups": [group]}],
    });
    let file = folder.join("audit-policy.json");
    fs::write(&file, policy.to_string())?;
    command.arg("--audit-policy-file").arg(file);
    command.arg("--audit-log-path").arg(folder.join(LOG));
    Ok(())
}

impl ControlPlane {
    /// Returns the requests of a `ServiceAccount` in Argo CD's namespace to this API server so far, with the answers: the
    /// [events](https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/) of the audit log. A watch has two: when it
    /// has begun and when it has ended.
    pub fn requests_by(&self, account: &str) -> Result<Vec<Value>> {
        let log = self.bench.folder(&self.name)?.join(LOG);
        let log = fs::read_to_string(&log).with_context(|| format!("no {}", log.display()))?;
        let user = format!("system:serviceaccount:{}:{account}", argocd::NAMESPACE);
        // The last line may be incomplete.
        let lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let events = lines.map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        Ok(events
            .into_iter()
            .filter(|event| event["user"]["username"] == *user)
            .collect())
    }
}
