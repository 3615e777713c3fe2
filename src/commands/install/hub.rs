//! What is asked of the hub, one request each.

use crate::cli::HubArgs;
use crate::hub;
use crate::install::{Object, conflicts};
use kube::core::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::request::{self, Request};
use kube::{Client, Error};
use serde_json::{Value, json};
use std::convert::identity;

/// A hub, and where it is.
pub(in crate::commands) struct Hub {
    client: Client,
    url: String,
}

/// Why an object is not applied.
pub(in crate::commands) enum Refused {
    /// Others manage these fields and want them otherwise: each with its manager.
    Conflict(Vec<(String, String)>),
    /// In one plain line.
    Because(String),
}

/// How an object is applied.
#[derive(Clone, Copy)]
pub(in crate::commands) struct How {
    /// As who.
    pub(in crate::commands) manager: &'static str,
    /// Whether fields are taken over that others want otherwise.
    pub(in crate::commands) force: bool,
    /// Whether it is only tried.
    pub(in crate::commands) dry_run: bool,
}

impl Hub {
    pub(in crate::commands) async fn connect(args: &HubArgs) -> Result<Self, String> {
        let config = hub::config(args).await;
        let mut config = config.map_err(|line| line.replace(hub::NO_HUB, "no hub: "))?;
        config.read_timeout = Some(hub::PATIENCE);
        let (client, url) = hub::client(config, identity)?;
        Ok(Self { client, url })
    }

    /// The object as it is there; nothing where it or its kind is not.
    pub(in crate::commands) async fn get(&self, path: &str, name: &str) -> Result<Option<Value>, String> {
        match self.send(Request::new(path).get(name, &GetParams::default())).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if hub::status(&error) == Some(404) => Ok(None),
            Err(error) => Err(self.told(&format!("{path}/{name}"), "read", &error)),
        }
    }

    /// The objects there; nothing where their kind is not.
    pub(in crate::commands) async fn list(&self, path: &str, labels: &str) -> Result<Option<Vec<Value>>, String> {
        let mut found = Vec::new();
        let page = ListParams::default().limit(hub::PAGE).labels(labels);
        match hub::each(&self.client, path, page, |it: Value| found.push(it)).await {
            Ok(()) => Ok(Some(found)),
            Err(error) if hub::status(&error) == Some(404) => Ok(None),
            Err(error) => Err(self.told(path, "listed", &error)),
        }
    }

    /// Applies an object, and returns it as it is then.
    pub(in crate::commands) async fn apply(&self, object: &Object, how: How) -> Result<Value, Refused> {
        let params = PatchParams {
            field_manager: Some(how.manager.to_owned()),
            force: how.force,
            dry_run: how.dry_run,
            ..PatchParams::default()
        };
        let body: Value = serde_json::from_str(&object.json()).expect("it was written as JSON");
        let request = Request::new(object.path()).patch(object.name(), &params, &Patch::Apply(body));
        self.send(request).await.map_err(|error| match &error {
            Error::Api(status) if status.code == 409 && status.reason == "Conflict" => {
                let causes = status.details.iter().flat_map(|details| &details.causes);
                let causes = causes.filter(|cause| cause.reason == "FieldManagerConflict");
                let fields = conflicts(causes.map(|cause| (cause.field.as_str(), cause.message.as_str())));
                if fields.is_empty() {
                    Refused::Because(self.told(&place(object), "applied", &error))
                } else {
                    Refused::Conflict(fields)
                }
            }
            _ => Refused::Because(self.told(&place(object), "applied", &error)),
        })
    }

    /// Says who manages the fields of an object, if it is as it was.
    pub(in crate::commands) async fn manage(
        &self,
        object: &Object,
        live: &Value,
        managers: &Value,
    ) -> Result<(), String> {
        let patch =
            json!({"metadata": {"managedFields": managers, "resourceVersion": live["metadata"]["resourceVersion"]}});
        let request = Request::new(object.path()).patch(object.name(), &PatchParams::default(), &Patch::Merge(patch));
        let done = self.send(request).await;
        done.map(drop)
            .map_err(|error| self.told(&place(object), "taken over", &error))
    }

    /// Deletes what is there by that name, if it is this one.
    pub(in crate::commands) async fn delete(&self, path: &str, live: &Value) -> Result<(), String> {
        let metadata = &live["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: metadata["uid"].as_str().map(str::to_owned),
            resource_version: None,
        });
        match self.send(Request::new(path).delete(name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if hub::status(&error) == Some(404) => Ok(()),
            Err(error) => Err(self.told(&format!("{path}/{name}"), "deleted", &error)),
        }
    }

    async fn send(&self, request: Result<http::Request<Vec<u8>>, request::Error>) -> Result<Value, Error> {
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }

    /// An error as one plain line.
    fn told(&self, what: &str, done: &str, error: &Error) -> String {
        let (url, reason) = (&self.url, hub::reason(error));
        match error {
            Error::Api(status) if status.code == 401 => {
                format!("the hub at {url} does not accept the credentials of the kubeconfig: {reason}")
            }
            Error::Api(_) => format!("{what} cannot be {done}: {reason}"),
            _ => format!("the hub at {url} cannot be reached: {reason}"),
        }
    }
}

/// Which object that is, for people: `Deployment argocd/argocd-repo-server`.
pub(in crate::commands) fn place(object: &Object) -> String {
    let namespace = object.namespace().map_or(String::new(), |it| format!("{it}/"));
    format!("{} {namespace}{}", object.kind(), object.name())
}
