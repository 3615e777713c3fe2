//! Paces the requests for a cluster. Its service-proxy reviews the token of each request, at most five times a second: more requests
//! would only queue there, even those whose client has gone.

use crate::limits::{PACE_BURST, PACE_INTERVAL, PACE_WAIT};
use crate::refusal::HttpRefusal;
use http::StatusCode;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time at which the next request for each cluster may be sent, at an even pace.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<HashMap<String, Instant>>);

impl Pace {
    /// Waits until a request for a cluster may be sent.
    pub(crate) async fn wait(&self, cluster: &str) -> Result<(), HttpRefusal> {
        let wait = self.reserve(cluster, Instant::now());
        let wait = wait.ok_or_else(|| {
            HttpRefusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!("cluster {cluster} is asked too often: try again in some seconds"),
            )
        })?;
        sleep(wait).await;
        Ok(())
    }

    /// Returns the time to wait; `None` if it is too long.
    fn reserve(&self, cluster: &str, now: Instant) -> Option<Duration> {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A cluster that was not asked for a while is as good as a new one.
        next.retain(|_, at| *at + PACE_INTERVAL * PACE_BURST > now);
        let burst = PACE_INTERVAL * PACE_BURST;
        let at = next.get(cluster).copied().unwrap_or(now).max(now);
        let wait = (at + PACE_INTERVAL).saturating_duration_since(now + burst);
        if wait > PACE_WAIT {
            return None;
        }
        next.insert(cluster.to_owned(), at + PACE_INTERVAL);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn limits_a_burst_and_then_the_rate_of_each_cluster() {
        let (pace, start) = (Pace::default(), Instant::now());
        let waits: Vec<_> = (0..100).map_while(|_| pace.reserve("eu1", start)).collect();
        let at_once = waits.iter().filter(|wait| wait.is_zero()).count();
        assert_eq!(at_once, PACE_BURST as usize);
        assert!(
            waits.is_sorted() && waits.len() < 40 && waits.last().is_some_and(|duration| *duration <= PACE_WAIT),
            "{waits:?}"
        );
        assert_eq!(
            pace.reserve("eu2", start),
            Some(Duration::ZERO),
            "each cluster has its own"
        );
        let refused = pace.wait("eu1").await.expect_err("too many");
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(pace.reserve("eu1", start + PACE_INTERVAL).is_some());
        let later = start + Duration::from_secs(60);
        assert_eq!(pace.reserve("eu1", later), Some(Duration::ZERO));
        assert_eq!(pace.0.lock().expect("no panic").len(), 1, "clusters are forgotten");
    }
}
