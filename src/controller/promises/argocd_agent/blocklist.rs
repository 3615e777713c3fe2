//! The certificates that the principal refuses though they have not expired: those of agents that are revoked or were taken off their
//! clusters. argocd-agent reads the ConfigMap after its version 0.9.0; for older ones a certificate lasts its day.

use super::authority;
use super::issued::{self, Blocked};
use crate::agent::names;
use crate::controller::action::Write;
use crate::controller::index::Index;
use crate::controller::resources::CONFIG_MAPS;
use crate::controller::seen::Place;
use crate::controller::watches::Kept;
use crate::status::time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The prefix of the entries that we have written, and may remove; argocd-agent does not read it.
const OURS: &str = "argocd-ocm-cmp: ";

/// The most bytes of all entries: an object has room for 1 MiB. Revoked agents come first.
const SIZE: usize = 900 * 1024;

/// Returns true if a certificate is refused.
pub(super) fn has(index: &Index, argocd: &str, fingerprint: &str) -> bool {
    let there = index.object(Kept::Blocklist, &Place::new(argocd, names::BLOCKLIST));
    there.is_some_and(|there| there.object["data"].get(fingerprint).is_some())
}

/// Returns the next write. An entry is removed when its certificate has expired, and not before.
pub(super) fn next(index: &Index, argocd: &str, now: Timestamp) -> Option<Write> {
    let place = Place::new(argocd, names::BLOCKLIST);
    let there = index.object(Kept::Blocklist, &place);
    let known = there.and_then(|there| there.object["data"].as_object());
    let mut new: Vec<(Blocked, String, String)> = Vec::new();
    for (cluster, _, record) in issued::all(index) {
        let mut missing = issued::good(record, now)
            .filter(|it| known.is_none_or(|known| !known.contains_key(it.fingerprint)))
            .peekable();
        if missing.peek().is_none() {
            continue;
        }
        if let Some(why) = issued::blocked(index, cluster, record, argocd) {
            new.extend(missing.map(|it| {
                let text = format!("{OURS}{cluster} until {}", it.until);
                (why, it.fingerprint.to_owned(), text)
            }));
        }
    }
    new.sort_unstable();
    let now = time(now);
    let is_over = |text: &Value| {
        let ours = text.as_str().and_then(|text| text.strip_prefix(OURS));
        let until = ours.and_then(|ours| ours.rsplit_once(" until "));
        until.is_some_and(|(_, until)| *until < *now)
    };
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
    Some(match there {
        None => Write::Create {
            resource: &CONFIG_MAPS,
            place,
            object: json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": names::BLOCKLIST, "namespace": argocd, "labels": authority::labels()},
                "data": data,
            }),
        },
        Some(there) => Write::Patch {
            resource: &CONFIG_MAPS,
            place,
            body: json!({"metadata": {"resourceVersion": there.version}, "data": data}),
        },
    })
}
