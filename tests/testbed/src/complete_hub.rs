//! A complete hub, as an administrator leaves it: OCM, all of Argo CD with its pages, and this program's own installation.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::argocd::{ArgoCd, NAMESPACE};
use crate::container::Container;
use crate::hub::Hub;
use crate::kubelet::Kubelet;
use crate::managed_cluster::{ManagedCluster, ManagedClusterOptions};
use crate::object::{ObjectRef, is_true};
use crate::pages::Pages;
use crate::process;

/// The image in the Deployments of this program, which run as processes. `doctor` compares its tag with the version.
const IMAGE: &str = concat!("argocd-ocm-cmp:", env!("CARGO_PKG_VERSION"));

/// The Deployments whose containers run.
const DEPLOYMENTS: [&str; 4] = [
    "argocd-applicationset-controller",
    "argocd-ocm-cmp-controller",
    "argocd-repo-server",
    "argocd-server",
];

/// The options of a complete hub.
#[derive(Clone, Debug)]
pub struct CompleteHubOptions {
    /// The program, which installs itself.
    pub program: PathBuf,
    /// The number of managed clusters: `cluster1`, `cluster2`, …
    pub clusters: u32,
    /// True if OCM's controllers of the hub run too.
    pub ocm_controllers: bool,
    /// True if the pull model is installed, with an Argo CD on each managed cluster, and `RollingSync` on the hub.
    pub pull: bool,
}

/// A running hub with everything installed. Dropping it stops all its processes.
#[derive(Debug)]
pub struct CompleteHub {
    kubelet: Kubelet,
    pages: Pages,
    clusters: Vec<ManagedCluster>,
    hub: Hub,
}

impl CompleteHub {
    /// Starts a hub and its managed clusters, and waits until all Deployments that run are rolled out.
    pub async fn start(options: &CompleteHubOptions) -> Result<Self> {
        let hub = Hub::start_complete().await?;
        let mut features = vec!["plugin,project,controller,ui,applicationset,agent-admission"];
        let mut argocd = ArgoCd {
            application_sets: true,
            server: true,
            ..ArgoCd::default()
        };
        if options.pull {
            features.push("pull");
            argocd = argocd.with_rolling_sync();
        }
        let of_clusters = &ManagedClusterOptions {
            argocd: options.pull.then(ArgoCd::default),
            ..ManagedClusterOptions::default()
        };
        let mut kubelet = Kubelet::new(&options.program);
        let this_hub = &hub;
        let clusters = (1..=options.clusters).map(|number| async move {
            let name = format!("cluster{number}");
            this_hub.add_managed_cluster(&name, of_clusters.clone()).await
        });
        let installed = async {
            install(this_hub, &options.program, &features.join(",")).await?;
            this_hub.start_argocd(argocd).await?;
            kubelet.sync(this_hub).await
        };
        let (clusters, ()) = tokio::try_join!(futures::future::try_join_all(clusters), installed)?;
        if options.ocm_controllers {
            hub.start_ocm_controllers().await?;
        }
        for name in DEPLOYMENTS {
            let deployment = ObjectRef::deployment(NAMESPACE, name);
            hub.wait_for(&deployment, |deployment| {
                deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
                    && is_true(deployment, "Available")
            })
            .await?;
        }
        let server = server(&hub).await?;
        server.write_files().await?;
        let address = hub.argocd_server().context("argocd-server runs")?;
        let pages = Pages::start(address, server.path("/tmp/extensions")).await?;
        Ok(Self {
            kubelet,
            pages,
            clusters,
            hub,
        })
    }

    /// Follows the changes of Deployments and of mounted `ConfigMaps`, as a kubelet does.
    pub async fn sync(&mut self) -> Result<()> {
        self.kubelet.sync(&self.hub).await?;
        server(&self.hub).await?.write_files().await
    }

    /// Returns the managed clusters: `cluster1`, `cluster2`, …
    pub fn managed_clusters(&self) -> &[ManagedCluster] {
        &self.clusters
    }

    /// Returns the address of Argo CD's pages and API, `http://127.0.0.1:…`.
    pub fn ui(&self) -> &str {
        self.pages.url()
    }

    /// Returns false if there is only Argo CD's API, because no release of Argo CD is on the `PATH`.
    pub fn has_pages(&self) -> bool {
        self.pages.exist()
    }

    /// Writes a kubeconfig with the contexts `hub`, which is the current one, `cluster1`, `cluster2`, …
    pub fn write_kubeconfig(&self, file: &Path) -> Result<()> {
        let kubeconfig = self
            .hub
            .kubeconfig_with(self.clusters.iter().map(|cluster| &**cluster))?;
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, kubeconfig).with_context(|| format!("failed to write {}", file.display()))
    }
}

/// Gives access to the hub.
impl Deref for CompleteHub {
    type Target = Hub;

    fn deref(&self) -> &Hub {
        &self.hub
    }
}

/// Runs the program's own `install`.
async fn install(hub: &Hub, program: &Path, features: &str) -> Result<()> {
    let mut command = process::command(program, &hub.logs());
    command.args(["install", "--features", features, "--image", IMAGE, "--replicas", "1"]);
    command.arg("--kubeconfig").arg(hub.kubeconfig_path());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{} install failed: {}",
        program.display(),
        errors.trim()
    );
    Ok(())
}

/// Returns the container of argocd-server.
async fn server(hub: &Hub) -> Result<Container<'_>> {
    let deployment = ObjectRef::deployment(NAMESPACE, "argocd-server");
    Container::of(hub, &deployment, "argocd-server").await
}
