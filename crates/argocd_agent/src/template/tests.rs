use super::*;
use hub_state::model::Mode;
use std::collections::BTreeSet;

fn gitops_cluster() -> ObjectRef {
    ObjectRef::new("argocd", "fleet")
}

fn defaults() -> Images {
    Images {
        ours: Some("registry.example.com/argocd-ocm-cmp:1".into()),
        ..Images::default()
    }
}

fn template_for(desired: &DesiredAgent) -> Value {
    template(&gitops_cluster(), desired, &defaults(), "argocd")
}

fn autonomous() -> DesiredAgent {
    DesiredAgent {
        mode: Mode::Autonomous,
        ..DesiredAgent::default()
    }
}

fn by_an_operator() -> DesiredAgent {
    DesiredAgent {
        argocd_manifests: Some(vec![json!({"kind": "ArgoCD"})]),
        ..DesiredAgent::default()
    }
}

fn with_our_operator(mode: Mode) -> DesiredAgent {
    DesiredAgent {
        mode,
        operator: true,
        ..DesiredAgent::default()
    }
}

fn without_our_image() -> Value {
    let desired = DesiredAgent::default();
    template(&gitops_cluster(), &desired, &Images::default(), "argocd")
}

fn all() -> [Value; 6] {
    let [managed, autonomous, operated] =
        [DesiredAgent::default(), autonomous(), by_an_operator()].map(|desired| template_for(&desired));
    let [ours, ours_autonomous] = [Mode::Managed, Mode::Autonomous].map(|mode| template_for(&with_our_operator(mode)));
    [
        managed,
        autonomous,
        operated,
        ours,
        ours_autonomous,
        without_our_image(),
    ]
}

fn manifests(template: &Value) -> &[Value] {
    let manifests = template.pointer("/spec/agentSpec/workload/manifests");
    manifests.and_then(Value::as_array).expect("there are manifests")
}

fn name(template: &Value) -> &str {
    template["metadata"]["name"].as_str().expect("it has a name")
}

fn containers(template: &Value) -> Vec<&Value> {
    let of_pods = ["containers", "initContainers"].map(|kind| format!("/spec/template/spec/{kind}"));
    let of = |manifest| {
        of_pods
            .iter()
            .filter_map(move |path| Value::pointer(manifest, path)?.as_array())
    };
    manifests(template).iter().flat_map(of).flatten().collect()
}

/// Returns the registration, the manifestConfigs, the names of the manifests with the accounts that they bind, and the images.
fn describe(template: &Value) -> Vec<String> {
    let join = |parts: &[&Value]| {
        parts
            .iter()
            .filter_map(|part| part.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let configs = template["spec"]["agentSpec"]["manifestConfigs"].as_array();
    let mut lines = vec![template["spec"]["registration"].to_string()];
    lines.extend(configs.expect("there are some").iter().map(Value::to_string));
    for manifest in manifests(template) {
        let metadata = &manifest["metadata"];
        let account = &manifest["subjects"][0]["name"];
        lines.push(join(&[
            &manifest["kind"],
            &metadata["namespace"],
            &metadata["name"],
            account,
        ]));
    }
    for container in containers(template) {
        lines.push(join(&[&container["name"], &container["image"]]));
    }
    lines
}

/// Returns the rules of the roles and the environment of the containers.
fn rules_and_environment(template: &Value) -> Vec<String> {
    let roles = manifests(template)
        .iter()
        .map(|role| (&role["metadata"], &role["rules"]));
    let containers = containers(template)
        .into_iter()
        .map(|container| (container, &container["env"]));
    let mut lines = Vec::new();
    for (named, list) in roles.chain(containers) {
        for item in list.as_array().into_iter().flatten() {
            lines.push(format!("{} {item}", named["name"]));
        }
    }
    lines
}

/// Returns the lines that only one of two lists has.
fn changes(before: &[String], after: &[String]) -> String {
    let mut lines = Vec::new();
    for (mark, list, other) in [("-", before, after), ("+", after, before)] {
        for line in list.iter().filter(|line| !other.contains(line)) {
            lines.push(format!("{mark} {line}"));
        }
    }
    lines.join("\n")
}

#[test]
fn registers_agents_with_our_signer_and_keeps_objects_of_others() {
    let lines = describe(&template_for(&DesiredAgent::default()));
    let end = lines.iter().position(|line| !line.contains('{')).expect("manifests");
    insta::assert_snapshot!(lines[..end].join("\n"), @r#"
    [{"customSigner":{"signerName":"open-cluster-management.io/argocd-agent-addon","signingCA":{"name":"argocd-agent-signed-by-argocd-ocm-cmp","namespace":"argocd"}},"type":"CustomSigner"}]
    {"resourceIdentifier":{"group":"apiextensions.k8s.io","name":"applications.argoproj.io","resource":"customresourcedefinitions"},"updateStrategy":{"type":"CreateOnly"}}
    {"resourceIdentifier":{"group":"apiextensions.k8s.io","name":"appprojects.argoproj.io","resource":"customresourcedefinitions"},"updateStrategy":{"type":"CreateOnly"}}
    {"resourceIdentifier":{"group":"apiextensions.k8s.io","name":"applicationsets.argoproj.io","resource":"customresourcedefinitions"},"updateStrategy":{"type":"CreateOnly"}}
    {"resourceIdentifier":{"group":"argoproj.io","name":"default","namespace":"*","resource":"appprojects"},"updateStrategy":{"type":"CreateOnly"}}
    {"resourceIdentifier":{"group":"","name":"argocd-cm","namespace":"*","resource":"configmaps"},"updateStrategy":{"serverSideApply":{"fieldManager":"work-agent","force":true},"type":"ServerSideApply"}}
    {"resourceIdentifier":{"group":"","name":"argocd-ssh-known-hosts-cm","namespace":"*","resource":"configmaps"},"updateStrategy":{"serverSideApply":{"fieldManager":"work-agent","force":true},"type":"ServerSideApply"}}
    {"resourceIdentifier":{"group":"","name":"argocd-tls-certs-cm","namespace":"*","resource":"configmaps"},"updateStrategy":{"serverSideApply":{"fieldManager":"work-agent","force":true},"type":"ServerSideApply"}}
    {"resourceIdentifier":{"group":"","name":"argocd-gpg-keys-cm","namespace":"*","resource":"configmaps"},"updateStrategy":{"serverSideApply":{"fieldManager":"work-agent","force":true},"type":"ServerSideApply"}}
    "#);
}

#[test]
fn autonomous_agents_have_fewer_rights_and_bring_the_default_project() {
    let [managed, autonomous] = [DesiredAgent::default(), autonomous()].map(|desired| template_for(&desired));
    insta::assert_snapshot!(changes(&describe(&managed), &describe(&autonomous)), @r"
    + ClusterRole argocd-agent-addon:work-agent-appprojects
    + AppProject argocd default
    ");
    let [managed, autonomous] = [managed, autonomous].map(|template| rules_and_environment(&template));
    insta::assert_snapshot!(changes(&managed, &autonomous), @r#"
    - "argocd-agent-addon:application-controller" {"apiGroups":["argoproj.io"],"resources":["applications"],"verbs":["get","list","watch","create","update","patch","delete"]}
    - "argocd-agent-addon:agent" {"apiGroups":[""],"resources":["namespaces"],"verbs":["create"]}
    - "argocd-agent-addon:agent" {"apiGroups":["argoproj.io"],"resources":["applications"],"verbs":["get","list","watch","create","update","patch","delete"]}
    - "argocd-application-controller" {"name":"ARGOCD_APPLICATION_NAMESPACES","value":"*"}
    - "argocd-agent-agent" {"name":"ARGOCD_AGENT_MODE","value":"managed"}
    - "argocd-agent-agent" {"name":"ARGOCD_AGENT_DESTINATION_BASED_MAPPING","value":"true"}
    - "argocd-agent-agent" {"name":"ARGOCD_AGENT_CREATE_NAMESPACE","value":"true"}
    - "argocd-agent-agent" {"name":"ARGOCD_AGENT_ALLOWED_NAMESPACES","value":"*"}
    - "argocd-agent-agent" {"name":"ARGOCD_AGENT_SOURCE_UID_MISMATCH_POLICY","value":"upsert"}
    + "argocd-agent-addon:work-agent-appprojects" {"apiGroups":["argoproj.io"],"resources":["appprojects"],"verbs":["get","list","watch","create","update","patch","delete"]}
    + "argocd-agent-agent" {"name":"ARGOCD_AGENT_MODE","value":"autonomous"}
    "#);
}

#[test]
fn template_uses_only_variables_that_the_config_sets() {
    // OCM ignores all others silently.
    let server = super::super::Server {
        address: "hub".into(),
        port: "443".into(),
    };
    let config = super::super::deployment_config(&gitops_cluster(), "argocd", &DesiredAgent::default(), &server);
    let set = config["spec"]["customizedVariables"]
        .as_array()
        .expect("there are some");
    let set: BTreeSet<_> = set.iter().filter_map(|variable| variable["name"].as_str()).collect();
    for template in all() {
        let text = template.to_string();
        let used = text
            .split("{{")
            .skip(1)
            .map(|rest| rest.split("}}").next().unwrap_or_default());
        let used: BTreeSet<_> = used.collect();
        assert!(used.is_subset(&set) && !text.contains("${"), "{used:?}");
    }
}

#[test]
fn roles_have_no_wildcards_or_escalation_verbs() {
    for template in all() {
        for manifest in manifests(&template) {
            assert_ne!(manifest["roleRef"]["name"], "cluster-admin");
            let rules = manifest["rules"].as_array().into_iter().flatten();
            for rule in rules {
                for field in ["apiGroups", "resources", "verbs"] {
                    let all = rule[field].as_array().expect("a list");
                    assert!(!all.is_empty() && all.iter().all(|value| value != "*"), "{rule}");
                }
                let verbs = rule["verbs"].as_array().expect("a list");
                for verb in ["escalate", "bind", "impersonate"] {
                    assert!(!verbs.contains(&verb.into()), "{rule}");
                }
            }
        }
    }
}

#[test]
fn template_fits_in_one_work_without_secrets_and_unknown_deployments() {
    for template in all() {
        let size = template.to_string().len();
        assert!(size < 30_000, "{size} bytes");
        for manifest in manifests(&template) {
            let kind = manifest["kind"].as_str().expect("a kind");
            assert!(!["Secret", "DaemonSet", "Namespace"].contains(&kind), "{manifest}");
            if kind == "Deployment" {
                let name = manifest["metadata"]["name"].as_str().expect("a name");
                assert!(["argocd-agent-agent", "argocd-operator"].contains(&name), "{name}");
            }
        }
    }
}

#[test]
fn every_image_is_configurable() {
    let image = |name: &str| Some(format!("registry.example.com/{name}").into());
    let images = Images {
        agent: image("agent"),
        argocd: image("argocd"),
        redis: image("redis"),
        operator: image("operator"),
        ours: image("ours"),
    };
    let desired = DesiredAgent {
        images: images.clone(),
        ..DesiredAgent::default()
    };
    let template = template(&gitops_cluster(), &desired, &defaults(), "argocd");
    let used: BTreeSet<_> = containers(&template)
        .into_iter()
        .map(|container| container["image"].as_str())
        .collect();
    let set = [&images.agent, &images.argocd, &images.redis, &images.ours].map(Option::as_deref);
    assert_eq!(used, set.into());
}

#[test]
fn every_pod_has_the_image_pull_secret_that_ocm_copies() {
    for template in all() {
        for manifest in manifests(&template) {
            let secret = json!([{"name": "open-cluster-management-image-pull-credentials"}]);
            let pod = manifest.pointer("/spec/template/spec");
            assert!(pod.is_none_or(|pod| pod["imagePullSecrets"] == secret), "{manifest}");
        }
    }
}

#[test]
fn every_container_meets_the_restricted_standard() {
    for template in all() {
        for container in containers(&template) {
            let mut security = container["securityContext"].clone();
            let user = security.as_object_mut().and_then(|fields| fields.remove("runAsUser"));
            assert_eq!(
                user.is_some(),
                container["name"] == "redis",
                "OpenShift assigns users: {container}"
            );
            assert_eq!(
                security,
                json!({
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": true,
                    "runAsNonRoot": true,
                    "seccompProfile": {"type": "RuntimeDefault"},
                }),
                "{container}"
            );
            assert!(container.pointer("/resources/requests/memory").is_some(), "{container}");
        }
    }
}

#[test]
fn template_name_changes_exactly_with_its_content() {
    let desired = DesiredAgent::default();
    let first = template_for(&desired);
    assert_eq!(first, template_for(&desired));
    let newer = Images {
        agent: Some("registry.example.com/agent:2".into()),
        ..Images::default()
    };
    let others = [
        template_for(&autonomous()),
        template_for(&by_an_operator()),
        template_for(&with_our_operator(Mode::Managed)),
        template_for(&DesiredAgent {
            images: newer.clone(),
            ..desired.clone()
        }),
        template_for(&DesiredAgent {
            namespace: "gitops".into(),
            ..desired.clone()
        }),
        template(&gitops_cluster(), &desired, &newer, "argocd"),
        template(&gitops_cluster(), &desired, &defaults(), "gitops"),
        template(&ObjectRef::new("argocd-fleet", ""), &desired, &defaults(), "argocd"),
    ];
    let names: BTreeSet<_> = others.iter().map(name).collect();
    assert_eq!(names.len(), others.len());
    assert!(!names.contains(name(&first)));
    // Settings that reach the clusters by other objects.
    let unrelated = DesiredAgent {
        address: Some("hub".into()),
        rollout: Some(json!({"type": "All"})),
        revoked: ["cluster1".into()].into(),
        ..desired
    };
    assert_eq!(name(&template_for(&unrelated)), name(&first));
}

#[test]
fn every_template_orphans_the_crds_and_keeps_existing_ones() {
    let by_another = template_for(&by_an_operator());
    for template in all() {
        let crds: Vec<_> = manifests(&template)
            .iter()
            .filter(|manifest| manifest["kind"] == "CustomResourceDefinition")
            .collect();
        assert!([3, 7].contains(&crds.len()), "{crds:?}");
        if template == by_another {
            assert_eq!(manifests(&template).len(), crds.len(), "it brings nothing else");
        }
        let existing = template["spec"]["agentSpec"]["manifestConfigs"].as_array();
        let existing = existing.expect("there are some");
        for crd in crds {
            let metadata = &crd["metadata"];
            let orphans = metadata["annotations"].get("addon.open-cluster-management.io/deletion-orphan");
            assert!(orphans.is_some(), "{metadata}");
            let mut configs = existing.iter();
            let config = configs.find(|config| config["resourceIdentifier"]["name"] == metadata["name"]);
            assert_eq!(
                config.expect("a config")["updateStrategy"],
                json!({"type": "CreateOnly"})
            );
        }
        assert!(
            configs(&DesiredAgent::default())
                .iter()
                .all(|config| existing.contains(config))
        );
    }
}

#[test]
fn operator_uses_our_images_and_the_named_argocd() {
    let named = DesiredAgent {
        argocd_manifests: Some(vec![json!({"kind": "ArgoCD", "metadata": {"name": "edge"}})]),
        ..with_our_operator(Mode::Managed)
    };
    let template = template_for(&named);
    let existing = |kind: &str, name: &str| {
        let manifest = manifests(&template)
            .iter()
            .find(|manifest| manifest["kind"] == kind && manifest["metadata"]["name"] == name);
        manifest.unwrap_or_else(|| panic!("{kind} {name}"))
    };
    let environment = existing("Deployment", "argocd-operator").pointer("/spec/template/spec/containers/0/env");
    let environment = environment.expect("it has one");
    for (name, image) in [
        ("ARGOCD_IMAGE", hub_state::model::shipped::ARGOCD),
        ("ARGOCD_REDIS_IMAGE", hub_state::model::shipped::REDIS),
        ("ARGOCD_AGENT_IMAGE", hub_state::model::shipped::AGENT),
    ] {
        let is_it = json!({"name": name, "value": image});
        assert!(
            environment.as_array().expect("a list").contains(&is_it),
            "{environment}"
        );
    }
    for (binding, account) in [
        ("application-controller", "edge-argocd-application-controller"),
        ("application-controller-admin", "edge-argocd-application-controller"),
        ("agent-view", "edge-agent-agent"),
    ] {
        let binding = existing("ClusterRoleBinding", &format!("argocd-agent-addon:{binding}"));
        assert_eq!(binding["subjects"][0]["name"], account);
    }
}

#[test]
fn without_our_image_the_agent_has_no_supervisor() {
    let template = without_our_image();
    let agent = manifests(&template)
        .iter()
        .find(|manifest| manifest["kind"] == "Deployment")
        .expect("it is there");
    let pod = &agent["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["args"], json!(["agent"]));
    assert_eq!(
        (&pod["containers"][0]["command"], &pod["initContainers"]),
        (&Value::Null, &Value::Null)
    );
}
