//! The parts of Argo CD on a hub under any names, and the ArgoCD resource of an operator that creates them.

use super::merge::merge;
use super::object::items_mut;
use super::{CMD_PARAMS, Feature, ShippedObject};
use crate::workload::{arguments, containers, items, name};
use ocm::tracking::CONFIG_MAP;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

/// The container that deploy_cmp.yaml adds to the repo-server.
pub(super) const SIDECAR: &str = "argocd-ocm-cmp";

/// The labels of Argo CD's manifests, of its Helm chart and of operators. Other projects have components of the same names.
const COMPONENT: &str = "app.kubernetes.io/component";
const PART_OF: &str = "app.kubernetes.io/part-of";

/// The label with the name of an object. NetworkPolicies select Pods by it.
pub(super) const NAME: &str = "app.kubernetes.io/name";

/// The value of the label [`NAME`] of our objects on the hub beside the controller, and the start of the names of our containers and
/// volumes.
pub(super) const OURS: &str = "argocd-ocm-cmp";

/// The setting of deploy/live_argocd.yaml.
const PROXY_EXTENSION: &str = "server.enable.proxy.extension";

/// The component that renders manifests.
pub const REPO_SERVER: &str = "repo-server";
/// The component with the UI and the API.
pub const SERVER: &str = "server";
/// The component that applies manifests.
pub const APPLICATION_CONTROLLER: &str = "application-controller";
/// The component that creates Applications.
const APPLICATION_SET_CONTROLLER: &str = "applicationset-controller";

/// The parts of an Argo CD that our files name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgoCd {
    /// The Deployment of the repo-server.
    pub repo_server: String,
    /// The image of its container.
    pub image: Option<String>,
    /// The Deployment of the UI and API.
    pub server: String,
    /// Its container: Argo CD's manifests and its chart name it differently.
    pub server_container: String,
    /// Its ServiceAccount.
    pub server_account: String,
    /// The ServiceAccount of the application-controller.
    pub application_controller: String,
    /// The ServiceAccount of the ApplicationSet controller.
    pub application_set_controller: String,
    /// The ArgoCD resource from which an operator creates all this. Changes of the Deployments would be reverted.
    pub resource: Option<String>,
    /// The names in the labels of its Pods, each after the name in Argo CD's own manifests, if they differ.
    pub pod_names: Vec<(String, String)>,
    /// The components without a known workload, which have the names of Argo CD's own manifests here.
    pub unknown: Vec<(&'static str, Unknown)>,
}

/// The reason why the workload of a component is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// No workload is this component.
    Missing,
    /// Several workloads could be this component.
    Ambiguous(Vec<String>),
    /// The component has a workload, and none of its containers is known to run it.
    Container {
        /// The name of the workload.
        workload: String,
        /// The names of its containers.
        containers: Vec<String>,
    },
}

impl Default for ArgoCd {
    /// Returns the names of Argo CD's own manifests.
    fn default() -> Self {
        Self {
            repo_server: program(REPO_SERVER),
            image: None,
            server: program(SERVER),
            server_container: program(SERVER),
            server_account: program(SERVER),
            application_controller: program(APPLICATION_CONTROLLER),
            application_set_controller: program(APPLICATION_SET_CONTROLLER),
            resource: None,
            pod_names: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

/// Returns the name of a component's program, which is also the name of its workload in Argo CD's own manifests.
fn program(component: &str) -> String {
    format!("argocd-{component}")
}

/// Finds a component of Argo CD among workloads: by the name in its own manifests, by its labels, or by the program that it runs.
/// The end of a name shows nothing: `argocd-repo-server` is no `server`.
///
/// # Errors
/// Returns the reason if not exactly one workload is the component.
fn find_component<'v>(all: &'v [Json], component: &str) -> Result<&'v Json, Unknown> {
    let program = program(component);
    let is_labelled = |workload: &Json| {
        let labels = &workload["metadata"]["labels"];
        labels[COMPONENT] == component && labels[PART_OF] == "argocd"
    };
    let runs_it = |workload: &Json| containers(workload).iter().any(|container| runs(container, &program));
    // A controller may be either.
    let can_be_it = |workload: &&Json| workload["kind"] != "StatefulSet" || ![REPO_SERVER, SERVER].contains(&component);
    if let Some(workload) = all.iter().filter(can_be_it).find(|value| name(value) == program) {
        return Ok(workload);
    }
    let signs: [&dyn Fn(&Json) -> bool; 2] = [&is_labelled, &runs_it];
    for is_it in signs {
        let workloads: Vec<&Json> = all.iter().filter(can_be_it).filter(|value| is_it(value)).collect();
        match workloads[..] {
            [] => {}
            [one] => return Ok(one),
            _ => {
                let names = workloads.into_iter().map(|value| name(value).to_owned());
                return Err(Unknown::Ambiguous(names.collect()));
            }
        }
    }
    Err(Unknown::Missing)
}

/// Returns the workload of a component, if exactly one is known.
pub fn component_of<'v>(all: &'v [Json], component: &str) -> Option<&'v Json> {
    find_component(all, component).ok()
}

/// Returns the container of a workload that runs a component: by its command, by its name, or because the workload has no other. A
/// service mesh or a user may have added others.
fn container_of<'v>(workload: &'v Json, component: &str) -> Option<&'v Json> {
    let program = program(component);
    let only = |is_it: &dyn Fn(&Json) -> bool| {
        let mut matching = containers(workload).iter().filter(|container| is_it(container));
        matching.next().filter(|_| matching.next().is_none())
    };
    only(&|value| runs(value, &program))
        .or_else(|| only(&|value| value["name"] == program.as_str() || value["name"] == component))
        .or_else(|| only(&|value| value["name"] != SIDECAR))
}

/// Returns the containers of a workload, and its init containers.
pub(super) fn containers_mut(workload: &mut Json) -> impl Iterator<Item = &mut Json> {
    let pod = workload
        .pointer_mut("/spec/template/spec")
        .and_then(Json::as_object_mut);
    let lists = pod.into_iter().flatten();
    let lists = lists.filter(|(key, _)| ["containers", "initContainers"].contains(&key.as_str()));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten()
}

/// Returns true if the command of a container names the program, also in the script of a shell. The value of a flag is no program.
fn runs(container: &Json, program: &str) -> bool {
    let words: Vec<&str> = arguments(container).flat_map(str::split_whitespace).collect();
    let is_program = |(at, word): (usize, &&str)| {
        let is_value = at.checked_sub(1).is_some_and(|before| words[before].starts_with("--"));
        !is_value && word.rsplit('/').next() == Some(program)
    };
    words.iter().enumerate().any(is_program)
}

impl ArgoCd {
    /// Finds the names among the Deployments and StatefulSets of Argo CD's namespace.
    pub fn among(workloads: &[Json]) -> Self {
        let mut argo_cd = Self::default();
        let (mut unknown, mut pod_names) = (Vec::new(), Vec::new());
        let mut find = |component| {
            let workload = find_component(workloads, component);
            if let Ok(workload) = &workload {
                let labels = &workload["spec"]["template"]["metadata"]["labels"];
                let name = labels[NAME].as_str().map(str::to_owned);
                pod_names.extend(name.map(|name| (program(component), name)));
            }
            workload.map_err(|why| unknown.push((component, why))).ok()
        };
        // Pods without a ServiceAccount have the one of their namespace.
        let account = |workload: &Json| {
            let account = workload["spec"]["template"]["spec"]["serviceAccountName"].as_str();
            account.unwrap_or("default").to_owned()
        };
        let repo_server = find(REPO_SERVER);
        let server = find(SERVER);
        if let Some(workload) = find(APPLICATION_CONTROLLER) {
            argo_cd.application_controller = account(workload);
        }
        if let Some(workload) = find(APPLICATION_SET_CONTROLLER) {
            argo_cd.application_set_controller = account(workload);
        }
        if let Some(workload) = repo_server {
            name(workload).clone_into(&mut argo_cd.repo_server);
            let container = container_of(workload, REPO_SERVER);
            argo_cd.image = container
                .and_then(|container| container["image"].as_str())
                .map(str::to_owned);
            let mut owners = items(&workload["metadata"]["ownerReferences"]).iter();
            let owner = owners.find(|owner| owner["kind"] == "ArgoCD");
            argo_cd.resource = owner.map(|owner| owner["name"].as_str().unwrap_or_default().to_owned());
        }
        if let Some(workload) = server {
            name(workload).clone_into(&mut argo_cd.server);
            argo_cd.server_account = account(workload);
            match container_of(workload, SERVER).and_then(|container| container["name"].as_str()) {
                Some(name) => name.clone_into(&mut argo_cd.server_container),
                None => unknown.push((
                    SERVER,
                    Unknown::Container {
                        workload: name(workload).to_owned(),
                        containers: containers(workload)
                            .iter()
                            .filter_map(|container| container["name"].as_str().map(str::to_owned))
                            .collect(),
                    },
                )),
            }
        }
        pod_names.retain(|(program, name)| program != name);
        argo_cd.pod_names = pod_names;
        argo_cd.unknown = unknown;
        argo_cd
    }

    /// Gives workloads the containers and volumes of the ArgoCD resource, from which the operator has yet to create them.
    pub fn reconcile(&self, workloads: &mut [Json], resource: &Json) {
        let is_ours = |value: &Json| value["name"].as_str().is_some_and(|name| name.starts_with(OURS));
        for (deployment, part) in [(&self.repo_server, "repo"), (&self.server, "server")] {
            let Some(workload) = workloads.iter_mut().find(|workload| name(workload) == deployment) else {
                continue;
            };
            workload["metadata"]["managedFields"] = resource["metadata"]["managedFields"].clone();
            let pod = &mut workload["spec"]["template"]["spec"];
            for (list, field) in [("containers", "sidecarContainers"), ("volumes", "volumes")] {
                let theirs = items(&pod[list]).iter().filter(|item| !is_ours(item));
                let desired = items(&resource["spec"][part][field]).iter();
                let ours = desired.filter(|item| is_ours(item));
                pod[list] = theirs.chain(ours).cloned().collect();
            }
        }
    }

    /// Returns the reason why the workload of a component is not known, if it is not.
    pub fn why_unknown(&self, component: &str) -> Option<&Unknown> {
        let mut unknown = self.unknown.iter();
        unknown.find(|(name, _)| *name == component).map(|(_, why)| why)
    }

    /// Returns an error for each feature whose target on the hub is not known.
    pub fn target_problems(&self, features: &BTreeSet<Feature>, namespace: &str) -> Vec<String> {
        const COMPONENTS: usize = 4;
        let is_missing = |(_, why): &(_, Unknown)| *why == Unknown::Missing;
        // The other messages about this namespace name what does not exist there.
        if self.unknown.len() == COMPONENTS && self.unknown.iter().all(is_missing) {
            let needs_account = |feature: &Feature| matches!(*feature, Feature::APPLICATION_SET | Feature::ARGOCD_RBAC);
            let problem = format!(
                "Namespace {namespace} has no Argo CD: install Argo CD first, or pass its namespace with --namespace"
            );
            return if features.iter().any(needs_account) {
                vec![problem]
            } else {
                Vec::new()
            };
        }
        let mut problems = Vec::new();
        for feature in features {
            let Some(component) = feature.component() else { continue };
            let Some(why) = self.why_unknown(component) else {
                continue;
            };
            let program = program(component);
            let problem = match why {
                // It works without the pages of Argo CD.
                Unknown::Missing if *feature == Feature::ARGOCD_AGENT => continue,
                // The resource has one field for the mounts of its container.
                Unknown::Container { .. } if self.resource.is_some() => continue,
                Unknown::Missing => {
                    format!(
                        "Namespace {namespace}: this Argo CD has no {program}: omit {}",
                        feature.name()
                    )
                }
                Unknown::Ambiguous(names) => format!(
                    "Namespace {namespace}: {} could each be {program}: keep the labels {COMPONENT}={component} and {PART_OF}=argocd on \
                     only one of them",
                    names.join(" and ")
                ),
                Unknown::Container { workload, containers } => format!(
                    "Deployment {namespace}/{workload}: none of its containers {} is known to run {program}: name that container {program}",
                    containers.join(", ")
                ),
            };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }

    /// Replaces the names of Argo CD's own manifests in an object of our files: in an addition and its containers, in the subjects of a
    /// binding, and in the selectors of a NetworkPolicy.
    pub(super) fn rename(&self, object: &mut ShippedObject) {
        let shipped = Self::default();
        let workloads = [
            (&shipped.repo_server, &self.repo_server),
            (&shipped.server, &self.server),
        ];
        let accounts = [
            (&shipped.server_account, &self.server_account),
            (&shipped.application_controller, &self.application_controller),
            (&shipped.application_set_controller, &self.application_set_controller),
        ];
        let rename = |named: &mut Json, names: &[(&String, &String)]| {
            if let Some((_, to)) = names.iter().find(|(from, _)| named["name"] == **from) {
                named["name"] = to.as_str().into();
            }
        };
        rename(&mut object.value["metadata"], &workloads);
        for subject in items_mut(&mut object.value, "/subjects") {
            rename(subject, &accounts);
        }
        if object.kind() == "NetworkPolicy" {
            self.rename_pods(&mut object.value["spec"]);
        }
        for container in containers_mut(&mut object.value) {
            if container["name"] == shipped.server_container {
                container["name"] = self.server_container.as_str().into();
            }
        }
    }

    fn rename_pods(&self, selectors: &mut Json) {
        match selectors {
            Json::Array(items) => items.iter_mut().for_each(|item| self.rename_pods(item)),
            Json::Object(fields) => fields.values_mut().for_each(|field| self.rename_pods(field)),
            Json::String(text) => {
                if let Some((_, name)) = self.pod_names.iter().find(|(program, _)| program == text) {
                    text.clone_from(name);
                }
            }
            _ => {}
        }
    }

    /// Replaces the additions to Argo CD's objects by an addition to the ArgoCD resource with the same effect, if there is one.
    pub(super) fn with_resource(&self, objects: Vec<ShippedObject>, namespace: &str) -> Vec<ShippedObject> {
        let Some(resource) = &self.resource else {
            return objects;
        };
        let (additions, mut objects): (Vec<_>, Vec<_>) = objects.into_iter().partition(ShippedObject::is_addition);
        if additions.is_empty() {
            return objects;
        }
        let mut spec = json!({});
        let is_missing = |object: &ShippedObject| {
            object.name() == self.server && self.why_unknown(SERVER) == Some(&Unknown::Missing)
        };
        for addition in additions.iter().filter(|object| !is_missing(object)) {
            let data = || addition.value["data"].clone();
            let part = match addition.name() {
                CONFIG_MAP => json!({"extraConfig": data()}),
                // The operator's argocd-server does not read this setting.
                CMD_PARAMS if addition.value["data"][PROXY_EXTENSION] == "true" => {
                    json!({"cmdParams": data(), "server": {"extraCommandArgs": ["--enable-proxy-extension"]}})
                }
                CMD_PARAMS => json!({"cmdParams": data()}),
                name if name == self.repo_server => json!({"repo": pod_fields(&addition.value)}),
                _ => json!({"server": pod_fields(&addition.value)}),
            };
            merge(&mut spec, part);
        }
        objects.push(ShippedObject::addition(json!({
            "apiVersion": "argoproj.io/v1beta1",
            "kind": "ArgoCD",
            "metadata": {"name": resource, "namespace": namespace},
            "spec": spec,
        })));
        objects
    }
}

/// Returns the additions to the Pods of a Deployment as fields of the ArgoCD resource. A container with the name of the
/// Deployment's own has only volume mounts.
fn pod_fields(addition: &Json) -> Json {
    // Ours run a command or an image of their own.
    let (sidecars, others): (Vec<&Json>, Vec<&Json>) = containers(addition)
        .iter()
        .partition(|container| !container["image"].is_null());
    let template = &addition["spec"]["template"];
    let mut fields = json!({
        "annotations": template["metadata"]["annotations"],
        "initContainers": template["spec"]["initContainers"],
        "volumes": template["spec"]["volumes"],
    });
    if !sidecars.is_empty() {
        fields["sidecarContainers"] = json!(sidecars);
    }
    for container in others {
        fields["volumeMounts"] = container["volumeMounts"].clone();
    }
    fields
        .as_object_mut()
        .expect("an object")
        .retain(|_, value| !value.is_null());
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::tests::find;
    use crate::install::{InstallOptions, Installed, objects};

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

    fn installed(argo_cd: ArgoCd) -> Vec<ShippedObject> {
        objects(&InstallOptions {
            argo_cd,
            ..InstallOptions::everything("argocd")
        })
    }

    #[test]
    fn parts_are_found_under_the_names_of_charts_and_operators() {
        let nothing = ArgoCd::among(&[]);
        assert_eq!(nothing.unknown.len(), 4);
        assert_eq!(
            ArgoCd {
                unknown: Vec::new(),
                ..nothing
            },
            ArgoCd::default()
        );
        let argo_cd = ArgoCd::among(&chart());
        assert_eq!(argo_cd.repo_server, "cd-argocd-repo-server");
        assert_eq!(argo_cd.server, "cd-argocd-server");
        assert_eq!(argo_cd.server_container, "server");
        assert_eq!(argo_cd.application_set_controller, "cd-sets");
        assert_eq!(argo_cd.resource, None);
        let mut workloads = chart();
        workloads.push(workload("argocd-repo-server", "other", "x"));
        assert_eq!(
            ArgoCd::among(&workloads).repo_server,
            "argocd-repo-server",
            "Argo CD's own name wins"
        );
        let unlabeled = program_of(
            "openshift-gitops-repo-server",
            &json!(["uid_entrypoint.sh", "argocd-repo-server"]),
        );
        assert_eq!(ArgoCd::among(&[unlabeled]).repo_server, "openshift-gitops-repo-server");
    }

    /// Returns a workload without labels whose only container has this command.
    fn program_of(name: &str, command: &Json) -> Json {
        let container = json!({"name": "main", "image": "example.com/argocd:v1", "command": command});
        json!({"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [container]}}}})
    }

    fn problems(workloads: &[Json], features: &[Feature]) -> Vec<String> {
        ArgoCd::among(workloads).target_problems(&features.iter().copied().collect(), "cd")
    }

    #[test]
    fn refuses_a_feature_whose_component_is_missing() {
        let core = [
            workload("argocd-repo-server", "repo-server", "repo"),
            workload("argocd-application-controller", "application-controller", "app"),
        ];
        let argo_cd = ArgoCd::among(&core);
        assert_eq!(argo_cd.repo_server, "argocd-repo-server");
        assert_eq!(
            argo_cd.why_unknown(SERVER),
            Some(&Unknown::Missing),
            "the repo-server is no server"
        );
        assert_eq!(
            problems(&core, &[Feature::PLUGIN, Feature::ARGOCD_RBAC, Feature::ARGOCD_AGENT]),
            [""; 0]
        );
        assert_eq!(
            problems(&core, &[Feature::APPLICATION_SET, Feature::UI]),
            [
                "Namespace cd: this Argo CD has no argocd-applicationset-controller: omit applicationset",
                "Namespace cd: this Argo CD has no argocd-server: omit ui"
            ]
        );
        assert_eq!(
            problems(&[], &[Feature::PLUGIN, Feature::UI]),
            [""; 0],
            "their objects are reported"
        );
        assert_eq!(
            problems(&[], &[Feature::ARGOCD_RBAC]),
            ["Namespace cd has no Argo CD: install Argo CD first, or pass its namespace with --namespace"]
        );
    }

    #[test]
    fn components_of_other_projects_are_not_argo_cds() {
        let mut workflows = workload("argo-workflows-server", "server", "x");
        workflows["metadata"]["labels"][PART_OF] = json!("argo-workflows");
        let notifications = program_of(
            "notifications",
            &json!(["x", "--argocd-repo-server", "argocd-repo-server"]),
        );
        let mut store = workload("argocd-server", "server", "x");
        store["kind"] = json!("StatefulSet");
        let argo_cd = ArgoCd::among(&[workflows, notifications, store]);
        assert_eq!(argo_cd.unknown.len(), 4, "{:?}", argo_cd.unknown);
    }

    #[test]
    fn refuses_to_choose_among_several_workloads() {
        let two = [
            program_of(
                "blue-server",
                &json!(["sh", "-c", "/usr/local/bin/argocd-server --insecure"]),
            ),
            program_of("green-server", &json!(["argocd-server"])),
            workload("argocd-repo-server", "repo-server", "repo"),
        ];
        let problem = "Namespace cd: blue-server and green-server could each be argocd-server: keep the labels \
                       app.kubernetes.io/component=server and app.kubernetes.io/part-of=argocd on only one of them";
        for feature in [Feature::UI, Feature::ARGOCD_AGENT] {
            assert_eq!(problems(&two, &[feature]), [problem]);
        }
        assert_eq!(problems(&two, &[Feature::PLUGIN]), [""; 0]);
        let mut labelled = two;
        labelled[1]["metadata"]["labels"] = json!({COMPONENT: "server", PART_OF: "argocd"});
        assert_eq!(ArgoCd::among(&labelled).server, "green-server", "the remedy");
        assert_eq!(problems(&labelled, &[Feature::UI]), [""; 0]);
    }

    #[test]
    fn finds_the_container_that_runs_a_component() {
        let server = |containers: Json| {
            let mut chart = chart();
            chart[1]["spec"]["template"]["spec"]["containers"] = containers;
            chart
        };
        let proxy = || json!({"name": "istio-proxy", "args": ["proxy", "sidecar"]});
        for (containers, expected) in [
            (json!([proxy(), {"name": "argocd-server"}]), "argocd-server"),
            (json!([proxy(), {"name": "server"}]), "server"),
            (
                json!([proxy(), {"name": "api", "args": ["/usr/local/bin/argocd-server"]}]),
                "api",
            ),
            (
                json!([{"name": "server"}, {"name": "api", "args": ["/usr/local/bin/argocd-server"]}]),
                "api",
            ),
            (json!([{"name": "only"}]), "only"),
        ] {
            assert_eq!(ArgoCd::among(&server(containers)).server_container, expected);
        }
        let unknown = server(json!([proxy(), {"name": "api"}]));
        assert_eq!(
            problems(&unknown, &[Feature::UI]),
            [
                "Deployment cd/cd-argocd-server: none of its containers istio-proxy, api is known to run argocd-server: name that \
                 container argocd-server"
            ]
        );
        let mut renders = chart();
        renders[0]["spec"]["template"]["spec"]["containers"] =
            json!([proxy(), {"name": SIDECAR}, {"name": "repo-server", "image": "example.com/argocd:v1"}]);
        assert_eq!(ArgoCd::among(&renders).image.as_deref(), Some("example.com/argocd:v1"));
    }

    #[test]
    fn one_workload_of_two_components_gets_one_object() {
        let both = ArgoCd {
            server: "all-in-one".to_owned(),
            repo_server: "all-in-one".to_owned(),
            ..ArgoCd::default()
        };
        let all = installed(both);
        let objects: Vec<_> = all.iter().filter(|object| object.name() == "all-in-one").collect();
        let [one] = objects[..] else { panic!("{objects:?}") };
        assert!(one.json().contains("argocd-ocm-cmp-tools") && one.json().contains("argocd-ocm-cmp-ui"));
    }

    #[test]
    fn objects_have_the_names_of_the_hub() {
        let all = installed(ArgoCd::among(&chart()));
        let additions: Vec<String> = all
            .iter()
            .filter(|object| object.is_addition())
            .map(ShippedObject::to_string)
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
        let server = find(&all, "Deployment", "cd-argocd-server");
        let container = &server.value["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["name"], "server", "the chart's name");
        assert!(container["volumeMounts"].is_array());
        let binding = find(&all, "RoleBinding", "argocd-ocm-cmp-placement");
        assert_eq!(binding.value["subjects"][0]["name"], "cd-sets");
        let binding = find(&all, "ClusterRoleBinding", "argocd-ocm-cmp-actions");
        assert_eq!(
            binding.value["subjects"][0]["name"], "argocd-server",
            "the account, not the Deployment"
        );
        let mut operated = chart();
        operated[1]["spec"]["template"]["spec"]["serviceAccountName"] = json!("cd-server-account");
        assert_eq!(ArgoCd::among(&operated).server_account, "cd-server-account");
    }

    /// Between two installations, the operator may not have reconciled yet.
    #[test]
    fn features_in_the_resource_of_an_operator_are_installed() {
        let mut workloads = chart();
        workloads[0]["metadata"]["ownerReferences"] = json!([{"kind": "ArgoCD", "name": "cd"}]);
        let argo_cd = ArgoCd::among(&workloads);
        let all = installed(argo_cd.clone());
        let resource = all.iter().find(|object| object.is_argo_cd()).expect("the resource");
        let features = |workloads: &[Json]| Installed::among(workloads, None, &argo_cd).features;
        assert_eq!(features(&workloads), BTreeSet::new());
        for _ in 0..2 {
            argo_cd.reconcile(&mut workloads, &resource.value);
            assert_eq!(
                features(&workloads),
                BTreeSet::from([Feature::PLUGIN, Feature::UI, Feature::LIVE])
            );
        }
        assert_eq!(
            workloads[0]["spec"]["template"]["spec"]["containers"]
                .as_array()
                .map(Vec::len),
            Some(2)
        );
        argo_cd.reconcile(&mut workloads, &json!({}));
        assert_eq!(
            features(&workloads),
            BTreeSet::new(),
            "they were removed from the resource"
        );
    }

    #[test]
    fn additions_go_to_the_resource_of_an_operator() {
        let mut workloads = chart();
        workloads[0]["metadata"]["ownerReferences"] = json!([{"kind": "ArgoCD", "name": "cd"}]);
        let all = installed(ArgoCd::among(&workloads));
        let additions: Vec<&ShippedObject> = all.iter().filter(|object| object.is_addition()).collect();
        let [resource] = additions[..] else {
            panic!("{additions:?}");
        };
        assert_eq!(resource.to_string(), "argocd.argoproj.io/cd");
        assert_eq!(resource.path(), "/apis/argoproj.io/v1beta1/namespaces/argocd/argocds");
        let spec = &resource.value["spec"];
        let names = |list: &Json| {
            let items = list.as_array().expect("a list").iter();
            items.map(|item| item["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&spec["repo"]["sidecarContainers"]), ["argocd-ocm-cmp"]);
        assert_eq!(names(&spec["repo"]["initContainers"]), ["argocd-ocm-cmp-tools"]);
        assert!(names(&spec["repo"]["volumes"]).contains(&json!("argocd-ocm-cmp-policy")));
        let volumes = ["argocd-ocm-cmp-ui", "argocd-ocm-cmp-live"];
        assert_eq!(names(&spec["server"]["volumeMounts"]), volumes);
        assert_eq!(names(&spec["server"]["volumes"]), volumes);
        assert!(spec["server"]["annotations"]["argocd-ocm-cmp/ui-checksum"].is_string());
        let health = "resource.customizations.health.work.open-cluster-management.io_ManifestWork";
        assert!(spec["extraConfig"][health].is_string());
        assert_eq!(spec["cmdParams"]["redis.server"], "argocd-agent-redis-proxy:6379");
        assert_eq!(spec["server"]["extraCommandArgs"], json!(["--enable-proxy-extension"]));
    }

    #[test]
    fn network_policies_select_the_pods_of_an_operator() {
        let mut workloads = chart();
        workloads[1]["spec"]["template"]["metadata"]["labels"] = json!({NAME: "cd-server"});
        let all = installed(ArgoCd::among(&workloads));
        let policy = find(&all, "NetworkPolicy", "argocd-ocm-cmp-live");
        let selector = &policy.value["spec"]["ingress"][0]["from"][0]["podSelector"];
        assert_eq!(selector["matchLabels"][NAME], "cd-server");
        let policy = find(&all, "NetworkPolicy", "argocd-agent-principal").json();
        assert!(
            policy.contains(r#"["cd-server","argocd-repo-server","argocd-application-controller"]"#),
            "{policy}"
        );
    }
}
