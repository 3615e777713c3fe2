//! Checks that the AppProjects of Applications with the plugin permit works.

use crate::doctor::hub_state::{HubState, Project};
use crate::doctor::message::{APPLICATIONS, Finding, check, list_names};
use jiff::Timestamp;
use ocm::glob;
use ocm::work::{GROUP, KIND};
use std::collections::BTreeMap;

check! {
    "projects"
    error NO_PROJECT "projects-missing":
        "AppProject {project} of {applications} does not exist: {names}",
        "apply it, such as proj.yaml, or set another one in spec.project";
    error NOT_ALLOWED "projects-refuse-works":
        "AppProject {project} of {applications} does not permit ManifestWorks: {names}",
        "add group work.open-cluster-management.io and kind ManifestWork to its namespaceResourceWhitelist, as proj.yaml does";
    ok NO_APPLICATIONS "projects-without-applications":
        "no Application uses the plugin yet";
    ok OK "projects":
        "the AppProjects of Applications that use the plugin permit works: {names}";
}

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    if !hub_state.has_argo_cd() {
        return Vec::new();
    }
    let Some(applications) = hub_state.applications.found() else {
        return hub_state.applications.refusal("Applications");
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
    let Some(projects) = hub_state.projects.found() else {
        return hub_state.projects.refusal("AppProjects");
    };
    let mut findings = Vec::new();
    for (name, users) in &by_project {
        let message = match projects.get(*name) {
            None => &NO_PROJECT,
            Some(project) if !permits_works(project) => &NOT_ALLOWED,
            Some(_) => continue,
        };
        findings.extend(message.about(APPLICATIONS, users, &[("project", name)]));
    }
    OK.if_none(findings, &[("names", &list_names(by_project.keys()))])
}

/// Returns true if an AppProject permits works, by Argo CD's rules for namespaced kinds.
fn permits_works(project: &Project) -> bool {
    let has = |list: &[(String, String)]| {
        list.iter()
            .any(|(group, kind)| glob::matches(group, GROUP) && glob::matches(kind, KIND))
    };
    project.allowed.as_deref().is_none_or(has) && !has(&project.refused)
}
