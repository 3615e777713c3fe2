//! Policies: limits on what an AppProject may deliver, because Argo CD's own project rules do not look inside a ManifestWork.
//!
//! A policy is a file that the platform mounts into the sidecar. The first entry that matches the AppProject decides; a project
//! without an entry may deliver nothing. A policy only restricts: it never allows anything that is refused without one.
//!
//! A policy does not trust the files. A folder may set a namespace on an object of a cluster-scoped kind, or contain a CRD that
//! declares the kind namespaced, and the agent applies the object all the same. So an entry that refuses cluster-scoped objects
//! relies on the built-in kinds only, and accepts custom resources only of the kinds that it names in full. A field that a built-in
//! kind does not have could make another reader see another kind, and a kind in lower case is any kind with these letters for the agent.

pub(crate) mod file;
mod parse;
mod pattern;
#[cfg(test)]
mod properties;
mod refusal;
mod summary;

use crate::object::Object;
use manifest::key::ObjectKey;
use manifest::kinds::{GroupKind, Scope};
use manifest::problem::Problems;
use ocm::names;
use pattern::Patterns;
use refusal::{ObjectViolations, item};
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::str::FromStr;

pub use file::{check, load, load_with_text};

/// The path at which deploy/deploy_policy.yaml mounts the policy.
pub const MOUNTED: &str = "/etc/argocd-ocm-cmp/policy.yaml";

/// The name of the ConfigMap that contains the policy.
pub const CONFIG_MAP: &str = "argocd-ocm-cmp-policy";

/// The key of the policy in the ConfigMap, and the name of the file in the sidecar.
pub const CONFIG_MAP_KEY: &str = "policy.yaml";

/// The limits that an administrator sets for the Applications of each project.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The entries; the first that matches a project decides.
    entries: Vec<PolicyEntry>,
    /// The file that it was read from.
    file: String,
}

/// An entry of a policy: limits for some projects.
#[derive(Clone, Debug)]
struct PolicyEntry {
    /// The projects; at least one.
    names: Patterns,
    /// The managed clusters; `None` for all.
    clusters: Option<Patterns>,
    /// The placements, as `NAMESPACE/NAME`. `None` means all placements if `clusters` allows all clusters, otherwise none.
    placements: Option<Patterns>,
    /// The namespaces on the managed cluster; `None` for all.
    namespaces: Option<Patterns>,
    /// The kinds, as `Kind.group`; `None` for all.
    kinds: Option<Patterns>,
    /// The denied kinds; they override `kinds`.
    denied_kinds: Option<Patterns>,
    /// True if cluster-scoped objects may be delivered.
    cluster_scoped: bool,
    /// True if plain Secrets may be delivered.
    secrets: bool,
    /// The executor of every ManifestWork.
    executor: Option<Executor>,
}

/// The ServiceAccount on the managed cluster that needs permission for everything that the agent does for a ManifestWork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executor {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Executor {
    /// Creates an executor, or returns the errors of its namespace and its name, in this order.
    ///
    /// # Errors
    /// Returns an error if Kubernetes rejects the namespace or the name.
    pub fn new(namespace: &str, name: &str) -> Result<Self, [Option<names::InvalidName>; 2]> {
        match (
            names::namespace(namespace),
            names::subdomain(name, "a ServiceAccount's"),
        ) {
            (Ok(namespace), Ok(name)) => Ok(Self { namespace, name }),
            (namespace, name) => Err([namespace.err(), name.err()]),
        }
    }
}

impl FromStr for Executor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((namespace, name)) = text.split_once('/') else {
            return Err(format!(
                "{text:?} is not a ServiceAccount: write it as NAMESPACE/NAME, like shop/deployer"
            ));
        };
        Self::new(namespace, name).map_err(|faults| {
            let faults: Vec<String> = faults.iter().flatten().map(ToString::to_string).collect();
            faults.join("; ")
        })
    }
}

impl Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The policy for one project.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'p> {
    project: &'p str,
    entry: &'p PolicyEntry,
    /// The index of the entry in the policy.
    at: usize,
}

impl Policy {
    /// Returns the policy for `project`, which Argo CD passes in `ARGOCD_APP_PROJECT_NAME`.
    ///
    /// # Errors
    /// Returns an error without a project, or if no entry matches it.
    pub fn rules_for<'p>(&'p self, project: Option<&'p str>) -> Result<Rules<'p>, Problems> {
        let Some(project) = project.filter(|project| !project.is_empty()) else {
            return Err(Problems::one(
                "a policy is set, but ARGOCD_APP_PROJECT_NAME is not: upgrade Argo CD to 3.0 or newer, which sets it, or outside Argo CD \
                 pass --project NAME",
            ));
        };
        let mut entries = self.entries.iter().enumerate();
        let entry = entries.find(|(_, entry)| entry.names.matches(project));
        let (at, entry) = entry.ok_or_else(|| Problems::one(refusal::no_entry(project, &self.file)))?;
        Ok(Rules { project, entry, at })
    }
}

/// An object, as [`violations`] checks it.
#[derive(Clone, Copy, Debug)]
pub struct DeliveredObject<'a, P> {
    /// The identity of the object. Without a namespace it counts as cluster-scoped.
    pub key: &'a ObjectKey,
    /// The scope of its kind if the kind is built into Kubernetes; CRDs and settings cannot change it.
    pub built_in: Option<Scope>,
    /// A field that its kind does not have, if the kind is built into Kubernetes.
    pub unknown_field: Option<&'a str>,
    /// False for a Secret without values.
    pub has_values: bool,
    /// The location it was read from, for messages.
    pub location: P,
}

impl<'a, P> DeliveredObject<'a, P> {
    /// Describes an object of a folder.
    pub fn new(object: &'a Object, location: P) -> Self {
        Self {
            key: &object.key,
            built_in: object.scope,
            unknown_field: object.unknown_field.as_deref(),
            has_values: !object.is_token_request,
            location,
        }
    }
}

/// Returns the violations of the policy, and plain Secrets that are not allowed: one line per cluster and one per object, which
/// lists all violations of that object. `allow_secrets` is the Application's setting of that name.
///
/// A plain Secret needs both the permission of the policy and the consent of the Application: the policy decides who may deliver
/// Secrets, and everyone who can see the Application in Argo CD's UI can read the Secret.
pub fn violations<'a, P: Display>(
    rules: Option<Rules<'_>>,
    allow_secrets: bool,
    clusters: impl IntoIterator<Item = impl Display>,
    objects: impl IntoIterator<Item = DeliveredObject<'a, P>>,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(rules) = rules {
        lines.extend(
            clusters
                .into_iter()
                .filter_map(|cluster| rules.against_cluster(&cluster)),
        );
    }
    let mut decisions = Decisions::default();
    for object in objects {
        let refusal = rules.and_then(|rules| rules.against_object(&object, &mut decisions));
        let is_permitted = rules.is_none_or(|rules| rules.entry.secrets);
        let lacks_consent = is_secret(object.key) && object.has_values && is_permitted && !allow_secrets;
        let consent = lacks_consent.then(|| SECRET_WITHOUT_CONSENT.to_owned());
        let against: Vec<String> = refusal.into_iter().chain(consent).collect();
        if !against.is_empty() {
            lines.push(format!("{}: {}: {}", object.location, object.key, against.join("; ")));
        }
    }
    lines
}

/// The decisions on kinds and namespaces so far: very many objects share few of them.
#[derive(Default)]
struct Decisions<'a> {
    kinds: HashMap<&'a GroupKind, KindDecision>,
    namespaces: HashMap<&'a str, bool>,
}

const SECRET_WITHOUT_CONSENT: &str = "a Secret in a work can be read in Argo CD's UI: deliver a SealedSecret or an \
                                      ExternalSecret instead, or set allow-secrets";

/// Returns true for Secrets of the core group only: a SealedSecret or an ExternalSecret, in other groups, contains no plaintext.
fn is_secret(key: &ObjectKey) -> bool {
    key.kind.is("", "Secret")
}

/// Returns the namespace that an object affects; a Namespace counts as an object of the namespace that it creates.
fn namespace(key: &ObjectKey) -> Option<&str> {
    if key.kind.is("", "Namespace") {
        return Some(&key.name);
    }
    key.namespace.as_deref()
}

/// The decision of an entry about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KindDecision {
    Refused,
    /// Allowed by a pattern that matches several kinds.
    Matched,
    /// Allowed by its full name: the author of the policy knew the kind.
    Named,
}

impl PolicyEntry {
    fn kind(&self, kind: &str) -> KindDecision {
        let any = |list: &Option<Patterns>| list.as_ref().is_some_and(|list| list.matches(kind));
        if any(&self.denied_kinds) || (self.kinds.is_some() && !any(&self.kinds)) {
            KindDecision::Refused
        } else if self.kinds.as_ref().is_some_and(|kinds| kinds.name(kind)) {
            KindDecision::Named
        } else {
            KindDecision::Matched
        }
    }
}

impl Rules<'_> {
    /// Returns the violations of a Namespace that is in no file but comes from the setting `create-namespace`. It has nothing but
    /// a name, so it is allowed even if cluster-scoped objects are not.
    pub(crate) fn against_created_namespace(&self, name: &str) -> Option<String> {
        let mut refusal = ObjectViolations::new(*self);
        if self.entry.kind("Namespace") == KindDecision::Refused {
            refusal.kind("Namespace");
        }
        if let Some(allowed) = &self.entry.namespaces
            && !allowed.matches(name)
        {
            refusal.namespace(name, allowed);
        }
        let text = refusal.into_message()?;
        Some(format!("create-namespace: Namespace {name}: {text}"))
    }

    fn against_object<'a, P>(self, object: &DeliveredObject<'a, P>, decisions: &mut Decisions<'a>) -> Option<String> {
        let (key, entry) = (object.key, self.entry);
        let mut refusal = ObjectViolations::new(self);
        let kind_name = || key.kind.to_string();
        let kind = *decisions
            .kinds
            .entry(&key.kind)
            .or_insert_with(|| entry.kind(&kind_name()));
        if kind == KindDecision::Refused {
            refusal.kind(&kind_name());
        }
        let is_built_in = object.built_in.is_some();
        let is_lower_case = !is_built_in && !key.kind.kind.contains(|char: char| char.is_ascii_uppercase());
        if is_lower_case {
            let what = "no kinds in lower case, which OCM's agent finds by any case";
            let kind = kind_name();
            let kind = item(&kind);
            refusal.add(what, format!("write {kind} as its CRD does"));
        }
        if let Some(field) = object.unknown_field {
            let kind = kind_name();
            let (kind, field) = (item(&kind), item(field));
            let what = format!("no {kind} with the field {field}");
            refusal.add(&what, format!("remove {field}"));
        }
        if !entry.cluster_scoped {
            if key.namespace.is_none() && object.built_in == Some(Scope::Namespaced) {
                refusal.add("nothing without a namespace", "set its metadata.namespace".to_owned());
            } else if key.namespace.is_none() || object.built_in == Some(Scope::Cluster) {
                refusal.add("no cluster-scoped objects", self.permission("clusterScoped"));
            } else if !is_built_in && kind == KindDecision::Matched && !is_lower_case {
                refusal.perhaps_cluster_scoped(&kind_name());
            }
        }
        if let (Some(allowed), Some(namespace)) = (&entry.namespaces, namespace(key))
            && !*decisions
                .namespaces
                .entry(namespace)
                .or_insert_with(|| allowed.matches(namespace))
        {
            refusal.namespace(namespace, allowed);
        }
        if is_secret(key) && !entry.secrets {
            refusal.add("no plain Secrets", self.permission("secrets"));
        }
        refusal.into_message()
    }

    fn against_cluster(&self, cluster: &impl Display) -> Option<String> {
        let allowed = self.entry.clusters.as_ref()?;
        let cluster = cluster.to_string();
        (!allowed.matches(&cluster)).then(|| refusal::of_cluster(*self, &cluster, allowed))
    }

    /// Returns the violations of a placement, given as `NAMESPACE/NAME`. The clusters that it selects are unknown here, so an
    /// entry that limits the clusters must name the placement.
    pub(crate) fn against_placement(&self, placement: &str) -> Option<String> {
        let PolicyEntry {
            placements, clusters, ..
        } = self.entry;
        match (placements, clusters) {
            (Some(allowed), _) if !allowed.matches(placement) => Some(refusal::of_placement(
                *self,
                placement,
                &format!("only {allowed}"),
                true,
            )),
            (None, Some(clusters)) => {
                let limit = format!("only the clusters {clusters}, set by name");
                Some(refusal::of_placement(*self, placement, &limit, false))
            }
            _ => None,
        }
    }

    /// Returns the executor of the ManifestWorks if the Application sets `requested`.
    ///
    /// If the policy sets none, the Application may choose: an executor never gives the agent more permissions.
    ///
    /// # Errors
    /// Returns an error if the Application sets another executor than the policy's.
    pub fn executor(&self, requested: Option<Executor>) -> Result<Option<Executor>, Problems> {
        match (&self.entry.executor, requested) {
            (None, requested) => Ok(requested),
            (Some(forced), Some(requested)) if requested != *forced => Err(Problems::one(format!(
                "executor {requested}: the policy sets the executor of project {} to {forced}: leave the setting out",
                self.project
            ))),
            (Some(forced), _) => Ok(Some(forced.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use crate::object::tests::object;
    use manifest::kinds::GroupKind;

    const HEAD: &str = "apiVersion: argocd-ocm-cmp.github.io/v1alpha1\nkind: Policy\nprojects:\n";

    fn policy(entries: &str) -> Policy {
        Policy::parse(&format!("{HEAD}{entries}"), "policy.yaml").expect(entries)
    }

    /// Creates an object of `kind`, given as `Kind.group`; `name` is `namespace/name` or, if cluster-scoped, `name`.
    fn made(kind: &str, name: &str) -> Object {
        let (kind, api_version) = match kind.split_once('.') {
            Some((kind, group)) => (kind, format!("{group}/v1")),
            None => (kind, "v1".to_owned()),
        };
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        object(&format!(
            "{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: {name}, namespace: '{namespace}'}}}}"
        ))
    }

    fn against(rules: Option<Rules<'_>>, allow_secrets: bool, kind: &str, name: &str) -> String {
        against_object(rules, allow_secrets, &made(kind, name))
    }

    fn against_object(rules: Option<Rules<'_>>, allow_secrets: bool, object: &Object) -> String {
        let delivered = DeliveredObject::new(object, "a.yaml:1");
        violations(rules, allow_secrets, [""; 0], [delivered]).join("\n")
    }

    /// Returns the violations of an object of project `shop` under a policy with one entry of these fields, without location and
    /// name.
    fn why(fields: &str, kind: &str, name: &str) -> String {
        why_and_how(fields, kind, name).0
    }

    /// Returns the same violations and their remedy.
    fn why_and_how(fields: &str, kind: &str, name: &str) -> (String, String) {
        let policy = policy(&format!("- {{names: [shop], {fields}}}\n"));
        let rules = policy.rules_for(Some("shop")).expect("an entry");
        let line = against(Some(rules), true, kind, name);
        let start = format!("a.yaml:1: {kind} {name}: the policy lets project shop deliver ");
        assert!(line.is_empty() || line.starts_with(&start), "{line}");
        let line = line.replacen(&start, "", 1);
        let (why, how) = line.split_once(": to allow it, ").unwrap_or((&line, ""));
        assert_eq!(why.is_empty(), how.is_empty(), "{line}");
        (why.to_owned(), how.to_owned())
    }

    #[test]
    fn refusal_names_the_policy_change_that_permits_it() {
        for (fields, kind, name, expected) in [
            (
                "kinds: [ConfigMap]",
                "Service",
                "shop/web",
                "add `Service` to `projects[0].kinds`",
            ),
            (
                "kinds: ['*'], deniedKinds: ['Limit*', LimitRange]",
                "LimitRange",
                "shop/web",
                "remove `Limit*` from `projects[0].deniedKinds`, remove `LimitRange` from `projects[0].deniedKinds`",
            ),
            (
                "namespaces: [shop]",
                "Service",
                "a1/web",
                "add `a1` to `projects[0].namespaces`",
            ),
            (
                "namespaces: [shop]",
                "Service",
                "1/web",
                "add `\"1\"` to `projects[0].namespaces`",
            ),
            ("", "Namespace", "shop", "set `projects[0].clusterScoped: true`"),
            ("", "Secret", "shop/db", "set `projects[0].secrets: true`"),
            (
                "",
                "Certificate.cert-manager.io",
                "shop/web",
                "set `projects[0].kinds: [\"*\", Certificate.cert-manager.io]`",
            ),
            (
                "kinds: ['*']",
                "Certificate.cert-manager.io",
                "shop/web",
                "add `Certificate.cert-manager.io` to `projects[0].kinds`",
            ),
            (
                "kinds: [ConfigMap], namespaces: [shop]",
                "Secret",
                "kube-system/db",
                "add `Secret` to `projects[0].kinds`, add `kube-system` to `projects[0].namespaces`, set `projects[0].secrets: true`",
            ),
        ] {
            assert_eq!(why_and_how(fields, kind, name).1, expected, "{fields} {kind}");
        }
    }

    #[test]
    fn refusal_escapes_texts_of_a_manifest() {
        let policy = policy("- {names: [shop], kinds: ['*']}\n");
        let key = ObjectKey {
            kind: GroupKind {
                group: "b`c".into(),
                kind: "A\u{1b}[31m\n".into(),
            },
            namespace: Some("shop".into()),
            name: "web".into(),
        };
        let delivered = DeliveredObject {
            key: &key,
            built_in: None,
            unknown_field: None,
            has_values: true,
            location: "a.yaml:1",
        };
        let rules = policy.rules_for(Some("shop")).unwrap();
        let lines = violations(Some(rules), false, [""; 0], [delivered]);
        let message = Problems::or(lines, ()).unwrap_err().to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(!message.contains('\u{1b}'), "{message}");
        assert!(
            message.ends_with("add `\"A\\u{1b}[31m\\n.b`c\"` to `projects[0].kinds`\n"),
            "{message}"
        );
    }

    #[test]
    fn unlisted_project_may_deliver_nothing() {
        let policy = policy("- {names: [team-a]}\n");
        let message = |project| policy.rules_for(project).unwrap_err().to_string();
        assert_eq!(
            message(Some("team-b")),
            "error: the policy has no entry for project team-b, so it may deliver nothing: add `- names: [team-b]`, with its clusters, \
             namespaces and kinds, to `projects` in policy.yaml\n"
        );
        for none in [None, Some("")] {
            assert_eq!(
                message(none),
                "error: a policy is set, but ARGOCD_APP_PROJECT_NAME is not: upgrade Argo CD to 3.0 or newer, which sets it, or outside \
                 Argo CD pass --project NAME\n"
            );
        }
    }

    #[test]
    fn default_refuses_secrets_and_cluster_scoped_objects() {
        assert_eq!(why("", "Deployment.apps", "shop/web"), "");
        assert_eq!(why("", "ConfigMap", "kube-system/web"), "");
        assert_eq!(why("", "Secret", "shop/web"), "no plain Secrets");
        assert_eq!(why("", "Namespace", "shop"), "no cluster-scoped objects");
        assert_eq!(
            why("", "Certificate.cert-manager.io", "shop/web"),
            "no cluster-scoped objects, and Certificate.cert-manager.io may be cluster-scoped"
        );
    }

    #[test]
    fn a_namespace_does_not_hide_a_cluster_scoped_object() {
        // A folder can make such a kind look namespaced, by a CRD for a built-in kind, even for CustomResourceDefinition itself.
        for kind in [
            "ClusterRole.rbac.authorization.k8s.io",
            "CustomResourceDefinition.apiextensions.k8s.io",
        ] {
            for fields in ["", &format!("kinds: [{kind}]")] {
                assert_eq!(why(fields, kind, "shop/admin"), "no cluster-scoped objects");
            }
        }
        assert_eq!(
            why(
                "namespaces: [shop], clusterScoped: true",
                "Namespace",
                "shop/kube-system"
            ),
            "nothing in namespace kube-system, only in shop"
        );
    }

    #[test]
    fn created_namespace_must_match_namespaces_and_kinds() {
        let policy =
            policy("- {names: [shop], namespaces: [shop]}\n- {names: [few], kinds: [ConfigMap]}\n- {names: [all]}\n");
        let against = |project, name| {
            let rules = policy.rules_for(Some(project)).unwrap();
            rules.against_created_namespace(name).unwrap_or_default()
        };
        assert_eq!(against("shop", "shop"), "");
        assert_eq!(
            against("shop", "kube-system"),
            "create-namespace: Namespace kube-system: the policy lets project shop deliver nothing in namespace \
             kube-system, only in shop: to allow it, add `kube-system` to `projects[0].namespaces`"
        );
        assert_eq!(
            against("few", "shop"),
            "create-namespace: Namespace shop: the policy lets project few deliver no objects of this kind: to allow it, add `Namespace` \
             to `projects[1].kinds`"
        );
        assert_eq!(against("all", "shop"), "");
    }

    #[test]
    fn limited_clusters_require_a_named_placement() {
        let policy = policy(
            "- {names: [all]}\n- {names: [some], clusters: ['eu-*']}\n- {names: [both], clusters: ['eu-*'], placements: ['argocd/eu*']}\n\
             - {names: [named], placements: [argocd/eu]}\n",
        );
        let message = |project| {
            policy
                .rules_for(Some(project))
                .unwrap()
                .against_placement("argocd/europe")
        };
        assert_eq!(message("all"), None);
        assert_eq!(message("both"), None);
        assert_eq!(
            message("some").unwrap(),
            "placement argocd/europe: the policy does not let project some use it, only the clusters eu-*, set by \
             name: to allow it, set `projects[1].placements: [argocd/europe]`"
        );
        assert_eq!(
            message("named").unwrap(),
            "placement argocd/europe: the policy does not let project named use it, only argocd/eu: to allow it, add `argocd/europe` to \
             `projects[3].placements`"
        );
    }

    #[test]
    fn checks_every_cluster() {
        let policy = policy("- {names: [shop], clusters: ['eu-*', lab]}\n- {names: [all]}\n");
        let none: [DeliveredObject<'_, &str>; 0] = [];
        let clusters = ["eu-1", "us-1", "lab", "eu"];
        assert_eq!(
            violations(Some(policy.rules_for(Some("shop")).unwrap()), false, clusters, none),
            [
                "cluster us-1: the policy lets project shop deliver nothing to it, only to eu-*, lab: to allow it, add `us-1` to \
                 `projects[0].clusters`",
                "cluster eu: the policy lets project shop deliver nothing to it, only to eu-*, lab: to allow it, add `eu` to \
                 `projects[0].clusters`",
            ]
        );
        assert!(violations(Some(policy.rules_for(Some("all")).unwrap()), false, clusters, none).is_empty());
        assert!(violations(None, false, clusters, none).is_empty());
    }

    #[test]
    fn refuses_what_another_reader_could_take_for_another_object() {
        let policy = policy("- {names: [shop], clusterScoped: true}\n");
        let against = |yaml: &str| {
            let rules = policy.rules_for(Some("shop")).unwrap();
            against_object(Some(rules), true, &object(yaml))
        };
        let refused = |what, change| format!("the policy lets project shop deliver {what}: to allow it, {change}");
        let binding = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, roleRef: {}, data: {b: c}, status: {}}";
        let expected = refused("no ConfigMap with the field roleRef", "remove roleRef");
        assert_eq!(against(binding), format!("a.yaml:1: ConfigMap a: {expected}"));
        let tank = "{apiVersion: example.com/v1, kind: tank, metadata: {name: a, namespace: b}, armour: 1}";
        let expected = refused(
            "no kinds in lower case, which OCM's agent finds by any case",
            "write tank.example.com as its CRD does",
        );
        assert_eq!(against(tank), format!("a.yaml:1: tank.example.com b/a: {expected}"));
        let config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {}, immutable: true}";
        assert_eq!(against(config), "");
        let binding_of_no_version = binding.replace("apiVersion: v1", "apiVersion: v2");
        assert_eq!(against(&binding_of_no_version), against(binding));
        assert_eq!(against(&config.replace("apiVersion: v1", "apiVersion: v2")), "");
        let ingress = "{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {name: a, namespace: b}, spec: {}";
        assert_eq!(against(&format!("{ingress}}}")), "");
        assert!(against(&format!("{ingress}, roleRef: {{}}}}")).contains("with the field roleRef"));
    }

    #[test]
    fn one_line_lists_every_violation_of_an_object() {
        let fields = "kinds: [ConfigMap], namespaces: [shop]";
        assert_eq!(
            why(fields, "Secret", "kube-system/db"),
            "no objects of this kind; nothing in namespace kube-system, only in shop; no plain Secrets"
        );
        assert_eq!(
            why(fields, "Namespace", "kube-system"),
            "no objects of this kind; no cluster-scoped objects; nothing in namespace kube-system, only in shop"
        );
    }

    #[test]
    fn request_for_a_token_needs_only_the_permission_of_the_policy() {
        let policy = policy("- {names: [may], secrets: true}\n- {names: [may-not], kinds: [Secret]}\n");
        let lines = |project: Option<&str>, more: &str| {
            let rules = project.map(|project| policy.rules_for(Some(project)).unwrap());
            let fields = "metadata: {name: a, namespace: shop, annotations: {kubernetes.io/service-account.name: b}}";
            let object = object(&format!(
                "{{apiVersion: v1, kind: Secret, {fields}, type: kubernetes.io/service-account-token{more}}}"
            ));
            against_object(rules, false, &object).lines().count()
        };
        assert_eq!(
            [lines(None, ""), lines(Some("may"), ""), lines(Some("may-not"), "")],
            [0, 0, 1]
        );
        assert_eq!(lines(None, ", data: {token: YQ==}"), 1);
        assert_eq!(lines(None, ", stringData: {token: a}"), 1);
    }

    #[test]
    fn secret_needs_permission_of_policy_and_application() {
        let policy =
            policy("- {names: [may], secrets: true}\n- {names: [may-not], kinds: ['*', SealedSecret.bitnami.com]}\n");
        let secret = |project: Option<&str>, allow_secrets| {
            let rules = project.map(|project| policy.rules_for(Some(project)).unwrap());
            against(rules, allow_secrets, "Secret", "shop/db")
        };
        let refused = "a.yaml:1: Secret shop/db: the policy lets project may-not deliver no plain Secrets: to allow it, set \
                       `projects[1].secrets: true`";
        let without_consent = "a.yaml:1: Secret shop/db: a Secret in a work can be read in Argo CD's UI: deliver a \
                               SealedSecret or an ExternalSecret instead, or set allow-secrets";
        for (project, allow_secrets, expected) in [
            (None, false, without_consent),
            (None, true, ""),
            (Some("may"), false, without_consent),
            (Some("may"), true, ""),
            (Some("may-not"), false, refused),
            (Some("may-not"), true, refused),
        ] {
            assert_eq!(secret(project, allow_secrets), expected, "{project:?} {allow_secrets}");
        }
        let rules = policy.rules_for(Some("may-not")).unwrap();
        assert_eq!(against(Some(rules), false, "SealedSecret.bitnami.com", "shop/db"), "");
        assert_eq!(against(None, false, "SealedSecret.bitnami.com", "shop/db"), "");
    }

    #[test]
    fn executor_of_the_policy_cannot_be_changed() {
        let policy = policy("- {names: [bound], executor: {namespace: shop, name: deployer}}\n- {names: [free]}\n");
        let executor = |project, requested: Option<&str>| {
            let requested = requested.map(|requested| requested.parse().expect("an executor"));
            let executor = policy.rules_for(Some(project)).unwrap().executor(requested);
            match executor {
                Ok(executor) => executor.map_or("none".to_owned(), |executor| executor.to_string()),
                Err(problems) => problems.to_string(),
            }
        };
        assert_eq!(executor("bound", None), "shop/deployer");
        assert_eq!(executor("bound", Some("shop/deployer")), "shop/deployer");
        assert_eq!(
            executor("bound", Some("shop/admin")),
            "error: executor shop/admin: the policy sets the executor of project bound to shop/deployer: leave the setting out\n"
        );
        assert_eq!(executor("free", None), "none");
        assert_eq!(executor("free", Some("shop/admin")), "shop/admin");
    }

    #[test]
    fn parses_an_executor_as_namespace_and_name() {
        for (text, expected) in [
            (
                "deployer",
                "\"deployer\" is not a ServiceAccount: write it as NAMESPACE/NAME",
            ),
            ("Shop/deployer", "\"Shop\" is not a namespace name"),
            ("shop/De_ployer", "\"De_ployer\" is not a ServiceAccount's name"),
            ("shop/a/b", "\"a/b\" is not a ServiceAccount's name"),
        ] {
            let message = text.parse::<Executor>().unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
