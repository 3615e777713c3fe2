//! The metrics that the program exposes.

use controller::metrics;
use hub_state::model::{Availability, GitOpsCluster};
use jiff::Timestamp;
use pki::Recipe;
use primitives::object_ref::ObjectRef;
use runtime::metrics::{Metrics, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A metric.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Metric {
    /// The type, such as `gauge`.
    pub(super) kind: String,
    /// The labels, without the `le` of a histogram.
    pub(super) labels: BTreeSet<String>,
}

/// Returns metrics with a value for every metric.
pub(super) fn metrics_with_values() -> Metrics {
    let (metrics, hub_metrics) = metrics::metrics();
    let controller = "application-status";
    let status = r#"{"clusters": {"selected": 1}}"#;
    let text = format!(r#"{{"metadata": {{}}, "spec": {{"placementRef": {{}}}}, "status": {status}}}"#);
    let fleet = (
        ObjectRef::new("team", "fleet"),
        GitOpsCluster::from_json(&text).expect("a GitOpsCluster"),
    );
    metrics.reconciled(controller);
    metrics.failed(controller, Reason::Conflict);
    metrics.queued(controller, 0, Duration::ZERO);
    metrics.written(controller, "applications", "patch");
    metrics.warned("pull", "ManifestWorkRefused");
    metrics.lagged("manifestworks", Duration::ZERO);
    metrics.received("manifestworks", 1);
    metrics.watch_failed("manifestworks", Reason::Expired);
    metrics.synced("manifestworks", true);
    metrics.leading(true);
    hub_metrics.managed_clusters(Availability::Available, 1);
    hub_metrics.certificates([("argocd-agent-ca", Timestamp::UNIX_EPOCH)].into_iter());
    hub_metrics.gitops_clusters([(&fleet.0, &fleet.1)].into_iter());
    metrics.issued(&Recipe::Jwt);
    metrics.panicked(controller);
    metrics.event_dropped(controller);
    metrics
}

/// Returns all possible metrics of `/metrics`, by name; the name of a counter ends in `_total`, of an info in `_info`.
pub(super) fn exposed() -> BTreeMap<String, Metric> {
    let mut all = parse_metrics(&metrics_with_values().render());
    // Exposed only if there is a limit.
    let limit = all.entry("argocd_ocm_cmp_memory_limit_bytes".to_owned()).or_default();
    "gauge".clone_into(&mut limit.kind);
    all
}

/// Parses OpenMetrics.
fn parse_metrics(text: &str) -> BTreeMap<String, Metric> {
    let mut all = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (base, kind) = rest.split_once(' ').expect("a type");
            let end = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            name = format!("{base}{end}");
            let (kind, labels) = (kind.to_owned(), BTreeSet::new());
            all.insert(name.clone(), Metric { kind, labels });
        } else if !line.starts_with('#') {
            let labels = line
                .split_once('{')
                .map(|(_, rest)| rest.split_once('}').expect("labels").0);
            let labels = labels.into_iter().flat_map(|labels| labels.split(','));
            let labels = labels.map(|label| label.split_once('=').expect("a label").0.to_owned());
            let metric = all.get_mut(&name).expect("a TYPE line before the samples");
            metric.labels.extend(labels.filter(|label| label != "le"));
        }
    }
    all
}

#[test]
fn exposed_lists_every_registered_metric() {
    let all = exposed();
    let code = concat!(
        include_str!("../../../crates/controller/src/metrics.rs"),
        include_str!("../../../crates/runtime/src/metrics.rs")
    );
    let mut registered = 0;
    let calls = ["add_metric(ours", "ours.register("];
    for part in calls.iter().flat_map(|call| code.split(call).skip(1)) {
        // The name is the first text of a call; the help contains spaces.
        let Some(name) = part.split('"').nth(1).filter(|name| !name.contains(' ')) else {
            continue;
        };
        let has = |end: &str| all.contains_key(&format!("argocd_ocm_cmp_{name}{end}"));
        assert!(["", "_total", "_info"].into_iter().any(has), "no test value for {name}");
        registered += 1;
    }
    let ours = all.keys().filter(|name| name.starts_with("argocd_ocm_cmp_"));
    assert_eq!(registered + 1, ours.count(), "the memory limit is not registered");
}
