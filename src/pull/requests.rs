//! What somebody asks of the hub's Application is handed on to the managed cluster, once: its `operation` (a sync, a rollback), and
//! the annotation that asks for a refresh.
//!
//! Nothing is kept but what the API server has, and a controller may die between any two writes. So a request has a name of its
//! own, and goes these ways:
//!
//! 1. It stands on the hub's Application. The work is made to carry it.
//! 2. The work carries it: it can be taken from the Application, and then somebody may ask again.
//! 3. It is gone from the Application, and the cluster says that it has it no longer, in the form that the work carries: Argo CD
//!    takes away what it has done. Then it is taken out of the work. Not before: an operation that is taken away while it runs
//!    would never end.
//!
//! It stays in the work as long as it stands on the Application, or it would be carried again. An operation that comes while the
//! one before it is not done, or one of the cluster's own, waits on the Application, where Argo CD refuses a third ("another operation is in progress"); on the
//! cluster it would be lost, for Argo CD clears the field when the first is done. Where the agent cannot apply the first, the
//! second takes its place.
//!
//! The agent applies all of the Application when anything of it changes. If an operation has been done by then, and that has not
//! yet come back, it is run again. So no refresh comes or goes while the work carries an operation. But a change of the Application does
//! not wait, since it may be what an operation needs that does not end: that one may be run on the new form as well.

use super::application::Application;
use super::carried::Carried;
use super::{annotation, entry, hash, items, names, text};
use crate::controller::seen::REFRESH;
use serde_json::{Value, json};

/// What is asked of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// To do this.
    pub operation: Option<Operation>,
    /// To compare again.
    pub refresh: Option<Refresh>,
}

/// An operation of Argo CD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its own name: a hash of what is to be done and, where that is known, the time at which it was asked for.
    pub id: Box<str>,
    /// What is to be done, as JSON, with its name in the `info`.
    pub value: Box<str>,
}

/// A request to compare again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// How: `normal`, `hard`.
    pub kind: Box<str>,
    /// Its own name.
    pub nonce: Box<str>,
}

/// What can be taken from the hub's Application, because the work carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Its `operation`.
    pub operation: bool,
    /// Its annotation that asks for a refresh.
    pub refresh: bool,
}

/// How many digits of a hash tell requests apart: 48 bits.
const DIGITS: usize = 12;

/// Stands between the hash and the time.
const AT: char = '@';

/// The hard kind of a refresh, which does more than the other.
const HARD: &str = "hard";

impl Operation {
    /// What is asked of an Application of the hub.
    pub(super) fn of_hub(object: &Value) -> Option<Self> {
        let mut operation = object.get("operation").filter(|it| it.is_object())?.clone();
        let mut info: Vec<Value> = items(&operation, "/info").to_vec();
        info.retain(|item| text(item, "/name") != Some(names::OPERATION));
        operation["info"] = info.into();
        let asked = asked(object, &["f:operation"]);
        let id = name(
            &[
                text(object, "/metadata/uid").unwrap_or_default(),
                &operation.to_string(),
            ],
            asked,
        );
        let own = json!({"name": names::OPERATION, "value": id});
        operation["info"].as_array_mut().expect("it was made one").push(own);
        Some(Self {
            id: id.into(),
            value: operation.to_string().into(),
        })
    }

    /// What a work carries, if we have named it.
    pub(super) fn of_payload(payload: &Value) -> Option<Self> {
        let operation = payload.get("operation")?;
        let mut info = items(operation, "/info").iter();
        let own = info.find(|item| text(item, "/name") == Some(names::OPERATION))?;
        Some(Self {
            id: text(own, "/value")?.into(),
            value: operation.to_string().into(),
        })
    }

    /// When it was asked for.
    #[must_use]
    pub fn asked(&self) -> Option<&str> {
        self.id.split_once(AT).map(|(_, time)| time)
    }

    /// Whether the controller of ApplicationSets asks for it, as it does to take a RollingSync a step further.
    #[must_use]
    pub fn is_of_set(&self) -> bool {
        let value: Value = serde_json::from_str(&self.value).unwrap_or_default();
        text(&value, "/initiatedBy/username") == Some(names::SET_CONTROLLER)
    }

    /// Whether both ask for the same, whenever.
    fn is_alike(&self, other: &Self) -> bool {
        let content = |it: &Self| it.id.split(AT).next().map(ToOwned::to_owned);
        content(self) == content(other)
    }
}

impl Refresh {
    /// What is asked of an Application of the hub.
    pub(super) fn of_hub(object: &Value) -> Option<Self> {
        let kind = entry(object, "annotations", REFRESH)?;
        let field = format!("f:{REFRESH}");
        let asked = asked(object, &["f:metadata", "f:annotations", &field]);
        let uid = text(object, "/metadata/uid").unwrap_or_default();
        let stamp = annotation(object, names::REFRESH_TIMESTAMP).unwrap_or_default();
        Some(Self {
            kind: kind.into(),
            nonce: name(&[uid, kind, stamp], asked).into(),
        })
    }

    /// What a work carries, if we have named it.
    pub(super) fn of_payload(payload: &Value) -> Option<Self> {
        Some(Self {
            kind: entry(payload, "annotations", REFRESH)?.into(),
            nonce: annotation(payload, names::REFRESH_REQUEST)?.into(),
        })
    }
}

/// When somebody last wrote this field, as the API server has noted it: to the second.
fn asked<'v>(object: &'v Value, field: &[&str]) -> Option<&'v str> {
    let owns = |entry: &&Value| {
        let fields = entry.get("fieldsV1");
        field
            .iter()
            .try_fold(fields?, |fields, name| fields.get(*name))
            .map(|_| ())
    };
    let entries = items(object, "/metadata/managedFields").iter();
    let owners = entries.filter(|entry| owns(entry).is_some());
    owners.filter_map(|entry| text(entry, "/time")).max()
}

fn name(content: &[&str], asked: Option<&str>) -> String {
    let hash = hash(content, DIGITS);
    asked.map_or_else(|| hash.clone(), |asked| format!("{hash}{AT}{asked}"))
}

/// What the work is to carry, and what can be taken from the hub's Application. `carried` is its work on the cluster to which
/// it is to go now: what another cluster was asked is no business of this one.
#[must_use]
pub fn requests(application: &Application, carried: Option<&Carried>) -> (Requests, Taken) {
    let asked = &application.requests;
    let Some(carried) = carried else {
        return (asked.clone(), Taken::default());
    };
    let (operation, operation_taken) = operation(asked.operation.as_ref(), carried);
    let (mut refresh, refresh_taken) = refresh(asked.refresh.as_ref(), carried);
    if operation.is_some() && operation == carried.operation {
        refresh.clone_from(&carried.refresh);
    }
    let taken = Taken {
        operation: operation_taken,
        refresh: refresh_taken,
    };
    (Requests { operation, refresh }, taken)
}

fn operation(asked: Option<&Operation>, carried: &Carried) -> (Option<Operation>, bool) {
    // What came of it has come back already: the controller of ApplicationSets asks for what it has not seen yet.
    if asked.is_some_and(Operation::is_of_set) && carried.is_synced() {
        let (kept, _) = operation(None, carried);
        return (kept, true);
    }
    let Some(before) = &carried.operation else {
        return (asked.filter(|_| !carried.is_busy()).cloned(), false);
    };
    let is_done = carried.has_done(before);
    let Some(asked) = asked else {
        return ((!is_done).then(|| before.clone()), false);
    };
    // What is not known to be done is not asked for twice, as Argo CD's API server does not take another then. The API server's note
    // of the time may move because whoever has asked changes something else; and the controller of ApplicationSets asks again
    // and again until it sees an end: done later, that would sync what is in Git by then, and its step's turn may be over.
    if asked.id == before.id || !is_done && asked.is_alike(before) {
        (Some(before.clone()), true)
    } else if is_done || !carried.is_current() && carried.refused().is_some() {
        (Some(asked.clone()), false)
    } else {
        (Some(before.clone()), false)
    }
}

/// A refresh can be asked for at any time: Argo CD does those that come together at once.
fn refresh(asked: Option<&Refresh>, carried: &Carried) -> (Option<Refresh>, bool) {
    let Some(before) = &carried.refresh else {
        return (asked.cloned(), false);
    };
    let is_done = carried.is_current() && carried.feedback.refresh_pending.is_none();
    match asked {
        None => ((!is_done).then(|| before.clone()), false),
        Some(asked) if asked.nonce == before.nonce => (Some(before.clone()), true),
        Some(asked) => {
            let stays_hard = !is_done && &*before.kind == HARD;
            let kind = if stays_hard { &before.kind } else { &asked.kind };
            let refresh = Refresh {
                kind: kind.clone(),
                nonce: asked.nonce.clone(),
            };
            (Some(refresh), false)
        }
    }
}

#[cfg(test)]
mod world;

#[cfg(test)]
mod tests {
    use super::super::tests::{application, payload, said, work};
    use super::*;
    use crate::tracking::TRACKING_ID;

    const NOON: &str = "2026-06-01T12:00:00Z";
    const LATER: &str = "2026-06-01T12:00:05Z";

    /// Asks the hub's Application to sync this revision.
    pub(super) fn click(object: &mut Value, revision: &str, time: &str) {
        object["operation"] = json!({"sync": {"revision": revision}});
        note(object, &json!({"f:operation": {"f:sync": {}}}), time);
    }

    pub(super) fn ask(object: &mut Value, kind: &str, time: &str) {
        object["metadata"]["annotations"][REFRESH] = json!(kind);
        note(
            object,
            &json!({"f:metadata": {"f:annotations": {format!("f:{REFRESH}"): {}}}}),
            time,
        );
    }

    fn note(object: &mut Value, fields: &Value, time: &str) {
        let entry = json!({"manager": "argocd-server", "time": time, "fieldsV1": fields});
        match &mut object["metadata"]["managedFields"] {
            Value::Array(entries) => entries.push(entry),
            none => *none = json!([entry]),
        }
    }

    fn synced(revision: &str, time: &str) -> Application {
        application(|object| click(object, revision, time))
    }

    fn refreshed(kind: &str, time: &str) -> Application {
        application(|object| ask(object, kind, time))
    }

    fn nothing_asked() -> Application {
        application(|_| ())
    }

    /// The work that carries this, whose agent has applied it, fed back its form, and these values.
    fn carries(requests: &Requests, values: &[(&str, &str)]) -> Carried {
        let form = payload(&nothing_asked(), requests);
        let mut all = vec![("payload", &*form)];
        all.extend(values);
        read(&work(&nothing_asked(), requests, Some(said(&all))))
    }

    pub(super) fn read(work: &Value) -> Carried {
        Carried::read(work).expect("it is of the pull model")
    }

    #[test]
    fn an_operation_waits_while_the_cluster_is_in_the_middle_of_one_of_its_own() {
        for (phase, goes) in [
            ("Running", false),
            ("Terminating", false),
            ("Succeeded", true),
            ("Failed", true),
        ] {
            let state = [("operationStatePhase", phase), ("operationStateStartedAt", NOON)];
            let (wanted, taken) = requests(&synced("abc", NOON), Some(&carries(&Requests::default(), &state)));
            assert_eq!((wanted.operation.is_some(), taken.operation), (goes, false), "{phase}");
        }
    }

    #[test]
    fn a_request_is_carried_and_then_taken_and_then_dropped() {
        for asked in [synced("a", NOON), refreshed("normal", NOON)] {
            let (wanted, taken) = requests(&asked, None);
            assert_eq!((&wanted, taken), (&asked.requests, Taken::default()), "first the work");
            let other = read(&work(&nothing_asked(), &Requests::default(), None));
            assert_eq!(requests(&asked, Some(&other)), (wanted.clone(), Taken::default()));
            let offline = read(&work(&nothing_asked(), &wanted, None));
            let taken = Taken {
                operation: wanted.operation.is_some(),
                refresh: wanted.refresh.is_some(),
            };
            assert_eq!(
                requests(&asked, Some(&offline)),
                (wanted.clone(), taken),
                "then the Application"
            );
            assert_eq!(
                requests(&nothing_asked(), Some(&offline)),
                (wanted.clone(), Taken::default())
            );
            let done = carries(&wanted, &[]);
            assert_eq!(
                requests(&asked, Some(&done)),
                (wanted, taken),
                "as long as it stands there"
            );
            let none = (Requests::default(), Taken::default());
            assert_eq!(requests(&nothing_asked(), Some(&done)), none);
        }
    }

    #[test]
    fn nothing_is_dropped_before_the_cluster_says_that_it_is_done() {
        let wanted = synced("a", NOON).requests;
        let id = wanted
            .operation
            .as_ref()
            .map(|it| it.id.to_string())
            .expect("an operation");
        let running = carries(&wanted, &[("operationPending", &id), ("operationBegun", &id)]);
        assert_eq!(requests(&nothing_asked(), Some(&running)).0, wanted);
        let late = work(
            &nothing_asked(),
            &wanted,
            Some(said(&[("payload", "of an earlier form")])),
        );
        assert_eq!(requests(&nothing_asked(), Some(&read(&late))).0, wanted);
        let silent = work(&nothing_asked(), &wanted, Some(said(&[])));
        assert_eq!(requests(&nothing_asked(), Some(&read(&silent))).0, wanted);
        let mut gone = said(&[("payload", &payload(&nothing_asked(), &wanted))]);
        gone["conditions"][1]["status"] = json!("False");
        let gone = work(&nothing_asked(), &wanted, Some(gone));
        assert_eq!(
            requests(&nothing_asked(), Some(&read(&gone))).0,
            wanted,
            "what is not there says nothing"
        );
        let wanted = refreshed("hard", NOON).requests;
        let pending = carries(&wanted, &[("refreshPending", "hard")]);
        assert_eq!(requests(&nothing_asked(), Some(&pending)).0, wanted);
    }

    #[test]
    fn an_operation_waits_for_the_one_before_it() {
        let (first, second) = (synced("a", NOON).requests, synced("b", LATER));
        let running = carries(&first, &[("operationPending", "x")]);
        assert!(
            requests(&second, Some(&running)).0 == second.requests,
            "another's has taken its place"
        );
        let id = first
            .operation
            .as_ref()
            .map(|it| it.id.to_string())
            .expect("an operation");
        let running = carries(&first, &[("operationPending", &id)]);
        assert_eq!(requests(&second, Some(&running)), (first.clone(), Taken::default()));
        let offline = read(&work(&nothing_asked(), &first, None));
        assert_eq!(requests(&second, Some(&offline)), (first.clone(), Taken::default()));
        let done = carries(&first, &[]);
        assert_eq!(
            requests(&second, Some(&done)),
            (second.requests.clone(), Taken::default())
        );
        let mut refused = said(&[]);
        refused["conditions"][0]["status"] = json!("False");
        let refused = read(&work(&nothing_asked(), &first, Some(refused)));
        assert_eq!(
            requests(&second, Some(&refused)).0,
            second.requests,
            "which cannot be applied"
        );
    }

    #[test]
    fn a_set_that_asks_for_what_has_been_done_meanwhile_gets_nothing_more() {
        let of = |who: &str| {
            let operation = json!({"initiatedBy": {"username": who}, "sync": {}});
            application(|object| object["operation"] = operation)
        };
        for (who, status, taken) in [
            (names::SET_CONTROLLER, "Synced", true),
            (names::SET_CONTROLLER, "OutOfSync", false),
            ("admin", "Synced", false),
        ] {
            let carried = carries(&Requests::default(), &[("syncStatus", status)]);
            let (wanted, what) = requests(&of(who), Some(&carried));
            assert_eq!(
                (wanted.operation.is_none(), what.operation),
                (taken, taken),
                "{who}, {status}"
            );
        }
    }

    #[test]
    fn what_is_not_done_is_not_asked_for_twice() {
        let (first, again) = (synced("a", NOON).requests, synced("a", LATER));
        assert_ne!(first, again.requests);
        let id = first
            .operation
            .as_ref()
            .map(|it| it.id.to_string())
            .expect("an operation");
        let taken = Taken {
            operation: true,
            refresh: false,
        };
        let waiting = carries(&first, &[("operationPending", &id)]);
        assert_eq!(requests(&again, Some(&waiting)), (first.clone(), taken));
        let begun = carries(&first, &[("operationPending", &id), ("operationBegun", &id)]);
        assert_eq!(
            requests(&again, Some(&begun)),
            (first.clone(), taken),
            "or it would be run when another commit's turn has come"
        );
        let done = carries(&first, &[("operationBegun", &id)]);
        assert_eq!(
            requests(&again, Some(&done)),
            (again.requests.clone(), Taken::default())
        );
    }

    #[test]
    fn a_refresh_can_be_asked_for_at_any_time_and_a_hard_one_stays_hard() {
        let (first, second) = (refreshed("normal", NOON).requests, refreshed("normal", LATER));
        assert_ne!(first, second.requests, "two clicks");
        let stamped = |stamp: &str| {
            application(|object| {
                ask(object, "normal", NOON);
                object["metadata"]["annotations"][names::REFRESH_TIMESTAMP] = json!(stamp);
            })
        };
        assert_ne!(stamped("1").requests, stamped("2").requests, "within one second");
        let pending = carries(&first, &[("refreshPending", "normal")]);
        assert_eq!(
            requests(&second, Some(&pending)),
            (second.requests.clone(), Taken::default())
        );
        let hard = carries(&refreshed("hard", NOON).requests, &[("refreshPending", "hard")]);
        let (wanted, _) = requests(&second, Some(&hard));
        let refresh = wanted.refresh.expect("a refresh");
        assert_eq!(
            (&*refresh.kind, Some(&refresh.nonce)),
            ("hard", second.requests.refresh.as_ref().map(|it| &it.nonce))
        );
        let done = carries(&refreshed("hard", NOON).requests, &[]);
        assert_eq!(requests(&second, Some(&done)).0, second.requests);
    }

    #[test]
    fn no_refresh_comes_or_goes_while_the_work_carries_an_operation() {
        let both = Requests {
            operation: synced("a", NOON).requests.operation,
            refresh: refreshed("normal", NOON).requests.refresh,
        };
        let id = both
            .operation
            .as_ref()
            .map(|it| it.id.to_string())
            .expect("an operation");
        let running = carries(&both, &[("operationPending", &id)]);
        assert_eq!(
            requests(&nothing_asked(), Some(&running)).0,
            both,
            "the refresh is done"
        );
        let running = carries(&synced("a", NOON).requests, &[("operationPending", &id)]);
        let (wanted, taken) = requests(&refreshed("normal", LATER), Some(&running));
        assert_eq!((wanted, taken), (synced("a", NOON).requests, Taken::default()));
        let done = carries(&both, &[]);
        assert_eq!(requests(&nothing_asked(), Some(&done)).0, Requests::default());
    }

    #[test]
    fn another_cluster_is_asked_anew() {
        let asked = synced("a", NOON);
        assert_eq!(
            requests(&asked, None).0,
            asked.requests,
            "what stands on the Application"
        );
        assert_eq!(
            requests(&nothing_asked(), None).0,
            Requests::default(),
            "and nothing that was taken from it"
        );
    }

    #[test]
    fn a_request_has_the_same_name_after_a_restart_and_another_when_it_is_made_again() {
        let id = |object: &dyn Fn(&mut Value)| application(object).requests.operation.expect("an operation").id;
        let first = id(&|object| click(object, "a", NOON));
        assert_eq!(first, id(&|object| click(object, "a", NOON)));
        assert_eq!(first.split_once(AT).map(|(_, time)| time), Some(NOON));
        assert_ne!(first, id(&|object| click(object, "a", LATER)));
        assert_ne!(first, id(&|object| click(object, "b", NOON)));
        let written = |object: &mut Value| {
            click(object, "a", NOON);
            object["metadata"]["resourceVersion"] = json!("8");
            object["status"] = json!({"health": {"status": "Healthy"}});
            note(object, &json!({"f:status": {}}), LATER);
        };
        assert_eq!(first, id(&written), "whatever else is written");
        let unknown = |object: &mut Value| object["operation"] = json!({"sync": {"revision": "a"}});
        assert_eq!(id(&unknown), id(&unknown));
    }

    #[test]
    fn an_operation_arrives_as_it_was_asked_for() {
        let asked = application(|object| {
            object["operation"] = json!({"sync": {"prune": true}, "info": [{"name": "Reason", "value": "x"}]});
        });
        let carried = read(&work(&asked, &asked.requests, None));
        assert_eq!(carried.operation, asked.requests.operation);
        let value: Value = serde_json::from_str(&carried.operation.expect("an operation").value).expect("JSON");
        assert_eq!(value["sync"], json!({"prune": true}));
        assert_eq!(value["info"][0], json!({"name": "Reason", "value": "x"}));
        assert_eq!(value["info"][1]["name"], names::OPERATION);
    }

    #[test]
    fn what_the_peers_have_left_in_a_work_is_no_request() {
        let mut work = work(&nothing_asked(), &Requests::default(), None);
        let object = &mut work["spec"]["workload"]["manifests"][0];
        object["operation"] = json!({"sync": {}});
        object["metadata"]["annotations"][REFRESH] = json!("normal");
        object["metadata"]["annotations"][TRACKING_ID] = json!("x");
        let carried = read(&work);
        assert_eq!((&carried.operation, &carried.refresh), (&None, &None));
        assert_eq!(requests(&nothing_asked(), Some(&carried)).0, Requests::default());
    }
}
