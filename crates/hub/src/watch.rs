//! Starts watches with one stream of all objects (`WatchList`), which API servers support since Kubernetes 1.32, instead of pages
//! that each load the API server. Older API servers reject such a request; then the watch starts with pages. For newer ones,
//! [`with_first_list`](crate::with_first_list) turns the stream into a list.

use futures::stream::{Stream, StreamExt};
use http::Uri;
use http::uri::PathAndQuery;
use kube::client::Body;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Error, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::future;

/// Watches all objects of a kind, starting with the existing ones.
pub fn watched<K>(api: Api<K>, config: Config) -> impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let streamed = watcher(api.clone(), config.clone().streaming_lists());
    let streamed = streamed.take_while(|event| future::ready(!is_unknown(event)));
    streamed.chain(watcher(api, config))
}

/// Returns true if the API server does not support streamed lists and rejects the request as invalid.
fn is_unknown<K>(event: &Result<Event<K>, watcher::Error>) -> bool {
    let Err(watcher::Error::WatchStartFailed(Error::Api(status))) = event else {
        return false;
    };
    matches!(status.code, 400 | 422)
}

/// Requests the most recent state. kube requests the state of any cache of the API server (`resourceVersion=0`), which may lack
/// objects that another replica has already reported; a missing object would make the controller delete something.
pub fn as_it_is_now(mut request: http::Request<Body>) -> http::Request<Body> {
    if let Some(uri) = without_version(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

fn without_version(uri: &Uri) -> Option<Uri> {
    with_query(uri, |part| part != "resourceVersion=0")
}

/// Returns the address of a watch that begins with the existing objects, with these parts of its query.
pub(crate) fn with_query(uri: &Uri, is_wanted: impl Fn(&str) -> bool) -> Option<Uri> {
    let query = uri.query().filter(|query| query.contains("sendInitialEvents=true"))?;
    let wanted: Vec<_> = query.split('&').filter(|part| is_wanted(part)).collect();
    let mut parts = uri.clone().into_parts();
    let text = format!("{}?{}", uri.path(), wanted.join("&"));
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(uri: &str) -> String {
        let request = http::Request::get(uri).body(Body::empty()).unwrap();
        as_it_is_now(request).uri().to_string()
    }

    #[test]
    fn watch_with_initial_events_omits_the_resource_version() {
        assert_eq!(
            changed(
                "https://hub/apis/a/v1/works?watch=true&sendInitialEvents=true&resourceVersion=0&allowWatchBookmarks=true"
            ),
            "https://hub/apis/a/v1/works?watch=true&sendInitialEvents=true&allowWatchBookmarks=true"
        );
        for other in [
            "https://hub/apis/a/v1/works?watch=true&resourceVersion=0",
            "https://hub/apis/a/v1/works?watch=true&sendInitialEvents=true&resourceVersion=01",
            "https://hub/apis/a/v1/works",
        ] {
            assert_eq!(changed(other), other);
        }
    }
}
