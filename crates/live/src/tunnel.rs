//! Reads from the API server of a managed cluster, through OCM's cluster-proxy. What a cluster sends is bounded in size and time.

use crate::limits::{ANSWER_TIMEOUT, BYTES_PER_VALUE, REACH_TIMEOUT};
use crate::pace::Pace;
use crate::refusal::HttpRefusal;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hub::{explain, reason};
use kube::client::Body;
use kube::{Client, Config};
use manifest::text::shortened;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// The ServiceAccount in Argo CD's namespace whose tokens clusters receive by default.
pub const CLUSTER_ACCOUNT: &str = "argocd-ocm-cmp-live-clusters";

/// Returns the name that a cluster has for this account in a namespace of the hub.
pub fn cluster_user(namespace: &str) -> String {
    format!("cluster:hub:system:serviceaccount:{namespace}:{CLUSTER_ACCOUNT}")
}

/// The lifetime of a token for clusters, in seconds: the shortest that Kubernetes issues.
const TOKEN_SECONDS: u64 = 600;

/// The age at which a token is replaced.
const TOKEN_AGE: Duration = Duration::from_secs(300);

/// The maximum size of an answer without an object, in bytes.
const ERROR_BYTES: usize = 64 << 10;

/// The maximum length of a part of a message that a cluster has written, in bytes.
const QUOTED_MAX: usize = 300;

/// The whole answer of an API server about an API group that it does not serve.
const UNKNOWN_GROUP: &str = "404 page not found";

/// The configuration of a tunnel with the tokens of a ServiceAccount.
#[derive(Clone, Debug)]
pub struct TunnelOptions {
    /// The URL of cluster-proxy's user-server.
    pub url: Uri,
    /// The file with the certificate authority that has signed its certificate.
    pub authority: PathBuf,
    /// The namespace of the account.
    pub namespace: String,
    /// The ServiceAccount on the hub whose tokens are sent to clusters. A cluster can read them, so the account has no rights on the hub.
    pub account: String,
}

/// A connection to cluster-proxy.
pub struct Tunnel {
    url: Uri,
    client: Client,
    identity: TunnelIdentity,
    pace: Pace,
}

/// The identity that a cluster sees.
#[expect(clippy::large_enum_variant, reason = "a process has one tunnel")]
enum TunnelIdentity {
    /// A ServiceAccount on the hub.
    Account {
        hub: Client,
        /// Its namespace and name.
        account: [String; 2],
        token: Mutex<Option<(HeaderValue, Instant)>>,
    },
    /// The user whose token the client sends.
    User,
}

/// What a cluster says about an object.
#[derive(Debug)]
pub enum ObjectLookup<T> {
    /// It exists.
    Yes(T),
    /// It does not exist; with the message of the API server.
    No(String),
}

impl Tunnel {
    /// Creates a tunnel. Sends nothing yet.
    ///
    /// # Errors
    /// Returns one line if the configuration is invalid.
    pub fn new(options: TunnelOptions, hub: Client) -> Result<Self, String> {
        if options.url.scheme_str() != Some("https") {
            return Err(format!(
                "the URL of cluster-proxy's user-server is {}: use one with https",
                options.url
            ));
        }
        let mut config = Config::new(options.url.clone());
        config.root_cert_file = Some(options.authority.clone());
        config.connect_timeout = Some(REACH_TIMEOUT);
        config.read_timeout = None;
        config.default_retry = false;
        let client = Client::try_from(config);
        let client = client.map_err(|error| {
            let file = options.authority.display();
            format!(
                "no client for cluster-proxy with the certificate authority {file}: {}",
                reason(&error)
            )
        })?;
        Ok(Self {
            url: options.url,
            client,
            identity: TunnelIdentity::Account {
                hub,
                account: [options.namespace, options.account],
                token: Mutex::new(None),
            },
            pace: Pace::default(),
        })
    }

    /// Creates a tunnel from a client of the user-server at this URL, which sends the token of a user. Sends nothing yet.
    pub fn of_user(url: Uri, client: Client) -> Self {
        Self {
            url,
            client,
            identity: TunnelIdentity::User,
            pace: Pace::default(),
        }
    }

    /// Reads the JSON object of a path on a cluster, of at most `max` bytes, with few enough values to be parsed.
    ///
    /// # Errors
    /// Returns an error if the cluster cannot be reached, refuses the request, or answers with something else.
    pub async fn get_text(&self, cluster: &str, path: &str, max: usize) -> Result<ObjectLookup<Vec<u8>>, HttpRefusal> {
        let read = async {
            let response = match self.open(cluster, path).await? {
                ObjectLookup::Yes(response) => response,
                ObjectLookup::No(message) => return Ok(ObjectLookup::No(message)),
            };
            if !is_json(&response) {
                return Err(no_object(cluster));
            }
            let text = read_body(cluster, response.into_body(), max).await?;
            if has_too_many_values(&text, max) {
                let line = format!(
                    "cluster {cluster} answers with more than {} values",
                    max / BYTES_PER_VALUE
                );
                return Err(HttpRefusal::nonsense(line));
            }
            if text.trim_ascii_start().starts_with(b"{") {
                Ok(ObjectLookup::Yes(text))
            } else {
                Err(no_object(cluster))
            }
        };
        timeout(ANSWER_TIMEOUT, read).await.unwrap_or_else(|_| {
            Err(HttpRefusal::unreachable(format!(
                "cluster {cluster} has not sent its answer within {} s: try again",
                ANSWER_TIMEOUT.as_secs()
            )))
        })
    }

    /// Reads the object of a path on a cluster, of at most `max` bytes.
    ///
    /// # Errors
    /// See [`Tunnel::get_text`].
    pub async fn get(&self, cluster: &str, path: &str, max: usize) -> Result<ObjectLookup<Value>, HttpRefusal> {
        Ok(match self.get_text(cluster, path, max).await? {
            ObjectLookup::Yes(text) => {
                ObjectLookup::Yes(serde_json::from_slice(&text).map_err(|_| no_object(cluster))?)
            }
            ObjectLookup::No(message) => ObjectLookup::No(message),
        })
    }

    /// Sends a request for a path, and returns the successful response as soon as it begins.
    ///
    /// # Errors
    /// Returns an error if the cluster cannot be reached or refuses the request.
    pub async fn open(&self, cluster: &str, path: &str) -> Result<ObjectLookup<Response<Body>>, HttpRefusal> {
        self.pace.wait(cluster).await?;
        let opened = async {
            let mut response = self.send(cluster, path).await?;
            // The token may have been revoked before its time.
            if response.status() == StatusCode::UNAUTHORIZED && self.identity.forget_token().await {
                response = self.send(cluster, path).await?;
            }
            // A connection through the tunnel sometimes breaks at its start; a read can be repeated.
            if response.status() == StatusCode::BAD_GATEWAY && !is_json(&response) {
                response = self.send(cluster, path).await?;
            }
            evaluate(cluster, response, self.identity.remedy()).await
        };
        timeout(REACH_TIMEOUT, opened).await.unwrap_or_else(|_| {
            Err(HttpRefusal::unreachable(format!(
                "cluster {cluster} has not answered within {} s: check the add-on cluster-proxy of the cluster",
                REACH_TIMEOUT.as_secs()
            )))
        })
    }

    async fn send(&self, cluster: &str, path: &str) -> Result<Response<Body>, HttpRefusal> {
        let mut request = Request::get(format!("/{cluster}{path}"));
        if let Some(token) = self.identity.token().await? {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request
            .body(Body::empty())
            .map_err(|_| HttpRefusal::invalid("the identity of the object in the work is not supported"))?;
        self.client.send(request).await.map_err(|error| {
            HttpRefusal::unreachable(format!(
                "cluster-proxy cannot be reached at {}: {}: check its user-server",
                self.url,
                reason(&error)
            ))
            .general()
        })
    }
}

impl TunnelIdentity {
    /// Returns the remedy if a cluster denies a permission.
    fn remedy(&self) -> &'static str {
        match self {
            Self::Account { .. } => "deliver deploy/live_cluster_rbac.yaml to it, with a rule for this kind",
            Self::User => "ask an administrator of the cluster for this permission",
        }
    }

    /// Makes the next request ask for another token; false if the client sends that of a user.
    async fn forget_token(&self) -> bool {
        let Self::Account { token, .. } = self else {
            return false;
        };
        *token.lock().await = None;
        true
    }

    /// Returns the value of the header with a token, unless the client sends it.
    async fn token(&self) -> Result<Option<HeaderValue>, HttpRefusal> {
        let Self::Account {
            hub,
            account: [namespace, account],
            token,
        } = self
        else {
            return Ok(None);
        };
        let mut token = token.lock().await;
        if let Some((header, created)) = &*token
            && created.elapsed() < TOKEN_AGE
        {
            return Ok(Some(header.clone()));
        }
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        });
        let request = Request::post(path)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(|_| HttpRefusal::nonsense("the name of the account for clusters is invalid"))?;
        let created = Instant::now();
        let answer: Value = hub.request(request).await.map_err(|error| {
            HttpRefusal::nonsense(format!(
                "the hub issues no token for ServiceAccount {namespace}/{account}: {}",
                explain(&error)
            ))
        })?;
        let text = answer["status"]["token"].as_str().unwrap_or_default();
        let mut header = HeaderValue::try_from(format!("Bearer {text}"))
            .map_err(|_| HttpRefusal::nonsense("the hub issues a token that is no text"))?;
        header.set_sensitive(true);
        *token = Some((header.clone(), created));
        Ok(Some(header))
    }
}

/// Returns a successful response, or the reason in another one.
async fn evaluate(
    cluster: &str,
    response: Response<Body>,
    remedy: &str,
) -> Result<ObjectLookup<Response<Body>>, HttpRefusal> {
    let status = response.status();
    if status == StatusCode::OK {
        return Ok(ObjectLookup::Yes(response));
    }
    if status.is_redirection() || status.is_success() || status.is_informational() {
        return Err(HttpRefusal::nonsense(format!(
            "cluster {cluster} answers with {status}: check the add-on cluster-proxy of the cluster"
        )));
    }
    let is_api_server = is_json(&response);
    let body = read_body(cluster, response.into_body(), ERROR_BYTES).await;
    let body = body.unwrap_or_default();
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    if is_api_server && answer["kind"] == "Status" {
        let message = shortened(answer["message"].as_str().unwrap_or_default(), QUOTED_MAX).into_owned();
        return match status {
            StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST => Ok(ObjectLookup::No(message)),
            StatusCode::FORBIDDEN => Err(HttpRefusal::new(
                status,
                format!("cluster {cluster} refuses: {message}: {remedy}"),
            )),
            StatusCode::UNAUTHORIZED => Err(not_accepted(cluster, &message)),
            _ => Err(HttpRefusal::nonsense(format!(
                "cluster {cluster} answers with {status}: {message}"
            ))),
        };
    }
    let text = String::from_utf8_lossy(&body);
    let text = shortened(text.trim(), QUOTED_MAX);
    match status {
        StatusCode::NOT_FOUND if text == UNKNOWN_GROUP => {
            Ok(ObjectLookup::No("the cluster does not serve this API group".to_owned()))
        }
        StatusCode::UNAUTHORIZED => Err(not_accepted(cluster, &text)),
        // The user-server answers so if no agent of the cluster is connected.
        StatusCode::BAD_REQUEST
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Err(HttpRefusal::unreachable(format!(
            "cluster {cluster} cannot be reached through cluster-proxy: install and check its add-on cluster-proxy ({text})"
        ))
        .general()),
        _ => Err(HttpRefusal::nonsense(format!(
            "cluster {cluster} answers with {status}, not with a Kubernetes object"
        ))),
    }
}

fn not_accepted(cluster: &str, message: &str) -> HttpRefusal {
    HttpRefusal::nonsense(format!(
        "cluster {cluster} does not accept the token: renew it, or enable impersonation of cluster-proxy's service-proxy for tokens of the hub \
         ({message})"
    ))
    .general()
}

fn is_json(response: &Response<Body>) -> bool {
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    content_type.is_some_and(|content_type| {
        content_type
            .split(';')
            .next()
            .is_some_and(|text| text.trim() == "application/json")
    })
}

/// Returns the number of values in a JSON text, or more: separators in strings count too.
fn count_values(text: &[u8]) -> usize {
    text.iter().filter(|byte| b",[{".contains(byte)).count()
}

/// Returns true if a text has more values than one of `max` bytes may have.
pub fn has_too_many_values(text: &[u8], max: usize) -> bool {
    count_values(text) > max / BYTES_PER_VALUE
}

/// Returns the refusal of an answer that is no object.
pub fn no_object(cluster: &str) -> HttpRefusal {
    HttpRefusal::nonsense(format!(
        "cluster {cluster} answers with something else than a Kubernetes object"
    ))
}

/// Reads a body of at most `max` bytes.
async fn read_body(cluster: &str, mut body: Body, max: usize) -> Result<Vec<u8>, HttpRefusal> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            HttpRefusal::unreachable(format!("the answer of cluster {cluster} is incomplete: try again"))
        })?;
        if let Ok(data) = frame.into_data() {
            if bytes.len().saturating_add(data.len()) > max {
                let line = format!("cluster {cluster} answers with more than {} MiB", max >> 20);
                return Err(HttpRefusal::nonsense(line));
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{OBJECT_BYTES, PAGE_BYTES};
    use jiff::Timestamp;
    use rustls::ServerConfig;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tempfile::TempDir;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::server::TlsStream;
    use tower::service_fn;

    /// Returns a certificate of 127.0.0.1 with its key.
    fn certificate() -> (Vec<u8>, Vec<u8>) {
        let time = |seconds| Timestamp::from_second(seconds).expect("a time");
        let validity = time(1_600_000_000)..time(4_000_000_000);
        pki::self_signed("user-server", &["127.0.0.1".into()].into(), validity).expect("a certificate")
    }

    /// Starts a user-server that answers each request by `answer`, and returns a tunnel to it, which trusts `trusted` or else its
    /// certificate.
    async fn tunnel<F>(answer: F, trusted: Option<Vec<u8>>) -> (Tunnel, TempDir)
    where
        F: AsyncFn(String, &mut TlsStream<TcpStream>) + Clone + 'static,
    {
        let (certificate, key) = certificate();
        let folder = tempfile::tempdir().expect("a folder");
        let authority = folder.path().join("ca.crt");
        std::fs::write(&authority, trusted.as_ref().unwrap_or(&certificate)).expect("a file");
        let chain = vec![CertificateDer::from_pem_slice(&certificate).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_slice(&key).expect("a key");
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key);
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("a configuration")));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer) = (acceptor.clone(), answer.clone());
                tokio::task::spawn_local(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        request.push(byte);
                    }
                    answer(String::from_utf8_lossy(&request).into_owned(), &mut stream).await;
                    let _closed = stream.shutdown().await;
                });
            }
        });
        let issued = Arc::new(AtomicUsize::new(0));
        let hub = service_fn(move |_: Request<Body>| {
            let number = issued.fetch_add(1, Ordering::Relaxed);
            let token = json!({"status": {"token": format!("of-the-hub-{number}")}}).to_string();
            async { Ok::<_, Infallible>(Response::new(Body::from(token.into_bytes()))) }
        });
        let options = TunnelOptions {
            url: url.parse().expect("a URL"),
            authority,
            namespace: "argocd".to_owned(),
            account: "clusters".to_owned(),
        };
        (
            Tunnel::new(options, Client::new(hub, "default")).expect("a tunnel"),
            folder,
        )
    }

    /// Returns what a tunnel makes of these answers, of which it reads so many bytes.
    async fn read<F>(answer: F, trusted: Option<Vec<u8>>, max: usize) -> Result<ObjectLookup<Value>, HttpRefusal>
    where
        F: AsyncFn(String, &mut TlsStream<TcpStream>) + Clone + 'static,
    {
        let read = async {
            let (tunnel, _folder) = tunnel(answer, trusted).await;
            tunnel.get("eu1", "/api/v1/pods?a=b", max).await
        };
        tokio::task::LocalSet::new().run_until(read).await
    }

    /// Returns what a tunnel makes of a response.
    async fn response_to(response: &str) -> Result<ObjectLookup<Value>, HttpRefusal> {
        let response = response.to_owned();
        let answer = async move |_: String, stream: &mut TlsStream<TcpStream>| {
            let _gone = stream.write_all(response.as_bytes()).await;
        };
        read(answer, None, 1_000).await
    }

    fn http(status: &str, content_type: &str, body: &str) -> String {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nlocation: https://example.com/\r\n\r\n{body}"
        )
    }

    const JSON: &str = "application/json";

    #[tokio::test]
    async fn replaces_a_revoked_token_once() {
        let ask = async |is_accepted: fn(&str) -> bool| {
            let answer = async move |request: String, stream: &mut TlsStream<TcpStream>| {
                let response = if is_accepted(&request) {
                    http("200 OK", JSON, r#"{"kind": "Pod"}"#)
                } else {
                    http("401 Unauthorized", JSON, r#"{"kind": "Status", "message": "revoked"}"#)
                };
                let _gone = stream.write_all(response.as_bytes()).await;
            };
            read(answer, None, 1_000).await
        };
        let renewed = ask(|request| request.contains("Bearer of-the-hub-1")).await;
        assert!(matches!(renewed, Ok(ObjectLookup::Yes(_))), "{renewed:?}");
        let refused = ask(|request| request.contains("Bearer of-the-hub-2")).await;
        let refused = refused.expect_err("the cluster accepts neither token");
        assert!(refused.line.contains("does not accept the token"), "{}", refused.line);
    }

    #[tokio::test]
    async fn reads_objects_and_says_why_there_is_none() {
        let pod = response_to(&http("200 OK", "application/json; charset=utf-8", r#"{"kind": "Pod"}"#)).await;
        assert!(matches!(pod, Ok(ObjectLookup::Yes(object)) if object["kind"] == "Pod"));
        let missing = response_to(&http(
            "404 Not Found",
            JSON,
            r#"{"kind": "Status", "message": "no such Pod"}"#,
        ))
        .await;
        assert!(matches!(missing, Ok(ObjectLookup::No(message)) if message == "no such Pod"));
        // The CRD is not installed.
        let unknown = response_to(&http(
            "404 Not Found",
            "text/plain; charset=utf-8",
            "404 page not found\n",
        ))
        .await;
        assert!(matches!(unknown, Ok(ObjectLookup::No(_))), "{unknown:?}");
    }

    #[tokio::test]
    async fn refuses_what_is_no_answer_of_an_api_server() {
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(2_000));
        let deep = "[".repeat(500);
        let status = |message: &str| json!({"kind": "Status", "message": message}).to_string();
        let (broken, forbidden) = (status("broken\nwebhook"), status("pods is forbidden"));
        let error = "500 Internal Server Error";
        for (head, kind, body, code, part) in [
            ("200 OK", "text/html", "<html>", 502, "something else"),
            ("200 OK", JSON, "{]", 502, "something else"),
            ("200 OK", JSON, "[]", 502, "something else"),
            ("200 OK", JSON, &deep, 502, "more than 62 values"),
            ("200 OK", JSON, "\"\u{1b}[31m\"", 502, "something else"),
            ("200 OK", JSON, &long, 502, "more than"),
            ("302 Found", JSON, "", 502, "302 Found"),
            ("101 Switching Protocols", JSON, "", 502, "101"),
            ("204 No Content", JSON, "", 502, "204"),
            (error, "text/html", "<h1>\u{1b}[31m", 502, "500"),
            (error, JSON, &broken, 502, "broken webhook"),
            ("404 Not Found", "text/html", "<h1>no such page", 502, "404 Not Found"),
            ("401 Unauthorized", "text/plain", "", 502, "does not accept the token"),
            ("403 Forbidden", JSON, &forbidden, 403, "deploy/live_cluster_rbac.yaml"),
            ("502 Bad Gateway", "text/plain", "No agent", 504, "No agent"),
            ("", "", "", 504, "cannot be reached"),
        ] {
            let response = if head.is_empty() {
                String::new()
            } else {
                http(head, kind, body)
            };
            let refused = response_to(&response).await.expect_err(&response);
            assert_eq!(refused.status, code, "{response}: {refused:?}");
            let is_general = head.is_empty() || head.starts_with("401") || code == 504;
            assert_eq!(refused.is_general, is_general, "{response}: {refused:?}");
            assert!(refused.line.contains(part), "{response}: {refused:?}");
            assert!(
                !refused.line.contains(char::is_control) && refused.line.len() < 1_200,
                "{refused:?}"
            );
        }
        let nonsense = response_to("nonsense\r\n\r\n").await.expect_err("no HTTP");
        assert_eq!(nonsense.status, 504, "{nonsense:?}");
    }

    #[tokio::test]
    async fn reads_no_more_of_an_endless_answer() {
        let answer = async |_: String, stream: &mut TlsStream<TcpStream>| {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\n\r\n");
            let piece = vec![b'['; 1 << 16];
            let mut sent = 0_usize;
            let _gone = stream.write_all(head.as_bytes()).await;
            // The reader closes the connection long before the end.
            while sent < 1 << 30 && stream.write_all(&piece).await.is_ok() {
                sent += piece.len();
            }
            assert!(sent < 2 * PAGE_BYTES, "{sent} bytes were read");
        };
        let refused = read(answer, None, OBJECT_BYTES).await.expect_err("endless");
        assert_eq!(
            (refused.status.as_u16(), refused.line.contains("more than 4 MiB")),
            (502, true),
            "{refused:?}"
        );
    }

    #[tokio::test]
    async fn gives_up_on_a_cluster_that_does_not_answer() {
        let silent = async |_: String, _: &mut TlsStream<TcpStream>| std::future::pending::<()>().await;
        let stalls = async |_: String, stream: &mut TlsStream<TcpStream>| {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ncontent-length: 100\r\n\r\n{{");
            let _gone = stream.write_all(head.as_bytes()).await;
            std::future::pending::<()>().await;
        };
        let (silent, stalls) = tokio::join!(read(silent, None, 1_000), read(stalls, None, 1_000));
        let (silent, stalls) = (silent.expect_err("silence"), stalls.expect_err("no end"));
        assert_eq!((silent.status.as_u16(), stalls.status.as_u16()), (504, 504));
        assert!(
            silent.line.contains("within 5 s") && stalls.line.contains("within 15 s"),
            "{silent:?} {stalls:?}"
        );
    }

    #[tokio::test]
    async fn sends_its_token_only_to_the_user_server_that_it_trusts() {
        let answer = async |request: String, stream: &mut TlsStream<TcpStream>| {
            let _gone = stream
                .write_all(http("200 OK", JSON, &json!({"request": request}).to_string()).as_bytes())
                .await;
        };
        let Ok(ObjectLookup::Yes(seen)) = read(answer, None, 1_000).await else {
            panic!("an answer")
        };
        let request = seen["request"].as_str().expect("a request").to_ascii_lowercase();
        assert!(
            request.starts_with("get /eu1/api/v1/pods?a=b http/1.1\r\n"),
            "{request}"
        );
        assert!(
            request.contains("\r\nauthorization: bearer of-the-hub-0\r\n"),
            "{request}"
        );
        let theirs = read(answer, Some(certificate().0), 1_000).await;
        let refused = theirs.expect_err("another certificate authority");
        assert_eq!(refused.status, 504, "{refused:?}");
        assert!(
            Tunnel::new(
                TunnelOptions {
                    url: "http://127.0.0.1:1".parse().expect("a URL"),
                    authority: PathBuf::from("/none"),
                    namespace: String::new(),
                    account: String::new(),
                },
                Client::new(
                    service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty()))),
                    "default"
                ),
            )
            .is_err()
        );
    }
}
