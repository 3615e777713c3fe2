//! GitOps by pull: Argo CD on a hub delivers Applications to managed clusters as Open Cluster Management ManifestWorks.
//!
//! # Architecture
//!
//! One package, one binary. [`cli`] is what was typed, [`commands`] does it. [`generate`] is the Argo CD Config Management
//! Plugin: a sync, pure function of files and settings, one module a stage, with input and output at its two ends (`source`,
//! which also runs kustomize and helm, `discover` and `load` read; [`commands`] writes).
//!
//! What makes a work behave on its cluster is decided in a few of those stages: `arrange` and `split` say which objects stand
//! together and in which wave, `hooks` what runs when, `strategy` how the agent updates an object, `behaviour` when it is healthy,
//! and `configure` writes all that into the work. `fresh` closes a gap in the agent's verdicts. The hub's half of health
//! is Lua in `argocd_cm.yaml`. `placement` is what OCM is told of a rollout. `policy` is what the platform lets an Application do.
//!
//! What people ask is answered of the works as they are written, read back by [`works`]: the table of `generate --summary`, and
//! [`diff`], a pure comparison, and [`status`], the verdicts of argocd_cm.yaml on what OCM's agents say. [`doctor`] is what is wrong
//! with a hub, in checks of which each is a pure function of what was read. For all of these [`hub`] reads. [`tracking`] says whose a
//! work is by the marks of Argo CD. [`manual`] and [`completion`] are made of the command line.
//!
//! [`controller`] is the companion that runs beside Argo CD: it watches what is on the hub, decides by pure functions of it, and
//! writes what follows; [`telemetry`] is its log. Its own documentation has its parts.
//!
//! [`pull`] is the other way to deliver an Application: as it is, in a work, for the Argo CD of the managed cluster. It is what the
//! controller decides there, as pure functions. [`report`] is what it says of an ApplicationSet as a whole, whoever delivers it,
//! and [`cluster_secret`] how Argo CD knows the managed clusters. [`gitopscluster`] is the resource in which the peers' users ask for that, and
//! for argocd-agent on each cluster; its CRD is made of those types.
//!
//! [`agent`] is argocd-agent as an add-on of OCM's: what the hub has and what clusters run for it, and whose request for a certificate is
//! granted. [`pki`] makes those certificates, of recipes that have no secret in them. On a managed cluster, the same program looks after
//! argocd-agent: [`supervise`] says when that is restarted, and [`prepare`] what Argo CD needs there before it can start.
//!
//! [`install`] is how all this gets to a hub: the files at the root of the repository (`files`), with what was asked for set in them.
//! Besides the controller, it is all that writes to a hub.
//!
//! What the stages share: [`value`] is a manifest's value as Kubernetes sees it, [`yaml`] reads and writes it in the dialect
//! of Kubernetes' own Go libraries, [`json`] is its canonical text. Those three are ours to the last rule, because a value
//! that is read differently from how `kubectl apply` reads it makes a cluster run something that Git does not say. [`text`] shortens
//! what others have written, and `time_math` adds up times that others have written without overflow.
//!
//! # What holds it to that
//!
//! Test programs, by what they ask. `tests/as_go` asks Go's libraries what a text means, and compares. `tests/command` runs
//! the program as a user does, over a folder per behaviour. `tests/with_argocd` runs it as the plugin of a real Argo CD, and as
//! the controller beside it, in front of a real OCM agent; `tests/with_faults` runs the controller against a real API server
//! behind a proxy that fails as it is told; `tests/with_agents` runs it beside OCM's own controllers, for clusters that have joined, from
//! the first agent of a fleet to the last. `tests/docs` runs the commands that the documentation shows. What they run are
//! processes of `tests/testbed`, which can also be started by hand.

pub mod agent;
pub mod cli;
pub mod cluster_secret;
pub mod commands;
pub mod completion;
pub mod confine;
pub mod controller;
pub mod diff;
pub mod doctor;
mod files;
pub mod generate;
pub mod gitopscluster;
pub mod hub;
pub mod install;
pub mod json;
pub mod manual;
pub mod pki;
pub mod prepare;
#[cfg(test)]
mod properties;
pub mod pull;
pub mod report;
pub mod status;
pub mod supervise;
pub mod table;
pub mod telemetry;
pub mod text;
mod time_math;
pub mod tracking;
pub mod value;
pub mod works;
pub mod yaml;
