//! The Prometheus metrics of the runtime: reconciliations, writes, watches, the process.

use kube::Error;
use pki::Recipe;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The message of API servers about a JSON patch that does not fit the present object, such as one that is applied already.
const UNFIT_PATCH: &str = "the server rejected our request due to an error in our request";

/// The reason of a failure; few values, because each is a time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Another writer was faster.
    Conflict,
    /// A watch asks for a resource version that the API server no longer has: all objects are listed again.
    Expired,
    Forbidden,
    Throttled,
    /// The API server fails or cannot be reached.
    Server,
    Timeout,
    /// The hub does not serve the kind, which is optional.
    Missing,
    Unreadable,
    Other,
}

impl Reason {
    pub const ALL: [Self; 9] = [
        Self::Conflict,
        Self::Expired,
        Self::Forbidden,
        Self::Throttled,
        Self::Server,
        Self::Timeout,
        Self::Missing,
        Self::Unreadable,
        Self::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Expired => "expired",
            Self::Forbidden => "forbidden",
            Self::Throttled => "throttled",
            Self::Server => "server",
            Self::Timeout => "timeout",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::Other => "other",
        }
    }

    pub fn of_code(code: u16) -> Self {
        match code {
            401 | 403 => Self::Forbidden,
            408 | 504 => Self::Timeout,
            409 => Self::Conflict,
            410 => Self::Expired,
            429 => Self::Throttled,
            500.. => Self::Server,
            _ => Self::Other,
        }
    }

    pub fn from_error(error: &Error) -> Self {
        match error {
            Error::Api(status) if status.message == UNFIT_PATCH => Self::Conflict,
            Error::Api(status) if status.code == 403 && !lacks_permission(&status.message) => Self::Other,
            Error::Api(status) => Self::of_code(status.code),
            Error::HyperError(_) | Error::Service(_) | Error::ReadEvents(_) if hub::is_unanswered(error) => {
                Self::Timeout
            }
            Error::HyperError(_) | Error::Service(_) | Error::ReadEvents(_) => Self::Server,
            _ => Self::Other,
        }
    }
}

/// Returns true for the message of an API server that a permission is missing, also one to approve certificates. It also answers
/// 403 to requests that a quota, a terminating namespace or an admission plugin rejects: no permission would change that.
fn lacks_permission(message: &str) -> bool {
    message.to_ascii_lowercase().contains("is forbidden: user ")
}

/// The names and values of the labels of a time series.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// The metrics of the runtime. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    reconciles: Family<Labels<1>, Counter>,
    reconcile_errors: Family<Labels<2>, Counter>,
    failing: Family<Labels<1>, Gauge>,
    queue_delay: Family<Labels<1>, Gauge<f64, AtomicU64>>,
    writes: Family<Labels<3>, Counter>,
    warnings: Family<Labels<2>, Counter>,
    watch_lag: Family<Labels<1>, Histogram, fn() -> Histogram>,
    watch_bytes: Family<Labels<1>, Counter>,
    watch_errors: Family<Labels<2>, Counter>,
    watch_synced: Family<Labels<1>, Gauge>,
    leader: Gauge,
    issued: Family<Labels<1>, Counter>,
    panics: Family<Labels<1>, Counter>,
    events_dropped: Family<Labels<1>, Counter>,
    registry: Arc<Registry>,
}

/// Creates a histogram of lags. Times in `managedFields` are whole seconds, so that a lag below one second is indistinguishable
/// from none.
fn lag() -> Histogram {
    Histogram::new([1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0])
}

pub fn add_metric<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// Creates metrics with nothing counted, whose names begin with a prefix, and returns what `register` makes of the
    /// registry that all are rendered from. `issued_help` describes the certificates and keys that the writer generates.
    pub fn with<T>(prefix: &'static str, issued_help: &str, register: impl FnOnce(&mut Registry) -> T) -> (Self, T) {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process { prefix }));
        let ours = registry.sub_registry_with_prefix(prefix);
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        ours.register("build", "The version of this controller", build);
        let failing = "Objects whose last three writes failed and that are retried";
        let delay = "Waiting time of the object that has been due for longest, in seconds";
        let lag = Family::new_with_constructor(lag as fn() -> Histogram);
        let lag_help = "Seconds between the last change of an object and its watch event";
        ours.register("watch_lag_seconds", lag_help, lag.clone());
        let errors = "Watch failures and objects that cannot be parsed";
        let synced = "1 if the initial list of a watch is complete, otherwise 0";
        let metrics = Self {
            reconciles: add_metric(ours, "reconciles", "Reconciliations"),
            reconcile_errors: add_metric(ours, "reconcile_errors", "Writes that failed and are retried"),
            failing: add_metric(ours, "failing", failing),
            queue_delay: add_metric(ours, "queue_delay_seconds", delay),
            writes: add_metric(ours, "writes", "Write requests to the hub"),
            warnings: add_metric(ours, "warnings", "Warning Events, by reason"),
            watch_lag: lag,
            watch_bytes: add_metric(ours, "watch_bytes", "Bytes of JSON of the objects received by watches"),
            watch_errors: add_metric(ours, "watch_errors", errors),
            watch_synced: add_metric(ours, "watch_synced", synced),
            leader: add_metric(ours, "leader", "1 if this replica is the leader, otherwise 0"),
            issued: add_metric(ours, "certificates_issued", issued_help),
            panics: add_metric(ours, "panics", "Panics while handling one object, which is retried"),
            events_dropped: add_metric(ours, "events_dropped", "Events dropped because too many were waiting"),
            registry: Arc::default(),
        };
        let registered = register(ours);
        let registry = Arc::new(registry);
        (Self { registry, ..metrics }, registered)
    }

    pub fn reconciled(&self, controller: &'static str) {
        self.reconciles.get_or_create(&[("controller", controller)]).inc();
    }

    pub fn warned(&self, controller: &'static str, reason: &'static str) {
        let labels = [("controller", controller), ("reason", reason)];
        self.warnings.get_or_create(&labels).inc();
    }

    pub fn failed(&self, controller: &'static str, reason: Reason) {
        let labels = [("controller", controller), ("reason", reason.name())];
        self.reconcile_errors.get_or_create(&labels).inc();
    }

    /// Counts a panic of a controller, or of the shared parts: `index` (the cache) and `events` (the writing of Events).
    pub fn panicked(&self, controller: &'static str) {
        self.panics.get_or_create(&[("controller", controller)]).inc();
    }

    /// Initializes the counters of panics and dropped Events of a controller with zero, so that the first is an increase.
    pub fn expect(&self, controller: &'static str) {
        drop(self.panics.get_or_create(&[("controller", controller)]));
        drop(self.events_dropped.get_or_create(&[("controller", controller)]));
    }

    pub fn event_dropped(&self, controller: &'static str) {
        self.events_dropped.get_or_create(&[("controller", controller)]).inc();
    }

    pub fn queued(&self, controller: &'static str, failing: usize, delay: Duration) {
        let labels = [("controller", controller)];
        let failing = i64::try_from(failing).unwrap_or(i64::MAX);
        self.failing.get_or_create(&labels).set(failing);
        self.queue_delay.get_or_create(&labels).set(delay.as_secs_f64());
    }

    pub fn written(&self, controller: &'static str, resource: &'static str, verb: &'static str) {
        let labels = [("controller", controller), ("resource", resource), ("verb", verb)];
        self.writes.get_or_create(&labels).inc();
    }

    pub fn lagged(&self, kind: &'static str, lag: Duration) {
        self.watch_lag
            .get_or_create(&[("kind", kind)])
            .observe(lag.as_secs_f64());
    }

    pub fn watch_failed(&self, kind: &'static str, reason: Reason) {
        let labels = [("kind", kind), ("reason", reason.name())];
        self.watch_errors.get_or_create(&labels).inc();
    }

    pub fn synced(&self, kind: &'static str, is_synced: bool) {
        self.watch_synced.get_or_create(&[("kind", kind)]).set(is_synced.into());
    }

    pub fn received(&self, kind: &'static str, bytes: usize) {
        if bytes > 0 {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            self.watch_bytes.get_or_create(&[("kind", kind)]).inc_by(bytes);
        }
    }

    pub fn leading(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// Counts certificates that were stored on the hub. A CA certificate that is only promoted or retired is not new.
    pub fn issued(&self, recipe: &Recipe) {
        let kind = match recipe {
            Recipe::Jwt => "token-key",
            Recipe::Authority { .. } | Recipe::NextAuthority { .. } => "authority",
            Recipe::Server { .. } => "server",
            Recipe::Client { .. } => "client",
            Recipe::Sign { .. } => "agent",
            Recipe::Promote { .. } | Recipe::Drop { .. } => return,
        };
        self.issued.get_or_create(&[("kind", kind)]).inc();
    }

    pub fn render(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn lines(&self, prefix: &str) -> Vec<String> {
        let text = self.render();
        let mut lines: Vec<_> = text.lines().filter(|line| line.starts_with(prefix)).collect();
        lines.sort_unstable();
        lines.into_iter().map(str::to_owned).collect()
    }
}

/// The files with the memory limit of a container: for cgroup version 2 and version 1.
const LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// The resource usage of the process, under the names that every Prometheus client library uses.
#[derive(Debug)]
struct Process {
    /// The prefix of names that no other library uses.
    prefix: &'static str,
}

impl Collector for Process {
    #[expect(clippy::disallowed_methods, reason = "what the process uses is no manifest")]
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let resident = resident(&read("/proc/self/status"));
        let limit = LIMITS.iter().find_map(|path| limit(&read(path)));
        let limit_name = format!("{}_memory_limit_bytes", self.prefix);
        for (name, help, bytes) in [
            (
                "process_resident_memory_bytes",
                "Resident memory size in bytes",
                resident,
            ),
            (&*limit_name, "Memory limit of the process in bytes", limit),
        ] {
            if let Some(bytes) = bytes {
                let gauge = ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
                expose(&mut encoder, name, help, &gauge)?;
            }
        }
        if let Some(seconds) = cpu_seconds(&read("/proc/self/stat")) {
            let counter = ConstCounter::new(seconds);
            let help = "Total user and system CPU time spent in seconds";
            expose(&mut encoder, "process_cpu_seconds", help, &counter)?;
        }
        Ok(())
    }
}

fn expose(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn resident(status: &str) -> Option<u64> {
    let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Parses the memory limit of a control group. Without a limit, the file contains `max` or a number beyond any real memory.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 50)
}

/// Returns the CPU time from `/proc/self/stat`, which counts hundredths of seconds on every architecture that Kubernetes runs on.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name of the program comes before, in parentheses, and may contain any character.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some((f64::from(next()?) + f64::from(next()?)) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use kube::core::Status;
    use std::io;

    fn metrics() -> Metrics {
        Metrics::with("argocd_ocm_cmp", "Certificates", |_| ()).0
    }

    #[test]
    fn exposes_the_metrics_and_labels_that_dashboards_query() {
        let metrics = metrics();
        let clone = metrics.clone();
        metrics.reconciled("application-status");
        clone.reconciled("application-status");
        metrics.failed("application-status", Reason::Conflict);
        metrics.written("application-status", "applications", "patch");
        metrics.warned("pull", "ManifestWorkRefused");
        metrics.watch_failed("manifestworks", Reason::Expired);
        metrics.synced("manifestworks", true);
        metrics.synced("applications", true);
        metrics.synced("applications", false);
        metrics.leading(true);
        metrics.received("manifestworks", 4200);
        metrics.queued("application-status", 2, Duration::from_millis(1500));
        metrics.panicked("index");
        metrics.event_dropped("application-status");
        let desired = [
            concat!(
                r#"argocd_ocm_cmp_build_info{version=""#,
                env!("CARGO_PKG_VERSION"),
                r#""} 1"#
            ),
            r#"argocd_ocm_cmp_events_dropped_total{controller="application-status"} 1"#,
            r#"argocd_ocm_cmp_failing{controller="application-status"} 2"#,
            "argocd_ocm_cmp_leader 1",
            r#"argocd_ocm_cmp_panics_total{controller="index"} 1"#,
            r#"argocd_ocm_cmp_queue_delay_seconds{controller="application-status"} 1.5"#,
            r#"argocd_ocm_cmp_reconcile_errors_total{controller="application-status",reason="conflict"} 1"#,
            r#"argocd_ocm_cmp_reconciles_total{controller="application-status"} 2"#,
            r#"argocd_ocm_cmp_warnings_total{controller="pull",reason="ManifestWorkRefused"} 1"#,
            r#"argocd_ocm_cmp_watch_bytes_total{kind="manifestworks"} 4200"#,
            r#"argocd_ocm_cmp_watch_errors_total{kind="manifestworks",reason="expired"} 1"#,
            r#"argocd_ocm_cmp_watch_synced{kind="applications"} 0"#,
            r#"argocd_ocm_cmp_watch_synced{kind="manifestworks"} 1"#,
            r#"argocd_ocm_cmp_writes_total{controller="application-status",resource="applications",verb="patch"} 1"#,
        ];
        let mut lines = metrics.lines("argocd_ocm_cmp_");
        // The memory limit exists only in some environments.
        lines.retain(|line| !line.starts_with("argocd_ocm_cmp_memory_limit_bytes "));
        assert_eq!(lines, desired);
    }

    #[test]
    fn counts_issued_certificates_by_kind() {
        let metrics = metrics();
        let authority = Recipe::Authority {
            common_name: "ca".into(),
            validity: Timestamp::UNIX_EPOCH..Timestamp::UNIX_EPOCH,
        };
        for recipe in [&Recipe::Jwt, &authority, &authority] {
            metrics.issued(recipe);
        }
        let desired = [
            r#"argocd_ocm_cmp_certificates_issued_total{kind="authority"} 2"#,
            r#"argocd_ocm_cmp_certificates_issued_total{kind="token-key"} 1"#,
        ];
        assert_eq!(metrics.lines("argocd_ocm_cmp_certificates_issued"), desired);
    }

    #[test]
    fn exports_watch_lag_as_a_histogram_in_seconds() {
        let metrics = metrics();
        metrics.lagged("manifestworks", Duration::from_millis(1500));
        metrics.lagged("manifestworks", Duration::from_secs(3600));
        let lines = metrics.lines("argocd_ocm_cmp_watch_lag_seconds");
        let has = |line: &str| assert!(lines.iter().any(|sample| sample == line), "{line} in {lines:#?}");
        has(r#"argocd_ocm_cmp_watch_lag_seconds_sum{kind="manifestworks"} 3601.5"#);
        has(r#"argocd_ocm_cmp_watch_lag_seconds_count{kind="manifestworks"} 2"#);
        has(r#"argocd_ocm_cmp_watch_lag_seconds_bucket{le="1.0",kind="manifestworks"} 0"#);
        has(r#"argocd_ocm_cmp_watch_lag_seconds_bucket{le="2.0",kind="manifestworks"} 1"#);
        has(r#"argocd_ocm_cmp_watch_lag_seconds_bucket{le="300.0",kind="manifestworks"} 1"#);
        has(r#"argocd_ocm_cmp_watch_lag_seconds_bucket{le="+Inf",kind="manifestworks"} 2"#);
    }

    #[test]
    fn reads_process_usage_from_proc() {
        let stat = "7 (a) R (b) S 1 7 7 0 -1 4194560 1 0 0 0 250 175 9 9 20 0 4 0 1 1 1";
        assert_eq!(cpu_seconds(stat), Some(4.25));
        assert_eq!(
            resident("VmPeak:\t  9 kB\nVmRSS:\t    2048 kB\nRssAnon:\t 1 kB\n"),
            Some(2_097_152)
        );
        for bad in [
            "",
            "7 (a",
            "7 (a) S",
            "7 (a) S 1 7 7 0 -1 4194560 1 0 0 0 x 175",
            "VmRSS: many",
        ] {
            assert_eq!(cpu_seconds(bad), None, "{bad}");
            assert_eq!(resident(bad), None, "{bad}");
        }
        assert_eq!(limit("536870912\n"), Some(536_870_912));
        for none in ["max\n", "9223372036854771712\n", "", "-1"] {
            assert_eq!(limit(none), None, "{none}");
        }
        let memory = metrics().lines("process_resident_memory_bytes ").concat();
        let bytes: u64 = memory.rsplit_once(' ').unwrap().1.parse().unwrap();
        assert!(bytes > 1 << 20, "{memory}");
    }

    #[test]
    fn maps_errors_to_few_reasons() {
        let api = |code| Reason::from_error(&Error::Api(Box::new(Status::failure("", "").with_code(code)))).name();
        let reasons = [401, 403, 404, 409, 410, 422, 429, 500, 503, 504].map(api).join(" ");
        let desired = "forbidden other other conflict expired other throttled server server timeout";
        assert_eq!(reasons, desired);
        let denied = |why: &str| {
            let status = Status::failure(&format!("works \"a\" is forbidden: {why}"), "Forbidden").with_code(403);
            Reason::from_error(&Error::Api(status.boxed())).name()
        };
        let missing = [
            r#"User "a" cannot create resource "works" in API group """#,
            r#"user not permitted to approve requests with signerName "a""#,
        ];
        assert_eq!(missing.map(denied), ["forbidden"; 2]);
        for rejected in [
            "exceeded quota: few",
            "because it is being terminated",
            "denied request: no",
        ] {
            assert_eq!(denied(rejected), "other", "{rejected}");
        }
        let below = |kind: io::ErrorKind| Reason::from_error(&Error::Service(Box::new(io::Error::from(kind)))).name();
        assert_eq!(below(io::ErrorKind::TimedOut), "timeout");
        assert_eq!(below(io::ErrorKind::ConnectionRefused), "server");
    }
}
