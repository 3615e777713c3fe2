//! Tests of the version of argocd-agent on clusters, which must be that of the principal.

use super::*;
use hub_state::annotations::{AGENT_IMAGE, AGENT_NAMESPACE, DISABLE_IMAGE_SYNC};
use hub_state::model::shipped;

const OLD: &str = "quay.io/argoprojlabs/argocd-agent:v0.9.0";
const NEW: &str = "registry.example.com/argocd-agent:v0.10.0";

impl Hub {
    fn upgrade_principal(&mut self, image: &str) {
        let spec = json!({"template": {"spec": {"containers": [{"name": "argocd-agent-principal", "image": image}]}}});
        self.put(
            Kind::Deployments,
            &of_argocd(names::PRINCIPAL_DEPLOYMENTS[0]),
            Some(json!({"metadata": {}, "spec": spec})),
        );
    }

    /// Returns the image of argocd-agent in the only AddOnTemplate.
    fn agent_image(&self) -> String {
        let [(_, template)] = self.kept(Kind::Templates)[..] else {
            panic!("one template")
        };
        let manifests = template["spec"]["agentSpec"]["workload"]["manifests"].as_array();
        let agent = manifests
            .into_iter()
            .flatten()
            .find(|manifest| manifest["kind"] == "Deployment" && manifest["metadata"]["name"] == "argocd-agent-agent");
        let image = &agent.expect("the agent")["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(template["metadata"]["annotations"][AGENT_IMAGE], *image);
        image.as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn agents_follow_the_image_of_the_principal() {
    let mut hub = Hub::with_all_agents();
    assert_eq!(
        hub.agent_image(),
        shipped::AGENT,
        "the image of the principal is not known"
    );
    for image in [NEW, OLD] {
        hub.upgrade_principal(image);
        hub.settle();
        assert_eq!(hub.agent_image(), image);
        assert_eq!(hub.is("AgentVersionMatches"), ["", ""]);
        hub.is_at_rest();
    }
}

#[test]
fn agents_of_another_operator_follow_the_image_of_the_principal() {
    let mut hub = Hub::new();
    let argocd = json!({"kind": "ArgoCD", "metadata": {"name": "edge"}, "spec": {"argoCDAgent": {"agent": {}}}});
    let spec = json!({
        "placementRef": {"name": "some"},
        "argoCDAgentAddon": {"argoCDCRManifestWork": {"manifests": [argocd]}},
    });
    hub.write(&all(), &spec);
    hub.settle();
    let images = |hub: &Hub| {
        let works = hub.kept(Kind::AgentWorks).into_iter();
        let manifests = works.filter_map(|(_, work)| work["spec"]["workload"]["manifests"].as_array().cloned());
        let argocds = manifests.flatten().filter(|manifest| manifest["kind"] == "ArgoCD");
        argocds
            .map(|argocd| argocd["spec"]["argoCDAgent"]["agent"]["image"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(images(&hub), [Value::Null, Value::Null], "the operator has a default");
    for image in [NEW, OLD] {
        hub.upgrade_principal(image);
        hub.settle();
        assert_eq!(images(&hub), [image, image]);
        hub.is_at_rest();
    }
}

#[test]
fn another_version_than_the_principals_is_reported() {
    let mut hub = Hub::with_all_agents();
    hub.upgrade_principal(NEW);
    let mut spec = bringing("some", &[]);
    spec["agent"]["images"] = json!({"agent": OLD});
    hub.write(&all(), &spec);
    hub.settle();
    assert_eq!(hub.agent_image(), OLD);
    let [status, reason, message] = hub.condition_of(&all(), "AgentVersionMatches");
    assert_eq!([status, reason], ["False", "VersionMismatch"]);
    assert!(message.contains(OLD) && message.contains(NEW), "{message}");
    assert_eq!(hub.is("Ready")[0], "False");
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(hub.is("AgentVersionMatches"), ["", ""]);
}

#[test]
fn agents_keep_their_image_if_an_annotation_disables_the_sync() {
    for annotation in DISABLE_IMAGE_SYNC {
        let mut hub = Hub::with_all_agents();
        let object = hub.objects.get_mut(&all()).expect("it exists");
        object["metadata"]["annotations"] = json!({annotation: "true"});
        hub.write(&all(), &bringing("some", &[]));
        hub.upgrade_principal(NEW);
        hub.settle();
        assert_eq!(hub.agent_image(), shipped::AGENT);
        assert_eq!(hub.is("AgentVersionMatches")[0], "False");
    }
}

#[test]
fn new_version_reaches_all_clusters_at_once_despite_a_progressive_strategy() {
    let mut hub = Hub::with_all_agents();
    hub.upgrade_principal(OLD);
    let mut spec = bringing("some", &[]);
    spec["agent"]["rolloutStrategy"] = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    hub.write(&all(), &spec);
    hub.settle();

    hub.upgrade_principal(NEW);
    let written = hub.settle();
    assert_eq!(hub.agent_image(), NEW, "the rollout is over: {written:#?}");

    // Another image is rolled out at the pace.
    spec["agent"]["images"] = json!({"redis": "registry.example.com/redis:9"});
    hub.write(&all(), &spec);
    hub.settle();
    assert_eq!(hub.kept(Kind::Templates).len(), 2, "the first cluster is not done yet");
}

/// Otherwise OCM moves the agents of the previous version into a namespace in which they do not start.
#[test]
fn new_namespace_reaches_all_clusters_at_once_despite_a_progressive_strategy() {
    let mut hub = Hub::new();
    let mut spec = json!({
        "placementRef": {"name": "some"},
        "argoCDAgentAddon": {"agentNamespace": "argocd"},
        "agent": {"rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}}},
    });
    hub.write(&all(), &spec);
    hub.settle();
    spec["argoCDAgentAddon"]["agentNamespace"] = json!("gitops");
    hub.write(&all(), &spec);
    hub.settle();
    let [(_, template)] = hub.kept(Kind::Templates)[..] else {
        panic!("the rollout is not over")
    };
    assert_eq!(template["metadata"]["annotations"][AGENT_NAMESPACE], "gitops");
}
