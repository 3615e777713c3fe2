//! Answers requests: finds the object in a work on the hub, and reads from the cluster what the work and verified owners lead to.

use crate::difference::differences;
use crate::events;
use crate::events::Events;
use crate::hub_reader;
use crate::limits::{LOG_BYTES, OBJECT_BYTES, PAGE_BYTES, PAGE_OBJECTS, PAGES, REQUEST_STREAMS, TREE_BYTES};
use crate::log_text::LogLines;
use crate::mask;
use crate::refusal::HttpRefusal;
use crate::request::{LiveRequest, LogOptions, ObjectId, View};
use crate::sent::{SentObject, collection_path};
use crate::streams::Streams;
use crate::tree::{Candidate, Tree, kinds_below, selector};
use crate::tunnel::{ObjectLookup, Tunnel, has_too_many_values, no_object};
use futures::future::{join_all, try_join_all};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The number of pieces of a log that wait for a slow reader.
const PIECES: usize = 8;

/// The answer to a request for an object that the plugin delivers.
pub enum Answer {
    /// An object, as it is and as it was sent, with the differences.
    Object(Value),
    /// The objects below it.
    Tree(Tree),
    /// The Events of these.
    Events(Events),
    /// The parts of logs, as they arrive.
    Logs(mpsc::Receiver<LogPart>),
}

/// Lines of a log, or one line with the reason why the log of a container is missing or incomplete.
pub type LogPart = Result<Bytes, String>;

/// The service, without its server.
pub struct Service {
    hub: Client,
    tunnel: Tunnel,
    streams: Streams,
    stream_timeout: Duration,
}

impl Service {
    /// Creates a service whose streams of logs end after a time.
    pub fn new(hub: Client, tunnel: Tunnel, stream_timeout: Duration) -> Self {
        Self {
            hub,
            tunnel,
            streams: Streams::default(),
            stream_timeout,
        }
    }

    /// Answers a request.
    ///
    /// # Errors
    /// Returns the reason why there is no answer.
    pub async fn answer(&self, request: &LiveRequest) -> Result<Answer, HttpRefusal> {
        let sent = hub_reader::sent(&self.hub, request).await?;
        self.show(request, sent).await
    }

    /// Answers a request about an object that was found in a work.
    ///
    /// # Errors
    /// Returns the reason why there is no answer.
    pub async fn show(&self, request: &LiveRequest, sent: SentObject) -> Result<Answer, HttpRefusal> {
        let live = self.live(request, &sent).await?;
        if request.view == View::Object {
            return Ok(Answer::Object(object(sent.manifest, live)));
        }
        let tree = self.tree(request, live).await?;
        Ok(match &request.view {
            View::Object | View::Tree => Answer::Tree(tree),
            View::Events => Answer::Events(self.events(&request.cluster, &request.object.namespace, &tree).await?),
            View::Logs(options) => Answer::Logs(self.logs(request, options, &tree).await?),
        })
    }

    async fn live(&self, request: &LiveRequest, sent: &SentObject) -> Result<Option<Value>, HttpRefusal> {
        match self.tunnel.get(&request.cluster, &sent.path, OBJECT_BYTES).await? {
            ObjectLookup::No(_) => Ok(None),
            ObjectLookup::Yes(live) if is(&live, &request.object) => {
                if sent.may_show(&live) {
                    return Ok(Some(live));
                }
                Err(HttpRefusal::new(
                    StatusCode::FORBIDDEN,
                    format!(
                        "cluster {} has {}, but no work of the Application owns it: of works with an executor, only such objects are shown",
                        request.cluster, request.object
                    ),
                ))
            }
            ObjectLookup::Yes(_) => Err(HttpRefusal::nonsense(format!(
                "cluster {} answers with another object than {}",
                request.cluster, request.object
            ))),
        }
    }

    async fn tree(&self, request: &LiveRequest, live: Option<Value>) -> Result<Tree, HttpRefusal> {
        let Some(live) = live else { return Ok(Tree::default()) };
        let object = &request.object;
        if object.namespace.is_empty() {
            return Ok(Tree::new(&live, &[], false));
        }
        let selector = selector(&object.kind, &live);
        let size = AtomicUsize::new(0);
        let lists = kinds_below(&object.kind).iter().map(|kind| {
            let (selector, size, live) = (selector.as_deref(), &size, &live);
            async move {
                let path = collection_path(kind.group, kind.version, &object.namespace, kind.plural)?;
                let query = selector.map(|selector| format!("labelSelector={selector}"));
                let candidate = |mut item: Value| {
                    // The items of a list have no kind of their own.
                    item["kind"] = kind.kind.into();
                    item["apiVersion"] = kind.api_version().into();
                    Candidate::new(&item, live)
                };
                self.list(&request.cluster, &path, query.as_deref(), size, candidate)
                    .await
            }
        });
        let lists = try_join_all(lists).await?;
        let truncated = lists.iter().any(|(_, truncated)| *truncated);
        let candidates: Vec<_> = lists.into_iter().flat_map(|(candidates, _)| candidates).collect();
        Ok(Tree::new(&live, &candidates, truncated))
    }

    /// Returns the Events of the objects in a tree; `namespace` is theirs, or empty for cluster-scoped objects.
    ///
    /// # Errors
    /// Returns an error if the cluster cannot be read.
    pub async fn events(&self, cluster: &str, namespace: &str, tree: &Tree) -> Result<Events, HttpRefusal> {
        let namespace = match namespace {
            "" => "default",
            namespace => namespace,
        };
        let path = collection_path("", "v1", namespace, "events")?;
        let uids = tree.nodes.iter().map(|node| &*node.uid).collect();
        let event = |item: Value| events::of_objects(&uids, &item);
        let size = AtomicUsize::new(0);
        // Few objects are asked for one by one: a namespace may have thousands of Events.
        let (events, truncated) = match &*tree.nodes {
            [] => (Vec::new(), false),
            [only] if is_uid(&only.uid) => {
                let query = format!("fieldSelector=involvedObject.uid%3D{}", only.uid);
                self.list(cluster, &path, Some(&query), &size, event).await?
            }
            _ => self.list(cluster, &path, None, &size, event).await?,
        };
        Ok(events::newest(events, truncated))
    }

    /// Returns what `reduce` keeps of the objects of a list, and true if there are more. Adds to the size of what was read. Parses one
    /// object at a time: a page may take a hundred megabytes as values.
    async fn list<T>(
        &self,
        cluster: &str,
        path: &str,
        query: Option<&str>,
        size: &AtomicUsize,
        reduce: impl Fn(Value) -> Option<T>,
    ) -> Result<(Vec<T>, bool), HttpRefusal> {
        let (mut kept, mut next, mut truncated): (_, Option<String>, _) = (Vec::new(), None, false);
        for _ in 0..PAGES {
            let mut path = format!("{path}?limit={PAGE_OBJECTS}");
            for part in query.into_iter().chain(next.as_deref()) {
                path.push('&');
                path.push_str(part);
            }
            let ObjectLookup::Yes(text) = self.tunnel.get_text(cluster, &path, PAGE_BYTES).await? else {
                break;
            };
            if size.fetch_add(text.len(), Relaxed).saturating_add(text.len()) > TREE_BYTES {
                return Ok((kept, true));
            }
            let page: ListPage<'_> = serde_json::from_slice(&text).map_err(|_| no_object(cluster))?;
            let items = page.items.unwrap_or_default();
            if items.len() > PAGE_OBJECTS {
                return Err(HttpRefusal::nonsense(format!(
                    "cluster {cluster} answers with more objects than it was asked for"
                )));
            }
            for item in items {
                let object = parse_object(item);
                truncated |= object.is_none();
                kept.extend(object.filter(Value::is_object).and_then(&reduce));
            }
            let metadata = page.metadata.and_then(parse_object);
            next = continue_parameter(&metadata.unwrap_or_default());
            if next.is_none() {
                break;
            }
        }
        Ok((kept, truncated || next.is_some()))
    }

    /// Opens the logs of containers, and returns their lines as they arrive.
    async fn logs(
        &self,
        request: &LiveRequest,
        options: &LogOptions,
        tree: &Tree,
    ) -> Result<mpsc::Receiver<LogPart>, HttpRefusal> {
        let containers = containers(request, options, tree)?;
        let permit = self.streams.open(&request.user, containers.len())?;
        let is_one = containers.len() == 1;
        let opened = containers.iter().map(|(pod, container)| {
            let path = log_path(&request.object.namespace, pod, container, options);
            async move { self.tunnel.open(&request.cluster, &path?).await }
        });
        let mut logs = Vec::new();
        for ((pod, container), opened) in containers.iter().zip(join_all(opened).await) {
            let mark = if is_one {
                String::new()
            } else {
                format!("[{pod} {container}] ")
            };
            let log = match opened {
                Ok(ObjectLookup::Yes(response)) => Ok(response),
                Ok(ObjectLookup::No(message)) => {
                    Err(HttpRefusal::not_found(format!("Pod {pod} has no such log: {message}")))
                }
                Err(refusal) => Err(refusal),
            };
            match log {
                Ok(response) => logs.push((mark, Ok(response.into_body()))),
                Err(refusal) if is_one => return Err(refusal),
                Err(refusal) => logs.push((mark, Err(refusal.line))),
            }
        }
        let (sender, receiver) = mpsc::channel(PIECES);
        let max = if options.follow { usize::MAX } else { LOG_BYTES };
        let stream_timeout = self.stream_timeout;
        let cluster = request.cluster.clone();
        tokio::spawn(async move {
            let copied = logs.into_iter().map(|(mark, log)| {
                let (sender, cluster) = (sender.clone(), &cluster);
                async move {
                    let copied = match log {
                        Ok(body) => copy_log(cluster, LogLines::new(mark.clone()), body, &sender, max).await,
                        Err(line) => Err(line),
                    };
                    if let Err(line) = copied {
                        let _gone = sender.send(Err(mark + &line)).await;
                    }
                }
            });
            let _ended = timeout(stream_timeout, join_all(copied)).await;
            drop(permit);
        });
        Ok(receiver)
    }
}

/// Sends the lines of a log until it ends, or until the reader has gone. Fails if the connection breaks.
async fn copy_log(
    cluster: &str,
    mut lines: LogLines,
    mut body: impl hyper::body::Body<Data = Bytes> + Unpin,
    sender: &mpsc::Sender<LogPart>,
    max: usize,
) -> Result<(), String> {
    let mut left = max;
    let ended = loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = sender.closed() => return Ok(()),
        };
        let frame = match frame {
            None => break Ok(()),
            Some(Err(_)) => {
                break Err(format!(
                    "the connection to cluster {cluster} broke, and lines may be missing: read the log again"
                ));
            }
            Some(Ok(frame)) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        let data = &data[..data.len().min(left)];
        left = left.saturating_sub(data.len());
        let text = lines.push(data);
        if !text.is_empty() && sender.send(Ok(text.into())).await.is_err() {
            return Ok(());
        }
        if left == 0 {
            return Err(format!(
                "the log has more than {} MiB, and its newest lines are missing: read fewer lines, or a shorter time",
                max >> 20
            ));
        }
    };
    let text = lines.finish();
    if !text.is_empty() {
        let _gone = sender.send(Ok(text.into())).await;
    }
    ended
}

/// Returns the Pods and containers whose logs a request asks for.
fn containers(request: &LiveRequest, options: &LogOptions, tree: &Tree) -> Result<Vec<(String, String)>, HttpRefusal> {
    let object = &request.object;
    if let Some(pod) = options
        .pods
        .iter()
        .find(|name| !tree.pods().any(|node| node.name == **name))
    {
        return Err(HttpRefusal::not_found(format!(
            "Pod {pod} is not below {object}: check its name"
        )));
    }
    let selected = tree
        .pods()
        .filter(|node| options.pods.is_empty() || options.pods.contains(&node.name));
    let all = selected.flat_map(|pod| {
        pod.containers
            .iter()
            .map(|container| (pod.name.clone(), container.clone()))
    });
    let chosen: Vec<_> = all
        .filter(|(_, container)| options.container.as_ref().is_none_or(|text| text == container))
        .collect();
    match (chosen.len(), &options.container) {
        (0, Some(container)) => Err(HttpRefusal::not_found(format!(
            "no Pod of {object} has a container {container}"
        ))),
        (0, None) if tree.truncated => Err(HttpRefusal::not_found(format!(
            "{object} has no Pods among the objects that were read: cluster {} has more",
            request.cluster
        ))),
        (0, None) => Err(HttpRefusal::not_found(format!(
            "{object} has no Pods on cluster {}",
            request.cluster
        ))),
        (count, _) if count > REQUEST_STREAMS => Err(HttpRefusal::invalid(format!(
            "{object} has {count} containers, of at most {REQUEST_STREAMS}: choose Pods or a container"
        ))),
        _ => Ok(chosen),
    }
}

fn log_path(namespace: &str, pod: &str, container: &str, options: &LogOptions) -> Result<String, HttpRefusal> {
    let (pod, container) = (
        crate::request::segment("pod", pod)?,
        crate::request::segment("container", container)?,
    );
    let mut path = collection_path("", "v1", namespace, "pods")?;
    let _ = write!(path, "/{pod}/log?container={container}&tailLines={}", options.tail);
    if let Some(seconds) = options.since.filter(|seconds| *seconds > 0) {
        let _ = write!(path, "&sinceSeconds={seconds}");
    }
    if options.previous {
        path.push_str("&previous=true");
    }
    if options.follow {
        path.push_str("&follow=true");
    } else {
        let _ = write!(path, "&limitBytes={LOG_BYTES}");
    }
    Ok(path)
}

/// A page of a list. Its texts are parsed one by one.
#[derive(Deserialize)]
struct ListPage<'t> {
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    metadata: Option<&'t RawValue>,
}

/// Parses an object of a list; `None` if it is larger than etcd stores one, has more values, or is nested too deeply.
fn parse_object(text: &RawValue) -> Option<Value> {
    let text = text.get();
    let is_large = text.len() > OBJECT_BYTES || has_too_many_values(text.as_bytes(), OBJECT_BYTES);
    if is_large {
        None
    } else {
        serde_json::from_str(text).ok()
    }
}

/// Returns the parameter with which a list continues, if the cluster sends a token as API servers do.
fn continue_parameter(metadata: &Value) -> Option<String> {
    let token = metadata["continue"].as_str().filter(|token| !token.is_empty())?;
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let token = token.trim_end_matches('=');
    (token.len() < 4_096 && token.bytes().all(is_safe)).then(|| format!("continue={token}"))
}

fn is_uid(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns true if a live object is the one that was asked for.
fn is(live: &Value, object: &ObjectId) -> bool {
    live["apiVersion"].is_string()
        && ObjectId::of(live).as_ref() == Some(object)
        && live["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty())
}

fn object(mut sent: Value, mut live: Option<Value>) -> Value {
    mask::prepare(&mut sent, live.as_mut());
    let differences = live.as_ref().map(|live| differences(&sent, live)).unwrap_or_default();
    json!({"live": live, "sent": sent, "difference": differences})
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use std::io;

    #[test]
    fn object_with_many_values_is_left_out() {
        let digits = "1,".repeat(OBJECT_BYTES / 16);
        let text = format!(r#"{{"items":[{{"a":[{digits}1]}},{{}}],"metadata":{{"continue":"x"}}}}"#);
        let page: ListPage<'_> = serde_json::from_str(&text).expect("a page");
        let objects = page.items.expect("items").into_iter().map(parse_object);
        assert_eq!(objects.collect::<Vec<_>>(), [None, Some(json!({}))]);
        let metadata = page.metadata.and_then(parse_object);
        assert_eq!(
            continue_parameter(&metadata.expect("metadata")).as_deref(),
            Some("continue=x")
        );
    }

    /// The cluster sends the oldest lines first.
    #[tokio::test]
    async fn log_over_the_limit_fails_after_its_first_lines() {
        let frames: Vec<Result<_, io::Error>> = vec![Ok(Frame::data(Bytes::from("one\ntwo\nthree\n")))];
        let (sender, mut receiver) = mpsc::channel(PIECES);
        let body = StreamBody::new(stream::iter(frames));
        let copied = copy_log("eu1", LogLines::default(), body, &sender, 9).await;
        assert!(copied.is_err_and(|line| line.contains("its newest lines are missing")));
        assert_eq!(receiver.recv().await, Some(Ok(Bytes::from("one\ntwo\n"))));
    }

    #[tokio::test]
    async fn log_fails_after_its_lines_if_the_connection_breaks() {
        let broken = "the connection to cluster eu1 broke, and lines may be missing: read the log again";
        for (breaks, expected) in [(false, Ok(())), (true, Err(broken.to_owned()))] {
            let lines = Ok(Frame::data(Bytes::from("one\ntwo")));
            let end = breaks.then(|| Err(io::Error::other("connection reset")));
            let frames: Vec<_> = [Some(lines), end].into_iter().flatten().collect();
            let body = StreamBody::new(stream::iter(frames));
            let (sender, mut receiver) = mpsc::channel(PIECES);
            let copied = copy_log("eu1", LogLines::default(), body, &sender, usize::MAX).await;
            assert_eq!(copied, expected);
            drop(sender);
            let mut text = Vec::new();
            while let Some(Ok(part)) = receiver.recv().await {
                text.extend_from_slice(&part);
            }
            assert_eq!(String::from_utf8_lossy(&text), "one\ntwo\n");
        }
    }
}
