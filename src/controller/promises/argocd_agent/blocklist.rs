//! The certificates that the principal refuses though they are still good: those of agents that are revoked. argocd-agent reads the
//! ConfigMap after its version 0.9.0; for older ones a certificate lasts its day.

use super::{asking, authority, works};
use crate::agent::names;
use crate::controller::action::Write;
use crate::controller::index::Index;
use crate::controller::resources::CONFIG_MAPS;
use crate::controller::seen::Place;
use crate::controller::watches::Kept;
use crate::status::time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What an entry begins with that we have written, and may take away; argocd-agent does not read it.
const OURS: &str = "argocd-ocm-cmp: ";

/// What is to be written of it. An entry is taken away when its certificate is no longer good, and not before.
pub(super) fn next(index: &Index, argocd: &str, now: Timestamp) -> Option<Write> {
    let place = Place::new(argocd, names::BLOCKLIST);
    let there = index.object(Kept::Blocklist, &place);
    let known = there.and_then(|there| there.object["data"].as_object());
    let mut data = Map::new();
    for cluster in revoked(index, argocd) {
        for (fingerprint, until) in works::issued(index, cluster) {
            if known.is_none_or(|known| !known.contains_key(fingerprint)) {
                data.insert(fingerprint.to_owned(), json!(format!("{OURS}{cluster} until {until}")));
            }
        }
    }
    let now = time(now);
    let is_over = |text: &Value| {
        let ours = text.as_str().and_then(|text| text.strip_prefix(OURS));
        let until = ours.and_then(|ours| ours.rsplit_once(" until "));
        until.is_some_and(|(_, until)| *until < *now)
    };
    let over = known.into_iter().flatten().filter(|(_, text)| is_over(text));
    data.extend(over.map(|(fingerprint, _)| (fingerprint.clone(), Value::Null)));
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

/// Whether all certificates of a cluster's agent are refused, where it is revoked.
pub(super) fn is_told(index: &Index, cluster: &str, argocd: &str) -> bool {
    let there = index.object(Kept::Blocklist, &Place::new(argocd, names::BLOCKLIST));
    let mut issued = works::issued(index, cluster);
    !revoked(index, argocd).contains(cluster)
        || issued.all(|(fingerprint, _)| there.is_some_and(|there| there.object["data"].get(fingerprint).is_some()))
}

/// The clusters whose agents are revoked.
fn revoked<'i>(index: &'i Index, argocd: &'i str) -> BTreeSet<&'i str> {
    let all = asking(index, argocd).flat_map(|(_, _, wanted)| &wanted.revoked);
    all.map(|cluster| &**cluster).collect()
}
