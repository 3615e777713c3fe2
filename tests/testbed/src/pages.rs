//! Argo CD's pages at an address of their own: in front of argocd-server, with the extensions of its Pod.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::parts::argocd_version;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A server in front of argocd-server. Dropping it ends it.
///
/// argocd-server reads extensions only from `/tmp/extensions`, which all processes of a machine share.
#[derive(Debug)]
pub(crate) struct Pages {
    url: String,
    exist: bool,
    serving: JoinHandle<()>,
}

struct Upstream {
    address: String,
    client: Client<HttpConnector, Incoming>,
    /// The folder that the Pod of argocd-server has as `/tmp/extensions`.
    extensions: PathBuf,
}

impl Pages {
    /// Starts the server in front of the argocd-server at `address`.
    pub(crate) async fn start(address: &str, extensions: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let client = Client::builder(TokioExecutor::new()).build_http();
        let index = format!("http://{address}/").parse()?;
        let upstream = Arc::new(Upstream {
            address: address.to_owned(),
            client,
            extensions,
        });
        let exist = has_pages(index).await?;
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let upstream = Arc::clone(&upstream);
                let answer = service_fn(move |request| Arc::clone(&upstream).answer(request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(connection), answer));
            }
        });
        Ok(Self { url, exist, serving })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns false if this argocd-server was built without pages, and serves only the API.
    pub(crate) fn exist(&self) -> bool {
        self.exist
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Returns true if an argocd-server serves its first page.
async fn has_pages(index: Uri) -> Result<bool> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let request = Request::get(index).header(ACCEPT, "text/html").body(Full::default())?;
    Ok(client.request(request).await?.status().is_success())
}

impl Upstream {
    async fn answer(
        self: Arc<Self>,
        mut request: Request<Incoming>,
    ) -> Result<Response<BoxBody<Bytes, Failure>>, Failure> {
        if request.uri().path() == "/extensions.js" {
            return Ok(response("application/javascript", extensions(&self.extensions)?));
        }
        let accept = request.headers().get(ACCEPT).cloned();
        let is_page = accept.is_some_and(|accept| String::from_utf8_lossy(accept.as_bytes()).contains("text/html"));
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = format!("http://{}{path}", self.address).parse()?;
        request.headers_mut().remove(HOST);
        let answer = self.client.request(request).await?;
        if is_page && answer.status().is_server_error() {
            return Ok(response("text/html; charset=utf-8", no_pages()));
        }
        Ok(answer.map(|body| body.map_err(Failure::from).boxed()))
    }
}

/// Returns the scripts that argocd-server joins.
fn extensions(folder: &Path) -> Result<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "js"));
    files.sort();
    Ok(files
        .iter()
        .map(fs::read_to_string)
        .collect::<Result<Vec<_>, _>>()?
        .join("\n"))
}

fn no_pages() -> String {
    format!(
        "<!DOCTYPE html><title>No pages</title>\n<p>This Argo CD was built from its Go module, which has the API without the pages. \
         Put the released command line <code>argocd</code>, version {}, on the PATH, and start the testbed again.\n",
        argocd_version()
    )
}

fn response(content_type: &'static str, body: String) -> Response<BoxBody<Bytes, Failure>> {
    let mut response = Response::new(Full::new(body.into()).map_err(|never| match never {}).boxed());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
