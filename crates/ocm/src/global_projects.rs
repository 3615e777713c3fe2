//! The global projects of Argo CD: AppProjects whose rules extend those of others, as its `GetAppVirtualProject` merges them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use manifest::{json, yaml};
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The lists of an AppProject that a global project extends; `destinationServiceAccounts` since Argo CD 3.5.
const LISTS: [&str; 8] = [
    "clusterResourceBlacklist",
    "clusterResourceWhitelist",
    "destinationServiceAccounts",
    "destinations",
    "namespaceResourceBlacklist",
    "namespaceResourceWhitelist",
    "sourceRepos",
    "syncWindows",
];

/// The global projects of an Argo CD.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GlobalProjects(Vec<GlobalProject>);

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GlobalProject {
    project_name: String,
    /// The AppProjects that it extends; all without a selector.
    label_selector: Option<LabelSelector>,
}

impl GlobalProjects {
    /// Reads them from the `data` of [`crate::tracking::CONFIG_MAP`]. As in Argo CD, there are none if the text is invalid.
    pub fn configured<'a>(data: impl Fn(&str) -> Option<&'a str>) -> Self {
        let read = || {
            let document = yaml::documents(data("globalProjects")?).next()?.ok()?;
            let mut text = String::new();
            json::write(&document.value, &mut text).ok()?;
            serde_json::from_value(as_in_go(serde_json::from_str(&text).ok()?, false)).ok()
        };
        Self(read().unwrap_or_default())
    }

    /// Returns true if the AppProject of this name extends others.
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|global| global.project_name == name)
    }

    /// Returns an AppProject with the rules of its global projects, which `find` returns by name.
    pub fn extend<'p, 'g>(&self, project: &'p Value, find: impl Fn(&str) -> Option<&'g Value>) -> Cow<'p, Value> {
        let mut extended = Cow::Borrowed(project);
        let metadata = &project["metadata"];
        for global in self.0.iter().filter(|global| metadata["name"] != *global.project_name) {
            // Argo CD ignores what follows an invalid or missing one.
            let Some(is_selected) = selects(global.label_selector.as_ref(), &metadata["labels"]) else {
                break;
            };
            if !is_selected {
                continue;
            }
            let Some(rules) = find(&global.project_name) else { break };
            for list in LISTS {
                let Some(more) = rules["spec"][list].as_array() else {
                    continue;
                };
                let entries = &mut extended.to_mut()["spec"][list];
                if !entries.is_array() {
                    *entries = json!([]);
                }
                entries.as_array_mut().expect("a list").extend(more.iter().cloned());
            }
        }
        extended
    }
}

/// Converts a value as the YAML reader of Argo CD, which knows the types: the names of fields may be in any case, and a number or a
/// boolean is a text, because nothing else is here. The keys of labels stay.
fn as_in_go(value: Value, are_labels: bool) -> Value {
    const FIELDS: [&str; 7] = [
        "projectName",
        "labelSelector",
        "matchLabels",
        "matchExpressions",
        "key",
        "operator",
        "values",
    ];
    let text = |value: Value| {
        if value.is_null() {
            json!("")
        } else {
            as_in_go(value, false)
        }
    };
    let field = |(key, value): (String, Value)| match FIELDS.iter().find(|field| field.eq_ignore_ascii_case(&key)) {
        Some(field) => ((*field).to_owned(), as_in_go(value, *field == "matchLabels")),
        None => (key, value),
    };
    match value {
        Value::Bool(flag) => json!(flag.to_string()),
        Value::Number(number) => json!(number.to_string()),
        Value::Array(items) => items.into_iter().map(text).collect(),
        Value::Object(labels) if are_labels => labels.into_iter().map(|(key, value)| (key, text(value))).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(field)
            .collect(),
        other => other,
    }
}

/// Returns true if a selector selects an object with these labels; `None` if it is invalid.
fn selects(selector: Option<&LabelSelector>, labels: &Value) -> Option<bool> {
    let Some(selector) = selector else { return Some(true) };
    let has = |(key, value): (&String, &String)| labels[key] == **value;
    let mut selects = selector.match_labels.iter().flatten().all(has);
    for requirement in selector.match_expressions.iter().flatten() {
        let label = labels[&requirement.key].as_str();
        let values = requirement.values.as_deref().unwrap_or_default();
        let is_one = label.is_some_and(|label| values.iter().any(|value| value == label));
        selects &= match &*requirement.operator {
            "In" if !values.is_empty() => is_one,
            "NotIn" if !values.is_empty() => !is_one,
            "Exists" if values.is_empty() => label.is_some(),
            "DoesNotExist" if values.is_empty() => label.is_none(),
            _ => return None,
        };
    }
    Some(selects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_projects_have_the_rules_of_global_projects() {
        let text = "\
            - {projectName: freeze, labelSelector: {matchLabels: {env: prod}}}\n\
            - {projectName: shared, labelSelector: {matchExpressions: [{key: env, operator: NotIn, values: [dev]}]}}\n\
            - {projectName: missing, labelSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}\n\
            - {projectName: all}";
        let globals = GlobalProjects::configured(|key| (key == "globalProjects").then_some(text));
        let project = |name: &str, labels: Value, repos: &[&str]| json!({"metadata": {"name": name, "labels": labels}, "spec": {"sourceRepos": repos}});
        let others = ["freeze", "shared", "all"].map(|name| (name, project(name, Value::Null, &[name])));
        let find = |name: &str| Some(&others.iter().find(|other| other.0 == name)?.1);
        for (labels, expected) in [
            (
                json!({"env": "prod", "team": "a"}),
                &["own", "freeze", "shared", "all"][..],
            ),
            (json!({"env": "dev", "team": "a"}), &["own", "all"]),
            // What follows a missing project does not count.
            (json!({"env": "test"}), &["own", "shared"]),
        ] {
            let own = project("own", labels, &["own"]);
            assert_eq!(
                globals.extend(&own, find)["spec"]["sourceRepos"],
                json!(expected),
                "{own}"
            );
        }
        let itself = project("all", json!({"env": "dev", "team": "a"}), &["all"]);
        assert!(matches!(globals.extend(&itself, find), Cow::Borrowed(_)));
        let bare = json!({"metadata": {"name": "bare", "labels": {"env": "dev", "team": "a"}}});
        assert_eq!(globals.extend(&bare, find)["spec"], json!({"sourceRepos": ["all"]}));
        for text in [
            "- {projectName: all, labelSelector: {matchLabels: {env: true}}}",
            "- {ProjectName: all, labelselector: {MATCHLABELS: {env: 'true'}}}",
            "- {projectName: all, labelSelector: {matchExpressions: [{key: env, operator: In, values: [true, 1]}], matchLabels: null}}",
        ] {
            let globals = GlobalProjects::configured(|_| Some(text));
            let extends = |env: &str| {
                globals
                    .extend(&project("own", json!({"env": env}), &[]), find)
                    .into_owned()
            };
            assert_eq!(extends("true")["spec"]["sourceRepos"], json!(["all"]), "{text}");
            assert_eq!(extends("false")["spec"]["sourceRepos"], json!([]), "{text}");
        }
        for invalid in [
            "- [",
            "- {projectName: all, labelSelector: {matchExpressions: [{key: a, operator: is}]}}",
        ] {
            let globals = GlobalProjects::configured(|_| Some(invalid));
            assert_eq!(*globals.extend(&bare, find), bare, "{invalid}");
        }
    }
}
