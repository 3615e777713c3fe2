//! A parsed request, and the API server's knowledge of the kinds.

use super::selects;
use http::{Method, Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A request.
#[derive(Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural of the resource.
    pub plural: String,
    /// The namespace; none for all namespaces and for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name of the object; none for a collection.
    pub name: Option<String>,
    /// The subresource.
    pub subresource: Option<String>,
    /// The parameters of the URL.
    pub query: BTreeMap<String, String>,
    /// The body as JSON.
    pub body: Value,
    /// The path of the collection.
    path: String,
}

impl Call {
    /// Parses a request.
    ///
    /// # Panics
    ///
    /// Panics at a path that is none of an API resource.
    pub fn from_request(request: &Request<Vec<u8>>) -> Self {
        let parts: Vec<_> = request.uri().path().split('/').skip(1).collect();
        let (group, rest) = match &*parts {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => panic!("no such path: {}", request.uri()),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let query = request.uri().query().unwrap_or_default().split('&');
        let query = query.filter_map(|pair| pair.split_once('='));
        let below = rest.len().saturating_sub(1);
        Self {
            method: request.method().clone(),
            group: group.to_owned(),
            plural: rest[0].to_owned(),
            namespace,
            name: rest.get(1).map(ToString::to_string),
            subresource: rest.get(2).map(ToString::to_string),
            query: query.map(|(key, value)| (key.to_owned(), decode(value))).collect(),
            body: serde_json::from_slice(request.body()).unwrap_or_default(),
            path: format!("/{}", parts[..parts.len() - below].join("/")),
        }
    }

    /// Returns the path of the object; none for a list.
    pub(super) fn object_path(&self) -> Option<String> {
        let name = match self.method {
            Method::POST => self.body["metadata"]["name"].as_str(),
            _ => self.name.as_deref(),
        };
        Some(format!("{}/{}", self.path, name?))
    }

    pub(super) fn is_of_list(&self, path: &str) -> bool {
        path.rsplit_once('/').is_some_and(|(path, _)| path == self.path)
    }

    /// Returns the list of the selected objects.
    pub(super) fn list<'o>(&self, all: impl Iterator<Item = &'o Value>) -> Value {
        let text = |key: &str| self.query.get(key).map_or("", String::as_str);
        let all = all.filter(|object| selects(text("labelSelector"), text("fieldSelector"), object));
        let items: Vec<_> = all.collect();
        json!({"kind": format!("{}List", self.kind()), "items": items})
    }

    fn kind(&self) -> &'static str {
        match &*self.plural {
            "manifestworks" => "ManifestWork",
            "secrets" => "Secret",
            "placementdecisions" => "PlacementDecision",
            "certificatesigningrequests" => "CertificateSigningRequest",
            other => panic!("unexpected list of {other}"),
        }
    }

    pub(super) fn subresources(&self) -> &'static [&'static str] {
        match &*self.plural {
            "certificatesigningrequests" => &["status", "approval"],
            "manifestworks"
            | "gitopsclusters"
            | "placements"
            | "placementdecisions"
            | "managedclusters"
            | "managedclusteraddons"
            | "clustermanagementaddons"
            | "deployments" => &["status"],
            _ => &[],
        }
    }

    pub(super) fn has_status(&self) -> bool {
        !self.subresources().is_empty()
    }

    /// Returns true for kinds that a CustomResourceDefinition declares.
    pub(super) fn is_custom(&self) -> bool {
        self.group.contains('.') && !self.group.ends_with(".k8s.io")
    }

    pub(super) fn has_generation(&self) -> bool {
        self.is_custom() || self.plural == "deployments"
    }

    /// Returns the fields that increase the generation when they change.
    pub(super) fn content_of<'o>(&self, object: &'o Value) -> Vec<(&'o String, &'o Value)> {
        let fields = object.as_object().into_iter().flatten();
        let is_content = |key: &str| key != "metadata" && (key != "status" || !self.has_status());
        fields.filter(|(key, _)| is_content(key)).collect()
    }
}

/// Decodes the `%` sequences and spaces of a text.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        rest = others;
        match (first, others) {
            (b'%', [high, low, others @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("ASCII");
                bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal"));
                rest = others;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}
