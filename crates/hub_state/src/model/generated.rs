//! The fields of an Application that the report of its ApplicationSet needs. They are read only for generated Applications.

use crate::json::{items, own, text_at};
use crate::report::Resource;
use manifest::value::Value;
use ocm::work as works;
use std::sync::Arc;

/// The name of the hub in Argo CD.
const HUB: &str = "in-cluster";

/// The fields of an Application that the report of its ApplicationSet needs. Unknown values are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    pub set: Box<str>,
    pub cluster: Option<Box<str>>,
    pub sync: Box<str>,
    /// The compared revision.
    pub revision: Box<str>,
    pub health: Box<str>,
    pub phase: Box<str>,
    pub started_at: Box<str>,
    /// The resources of the Application except works.
    pub resources: Arc<[Resource]>,
}

impl Generated {
    pub(super) fn from_json(set: &str, application: &Value<'_>) -> Self {
        let text = |path| own(application, path).unwrap_or_default();
        let resources = items(application, "/status/resources").iter();
        let revisions = items(application, "/status/sync/revisions").iter();
        let revisions: Vec<_> = revisions.filter_map(Value::as_str).collect();
        Self {
            set: set.into(),
            cluster: cluster(application).map(Into::into),
            revision: match text_at(application, "/status/sync/revision") {
                Some(revision) => revision.into(),
                None => revisions.join(",").into(),
            },
            sync: text("/status/sync/status"),
            health: text("/status/health/status"),
            phase: text("/status/operationState/phase"),
            started_at: text("/status/operationState/startedAt"),
            resources: Resource::sorted(resources.filter(|resource| text_at(resource, "/group") != Some(works::GROUP))),
        }
    }
}

/// Returns the managed cluster in the destination. For argocd-agent, it is in the address of the resource proxy.
fn cluster<'v>(application: &'v Value<'_>) -> Option<&'v str> {
    if let Some(name) = text_at(application, "/spec/destination/name") {
        return (name != HUB).then_some(name);
    }
    let (_, query) = text_at(application, "/spec/destination/server")?.split_once('?')?;
    let mut parameters = query.split('&');
    parameters.find_map(|parameter| parameter.strip_prefix("agentName="))
}

#[cfg(test)]
mod tests {
    use crate::model::Application;
    use crate::report::Resource;
    use serde_json::{Value, json};

    /// Returns an Application of the ApplicationSet `shop`.
    fn application() -> Value {
        json!({
            "metadata": {
                "name": "shop-eu1",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "c"},
                    {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shop", "uid": "u"},
                ],
            },
            "spec": {"destination": {"name": "eu1", "namespace": "shop"}},
            "status": {
                "sync": {"status": "Synced", "revision": "abc"},
                "health": {"status": "Healthy"},
                "operationState": {"phase": "Succeeded", "startedAt": "2026-06-01T12:00:00Z", "operation": {}},
                "resources": [
                    {"version": "v1", "kind": "Service", "namespace": "shop", "name": "web", "status": "Synced"},
                    {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
                    {"group": "work.open-cluster-management.io", "version": "v1", "kind": "ManifestWork", "name": "web"},
                ],
            },
        })
    }

    fn parse_application(application: &Value) -> Application {
        Application::from_json(&application.to_string()).expect("an Application")
    }

    fn cluster(application: &Value) -> Option<String> {
        parse_application(application).cluster().map(str::to_owned)
    }

    #[test]
    fn reads_fields_of_an_application_of_a_set() {
        let generated = parse_application(&application()).generated.expect("it has a set");
        let texts = [
            &generated.set,
            &generated.sync,
            &generated.revision,
            &generated.health,
            &generated.phase,
            &generated.started_at,
        ];
        let desired = ["shop", "Synced", "abc", "Healthy", "Succeeded", "2026-06-01T12:00:00Z"];
        assert_eq!(texts.map(|text| &**text), desired);
        let resource = |api_version: &str, kind: &str| Resource {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: "shop".into(),
            name: "web".into(),
        };
        assert_eq!(
            *generated.resources,
            [resource("apps/v1", "Deployment"), resource("v1", "Service")]
        );
        let mut several = application();
        several["status"]["sync"] = json!({"status": "Synced", "revisions": ["abc", "def"]});
        assert_eq!(
            &*parse_application(&several).generated.expect("it has a set").revision,
            "abc,def"
        );
        for key in ["spec", "status"] {
            let mut new = application();
            new.as_object_mut().expect("an object").remove(key);
            assert!(parse_application(&new).generated.is_some());
        }
    }

    #[test]
    fn keeps_nothing_of_applications_without_a_set() {
        for (key, other) in [("kind", "Application"), ("apiVersion", "example.com/v1")] {
            let mut object = application();
            object["metadata"]["ownerReferences"][1][key] = other.into();
            assert_eq!(parse_application(&object).generated, None);
        }
    }

    #[test]
    fn reads_the_cluster_of_an_application_per_delivery() {
        let with = |path: &str, value: Value| {
            let mut application = application();
            let (parent, key) = path.rsplit_once('/').expect("a path");
            application.pointer_mut(parent).expect("it is there")[key] = value;
            application
        };
        assert_eq!(cluster(&application()).as_deref(), Some("eu1"));
        assert_eq!(cluster(&with("/spec/destination/name", "in-cluster".into())), None);
        let proxy = "https://proxy:9090?mode=managed&agentName=eu3";
        let agent = with("/spec/destination", json!({"server": proxy}));
        assert_eq!(cluster(&agent).as_deref(), Some("eu3"));
        let server = |server: &str| cluster(&with("/spec/destination", json!({"server": server})));
        assert_eq!(server("https://kubernetes.default.svc"), None);
        assert_eq!(server("https://eu1.example.com:6443?x=y"), None);

        let mut pulled = application();
        pulled["metadata"]["annotations"] = json!({"apps.open-cluster-management.io/ocm-managed-cluster": "eu2"});
        assert_eq!(cluster(&pulled).as_deref(), Some("eu1"), "it is not pulled");
        pulled["metadata"]["labels"] = json!({"apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "T"});
        assert_eq!(cluster(&pulled).as_deref(), Some("eu2"));
    }
}
