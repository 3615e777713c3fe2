//! Accepts connections, a limited number at a time.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::warn;

/// The pause when no connection can be accepted because too many files are open.
const ACCEPT_BACKOFF: Duration = Duration::from_secs(1);

/// Passes each connection to `converse` while it is polled; dropping it closes the connections. At most `max` connections are open;
/// others wait until one ends.
pub async fn serve<F>(listener: TcpListener, max: usize, converse: impl Fn(TcpStream) -> F) -> Infallible
where
    F: Future<Output = ()> + Send + 'static,
{
    let free = Arc::new(Semaphore::new(max));
    let mut connections = JoinSet::new();
    loop {
        let permit = Arc::clone(&free)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let stream = loop {
            match listener.accept().await {
                Ok((stream, _)) => break stream,
                Err(error) => {
                    warn!(reason = %error, "cannot accept a connection");
                    sleep(ACCEPT_BACKOFF).await;
                }
            }
        };
        while connections.try_join_next().is_some() {}
        let conversation = converse(stream);
        connections.spawn(async move {
            conversation.await;
            drop(permit);
        });
    }
}
