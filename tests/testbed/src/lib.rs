//! A real OCM hub with Argo CD, and real managed clusters, as plain processes on one machine.
//!
//! `argocd-ocm-cmp` connects Argo CD and OCM, so its end-to-end tests run the real components, without containers and images:
//! etcd, Kubernetes, OCM, Argo CD, kustomize, Helm and kwok are built once from the Go modules that [`go/`](Parts) pins, and kept
//! in a cache.
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! use testbed::{ArgoCd, GitRepository, Hub, ManagedClusterOptions, ObjectRef, Plugin, is_synced};
//!
//! let hub = Hub::start().await?;
//! let cluster1 = hub.add_managed_cluster("cluster1", ManagedClusterOptions::default()).await?;
//! hub.start_argocd(ArgoCd::with_plugin(Plugin::new("plugin", "target/debug"))).await?;
//!
//! let git = GitRepository::new()?;
//! git.commit(&[("guestbook/deployment.yaml", "apiVersion: apps/v1 …")])?;
//! hub.create_application(&serde_json::json!({ "apiVersion": "argoproj.io/v1alpha1" /* … */ })).await?;
//!
//! hub.wait_for(&ObjectRef::application("guestbook"), is_synced).await?;
//! cluster1
//!     .wait_for(&ObjectRef::deployment("guestbook", "guestbook-ui"), |it| testbed::is_true(it, "Available"))
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Structure
//!
//! - [`Parts`] lists the programs and builds them.
//! - [`process`] runs them, with a log each, and ends them with this process.
//! - [`ControlPlane`] is an API server with its controllers; [`Hub`] and [`ManagedCluster`] each have one and add the parts of a
//!   hub (OCM's and Argo CD's CRDs, OCM's webhook, Argo CD) and of a managed cluster (scheduler, kwok, agent, and optionally an
//!   Argo CD). OCM's agents and controllers have only the permissions that OCM's operator grants them, read from OCM's own
//!   manifests.
//! - A [`ClusterProxy`] is OCM's tunnel from managed clusters to the hub.
//! - A [`CompleteHub`] has everything that an administrator installs: all of Argo CD with its API server, and this program by its
//!   own `install`. A [`Kubelet`] runs the containers of this program as their Deployments describe them.
//! - A [`Proxy`] in front of an API server records its requests, and injects the faults in [`proxy`].
//! - Argo CD reads from a [`GitRepository`], and a test waits for the result with [`wait`].
//!
//! Several testbeds can run at the same time: each has its own folder, ports and certificate authority. A hub with one cluster
//! needs 1.3 GB of memory and starts in ten seconds on two cores, so several tests may share one: a [`Hub`] can live in a
//! `static`, and its processes end with the test program.
//!
//! # Environment variables
//!
//! - `TESTBED_CACHE`: the folder of built programs, by default `argocd-ocm-cmp-testbed` in the user's cache folder. A build with
//!   other pins gets a new folder; old ones can be removed at any time.
//! - `KUBEBUILDER_ASSETS`: a folder with `etcd` and `kube-apiserver`, and optionally `kubectl`, to use instead of built ones.
//!   Otherwise kubectl is the machine's own, or built if there is none.
//! - `TESTBED_ARGOCD`: the version of Argo CD, `3.6` (the default) or `3.2`.
//! - `TESTBED_TOOLS`: `older` for Helm 3 and the kustomize of that time, instead of those of Argo CD 3.6.
//! - `TESTBED_KUBERNETES`: `1.37` for another version than 1.36.
//! - `TESTBED_OCM`: a Git checkout of OCM to build instead of the pinned module.
//! - `TESTBED_ARGOCD_AGENT`: a Git checkout of argocd-agent, for the tests that run it. See [`argocd_agent`].
//! - `TESTBED_IMAGE_UPDATER`: a Git checkout of Argo CD Image Updater, for the test that runs it. See [`image_updater`].
//! - `PATH`: if it has Argo CD's released command line `argocd` in the version of the testbed, a [`CompleteHub`] serves its pages.
//! - `TESTBED_PROGRAM`: the program under test for tests that call [`program`], such as the one from an image.
//! - `TMPDIR`: the parent of a testbed's folder. After a failure the folder stays for a day, for its logs.

mod addon_webhook;
mod agent_rights;
pub mod application;
mod argocd;
mod arguments;
mod certificates;
mod cluster_proxy;
mod complete_hub;
mod container;
mod control_plane;
mod etcd;
mod folder;
mod git;
mod go_module;
mod hub;
mod kubelet;
mod managed_cluster;
mod nodes;
mod object;
mod ocm_controllers;
mod operator_templates;
mod pages;
mod parts;
pub mod ports;
pub mod process;
pub mod proxy;
mod recording;
mod shared;
mod transcript;
pub mod wait;
mod work_webhook;
mod workbench;

use std::path::PathBuf;

pub use argocd::{Addresses, ArgoCd, Plugin, resource_tree};
pub use arguments::Arguments;
pub use certificates::certificate_request;
pub use cluster_proxy::ClusterProxy;
pub use complete_hub::{CompleteHub, CompleteHubOptions};
pub use container::Container;
pub use control_plane::{Account, ControlPlane};
pub use folder::{copy, files};
pub use git::GitRepository;
pub use hub::Hub;
pub use kubelet::Kubelet;
pub use managed_cluster::{ManagedCluster, ManagedClusterOptions};
pub use object::{ObjectRef, condition, is_applied, is_synced, is_true, new_condition, tracked_work};
pub use parts::{ARGOCD_AGENT_VERSION, Part, Parts, Tools, argocd_agent, argocd_version, image_updater, missing};
pub use proxy::Proxy;
pub use recording::Recording;
pub use shared::{Borrowed, Shared};
pub use transcript::Transcript;

/// Returns the program under test: the path in `TESTBED_PROGRAM`, which must contain no link, or the one that cargo has built.
pub fn program(built: &str) -> PathBuf {
    std::env::var_os("TESTBED_PROGRAM").map_or_else(|| built.into(), PathBuf::from)
}

/// Prints a line at once, also within a test, whose output is otherwise withheld until it fails.
fn progress(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "testbed: {line}");
}
