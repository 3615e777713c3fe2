//! A DNS server with one name.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The port: resolvers use no other.
const PORT: u16 = 53;

const HEADER: usize = 12;
/// The type of a question for an IPv4 address.
const A: [u8; 2] = [0, 1];

/// A name server that answers until the tests end.
pub(crate) struct NameServer {
    address: Ipv4Addr,
    questions: Arc<Mutex<BTreeSet<String>>>,
}

impl NameServer {
    /// Starts a name server on an unused address of the loopback network. It answers `target` for `name`, and "no such name" for
    /// all others.
    pub(crate) fn start(name: &'static str, target: Ipv4Addr) -> Result<Self> {
        let addresses = (1..=250).map(|last| Ipv4Addr::new(127, 0, 53, last));
        let bound = |address: Ipv4Addr| Some((address, UdpSocket::bind((address, PORT)).ok()?));
        let (address, socket) = addresses.clone().find_map(bound).context("port 53 takes root")?;
        let questions = Arc::new(Mutex::new(BTreeSet::new()));
        let recorded = Arc::clone(&questions);
        thread::spawn(move || {
            let mut packet = [0; 512];
            loop {
                let Ok((length, from)) = socket.recv_from(&mut packet) else {
                    return;
                };
                let Some((question, answer)) = answer(&packet[..length], name, target) else {
                    continue;
                };
                recorded.lock().unwrap_or_else(PoisonError::into_inner).insert(question);
                let _: Result<usize, _> = socket.send_to(&answer, from as SocketAddr);
            }
        });
        Ok(Self { address, questions })
    }

    pub(crate) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Returns the names in its questions.
    pub(crate) fn questions(&self) -> BTreeSet<String> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the name in a question, and the answer (RFC 1035, section 4).
fn answer(packet: &[u8], known: &str, target: Ipv4Addr) -> Option<(String, Vec<u8>)> {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(packet.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let name = labels.join(".");
    let kind = packet.get(at..at + 2)?;
    let question = packet.get(HEADER..at + 4)?;
    let is_known = name == known;
    let answers = u8::from(is_known && kind == A);
    let mut answer = packet[..2].to_vec();
    // An authoritative answer, with or without an error; one question, and an answer if there is one.
    answer.extend([0x85, if is_known { 0x80 } else { 0x83 }, 0, 1, 0, answers, 0, 0, 0, 0]);
    answer.extend(question);
    if answers == 1 {
        // A reference to the name in the question; type A, class IN, for a minute, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(target.octets());
    }
    Some((name, answer))
}
