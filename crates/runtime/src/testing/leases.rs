//! A fake API server for Leases that treats each of its clients as configured.

use super::api_server::ApiServer;
use http_body_util::BodyExt;
use hyper::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The treatment of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The server carries out requests and responds.
    None,
    /// The server does not respond.
    Hangs,
    /// The server carries out writes and does not respond to them.
    NoAnswer,
    /// The server responds with this HTTP status.
    Fails(u16),
}

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases";

/// An API server with Leases. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Hub(Arc<Mutex<ApiServer>>);

impl Hub {
    /// Returns a client of this hub, and the setting for its treatment.
    pub fn client(&self) -> (Client, Arc<Mutex<Fault>>) {
        let fault = Arc::new(Mutex::new(Fault::None));
        let (stored, current_fault) = (Arc::clone(&self.0), Arc::clone(&fault));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (stored, current_fault) = (Arc::clone(&stored), Arc::clone(&current_fault));
            async move {
                let fault = *current_fault.lock().unwrap();
                let (head, body) = request.into_parts();
                assert!(head.uri.path().starts_with(PATH), "{}", head.uri);
                let body = body.collect().await?.to_bytes();
                let (is_read, request) = (head.method == Method::GET, Request::from_parts(head, body.to_vec()));
                let (code, answer) = match fault {
                    Fault::Hangs => std::future::pending().await,
                    Fault::Fails(code) => (code, json!("no")),
                    Fault::None | Fault::NoAnswer => stored.lock().unwrap().send(&request),
                };
                if fault == Fault::NoAnswer && !is_read {
                    std::future::pending::<()>().await;
                }
                let answer = Response::builder()
                    .status(code)
                    .body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, kube::Error>(answer.unwrap())
            }
        });
        (Client::new(service, "default"), fault)
    }

    /// Returns the spec of the Lease of this name.
    pub fn spec(&self, name: &str) -> Value {
        self.0.lock().unwrap().objects[&format!("{PATH}/{name}")]["spec"].clone()
    }

    /// Returns the number of writes of Leases.
    pub fn writes(&self) -> u64 {
        self.0.lock().unwrap().version
    }

    /// Returns a copy of the state, with its version.
    pub fn state(&self) -> ApiServer {
        self.0.lock().unwrap().clone()
    }

    /// Replaces the state by an older one, as a restore from a backup does.
    pub fn restore(&self, state: ApiServer) {
        *self.0.lock().unwrap() = state;
    }

    /// Deletes all Leases.
    pub fn clear(&self) {
        self.0.lock().unwrap().objects.clear();
    }
}
