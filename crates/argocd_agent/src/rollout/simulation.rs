//! Rollouts in random fleets, on a hub that OCM reads slowly. All state is on the hub: the controller remembers nothing.

use super::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const SIZE: usize = 50;

/// The names of the maximum number of clusters.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| (0..SIZE + 5).map(|number| format!("c{number:02}")).collect());

fn name(number: usize) -> &'static str {
    &NAMES[number]
}

/// The real health of a cluster, and its status on the hub.
#[derive(Clone, Debug)]
struct Cluster {
    assigned: Option<&'static str>,
    applied: Option<&'static str>,
    changed: Timestamp,
    is_available: bool,
    is_well: bool,
    since: Timestamp,
    /// True if no version is healthy on this cluster.
    is_broken: bool,
}

struct Hub {
    random: fastrand::Rng,
    now: Timestamp,
    first: &'static str,
    /// The template that OCM has read from the first entry.
    read: &'static str,
    next: Option<&'static str>,
    updated: UpdatedClusters<'static>,
    clusters: BTreeMap<&'static str, Cluster>,
    limits: Limits,
    /// The versions with which no agent starts.
    bad: BTreeSet<&'static str>,
    /// True if clusters join, leave, become unreachable and unhealthy at random.
    is_wild: bool,
}

impl Hub {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        let limits = Limits {
            max_concurrency: if random.bool() {
                IntOrPercent::Number(random.usize(1..12))
            } else {
                IntOrPercent::Percent(random.usize(1..40))
            },
            max_failures: IntOrPercent::Number(random.usize(0..3)),
            min_success_time: SignedDuration::from_secs(random.i64(0..100)),
            progress_deadline: random.bool().then(|| SignedDuration::from_secs(random.i64(60..300))),
        };
        let mut hub = Self {
            random,
            now,
            first: "v1",
            read: "v1",
            next: None,
            updated: BTreeMap::new(),
            clusters: BTreeMap::new(),
            limits,
            bad: BTreeSet::new(),
            is_wild: false,
        };
        (0..SIZE).for_each(|number| hub.join(number));
        hub
    }

    fn join(&mut self, number: usize) {
        let cluster = Cluster {
            assigned: None,
            applied: None,
            changed: self.now,
            is_available: true,
            is_well: false,
            since: self.now,
            is_broken: false,
        };
        self.clusters.entry(name(number)).or_insert(cluster);
    }

    fn plan(&self, desired: &'static str) -> (Plan<'static>, RolloutInput<'static>) {
        let clusters = self.clusters.iter().map(|(name, cluster)| {
            let agent = Agent {
                is_available: cluster.is_available,
                assigned: cluster.assigned,
                applied: cluster.applied.filter(|_| cluster.applied == cluster.assigned),
                changed: Some(cluster.changed),
                health: if cluster.is_well {
                    Health::Healthy(Some(cluster.since))
                } else {
                    Health::Unhealthy(Some(cluster.since))
                },
            };
            (*name, agent)
        });
        let fleet = RolloutInput {
            desired,
            strategy: Strategy::Progressive(self.limits),
            first: Some(self.first),
            read: Some(self.read),
            next: self.next,
            clusters: clusters.collect(),
            updated: self.updated.clone(),
            now: self.now,
        };
        (plan(&fleet), fleet)
    }

    /// Writes the plan, at times only one of its two parts, like two separate writers.
    fn write(&mut self, plan: &Plan<'static>) {
        if self.random.u8(..4) > 0 {
            self.updated.clone_from(&plan.updated);
        }
        if self.random.u8(..4) > 0 {
            (self.first, self.next) = (plan.first, plan.next);
        }
    }

    /// Simulates some seconds of OCM and the clusters.
    fn pass(&mut self) {
        self.now += SignedDuration::from_secs(self.random.i64(1..15));
        if self.is_wild && self.random.u8(..10) == 0 {
            let number = self.random.usize(..SIZE + 5);
            if self.clusters.remove(name(number)).is_none() {
                self.join(number);
            }
        }
        if self.random.bool() {
            self.read = self.first;
        }
        for (name, cluster) in &mut self.clusters {
            let assigned = self.next.filter(|_| self.updated.contains_key(name));
            let assigned = assigned.unwrap_or(self.read);
            if cluster.assigned != Some(assigned) {
                (cluster.assigned, cluster.changed) = (Some(assigned), self.now);
            }
            if self.is_wild && self.random.u8(..40) == 0 {
                cluster.is_available = !cluster.is_available;
            }
            if !cluster.is_available {
                continue;
            }
            if cluster.applied != cluster.assigned && self.random.bool() {
                (cluster.applied, cluster.changed) = (cluster.assigned, self.now);
                continue;
            }
            let is_bad = cluster
                .applied
                .as_ref()
                .is_none_or(|version| self.bad.contains(version));
            let flips = self.is_wild && self.random.u8(..60) == 0;
            let is_well = !cluster.is_broken && !is_bad && !flips;
            if cluster.is_well != is_well && self.random.bool() {
                (cluster.is_well, cluster.since) = (is_well, self.now);
            }
        }
    }

    /// Reconciles once, and checks the plan against the invariants.
    fn look(&mut self, desired: &'static str) -> Plan<'static> {
        let (plan, fleet) = self.plan(desired);
        assert_eq!(plan, self.plan(desired).0, "it is the same after a restart");
        let of = |state: fn(ClusterHealth) -> bool| {
            let health = fleet.updated.iter().filter_map(|(name, since)| {
                let agent = fleet.clusters.get(name).filter(|agent| agent.is_available)?;
                Some(agent.evaluate(fleet.desired, *since, self.limits, self.now))
            });
            health.filter(|health| state(*health)).count()
        };
        let added = plan
            .updated
            .keys()
            .filter(|name| !fleet.updated.contains_key(*name))
            .count();
        let under_way = of(|health| matches!(health, ClusterHealth::UnderWay(_)));
        let max_concurrency = self.limits.max_concurrency.resolve(fleet.clusters.len()).max(1);
        let failed = of(|health| health == ClusterHealth::Failed);
        if added > 0 {
            assert!(
                under_way + added <= max_concurrency,
                "{under_way} and {added} of {max_concurrency}"
            );
            assert!(failed <= self.limits.max_failures.resolve(SIZE), "{failed} have failed");
            assert_eq!((plan.next, fleet.next), (Some(fleet.desired), Some(fleet.desired)));
        }
        if plan.first != self.first {
            assert_eq!((plan.first, under_way), (desired, 0), "all reachable clusters have it");
            assert!(failed <= self.limits.max_failures.resolve(SIZE), "{failed} have failed");
        }
        if plan.next != fleet.next && plan.next.is_some() {
            assert!(fleet.updated.len() <= max_concurrency, "no more are changed at once");
        }
        if plan.next.is_none() && fleet.next == Some(desired) {
            assert_eq!(self.read, desired, "none gets the version before once more");
        }
        self.write(&plan);
        plan
    }

    /// Runs until the rollout is done or stopped, and returns its state.
    fn roll(&mut self, desired: &'static str) -> State {
        for _ in 0..20_000 {
            self.pass();
            let plan = self.look(desired);
            let is_done = plan.progress.state == State::Done && self.next.is_none();
            if is_done || plan.progress.state == State::Stopped && !self.is_wild {
                return plan.progress.state;
            }
        }
        panic!("it has no end: {:?}", self.plan(desired).0);
    }

    /// Counts the clusters that have a version or are about to get it.
    fn with(&self, version: &str) -> usize {
        let has = |cluster: &&Cluster| [cluster.assigned, cluster.applied].contains(&Some(version));
        self.clusters.values().filter(has).count()
    }
}

fn each(check: impl Fn(Hub)) {
    for seed in 0..8 {
        let mut hub = Hub::new(seed);
        assert_eq!(hub.roll("v1"), State::Done);
        for _ in 0..40 {
            hub.pass();
        }
        check(hub);
    }
}

#[test]
fn good_version_reaches_every_cluster() {
    each(|mut hub| {
        assert_eq!(hub.roll("v2"), State::Done);
        assert_eq!(hub.with("v2"), SIZE);
    });
}

#[test]
fn bad_version_stops_early_and_can_be_rolled_back() {
    each(|mut hub| {
        hub.bad.insert("v2");
        assert_eq!(hub.roll("v2"), State::Stopped);
        let max_concurrency = hub.limits.max_concurrency.resolve(SIZE).max(1);
        let most = max_concurrency + hub.limits.max_failures.resolve(SIZE);
        for _ in 0..200 {
            hub.pass();
            hub.look("v2");
            assert!(hub.with("v2") <= most, "{} of {most}", hub.with("v2"));
        }
        assert_eq!(hub.roll("v1"), State::Done);
        assert_eq!(hub.with("v1"), SIZE);
    });
}

#[test]
fn third_version_replaces_a_failed_second_one() {
    each(|mut hub| {
        hub.bad.insert("v2");
        assert_eq!(hub.roll("v2"), State::Stopped);
        assert_eq!(hub.roll("v3"), State::Done);
        assert_eq!(hub.with("v3"), SIZE);
    });
}

#[test]
fn rollout_completes_once_clusters_are_stable() {
    each(|mut hub| {
        hub.is_wild = true;
        for turn in 0..2_000 {
            hub.pass();
            hub.look(if turn < 300 {
                "v2"
            } else if turn < 600 {
                "v3"
            } else {
                "v2"
            });
        }
        hub.is_wild = false;
        hub.clusters
            .values_mut()
            .for_each(|cluster| cluster.is_available = true);
        // Failed clusters recover, so the rollout may have been stopped for a moment.
        for _ in 0..2_000 {
            hub.pass();
            hub.look("v4");
        }
        assert_eq!(hub.roll("v4"), State::Done);
        assert_eq!(hub.with("v4"), hub.clusters.len());
    });
}

#[test]
fn unhealthy_clusters_come_last_and_block_no_others() {
    each(|mut hub| {
        for number in [0, 20] {
            hub.clusters.get_mut(name(number)).expect("it is there").is_broken = true;
        }
        for _ in 0..40 {
            hub.pass();
        }
        hub.limits.max_failures = IntOrPercent::Number(0);
        assert_eq!(hub.roll("v2"), State::Stopped);
        assert!(hub.with("v2") >= SIZE - 2, "{}", hub.with("v2"));
    });
}
