//! Reads all objects of a kind page by page, with several requests in flight.

use futures::stream::{self, StreamExt, TryStreamExt};
use kube::core::Status;
use kube::core::params::ListParams;
use kube::core::request::{self, Request};
use kube::{Client, Error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use tokio::join;
use tokio::task::yield_now;

/// The maximum number of requests of one job in flight.
const IN_FLIGHT: usize = 16;

/// Runs all jobs, a bounded number at a time, and returns their results in order. The error is that of the first job in order
/// that fails; unfinished jobs are dropped.
pub async fn in_order<T, E>(jobs: impl IntoIterator<Item: Future<Output = Result<T, E>>>) -> Result<Vec<T>, E> {
    stream::iter(jobs).buffered(IN_FLIGHT).try_collect().await
}

/// Reads all objects of a path into `T`, at most `page` objects per request. While `keep` processes a page, the API server sends
/// the next one.
pub async fn each<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    page: ListParams,
    keep: impl FnMut(T),
) -> Result<(), Error> {
    pages(client, path, page, Request::list, keep).await
}

/// Reads the metadata of all objects of a path into `T`, as [`each`] reads the objects.
pub async fn each_metadata<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    page: ListParams,
    keep: impl FnMut(T),
) -> Result<(), Error> {
    pages(client, path, page, Request::list_metadata, keep).await
}

type ListRequest = fn(&Request, &ListParams) -> Result<http::Request<Vec<u8>>, request::Error>;

async fn pages<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    mut page: ListParams,
    list: ListRequest,
    mut keep: impl FnMut(T),
) -> Result<(), Error> {
    let requests = Request::new(path);
    let send = async |page: &ListParams| {
        let request = list(&requests, page).map_err(Error::BuildRequest)?;
        client.request_text(request).await
    };
    let read = async |page: &ListParams| match send(page).await {
        Err(Error::Api(status)) => match present_token(&status) {
            Some(token) => send(&page.clone().continue_token(token)).await,
            None => Err(Error::Api(status)),
        },
        answer => answer,
    };
    let mut text = read(&page).await?;
    loop {
        let ListPage { items, metadata } = serde_json::from_str(&text).map_err(Error::SerdeError)?;
        let process = async {
            for item in items {
                keep(item);
                // Also to the connection, which reads the next page.
                yield_now().await;
            }
        };
        let Some(more) = metadata.more.filter(|more| !more.is_empty()) else {
            process.await;
            return Ok(());
        };
        page = page.continue_token(&more);
        let (next, ()) = join!(read(&page), process);
        text = next?;
    }
}

/// Returns the token with which an API server continues a list from its present state, if it has forgotten the state at the beginning, as
/// it does after five to ten minutes: reading 50,000 works from a slow hub may take longer.
fn present_token(refused: &Status) -> Option<&str> {
    let token = refused.metadata.as_ref()?.continue_.as_deref();
    token.filter(|token| refused.code == 410 && !token.is_empty())
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct ListPage<T> {
    /// An empty list of metadata has `null` here.
    #[serde(deserialize_with = "items")]
    items: Vec<T>,
    #[serde(default)]
    metadata: ListMetadata,
}

#[derive(Deserialize, Default)]
struct ListMetadata {
    #[serde(rename = "continue")]
    more: Option<String>,
}

fn items<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, from_str, json};
    use std::convert::Infallible;

    #[test]
    fn parses_an_empty_list() {
        for text in [r#"{"items": null}"#, r#"{"items": [], "metadata": {}}"#] {
            let list: ListPage<Value> = from_str(text).expect("a list");
            assert!(list.items.is_empty());
        }
        assert!(from_str::<ListPage<Value>>("{}").is_err(), "not a list");
    }

    #[tokio::test]
    async fn list_continues_if_the_api_server_has_forgotten_its_beginning() {
        let service = tower::service_fn(async |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            let (code, body) = if query.contains("continue=present") {
                (200, json!({"items": [3]}))
            } else if query.contains("continue=old") {
                let metadata = json!({"continue": "present"});
                (
                    410,
                    json!({"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "metadata": metadata}),
                )
            } else {
                (200, json!({"items": [1, 2], "metadata": {"continue": "old"}}))
            };
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, Infallible>(Response::builder().status(code).body(body).expect("an answer"))
        });
        let client = Client::new(service, "default");
        let mut all: Vec<u8> = Vec::new();
        let read = each(&client, "/api/v1/pods", ListParams::default().limit(2), |item| {
            all.push(item);
        });
        read.await.expect("a list");
        assert_eq!(all, [1, 2, 3]);
    }
}
