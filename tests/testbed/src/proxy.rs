//! A proxy in front of an API server that records its requests and injects faults.

use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::future;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::stream;
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Config;
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::{self, Runtime};
use tokio::sync::watch;

use crate::control_plane::ControlPlane;
use crate::wait::DEADLINE;

/// A fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The proxy answers with this status code, in the form of an API server, which does not get the request. 429 has a
    /// `Retry-After` header of one second.
    Status(u16),
    /// There is no answer, and an open watch delivers nothing, until [`Proxy::heal`].
    Hang,
    /// The API server executes the request, and the connection breaks before its answer is complete.
    AnswerLost,
    /// A watch, also an open one, delivers the error event 410 and ends.
    Expired,
    /// The connection of a watch, also of an open one, is reset at this age.
    ResetAfter(Duration),
    /// A watch, also an open one, ends normally at this age.
    EndAfter(Duration),
}

/// The number of times that a fault occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Until [`Proxy::heal`].
    Always,
    /// For this number of requests.
    Next(usize),
}

/// A request to the proxy.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The time of its arrival.
    pub at: Instant,
    /// The verb of RBAC: `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`.
    pub verb: &'static str,
    /// The resource of RBAC, such as `applications` or `manifestworks/status`; empty if there is none.
    pub resource: String,
    /// The namespace, if the path names one.
    pub namespace: Option<String>,
    /// The object, if the path names one.
    pub name: Option<String>,
    /// The path.
    pub path: String,
    /// The query string after the question mark.
    pub query: String,
    /// The user agent.
    pub user_agent: String,
    /// The JSON body.
    pub body: Option<Value>,
    /// The status code of the answer, once there is one.
    pub answer: Option<u16>,
}

impl RecordedRequest {
    fn new(parts: &Parts, body: &[u8]) -> Self {
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let mut segments = path.split('/').skip(1);
        let mut rest: Vec<&str> = match segments.next() {
            Some("api") => segments.skip(1).collect(),
            Some("apis") => segments.skip(2).collect(),
            _ => Vec::new(),
        };
        let mut namespace = None;
        if let ["namespaces", of, _, ..] = rest[..] {
            namespace = Some(of.to_owned());
            rest.drain(..2);
        }
        let is_watch = query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1");
        let verb = match parts.method {
            Method::GET if is_watch => "watch",
            Method::GET if rest.len() == 1 => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "get",
        };
        let resource = match rest[..] {
            [resource, _, subresource, ..] => format!("{resource}/{subresource}"),
            [resource, ..] => resource.to_owned(),
            [] => String::new(),
        };
        let user_agent = parts.headers.get(http::header::USER_AGENT);
        Self {
            at: Instant::now(),
            verb,
            resource,
            namespace,
            name: rest.get(1).map(|&name| name.to_owned()),
            path: path.to_owned(),
            query: query.to_owned(),
            user_agent: user_agent.map_or(String::new(), |agent| String::from_utf8_lossy(agent.as_bytes()).into()),
            body: serde_json::from_slice(body).ok(),
            answer: None,
        }
    }

    /// Returns true for this verb and resource.
    pub fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && self.resource == resource
    }

    /// Returns true if a successful request writes.
    pub fn is_write(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb)
    }

    /// Returns true if the API server sends all objects: for a list, or for a watch that begins with the initial objects.
    pub fn is_initial_list(&self) -> bool {
        self.verb == "list" || (self.verb == "watch" && self.query.contains("sendInitialEvents=true"))
    }
}

impl fmt::Display for RecordedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = self.answer.map_or("no answer".to_owned(), |code| code.to_string());
        write!(f, "{} {}: {answer}", self.verb, self.path)
    }
}

/// A running proxy. It has its own thread, so that it continues while a test blocks. Dropping it closes every connection.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    folder: PathBuf,
    state: Arc<State>,
    runtime: Option<Runtime>,
}

impl Proxy {
    /// Starts a proxy in front of an API server.
    ///
    /// It speaks HTTP without TLS and passes the client's token on, so clients keep their permissions.
    pub async fn start(plane: &ControlPlane) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig_path())?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to bind a port")?;
        listener.set_nonblocking(true)?;
        let address: SocketAddr = listener.local_addr()?;
        let state = Arc::new(State::new(&config)?);
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("proxy")
            .enable_all()
            .build()?;
        runtime.spawn(serve(Arc::clone(&state), listener));
        Ok(Self {
            url: format!("http://{address}"),
            folder: plane.bench.folder(&format!("proxy-{}", address.port()))?,
            state,
            runtime: Some(runtime),
        })
    }

    /// Returns its URL, `http://127.0.0.1:…`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a copy of `of`, a kubeconfig of the API server, that connects through this proxy.
    pub fn kubeconfig(&self, of: &Path) -> Result<PathBuf> {
        let mut kubeconfig: Value = serde_json::from_slice(&fs::read(of)?)?;
        kubeconfig["clusters"][0]["cluster"] = json!({"server": self.url});
        let through = self.folder.join(of.file_name().context("a kubeconfig is a file")?);
        fs::write(&through, kubeconfig.to_string())?;
        Ok(through)
    }

    /// Adds a fault for the requests that match. Earlier faults have precedence over later ones.
    pub fn fault(
        &self,
        fault: Fault,
        times: Times,
        matching: impl Fn(&RecordedRequest) -> bool + Send + Sync + 'static,
    ) {
        let rule = Rule {
            fault,
            times,
            matching: Box::new(matching),
        };
        self.state.plan.send_modify(|plan| plan.rules.push(rule));
    }

    /// Removes all faults: hanging requests continue if their clients still wait.
    pub fn heal(&self) {
        self.state.plan.send_modify(|plan| {
            plan.rules.clear();
            plan.healed += 1;
        });
    }

    /// Returns the requests so far, in order.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.requests.borrow().clone()
    }

    /// Returns the number of requests so far: `&proxy.requests()[mark..]` are the later ones.
    pub fn mark(&self) -> usize {
        self.state.requests.borrow().len()
    }

    /// Waits until `enough` returns true for the requests so far.
    pub async fn until(&self, what: &str, mut enough: impl FnMut(&[RecordedRequest]) -> bool) -> Result<()> {
        const PRINTED_REQUESTS: usize = 50;
        let mut requests = self.state.requests.subscribe();
        let reached = requests.wait_for(|requests| enough(requests));
        if tokio::time::timeout(DEADLINE, reached).await.is_ok() {
            return Ok(());
        }
        let all = self.requests();
        let last: Vec<_> = all
            .iter()
            .rev()
            .take(PRINTED_REQUESTS)
            .rev()
            .map(RecordedRequest::to_string)
            .collect();
        bail!(
            "timed out after {DEADLINE:?} waiting until {what}; the last requests were\n{}",
            last.join("\n")
        )
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // A runtime must not be shut down with blocking inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A planned fault.
#[derive(Default)]
struct Plan {
    rules: Vec<Rule>,
    /// The number of calls of `Proxy::heal`.
    healed: usize,
}

struct Rule {
    fault: Fault,
    times: Times,
    matching: Box<dyn Fn(&RecordedRequest) -> bool + Send + Sync>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Response = http::Response<BoxBody<Bytes, Failure>>;
type Upstream = dyn Fn(http::Request<Full<Bytes>>) -> ResponseFuture + Send + Sync;

/// The state that the proxy shares with its connections.
struct State {
    server: String,
    upstream: Box<Upstream>,
    plan: watch::Sender<Plan>,
    requests: watch::Sender<Vec<RecordedRequest>>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proxy of {}", self.server)
    }
}

impl State {
    fn new(config: &Config) -> Result<Self> {
        let connector = config.rustls_https_connector()?;
        // Not kube's client, which retries: the proxy must forward each answer.
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self {
            server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            upstream: Box::new(move |request| client.request(request)),
            plan: watch::Sender::new(Plan::default()),
            requests: watch::Sender::new(Vec::new()),
        })
    }

    /// Returns the fault of a request, or of an open watch.
    fn take(&self, request: &RecordedRequest, is_open: bool) -> Option<Fault> {
        let mut fault_taken = None;
        self.plan.send_if_modified(|plan| {
            let concerns = |rule: &&mut Rule| {
                let is_due = rule.times != Times::Next(0);
                let of_watches = matches!(rule.fault, Fault::Expired | Fault::ResetAfter(_) | Fault::EndAfter(_));
                let concerns = match request.verb {
                    "watch" if is_open => of_watches || rule.fault == Fault::Hang,
                    "watch" => true,
                    _ => !of_watches,
                };
                is_due && concerns && (rule.matching)(request)
            };
            if let Some(rule) = plan.rules.iter_mut().find(concerns) {
                fault_taken = Some(rule.fault);
                if let Times::Next(remaining) = &mut rule.times {
                    *remaining -= 1;
                }
            }
            false
        });
        fault_taken
    }

    /// Answers a request; an error breaks the connection.
    async fn answer(
        self: Arc<Self>,
        socket: Arc<OwnedFd>,
        request: http::Request<Incoming>,
    ) -> Result<Response, Failure> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let request = RecordedRequest::new(&parts, &body);
        let mut plan = self.plan.subscribe();
        let healed = plan.borrow_and_update().healed;
        let fault = self.take(&request, false);
        let mut at = 0;
        self.requests.send_modify(|requests| {
            at = requests.len();
            requests.push(request.clone());
        });
        if fault == Some(Fault::Hang) {
            plan.wait_for(|plan| plan.healed > healed).await?;
        }
        let answer = match fault {
            Some(Fault::Status(code)) => refusal(code)?,
            Some(Fault::Expired) => full_response(StatusCode::OK, gone_event()),
            _ => {
                let answer = self.pass_on(parts, body).await?;
                if fault == Some(Fault::AnswerLost) {
                    return Err("the connection breaks".into());
                }
                if request.verb == "watch" && answer.status().is_success() {
                    answer.map(|upstream| {
                        let watch = Watch {
                            state: Arc::clone(&self),
                            socket,
                            request,
                            upstream,
                            plan,
                            healed,
                            opened: tokio::time::Instant::now(),
                            fault: fault.filter(|&fault| fault != Fault::Hang),
                            is_complete_event: true,
                        };
                        watch.into_body()
                    })
                } else {
                    answer.map(|upstream| upstream.map_err(Failure::from).boxed())
                }
            }
        };
        let code = answer.status().as_u16();
        self.requests.send_modify(|requests| requests[at].answer = Some(code));
        Ok(answer)
    }

    async fn pass_on(&self, mut parts: Parts, body: Bytes) -> Result<http::Response<Incoming>, Failure> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = format!("{}{path}", self.server).parse::<Uri>()?;
        // Hop-by-hop headers, and compression, into which no event could be inserted.
        for header in [HOST, CONNECTION, TRANSFER_ENCODING, ACCEPT_ENCODING] {
            parts.headers.remove(header);
        }
        Ok((self.upstream)(http::Request::from_parts(parts, Full::new(body))).await?)
    }
}

async fn serve(state: Arc<State>, listener: std::net::TcpListener) -> Result<Infallible> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (connection, _) = listener.accept().await?;
        let socket = Arc::new(connection.as_fd().try_clone_to_owned()?);
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let answer = service_fn(|request| Arc::clone(&state).answer(Arc::clone(&socket), request));
            http1::Builder::new()
                .serve_connection(TokioIo::new(connection), answer)
                .await
        });
    }
}

/// An open watch.
struct Watch {
    state: Arc<State>,
    socket: Arc<OwnedFd>,
    request: RecordedRequest,
    upstream: Incoming,
    plan: watch::Receiver<Plan>,
    /// The number of calls of `Proxy::heal` before the fault was taken.
    healed: usize,
    opened: tokio::time::Instant,
    fault: Option<Fault>,
    /// True if the data so far ends with a complete event.
    is_complete_event: bool,
}

impl Watch {
    fn into_body(self) -> BoxBody<Bytes, Failure> {
        let frames = stream::try_unfold(Some(self), async |watch| match watch {
            Some(watch) => watch.next_frame().await,
            None => Ok(None),
        });
        BodyExt::boxed(StreamBody::new(Box::pin(frames)))
    }

    /// Returns the next data, with the watch unless it ends with that.
    async fn next_frame(mut self) -> Result<Option<(Frame<Bytes>, Option<Self>)>, Failure> {
        loop {
            if self.fault == Some(Fault::Expired) && self.is_complete_event {
                return Ok(Some((Frame::data(gone_event()), None)));
            }
            let hangs = self.fault == Some(Fault::Hang);
            let age = match self.fault {
                Some(Fault::ResetAfter(age) | Fault::EndAfter(age)) => Some(age),
                _ => None,
            };
            let opened = self.opened;
            let too_old = async move {
                match age {
                    Some(age) => tokio::time::sleep_until(opened + age).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = self.plan.changed() => {
                    let healed = self.plan.borrow_and_update().healed;
                    let before = self.fault.filter(|_| healed == self.healed);
                    self.healed = healed;
                    self.fault = self.state.take(&self.request, true).or(before);
                }
                () = too_old => {
                    if let Some(Fault::ResetAfter(_)) = self.fault {
                        // A socket that is closed without lingering is reset; otherwise the client sees a normal end.
                        set_socket_linger(&self.socket, Some(Duration::ZERO))?;
                        return Err("the connection is reset".into());
                    }
                    return Ok(None);
                }
                frame = self.upstream.frame(), if !hangs => {
                    let Some(frame) = frame.transpose()? else {
                        return Ok(None);
                    };
                    self.is_complete_event = frame.data_ref().is_none_or(|data| data.ends_with(b"\n"));
                    return Ok(Some((frame, Some(self))));
                }
            }
        }
    }
}

/// Returns the status object of an API server for a rejected request.
fn status(code: u16) -> Value {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!("the proxy answers with {code}"),
        "reason": reason,
        "code": code,
    })
}

fn refusal(code: u16) -> Result<Response, Failure> {
    let mut answer = full_response(StatusCode::from_u16(code)?, status(code).to_string().into());
    if code == 429 {
        // Not a status object: the request limiter runs before API objects are handled.
        *answer.body_mut() = full("Too many requests, please try again later.\n".into());
        let headers = answer.headers_mut();
        headers.insert(RETRY_AFTER, http::HeaderValue::from(1));
        headers.insert(
            CONTENT_TYPE,
            http::HeaderValue::from_static("text/plain; charset=utf-8"),
        );
    }
    Ok(answer)
}

fn gone_event() -> Bytes {
    let event = json!({"type": "ERROR", "object": status(410)});
    format!("{event}\n").into()
}

fn full(body: Bytes) -> BoxBody<Bytes, Failure> {
    Full::new(body).map_err(|never| match never {}).boxed()
}

fn full_response(status: StatusCode, body: Bytes) -> Response {
    let mut answer = http::Response::new(full(body));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    answer
}
