//! Free ports on the loopback interface.

use std::net::{Ipv4Addr, TcpListener, TcpStream};

use anyhow::{Context, Result};

/// Returns a port on 127.0.0.1 that the kernel assigns to no other process for the next minute.
///
/// Binding port 0 alone only finds a port that is free now; another process could get the same one before ours listens. So one
/// connection is made and closed from the listening side: the port is left in `TIME_WAIT`, which keeps the kernel from assigning
/// it while a server that sets `SO_REUSEADDR`, as all of ours do, can still listen on it.
pub fn free() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to bind a port")?;
    let address = listener.local_addr()?;
    let client = TcpStream::connect(address)?;
    let (server, _) = listener.accept()?;
    drop(server);
    drop(client);
    Ok(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ports_are_not_given_twice_and_can_be_listened_on() {
        let ports: Vec<u16> = (0..200).map(|_| free().unwrap()).collect();
        let distinct: BTreeSet<u16> = ports.iter().copied().collect();
        assert_eq!(distinct.len(), ports.len());
        for port in ports {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }
}
