//! Tests of `monitoring/dashboard.json`.

use super::{expression, list, read_file, string};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Returns the queries of its panels and variables, with the variables filled in.
pub(super) fn queries() -> Vec<String> {
    let dashboard = dashboard();
    let panels = panels(&dashboard, false).into_iter();
    let targets = panels.flat_map(|panel| list(&panel["targets"]));
    let mut queries: Vec<_> = targets.map(|target| string(&target["expr"]).to_owned()).collect();
    queries.extend(variables(&dashboard));
    let fill = |queries: &String| {
        queries
            .replace("$__rate_interval", "1m")
            .replace("$job", ".*")
            .replace("$namespace", ".*")
    };
    queries.iter().map(fill).collect()
}

/// Returns, for each variable with the values of a label, an expression that has that label.
fn variables(dashboard: &Value) -> Vec<String> {
    let variables = list(&dashboard["templating"]["list"])[1..].iter();
    let with_label = |variable: &Value| {
        let query = string(&variable["query"]["query"]);
        let inner = query
            .strip_prefix("label_values(")
            .and_then(|query| query.strip_suffix(')'));
        let (selector, label) = inner
            .and_then(|inner| inner.rsplit_once(", "))
            .expect("a selector and a label");
        assert_eq!(variable["name"], label);
        format!("count by ({label}) ({selector})")
    };
    variables.map(with_label).collect()
}

fn dashboard() -> Value {
    serde_json::from_str(&read_file("monitoring/dashboard.json")).expect("JSON")
}

/// Returns its panels, or its rows.
fn panels(dashboard: &Value, rows: bool) -> Vec<&Value> {
    let all = list(&dashboard["panels"]).iter();
    all.filter(|panel| (panel["type"] == "row") == rows).collect()
}

#[test]
fn panels_use_only_exposed_metrics() {
    let dashboard = dashboard();
    for panel in panels(&dashboard, false) {
        let mut legends = BTreeSet::new();
        for target in list(&panel["targets"]) {
            expression::check(string(&target["expr"]), &BTreeSet::new());
            assert!(legends.insert(string(&target["legendFormat"])), "{}", panel["title"]);
        }
    }
    for expression in variables(&dashboard) {
        expression::check(&expression, &BTreeSet::new());
    }
}

#[test]
fn every_panel_has_a_description_and_the_selected_data_source() {
    let dashboard = dashboard();
    let chosen = &dashboard["templating"]["list"][0];
    assert_eq!([&chosen["type"], &chosen["query"]], ["datasource", "prometheus"]);
    let chosen = json!({"type": "prometheus", "uid": format!("${{{}}}", string(&chosen["name"]))});
    let mut titles = BTreeSet::new();
    for panel in panels(&dashboard, false) {
        let title = string(&panel["title"]);
        assert!(titles.insert(title), "two panels have the title {title}");
        let description = string(&panel["description"]);
        assert!(
            description.ends_with('.') && description.len() > 20,
            "{title}: {description}"
        );
        assert!(!string(&panel["fieldConfig"]["defaults"]["unit"]).is_empty(), "{title}");
        assert_eq!(panel["datasource"], chosen, "{title}");
        for target in list(&panel["targets"]) {
            assert_eq!(target["datasource"], chosen, "{title}");
        }
    }
}

#[test]
fn panels_have_unique_ids_and_do_not_overlap() {
    let dashboard = dashboard();
    assert_eq!(dashboard["uid"], env!("CARGO_PKG_NAME"));
    let mut ids = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for panel in list(&dashboard["panels"]) {
        let title = &panel["title"];
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}");
        let at = |side: &str| panel["gridPos"][side].as_u64().expect("a number");
        assert!(at("x") + at("w") <= 24 && at("w") > 0 && at("h") > 0, "{title}");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(cells.insert((x, y)), "{title} overlaps another panel");
            }
        }
    }
    assert_eq!(panels(&dashboard, true).len(), 6);
}
