//! The requests to the hub that `install` and `uninstall` make.

use crate::cli::HubArgs;
use crate::commands::{Exit, progress, show};
use crate::fetch::describe_error;
use crate::install::{ShippedObject, conflicting_manager};
use crate::runtime::runtime;
use hub::HubObject;
use kube::core::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::request::{self, Request};
use kube::{Client, Error};
use manifest::problem::Problems;
use ocm::resources::CONFIG_MAPS;
use serde_json::{Value, json};
use std::convert::identity;

/// The maximum number of attempts to change an object whose status changes.
const PATCH_ATTEMPTS: usize = 10;

/// A hub and its URL.
pub(crate) struct InstallHub {
    client: Client,
    url: String,
}

/// Connects to the hub, and shows `what` the command does meanwhile if that takes long.
pub(crate) fn with_hub<T>(
    args: &HubArgs,
    what: &str,
    run: impl AsyncFnOnce(InstallHub) -> Result<T, Problems>,
) -> Result<T, Problems> {
    let runtime = runtime()?;
    progress::shown(what, || {
        runtime.block_on(async { run(InstallHub::connect(args).await?).await })
    })
}

/// Prints what was done, also before an error.
pub(crate) fn finish(lines: &str, done: Result<(), Problems>) -> Result<Exit, Problems> {
    let shown = show("summary", lines);
    done.and(shown)
}

/// The reason why an object is not applied.
pub(crate) enum ApplyFailure {
    /// Other managers own these fields with other values: each field with its manager.
    Conflict(Vec<(String, String)>),
    /// Another reason, in one line.
    Other(String),
}

#[derive(Clone, Copy)]
pub(crate) struct ApplyOptions {
    /// The field manager.
    pub(crate) manager: &'static str,
    /// True if fields of other managers are taken over.
    pub(crate) force: bool,
    /// True for a dry run.
    pub(crate) dry_run: bool,
}

impl InstallHub {
    async fn connect(args: &HubArgs) -> Result<Self, String> {
        let config = hub::config(&args.connection()).await;
        let config = config.map_err(|line| line.replace(hub::NO_HUB, "no hub: "))?;
        let (client, url) = hub::client(config, identity)?;
        Ok(Self { client, url })
    }

    /// Returns the live object, or `None` if the object or its kind does not exist.
    pub(crate) async fn get(&self, path: &str, name: &str) -> Result<Option<Value>, String> {
        let answer = self.send(Request::new(path).get(name, &GetParams::default())).await;
        hub::optional(answer).map_err(|error| self.describe(&format!("{path}/{name}"), "read", &error))
    }

    pub(crate) async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Value>, String> {
        self.get(&CONFIG_MAPS.path(namespace), name).await
    }

    /// Lists the objects, or returns `None` if their kind does not exist.
    pub(crate) async fn list(&self, path: &str, labels: &str) -> Result<Option<Vec<Value>>, String> {
        let page = ListParams::default().limit(hub::PAGE).labels(labels);
        let list = async || {
            let mut objects = Vec::new();
            hub::each(&self.client, path, page.clone(), |HubObject(value)| objects.push(value)).await?;
            Ok(objects)
        };
        let answer = hub::ask_twice(list).await;
        hub::optional(answer).map_err(|error| self.describe(path, "listed", &error))
    }

    /// Lists the Deployments and StatefulSets of a namespace.
    pub(crate) async fn workloads(&self, namespace: &str) -> Result<Vec<Value>, String> {
        let mut workloads = Vec::new();
        for (kind, plural) in [("Deployment", "deployments"), ("StatefulSet", "statefulsets")] {
            let path = format!("/apis/apps/v1/namespaces/{namespace}/{plural}");
            for mut workload in self.list(&path, "").await?.unwrap_or_default() {
                // The items of a list have no kind.
                workload["kind"] = kind.into();
                workloads.push(workload);
            }
        }
        Ok(workloads)
    }

    pub(crate) async fn apply(&self, object: &ShippedObject, how: ApplyOptions) -> Result<Value, ApplyFailure> {
        let params = PatchParams {
            force: how.force,
            dry_run: how.dry_run,
            ..PatchParams::apply(how.manager)
        };
        let request = Request::new(object.path()).patch(object.name(), &params, &Patch::Apply(&object.value));
        self.send(request).await.map_err(|error| {
            let details = match &error {
                Error::Api(status) => status.details.as_ref(),
                _ => None,
            };
            let causes = details.into_iter().flat_map(|details| &details.causes);
            let fields: Vec<_> = causes
                .filter(|cause| cause.reason == "FieldManagerConflict")
                .map(|cause| (cause.field.clone(), conflicting_manager(&cause.message).to_owned()))
                .collect();
            if fields.is_empty() {
                ApplyFailure::Other(self.describe(&qualified_name(object), "applied", &error))
            } else {
                ApplyFailure::Conflict(fields)
            }
        })
    }

    /// Writes the `managedFields` of an object. Returns false if the object has changed since it was read.
    pub(crate) async fn manage(&self, object: &ShippedObject, live: &Value, managers: &Value) -> Result<bool, String> {
        let patch =
            json!({"metadata": {"managedFields": managers, "resourceVersion": live["metadata"]["resourceVersion"]}});
        let request = Request::new(object.path()).patch(object.name(), &PatchParams::default(), &Patch::Merge(patch));
        match self.send(request).await {
            Ok(_) => Ok(true),
            Err(error) if hub::status(&error) == Some(409) => Ok(false),
            Err(error) => Err(self.describe(&qualified_name(object), "taken over", &error)),
        }
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn patch(&self, path: &str, name: &str, change: &Value) -> Result<(), String> {
        let request = Request::new(path).patch(name, &PatchParams::default(), &Patch::Merge(change));
        let changed = self.send(request).await.map(drop);
        changed.map_err(|error| self.describe(&format!("{path}/{name}"), "changed", &error))
    }

    /// Changes the spec of an object by a merge patch of the version that was read, unless its spec has changed since. Its controller may
    /// write the status at any time, as OCM does with each step of a rollout.
    pub(crate) async fn patch_spec(&self, path: &str, live: &Value, change: &Value) -> Result<(), String> {
        let name = live["metadata"]["name"].as_str().unwrap_or_default();
        let mut change = change.clone();
        // Argo CD takes over the fields of this manager before it applies server-side, and then removes those that Git does not have.
        let params = PatchParams::apply("kubectl-client-side-apply");
        for _ in 0..PATCH_ATTEMPTS {
            let request = Request::new(path).patch(name, &params, &Patch::Merge(&change));
            match self.send(request).await {
                Err(error) if hub::status(&error) == Some(409) => {}
                Err(error) => return Err(self.describe(&format!("{path}/{name}"), "changed", &error)),
                Ok(_) => return Ok(()),
            }
            let current = self.get(path, name).await?.unwrap_or_default();
            let (before, after) = (&live["metadata"], &current["metadata"]);
            if before["uid"] != after["uid"] || before["generation"] != after["generation"] {
                break;
            }
            change["metadata"]["resourceVersion"] = after["resourceVersion"].clone();
        }
        Err(format!(
            "{} {name} changed since it was read: run the command again",
            live["kind"].as_str().unwrap_or("object")
        ))
    }

    /// Deletes the object, if it is still the same one.
    pub(crate) async fn delete(&self, path: &str, live: &Value) -> Result<(), String> {
        let metadata = &live["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: metadata["uid"].as_str().map(str::to_owned),
            resource_version: None,
        });
        let deleted = hub::optional(self.send(Request::new(path).delete(name, &params)).await).map(drop);
        deleted.map_err(|error| self.describe(&format!("{path}/{name}"), "deleted", &error))
    }

    async fn send(&self, request: Result<http::Request<Vec<u8>>, request::Error>) -> Result<Value, Error> {
        let request = request.map_err(Error::BuildRequest)?;
        hub::ask_twice(async || self.client.request(request.clone()).await).await
    }

    /// Formats an error as one line.
    fn describe(&self, what: &str, action: &str, error: &Error) -> String {
        let url = &self.url;
        match error {
            Error::Api(status) if status.code != 401 => format!("{what} cannot be {action}: {}", hub::explain(error)),
            _ if hub::is_unanswered(error) => {
                let seconds = hub::PATIENCE.as_secs();
                format!("{what} cannot be {action}: the hub at {url} has not answered for {seconds} seconds, twice")
            }
            _ => describe_error(error, url),
        }
    }
}

/// Formats an object for people: `Deployment argocd/argocd-repo-server`.
pub(crate) fn qualified_name(object: &ShippedObject) -> String {
    let namespace = object.namespace().map_or(String::new(), |text| format!("{text}/"));
    format!("{} {namespace}{}", object.kind(), object.name())
}
