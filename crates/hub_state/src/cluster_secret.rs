//! Reads Argo CD's cluster Secrets, and names those that the controllers manage.

mod credential;
mod labels;
mod manager;

use crate::annotations::{OWNER, SKIP_RECONCILE};
use crate::model::{Labels, TlsSecret};
pub use credential::{Credential, hash_authorities};
use jiff::Timestamp;
use k8s_openapi::ByteString;
pub use labels::{ACM, AGENT_NAME, CLUSTER_NAME, IDENTITY_LABELS, PLACEMENT_NAME};
pub use manager::SecretManager;
use ocm::work::{MANAGED_BY, OURS};
use pki::Certificate;
use runtime::metadata::Metadata;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The label that tells Argo CD the purpose of a Secret.
pub const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";

/// The value of [`SECRET_TYPE`] for cluster Secrets.
pub const CLUSTER: &str = "cluster";

/// The annotation that lists the labels copied from the cluster. The controller removes a listed label that the cluster loses,
/// and keeps labels that others set on the Secret.
pub const COPIED: &str = "argocd-ocm-cmp.github.io/labels";

/// The annotation that names the writer of a Secret: set by argocd-agentctl, and by Argo CD's API server on the Secrets that it
/// writes.
pub const WRITTEN_BY: &str = "managed-by";

/// The key of the cluster's name in its Secret.
pub const NAME: &str = "name";

/// The key of the cluster's server.
pub const SERVER: &str = "server";

/// The key of the connection configuration.
pub const CONFIG: &str = "config";

/// A cluster Secret of Argo CD, by any writer, reduced to the needed fields; it holds no credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSecret {
    pub uid: Box<str>,
    pub version: Box<str>,
    pub deleting: bool,
    /// The name of the cluster in Argo CD.
    cluster: Box<str>,
    /// The server that Argo CD would connect to.
    server: Box<str>,
    config_content: ConfigContent,
    /// The client certificate of Argo CD, if the Secret is that of an agent.
    pub credential: Option<Box<Credential>>,
    pub labels: Labels,
    /// The value of [`COPIED`].
    pub copied: Box<str>,
    /// True if the Secret has [`SKIP_RECONCILE`] with the value that the controller writes.
    pub skips: bool,
    /// True if the Secret has the annotation [`WRITTEN_BY`].
    pub has_writer_annotation: bool,
    /// The value of [`OWNER`].
    pub owner_annotation: Box<str>,
}

/// The content of a cluster Secret besides the cluster's name and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ConfigContent {
    #[default]
    Absent,
    /// An empty connection configuration and nothing else.
    Empty,
    Other,
}

impl ClusterSecret {
    /// The error quotes nothing of the content.
    pub fn from_json(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Secret<'t> {
            metadata: Metadata,
            // Only needed values are decoded, because the Secret contains credentials.
            #[serde(borrow)]
            data: Option<BTreeMap<Cow<'t, str>, &'t RawValue>>,
        }
        let unreadable = |_| "not a valid Secret".to_owned();
        let Secret { metadata, data } = serde_json::from_str(text).map_err(unreadable)?;
        let data = data.unwrap_or_default();
        let value = |key| data.get(key).map_or(Ok("".into()), |raw| decoded(raw));
        let annotation = |name| metadata.annotation(name);
        let labels = Labels::from_sorted(&metadata.labels);
        let config = data.get(CONFIG);
        let is_bare = data.keys().all(|key| [NAME, SERVER, CONFIG].contains(&&**key));
        let config_content = match config.map(|raw| raw.get()) {
            None if is_bare => ConfigContent::Absent,
            Some(PLAIN_VALUE) if is_bare => ConfigContent::Empty,
            _ => ConfigContent::Other,
        };
        Ok(Self {
            deleting: metadata.deletion_timestamp.is_some(),
            config_content,
            cluster: value(NAME).map_err(unreadable)?,
            server: value(SERVER).map_err(unreadable)?,
            credential: config
                .filter(|_| labels.get(AGENT_NAME).is_some())
                .map(|raw| Box::new(Credential::from_config(raw))),
            labels,
            copied: annotation(COPIED).unwrap_or_default().into(),
            skips: annotation(SKIP_RECONCILE) == Some("true"),
            has_writer_annotation: annotation(WRITTEN_BY).is_some(),
            owner_annotation: annotation(OWNER).unwrap_or_default().into(),
            uid: metadata.uid,
            version: metadata.resource_version,
        })
    }

    /// Returns the clusters that a Secret of this name belongs to, may belong to, or conflicts with.
    pub fn concerns<'s>(&'s self, name: &'s str) -> BTreeSet<&'s str> {
        let mut all: BTreeSet<_> = SecretManager::clusters(name, self.server()).collect();
        all.extend([&*self.cluster]);
        all.remove("");
        all
    }

    /// Returns the owning GitOpsCluster as `NAMESPACE/NAME`, if the controller manages the Secret.
    pub fn owner(&self) -> Option<&str> {
        Some(&*self.owner_annotation).filter(|owner| self.is_ours() && !owner.is_empty())
    }

    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    fn certificate(&self) -> Option<&Certificate> {
        self.credential.as_ref()?.certificate.as_ref()
    }

    pub fn renews_at(&self) -> Option<Timestamp> {
        Some(self.certificate()?.renews_at())
    }

    pub fn is_issued_by(&self, ca: &TlsSecret) -> bool {
        let pair = self.certificate().zip(ca.certificates.first());
        pair.is_some_and(|(certificate, signer)| certificate.is_issued_by(signer))
    }

    /// Returns true if the Secret trusts exactly these CAs.
    pub fn trusts(&self, ca: &TlsSecret) -> bool {
        let credential = self.credential.as_ref();
        credential.is_some_and(|credential| credential.authorities == hash_authorities(ca))
    }

    /// Returns the server in the form in which Argo CD compares servers.
    pub fn server(&self) -> &str {
        self.server.trim_end_matches('/')
    }

    pub fn is_in_cluster(&self) -> bool {
        self.server() == manager::HUB_SERVER
    }

    pub fn is_of_agent(&self) -> bool {
        self.labels.get(AGENT_NAME).is_some()
    }

    fn is_ours(&self) -> bool {
        self.labels.get(MANAGED_BY) == Some(OURS)
    }

    /// Returns true if the Secret of this name is that of a cluster, and not that of another cluster for which a manager uses the
    /// same name: the label, the content or the server tell which.
    pub fn is_of_cluster(&self, name: &str, cluster: &str) -> bool {
        let by_server = SecretManager::clusters("", self.server());
        let named: BTreeSet<_> = by_server
            .chain(self.labels.get(CLUSTER_NAME))
            .chain([&*self.cluster])
            .collect();
        named.contains(cluster) || !SecretManager::clusters(name, "").any(|other| named.contains(other))
    }

    /// Returns true if the Secret of a cluster belongs to this manager or is handed over to it: no other GitOpsCluster owns it than
    /// these. The Secret of an agent never becomes that of the hub, nor the other way round.
    pub fn is_managed_by(&self, manager: SecretManager<'_>, owners: [Option<&str>; 2], cluster: &str) -> bool {
        let is_of_other_kind = match manager {
            SecretManager::Hub => self.is_of_agent(),
            SecretManager::Agent { .. } => self.is_in_cluster(),
            SecretManager::Controller | SecretManager::GitOps => false,
        };
        self.is_ours()
            && self.is_of_cluster(&manager.name(cluster), cluster)
            && !is_of_other_kind
            && (self.owner().is_none() || owners.contains(&self.owner()))
    }

    /// Returns true if the Secret is as the peer integration writes it and has no label of another manager.
    pub fn is_from_peer_integration(&self, cluster: &str, manager: SecretManager<'_>) -> bool {
        let is_as_written = match manager {
            SecretManager::Controller | SecretManager::GitOps => {
                self.config_content == ConfigContent::Absent
                    && *self.server == manager.server(cluster)
                    && self.labels.get(ACM) == manager.acm()
            }
            // Secrets of argocd-agentctl look alike but have no user name: they are maintained by hand.
            SecretManager::Agent { .. } => {
                let has_user = self.credential.as_ref().is_some_and(|credential| credential.has_user);
                let is_pull_integration = self.labels.get(CLUSTER_NAME) == Some(cluster);
                let is_of_acm = manager::agent_of(self.server()) == Some(cluster);
                self.labels.get(AGENT_NAME) == Some(cluster) && has_user && (is_pull_integration || is_of_acm)
            }
            SecretManager::Hub => {
                self.config_content != ConfigContent::Other && self.server() == manager.server(cluster)
            }
        };
        is_as_written && *self.cluster == *cluster && self.labels.get(MANAGED_BY).is_none()
    }
}

/// The connection configuration that Red Hat ACM writes for the hub.
pub const PLAIN: &str = "{}";

/// The encoding of that configuration in a Secret.
const PLAIN_VALUE: &str = r#""e30=""#;

fn decoded(raw: &RawValue) -> Result<Box<str>, serde_json::Error> {
    let bytes: Option<ByteString> = serde_json::from_str(raw.get())?;
    Ok(String::from_utf8_lossy(&bytes.unwrap_or_default().0).into())
}
