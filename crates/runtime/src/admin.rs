//! The HTTP server for Kubernetes and Prometheus: `/healthz`, `/readyz`, `/metrics`.

use super::metrics::{CONTENT_TYPE, Metrics};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE as TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tracing::debug;

/// The maximum number of concurrent connections; others wait until one ends.
const MAX_CONNECTIONS: usize = 64;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The time limit for a connection, with all requests and responses.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

const MAX_REQUEST_SIZE: usize = 16 * 1024;

/// Serves requests while it is polled; dropping it closes the connections.
///
/// `/readyz` responds with the reason if the process is not ready, in one plain line such as `waiting for: secrets`.
pub async fn serve<R>(listener: TcpListener, metrics: Metrics, ready: R) -> Infallible
where
    R: Fn() -> Result<(), String> + Send + Sync + 'static,
{
    let shared = Arc::new((metrics, ready));
    hub::serve(listener, MAX_CONNECTIONS, |stream| {
        let shared = Arc::clone(&shared);
        async move {
            let service = service_fn(async |request: Request<Incoming>| {
                let (metrics, ready) = &*shared;
                Ok::<_, Infallible>(answer(metrics, ready, request.method(), request.uri().path()))
            });
            // An idle connection would take a slot from others.
            let conversation = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_TIMEOUT)
                .keep_alive(false)
                .max_buf_size(MAX_REQUEST_SIZE)
                .serve_connection(TokioIo::new(stream), service);
            match timeout(CONNECTION_TIMEOUT, conversation).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(reason = %error, "connection failed"),
                Err(_) => debug!("connection timed out"),
            }
        }
    })
    .await
}

fn answer(
    metrics: &Metrics,
    ready: impl Fn() -> Result<(), String>,
    method: &Method,
    path: &str,
) -> Response<Full<Bytes>> {
    match path {
        "/healthz" | "/readyz" | "/metrics" if method != Method::GET && method != Method::HEAD => {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed: use GET or HEAD");
            let methods = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(ALLOW, methods);
            answer
        }
        "/healthz" => plain(StatusCode::OK, "ok"),
        "/readyz" => match ready() {
            Ok(()) => plain(StatusCode::OK, "ok"),
            Err(reason) => plain(StatusCode::SERVICE_UNAVAILABLE, &reason),
        },
        "/metrics" => typed(CONTENT_TYPE, metrics.render()),
        _ => plain(StatusCode::NOT_FOUND, "not found: use /healthz, /readyz or /metrics"),
    }
}

fn plain(status: StatusCode, line: &str) -> Response<Full<Bytes>> {
    let mut answer = typed("text/plain; charset=utf-8", format!("{line}\n"));
    *answer.status_mut() = status;
    answer
}

fn typed(content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    answer
        .headers_mut()
        .insert(TYPE, HeaderValue::from_static(content_type));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;

    /// Serves on a free port.
    async fn serving(
        ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> (SocketAddr, JoinHandle<Infallible>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (
            address,
            tokio::spawn(serve(
                listener,
                Metrics::with("argocd_ocm_cmp", "Certificates", |_| ()).0,
                ready,
            )),
        )
    }

    /// Returns all that the server sends in response to this text.
    async fn sent(address: SocketAddr, text: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        rest(&mut stream).await
    }

    async fn rest(stream: &mut TcpStream) -> String {
        let mut answer = Vec::new();
        // A connection that is cut off still has the response up to that point.
        let _end = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    /// Returns the status line and the body of the response.
    async fn asked(address: SocketAddr, method: &str, path: &str) -> (String, String) {
        let answer = sent(address, &format!("{method} {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.lines().next().unwrap().strip_prefix("HTTP/1.1 ").unwrap();
        (status.to_owned(), body.to_owned())
    }

    #[tokio::test]
    async fn readiness_reports_what_it_waits_for() {
        static IS_READY: AtomicBool = AtomicBool::new(false);
        let ready = || {
            let waiting = || "waiting for: manifestworks, managedclusters".to_owned();
            IS_READY.load(Ordering::Relaxed).then_some(()).ok_or_else(waiting)
        };
        let (address, _server) = serving(ready).await;
        let answer = |status: &str, body: &str| (status.to_owned(), body.to_owned());
        let waiting = answer(
            "503 Service Unavailable",
            "waiting for: manifestworks, managedclusters\n",
        );
        assert_eq!(asked(address, "GET", "/readyz").await, waiting);
        assert_eq!(asked(address, "GET", "/healthz").await, answer("200 OK", "ok\n"));
        IS_READY.store(true, Ordering::Relaxed);
        assert_eq!(
            asked(address, "GET", "/readyz?verbose=1").await,
            answer("200 OK", "ok\n")
        );
        assert_eq!(asked(address, "HEAD", "/healthz").await, answer("200 OK", ""));
    }

    #[tokio::test]
    async fn metrics_have_the_openmetrics_content_type() {
        let (address, _server) = serving(|| Ok(())).await;
        let answer = sent(address, "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let header = "\r\ncontent-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
        assert!(answer.contains(header), "{answer}");
        assert!(
            answer.contains("\nargocd_ocm_cmp_leader 0\n") && answer.ends_with("# EOF\n"),
            "{answer}"
        );
    }

    #[tokio::test]
    async fn refuses_unknown_paths_and_methods() {
        let (address, _server) = serving(|| Ok(())).await;
        for (method, path, status) in [
            ("GET", "/", "404 Not Found"),
            ("GET", "/metrics/", "404 Not Found"),
            ("GET", "/../etc/passwd", "404 Not Found"),
            ("POST", "/debug", "404 Not Found"),
            ("POST", "/healthz", "405 Method Not Allowed"),
            ("DELETE", "/metrics", "405 Method Not Allowed"),
        ] {
            assert_eq!(asked(address, method, path).await.0, status, "{method} {path}");
        }
        let answer = sent(address, "PUT /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.contains("\r\nallow: GET, HEAD\r\n"), "{answer}");
    }

    #[tokio::test]
    async fn malformed_request_ends_only_its_connection() {
        let (address, server) = serving(|| Ok(())).await;
        let long = format!("GET /healthz HTTP/1.1\r\nx: {}", "y".repeat(2 * MAX_REQUEST_SIZE));
        let tls = "\u{16}\u{3}\u{1}\u{0}hello\r\n\r\n";
        let h2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        for nonsense in [
            "",
            "\r\n\r\n",
            tls,
            h2,
            "GET\r\n\r\n",
            "GET /healthz HTTP/1.1\r\n: \r\n\r\n",
            &long,
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // The server may close the connection before all is sent.
            let _end = stream.write_all(nonsense.as_bytes()).await;
            let _end = stream.shutdown().await;
            let answer = rest(&mut stream).await;
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
                "{nonsense:?}: {answer}"
            );
        }
        assert_eq!(asked(address, "GET", "/healthz").await.0, "200 OK");
        assert!(!server.is_finished());
    }

    /// In a paused runtime, time advances to the next timer when all tasks wait.
    #[tokio::test(start_paused = true)]
    async fn slow_clients_block_others_only_briefly() {
        let (address, _server) = serving(|| Ok(())).await;
        let mut slow = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
            slow.push(stream);
        }
        let start = tokio::time::Instant::now();
        assert_eq!(asked(address, "GET", "/healthz").await.0, "200 OK");
        assert!(
            start.elapsed() >= REQUEST_TIMEOUT && start.elapsed() <= CONNECTION_TIMEOUT,
            "{:?}",
            start.elapsed()
        );
        for stream in &mut slow {
            assert!(!rest(stream).await.contains("200 OK"));
        }
    }

    #[tokio::test]
    async fn connection_serves_one_request() {
        let (address, _server) = serving(|| Ok(())).await;
        let twice = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2);
        assert_eq!(sent(address, &twice).await.matches("200 OK").count(), 1);
    }

    #[tokio::test]
    async fn aborting_the_server_closes_all_connections() {
        let (address, server) = serving(|| Ok(())).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /healthz").await.unwrap();
        assert_eq!(asked(address, "GET", "/healthz").await.0, "200 OK");
        server.abort();
        assert!(server.await.unwrap_err().is_cancelled());
        assert_eq!(rest(&mut stream).await, "");
        assert!(TcpStream::connect(address).await.is_err());
    }
}
