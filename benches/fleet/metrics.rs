//! The metrics of the controller and of the API server.

use anyhow::Result;
use http::Request;
use kube::Client;

/// Metrics in Prometheus' text format.
pub(crate) struct Metrics(pub(super) String);

impl Metrics {
    /// Returns the sum of the series with this end of the name and with these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        let series = lines.filter_map(|line| line.rsplit_once(' '));
        let expected = series.filter(|(series, _)| {
            let (of, set) = series.split_once('{').unwrap_or((series, ""));
            of.ends_with(name) && labels.iter().all(|label| set.contains(label))
        });
        expected.filter_map(|(_, figure)| figure.parse::<f64>().ok()).sum()
    }
}

/// The numbers of requests to the API server for the kinds that the controller uses.
pub(crate) struct Requests {
    pub(crate) lists: u64,
    pub(crate) writes: u64,
    /// The writes of Applications.
    pub(crate) applications: u64,
    /// The writes of works.
    pub(crate) works: u64,
}

/// The verbs of writes in the API server's metrics.
const WRITES: [&str; 5] = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];

/// The kinds that controllers use.
const KINDS: [&str; 13] = [
    "applications",
    "manifestworks",
    "applicationsets",
    "manifestworkreplicasets",
    "multiclusterapplicationsetreports",
    "managedclusters",
    "configmaps",
    "events",
    "secrets",
    "certificatesigningrequests",
    "gitopsclusters",
    "managedclusteraddons",
    "placementdecisions",
];

impl Requests {
    pub(crate) async fn of(client: &Client) -> Result<Self> {
        let metrics = Metrics(client.request_text(Request::get("/metrics").body(Vec::new())?).await?);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are counted"
        )]
        let sum = |verbs: &[&str], kinds: &[&str]| {
            let labels = |verb| {
                kinds
                    .iter()
                    .map(move |kind| [format!("verb=\"{verb}\""), format!("resource=\"{kind}\"")])
            };
            let all = verbs.iter().flat_map(labels);
            all.map(|[verb, kind]| metrics.sum("apiserver_request_total", &[&verb, &kind]))
                .sum::<f64>() as u64
        };
        Ok(Self {
            lists: sum(&["LIST"], &KINDS),
            writes: sum(&WRITES, &KINDS),
            applications: sum(&WRITES, &["applications"]),
            works: sum(&WRITES, &["manifestworks"]),
        })
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            lists: self.lists - before.lists,
            writes: self.writes - before.writes,
            applications: self.applications - before.applications,
            works: self.works - before.works,
        }
    }
}
