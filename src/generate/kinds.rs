//! What is known of kinds: their names, whether they live in namespaces, and which of them every cluster has.

use std::fmt;
use std::str::FromStr;

/// An API kind, whatever its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// The API group; empty for the core group.
    pub group: Box<str>,
    /// The kind.
    pub kind: Box<str>,
}

impl GroupKind {
    /// Whether it is the kind of this group and name.
    #[must_use]
    pub fn is(&self, group: &str, kind: &str) -> bool {
        &*self.kind == kind && &*self.group == group
    }

    /// What Kubernetes itself says about the kind, where it is one of its own.
    #[must_use]
    pub fn built_in(&self) -> Option<&'static BuiltIn> {
        let at = BUILT_IN
            .binary_search_by(|known| (known.kind, known.group).cmp(&(&*self.kind, &*self.group)))
            .ok()?;
        Some(&BUILT_IN[at])
    }

    /// The plural that is most likely the resource of a custom kind: regular English, as the tools that make CRDs have it.
    #[must_use]
    pub fn guessed_plural(&self) -> String {
        let singular = self.kind.to_ascii_lowercase();
        match singular.as_bytes() {
            [.., b's' | b'x' | b'z'] | [.., b'c' | b's', b'h'] => singular + "es",
            [.., b'a' | b'e' | b'i' | b'o' | b'u', b'y'] => singular + "s",
            [rest @ .., b'y'] => format!("{}ies", &singular[..rest.len()]),
            _ => singular + "s",
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if self.group.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", self.group)
        }
    }
}

impl FromStr for GroupKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        if !kind.starts_with(|first: char| first.is_ascii_uppercase()) {
            return Err(format!(
                "{text:?} is not a kind: write it like ClusterIssuer.cert-manager.io"
            ));
        }
        Ok(Self {
            group: group.into(),
            kind: kind.into(),
        })
    }
}

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// A kind of Kubernetes itself.
#[derive(Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// The kind.
    pub kind: &'static str,
    /// Its API group; empty for the core group.
    pub group: &'static str,
    /// Its resource.
    pub plural: &'static str,
    /// Whether it has namespaces.
    pub scope: Scope,
    /// The versions that every Kubernetes from 1.25 on serves; none where it came later, is off by default, or has gone.
    pub everywhere: &'static [&'static str],
}

const fn namespaced(
    kind: &'static str,
    group: &'static str,
    plural: &'static str,
    everywhere: &'static [&'static str],
) -> BuiltIn {
    BuiltIn {
        kind,
        group,
        plural,
        scope: Scope::Namespaced,
        everywhere,
    }
}

const fn cluster(
    kind: &'static str,
    group: &'static str,
    plural: &'static str,
    everywhere: &'static [&'static str],
) -> BuiltIn {
    BuiltIn {
        kind,
        group,
        plural,
        scope: Scope::Cluster,
        everywhere,
    }
}

/// The kinds of Kubernetes, with those of earlier versions, ordered by kind and group.
pub const BUILT_IN: &[BuiltIn] = &[
    cluster("APIService", "apiregistration.k8s.io", "apiservices", &["v1"]),
    namespaced("Binding", "", "bindings", &["v1"]),
    cluster("CSIDriver", "storage.k8s.io", "csidrivers", &["v1"]),
    cluster("CSINode", "storage.k8s.io", "csinodes", &["v1"]),
    namespaced("CSIStorageCapacity", "storage.k8s.io", "csistoragecapacities", &["v1"]),
    cluster(
        "CertificateSigningRequest",
        "certificates.k8s.io",
        "certificatesigningrequests",
        &["v1"],
    ),
    cluster("ClusterRole", "rbac.authorization.k8s.io", "clusterroles", &["v1"]),
    cluster(
        "ClusterRoleBinding",
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        &["v1"],
    ),
    cluster("ClusterTrustBundle", "certificates.k8s.io", "clustertrustbundles", &[]),
    cluster("ComponentStatus", "", "componentstatuses", &["v1"]),
    namespaced("ConfigMap", "", "configmaps", &["v1"]),
    namespaced("ControllerRevision", "apps", "controllerrevisions", &["v1"]),
    namespaced("CronJob", "batch", "cronjobs", &["v1"]),
    cluster(
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &["v1"],
    ),
    namespaced("DaemonSet", "apps", "daemonsets", &["v1"]),
    namespaced("DaemonSet", "extensions", "daemonsets", &[]),
    namespaced("Deployment", "apps", "deployments", &["v1"]),
    namespaced("Deployment", "extensions", "deployments", &[]),
    cluster("DeviceClass", "resource.k8s.io", "deviceclasses", &[]),
    cluster("DeviceTaintRule", "resource.k8s.io", "devicetaintrules", &[]),
    namespaced("EndpointSlice", "discovery.k8s.io", "endpointslices", &["v1"]),
    namespaced("Endpoints", "", "endpoints", &["v1"]),
    namespaced("Event", "", "events", &["v1"]),
    namespaced("Event", "events.k8s.io", "events", &["v1"]),
    cluster("FlowSchema", "flowcontrol.apiserver.k8s.io", "flowschemas", &[]),
    namespaced(
        "HorizontalPodAutoscaler",
        "autoscaling",
        "horizontalpodautoscalers",
        &["v1", "v2"],
    ),
    cluster("IPAddress", "networking.k8s.io", "ipaddresses", &[]),
    namespaced("Ingress", "extensions", "ingresses", &[]),
    namespaced("Ingress", "networking.k8s.io", "ingresses", &["v1"]),
    cluster("IngressClass", "networking.k8s.io", "ingressclasses", &["v1"]),
    namespaced("Job", "batch", "jobs", &["v1"]),
    namespaced("Lease", "coordination.k8s.io", "leases", &["v1"]),
    namespaced("LeaseCandidate", "coordination.k8s.io", "leasecandidates", &[]),
    namespaced("LimitRange", "", "limitranges", &["v1"]),
    namespaced(
        "LocalSubjectAccessReview",
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        &["v1"],
    ),
    cluster(
        "MutatingAdmissionPolicy",
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        &[],
    ),
    cluster(
        "MutatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
        &[],
    ),
    cluster(
        "MutatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        &["v1"],
    ),
    cluster("Namespace", "", "namespaces", &["v1"]),
    namespaced("NetworkPolicy", "extensions", "networkpolicies", &[]),
    namespaced("NetworkPolicy", "networking.k8s.io", "networkpolicies", &["v1"]),
    cluster("Node", "", "nodes", &["v1"]),
    cluster("PersistentVolume", "", "persistentvolumes", &["v1"]),
    namespaced("PersistentVolumeClaim", "", "persistentvolumeclaims", &["v1"]),
    namespaced("Pod", "", "pods", &["v1"]),
    namespaced(
        "PodCertificateRequest",
        "certificates.k8s.io",
        "podcertificaterequests",
        &[],
    ),
    namespaced("PodDisruptionBudget", "policy", "poddisruptionbudgets", &["v1"]),
    cluster("PodSecurityPolicy", "extensions", "podsecuritypolicies", &[]),
    cluster("PodSecurityPolicy", "policy", "podsecuritypolicies", &[]),
    namespaced("PodTemplate", "", "podtemplates", &["v1"]),
    cluster("PriorityClass", "scheduling.k8s.io", "priorityclasses", &["v1"]),
    cluster(
        "PriorityLevelConfiguration",
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        &[],
    ),
    namespaced("ReplicaSet", "apps", "replicasets", &["v1"]),
    namespaced("ReplicaSet", "extensions", "replicasets", &[]),
    namespaced("ReplicationController", "", "replicationcontrollers", &["v1"]),
    namespaced("ResourceClaim", "resource.k8s.io", "resourceclaims", &[]),
    namespaced(
        "ResourceClaimTemplate",
        "resource.k8s.io",
        "resourceclaimtemplates",
        &[],
    ),
    cluster(
        "ResourcePoolStatusRequest",
        "resource.k8s.io",
        "resourcepoolstatusrequests",
        &[],
    ),
    namespaced("ResourceQuota", "", "resourcequotas", &["v1"]),
    cluster("ResourceSlice", "resource.k8s.io", "resourceslices", &[]),
    namespaced("Role", "rbac.authorization.k8s.io", "roles", &["v1"]),
    namespaced("RoleBinding", "rbac.authorization.k8s.io", "rolebindings", &["v1"]),
    cluster("RuntimeClass", "node.k8s.io", "runtimeclasses", &["v1"]),
    namespaced("Secret", "", "secrets", &["v1"]),
    cluster(
        "SelfSubjectAccessReview",
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        &["v1"],
    ),
    cluster("SelfSubjectReview", "authentication.k8s.io", "selfsubjectreviews", &[]),
    cluster(
        "SelfSubjectRulesReview",
        "authorization.k8s.io",
        "selfsubjectrulesreviews",
        &["v1"],
    ),
    namespaced("Service", "", "services", &["v1"]),
    namespaced("ServiceAccount", "", "serviceaccounts", &["v1"]),
    cluster("ServiceCIDR", "networking.k8s.io", "servicecidrs", &[]),
    namespaced("StatefulSet", "apps", "statefulsets", &["v1"]),
    cluster("StorageClass", "storage.k8s.io", "storageclasses", &["v1"]),
    cluster("StorageVersion", "internal.apiserver.k8s.io", "storageversions", &[]),
    cluster(
        "StorageVersionMigration",
        "storagemigration.k8s.io",
        "storageversionmigrations",
        &[],
    ),
    cluster(
        "SubjectAccessReview",
        "authorization.k8s.io",
        "subjectaccessreviews",
        &["v1"],
    ),
    cluster("TokenReview", "authentication.k8s.io", "tokenreviews", &["v1"]),
    cluster(
        "ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        &[],
    ),
    cluster(
        "ValidatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        &[],
    ),
    cluster(
        "ValidatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        &["v1"],
    ),
    cluster("VolumeAttachment", "storage.k8s.io", "volumeattachments", &["v1"]),
    cluster(
        "VolumeAttributesClass",
        "storage.k8s.io",
        "volumeattributesclasses",
        &[],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> GroupKind {
        text.parse().expect(text)
    }

    #[test]
    fn the_table_can_be_searched() {
        assert!(BUILT_IN.is_sorted_by_key(|known| (known.kind, known.group)));
        assert_eq!(kind("Ingress.networking.k8s.io").built_in().unwrap().everywhere, ["v1"]);
        assert!(kind("Ingress.extensions").built_in().unwrap().everywhere.is_empty());
        assert_eq!(kind("Namespace").built_in().unwrap().scope, Scope::Cluster);
        assert_eq!(kind("Certificate.cert-manager.io").built_in(), None);
    }

    #[test]
    fn plurals_are_guessed() {
        for (singular, plural) in [
            ("Certificate", "certificates"),
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("Gateway", "gateways"),
            ("ServiceMesh", "servicemeshes"),
            ("Prometheus", "prometheuses"),
        ] {
            assert_eq!(kind(singular).guessed_plural(), plural);
        }
    }
}
