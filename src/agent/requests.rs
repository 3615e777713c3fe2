//! Which requests for certificates are granted.
//!
//! OCM's own signer for add-ons of templates signs whatever name a registered cluster asks for (`CustomerSignerCSRApprover` in its
//! `pkg/addon/templateagent`), by which one cluster could pass for another. Here it signs nothing; what is signed is what the
//! agent of a cluster asks for its own cluster.

use super::names;
use crate::pki::Request;
use serde_json::Value;

/// What comes before a cluster's name in the name of its agent and of its group on the hub.
const SUBJECT: &str = "system:open-cluster-management:";

/// Who asks, as the API server has noted it.
#[derive(Clone, Copy, Debug)]
pub struct Requester<'r, 'g> {
    /// Its name.
    pub user: &'r str,
    /// Its groups.
    pub groups: &'g [&'g str],
}

/// Returns the managed cluster whose registration agent has made a CertificateSigningRequest, by what the API server has noted of the
/// requester. Labels are not looked at: the requester sets them.
#[must_use]
pub fn cluster_of(request: &Value) -> Option<&str> {
    let spec = &request["spec"];
    let groups: Vec<_> = spec["groups"].as_array()?.iter().filter_map(Value::as_str).collect();
    let requester = Requester {
        user: spec["username"].as_str()?,
        groups: &groups,
    };
    requester.cluster()
}

impl<'r> Requester<'r, '_> {
    /// The managed cluster whose registration agent it is. OCM calls that one `system:open-cluster-management:CLUSTER:AGENT` and
    /// puts it in the group `system:open-cluster-management:CLUSTER`; no cluster is let choose either.
    #[must_use]
    pub fn cluster(self) -> Option<&'r str> {
        let (cluster, agent) = self.user.strip_prefix(SUBJECT)?.split_once(':')?;
        let is_agent = !cluster.is_empty() && !agent.is_empty() && !agent.contains(':');
        let is_of_it = |group: &&str| group.strip_prefix(SUBJECT) == Some(cluster);
        (is_agent && self.groups.iter().any(is_of_it)).then_some(cluster)
    }
}

/// Why a request is refused, or that it is not. OCM's agents ask for a name to serve under as well, which nobody is given.
///
/// # Errors
/// With what is wrong with it, and what is to be asked for instead.
pub fn check(requester: Requester<'_, '_>, request: &Request) -> Result<(), String> {
    let Some(cluster) = requester.cluster() else {
        return Err(format!(
            "{} is not the registration agent of a managed cluster: only that one can ask for the certificate of its agent",
            requester.user
        ));
    };
    let wanted = names::user(cluster);
    if *request.common_name != *wanted {
        return Err(format!(
            "the agent of the cluster {cluster} asks for the name {}: it can only ask for {wanted}",
            request.common_name
        ));
    }
    let allowed = names::groups(cluster);
    let mut organizations = request.organizations.iter();
    if let Some(other) = organizations.find(|it| !allowed.iter().any(|allowed| **allowed == ***it)) {
        return Err(format!(
            "the agent of the cluster {cluster} asks for the group {other}: it can only ask for {}",
            allowed.join(", ")
        ));
    }
    Ok(())
}
