//! The shown form of objects and works.

use super::work::ComparedWork;
use generate::content_hash;
use manifest::key::ObjectKey;
use manifest::value::{Map, Value};
use ocm::work::{TEMPLATE, WORKLOAD, Work};
use std::borrow::Cow;
use std::collections::HashSet;

/// Returns both sides of an object with the values of Secrets masked, as `kubectl diff` does: only the fact of a change is visible.
pub(super) fn pair<'a>(
    before: Option<&Value<'a>>,
    after: Option<&Value<'a>>,
) -> (Option<Value<'a>>, Option<Value<'a>>) {
    let shown = |object: &Value<'a>, other: Option<&Value<'a>>, changed| {
        let mut object = without_hash(object);
        if mask_secrets(&mut object, other, changed) {
            mask_copy(&mut object);
        }
        object
    };
    (
        before.map(|object| shown(object, after, "*** (before)")),
        after.map(|object| shown(object, before, "*** (after)")),
    )
}

/// Returns true if the objects differ in nothing that is shown.
pub(super) fn is_same(before: &Value<'_>, after: &Value<'_>) -> bool {
    before == after || without_hash(before) == without_hash(after)
}

/// Returns an object without the value of its content hash, which only signals a change: see [`content_hash`].
fn without_hash<'a>(object: &Value<'a>) -> Value<'a> {
    let mut object = object.clone();
    if let Some(hash) = annotation_mut(&mut object, content_hash::CONTENT) {
        *hash = Value::String(HIDDEN.into());
    }
    object
}

fn annotation_mut<'v, 'a>(object: &'v mut Value<'a>, name: &str) -> Option<&'v mut Value<'a>> {
    let annotations = object.as_map_mut()?.map_at_mut(&["metadata", "annotations"]);
    annotations?.get_mut(name)
}

/// The placeholder of a value that follows from other changes, which are shown.
const HIDDEN: &str = "…";

/// Masks the values of a Secret, or of Secrets within another object, and returns true if there are any. `changed` replaces a value that is
/// different in `other`.
fn mask_secrets(value: &mut Value<'_>, other: Option<&Value<'_>>, changed: &'static str) -> bool {
    match value {
        Value::Map(fields) if is_secret(fields) => {
            mask_values(fields, other.and_then(Value::as_map), changed);
            mask_copy(value);
            true
        }
        Value::Map(fields) => {
            let mut has_secret = false;
            fields.retain(|key, value| {
                let other = other.and_then(|other| other.as_map()?.get(key));
                has_secret |= mask_secrets(value, other, changed);
                true
            });
            has_secret
        }
        Value::List(items) => {
            let others = other.map_or(&[][..], Value::items);
            let items = items.iter_mut().enumerate();
            let masked = items.map(|(at, item)| mask_secrets(item, others.get(at), changed));
            masked.fold(false, |any, is_masked| any | is_masked)
        }
        _ => false,
    }
}

/// Returns true for a Secret of the core group.
fn is_secret(object: &Map<'_>) -> bool {
    let text = |key| object.get(key).and_then(Value::as_str);
    text("kind") == Some("Secret") && text("apiVersion").is_none_or(|version| !version.contains('/'))
}

fn mask_values(secret: &mut Map<'_>, other: Option<&Map<'_>>, changed: &'static str) {
    for field in ["data", "stringData"] {
        let others = other.and_then(|other| other.get(field));
        let mask = |value: &Value<'_>, other: Option<&Value<'_>>| {
            let is_same = other.is_none_or(|other| other == value);
            Value::String(if is_same { "***" } else { changed }.into())
        };
        match secret.get_mut(field) {
            Some(Value::Map(texts)) => texts.retain(|key, value| {
                *value = mask(value, others.and_then(|others| others.as_map()?.get(key)));
                true
            }),
            // The API server would reject it; it may still be a secret.
            Some(value) => *value = mask(value, others),
            None => {}
        }
    }
}

/// Masks kubectl's copy of the applied object.
fn mask_copy(object: &mut Value<'_>) {
    if let Some(copy) = annotation_mut(object, "kubectl.kubernetes.io/last-applied-configuration") {
        *copy = Value::String("***".into());
    }
}

/// Returns a work before and after: the options for Argo CD and the agent about its objects. Options for kinds that are added or
/// removed are left out, because they change with the objects, which are shown.
pub(super) fn works<'a>(before: &ComparedWork<'a>, after: &ComparedWork<'a>) -> (Value<'a>, Value<'a>) {
    let (old, new) = (resources(before), resources(after));
    let one_sided: HashSet<_> = old.symmetric_difference(&new).collect();
    let shown = |compared: &ComparedWork<'a>| {
        let mut value = work(&compared.work);
        if let Some(configs) = configs_mut(&mut value) {
            configs.retain(|config| {
                let identifier = config
                    .as_map()
                    .and_then(|config| config.get("resourceIdentifier")?.as_map());
                let text = |key| {
                    identifier
                        .and_then(|identifier| identifier.get(key)?.as_str())
                        .unwrap_or_default()
                };
                !one_sided.contains(&(text("group").to_owned(), text("resource").to_owned()))
            });
        }
        value
    };
    (shown(before), shown(after))
}

/// Returns the API groups and resources that the objects in a work may have.
fn resources(work: &ComparedWork<'_>) -> HashSet<(String, String)> {
    let of_kind = |ObjectKey { kind, .. }: &ObjectKey| {
        let names = kind.plurals().into_iter();
        let group = kind.group.to_string();
        names.map(move |name| (group.clone(), name.into_owned()))
    };
    work.keys().flat_map(of_kind).collect()
}

fn configs_mut<'v, 'a>(work: &'v mut Value<'a>) -> Option<&'v mut Vec<Value<'a>>> {
    let mut spec = work.as_map_mut()?.get_mut("spec")?.as_map_mut()?;
    if spec.get(TEMPLATE).is_some() {
        spec = spec.get_mut(TEMPLATE)?.as_map_mut()?;
    }
    match spec.get_mut("manifestConfigs")? {
        Value::List(configs) => Some(configs),
        _ => None,
    }
}

/// Returns a work without its objects and without the defaults of the API server, which mean the same as absent fields.
fn work<'a>(work: &Work<'a>) -> Value<'a> {
    let mut shown = Vec::new();
    let annotations = work
        .metadata()
        .and_then(|metadata| metadata.get("annotations")?.as_map());
    let ours = |name: &str| {
        name.starts_with("argocd-ocm-cmp.github.io/")
            || name.starts_with("argocd.argoproj.io/") && !OF_ARGO_CD.contains(&name)
    };
    let mut annotations = annotations.cloned().unwrap_or_default();
    annotations.retain(|name, _| ours(name));
    if !annotations.is_empty() {
        let annotations = vec![("annotations".into(), Value::Map(annotations))];
        shown.push(("metadata".into(), Value::Map(Map::from_entries(annotations))));
    }
    let mut spec = work.spec().cloned().unwrap_or_default();
    match spec.get_mut(TEMPLATE) {
        Some(Value::Map(template)) => template.remove(WORKLOAD),
        _ => spec.remove(WORKLOAD),
    };
    let mut spec = Value::Map(spec);
    plain(&mut spec);
    shown.push(("spec".into(), spec));
    Value::Map(Map::from_entries(shown))
}

/// The annotations that Argo CD writes on applied objects, and the one with which users request a refresh.
const OF_ARGO_CD: [&str; 3] = [
    "argocd.argoproj.io/installation-id",
    "argocd.argoproj.io/refresh",
    "argocd.argoproj.io/tracking-id",
];

/// The defaults of the schemas of OCM's works.
const DEFAULTS: [(&str, Value<'static>); 7] = [
    ("cascadeDeletionPolicy", Value::String(Cow::Borrowed("Background"))),
    ("feedbackScrapeType", Value::String(Cow::Borrowed("Poll"))),
    ("fieldManager", Value::String(Cow::Borrowed("work-agent"))),
    ("maxFailures", Value::Int(0)),
    ("minSuccessTime", Value::String(Cow::Borrowed("0"))),
    ("progressDeadline", Value::String(Cow::Borrowed("None"))),
    ("propagationPolicy", Value::String(Cow::Borrowed("Foreground"))),
];

/// Removes defaults, and fields that only follow from the objects.
fn plain(value: &mut Value<'_>) {
    match value {
        Value::Map(fields) => fields.retain(|key, value| {
            plain(value);
            !DEFAULTS.iter().any(|(name, default)| *name == key && default == value)
                && !matches!(value, Value::Map(fields) if fields.is_empty())
        }),
        Value::List(items) => items.iter_mut().for_each(plain),
        Value::String(text) if text.contains(content_hash::CONTENT) => *text = without_hashes(text).into(),
        _ => {}
    }
}

/// Returns CEL without the content hashes of objects, which are quoted, one or several: see [`content_hash`]. An object with a
/// changed hash is shown itself.
fn without_hashes(expression: &str) -> String {
    let is_hash =
        |word: &str| word.len() == content_hash::HASH_DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shown = |quoted: &str| {
        let hashes = quoted.split(' ').all(is_hash);
        if hashes { HIDDEN.to_owned() } else { quoted.to_owned() }
    };
    expression.split('\'').map(shown).collect::<Vec<_>>().join("'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::yaml;

    fn parse_yaml(text: &str) -> Value<'_> {
        yaml::documents(text).next().expect("a document").expect("YAML").value
    }

    /// Returns both sides as JSON flow, without the fields that every object has.
    fn shown(before: &str, after: &str) -> (String, String) {
        let secret = |fields: &str| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, {fields}}}");
        let (before, after) = (secret(before), secret(after));
        let (before, after) = pair(Some(&parse_yaml(&before)), Some(&parse_yaml(&after)));
        let text = |side: Option<Value<'_>>| {
            let yaml = yaml::write(&side.expect("a side"));
            let lines = yaml
                .lines()
                .filter(|line| line.contains("***") || line.contains("type"));
            lines.map(str::trim).collect::<Vec<_>>().join(", ")
        };
        (text(before), text(after))
    }

    #[test]
    fn masks_secret_values() {
        assert_eq!(
            shown(
                "data: {same: YQ==, old: YQ==, other: YQ==}",
                "data: {same: YQ==, new: YQ==, other: Yg==}"
            ),
            (
                r#"old: "***", other: "*** (before)", same: "***""#.to_owned(),
                r#"new: "***", other: "*** (after)", same: "***""#.to_owned()
            )
        );
        assert_eq!(
            shown("stringData: {a: secret}, type: a", "data: {a: c2VjcmV0}, type: b"),
            (r#"a: "***", type: a"#.to_owned(), r#"a: "***", type: b"#.to_owned())
        );
        assert_eq!(
            shown("data: [secret]", "data: secret"),
            (
                r#"data: "*** (before)""#.to_owned(),
                r#"data: "*** (after)""#.to_owned()
            )
        );
        let copied = parse_yaml(
            "{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: \
              {kubectl.kubernetes.io/last-applied-configuration: 'secret'}}}",
        );
        let (before, _) = pair(Some(&copied), None);
        assert!(!yaml::write(&before.expect("a side")).contains("secret"));
    }

    /// Such as in an Object of Crossplane.
    #[test]
    fn masks_secrets_within_other_objects() {
        let object = |value: &str| {
            format!(
                "{{apiVersion: example.com/v1, kind: Object, metadata: {{name: a, annotations: \
                  {{kubectl.kubernetes.io/last-applied-configuration: {value}}}}}, spec: {{manifests: \
                  [{{apiVersion: v1, kind: Secret, stringData: {{password: {value}}}}}]}}}}"
            )
        };
        let (before, after) = (object("one"), object("two"));
        let (before, after) = pair(Some(&parse_yaml(&before)), Some(&parse_yaml(&after)));
        let [before, after] = [before, after].map(|side| yaml::write(&side.expect("a side")));
        assert!(!before.contains("one") && before.contains("*** (before)"), "{before}");
        assert!(!after.contains("two") && after.contains("*** (after)"), "{after}");
    }

    #[test]
    fn masks_only_secrets_of_the_core_group() {
        let sealed =
            parse_yaml("{apiVersion: bitnami.com/v1alpha1, kind: Secret, metadata: {name: a}, data: {a: open}}");
        let (before, after) = pair(Some(&sealed), None);
        assert_eq!((before.as_ref(), after), (Some(&sealed), None));
    }

    #[test]
    fn hides_the_content_hash() {
        let object = |hash: &str, data: &str| {
            format!(
                "{{apiVersion: v1, kind: ConfigMap, data: {{a: {data}}}, \
                  metadata: {{name: a, annotations: {{argocd-ocm-cmp.github.io/content-hash: '{hash}'}}}}}}"
            )
        };
        let (one, other, same) = (
            object("1111111111", "x"),
            object("2222222222", "y"),
            object("3333333333", "x"),
        );
        assert!(is_same(&parse_yaml(&one), &parse_yaml(&same)) && !is_same(&parse_yaml(&one), &parse_yaml(&other)));
        // The presence of a hash is shown.
        let unmarked = one.replace("argocd-ocm-cmp.github.io/content-hash: '1111111111'", "");
        assert!(!is_same(&parse_yaml(&one), &parse_yaml(&unmarked)));
        let (before, after) = pair(Some(&parse_yaml(&one)), Some(&parse_yaml(&other)));
        for side in [before, after] {
            let yaml = yaml::write(&side.expect("a side"));
            assert!(!yaml.contains("1111111111") && !yaml.contains("2222222222"), "{yaml}");
        }
    }

    #[test]
    fn hides_configs_added_for_a_new_kind() {
        let text = |kinds: &[(&str, &str)], about: &str| {
            let manifests: Vec<String> = kinds
                .iter()
                .map(|(kind, _)| format!("{{apiVersion: v1, kind: {kind}}}"))
                .collect();
            let configs: Vec<String> = kinds
                .iter()
                .map(|(_, resource)| format!("{{resourceIdentifier: {{resource: {resource}}}, about: {about}}}"))
                .collect();
            format!(
                "{{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {{name: a, namespace: c}}, \
                  spec: {{workload: {{manifests: [{}]}}, manifestConfigs: [{}]}}}}",
                manifests.join(", "),
                configs.join(", ")
            )
        };
        let (config_map, secret) = (("ConfigMap", "configmaps"), ("Secret", "secrets"));
        let both = text(&[config_map, secret], "x");
        let is_same = |before: &str, after: &str| {
            let work = |text| ComparedWork::from(Work::new(parse_yaml(text)).expect("a work"));
            let (before, after) = works(&work(before), &work(after));
            before == after
        };
        assert!(is_same(&text(&[config_map], "x"), &both));
        assert!(is_same(&both, &text(&[secret], "x")));
        assert!(!is_same(&text(&[config_map], "y"), &both));
        // New options about objects that existed are shown.
        let without = both
            .replace("about: x", "")
            .replace("{resourceIdentifier: {resource: secrets}, }", "");
        assert!(!is_same(&without, &both));
    }

    #[test]
    fn shows_a_work_without_objects_and_defaults() {
        let shown = |text: &str| yaml::write(&work(&Work::new(parse_yaml(text)).expect("a work")));
        let of_hub = "{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, \
            metadata: {name: a, namespace: c, uid: x, annotations: {argocd.argoproj.io/tracking-id: x, \
              argocd.argoproj.io/sync-wave: '1', kubectl.kubernetes.io/last-applied-configuration: x}}, \
            spec: {workload: {manifests: [{apiVersion: v1}]}, manifestConfigs: [{feedbackScrapeType: Poll, \
              conditionRules: [{celExpressions: [\"'0a0a0a0a0a 1b1b1b1b1b'.contains(object.metadata.?annotations\
                [?'argocd-ocm-cmp.github.io/content-hash'].orValue('none'))\"]}], \
              updateStrategy: {serverSideApply: {fieldManager: work-agent, force: true}, type: ServerSideApply}}]}, \
            status: {conditions: []}}";
        assert_eq!(
            shown(of_hub),
            "metadata:\n  annotations:\n    argocd.argoproj.io/sync-wave: \"1\"\n\
             spec:\n  manifestConfigs:\n  - conditionRules:\n    - celExpressions:\n      - \
             \"'…'.contains(object.metadata.?annotations[?'argocd-ocm-cmp.github.io/content-hash'].orValue('none'))\"\n    \
             updateStrategy:\n      serverSideApply:\n        force: true\n      type: ServerSideApply\n"
        );
        let replica_set = "{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet, \
            metadata: {name: a, namespace: ns}, spec: {placementRefs: [{name: p, rolloutStrategy: {type: All}}], \
            manifestWorkTemplate: {deleteOption: {propagationPolicy: Orphan}, workload: {manifests: [{apiVersion: v1}]}}}}";
        assert_eq!(
            shown(replica_set),
            "spec:\n  manifestWorkTemplate:\n    deleteOption:\n      propagationPolicy: Orphan\n  \
             placementRefs:\n  - name: p\n    rolloutStrategy:\n      type: All\n"
        );
    }
}
