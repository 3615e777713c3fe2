//! Tests of the program from the image, in a folder with only the files that Kubernetes adds to a container, and of a release with it
//! in a registry.
//!
//! `.ci/image` runs these tests, as root and with `TESTBED_PROGRAM`: a program that needs files of its machine cannot be
//! tested here.

#![allow(
    clippy::disallowed_methods,
    reason = "clippy.toml restricts the program; tests may read files and the environment"
)]

mod container;
mod name_server;
mod release;

use anyhow::Result;
use container::Container;
use name_server::NameServer;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;
use testbed::process::Process;
use testbed::{Hub, ports};

/// The name of a Service of another namespace in a cluster.
const SERVICE: &str = "hub.argocd.svc.cluster.local";

#[tokio::test]
#[ignore = "needs the image that .ci/image builds"]
async fn resolves_the_hub_by_dns_name() -> Result<()> {
    let hub = Hub::start().await?;
    let server = NameServer::start(SERVICE, Ipv4Addr::LOCALHOST)?;
    let container = Container::new()?;
    container.write(
        "etc/hosts",
        "127.0.0.1 localhost\n127.0.0.1 hub.example.com hub-by-hosts\n",
    )?;
    // The file that Kubernetes writes for a Pod of the namespace argocd, in which short names are completed.
    let resolution = format!(
        "search argocd.svc.cluster.local svc.cluster.local cluster.local\nnameserver {}\noptions ndots:5\n",
        server.address()
    );
    container.write("etc/resolv.conf", &resolution)?;
    container.write("ca.crt", &container::authority(&hub)?)?;

    let by_hosts = ["127.0.0.1", "localhost", "hub.example.com", "hub-by-hosts"];
    for name in by_hosts.into_iter().chain([SERVICE, "hub.argocd", "hub"]) {
        let error = status(&container, &hub, name)?;
        assert!(error.contains("has no Application argocd/shop"), "{name}: {error}");
    }
    let questions = server.questions();
    assert!(questions.contains(SERVICE), "{questions:?}");
    assert!(
        !questions.iter().any(|name| name.contains("example.com")),
        "/etc/hosts comes first: {questions:?}"
    );

    let error = status(&container, &hub, "nowhere.example.com")?;
    assert!(
        error.contains("cannot be reached") && error.contains("lookup"),
        "{error}"
    );
    assert!(server.questions().contains("nowhere.example.com"));
    Ok(())
}

#[tokio::test]
#[ignore = "needs the image that .ci/image builds"]
async fn the_controller_runs_as_in_a_pod() -> Result<()> {
    let hub = Hub::start().await?;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/deploy_controller.yaml");
    hub.kubectl(&["apply", "-f", file])?;
    let container = Container::new()?;
    container.write("etc/hosts", "127.0.0.1 localhost\n")?;
    let account = "var/run/secrets/kubernetes.io/serviceaccount";
    let token = ["create", "token", "--namespace", "argocd", "argocd-ocm-cmp-controller"];
    container.write(&format!("{account}/token"), hub.kubectl(&token)?.trim())?;
    container.write(&format!("{account}/ca.crt"), &container::authority(&hub)?)?;
    container.write(&format!("{account}/namespace"), "argocd")?;

    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
    let mut command = container.command();
    command.args(["controller", "--bind-address", &address.to_string()]);
    let port = hub.url().rsplit_once(':').map_or("", |(_, port)| port);
    command.envs([
        ("KUBERNETES_SERVICE_HOST", "localhost"),
        ("KUBERNETES_SERVICE_PORT", port),
    ]);
    command.envs([("POD_NAME", "controller-0"), ("POD_NAMESPACE", "argocd")]);
    let controller = Process::start("controller", command, &hub.logs().join("controller.log"))?;
    controller
        .until_ready(async || is_ready(address).unwrap_or_default())
        .await?;
    let lease = hub.kubectl("get lease --namespace=argocd --output=name")?;
    assert!(lease.contains("argocd-ocm-cmp-controller"), "{lease}");
    let ended = controller.terminate().await?;
    assert!(ended.success(), "{ended}: {}", fs::read_to_string(controller.log())?);
    Ok(())
}

/// Returns the output of `status` for an Application that does not exist, on the hub with that name.
fn status(container: &Container, hub: &Hub, name: &str) -> Result<String> {
    let kubeconfig = container::kubeconfig(hub, name)?;
    container.write("kubeconfig", &kubeconfig)?;
    let mut command = container.command();
    command.args(["status", "shop", "--kubeconfig", "/kubeconfig"]);
    let output = command.output()?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

fn is_ready(address: SocketAddr) -> Result<bool> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    connection.write_all(b"GET /readyz HTTP/1.1\r\nHost: controller\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200 "))
}
