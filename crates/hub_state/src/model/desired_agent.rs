//! The argocd-agent settings of a GitOpsCluster.

use super::Images;
use serde_json::Value;
use std::collections::BTreeSet;

/// The default namespace of Argo CD on managed clusters.
const NAMESPACE: &str = "argocd";

/// The place where users write Applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// On the hub.
    #[default]
    Managed,
    /// On the managed cluster; the hub only shows them.
    Autonomous,
}

impl Mode {
    /// Returns the name of the mode in argocd-agent (`--agent-mode`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Autonomous => "autonomous",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredAgent {
    pub mode: Mode,
    /// The address where managed clusters reach the principal, if set.
    pub address: Option<Box<str>>,
    pub port: Option<Box<str>>,
    /// The namespace of Argo CD on the managed clusters.
    pub namespace: Box<str>,
    /// The images that override the controller's settings.
    pub images: Images,
    /// True if agents have the image of the hub's principal where none is set, as with argocd-pull-integration: a principal rejects
    /// agents of another version.
    pub follows_principal: bool,
    /// OCM's `rolloutStrategy`, unparsed.
    pub rollout: Option<Value>,
    pub revoked: BTreeSet<Box<str>>,
    /// True if the add-on installs argocd-operator instead of our own Argo CD manifests.
    pub operator: bool,
    /// The manifests for an argocd-operator on the managed cluster, our own or another one, instead of our Argo CD manifests:
    /// argocd-pull-integration's `argoCDCRManifestWork.manifests`.
    pub argocd_manifests: Option<Vec<Value>>,
}

impl DesiredAgent {
    /// Returns true if an operator, our own or another one, runs Argo CD and the agent.
    pub fn is_operated(&self) -> bool {
        self.operator || self.argocd_manifests.is_some()
    }

    /// Returns true if the add-on installs Argo CD, directly or by our operator. We do not maintain the Argo CD of another
    /// operator.
    pub fn brings_argocd(&self) -> bool {
        self.operator || self.argocd_manifests.is_none()
    }
}

impl Default for DesiredAgent {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            address: None,
            port: None,
            namespace: NAMESPACE.into(),
            images: Images::default(),
            follows_principal: true,
            rollout: None,
            revoked: BTreeSet::new(),
            operator: false,
            argocd_manifests: None,
        }
    }
}
