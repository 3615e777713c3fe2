//! Rollouts in random fleets, on a hub that OCM reads slowly. All state is on the hub: the controller remembers nothing.

use super::strategy::IntOrPercent;
use super::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const SIZE: usize = 50;

/// The names of the maximum number of clusters.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| (0..SIZE + 5).map(|number| format!("c{number:02}")).collect());

fn name(number: usize) -> &'static str {
    &NAMES[number]
}

/// A cluster, and its status on the hub.
#[derive(Clone, Debug)]
struct Cluster {
    agent: Agent<'static>,
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
        let agent = Agent {
            is_available: true,
            assigned: None,
            applied: None,
            changed: Some(self.now),
            is_healthy: false,
            since: Some(self.now),
        };
        let cluster = Cluster {
            agent,
            is_broken: false,
        };
        self.clusters.entry(name(number)).or_insert(cluster);
    }

    fn plan(&self, desired: &'static str) -> (Plan<'static>, RolloutInput<'static>) {
        let clusters = self.clusters.iter().map(|(name, Cluster { agent, .. })| {
            let applied = agent.applied.filter(|_| agent.applied == agent.assigned);
            (*name, Agent { applied, ..*agent })
        });
        let fleet = RolloutInput {
            desired,
            limits: Some(self.limits),
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
        let now = Some(self.now);
        for (name, Cluster { agent, is_broken }) in &mut self.clusters {
            let assigned = self.next.filter(|_| self.updated.contains_key(name));
            let assigned = assigned.unwrap_or(self.read);
            if agent.assigned != Some(assigned) {
                (agent.assigned, agent.changed) = (Some(assigned), now);
            }
            if self.is_wild && self.random.u8(..40) == 0 {
                agent.is_available = !agent.is_available;
            }
            if !agent.is_available {
                continue;
            }
            if agent.applied != agent.assigned && self.random.bool() {
                (agent.applied, agent.changed) = (agent.assigned, now);
                continue;
            }
            let is_bad = agent.applied.is_none_or(|version| self.bad.contains(version));
            let flips = self.is_wild && self.random.u8(..60) == 0;
            let is_healthy = !*is_broken && !is_bad && !flips;
            if agent.is_healthy != is_healthy && self.random.bool() {
                (agent.is_healthy, agent.since) = (is_healthy, now);
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
        let has = |cluster: &&Cluster| [cluster.agent.assigned, cluster.agent.applied].contains(&Some(version));
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
fn good_version_reaches_every_cluster_and_a_bad_one_stops_early() {
    each(|mut hub| {
        assert_eq!(hub.roll("v2"), State::Done);
        assert_eq!(hub.with("v2"), SIZE);
        hub.bad.insert("v3");
        assert_eq!(hub.roll("v3"), State::Stopped);
        let max_concurrency = hub.limits.max_concurrency.resolve(SIZE).max(1);
        let most = max_concurrency + hub.limits.max_failures.resolve(SIZE);
        for _ in 0..200 {
            hub.pass();
            hub.look("v3");
            assert!(hub.with("v3") <= most, "{} of {most}", hub.with("v3"));
        }
        // Back to the version before, or on to another one.
        let next = if hub.random.bool() { "v2" } else { "v4" };
        assert_eq!(hub.roll(next), State::Done);
        assert_eq!(hub.with(next), SIZE);
    });
}

#[test]
fn rollout_completes_once_clusters_are_stable() {
    each(|mut hub| {
        hub.is_wild = true;
        for turn in 0..2_000 {
            hub.pass();
            hub.look(if (300..600).contains(&turn) { "v3" } else { "v2" });
        }
        hub.is_wild = false;
        hub.clusters
            .values_mut()
            .for_each(|cluster| cluster.agent.is_available = true);
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
