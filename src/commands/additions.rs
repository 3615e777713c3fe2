//! Our additions to Argo CD's own objects on a hub, and their removal.

use super::install::{ApplyFailure, ApplyOptions, InstallHub, argocd_fields_error, changes_of, qualified_name};
use crate::install::{
    CMD_PARAMS, PARAMS, REDIS_PROXY, ShippedObject, addition_to, drops_redis_proxy, has_additions, other_redis,
    our_managers, required_config_maps,
};
use manifest::problem::Problems;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Returns Argo CD's own objects that exist, and workloads of others to which an earlier release has added.
///
/// # Errors
/// Every reason against removing our fields from them.
pub(super) async fn find_additions(
    hub: &InstallHub,
    ours: &[ShippedObject],
    workloads: &[Value],
) -> Result<Vec<(ShippedObject, Value)>, Problems> {
    let (mut additions, mut problems): (Vec<(ShippedObject, Value)>, _) = (Vec::new(), Vec::new());
    for object in ours.iter().filter(|object| object.is_addition()) {
        if let Some(live) = hub.get(&object.path(), object.name()).await? {
            problems.extend(argocd_fields_error(object, &live));
            additions.push((object.clone(), live));
        }
    }
    for live in workloads {
        if let Some(object) = addition_to(live)
            && !additions.iter().any(|(other, _)| other.is_same(&object))
        {
            problems.extend(argocd_fields_error(&object, live));
            additions.push((object, live.clone()));
        }
    }
    Problems::or(problems, additions)
}

/// The result of removing our fields from one of Argo CD's objects.
pub(super) struct Release {
    /// The lines about it.
    pub(super) lines: String,
    /// The changes of a dry run.
    pub(super) changes: String,
    /// The ConfigMaps that the object's Pods still need to start, because others have added them too.
    pub(super) mounted: BTreeSet<String>,
}

/// Removes our fields from one of Argo CD's objects, and restores its Redis.
pub(super) async fn release_fields(
    hub: &InstallHub,
    object: &ShippedObject,
    mut live: Value,
    dry_run: bool,
) -> Result<Release, Problems> {
    let managers: Vec<_> = our_managers(&live).collect();
    let (note, restart) = restore_redis(hub, object, Some(&live), &object.bare(), dry_run).await?;
    let mut changes = String::new();
    let mut mounted: BTreeSet<String> = required_config_maps(&live).map(str::to_owned).collect();
    for manager in &managers {
        let how = ApplyOptions {
            manager,
            force: false,
            dry_run,
        };
        let applied = hub.apply(&object.bare().of_live(&live), how).await;
        let applied = applied.map_err(|refused| refusal(object, refused))?;
        mounted.retain(|name| required_config_maps(&applied).any(|left| left == name));
        if dry_run {
            changes.push_str(&changes_of(object, &live, &applied));
        } else {
            live = applied;
        }
    }
    let lines = if has_additions(object, &live) && !dry_run {
        format!(
            "{object} keeps fields of ours that other field managers own too: see kubectl get --show-managed-fields\n"
        )
    } else if managers.is_empty() {
        String::new()
    } else {
        format!("{object} restored{note}{}\n{restart}", dry_run_note(dry_run))
    };
    Ok(Release {
        lines,
        changes,
        mounted,
    })
}

/// Restores the Redis that Argo CD used before our principal, if the object will no longer name the principal, and the default is wrong.
/// Callers do this before they apply the object: an interruption must not leave Argo CD without a Redis. Returns the addition to the line
/// about the object, and a line about the workloads to restart.
pub(super) async fn restore_redis(
    hub: &InstallHub,
    object: &ShippedObject,
    live: Option<&Value>,
    desired: &ShippedObject,
    dry_run: bool,
) -> Result<(String, String), Problems> {
    if object.name() != CMD_PARAMS || !live.is_some_and(|live| drops_redis_proxy(live, &desired.value)) {
        return Ok(Default::default());
    }
    let path = object.path();
    let params = hub.get(&path, PARAMS).await?.unwrap_or_default();
    let mut note = String::new();
    if let Some(redis) = other_redis(&params) {
        if !dry_run {
            hub.patch(&path, object.name(), &json!({"data": {"redis.server": redis}}))
                .await?;
        }
        note = format!(", with redis.server {redis}");
    }
    let restart = format!(
        "restart Argo CD's application-controller and repo-server, which use Service {REDIS_PROXY} until then\n"
    );
    Ok((note, restart))
}

fn refusal(object: &ShippedObject, refused: ApplyFailure) -> Problems {
    Problems::one(match refused {
        ApplyFailure::Other(line) => line,
        ApplyFailure::Conflict(_) => format!("{}: unexpected conflict while releasing fields", qualified_name(object)),
    })
}

pub(super) fn dry_run_note(dry_run: bool) -> &'static str {
    if dry_run { " (dry run)" } else { "" }
}
