//! The Secret by which Argo CD knows a managed cluster that it never connects to: generators read its name, its server and its
//! labels, and nothing listens at that server. Where argocd-agent runs on the cluster, argocd-agent's resource proxy does. Each is
//! decided on by a pure function of the cluster's labels and of the Secrets that are there.
//!
//! Name, server and type are those of argocd-pull-integration, whose Secrets are taken over. Two Secrets for one cluster break
//! ApplicationSets, and destinations that name it: where somebody else has written one, ours is not written beside it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod credential;
mod decide;
mod keeper;
mod labels;

pub use credential::Issuer;
pub use decide::{Cluster, Decision, Write, decide, obsolete};
pub use keeper::{Keeper, is_hub};
pub use labels::Labels;

use crate::controller::seen;
use credential::Credential;
use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The label by which Argo CD knows what a Secret is for.
pub const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";

/// What that says of clusters.
pub const CLUSTER: &str = "cluster";

/// The label that says whose a Secret is.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// What that says of ours. Somebody who writes it on another Secret of the right name hands that over.
pub const OURS: &str = "argocd-ocm-cmp";

/// The annotation that lists the labels which the cluster has given, so that one that the cluster loses is taken away and one
/// that somebody has set on the Secret is not.
pub const COPIED: &str = "argocd-ocm-cmp.github.io/labels";

/// The annotation by which Argo CD, in newer versions than 3.2, leaves the Applications of a cluster alone, and never connects to it
/// (`IsManagedCluster` in its `controller/sharding`). Older ones do not know it on a Secret: there an Application for the
/// cluster makes the application-controller dial the server, though the Application itself is to be left alone. ApplicationSets
/// do not ask for it in any version.
pub const SKIP_RECONCILE: &str = seen::SKIP_RECONCILE;

/// The label that says which agent a Secret is of (`LabelKeyClusterAgentMapping` in argocd-agent).
pub const AGENT_NAME: &str = "argocd-agent.argoproj-labs.io/agent-name";

/// The annotation by which argocd-agentctl says the same, and Argo CD's API server that it has written a Secret.
const WRITTEN_BY: &str = "managed-by";

/// What that says of those with an agent.
const AGENTS: &str = "argocd-agent";

/// The label by which the peers' users select a cluster by its name.
const CLUSTER_NAME: &str = "apps.open-cluster-management.io/cluster-name";

/// The name of the managed cluster that is the hub itself, and the label that says so of one of another name.
pub const HUB: &str = "local-cluster";

/// Under which key a cluster's name is in its Secret.
const NAME: &str = "name";

/// Under which key its server is.
const SERVER: &str = "server";

/// Under which key is how Argo CD connects to it.
const CONFIG: &str = "config";

/// The annotation that says whose GitOpsCluster's a Secret is, as `NAMESPACE/NAME`: a label has no room for all names.
pub const OWNER: &str = "argocd-ocm-cmp.github.io/gitopscluster";

/// A cluster Secret of Argo CD's, whoever wrote it: the little that is needed of it, and no credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSecret {
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
    /// Which form of it this is.
    pub version: Box<str>,
    /// Whether it is going.
    pub deleting: bool,
    /// The cluster's name in Argo CD.
    cluster: Box<str>,
    /// Where Argo CD would connect to.
    server: Box<str>,
    /// What it says besides those two.
    rest: Rest,
    /// How Argo CD shows who it is, where that is of an agent.
    credential: Option<Box<Credential>>,
    labels: Labels,
    /// [`COPIED`].
    copied: Box<str>,
    /// Whether it has [`SKIP_RECONCILE`] as we write it.
    skips: bool,
    /// Whether it says by [`WRITTEN_BY`] who has written it.
    is_signed: bool,
    /// [`OWNER`].
    owner: Box<str>,
}

/// What a cluster Secret says besides the cluster's name and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// That there is nothing to be said of how to connect.
    Plain,
    Something,
}

impl ClusterSecret {
    /// Reads a Secret's JSON.
    ///
    /// # Errors
    /// That it cannot be understood, which the API server lets nobody write. Nothing of it is repeated.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Secret<'t> {
            metadata: Metadata,
            // What is not asked for is not even decoded: credentials are there.
            #[serde(borrow)]
            data: Option<BTreeMap<Cow<'t, str>, &'t RawValue>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            #[serde(default)]
            uid: Box<str>,
            #[serde(default)]
            resource_version: Box<str>,
            deletion_timestamp: Option<IgnoredAny>,
            labels: Option<BTreeMap<String, String>>,
            annotations: Option<Annotations>,
        }
        #[derive(Deserialize, Default)]
        struct Annotations {
            #[serde(rename = "argocd-ocm-cmp.github.io/labels")]
            copied: Option<Box<str>>,
            #[serde(rename = "argocd.argoproj.io/skip-reconcile")]
            skip: Option<Box<str>>,
            #[serde(rename = "managed-by")]
            written_by: Option<IgnoredAny>,
            #[serde(rename = "argocd-ocm-cmp.github.io/gitopscluster")]
            owner: Option<Box<str>>,
        }
        let unreadable = |_| "it is not a Secret as Kubernetes has them".to_owned();
        let Secret { metadata, data } = serde_json::from_str(text).map_err(unreadable)?;
        let data = data.unwrap_or_default();
        let value = |key| data.get(key).map_or(Ok("".into()), |raw| decoded(raw));
        let annotations = metadata.annotations.unwrap_or_default();
        let labels = Labels::of(&metadata.labels.unwrap_or_default());
        let config = data.get(CONFIG);
        let is_bare = data.keys().all(|key| [NAME, SERVER, CONFIG].contains(&&**key));
        let rest = match config.map(|raw| raw.get()) {
            None if is_bare => Rest::Nothing,
            Some(PLAIN_VALUE) if is_bare => Rest::Plain,
            _ => Rest::Something,
        };
        Ok(Self {
            uid: metadata.uid,
            version: metadata.resource_version,
            deleting: metadata.deletion_timestamp.is_some(),
            rest,
            cluster: value(NAME).map_err(unreadable)?,
            server: value(SERVER).map_err(unreadable)?,
            credential: config
                .filter(|_| labels.get(AGENT_NAME).is_some())
                .map(|raw| Box::new(Credential::read(raw))),
            labels,
            copied: annotations.copied.unwrap_or_default(),
            skips: annotations.skip.as_deref() == Some("true"),
            is_signed: annotations.written_by.is_some(),
            owner: annotations.owner.unwrap_or_default(),
        })
    }

    /// The clusters whose Secret the one of this name is, or may be, or stands in the way of.
    #[must_use]
    pub fn concerns<'s>(&'s self, name: &'s str) -> BTreeSet<&'s str> {
        let mut all: BTreeSet<_> = Keeper::clusters(name, self.server()).collect();
        all.extend([&*self.cluster]);
        all.remove("");
        all
    }

    /// Whose GitOpsCluster's it is, as `NAMESPACE/NAME`, if it is ours.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        Some(&*self.owner).filter(|owner| self.is_ours() && !owner.is_empty())
    }

    /// The cluster's name in Argo CD.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// When the certificate by which Argo CD shows who it is is to be renewed, where it has one.
    #[must_use]
    pub fn renews_at(&self) -> Option<Timestamp> {
        self.credential.as_ref()?.renews_at()
    }

    /// Whether Argo CD shows who it is by a certificate.
    #[must_use]
    pub fn has_credential(&self) -> bool {
        self.credential.is_some()
    }

    /// Whether Argo CD shows who it is by a certificate of the authority that signs.
    #[must_use]
    pub fn is_issued_by(&self, ca: &seen::TlsSecret) -> bool {
        self.credential.as_ref().is_some_and(|is| is.is_issued_by(ca))
    }

    /// Whether Argo CD trusts exactly these authorities where it shows who it is.
    #[must_use]
    pub fn trusts(&self, ca: &seen::TlsSecret) -> bool {
        self.credential.as_ref().is_some_and(|is| is.trusts(ca))
    }

    /// Where Argo CD would connect to, as it compares servers.
    fn server(&self) -> &str {
        self.server.trim_end_matches('/')
    }

    fn is_ours(&self) -> bool {
        self.labels.get(MANAGED_BY) == Some(OURS)
    }

    /// Whether it is that of this keeper, or is handed over to it.
    fn is_kept_by(&self, keeper: Keeper<'_>) -> bool {
        self.is_ours()
            && match (self.owner(), keeper.owner()) {
                (None, _) => true,
                (Some(_), None) => false,
                (is, wanted) => is == wanted || is == keeper.before(),
            }
    }

    /// Whether it is as the keeper's peer writes it, and nobody else says that it is theirs.
    fn is_of_the_peer(&self, cluster: &str, keeper: Keeper<'_>) -> bool {
        let is_as_written = match keeper {
            Keeper::Controller | Keeper::GitOps { .. } => {
                self.rest == Rest::Nothing
                    && *self.server == keeper.server(cluster)
                    && self.labels.get(ACM) == keeper.acm()
            }
            // Those of argocd-agentctl are alike, and have no user: they are somebody's who keeps them by hand.
            Keeper::Agent { .. } => {
                let has_user = self.credential.as_ref().is_some_and(|is| is.has_user);
                let is_of_pull = self.labels.get(CLUSTER_NAME) == Some(cluster);
                let is_of_acm = keeper::agent_of(self.server()) == Some(cluster);
                self.labels.get(AGENT_NAME) == Some(cluster) && has_user && (is_of_pull || is_of_acm)
            }
            Keeper::Hub { .. } => self.rest != Rest::Something && self.server() == keeper.server(cluster),
        };
        is_as_written && *self.cluster == *cluster && self.labels.get(MANAGED_BY).is_none()
    }
}

/// What Red Hat ACM says of how to connect to the hub.
const PLAIN: &str = "{}";

/// That as a Secret has it.
const PLAIN_VALUE: &str = r#""e30=""#;

/// The label of the cluster Secrets that Red Hat ACM writes, and deletes.
const ACM: &str = "apps.open-cluster-management.io/acm-cluster";

/// A value of a Secret.
fn decoded(raw: &RawValue) -> Result<Box<str>, serde_json::Error> {
    let bytes: Option<ByteString> = serde_json::from_str(raw.get())?;
    Ok(String::from_utf8_lossy(&bytes.unwrap_or_default().0).into())
}

#[cfg(test)]
pub(crate) mod tests;
