//! Tests of access: the callers and objects that the service answers about.

use crate::stage::{NAME, OF_SHOP, WEB, stage, work};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::wait::{self, DEADLINE};
use testbed::{ObjectRef, is_applied};

#[tokio::test]
async fn accepts_only_argocd_server() -> Result<()> {
    let stage = stage().await?;
    let path = format!("/api/v1/object?{WEB}");
    let token = &*stage.token;
    for forged in [&[][..], &[""], &["x"], &[&token[1..]], &[token, "x"]] {
        let tokens = forged.iter().map(|token| ("Argocd-Ocm-Cmp-Live-Token", *token));
        let headers: Vec<_> = OF_SHOP.into_iter().chain(tokens).collect();
        let (status, text) = stage.send("GET", &path, &headers).await?;
        ensure!(status == 401, "{forged:?}: {status}: {text}");
    }
    let headers = [&OF_SHOP[..], &[("Argocd-Ocm-Cmp-Live-Token", token)]].concat();
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let (status, text) = stage.send(method, &path, &headers).await?;
        ensure!(status == 405, "{method}: {status}: {text}");
    }
    Ok(())
}

#[tokio::test]
async fn shows_only_what_the_application_delivers() -> Result<()> {
    let stage = stage().await?;
    let of = |application, project| {
        [
            ("Argocd-Application-Name", application),
            ("Argocd-Project-Name", project),
        ]
    };
    for (headers, expected) in [
        (of("argocd:shop", "default"), 403),
        (of("argocd:other", "team"), 404),
        (of("default:shop", "team"), 404),
        (of("argocd:../shop", "team"), 400),
    ] {
        let (status, text) = stage.get("object", WEB, &headers).await?;
        ensure!(status == expected, "{headers:?}: {status}: {text}");
    }
    for (query, expected) in [
        (
            "cluster=cluster1&group=&kind=ConfigMap&namespace=default&name=of-another",
            404,
        ),
        (
            "cluster=cluster1&group=&kind=ConfigMap&namespace=kube-system&name=extension-apiserver-authentication",
            404,
        ),
        ("cluster=cluster1&group=&kind=Pod&namespace=shop&name=web", 404),
        (
            "cluster=cluster3&group=apps&kind=Deployment&namespace=shop&name=web",
            404,
        ),
        ("cluster=hub&group=apps&kind=Deployment&namespace=shop&name=web", 404),
        (
            "cluster=cluster2&group=apps&kind=Deployment&namespace=shop&name=web",
            504,
        ),
        (
            "cluster=cluster1&group=apps&kind=Deployment&namespace=shop&name=..%2Fweb",
            400,
        ),
    ] {
        let (status, text) = stage.get("object", query, &OF_SHOP).await?;
        ensure!(
            status == expected && text.starts_with("{\"error\":\""),
            "{query}: {status}: {text}"
        );
    }
    let (status, text) = stage.get("logs", &format!("{WEB}&pod=stranger"), &OF_SHOP).await?;
    ensure!(status == 404, "{status}: {text}");
    Ok(())
}

/// A tenant names an object of another one in a work, which its executor may not apply.
#[tokio::test]
async fn executor_limits_what_its_application_shows() -> Result<()> {
    let stage = stage().await?;
    let other = ObjectRef::manifest_work("cluster1", "other");
    stage.hub.wait_for(&other, is_applied).await?;
    let role = "create role tenant --namespace=default --verb=get,create,update,patch,delete --resource=configmaps";
    stage.cluster1.kubectl(&format!("{role} --resource-name=of-tenant"))?;
    stage
        .cluster1
        .kubectl("create rolebinding tenant --namespace=default --role=tenant --serviceaccount=default:tenant")?;
    let objects = ["of-another", "of-tenant"].map(|name| ObjectRef::config_map("default", name).with(json!({})));
    let mut tenant = work("tenant", "tenant", &objects);
    let account = json!({"namespace": "default", "name": "tenant"});
    tenant["spec"]["executor"] = json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}});
    tenant["spec"]["manifestConfigs"] = json!([{
        "resourceIdentifier": {"group": "", "resource": "configmaps", "namespace": "default", "name": "of-another"},
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "Uid", "path": ".metadata.uid"}]}],
    }]);
    stage.hub.apply(&tenant).await?;
    stage.create_application("tenant", &["cluster1"]).await?;
    let show = async |name: &str| {
        let headers = [
            ("Argocd-Application-Name", "argocd:tenant"),
            ("Argocd-Project-Name", "team"),
        ];
        let query = format!("cluster=cluster1&group=&kind=ConfigMap&namespace=default&name={name}");
        stage.get("object", &query, &headers).await
    };
    wait::eventually("its own object is shown", DEADLINE, async || {
        let (status, text) = show("of-tenant").await.ok()?;
        (status == 200 && text.contains("\"uid\"")).then_some(())
    })
    .await?;
    let (status, text) = show("of-another").await?;
    ensure!(status == 403 && text.contains("with an executor"), "{status}: {text}");
    // OCM's agent reports its fields nevertheless.
    let tenant = ObjectRef::manifest_work("cluster1", "tenant");
    let reports = |work: &Value| work["status"]["resourceStatus"].to_string().contains("\"Uid\"");
    stage.hub.wait_for(&tenant, reports).await.map(drop)
}

#[tokio::test]
async fn account_of_clusters_has_no_permissions_on_the_hub() -> Result<()> {
    let stage = stage().await?;
    let account = format!("--as=system:serviceaccount:argocd:{NAME}-clusters");
    let rights = stage.hub.kubectl(&["auth", "can-i", "--list", &account])?;
    for line in rights.lines().filter(|line| !line.starts_with(' ')) {
        let reviews = ["selfsubject", "Resources", "[", " "];
        let is_harmless = reviews.iter().any(|review| line.starts_with(review)) || line.trim().is_empty();
        ensure!(is_harmless, "{rights}");
    }
    Ok(())
}
