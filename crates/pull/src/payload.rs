//! Builds the objects for a managed cluster: the Application as the Argo CD there runs it, and its prerequisites.

use super::project::translated_spec;
use hub_state::annotations::REFRESH;
use hub_state::json::without_empty;
use hub_state::pull::application::{Application, Destination, is_copied};
use hub_state::pull::forwarded::Requests;
use hub_state::pull::payload_id::payload_id;
use hub_state::pull::{Dialect, Settings};
use ocm::pull_model as names;
use serde_json::{Map, Value, json};

/// The field of a source with Helm values as an object.
const VALUES: &str = "valuesObject";

pub fn namespace<'a>(application: &'a Application, settings: &'a Settings) -> &'a str {
    let asked = application.cluster_namespace.as_deref();
    let namespace = asked.unwrap_or(&application.namespace);
    if namespace.is_empty() {
        &settings.argocd
    } else {
        namespace
    }
}

/// The state of the hub that the objects for a managed cluster depend on.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfHub<'h> {
    /// The AppProject of the Application, if it may be delivered.
    pub project: Option<&'h Value>,
    /// The label with which the hub's Argo CD tracks objects. The managed cluster's may track by it, too, and would delete what its
    /// Application of that name lacks.
    pub tracking_label: Option<&'h str>,
}

/// Returns all objects of the work in dependency order.
pub fn manifests(application: &Application, settings: &Settings, requests: &Requests, hub: OfHub<'_>) -> Vec<Value> {
    let mut manifests = Vec::new();
    if settings.namespace {
        manifests.push(namespace_object(namespace(application, settings), settings));
    }
    // Every Argo CD creates its own default project.
    let is_default = |project: &Value| {
        let metadata = &project["metadata"];
        metadata["name"] == names::DEFAULT_PROJECT && metadata["namespace"] == *settings.argocd
    };
    let project = hub.project.filter(|project| settings.project && !is_default(project));
    let cluster = application.cluster.as_deref().unwrap_or_default();
    manifests.extend(project.map(|project| project_object(project, cluster, hub.tracking_label)));
    manifests.push(self::application(application, settings, requests, hub.tracking_label));
    manifests
}

pub fn application(
    application: &Application,
    settings: &Settings,
    requests: &Requests,
    tracking_label: Option<&str>,
) -> Value {
    let mut base: Value = serde_json::from_str(&application.base).expect("it was written as JSON");
    let mut annotations = entries(base.get("annotations"));
    let mut labels = entries(base.get("labels"));
    labels.retain(|name, _| Some(&**name) != tracking_label);
    if let Some(set) = set(application) {
        labels.insert(names::OF_SET.to_owned(), json!("true"));
        annotations.insert(names::SET.to_owned(), json!(set));
    }
    if let Some(refresh) = &requests.refresh {
        annotations.insert(REFRESH.to_owned(), json!(refresh.kind));
        annotations.insert(names::REFRESH_REQUEST.to_owned(), json!(refresh.nonce));
        if let Some(hydrate) = &refresh.hydrate {
            annotations.insert(names::HYDRATE.to_owned(), json!(hydrate));
        }
    }
    let namespace = namespace(application, settings);
    // The API server drops empty fields, so the work would never equal the desired one.
    let metadata = without_empty(json!({
        "name": application.name,
        "namespace": namespace,
        "labels": labels,
        "annotations": annotations,
    }));
    let mut spec = base["spec"].take();
    // Argo CD before 3.1 drops `enabled`, and would sync and prune automatically.
    if let Some(Value::Object(policy)) = spec.get_mut("syncPolicy")
        && policy
            .get("automated")
            .is_some_and(|automated| automated["enabled"] == false)
    {
        policy.remove("automated");
    }
    if let Some(Value::Object(destination)) = spec.get_mut("destination") {
        point(destination, application, settings, namespace);
    }
    let mut object = json!({
        "apiVersion": names::API_VERSION,
        "kind": names::KIND,
        "metadata": metadata,
        "spec": spec,
    });
    if let Some(operation) = &requests.operation {
        object["operation"] = operation.to_json();
    }
    write_null_values_as_text(&mut object);
    // No component on the cluster would remove finalizers of others.
    let finalizers: Vec<_> = application.argocd_finalizers().collect();
    let id = payload_id(&object.to_string(), &finalizers);
    object["metadata"]["annotations"][names::PAYLOAD] = json!(id);
    if !finalizers.is_empty() {
        object["metadata"]["finalizers"] = json!(finalizers);
    }
    object
}

/// Replaces Helm values with nulls, which remove defaults of a chart, by the text that Argo CD reads in the same way: the API server
/// drops nulls in a list from a merge patch, and the manifests of a work are a list.
fn write_null_values_as_text(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(write_null_values_as_text),
        Value::Object(fields) => {
            if fields
                .get(VALUES)
                .is_some_and(|values| values.is_object() && has_null(values))
            {
                let values = fields.remove(VALUES).unwrap_or_default();
                fields.insert("values".to_owned(), json!(values.to_string()));
            }
            let others = fields.iter_mut().filter(|(key, _)| *key != VALUES);
            others.for_each(|(_, field)| write_null_values_as_text(field));
        }
        _ => {}
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// Returns the ApplicationSet that created the Application, as the peer integrations write it.
pub(super) fn set(application: &Application) -> Option<String> {
    let set = application.set.as_deref()?;
    Some(format!("{}/{set}", application.namespace))
}

/// Sets the destination of the managed cluster's Argo CD to its own cluster or to the requested one. Argo CD accepts either a
/// name or a server, and rejects both.
fn point(destination: &mut Map<String, Value>, application: &Application, settings: &Settings, namespace: &str) {
    let asked = application.destination.as_ref();
    destination.remove("name");
    destination.remove("server");
    match asked.filter(|_| settings.dialect == Dialect::ArgocdPullIntegration) {
        Some(Destination::Name(name)) => destination.insert("name".to_owned(), json!(name)),
        Some(Destination::Server(server)) => destination.insert("server".to_owned(), json!(server)),
        None => destination.insert("server".to_owned(), json!(names::IN_CLUSTER)),
    };
    let target = destination.get("namespace").and_then(Value::as_str);
    if let Some(target) = destination_namespace(target, namespace, settings).map(|target| json!(target)) {
        destination.insert("namespace".to_owned(), target);
    }
}

/// Returns the namespace of the destination on the managed cluster. ACM fills in an empty one.
pub fn destination_namespace<'a>(
    requested: Option<&'a str>,
    namespace: &'a str,
    settings: &Settings,
) -> Option<&'a str> {
    requested.map(|requested| match settings.dialect {
        Dialect::Acm if requested.is_empty() => namespace,
        _ => requested,
    })
}

fn namespace_object(name: &str, settings: &Settings) -> Value {
    let mut metadata = json!({"name": name, "annotations": {names::SYNC_OPTIONS: "Delete=false"}});
    if settings.dialect == Dialect::Acm {
        metadata["labels"] = json!({names::MANAGED_BY: settings.argocd});
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

fn project_object(project: &Value, cluster: &str, tracking_label: Option<&str>) -> Value {
    let mut annotations = entries(project.pointer("/metadata/annotations"));
    annotations.retain(|name, _| is_copied(name));
    let mut labels = entries(project.pointer("/metadata/labels"));
    labels.retain(|name, _| name != names::ARGO_CD_INSTANCE && Some(&**name) != tracking_label);
    let metadata = json!({
        "name": project["metadata"]["name"],
        "namespace": project["metadata"]["namespace"],
        "labels": labels,
        "annotations": annotations,
    });
    json!({
        "apiVersion": names::API_VERSION,
        "kind": names::PROJECT_KIND,
        "metadata": without_empty(metadata),
        "spec": translated_spec(project, cluster),
    })
}

fn entries(map: Option<&Value>) -> Map<String, Value> {
    map.and_then(Value::as_object).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hub_state::testing::pull::{annotate, application};

    fn pull() -> Settings {
        Settings::default()
    }

    fn acm() -> Settings {
        Settings {
            dialect: Dialect::Acm,
            namespace: true,
            project: true,
            argocd: "openshift-gitops".to_owned(),
            ..Settings::default()
        }
    }

    fn of_hub(project: &Value) -> OfHub<'_> {
        OfHub {
            project: Some(project),
            tracking_label: Some("example.com/app"),
        }
    }

    fn payload(settings: &Settings, change: impl FnOnce(&mut Value)) -> Value {
        super::application(&application(change), settings, &Requests::default(), None)
    }

    #[test]
    fn payload_is_the_application_for_the_managed_cluster() {
        let mut application = payload(&pull(), |_| ());
        assert!(
            application["metadata"]["annotations"]
                .as_object_mut()
                .expect("a map")
                .remove(names::PAYLOAD)
                .is_some()
        );
        let desired = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {
                "name": "shop",
                "namespace": "argocd",
                "labels": {"team": "a"},
                "annotations": {"contact": "shop@example.com"},
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            },
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://example.com/shop", "path": "guestbook"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "guestbook"},
            },
        });
        assert_eq!(application, desired);
    }

    #[test]
    fn payload_omits_the_hubs_own_metadata() {
        let application = payload(&pull(), |object| {
            let metadata = &mut object["metadata"];
            metadata["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]);
            metadata["managedFields"] = json!([{"manager": "kubectl"}]);
            metadata["generation"] = json!(3);
            metadata["labels"]["app.kubernetes.io/instance"] = json!("fleet");
            metadata["labels"]["argocd.argoproj.io/instance"] = json!("fleet");
            metadata["finalizers"] = json!(["example.com/of-the-hub"]);
            object["status"] = json!({"health": {"status": "Healthy"}});
            for name in [
                "kubectl.kubernetes.io/last-applied-configuration",
                "argocd.argoproj.io/refresh",
                "argocd.argoproj.io/refresh-timestamp",
                "notified.notifications.argoproj.io",
                "argocd.argoproj.io/installation-id",
                "argocd-ocm-cmp.github.io/payload",
                "argocd-ocm-cmp.github.io/of-the-hub",
                "apps.open-cluster-management.io/destination-name",
            ] {
                annotate(object, name, "x");
            }
            annotate(
                object,
                "argocd.argoproj.io/tracking-id",
                "fleet:argoproj.io/Application:argocd/shop",
            );
            annotate(object, "notifications.argoproj.io/subscribe.on-sync.slack", "shop");
        });
        let metadata = application["metadata"].as_object().expect("a map");
        let keys: Vec<_> = metadata.keys().collect();
        assert_eq!(keys, ["annotations", "labels", "name", "namespace"]);
        assert_eq!(metadata["labels"], json!({"team": "a"}));
        let annotations: Vec<_> = metadata["annotations"].as_object().expect("a map").keys().collect();
        let expected = [
            "argocd-ocm-cmp.github.io/payload",
            "contact",
            "notifications.argoproj.io/subscribe.on-sync.slack",
        ];
        assert_eq!(annotations, expected);
        assert_ne!(metadata["annotations"][names::PAYLOAD], "x");
        assert_eq!(application.get("status"), None);
    }

    #[test]
    fn automated_sync_that_is_off_is_left_out() {
        for (automated, expected) in [
            (json!({"prune": true, "enabled": false}), json!({"retry": {"limit": 1}})),
            (
                json!({"enabled": true}),
                json!({"automated": {"enabled": true}, "retry": {"limit": 1}}),
            ),
        ] {
            let application = payload(&pull(), |object| {
                object["spec"]["syncPolicy"] = json!({"automated": automated, "retry": {"limit": 1}});
            });
            assert_eq!(application["spec"]["syncPolicy"], expected);
        }
    }

    #[test]
    fn annotation_overrides_the_destination_by_name_or_server() {
        let destination = |settings: &Settings, annotations: &[(&str, &str)]| {
            let application = payload(settings, |object| {
                for (name, text) in annotations {
                    annotate(object, name, text);
                }
            });
            application["spec"]["destination"].clone()
        };
        let name = (names::DESTINATION_NAME, "edge");
        let server = (names::DESTINATION_SERVER, "https://edge:6443");
        let by_name = json!({"name": "edge", "namespace": "guestbook"});
        let by_server = json!({"server": "https://edge:6443", "namespace": "guestbook"});
        assert_eq!(destination(&pull(), &[name]), by_name);
        assert_eq!(destination(&pull(), &[server]), by_server);
        assert_eq!(destination(&pull(), &[name, server]), by_name);
        assert_eq!(
            destination(&pull(), &[(names::DESTINATION_NAME, ""), server]),
            by_server
        );
        let expected = json!({"server": names::IN_CLUSTER, "namespace": "guestbook"});
        assert_eq!(
            destination(&acm(), &[name, server]),
            expected,
            "ACM knows none of these"
        );
    }

    #[test]
    fn rewrites_a_destination_by_name() {
        for settings in [pull(), acm()] {
            let application = payload(&settings, |object| {
                object["spec"]["destination"] = json!({"name": "eu1", "namespace": ""});
            });
            let namespace = if settings.dialect == Dialect::Acm { "argocd" } else { "" };
            let expected = json!({"server": names::IN_CLUSTER, "namespace": namespace});
            assert_eq!(application["spec"]["destination"], expected);
        }
        let application = payload(&acm(), |object| object["spec"]["destination"] = json!({"name": "eu1"}));
        assert_eq!(application["spec"]["destination"], json!({"server": names::IN_CLUSTER}));
    }

    #[test]
    fn payload_has_the_configured_or_the_hubs_namespace() {
        let application = payload(&pull(), |object| annotate(object, names::CLUSTER_NAMESPACE, "gitops"));
        assert_eq!(application["metadata"]["namespace"], "gitops");
        let application = payload(&acm(), |object| object["metadata"]["namespace"] = json!(""));
        assert_eq!(application["metadata"]["namespace"], "openshift-gitops");
    }

    #[test]
    fn nulls_in_helm_values_are_text() {
        let application = payload(&pull(), |object| {
            let source = |values: Value| json!({"helm": {"valuesObject": values}});
            object["spec"]["sources"] = json!([source(json!({"a": [1, {"b": null}]})), source(json!({"a": 1}))]);
        });
        let sources = json!([{"helm": {"values": r#"{"a":[1,{"b":null}]}"#}}, {"helm": {"valuesObject": {"a": 1}}}]);
        assert_eq!(application["spec"]["sources"], sources);
    }

    #[test]
    fn payload_names_the_set_that_generated_it() {
        let application = payload(&pull(), |object| {
            let owner = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "fleet"});
            object["metadata"]["ownerReferences"] = json!([owner]);
            object["metadata"]["labels"] = json!({names::PULL: "true"});
        });
        assert_eq!(application["metadata"]["labels"], json!({names::OF_SET: "true"}));
        assert_eq!(application["metadata"]["annotations"][names::SET], "argocd/fleet");
    }

    #[test]
    fn payload_hash_covers_everything_that_is_delivered() {
        let form =
            |change: &dyn Fn(&mut Value)| payload(&pull(), change)["metadata"]["annotations"][names::PAYLOAD].clone();
        let plain = form(&|_| ());
        assert_eq!(
            plain,
            form(&|object| object["metadata"]["resourceVersion"] = json!("8"))
        );
        assert_ne!(plain, form(&|object| object["spec"]["project"] = json!("other")));
        assert_ne!(plain, form(&|object| annotate(object, "contact", "other")));
    }

    #[test]
    fn acm_delivers_the_namespace_and_the_project_first() {
        let application = application(|object| object["metadata"]["labels"]["example.com/app"] = json!("root"));
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AppProject",
            "metadata": {
                "name": "shops", "namespace": "openshift-gitops", "uid": "p", "resourceVersion": "3",
                "labels": {"team": "a", "example.com/app": "root"},
                "annotations": {"contact": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            },
            "spec": {"sourceRepos": ["*"], "destinations": [{"name": "eu1", "namespace": "*"}]},
            "status": {"jwtTokensByRole": {}},
        });
        let all = manifests(&application, &acm(), &Requests::default(), of_hub(&project));
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": "argocd",
                "labels": {"argocd.argoproj.io/managed-by": "openshift-gitops"},
                "annotations": {"argocd.argoproj.io/sync-options": "Delete=false"},
            },
        });
        let delivered = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AppProject",
            "metadata": {
                "name": "shops", "namespace": "openshift-gitops",
                "labels": {"team": "a"}, "annotations": {"contact": "a"},
            },
            "spec": {
                "sourceRepos": ["*"],
                "destinations": [{"server": "https://kubernetes.default.svc", "namespace": "*"}],
            },
        });
        assert_eq!(all[..2], [namespace, delivered]);
        assert_eq!(all[2]["kind"], "Application");
        assert_eq!(all[2]["metadata"]["labels"], json!({"team": "a"}));
        let mut default = project;
        default["metadata"]["name"] = json!("default");
        assert_eq!(
            manifests(&application, &acm(), &Requests::default(), of_hub(&default)).len(),
            2
        );
        assert_eq!(
            manifests(&application, &pull(), &Requests::default(), of_hub(&default)).len(),
            1
        );
    }
}
