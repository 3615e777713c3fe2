//! Names, labels and annotations around argocd-agent. Names that others read are those of argocd-agent, argocd-pull-integration
//! or OCM.

use primitives::hash::with_hash;
use primitives::object_ref::ObjectRef;

/// The name of the add-on and of its ManagedClusterAddOns.
pub const ADDON: &str = "argocd-agent-addon";

/// OCM's ManifestWork with the add-on (`DeployWorkNamePrefix` in addon-framework). OCM divides manifests of more than 40 KiB among
/// several, and ours have 24 KiB.
pub const ADDON_WORK: &str = "addon-argocd-agent-addon-deploy-0";

/// The signer name of the agents' certificates.
pub const SIGNER: &str = "open-cluster-management.io/argocd-agent-addon";

/// The CA Secret that the add-on's template names. It never exists: OCM signs any name that a registered cluster requests, so
/// signing is left to the controller.
pub const NO_CA_SECRET: &str = "argocd-agent-signed-by-argocd-ocm-cmp";

/// The Secret on a managed cluster with the agent's certificate and key, named as in OCM (`CustomSignedSecretName`).
pub const CLIENT_SECRET: &str = "argocd-agent-addon-open-cluster-management.io-argocd-agent-addon-client-cert";

/// The Secret with the CA: with its key on the hub, only with `ca.crt` on managed clusters.
pub const CA_SECRET: &str = "argocd-agent-ca";

/// The ConfigMap with the CA's certificates.
pub const CA_BUNDLE: &str = "argocd-agent-ca-bundle";

/// The Secret with the signing key of the principal's tokens.
pub const JWT_SECRET: &str = "argocd-agent-jwt";

/// The Secret with the principal's certificate.
pub const PRINCIPAL_TLS: &str = "argocd-agent-principal-tls";

/// The Secret with the certificate of the principal's resource proxy.
pub const RESOURCE_PROXY_TLS: &str = "argocd-agent-resource-proxy-tls";

/// The ManifestWork that delivers the CA's certificates to a managed cluster.
pub const CA_WORK: &str = "argocd-agent-ca-mw";

/// The Services of the principal, as named by argocd-agent and by Red Hat's operator; the first existing one is used.
pub const PRINCIPAL_SERVICES: [&str; 2] = ["argocd-agent-principal", "openshift-gitops-agent-principal"];

/// The Services of the principal's resource proxy, as named by argocd-agent, by argocd-operator for the Argo CD of
/// argocd-pull-integration, and by Red Hat's operator; the first existing one is used.
pub const RESOURCE_PROXY_SERVICES: [&str; 3] = [
    "argocd-agent-resource-proxy",
    "argocd-agent-principal-resource-proxy",
    "openshift-gitops-agent-principal-resource-proxy",
];

/// The Deployments of the principal, in the same order.
pub const PRINCIPAL_DEPLOYMENTS: [&str; 2] = PRINCIPAL_SERVICES;

/// The ConfigMap with the certificates that the principal rejects (`argocd-agentctl blocklist tls`).
pub const BLOCKLIST: &str = "argocd-agent-tls-blocklist";

/// The prefix of the Secrets that list the certificates of a cluster's agent; the cluster's name follows.
const ISSUED: &str = "argocd-agent-issued-";

/// The type of those Secrets.
pub const ISSUED_TYPE: &str = "argocd-ocm-cmp.github.io/agent-certificates";

/// The Secrets on the hub that contain certificates.
pub const CERTIFICATES: [&str; 3] = [CA_SECRET, PRINCIPAL_TLS, RESOURCE_PROXY_TLS];

/// The annotation of a ManifestWork whose ArgoCD only the add-on's operator can delete: the operator must stay until that is
/// deleted.
pub const OPERATOR_MANAGED: &str = "argocd-ocm-cmp.github.io/operator-managed";

/// The label of our ManifestWorks for a GitOpsCluster, the same as in the peer integrations.
pub const WORK_LABEL: &str = "apps.open-cluster-management.io/gitopscluster";

/// The annotation of the ManifestWork with the CA, the same as in the peer integrations.
pub const CA_ANNOTATION: &str = "apps.open-cluster-management.io/propagate-argocd-agent-ca";

/// The annotation of an Application that the principal has copied from an agent in the mode autonomous (`stampLastUpdated`).
pub const LAST_UPDATED: &str = "argocd-agent.argoproj.io/last-updated";

/// The maximum length of most objects' names.
const NAME_MAX: usize = 253;

/// The maximum length of a label value, and of the name of a peer integration's work.
const LABEL_MAX: usize = 63;

/// The number of digits of the hash in a name.
const HASH_DIGITS: usize = 8;

/// The prefix and suffix of the cluster in its agent's user name, as in OCM (`agent.DefaultUser`).
const USER: [&str; 2] = [
    "system:open-cluster-management:cluster:",
    ":addon:argocd-agent-addon:agent:argocd-agent-addon-agent",
];

/// Returns the groups that the agent of a cluster may have, as in OCM (`agent.DefaultGroups`).
pub fn groups(cluster: &str) -> [String; 3] {
    [
        format!("system:open-cluster-management:cluster:{cluster}:addon:{ADDON}"),
        format!("system:open-cluster-management:addon:{ADDON}"),
        "system:authenticated".to_owned(),
    ]
}

/// Returns the name of an AddOnTemplate of a GitOpsCluster. A template is never edited, because OCM would roll out the change to
/// all clusters at once: other content has another name. Two GitOpsClusters may share the prefix: the annotation names the owner.
pub fn template(ObjectRef { namespace, name }: &ObjectRef, content_hash: &str) -> String {
    with_hash(format!("{ADDON}-{namespace}-{name}"), "-", content_hash, NAME_MAX)
}

/// One of the two Placements of a GitOpsCluster that OCM does not schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddonPlacement {
    /// The Placement of all clusters with the add-on.
    All,
    /// The Placement of the clusters that already have the next version, during a rollout.
    Next,
}

impl AddonPlacement {
    /// Returns the name of the Placement of a GitOpsCluster, in its namespace. OCM copies the name into a label, which allows 63
    /// characters.
    pub fn name(self, gitops_cluster: &str) -> String {
        let suffix = match self {
            Self::All => "-argocd-agent",
            Self::Next => "-argocd-agent-next",
        };
        let room = LABEL_MAX.saturating_sub(suffix.len());
        if gitops_cluster.len() <= room {
            return format!("{gitops_cluster}{suffix}");
        }
        with_hash(gitops_cluster.to_owned(), "-", &hash(gitops_cluster), room) + suffix
    }

    /// Returns the name of a PlacementDecision of the Placement, numbered from 1.
    pub fn decision(self, gitops_cluster: &str, number: usize) -> String {
        format!("{}-decision-{number}", self.name(gitops_cluster))
    }

    /// Returns the number of a PlacementDecision of the Placement, or `None` for another name.
    pub fn decision_number(self, gitops_cluster: &str, decision: &str) -> Option<usize> {
        let rest = decision.strip_prefix(&self.name(gitops_cluster))?;
        let number = rest.strip_prefix("-decision-")?.parse().ok()?;
        (number > 0 && self.decision(gitops_cluster, number) == decision).then_some(number)
    }
}

/// Returns the AddOnDeploymentConfig of a GitOpsCluster. It is in Argo CD's namespace, because users of another namespace must not
/// choose registries and the principal's address. Names for GitOpsClusters of other namespaces end with a hash, which no other has.
pub fn deployment_config(gitops_cluster: &ObjectRef, argocd: &str) -> ObjectRef {
    if *gitops_cluster.namespace == *argocd {
        return ObjectRef::new(argocd, &AddonPlacement::All.name(&gitops_cluster.name));
    }
    ObjectRef::new(argocd, &template(gitops_cluster, &hash(&gitops_cluster.to_string())))
}

/// Returns the name of the ManifestWork with the ArgoCD resource for an operator, as in argocd-pull-integration
/// (`getArgoCDCRManifestWorkName`).
pub fn argocd_work(namespace: &str, name: &str) -> String {
    let mut work = format!("argocd-agent-cr-{namespace}-{name}");
    if work.len() > LABEL_MAX {
        let hash = hash(&work);
        work.truncate(LABEL_MAX - 1 - HASH_DIGITS);
        work = format!("{work}-{hash}");
    }
    work
}

/// Returns the name of the Secret that lists the certificates of a cluster's agent.
pub fn issued(cluster: &str) -> String {
    format!("{ISSUED}{cluster}")
}

/// Returns the cluster whose certificates the Secret of this name lists, or `None` for another Secret.
pub fn cluster_of_issued(name: &str) -> Option<&str> {
    name.strip_prefix(ISSUED).filter(|cluster| !cluster.is_empty())
}

/// Returns the user name of a cluster's agent: the common name of its certificate.
pub fn user(cluster: &str) -> String {
    let [before, after] = USER;
    format!("{before}{cluster}{after}")
}

/// Checks that a cluster of this name can have an agent of the principal in this namespace, by argocd-agent's rules: a DNS label
/// other than the principal's namespace (`principal/auth.go`).
///
/// # Errors
/// Returns the reason and the remedy if it cannot.
pub fn check_agent(cluster: &str, argocd: &str) -> Result<(), String> {
    if cluster.len() > LABEL_MAX || cluster.contains('.') {
        return Err(format!(
            "ManagedCluster {cluster} cannot have an agent: argocd-agent accepts names of at most {LABEL_MAX} characters without dots: \
             register it with OCM under such a name"
        ));
    }
    if cluster == argocd {
        return Err(format!(
            "ManagedCluster {cluster} cannot have an agent: Argo CD's namespace on the hub has the same name: register it with OCM under \
             another name"
        ));
    }
    Ok(())
}

/// Returns the first digits of a text's SHA-256.
pub fn hash(text: &str) -> String {
    primitives::hash::hash([text], HASH_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_agents_for_unsuitable_cluster_names() {
        assert_eq!(check_agent("cluster1", "argocd"), Ok(()));
        for cluster in ["eu.west-1", &"c".repeat(64), "argocd"] {
            let problem = check_agent(cluster, "argocd").expect_err("no agent");
            assert!(problem.contains("register it with OCM under"), "{problem}");
        }
    }

    #[test]
    fn bounds_names_and_keeps_them_unique() {
        let long = |end: &str| "n".repeat(250) + end;
        let [all, next] = [AddonPlacement::All, AddonPlacement::Next];
        for name in ["fleet", &long("a")] {
            assert!(all.name(name).len() <= 63);
            assert!(next.name(name).len() <= 63);
            assert!(template(&ObjectRef::new("argocd", name), "01234567").len() <= 253);
            assert!(argocd_work("argocd", name).len() <= 63);
        }
        assert_ne!(all.name(&long("a")), all.name(&long("b")));
        let config = |namespace, name| deployment_config(&ObjectRef::new(namespace, name), "argocd").to_string();
        assert_eq!(config("argocd", "fleet"), "argocd/fleet-argocd-agent");
        assert!(config("team", "fleet").starts_with("argocd/argocd-agent-addon-team-fleet-"));
        assert_ne!(config("team", "a-fleet"), config("team-a", "fleet"));
        assert_ne!(argocd_work("argocd", &long("a")), argocd_work("argocd", &long("b")));
        assert_eq!(all.name("fleet"), "fleet-argocd-agent");
        assert_eq!(next.name("fleet"), "fleet-argocd-agent-next");
        assert_eq!(
            template(&ObjectRef::new("argocd", "fleet"), "01234567"),
            "argocd-agent-addon-argocd-fleet-01234567"
        );
        // As in argocd-pull-integration: `sha256sum` of the complete name.
        assert_eq!(argocd_work("argocd", "fleet"), "argocd-agent-cr-argocd-fleet");
        assert_eq!(
            argocd_work("argocd", &"n".repeat(50)),
            format!("argocd-agent-cr-argocd-{}-{}", "n".repeat(31), "e1019aa3")
        );
    }

    #[test]
    fn parses_the_number_of_a_decision() {
        for (decision, all, next) in [
            ("fleet-argocd-agent-decision-12", Some(12), None),
            ("fleet-argocd-agent-next-decision-3", None, Some(3)),
            ("fleet-argocd-agent-decision-0", None, None),
            ("fleet-argocd-agent-decision-01", None, None),
            ("fleet-decision-1", None, None),
            ("x", None, None),
        ] {
            let numbers = [AddonPlacement::All, AddonPlacement::Next]
                .map(|placement| placement.decision_number("fleet", decision));
            assert_eq!(numbers, [all, next], "{decision}");
        }
    }
}
