//! Checks that the controller and Argo CD have the permissions from the shipped files.

use crate::doctor::hub_state::{HubState, Lookup};
use crate::doctor::message::{Finding, check, list_first};
use crate::doctor::rights::Permission;
use jiff::Timestamp;
use std::collections::BTreeSet;

check! {
    "rights"
    error MISSING "rights-missing":
        "ServiceAccount {namespace}/{account} is missing permissions from {file}: {rights}",
        "grant them as {file} does, and check that the bindings name this ServiceAccount";
    unreadable CANNOT_CHECK "rights-not-asked":
        "cannot check the permissions of ServiceAccounts: {why}",
        "ask for permission to create subjectaccessreviews of authorization.k8s.io, or ask an administrator to run this";
    ok OK "rights":
        "all permissions from {files} are granted";
}

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let permissions = match &hub_state.permissions {
        Lookup::Found(permissions) => permissions,
        Lookup::NotFound => return Vec::new(),
        Lookup::Refused(why) => return vec![CANNOT_CHECK.finding(&[("why", why)])],
    };
    let mut findings = Vec::new();
    let mut files: Vec<(&str, &str)> = Vec::new();
    for (permission, _) in permissions {
        if !files.contains(&(permission.file, &permission.account)) {
            files.push((permission.file, &permission.account));
        }
    }
    for (file, account) in &files {
        let is_missing = |(permission, granted): &&(Permission, bool)| {
            !granted && permission.file == *file && permission.account == *account
        };
        let missing: Vec<_> = permissions
            .iter()
            .filter(is_missing)
            .map(|(permission, _)| permission)
            .collect();
        if !missing.is_empty() {
            // In the order of the file.
            let mut lines: Vec<String> = missing.iter().map(ToString::to_string).collect();
            lines.dedup();
            findings.push(MISSING.finding(&[
                ("namespace", &hub_state.namespace),
                ("account", account),
                ("file", file),
                ("rights", &list_first(&lines)),
            ]));
        }
    }
    if findings.is_empty() && !files.is_empty() {
        let files: BTreeSet<_> = files.iter().map(|(file, _)| *file).collect();
        let files: Vec<_> = files.into_iter().collect();
        findings.push(OK.finding(&[("files", &files.join(", "))]));
    }
    findings
}
