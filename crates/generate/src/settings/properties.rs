//! Property tests of plugin parameters and environment variables, which the author of an Application controls.

use super::{Arguments, Env, Setting, Settings, announcements};
use crate::generate;
use crate::manifestwork::ManifestWork;
use manifest::yaml;
use proptest::collection::{btree_map, vec};
use proptest::prelude::{BoxedStrategy, Strategy, prop_oneof};
use proptest::sample::select;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use testing::{holds, hostile_json, hostile_text, is_plain_line, mutated};

const PLUGIN: [(&str, &str); 4] = [
    ("ARGOCD_APP_NAME", "guestbook"),
    ("ARGOCD_APP_NAMESPACE", "shop"),
    ("ARGOCD_APP_PROJECT_NAME", "default"),
    ("ARGOCD_ENV_TARGET_CLUSTER", "cluster1"),
];

/// The inputs of an Application besides its name: parameters as text, and variables of the plugin.
#[derive(Clone, Debug)]
struct FlagValues {
    parameters: String,
    variables: Vec<(String, String)>,
}

impl FlagValues {
    fn env(&self) -> Env {
        let entry = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut env: Env = PLUGIN.iter().map(entry).collect();
        env.extend(self.variables.iter().cloned());
        env.insert("ARGOCD_APP_PARAMETERS".to_owned(), self.parameters.clone());
        env
    }

    fn resolve(&self, folder: &Path) -> Result<Settings, String> {
        let args = Arguments {
            folder: Some(folder.to_owned()),
            ..Arguments::default()
        };
        Settings::resolve(args, &self.env()).map_err(|problems| problems.to_string())
    }
}

fn settings_of_applications() -> Vec<&'static Setting> {
    super::SETTINGS
        .iter()
        .copied()
        .filter(|setting| setting.parameter)
        .collect()
}

fn guestbook() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guestbook")
}

/// Generates values that are valid for some setting, and others.
fn values() -> BoxedStrategy<String> {
    #[rustfmt::skip]
    const KNOWN: &[&str] = &[
        "true", "false", "cluster1", "eu1,eu2", "shop", "fleet/all", "directory", "*.yaml", "{a,b}", "[a", "1", "50%",
        "10s", "1h", "10M", "Widget.example.com", "Widget.example.com=widgets", "a=b", "a=b,c=d", "a=b\nc=d", "Update",
        "ReadOnly", "Progressive", "v1.30", "eu1=overlays/eu", "ops/robot", "$ARGOCD_APP_NAME", "${KUBE_VERSION}", "",
    ];
    prop_oneof![3 => select(KNOWN).prop_map(str::to_owned), 2 => hostile_text()].boxed()
}

/// Generates a parameter as Argo CD writes it, with a known or an arbitrary name.
fn parameter() -> BoxedStrategy<Value> {
    let known: Vec<&str> = settings_of_applications().iter().map(|setting| setting.name).collect();
    let name = prop_oneof![9 => select(known).prop_map(str::to_owned), 1 => hostile_text()];
    let value = prop_oneof![
        4 => values().prop_map(|text| json!({"string": text})),
        2 => vec(values(), 0..3).prop_map(|list| json!({"array": list})),
        2 => btree_map(values(), values(), 0..3).prop_map(|map| json!({"map": map})),
        1 => hostile_json().prop_map(|value| json!({"string": "true", "array": value})),
    ];
    let named = (name, value).prop_map(|(name, mut parameter)| {
        parameter["name"] = name.into();
        parameter
    });
    named.boxed()
}

fn given() -> BoxedStrategy<FlagValues> {
    let list = vec(parameter(), 0..5).prop_map(|list| json!(list).to_string());
    let broken = list.clone().prop_flat_map(|text| mutated(vec![text]));
    let broken = broken.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let parameters = prop_oneof![6 => list, 2 => broken, 1 => hostile_text(), 1 => hostile_json().prop_map(|value| value.to_string())];
    let names: Vec<String> = settings_of_applications()
        .iter()
        .flat_map(|setting| setting.variables().map(String::from).collect::<Vec<_>>())
        .collect();
    let variables = vec((select(names), values()), 0..3);
    (parameters, variables)
        .prop_map(|(parameters, variables)| FlagValues { parameters, variables })
        .boxed()
}

#[track_caller]
fn assert_plain(message: &str) {
    for line in message.strip_suffix('\n').expect("a line break at the end").split('\n') {
        assert!(line.starts_with("error: ") && is_plain_line(line), "{line:?}");
    }
}

/// Returns the namespace on the hub of a ManifestWork, whose JSON has the same content as its value.
#[track_caller]
fn namespace(work: &ManifestWork<'_>) -> String {
    let mut text = String::new();
    let written = work.each_piece(|piece| {
        text.push_str(piece);
        Ok::<_, ()>(())
    });
    assert_eq!(written, Ok(()));
    assert_eq!(yaml::json(&text).expect("JSON"), work.to_value());
    let work: Value = serde_json::from_str(&text).expect("JSON");
    work["metadata"]["namespace"].as_str().expect("a namespace").to_owned()
}

#[test]
fn random_settings_give_works_for_each_target_or_plain_errors() {
    let folder = guestbook();
    holds(700, given, |given| {
        let settings = match given.resolve(&folder) {
            Ok(settings) => settings,
            Err(message) => {
                assert_plain(&message);
                return assert_eq!(given.resolve(&folder).err(), Some(message), "the same each time");
            }
        };
        // The code that runs helm and kustomize has its own tests.
        if settings.source.kind.is_some() {
            return;
        }
        match generate(&settings) {
            Err(problems) => assert_plain(&problems.to_string()),
            Ok(generated) => {
                let works: BTreeSet<String> = generated.works(&settings.name).map(|work| namespace(&work)).collect();
                let clusters = settings.target.clusters().iter().map(ToString::to_string);
                let expected: BTreeSet<String> = match &settings.target {
                    super::DeliveryTarget::Clusters(_) => clusters.collect(),
                    super::DeliveryTarget::Placement(placement) => [placement.namespace.clone()].into(),
                };
                assert_eq!(works, expected);
            }
        }
    });
}

#[test]
fn announcements_are_always_a_list_or_plain_errors() {
    let folder = guestbook();
    holds(400, given, |given| match announcements(&folder, &given.env()) {
        Ok(text) => {
            let list: Vec<Value> = serde_json::from_str(&text).expect("a list");
            assert!(list.iter().all(|value| value["name"].is_string()));
        }
        Err(problems) => assert_plain(&problems.to_string()),
    });
}
