//! Kubernetes manifests: values, identities, YAML and JSON.
//!
//! [`value`] is one value of a manifest. [`yaml`] reads and writes it in the dialect of Kubernetes' own Go libraries, and
//! [`json`] writes its canonical text. A value that is read differently from how `kubectl apply` reads it makes a cluster run
//! something that differs from Git, so the project owns every line of these modules. [`kinds`] describes the kinds of Kubernetes,
//! [`key`] identifies an object, [`text`] makes foreign text printable, and [`problem`] reports errors in the input.

pub mod json;
pub mod key;
pub mod kinds;
pub mod problem;
pub mod quantity;
pub mod text;
pub mod value;
pub mod yaml;
