//! Checks that the AppProjects of Applications with the plugin permit works.

use super::health::matches_pattern;
use super::{Check, refused};
use crate::doctor::hub_state::{HubState, Lookup, Project};
use crate::doctor::message::{Finding, Message, list_names};
use jiff::Timestamp;
use manifest::text::count;
use ocm::work::{GROUP, KIND};
use std::collections::BTreeMap;

pub(super) static CHECK: Check = Check {
    name: "projects",
    messages: &[&NO_PROJECT, &NOT_ALLOWED, &NO_APPLICATIONS, &OK],
    run,
};

static NO_PROJECT: Message = Message::error(
    "projects-missing",
    "AppProject {project} of {applications} does not exist: {names}",
    "apply it, such as proj.yaml, or set another one in spec.project",
);
static NOT_ALLOWED: Message = Message::error(
    "projects-refuse-works",
    "AppProject {project} of {applications} does not permit ManifestWorks: {names}",
    "add group work.open-cluster-management.io and kind ManifestWork to its namespaceResourceWhitelist, as proj.yaml does",
);
static NO_APPLICATIONS: Message = Message::ok("projects-without-applications", "no Application uses the plugin yet");
static OK: Message = Message::ok(
    "projects",
    "the AppProjects of Applications that use the plugin permit works: {names}",
);

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    if !hub_state.has_argo_cd() {
        return Vec::new();
    }
    let applications = match &hub_state.applications {
        Lookup::Found(applications) => applications,
        Lookup::NotFound => return Vec::new(),
        Lookup::Refused(why) => return refused("Applications", why),
    };
    let mut by_project: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for application in applications {
        by_project
            .entry(&application.project)
            .or_default()
            .push(&application.qualified_name);
    }
    if by_project.is_empty() {
        return vec![NO_APPLICATIONS.finding(&[])];
    }
    let projects = match &hub_state.projects {
        Lookup::Found(projects) => projects,
        Lookup::NotFound => return Vec::new(),
        Lookup::Refused(why) => return refused("AppProjects", why),
    };
    let mut findings = Vec::new();
    for (name, users) in &by_project {
        let message = match projects.get(*name) {
            None => &NO_PROJECT,
            Some(project) if !permits_works(project) => &NOT_ALLOWED,
            Some(_) => continue,
        };
        let number = count(users.len(), "Application");
        findings.push(message.finding(&[
            ("project", name),
            ("applications", &number),
            ("names", &list_names(users)),
        ]));
    }
    if findings.is_empty() {
        findings.push(OK.finding(&[("names", &list_names(by_project.keys()))]));
    }
    findings
}

/// Returns true if an AppProject permits works, by Argo CD's rules for namespaced kinds.
fn permits_works(project: &Project) -> bool {
    let has = |list: &[(String, String)]| {
        list.iter()
            .any(|(group, kind)| matches_pattern(group, GROUP) && matches_pattern(kind, KIND))
    };
    project.allowed.as_deref().is_none_or(has) && !has(&project.refused)
}
