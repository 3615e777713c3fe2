//! The rules for granting CertificateSigningRequests.
//!
//! OCM's own signer for add-ons of templates signs any name that a registered cluster requests (`CustomerSignerCSRApprover` in
//! its `pkg/addon/templateagent`), so one cluster could impersonate another. Therefore OCM's signer signs nothing here. The
//! controller signs only requests of a cluster's agent for its own cluster.

use hub_state::model::Requester;
use ocm::argocd_agent as names;

/// Checks that the requester may have a certificate with this subject, and returns its cluster. Ignores requested DNS names, which
/// OCM's agents add and no certificate gets.
///
/// # Errors
/// Returns the wrong part of the subject, or the requester if it may not request any.
pub fn check<'r>(requester: &'r Requester, name: &str, groups: &[Box<str>]) -> Result<&'r str, String> {
    let Some(cluster) = requester.cluster() else {
        return Err(format!(
            "{} is not the registration agent of a managed cluster: only registration agents can request the \
             certificates of agents",
            requester.user
        ));
    };
    let permitted = names::user(cluster);
    if name != permitted {
        return Err(format!(
            "the agent of ManagedCluster {cluster} requests the name {name}: only {permitted} is permitted"
        ));
    }
    let allowed = names::groups(cluster);
    if let Some(group) = groups.iter().find(|group| !allowed.iter().any(|it| **it == ***group)) {
        let permitted = allowed.join(", ");
        return Err(format!(
            "the agent of ManagedCluster {cluster} requests the group {group}: only {permitted} are permitted"
        ));
    }
    Ok(cluster)
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
                let requester = Requester {
                    user: user.as_str().into(),
                    groups: all.iter().map(|group| group.as_str().into()).collect(),
                };
                let checked = check(&requester, &common_name, &organizations);
                let entitled = entitled(&user, &all, &common_name, &organizations);
                assert_eq!(
                    checked.ok(),
                    entitled,
                    "{user:?} {all:?} {common_name:?} {organizations:?}"
                );
            },
        );
    }
}
