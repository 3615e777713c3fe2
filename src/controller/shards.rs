//! The work divided among replicas. Each object is of one shard, each shard has a Lease of its own, and who holds it writes for its
//! objects. All replicas know all that is on the hub, so that a shard goes from one to another without a list.
//!
//! A replica that holds less than others asks for one of theirs, by an annotation of the Lease; who is asked finishes what is under
//! way, and leaves it. One that is gone leaves its shards when their Leases have expired, first to those who hold least.
//!
//! The number of shards is part of what replicas have to agree on: those of one number hold the Lease without a number together, and
//! none writes while others do who divide the work otherwise.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod team;

pub(super) use team::Team;

use super::LEASE;
use super::lease::{Election, Seat};
use super::seen::Place;
use fastrand::Rng;
use futures::future::join_all;
use kube::Client;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, watch};

/// How many shards there may be.
pub const MOST: u16 = 16;

/// The shard of an object: the one that scores highest with it (rendezvous hashing), so that most objects stay where they are when
/// there is one shard more. The same in every version of this program, as replicas of two versions stand side by side for a while.
#[must_use]
pub fn of(place: &Place, shards: usize) -> usize {
    if shards == 1 {
        return 0;
    }
    let mut hash = Sha256::new();
    hash.update(&*place.namespace);
    hash.update("/");
    hash.update(&*place.name);
    let place = hash.finalize()[..8]
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    let best = (0..shards).max_by_key(|shard| mixed(place ^ mixed(*shard as u64)));
    best.unwrap_or_default()
}

/// A number in which every bit of this one counts everywhere (the last step of `SplitMix64`).
fn mixed(number: u64) -> u64 {
    let mut it = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ (it >> 31)
}

/// What this replica may write for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Whether nobody writes who divides the work otherwise.
    agreed: bool,
    /// A bit for each shard.
    shards: u32,
}

impl Held {
    /// All there is, where nobody else writes.
    pub const ALL: Self = Self {
        agreed: true,
        shards: u32::MAX,
    };

    /// Nothing, as long as others have to be asked: the only shard as soon as it is agreed.
    pub(super) fn at_first(shards: usize) -> Self {
        Self {
            agreed: false,
            shards: u32::from(shards == 1),
        }
    }

    /// Whether it may write for the objects of a shard.
    #[must_use]
    pub fn has(self, shard: usize) -> bool {
        self.agreed && self.shards & (1 << shard) != 0
    }

    /// For how many of so many shards it may write.
    #[must_use]
    pub fn count(self, shards: usize) -> usize {
        (0..shards).filter(|shard| self.has(*shard)).count()
    }

    /// It is agreed how the work is divided, or is not; whether that is new.
    pub(super) fn agree(&mut self, agreed: bool) -> bool {
        std::mem::replace(&mut self.agreed, agreed) != agreed
    }

    /// It holds a shard, or does not; whether that is new.
    pub(super) fn take(&mut self, shard: usize, is_held: bool) -> bool {
        let before = self.shards;
        self.shards = before & !(1 << shard) | u32::from(is_held) << shard;
        self.shards != before
    }
}

/// What must be kept as long as something is written for a shard.
pub(super) type Ticket = OwnedRwLockReadGuard<()>;

/// The candidacies of this replica.
pub(super) struct Shards {
    held: watch::Receiver<Held>,
    team: Arc<Team>,
    terms: Option<Election>,
    elections: Vec<Election>,
}

impl Shards {
    /// The only replica there is.
    pub(super) fn alone() -> Self {
        Self {
            held: watch::channel(Held::ALL).1,
            team: Arc::new(Team::new(String::new(), 1)),
            terms: None,
            elections: Vec::new(),
        }
    }

    /// Stands for so many shards, with Leases in this namespace. `random` spreads requests over time.
    pub(super) fn stand(client: &Client, namespace: &str, identity: &str, shards: usize, random: u64) -> Self {
        let mut random = Rng::with_seed(random);
        let (sender, held) = watch::channel(Held::at_first(shards));
        let team = Arc::new(Team::new(identity.to_owned(), shards));
        let mut start = |lease: &str, identity: String, seat: Seat| {
            let (client, held) = (client.clone(), sender.clone());
            Election::start(client, namespace, lease, identity, seat, held, random.u64(..))
        };
        let mut elections = Vec::new();
        let mut terms = identity.to_owned();
        if shards > 1 {
            let shard = |shard| {
                let seat = Seat::Shard(shard, Arc::clone(&team));
                start(&format!("{LEASE}-{shard}"), identity.to_owned(), seat)
            };
            elections.extend((0..shards).map(shard));
            // All who divide it so hold it together.
            terms = format!("{shards} shards");
        }
        Self {
            terms: Some(start(LEASE, terms, Seat::Terms)),
            held,
            team,
            elections,
        }
    }

    /// What may be written for, as it changes.
    pub(super) fn held(&self) -> watch::Receiver<Held> {
        self.held.clone()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.team.shards()
    }

    /// Who gives [`Ticket`]s.
    pub(super) fn team(&self) -> Arc<Team> {
        Arc::clone(&self.team)
    }

    /// Leaves all to others, when what has to be written is written.
    pub(super) async fn release(self) {
        if self.elections.is_empty() {
            if let Some(terms) = self.terms {
                terms.release().await;
            }
            return;
        }
        // What replicas hold together is not for one of them to release: it expires when the last of them is gone.
        join_all(self.elections.into_iter().map(Election::release)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::lease::played::{Hub, Manner};
    use std::sync::Mutex;
    use std::time::Duration;
    use tokio::time::{Instant, sleep, timeout};

    fn places() -> impl Iterator<Item = Place> {
        (0..9000).map(|at| Place::new("argocd", &format!("application-{at}")))
    }

    #[test]
    fn every_shard_has_its_share() {
        for shards in [1, 2, 3, 5, 16] {
            let mut counts = vec![0; shards];
            for place in places() {
                counts[of(&place, shards)] += 1;
            }
            let share = 9000 / shards;
            let is_fair = |count: &usize| (share * 8 / 10..=share * 12 / 10).contains(count);
            assert!(counts.iter().all(is_fair), "{counts:?}");
        }
    }

    #[test]
    fn one_shard_more_takes_only_its_share_from_the_others() {
        let moves = |place: &Place| of(place, 3) != of(place, 4);
        assert!(places().filter(moves).all(|place| of(&place, 4) == 3));
        assert!((1800..2700).contains(&places().filter(moves).count()));
    }

    #[test]
    fn an_object_is_of_the_same_shard_in_every_version() {
        let shards = ["shop", "search", "cart"].map(|name| of(&Place::new("argocd", name), 16));
        assert_eq!(shards, [10, 8, 12]);
    }

    #[test]
    fn only_what_is_held_and_agreed_is_written_for() {
        let mut held = Held::at_first(3);
        assert!(held.take(1, true) && !held.take(1, true));
        assert_eq!(held.count(3), 0, "others may divide it otherwise");
        assert!(held.agree(true));
        assert_eq!([0, 1, 2].map(|shard| held.has(shard)), [false, true, false]);
        assert!(held.take(1, false));
        assert_eq!(held.count(3), 0);

        let mut only = Held::at_first(1);
        assert!(!only.has(0) && only.agree(true) && only.has(0));
        assert_eq!(Held::ALL.count(1), 1);
    }

    /// A replica, and how it is treated.
    struct Replica {
        shards: Shards,
        manner: Arc<Mutex<Manner>>,
    }

    /// Replicas are numbered through, as each has a name of its own.
    fn replica(hub: &Hub, shards: usize, number: u64) -> Replica {
        let (client, manner) = hub.client();
        let name = format!("replica-{number}");
        Replica {
            shards: Shards::stand(&client, "argocd", &name, shards, number),
            manner,
        }
    }

    impl Replica {
        fn held(&self) -> Held {
            *self.shards.held.borrow()
        }

        fn count(&self) -> usize {
            self.held().count(self.shards.count())
        }
    }

    /// Waits until replicas hold so many shards each, whichever of them.
    async fn until(replicas: &[Replica], mut wanted: Vec<usize>) -> Duration {
        let start = Instant::now();
        wanted.sort_unstable();
        let settled = timeout(Duration::from_secs(600), async {
            loop {
                let mut counts: Vec<_> = replicas.iter().map(Replica::count).collect();
                counts.sort_unstable();
                if counts == wanted {
                    return;
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        settled.await.expect("they come to hold as much as each other");
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn each_replica_that_comes_gets_its_share_and_each_that_goes_leaves_it() {
        let hub = Hub::default();
        let mut replicas = vec![replica(&hub, 6, 0)];
        until(&replicas, vec![6]).await;
        for (number, counts) in [(1, vec![3, 3]), (2, vec![2, 2, 2])] {
            replicas.push(replica(&hub, 6, number));
            let took = until(&replicas, counts).await;
            assert!(took < Duration::from_secs(30), "{took:?}");
        }
        assert_eq!(hub.spec(LEASE)["holderIdentity"], "6 shards");

        // One is told to stop, and one dies.
        replicas.remove(1).shards.release().await;
        let took = until(&replicas, vec![3, 3]).await;
        assert!(took < Duration::from_secs(30), "{took:?}");
        drop(replicas.remove(0));
        let took = until(&replicas, vec![6]).await;
        assert!(took < Duration::from_secs(40), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_is_left_when_what_is_under_way_is_written() {
        let hub = Hub::default();
        let mut replicas = vec![replica(&hub, 2, 0)];
        until(&replicas, vec![2]).await;
        let team = replicas[0].shards.team();
        let tickets: Vec<_> = [0, 1].map(|shard| team.ticket(shard).expect("it is held")).into();
        replicas.push(replica(&hub, 2, 1));
        let mut held = replicas[0].shards.held();
        let held = *held.wait_for(|held| held.count(2) == 1).await.expect("it goes on");
        let shard = usize::from(held.has(0));
        assert!(team.ticket(shard).is_none(), "nothing new is begun");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(hub.spec(&format!("{LEASE}-{shard}"))["holderIdentity"], "replica-0");
        drop(tickets);
        until(&replicas, vec![1, 1]).await;
        assert_eq!(hub.spec(&format!("{LEASE}-{shard}"))["holderIdentity"], "replica-1");
    }

    #[tokio::test(start_paused = true)]
    async fn who_divides_the_work_otherwise_waits_until_nobody_else_writes() {
        let hub = Hub::default();
        let old = vec![replica(&hub, 1, 0)];
        until(&old, vec![1]).await;
        let new = vec![replica(&hub, 2, 1), replica(&hub, 2, 2)];
        sleep(Duration::from_secs(60)).await;
        assert_eq!((old[0].count(), new[0].count() + new[1].count()), (1, 0));
        for old in old {
            old.shards.release().await;
        }
        until(&new, vec![1, 1]).await;
        // And back.
        let old = vec![replica(&hub, 1, 3)];
        sleep(Duration::from_secs(60)).await;
        assert_eq!(old[0].count(), 0);
        for new in new {
            new.shards.release().await;
        }
        let took = until(&old, vec![1]).await;
        assert!(
            took > Duration::from_secs(10),
            "{took:?}: nobody may release what others may hold"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn no_shard_is_ever_held_by_two_however_the_api_server_behaves() {
        const SHARDS: usize = 3;
        let mut random = Rng::with_seed(7);
        let hub = Hub::default();
        let mut replicas: Vec<_> = (0..3).map(|number| replica(&hub, SHARDS, number)).collect();
        let manners = [
            Manner::Well,
            Manner::Well,
            Manner::Well,
            Manner::Hangs,
            Manner::Silent,
            Manner::Fails(500),
        ];
        let mut held = [0; SHARDS];
        for step in 0..6_000_u64 {
            if step % 40 == 0 {
                for replica in &replicas {
                    *replica.manner.lock().unwrap() = manners[random.usize(..manners.len())];
                }
            }
            if step % 211 == 0 {
                let gone = random.usize(..replicas.len());
                replicas[gone] = replica(&hub, SHARDS, step + 3);
            }
            sleep(Duration::from_millis(random.u64(100..500))).await;
            for (shard, held) in held.iter_mut().enumerate() {
                let holders = replicas.iter().filter(|replica| replica.held().has(shard)).count();
                assert!(holders < 2, "two hold shard {shard} at step {step}");
                *held += holders;
            }
        }
        assert!(held.iter().all(|steps| *steps > 1500), "{held:?}");
        for replica in &replicas {
            *replica.manner.lock().unwrap() = Manner::Well;
        }
        until(&replicas, vec![1, 1, 1]).await;
    }
}
