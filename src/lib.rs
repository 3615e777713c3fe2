//! GitOps by pull: Argo CD on a hub delivers Applications to managed clusters as Open Cluster Management ManifestWorks.
//!
//! # Architecture
//!
//! One package, one binary. [`cli`] is what was typed. [`generate`] is the Argo CD Config Management Plugin: a sync, pure
//! function of files and settings, one module a stage, with input and output at its two ends (`discover` and `load` read,
//! `main` writes).
//!
//! What the stages share: [`value`] is a manifest's value as Kubernetes sees it, [`yaml`] reads and writes it in the dialect
//! of Kubernetes' own Go libraries, [`json`] is its canonical text. Those three are ours to the last rule, because a value
//! that is read differently from how `kubectl apply` reads it makes a cluster run something that Git does not say.

pub mod cli;
pub mod generate;
pub mod json;
pub mod value;
pub mod yaml;
