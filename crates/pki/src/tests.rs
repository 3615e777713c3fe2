//! Tests of the certificates with another implementation: OpenSSL, whose command must be installed.

mod properties;
mod reading;
mod recipes;

use super::*;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use primitives::object_ref::ObjectRef;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// 2026-01-01 in seconds.
const START: i64 = 1_767_225_600;
const DAY: i64 = 86_400;

type Made = BTreeMap<&'static str, Option<Vec<u8>>>;

fn at(days: i64) -> Timestamp {
    Timestamp::from_second(START + days * DAY).unwrap()
}

fn authority() -> Authority {
    Authority {
        object_ref: ObjectRef::new("argocd", "argocd-agent-ca"),
        version: "1".into(),
    }
}

/// Returns the `data` of a Secret after the result is written to it.
fn written(mut data: BTreeMap<String, ByteString>, made: &Made) -> BTreeMap<String, ByteString> {
    for (&key, value) in made {
        match value {
            Some(bytes) => data.insert(key.into(), ByteString(bytes.clone())),
            None => data.remove(key),
        };
    }
    data
}

fn secret(parts: &[(&'static str, &[u8])]) -> AuthorityData {
    let parts = parts
        .iter()
        .map(|(key, bytes)| ((*key).to_owned(), ByteString(bytes.to_vec())));
    AuthorityData::new(parts.collect()).unwrap()
}

fn data_of(made: &Made) -> AuthorityData {
    AuthorityData::new(written(BTreeMap::new(), made)).unwrap()
}

fn part<'m>(made: &'m Made, key: &str) -> &'m [u8] {
    made[key].as_deref().unwrap()
}

fn only(pem: &[u8]) -> Certificate {
    let [certificate] = Certificate::read_all(pem).unwrap().try_into().unwrap();
    certificate
}

fn names(names: &[&str]) -> BTreeSet<Box<str>> {
    names.iter().map(|&name| name.into()).collect()
}

fn new_authority() -> Made {
    let recipe = Recipe::Authority {
        common_name: authority_name(at(0)),
        validity: at(0)..at(365),
    };
    make(&recipe, None).unwrap()
}

/// A shared CA for most tests, because generating its key is slow.
static AUTHORITY: LazyLock<Made> = LazyLock::new(new_authority);

fn server() -> Recipe {
    Recipe::Server {
        common_name: "argocd-agent-principal".into(),
        names: names(&["principal.argocd.svc", "*.example.com", "10.0.0.1", "::1"]),
        validity: at(1)..at(31),
        authority: authority(),
    }
}

/// Returns a recipe for cluster1's argocd-agent, as OCM's registration agent requests it.
fn sign(request: Vec<u8>) -> Recipe {
    Recipe::Sign {
        key: "certificate".into(),
        request: String::from_utf8(request).unwrap(),
        validity: at(1)..at(2),
        authority: authority(),
    }
}

/// Runs the openssl command and returns its output.
fn try_openssl(arguments: &str, input: &[u8]) -> Result<Vec<u8>, String> {
    let mut command = Command::new("openssl");
    command
        .args(arguments.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the openssl command is installed");
    // The command may not read its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

fn openssl(arguments: &str, input: &[u8]) -> Vec<u8> {
    try_openssl(arguments, input).unwrap_or_else(|error| panic!("openssl {arguments}: {error}"))
}

fn openssl_text(arguments: &str, input: &[u8]) -> String {
    String::from_utf8(openssl(arguments, input)).unwrap()
}

/// Creates a certificate request with that key, by OpenSSL.
fn request(key: &[u8], subject: &str) -> Vec<u8> {
    openssl(&format!("req -new -key /dev/stdin -subj {subject}"), key)
}

const AGENT: &str = "/O=system:open-cluster-management:cluster1/O=system:authenticated/CN=cluster1";
