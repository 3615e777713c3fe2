//! Accepts connections, a limited number at a time.

use manifest::problem::plain;
use std::convert::Infallible;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::warn;

/// The pause when no connection can be accepted because too many files are open.
const ACCEPT_BACKOFF: Duration = Duration::from_secs(1);

/// Listens on an address. As for programs in Go, `0.0.0.0` is every address, also of IPv6: kubelets of a cluster without IPv4 probe
/// those.
///
/// # Errors
/// Returns a line with the address and the reason.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    if address.ip().is_unspecified()
        && let Ok(listener) = TcpListener::bind((Ipv6Addr::UNSPECIFIED, address.port())).await
    {
        return Ok(listener);
    }
    // A kernel without IPv6.
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| format!("cannot listen on {address}: {}", plain(&error)))
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    #[tokio::test]
    async fn unspecified_address_is_that_of_both_families() {
        let listener = listen((Ipv4Addr::UNSPECIFIED, 0).into()).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        for ip in addresses {
            // A machine may have no IPv6.
            if TcpListener::bind((ip, 0)).await.is_ok() {
                TcpStream::connect((ip, port)).await.expect("a connection");
            }
        }
        let taken = listen((Ipv4Addr::UNSPECIFIED, port).into())
            .await
            .expect_err("a taken port");
        assert!(taken.contains(&format!("cannot listen on 0.0.0.0:{port}: ")), "{taken}");
    }
}
