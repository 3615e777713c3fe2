//! Divides objects that exceed the size of a ManifestWork into buckets.
//!
//! If an object moved between ManifestWorks, the cluster would delete and recreate it whenever one loses it before the other has
//! it. So the assignment is stable: a bucket contains the objects whose identity hash has its prefix, and is halved only when it
//! overflows (extendible hashing). Adding, changing or removing an object moves no object of any other bucket, except that an
//! overflowing bucket is replaced by its halves, and halves that fit again by their whole. ManifestWorks are named after their
//! buckets, so none ever loses an object to another while it exists.

use manifest::key::ObjectKey;

/// A bucket: the items whose hashes have a prefix.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bucket<T> {
    /// The prefix in binary digits; empty if nothing was divided.
    pub prefix: String,
    /// The items, in the order of the input.
    pub items: Vec<T>,
}

/// An item to put into a bucket.
#[derive(Debug)]
pub(crate) struct Item<T> {
    /// The hash that decides on the bucket.
    pub hash: u64,
    /// The size in bytes.
    pub size: u64,
    pub value: T,
}

/// The maximum number of objects of a bucket. OCM's agent writes a status of 600 bytes and more for each object of a ManifestWork, and
/// etcd refuses objects over 1.5 MiB.
const OBJECTS_MAX: usize = 1000;

/// Returns true if so many items of so many bytes share a bucket. A capacity of `u64::MAX` is no limit.
fn fits(items: usize, size: u64, capacity: u64) -> bool {
    size <= capacity && (items <= OBJECTS_MAX || capacity == u64::MAX)
}

/// Returns the hash that assigns an object to a bucket. It must never change: existing ManifestWorks depend on it.
pub(crate) fn hash(key: &ObjectKey) -> u64 {
    // Hashes eight bytes at a time, each part with its length, so that different identities give different input. Each word is
    // mixed as in MurmurHash3's finalizer: names that differ in one digit must differ in all bits, and the upper bits decide.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^= hash >> 29;
    };
    let namespace = key.namespace.as_deref().unwrap_or_default();
    for part in [&*key.kind.group, &*key.kind.kind, namespace, &*key.name] {
        add(part.len() as u64);
        for bytes in part.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            add(u64::from_le_bytes(word));
        }
    }
    hash
}

/// Divides items into buckets of at most `capacity` bytes and [`OBJECTS_MAX`] items, in the order of their prefixes. A larger item
/// gets its own bucket.
pub(crate) fn buckets<T>(items: Vec<Item<T>>, capacity: u64) -> Vec<Bucket<T>> {
    let mut buckets = Vec::new();
    cut(items, &mut String::new(), capacity, &mut buckets);
    buckets
}

fn cut<T>(items: Vec<Item<T>>, prefix: &mut String, capacity: u64, buckets: &mut Vec<Bucket<T>>) {
    let size: u64 = items.iter().map(|item| item.size).sum();
    if fits(items.len(), size, capacity) || items.len() == 1 || prefix.len() == 64 {
        if !items.is_empty() {
            buckets.push(Bucket {
                prefix: prefix.clone(),
                items: items.into_iter().map(|item| item.value).collect(),
            });
        }
        return;
    }
    let bit = 1 << (63 - prefix.len());
    let (zeros, ones) = items.into_iter().partition(|item| item.hash & bit == 0);
    for (digit, half) in [('0', zeros), ('1', ones)] {
        prefix.push(digit);
        cut(half, prefix, capacity, buckets);
        prefix.pop();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use manifest::kinds::GroupKind;
    use std::collections::{BTreeMap, HashSet};

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            kind: GroupKind {
                group: "apps".into(),
                kind: "Deployment".into(),
            },
            namespace: Some("shop".into()),
            name: name.into(),
        }
    }

    #[test]
    fn hash_is_stable_across_versions() {
        assert_eq!(hash(&key("web")), 0x00bb_d7fe_9c74_68de);
    }

    /// Splitting a work that fits would move its objects to others.
    #[test]
    fn items_that_just_fit_share_a_bucket() {
        let number_of_buckets = |capacity| {
            let item = |name: &str| Item {
                hash: hash(&key(name)),
                size: 50,
                value: (),
            };
            buckets(["a", "b"].map(item).into(), capacity).len()
        };
        assert_eq!([100, 99].map(number_of_buckets), [1, 2]);
    }

    #[test]
    fn small_objects_are_divided_by_their_number() {
        let prefixes = |count: usize, capacity| -> Vec<String> {
            let item = |at| Item {
                hash: hash(&key(&format!("c{at}"))),
                size: 1,
                value: (),
            };
            let buckets = buckets((0..count).map(item).collect(), capacity);
            buckets.into_iter().map(|bucket| bucket.prefix).collect()
        };
        assert_eq!(prefixes(OBJECTS_MAX, 200_000), [""]);
        assert_eq!(prefixes(OBJECTS_MAX + 1, 200_000), ["0", "1"]);
        assert_eq!(prefixes(OBJECTS_MAX + 1, u64::MAX), [""]);
    }

    #[test]
    fn similar_names_spread_evenly() {
        for name in ["filler-", "c", "a-longer-name-of-an-object-"] {
            let hashes: HashSet<u64> = (0..16_000).map(|n| hash(&key(&format!("{name}{n}")))).collect();
            assert_eq!(hashes.len(), 16_000, "{name}");
            let mut shares = [0; 16];
            for hash in hashes {
                shares[usize::try_from(hash >> 60).unwrap()] += 1;
            }
            assert!(
                shares.iter().all(|share| (850..1150).contains(share)),
                "{name}: {shares:?}"
            );
        }
    }

    /// Returns a generator of numbers that look random and are the same on every run.
    pub(crate) fn numbers(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        }
    }

    fn placed(objects: &BTreeMap<String, u64>, capacity: u64) -> BTreeMap<String, String> {
        let item = |(name, &size): (&String, &u64)| Item {
            hash: hash(&key(name)),
            size,
            value: (name.clone(), size),
        };
        let mut placed = BTreeMap::new();
        for bucket in buckets(objects.iter().map(item).collect(), capacity) {
            let size: u64 = bucket.items.iter().map(|(_, size)| size).sum();
            assert!(
                size <= capacity || bucket.items.len() == 1,
                "{} has {size}",
                bucket.prefix
            );
            for (name, _) in bucket.items {
                assert_eq!(placed.insert(name, bucket.prefix.clone()), None);
            }
        }
        assert_eq!(placed.len(), objects.len());
        placed
    }

    #[test]
    fn one_change_moves_no_object_of_another_bucket() {
        let mut next = numbers(7);
        let capacity = 1000;
        let mut objects: BTreeMap<String, u64> = BTreeMap::new();
        let mut cuts = 0;
        let mut before = placed(&objects, capacity);
        for step in 0..3000 {
            // The input grows for a while, then shrinks, so that buckets are halved and merged.
            let growing = (step / 500) % 2 == 0;
            let some = objects
                .keys()
                .nth(usize::try_from(next()).unwrap() % objects.len().max(1))
                .cloned();
            let changed = match (next() % 4, some) {
                (0, Some(name)) => name,
                (_, Some(name)) if !growing => {
                    objects.remove(&name);
                    name
                }
                _ => format!("object-{step}"),
            };
            if growing || objects.contains_key(&changed) {
                objects.insert(changed.clone(), next() % 300);
            }
            let after = placed(&objects, capacity);
            // The buckets that contained the change, before and after.
            let touched: Vec<&String> = [before.get(&changed), after.get(&changed)]
                .into_iter()
                .flatten()
                .collect();
            for (name, now) in &after {
                let Some(then) = before.get(name).filter(|then| *then != now) else {
                    continue;
                };
                cuts += 1;
                let related = |one: &str, other: &str| one.starts_with(other) || other.starts_with(one);
                assert!(
                    then.starts_with(now.as_str()) || now.starts_with(then.as_str()),
                    "{name} moved from {then:?} to {now:?}"
                );
                // A removed object leaves a bucket that merges with its sibling: both are within the bucket that they were halves
                // of.
                let whole = |bucket: &str| {
                    bucket
                        .get(..bucket.len().saturating_sub(1))
                        .unwrap_or_default()
                        .to_owned()
                };
                assert!(
                    touched
                        .iter()
                        .any(|bucket| related(bucket, then) || related(bucket, now) || whole(bucket) == *now),
                    "{name} moved from {then:?} to {now:?} for a change of {changed} in {touched:?}"
                );
            }
            before = after;
        }
        assert!(cuts > 100, "{cuts} objects were re-cut");
    }

    #[test]
    fn splits_only_oversized_buckets_and_isolates_large_objects() {
        let cut = |items: &[(u64, u64)]| -> Vec<(String, Vec<usize>)> {
            let items = items.iter().enumerate();
            let items = items.map(|(value, &(hash, size))| Item { hash, size, value });
            let buckets = buckets(items.collect(), 10).into_iter();
            buckets.map(|bucket| (bucket.prefix, bucket.items)).collect()
        };
        assert_eq!(cut(&[(0, 4), (u64::MAX, 6)]), [(String::new(), vec![0, 1])]);
        assert_eq!(
            cut(&[(0, 4), (1 << 62, 11), (u64::MAX, 6), (u64::MAX - 1, 3)]),
            [
                ("00".to_owned(), vec![0]),
                ("01".to_owned(), vec![1]),
                ("1".to_owned(), vec![2, 3])
            ]
        );
        assert!(cut(&[]).is_empty());
        assert_eq!(cut(&[(5, 9), (5, 9)]).len(), 1, "the same hash cannot be cut");
    }
}
