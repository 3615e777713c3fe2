//! Reads the initial objects of a watch from one list. An API server encodes each watch event twice, and a list once: with 10,000
//! works, that saves half of its CPU.

use crate::watch::with_query;
use futures::stream::{self, Stream, StreamExt};
use http::{Request, Response};
use http_body_util::{BodyExt, Either, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use kube::{Client, Error};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tower::BoxError;

/// Creates a client for one watch. Its request for a stream of the initial objects becomes a list, whose answer is given as such a
/// stream, and ends after the last object; the watch then continues from there. The attempt after a broken list requests the stream:
/// an API server ends lists after a minute.
pub fn with_first_list(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let was_broken = Arc::new(AtomicBool::new(false));
    let send = move |request| send(client.clone(), Arc::clone(&was_broken), request);
    Client::new(tower::service_fn(send), namespace)
}

async fn send(
    client: Client,
    was_broken: Arc<AtomicBool>,
    mut request: Request<Body>,
) -> Result<Response<Either<Body, impl hyper::body::Body<Data = Bytes, Error = BoxError>>>, Error> {
    let list = with_query(request.uri(), |part| {
        part.starts_with("labelSelector=") || part.starts_with("fieldSelector=")
    });
    let Some(list) = list.filter(|_| !was_broken.swap(false, Ordering::Relaxed)) else {
        return Ok(client.send(request).await?.map(Either::Left));
    };
    if !streams_lists(&client).await {
        return Ok(client.send(request).await?.map(Either::Left));
    }
    *request.uri_mut() = list;
    let response = client
        .send(request)
        .await
        .inspect_err(|_| was_broken.store(true, Ordering::Relaxed))?;
    if !response.status().is_success() {
        was_broken.store(response.status().is_server_error(), Ordering::Relaxed);
        return Ok(response.map(Either::Left));
    }
    Ok(response.map(|body| Either::Right(StreamBody::new(events(body, was_broken)))))
}

/// Returns true since Kubernetes 1.34: only then the API server always reads a list of the most recent state from its cache, and sends
/// it object by object.
async fn streams_lists(client: &Client) -> bool {
    let Ok(version) = client.apiserver_version().await else {
        return false;
    };
    // Some providers add a plus sign.
    let minor = version.minor.trim_end_matches('+').parse::<u32>();
    version.major == "1" && minor.is_ok_and(|minor| minor >= 34)
}

fn events(body: Body, was_broken: Arc<AtomicBool>) -> impl Stream<Item = Result<Frame<Bytes>, BoxError>> {
    let list = Some((body.into_data_stream(), Splitter::default()));
    stream::unfold(list, move |list| {
        let was_broken = Arc::clone(&was_broken);
        async move {
            let (mut body, mut splitter) = list?;
            let end = match body.next().await {
                Some(Ok(chunk)) => {
                    let events = splitter.split(&chunk);
                    return Some((Ok(Frame::data(events.into())), Some((body, splitter))));
                }
                Some(Err(error)) => Err(error.into()),
                None => splitter.finish(),
            };
            was_broken.store(end.is_err(), Ordering::Relaxed);
            Some((end.map(|event| Frame::data(event.into())), None))
        }
    })
}

/// Splits the JSON of a list into watch events while it arrives, without parsing the objects.
#[derive(Default)]
struct Splitter {
    /// The list without its objects.
    frame: Vec<u8>,
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    is_in_items: bool,
}

/// The depth in the array of objects.
const ITEMS: usize = 2;

impl Splitter {
    /// Returns the events, or parts of events, in the next part of the list.
    fn split(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut events = Vec::with_capacity(chunk.len() + chunk.len() / 8);
        let mut begin = 0;
        for (at, &byte) in chunk.iter().enumerate() {
            if self.is_in_string {
                let ends = byte == b'"' && !self.is_escaped;
                self.is_escaped = byte == b'\\' && !self.is_escaped;
                self.is_in_string = !ends;
                continue;
            }
            match byte {
                b'"' => self.is_in_string = true,
                b'{' | b'[' => {
                    if self.is_in_items && self.depth == ITEMS {
                        begin = at;
                        events.extend_from_slice(br#"{"type":"ADDED","object":"#);
                    } else if byte == b'[' && self.depth + 1 == ITEMS {
                        self.copy(&chunk[begin..=at], &mut events);
                        begin = at + 1;
                        self.is_in_items = self.frame.ends_with(br#""items":["#);
                    }
                    self.depth += 1;
                }
                b'}' | b']' => {
                    if self.is_in_items && self.depth == ITEMS {
                        self.is_in_items = false;
                        begin = at;
                    } else if self.is_in_items && self.depth == ITEMS + 1 {
                        self.copy(&chunk[begin..=at], &mut events);
                        begin = at + 1;
                        events.extend_from_slice(b"}\n");
                    }
                    self.depth = self.depth.saturating_sub(1);
                }
                _ => {}
            }
        }
        self.copy(&chunk[begin..], &mut events);
        events
    }

    /// Copies a part of an object to the events, and what is outside of the array of objects to the frame.
    fn copy(&mut self, part: &[u8], events: &mut Vec<u8>) {
        if !self.is_in_items {
            self.frame.extend_from_slice(part);
        } else if self.depth > ITEMS {
            events.extend_from_slice(part);
        }
    }

    /// Returns the event after the last object; the error says that the list is incomplete.
    fn finish(self) -> Result<Vec<u8>, BoxError> {
        #[derive(Deserialize)]
        struct Frame {
            #[serde(rename = "items")]
            _items: Option<[IgnoredAny; 0]>,
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            resource_version: String,
            #[serde(default)]
            r#continue: String,
        }
        let Frame { metadata, .. } = serde_json::from_slice(&self.frame)?;
        if !metadata.r#continue.is_empty() {
            return Err("the list has only a part of the objects".into());
        }
        let metadata = json!({
            "resourceVersion": metadata.resource_version,
            "annotations": {"k8s.io/initial-events-end": "true"},
        });
        let object = json!({"apiVersion": "v1", "kind": "List", "metadata": metadata});
        Ok(format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watched;
    use futures::TryStreamExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::runtime::watcher::{Config, Event};
    use std::convert::Infallible;
    use std::sync::Mutex;

    const LIST: &str = r#"{"apiVersion":"v1","items":[{"metadata":{"name":"a"},"data":{"items":"[{\"}\\","b":"é"}},{"metadata":{"name":"b"}}],"kind":"ConfigMapList","metadata":{"resourceVersion":"7"}}"#;

    fn split(list: &str, size: usize) -> (String, bool) {
        let mut splitter = Splitter::default();
        let mut events: Vec<u8> = list
            .as_bytes()
            .chunks(size)
            .flat_map(|part| splitter.split(part))
            .collect();
        let end = splitter.finish();
        let is_complete = end.is_ok();
        events.extend(end.unwrap_or_default());
        (String::from_utf8(events).expect("text"), is_complete)
    }

    #[test]
    fn list_is_split_at_any_border() {
        let a = r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"data":{"items":"[{\"}\\","b":"é"}}}"#;
        let b = r#"{"type":"ADDED","object":{"metadata":{"name":"b"}}}"#;
        let end = r#"{"object":{"apiVersion":"v1","kind":"List","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"7"}},"type":"BOOKMARK"}"#;
        for size in 1..=LIST.len() {
            assert_eq!(split(LIST, size), (format!("{a}\n{b}\n{end}\n"), true), "{size}");
        }
        // Kinds of Kubernetes itself have the metadata first, and lists of metadata may have `null`.
        for empty in [
            r#"{"kind":"SecretList","metadata":{"resourceVersion":"7"},"items":[]}"#,
            r#"{"metadata":{"resourceVersion":"7"},"items":null}"#,
        ] {
            assert_eq!(split(empty, 5), (format!("{end}\n"), true));
        }
    }

    #[test]
    fn part_of_a_list_has_no_end() {
        for length in 0..LIST.len() {
            let part = String::from_utf8_lossy(&LIST.as_bytes()[..length]).replace('\u{fffd}', "");
            assert!(!split(&part, 16).1, "{length}");
        }
        assert!(!split(r#"{"metadata":{"resourceVersion":"7","continue":"x"},"items":[]}"#, 16).1);
    }

    /// Returns the events until the first object after the list, and the requests.
    async fn watch(minor: &'static str, list: &'static str) -> (Vec<String>, Vec<String>) {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let sent = Arc::clone(&requests);
        let service = tower::service_fn(move |request: Request<Body>| {
            let request = request.uri().to_string();
            let body = if request == "/version" {
                let other = [
                    "gitVersion",
                    "gitCommit",
                    "gitTreeState",
                    "buildDate",
                    "goVersion",
                    "compiler",
                    "platform",
                ];
                let mut version: serde_json::Map<_, _> =
                    other.map(|name| (name.to_owned(), json!(""))).into_iter().collect();
                version.extend([("major".to_owned(), json!("1")), ("minor".to_owned(), json!(minor))]);
                json!(version).to_string()
            } else if request.contains("sendInitialEvents") {
                split(LIST, 9).0
            } else if request.contains("watch=true") {
                r#"{"type":"ADDED","object":{"metadata":{"name":"c","resourceVersion":"8"}}}"#.to_owned()
            } else {
                list.to_owned()
            };
            sent.lock().expect("no panic").push(request);
            async { Ok::<_, Infallible>(Response::new(Body::from(body.into_bytes()))) }
        });
        let api: Api<ConfigMap> = Api::all(with_first_list(Client::new(service, "default")));
        let mut events = Box::pin(watched(api, Config::default().labels("app=a").timeout(9)));
        let mut seen = Vec::new();
        while seen.last().is_none_or(|event| event != "Apply c") {
            let name = |object: ConfigMap| object.metadata.name.expect("a name");
            seen.push(match events.try_next().await {
                Ok(Some(Event::InitApply(object))) => format!("InitApply {}", name(object)),
                Ok(Some(Event::Apply(object))) => format!("Apply {}", name(object)),
                Ok(Some(event)) => format!("{event:?}"),
                Ok(None) => panic!("the watch ended"),
                Err(_) => "error".to_owned(),
            });
        }
        let requests = requests.lock().expect("no panic").clone();
        (seen, requests)
    }

    const STREAM: &str = "/api/v1/configmaps?&watch=true&timeoutSeconds=9&labelSelector=app%3Da&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0";
    const RESUMED: &str = "/api/v1/configmaps?&watch=true&timeoutSeconds=9&labelSelector=app%3Da&allowWatchBookmarks=true&resourceVersion=7";
    const FIRST: &str = "/api/v1/configmaps?labelSelector=app%3Da";

    #[tokio::test]
    async fn watch_continues_after_its_list() {
        let (events, requests) = watch("34+", LIST).await;
        assert_eq!(events, ["Init", "InitApply a", "InitApply b", "InitDone", "Apply c"]);
        assert_eq!(requests, ["/version", FIRST, RESUMED]);
        let (_, requests) = watch("33", LIST).await;
        assert_eq!(requests, ["/version", STREAM, RESUMED]);
    }

    #[tokio::test]
    async fn broken_list_is_not_believed_and_streamed_next_time() {
        let (events, requests) = watch("36", &LIST[..150]).await;
        let after = ["Init", "InitApply a", "InitApply b", "InitDone", "Apply c"];
        assert_eq!(events[..4], ["Init", "InitApply a", "InitApply b", "error"]);
        assert_eq!(events[4..], after);
        assert_eq!(requests, ["/version", FIRST, STREAM, RESUMED]);
    }
}
