//! What the metrics show of the state of the controller.

use super::Reconciler;
use crate::controller::seen::Reach;
use crate::controller::shards::Held;
use crate::controller::watches::Kind;
use crate::status::Verdict;
use std::collections::BTreeMap;
use std::time::Duration;

impl Reconciler {
    /// For how many shards this replica may write, and how works fare.
    pub(super) fn measure_works(&self, held: Held) {
        let shards = self.team.shards();
        self.metrics.holding(held.count(shards), shards);
        for verdict in Verdict::ALL {
            self.metrics.works(verdict, self.index.count(verdict));
        }
    }

    /// What there is now of a kind, where the metrics show it.
    pub(super) fn measure(&self, kind: Kind) {
        match kind {
            Kind::GitOpsClusters => self.metrics.gitops_clusters(self.index.gitops_clusters()),
            Kind::Clusters => {
                for reach in Reach::ALL {
                    self.metrics.managed_clusters(reach, self.index.heard(reach));
                }
            }
            Kind::Certificates => self.metrics.certificates(self.index.certificates_until()),
            _ => {}
        }
    }

    /// How what this replica writes for gets on. What was due before it did has waited for another.
    pub(super) fn measure_lanes(&mut self, held: Held) {
        let now = (self.clocks.elapsed)();
        let mut all: BTreeMap<_, (usize, Duration)> = BTreeMap::new();
        for lane in &mut self.lanes {
            let (failing, delay) = all.entry(lane.promise.name).or_default();
            lane.held = held.has(lane.shard).then(|| lane.held.unwrap_or(now));
            if let Some(since) = lane.held {
                let due = lane.queue.next().map(|due| due.max(since));
                *delay = due.map_or(*delay, |due| now.saturating_duration_since(due).max(*delay));
                *failing = failing.saturating_add(lane.queue.failing());
            }
        }
        for (promise, (failing, delay)) in all {
            self.metrics.queued(promise, failing, delay);
        }
    }
}
