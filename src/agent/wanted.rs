//! What a GitOpsCluster asks for of argocd-agent.

use super::Images;
use serde_json::Value;
use std::collections::BTreeSet;

/// The namespace of Argo CD on managed clusters where none is said.
pub(super) const NAMESPACE: &str = "argocd";

/// Who is asked what runs on the managed clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The hub: Applications are written there.
    #[default]
    Managed,
    /// The managed cluster: the hub shows what is written there.
    Autonomous,
}

impl Mode {
    /// As argocd-agent calls it (`--agent-mode`).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Autonomous => "autonomous",
        }
    }

    /// The mode of that name; nothing said is [`Mode::Managed`].
    ///
    /// # Errors
    /// With what can be said, where it is something else.
    pub fn of(name: &str) -> Result<Self, String> {
        match name {
            "" | "managed" => Ok(Self::Managed),
            "autonomous" => Ok(Self::Autonomous),
            other => Err(format!(
                "the mode {other:?} is none of argocd-agent's: write managed or autonomous"
            )),
        }
    }
}

/// What a GitOpsCluster asks for of argocd-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Who is asked what runs.
    pub mode: Mode,
    /// Where managed clusters reach the principal, if it is said.
    pub address: Option<Box<str>>,
    /// The port there, if it is said.
    pub port: Option<Box<str>>,
    /// The namespace of Argo CD on the managed clusters.
    pub namespace: Box<str>,
    /// The images that shall be others than the controller's settings say.
    pub images: Images,
    /// OCM's `rolloutStrategy`, as it is.
    pub rollout: Option<Value>,
    /// The clusters whose agents shall not be let in any more.
    pub revoked: BTreeSet<Box<str>>,
    /// What an argocd-operator on the managed cluster is to be given instead of what we would run there: argocd-pull-integration's
    /// `argoCDCRManifestWork.manifests`.
    pub argocd_manifests: Option<Vec<Value>>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            address: None,
            port: None,
            namespace: NAMESPACE.into(),
            images: Images::default(),
            rollout: None,
            revoked: BTreeSet::new(),
            argocd_manifests: None,
        }
    }
}
