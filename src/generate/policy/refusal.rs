//! How a refusal reads: what a project may not deliver, and what to add to the policy to allow it.

use super::Rules;
use super::pattern::{Pattern, Patterns};
use crate::yaml::resolve::is_text;
use std::borrow::Cow;

/// The file that deploy_policy.yaml mounts, and its ConfigMap.
const SHIPPED: (&str, &str) = (
    "/etc/argocd-ocm-cmp/policy.yaml",
    "ConfigMap argocd-ocm-cmp-policy in Argo CD's namespace",
);

/// Everything that the policy has against one object.
#[derive(Debug)]
pub(super) struct Refusal<'p> {
    rules: Rules<'p>,
    /// What the project may not deliver.
    refused: Vec<String>,
    /// The changes of the policy that allow it.
    changes: Vec<String>,
}

impl<'p> Refusal<'p> {
    pub(super) fn new(rules: Rules<'p>) -> Self {
        Self {
            rules,
            refused: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Refuses a kind: it is denied, or not among those that are allowed.
    pub(super) fn kind(&mut self, kind: &str) {
        self.refused.push("no objects of this kind".to_owned());
        let entry = self.rules.entry;
        for denied in entry.denied_kinds.iter().flat_map(|denied| &denied.0) {
            if denied.matches(kind) {
                self.changes.push(format!(
                    "remove {} from {}",
                    quoted(denied),
                    self.rules.field("deniedKinds")
                ));
            }
        }
        if entry.kinds.as_ref().is_some_and(|kinds| !kinds.matches(kind)) {
            self.name_kind(kind);
        }
    }

    /// Refuses an object that has to be in a namespace and names none. The policy need not be changed for it.
    pub(super) fn lacks_namespace(&mut self) {
        self.refused.push("nothing without a namespace".to_owned());
        self.changes.push("give it one".to_owned());
    }

    /// Refuses an object that no namespace limits.
    pub(super) fn cluster_scoped(&mut self) {
        self.refused.push("no cluster-scoped objects".to_owned());
        self.changes
            .push(format!("set `{}: true`", self.rules.path("clusterScoped")));
    }

    /// Refuses a custom resource, which may be cluster-scoped whatever a folder says of it.
    pub(super) fn perhaps_cluster_scoped(&mut self, kind: &str) {
        self.refused
            .push(format!("no cluster-scoped objects, and {} may be one", item(kind)));
        self.name_kind(kind);
    }

    pub(super) fn namespace(&mut self, namespace: &str, allowed: &Patterns) {
        self.refused
            .push(format!("nothing in namespace {}, only in {allowed}", item(namespace)));
        self.changes.push(self.rules.addition(namespace, "namespaces"));
    }

    pub(super) fn secret(&mut self) {
        self.refused.push("no plain Secrets".to_owned());
        self.changes.push(format!("set `{}: true`", self.rules.path("secrets")));
    }

    /// The refusal in one line; none where nothing was refused.
    pub(super) fn text(self) -> Option<String> {
        (!self.refused.is_empty()).then(|| {
            format!(
                "the policy lets project {} deliver {}: to allow it, {}",
                item(self.rules.project),
                self.refused.join("; "),
                self.changes.join(", ")
            )
        })
    }

    /// Has the kind named in full, which is enough for whatever is against a kind that no list denies.
    fn name_kind(&mut self, kind: &str) {
        let change = match &self.rules.entry.kinds {
            Some(_) => self.rules.addition(kind, "kinds"),
            None => format!("set `{}: [\"*\", {}]`", self.rules.path("kinds"), item(kind)),
        };
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }
}

impl Rules<'_> {
    /// The path of a field of the entry, as `policy check` names it.
    fn path(&self, field: &str) -> String {
        format!("projects[{}].{field}", self.at)
    }

    fn field(&self, field: &str) -> String {
        format!("`{}`", self.path(field))
    }

    fn addition(&self, text: &str, field: &str) -> String {
        format!("add `{}` to {}", item(text), self.field(field))
    }
}

/// Says that no entry of the policy in `file` names the project.
pub(super) fn no_entry(project: &str, file: &str) -> String {
    let (mounted, config_map) = SHIPPED;
    let place = if file == mounted { config_map } else { file };
    let project = item(project);
    format!(
        "the policy has no entry for project {project}, so it may deliver nothing: add `- names: [{project}]`, with its clusters, \
         namespaces and kinds, to `projects` in {place}"
    )
}

/// Says that the project may not deliver to a managed cluster.
pub(super) fn of_cluster(rules: Rules<'_>, cluster: &str, allowed: &Patterns) -> String {
    format!(
        "cluster {cluster}: the policy lets project {} deliver nothing to it, only to {allowed}: to allow it, {}",
        item(rules.project),
        rules.addition(cluster, "clusters")
    )
}

/// Says that the project may not deliver by a placement. `has_list` is whether the entry lists placements.
pub(super) fn of_placement(rules: Rules<'_>, placement: &str, limit: &str, has_list: bool) -> String {
    let change = if has_list {
        rules.addition(placement, "placements")
    } else {
        format!("set `{}: [{}]`", rules.path("placements"), item(placement))
    };
    format!(
        "placement {placement}: the policy lets project {} deliver nothing by it, {limit}: to allow it, {change}",
        item(rules.project)
    )
}

fn quoted(pattern: &Pattern) -> String {
    format!("`{}`", pattern.text)
}

/// A text as an item of a list in YAML: in quotes where it would not be read as this text, and never with a character that
/// is not printed as itself.
fn item(text: &str) -> Cow<'_, str> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || "-._/".contains(char);
    let is_plain =
        text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.chars().all(is_name) && is_text(text);
    if is_plain {
        text.into()
    } else {
        format!("{text:?}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_yaml_reads_otherwise_and_escapes_what_is_not_a_name() {
        for (text, wanted) in [
            ("eu-1", "eu-1"),
            ("Certificate.cert-manager.io", "Certificate.cert-manager.io"),
            ("argocd/eu", "argocd/eu"),
            ("true", "\"true\""),
            ("12", "\"12\""),
            ("1e3", "\"1e3\""),
            ("", "\"\""),
            ("-x", "\"-x\""),
            ("a`b", "\"a`b\""),
            ("a\u{1b}[31m\nb", "\"a\\u{1b}[31m\\nb\""),
            ("a\u{202e}b", "\"a\\u{202e}b\""),
        ] {
            assert_eq!(item(text), wanted);
        }
    }

    #[test]
    fn names_the_config_map_where_the_policy_is_the_shipped_one() {
        assert_eq!(
            no_entry("web", SHIPPED.0),
            "the policy has no entry for project web, so it may deliver nothing: add `- names: [web]`, with its clusters, namespaces \
             and kinds, to `projects` in ConfigMap argocd-ocm-cmp-policy in Argo CD's namespace"
        );
        assert!(
            no_entry("1", "/p.yaml")
                .ends_with("add `- names: [\"1\"]`, with its clusters, namespaces and kinds, to `projects` in /p.yaml")
        );
    }
}
