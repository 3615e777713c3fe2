//! What a work says about its objects: how the agent updates each, what it reads back from it, and what stays on the cluster
//! when the work goes.
//!
//! One entry of `manifestConfigs` serves all objects of a kind, by wildcards. The agent takes each facet from the first entry
//! that matches and has it, so an object that differs has an entry of its own before that of its kind.

use super::behaviour::{self, Behaviour};
use super::kinds::GroupKind;
use super::object::{Object, Role};
use super::order;
use super::policy::Executor;
use super::strategy::Strategy;
use crate::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};

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

/// The fields of a work's `spec` besides its workload, each with a comma behind it, in the order of their names.
///
/// With `defaults`, what OCM's CRD would fill in is there already: without, Argo CD sees a difference for ever in what it
/// applies server-side. Elsewhere it is left out, because older versions of the CRD do not know all of it.
#[must_use]
pub fn fields(objects: &[Object], plurals: &Plurals, wanted: &Wanted, defaults: bool) -> String {
    let mut out = String::new();
    delete_option(objects, plurals, wanted, &mut out);
    if let Some(Executor { namespace, name }) = &wanted.executor {
        out.push_str(r#""executor":{"subject":{"serviceAccount":{"name":"#);
        json::write_text(name, &mut out);
        out.push_str(r#","namespace":"#);
        json::write_text(namespace, &mut out);
        out.push_str(r#"},"type":"ServiceAccount"}},"#);
    }
    manifest_configs(objects, plurals, wanted, defaults, &mut out);
    out
}

fn delete_option(objects: &[Object], plurals: &Plurals, wanted: &Wanted, out: &mut String) {
    let kept = objects.iter().filter(|object| is_kept(object, wanted));
    let rules: Vec<String> = kept
        .map(|object| format!("{{{}}}", identifier(object, plurals)))
        .collect();
    if !rules.is_empty() {
        out.push_str(
            r#""deleteOption":{"propagationPolicy":"SelectivelyOrphan","selectivelyOrphans":{"orphaningRules":["#,
        );
        out.push_str(&rules.join(","));
        out.push_str("]}},");
    }
}

/// Whether an object stays on the cluster when it leaves Git or the Application is removed. A Namespace takes all that is in
/// it along, a CRD all objects of its kind, and both may have been there before.
fn is_kept(object: &Object, wanted: &Wanted) -> bool {
    let asked = object.wishes.as_ref().is_some_and(|wishes| wishes.keep);
    let is_crd = &*object.key.kind.group == "apiextensions.k8s.io";
    asked || is_crd && !wanted.delete_crds || order::is_namespace(object) && !wanted.delete_namespaces
}

fn manifest_configs(objects: &[Object], plurals: &Plurals, wanted: &Wanted, defaults: bool, out: &mut String) {
    let mut kinds: BTreeMap<&GroupKind, Strategy> = BTreeMap::new();
    let mut entries: Vec<String> = Vec::new();
    for object in objects {
        let strategy = Strategy::of(object, wanted.strategy);
        let of_kind = *kinds.entry(&object.key.kind).or_insert(strategy);
        if strategy != of_kind {
            let entry = Entry {
                identifier: identifier(object, plurals),
                strategy,
                behaviour: None,
                complete: false,
            };
            entries.push(entry.json(defaults));
        }
    }
    let runs: BTreeSet<&GroupKind> = objects
        .iter()
        .filter(|object| object.role == Role::Run)
        .map(|object| &object.key.kind)
        .collect();
    for (kind, strategy) in kinds {
        let behaviour = behaviour::of(&kind.group, &kind.kind, kind.built_in().is_none());
        let entry = Entry {
            identifier: identify(&kind.group, "*", "*", &plurals.of(kind)),
            strategy,
            behaviour: behaviour.map(|behaviour| (behaviour, wanted.condition_rules)),
            complete: wanted.condition_rules && runs.contains(kind),
        };
        entries.push(entry.json(defaults));
    }
    if !entries.is_empty() {
        out.push_str(r#""manifestConfigs":["#);
        out.push_str(&entries.join(","));
        out.push_str("],");
    }
}

/// One entry of `manifestConfigs`.
struct Entry {
    identifier: String,
    strategy: Strategy,
    /// What is read back, and whether the verdicts are as well.
    behaviour: Option<(&'static Behaviour, bool)>,
    /// Whether the agent stops applying the object, and its work, when it has run to its end.
    complete: bool,
}

/// True when a run has succeeded. OCM's own rule for it would also stop at a failed run, which a person could then not start
/// again by removing it.
const COMPLETE: (&str, &str) = (
    "has(object.status) && (has(object.status.conditions) && object.status.conditions.exists(c, c.type == 'Complete' && c.status == 'True') \
     || has(object.status.phase) && object.status.phase == 'Succeeded')",
    "result ? 'it has run and is not run again' : 'it has not succeeded yet'",
);

impl Entry {
    fn json(&self, defaults: bool) -> String {
        let mut out = String::from("{");
        let rules = self
            .behaviour
            .filter(|(_, judged)| *judged)
            .into_iter()
            .flat_map(|(behaviour, _)| behaviour.rules.iter());
        let rules = rules.map(|rule| (rule.condition, rule.expression, rule.message));
        let complete = self.complete.then_some(("Complete", COMPLETE.0, COMPLETE.1));
        let rules: Vec<_> = complete.into_iter().chain(rules).collect();
        if !rules.is_empty() {
            list(
                &mut out,
                "conditionRules",
                rules,
                |(condition, expression, message), out| {
                    out.push_str(r#"{"celExpressions":["#);
                    json::write_text(expression, out);
                    out.push_str(r#"],"condition":"#);
                    json::write_text(condition, out);
                    out.push_str(r#","messageExpression":"#);
                    json::write_text(message, out);
                    out.push_str(r#","type":"CEL"}"#);
                },
            );
        }
        if let Some((behaviour, _)) = self.behaviour.filter(|(behaviour, _)| !behaviour.feedback.is_empty()) {
            out.push_str(r#""feedbackRules":[{"#);
            list(&mut out, "jsonPaths", behaviour.feedback, |(name, path), out| {
                out.push_str(r#"{"name":"#);
                json::write_text(name, out);
                out.push_str(r#","path":"#);
                json::write_text(path, out);
                out.push('}');
            });
            out.push_str(r#""type":"JSONPaths"}],"#);
        }
        if defaults {
            out.push_str(r#""feedbackScrapeType":"Poll","#);
        }
        out.push_str(r#""resourceIdentifier":{"#);
        out.push_str(&self.identifier);
        out.push_str(r#"},"updateStrategy":{"#);
        if self.strategy == Strategy::ServerSideApply {
            let manager = if defaults {
                r#""fieldManager":"work-agent","#
            } else {
                ""
            };
            out.push_str(r#""serverSideApply":{"#);
            out.push_str(manager);
            out.push_str(r#""force":true},"#);
        }
        out.push_str(r#""type":"#);
        json::write_text(self.strategy.name(), &mut out);
        out.push_str("}}");
        out
    }
}

fn list<T>(out: &mut String, name: &str, items: impl IntoIterator<Item = T>, write: impl Fn(T, &mut String)) {
    json::write_text(name, out);
    out.push_str(":[");
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push_str("],");
}

/// The fields of a resource identifier, or of an orphaning rule, for one object.
fn identifier(object: &Object, plurals: &Plurals) -> String {
    let key = &object.key;
    let namespace = key.namespace.as_deref().unwrap_or_default();
    identify(&key.kind.group, &key.name, namespace, &plurals.of(&key.kind))
}

fn identify(group: &str, name: &str, namespace: &str, resource: &str) -> String {
    let mut out = String::new();
    for (at, (field, text)) in [
        ("group", group),
        ("name", name),
        ("namespace", namespace),
        ("resource", resource),
    ]
    .into_iter()
    // OCM leaves out what is empty, and Argo CD would see that.
    .filter(|(_, text)| !text.is_empty())
    .enumerate()
    {
        if at > 0 {
            out.push(',');
        }
        json::write_text(field, &mut out);
        out.push(':');
        json::write_text(text, &mut out);
    }
    out
}
