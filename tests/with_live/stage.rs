//! A hub with the service as its files install it, and a managed cluster behind the tunnel.

use anyhow::{Context, Result, ensure};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use testbed::process::{self, Process};
use testbed::wait::{self, DEADLINE};
use testbed::{
    ArgoCd, ClusterProxy, Hub, ManagedCluster, ManagedClusterOptions, ObjectRef, is_applied, is_true, ports,
    tracked_work,
};
use tokio::sync::OnceCell;

/// The service, its ServiceAccount, its Secret and its ConfigMap.
pub(crate) const NAME: &str = "argocd-ocm-cmp-live";

/// The query for the delivered Deployment.
pub(crate) const WEB: &str = "cluster=cluster1&group=apps&kind=Deployment&namespace=shop&name=web";

/// The query for another delivered Deployment, without Pods, which a test changes on the cluster.
pub(crate) const CHANGED: &str = "cluster=cluster1&group=apps&kind=Deployment&namespace=shop&name=changed";

/// The headers of argocd-server for the Application `shop`.
pub(crate) const OF_SHOP: [(&str, &str); 3] = [
    ("Argocd-Application-Name", "argocd:shop"),
    ("Argocd-Project-Name", "team"),
    ("Argocd-Username", "ann"),
];

pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) cluster1: ManagedCluster,
    pub(crate) proxy: ClusterProxy,
    port: u16,
    pub(crate) token: String,
    certificate: PathBuf,
    #[allow(dead_code, reason = "the benchmark measures it")]
    pub(crate) service: Process,
}

/// Returns the stage that the tests of this program share. The first call starts it.
pub(crate) async fn stage() -> Result<&'static Stage> {
    static STAGE: OnceCell<Stage> = OnceCell::const_new();
    STAGE.get_or_try_init(|| Box::pin(Stage::start())).await
}

impl Stage {
    async fn start() -> Result<Self> {
        let hub = Hub::start_complete().await?;
        let cluster = hub.add_managed_cluster("cluster1", ManagedClusterOptions::default());
        let (cluster1, ()) = tokio::try_join!(cluster, hub.declare_managed_cluster("cluster2"))?;
        let proxy = ClusterProxy::start(&hub, &[&cluster1]).await?;
        hub.kubectl(&["apply", "--filename", path(shipped("deploy/live.yaml").as_path())?])?;
        let permissions: [&str; 4] = [
            "get applications.argoproj.io --all-namespaces",
            "list manifestworks.work.open-cluster-management.io --all-namespaces",
            "patch secrets/argocd-ocm-cmp-live --namespace=argocd",
            "create serviceaccounts/argocd-ocm-cmp-live-clusters --subresource=token --namespace=argocd",
        ];
        hub.wait_for_permissions("argocd", NAME, &permissions).await?;

        let port = ports::free()?;
        let program = testbed::program(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
        let mut command = process::command(program, env!("CARGO_TARGET_TMPDIR").as_ref());
        command.args(["live", &format!("--bind-address=127.0.0.1:{port}")]);
        command.args([&format!("--cluster-proxy={}", proxy.url())]);
        command.arg("--cluster-proxy-ca").arg(proxy.authority());
        command
            .arg("--kubeconfig")
            .arg(hub.service_account_kubeconfig("argocd", NAME)?);
        let service = Process::start("live", command, &hub.logs().join("live.log"))?;
        service.until_listening(port).await?;

        let (token, certificate) = identity(&hub)?;
        let stage = Self {
            hub,
            cluster1,
            proxy,
            port,
            token,
            certificate,
            service,
        };
        stage.deliver().await?;
        stage.start_argocd().await?;
        Ok(stage)
    }

    /// Creates the Application `shop`, whose work and replica set a cluster has, as Argo CD leaves them, and the work with the
    /// permissions of the view.
    async fn deliver(&self) -> Result<()> {
        let rights: Vec<Value> = objects(&self.hub, "deploy/live_cluster_rbac.yaml")?;
        self.hub.apply(&work("live-rbac", "", &rights)).await?;
        let container = json!({"name": "web", "image": "example.com/web:1", "env": [{"name": "A", "value": "1"}]});
        let deployment = |name: &str, replicas: u8| {
            let labels = json!({"app": name});
            ObjectRef::deployment("shop", name).with(json!({
                "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
            }))
        };
        let delivered = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
            deployment("web", 2),
            deployment("changed", 0),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"}, "stringData": {"a": "hidden"}}),
        ];
        self.hub.apply(&work("shop", "shop", &delivered)).await?;
        self.hub
            .apply(&work(
                "other",
                "other",
                &[ObjectRef::config_map("default", "of-another").with(json!({}))],
            ))
            .await?;
        self.hub
            .apply(&work_for("cluster2", "shop", "shop", &delivered))
            .await?;
        self.create_application("shop", &["cluster1", "cluster2"]).await?;
        for name in ["live-rbac", "shop"] {
            self.hub
                .wait_for(&ObjectRef::manifest_work("cluster1", name), is_applied)
                .await?;
        }
        let web = ObjectRef::deployment("shop", "web");
        self.cluster1
            .wait_for(&web, |deployment| is_true(deployment, "Available"))
            .await?;
        wait::eventually("the cluster permits the view", DEADLINE, async || {
            self.get("tree", WEB, &OF_SHOP)
                .await
                .ok()
                .filter(|(status, _)| *status == 200)
        })
        .await
        .map(drop)
    }

    /// Creates an Application of project `team`, for which Argo CD lists a work of its name on each of these clusters.
    pub(crate) async fn create_application(&self, name: &str, clusters: &[&str]) -> Result<()> {
        let resource = |cluster: &&str| {
            json!({"group": "work.open-cluster-management.io", "version": "v1", "kind": "ManifestWork",
            "namespace": cluster, "name": name, "status": "Synced"})
        };
        let resources: Vec<Value> = clusters.iter().map(resource).collect();
        let application = ObjectRef::cluster("argoproj.io/v1alpha1", "Application", name).with(json!({
            "metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}},
            "spec": {"project": "team", "source": {"repoURL": "https://example.com/x", "path": "."},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
            "status": {"resources": resources},
        }));
        self.hub.create_application(&application).await.map(drop)
    }

    /// Starts argocd-server with the extension, and with the trusted certificate where Go reads those of a machine.
    async fn start_argocd(&self) -> Result<()> {
        let everything = json!([{"server": "*", "namespace": "*", "name": "*"}]);
        self.hub
            .apply(
                &ObjectRef::app_project("team")
                    .with(json!({"spec": {"destinations": everything, "sourceRepos": ["*"]}})),
            )
            .await?;
        for mut object in objects(&self.hub, "deploy/live_argocd.yaml")? {
            if object["metadata"]["name"] == "argocd-cm" {
                let config = object["data"]["extension.config.live"]
                    .as_str()
                    .context("an extension")?;
                let shipped = format!("https://{NAME}:8443");
                ensure!(config.contains(&shipped), "{config}");
                object["data"]["extension.config.live"] = config
                    .replace(&shipped, &format!("https://localhost:{}", self.port))
                    .into();
            }
            self.hub.apply(&object).await?;
        }
        let users = "p, role:viewer, applications, get, team/*, allow\np, role:viewer, extensions, invoke, live, allow\n\
                     g, viewer, role:viewer\np, role:other, applications, get, team/*, allow\ng, other, role:other\n\
                     p, role:stranger, applications, get, default/*, allow\np, role:stranger, extensions, invoke, live, allow\n\
                     g, stranger, role:stranger\n";
        let rbac = ObjectRef::config_map("argocd", "argocd-rbac-cm");
        self.hub.patch(&rbac, &json!({"data": {"policy.csv": users}})).await?;
        let accounts = ["viewer", "other", "stranger"].map(|name| (format!("accounts.{name}"), json!("apiKey")));
        let accounts = json!({"data": serde_json::Map::from_iter(accounts)});
        self.hub
            .patch(&ObjectRef::config_map("argocd", "argocd-cm"), &accounts)
            .await?;
        let trusted = self.certificate.parent().context("a folder")?;
        let environment = [
            ("SSL_CERT_DIR", path(trusted)?),
            ("ARGOCD_SERVER_ENABLE_PROXY_EXTENSION", "true"),
        ];
        let argocd = ArgoCd {
            server: true,
            environment: environment
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..ArgoCd::default()
        };
        self.hub.start_argocd(argocd).await
    }

    /// Sends a request as argocd-server does: with these headers and the token.
    pub(crate) async fn get(&self, view: &str, query: &str, headers: &[(&str, &str)]) -> Result<(StatusCode, String)> {
        let headers = [headers, &[("Argocd-Ocm-Cmp-Live-Token", &*self.token)]].concat();
        let path = format!("/api/v1/{view}?{query}");
        // The tests share one cluster, whose requests are paced, and which may be slow on a busy machine.
        let is_shared = query.contains("cluster=cluster1");
        let answered = async || match self.send("GET", &path, &headers).await {
            Ok((status, _)) if status == 429 || status == 504 && is_shared => None,
            answered => Some(answered),
        };
        wait::eventually("the request has its turn", DEADLINE, answered).await?
    }

    /// Sends a successful request, and returns its JSON.
    pub(crate) async fn json(&self, view: &str, query: &str) -> Result<Value> {
        let (status, text) = self.get(view, query, &OF_SHOP).await?;
        ensure!(status == 200, "{status}: {text}");
        Ok(serde_json::from_str(&text)?)
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<(StatusCode, String)> {
        let (status, body) = self.open(method, path, headers).await?;
        Ok((status, String::from_utf8(body.collect().await?.to_bytes().to_vec())?))
    }

    /// Sends a request, and returns the response as soon as it begins.
    pub(crate) async fn open(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<(StatusCode, Body)> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.client()?.send(request.body(Body::empty())?).await?;
        Ok((response.status(), response.into_body()))
    }

    /// Returns a client that trusts the certificate in the ConfigMap, as argocd-server does.
    fn client(&self) -> Result<Client> {
        let mut config = Config::new(format!("https://127.0.0.1:{}", self.port).parse()?);
        config.tls_server_name = Some(format!("{NAME}.argocd.svc"));
        config.root_cert_file = Some(self.certificate.clone());
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }
}

/// Returns the token in the Secret that the service has filled, and the file with the certificate in its ConfigMap.
fn identity(hub: &Hub) -> Result<(String, PathBuf)> {
    let of = |kind: &str, template: &str| {
        let template = format!("--template={template}");
        hub.kubectl(&["get", kind, NAME, "--namespace=argocd", &template])
    };
    let folder = hub.logs().join("trusted");
    fs::create_dir_all(&folder)?;
    let certificate = folder.join("tls.crt");
    fs::write(&certificate, of("configmap", r#"{{index .data "tls.crt"}}"#)?)?;
    Ok((of("secret", "{{.data.token | base64decode}}")?, certificate))
}

pub(crate) fn work(name: &str, application: &str, manifests: &[Value]) -> Value {
    work_for("cluster1", name, application, manifests)
}

/// Returns a work as Argo CD marks it for an Application. Changes on the cluster stay.
fn work_for(cluster: &str, name: &str, application: &str, manifests: &[Value]) -> Value {
    let mut work = tracked_work(application, cluster, name, manifests);
    let deployments = json!({"group": "apps", "resource": "deployments", "namespace": "shop", "name": "*"});
    work["spec"]["manifestConfigs"] =
        json!([{"resourceIdentifier": deployments, "updateStrategy": {"type": "CreateOnly"}}]);
    work
}

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a plain path")
}

/// Returns the objects of a shipped file.
fn objects(hub: &Hub, file: &str) -> Result<Vec<Value>> {
    let file = shipped(file);
    let text = hub.kubectl(&[
        "create",
        "--dry-run=client",
        "--output=json",
        "--filename",
        path(&file)?,
    ])?;
    let objects = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut all = Vec::new();
    for object in objects {
        let mut object = object?;
        match object.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => all.extend(items),
            _ => all.push(object),
        }
    }
    Ok(all)
}
