//! The real Argo CD with the plugin, and the latest states of objects, which watches update.

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use testbed::{ArgoCd, ControlPlane, Hub, Plugin};
use tokio::task::JoinHandle;

/// Starts Argo CD with the plugin and its health checks. `folder` stands in for the plugin's folder in the sidecar.
pub(crate) async fn start_argocd(hub: &Hub, folder: &Path, argocd: ArgoCd) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(root.join("plugin.yaml"), folder.join("plugin.yaml"))?;
    let program = testbed::program(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    let programs = program.parent().context("a folder")?;
    let health_checks = root.join("deploy/argocd_cm.yaml");
    hub.apply_file(&health_checks, &["--server-side", "--field-manager=argocd-ocm-cmp"])?;
    hub.start_argocd(ArgoCd {
        plugins: vec![Plugin::new(folder, programs)],
        ..argocd
    })
    .await
}

/// Values by key, and the time since when each is that.
pub(crate) type Latest<K, T> = Arc<Mutex<HashMap<K, (T, Instant)>>>;

/// Records a value, and the time if it is new.
pub(crate) fn set<K: Eq + Hash, T: PartialEq>(latest: &Latest<K, T>, key: K, value: T) {
    let mut latest = lock(latest);
    if latest.get(&key).is_none_or(|(current, _)| *current != value) {
        latest.insert(key, (value, Instant::now()));
    }
}

pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running watch, which ends when it is dropped: otherwise it would load the machine with requests to an ended API server.
pub(crate) struct Followed(JoinHandle<()>);

impl Drop for Followed {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Passes all states of the objects of a kind, as `group/version/kind`, to a function.
pub(crate) async fn follow(
    hub: &ControlPlane,
    kind: &str,
    mut handle: impl FnMut(DynamicObject) + Send + 'static,
) -> Result<Followed> {
    let [group, version, kind] = kind.split('/').collect::<Vec<_>>()[..] else {
        bail!("{kind} is no group, version and kind");
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::all_with(hub.client().await?, &resource);
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    Ok(Followed(tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
                handle(object);
            }
        }
    })))
}
