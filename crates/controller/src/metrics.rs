//! The Prometheus metrics of the hub's objects, beside those of the runtime.

use hub_state::{Availability, GitOpsCluster};
use jiff::Timestamp;
use ocm::health::HealthStatus;
use primitives::object_ref::ObjectRef;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use runtime::metrics::{Metrics, add_metric};
use std::sync::Arc;

/// The counts of managed clusters in the status of a GitOpsCluster.
const COUNTED: [&str; 5] = ["selected", "registered", "installed", "connected", "degraded"];

/// The metrics of the hub's objects. Clones share their values.
#[derive(Clone, Debug)]
pub struct HubMetrics {
    works: Family<[(&'static str, &'static str); 1], Gauge>,
    managed_clusters: Family<[(&'static str, &'static str); 1], Gauge>,
    certificates: Family<[(&'static str, &'static str); 1], Gauge>,
    clusters: Family<[(&'static str, Arc<str>); 3], Gauge>,
}

/// Creates the metrics of the runtime and of the hub's objects, which are rendered together.
pub fn metrics() -> (Metrics, HubMetrics) {
    Metrics::with(
        "argocd_ocm_cmp",
        "Certificates and token keys issued for argocd-agent",
        HubMetrics::register,
    )
}

impl HubMetrics {
    fn register(ours: &mut Registry) -> Self {
        let expiry = "Expiry of an argocd-agent certificate on the hub, as a Unix time";
        let counts = "Managed clusters of a GitOpsCluster, as counted in its status";
        let metrics = Self {
            works: add_metric(ours, "works", "Works of Applications by health"),
            managed_clusters: add_metric(ours, "managed_clusters", "Managed clusters by availability"),
            certificates: add_metric(ours, "certificate_expiry_timestamp_seconds", expiry),
            clusters: add_metric(ours, "gitopscluster_clusters", counts),
        };
        for health in HealthStatus::ALL {
            metrics.works(health, 0);
        }
        metrics
    }

    pub fn works(&self, health: HealthStatus, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.works.get_or_create(&[("state", health.name())]).set(count);
    }

    pub fn managed_clusters(&self, availability: Availability, count: usize) {
        let available = match availability {
            Availability::Available => "true",
            Availability::Unavailable => "false",
            Availability::Unknown => "unknown",
        };
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.managed_clusters
            .get_or_create(&[("available", available)])
            .set(count);
    }

    pub fn certificates(&self, all: impl Iterator<Item = (&'static str, Timestamp)>) {
        self.certificates.clear();
        for (secret, until) in all {
            self.certificates
                .get_or_create(&[("secret", secret)])
                .set(until.as_second());
        }
    }

    /// Records the counts of all GitOpsClusters. Counts that are missing in a status have no time series.
    pub fn gitops_clusters<'i>(&self, all: impl Iterator<Item = (&'i ObjectRef, &'i GitOpsCluster)>) {
        self.clusters.clear();
        for (object_ref, gitops_cluster) in all {
            for state in COUNTED {
                let count = gitops_cluster
                    .status
                    .get("clusters")
                    .and_then(|clusters| clusters[state].as_i64());
                let Some(count) = count else { continue };
                let (namespace, name) = (Arc::clone(&object_ref.namespace), Arc::clone(&object_ref.name));
                let labels = [("namespace", namespace), ("name", name), ("state", state.into())];
                self.clusters.get_or_create(&labels).set(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn works_and_clusters_are_counted_by_state() {
        let (rendered, metrics) = metrics();
        metrics.works(HealthStatus::Degraded, 7);
        metrics.managed_clusters(Availability::Available, 5);
        metrics.managed_clusters(Availability::Unavailable, 0);
        metrics.managed_clusters(Availability::Unknown, 1);
        let desired = [
            r#"argocd_ocm_cmp_managed_clusters{available="false"} 0"#,
            r#"argocd_ocm_cmp_managed_clusters{available="true"} 5"#,
            r#"argocd_ocm_cmp_managed_clusters{available="unknown"} 1"#,
        ];
        assert_eq!(rendered.lines("argocd_ocm_cmp_managed_clusters"), desired);
        let desired = [
            r#"argocd_ocm_cmp_works{state="Degraded"} 7"#,
            r#"argocd_ocm_cmp_works{state="Healthy"} 0"#,
            r#"argocd_ocm_cmp_works{state="Missing"} 0"#,
            r#"argocd_ocm_cmp_works{state="Progressing"} 0"#,
            r#"argocd_ocm_cmp_works{state="Suspended"} 0"#,
            r#"argocd_ocm_cmp_works{state="Unknown"} 0"#,
            r#"argocd_ocm_cmp_works{state="Waiting"} 0"#,
        ];
        assert_eq!(rendered.lines("argocd_ocm_cmp_works"), desired);
    }

    #[test]
    fn exports_gitopscluster_gauges_only_while_the_object_exists() {
        let (rendered, metrics) = metrics();
        let read = |status: &serde_json::Value| {
            let text = json!({"metadata": {}, "spec": {"placementRef": {}}, "status": status});
            GitOpsCluster::from_json(&text.to_string()).expect("a GitOpsCluster")
        };
        let clusters = json!({"selected": 3, "registered": 2, "installed": 2, "connected": 1, "degraded": 1});
        let fleet = (ObjectRef::new("argocd", "fleet"), read(&json!({"clusters": clusters})));
        let registers = json!({"clusters": {"selected": 1, "registered": 0, "odd": 7}});
        let small = (ObjectRef::new("team", "small"), read(&registers));
        let new = (ObjectRef::new("team", "new"), read(&json!({"clusters": null})));
        let all = [fleet, small, new];
        metrics.gitops_clusters(
            all.iter()
                .map(|(object_ref, gitops_cluster)| (object_ref, gitops_cluster)),
        );
        let start = "argocd_ocm_cmp_gitopscluster_clusters";
        let expected = [
            r#"namespace="argocd",name="fleet",state="connected"} 1"#,
            r#"namespace="argocd",name="fleet",state="degraded"} 1"#,
            r#"namespace="argocd",name="fleet",state="installed"} 2"#,
            r#"namespace="argocd",name="fleet",state="registered"} 2"#,
            r#"namespace="argocd",name="fleet",state="selected"} 3"#,
            r#"namespace="team",name="small",state="registered"} 0"#,
            r#"namespace="team",name="small",state="selected"} 1"#,
        ];
        let expected = expected.map(|rest| format!("{start}{{{rest}"));
        assert_eq!(rendered.lines(start), expected);
        metrics.gitops_clusters(
            all[1..]
                .iter()
                .map(|(object_ref, gitops_cluster)| (object_ref, gitops_cluster)),
        );
        assert_eq!(rendered.lines(start), expected[5..]);
    }

    #[test]
    fn exports_certificate_expiry_only_while_the_secret_exists() {
        let (rendered, metrics) = metrics();
        let until = Timestamp::from_second(1_800_000_000).expect("a time");
        let all = [("argocd-agent-ca", until), ("argocd-agent-principal-tls", until)];
        metrics.certificates(all.into_iter());
        let start = "argocd_ocm_cmp_certificate_";
        let line = |secret: &str| format!(r#"{start}expiry_timestamp_seconds{{secret="{secret}"}} 1800000000"#);
        assert_eq!(rendered.lines(start), all.map(|(secret, _)| line(secret)));
        metrics.certificates(all[..1].iter().copied());
        assert_eq!(rendered.lines(start), [line("argocd-agent-ca")]);
    }
}
