//! `diff`: shows the changes on the hub that a change in Git, or of a setting, would cause, object by object.
//!
//! ```text
//! generate ─▶ works ─┐
//!                    ├─▶ compare ─▶ changes ─▶ text, or a list
//! hub or file ───────┘   (ownership)
//! ```
//!
//! An object has the same identity in every work for a cluster, so that a move from one work to another is not shown as a
//! deletion and a creation. Live works are parsed as a whole; a generated object remains JSON and is parsed when it is compared,
//! one at a time. Except for [`read_input`], all functions here are pure.

mod file;
mod list;
mod shown;
mod text;
mod work;

pub(crate) use file::{read_input, works};
pub(crate) use text::{DiffStyle, format_changes, object_text};
pub(crate) use work::ComparedWork;

use generate::content_hash;
use manifest::key::ObjectKey;
use manifest::text::count;
use manifest::value::Value;
use manifest::yaml;
use ocm::names::WorkName;
use ocm::work::{Target, Work};
use std::collections::{HashMap, HashSet};
use work::ComparedObject;

/// A difference between a live and a generated object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectChange {
    /// The target of the work.
    pub(crate) target: Target,
    /// The changed object or work, and the change if there is no text of it.
    pub(crate) what: String,
    /// The live object.
    pub(crate) before: Option<Side>,
    /// The generated object.
    pub(crate) after: Option<Side>,
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Side {
    pub(crate) work: String,
    /// The object as YAML.
    pub(crate) yaml: String,
}

/// Returns true if works of these names were made under a policy and `name` was not.
pub(crate) fn is_named_by_policy<'n>(name: &WorkName, mut live: impl Iterator<Item = &'n str>) -> bool {
    !name.is_under_policy() && live.any(|work| name.is_of_under_policy(work))
}

/// Returns the differences between live and generated works; none if Argo CD would do nothing.
///
/// Works that are Argo CD hooks exist only while and after they run, and no sync removes them. So they are compared only with
/// works that were never on a hub.
pub(crate) fn compare(live: &[ComparedWork<'_>], generated: &[ComparedWork<'_>], on_hub: bool) -> Vec<ObjectChange> {
    let has_uid = |work: &ComparedWork<'_>| {
        work.work
            .metadata()
            .is_some_and(|metadata| metadata.get("uid").is_some())
    };
    let on_hub = on_hub || live.iter().any(has_uid);
    let is_hook = |work: &ComparedWork<'_>| work.work.annotation("argocd.argoproj.io/hook").is_some();
    let is_compared = |work: &&ComparedWork<'_>| !(on_hub && is_hook(work));
    let live = || live.iter().filter(is_compared);
    let generated = || generated.iter().filter(is_compared);
    let (mut by_target, mut positions) = (Vec::<(&Target, [ComparedWorks<'_>; 2])>::new(), HashMap::new());
    let sides = generated().map(|work| (1, work)).chain(live().map(|work| (0, work)));
    for (side, compared) in sides {
        let target = &compared.work.target;
        let at = *positions.entry(target).or_insert(by_target.len());
        if at == by_target.len() {
            by_target.push((target, [Vec::new(), Vec::new()]));
        }
        by_target[at].1[side].push(compared);
    }
    let of_target = by_target
        .iter()
        .flat_map(|(target, [before, after])| changes(target, before, after));
    of_target.collect()
}

/// The works of a target on one side.
type ComparedWorks<'w> = Vec<&'w ComparedWork<'w>>;

fn changes(target: &Target, before: &ComparedWorks<'_>, after: &ComparedWorks<'_>) -> Vec<ObjectChange> {
    let change = |what, before, after| ObjectChange {
        target: target.clone(),
        what,
        before,
        after,
    };
    let (pairs, unpaired) = pairs(before, after);
    let lines = lines(before, after, &pairs, &unpaired).into_iter();
    let mut changes: Vec<ObjectChange> = lines.map(|line| change(line, None, None)).collect();
    for new in after {
        let Some(old) = named(before, &new.work.name) else {
            continue;
        };
        let work = &new.work;
        let (old, new) = shown::works(old, new);
        if old != new {
            changes.push(change(title(work), Some(side(work, &old)), Some(side(work, &new))));
        }
    }
    let mut has_other_hashes = false;
    for (old, new) in pairs {
        // One generated object at a time: parsed, compared, and dropped.
        let generated = new.object.to_value();
        let live = old.map(|old| old.object.to_value());
        if let Some(live) = &live
            && shown::is_same(live, &generated)
        {
            has_other_hashes |= *live != generated;
            continue;
        }
        let (before, after) = shown::pair(live.as_deref(), Some(&generated));
        changes.push(change(
            new.key().to_string(),
            old.zip(before).map(|(old, value)| side(old.work, &value)),
            after.map(|value| side(new.work, &value)),
        ));
    }
    let generated: HashSet<&ObjectKey> = objects(after).map(WorkObject::key).collect();
    for old in unpaired.into_iter().filter(|old| !generated.contains(old.key())) {
        let (before, _) = shown::pair(Some(&old.object.to_value()), None);
        let before = before.map(|value| side(old.work, &value));
        let stays = if old.work.keeps(old.key()) {
            " (stays on the cluster)"
        } else {
            ""
        };
        changes.push(change(format!("{}{stays}", old.key()), before, None));
    }
    if has_other_hashes && changes.is_empty() {
        // For example, from another version of this program. Other differences follow from the shown ones.
        let what = format!("objects change only in annotation {}", content_hash::CONTENT);
        changes.push(change(what, None, None));
    }
    changes
}

fn side(work: &Work<'_>, value: &Value<'_>) -> Side {
    Side {
        work: work.name.clone(),
        yaml: yaml::write(value),
    }
}

fn title(work: &Work<'_>) -> String {
    format!("{} {}", work.kind(), work.name)
}

#[derive(Clone, Copy)]
struct WorkObject<'w> {
    work: &'w Work<'w>,
    object: &'w ComparedObject<'w>,
}

impl<'w> WorkObject<'w> {
    fn key(self) -> &'w ObjectKey {
        self.object.key()
    }

    /// Returns the identity of the object within its work.
    fn key_in_work(self) -> (&'w ObjectKey, &'w str) {
        (self.key(), self.work.name.as_str())
    }
}

fn objects<'w>(works: &ComparedWorks<'w>) -> impl Iterator<Item = WorkObject<'w>> {
    works.iter().flat_map(|compared| {
        let ComparedWork { work, objects } = compared;
        objects.iter().map(move |object| WorkObject { work, object })
    })
}

/// A generated object, and its live object.
type Pair<'w> = (Option<WorkObject<'w>>, WorkObject<'w>);

/// Returns each generated object with its live object, and the live objects without a generated one. While works are replaced by
/// others, and as a hook of two phases, an object is in several works: objects in works of the same name are paired.
fn pairs<'w>(before: &ComparedWorks<'w>, after: &ComparedWorks<'w>) -> (Vec<Pair<'w>>, Vec<WorkObject<'w>>) {
    let generated: HashSet<_> = objects(after).map(WorkObject::key_in_work).collect();
    let mut live: HashMap<&ObjectKey, Vec<WorkObject<'w>>> = HashMap::new();
    for old in objects(before) {
        live.entry(old.key()).or_default().push(old);
    }
    let mut pairs = Vec::new();
    for new in objects(after) {
        let old = live.get_mut(new.key()).and_then(|live_object| {
            let same = live_object.iter().position(|old| old.work.name == new.work.name);
            let at = same.or_else(|| {
                live_object
                    .iter()
                    .position(|old| !generated.contains(&old.key_in_work()))
            })?;
            Some(live_object.remove(at))
        });
        pairs.push((old, new));
    }
    let rest: HashSet<_> = live.into_values().flatten().map(WorkObject::key_in_work).collect();
    let unpaired = objects(before).filter(|old| rest.contains(&old.key_in_work()));
    (pairs, unpaired.collect())
}

/// Returns the changes of the works themselves, a line each.
fn lines(
    before: &ComparedWorks<'_>,
    after: &ComparedWorks<'_>,
    pairs: &[Pair<'_>],
    unpaired: &[WorkObject<'_>],
) -> Vec<String> {
    let mut lines = Vec::new();
    for ComparedWork { work, objects } in after.iter().filter(|work| named(before, &work.work.name).is_none()) {
        lines.push(format!(
            "{} is new, with {}",
            title(work),
            count(objects.len(), "object")
        ));
    }
    for ComparedWork { work, .. } in before.iter().filter(|work| named(after, &work.work.name).is_none()) {
        lines.push(format!("{} is deleted", title(work)));
    }
    for (Move { from, to, gap }, keys) in moves(after, pairs, unpaired) {
        let (verb, subject, object) = match keys.len() {
            1 => ("moves", "it is", "it"),
            _ => ("move", "they are", "them"),
        };
        let recreated = match gap {
            Some(Gap::NoEarlierWave) => format!(", of no earlier wave: {subject} deleted and created again"),
            Some(Gap::KeptOnlyThere) => format!(
                ", the first that keeps {object}: {subject} deleted and created again: keep {object} in an earlier commit"
            ),
            Some(Gap::OnlyReadThere) => format!(
                ", which only reads {object}: {subject} deleted if the agent has applied {object}: keep {object} in an earlier commit, \
                 with CreateOnly"
            ),
            None => String::new(),
        };
        lines.push(format!("{} {verb} from work {from} to {to}{recreated}", names(&keys)));
    }
    for new in after {
        if named(before, &new.work.name).is_some_and(|old| has_another_order(old, new)) {
            lines.push(format!("{} changes the order of its objects", title(&new.work)));
        }
    }
    lines
}

fn named<'w>(works: &ComparedWorks<'w>, name: &str) -> Option<&'w ComparedWork<'w>> {
    works.iter().find(|work| work.work.name == name).copied()
}

/// A move of objects from one work to another.
#[derive(PartialEq)]
struct Move<'w> {
    from: &'w str,
    to: &'w str,
    /// The reason for which the source deletes the objects.
    gap: Option<Gap>,
}

/// The reason for which no work owns an object when a work drops it.
#[derive(Clone, Copy, PartialEq)]
enum Gap {
    /// The source drops it before the destination is applied: Argo CD applies the works of a wave at once. A work that is deleted as a
    /// whole is deleted last.
    NoEarlierWave,
    /// The destination keeps it, and so does not own it.
    KeptOnlyThere,
    /// The destination has the update strategy `ReadOnly` for it, with which the agent neither owns nor creates it.
    OnlyReadThere,
}

fn moves<'w>(
    after: &ComparedWorks<'_>,
    pairs: &[Pair<'w>],
    unpaired: &[WorkObject<'w>],
) -> Vec<(Move<'w>, Vec<&'w ObjectKey>)> {
    let stays = |work: &Work<'_>| named(after, &work.name).is_some();
    let generated: HashMap<&ObjectKey, WorkObject<'_>> = pairs.iter().map(|(_, new)| (new.key(), *new)).collect();
    let in_pairs = pairs.iter().filter_map(|(old, new)| {
        let old = (*old)?;
        let gap = if old.work.keeps(old.key()) {
            None
        } else if new.work.only_reads(new.key()) {
            Some(Gap::OnlyReadThere)
        } else if stays(old.work) && old.work.wave() <= new.work.wave() {
            Some(Gap::NoEarlierWave)
        } else {
            new.work.keeps(new.key()).then_some(Gap::KeptOnlyThere)
        };
        Some((old, *new, gap))
    });
    // An object in two works, one of which drops it and stays.
    let dropped = unpaired
        .iter()
        .filter(|old| stays(old.work))
        .filter_map(|old| Some((*old, *generated.get(old.key())?, None)));
    let mut moves: Vec<(Move<'_>, Vec<&ObjectKey>)> = Vec::new();
    for (old, new, gap) in in_pairs.chain(dropped) {
        let (from, to) = (old.work.name.as_str(), new.work.name.as_str());
        if from == to {
            continue;
        }
        let route = Move { from, to, gap };
        match moves.iter_mut().find(|(known, _)| *known == route) {
            Some((_, keys)) => keys.push(old.key()),
            None => moves.push((route, vec![old.key()])),
        }
    }
    moves
}

/// Names a few objects, and counts the rest.
fn names(keys: &[&ObjectKey]) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> = keys.iter().take(NAMED).map(ToString::to_string).collect();
    match keys.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Returns true if the objects on both sides are in different orders, which are the orders in which they are applied.
fn has_another_order(before: &ComparedWork<'_>, after: &ComparedWork<'_>) -> bool {
    let (old, new): (HashSet<_>, HashSet<_>) = (before.keys().collect(), after.keys().collect());
    let before = before.keys().filter(|key| new.contains(key));
    !before.eq(after.keys().filter(|key| old.contains(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(works: &[String]) -> Vec<ComparedWork<'_>> {
        let values = works.iter().map(|work| yaml::json(work).expect("JSON"));
        let works = values.map(|value| Work::new(value).expect("a work"));
        works.map(ComparedWork::from).collect()
    }

    /// Returns a work of ConfigMaps, `NAME=VALUE` each.
    fn work(cluster: &str, name: &str, annotations: &str, objects: &[&str]) -> String {
        let config_map = |object: &&str| {
            let (name, value) = object.split_once('=').expect("NAME=VALUE");
            format!(
                r#"{{"apiVersion":"v1","data":{{"k":"{value}"}},"kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"shop"}}}}"#
            )
        };
        let objects: Vec<String> = objects.iter().map(config_map).collect();
        format!(
            r#"{{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{{"annotations":{{{annotations}}},"name":"{name}","namespace":"{cluster}"}},"spec":{{"workload":{{"manifests":[{}]}}}}}}"#,
            objects.join(",")
        )
    }

    /// Returns the changes, with the names of works in place of whole sides.
    fn changes_of(live: &[String], generated: &[String]) -> Vec<String> {
        let summary = |change: ObjectChange| {
            let side = |side: Option<Side>| side.map_or(String::new(), |side| side.work);
            let sides = match (change.before, change.after) {
                (None, None) => String::new(),
                (before, after) => format!(": {}>{}", side(before), side(after)),
            };
            format!("{} {}{sides}", change.target, change.what)
        };
        let changes = compare(&parsed(live), &parsed(generated), false);
        changes.into_iter().map(summary).collect()
    }

    /// Everything after `.part-` in the name of a work belongs to the Application.
    #[test]
    fn names_and_values_of_others_change_nothing_on_a_terminal() {
        let hostile = "shop.part-\\u001b[2J\\u202e";
        let live = [work("c", hostile, "", &["a=1\\u202e"])];
        let changes = compare(&parsed(&live), &parsed(&[work("c", "shop", "", &["a=2"])]), false);
        let style = DiffStyle {
            colours: false,
            live: "live".to_owned(),
            changed: "generated",
        };
        let text = format_changes(&changes, &style);
        assert!(text.contains("--- live: shop.part-\u{fffd}[2J\u{fffd}\n"), "{text}");
        assert!(text.contains("-  k: \"1\\u202e\"\n"), "{text}");
        assert!(
            !text.replace('\n', "").contains(manifest::text::is_unprintable),
            "{text}"
        );
    }

    #[test]
    fn object_moving_between_works_is_unchanged() {
        let live = [work("c", "shop", "", &["a=1", "b=1", "c=1", "d=1", "e=1"])];
        let generated = [
            work("c", "shop", "", &["a=1"]),
            work("c", "shop.part-b1", "", &["b=1", "c=2", "d=1", "e=1"]),
        ];
        assert_eq!(
            changes_of(&live, &generated),
            [
                "c ManifestWork shop.part-b1 is new, with 4 objects",
                "c ConfigMap shop/b, ConfigMap shop/c, ConfigMap shop/d and 1 more move from work shop to shop.part-b1, of no earlier wave: \
                 they are deleted and created again",
                "c ConfigMap shop/c: shop>shop.part-b1",
            ]
        );
        assert_eq!(
            changes_of(&generated, &live)[..2],
            [
                "c ManifestWork shop.part-b1 is deleted",
                "c ConfigMap shop/b, ConfigMap shop/c, ConfigMap shop/d and 1 more move from work shop.part-b1 to shop",
            ]
        );
        assert!(changes_of(&live, &live).is_empty());
    }

    #[test]
    fn compares_each_cluster_separately() {
        let live = [work("a", "shop", "", &["x=1"]), work("b", "shop", "", &["x=1"])];
        let generated = [work("c", "shop", "", &["x=1"]), work("a", "shop", "", &["x=1"])];
        assert_eq!(
            changes_of(&live, &generated),
            [
                "c ManifestWork shop is new, with 1 object",
                "c ConfigMap shop/x: >shop",
                "b ManifestWork shop is deleted",
                "b ConfigMap shop/x: shop>",
            ]
        );
    }

    #[test]
    fn object_in_two_works_moves_when_one_drops_it() {
        let live = [
            work("c", "shop", "", &["a=1", "b=1"]),
            work("c", "shop.part-b0", "", &["a=2"]),
        ];
        assert_eq!(
            changes_of(&live, &[work("c", "shop.part-b0", "", &["a=2", "b=1"])]),
            [
                "c ManifestWork shop is deleted",
                "c ConfigMap shop/b moves from work shop to shop.part-b0",
            ]
        );
        // One of the two works drops it and stays.
        let generated = [work("c", "shop", "", &["b=1"]), work("c", "shop.part-b0", "", &["a=2"])];
        assert_eq!(
            changes_of(&live, &generated),
            ["c ConfigMap shop/a moves from work shop to shop.part-b0"]
        );
    }

    #[test]
    fn object_moving_to_a_later_wave_is_deleted_and_recreated() {
        let wave = r#""argocd.argoproj.io/sync-wave":"5""#;
        let early = [
            work("c", "shop", "", &["a=1", "b=1"]),
            work("c", "shop.part-wave5", wave, &["c=1"]),
        ];
        let late = [
            work("c", "shop", "", &["a=1"]),
            work("c", "shop.part-wave5", wave, &["b=1", "c=1"]),
        ];
        assert_eq!(
            changes_of(&early, &late),
            [
                "c ConfigMap shop/b moves from work shop to shop.part-wave5, of no earlier wave: it is deleted and created again"
            ]
        );
        assert_eq!(
            changes_of(&late, &early),
            ["c ConfigMap shop/b moves from work shop.part-wave5 to shop"]
        );
        // Orphaned objects are not deleted.
        let spec = r#""spec":{"deleteOption":{"propagationPolicy":"SelectivelyOrphan","selectivelyOrphans":{"orphaningRules":
            [{"name":"b","namespace":"shop","resource":"configmaps"}]}},"#;
        let orphaning = early.clone().map(|work| work.replace(r#""spec":{"#, spec));
        let lines = changes_of(&orphaning, &late);
        assert!(
            lines.contains(&"c ConfigMap shop/b moves from work shop to shop.part-wave5".to_owned()),
            "{lines:?}"
        );
        // The destination does not own what it keeps.
        let kept_there = [work("c", "shop.part-b1", "", &["a=1", "b=1"]).replace(r#""spec":{"#, spec)];
        assert_eq!(
            changes_of(&early[..1], &kept_there)[2..4],
            [
                "c ConfigMap shop/a moves from work shop to shop.part-b1",
                "c ConfigMap shop/b moves from work shop to shop.part-b1, the first that keeps it: it is deleted and created again: \
                 keep it in an earlier commit",
            ]
        );
        // Nor does one that only reads it own it.
        let config = |name: &str, strategy: &str| {
            format!(
                r#"{{"resourceIdentifier":{{"name":"{name}","namespace":"*","resource":"configmaps"}},"updateStrategy":{{"type":"{strategy}"}}}}"#
            )
        };
        let configs = [config("b", "ReadOnly"), config("*", "ServerSideApply")].join(",");
        let read_there = [work("c", "shop.part-b1", "", &["a=1", "b=1"])
            .replace(r#""spec":{"#, &format!(r#""spec":{{"manifestConfigs":[{configs}],"#))];
        assert_eq!(
            changes_of(&early[..1], &read_there)[2..4],
            [
                "c ConfigMap shop/a moves from work shop to shop.part-b1",
                "c ConfigMap shop/b moves from work shop to shop.part-b1, which only reads it: it is deleted if the agent has applied it: \
                 keep it in an earlier commit, with CreateOnly",
            ]
        );
        // A work that is deleted as a whole is deleted last.
        assert_eq!(
            changes_of(&[work("c", "shop", "", &["b=1", "c=1"])], &late[1..])[2..],
            ["c ConfigMap shop/b, ConfigMap shop/c move from work shop to shop.part-wave5"]
        );
    }

    #[test]
    fn live_hooks_are_not_compared() {
        let live = [work("c", "shop", "", &["a=1"]), work("c", "old", HOOK, &["b=1"])];
        let generated = [work("c", "shop", "", &["a=1"]), work("c", "new", HOOK, &["c=1"])];
        assert_eq!(changes_of(&live, &generated).len(), 4);
        assert!(compare(&parsed(&live), &parsed(&generated), true).is_empty());
        let listed = live.map(|work| work.replacen(r#""name""#, r#""uid":"x","name""#, 1));
        assert!(changes_of(&listed, &generated).is_empty());
    }

    const HOOK: &str = r#""argocd.argoproj.io/hook":"SyncFail""#;

    #[test]
    fn shows_changed_annotations_and_order_of_a_work() {
        let wave = |wave: &str| format!(r#""argocd.argoproj.io/sync-wave":"{wave}""#);
        let tracked = r#""argocd.argoproj.io/tracking-id":"shop:x","example.com/note":"else""#;
        let generated = [work("c", "shop", "", &["a=1"])];
        assert!(changes_of(&[work("c", "shop", tracked, &["a=1"])], &generated).is_empty());
        assert_eq!(
            changes_of(&[work("c", "shop", &wave("2"), &["a=1"])], &generated),
            ["c ManifestWork shop: shop>shop"]
        );
        let other_order = [work("c", "shop", "", &["b=1", "a=1", "c=1"])];
        assert_eq!(
            changes_of(&other_order, &[work("c", "shop", "", &["a=1", "b=1"])]),
            [
                "c ManifestWork shop changes the order of its objects",
                "c ConfigMap shop/c: shop>",
            ]
        );
    }
}
