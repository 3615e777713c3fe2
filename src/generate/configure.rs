//! What a work says about its objects: how the agent updates each, what it reads back from it, and what stays on the cluster
//! when the work goes.
//!
//! One entry of `manifestConfigs` serves all objects of a kind, by wildcards. The agent takes each facet from the first entry
//! that matches and has it, so an object that differs has an entry of its own before that of its kind.

use super::behaviour::{self, Behaviour};
use super::fresh;
use super::kinds::GroupKind;
use super::object::{Object, Role};
use super::order;
use super::placement::RolloutKind;
use super::policy::Executor;
use super::strategy::Strategy;
use crate::value::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// What an Application or the platform wants of all its works.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The update strategy of every object that asks for no other; `None` for what suits each.
    pub strategy: Option<Strategy>,
    /// Whether Namespaces go with the work.
    pub delete_namespaces: bool,
    /// Whether CRDs go with the work, and with them all their objects.
    pub delete_crds: bool,
    /// Whether the works carry condition rules, which OCM knows from v1.0 on.
    pub condition_rules: bool,
    /// The `ServiceAccount` of the managed cluster by whose rights the agent applies.
    pub executor: Option<Executor>,
    /// How a change goes through the clusters of a placement; `None` where clusters are given by name.
    pub rollout: Option<RolloutKind>,
}

impl Wanted {
    /// Whether a change goes on to other clusters when one is done with it.
    #[must_use]
    pub fn goes_by_cluster(&self) -> bool {
        self.rollout.is_some_and(|kind| kind != RolloutKind::All)
    }
}

/// The resources of kinds.
#[derive(Debug, Default)]
pub struct Plurals(HashMap<GroupKind, String>);

impl Plurals {
    /// What the CRDs among `objects` say, and before them `settings`.
    #[must_use]
    pub fn new(objects: &[Object], settings: &[(GroupKind, String)]) -> Self {
        let defined = objects
            .iter()
            .filter_map(|object| object.defines.as_deref())
            .filter_map(|defined| Some((defined.kind.clone(), defined.plural.as_deref()?.to_owned())));
        Self(defined.chain(settings.iter().cloned()).collect())
    }

    fn of(&self, kind: &GroupKind) -> String {
        match (self.0.get(kind), kind.built_in()) {
            (Some(plural), _) => plural.clone(),
            (None, Some(known)) => known.plural.to_owned(),
            (None, None) => kind.guessed_plural(),
        }
    }
}

/// The fields of a work's `spec` besides its workload.
///
/// With `defaults`, what OCM's CRD would fill in is there already: without, Argo CD sees a difference for ever in what it
/// applies server-side. Elsewhere it is left out, because older versions of the CRD do not know all of it.
#[must_use]
pub fn fields(objects: &[Object], plurals: &Plurals, wanted: &Wanted, defaults: bool) -> Map<'static> {
    let mut fields = Vec::new();
    let orphans: Vec<Value<'static>> = objects
        .iter()
        .filter(|object| is_kept(object, wanted))
        .map(|object| identifier(object, plurals))
        .collect();
    if !orphans.is_empty() {
        let delete_option = Value::map([
            ("propagationPolicy", Value::text("SelectivelyOrphan")),
            (
                "selectivelyOrphans",
                Value::map([("orphaningRules", Value::List(orphans))]),
            ),
        ]);
        fields.push(("deleteOption", delete_option));
    }
    if let Some(Executor { namespace, name }) = &wanted.executor {
        let account = Value::map([("name", Value::text(name)), ("namespace", Value::text(namespace))]);
        let subject = Value::map([("serviceAccount", account), ("type", Value::text("ServiceAccount"))]);
        fields.push(("executor", Value::map([("subject", subject)])));
    }
    let mut entries = entries(objects, plurals, wanted);
    if wanted.rollout.is_some() && wanted.condition_rules && !entries.iter().any(Entry::is_judged) {
        // OCM takes a cluster as done only if the work says that it is not progressing, and no object here would have it say so.
        if let Some(entry) = entries.last_mut() {
            entry.is_done = true;
        }
    }
    let configs = entries.into_iter().map(|entry| entry.value(wanted, defaults)).collect();
    fields.push(("manifestConfigs", Value::List(configs)));
    Map::of(fields)
}

/// Whether an object stays on the cluster when it leaves Git or the Application is removed. A Namespace takes all that is in
/// it along, a CRD all objects of its kind, and both may have been there before.
fn is_kept(object: &Object, wanted: &Wanted) -> bool {
    let asked = object.wishes.as_ref().is_some_and(|wishes| wishes.keep);
    let is_crd = &*object.key.kind.group == "apiextensions.k8s.io";
    asked || is_crd && !wanted.delete_crds || order::is_namespace(object) && !wanted.delete_namespaces
}

/// One entry of `manifestConfigs`.
#[expect(clippy::struct_excessive_bools, reason = "each is about another facet")]
struct Entry<'a> {
    identifier: Value<'static>,
    kind: &'a GroupKind,
    strategy: Strategy,
    /// Whether it says what is read back from the objects; else that is left to the entry of the kind.
    feedback: bool,
    /// Whether it says how the objects are judged; else that is left to the entry of the kind.
    rules: bool,
    /// Whether the objects run: the agent leaves them alone, and their work, when they have run to their end.
    runs: bool,
    /// What the objects that this work has applied can be told by, where it matters.
    fresh: Option<String>,
    /// Whether they are said to be done as soon as they are applied.
    is_done: bool,
}

/// An entry for each object that differs from its kind, and behind them one for each kind.
fn entries<'a>(objects: &'a [Object], plurals: &Plurals, wanted: &Wanted) -> Vec<Entry<'a>> {
    let mut kinds: BTreeMap<&GroupKind, Vec<&Object>> = BTreeMap::new();
    // Nearly all objects of a kind stand side by side.
    for alike in objects.chunk_by(|one, other| one.key.kind == other.key.kind) {
        kinds.entry(&alike[0].key.kind).or_default().extend(alike);
    }
    let mut entries = Vec::new();
    let mut of_kinds = Vec::new();
    for (kind, objects) in kinds {
        let strategy = Strategy::of_kind(objects[0], wanted.strategy);
        let fresh = fresh::test(&objects);
        for object in &objects {
            let own = Strategy::of(object, wanted.strategy);
            if own != strategy {
                entries.push(Entry {
                    identifier: identifier(object, plurals),
                    kind,
                    strategy: own,
                    feedback: false,
                    // What is not applied again cannot be told by what this work has applied.
                    rules: fresh.is_some(),
                    runs: false,
                    fresh: fresh.clone().filter(|_| own.applies()),
                    is_done: false,
                });
            }
        }
        of_kinds.push(Entry {
            identifier: identify(&kind.group, "*", "*", &plurals.of(kind)),
            kind,
            strategy,
            feedback: true,
            rules: true,
            runs: objects[0].role == Role::Run,
            fresh: fresh.filter(|_| strategy.applies()),
            is_done: false,
        });
    }
    entries.extend(of_kinds);
    entries
}

/// True when a run has come to its end, be it good or bad.
const COMPLETE: (&str, &str) = (
    "object.?status.?conditions.orValue([]).exists(c,c.type in ['Complete','Failed']&&c.status=='True')||\
     object.?status.?phase.orValue('') in ['Succeeded','Failed']",
    "result?'it has run and is not run again':'it has not come to its end'",
);

impl Entry<'_> {
    fn behaviour(&self) -> Option<&'static Behaviour> {
        behaviour::of(&self.kind.group, &self.kind.kind, self.kind.built_in().is_none())
    }

    fn is_judged(&self) -> bool {
        self.rules && self.behaviour().is_some()
    }

    fn value(self, wanted: &Wanted, defaults: bool) -> Value<'static> {
        let mut fields = Vec::new();
        let behaviour = self.behaviour();
        let rules = behaviour.filter(|_| self.rules && wanted.condition_rules);
        let mut conditions: Vec<Value<'static>> = Vec::new();
        if self.runs && wanted.condition_rules {
            conditions.push(rule("Complete", COMPLETE.0, COMPLETE.1));
        }
        if self.is_done {
            conditions.push(rule(behaviour::PROGRESSING, "false", "'it is applied'"));
        }
        for each in rules.iter().flat_map(|behaviour| &behaviour.rules) {
            conditions.push(match &self.fresh {
                Some(fresh) => rule(
                    each.condition,
                    &format!("!({fresh})||({})", each.expression),
                    &format!("{fresh}?({}):'waiting for the agent to apply the change'", each.message),
                ),
                None => rule(each.condition, each.expression, each.message),
            });
        }
        if !conditions.is_empty() {
            fields.push(("conditionRules", Value::List(conditions)));
        }
        if let Some(behaviour) = behaviour.filter(|behaviour| self.feedback && !behaviour.feedback.is_empty()) {
            let path = |&(name, path): &(&'static str, &'static str)| {
                Value::map([("name", Value::text(name)), ("path", Value::text(path))])
            };
            let paths = Value::List(behaviour.feedback.iter().map(path).collect());
            let rule = Value::map([("jsonPaths", paths), ("type", Value::text("JSONPaths"))]);
            fields.push(("feedbackRules", Value::List(vec![rule])));
        }
        if defaults {
            fields.push(("feedbackScrapeType", Value::text("Poll")));
        }
        fields.push(("resourceIdentifier", self.identifier));
        let mut strategy = vec![("type", Value::text(self.strategy.name()))];
        if self.strategy == Strategy::ServerSideApply {
            let mut apply = vec![("force", Value::Bool(true))];
            if defaults {
                apply.push(("fieldManager", Value::text("work-agent")));
            }
            strategy.push(("serverSideApply", Value::map(apply)));
        }
        fields.push(("updateStrategy", Value::map(strategy)));
        Value::map(fields)
    }
}

fn rule(condition: &str, expression: &str, message: &str) -> Value<'static> {
    Value::map([
        ("celExpressions", Value::List(vec![Value::text(expression)])),
        ("condition", Value::text(condition)),
        ("messageExpression", Value::text(message)),
        ("type", Value::text("CEL")),
    ])
}

/// A resource identifier, or an orphaning rule, of one object.
fn identifier(object: &Object, plurals: &Plurals) -> Value<'static> {
    let key = &object.key;
    let namespace = key.namespace.as_deref().unwrap_or_default();
    identify(&key.kind.group, &key.name, namespace, &plurals.of(&key.kind))
}

fn identify(group: &str, name: &str, namespace: &str, resource: &str) -> Value<'static> {
    let fields = [
        ("group", group),
        ("name", name),
        ("namespace", namespace),
        ("resource", resource),
    ];
    let said = fields.into_iter().filter(|(_, said)| !said.is_empty());
    Value::map(said.map(|(field, said)| (field, Value::text(said))).collect::<Vec<_>>())
}
