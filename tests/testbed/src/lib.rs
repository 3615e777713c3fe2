//! A real OCM hub with Argo CD, and real managed clusters, as plain processes on one machine.
//!
//! What `argocd-ocm-cmp` does lies between Argo CD and OCM, so its end-to-end tests run the real ones. No containers,
//! no images: etcd, Kubernetes, OCM, Argo CD, kustomize, Helm and kwok are built from the Go modules that [`go/`](Parts)
//! pins, once, and kept in a cache.
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
//! How it is cut:
//!
//! - [`Parts`] knows the programs and has them built.
//! - [`process`] runs them: a log each, and none outlives us.
//! - [`ControlPlane`] is an API server with its controllers; [`Hub`] and [`ManagedCluster`] each have one and add what
//!   makes them a hub (OCM's and Argo CD's CRDs, OCM's webhook, Argo CD) and a managed cluster (scheduler, kwok, agent, and
//!   an Argo CD of its own where that is asked for).
//!   OCM's agents and controllers have the rights that OCM's operator gives them, read from OCM's own manifests, and no more.
//! - A [`Proxy`] stands in front of an API server, remembers what it is asked, and makes it fail in the ways of [`proxy`].
//! - [`GitRepository`] is what Argo CD reads from, [`wait`] is how a test waits for what comes of it.
//!
//! Several testbeds can run at the same time: each has its own folder, ports and certificate authority. A hub with one
//! cluster takes 1.3 GB of memory and is up in ten seconds on two cores, so several tests may want to share one: a
//! [`Hub`] can live in a `static`, and its processes end with the test program.
//!
//! What a testbed heeds:
//!
//! - `TESTBED_CACHE`: where built programs are kept, else `argocd-ocm-cmp-testbed` in the user's cache folder. A build
//!   with other pins gets a folder of its own; old ones can be removed at any time.
//! - `KUBEBUILDER_ASSETS`: a folder with `etcd` and `kube-apiserver`, and maybe `kubectl`, to be used instead of built
//!   ones. kubectl is else the machine's own, and built where there is none.
//! - `CI=true`: a machine that lacks something fails the tests instead of skipping them. See [`available`].
//! - `TESTBED_PROGRAM`: the program under test where a test asks [`program`], such as the one out of an image.
//! - `TMPDIR`: where the folder of a testbed lies. After a failure it stays for a day, for its logs.

mod agent_rights;
mod argocd;
mod certificates;
mod control_plane;
mod etcd;
mod git;
mod go_module;
mod hub;
mod managed_cluster;
mod object;
mod ocm_controllers;
mod operator_templates;
mod parts;
pub mod ports;
pub mod process;
pub mod proxy;
mod recording;
mod transcript;
pub mod wait;
mod work_webhook;
mod workbench;

use std::path::PathBuf;

pub use argocd::{ArgoCd, Plugin};
pub use certificates::certificate_request;
pub use control_plane::{Account, ControlPlane};
pub use git::GitRepository;
pub use hub::Hub;
pub use managed_cluster::{ManagedCluster, ManagedClusterOptions};
pub use object::{ObjectRef, condition, is_applied, is_synced, is_true};
pub use parts::{Part, Parts, available, missing};
pub use proxy::Proxy;
pub use recording::Recording;
pub use transcript::Transcript;

/// The program under test: the one that `TESTBED_PROGRAM` names, a path with no link in it, else the one that cargo has built.
#[must_use]
pub fn program(built: &str) -> PathBuf {
    std::env::var_os("TESTBED_PROGRAM").map_or_else(|| built.into(), PathBuf::from)
}

/// Says something at once, also within a test, whose output is otherwise held back until it fails.
fn progress(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "testbed: {line}");
}
