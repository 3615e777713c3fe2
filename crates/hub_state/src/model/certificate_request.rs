//! The model of a CertificateSigningRequest.

use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::Value;

/// The prefix of the cluster name in the user name and the group of its agent on the hub.
const SUBJECT: &str = "system:open-cluster-management:";

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CertificateRequest {
    /// The request, of which the API server fills in the requester.
    pub spec: RequestSpec,
    pub status: RequestStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RequestSpec {
    #[serde(flatten)]
    pub requester: Requester,
    /// The requested certificate, a PKCS #10 request in PEM.
    pub request: ByteString,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RequestStatus {
    /// The conditions of all writers with all their fields: a patch replaces the whole list.
    pub conditions: Vec<Value>,
    /// The issued certificate in PEM.
    pub certificate: Option<ByteString>,
}

/// The requester, as the API server has recorded it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Requester {
    #[serde(rename = "username")]
    pub user: Box<str>,
    pub groups: Vec<Box<str>>,
}

impl CertificateRequest {
    pub fn has(&self, kind: &str) -> bool {
        self.status.conditions.iter().any(|condition| condition["type"] == kind)
    }

    /// Returns true if the request is neither signed, denied nor failed.
    pub fn is_open(&self) -> bool {
        self.status.certificate.is_none() && !self.has("Denied") && !self.has("Failed")
    }
}

impl Requester {
    /// Returns the managed cluster whose registration agent the requester is. OCM names that agent
    /// `system:open-cluster-management:CLUSTER:AGENT` and puts it in the group `system:open-cluster-management:CLUSTER`; clusters
    /// cannot choose either. Labels of the request do not count, because the requester sets them.
    pub fn cluster(&self) -> Option<&str> {
        let (cluster, agent) = self.user.strip_prefix(SUBJECT)?.split_once(':')?;
        let is_agent = !cluster.is_empty() && !agent.is_empty() && !agent.contains(':');
        let mut groups = self.groups.iter();
        (is_agent && groups.any(|group| group.strip_prefix(SUBJECT) == Some(cluster))).then_some(cluster)
    }
}
