//! `diff`: shows the changes on the hub that a change in Git, or of a setting, would cause, object by object.
//!
//! ```text
//! generate ─▶ works ─┐
//!                    ├─▶ compare ─▶ changes ─▶ text
//! hub or file ───────┘   (ownership)
//! ```
//!
//! An object has the same identity in every work for a cluster, so that a move from one work to another is not shown as a
//! deletion and a creation. All functions here are pure; [`hub`](crate::fetch) and `main` read.

mod file;
mod shown;
mod text;

pub use file::{read, works};
pub use ocm::ownership::{ListedWork, OF_REPLICA_SET, Ownership};
pub use text::{Style, text};

use generate::content_hash;
use manifest::key::ObjectKey;
use manifest::value::Value;
use manifest::yaml;
use ocm::names::WorkName;
use ocm::work as works;
use ocm::work::{Target, Work};
use std::collections::{HashMap, HashSet};

/// A difference between a live and a generated object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// The target of the work.
    pub target: Target,
    /// The changed object or work, and the change if there is no text of it.
    pub what: String,
    /// The live object.
    pub before: Option<Side>,
    /// The generated object.
    pub after: Option<Side>,
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Side {
    /// The name of the work.
    pub work: String,
    /// The object as YAML.
    pub yaml: String,
}

/// Returns true if works of these names were made under a policy and `name` was not.
#[must_use]
pub fn is_named_by_policy<'n>(name: &WorkName, mut live: impl Iterator<Item = &'n str>) -> bool {
    !name.is_under_policy() && live.any(|work| name.is_of_under_policy(work))
}

/// Returns the differences between live and generated works; none if Argo CD would do nothing.
///
/// Works that are Argo CD hooks exist only while and after they run, and no sync removes them. So they are compared only with
/// works that were never on a hub.
#[must_use]
pub fn compare(live: &[Work<'_>], generated: &[Work<'_>], on_hub: bool) -> Vec<Change> {
    let was_on_hub = |work: &Work<'_>| work.metadata().is_some_and(|metadata| metadata.get("uid").is_some());
    let on_hub = on_hub || live.iter().any(was_on_hub);
    let counts = |work: &&Work<'_>| !(on_hub && work.annotation("argocd.argoproj.io/hook").is_some());
    let live = || live.iter().filter(counts);
    let generated = || generated.iter().filter(counts);
    let mut targets: Vec<&Target> = Vec::new();
    let mut seen = HashSet::new();
    for work in generated().chain(live()) {
        if seen.insert(&work.target) {
            targets.push(&work.target);
        }
    }
    let mut by_target: HashMap<&Target, (Vec<&Work<'_>>, Vec<&Work<'_>>)> = HashMap::new();
    for work in live() {
        by_target.entry(&work.target).or_default().0.push(work);
    }
    for work in generated() {
        by_target.entry(&work.target).or_default().1.push(work);
    }
    let of_target = |target| {
        let (before, after) = &by_target[target];
        changes(target, before, after)
    };
    targets.into_iter().flat_map(of_target).collect()
}

fn changes(target: &Target, before: &[&Work<'_>], after: &[&Work<'_>]) -> Vec<Change> {
    let change = |what, before, after| Change {
        target: target.clone(),
        what,
        before,
        after,
    };
    let before = WorkObject::all(before);
    let after = WorkObject::all(after);
    let (pairs, alone) = pairs(&before, &after);
    let mut changes = Vec::new();
    let mut say = |what| changes.push(change(what, None, None));
    for line in lines(&before, &after, &pairs, &alone) {
        say(line);
    }
    for (work, _) in &after {
        let Some((same, _)) = before.iter().find(|(other, _)| other.name == work.name) else {
            continue;
        };
        let (old, new) = shown::works(same, work);
        if old != new {
            let side = |value: &Value<'_>| Some(side(work, value));
            changes.push(change(title(work), side(&old), side(&new)));
        }
    }
    let mut marked_anew = false;
    for (old, new) in pairs {
        if let Some(old) = old
            && shown::is_same(old.object, new.object)
        {
            marked_anew |= old.object != new.object;
            continue;
        }
        let (before, after) = shown::pair(old.map(|old| old.object), Some(new.object));
        changes.push(change(
            new.key.to_string(),
            old.zip(before).map(|(old, value)| side(old.work, &value)),
            after.map(|value| side(new.work, &value)),
        ));
    }
    let generated: HashSet<&ObjectKey> = objects(&after).map(|carried| &carried.key).collect();
    for old in alone.into_iter().filter(|old| !generated.contains(&old.key)) {
        let (before, _) = shown::pair(Some(old.object), None);
        let before = before.map(|value| side(old.work, &value));
        let stays = if old.work.keeps(&old.key) {
            " (stays on the cluster)"
        } else {
            ""
        };
        changes.push(change(format!("{}{stays}", old.key), before, None));
    }
    if marked_anew && changes.is_empty() {
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

/// An object in a work.
struct WorkObject<'w> {
    work: &'w Work<'w>,
    key: ObjectKey,
    object: &'w Value<'w>,
}

/// Works with their objects.
type Works<'w> = Vec<(&'w Work<'w>, Vec<WorkObject<'w>>)>;

impl<'w> WorkObject<'w> {
    fn all(works: &[&'w Work<'w>]) -> Works<'w> {
        let carried = |work: &'w Work<'w>| {
            let objects = work.manifests().iter().map(|object| WorkObject {
                work,
                key: works::key(object),
                object,
            });
            (work, objects.collect())
        };
        works.iter().map(|work| carried(work)).collect()
    }
}

fn objects<'c, 'w>(works: &'c Works<'w>) -> impl Iterator<Item = &'c WorkObject<'w>> {
    works.iter().flat_map(|(_, objects)| objects)
}

/// A generated object, and its live object.
type Pair<'c, 'w> = (Option<&'c WorkObject<'w>>, &'c WorkObject<'w>);

/// Returns each generated object with its live object, and the live objects without a generated one. While works are replaced by
/// others, and as a hook of two phases, an object is in several works: objects in works of the same name are paired.
fn pairs<'c, 'w>(before: &'c Works<'w>, after: &'c Works<'w>) -> (Vec<Pair<'c, 'w>>, Vec<&'c WorkObject<'w>>) {
    let place = |carried: &'c WorkObject<'w>| (&carried.key, carried.work.name.as_str());
    let stay: HashSet<_> = objects(after).map(place).collect();
    let mut live: HashMap<&ObjectKey, Vec<&WorkObject<'w>>> = HashMap::new();
    for carried in objects(before) {
        live.entry(&carried.key).or_default().push(carried);
    }
    let mut pairs = Vec::new();
    for new in objects(after) {
        let found = live.get_mut(&new.key).and_then(|found| {
            let same = found.iter().position(|old| old.work.name == new.work.name);
            let at = same.or_else(|| found.iter().position(|old| !stay.contains(&place(old))))?;
            Some(found.remove(at))
        });
        pairs.push((found, new));
    }
    let rest: HashSet<_> = live.into_values().flatten().map(place).collect();
    let alone = objects(before).filter(|old| rest.contains(&place(old))).collect();
    (pairs, alone)
}

/// Returns the changes of the works themselves, a line each.
fn lines(before: &Works<'_>, after: &Works<'_>, pairs: &[Pair<'_, '_>], alone: &[&WorkObject<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    for (work, objects) in after.iter().filter(|(work, _)| !is_among(before, &work.name)) {
        let plural = if objects.len() == 1 { "" } else { "s" };
        lines.push(format!("{} is new, with {} object{plural}", title(work), objects.len()));
    }
    for (work, _) in before.iter().filter(|(work, _)| !is_among(after, &work.name)) {
        lines.push(format!("{} is deleted", title(work)));
    }
    for (way, keys) in moves(after, pairs, alone) {
        let (verb, they) = match keys.len() {
            1 => ("moves", "it is"),
            _ => ("move", "they are"),
        };
        let again = if way.gap {
            format!(", of a later wave: {they} deleted and created again")
        } else {
            String::new()
        };
        lines.push(format!(
            "{} {verb} from work {} to {}{again}",
            names(&keys),
            way.from,
            way.to
        ));
    }
    for (work, objects) in after {
        let same = before.iter().find(|(other, _)| other.name == work.name);
        if same.is_some_and(|(_, old)| is_another_order(old, objects)) {
            lines.push(format!("{} changes the order of its objects", title(work)));
        }
    }
    lines
}

fn is_among(works: &Works<'_>, name: &str) -> bool {
    works.iter().any(|(work, _)| work.name == name)
}

/// A move of objects from one work to another.
#[derive(PartialEq)]
struct Move<'w> {
    from: &'w str,
    to: &'w str,
    /// True if the source drops the objects before the destination is applied. A work that is deleted as a whole is deleted last.
    gap: bool,
}

/// Returns the moves of objects between works.
fn moves<'c>(
    after: &Works<'_>,
    pairs: &[Pair<'c, '_>],
    alone: &[&'c WorkObject<'_>],
) -> Vec<(Move<'c>, Vec<&'c ObjectKey>)> {
    let homes: HashMap<&ObjectKey, &WorkObject<'_>> = pairs.iter().map(|(_, new)| (&new.key, *new)).collect();
    let moved = pairs.iter().filter_map(|(old, new)| {
        let old = (*old)?;
        let gap = is_among(after, &old.work.name) && old.work.wave() < new.work.wave() && !old.work.keeps(&old.key);
        Some((old, *new, gap))
    });
    // An object in two works, one of which drops it and stays.
    let given_up = alone
        .iter()
        .filter(|old| is_among(after, &old.work.name))
        .filter_map(|old| Some((*old, *homes.get(&old.key)?, false)));
    let mut ways: Vec<(Move<'_>, Vec<&ObjectKey>)> = Vec::new();
    for (old, new, gap) in moved.chain(given_up) {
        let (from, to) = (old.work.name.as_str(), new.work.name.as_str());
        let way = Move { from, to, gap };
        if from == to {
            continue;
        }
        match ways.iter_mut().find(|(known, _)| *known == way) {
            Some((_, keys)) => keys.push(&old.key),
            None => ways.push((way, vec![&old.key])),
        }
    }
    ways
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
fn is_another_order(before: &[WorkObject<'_>], after: &[WorkObject<'_>]) -> bool {
    let keys = |of: &[WorkObject<'_>]| of.iter().map(|carried| carried.key.clone()).collect::<HashSet<_>>();
    let (old, new) = (keys(before), keys(after));
    let stayed = before.iter().filter(|carried| new.contains(&carried.key));
    let staying = after.iter().filter(|carried| old.contains(&carried.key));
    !stayed
        .map(|carried| &carried.key)
        .eq(staying.map(|carried| &carried.key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocm::work::read_back;

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
    fn told(live: &[String], generated: &[String]) -> Vec<String> {
        let tell = |change: Change| {
            let side = |side: Option<Side>| side.map_or(String::new(), |side| side.work);
            let way = match (change.before, change.after) {
                (None, None) => String::new(),
                (before, after) => format!(": {}>{}", side(before), side(after)),
            };
            format!("{} {}{way}", change.target, change.what)
        };
        let changes = compare(&read_back(live), &read_back(generated), false);
        changes.into_iter().map(tell).collect()
    }

    #[test]
    fn object_moving_between_works_is_unchanged() {
        let live = [work("c", "shop", "", &["a=1", "b=1", "c=1", "d=1", "e=1"])];
        let generated = [
            work("c", "shop", "", &["a=1"]),
            work("c", "shop.part-b1", "", &["b=1", "c=2", "d=1", "e=1"]),
        ];
        assert_eq!(
            told(&live, &generated),
            [
                "c ManifestWork shop.part-b1 is new, with 4 objects",
                "c ConfigMap shop/b, ConfigMap shop/c, ConfigMap shop/d and 1 more move from work shop to shop.part-b1",
                "c ConfigMap shop/c: shop>shop.part-b1",
            ]
        );
        assert_eq!(
            told(&generated, &live)[..2],
            [
                "c ManifestWork shop.part-b1 is deleted",
                "c ConfigMap shop/b, ConfigMap shop/c, ConfigMap shop/d and 1 more move from work shop.part-b1 to shop",
            ]
        );
        assert!(told(&live, &live).is_empty());
    }

    #[test]
    fn compares_each_cluster_separately() {
        let live = [work("a", "shop", "", &["x=1"]), work("b", "shop", "", &["x=1"])];
        let generated = [work("c", "shop", "", &["x=1"]), work("a", "shop", "", &["x=1"])];
        assert_eq!(
            told(&live, &generated),
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
            told(&live, &[work("c", "shop.part-b0", "", &["a=2", "b=1"])]),
            [
                "c ManifestWork shop is deleted",
                "c ConfigMap shop/b moves from work shop to shop.part-b0",
            ]
        );
        // One of the two works drops it and stays.
        let generated = [work("c", "shop", "", &["b=1"]), work("c", "shop.part-b0", "", &["a=2"])];
        assert_eq!(
            told(&live, &generated),
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
            told(&early, &late),
            [
                "c ConfigMap shop/b moves from work shop to shop.part-wave5, of a later wave: it is deleted and created again"
            ]
        );
        assert_eq!(
            told(&late, &early),
            ["c ConfigMap shop/b moves from work shop.part-wave5 to shop"]
        );
        // Objects that are to be orphaned are.
        let kept = r#""spec":{"deleteOption":{"propagationPolicy":"SelectivelyOrphan","selectivelyOrphans":{"orphaningRules":
            [{"name":"b","namespace":"shop","resource":"configmaps"}]}},"#;
        let kept = early.clone().map(|work| work.replace(r#""spec":{"#, kept));
        let lines = told(&kept, &late);
        assert!(
            lines.contains(&"c ConfigMap shop/b moves from work shop to shop.part-wave5".to_owned()),
            "{lines:?}"
        );
        // A work that is deleted as a whole is deleted last.
        assert_eq!(
            told(&[work("c", "shop", "", &["b=1", "c=1"])], &late[1..])[2..],
            ["c ConfigMap shop/b, ConfigMap shop/c move from work shop to shop.part-wave5"]
        );
    }

    #[test]
    fn live_hooks_are_not_compared() {
        let live = [work("c", "shop", "", &["a=1"]), work("c", "old", HOOK, &["b=1"])];
        let generated = [work("c", "shop", "", &["a=1"]), work("c", "new", HOOK, &["c=1"])];
        assert_eq!(told(&live, &generated).len(), 4);
        assert!(compare(&read_back(&live), &read_back(&generated), true).is_empty());
        let listed = live.map(|work| work.replacen(r#""name""#, r#""uid":"x","name""#, 1));
        assert!(told(&listed, &generated).is_empty());
    }

    const HOOK: &str = r#""argocd.argoproj.io/hook":"SyncFail""#;

    #[test]
    fn shows_changed_annotations_and_order_of_a_work() {
        let wave = |wave: &str| format!(r#""argocd.argoproj.io/sync-wave":"{wave}""#);
        let tracked = r#""argocd.argoproj.io/tracking-id":"shop:x","example.com/by-somebody":"else""#;
        let generated = [work("c", "shop", "", &["a=1"])];
        assert!(told(&[work("c", "shop", tracked, &["a=1"])], &generated).is_empty());
        assert_eq!(
            told(&[work("c", "shop", &wave("2"), &["a=1"])], &generated),
            ["c ManifestWork shop: shop>shop"]
        );
        let other_order = [work("c", "shop", "", &["b=1", "a=1", "c=1"])];
        assert_eq!(
            told(&other_order, &[work("c", "shop", "", &["a=1", "b=1"])]),
            [
                "c ManifestWork shop changes the order of its objects",
                "c ConfigMap shop/c: shop>",
            ]
        );
    }
}
