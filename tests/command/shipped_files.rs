//! Checks that the shipped YAML files agree with each other and with the program.

use crate::program::program_with;
use crate::works::without_configs;
use argocd_ocm_cmp::cli::{Cli, Command, ListFormat};
use clap::Parser;
use controller::LEASE;
use generate::settings::SETTINGS;
use manifest::value::Value;
use manifest::{json, yaml};
use ocm::tracking::CONFIG_MAP;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read_file(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect(name)
}

/// Returns a value of a document by a path such as `spec.generate.command`; a number is an index of a list.
fn at<'v>(value: &'v Value<'v>, path: &str) -> &'v Value<'v> {
    path.split('.').fold(value, |value, step| match value {
        Value::Map(map) => map.get(step).unwrap_or(&Value::Null),
        Value::List(items) => &items[step.parse::<usize>().expect("an index of a list")],
        _ => panic!("{path}: nothing at {step}"),
    })
}

fn texts<'v>(value: &'v Value<'v>) -> Vec<&'v str> {
    match value {
        Value::List(items) => items.iter().map(|item| item.as_str().expect("text")).collect(),
        other => panic!("not a list: {other:?}"),
    }
}

/// Reads the only document of a file and passes it to `check`.
fn with<T>(name: &str, check: impl FnOnce(&Value<'_>) -> T) -> T {
    with_all(name, |[document]| check(document))
}

/// Reads all documents of a file and passes them to `check`.
fn with_all<T, const N: usize>(name: &str, check: impl FnOnce(&[Value<'_>; N]) -> T) -> T {
    let text = read_file(name);
    let documents: Vec<_> = yaml::documents(&text)
        .map(|document| document.expect(name).value)
        .collect();
    let documents = documents.try_into();
    check(&documents.unwrap_or_else(|documents: Vec<_>| panic!("{name} has {} documents", documents.len())))
}

/// Returns the documents of a file as JSON.
pub(crate) fn documents_of(name: &str) -> Vec<serde_json::Value> {
    let text = read_file(name);
    let documents = yaml::documents(&text).map(|document| json(&document.expect(name).value));
    documents.map(|json| serde_json::from_str(&json).expect(name)).collect()
}

/// Returns a value as JSON, for comparisons.
pub(crate) fn json(value: &Value<'_>) -> String {
    let mut text = String::new();
    json::write(value, &mut text).expect("JSON");
    text
}

#[test]
fn config_map_contains_the_plugin() {
    with("cm_plugin.yaml", |config_map| {
        assert_eq!(
            at(config_map, "data")
                .as_map()
                .expect("data")
                .get("plugin.yaml")
                .and_then(Value::as_str),
            Some(read_file("plugin.yaml").as_str())
        );
    });
}

#[test]
fn program_accepts_the_plugins_commands() {
    with("plugin.yaml", |plugin| {
        assert_eq!(at(plugin, "kind").as_str(), Some("ConfigManagementPlugin"));
        let command = texts(at(plugin, "spec.generate.command"));
        assert_eq!(command[0], env!("CARGO_PKG_NAME"));
        let Command::Generate(args) = Cli::try_parse_from(command).expect("valid arguments").command else {
            panic!("not generate");
        };
        assert_eq!(args.output, Some(ListFormat::Json));
        let command = texts(at(plugin, "spec.parameters.dynamic.command"));
        assert_eq!(command[0], env!("CARGO_PKG_NAME"));
        let command = Cli::try_parse_from(command).expect("valid arguments").command;
        assert!(matches!(command, Command::Parameters));
        assert_eq!(
            at(plugin, "spec.discover"),
            &Value::Null,
            "discovery would send every repository to the sidecar"
        );
        assert_eq!(
            at(plugin, "spec.version"),
            &Value::Null,
            "a version would become a part of the name"
        );
    });
}

#[test]
fn project_allows_only_works() {
    with("proj.yaml", |project| {
        let Value::List(allowed) = at(project, "spec.namespaceResourceWhitelist") else {
            panic!("no list");
        };
        let allowed: Vec<_> = allowed
            .iter()
            .map(|kind| (at(kind, "group").as_str(), at(kind, "kind").as_str()))
            .collect();
        let work = |kind| (Some("work.open-cluster-management.io"), Some(kind));
        assert_eq!(allowed, ["ManifestWork", "ManifestWorkReplicaSet"].map(work));
        assert_eq!(at(project, "spec.clusterResourceWhitelist"), &Value::Null);
    });
}

#[test]
fn project_denies_namespaces_of_the_hub() {
    with("proj.yaml", |project| {
        let Value::List(destinations) = at(project, "spec.destinations") else {
            panic!("no list");
        };
        let namespaces: Vec<_> = destinations.iter().map(|it| at(it, "namespace").as_str()).collect();
        let expected = ["!argocd", "!kube-*", "!open-cluster-management*", "!local-cluster"];
        assert_eq!(namespaces, expected.map(Some));
        for destination in destinations {
            assert_eq!(
                at(destination, "server").as_str(),
                Some("https://kubernetes.default.svc")
            );
        }
    });
}

#[test]
fn sidecar_mounts_the_plugin_with_minimal_permissions() {
    with("deploy_cmp.yaml", |deployment| {
        let spec = at(deployment, "spec.template.spec");
        let keys: Vec<&str> = spec.as_map().expect("a pod").iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["containers", "initContainers", "volumes"], "only the additions");
        assert_eq!(
            at(deployment, "spec").as_map().expect("a spec").len(),
            1,
            "only the additions"
        );
        let sidecar = at(spec, "containers.0");
        let image = at(sidecar, "image").as_str().expect("an image");
        assert!(image.ends_with(&format!(":{}", env!("CARGO_PKG_VERSION"))), "{image}");
        assert_eq!(
            at(sidecar, "securityContext.runAsUser"),
            &Value::Null,
            "the image names it, and OpenShift assigns another"
        );
        assert_eq!(at(sidecar, "securityContext.runAsNonRoot"), &Value::Bool(true));
        assert_eq!(
            at(sidecar, "securityContext.readOnlyRootFilesystem"),
            &Value::Bool(true)
        );
        assert_eq!(
            at(sidecar, "securityContext.allowPrivilegeEscalation"),
            &Value::Bool(false)
        );
        assert_eq!(texts(at(sidecar, "securityContext.capabilities.drop")), ["ALL"]);
        let Value::List(mounts) = at(sidecar, "volumeMounts") else {
            panic!("no mounts");
        };
        let plugin = mounts
            .iter()
            .find(|mount| at(mount, "subPath").as_str() == Some("plugin.yaml"))
            .expect("plugin.yaml");
        let Value::List(volumes) = at(spec, "volumes") else {
            panic!("no volumes");
        };
        let volume = volumes
            .iter()
            .find(|volume| at(volume, "name") == at(plugin, "name"))
            .expect("its volume");
        let config_map = with("cm_plugin.yaml", |config_map| {
            at(config_map, "metadata.name").as_str().expect("a name").to_owned()
        });
        assert_eq!(at(volume, "configMap.name").as_str(), Some(config_map.as_str()));
        let own_tmp = mounts
            .iter()
            .find(|mount| at(mount, "mountPath").as_str() == Some("/tmp"))
            .expect("/tmp");
        assert_ne!(
            at(own_tmp, "name").as_str(),
            Some("tmp"),
            "the sidecar must not mount the repo-server's volume"
        );
    });
}

#[test]
fn limits_memory_and_temporary_files_of_the_sidecar() {
    with("deploy_cmp.yaml", |deployment| {
        let spec = at(deployment, "spec.template.spec");
        assert_eq!(at(spec, "containers.0.resources.limits.memory").as_str(), Some("5Gi"));
        assert_eq!(
            at(spec, "initContainers.0.resources.limits.memory").as_str(),
            Some("256Mi")
        );
        let Value::List(volumes) = at(spec, "volumes") else {
            panic!("no volumes");
        };
        let folders: Vec<_> = volumes
            .iter()
            .filter(|volume| at(volume, "emptyDir") != &Value::Null)
            .collect();
        assert_eq!(folders.len(), 2);
        for folder in folders {
            assert!(at(folder, "emptyDir.sizeLimit").as_str().is_some(), "{folder:?}");
        }
    });
}

#[test]
fn network_policy_denies_metadata_service_and_private_addresses() {
    with("deploy/network_policy.yaml", |policy| {
        let metadata = at(policy, "spec.egress.2.to.0.ipBlock.except");
        let kept_out = texts(metadata);
        for range in ["169.254.0.0/16", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"] {
            assert!(kept_out.contains(&range), "{range}");
        }
        assert_eq!(texts(at(policy, "spec.policyTypes")), ["Egress"]);
    });
}

#[test]
fn sidecar_copies_tools_from_argo_cds_image() {
    with("deploy_cmp.yaml", |deployment| {
        let spec = at(deployment, "spec.template.spec");
        let (bringer, sidecar) = (at(spec, "initContainers.0"), at(spec, "containers.0"));
        assert!(
            at(bringer, "image")
                .as_str()
                .is_some_and(|image| image.starts_with("quay.io/argoproj/argocd:v"))
        );
        assert_eq!(at(bringer, "securityContext"), at(sidecar, "securityContext"));
        assert_eq!(at(bringer, "resources.requests"), at(sidecar, "resources.requests"));
        let command = texts(at(bringer, "command"));
        let (target, copied) = command[1..].split_last().expect("a folder");
        assert_eq!(at(bringer, "volumeMounts.0.mountPath").as_str(), Some(*target));
        let volume = at(bringer, "volumeMounts.0.name");
        let Value::List(mounts) = at(sidecar, "volumeMounts") else {
            panic!("no mounts");
        };
        let mounted = mounts.iter().filter(|mount| at(mount, "name") == volume);
        let mounted: Vec<(&str, &str)> = mounted
            .map(|mount| {
                assert_eq!(at(mount, "readOnly"), &Value::Bool(true));
                let text = |key| at(mount, key).as_str().expect("a text");
                (text("mountPath"), text("subPath"))
            })
            .collect();
        // Each at its path in Argo CD's image, which is on the PATH; the rest of that folder is from our image.
        assert_eq!(
            mounted,
            [
                ("/usr/local/bin/kustomize", "kustomize"),
                ("/usr/local/bin/helm", "helm")
            ]
        );
        assert!(copied.iter().eq(mounted.iter().map(|(path, _)| path)), "{copied:?}");
        let Value::List(volumes) = at(spec, "volumes") else {
            panic!("no volumes");
        };
        let volume = volumes.iter().find(|other| at(other, "name") == volume);
        assert!(volume.is_some_and(|volume| at(volume, "emptyDir").as_map().is_some()));
    });
}

#[test]
fn argocd_cm_gets_only_health_checks_and_actions() {
    with("deploy/argocd_cm.yaml", |config_map| {
        let keys = |path: &str| -> Vec<String> {
            let map = at(config_map, path).as_map().expect("a map");
            map.iter().map(|(key, _)| key.to_owned()).collect()
        };
        assert_eq!(keys("metadata"), ["name", "namespace"], "only the additions");
        assert_eq!(at(config_map, "metadata.name").as_str(), Some("argocd-cm"));
        assert_eq!(
            keys("data"),
            ["actions", "health", "health"]
                .into_iter()
                .zip(["ManifestWork", "ManifestWork", "ManifestWorkReplicaSet"])
                .map(|(what, kind)| format!("resource.customizations.{what}.work.open-cluster-management.io_{kind}"))
                .collect::<Vec<_>>(),
            "without useOpenLibs"
        );
    });
}

/// Argo CD has no library that actions can share.
#[test]
fn actions_are_the_same_from_their_marker_on() {
    let text = read_file("deploy/argocd_cm.yaml");
    let mut rests = text
        .split("        -- From here to the end, all actions are the same.\n")
        .skip(1);
    let first = rests.next().expect("an action").split("    - name: ").next();
    assert_eq!(rests.clone().count(), 4);
    for rest in rests {
        assert_eq!(rest.split("    - name: ").next(), first);
    }
}

#[test]
fn sidecar_reads_the_mounted_policy() {
    with("deploy/deploy_policy.yaml", |deployment| {
        let spec = at(deployment, "spec.template.spec");
        let sidecar = at(spec, "containers.0");
        let variable = at(sidecar, "env.0");
        let name = at(variable, "name").as_str().expect("a name");
        assert!(
            SETTINGS
                .iter()
                .any(|setting| setting.variables().any(|known| known == name) && !setting.parameter),
            "{name}"
        );
        let file = at(variable, "value").as_str().expect("a path");
        let (folder, file) = file.rsplit_once('/').expect("a path");
        assert_eq!(at(sidecar, "volumeMounts.0.mountPath").as_str(), Some(folder));
        assert_eq!(at(sidecar, "volumeMounts.0.name"), at(spec, "volumes.0.name"));
        with("deploy_cmp.yaml", |other| {
            assert_eq!(at(other, "spec.template.spec.containers.0.name"), at(sidecar, "name"));
        });
        with("deploy/policy_cm.yaml", |config_map| {
            assert_eq!(at(config_map, "metadata.name"), at(spec, "volumes.0.configMap.name"));
            let data = at(config_map, "data").as_map().expect("data");
            assert!(data.get(file).is_some(), "{file}");
        });
    });
}

#[test]
fn controller_pod_meets_the_restricted_standard() {
    with_controller(|[deployment, ..]| {
        assert_eq!(at(deployment, "spec.replicas"), &Value::Int(2));
        let pod = at(deployment, "spec.template.spec");
        assert_eq!(at(pod, "securityContext.runAsNonRoot"), &Value::Bool(true));
        assert_eq!(
            at(pod, "securityContext.seccompProfile.type").as_str(),
            Some("RuntimeDefault")
        );
        let container = at(pod, "containers.0");
        assert_eq!(
            json(at(container, "securityContext")),
            r#"{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true}"#
        );
        with("deploy_cmp.yaml", |other| {
            let sidecar = at(other, "spec.template.spec.containers.0");
            for (ours, its) in [
                (at(container, "image"), at(sidecar, "image")),
                (
                    at(pod, "securityContext.runAsUser"),
                    at(sidecar, "securityContext.runAsUser"),
                ),
            ] {
                assert_eq!(ours, its);
            }
        });
        for path in [
            "resources.requests.cpu",
            "resources.requests.memory",
            "resources.limits.memory",
        ] {
            assert!(at(container, path).as_str().is_some(), "{path}");
        }
        assert_eq!(at(pod, "volumes"), &Value::Null, "the controller needs no files");
    });
}

#[test]
fn program_accepts_the_controllers_command() {
    with_controller(|[deployment, _, _, _, _, _, role, ..]| {
        let container = at(deployment, "spec.template.spec.containers.0");
        let command = texts(at(container, "command"));
        assert_eq!(command[0], env!("CARGO_PKG_NAME"));
        let Command::Controller(args) = Cli::try_parse_from(command).expect("valid arguments").command else {
            panic!("not controller");
        };
        let port = Value::Int(args.bind_address.port().into());
        assert_eq!(at(container, "ports.0.containerPort"), &port);
        assert!(
            args.bind_address.ip().is_unspecified(),
            "the kubelet connects from outside the Pod"
        );
        let namespace = at(deployment, "metadata.namespace").as_str();
        assert_eq!(namespace, Some(args.argo_cd.argocd_namespace.as_str()));
        assert!(args.leader_elect, "two replicas need leader election");
        assert_eq!(texts(at(role, "rules.0.resourceNames")), [CONFIG_MAP]);
        assert_eq!(texts(at(role, "rules.2.resourceNames")), [LEASE]);
    });
    assert!(read_file("docs/controller.md").contains("kubectl apply -f deploy/deploy_controller.yaml\n"));
}

#[test]
fn selectors_match_the_controllers_pods() {
    with_controller(|[deployment, budget, service, ..]| {
        let selected = at(deployment, "spec.selector.matchLabels");
        let labels = at(deployment, "spec.template.metadata.labels")
            .as_map()
            .expect("labels");
        for (key, value) in selected.as_map().expect("labels").iter() {
            assert_eq!(labels.get(key), Some(value), "{key}");
        }
        let pod = at(deployment, "spec.template.spec");
        assert_eq!(
            at(pod, "topologySpreadConstraints.0.labelSelector.matchLabels"),
            selected
        );
        assert_eq!(at(budget, "spec.selector.matchLabels"), selected);
        assert_eq!(at(service, "spec.selector"), selected);
        let port = at(pod, "containers.0.ports.0");
        assert_eq!(at(service, "spec.ports.0.targetPort"), at(port, "name"));
        assert_eq!(at(service, "spec.ports.0.port"), at(port, "containerPort"));
        for probe in ["livenessProbe", "readinessProbe"] {
            let probe = at(pod, &format!("containers.0.{probe}.httpGet.port"));
            assert_eq!(probe, at(port, "name"));
        }
    });
}

/// Passes the documents of deploy/deploy_controller.yaml: Deployment, PodDisruptionBudget, Service, ServiceAccount, ClusterRole,
/// ClusterRoleBinding, Role, RoleBinding, PriorityLevelConfiguration, two FlowSchemas.
fn with_controller(check: impl FnOnce(&[Value<'_>; 11])) {
    with_all("deploy/deploy_controller.yaml", check);
}

#[test]
fn application_set_generates_the_shipped_application() {
    with_all("examples/appset.yaml", |[_, _, set]| {
        let name = at(set, "spec.template.metadata.name").as_str().expect("a name");
        with("app.yaml", |app| {
            let guestbook = at(app, "metadata.name").as_str().expect("a name");
            assert_eq!(name, format!("{guestbook}-{{{{.clusterName}}}}"));
            for part in ["spec", "metadata.finalizers"] {
                let template = json(at(set, &format!("spec.template.{part}")));
                assert_eq!(template.replace("{{.clusterName}}", "cluster1"), json(at(app, part)));
            }
        });
        assert_eq!(at(set, "spec.goTemplate"), &Value::Bool(true));
        assert_eq!(texts(at(set, "spec.goTemplateOptions")), ["missingkey=error"]);
    });
}

#[test]
fn cluster_secret_has_no_credential() {
    with("examples/cluster_secret.yaml", |secret| {
        let data = at(secret, "stringData").as_map().expect("data");
        let keys: Vec<&str> = data.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["name", "server"]);
        assert_eq!(at(secret, "data"), &Value::Null);
        // The name is in all fields that differ between clusters, so that sed creates a Secret for the next.
        let name = at(secret, "stringData.name").as_str().expect("a name");
        for path in ["metadata.name", "stringData.server"] {
            assert!(
                at(secret, path).as_str().is_some_and(|text| text.contains(name)),
                "{path}"
            );
        }
        with("app.yaml", |app| {
            assert_ne!(at(secret, "stringData.server"), at(app, "spec.destination.server"));
        });
    });
}

/// A field manager's apply removes the fields that it applied before and no longer has.
#[test]
fn no_field_manager_applies_an_object_from_two_files() {
    let files = fs::read_dir(root().join("deploy")).expect("the folder deploy");
    let files = files.map(|file| file.expect("a file"));
    let mut files: Vec<String> = files
        .filter(|file| file.path().is_file())
        .map(|file| format!("deploy/{}", file.file_name().display()))
        .collect();
    files.push("deploy_cmp.yaml".to_owned());
    files.sort();
    let mut appliers = BTreeMap::new();
    for file in &files {
        let text = read_file(file);
        let manager = text.lines().find_map(|line| {
            let (_, rest) = line.strip_prefix('#')?.split_once("--field-manager ")?;
            rest.split(' ').next()
        });
        let Some(manager) = manager else { continue };
        for object in documents_of(file) {
            let [kind, name] = [&object["kind"], &object["metadata"]["name"]].map(ToString::to_string);
            let other = appliers.insert((manager.to_owned(), kind.clone(), name.clone()), file);
            assert_eq!(other, None, "{manager} applies {kind} {name} from {file} too");
        }
    }
    assert!(appliers.len() > 8, "{appliers:?}");
}

#[test]
fn readme_shows_the_first_commands_output() {
    let readme = read_file("README.md");
    let command = "cargo run -- generate guestbook --clusters cluster1 --name guestbook";
    let (_, after) = readme.split_once(command).expect("the command");
    let (_, after) = after.split_once("```yaml\n").expect("its output");
    let (shown, _) = after.split_once("```").expect("the end of its output");
    let words = command.split(" -- ").nth(1).expect("arguments").split(' ');
    let output = program_with(&root(), words).output().expect("the program runs");
    assert_eq!(shown, without_configs(&String::from_utf8_lossy(&output.stdout)));
}

#[test]
fn both_gitopscluster_versions_have_the_same_schema() {
    with("deploy/gitopscluster_crd.yaml", |crd| {
        let version = |number, what| json(at(crd, &format!("spec.versions.{number}.{what}")));
        for what in ["schema", "additionalPrinterColumns", "subresources"] {
            assert_eq!(version(0, what), version(1, what), "{what}");
        }
        let names = ["0", "1"].map(|number| at(crd, &format!("spec.versions.{number}.name")).as_str());
        assert_eq!(names, [Some("v1alpha1"), Some("v1beta1")]);
        assert_eq!(at(crd, "spec.versions.1.storage"), &Value::Bool(true));
    });
}
