//! The argocd-agent settings of a GitOpsCluster.

use super::{DiscoveryError, Images, Server};
use serde_json::Value;
use std::collections::BTreeSet;

/// The default namespace of Argo CD on managed clusters.
pub(super) const NAMESPACE: &str = "argocd";

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
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Autonomous => "autonomous",
        }
    }
}

/// The argocd-agent settings of a GitOpsCluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredAgent {
    /// The mode of the agents.
    pub mode: Mode,
    /// The address where managed clusters reach the principal, if set.
    pub address: Option<Box<str>>,
    /// The port of the principal, if set.
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
    /// The clusters whose agents are revoked.
    pub revoked: BTreeSet<Box<str>>,
    /// True if the add-on installs argocd-operator instead of our own Argo CD manifests.
    pub operator: bool,
    /// The manifests for an argocd-operator on the managed cluster, our own or another one, instead of our Argo CD manifests:
    /// argocd-pull-integration's `argoCDCRManifestWork.manifests`.
    pub argocd_manifests: Option<Vec<Value>>,
}

impl DesiredAgent {
    /// Returns true if an operator, our own or another one, runs Argo CD and the agent.
    #[must_use]
    pub fn is_operated(&self) -> bool {
        self.operator || self.argocd_manifests.is_some()
    }

    /// Returns true if the add-on installs Argo CD, directly or by our operator. We do not maintain the Argo CD of another
    /// operator.
    #[must_use]
    pub fn brings_argocd(&self) -> bool {
        self.operator || self.argocd_manifests.is_none()
    }

    /// Returns the address where managed clusters reach the principal: the configured one, otherwise the discovered one. The
    /// default port of a configured address is 443.
    ///
    /// # Errors
    /// Returns the errors of [`super::discover`] if the address is discovered.
    pub fn server(
        &self,
        discovered: impl FnOnce() -> Result<Server, DiscoveryError>,
    ) -> Result<Server, DiscoveryError> {
        let configured = |text: &Option<Box<str>>| text.clone().filter(|text| !text.is_empty());
        let port = configured(&self.port);
        if let Some(address) = configured(&self.address) {
            let port = port.unwrap_or_else(|| "443".into());
            return Ok(Server { address, port });
        }
        let Server { address, port: found } = discovered()?;
        let port = port.unwrap_or(found);
        Ok(Server { address, port })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_server_overrides_the_discovered_one() {
        let discovered = || {
            Ok(Server {
                address: "found".into(),
                port: "8443".into(),
            })
        };
        for (address, port, expected) in [
            (Some("said"), Some("1"), ("said", "1")),
            (Some("said"), None, ("said", "443")),
            (None, Some("1"), ("found", "1")),
            (Some(""), Some(""), ("found", "8443")),
        ] {
            let desired = DesiredAgent {
                address: address.map(Into::into),
                port: port.map(Into::into),
                ..DesiredAgent::default()
            };
            let server = desired.server(discovered).expect("one or the other");
            assert_eq!((&*server.address, &*server.port), expected);
        }
        let missing = DiscoveryError::NoService("principal".to_owned());
        assert_eq!(DesiredAgent::default().server(|| Err(missing.clone())), Err(missing));
    }
}
