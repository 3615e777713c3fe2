//! The parts of Argo CD on a hub under any names, and the ArgoCD resource of an operator that creates them.

use super::merge::merge;
use super::settings::{each_container, fields};
use super::{CMD_PARAMS, Object};
use manifest::value::{Map, Value};
use ocm::tracking::CONFIG_MAP;
use serde_json::Value as Json;

/// The component label of Argo CD's manifests, of its Helm chart and of operators.
const COMPONENT: &str = "app.kubernetes.io/component";

/// The parts of an Argo CD that our files name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgoCd {
    /// The Deployment of the repo-server.
    pub repo_server: String,
    /// The Deployment of the UI and API.
    pub server: String,
    /// Its container: Argo CD's manifests and its chart name it differently.
    pub server_container: String,
    /// The ServiceAccount of the application-controller.
    pub application_controller: String,
    /// The ServiceAccount of the ApplicationSet controller.
    pub application_set_controller: String,
    /// The ArgoCD resource from which an operator creates all this. Changes of the Deployments would be reverted.
    pub resource: Option<String>,
}

impl Default for ArgoCd {
    /// Returns the names of Argo CD's own manifests.
    fn default() -> Self {
        let name = |component: &str| format!("argocd-{component}");
        Self {
            repo_server: name("repo-server"),
            server: name("server"),
            server_container: name("server"),
            application_controller: name("application-controller"),
            application_set_controller: name("applicationset-controller"),
            resource: None,
        }
    }
}

/// Finds a component of Argo CD among workloads: by the name in its own manifests, by its labels, or by the names of operators
/// and charts.
#[must_use]
pub fn component_of<'v>(all: &'v [Json], component: &str) -> Option<&'v Json> {
    let find = |is_it: &dyn Fn(&Json) -> bool| all.iter().find(|it| is_it(it));
    named(all, &format!("argocd-{component}"))
        .or_else(|| find(&|it| it["metadata"]["labels"][COMPONENT] == component))
        .or_else(|| find(&|it| name_of(it).is_some_and(|name| name.ends_with(&format!("-{component}")))))
}

/// Returns the workload of that name.
#[must_use]
pub fn named<'v>(all: &'v [Json], name: &str) -> Option<&'v Json> {
    all.iter().find(|it| name_of(it) == Some(name))
}

/// Returns the command of a container and its arguments.
pub fn arguments(container: &Json) -> impl Iterator<Item = &str> {
    let lists = ["command", "args"]
        .into_iter()
        .filter_map(|list| container[list].as_array());
    lists.flatten().filter_map(Json::as_str)
}

fn name_of(workload: &Json) -> Option<&str> {
    workload["metadata"]["name"].as_str()
}

impl ArgoCd {
    /// Finds the names among the Deployments and StatefulSets of Argo CD's namespace. Parts that do not exist keep the names of
    /// Argo CD's own manifests.
    #[must_use]
    pub fn among(workloads: &[Json]) -> Self {
        let shipped = Self::default();
        let found = |component| component_of(workloads, component);
        let name = |component, otherwise: String| {
            let name = found(component).and_then(name_of);
            name.map_or(otherwise, str::to_owned)
        };
        let account = |component, otherwise: String| {
            let pod = found(component).map(|it| &it["spec"]["template"]["spec"]);
            let account = pod.and_then(|pod| pod["serviceAccountName"].as_str());
            account.map_or(otherwise, str::to_owned)
        };
        let containers = found("server").and_then(|it| it["spec"]["template"]["spec"]["containers"].as_array());
        let mut containers = containers.into_iter().flatten().filter_map(|it| it["name"].as_str());
        let first = containers.next().unwrap_or(&shipped.server_container);
        // A sidecar may come first.
        let own = containers.find(|name| *name == shipped.server_container);
        let server_container = own.unwrap_or(first).to_owned();
        let owners = found("repo-server").and_then(|it| it["metadata"]["ownerReferences"].as_array());
        let owner = owners.into_iter().flatten().find(|it| it["kind"] == "ArgoCD");
        Self {
            repo_server: name("repo-server", shipped.repo_server),
            server: name("server", shipped.server),
            server_container,
            application_controller: account("application-controller", shipped.application_controller),
            application_set_controller: account("applicationset-controller", shipped.application_set_controller),
            resource: owner.and_then(|it| it["name"].as_str()).map(str::to_owned),
        }
    }

    /// Replaces the names of Argo CD's own manifests in an object of our files: in an addition and its containers, and in the
    /// subjects of a binding.
    pub(super) fn rename(&self, object: &mut Object) {
        let shipped = Self::default();
        let names = [
            (&shipped.repo_server, &self.repo_server),
            (&shipped.server, &self.server),
            (&shipped.application_controller, &self.application_controller),
            (&shipped.application_set_controller, &self.application_set_controller),
        ];
        let rename = |named: &mut Map<'static>| {
            let Some(name) = named.get_mut("name") else { return };
            if let Some((_, to)) = names.iter().find(|(from, _)| name.as_str() == Some(from.as_str())) {
                *name = Value::text(to.as_str());
            }
        };
        fields(object.value_mut(), &["metadata"], rename);
        each_container(object.value_mut(), |container| {
            if container.get("name").and_then(Value::as_str) == Some(&shipped.server_container) {
                container.insert("name", Value::text(self.server_container.as_str()));
            }
        });
        fields(object.value_mut(), &[], |object| {
            if let Some(Value::List(subjects)) = object.get_mut("subjects") {
                for subject in subjects {
                    fields(subject, &[], rename);
                }
            }
        });
    }

    /// Replaces the additions to Argo CD's objects by an addition to the ArgoCD resource with the same effect, if there is one.
    pub(super) fn with_resource(&self, objects: Vec<Object>, namespace: &str) -> Vec<Object> {
        let Some(resource) = &self.resource else {
            return objects;
        };
        let (additions, mut objects): (Vec<_>, Vec<_>) = objects.into_iter().partition(Object::is_addition);
        if additions.is_empty() {
            return objects;
        }
        let mut spec = Value::Map(Map::of([]));
        for addition in additions {
            let part = if addition.name() == CONFIG_MAP {
                data("extraConfig", addition)
            } else if addition.name() == CMD_PARAMS {
                data("cmdParams", addition)
            } else if addition.name() == self.repo_server {
                pod("repo", addition)
            } else {
                pod("server", addition)
            };
            merge(&mut spec, part);
        }
        let metadata = Value::map([("name", Value::text(resource)), ("namespace", Value::text(namespace))]);
        objects.push(Object::addition(Value::map([
            ("apiVersion", Value::text("argoproj.io/v1beta1")),
            ("kind", Value::text("ArgoCD")),
            ("metadata", metadata),
            ("spec", spec),
        ])));
        objects
    }
}

/// Returns the data of a ConfigMap as a field of the ArgoCD resource.
fn data(field: &'static str, addition: Object) -> Value<'static> {
    let data = take(&mut addition.into_value(), &["data"]);
    Value::map([(field, data.unwrap_or(Value::Null))])
}

/// Returns the additions to the Pods of a Deployment as a field of the ArgoCD resource. A container with the name of the
/// Deployment's own has only volume mounts.
fn pod(field: &'static str, addition: Object) -> Value<'static> {
    let mut value = addition.into_value();
    let template: &[&str] = &["spec", "template"];
    let at = |path: &[&'static str]| [template, path].concat();
    let mut spec = Map::of([]);
    let annotations = take(&mut value, &at(&["metadata", "annotations"]));
    let containers = take(&mut value, &at(&["spec", "containers"]));
    let mut sidecars = Vec::new();
    for mut container in list(containers) {
        // Ours run a command or an image of their own.
        if container.as_map().is_some_and(|it| it.get("image").is_some()) {
            sidecars.push(container);
        } else if let Some(mounts) = take(&mut container, &["volumeMounts"]) {
            spec.insert("volumeMounts", mounts);
        }
    }
    if !sidecars.is_empty() {
        spec.insert("sidecarContainers", Value::List(sidecars));
    }
    let init = take(&mut value, &at(&["spec", "initContainers"]));
    let volumes = take(&mut value, &at(&["spec", "volumes"]));
    for (key, found) in [
        ("annotations", annotations),
        ("initContainers", init),
        ("volumes", volumes),
    ] {
        if let Some(found) = found {
            spec.insert(key, found);
        }
    }
    Value::map([(field, Value::Map(spec))])
}

fn list(value: Option<Value<'static>>) -> Vec<Value<'static>> {
    match value {
        Some(Value::List(items)) => items,
        _ => Vec::new(),
    }
}

/// Takes the value at a path, if it exists.
fn take(value: &mut Value<'static>, path: &[&str]) -> Option<Value<'static>> {
    let (last, above) = path.split_last()?;
    let mut taken = None;
    fields(value, above, |parent| taken = parent.remove(last));
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{InstallOptions, objects};
    use serde_json::json;

    fn workload(name: &str, component: &str, account: &str) -> Json {
        json!({
            "metadata": {"name": name, "labels": {COMPONENT: component, "app.kubernetes.io/part-of": "argocd"}},
            "spec": {"template": {"spec": {"serviceAccountName": account, "containers": [{"name": component}]}}},
        })
    }

    /// Returns the workloads of the argo-cd chart as release `cd`.
    fn chart() -> Vec<Json> {
        [
            ("cd-argocd-repo-server", "repo-server", "cd-argocd-repo-server"),
            ("cd-argocd-server", "server", "argocd-server"),
            (
                "cd-argocd-application-controller",
                "application-controller",
                "argocd-application-controller",
            ),
            (
                "cd-argocd-applicationset-controller",
                "applicationset-controller",
                "cd-sets",
            ),
        ]
        .map(|(name, component, account)| workload(name, component, account))
        .into()
    }

    fn installed(argo_cd: ArgoCd) -> Vec<Object> {
        objects(&InstallOptions {
            argo_cd,
            ..InstallOptions::everything("argocd")
        })
    }

    #[test]
    fn parts_are_found_under_the_names_of_charts_and_operators() {
        assert_eq!(ArgoCd::among(&[]), ArgoCd::default());
        let found = ArgoCd::among(&chart());
        assert_eq!(found.repo_server, "cd-argocd-repo-server");
        assert_eq!(found.server, "cd-argocd-server");
        assert_eq!(found.server_container, "server");
        let mut meshed = chart();
        meshed[1]["spec"]["template"]["spec"]["containers"] = json!([{"name": "proxy"}, {"name": "argocd-server"}]);
        assert_eq!(ArgoCd::among(&meshed).server_container, "argocd-server");
        assert_eq!(found.application_set_controller, "cd-sets");
        assert_eq!(found.resource, None);
        let mut own = chart();
        own.push(workload("argocd-repo-server", "other", "x"));
        assert_eq!(
            ArgoCd::among(&own).repo_server,
            "argocd-repo-server",
            "Argo CD's own name wins"
        );
        let unlabeled = json!({"metadata": {"name": "openshift-gitops-repo-server"}});
        assert_eq!(ArgoCd::among(&[unlabeled]).repo_server, "openshift-gitops-repo-server");
    }

    #[test]
    fn objects_have_the_names_of_the_hub() {
        let all = installed(ArgoCd::among(&chart()));
        let additions: Vec<String> = all
            .iter()
            .filter(|it| it.is_addition())
            .map(Object::to_string)
            .collect();
        assert_eq!(
            additions,
            [
                "configmap/argocd-cm",
                "configmap/argocd-cmd-params-cm",
                "deployment.apps/cd-argocd-repo-server",
                "deployment.apps/cd-argocd-server",
            ]
        );
        let server = all.iter().find(|it| it.name() == "cd-argocd-server").expect("the UI");
        let server: Json = serde_json::from_str(&server.json()).expect("JSON");
        let container = &server["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["name"], "server", "the chart's name");
        assert!(container["volumeMounts"].is_array());
        let binding = all
            .iter()
            .find(|it| it.kind() == "RoleBinding" && it.name() == "argocd-ocm-cmp-placement");
        assert!(binding.expect("the binding").json().contains(r#""name":"cd-sets""#));
    }

    #[test]
    fn additions_go_to_the_resource_of_an_operator() {
        let mut workloads = chart();
        workloads[0]["metadata"]["ownerReferences"] = json!([{"kind": "ArgoCD", "name": "cd"}]);
        let all = installed(ArgoCd::among(&workloads));
        let additions: Vec<&Object> = all.iter().filter(|it| it.is_addition()).collect();
        let [resource] = additions[..] else {
            panic!("{additions:?}");
        };
        assert_eq!(resource.to_string(), "argocd.argoproj.io/cd");
        assert_eq!(resource.path(), "/apis/argoproj.io/v1beta1/namespaces/argocd/argocds");
        let spec: Json = serde_json::from_str(&resource.json()).expect("JSON");
        let spec = &spec["spec"];
        let names = |list: &Json| {
            let names = list
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|it| it["name"].as_str());
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(names(&spec["repo"]["sidecarContainers"]), ["argocd-ocm-cmp"]);
        assert_eq!(names(&spec["repo"]["initContainers"]), ["argocd-ocm-cmp-tools"]);
        assert!(names(&spec["repo"]["volumes"]).contains(&"argocd-ocm-cmp-policy".to_owned()));
        assert_eq!(names(&spec["server"]["volumeMounts"]), ["argocd-ocm-cmp-ui"]);
        assert_eq!(names(&spec["server"]["volumes"]), ["argocd-ocm-cmp-ui"]);
        assert!(spec["server"]["annotations"]["argocd-ocm-cmp/ui-checksum"].is_string());
        let health = "resource.customizations.health.work.open-cluster-management.io_ManifestWork";
        assert!(spec["extraConfig"][health].is_string());
        assert_eq!(spec["cmdParams"]["redis.server"], "argocd-agent-redis-proxy:6379");
    }
}
