//! A proxy in front of an API server that remembers what it was asked, and does what goes wrong when it is told to.

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

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The proxy answers with this status code, as an API server words it, and the API server does not hear of it. 429
    /// asks for a second of patience, in a header.
    Status(u16),
    /// Nothing is answered, and a watch that is open brings nothing, until [`Proxy::heal`].
    Hang,
    /// The API server does what it is asked, and the connection breaks before its answer is through.
    AnswerLost,
    /// A watch, also one that is open, brings the error event 410 and ends.
    Expired,
    /// The connection of a watch, also of one that is open, is reset when it is this old.
    ResetAfter(Duration),
    /// A watch, also one that is open, ends in good order when it is this old.
    EndAfter(Duration),
}

/// How often something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Until [`Proxy::heal`].
    Always,
    /// With so many requests.
    Next(usize),
}

/// A request that came through the proxy.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When it came.
    pub at: Instant,
    /// As RBAC names it: `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`.
    pub verb: &'static str,
    /// As RBAC names it, such as `applications` or `manifestworks/status`; empty where it is about none.
    pub resource: String,
    /// The namespace, where the path names one.
    pub namespace: Option<String>,
    /// The object, where the path names one.
    pub name: Option<String>,
    /// The path.
    pub path: String,
    /// What follows the path behind a question mark.
    pub query: String,
    /// Who asks.
    pub user_agent: String,
    /// The JSON that was sent.
    pub body: Option<Value>,
    /// The status code of the answer, once there is one.
    pub answer: Option<u16>,
}

impl Seen {
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
        let is_watch = query
            .split('&')
            .any(|given| given == "watch=true" || given == "watch=1");
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

    /// Whether it is this verb of this resource.
    #[must_use]
    pub fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && self.resource == resource
    }

    /// Whether it changes something, if it is answered well.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb)
    }

    /// Whether it has the API server send all objects: a list, or a watch that begins with one.
    #[must_use]
    pub fn brings_all(&self) -> bool {
        self.verb == "list" || (self.verb == "watch" && self.query.contains("sendInitialEvents=true"))
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = self.answer.map_or("no answer".to_owned(), |code| code.to_string());
        write!(f, "{} {}: {answer}", self.verb, self.path)
    }
}

/// A running proxy. It has a thread of its own, so that it serves also while a test waits for something else. Dropping
/// it closes every connection.
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
    /// It speaks HTTP without TLS and passes on the token that it is sent, so everybody has the rights that they have.
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

    /// Where it listens, `http://127.0.0.1:…`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A kubeconfig that differs from `of`, one of the API server's, in that it leads through this proxy.
    pub fn kubeconfig(&self, of: &Path) -> Result<PathBuf> {
        let mut kubeconfig: Value = serde_json::from_slice(&fs::read(of)?)?;
        kubeconfig["clusters"][0]["cluster"] = json!({"server": self.url});
        let through = self.folder.join(of.file_name().context("a kubeconfig is a file")?);
        fs::write(&through, kubeconfig.to_string())?;
        Ok(through)
    }

    /// From now on something goes wrong with the requests that match. What was said first goes before what was said
    /// later.
    pub fn fault(&self, fault: Fault, times: Times, matching: impl Fn(&Seen) -> bool + Send + Sync + 'static) {
        let rule = Rule {
            fault,
            times,
            matching: Box::new(matching),
        };
        self.state.plan.send_modify(|plan| plan.rules.push(rule));
    }

    /// From now on all goes well: requests that hang go through if they are still waited for.
    pub fn heal(&self) {
        self.state.plan.send_modify(|plan| {
            plan.rules.clear();
            plan.healed += 1;
        });
    }

    /// What came so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.state.requests.borrow().clone()
    }

    /// How much came so far: `&proxy.requests()[mark..]` is what came since.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.state.requests.borrow().len()
    }

    /// Waits until what came so far is enough.
    pub async fn until(&self, what: &str, mut enough: impl FnMut(&[Seen]) -> bool) -> Result<()> {
        const TELLING: usize = 50;
        let mut requests = self.state.requests.subscribe();
        let came = requests.wait_for(|requests| enough(requests));
        if tokio::time::timeout(DEADLINE, came).await.is_ok() {
            return Ok(());
        }
        let all = self.requests();
        let last: Vec<_> = all.iter().rev().take(TELLING).rev().map(Seen::to_string).collect();
        bail!(
            "{what}: not so after {DEADLINE:?}; the last requests were\n{}",
            last.join("\n")
        )
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // A runtime must not be waited for where others run.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What is to go wrong.
#[derive(Default)]
struct Plan {
    rules: Vec<Rule>,
    /// How often all was made well.
    healed: usize,
}

struct Rule {
    fault: Fault,
    times: Times,
    matching: Box<dyn Fn(&Seen) -> bool + Send + Sync>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Response = http::Response<BoxBody<Bytes, Failure>>;
type Upstream = dyn Fn(http::Request<Full<Bytes>>) -> ResponseFuture + Send + Sync;

/// What the proxy knows and its connections share.
struct State {
    server: String,
    upstream: Box<Upstream>,
    plan: watch::Sender<Plan>,
    requests: watch::Sender<Vec<Seen>>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proxy of {}", self.server)
    }
}

impl State {
    fn new(config: &Config) -> Result<Self> {
        let connector = config.rustls_https_connector()?;
        // Not kube's client, which tries again where this one has to show what comes.
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self {
            server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            upstream: Box::new(move |request| client.request(request)),
            plan: watch::Sender::new(Plan::default()),
            requests: watch::Sender::new(Vec::new()),
        })
    }

    /// What is to go wrong with a request, or with a watch that is open.
    fn take(&self, request: &Seen, is_open: bool) -> Option<Fault> {
        let mut taken = None;
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
                taken = Some(rule.fault);
                if let Times::Next(left) = &mut rule.times {
                    *left -= 1;
                }
            }
            false
        });
        taken
    }

    /// Answers a request; an error breaks the connection.
    async fn answer(
        self: Arc<Self>,
        socket: Arc<OwnedFd>,
        request: http::Request<Incoming>,
    ) -> Result<Response, Failure> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let seen = Seen::new(&parts, &body);
        let mut plan = self.plan.subscribe();
        let healed = plan.borrow_and_update().healed;
        let fault = self.take(&seen, false);
        let mut at = 0;
        self.requests.send_modify(|requests| {
            at = requests.len();
            requests.push(seen.clone());
        });
        if fault == Some(Fault::Hang) {
            plan.wait_for(|plan| plan.healed > healed).await?;
        }
        let answer = match fault {
            Some(Fault::Status(code)) => refusal(code)?,
            Some(Fault::Expired) => whole(StatusCode::OK, gone_event()),
            _ => {
                let answer = self.pass_on(parts, body).await?;
                if fault == Some(Fault::AnswerLost) {
                    return Err("the connection breaks".into());
                }
                if seen.verb == "watch" && answer.status().is_success() {
                    answer.map(|upstream| {
                        let watch = Watch {
                            state: Arc::clone(&self),
                            socket,
                            request: seen,
                            upstream,
                            plan,
                            healed,
                            opened: tokio::time::Instant::now(),
                            fault: fault.filter(|&fault| fault != Fault::Hang),
                            is_whole: true,
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
        // What is said between two neighbours, and compression, into which no event could be put.
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

/// A watch that is open.
struct Watch {
    state: Arc<State>,
    socket: Arc<OwnedFd>,
    request: Seen,
    upstream: Incoming,
    plan: watch::Receiver<Plan>,
    /// How often all was made well before the fault was taken.
    healed: usize,
    opened: tokio::time::Instant,
    fault: Option<Fault>,
    /// Whether what was brought so far ends with an event, not within one.
    is_whole: bool,
}

impl Watch {
    fn into_body(self) -> BoxBody<Bytes, Failure> {
        let frames = stream::try_unfold(Some(self), async |watch| match watch {
            Some(watch) => watch.next().await,
            None => Ok(None),
        });
        BodyExt::boxed(StreamBody::new(Box::pin(frames)))
    }

    /// What is brought next, with the watch unless it ends with that.
    async fn next(mut self) -> Result<Option<(Frame<Bytes>, Option<Self>)>, Failure> {
        loop {
            if self.fault == Some(Fault::Expired) && self.is_whole {
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
                        // What is closed without lingering is reset; else the client takes it for an end.
                        set_socket_linger(&self.socket, Some(Duration::ZERO))?;
                        return Err("the connection is reset".into());
                    }
                    return Ok(None);
                }
                frame = self.upstream.frame(), if !hangs => {
                    let Some(frame) = frame.transpose()? else {
                        return Ok(None);
                    };
                    self.is_whole = frame.data_ref().is_none_or(|data| data.ends_with(b"\n"));
                    return Ok(Some((frame, Some(self))));
                }
            }
        }
    }
}

/// What an API server says of a request that it does not grant.
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
    let mut answer = whole(StatusCode::from_u16(code)?, status(code).to_string().into());
    if code == 429 {
        // No object: what keeps requests in check stands before what knows of objects.
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

fn whole(status: StatusCode, body: Bytes) -> Response {
    let mut answer = http::Response::new(full(body));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    answer
}
