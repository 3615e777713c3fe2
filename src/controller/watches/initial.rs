//! How a watch learns what there is when it begins: one stream of all objects, as API servers send them since Kubernetes 1.32
//! (`WatchList`), instead of pages that each hold up the API server. Older ones refuse that, and are asked for pages.

use futures::stream::{Stream, StreamExt};
use http::Uri;
use http::uri::PathAndQuery;
use kube::client::Body;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Error, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::future;

/// All objects of a kind, and what becomes of them.
pub(super) fn watched<K>(
    api: Api<K>,
    config: Config,
) -> impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let streamed = watcher(api.clone(), config.clone().streaming_lists());
    let streamed = streamed.take_while(|event| future::ready(!is_unknown(event)));
    streamed.chain(watcher(api, config))
}

/// Whether an API server does not know of streams that begin with all there is: it takes the request for a mistake.
fn is_unknown<K>(event: &Result<Event<K>, watcher::Error>) -> bool {
    let Err(watcher::Error::WatchStartFailed(Error::Api(status))) = event else {
        return false;
    };
    matches!(status.code, 400 | 422)
}

/// Asks for all there is as it is now. kube asks for what some cache of the API server has (`resourceVersion=0`), which may lack
/// what another replica of it has long since told us of; and what is not there is a reason to take something away.
pub fn as_it_is_now(mut request: http::Request<Body>) -> http::Request<Body> {
    if let Some(uri) = without_version(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

fn without_version(uri: &Uri) -> Option<Uri> {
    let query = uri.query().filter(|query| query.contains("sendInitialEvents=true"))?;
    let wanted: Vec<_> = query.split('&').filter(|part| *part != "resourceVersion=0").collect();
    let mut parts = uri.clone().into_parts();
    let text = format!("{}?{}", uri.path(), wanted.join("&"));
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(uri: &str) -> String {
        let request = http::Request::get(uri).body(Body::empty()).unwrap();
        as_it_is_now(request).uri().to_string()
    }

    #[test]
    fn a_stream_begins_with_what_there_is_now() {
        assert_eq!(
            asked(
                "https://hub/apis/a/v1/works?watch=true&sendInitialEvents=true&resourceVersion=0&allowWatchBookmarks=true"
            ),
            "https://hub/apis/a/v1/works?watch=true&sendInitialEvents=true&allowWatchBookmarks=true"
        );
        for other in [
            "https://hub/apis/a/v1/works?watch=true&resourceVersion=0",
            "https://hub/apis/a/v1/works?watch=true&sendInitialEvents=true&resourceVersion=01",
            "https://hub/apis/a/v1/works",
        ] {
            assert_eq!(asked(other), other);
        }
    }
}
