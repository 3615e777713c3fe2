//! Carries actions out. Nothing else of the controller writes but its Lease.

use super::Options;
use super::action::{Action, Event, Telling};
use super::metrics::{Metrics, Reason};
use super::queue::Outcome;
use super::seen::REFRESH;
use crate::{hub, status};
use k8s_openapi::jiff::Timestamp;
use kube::core::params::{GetParams, Patch, PatchParams, PostParams};
use kube::core::request::Request;
use kube::{Client, Error};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::timeout;
use tracing::{debug, info, warn};

/// By what name the controller writes, and what its Events come from.
pub const MANAGER: &str = "argocd-ocm-cmp";

/// How long the API server has for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes what promises want written.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    metrics: Metrics,
    /// Who we are, for the Events.
    identity: String,
    /// Whether it is only said what would be written.
    dry_run: bool,
    now: fn() -> Timestamp,
}

impl Writer {
    /// Writes by this client.
    #[must_use]
    pub fn new(client: Client, metrics: Metrics, options: &Options, now: fn() -> Timestamp) -> Self {
        Self {
            client,
            metrics,
            identity: options.identity.clone(),
            dry_run: options.dry_run,
            now,
        }
    }

    /// Writes to an Application what `promise` wants written. Its Events are to be told when that is done.
    pub async fn write(&self, promise: &'static str, action: &Action) -> Outcome {
        let body = patch(action);
        let application = &action.application;
        if self.dry_run {
            info!(%application, %body, "would write");
        } else {
            let namespace = &application.namespace;
            let request = Request::new(format!(
                "/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications"
            ));
            let params = PatchParams {
                field_manager: Some(MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let request = request.patch(&application.name, &params, &Patch::Merge(&body));
            if let Err(refused) = self.send(request).await {
                return self.refused(promise, action, &refused);
            }
            self.metrics.written(promise, "applications", "patch");
            debug!(%application, %body, "written");
        }
        Outcome::Written {
            refreshed: action.refresh,
        }
    }

    /// Writes an Event, as well as that can be done: it is not tried again.
    pub async fn tell(&self, telling: &Telling) {
        let Telling {
            promise,
            application,
            event,
            ..
        } = telling;
        let Event { reason, message, .. } = event;
        if self.dry_run {
            info!(%application, event = reason, told = message, "would tell");
        } else if let Err(refused) = self.note(telling).await {
            self.metrics.failed(promise, refused.reason);
            warn!(%application, event = reason, why = refused.why, "an Event cannot be written");
        }
    }

    fn refused(&self, promise: &'static str, action: &Action, refused: &Refused) -> Outcome {
        let (application, why) = (&action.application, &refused.why);
        if refused.is_gone {
            debug!(%application, "gone before it was written");
            return Outcome::AsItShouldBe;
        }
        self.metrics.failed(promise, refused.reason);
        if refused.reason == Reason::Conflict {
            debug!(%application, "written by somebody else meanwhile");
        } else {
            warn!(%application, %why, "cannot be written, and is tried again");
        }
        Outcome::Failed {
            retry_after: refused.retry_after,
        }
    }

    /// Writes an Event, or counts it when it has been told before: as one, by a name that is made of what it says.
    async fn note(&self, telling: &Telling) -> Result<(), Refused> {
        let Telling {
            promise,
            application: place,
            uid,
            event,
        } = telling;
        let path = format!("/api/v1/namespaces/{}/events", place.namespace);
        let name = event_name(telling);
        let now = status::time((self.now)());
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": &*place.namespace},
            "involvedObject": {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Application",
                "namespace": &*place.namespace,
                "name": &*place.name,
                "uid": uid,
            },
            "type": if event.warning { "Warning" } else { "Normal" },
            "reason": event.reason,
            "message": event.message,
            "source": {"component": MANAGER},
            "reportingComponent": MANAGER,
            "reportingInstance": self.identity,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        let request = Request::new(&path).create(&PostParams::default(), body.to_string().into_bytes());
        match self.send(request).await {
            Ok(_) => {
                self.metrics.written(promise, "events", "create");
                return Ok(());
            }
            Err(refused) if refused.reason == Reason::Conflict => {}
            Err(refused) => return Err(refused),
        }
        let told = self.send(Request::new(&path).get(&name, &GetParams::default())).await?;
        let told: Value = serde_json::from_str(&told).unwrap_or_default();
        let count = told["count"].as_i64().unwrap_or(1).saturating_add(1);
        let body = json!({"count": count, "lastTimestamp": now});
        let params = PatchParams::default();
        let request = Request::new(&path).patch(&name, &params, &Patch::Merge(&body));
        self.send(request).await?;
        self.metrics.written(promise, "events", "patch");
        Ok(())
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<String, Refused> {
        let request = request.map_err(|error| Refused::of(&Error::BuildRequest(error)))?;
        match timeout(PATIENCE, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(|error| Refused::of(&error)),
            Err(_) => Err(Refused {
                reason: Reason::Timeout,
                why: format!("no answer in {} seconds", PATIENCE.as_secs()),
                retry_after: None,
                is_gone: false,
            }),
        }
    }
}

/// Why something was not written.
struct Refused {
    reason: Reason,
    why: String,
    /// How long the API server asks us to wait.
    retry_after: Option<Duration>,
    /// What was to be written is not there.
    is_gone: bool,
}

impl Refused {
    fn of(error: &Error) -> Self {
        let status = match error {
            Error::Api(status) => Some(status),
            _ => None,
        };
        let details = status.and_then(|status| status.details.as_ref());
        let reason = Reason::of(error);
        let wait = match details.map_or(0, |details| details.retry_after_seconds) {
            // Most say it in a header, which kube keeps to itself: a second at least.
            0 if reason == Reason::Throttled => 1,
            wait => wait,
        };
        Self {
            reason,
            why: hub::reason(error),
            retry_after: (wait > 0).then(|| Duration::from_secs(wait.into())),
            is_gone: status.is_some_and(|status| status.code == 404),
        }
    }
}

/// What is written of an Application, onto the form that was looked at alone: conditions are a list that is written as a whole,
/// and a refresh that somebody asks for may be a harder one.
fn patch(action: &Action) -> Value {
    let mut metadata = Map::new();
    let mut body = Map::new();
    metadata.insert("resourceVersion".to_owned(), json!(action.version));
    if let Some(conditions) = &action.conditions {
        let conditions = if conditions.is_empty() {
            Value::Null
        } else {
            json!(conditions)
        };
        body.insert("status".to_owned(), json!({"conditions": conditions}));
    }
    if action.refresh {
        metadata.insert("annotations".to_owned(), json!({REFRESH: "normal"}));
    }
    body.insert("metadata".to_owned(), metadata.into());
    body.into()
}

fn event_name(telling: &Telling) -> String {
    /// Of the 253 characters that a name may have, a dot and sixteen more are ours.
    const NAME_MAX: usize = 236;
    let mut hash = Sha256::new();
    for part in [&*telling.uid, telling.event.reason, &telling.event.message] {
        hash.update(part);
        hash.update([0]);
    }
    let mut name = telling.application.name.to_string();
    name.truncate(NAME_MAX);
    let mut name = format!("{}.", name.trim_end_matches(['.', '-']));
    for byte in &hash.finalize()[..8] {
        let _ = write!(name, "{byte:02x}");
    }
    name
}
