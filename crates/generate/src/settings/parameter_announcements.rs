//! Parameter announcements for Argo CD's UI, derived from the table of settings in the format of argocd-cmp-server.

use super::sources::Sources;
use super::table::{self, SETTINGS, Setting, ValueType};
use super::values::glob;
use super::{Env, FlagValues};
use crate::discover::FileSelection;
use crate::source::FolderKind;
use manifest::json;
use manifest::problem::Problems;
use manifest::value::{Map, Value};
use std::path::Path;
use std::str::FromStr;

/// Returns the parameters that apply to a folder, as a JSON list of Argo CD's `ParameterAnnouncement`s, with their values in the
/// Application of `env`. Unlike elsewhere an invalid value is no error: the user can correct it in the UI.
///
/// # Errors
/// Returns an error if the Application's parameters are unreadable, or one has a key that is too long for Argo CD.
pub fn announcements(folder: &Path, env: &Env) -> Result<String, Problems> {
    let nothing_typed = FlagValues::default();
    // Argo CD caches the result for every Application with the same source, so it must not contain the name of one of them.
    let env = env.iter().filter(|(name, _)| *name != "ARGOCD_APP_NAME");
    let env = env.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut sources = Sources::new(&nothing_typed, &env)?;
    let selection = FileSelection {
        include: sources.list(&table::INCLUDE, false, glob),
        exclude: sources.list(&table::EXCLUDE, false, glob),
        ..FileSelection::default()
    };
    let kind = sources.read_optional(&table::SOURCE, FolderKind::from_str);
    let kind = kind.unwrap_or_else(|| FolderKind::detect(folder, &selection));
    let parameters = SETTINGS
        .iter()
        .filter(|setting| setting.parameter && setting.folder_kind().is_none_or(|only| only == kind));
    let announced = parameters.map(|setting| announcement(setting, &mut sources)).collect();
    let mut out = String::new();
    json::write(&Value::List(announced), &mut out).map_err(|error| {
        Problems::one(format_args!(
            "cannot show a parameter of the Application: {error}: shorten it"
        ))
    })?;
    out.push('\n');
    Ok(out)
}

/// The field that holds a parameter's value; Argo CD's UI reads no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    List,
    Map,
}

fn announcement(setting: &Setting, sources: &mut Sources<'_>) -> Value<'static> {
    let plain = |text: &str| Value::from_text(text.replace('`', ""));
    let (item_type, usual) = match setting.value_type {
        // The UI edits booleans as strings so far. The type is for other readers and for later versions of the UI.
        ValueType::Flag => ("boolean", Shape::Text),
        ValueType::Text(_) => ("string", Shape::Text),
        ValueType::List(_) => ("string", Shape::List),
        ValueType::Map(_) => ("string", Shape::Map),
    };
    let tooltip = match setting.default {
        "–" => plain(setting.about),
        default => plain(&format!("{} (default: {default})", setting.about)),
    };
    let mut fields = vec![
        ("name", Value::from_text(setting.name)),
        ("title", Value::from_text(setting.title)),
        ("tooltip", tooltip),
        ("itemType", Value::from_text(item_type)),
    ];
    // The UI shows a value only in the announced shape.
    let shapes = sources.shapes(setting);
    let shape = Some(usual).filter(|usual| shapes.is_empty() || shapes.contains(usual));
    match shape.unwrap_or_else(|| shapes[0]) {
        Shape::Text => {
            let given = sources.texts(setting).pop();
            let value = given.or_else(|| setting.default_value().map(str::to_owned));
            fields.extend(value.map(|value| ("string", Value::from_text(value))));
        }
        Shape::List => {
            let given = sources.texts(setting).into_iter().map(Value::from_text);
            fields.push(("collectionType", Value::from_text("array")));
            fields.push(("array", Value::List(given.collect())));
        }
        Shape::Map => {
            let commas = setting.name == table::OVERLAYS.name;
            let given = sources.map(setting, commas, String::from_str);
            let given = given
                .into_iter()
                .map(|(key, value)| (key.into(), Value::from_text(value)));
            fields.push(("collectionType", Value::from_text("map")));
            fields.push(("map", Value::Map(Map::from_entries(given.collect()))));
        }
    }
    Value::map(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Returns the announcements for an Application that sets the type of its folder.
    fn announced(kind: &str, env: &[(&str, &str)]) -> Vec<Value> {
        let source = [("ARGOCD_ENV_SOURCE", kind)];
        let env = env
            .iter()
            .chain(&source)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let announced = announcements(Path::new("no such folder"), &env).expect("readable");
        serde_json::from_str(&announced).expect("JSON")
    }

    fn find<'v>(all: &'v [Value], name: &str) -> Option<&'v Value> {
        all.iter().find(|parameter| parameter["name"] == name)
    }

    #[test]
    fn key_that_is_too_long_for_argo_cd_is_an_error() {
        let overlays = json!([{"name": "overlays", "map": {"- ".repeat(600): "eu"}}]).to_string();
        let env = [("ARGOCD_APP_PARAMETERS".to_owned(), overlays)].into();
        let error = announcements(Path::new("no such folder"), &env).expect_err("a long key");
        assert_eq!(
            error.to_string(),
            "error: cannot show a parameter of the Application: the key that begins with \"- - - - - - - - - - - - - - - - - - - - \" \
             has more than 1022 characters, which Argo CD cannot read: shorten it\n"
        );
    }

    #[test]
    fn announces_only_parameters_for_the_source_type() {
        let names = |kind| -> Vec<String> {
            let all = announced(kind, &[]).into_iter();
            all.map(|parameter| parameter["name"].as_str().expect("a name").to_owned())
                .collect()
        };
        let all = ["directory", "kustomize", "helm"].map(names);
        for setting in SETTINGS {
            let announced = all.iter().any(|names| names.iter().any(|name| name == setting.name));
            assert_eq!(announced, setting.parameter, "{}", setting.name);
        }
        let [directory, kustomize, helm] = all;
        assert!(directory.contains(&"include".to_owned()) && !directory.contains(&"helm-values".to_owned()));
        assert!(!kustomize.contains(&"include".to_owned()) && !kustomize.contains(&"helm-values".to_owned()));
        assert!(!helm.contains(&"include".to_owned()) && helm.contains(&"helm-values".to_owned()));
        assert!(kustomize.contains(&"kustomize-images".to_owned()) && !helm.contains(&"kustomize-images".to_owned()));
    }

    #[test]
    fn announces_effective_values() {
        let parameters = r#"[{"name":"helm-parameters","map":{"a":"b=c"}},{"name":"helm-value-files","array":["x.yaml","y.yaml"]},
            {"name":"colour","string":"red"},{"name":"allow-empty","string":"maybe"}]"#;
        let env = [
            ("ARGOCD_ENV_TARGET_CLUSTER", "eu1"),
            ("ARGOCD_APP_PARAMETERS", parameters),
        ];
        let all = announced("helm", &env);
        let value = |name: &str, field: &str| find(&all, name).expect(name)[field].clone();
        assert_eq!(value("helm-parameters", "map"), json!({"a": "b=c"}));
        assert_eq!(value("helm-value-files", "array"), json!(["x.yaml", "y.yaml"]));
        assert_eq!(value("clusters", "array"), json!(["eu1"]));
        assert_eq!(value("allow-empty", "string"), "maybe");
        assert_eq!(value("delete-crds", "string"), "false", "the default");
        assert_eq!(value("placement", "string"), Value::Null);
        let of_unknown_source = announced("jsonnet", &[]);
        assert_eq!(find(&of_unknown_source, "source").expect("source")["string"], "jsonnet");
        assert_eq!(value("delete-crds", "itemType"), "boolean");
        assert_eq!(value("helm-parameters", "collectionType"), "map");
        assert_eq!(
            value("rollout", "tooltip"),
            "Rollout of a change to the clusters of the placement: All at once, Progressive, or ProgressivePerGroup (default: All)"
        );
    }

    #[test]
    fn announces_values_in_the_applications_form() {
        let parameters = r#"[{"name":"clusters","string":"eu1,us1"},{"name":"placement","array":["fleet/eu"]},
            {"name":"include","array":["a","b"],"string":"c"},{"name":"overlays","array":["eu1=a","us1=b"]}]"#;
        let all = announced("directory", &[("ARGOCD_APP_PARAMETERS", parameters)]);
        let shape = |name: &str| {
            let announcement = find(&all, name).expect(name);
            json!([
                announcement["collectionType"],
                announcement["string"],
                announcement["array"],
                announcement["map"]
            ])
        };
        assert_eq!(shape("clusters"), json!([null, "eu1,us1", null, null]));
        assert_eq!(shape("placement"), json!(["array", null, ["fleet/eu"], null]));
        assert_eq!(shape("include"), json!(["array", null, ["a", "b", "c"], null]));
        assert_eq!(shape("overlays"), json!(["array", null, ["eu1=a", "us1=b"], null]));

        let all = announced(
            "helm",
            &[
                ("ARGOCD_ENV_OVERLAYS", "eu1=a.yaml,us1=b.yaml"),
                ("ARGOCD_ENV_HELM_PARAMETERS", "a=1,2\nb=3"),
            ],
        );
        let map = |name: &str| find(&all, name).expect(name)["map"].clone();
        assert_eq!(map("overlays"), json!({"eu1": "a.yaml", "us1": "b.yaml"}));
        assert_eq!(map("helm-parameters"), json!({"a": "1,2", "b": "3"}));
    }

    #[test]
    fn announcements_are_independent_of_the_application_name() {
        let (name, others) = (("ARGOCD_APP_NAME", "shop"), [("TARGET_CLUSTER", "eu1")]);
        assert_eq!(announced("helm", &[name, others[0]]), announced("helm", &others));
    }
}
