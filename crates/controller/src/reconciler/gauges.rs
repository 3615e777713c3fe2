//! The metrics of the event loop's state.

use super::Reconciler;
use hub_state::{Availability, Kind};
use ocm::health::HealthStatus;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

impl Reconciler {
    pub(super) fn record_work_metrics(&self, leads: bool) {
        self.metrics.leading(leads);
        for health in HealthStatus::ALL {
            self.hub_metrics.works(health, self.cache.count(health));
        }
    }

    pub(super) fn record_object_metrics(&self, kind: Kind) {
        match kind {
            Kind::GitOpsClusters => self.hub_metrics.gitops_clusters(self.cache.gitops_clusters()),
            Kind::Clusters => {
                for availability in Availability::ALL {
                    self.hub_metrics
                        .managed_clusters(availability, self.cache.cluster_count(availability));
                }
            }
            Kind::Certificates => self.hub_metrics.certificates(self.cache.certificates_until()),
            _ => {}
        }
    }

    /// Records failing objects and the age of the workqueues. Objects that were due before this replica might write count from then
    /// on.
    pub(super) fn record_queue_metrics(&self, now: Instant) {
        let mut all: BTreeMap<_, (usize, Duration)> = BTreeMap::new();
        for workqueue in &self.workqueues {
            let (failing, delay) = all.entry(workqueue.controller.name).or_default();
            if let Some(since) = self.writes_since {
                let due = workqueue.queue.next_due().map(|due| due.max(since));
                *delay = due.map_or(*delay, |due| now.saturating_duration_since(due).max(*delay));
                *failing = failing.saturating_add(workqueue.queue.failing());
            }
        }
        for (controller, (failing, delay)) in all {
            self.metrics.queued(controller, failing, delay);
        }
    }
}
