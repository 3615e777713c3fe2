//! Tests of `monitoring/rules.yaml`, and of the files generated from it.

use super::{expression, list, read_document, read_file, root, string};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// Returns all rules, recording and alerting.
pub(super) fn rules() -> Vec<Value> {
    let groups = read_document("monitoring/rules.yaml");
    let groups = list(&groups["groups"]).iter();
    groups.flat_map(|group| list(&group["rules"]).to_vec()).collect()
}

/// Returns the names of recorded metrics, or of alerts, by the key that contains them.
pub(super) fn names(key: &str) -> BTreeSet<String> {
    let rules = rules();
    let names = rules.iter().filter_map(|rule| rule[key].as_str());
    names.map(str::to_owned).collect()
}

#[test]
fn rules_use_only_exposed_or_recorded_metrics() {
    let recorded = names("record");
    for rule in rules() {
        expression::check(string(&rule["expr"]), &recorded);
    }
}

#[test]
fn every_alert_has_severity_description_and_runbook() {
    for rule in rules().iter().filter(|rule| rule["record"].is_null()) {
        let name = string(&rule["alert"]);
        let severity = string(&rule["labels"]["severity"]);
        assert!(["critical", "warning"].contains(&severity), "{name}: {severity}");
        let annotations = rule["annotations"].as_object().expect("annotations");
        let keys: Vec<_> = annotations.keys().map(String::as_str).collect();
        assert_eq!(keys.len(), 3, "{name}: {keys:?}");
        for key in ["summary", "description"] {
            assert!(!string(&annotations[key]).is_empty(), "{name}: {key}");
        }
        let page = "https://github.com/argocd-ocm-cmp/argocd-ocm-cmp/blob/main/docs/metrics.md";
        let expected = format!("{page}#{}", name.to_lowercase());
        assert_eq!(annotations["runbook_url"], expected, "{name}");
    }
}

#[test]
fn every_alert_has_firing_and_silent_tests() {
    let tests = read_document("monitoring/rules_test.yaml");
    let tests = list(&tests["tests"]).iter();
    let assertions: Vec<_> = tests.flat_map(|test| list(&test["alert_rule_test"])).collect();
    let asserted_alerts = |fires: bool| -> BTreeSet<String> {
        let assertions = assertions
            .iter()
            .filter(|assertion| list(&assertion["exp_alerts"]).is_empty() != fires);
        assertions
            .map(|assertion| string(&assertion["alertname"]).to_owned())
            .collect()
    };
    assert_eq!(asserted_alerts(true), names("alert"));
    assert_eq!(asserted_alerts(false), names("alert"));
}

#[test]
fn prometheusrule_has_the_same_groups() {
    let rules = read_file("monitoring/rules.yaml");
    let groups = rules.lines().skip_while(|line| *line != "groups:");
    let groups: String = groups.flat_map(|line| ["  ", line, "\n"]).collect();
    let file = read_file("monitoring/prometheusrule.yaml");
    let (_, spec) = file.split_once("\nspec:\n").expect("a spec");
    assert!(
        spec == groups,
        "monitoring/prometheusrule.yaml: replace the content of `spec:` with the output of: \
         sed -n '/^groups:/,$s/^/  /p' monitoring/rules.yaml"
    );
    let same = read_document("monitoring/prometheusrule.yaml");
    assert_eq!(same["spec"], read_document("monitoring/rules.yaml"));
}

#[test]
fn servicemonitor_selects_the_shipped_service() {
    let monitor = read_document("monitoring/servicemonitor.yaml");
    let shipped = read_file("deploy/deploy_controller.yaml");
    let service = shipped.split("\n---\n").find(|text| text.contains("\nkind: Service\n"));
    let service = service.expect("a Service");
    let labels = monitor["spec"]["selector"]["matchLabels"].as_object().expect("labels");
    for (key, value) in labels {
        let label = format!("    {key}: {}\n", string(value));
        assert!(service.contains(&label), "{label}");
    }
    let endpoint = &monitor["spec"]["endpoints"][0];
    let port = format!("  - name: {}\n", string(&endpoint["port"]));
    assert!(service.contains(&port), "{port}");
    assert_eq!(
        endpoint["honorLabels"], true,
        "the namespace of a GitOpsCluster is lost"
    );
}

#[test]
fn promtool_accepts_rules_and_their_tests() {
    for (what, file) in [("check", "rules.yaml"), ("test", "rules_test.yaml")] {
        let mut promtool = Command::new("promtool");
        promtool
            .args([what, "rules", file])
            .current_dir(root().join("monitoring"));
        let output = promtool.output().expect("promtool, of Debian's package prometheus");
        let streams = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(
            output.status.success(),
            "promtool {what} rules {file}:\n{}",
            streams.concat()
        );
    }
}
