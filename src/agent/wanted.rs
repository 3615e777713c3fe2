//! What a GitOpsCluster asks for of argocd-agent.

use super::{Images, Server};
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
    /// Whether the add-on brings argocd-operator, instead of what we would run there.
    pub operator: bool,
    /// What an argocd-operator on the managed cluster, ours or somebody else's, is to be given instead of what we would run there:
    /// argocd-pull-integration's `argoCDCRManifestWork.manifests`.
    pub argocd_manifests: Option<Vec<Value>>,
}

impl Wanted {
    /// Whether an operator runs Argo CD and the agent, ours or somebody else's.
    #[must_use]
    pub fn is_operated(&self) -> bool {
        self.operator || self.argocd_manifests.is_some()
    }

    /// Whether the add-on brings Argo CD, by itself or by our operator: one of somebody else's is not ours to look after.
    #[must_use]
    pub fn brings_argocd(&self) -> bool {
        self.operator || self.argocd_manifests.is_none()
    }

    /// Where managed clusters reach the principal: as it is said, else as it is discovered. An address alone is one with port 443.
    ///
    /// # Errors
    /// Those of [`super::discover`], where that is asked.
    pub fn server(&self, discovered: impl FnOnce() -> Result<Server, String>) -> Result<Server, String> {
        let said = |text: &Option<Box<str>>| text.clone().filter(|text| !text.is_empty());
        let port = said(&self.port);
        if let Some(address) = said(&self.address) {
            let port = port.unwrap_or_else(|| "443".into());
            return Ok(Server { address, port });
        }
        let Server { address, port: found } = discovered()?;
        let port = port.unwrap_or(found);
        Ok(Server { address, port })
    }
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
            operator: false,
            argocd_manifests: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_server_wins_over_what_is_discovered() {
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
            let wanted = Wanted {
                address: address.map(Into::into),
                port: port.map(Into::into),
                ..Wanted::default()
            };
            let server = wanted.server(discovered).expect("one or the other");
            assert_eq!((&*server.address, &*server.port), expected);
        }
        let lacking = || Err("lacking".to_owned());
        assert_eq!(Wanted::default().server(lacking), Err("lacking".to_owned()));
    }
}
