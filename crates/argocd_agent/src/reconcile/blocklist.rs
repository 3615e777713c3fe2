//! The blocklist of the principal: certificates that it refuses before they expire, because their agents were revoked or
//! uninstalled. argocd-agent reads this ConfigMap in versions after 0.9.0; with older ones a certificate is valid for its full
//! day.

use super::authority;
use super::shared::ensure;
use assignment::certificates::{records, unexpired};
use hub_state::{Blocked, Cache, Kind, Object};
use jiff::{SignedDuration, Timestamp};
use ocm::argocd_agent as names;
use pki::CLOCK_SKEW;
use primitives::object_ref::ObjectRef;
use primitives::time_math::{after, before};
use primitives::timestamp::format_time;
use runtime::action::Write;
use serde_json::{Map, Value, json};

/// The prefix of entries that the controller wrote and may remove; argocd-agent ignores it.
const OURS: &str = "argocd-ocm-cmp: ";

/// The maximum size of all entries in bytes: an object has room for 1 MiB. Entries of revoked agents come first.
const SIZE: usize = 900 * 1024;

fn existing(cache: &Cache) -> Option<&Object> {
    cache.object(Kind::Blocklist, &ObjectRef::new(cache.argocd(), names::BLOCKLIST))
}

pub(super) fn has(cache: &Cache, fingerprint: &str) -> bool {
    existing(cache).is_some_and(|existing| existing.object["data"].get(fingerprint).is_some())
}

/// Returns the time when the certificate of one of our entries expires.
fn until(text: &Value) -> Option<&str> {
    let ours = text.as_str()?.strip_prefix(OURS)?;
    Some(ours.rsplit_once(" until ")?.1)
}

/// Returns the time when the first of our entries can be removed.
pub(super) fn requeue_after(cache: &Cache, now: Timestamp) -> Option<Timestamp> {
    let all = existing(cache)?.object["data"].as_object().into_iter().flatten();
    let first: Timestamp = all.filter_map(|(_, text)| until(text)).min()?.parse().ok()?;
    let is_over_at = after(after(first, CLOCK_SKEW), SignedDuration::from_secs(1));
    Some(is_over_at).filter(|at| *at > now)
}

/// Returns the next write. Removes an entry only after its certificate has expired.
pub(super) fn next_write(cache: &Cache, now: Timestamp) -> Option<Write> {
    let existing = existing(cache);
    let known = existing.and_then(|existing| existing.object["data"].as_object());
    let mut new: Vec<(Blocked, String, String)> = Vec::new();
    for (cluster, _, record) in records(cache) {
        let mut missing = unexpired(record, now)
            .filter(|certificate| known.is_none_or(|known| !known.contains_key(&*certificate.fingerprint)))
            .peekable();
        if missing.peek().is_none() {
            continue;
        }
        if let Some(why) = assignment::for_cluster(cache, cluster).blocked {
            new.extend(missing.map(|certificate| {
                let text = format!("{OURS}{cluster} until {}", format_time(certificate.not_after));
                (why, certificate.fingerprint.to_string(), text)
            }));
        }
    }
    new.sort_unstable();
    // The clock of the principal may be behind.
    let earliest = format_time(before(now, CLOCK_SKEW));
    let is_over = |text: &Value| until(text).is_some_and(|until| *until < *earliest);
    let mut data = Map::new();
    let mut size = 0_usize;
    for (fingerprint, text) in known.into_iter().flatten() {
        if is_over(text) {
            data.insert(fingerprint.clone(), Value::Null);
        } else {
            size = size
                .saturating_add(fingerprint.len())
                .saturating_add(text.as_str().map_or(0, str::len));
        }
    }
    for (_, fingerprint, text) in new {
        size = size.saturating_add(fingerprint.len()).saturating_add(text.len());
        if size > SIZE {
            break;
        }
        data.insert(fingerprint, json!(text));
    }
    if data.is_empty() {
        return None;
    }
    let mut metadata = json!({"name": names::BLOCKLIST, "namespace": **cache.argocd()});
    // An administrator may have created it.
    if existing.is_none() {
        metadata["labels"] = authority::labels();
    }
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    ensure(cache, Kind::Blocklist, config_map)
}
