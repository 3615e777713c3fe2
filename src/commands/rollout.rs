//! `rollout`: look at the rollouts of an Application with a Placement, continue them, and take them back.

use super::install::{InstallHub, finish, with_hub};
use super::{Exit, print_answer, progress};
use crate::cli::{RolloutArgs, RolloutCommand, RolloutStatusArgs};
use crate::fetch::WorkReader;
use crate::list;
use crate::rollout::{Rollout, Rollouts, SetChange, placement_of};
use jiff::Timestamp;
use manifest::problem::Problems;
use ocm::application_works::ApplicationName;
use ocm::health::{Clock, evaluate};
use ocm::ownership::OF_PLACEMENT;
use ocm::resources::{APPLICATIONS, DECISIONS, WORK_SETS};
use primitives::object_ref::ObjectRef;
use serde_json::Value;
use std::fmt::{Display, Write as _};

pub(super) fn run(command: &RolloutCommand) -> Result<Exit, Problems> {
    match command {
        RolloutCommand::Status(args) => status(args),
        RolloutCommand::Resume(args) => change(args, Rollout::resume, "continues", |change| {
            format!(
                "to keep that at the next sync, set in the Application: {}",
                change.summary
            )
        }),
        RolloutCommand::Undo(args) => {
            let undo = |rollout: &Rollout| rollout.undo(args.like.as_deref());
            change(&args.of, undo, "returns to the earlier content", |change| {
                format!(
                    "{}; revert the commit in Git: the next commit or sync delivers what Git has",
                    change.summary
                )
            })
        }
    }
}

fn status(args: &RolloutStatusArgs) -> Result<Exit, Problems> {
    let (text, is_complete) = with_rollouts(&args.of, "reading the hub", async |_, rollouts, _| {
        let is_complete = rollouts.0.iter().all(Rollout::is_complete);
        Ok((list::format_list(&rollouts, args.output)?, is_complete))
    })?;
    print_answer("rollout", &text, Exit::of_answer(is_complete))
}

/// Changes the sets whose rollouts are not complete, or all if all are.
fn change(
    args: &RolloutArgs,
    decide: impl Fn(&Rollout) -> Result<SetChange, String>,
    what: &str,
    advice: impl Fn(&SetChange) -> String,
) -> Result<Exit, Problems> {
    let mut lines = String::new();
    let done = with_rollouts(
        args,
        "changing the rollout",
        async |hub, Rollouts(mut rollouts), application| {
            if rollouts.iter().any(Rollout::is_open) {
                rollouts.retain(Rollout::is_open);
            }
            let changes: Result<Vec<_>, String> =
                rollouts.iter().map(|rollout| Ok((rollout, decide(rollout)?))).collect();
            let changes = changes?;
            if heals_itself(&application) {
                let settings = changes
                    .iter()
                    .map(|(_, change)| change.summary.as_str())
                    .collect::<Vec<_>>();
                return Err(Problems::one(format!(
                    "Application {} has selfHeal, with which Argo CD would revert the change ({}): run argocd app set {} --self-heal=false, or \
                 change Git or the settings of the Application",
                    args.application,
                    settings.join(", "),
                    args.application
                )));
            }
            for (rollout, change) in changes {
                let set = rollout.object_ref();
                hub.patch(&WORK_SETS.path(&set), &set.name, &change.patch).await?;
                writeln!(lines, "ManifestWorkReplicaSet {set} {what}; {}", advice(&change))
                    .expect("writing to a String never fails");
            }
            Ok(())
        },
    );
    finish(&lines, done)
}

/// Returns true if Argo CD reverts changes of the Application's objects.
fn heals_itself(application: &Value) -> bool {
    let automated = &application["spec"]["syncPolicy"]["automated"];
    automated["selfHeal"] == true && automated["enabled"] != false
}

/// Reads the rollouts of an Application, and the Application, and passes them to `run`.
fn with_rollouts<T>(
    args: &RolloutArgs,
    what: &str,
    run: impl AsyncFnOnce(InstallHub, Rollouts, Value) -> Result<T, Problems>,
) -> Result<T, Problems> {
    let application = ApplicationName::named(&args.application, &args.argo_cd.namespace)?;
    let state = progress::shown("reading the works on the hub", || {
        WorkReader::connect(&args.hub)?.read_works(&application, &[])
    });
    let state = state?;
    let now = Timestamp::now();
    let clock = Clock::at(now);
    let mut sets = Vec::new();
    let mut works = Vec::new();
    for text in &state.works {
        let no_work = |error: &dyn Display| Problems::one(format!("the hub answers with {error}"));
        let status = evaluate(text, &clock).map_err(|error| no_work(&error))?;
        let work: Value = serde_json::from_str(text).map_err(|error| no_work(&error))?;
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
            let decisions = hub.list(&DECISIONS.path(&placement), &label).await?;
            rollouts.push(Rollout::new(
                set,
                &works,
                &decisions.unwrap_or_default(),
                &state.holds,
                now,
            ));
        }
        let path = APPLICATIONS.path(&ObjectRef::new(namespace, ""));
        let application = hub.get(&path, name).await?;
        run(hub, Rollouts(rollouts), application.unwrap_or_default()).await
    })
}
