//! Refuses manifests that another program could take for another object than the one that was checked.
//!
//! A manifest is parsed again by Argo CD, the API servers and OCM's agent. Go's `encoding/json`, with which apimachinery finds out the
//! kind of a text (`Interpret`), ignores the case of keys, and lets the last of several keys win: for the agent, `"\u{212a}ind"` is
//! another `kind`. The agent also finds the resource of a kind by the kind in lower case (`NewDiscoveryRESTMapper`), and some decoders
//! take every object with `items` for a list. `tests/go_parity/agent.rs` compares with the agent.

use super::{canonical, schema};
use manifest::kinds::{BUILT_IN, BuiltIn, built_in};
use manifest::value::{Map, Value};
use ocm::names::is_dns_subdomain;
use std::borrow::Cow;

/// The keys that readers of any kind know.
const KEYS: [&str; 6] = ["apiVersion", "items", "kind", "metadata", "spec", "status"];

const METADATA_KEYS: [&[&str]; 3] = [&canonical::METADATA, &canonical::SERVER_SET, &["generateName"]];

/// The reason why a manifest may be taken for another object.
#[derive(Debug, thiserror::Error)]
pub enum IdentityFault {
    /// A key that is read as another one.
    #[error("decoders that ignore case read the key {} as {known}: {remedy}", quoted(.path))]
    Key {
        /// The path of the key.
        path: String,
        /// The path of the key that it is read as.
        known: String,
        remedy: String,
    },
    /// A kind that Kubernetes writes differently.
    #[error("kind {0} is not {1}, but OCM's agent finds the same resource for both: write {1}")]
    KindCase(String, &'static str),
    /// A kind that no cluster can have.
    #[error("kind {0:?} is not a kind of Kubernetes: write letters, digits and dashes only")]
    Kind(String),
    /// A list where an object is expected.
    #[error("it has items, so it is a list within a list: put its items into the outer list, or into another document")]
    List,
}

impl IdentityFault {
    /// Returns the path of the invalid field.
    pub fn path(&self) -> Cow<'_, str> {
        match self {
            Self::Key { path, .. } => path.into(),
            Self::KindCase(..) | Self::Kind(_) => "kind".into(),
            Self::List => "items".into(),
        }
    }
}

/// Returns the group, which may be empty, and the version of an `apiVersion`; `None` if no API server could serve it.
pub(super) fn api_version(text: &str) -> Option<(&str, &str)> {
    let (group, version) = match text.split_once('/') {
        None => ("", text),
        Some((group, version)) if is_dns_subdomain(group) => (group, version),
        Some(_) => return None,
    };
    (is_dns_subdomain(version) && !version.contains('.')).then_some((group, version))
}

/// Checks that no reader takes the kind for another one. Returns its description if it is built into Kubernetes.
pub(super) fn check_kind(group: &str, kind: &str) -> Result<Option<&'static BuiltIn>, IdentityFault> {
    if !kind.chars().all(|char| char.is_ascii_alphanumeric() || char == '-') {
        return Err(IdentityFault::Kind(kind.to_owned()));
    }
    if let Some(known) = built_in(group, kind) {
        return Ok(Some(known));
    }
    let in_other_case = |known: &&BuiltIn| known.kind.eq_ignore_ascii_case(kind) && known.group == group;
    match BUILT_IN.iter().find(in_other_case) {
        Some(known) => Err(IdentityFault::KindCase(kind.to_owned(), known.kind)),
        None => Ok(None),
    }
}

/// Checks that no reader takes a key of the manifest, or of its `metadata`, for another one, nor the manifest for a list. Returns the names
/// of the fields of its kind, see [`schema::fields_of`].
pub(super) fn check_keys(fields: &Map<'_>) -> Result<Option<Vec<&'static str>>, IdentityFault> {
    if let Some(Value::List(_)) = fields.get("items") {
        return Err(IdentityFault::List);
    }
    check_list_keys(fields)
}

/// As [`check_keys`], for a list.
pub(super) fn check_list_keys(fields: &Map<'_>) -> Result<Option<Vec<&'static str>>, IdentityFault> {
    let text = |name| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let own_fields = schema::fields_of(text("apiVersion"), text("kind"));
    check(fields, "", &[&KEYS, own_fields.as_deref().unwrap_or_default()])?;
    if let Some(Value::Map(metadata)) = fields.get("metadata") {
        check(metadata, "metadata.", &METADATA_KEYS)?;
    }
    Ok(own_fields)
}

fn check(fields: &Map<'_>, path: &str, known: &[&[&str]]) -> Result<(), IdentityFault> {
    for (key, _) in fields.iter() {
        if known.iter().any(|known| known.contains(&key)) {
            continue;
        }
        if let Some(known) = known.iter().copied().flatten().find(|known| is_read_as(key, known)) {
            return Err(IdentityFault::Key {
                path: format!("{path}{key}"),
                known: format!("{path}{known}"),
                remedy: if fields.get(known).is_some() {
                    "remove it".to_owned()
                } else {
                    format!("write {known}")
                },
            });
        }
    }
    Ok(())
}

/// Returns true if Go's `encoding/json` stores the value of `key` in the field `known`, which is ASCII: beyond ASCII, only two letters
/// have the same Unicode case folding as an ASCII one.
fn is_read_as(key: &str, known: &str) -> bool {
    let folded = key.chars().map(|char| match char {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    });
    folded.eq(known.chars().map(|char| char.to_ascii_lowercase()))
}

/// Returns a key in quotes, in ASCII, because another letter can look like the right one.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.escape_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::tests::fields;

    fn refusal(text: &str) -> String {
        check_keys(&fields(text)).map_or_else(|fault| format!("{}: {fault}", fault.path()), |_| String::new())
    }

    #[test]
    fn refuses_keys_that_go_reads_as_known_ones() {
        let table = "
            {apiVersion: v1, kind: ConfigMap, \u{212a}ind: Secret} => \u{212a}ind: decoders that ignore case read the key \"\\u{212a}ind\" as kind: remove it
            {apiVer\u{17f}ion: v1, kind: ConfigMap} => apiVer\u{17f}ion: decoders that ignore case read the key \"apiVer\\u{17f}ion\" as apiVersion: write apiVersion
            {apiVersion: v1, kind: Pod, metadata: {Name: a, name: b}} => metadata.Name: decoders that ignore case read the key \"metadata.Name\" as metadata.name: remove it
            {apiVersion: v1, kind: Pod, metadata: {UID: a}} => metadata.UID: decoders that ignore case read the key \"metadata.UID\" as metadata.uid: write uid
            {apiVersion: v1, kind: ConfigMap, DATA: {}} => DATA: decoders that ignore case read the key \"DATA\" as data: write data
            {apiVersion: example.com/v1, kind: Tank, Metadata: {}, Data: {}} => Metadata: decoders that ignore case read the key \"Metadata\" as metadata: write metadata
            {apiVersion: v1, kind: List, items: []} => items: it has items, so it is a list within a list: put its items into the outer list, or into another document";
        for (text, expected) in testing::rows(table) {
            assert_eq!(refusal(text), expected, "{text}");
        }
        for text in [
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {Name: b}}, data: {Kind: c, kind: d}}",
            "{apiVersion: example.com/v1, kind: Tank, data: {}, Data: {}, k\u{131}nd: a, kinds: b, kin: c, items: {}}",
        ] {
            assert_eq!(refusal(text), "", "{text}");
        }
    }

    #[test]
    fn refuses_kinds_that_no_cluster_has_or_that_the_agent_takes_for_another() {
        let refusal = |group, kind| check_kind(group, kind).map_or_else(|fault| fault.to_string(), |_| String::new());
        assert_eq!(
            refusal("", "secret"),
            "kind secret is not Secret, but OCM's agent finds the same resource for both: write Secret"
        );
        for kind in ["Secret.x", "S\u{117f}ecret", "Secret ", "\u{17f}ecret"] {
            assert!(refusal("", kind).contains("is not a kind of Kubernetes"), "{kind}");
        }
        for (group, kind) in [
            ("", "Secret"),
            ("example.com", "secret"),
            ("example.com", "Tank2"),
            ("", "SecretList"),
        ] {
            assert_eq!(refusal(group, kind), "", "{kind}");
        }
    }

    #[test]
    fn splits_an_api_version_that_an_api_server_can_serve() {
        for (text, expected) in [
            ("v1", Some(("", "v1"))),
            ("apps/v1", Some(("apps", "v1"))),
            ("cert-manager.io/v1alpha2", Some(("cert-manager.io", "v1alpha2"))),
            ("", None),
            ("/", None),
            ("/v1", None),
            ("apps/", None),
            ("a/b/c", None),
            ("../v1", None),
            ("apps/..", None),
            ("apps/v1 ", None),
            ("Apps/v1", None),
            ("v1.2", None),
        ] {
            assert_eq!(api_version(text), expected, "{text:?}");
        }
    }
}
