//! What the program exposes.

use argocd_ocm_cmp::controller::metrics::{Metrics, Reason};
use argocd_ocm_cmp::controller::seen::{GitOpsCluster, Place, Reach};
use argocd_ocm_cmp::pki::Recipe;
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a metric is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Metric {
    /// Such as `gauge`.
    pub(super) kind: String,
    /// Without the `le` of a histogram.
    pub(super) labels: BTreeSet<String>,
}

/// Something of everything has been counted.
pub(super) fn counted() -> Metrics {
    let metrics = Metrics::new();
    let promise = "application-status";
    let status = r#"{"clusters": {"selected": 1}}"#;
    let text = format!(r#"{{"metadata": {{}}, "spec": {{"placementRef": {{}}}}, "status": {status}}}"#);
    let fleet = (
        Place::new("team", "fleet"),
        GitOpsCluster::read(&text).expect("a GitOpsCluster"),
    );
    metrics.reconciled(promise);
    metrics.failed(promise, Reason::Conflict);
    metrics.queued(promise, 0, Duration::ZERO);
    metrics.written(promise, "applications", "patch");
    metrics.warned("pull", "ManifestWorkRefused");
    metrics.lagged("manifestworks", Duration::ZERO);
    metrics.received("manifestworks", 1);
    metrics.watch_failed("manifestworks", Reason::Expired);
    metrics.synced("manifestworks", true);
    metrics.holding(1, 1);
    metrics.managed_clusters(Reach::Heard, 1);
    metrics.certificates([("argocd-agent-ca", Timestamp::UNIX_EPOCH)].into_iter());
    metrics.gitops_clusters([(&fleet.0, &fleet.1)].into_iter());
    metrics.issued(&Recipe::Jwt);
    metrics.panicked(promise);
    metrics.event_dropped(promise);
    metrics
}

/// Everything that `/metrics` may have, by name; a counter's ends with `_total`.
pub(super) fn exposed() -> BTreeMap<String, Metric> {
    let mut all = read(&counted().render());
    // Only where there is a limit.
    let limit = all.entry("argocd_ocm_cmp_memory_limit_bytes".to_owned()).or_default();
    "gauge".clone_into(&mut limit.kind);
    all
}

/// Reads OpenMetrics.
fn read(text: &str) -> BTreeMap<String, Metric> {
    let mut all = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (base, kind) = rest.split_once(' ').expect("a type");
            let end = if kind == "counter" { "_total" } else { "" };
            name = format!("{base}{end}");
            let (kind, labels) = (kind.to_owned(), BTreeSet::new());
            all.insert(name.clone(), Metric { kind, labels });
        } else if !line.starts_with('#') {
            let labels = line
                .split_once('{')
                .map(|(_, rest)| rest.split_once('}').expect("labels").0);
            let labels = labels.into_iter().flat_map(|labels| labels.split(','));
            let labels = labels.map(|label| label.split_once('=').expect("a label").0.to_owned());
            let metric = all.get_mut(&name).expect("its type comes first");
            metric.labels.extend(labels.filter(|label| label != "le"));
        }
    }
    all
}

#[test]
fn nothing_is_left_out_here() {
    let all = exposed();
    let code = include_str!("../../../src/controller/metrics.rs");
    let mut registered = 0;
    for part in code
        .split("help = ")
        .skip(1)
        .chain(code.split("ours.register(").skip(1))
    {
        // The name is the first text of a call, and the help has spaces in it.
        let Some(name) = part.split('"').nth(1).filter(|name| !name.contains(' ')) else {
            continue;
        };
        let has = |end: &str| all.contains_key(&format!("argocd_ocm_cmp_{name}{end}"));
        assert!(has("") || has("_total"), "{name} is counted nowhere in this test");
        registered += 1;
    }
    let ours = all.keys().filter(|name| name.starts_with("argocd_ocm_cmp_"));
    assert_eq!(registered + 1, ours.count(), "the memory limit is not registered");
}
