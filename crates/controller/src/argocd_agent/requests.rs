//! The rules for granting CertificateSigningRequests.
//!
//! OCM's own signer for add-ons of templates signs any name that a registered cluster requests (`CustomerSignerCSRApprover` in
//! its `pkg/addon/templateagent`), so one cluster could impersonate another. Therefore OCM's signer signs nothing here. The
//! controller signs only requests of a cluster's agent for its own cluster.

use ocm::argocd_agent as names;
use serde_json::Value;

/// The prefix of the cluster name in the user name and the group of its agent on the hub.
const SUBJECT: &str = "system:open-cluster-management:";

/// The requester, as the API server has recorded it.
#[derive(Clone, Copy, Debug)]
pub struct Requester<'r, 'g> {
    /// The user name of the requester.
    pub user: &'r str,
    /// The groups of the requester.
    pub groups: &'g [&'g str],
}

/// Returns the managed cluster whose registration agent created a CertificateSigningRequest, according to the requester that the
/// API server recorded. Ignores labels, because the requester sets them.
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
    /// Returns the managed cluster whose registration agent the requester is. OCM names that agent
    /// `system:open-cluster-management:CLUSTER:AGENT` and puts it in the group `system:open-cluster-management:CLUSTER`; clusters
    /// cannot choose either.
    #[must_use]
    pub fn cluster(self) -> Option<&'r str> {
        let (cluster, agent) = self.user.strip_prefix(SUBJECT)?.split_once(':')?;
        let is_agent = !cluster.is_empty() && !agent.is_empty() && !agent.contains(':');
        let is_of_it = |group: &&str| group.strip_prefix(SUBJECT) == Some(cluster);
        (is_agent && self.groups.iter().any(is_of_it)).then_some(cluster)
    }
}

/// Checks that the requester may have a certificate with this subject. Ignores requested DNS names, which OCM's agents add and no
/// certificate gets.
///
/// # Errors
/// Returns an error that names the wrong part of the subject and the correct one.
pub fn check(requester: Requester<'_, '_>, common_name: &str, organizations: &[Box<str>]) -> Result<(), String> {
    let Some(cluster) = requester.cluster() else {
        return Err(format!(
            "{} is not the registration agent of a managed cluster: only registration agents can request the \
             certificates of agents",
            requester.user
        ));
    };
    let desired = names::user(cluster);
    if common_name != desired {
        return Err(format!(
            "the agent of ManagedCluster {cluster} requests the name {common_name}: only {desired} is permitted"
        ));
    }
    let allowed = names::groups(cluster);
    let mut organizations = organizations.iter();
    if let Some(other) = organizations.find(|it| !allowed.iter().any(|allowed| **allowed == ***it)) {
        return Err(format!(
            "the agent of ManagedCluster {cluster} requests the group {other}: only {} are permitted",
            allowed.join(", ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod properties {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{BoxedStrategy, Just, Strategy, prop_oneof};
    use proptest::sample::select;
    use testing::{holds, hostile_text};

    fn requesters() -> BoxedStrategy<(String, Vec<String>)> {
        const USERS: &[&str] = &[
            "system:open-cluster-management:eu1:agent",
            "system:open-cluster-management:eu2:agent",
            "system:open-cluster-management:eu1",
            "system:open-cluster-management:eu1:",
            "system:open-cluster-management::agent",
            "system:open-cluster-management:eu1:a:b",
            "system:open-cluster-management:eu1:agent:eu2",
            "system:serviceaccount:eu1:agent",
            "kubernetes-admin",
            "",
        ];
        const GROUPS: &[&str] = &[
            "system:open-cluster-management:eu1",
            "system:open-cluster-management:eu2",
            "system:open-cluster-management:",
            "system:masters",
            "system:open-cluster-management",
            "system:open-cluster-management:eu1:agent",
            "system:authenticated",
        ];
        let name = prop_oneof![6 => Just(USERS[0]), 2 => select(USERS)];
        let groups = prop_oneof![6 => Just(vec![GROUPS[0]]), 2 => vec(select(GROUPS), 0..4)];
        let known = (name, groups)
            .prop_map(|(name, groups)| (name.to_owned(), groups.into_iter().map(str::to_owned).collect()));
        prop_oneof![9 => known, 1 => (hostile_text(), vec(hostile_text(), 0..3))].boxed()
    }

    fn subjects() -> BoxedStrategy<(String, Vec<Box<str>>)> {
        let name = prop_oneof![
            6 => Just(names::user("eu1")),
            1 => Just(names::user("eu2")),
            1 => Just("system:masters".to_owned()),
            1 => hostile_text()
        ];
        let organization = prop_oneof![
            6 => select(names::groups("eu1").to_vec()),
            1 => select(names::groups("eu2").to_vec()),
            1 => Just("system:masters".to_owned()),
            1 => hostile_text()
        ];
        let organizations = vec(organization.prop_map(String::into_boxed_str), 0..4);
        (name, organizations).boxed()
    }

    /// Returns the cluster whose agent may have a certificate with this subject.
    fn entitled<'u>(user: &'u str, all: &[String], common_name: &str, organizations: &[Box<str>]) -> Option<&'u str> {
        let ["system", "open-cluster-management", cluster, agent] = user.split(':').collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_agent = !cluster.is_empty()
            && !agent.is_empty()
            && all.contains(&format!("system:open-cluster-management:{cluster}"));
        let groups = names::groups(cluster);
        let is_own = common_name == names::user(cluster)
            && organizations
                .iter()
                .all(|it| groups.iter().any(|group| **group == **it));
        (is_agent && is_own).then_some(cluster)
    }

    #[test]
    fn grants_an_agent_a_certificate_for_its_own_cluster_only() {
        holds(
            2000,
            || (requesters(), subjects()),
            |((user, all), (common_name, organizations))| {
                let groups: Vec<&str> = all.iter().map(String::as_str).collect();
                let requester = Requester {
                    user: &user,
                    groups: &groups,
                };
                let checked = check(requester, &common_name, &organizations);
                let entitled = entitled(&user, &all, &common_name, &organizations);
                assert_eq!(
                    checked.is_ok(),
                    entitled.is_some(),
                    "{user:?} {all:?} {common_name:?} {organizations:?}"
                );
            },
        );
    }
}
