//! The writer: sends all writes of the controller except those of its Lease.

mod ca_cache;

use super::action::{Action, Event, InvolvedObject, RecordedEvent, Verb, Write};
use super::metrics::{Metrics, Reason};
use super::queue::{FAILING_AFTER, Outcome};
use super::text::bounded;
use ca_cache::CaCache;
pub use ca_cache::read_authority;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::core::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::request::{Error as BuildError, Request};
use kube::{Client, Error};
use pki::{Authority, AuthorityData, Recipe};
use primitives::hash::{hash, with_hash};
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use primitives::timestamp::format_time;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{debug, info, warn};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Writer {
    client: Client,
    metrics: Metrics,
    /// The field manager of the writes, and the source of the Events.
    manager: &'static str,
    identity: String,
    dry_run: bool,
    now: fn() -> Timestamp,
    ca_cache: CaCache,
    /// True while this replica may write.
    leads: watch::Receiver<bool>,
}

impl Writer {
    /// Creates a writer that uses this client, under the name `manager`, for the replica of this identity, which writes
    /// only while it `leads`.
    pub fn new(
        client: Client,
        metrics: Metrics,
        manager: &'static str,
        identity: String,
        dry_run: bool,
        now: fn() -> Timestamp,
        leads: watch::Receiver<bool>,
    ) -> Self {
        Self {
            client,
            metrics,
            manager,
            identity,
            dry_run,
            now,
            ca_cache: CaCache::default(),
            leads,
        }
    }

    pub const fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Carries out the writes of a controller, one after the other. The caller records the Events afterwards. `attempt` counts the
    /// failures in a row, and this attempt.
    pub async fn write(&self, controller: &'static str, action: &Action, attempt: u32) -> WriteResult {
        for write in &action.writes {
            match self.execute(controller, write).await {
                Ok(false) => {
                    return WriteResult {
                        outcome: Outcome::FAILED,
                        refusal: None,
                    };
                }
                Ok(true) => {}
                Err(refused) => {
                    if refused.reason == Reason::Conflict
                        && let Verb::Create(object) = &write.verb
                    {
                        self.record_name_conflict(controller, &action.involved_object, write, object)
                            .await;
                    }
                    return WriteResult {
                        outcome: self.refused(controller, write, &refused, attempt),
                        refusal: WriteRefusal::from_error(write, &refused),
                    };
                }
            }
        }
        WriteResult {
            outcome: Outcome::Written {
                refreshed: action.refresh,
            },
            refusal: None,
        }
    }

    /// Carries out a write. Returns false if another replica may lead now.
    async fn execute(&self, controller: &'static str, write: &Write) -> Result<bool, WriteError> {
        let made;
        let write = match &write.recipe {
            // A dry run generates no data.
            Some(recipe) if !self.dry_run => {
                made = self.make(write, recipe).await?;
                &made
            }
            _ => write,
        };
        let Write {
            resource, object_ref, ..
        } = write;
        let (kind, verb) = (resource.kind, write.verb.name());
        let body = match write.body() {
            Some(_) if resource.secret => "(not shown)".to_owned(),
            body => body.map(Value::to_string).unwrap_or_default(),
        };
        if self.dry_run {
            info!(object = %object_ref, kind, verb, "would write");
            debug!(object = %object_ref, kind, verb, %body, "would write this body");
            return Ok(true);
        }
        if let Some((resource, object_ref)) = &write.unless_exists {
            self.check_absent(resource, object_ref, write.waits).await?;
        }
        // The Lease may have been lost since the decision, also by the reads above, and a creation has no precondition that would fail.
        if !*self.leads.borrow() {
            return Ok(false);
        }
        match self.send(request(write, self.manager)).await {
            Ok(_) => {}
            // The object is already in the desired state.
            Err(refused) if refused.is_gone && matches!(write.verb, Verb::Delete { .. }) => return Ok(true),
            Err(refused) => return Err(refused),
        }
        self.metrics.written(controller, resource.plural, verb);
        if let Some(recipe) = &write.recipe {
            self.metrics.issued(recipe);
        }
        debug!(object = %object_ref, kind, verb, %body, "written");
        Ok(true)
    }

    /// Returns a write with its generated data, made with the CA that the decision was based on.
    async fn make(&self, write: &Write, recipe: &Recipe) -> Result<Write, WriteError> {
        let authority = match recipe.authority() {
            None => None,
            Some(desired) => {
                let fetch = async || self.fetch_authority(&desired.object_ref).await;
                let authority = self.ca_cache.authority(desired, fetch).await?;
                let why = || format!("Secret {} changed since it was read", desired.object_ref);
                Some(authority.ok_or_else(|| WriteError::new(Reason::Conflict, why()))?)
            }
        };
        // The search for large primes takes a second and must not block the thread.
        let copy = recipe.clone();
        let made = tokio::task::spawn_blocking(move || pki::make(&copy, authority.as_deref()));
        let made = made
            .await
            .map_err(|_| WriteError::new(Reason::Other, "the generation of its data was aborted".to_owned()))?;
        let made = made.map_err(|error| WriteError::new(Reason::Other, error.to_string()))?;
        let mut write = write.clone();
        if let Some(body) = write.body_mut() {
            for (key, value) in made {
                body["data"][recipe.key(key)] = json!(value.map(ByteString));
            }
        }
        Ok(write)
    }

    async fn fetch_authority(&self, object_ref: &ObjectRef) -> Result<(Authority, AuthorityData), WriteError> {
        let path = format!("/api/v1/namespaces/{}/secrets", object_ref.namespace);
        let request = Request::new(path).get(&object_ref.name, &GetParams::default());
        let text = self.send(request).await?;
        let (version, data) = read_authority(&text).map_err(|error| WriteError::new(Reason::Other, error))?;
        let object_ref = object_ref.clone();
        Ok((Authority { object_ref, version }, data))
    }

    /// Checks with the API server that an object does not exist. A response that its kind is unknown is no proof.
    async fn check_absent(
        &self,
        resource: &'static Resource,
        object_ref: &ObjectRef,
        is_waiting: bool,
    ) -> Result<(), WriteError> {
        let request = Request::new(resource.path(&object_ref.namespace)).get(&object_ref.name, &GetParams::default());
        match self.send(request).await {
            Err(refused) if refused.is_gone => Ok(()),
            Err(refused) => Err(refused),
            Ok(_) => {
                let why = format!("{} {object_ref} still exists", resource.kind);
                Err(WriteError {
                    is_waiting,
                    ..WriteError::new(Reason::Conflict, why)
                })
            }
        }
    }

    /// Records an Event with best effort: a failure is not retried.
    pub async fn record_event(&self, recorded: &RecordedEvent) {
        let RecordedEvent {
            controller,
            involved_object,
            event,
            is_persistent,
        } = recorded;
        let (Event { reason, message, .. }, object_ref, kind) =
            (event, &involved_object.object_ref, involved_object.resource.kind);
        if self.dry_run {
            info!(object = %object_ref, kind, event = reason, note = message, "would record an Event");
            return;
        }
        match self.write_event(recorded).await {
            Ok(true) if *is_persistent => warn!(object = %object_ref, kind, event = reason, "{message}"),
            Ok(_) => {}
            Err(refused) => {
                self.metrics.failed(controller, refused.reason);
                warn!(object = %object_ref, kind, event = reason, why = refused.why, "cannot write the Event");
            }
        }
    }

    /// Records an Event that an object cannot be created because another object has its name. An object with all our labels is
    /// our own, which no watch event has reported yet. The request selects these labels, because we must not read objects of
    /// others.
    async fn record_name_conflict(
        &self,
        controller: &'static str,
        involved_object: &InvolvedObject,
        Write {
            resource, object_ref, ..
        }: &Write,
        object: &Value,
    ) {
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        let labels: Vec<_> = labels
            .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
            .collect();
        let itself = ListParams::default()
            .fields(&format!("metadata.name={}", object_ref.name))
            .labels(&labels.join(","));
        let request = Request::new(resource.path(&object_ref.namespace)).list(&itself);
        let Ok(answer) = self.send(request).await else { return };
        let list: Value = serde_json::from_str(&answer).unwrap_or_default();
        if list["items"].as_array().is_none_or(|items| !items.is_empty()) {
            return;
        }
        let message = format!(
            "{} {object_ref} cannot be created: another object has that name",
            resource.kind
        );
        self.record_event(&RecordedEvent {
            controller,
            involved_object: involved_object.clone(),
            event: Event::warning("NameTaken", message),
            is_persistent: true,
        })
        .await;
    }

    fn refused(&self, controller: &'static str, write: &Write, refused: &WriteError, attempt: u32) -> Outcome {
        let Write {
            resource, object_ref, ..
        } = write;
        let (kind, why) = (resource.kind, &refused.why);
        if refused.is_gone && matches!(write.verb, Verb::Patch(_) | Verb::JsonPatch(_)) {
            debug!(object = %object_ref, kind, "deleted before it was written");
            return Outcome::Unchanged;
        }
        if refused.is_waiting {
            debug!(object = %object_ref, kind, %why, "waiting");
            return Outcome::Failed {
                retry_after: None,
                cause: None,
                is_waiting: true,
            };
        }
        self.metrics.failed(controller, refused.reason);
        // An occasional conflict is normal. The log must have the reason of one that lasts, because no Event or condition has it.
        if refused.reason == Reason::Conflict && attempt < FAILING_AFTER {
            debug!(object = %object_ref, kind, %why, "conflict: another writer changed the object");
        } else {
            warn!(object = %object_ref, kind, %why, "write failed; retrying");
        }
        let is_common = refused.reason != Reason::Conflict;
        Outcome::Failed {
            retry_after: refused.retry_after,
            cause: is_common.then(|| (resource.plural, refused.reason.name())),
            is_waiting: false,
        }
    }

    /// Creates an Event, or increments the count of an equal one: the name is derived from the contents. Lasting problems are not
    /// counted. Returns true for a new Event.
    async fn write_event(&self, recorded: &RecordedEvent) -> Result<bool, WriteError> {
        let RecordedEvent {
            controller,
            involved_object,
            event,
            is_persistent,
        } = recorded;
        let object_ref = &involved_object.object_ref;
        // Events on objects without a namespace are created in the namespace where kubectl looks for them.
        let namespace = match &*object_ref.namespace {
            "" => "default",
            namespace => namespace,
        };
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let name = event_name(recorded);
        let now = format_time((self.now)());
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": involved_object.resource.api_version(),
                "kind": involved_object.resource.kind,
                "namespace": &*object_ref.namespace,
                "name": &*object_ref.name,
                "uid": involved_object.uid,
            },
            "type": if event.warning { "Warning" } else { "Normal" },
            "reason": event.reason,
            "message": event.message,
            "source": {"component": self.manager},
            "reportingComponent": self.manager,
            "reportingInstance": self.identity,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        let known = async || self.send(Request::new(&path).get(&name, &GetParams::default())).await;
        if *is_persistent {
            match known().await {
                Ok(_) => return Ok(false),
                Err(refused) if refused.is_gone => {}
                Err(refused) => return Err(refused),
            }
        }
        let request = Request::new(&path).create(&PostParams::default(), body.to_string().into_bytes());
        match self.send(request).await {
            Ok(_) => {
                self.metrics.written(controller, "events", "create");
                return Ok(true);
            }
            Err(refused) if refused.reason == Reason::Conflict => {}
            Err(refused) => return Err(refused),
        }
        let stored = known().await?;
        let stored: Value = serde_json::from_str(&stored).unwrap_or_default();
        let count = stored["count"].as_i64().unwrap_or(1).saturating_add(1);
        let body = json!({"count": count, "lastTimestamp": now});
        let params = PatchParams::default();
        let request = Request::new(&path).patch(&name, &params, &Patch::Merge(&body));
        self.send(request).await?;
        self.metrics.written(controller, "events", "patch");
        Ok(false)
    }

    async fn send(&self, request: Result<http::Request<Vec<u8>>, BuildError>) -> Result<String, WriteError> {
        let request = request.map_err(|error| WriteError::from_error(&Error::BuildRequest(error)))?;
        let Ok(answer) = timeout(REQUEST_TIMEOUT, self.client.request_text(request)).await else {
            let why = format!("no response within {} seconds", REQUEST_TIMEOUT.as_secs());
            return Err(WriteError::new(Reason::Timeout, why));
        };
        answer.map_err(|error| WriteError::from_error(&error))
    }
}

/// Returns the request of a write under the name of a field manager, without the data that is yet to be generated.
pub fn request(write: &Write, manager: &str) -> Result<http::Request<Vec<u8>>, BuildError> {
    let name = &write.object_ref.name;
    let requests = Request::new(write.resource.path(&write.object_ref.namespace));
    let field_manager = Some(manager.to_owned());
    match &write.verb {
        Verb::Create(object) => {
            let params = PostParams {
                field_manager,
                ..PostParams::default()
            };
            requests.create(&params, object.to_string().into_bytes())
        }
        Verb::Patch(body) | Verb::JsonPatch(body) => {
            let params = PatchParams {
                field_manager,
                ..PatchParams::default()
            };
            let patch = match &write.verb {
                Verb::JsonPatch(_) => {
                    Patch::Json(serde_json::from_value(body.clone()).map_err(BuildError::SerializeBody)?)
                }
                _ => Patch::Merge(body),
            };
            match write.resource.subresource {
                None => requests.patch(name, &params, &patch),
                Some(subresource) => requests.patch_subresource(subresource, name, &params, &patch),
            }
        }
        Verb::Delete { uid, version } => {
            let params = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: Some(uid.to_string()),
                    resource_version: Some(version.to_string()),
                }),
                ..DeleteParams::default()
            };
            requests.delete(name, &params)
        }
    }
}

#[derive(Debug)]
pub struct WriteResult {
    pub outcome: Outcome,
    /// The reason why the API server rejected a write.
    pub refusal: Option<WriteRefusal>,
}

/// The rejection of a write by the API server, for people.
#[derive(Debug, PartialEq, Eq)]
pub struct WriteRefusal {
    /// The object that cannot be written, and the reason, in one line.
    pub text: String,
    /// True if the API server decided so: by RBAC, a quota, validation or an admission webhook. Other failures may succeed on
    /// retry.
    pub is_final: bool,
    /// True if the write was one of a status, so that no condition can show the reason.
    pub is_of_status: bool,
    /// The kind of the object that cannot be written; empty if unknown.
    pub kind: &'static str,
}

impl WriteRefusal {
    fn from_error(write: &Write, refused: &WriteError) -> Option<Self> {
        if refused.reason == Reason::Conflict
            || refused.is_gone && matches!(write.verb, Verb::Patch(_) | Verb::JsonPatch(_))
        {
            return None;
        }
        let Write {
            resource, object_ref, ..
        } = write;
        let verb = match write.verb {
            Verb::Create(_) => "created",
            Verb::Patch(_) | Verb::JsonPatch(_) => "changed",
            Verb::Delete { .. } => "deleted",
        };
        // The message of the API server may quote the object.
        let why = if resource.secret {
            refused.code.map_or(refused.reason, Reason::of_code).name()
        } else {
            &refused.why
        };
        Some(Self {
            text: bounded(format!("{} {object_ref} cannot be {verb}: {why}", resource.kind)),
            is_final: matches!(refused.code, Some(400 | 403 | 404 | 405 | 413 | 422)),
            is_of_status: resource.subresource == Some("status"),
            kind: resource.kind,
        })
    }
}

struct WriteError {
    reason: Reason,
    why: String,
    /// The delay that the API server asks for.
    retry_after: Option<Duration>,
    /// True if the object does not exist.
    is_gone: bool,
    /// True if the write waits for the deletion of another object.
    is_waiting: bool,
    /// The HTTP status of the response, if there is one.
    code: Option<u16>,
}

impl WriteError {
    fn new(reason: Reason, why: String) -> Self {
        Self {
            reason,
            why,
            retry_after: None,
            is_gone: false,
            is_waiting: false,
            code: None,
        }
    }

    fn from_error(error: &Error) -> Self {
        let status = match error {
            Error::Api(status) => Some(status),
            _ => None,
        };
        let details = status.and_then(|status| status.details.as_ref());
        let reason = Reason::from_error(error);
        let wait = match details.map_or(0, |details| details.retry_after_seconds) {
            // Most servers send the delay in a header, which kube does not expose: wait at least a second.
            0 if reason == Reason::Throttled => 1,
            wait => wait,
        };
        Self {
            reason,
            why: hub::reason(error),
            retry_after: (wait > 0).then(|| Duration::from_secs(wait.into())),
            is_gone: status.is_some_and(|status| status.code == 404 && status.reason == "NotFound"),
            is_waiting: false,
            code: status.map(|status| status.code),
        }
    }
}

fn event_name(recorded: &RecordedEvent) -> String {
    const NAME_MAX: usize = 253;
    let InvolvedObject { object_ref, uid, .. } = &recorded.involved_object;
    let Event { reason, message, .. } = &recorded.event;
    let hash = hash([uid, "\0", reason, "\0", message, "\0"], 16);
    with_hash(object_ref.name.to_string(), ".", &hash, NAME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::tests::logged;
    use crate::telemetry::{Format, Level};
    use kube::client::Body;
    use kube::core::Status;
    use ocm::resources::{SECRETS, WORKS};

    fn refusal(resource: &'static Resource, code: u16, message: &str) -> Option<WriteRefusal> {
        let write = Write::create(resource, ObjectRef::new("eu1", "shop"), Value::Null);
        let status = Status::failure(message, "Forbidden").with_code(code);
        WriteRefusal::from_error(&write, &WriteError::from_error(&Error::Api(status.boxed())))
    }

    #[test]
    fn describes_writes_that_the_api_server_refuses() {
        let rejected = refusal(&WORKS, 403, "admission webhook\n\"w\" denied the request: no").expect("it is refused");
        let text = "ManifestWork eu1/shop cannot be created: admission webhook \"w\" denied the request: no";
        assert_eq!((&*rejected.text, rejected.is_final), (text, true));
        for (code, is_final) in [
            (400, true),
            (404, true),
            (422, true),
            (500, false),
            (429, false),
            (503, false),
        ] {
            assert_eq!(
                refusal(&WORKS, code, "").map(|refusal| refusal.is_final),
                Some(is_final),
                "{code}"
            );
        }
        assert_eq!(refusal(&WORKS, 409, ""), None);
        let unfit = "the server rejected our request due to an error in our request";
        assert_eq!(
            refusal(&WORKS, 422, unfit),
            None,
            "a JSON patch that is applied already"
        );
    }

    #[test]
    fn refusal_of_a_secret_does_not_repeat_the_response() {
        let rejected = refusal(&SECRETS, 403, "invalid value: hunter2").expect("it is refused");
        assert_eq!(rejected.text, "Secret eu1/shop cannot be created: forbidden");
    }

    #[test]
    fn patches_elements_of_lists_by_operations() {
        let operations = json!([{"op": "remove", "path": "/spec/workload/manifests/0/metadata/finalizers"}]);
        let write = Write::json_patch(&WORKS, ObjectRef::new("eu1", "shop"), operations.clone());
        let request = request(&write, "test").expect("a request");
        assert_eq!(request.headers()["content-type"], "application/json-patch+json");
        assert_eq!(
            serde_json::from_slice::<Value>(request.body()).expect("JSON"),
            operations
        );
    }

    #[tokio::test]
    async fn nothing_is_sent_after_the_lease_is_lost_during_a_check() {
        let (sender, leads) = watch::channel(true);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            // While the API server answers, another replica takes over.
            sender.send_replace(false);
            let is_check = request.method() == http::Method::GET;
            async move {
                assert!(is_check, "{request:?}");
                let status = json!({"kind": "Status", "code": 404, "reason": "NotFound", "status": "Failure", "message": "",
                    "details": {"name": "shop"}});
                let response = http::Response::builder().status(404);
                Ok::<_, Error>(
                    response
                        .body(Body::from(status.to_string().into_bytes()))
                        .expect("a response"),
                )
            }
        });
        let client = Client::new(service, "argocd");
        let metrics = Metrics::with("test", "Certificates", |_| ()).0;
        let writer = Writer::new(client, metrics, "test", String::new(), false, Timestamp::now, leads);
        let work = ObjectRef::new("eu1", "shop");
        let write = Write::delete(&WORKS, work.clone(), ("uid", "1")).unless_exists(Some((&SECRETS, work.clone())));
        let involved_object = InvolvedObject::new(&WORKS, work, "".into());
        let result = writer
            .write("test", &Action::new(involved_object, vec![write], None), 1)
            .await;
        assert_eq!((result.outcome, result.refusal), (Outcome::FAILED, None));
    }

    #[test]
    fn conflict_that_lasts_is_logged_with_its_reason() {
        let service = tower::service_fn(|_: http::Request<Body>| async {
            Ok::<_, Error>(http::Response::new(Body::from(b"{}".to_vec())))
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let attempt = |attempt, waits| {
            let _entered = runtime.enter();
            let (client, (_sender, leads)) = (Client::new(service, "argocd"), watch::channel(true));
            let metrics = Metrics::with("test", "Certificates", |_| ()).0;
            let writer = Writer::new(client, metrics, "test", String::new(), false, Timestamp::now, leads);
            let work = ObjectRef::new("eu1", "shop");
            let delete = Write::delete(&WORKS, work.clone(), ("uid", "1"));
            let delete = delete.unless_exists(Some((&SECRETS, ObjectRef::new("argocd", "shop"))));
            let delete = Write { waits, ..delete };
            let action = Action::new(InvolvedObject::new(&WORKS, work, "".into()), vec![delete], None);
            logged(Level::Warn, Format::Text, || {
                runtime.block_on(writer.write("test", &action, attempt));
            })
        };
        let quiet = [attempt(1, false), attempt(2, false), attempt(3, true)];
        assert_eq!(quiet, [[""; 0]; 3]);
        let [line] = &attempt(3, false)[..] else {
            panic!("no line")
        };
        assert!(line.contains("Secret argocd/shop still exists"), "{line}");
    }
}
