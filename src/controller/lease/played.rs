//! An API server that knows Leases only, and treats each of its clients as it is told to.

use crate::controller::api_server::ApiServer;
use http_body_util::BodyExt;
use hyper::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
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

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases";

#[derive(Clone, Default)]
pub(in crate::controller) struct Hub(Arc<Mutex<ApiServer>>);

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
                assert!(head.uri.path().starts_with(PATH), "{}", head.uri);
                let body = body.collect().await?.to_bytes();
                let (is_read, request) = (head.method == Method::GET, Request::from_parts(head, body.to_vec()));
                let (code, answer) = match manner {
                    Manner::Hangs => std::future::pending().await,
                    Manner::Fails(code) => (code, json!("no")),
                    Manner::Well | Manner::Silent => stored.lock().unwrap().send(&request),
                };
                if manner == Manner::Silent && !is_read {
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
        self.0.lock().unwrap().objects[&format!("{PATH}/{name}")]["spec"].clone()
    }

    /// How often a Lease was written.
    pub(in crate::controller) fn writes(&self) -> u64 {
        self.0.lock().unwrap().version
    }

    /// Deletes all Leases.
    pub(in crate::controller) fn clear(&self) {
        self.0.lock().unwrap().objects.clear();
    }
}
