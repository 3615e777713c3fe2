//! Tests of the permissions that deploy/argocd_rbac.yaml grants Argo CD's application controller on the hub, with the real API
//! server and OCM's webhook.

use crate::stage::{shipped_objects, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::{Hub, ObjectRef, wait};

/// Returns the shipped rules with the name `who`, for the ServiceAccount of that name.
fn rules_for(who: &str, change: impl Fn(&mut Vec<Value>)) -> Result<String> {
    let mut objects = String::new();
    for mut object in shipped_objects("deploy/argocd_rbac.yaml")? {
        object["metadata"]["name"] = json!(who);
        if let Some(rules) = object.get_mut("rules").and_then(Value::as_array_mut) {
            change(rules);
        } else {
            object["roleRef"]["name"] = json!(who);
            let subject = &mut object["subjects"][0];
            assert_eq!(subject["name"], "argocd-application-controller");
            subject["name"] = json!(who);
        }
        objects.push_str(&object.to_string());
        objects.push('\n');
    }
    Ok(objects)
}

const NAMESPACE: &str = "rbac-of-argocd";

fn work(name: &str, executor: Option<&str>) -> Value {
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}});
    let mut work =
        ObjectRef::manifest_work(NAMESPACE, name).with(json!({"spec": {"workload": {"manifests": [config_map]}}}));
    if let Some(executor) = executor {
        let account = json!({"namespace": "shop", "name": executor});
        work["spec"]["executor"] = json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}});
    }
    work
}

/// Runs kubectl with the permissions of a ServiceAccount in Argo CD's namespace, and returns its output or error.
fn as_account(hub: &Hub, who: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let who = format!("--as=system:serviceaccount:argocd:{who}");
    let arguments: Vec<&str> = arguments.iter().copied().chain([who.as_str()]).collect();
    hub.kubectl_with_input(&arguments, input)
        .map_err(|error| format!("{error:#}"))
}

/// Creates a work after the account's permissions are effective, and returns the answer of OCM's webhook.
async fn created(hub: &Hub, who: &str, work: &Value) -> Result<Result<(), String>> {
    wait::eventually("the permissions are effective", wait::DEADLINE, async || {
        let created = as_account(hub, who, &["create", "-f", "-"], &work.to_string());
        let too_early = |error: &String| error.contains("(Forbidden)");
        (!created.as_ref().is_err_and(too_early)).then_some(created.map(drop))
    })
    .await
}

#[tokio::test]
async fn shipped_rbac_suffices_for_works_with_an_executor_only() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    hub.create_namespace(NAMESPACE).await?;

    let who = "as-shipped";
    hub.apply_yaml(&rules_for(who, |_| ())?)?;
    assert_eq!(created(hub, who, &work(who, Some("deployer"))).await?, Ok(()));
    let place = ["manifestwork", who, "-n", NAMESPACE];
    for (verb, more) in [
        ("get", &[][..]),
        (
            "patch",
            &["--type=merge", r#"--patch={"metadata":{"labels":{"a":"b"}}}"#],
        ),
        (
            "patch",
            &[
                "--type=merge",
                r#"--patch={"spec":{"executor":{"subject":{"serviceAccount":{"name":"other"}}}}}"#,
            ],
        ),
        ("delete", &[]),
    ] {
        let arguments: Vec<&str> = [verb].iter().chain(&place).chain(more).copied().collect();
        as_account(hub, who, &arguments, "").map_err(anyhow::Error::msg)?;
    }
    for (verb, resource) in [
        ("create", "configmaps"),
        ("get", "secrets"),
        ("delete", "managedclusters"),
    ] {
        let answer = as_account(hub, who, &["auth", "can-i", verb, resource, "-n", NAMESPACE], "");
        // can-i answers no with its exit code too.
        assert!(answer.is_err(), "{verb} {resource}: {answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn executor_needs_execute_as_for_its_name() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    hub.create_namespace(NAMESPACE).await?;
    let refused = |who: &str, executor: &str| {
        format!(
            "user system:serviceaccount:argocd:{who} cannot manipulate the Manifestwork with executor shop/{executor} in \
             namespace {NAMESPACE}"
        )
    };
    let is_execute_as = |rule: &Value| rule["verbs"] == json!(["execute-as"]);

    let who = "without-execute-as";
    hub.apply_yaml(&rules_for(who, |rules| rules.retain(|rule| !is_execute_as(rule)))?)?;
    assert_eq!(created(hub, who, &work(who, None)).await?, Ok(()));
    let result = created(hub, who, &work("with-executor", Some("deployer"))).await?;
    let error = result.err().context("the webhook accepted the work")?;
    assert!(error.contains(&refused(who, "deployer")), "{error}");

    // The change that the comment in the file describes.
    let who = "one-executor";
    hub.apply_yaml(&rules_for(who, |rules| {
        for rule in rules.iter_mut().filter(|rule| is_execute_as(rule)) {
            rule["resourceNames"] = json!(["system:serviceaccount:shop:deployer"]);
        }
    })?)?;
    assert_eq!(created(hub, who, &work(who, Some("deployer"))).await?, Ok(()));
    let result = created(hub, who, &work("other-executor", Some("admin"))).await?;
    let error = result.err().context("the webhook accepted the work")?;
    assert!(error.contains(&refused(who, "admin")), "{error}");
    Ok(())
}
