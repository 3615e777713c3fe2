//! Finds works for which an agent or OCM should have done something minutes ago. Argo CD shows them as Progressing, as it does
//! for the seconds that this usually takes.

use super::conditions::{get_text, map};
use super::{Clock, HealthStatus, WorkStatus};
use manifest::value::Map;

/// The number of seconds after which a step is overdue.
pub const OVERDUE: i64 = 120;

/// Returns what is overdue: the first report on the last change, or the deletion.
pub(super) fn evaluate(fields: &Map<'_>, status: &WorkStatus, clock: &Clock) -> Option<String> {
    let metadata = map(fields, "metadata")?;
    let since = match get_text(metadata, "deletionTimestamp") {
        Some(deleted) => deleted,
        None if status.health == HealthStatus::Waiting => {
            last_change(metadata).max(get_text(metadata, "creationTimestamp")?)
        }
        None => return None,
    };
    let minutes = OVERDUE / 60;
    clock
        .is_older(since, OVERDUE)
        .then(|| format!("{}, for more than {minutes} minutes", status.summary()))
}

/// Returns the time of the last write to the spec.
pub(super) fn last_change<'m>(metadata: &'m Map<'_>) -> &'m str {
    let of_spec = |entry: &&Map<'_>| map(entry, "fieldsV1").is_some_and(|fields| fields.get("f:spec").is_some());
    let writes = metadata.maps("managedFields").filter(of_spec);
    writes
        .filter_map(|entry| get_text(entry, "time"))
        .max()
        .unwrap_or_default()
}
