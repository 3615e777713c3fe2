//! OCM's cluster-proxy: a tunnel that each managed cluster opens to the hub, through which the hub reads from its API server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use aws_lc_rs::digest;
use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::object::{ObjectRef, is_true};
use crate::parts::Part;
use crate::ports;
use crate::process::Process;

/// The namespace of the add-on's agent on a managed cluster.
const NAMESPACE: &str = "open-cluster-management-agent-addon";

/// The namespace of the add-on on the hub.
const HUB_NAMESPACE: &str = "open-cluster-management-addon";

/// The Service of the user-server.
const USER_SERVER: &str = "cluster-proxy-addon-user";

/// The service account of the add-on's agent.
const ACCOUNT: &str = "cluster-proxy";

/// A running tunnel. Dropping it stops its processes.
#[derive(Debug)]
pub struct ClusterProxy {
    url: String,
    authority: PathBuf,
    agents: BTreeMap<String, [Process; 2]>,
    _hub: [Process; 2],
}

impl ClusterProxy {
    /// Starts cluster-proxy on a hub and on managed clusters, and waits until each cluster is connected.
    pub async fn start(hub: &ControlPlane, clusters: &[&ControlPlane]) -> Result<Self> {
        let started = Self::start_on(hub, clusters).await;
        started.inspect_err(|_| hub.bench.fail())
    }

    async fn start_on(hub: &ControlPlane, clusters: &[&ControlPlane]) -> Result<Self> {
        let bench = &hub.bench;
        let identity = bench.authority.serving(bench.folder("cluster-proxy")?)?;
        let authority = bench.authority.certificate();
        let [for_users, for_agents] = [ports::free()?, ports::free()?];
        let mut command = bench.command(Part::ProxyServer);
        command.args(["--server-count=1", "--proxy-strategies=destHost"]);
        command.args(["--server-bind-address=127.0.0.1", "--agent-bind-address=127.0.0.1"]);
        command.arg(format!("--server-port={for_users}"));
        command.arg(format!("--agent-port={for_agents}"));
        command.arg(format!("--admin-port={}", ports::free()?));
        command.args([
            "--health-bind-address=127.0.0.1",
            &format!("--health-port={}", ports::free()?),
        ]);
        for use_of in ["server", "cluster"] {
            command.arg(format!("--{use_of}-ca-cert={}", authority.display()));
            command.arg(format!("--{use_of}-cert={}", identity.certificate.display()));
            command.arg(format!("--{use_of}-key={}", identity.key.display()));
        }
        let proxy_server = bench.start("proxy-server", command)?;
        proxy_server.until_listening(for_users).await?;

        let port = match hub.forwarded_port()? {
            Some(port) => port,
            None => ports::free()?,
        };
        let mut command = bench.command(Part::ClusterProxy);
        command.args(["user-server", "--host=127.0.0.1", &format!("--port={for_users}")]);
        command.arg(format!("--server-port={port}"));
        command.arg(format!("--agent-install-namespace={NAMESPACE}"));
        for file in ["proxy-ca-cert", "service-proxy-ca-cert"] {
            command.arg(format!("--{file}={}", authority.display()));
        }
        for (certificate, key) in [("proxy-cert", "proxy-key"), ("server-cert", "server-key")] {
            command.arg(format!("--{certificate}={}", identity.certificate.display()));
            command.arg(format!("--{key}={}", identity.key.display()));
        }
        command.env("HEALTH_ADDRESS", format!("127.0.0.1:{}", ports::free()?));
        command.env("KUBECONFIG", hub.kubeconfig_path());
        let user_server = bench.start("user-server", command)?;
        user_server.until_listening(port).await?;

        let mut proxy = Self {
            url: format!("https://127.0.0.1:{port}"),
            authority: authority.to_owned(),
            agents: BTreeMap::new(),
            _hub: [proxy_server, user_server],
        };
        for cluster in clusters {
            let agents = start_agents(hub, cluster, for_agents).await?;
            proxy.agents.insert(cluster.name().to_owned(), agents);
        }
        Ok(proxy)
    }

    /// Returns the URL of the user-server, `https://127.0.0.1:…`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the file with the certificate authority of the user-server.
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// Creates the Service and the Pod of the user-server on a hub with nodes, as the add-on's chart does.
    pub async fn create_pod(&self, hub: &ControlPlane) -> Result<()> {
        let labels = json!({"component": USER_SERVER});
        hub.create_namespace(HUB_NAMESPACE).await?;
        hub.apply(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": USER_SERVER, "namespace": HUB_NAMESPACE},
            "spec": {"selector": labels, "ports": [{"port": 9092, "targetPort": 9092}]},
        }))
        .await?;
        hub.apply(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": USER_SERVER, "namespace": HUB_NAMESPACE, "labels": labels},
            "spec": {"containers": [{"name": "user-server", "image": "example.com/cluster-proxy:v0.10.0"}]},
        }))
        .await?;
        let pod = ObjectRef::namespaced("v1", "Pod", HUB_NAMESPACE, USER_SERVER);
        hub.wait_for(&pod, |pod| is_true(pod, "Ready")).await?;
        Ok(())
    }
}

/// Starts the service-proxy and the proxy-agent of a managed cluster, with the permissions that the add-on's chart grants.
async fn start_agents(hub: &ControlPlane, cluster: &ControlPlane, for_agents: u16) -> Result<[Process; 2]> {
    let (name, bench) = (cluster.name(), &cluster.bench);
    let folder = bench.folder(&format!("{name}/cluster-proxy"))?;
    let identity = bench.authority.serving(folder.clone())?;
    let authority = bench.authority.certificate();
    let reviews = json!({"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]});
    let impersonates = json!({"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]});
    cluster.create_namespace(NAMESPACE).await?;
    grant(cluster, NAMESPACE, &[&reviews, &impersonates]).await?;
    grant(hub, name, &[&reviews]).await?;
    let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)?;
    let read: Value = serde_json::from_slice(&fs::read(&kubeconfig)?)?;
    let token = read["users"][0]["user"]["token"].as_str().context("a token")?;
    fs::write(folder.join("token"), token)?;
    fs::copy(authority, folder.join("ca.crt"))?;

    let port = ports::free()?;
    let address = format!("127.0.0.1:{port}");
    let mut command = bench.command(Part::ClusterProxy);
    command.args(["service-proxy", "--enable-impersonation=true"]);
    command.arg("--cert").arg(&identity.certificate);
    command.arg("--key").arg(&identity.key);
    command
        .arg("--hub-kubeconfig")
        .arg(hub.service_account_kubeconfig(name, ACCOUNT)?);
    command.env("KUBECONFIG", kubeconfig).env("SERVICE_ACCOUNT", &folder);
    command.env("SERVICE_PROXY", &address);
    command.env("HEALTH_ADDRESS", format!("127.0.0.1:{}", ports::free()?));
    command.env("API_SERVER", cluster.url().trim_start_matches("https://"));
    let service_proxy = bench.start(&format!("service-proxy-{name}"), command)?;
    service_proxy.until_listening(port).await?;

    let health = ports::free()?;
    let mut command = bench.command(Part::ProxyAgent);
    command.args([
        "--proxy-server-host=127.0.0.1",
        &format!("--proxy-server-port={for_agents}"),
    ]);
    command.arg(format!("--agent-identifiers=host={}", host(name)));
    command.arg(format!("--ca-cert={}", authority.display()));
    command.arg(format!("--agent-cert={}", identity.certificate.display()));
    command.arg(format!("--agent-key={}", identity.key.display()));
    command.args([
        "--health-server-host=127.0.0.1",
        &format!("--health-server-port={health}"),
    ]);
    command.args([
        "--admin-bind-address=127.0.0.1",
        &format!("--admin-server-port={}", ports::free()?),
    ]);
    command.env("SERVICE_PROXY", address);
    let agent = bench.start(&format!("proxy-agent-{name}"), command)?;
    // It is ready while it is connected.
    let is_ready = async || {
        let path = format!("http://127.0.0.1:{health}/readyz");
        http_status(&path).await.is_some_and(|status| status == 200)
    };
    agent.until_ready(is_ready).await?;
    Ok([service_proxy, agent])
}

/// Returns the name under which the hub reaches the service-proxy of a cluster.
fn host(cluster: &str) -> String {
    let hash = digest::digest(&digest::SHA256, cluster.as_bytes());
    let mut name = "cluster-".to_owned();
    for byte in hash.as_ref() {
        let _ = write!(name, "{byte:02x}");
    }
    format!("{}.open-cluster-management.proxy", &name[..64 - "cluster-".len()])
}

/// Creates the service account of the add-on's agent, with these rules in all namespaces.
async fn grant(plane: &ControlPlane, namespace: &str, rules: &[&Value]) -> Result<()> {
    let name = format!("{ACCOUNT}-{namespace}");
    let group = "rbac.authorization.k8s.io";
    let api_version = format!("{group}/v1");
    let account = json!({"name": ACCOUNT, "namespace": namespace});
    plane
        .apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}))
        .await?;
    plane
        .apply(&json!({"apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}))
        .await?;
    plane
        .apply(&json!({
            "apiVersion": api_version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        }))
        .await?;
    Ok(())
}

/// Returns the status of the response to a request without TLS.
async fn http_status(url: &str) -> Option<u16> {
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let request = http::Request::get(url).body(String::new()).ok()?;
    Some(client.request(request).await.ok()?.status().as_u16())
}
