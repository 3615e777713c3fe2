//! Operations on the objects of an API server.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::{ControlPlane, access};
use crate::object::ObjectRef;
use crate::wait::{self, DEADLINE};

/// The field manager of our applies.
const FIELD_MANAGER: &str = "testbed";

/// A user of the API server, such as a `ServiceAccount`, with only its own permissions.
pub struct Account(Client);

impl Account {
    /// Returns the user of a kubeconfig.
    pub(crate) async fn from_kubeconfig(kubeconfig: &Path) -> Result<Self> {
        Ok(Self(access::client(kubeconfig).await?))
    }

    /// Replaces an object by its changed content, as a user does who may update it but not patch it.
    pub async fn update(&self, object: &ObjectRef, change: impl Fn(&mut Value)) -> Result<()> {
        let api = wait::api(&self.0, object).await?;
        loop {
            let mut changed = serde_json::to_value(api.get(&object.name).await?)?;
            change(&mut changed);
            let changed: DynamicObject = serde_json::from_value(changed)?;
            match api.replace(&object.name, &PostParams::default(), &changed).await {
                // Another writer was faster.
                Err(Error::Api(status)) if status.code == 409 => {}
                done => return Ok(done.map(drop)?),
            }
        }
    }

    /// Creates an object; if it is rejected, fails with the API server's message.
    pub async fn create(&self, object: &Value) -> Result<()> {
        let api = wait::api(&self.0, &ObjectRef::of(object)).await?;
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        Ok(api.create(&PostParams::default(), &object).await.map(drop)?)
    }

    /// Changes an object by a JSON merge patch.
    pub async fn patch(&self, object: &ObjectRef, patch: &Value) -> Result<()> {
        let api = wait::api(&self.0, object).await?;
        let (how, patch) = (PatchParams::default(), Patch::Merge(patch));
        Ok(api.patch(&object.name, &how, &patch).await.map(drop)?)
    }

    /// Changes the status of an object by a JSON merge patch.
    pub async fn patch_status(&self, object: &ObjectRef, patch: &Value) -> Result<()> {
        let api = wait::api(&self.0, object).await?;
        let (how, patch) = (PatchParams::default(), Patch::Merge(patch));
        Ok(api.patch_status(&object.name, &how, &patch).await.map(drop)?)
    }

    /// Deletes an object.
    pub async fn delete(&self, object: &ObjectRef) -> Result<()> {
        let api = wait::api(&self.0, object).await?;
        Ok(api.delete(&object.name, &DeleteParams::default()).await.map(drop)?)
    }
}

impl ControlPlane {
    /// Returns a client that acts as a `ServiceAccount`.
    pub async fn account(&self, namespace: &str, name: &str) -> Result<Account> {
        Account::from_kubeconfig(&self.service_account_kubeconfig(namespace, name)?).await
    }

    /// Creates an object; if it is rejected, fails with the API server's message.
    pub async fn create(&self, object: &Value) -> Result<Value> {
        let api = wait::api(&self.client().await?, &ObjectRef::of(object)).await?;
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        Ok(serde_json::to_value(
            api.create(&PostParams::default(), &object).await?,
        )?)
    }

    /// Creates a namespace, unless it exists.
    pub async fn create_namespace(&self, name: &str) -> Result<()> {
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await
            .map(drop)
    }

    /// Creates or updates an object, by server-side apply.
    pub async fn apply(&self, object: &Value) -> Result<Value> {
        let name = ObjectRef::of(object);
        let api = wait::api(&self.client().await?, &name).await?;
        let how = PatchParams::apply(FIELD_MANAGER).force();
        Ok(serde_json::to_value(
            api.patch(&name.name, &how, &Patch::Apply(object)).await?,
        )?)
    }

    /// Applies the manifests of a YAML text as a user would, with `kubectl apply --server-side`.
    pub fn apply_yaml(&self, manifests: &str) -> Result<String> {
        self.kubectl_with_input(&["apply", "--server-side", "--filename", "-"], manifests)
    }

    /// Applies a file as a user would, with `kubectl apply` and these options.
    pub fn apply_file(&self, file: &Path, options: &[&str]) -> Result<()> {
        let file = file.to_str().context("the path is not UTF-8")?;
        let arguments = [&["apply", "--filename", file], options].concat();
        self.kubectl(&arguments).map(drop)
    }

    /// Changes an object by a JSON merge patch.
    pub async fn patch(&self, object: &ObjectRef, patch: &Value) -> Result<Value> {
        let api = wait::api(&self.client().await?, object).await?;
        let how = PatchParams::default();
        Ok(serde_json::to_value(
            api.patch(&object.name, &how, &Patch::Merge(patch)).await?,
        )?)
    }

    /// Changes the status of an object by a JSON merge patch, for kinds that have a status subresource.
    pub async fn patch_status(&self, object: &ObjectRef, patch: &Value) -> Result<Value> {
        let api = wait::api(&self.client().await?, object).await?;
        let how = PatchParams::default();
        Ok(serde_json::to_value(
            api.patch_status(&object.name, &how, &Patch::Merge(patch)).await?,
        )?)
    }

    /// Deletes an object, if it exists, without waiting for the deletion.
    pub async fn delete(&self, object: &ObjectRef) -> Result<()> {
        let api = wait::api(&self.client().await?, object).await?;
        match api.delete(&object.name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Deletes an object, and waits until it does not exist.
    pub async fn delete_and_wait(&self, object: &ObjectRef) -> Result<()> {
        self.delete(object).await?;
        self.wait_gone(object).await
    }

    /// Returns an object, if it exists.
    pub async fn get(&self, object: &ObjectRef) -> Result<Option<Value>> {
        let api = wait::api(&self.client().await?, object).await?;
        Ok(api.get_opt(&object.name).await?.map(serde_json::to_value).transpose()?)
    }

    /// Returns an object, which must exist.
    pub async fn read(&self, object: &ObjectRef) -> Result<Value> {
        let live = self.get(object).await?;
        live.with_context(|| format!("{object} does not exist"))
    }

    /// Returns the `ManifestWork`s of all namespaces.
    pub async fn works(&self) -> Result<Vec<Value>> {
        self.list("work.open-cluster-management.io/v1", "ManifestWork").await
    }

    /// Returns all objects of a kind, in all namespaces.
    pub async fn list(&self, api_version: &str, kind: &str) -> Result<Vec<Value>> {
        let client = self.client().await?;
        let (resource, _) = wait::resource(&client, api_version, kind).await?;
        let api: Api<DynamicObject> = Api::all_with(client, &resource);
        let all = api.list(&ListParams::default()).await?;
        Ok(all.into_iter().map(serde_json::to_value).collect::<Result<_, _>>()?)
    }

    /// Waits until the object exists and the condition holds for it; see [`wait::wait_for`]. Fails after
    /// [`DEADLINE`], and then prints the logs.
    pub async fn wait_for(&self, object: &ObjectRef, condition: impl FnMut(&Value) -> bool) -> Result<Value> {
        let waited = wait::wait_for(&self.client().await?, object, DEADLINE, condition).await;
        waited
            .inspect_err(|_| self.bench.fail())
            .with_context(|| self.name.clone())
    }

    /// Waits until the object has this value at a JSON pointer, and returns it.
    pub async fn wait_for_value(&self, object: &ObjectRef, pointer: &str, value: impl Into<Value>) -> Result<Value> {
        let value = value.into();
        let waited = self
            .wait_for(object, |live| live.pointer(pointer) == Some(&value))
            .await;
        waited.with_context(|| format!("{pointer} is not {value}"))
    }

    /// Checks for `duration` that the condition always holds for the object; see [`wait::holds_for`].
    pub async fn holds_for(
        &self,
        object: &ObjectRef,
        duration: Duration,
        condition: impl FnMut(&Value) -> bool,
    ) -> Result<()> {
        let held = wait::holds_for(&self.client().await?, object, duration, condition).await;
        held.inspect_err(|_| self.bench.fail())
            .with_context(|| self.name.clone())
    }

    /// Waits until the object does not exist. Fails after [`DEADLINE`], and then prints the logs.
    pub async fn wait_gone(&self, object: &ObjectRef) -> Result<()> {
        let waited = wait::wait_gone(&self.client().await?, object, DEADLINE).await;
        waited
            .inspect_err(|_| self.bench.fail())
            .with_context(|| self.name.clone())
    }
}
