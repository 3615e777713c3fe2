//! The tunnel of a user: their own token, and a way to cluster-proxy from outside the hub.
//!
//! The API server of the hub forwards a port of cluster-proxy's Pod, as for `kubectl port-forward`. Its proxy of Services is of no use:
//! it removes the token that identifies the user to a cluster.

use crate::refusal::HttpRefusal;
use crate::tunnel::Tunnel;
use http::Uri;
use hub::{explain, reason};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::client::{Body, ConfigExt};
use kube::config::AuthInfo;
use kube::core::Request;
use kube::core::params::GetParams;
use kube::{Api, Client, Config, Error};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tower::{BoxError, ServiceBuilder};

/// Returns the credentials of a user that cluster-proxy passes on: a token, either this one or, if `sends_own`, that in the credentials.
///
/// The proxy on the cluster gets the token, to ask its API server, and then the hub, whose it is. So whoever rules the cluster can use a token of
/// the hub there until it expires.
///
/// # Errors
/// Returns one line if the user has no token, or has not agreed to send it.
pub fn token_credentials(
    mut credentials: AuthInfo,
    token: Option<String>,
    sends_own: bool,
) -> Result<AuthInfo, String> {
    const REMEDY: &str = "pass a token with --token, such as that of `kubectl create token NAME`";
    if let Some(text) = token {
        return Ok(AuthInfo {
            token: Some(hub::trim_token(&text)?.to_owned().into()),
            ..AuthInfo::default()
        });
    }
    if credentials.impersonate.is_some() {
        return Err(format!(
            "the kubeconfig impersonates another user, which managed clusters do not accept: {REMEDY}"
        ));
    }
    let has_token = credentials.token.is_some()
        || credentials.token_file.is_some()
        || credentials.exec.is_some()
        || credentials.auth_provider.is_some();
    if !has_token {
        return Err(format!(
            "the kubeconfig has a client certificate and no token, and only a token reaches managed clusters: {REMEDY}"
        ));
    }
    if !sends_own {
        return Err(format!(
            "the managed cluster would receive the token of the kubeconfig, and could act as you on the hub: {REMEDY}, or \
             --send-my-token if you trust the cluster"
        ));
    }
    credentials.client_certificate = None;
    credentials.client_certificate_data = None;
    credentials.client_key = None;
    credentials.client_key_data = None;
    Ok(credentials)
}

/// Connects a user to cluster-proxy at this URL, whose certificate `authority` has signed; through the API server of the hub if the host
/// is a Service. Idle connections of the client of the hub must stay open.
///
/// # Errors
/// Returns an error if the configuration is invalid, or if the Service has no Pod.
pub async fn connect(hub: &Client, url: Uri, authority: &[u8], credentials: AuthInfo) -> Result<Tunnel, HttpRefusal> {
    if url.scheme_str() != Some("https") {
        return Err(HttpRefusal::invalid(format!(
            "--cluster-proxy {url} is not a URL with https"
        )));
    }
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(authority).collect();
    let certificates = certificates.ok().filter(|list| !list.is_empty());
    let certificates = certificates
        .ok_or_else(|| HttpRefusal::invalid("the certificate authority of cluster-proxy has no certificate"))?;
    let mut config = Config::new(url.clone());
    config.root_cert = Some(certificates.iter().map(|certificate| certificate.to_vec()).collect());
    config.auth_info = credentials;
    config.read_timeout = None;
    config.default_retry = false;
    let client = match service_of(&url) {
        None => Client::try_from(config),
        Some((name, namespace)) => {
            let port = url.port_u16().unwrap_or(443);
            let pod = PodPort::of_service(hub, namespace, name, port).await?;
            forwarded(&config, pod)
        }
    };
    let client =
        client.map_err(|error| HttpRefusal::invalid(format!("no client for cluster-proxy: {}", reason(&error))))?;
    Ok(Tunnel::of_user(url, client))
}

/// Returns the name and namespace of the Service that a URL names.
fn service_of(url: &Uri) -> Option<(&str, &str)> {
    let host = url.host()?;
    let host = host.strip_suffix(".cluster.local").unwrap_or(host);
    host.strip_suffix(".svc")?.split_once('.')
}

/// Creates a client whose connections the API server of the hub forwards.
fn forwarded(config: &Config, pod: PodPort) -> Result<Client, Error> {
    let connector = tower::service_fn(move |_: Uri| {
        let pod = pod.clone();
        async move { pod.connect().await }
    });
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(Client::new(service, "default"))
}

/// A port of a Pod on the hub.
#[derive(Clone)]
struct PodPort {
    pods: Api<Pod>,
    pod: String,
    port: u16,
}

impl PodPort {
    /// Finds a ready Pod of a Service.
    async fn of_service(hub: &Client, namespace: &str, name: &str, port: u16) -> Result<Self, HttpRefusal> {
        let place = format!("Service {namespace}/{name} of cluster-proxy");
        let unreadable = |error: &Error| {
            let line = format!("{place} cannot be reached: {}: check --cluster-proxy", explain(error));
            HttpRefusal::unreachable(line)
        };
        let read = async |request: Result<http::Request<Vec<u8>>, _>| {
            let request = request.map_err(|error| unreadable(&Error::BuildRequest(error)))?;
            hub.request::<Value>(request).await.map_err(|error| unreadable(&error))
        };
        let services = format!("/api/v1/namespaces/{namespace}/services");
        let service = read(Request::new(&services).get(name, &GetParams::default())).await?;
        let selector = service["spec"]["selector"].as_object().into_iter().flatten();
        let selector: Vec<_> = selector
            .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
            .collect();
        if selector.is_empty() {
            return Err(HttpRefusal::unreachable(format!(
                "{place} selects no Pods: check --cluster-proxy"
            )));
        }
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let listed = ListParams::default().labels(&selector.join(","));
        let list = read(Request::new(&pods).list(&listed)).await?;
        let (pod, port) = target(&service, &list, port).ok_or_else(|| {
            HttpRefusal::unreachable(format!("{place} has no ready Pod with port {port}: check its Pods"))
        })?;
        Ok(Self {
            pods: Api::namespaced(hub.clone(), namespace),
            pod,
            port,
        })
    }

    async fn connect(&self) -> io::Result<TokioIo<PodStream>> {
        let failed = |line: &str| io::Error::other(format!("Pod {} on the hub: {line}", self.pod));
        let forwarded = self.pods.portforward(&self.pod, &[self.port]).await;
        let mut forwarded = forwarded.map_err(|error| failed(&explain(&error)))?;
        let stream = forwarded.take_stream(self.port).ok_or_else(|| failed("no stream"))?;
        Ok(TokioIo::new(PodStream(stream)))
    }
}

/// Returns a ready Pod of a Service, and its port behind this port of the Service.
fn target(service: &Value, pods: &Value, port: u16) -> Option<(String, u16)> {
    let ports = service["spec"]["ports"].as_array()?;
    let target = &ports.iter().find(|value| value["port"] == port)?["targetPort"];
    let is_ready = |pod: &&Value| {
        let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let pod = pods["items"].as_array()?.iter().find(is_ready)?;
    let number = match target {
        Value::String(name) => {
            let containers = pod["spec"]["containers"].as_array()?.iter();
            let mut ports = containers
                .filter_map(|container| container["ports"].as_array())
                .flatten();
            ports.find(|port| port["name"] == **name)?["containerPort"].as_u64()?
        }
        Value::Number(number) => number.as_u64()?,
        _ => port.into(),
    };
    Some((pod["metadata"]["name"].as_str()?.to_owned(), number.try_into().ok()?))
}

/// A forwarded connection.
struct PodStream(DuplexStream);

impl Connection for PodStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for PodStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for PodStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_tokens_that_the_user_agrees_to_send_reach_clusters() {
        let refused = token_credentials(AuthInfo::default(), None, true).expect_err("no token");
        assert!(refused.contains("--token"), "{refused}");
        let certificate = AuthInfo {
            client_certificate_data: Some("x".to_owned()),
            token: Some("t".to_owned().into()),
            ..AuthInfo::default()
        };
        let refused = token_credentials(certificate.clone(), None, false).expect_err("the user has not agreed");
        assert!(refused.contains("--send-my-token"), "{refused}");
        let accepted = token_credentials(certificate.clone(), None, true).expect("a token");
        assert!(accepted.client_certificate_data.is_none() && accepted.token.is_some());
        let impersonates = AuthInfo {
            impersonate: Some("ann".to_owned()),
            ..certificate
        };
        assert!(token_credentials(impersonates.clone(), None, true).is_err());
        let given = token_credentials(impersonates, Some("t".to_owned()), false).expect("a token");
        assert!(given.impersonate.is_none() && given.token.is_some());
    }

    #[test]
    fn finds_the_service_that_a_url_names() {
        let service = |url: &str| {
            let url: Uri = url.parse().expect("a URL");
            service_of(&url).map(|(name, namespace)| format!("{namespace}/{name}"))
        };
        assert_eq!(service("https://proxy.ocm.svc:9092").as_deref(), Some("ocm/proxy"));
        assert_eq!(
            service("https://proxy.ocm.svc.cluster.local").as_deref(),
            Some("ocm/proxy")
        );
        assert_eq!(service("https://proxy.example.com"), None);
    }

    #[test]
    fn finds_a_ready_pod_and_its_port() {
        let pod = |name: &str, ready: &str| {
            json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]},
                "spec": {"containers": [{"name": "a"}, {"name": "b", "ports": [{"name": "https", "containerPort": 9443}]}]}})
        };
        let pods = json!({"items": [pod("old", "False"), pod("new", "True")]});
        let service = |target: Value| json!({"spec": {"ports": [{"port": 9092, "targetPort": target}]}});
        for (port, expected) in [(json!(9443), 9443), (json!("https"), 9443), (Value::Null, 9092)] {
            let endpoint = target(&service(port), &pods, 9092);
            assert_eq!(endpoint, Some(("new".to_owned(), expected)));
        }
        assert_eq!(target(&service(json!(1)), &pods, 1), None);
        assert_eq!(target(&service(json!("http")), &pods, 9092), None);
        assert_eq!(target(&service(json!(1)), &json!({"items": []}), 9092), None);
    }
}
