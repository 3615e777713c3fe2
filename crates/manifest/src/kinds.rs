//! API kinds: their names, their scope, the kinds that every cluster serves, and the custom kinds of public operators.

use Scope::{Cluster, Namespaced};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

/// An API kind, without a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// The API group; empty for the core group.
    pub group: Box<str>,
    /// The kind.
    pub kind: Box<str>,
}

impl GroupKind {
    /// Returns the kind of an object with this `apiVersion` and `kind`.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self {
            group: group.into(),
            kind: kind.into(),
        }
    }

    /// Returns true if the kind has this group and name.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        &*self.kind == kind && &*self.group == group
    }

    /// Returns the description of the kind if it is built into Kubernetes.
    pub fn built_in(&self) -> Option<&'static BuiltIn> {
        built_in(&self.group, &self.kind)
    }

    /// Returns the description of the kind if it is a custom kind of a public operator.
    pub fn known_custom(&self) -> Option<KnownCustom> {
        static GROUPS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| groups().collect());
        // Gatekeeper creates the CRD of each ConstraintTemplate.
        if &*self.group == "constraints.gatekeeper.sh" {
            let plural = self.kind.to_ascii_lowercase().into();
            return Some(KnownCustom { plural, scope: Cluster });
        }
        let (_, scope, plural) = kinds_of(GROUPS.get(&*self.group)?).find(|(kind, ..)| *kind == &*self.kind)?;
        Some(known_custom(self, scope, plural))
    }

    /// Returns the scope of a custom kind of a public operator.
    pub fn known_custom_scope(&self) -> Option<Scope> {
        // The kinds of Crossplane's provider families are too many to list. In groups such as `s3.aws.m.upbound.io`, they are namespaced.
        let is_of_family = |family: &str| {
            let service = self.group.strip_suffix(family);
            service.is_some_and(|service| service.is_empty() || service.ends_with('.'))
        };
        let families = [
            "aws.upbound.io",
            "azure.upbound.io",
            "azuread.upbound.io",
            "gcp.upbound.io",
        ];
        let known = self.known_custom().map(|known| known.scope);
        known.or_else(|| families.into_iter().any(is_of_family).then_some(Cluster))
    }

    /// Returns the resource names (plurals) that the kind may have, the most likely first; one if it is known.
    pub fn plurals(&self) -> Vec<Cow<'static, str>> {
        let built_in = self.built_in().map(|known| known.plural.into());
        match built_in.or_else(|| self.known_custom().map(|known| known.plural)) {
            Some(plural) => vec![plural],
            // Most irregular plurals of custom kinds are the kind itself.
            None => vec![self.guessed_plural().into(), self.kind.to_ascii_lowercase().into()],
        }
    }

    /// Returns the most likely plural of a custom kind: regular English, as CRD generators derive it.
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

/// The scope of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Namespaced objects.
    Namespaced,
    /// Cluster-scoped objects.
    Cluster,
}

/// A kind that is built into Kubernetes.
#[derive(Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// The kind.
    pub kind: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource name (plural).
    pub plural: &'static str,
    /// The scope.
    pub scope: Scope,
    /// The versions that every Kubernetes since 1.25 serves; none if the kind is newer, off by default, or removed.
    pub always_served: &'static [&'static str],
}

const fn known(
    kind: &'static str,
    group: &'static str,
    plural: &'static str,
    scope: Scope,
    always_served: &'static [&'static str],
) -> BuiltIn {
    BuiltIn {
        kind,
        group,
        plural,
        scope,
        always_served,
    }
}

/// Returns the description of a kind if it is built into Kubernetes.
pub fn built_in(group: &str, kind: &str) -> Option<&'static BuiltIn> {
    let at = BUILT_IN
        .binary_search_by(|known| (known.kind, known.group).cmp(&(kind, group)))
        .ok()?;
    Some(&BUILT_IN[at])
}

/// A custom kind of a public operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCustom {
    /// The resource name (plural).
    pub plural: Cow<'static, str>,
    /// The scope.
    pub scope: Scope,
}

/// The custom kinds of public operators, one line for each group: the group and its kinds, with `*` after a cluster-scoped kind,
/// and `=PLURAL` after one with an irregular plural. `cargo xtask kinds` writes it.
const CUSTOM: &str = include_str!("kinds/custom.txt");

/// Returns each group with the text of its kinds.
fn groups() -> impl Iterator<Item = (&'static str, &'static str)> {
    CUSTOM.lines().filter_map(|line| line.split_once(' '))
}

/// Returns the kind, scope and irregular plural of each entry.
fn kinds_of(entries: &'static str) -> impl Iterator<Item = (&'static str, Scope, Option<&'static str>)> {
    entries.split(' ').map(|entry| {
        let (kind, plural) = entry
            .split_once('=')
            .map_or((entry, None), |(kind, plural)| (kind, Some(plural)));
        match kind.strip_suffix('*') {
            Some(kind) => (kind, Cluster, plural),
            None => (kind, Namespaced, plural),
        }
    })
}

/// Returns the custom kinds of public operators.
pub fn custom_kinds() -> impl Iterator<Item = (GroupKind, KnownCustom)> {
    groups().flat_map(|(group, entries)| {
        kinds_of(entries).map(move |(kind, scope, plural)| {
            let kind = GroupKind {
                group: group.into(),
                kind: kind.into(),
            };
            let known = known_custom(&kind, scope, plural);
            (kind, known)
        })
    })
}

fn known_custom(kind: &GroupKind, scope: Scope, plural: Option<&'static str>) -> KnownCustom {
    KnownCustom {
        plural: plural.map_or_else(|| kind.guessed_plural().into(), Cow::Borrowed),
        scope,
    }
}

/// The built-in kinds, including those of earlier versions, sorted by kind and group.
#[rustfmt::skip]
pub const BUILT_IN: &[BuiltIn] = &[
    known("APIService", "apiregistration.k8s.io", "apiservices", Cluster, &["v1"]),
    known("Binding", "", "bindings", Namespaced, &["v1"]),
    known("CSIDriver", "storage.k8s.io", "csidrivers", Cluster, &["v1"]),
    known("CSINode", "storage.k8s.io", "csinodes", Cluster, &["v1"]),
    known("CSIStorageCapacity", "storage.k8s.io", "csistoragecapacities", Namespaced, &["v1"]),
    known("CertificateSigningRequest", "certificates.k8s.io", "certificatesigningrequests", Cluster, &["v1"]),
    known("ClusterRole", "rbac.authorization.k8s.io", "clusterroles", Cluster, &["v1"]),
    known("ClusterRoleBinding", "rbac.authorization.k8s.io", "clusterrolebindings", Cluster, &["v1"]),
    known("ClusterTrustBundle", "certificates.k8s.io", "clustertrustbundles", Cluster, &[]),
    known("ComponentStatus", "", "componentstatuses", Cluster, &["v1"]),
    known("ConfigMap", "", "configmaps", Namespaced, &["v1"]),
    known("ControllerRevision", "apps", "controllerrevisions", Namespaced, &["v1"]),
    known("CronJob", "batch", "cronjobs", Namespaced, &["v1"]),
    known("CustomResourceDefinition", "apiextensions.k8s.io", "customresourcedefinitions", Cluster, &["v1"]),
    known("DaemonSet", "apps", "daemonsets", Namespaced, &["v1"]),
    known("DaemonSet", "extensions", "daemonsets", Namespaced, &[]),
    known("Deployment", "apps", "deployments", Namespaced, &["v1"]),
    known("Deployment", "extensions", "deployments", Namespaced, &[]),
    known("DeviceClass", "resource.k8s.io", "deviceclasses", Cluster, &[]),
    known("DeviceTaintRule", "resource.k8s.io", "devicetaintrules", Cluster, &[]),
    known("EndpointSlice", "discovery.k8s.io", "endpointslices", Namespaced, &["v1"]),
    known("Endpoints", "", "endpoints", Namespaced, &["v1"]),
    known("Event", "", "events", Namespaced, &["v1"]),
    known("Event", "events.k8s.io", "events", Namespaced, &["v1"]),
    known("FlowSchema", "flowcontrol.apiserver.k8s.io", "flowschemas", Cluster, &[]),
    known("HorizontalPodAutoscaler", "autoscaling", "horizontalpodautoscalers", Namespaced, &["v1", "v2"]),
    known("IPAddress", "networking.k8s.io", "ipaddresses", Cluster, &[]),
    known("Ingress", "extensions", "ingresses", Namespaced, &[]),
    known("Ingress", "networking.k8s.io", "ingresses", Namespaced, &["v1"]),
    known("IngressClass", "networking.k8s.io", "ingressclasses", Cluster, &["v1"]),
    known("Job", "batch", "jobs", Namespaced, &["v1"]),
    known("Lease", "coordination.k8s.io", "leases", Namespaced, &["v1"]),
    known("LeaseCandidate", "coordination.k8s.io", "leasecandidates", Namespaced, &[]),
    known("LimitRange", "", "limitranges", Namespaced, &["v1"]),
    known("LocalSubjectAccessReview", "authorization.k8s.io", "localsubjectaccessreviews", Namespaced, &["v1"]),
    known("MutatingAdmissionPolicy", "admissionregistration.k8s.io", "mutatingadmissionpolicies", Cluster, &[]),
    known("MutatingAdmissionPolicyBinding", "admissionregistration.k8s.io", "mutatingadmissionpolicybindings", Cluster, &[]),
    known("MutatingWebhookConfiguration", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", Cluster, &["v1"]),
    known("Namespace", "", "namespaces", Cluster, &["v1"]),
    known("NetworkPolicy", "extensions", "networkpolicies", Namespaced, &[]),
    known("NetworkPolicy", "networking.k8s.io", "networkpolicies", Namespaced, &["v1"]),
    known("Node", "", "nodes", Cluster, &["v1"]),
    known("PersistentVolume", "", "persistentvolumes", Cluster, &["v1"]),
    known("PersistentVolumeClaim", "", "persistentvolumeclaims", Namespaced, &["v1"]),
    known("Pod", "", "pods", Namespaced, &["v1"]),
    known("PodCertificateRequest", "certificates.k8s.io", "podcertificaterequests", Namespaced, &[]),
    known("PodDisruptionBudget", "policy", "poddisruptionbudgets", Namespaced, &["v1"]),
    known("PodSecurityPolicy", "extensions", "podsecuritypolicies", Cluster, &[]),
    known("PodSecurityPolicy", "policy", "podsecuritypolicies", Cluster, &[]),
    known("PodTemplate", "", "podtemplates", Namespaced, &["v1"]),
    known("PriorityClass", "scheduling.k8s.io", "priorityclasses", Cluster, &["v1"]),
    known("PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", Cluster, &[]),
    known("ReplicaSet", "apps", "replicasets", Namespaced, &["v1"]),
    known("ReplicaSet", "extensions", "replicasets", Namespaced, &[]),
    known("ReplicationController", "", "replicationcontrollers", Namespaced, &["v1"]),
    known("ResourceClaim", "resource.k8s.io", "resourceclaims", Namespaced, &[]),
    known("ResourceClaimTemplate", "resource.k8s.io", "resourceclaimtemplates", Namespaced, &[]),
    known("ResourcePoolStatusRequest", "resource.k8s.io", "resourcepoolstatusrequests", Cluster, &[]),
    known("ResourceQuota", "", "resourcequotas", Namespaced, &["v1"]),
    known("ResourceSlice", "resource.k8s.io", "resourceslices", Cluster, &[]),
    known("Role", "rbac.authorization.k8s.io", "roles", Namespaced, &["v1"]),
    known("RoleBinding", "rbac.authorization.k8s.io", "rolebindings", Namespaced, &["v1"]),
    known("RuntimeClass", "node.k8s.io", "runtimeclasses", Cluster, &["v1"]),
    known("Secret", "", "secrets", Namespaced, &["v1"]),
    known("SelfSubjectAccessReview", "authorization.k8s.io", "selfsubjectaccessreviews", Cluster, &["v1"]),
    known("SelfSubjectReview", "authentication.k8s.io", "selfsubjectreviews", Cluster, &[]),
    known("SelfSubjectRulesReview", "authorization.k8s.io", "selfsubjectrulesreviews", Cluster, &["v1"]),
    known("Service", "", "services", Namespaced, &["v1"]),
    known("ServiceAccount", "", "serviceaccounts", Namespaced, &["v1"]),
    known("ServiceCIDR", "networking.k8s.io", "servicecidrs", Cluster, &[]),
    known("StatefulSet", "apps", "statefulsets", Namespaced, &["v1"]),
    known("StorageClass", "storage.k8s.io", "storageclasses", Cluster, &["v1"]),
    known("StorageVersion", "internal.apiserver.k8s.io", "storageversions", Cluster, &[]),
    known("StorageVersionMigration", "storagemigration.k8s.io", "storageversionmigrations", Cluster, &[]),
    known("SubjectAccessReview", "authorization.k8s.io", "subjectaccessreviews", Cluster, &["v1"]),
    known("TokenReview", "authentication.k8s.io", "tokenreviews", Cluster, &["v1"]),
    known("ValidatingAdmissionPolicy", "admissionregistration.k8s.io", "validatingadmissionpolicies", Cluster, &[]),
    known("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", Cluster, &[]),
    known("ValidatingWebhookConfiguration", "admissionregistration.k8s.io", "validatingwebhookconfigurations", Cluster, &["v1"]),
    known("VolumeAttachment", "storage.k8s.io", "volumeattachments", Cluster, &["v1"]),
    known("VolumeAttributesClass", "storage.k8s.io", "volumeattributesclasses", Cluster, &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> GroupKind {
        text.parse().expect(text)
    }

    #[test]
    fn finds_built_in_kinds() {
        assert!(BUILT_IN.is_sorted_by_key(|known| (known.kind, known.group)));
        assert_eq!(
            kind("Ingress.networking.k8s.io").built_in().unwrap().always_served,
            ["v1"]
        );
        assert!(kind("Ingress.extensions").built_in().unwrap().always_served.is_empty());
        assert_eq!(kind("Namespace").built_in().unwrap().scope, Scope::Cluster);
        assert_eq!(kind("Certificate.cert-manager.io").built_in(), None);
    }

    #[test]
    fn knows_the_custom_kinds_of_public_operators() {
        let known = |text| {
            let known = kind(text).known_custom().expect(text);
            (known.plural.into_owned(), known.scope)
        };
        for (kind, plural, scope) in [
            ("Certificate.cert-manager.io", "certificates", Namespaced),
            ("ClusterIssuer.cert-manager.io", "clusterissuers", Cluster),
            (
                "NetworkAttachmentDefinition.k8s.cni.cncf.io",
                "network-attachment-definitions",
                Namespaced,
            ),
            (
                "SecurityContextConstraints.security.openshift.io",
                "securitycontextconstraints",
                Cluster,
            ),
            ("Redis.redis.redis.opstreelabs.in", "redis", Namespaced),
            (
                "K8sRequiredLabels.constraints.gatekeeper.sh",
                "k8srequiredlabels",
                Cluster,
            ),
        ] {
            assert_eq!(known(kind), (plural.to_owned(), scope), "{kind}");
        }
        for (group, scope) in [
            ("aws.upbound.io", Some(Cluster)),
            ("s3.aws.upbound.io", Some(Cluster)),
            ("s3.aws.m.upbound.io", None),
            ("aws.platform.upbound.io", None),
        ] {
            assert_eq!(kind(&format!("Bucket.{group}")).known_custom_scope(), scope, "{group}");
        }
        for unknown in [
            "Issuer.example.com",
            "issuer.cert-manager.io",
            "Issuer*.cert-manager.io",
            "Namespace",
        ] {
            assert_eq!(kind_or_lower_case(unknown).known_custom(), None, "{unknown}");
        }
        assert!(custom_kinds().count() >= 500);
        let groups: Vec<_> = groups().map(|(group, _)| group).collect();
        assert!(groups.is_sorted());
    }

    fn kind_or_lower_case(text: &str) -> GroupKind {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        GroupKind {
            group: group.into(),
            kind: kind.into(),
        }
    }

    #[test]
    fn guesses_plurals() {
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
