//! Reads the objects of the pull model: an [`Application`] of the hub, and the ManifestWork that carries it to its managed cluster
//! ([`PullWork`]). Labels, annotations and names are those of argocd-pull-integration and of Red Hat ACM's multicloud-integrations.

pub mod application;
pub mod feedback;
pub mod fingerprint;
pub mod forwarded;
pub mod mirrored_status;
pub mod namespaces;
mod options;
pub mod payload_id;
pub mod pull_work;
pub mod text;
pub mod work_name;

pub use application::Application;
pub use options::{Dialect, FeedbackMode, Settings};
pub use pull_work::PullWork;
