//! Checks that OCM's agent applies the object that a policy judged, or nothing, whatever a manifest looks like.
//!
//! The program in `tests/oracle/agent` applies each accepted manifest with each update strategy. `FUZZ_SEED` selects other manifests,
//! and `FUZZ_INPUTS` sets their number.

use crate::manifests::{Manifests, Seed};
use crate::{answer, oracle, stack};
use generate::documents::{self, ManifestText};
use generate::placed::{self, Placed};
use generate::policy::{self, DeliveredObject, Policy};
use generate::schema::FieldValidation;
use manifest::kinds::{BUILT_IN, GroupKind, Scope};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// A policy that allows everything that can be allowed without the name of a kind.
const POLICY: &str = "apiVersion: argocd-ocm-cmp.github.io/v1alpha1\nkind: Policy\nprojects:\n- {names: [shop], clusterScoped: true, \
                      secrets: true}\n";

/// The namespace of the Application.
const NAMESPACE: &str = "shop";

#[test]
fn agent_applies_the_objects_that_the_policy_judged() {
    let mut agent = oracle::Oracle::start_agent();
    let number = |name: &str, otherwise: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} must be a number")),
        Err(_) => otherwise,
    };
    let seed = number("FUZZ_SEED", 1);
    let inputs = number("FUZZ_INPUTS", 120_000);
    let mut tally = Tally::default();
    stack::with_stack(|| {
        let mut manifests = Manifests::new(seed);
        agent.ask(&[json!({"kinds": kinds(&manifests.seeds)}).to_string()]);
        let originals: Vec<String> = manifests.seeds.iter().map(|seed| seed.text.clone()).collect();
        tally.compare(&originals, &mut agent);
        assert!(tally.agreeing > 300, "the files of the tests: {tally:?}");
        let mut mutated = 0;
        while mutated < inputs {
            let batch: Vec<String> = (0..2_000).map(|_| manifests.mutated()).collect();
            mutated += batch.len() as u64;
            tally.compare(&batch, &mut agent);
        }
    });
    println!("agent, seed {seed}: {tally:?}");
    assert!(tally.agreeing as u64 > inputs / 10, "too few manifests are applied");
    assert!(tally.differing.is_empty(), "the agent applies other objects");
}

/// The numbers of objects; of inputs if refused.
#[derive(Debug, Default)]
struct Tally {
    /// We refuse the manifest.
    refused: usize,
    /// The agent refuses the object, or it finds no kind, or the API server refuses its requests.
    not_applied: usize,
    /// The agent applies the object that the policy judged.
    agreeing: usize,
    /// The agent checks or applies another one, by what differs.
    differing: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn compare(&mut self, texts: &[String], agent: &mut oracle::Oracle) {
        let mut delivered = Vec::new();
        for text in texts {
            match accepted(text) {
                Ok(placed) => delivered.extend(placed.into_iter().map(|placed| (text, placed))),
                Err(_) => self.refused += 1,
            }
        }
        let printed: Vec<String> = delivered
            .iter()
            .map(|(_, placed)| placed.object.pieces().concat())
            .collect();
        for ((text, placed), answer) in delivered.iter().zip(agent.ask(&printed)) {
            let answer = answer::parse_answer(&answer);
            match difference(placed, &answer) {
                Some(what) => {
                    println!("{what}: {}\n  {text:?}\n  {answer}", placed.object.key);
                    *self.differing.entry(what).or_default() += 1;
                }
                None if answer["written"].as_array().is_some_and(Vec::is_empty) => self.not_applied += 1,
                None => self.agreeing += 1,
            }
        }
    }
}

/// Returns the objects of a file that are delivered under the policy.
fn accepted(text: &str) -> Result<Vec<Placed>, Vec<String>> {
    static ALL: LazyLock<Policy> = LazyLock::new(|| Policy::parse(POLICY, "policy.yaml").expect("a policy"));
    let file = ManifestText {
        index: 0,
        name: "a.yaml",
        text,
    };
    let read = documents::objects(file, FieldValidation::Ignore)?;
    let mut placed = placed::placed(read.objects, &[], Some(NAMESPACE));
    placed.retain(|placed| !placed.lacks_namespace());
    let rules = ALL.rules_for(Some("shop")).expect("an entry");
    let objects = placed.iter();
    let objects = objects.map(|placed| DeliveredObject::new(&placed.object, "a.yaml"));
    let violations = policy::violations(Some(rules), true, [""; 0], objects);
    if violations.is_empty() {
        Ok(placed)
    } else {
        Err(violations)
    }
}

/// Returns what differs between the object that was judged and those that the agent checks or writes.
fn difference(placed: &Placed, answer: &Json) -> Option<&'static str> {
    let key = &placed.object.key;
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let judged = [&*key.kind.group, &*key.kind.kind, namespace, &*key.name];
    let parts = ["group", "kind", "namespace", "name"];
    let written = answer["written"].as_array().expect("a list").iter();
    for (identity, is_written) in written
        .map(|identity| (identity, true))
        .chain([(&answer["checked"], false)])
    {
        if identity.is_null() {
            continue;
        }
        // The scope of a custom kind is not known here. If it is cluster-scoped, the agent finds nothing at the address with a namespace.
        let has_no_namespace = !is_written && placed.object.scope.is_none() && identity[2] == "";
        let differs = |&at: &usize| identity[at] != judged[at] && !(at == 2 && has_no_namespace);
        if let Some(at) = (0..4).find(differs) {
            return Some(parts[at]);
        }
    }
    None
}

/// Returns the kinds of the cluster: those of Kubernetes, and those of the unchanged files. A cluster has one kind of each plural.
fn kinds(seeds: &[Seed]) -> Vec<Json> {
    let mut kinds: BTreeSet<(&str, &str, &str, String, bool)> = BTreeSet::new();
    for known in BUILT_IN {
        for version in known.always_served {
            let namespaced = known.scope == Scope::Namespaced;
            kinds.insert((known.group, version, known.kind, known.plural.to_owned(), namespaced));
        }
    }
    for Seed {
        group, version, kind, ..
    } in seeds
    {
        let name = GroupKind {
            group: group.as_str().into(),
            kind: kind.as_str().into(),
        };
        let known = name.built_in();
        let plural = known.map_or_else(|| name.guessed_plural(), |known| known.plural.to_owned());
        let scope = known.map_or_else(|| custom_scope(kind), |known| known.scope);
        kinds.insert((group, version, kind, plural, scope == Scope::Namespaced));
    }
    let mut plurals = BTreeSet::new();
    kinds.retain(|(group, version, _, plural, _)| plurals.insert((*group, *version, plural.clone())));
    let json = |(group, version, kind, plural, namespaced)| json!({"group": group, "version": version, "kind": kind, "plural": plural, "namespaced": namespaced});
    kinds.into_iter().map(json).collect()
}

/// Returns a scope for a custom kind, so that there are some of each.
fn custom_scope(kind: &str) -> Scope {
    if kind.starts_with("Cluster") {
        Scope::Cluster
    } else {
        Scope::Namespaced
    }
}
