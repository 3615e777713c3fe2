//! Checks that Argo CD evaluates the health of works as in deploy/argocd_cm.yaml, and that it watches works at all.

use crate::doctor::hub_state::{HubState, Lookup};
use crate::doctor::message::{Finding, check, list_names};
use crate::embedded::{objects, shipped};
use crate::workload::items;
use generate::health_rules::{self, custom};
use jiff::Timestamp;
use ocm::glob;
use ocm::work::{GROUP, KIND, SET_KIND};
use serde_json::Value;
use std::collections::BTreeSet;

check! {
    "argocd-cm"
    error NO_HEALTH "argocd-cm-health-missing":
        "argocd-cm has no health check for {kind}, so Argo CD shows it as healthy as soon as it is on the hub",
        "add it with argocd-ocm-cmp install --features plugin";
    warning OTHER_HEALTH "argocd-cm-health-differs":
        "the health check for {kind} in argocd-cm differs from version {version}",
        "restore it with argocd-ocm-cmp install --features plugin of that version";
    warning NO_RULE "argocd-cm-health-without-rule":
        "argocd-cm has a health check for {kinds}, but objects of this kind in works follow the usual conditions",
        "add a rule for it to ConfigMap argocd-ocm-cmp-health, as docs/custom-resources.md describes";
    error EXCLUDED "argocd-cm-hides":
        "Argo CD ignores {kind} because of {key} in argocd-cm",
        "change {key} so that Argo CD watches work.open-cluster-management.io";
    warning SELECTED "argocd-cm-selects":
        "since version 3.6, Argo CD ignores {kind} without the labels {selector} because of resource.selectors in argocd-cm",
        "exempt work.open-cluster-management.io there, unless works have these labels";
    warning BY_LABEL "argocd-cm-tracks-by-label":
        "Argo CD tracks objects by label only, so it treats copies of a work as its own and prunes them",
        "set application.resourceTrackingMethod in argocd-cm to annotation";
    ok OK "argocd-cm":
        "argocd-cm has the health checks of version {version}, and excludes no works";
}

/// The prefix of Argo CD's keys for health checks, before GROUP_KIND.
const HEALTH: &str = "resource.customizations.health.";

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    // Without the plugin, Argo CD on the hub applies no works.
    if !hub_state.expects_plugin() {
        return Vec::new();
    }
    // Another check reports a ConfigMap that is missing or cannot be read.
    let Lookup::Found(config) = &hub_state.config else {
        return Vec::new();
    };
    let data = |key: &str| config["data"][key].as_str().map(str::trim);
    let version = env!("CARGO_PKG_VERSION");
    let mut findings = Vec::new();
    let shipped = shipped("deploy/argocd_cm.yaml");
    let ours = shipped.first().and_then(|value| value["data"].as_object());
    for (key, check) in ours.into_iter().flatten() {
        let Some((_, kind)) = key.strip_prefix(HEALTH).and_then(|text| text.rsplit_once('_')) else {
            continue;
        };
        match data(key) {
            None => findings.push(NO_HEALTH.finding(&[("kind", &kind)])),
            Some(theirs) if Some(theirs) == check.as_str().map(str::trim) => {}
            Some(_) => findings.push(OTHER_HEALTH.finding(&[("kind", &kind), ("version", &version)])),
        }
    }
    let kinds = kinds_without_rule(hub_state, config);
    if !kinds.is_empty() {
        findings.push(NO_RULE.finding(&[("kinds", &list_names(kinds))]));
    }
    let rules = |key: &str| {
        let filter = objects(data(key).unwrap_or_default());
        filter.first().map_or(Vec::new(), |rules| items(rules).to_vec())
    };
    for (key, hides_matching) in [("resource.exclusions", true), ("resource.inclusions", false)] {
        let rules = rules(key);
        let is_matching = |kind: &str| rules.iter().any(|rule| rule_matches(rule, kind));
        // An empty filter includes all.
        let is_hidden = |kind: &&str| !rules.is_empty() && is_matching(kind) == hides_matching;
        let kinds: Vec<_> = [KIND, SET_KIND].into_iter().filter(is_hidden).collect();
        if !kinds.is_empty() {
            findings.push(EXCLUDED.finding(&[("kind", &list_names(kinds)), ("key", &key)]));
        }
    }
    for rule in rules("resource.selectors") {
        let kinds = [KIND, SET_KIND].into_iter().filter(|kind| rule_matches(&rule, kind));
        let (kinds, selector) = (list_names(kinds), rule["selector"].as_str().unwrap_or_default().trim());
        if !kinds.is_empty() && !selector.is_empty() {
            findings.push(SELECTED.finding(&[("kind", &kinds), ("selector", &selector)]));
        }
    }
    if data("application.resourceTrackingMethod") == Some("label") {
        findings.push(BY_LABEL.finding(&[]));
    }
    OK.if_none(findings, &[("version", &version)])
}

/// Returns the kinds in works for which Argo CD has a health check, and neither the plugin nor the user has a rule.
fn kinds_without_rule(hub_state: &HubState, config: &Value) -> BTreeSet<String> {
    let of_user = match &hub_state.health_rules {
        Lookup::Found(of_user) => of_user["data"][custom::CONFIG_MAP_KEY].as_str().unwrap_or_default(),
        Lookup::NotFound => "",
        // The rules of the user are unknown.
        Lookup::Refused(_) => return BTreeSet::new(),
    };
    let of_user = custom::parse(of_user).0;
    let keys = config["data"].as_object().into_iter().flat_map(|data| data.keys());
    let checks: BTreeSet<String> = keys
        .filter_map(|key| key.strip_prefix(HEALTH)?.rsplit_once('_'))
        .map(|(group, kind)| format!("{kind}.{group}"))
        .collect();
    let works = hub_state.works.items().iter();
    let kinds = works
        .flat_map(|work| &work.objects)
        .filter_map(|object| object.split(' ').next());
    let has_rule = |name: &str| {
        let (kind, group) = name.split_once('.').unwrap_or((name, ""));
        let is_of_user = of_user.iter().any(|rule| rule.matches(group, kind));
        is_of_user
            || custom::find_rule(group, kind).is_some()
            || health_rules::find_kind_health(group, kind, false).is_some()
    };
    kinds
        .filter(|kind| checks.contains(*kind) && !has_rule(kind))
        .map(str::to_owned)
        .collect()
}

/// Mirrors `Match` of Argo CD's `FilteredResource`: a missing field of a rule matches everything, and kinds are no globs. Rules for
/// single clusters apply to the hub if they name its address.
fn rule_matches(rule: &Value, kind: &str) -> bool {
    let field = |name: &str, matches: &dyn Fn(&str) -> bool| {
        let patterns = items(&rule[name]);
        patterns.is_empty() || patterns.iter().filter_map(Value::as_str).any(matches)
    };
    field("apiGroups", &|pattern| glob::matches(pattern, GROUP))
        && field("kinds", &|pattern| pattern == "*" || pattern == kind)
        && field("clusters", &|pattern| {
            glob::matches(pattern, "https://kubernetes.default.svc")
        })
}
