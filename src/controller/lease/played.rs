//! An API server that knows Leases only, and treats each of its clients as it is told to.

use http_body_util::BodyExt;
use hyper::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// How somebody is treated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::controller) enum Manner {
    Well,
    Hangs,
    /// It does what is asked for, and does not say so.
    Silent,
    Fails(u16),
}

#[derive(Default)]
struct Stored {
    version: u64,
    leases: BTreeMap<String, Value>,
}

impl Stored {
    /// What is done with the Lease of this name.
    fn answer(&mut self, method: &Method, name: &str, mut sent: Value) -> (u16, Value) {
        let status = |code, reason| {
            (
                code,
                json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}),
            )
        };
        match (method, self.leases.get(name)) {
            (&Method::GET, Some(lease)) => return (200, lease.clone()),
            (&Method::POST, Some(_)) => return status(409, "Conflict"),
            (&Method::GET | &Method::PUT, None) => return status(404, "NotFound"),
            (&Method::PUT, Some(lease))
                if sent["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] =>
            {
                return status(409, "Conflict");
            }
            _ => {}
        }
        self.version += 1;
        sent["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.leases.insert(name.to_owned(), sent.clone());
        (200, sent)
    }
}

#[derive(Clone, Default)]
pub(in crate::controller) struct Hub(Arc<Mutex<Stored>>);

impl Hub {
    /// A client of this hub, and how it is treated from now on.
    pub(in crate::controller) fn client(&self) -> (Client, Arc<Mutex<Manner>>) {
        let manner = Arc::new(Mutex::new(Manner::Well));
        let (stored, treated) = (Arc::clone(&self.0), Arc::clone(&manner));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (stored, treated) = (Arc::clone(&stored), Arc::clone(&treated));
            async move {
                let manner = *treated.lock().unwrap();
                let (head, body) = request.into_parts();
                let path = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases";
                let rest = head.uri.path().strip_prefix(path).unwrap();
                let body = body.collect().await?.to_bytes();
                let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
                let name = match head.method {
                    Method::POST => sent["metadata"]["name"].as_str().unwrap().to_owned(),
                    _ => rest.trim_start_matches('/').to_owned(),
                };
                let (code, answer) = match manner {
                    Manner::Hangs => std::future::pending().await,
                    Manner::Fails(code) => (code, json!("no")),
                    Manner::Well | Manner::Silent => stored.lock().unwrap().answer(&head.method, &name, sent),
                };
                if manner == Manner::Silent && head.method != Method::GET {
                    std::future::pending::<()>().await;
                }
                let answer = Response::builder()
                    .status(code)
                    .body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, kube::Error>(answer.unwrap())
            }
        });
        (Client::new(service, "default"), manner)
    }

    /// What the Lease of this name says.
    pub(in crate::controller) fn spec(&self, name: &str) -> Value {
        self.0.lock().unwrap().leases[name]["spec"].clone()
    }

    /// How often a Lease was written.
    pub(in crate::controller) fn writes(&self) -> u64 {
        self.0.lock().unwrap().version
    }

    /// Deletes all Leases.
    pub(in crate::controller) fn clear(&self) {
        self.0.lock().unwrap().leases.clear();
    }
}
