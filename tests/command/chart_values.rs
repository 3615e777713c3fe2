//! Checks that the values of the Helm chart are documented, and that docs/helm.md has the sidecar as values of the chart argo-cd.

use crate::expected;
use crate::install::{objects, printed};
use crate::shipped_files::{read_file, root};
use argocd_ocm_cmp::install::Feature;
use serde_json::{Value, json};

/// Asserts that each property of a schema has a description, and a default if the values are given.
fn assert_documented(schema: &Value, values: Option<&Value>, path: &str) {
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        let description = property["description"].as_str().unwrap_or_default();
        assert!(description.ends_with('.'), "{path} has no description");
        let default = values.map(|values| &values[key]);
        // Helm passes global values, and values.yaml sets none.
        assert!(
            path == ".global" || default != Some(&Value::Null),
            "{path} is not in values.yaml"
        );
        assert_documented(property, default, &path);
        assert_documented(&property["items"], None, &path);
    }
}

#[test]
fn every_value_has_a_description_and_a_default() {
    let schema: Value = serde_json::from_str(&read_file("chart/values.schema.json")).expect("JSON");
    let values = &objects(&read_file("chart/values.yaml"))[0];
    assert_documented(&schema, Some(values), "");
    for (name, definition) in schema["definitions"].as_object().expect("definitions") {
        assert_documented(definition, None, name);
    }
}

/// `REWRITE=1 cargo test --test command schema_lists` writes the list.
#[test]
fn schema_lists_every_feature() {
    let file = root().join("chart/values.schema.json");
    let text = read_file("chart/values.schema.json");
    let (start, end) = ("\"enum\": [\n", "\n        ]");
    let (before, rest) = text.split_once(start).expect("the list of features");
    let (_, after) = rest.split_once(end).expect("its end");
    let names: Vec<_> = Feature::all()
        .iter()
        .map(|feature| format!("          {:?}", feature.name()))
        .collect();
    let expected = [before, start, &names.join(",\n"), end, after].concat();
    expected::compare(&file, &expected).expect("the features of the table");
}

#[test]
fn page_has_the_sidecar_as_values_of_the_chart_argo_cd() {
    let page = read_file("docs/helm.md");
    let (_, block) = page.split_once("```yaml\nrepoServer:\n").expect("values");
    let (block, _) = block.split_once("```").expect("its end");
    let additions = objects(&printed("--features plugin --additions-only"));
    let deployment = additions.iter().find(|object| object["kind"] == "Deployment");
    let pod = &deployment.expect("the sidecar")["spec"]["template"]["spec"];
    let shipped = json!({
        "initContainers": pod["initContainers"],
        "extraContainers": pod["containers"],
        "volumes": pod["volumes"],
    });
    assert_eq!(objects(&format!("repoServer:\n{block}"))[0]["repoServer"], shipped);
}
