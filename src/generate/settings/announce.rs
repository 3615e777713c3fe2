//! What Argo CD's UI is told about the parameters of an Application: the table of settings, as argocd-cmp-server wants it.

use super::sources::Sources;
use super::table::{Form, SETTINGS, Setting};
use super::{Env, Given};
use crate::generate::problem::Problems;
use crate::generate::source::Kind;
use crate::json;
use crate::value::{Map, Value};

/// The parameters that mean something for a folder of this kind, as a JSON list of Argo CD's `ParameterAnnouncement`s, each
/// with its value in the Application that `env` is of. Unlike elsewhere a wrong value is no error: it is there to be corrected.
///
/// # Errors
/// When the Application's parameters cannot be read at all.
pub fn announcements(kind: Kind, env: &Env) -> Result<String, Problems> {
    let nothing_typed = Given::default();
    let mut sources = Sources::new(&nothing_typed, env)?;
    let parameters = SETTINGS
        .iter()
        .filter(|setting| setting.parameter && has_meaning(setting, kind));
    let announced = parameters
        .map(|setting| announcement(setting, sources.texts(setting)))
        .collect();
    let mut out = String::new();
    json::write(&Value::List(announced), &mut out).expect("nothing in it is long or deep");
    out.push('\n');
    Ok(out)
}

fn has_meaning(setting: &Setting, kind: Kind) -> bool {
    match setting.name {
        "recurse" | "include" | "exclude" => kind == Kind::Directory,
        name if name.starts_with("helm-") => kind == Kind::Helm,
        _ => true,
    }
}

fn announcement(setting: &Setting, given: Vec<String>) -> Value<'static> {
    let plain = |text: &str| Value::text(text.replace('`', ""));
    let (item_type, collection_type) = match setting.form {
        Form::Flag => ("boolean", ""),
        Form::Text(_) => ("string", ""),
        Form::List(_) => ("string", "array"),
        Form::Map(_) => ("string", "map"),
    };
    let tooltip = match setting.default {
        "–" => plain(setting.about),
        default => plain(&format!("{} (default: {default})", setting.about)),
    };
    let mut fields = vec![
        ("name", Value::text(setting.name)),
        ("title", Value::text(setting.title)),
        ("tooltip", tooltip),
        ("itemType", Value::text(item_type)),
    ];
    match setting.form {
        Form::Flag | Form::Text(_) => {
            let value = given
                .into_iter()
                .next_back()
                .or_else(|| setting.default_value().map(str::to_owned));
            fields.extend(value.map(|value| ("string", Value::text(value))));
        }
        Form::List(_) => {
            fields.push(("collectionType", Value::text(collection_type)));
            fields.push(("array", Value::List(given.into_iter().map(Value::text).collect())));
        }
        Form::Map(_) => {
            let entries = given.iter().filter_map(|text| text.split_once('='));
            let entries = entries.map(|(key, value)| (key.to_owned().into(), Value::text(value)));
            fields.push(("collectionType", Value::text(collection_type)));
            fields.push(("map", Value::Map(Map::from_entries(entries.collect()))));
        }
    }
    Value::map(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn announced(kind: Kind, env: &[(&str, &str)]) -> Vec<Value> {
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        serde_json::from_str(&announcements(kind, &env).expect("readable")).expect("JSON")
    }

    fn find<'v>(all: &'v [Value], name: &str) -> Option<&'v Value> {
        all.iter().find(|parameter| parameter["name"] == name)
    }

    #[test]
    fn a_folder_is_told_what_means_something_for_it() {
        let names = |kind| -> Vec<String> {
            let all = announced(kind, &[]).into_iter();
            all.map(|parameter| parameter["name"].as_str().expect("a name").to_owned())
                .collect()
        };
        let all = [Kind::Directory, Kind::Kustomize, Kind::Helm].map(names);
        for setting in SETTINGS {
            let announced = all.iter().any(|names| names.iter().any(|name| name == setting.name));
            assert_eq!(announced, setting.parameter, "{}", setting.name);
        }
        let [directory, kustomize, helm] = all;
        assert!(directory.contains(&"include".to_owned()) && !directory.contains(&"helm-values".to_owned()));
        assert!(!kustomize.contains(&"include".to_owned()) && !kustomize.contains(&"helm-values".to_owned()));
        assert!(!helm.contains(&"include".to_owned()) && helm.contains(&"helm-values".to_owned()));
    }

    #[test]
    fn each_has_the_value_that_holds() {
        let parameters = r#"[{"name":"helm-parameters","map":{"a":"b=c"}},{"name":"helm-value-files","array":["x.yaml","y.yaml"]},
            {"name":"colour","string":"red"},{"name":"allow-empty","string":"maybe"}]"#;
        let env = [
            ("ARGOCD_ENV_TARGET_CLUSTER", "eu1"),
            ("ARGOCD_APP_PARAMETERS", parameters),
        ];
        let all = announced(Kind::Helm, &env);
        let value = |name: &str, field: &str| find(&all, name).expect(name)[field].clone();
        assert_eq!(value("helm-parameters", "map"), json!({"a": "b=c"}));
        assert_eq!(value("helm-value-files", "array"), json!(["x.yaml", "y.yaml"]));
        assert_eq!(value("clusters", "array"), json!(["eu1"]));
        assert_eq!(value("allow-empty", "string"), "maybe");
        assert_eq!(value("delete-crds", "string"), "false", "the default");
        assert_eq!(value("placement", "string"), Value::Null);
        assert_eq!(value("delete-crds", "itemType"), "boolean");
        assert_eq!(value("helm-parameters", "collectionType"), "map");
        assert_eq!(
            value("rollout", "tooltip"),
            "How a change goes through the clusters of the placement: All at once, Progressive, or ProgressivePerGroup (default: All)"
        );
    }
}
