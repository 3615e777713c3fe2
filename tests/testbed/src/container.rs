//! A container of a Deployment as a process of this machine, with the environment, the files and the permissions of its Pod.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::serde::Deserialize;
use serde_json::Value;

use crate::control_plane::ControlPlane;
use crate::object::ObjectRef;
use crate::process;

/// A container of a Deployment, which a process takes the place of: kwok's Pods are empty.
///
/// It has the kinds of variables and volumes that our manifests use.
#[derive(Debug)]
pub struct Container<'p> {
    plane: &'p ControlPlane,
    namespace: String,
    pod: Value,
    /// The container in the Pod.
    spec: Value,
    /// The root of its files.
    root: PathBuf,
}

impl<'p> Container<'p> {
    /// Reads a container of a Deployment, which may be an init container.
    pub async fn of(plane: &'p ControlPlane, deployment: &ObjectRef, name: &str) -> Result<Self> {
        let container = Self::find(plane, deployment, name).await?;
        container.with_context(|| format!("{deployment} has no container {name}"))
    }

    /// Reads a container of a Deployment, if it exists.
    pub(crate) async fn find(plane: &'p ControlPlane, deployment: &ObjectRef, name: &str) -> Result<Option<Self>> {
        let Some(live) = plane.get(deployment).await? else {
            return Ok(None);
        };
        let pod = &live["spec"]["template"]["spec"];
        let mut all = ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| items(&pod[list]));
        let Some(container) = all.find(|container| container["name"] == name) else {
            return Ok(None);
        };
        Ok(Some(Self {
            root: plane
                .bench
                .folder(&format!("{}/containers/{}-{name}", plane.name(), deployment.name))?,
            namespace: as_text(&live["metadata"]["namespace"]).to_owned(),
            spec: container.clone(),
            pod: pod.clone(),
            plane,
        }))
    }

    /// Returns the command of the container, or else `entrypoint` with its arguments. Words that are paths or names of `programs`
    /// in the image become those on this machine. Fails as long as something that the container needs does not exist.
    pub async fn command(&self, entrypoint: &Path, programs: &[(&str, &Path)]) -> Result<Command> {
        self.write_files().await?;
        let mut words = vec![entrypoint.display().to_string()];
        if !items(&self.spec["command"]).is_empty() {
            words.clear();
        }
        let given = ["command", "args"].into_iter().flat_map(|list| items(&self.spec[list]));
        words.extend(
            given
                .map(as_text)
                .map(|word| match programs.iter().find(|(name, _)| *name == word) {
                    Some((_, path)) => path.display().to_string(),
                    None => self.on_this_machine(word),
                }),
        );
        let mut command = process::command(&words[0], &self.root);
        command.args(&words[1..]);
        command.envs(self.environment().await?);
        let account = as_text(&self.pod["serviceAccountName"]);
        command.env(
            "KUBECONFIG",
            self.plane.service_account_kubeconfig(&self.namespace, account)?,
        );
        Ok(command)
    }

    /// Returns the environment variables of the container.
    pub async fn environment(&self) -> Result<Vec<(String, String)>> {
        let mut variables = Vec::new();
        for source in items(&self.spec["envFrom"]) {
            let name = as_text(&source["configMapRef"]["name"]);
            for (key, value) in self.data("configMap", name).await?.unwrap_or_default() {
                variables.push((key, String::from_utf8(value)?));
            }
        }
        for variable in items(&self.spec["env"]) {
            if let Some(value) = self.resolve_variable(variable).await? {
                variables.push((as_text(&variable["name"]).to_owned(), self.on_this_machine(&value)));
            }
        }
        Ok(variables)
    }

    /// Returns the Pod of the container, as its Deployment describes it.
    pub(crate) fn pod(&self) -> &Value {
        &self.pod
    }

    /// Returns the path on this machine of a path in the container.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Writes the files of the volumes, as the kubelet does at the start of a Pod, and after each change of a Secret.
    pub async fn write_files(&self) -> Result<()> {
        for mount in items(&self.spec["volumeMounts"]) {
            let mut folder = self.path(as_text(&mount["mountPath"]));
            // A file that is mounted alone: the other files of the volume do no harm beside it.
            if mount["subPath"].is_string() {
                folder.pop();
            }
            fs::create_dir_all(&folder)?;
            let volume = items(&self.pod["volumes"])
                .iter()
                .find(|volume| volume["name"] == mount["name"]);
            let volume = volume.with_context(|| format!("no volume {}", mount["name"]))?;
            if volume["secret"].is_object() {
                self.write_source("secret", &volume["secret"], &folder).await?;
            } else if volume["configMap"].is_object() {
                self.write_source("configMap", &volume["configMap"], &folder).await?;
            } else if volume["projected"].is_object() {
                for source in items(&volume["projected"]["sources"]) {
                    for (kind, source) in source.as_object().into_iter().flatten() {
                        self.write_source(kind, source, &folder).await?;
                    }
                }
            } else {
                ensure!(
                    volume["emptyDir"].is_object(),
                    "the testbed has no such volume: {volume}"
                );
            }
        }
        Ok(())
    }

    async fn write_source(&self, kind: &str, source: &Value, folder: &Path) -> Result<()> {
        let name = source["name"]
            .as_str()
            .unwrap_or_else(|| as_text(&source["secretName"]));
        let data = self.data(kind, name).await?;
        let is_optional = source["optional"] == true;
        if data.is_none() && is_optional {
            return Ok(());
        }
        let data = data.with_context(|| format!("{kind} {name} does not exist"))?;
        let chosen: Vec<(String, String)> = match source["items"].as_array() {
            Some(chosen) => chosen
                .iter()
                .map(|item| (as_text(&item["key"]).to_owned(), as_text(&item["path"]).to_owned()))
                .collect(),
            None => data.iter().map(|(key, _)| (key.clone(), key.clone())).collect(),
        };
        for (key, path) in chosen {
            let value = data.iter().find(|(other, _)| *other == key);
            if value.is_none() && is_optional {
                continue;
            }
            let (_, value) = value.with_context(|| format!("{kind} {name} has no key {key}"))?;
            write(&folder.join(path), value)?;
        }
        Ok(())
    }

    /// Returns the value of an environment variable, if it has one.
    async fn resolve_variable(&self, variable: &Value) -> Result<Option<String>> {
        let from = &variable["valueFrom"];
        if from.is_null() {
            return Ok(Some(as_text(&variable["value"]).to_owned()));
        }
        if from["fieldRef"]["fieldPath"] == "metadata.namespace" {
            return Ok(Some(self.namespace.clone()));
        }
        if from["fieldRef"]["fieldPath"] == "metadata.name" {
            return Ok(Some(format!("{}-0", as_text(&self.spec["name"]))));
        }
        for (kind, reference) in [
            ("secret", &from["secretKeyRef"]),
            ("configMap", &from["configMapKeyRef"]),
        ] {
            if reference.is_object() {
                let data = self.data(kind, as_text(&reference["name"])).await?.unwrap_or_default();
                let entry = data.into_iter().find(|(key, _)| reference["key"] == **key);
                ensure!(
                    entry.is_some() || reference["optional"] == true,
                    "{variable} has no value"
                );
                return Ok(entry.map(|(_, value)| String::from_utf8_lossy(&value).into_owned()));
            }
        }
        bail!("the testbed has no such variable: {variable}")
    }

    /// Returns the data of a Secret or `ConfigMap`, if it exists.
    async fn data(&self, kind: &str, name: &str) -> Result<Option<Vec<(String, Vec<u8>)>>> {
        let is_secret = kind == "secret";
        let object = if is_secret {
            ObjectRef::secret(&self.namespace, name)
        } else {
            ObjectRef::config_map(&self.namespace, name)
        };
        let Some(live) = self.plane.get(&object).await? else {
            return Ok(None);
        };
        let data = live["data"].as_object().into_iter().flatten().map(|(key, value)| {
            let value = if is_secret {
                ByteString::deserialize(value)?.0
            } else {
                as_text(value).into()
            };
            Ok((key.clone(), value))
        });
        data.collect::<Result<_>>().map(Some)
    }

    /// Replaces the paths of volumes in a word by those on this machine.
    fn on_this_machine(&self, word: &str) -> String {
        let mounts = items(&self.spec["volumeMounts"])
            .iter()
            .map(|mount| as_text(&mount["mountPath"]));
        let (flag, path) = word.split_once('=').map_or(("", word), |(flag, path)| (flag, path));
        if !mounts.into_iter().any(|mount| path.starts_with(mount)) {
            return word.to_owned();
        }
        let path = self.path(path).display().to_string();
        if flag.is_empty() {
            path
        } else {
            format!("{flag}={path}")
        }
    }
}

/// Writes a file if it has another content, in one step.
fn write(file: &Path, content: &[u8]) -> Result<()> {
    match fs::read(file) {
        Ok(before) if before == content => return Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    fs::create_dir_all(file.parent().context("a folder")?)?;
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, content)?;
    fs::rename(unfinished, file)?;
    Ok(())
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
