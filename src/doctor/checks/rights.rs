//! Checks that the controller and Argo CD have the permissions from the shipped files.

use crate::doctor::hub_state::{HubState, Lookup};
use crate::doctor::message::{Finding, check, list_first};
use crate::doctor::rights::Permission;
use crate::install::Feature;
use jiff::Timestamp;
use std::collections::BTreeSet;

check! {
    "rights"
    error MISSING "rights-missing":
        "ServiceAccount {namespace}/{account} is missing permissions from {file}: {rights}",
        "grant them with argocd-ocm-cmp install --features {feature}, or as {file} does to this ServiceAccount";
    unreadable CANNOT_CHECK "rights-not-asked":
        "cannot check the permissions of ServiceAccounts: {why}",
        "ask for permission to create subjectaccessreviews of authorization.k8s.io, or ask an administrator to run this";
    ok OK "rights":
        "all permissions from {files} are granted";
}

fn origin(permission: &Permission) -> (&str, &str) {
    (permission.file, &permission.account)
}

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let permissions = match &hub_state.permissions {
        Lookup::Found(permissions) => permissions,
        Lookup::NotFound => return Vec::new(),
        Lookup::Refused(why) => return vec![CANNOT_CHECK.finding(&[("why", why)])],
    };
    let mut findings = Vec::new();
    for of_file in permissions.chunk_by(|(one, _), (other, _)| origin(one) == origin(other)) {
        // In the order of the file.
        let missing = of_file.iter().filter(|(_, is_granted)| !is_granted);
        let mut lines: Vec<String> = missing.map(|(permission, _)| permission.to_string()).collect();
        lines.dedup();
        if !lines.is_empty() {
            let (file, account) = origin(&of_file[0].0);
            let mut features = Feature::all().iter();
            let feature = features.find(|feature| feature.permissions() == Some(file));
            findings.push(MISSING.finding(&[
                ("namespace", &hub_state.namespace),
                ("account", &account),
                ("file", &file),
                ("feature", &feature.map_or("", |feature| feature.name())),
                ("rights", &list_first(&lines)),
            ]));
        }
    }
    if findings.is_empty() && !permissions.is_empty() {
        let files: BTreeSet<_> = permissions.iter().map(|(permission, _)| permission.file).collect();
        let files: Vec<_> = files.into_iter().collect();
        findings.push(OK.finding(&[("files", &files.join(", "))]));
    }
    findings
}
