//! Certificates (stub).
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId([u8; 32]);
#[derive(Debug)]
pub struct Error;
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("x")
    }
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub common_name: Box<str>,
    pub organizations: Box<[Box<str>]>,
    pub names: BTreeSet<Box<str>>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    pub serial: Box<str>,
    pub is_authority: bool,
    pub serves: bool,
    pub is_client: bool,
    key: KeyId,
}
impl Certificate {
    pub fn read_all(_pem: &[u8]) -> Result<Vec<Certificate>, Error> {
        Err(Error)
    }
    pub fn is_issued_by(&self, _authority: &Certificate) -> bool {
        false
    }
    pub fn has_key(&self, key: &KeyId) -> bool {
        self.key == *key
    }
    pub fn renews_at(&self) -> Timestamp {
        self.not_after
    }
    pub fn fingerprint(&self) -> &str {
        ""
    }
}
pub fn key_of(_pem: &[u8]) -> Result<KeyId, Error> {
    Err(Error)
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub version: Box<str>,
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    Jwt,
    Authority {
        common_name: String,
        not_before: Timestamp,
        not_after: Timestamp,
    },
    NextAuthority {
        common_name: String,
        not_before: Timestamp,
        not_after: Timestamp,
        authority: Authority,
    },
    Promote {
        authority: Authority,
    },
    Drop {
        authority: Authority,
    },
    Server {
        common_name: String,
        names: BTreeSet<Box<str>>,
        not_before: Timestamp,
        not_after: Timestamp,
        authority: Authority,
    },
    Client {
        common_name: String,
        organizations: Vec<String>,
        not_before: Timestamp,
        not_after: Timestamp,
        authority: Authority,
    },
    Sign {
        request: String,
        not_before: Timestamp,
        not_after: Timestamp,
        authority: Authority,
    },
}
impl Recipe {
    pub fn authority(&self) -> Option<&Authority> {
        None
    }
}
pub struct AuthorityData {
    pub certificates: Vec<u8>,
    pub key: Vec<u8>,
    pub next: Option<Vec<u8>>,
}
pub fn make(
    _recipe: &Recipe,
    _authority: Option<&AuthorityData>,
) -> Result<BTreeMap<&'static str, Option<Vec<u8>>>, Error> {
    Err(Error)
}
pub struct Request {
    pub common_name: Box<str>,
    pub organizations: Vec<Box<str>>,
    pub names: BTreeSet<Box<str>>,
}
pub fn read_request(_pem: &[u8]) -> Result<Request, Error> {
    Err(Error)
}
