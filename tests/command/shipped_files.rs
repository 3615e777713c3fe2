//! Checks that the shipped YAML files agree with each other and with the program.

use crate::documents::documents;
use crate::program::program_with;
use crate::works::without_configs;
use argocd_ocm_cmp::cli::{Cli, Command, ListFormat};
use clap::Parser;
use controller::LEASE;
use generate::settings::SETTINGS;
use ocm::tracking::CONFIG_MAP;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read_file(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect(name)
}

/// Returns the documents of a YAML text.
pub(crate) fn parse_documents(text: &str) -> Vec<Value> {
    documents(text).expect("YAML")
}

/// Returns the documents of a file.
fn read_documents<const N: usize>(name: &str) -> [Value; N] {
    let documents = parse_documents(&read_file(name)).try_into();
    documents.unwrap_or_else(|documents: Vec<_>| panic!("{name} has {} documents", documents.len()))
}

/// Returns the only document of a file.
pub(crate) fn read_document(name: &str) -> Value {
    let [document] = read_documents(name);
    document
}

/// Returns a value by a path such as `spec.generate.command`; a number is an index of a list. Null if there is none.
fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    let pointer = format!("/{}", path.replace('.', "/"));
    value.pointer(&pointer).unwrap_or(&Value::Null)
}

fn as_list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn as_texts(value: &Value) -> Vec<&str> {
    as_list(value).iter().map(as_text).collect()
}

fn as_text(value: &Value) -> &str {
    value.as_str().expect("text")
}

fn keys_of(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .expect("a mapping")
        .keys()
        .map(String::as_str)
        .collect()
}

/// Returns the item of a list with this value at a key.
fn find_item<'v>(items: &'v Value, key: &str, value: &Value) -> &'v Value {
    let item = as_list(items).iter().find(|item| item[key] == *value);
    item.unwrap_or_else(|| panic!("no {key} {value} in {items}"))
}

#[test]
fn config_map_contains_the_plugin() {
    assert_eq!(
        read_document("cm_plugin.yaml")["data"]["plugin.yaml"],
        read_file("plugin.yaml")
    );
}

#[test]
fn program_accepts_the_plugins_commands() {
    let plugin = read_document("plugin.yaml");
    assert_eq!(plugin["kind"], "ConfigManagementPlugin");
    let parsed = |path: &str| {
        let command = as_texts(at(&plugin, path));
        assert_eq!(command[0], env!("CARGO_PKG_NAME"));
        Cli::try_parse_from(command).expect("valid arguments").command
    };
    let Command::Generate(args) = parsed("spec.generate.command") else {
        panic!("not generate");
    };
    assert_eq!(args.output, Some(ListFormat::Json));
    assert!(matches!(parsed("spec.parameters.dynamic.command"), Command::Parameters));
    let spec = &plugin["spec"];
    assert!(
        spec["discover"].is_null(),
        "discovery would send every repository to the sidecar"
    );
    assert!(spec["version"].is_null(), "a version would become a part of the name");
}

#[test]
fn project_allows_only_works() {
    let spec = &read_document("proj.yaml")["spec"];
    let work = |kind| json!({"group": "work.open-cluster-management.io", "kind": kind});
    let allowed = json!(["ManifestWork", "ManifestWorkReplicaSet"].map(work));
    assert_eq!(spec["namespaceResourceWhitelist"], allowed);
    assert!(spec["clusterResourceWhitelist"].is_null());
}

#[test]
fn project_denies_namespaces_of_the_hub() {
    let denied = ["!argocd", "!kube-*", "!open-cluster-management*", "!local-cluster"];
    let destination = |namespace| json!({"server": "https://kubernetes.default.svc", "namespace": namespace});
    assert_eq!(
        read_document("proj.yaml")["spec"]["destinations"],
        json!(denied.map(destination))
    );
}

#[test]
fn sidecar_mounts_the_plugin_with_minimal_permissions() {
    let deployment = read_document("deploy_cmp.yaml");
    let spec = at(&deployment, "spec.template.spec");
    assert_eq!(
        keys_of(spec),
        ["containers", "initContainers", "volumes"],
        "only the additions"
    );
    assert_eq!(keys_of(&deployment["spec"]), ["template"], "only the additions");
    let sidecar = &spec["containers"][0];
    let image = as_text(&sidecar["image"]);
    assert!(image.ends_with(&format!(":{}", env!("CARGO_PKG_VERSION"))), "{image}");
    let context = &sidecar["securityContext"];
    assert!(
        context["runAsUser"].is_null(),
        "the image names it, and OpenShift assigns another"
    );
    assert_eq!(context["runAsNonRoot"], true);
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    let mounts = &sidecar["volumeMounts"];
    let plugin = find_item(mounts, "subPath", &json!("plugin.yaml"));
    let volume = find_item(&spec["volumes"], "name", &plugin["name"]);
    assert_eq!(
        volume["configMap"]["name"],
        read_document("cm_plugin.yaml")["metadata"]["name"]
    );
    let own_tmp = find_item(mounts, "mountPath", &json!("/tmp"));
    assert_ne!(
        own_tmp["name"], "tmp",
        "the sidecar must not mount the repo-server's volume"
    );
}

#[test]
fn limits_memory_and_temporary_files_of_the_sidecar() {
    let deployment = read_document("deploy_cmp.yaml");
    let spec = at(&deployment, "spec.template.spec");
    assert_eq!(*at(spec, "containers.0.resources.limits.memory"), "5Gi");
    assert_eq!(*at(spec, "initContainers.0.resources.limits.memory"), "256Mi");
    let folders = as_list(&spec["volumes"])
        .iter()
        .filter(|volume| !volume["emptyDir"].is_null());
    let limited = folders.map(|folder| as_text(&folder["emptyDir"]["sizeLimit"]));
    assert_eq!(limited.count(), 2);
}

#[test]
fn network_policy_denies_metadata_service_and_private_addresses() {
    let policy = read_document("deploy/network_policy.yaml");
    let kept_out = as_texts(at(&policy, "spec.egress.2.to.0.ipBlock.except"));
    for range in ["169.254.0.0/16", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"] {
        assert!(kept_out.contains(&range), "{range}");
    }
    assert_eq!(as_texts(at(&policy, "spec.policyTypes")), ["Egress"]);
}

#[test]
fn sidecar_copies_tools_from_argo_cds_image() {
    let deployment = read_document("deploy_cmp.yaml");
    let spec = at(&deployment, "spec.template.spec");
    let (bringer, sidecar) = (&spec["initContainers"][0], &spec["containers"][0]);
    assert!(as_text(&bringer["image"]).starts_with("quay.io/argoproj/argocd:v"));
    assert_eq!(bringer["securityContext"], sidecar["securityContext"]);
    assert_eq!(bringer["resources"]["requests"], sidecar["resources"]["requests"]);
    let command = as_texts(&bringer["command"]);
    let (target, copied) = command[1..].split_last().expect("a folder");
    let mount = &bringer["volumeMounts"][0];
    assert_eq!(mount["mountPath"], **target);
    let mounted = as_list(&sidecar["volumeMounts"])
        .iter()
        .filter(|other| other["name"] == mount["name"]);
    let mounted: Vec<(&str, &str)> = mounted
        .map(|mount| {
            assert_eq!(mount["readOnly"], true);
            (as_text(&mount["mountPath"]), as_text(&mount["subPath"]))
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
    assert!(find_item(&spec["volumes"], "name", &mount["name"])["emptyDir"].is_object());
}

#[test]
fn argocd_cm_gets_only_health_checks_and_actions() {
    let config_map = read_document("deploy/argocd_cm.yaml");
    assert_eq!(
        keys_of(&config_map["metadata"]),
        ["name", "namespace"],
        "only the additions"
    );
    assert_eq!(config_map["metadata"]["name"], "argocd-cm");
    let customizations = [
        ("actions", "ManifestWork"),
        ("health", "ManifestWork"),
        ("health", "ManifestWorkReplicaSet"),
    ];
    let customizations = customizations
        .map(|(what, kind)| format!("resource.customizations.{what}.work.open-cluster-management.io_{kind}"));
    assert_eq!(keys_of(&config_map["data"]), customizations, "without useOpenLibs");
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
    let deployment = read_document("deploy/deploy_policy.yaml");
    let spec = at(&deployment, "spec.template.spec");
    let sidecar = &spec["containers"][0];
    let variable = &sidecar["env"][0];
    let name = as_text(&variable["name"]);
    let mut settings = SETTINGS.iter().filter(|setting| !setting.parameter);
    assert!(
        settings.any(|setting| setting.variables().any(|known| known == name)),
        "{name}"
    );
    let (folder, file) = as_text(&variable["value"]).rsplit_once('/').expect("a path");
    let (mount, volume) = (&sidecar["volumeMounts"][0], &spec["volumes"][0]);
    assert_eq!(mount["mountPath"], folder);
    assert_eq!(mount["name"], volume["name"]);
    assert_eq!(
        *at(
            &read_document("deploy_cmp.yaml"),
            "spec.template.spec.containers.0.name"
        ),
        sidecar["name"]
    );
    let config_map = read_document("deploy/policy_cm.yaml");
    assert_eq!(config_map["metadata"]["name"], volume["configMap"]["name"]);
    assert!(config_map["data"][file].is_string(), "{file}");
}

/// Returns the documents of deploy/deploy_controller.yaml: Deployment, PodDisruptionBudget, Service, ServiceAccount, ClusterRole,
/// ClusterRoleBinding, Role, RoleBinding, PriorityLevelConfiguration, two FlowSchemas.
fn controller() -> [Value; 11] {
    read_documents("deploy/deploy_controller.yaml")
}

#[test]
fn controller_pod_meets_the_restricted_standard() {
    let [deployment, ..] = controller();
    assert_eq!(deployment["spec"]["replicas"], 2);
    let pod = at(&deployment, "spec.template.spec");
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(*at(pod, "securityContext.seccompProfile.type"), "RuntimeDefault");
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true})
    );
    let other = read_document("deploy_cmp.yaml");
    let sidecar = at(&other, "spec.template.spec.containers.0");
    assert_eq!(container["image"], sidecar["image"]);
    assert_eq!(
        pod["securityContext"]["runAsUser"],
        sidecar["securityContext"]["runAsUser"]
    );
    for path in ["requests.cpu", "requests.memory", "limits.memory"] {
        assert!(at(&container["resources"], path).is_string(), "{path}");
    }
    assert!(pod["volumes"].is_null(), "the controller needs no files");
}

#[test]
fn program_accepts_the_controllers_command() {
    let [deployment, _, _, _, _, _, role, ..] = controller();
    let container = at(&deployment, "spec.template.spec.containers.0");
    let command = as_texts(&container["command"]);
    assert_eq!(command[0], env!("CARGO_PKG_NAME"));
    let Command::Controller(args) = Cli::try_parse_from(command).expect("valid arguments").command else {
        panic!("not controller");
    };
    assert_eq!(container["ports"][0]["containerPort"], args.bind_address.port());
    assert!(
        args.bind_address.ip().is_unspecified(),
        "the kubelet connects from outside the Pod"
    );
    assert_eq!(deployment["metadata"]["namespace"], args.argo_cd.argocd_namespace);
    assert!(args.leader_elect, "two replicas need leader election");
    assert_eq!(as_texts(at(&role, "rules.0.resourceNames")), [CONFIG_MAP]);
    assert_eq!(as_texts(at(&role, "rules.2.resourceNames")), [LEASE]);
}

#[test]
fn selectors_match_the_controllers_pods() {
    let [deployment, budget, service, ..] = controller();
    let selected = at(&deployment, "spec.selector.matchLabels");
    let labels = at(&deployment, "spec.template.metadata.labels");
    for (key, value) in selected.as_object().expect("labels") {
        assert_eq!(labels[key], *value, "{key}");
    }
    let pod = at(&deployment, "spec.template.spec");
    assert_eq!(
        at(pod, "topologySpreadConstraints.0.labelSelector.matchLabels"),
        selected
    );
    assert_eq!(budget["spec"]["selector"]["matchLabels"], *selected);
    assert_eq!(service["spec"]["selector"], *selected);
    let container = &pod["containers"][0];
    let (port, of_service) = (&container["ports"][0], &service["spec"]["ports"][0]);
    assert_eq!(of_service["targetPort"], port["name"]);
    assert_eq!(of_service["port"], port["containerPort"]);
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], port["name"]);
    }
}

#[test]
fn application_set_generates_the_shipped_application() {
    let [_, _, set] = read_documents("examples/appset.yaml");
    let (template, app) = (&set["spec"]["template"], read_document("app.yaml"));
    let guestbook = as_text(&app["metadata"]["name"]);
    assert_eq!(
        template["metadata"]["name"],
        format!("{guestbook}-{{{{.clusterName}}}}")
    );
    for part in ["spec", "metadata.finalizers"] {
        let generated = at(template, part).to_string().replace("{{.clusterName}}", "cluster1");
        assert_eq!(generated, at(&app, part).to_string());
    }
    assert_eq!(set["spec"]["goTemplate"], true);
    assert_eq!(set["spec"]["goTemplateOptions"], json!(["missingkey=error"]));
}

#[test]
fn cluster_secret_has_no_credential() {
    let secret = read_document("examples/cluster_secret.yaml");
    assert_eq!(keys_of(&secret["stringData"]), ["name", "server"]);
    assert!(secret["data"].is_null());
    // The name is in all fields that differ between clusters, so that sed creates a Secret for the next.
    let (name, server) = (
        as_text(&secret["stringData"]["name"]),
        as_text(&secret["stringData"]["server"]),
    );
    assert!(
        as_text(&secret["metadata"]["name"]).contains(name) && server.contains(name),
        "{secret}"
    );
    assert_ne!(read_document("app.yaml")["spec"]["destination"]["server"], server);
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
        for object in parse_documents(&text) {
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
    let crd = read_document("deploy/gitopscluster_crd.yaml");
    let [alpha, beta] = as_list(&crd["spec"]["versions"]) else {
        panic!("not two versions");
    };
    for what in ["schema", "additionalPrinterColumns", "subresources"] {
        assert_eq!(alpha[what], beta[what], "{what}");
    }
    assert_eq!([&alpha["name"], &beta["name"]], ["v1alpha1", "v1beta1"]);
    assert_eq!(beta["storage"], true);
}
