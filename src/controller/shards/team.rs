//! Who holds how much, as the candidacies of one replica have last seen it, and what follows from it.

use super::Ticket;
use crate::controller::lease::{Stance, holder, wish};
use k8s_openapi::api::coordination::v1::Lease;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

/// How long a shard that is free is left to replicas with one shard less: they look at it more often.
const STEP: Duration = Duration::from_secs(3);

/// How many steps it is left to others at most: what a dead replica held shall be taken over within half a minute.
const STEPS: usize = 4;

/// How long a shard that was left because somebody asked for it is left to them.
const COURTESY: Duration = Duration::from_secs(6);

/// The candidacies of one replica.
pub(in crate::controller) struct Team {
    us: String,
    seats: Mutex<Vec<Seat>>,
    /// Taken by whoever writes for a shard, and altogether by who leaves it.
    gates: Vec<Arc<RwLock<()>>>,
}

/// The Lease of a shard, as it was last seen.
#[derive(Clone, Debug, Default)]
struct Seat {
    holder: Option<String>,
    wanted_by: Option<String>,
}

impl Team {
    /// Those of a replica of this name, for so many shards.
    pub(super) fn new(us: String, shards: usize) -> Self {
        Self {
            us,
            seats: Mutex::new(vec![Seat::default(); shards]),
            gates: (0..shards).map(|_| Arc::default()).collect(),
        }
    }

    /// How many shards there are.
    pub(in crate::controller) fn shards(&self) -> usize {
        self.gates.len()
    }

    /// To be kept while something is written for a shard; nothing where it is being left.
    pub(in crate::controller) fn ticket(&self, shard: usize) -> Option<Ticket> {
        Arc::clone(self.gates.get(shard)?).try_read_owned().ok()
    }

    /// Waits until nothing is written for a shard any more, and lets nothing be as long as what is returned is kept.
    pub(in crate::controller) async fn drained(&self, shard: usize) -> Option<OwnedRwLockWriteGuard<()>> {
        Some(Arc::clone(self.gates.get(shard)?).write_owned().await)
    }

    /// What to make of the Lease of a shard, which is seen so.
    pub(in crate::controller) fn stance(&self, shard: usize, seen: Option<&Lease>) -> Stance {
        let mut seats = self.seats();
        let seat = Seat {
            holder: seen.and_then(holder).map(str::to_owned),
            wanted_by: seen.and_then(wish).map(str::to_owned),
        };
        seats[shard] = seat.clone();
        stance(&self.us, &seats, shard)
    }

    /// A shard was left.
    pub(in crate::controller) fn left(&self, shard: usize) {
        self.seats()[shard].holder = None;
    }

    fn seats(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stance(us: &str, seats: &[Seat], shard: usize) -> Stance {
    let seat = &seats[shard];
    let ours = held(seats, us);
    let patience: Duration = (0..ours.min(STEPS)).map(|_| STEP).sum();
    let is_ours = seat.holder.as_deref() == Some(us);
    Stance {
        patience: match seat.wanted_by.as_deref() {
            Some(other) if other == us => Duration::ZERO,
            Some(_) if seat.holder.is_none() => patience.saturating_add(COURTESY),
            _ => patience,
        },
        asks: wanted(us, seats) == Some(shard),
        leaves: is_ours
            && seat
                .wanted_by
                .as_deref()
                .is_some_and(|other| ours >= held(seats, other).saturating_add(2)),
    }
}

/// How many shards somebody holds.
fn held(seats: &[Seat], who: &str) -> usize {
    seats.iter().filter(|seat| seat.holder.as_deref() == Some(who)).count()
}

/// The shard to ask for: of those who hold two more than we do at least, the one who holds most. One at a time.
fn wanted(us: &str, seats: &[Seat]) -> Option<usize> {
    let asks = |seat: &Seat| seat.holder.is_some() && seat.wanted_by.as_deref() == Some(us);
    if seats.iter().any(asks) {
        return None;
    }
    let holders = seats.iter().filter_map(|seat| seat.holder.as_deref());
    let most = holders
        .filter(|holder| *holder != us)
        .max_by_key(|holder| (held(seats, holder), *holder))?;
    let can_be_asked = |seat: &Seat| seat.holder.as_deref() == Some(most) && seat.wanted_by.is_none();
    (held(seats, most) >= held(seats, us).saturating_add(2)).then(|| seats.iter().position(can_be_asked))?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leases by their holders, each with who asks for it after a `<`.
    fn seats(text: &str) -> Vec<Seat> {
        let seat = |text: &str| {
            let (holder, wanted_by) = text.split_once('<').unwrap_or((text, ""));
            let some = |text: &str| (!text.is_empty() && text != "-").then(|| text.to_owned());
            Seat {
                holder: some(holder),
                wanted_by: some(wanted_by),
            }
        };
        text.split(' ').map(seat).collect()
    }

    #[test]
    fn who_has_less_asks_who_has_most_for_one() {
        let wanted = |us: &str, text: &str| wanted(us, &seats(text));
        assert_eq!(wanted("b", "a a a"), Some(0));
        assert_eq!(wanted("c", "a<b a a"), Some(1), "another has asked for the first");
        assert_eq!(wanted("b", "a<b a a"), None, "one at a time");
        assert_eq!(wanted("b", "b a a"), None, "it would be no better");
        assert_eq!(wanted("c", "a a b b b"), Some(2));
        assert_eq!(wanted("c", "a b -"), None);
        assert_eq!(wanted("a", "a a a"), None);
        assert_eq!(
            wanted("b", "-<b a a"),
            Some(1),
            "what it asked for is free, and nobody else has it"
        );
    }

    #[test]
    fn a_shard_is_left_only_to_who_has_less() {
        let leaves = |text: &str| stance("a", &seats(text), 0).leaves;
        assert!(leaves("a<b a a"));
        assert!(leaves("a<b a"));
        assert!(!leaves("a<b b a"), "that would be no better");
        assert!(!leaves("a a a"), "nobody asks");
        assert!(!leaves("b<c b b"), "it is not ours");
    }

    #[test]
    fn what_is_free_goes_to_who_has_least_and_first_to_who_has_asked() {
        let patience = |us: &str, text: &str| stance(us, &seats(text), 0).patience;
        assert_eq!(patience("a", "- - -"), Duration::ZERO);
        assert_eq!(patience("a", "- a a"), STEP * 2);
        assert_eq!(patience("b", "-<b a a"), Duration::ZERO);
        assert_eq!(patience("a", "-<b a a"), STEP * 2 + COURTESY);
        assert_eq!(patience("a", "gone a b"), STEP);
        assert_eq!(patience("b", "gone<b a b"), Duration::ZERO);
    }

    /// Whatever they begin with, replicas that see everything end with as much as each other, and then leave it at that.
    #[test]
    fn replicas_end_with_equal_shares() {
        for (shards, replicas) in [(3, 3), (3, 2), (16, 3), (5, 4), (2, 3)] {
            let mut all = vec![
                Seat {
                    holder: Some("0".to_owned()),
                    wanted_by: None
                };
                shards
            ];
            let mut moves = 0;
            for _ in 0..100 {
                for us in (0..replicas).map(|us| us.to_string()) {
                    for shard in 0..shards {
                        let stance = stance(&us, &all, shard);
                        if stance.asks {
                            all[shard].wanted_by = Some(us.clone());
                        } else if stance.leaves {
                            all[shard].holder = all[shard].wanted_by.take();
                            moves += 1;
                        }
                    }
                }
            }
            let counts: Vec<_> = (0..replicas).map(|us| held(&all, &us.to_string())).collect();
            let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
            assert!(spread <= 1, "{counts:?}");
            assert_eq!(moves, shards - counts[0], "each that moves moves once");
        }
    }
}
