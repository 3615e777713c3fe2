//! Tests of argocd-agent as an add-on on a real API server: a managed cluster with the strictest Pod security standard accepts
//! the manifests unchanged, and the controller recognises the objects that it has written on the hub.

use crate::stage::{Stage, stage};
use anyhow::{Context, Result, ensure};
use argocd_agent as agent;
use argocd_agent::{Entry, Server};
use hub_state::model::{DesiredAgent, Images, Mode};
use ocm::argocd_agent::{AddonPlacement, deployment_config};
use primitives::object_ref::ObjectRef as ObjectName;
use serde_json::{Value, json};
use testbed::ObjectRef;

const NAMESPACE: &str = "agent-template";
const DRY_RUN: &str = "--dry-run=server";

fn goc() -> ObjectName {
    ObjectName::new(NAMESPACE, "fleet")
}

#[tokio::test]
async fn managed_cluster_accepts_the_agent_template() -> Result<()> {
    let stage = stage("agents").await?;
    let namespace = ObjectRef::namespace(NAMESPACE)
        .with(json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}));
    stage.hub.apply_yaml(&namespace.to_string())?;
    for mode in [Mode::Managed, Mode::Autonomous] {
        let expected = DesiredAgent {
            mode,
            namespace: NAMESPACE.into(),
            ..DesiredAgent::default()
        };
        accepted_by_a_managed_cluster(&stage, &expected).with_context(|| format!("{mode:?}"))?;
        recognised_on_the_hub(&stage, &expected).with_context(|| format!("{mode:?}"))?;
    }
    Ok(())
}

/// Returns images with one of this program.
pub(crate) fn ours() -> Images {
    Images {
        ours: Some("registry.example.com/argocd-ocm-cmp:1".into()),
        ..Images::default()
    }
}

pub(crate) fn server() -> Server {
    Server {
        address: "hub.example.com".into(),
        port: "8443".into(),
    }
}

/// Checks every manifest of the template and of the work with the CA, and every resulting Pod.
fn accepted_by_a_managed_cluster(stage: &Stage, expected: &DesiredAgent) -> Result<()> {
    let template = agent::template(&goc(), expected, &ours(), "argocd");
    let manifests = template.pointer("/spec/agentSpec/workload/manifests");
    let manifests = manifests.and_then(Value::as_array).context("no manifests")?;
    let ca = agent::ca_work(&goc(), &stage.cluster, NAMESPACE, "PEM");
    let of_the_ca = ca.pointer("/spec/workload/manifests").and_then(Value::as_array);
    for manifest in manifests.iter().chain(of_the_ca.context("no manifests")?) {
        apply(stage, manifest, DRY_RUN)?;
        if manifest.pointer("/spec/template/spec/containers").is_some() {
            let metadata = json!({"name": manifest["metadata"]["name"], "namespace": NAMESPACE});
            let mut spec = manifest["spec"]["template"]["spec"].clone();
            // OCM's mount is replaced by this one, and there is no ServiceAccount, which a dry run does not create.
            spec["serviceAccountName"] = "default".into();
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
            apply(stage, &pod, DRY_RUN)?;
        }
    }
    Ok(())
}

/// Applies a manifest by server-side apply, with these options.
pub(crate) fn apply(stage: &Stage, manifest: &Value, options: &str) -> Result<()> {
    let arguments = format!("apply --server-side --force-conflicts --filename - {options}");
    let result = stage.hub.kubectl_with_input(&arguments, &manifest.to_string());
    result.map(drop).with_context(|| format!("{manifest}"))
}

/// Checks that all objects on the hub, read back, need no further write.
fn recognised_on_the_hub(stage: &Stage, expected: &DesiredAgent) -> Result<()> {
    let hub = &stage.hub;
    let template = agent::template(&goc(), expected, &ours(), "argocd");
    let entries = [
        Entry {
            gitops_cluster: goc(),
            config: deployment_config(&goc(), "argocd"),
            template: template["metadata"]["name"].as_str().context("no name")?.to_owned(),
            next: Some("argocd-agent-addon-argocd-fleet-01234567".to_owned()),
        },
        Entry {
            gitops_cluster: ObjectName::new("argocd", "other"),
            config: ObjectName::new("argocd", "other-argocd-agent"),
            template: "argocd-agent-addon-argocd-other-01234567".to_owned(),
            next: None,
        },
    ];
    let operated = DesiredAgent {
        argocd_manifests: Some(vec![
            ObjectRef::cluster("argoproj.io/v1beta1", "ArgoCD", "argocd")
                .with(json!({"spec": {"argoCDAgent": {"agent": {"enabled": true}}}})),
        ]),
        ..expected.clone()
    };
    let objects = [
        agent::decision(&goc(), AddonPlacement::All, 1),
        agent::placement(&goc(), AddonPlacement::All),
        agent::placement(&goc(), AddonPlacement::Next),
        agent::deployment_config(&goc(), "argocd", expected, &server()),
        agent::management(&entries, None),
        agent::ca_work(&goc(), &stage.cluster, NAMESPACE, "PEM"),
        agent::argocd_work(
            &goc(),
            &stage.cluster,
            &operated,
            &server(),
            Some("example.com/argocd-agent:v1"),
        ),
    ];
    for object in &objects {
        hub.apply_yaml(&object.to_string())
            .with_context(|| format!("{object}"))?;
        let live = get_live(stage, object)?;
        let difference = agent::difference(object, &live);
        ensure!(difference.is_none(), "{difference:?} differs in {live}");
        if object["kind"] == "ClusterManagementAddOn" {
            let difference = agent::difference(&agent::management(&entries, Some(&live)), &live);
            ensure!(difference.is_none(), "{difference:?} differs in {live}");
        }
    }
    // The name identifies the template, which is never changed. OCM's CRDs add defaults to its list of configurations.
    hub.apply_yaml(&template.to_string())?;
    let manifests = "/spec/agentSpec/workload/manifests";
    let live = get_live(stage, &template)?;
    ensure!(
        live.pointer(manifests) == template.pointer(manifests),
        "{live} has other manifests"
    );
    Ok(())
}

fn get_live(stage: &Stage, object: &Value) -> Result<Value> {
    let text = |path| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let namespace = format!("--namespace={}", text("/metadata/namespace"));
    let (group, version) = text("/apiVersion").split_once('/').context("a core kind")?;
    let kind = format!("{}.{version}.{group}", text("/kind"));
    let live = stage
        .hub
        .kubectl(&["get", &kind, text("/metadata/name"), &namespace, "--output=json"])?;
    Ok(serde_json::from_str(&live)?)
}
