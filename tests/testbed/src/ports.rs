//! Free ports on the loopback interface.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use crate::wait::DEADLINE;

/// The ports to choose from. Linux uses ports from 32768 for outgoing connections: such a port could be in use when a server
/// listens on it.
const RANGE: Range<u16> = 20_000..32_000;

/// Returns a port on 127.0.0.1 that no other caller gets for the next minute, in this process or another.
///
/// One connection is made and closed from the listening side, which leaves the port in `TIME_WAIT`. `SO_REUSEADDR` decides who
/// can bind it then: a server that sets it, as all of ours do, but not this function, which sets it only after it has bound the
/// port.
pub fn free() -> Result<u16> {
    let first = fastrand::u16(RANGE);
    for port in (first..RANGE.end).chain(RANGE.start..first) {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let socket = socket()?;
        let bound = bind(&socket, &address)
            .and_then(|()| set_socket_reuseaddr(&socket, true))
            .and_then(|()| listen(&socket, 1));
        match bound {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => continue,
            Err(error) => return Err(error).with_context(|| format!("failed to bind {address}")),
        }
        let listener = TcpListener::from(socket);
        let client = TcpStream::connect(address)?;
        let (server, _) = listener.accept()?;
        drop(server);
        drop(client);
        drop(listener);
        wait_until_released(address)?;
        return Ok(port);
    }
    anyhow::bail!("all ports from {} to {} are in use", RANGE.start, RANGE.end)
}

/// Creates a socket that no other program inherits.
fn socket() -> Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Waits until a server can listen on an address: a process that another thread has forked keeps a copy of our listening socket
/// until it executes its program.
fn wait_until_released(address: SocketAddrV4) -> Result<()> {
    let started = Instant::now();
    loop {
        // Another such process may get a copy of this socket too, but that does not listen.
        let socket = socket()?;
        set_socket_reuseaddr(&socket, true)?;
        match bind(&socket, &address) {
            Ok(()) => return Ok(()),
            Err(Errno::ADDRINUSE) if started.elapsed() < DEADLINE => thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error).with_context(|| format!("{address} is not released")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_no_port_of_outgoing_connections() {
        let outgoing = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
        let first: u16 = outgoing.split_whitespace().next().unwrap().parse().unwrap();
        assert!(RANGE.end <= first, "{RANGE:?} and {outgoing}");
    }
}
