//! The HTTPS server for argocd-server.

use crate::identity::{Identity, TOKEN_HEADER};
use crate::limits::{CLIENT_TIMEOUT, CONNECTIONS, HEAD_BYTES};
use crate::refusal::HttpRefusal;
use crate::request::parse;
use crate::service::{Answer, Service};
use futures::stream;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info};

/// The HTTPS server that argocd-server forwards the requests of users to.
pub struct LiveServer {
    /// The service.
    pub service: Service,
    /// Its identity.
    pub identity: Identity,
    /// The namespace of Argo CD.
    pub argo_cd: String,
}

type LiveResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Serves requests while it is polled; dropping it closes the connections.
pub async fn serve(listener: TcpListener, server: LiveServer) -> Infallible {
    let acceptor = TlsAcceptor::from(Arc::clone(&server.identity.tls));
    let server = Arc::new(server);
    hub::serve(listener, CONNECTIONS, |stream| {
        let (server, acceptor) = (Arc::clone(&server), acceptor.clone());
        async move { server.converse(&acceptor, stream).await }
    })
    .await
}

impl LiveServer {
    async fn converse(&self, acceptor: &TlsAcceptor, stream: TcpStream) {
        let Ok(Ok(stream)) = timeout(CLIENT_TIMEOUT, acceptor.accept(stream)).await else {
            debug!("no TLS handshake");
            return;
        };
        let service = service_fn(async |request: Request<Incoming>| Ok::<_, Infallible>(self.respond(&request).await));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(CLIENT_TIMEOUT)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = connection.await {
            debug!(reason = %error, "connection failed");
        }
    }

    async fn respond<B>(&self, request: &Request<B>) -> LiveResponse {
        let path = request.uri().path();
        if path == "/healthz" {
            return response(StatusCode::OK, "text/plain; charset=utf-8", full("ok\n"));
        }
        match self.answer(request).await {
            Ok(Answer::Object(object)) => json(&object),
            Ok(Answer::Tree(tree)) => json(&tree),
            Ok(Answer::Events(events)) => json(&events),
            Ok(Answer::Logs(receiver)) => {
                let pieces = stream::unfold(receiver, async |mut receiver| {
                    let part = receiver.recv().await?;
                    let text = part.unwrap_or_else(|line| (line + "\n").into());
                    Some((Ok::<_, Infallible>(Frame::data(text)), receiver))
                });
                let body = StreamBody::new(pieces).boxed_unsync();
                response(StatusCode::OK, "text/plain; charset=utf-8", body)
            }
            Err(refusal) => {
                let mut answer = response(refusal.status, "application/json", full(refusal.body()));
                if refusal.status == StatusCode::METHOD_NOT_ALLOWED {
                    answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
                }
                answer
            }
        }
    }

    async fn answer<B>(&self, request: &Request<B>) -> Result<Answer, HttpRefusal> {
        let mut tokens = request.headers().get_all(TOKEN_HEADER).iter();
        let is_argo_cd = tokens
            .next()
            .is_some_and(|token| self.identity.accepts(token.as_bytes()));
        if !is_argo_cd || tokens.next().is_some() {
            return Err(HttpRefusal::new(
                StatusCode::UNAUTHORIZED,
                "the request is not from argocd-server: check extension.config in ConfigMap argocd-cm, and restart argocd-server",
            ));
        }
        if request.method() != Method::GET {
            return Err(HttpRefusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method not allowed: this view is read-only",
            ));
        }
        let uri = request.uri();
        let live = parse(
            uri.path(),
            uri.query().unwrap_or_default(),
            request.headers(),
            &self.argo_cd,
        )?;
        let answer = self.service.answer(&live).await;
        let refusal = answer.as_ref().err();
        let (status, why) = (
            refusal.map_or(StatusCode::OK, |refusal| refusal.status),
            refusal.map(|refusal| &*refusal.line),
        );
        info!(
            user = %live.user, application = %live.application.instance, cluster = %live.cluster, object = %live.object,
            view = %uri.path(), status = status.as_u16(), why, "request"
        );
        answer
    }
}

fn json(answer: &impl Serialize) -> LiveResponse {
    let text = serde_json::to_string(answer).expect("the answer has texts as keys");
    response(StatusCode::OK, "application/json", full(text))
}

fn full(text: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, Infallible> {
    Full::new(text.into()).boxed_unsync()
}

fn response(status: StatusCode, content_type: &'static str, body: UnsyncBoxBody<Bytes, Infallible>) -> LiveResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
