//! `deploy_cmp.yaml`, and `deploy_policy.yaml` after it, on the repo-server of Argo CD's own core-install.

use crate::stage::{shipped, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::ObjectRef;

#[tokio::test]
async fn the_sidecar_is_added_to_argo_cds_own_repo_server_and_changes_nothing_else() -> Result<()> {
    let Some(stage) = stage().await? else { return Ok(()) };
    let hub = &stage.hub;
    let repo_server = ObjectRef::deployment("argocd", "argocd-repo-server");
    let before = hub
        .get(&repo_server)
        .await?
        .context("core-install brings the repo-server")?;
    let file = shipped("deploy_cmp.yaml");
    let apply = [
        "apply",
        "--server-side",
        "--field-manager",
        "argocd-ocm-cmp",
        "-f",
        file.to_str().context("a plain path")?,
    ];
    hub.kubectl(&apply)?;
    let after = hub.get(&repo_server).await?.context("it is still there")?;

    let (added, kept) = split(&after, "containers");
    assert_eq!(added.len(), 1);
    assert_eq!(added[0]["command"][0], "/var/run/argocd/argocd-cmp-server");
    assert_eq!(
        kept,
        list(&before, "containers"),
        "the original containers are as they were"
    );
    let (added, kept) = split(&after, "volumes");
    assert_eq!(added.len(), 2);
    assert_eq!(kept, list(&before, "volumes"));
    assert_eq!(list(&after, "initContainers"), list(&before, "initContainers"));
    let mut reduced = after.clone();
    for part in ["containers", "volumes"] {
        reduced["spec"]["template"]["spec"][part] = before["spec"]["template"]["spec"][part].clone();
    }
    assert_eq!(reduced["spec"], before["spec"], "and so is everything else");

    hub.kubectl(&apply)?;
    let again = hub.get(&repo_server).await?.context("it is still there")?;
    assert_eq!(
        again["metadata"]["generation"], after["metadata"]["generation"],
        "a second time changes nothing"
    );

    // What the sidecar mounts is there: Argo CD's own volumes, and our ConfigMap.
    let volumes = list(&after, "volumes");
    for mount in sidecar(&after)["volumeMounts"].as_array().context("mounts")? {
        assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
    }

    // The policy comes on top, to the sidecar alone, and either file can be applied again without harm to the other.
    let file = shipped("deploy_policy.yaml");
    let policy = [
        "apply",
        "--server-side",
        "--field-manager",
        "argocd-ocm-cmp-policy",
        "-f",
        file.to_str().context("a plain path")?,
    ];
    hub.kubectl(&policy)?;
    hub.kubectl(&apply)?;
    let bound = hub.get(&repo_server).await?.context("it is still there")?;
    let mut expected = sidecar(&after);
    let bound_sidecar = sidecar(&bound);
    let mount = json!({"name": "argocd-ocm-cmp-policy", "mountPath": "/etc/argocd-ocm-cmp"});
    expected["env"] = json!([{"name": "OCM_POLICY_FILE", "value": "/etc/argocd-ocm-cmp/policy.yaml"}]);
    expected["volumeMounts"].as_array_mut().context("mounts")?.push(mount);
    assert_eq!(bound_sidecar, expected);
    assert_eq!(split(&bound, "containers").1, list(&before, "containers"));
    assert_eq!(split(&bound, "volumes").0.len(), 3);
    Ok(())
}

fn list(deployment: &Value, part: &str) -> Vec<Value> {
    deployment["spec"]["template"]["spec"][part]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

/// The entries that are ours, and the others.
fn split(deployment: &Value, part: &str) -> (Vec<Value>, Vec<Value>) {
    let ours = |entry: &Value| {
        entry["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("argocd-ocm-cmp"))
    };
    list(deployment, part).into_iter().partition(ours)
}

fn sidecar(deployment: &Value) -> Value {
    split(deployment, "containers").0.remove(0)
}
