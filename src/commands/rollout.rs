//! `rollout`: look at the rollouts of an Application with a Placement, continue them, and take them back.

use super::admission::why_unenforced;
use super::install::{InstallHub, finish, with_hub};
use super::{Exit, print_answer, progress, warn};
use crate::cli::{RolloutArgs, RolloutCommand, RolloutStatusArgs};
use crate::diagnosis;
use crate::fetch::{ApplicationState, WorkReader};
use crate::list;
use crate::rollout::{Rollout, SetChange, placement_of};
use crate::workload::items;
use hub::HubObject;
use jiff::Timestamp;
use manifest::problem::Problems;
use ocm::application_works::ApplicationName;
use ocm::health::{Clock, evaluate};
use ocm::ownership::OF_PLACEMENT;
use ocm::resources::{APPLICATIONS, DECISIONS, WORK_SETS};
use ocm::work::SET_KIND;
use primitives::object_ref::ObjectRef;
use serde_json::Value;
use std::fmt::{Display, Write as _};

/// The policy that limits the agents of managed clusters and its binding, before the namespace of Argo CD.
const POLICY: &str = "argocd-ocm-cmp-clusters";

pub(super) fn run(command: &RolloutCommand) -> Result<Exit, Problems> {
    match command {
        RolloutCommand::Status(args) => status(args),
        RolloutCommand::Resume(args) => change(args, Rollout::resume, "continues", |change, application| {
            let place = place_of_settings(application);
            format!("to keep that at the next sync, set in {place}: {}", change.summary)
        }),
        RolloutCommand::Undo(args) => {
            let undo = |rollout: &Rollout| rollout.undo(args.like.as_deref());
            change(&args.of, undo, "returns to the earlier content", |change, _| {
                format!(
                    "{}; revert the commit in Git: the next commit or sync delivers what Git has",
                    change.summary
                )
            })
        }
    }
}

fn status(args: &RolloutStatusArgs) -> Result<Exit, Problems> {
    let (text, undelivered, is_complete) = with_rollouts(&args.of, "reading the hub", async |_, state| {
        let is_complete = state.undelivered.is_empty() && state.rollouts.iter().all(Rollout::is_complete);
        let text = list::format_list(&*state.rollouts, args.output)?;
        Ok((text, state.undelivered, is_complete))
    })?;
    warn(&undelivered);
    print_answer("rollout", &text, Exit::of_answer(is_complete))
}

/// The rollouts of an Application.
struct ReadRollouts {
    rollouts: Vec<Rollout>,
    application: Value,
    /// The reasons why the rollouts do not deliver its current version, or not yet: one line each.
    undelivered: Vec<String>,
}

/// Changes the sets whose rollouts are not complete, or all if all are. Those that need no change stay: the command may have been
/// interrupted after it changed them.
fn change(
    args: &RolloutArgs,
    decide: impl Fn(&Rollout) -> Result<Option<SetChange>, String>,
    what: &str,
    advice: impl Fn(&SetChange, &Value) -> String,
) -> Result<Exit, Problems> {
    let mut lines = String::new();
    let done = with_rollouts(args, "changing the rollout", async |hub, state| {
        let mut rollouts = state.rollouts;
        if rollouts.iter().any(Rollout::is_open) {
            rollouts.retain(Rollout::is_open);
        }
        let (mut changes, mut unchanged) = (Vec::new(), Vec::new());
        for rollout in &rollouts {
            match decide(rollout)? {
                Some(change) => changes.push((rollout, change)),
                None => unchanged.push(format!(
                    "ManifestWorkReplicaSet {} needs no change: {}",
                    rollout.object_ref(),
                    rollout.headline()
                )),
            }
        }
        if changes.is_empty() {
            return Problems::or(unchanged, ());
        }
        if heals_itself(&state.application) {
            let settings = changes
                .iter()
                .map(|(_, change)| change.summary.as_str())
                .collect::<Vec<_>>();
            let place = place_of_settings(&state.application);
            let first = match generating_set(&state.application) {
                Some(_) => format!("set selfHeal to false in {place}"),
                None => format!("run argocd app set {} --self-heal=false", args.application),
            };
            return Err(Problems::one(format!(
                "Application {} has selfHeal, with which Argo CD would revert the change ({}): {first}, or change Git or the settings in \
                 {place}",
                args.application,
                settings.join(", "),
            )));
        }
        let is_reverted = |(rollout, change): &(&Rollout, SetChange)| {
            is_reverted_by_sync(&state.application, &rollout.object_ref(), change.content.is_some())
        };
        let is_undo = changes.iter().any(|(_, change)| change.content.is_some());
        if changes.iter().any(is_reverted) {
            let name = &args.application;
            return Err(Problems::one(if is_undo {
                format!(
                    "Argo CD is syncing Application {name}, and would go on with the new version: run argocd app terminate-op {name}, \
                     then this command again"
                )
            } else {
                format!(
                    "Argo CD is syncing Application {name}, and would revert the change: run argocd app terminate-op {name}, then this \
                     command again"
                )
            }));
        }
        if is_undo {
            check_agents_are_limited(&hub, &args.argo_cd.namespace).await?;
        }
        for (rollout, change) in changes {
            if let Some(content) = &change.content {
                lines.push_str(&rollout.format_difference(content));
            }
            let set = rollout.object_ref();
            hub.patch_spec(&WORK_SETS.path(&set.namespace), rollout.set(), &change.patch)
                .await?;
            writeln!(
                lines,
                "ManifestWorkReplicaSet {set} {what}; {}",
                advice(&change, &state.application)
            )
            .expect("writing to a String never fails");
        }
        for line in unchanged {
            lines.extend([&*line, "\n"]);
        }
        Ok(())
    });
    finish(&lines, done)
}

/// Checks that the agents of managed clusters cannot change the specs of works: the content of one work goes to all clusters.
async fn check_agents_are_limited(hub: &InstallHub, namespace: &str) -> Result<(), String> {
    let policy = format!("{POLICY}.{namespace}");
    match why_unenforced(hub, &policy, &policy).await? {
        None => Ok(()),
        Some(missing) => Err(format!(
            "the earlier content is not trusted, because agents of managed clusters may change works: {missing}: revert the commit in Git, \
             run argocd app rollback, or run argocd-ocm-cmp install with the feature agent-admission before the next rollout"
        )),
    }
}

/// Returns true if Argo CD reverts changes of the Application's objects.
fn heals_itself(application: &Value) -> bool {
    let automated = &application["spec"]["syncPolicy"]["automated"];
    automated["selfHeal"] == true && automated["enabled"] != false
}

/// Returns true if the sync of an Application that is requested or running still applies this set: it has not yet, or a next attempt
/// will. After `rollout undo`, the set is healthy with its earlier content, so that any sync goes on with later waves and hooks of the
/// new version (`Sync` in gitops-engine, `processRequestedAppOperation` in Argo CD).
fn is_reverted_by_sync(application: &Value, set: &ObjectRef, is_undo: bool) -> bool {
    let sync = &application["status"]["operationState"];
    let is_set = |result: &Value| {
        let text = |key| result[key].as_str().unwrap_or_default();
        text("kind") == SET_KIND && ObjectRef::new(text("namespace"), text("name")) == *set
    };
    let is_applied = || items(&sync["syncResult"]["resources"]).iter().any(is_set);
    match sync["phase"].as_str() {
        _ if application["operation"].is_null() => false,
        Some("Running") => is_undo || !sync["finishedAt"].is_null() || !is_applied(),
        phase => phase != Some("Terminating"),
    }
}

/// Returns the ApplicationSet that generates an Application, and would revert a change of it.
fn generating_set(application: &Value) -> Option<&str> {
    let mut owners = items(&application["metadata"]["ownerReferences"]).iter();
    owners.find(|owner| owner["kind"] == "ApplicationSet")?["name"].as_str()
}

fn place_of_settings(application: &Value) -> String {
    generating_set(application).map_or_else(
        || "the Application".to_owned(),
        |set| format!("the template of ApplicationSet {set}"),
    )
}

/// Returns why the works of an Application are not, or not yet, of its current version.
fn undelivered(state: &ApplicationState, name: &ObjectRef) -> Vec<String> {
    let Some(application) = state.application.found() else {
        return Vec::new();
    };
    if application.running_sync().is_some() {
        return vec![format!("Argo CD is syncing Application {name}")];
    }
    let problems = diagnosis::problems_of_works(application, state.clusters.as_ref());
    let lines = problems
        .iter()
        .map(|problem| format!("Application {name}: {}", problem.line()));
    lines.collect()
}

/// Reads the rollouts of an Application, and passes them to `run`.
fn with_rollouts<T>(
    args: &RolloutArgs,
    what: &str,
    run: impl AsyncFnOnce(InstallHub, ReadRollouts) -> Result<T, Problems>,
) -> Result<T, Problems> {
    let application = ApplicationName::named(&args.application, &args.argo_cd.namespace)?;
    let state = progress::shown("reading the works on the hub", || {
        WorkReader::connect(&args.hub)?.read_works(&application, &[])
    });
    let state = state?;
    warn(&state.notices);
    let now = Timestamp::now();
    let clock = Clock::at(now);
    let mut sets = Vec::new();
    let mut works = Vec::new();
    for text in &state.works {
        let no_work = |error: &dyn Display| Problems::one(format!("the hub answers with {error}"));
        let status = evaluate(text, &clock).map_err(|error| no_work(&error))?;
        let HubObject(work) = serde_json::from_str(text).map_err(|error| no_work(&error))?;
        match status.cluster() {
            Some(_) => works.push((work, status)),
            None => sets.push(work),
        }
    }
    let ApplicationName { namespace, name, .. } = &application;
    if sets.is_empty() {
        return Err(Problems::one(format!(
            "Application {namespace}/{name} has no ManifestWorkReplicaSet: check its name, or that it has a placement"
        )));
    }
    sets.sort_by_key(|set| set["metadata"]["name"].to_string());
    with_hub(&args.hub, what, async |hub| {
        let mut rollouts = Vec::new();
        for set in sets {
            let placement = placement_of(&set);
            let label = format!("{OF_PLACEMENT}={}", placement.name);
            let decisions = hub.list(&DECISIONS.path(&placement.namespace), &label).await?;
            rollouts.push(Rollout::new(
                set,
                &works,
                &decisions.unwrap_or_default(),
                &state.holds,
                now,
            ));
        }
        let application = hub.get(&APPLICATIONS.path(namespace), name).await?;
        let state = ReadRollouts {
            rollouts,
            application: application.unwrap_or_default(),
            undelivered: undelivered(&state, &ObjectRef::new(namespace, name)),
        };
        run(hub, state).await
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_sync_that_is_not_done_with_a_set_reverts_its_change() {
        let applied = json!({"resources": [{"kind": SET_KIND, "namespace": "placements", "name": "shop-x1"}]});
        for (operation, state, reverted) in [
            (
                Value::Null,
                json!({"phase": "Succeeded", "syncResult": applied}),
                [false, false],
            ),
            (
                json!({}),
                json!({"phase": "Succeeded", "syncResult": applied}),
                [true, true],
            ),
            (json!({}), json!({"phase": "Running", "syncResult": {}}), [true, true]),
            (
                json!({}),
                json!({"phase": "Running", "syncResult": applied}),
                [false, true],
            ),
            // It waits for its next attempt.
            (
                json!({}),
                json!({"phase": "Running", "syncResult": applied, "finishedAt": "x"}),
                [true, true],
            ),
            (
                json!({}),
                json!({"phase": "Terminating", "syncResult": applied}),
                [false, false],
            ),
        ] {
            let application = json!({"operation": operation, "status": {"operationState": state}});
            let set = ObjectRef::new("placements", "shop-x1");
            let is_reverted = [false, true].map(|is_undo| is_reverted_by_sync(&application, &set, is_undo));
            assert_eq!(is_reverted, reverted, "{application}");
        }
    }

    #[test]
    fn policy_has_the_name_in_its_file() {
        let file = crate::embedded::text("deploy/agent_admission.yaml");
        assert_eq!(file.matches(&format!("  name: {POLICY}.argocd\n")).count(), 2, "{file}");
    }
}
