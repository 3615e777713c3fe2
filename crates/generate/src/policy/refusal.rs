//! Messages of refusals: what a project may not deliver, and which change of the policy would allow it.

use super::pattern::Patterns;
use super::{CONFIG_MAP, MOUNTED, Rules};
use manifest::yaml::resolve::is_text;
use std::borrow::Cow;

#[derive(Debug)]
pub(super) struct ObjectViolations<'p> {
    rules: Rules<'p>,
    refused: Vec<String>,
    /// The changes to the policy that would allow the object.
    changes: Vec<String>,
}

impl<'p> ObjectViolations<'p> {
    pub(super) fn new(rules: Rules<'p>) -> Self {
        Self {
            rules,
            refused: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Adds a violation, and the change that would allow the object.
    pub(super) fn add(&mut self, refused: &str, change: String) {
        self.refused.push(refused.to_owned());
        self.changes.push(change);
    }

    /// Refuses a kind that is denied or not allowed.
    pub(super) fn kind(&mut self, kind: &str) {
        self.refused.push("no objects of this kind".to_owned());
        let entry = self.rules.entry;
        for denied in entry.denied_kinds.iter().flat_map(|denied| &denied.0) {
            if denied.matches(kind) {
                let (denied, list) = (&denied.text, self.rules.field("deniedKinds"));
                self.changes.push(format!("remove `{denied}` from {list}"));
            }
        }
        if entry.kinds.as_ref().is_some_and(|kinds| !kinds.matches(kind)) {
            self.name_kind(kind);
        }
    }

    /// Refuses a custom resource that may be cluster-scoped, whatever the folder declares.
    pub(super) fn perhaps_cluster_scoped(&mut self, kind: &str) {
        self.refused.push(format!(
            "no cluster-scoped objects, and {} may be cluster-scoped",
            item(kind)
        ));
        self.name_kind(kind);
    }

    pub(super) fn namespace(&mut self, namespace: &str, allowed: &Patterns) {
        let what = format!("nothing in namespace {}, only in {allowed}", item(namespace));
        self.add(&what, self.rules.addition(namespace, "namespaces"));
    }

    /// Returns the refusal in one line; `None` without violations.
    pub(super) fn into_message(self) -> Option<String> {
        (!self.refused.is_empty()).then(|| {
            format!(
                "the policy lets project {} deliver {}: to allow it, {}",
                item(self.rules.project),
                self.refused.join("; "),
                self.changes.join(", ")
            )
        })
    }

    /// Suggests to name the kind in full, which allows any kind that is not denied.
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
    /// Returns the path of a field of the entry, in the format of `policy check`.
    fn path(&self, field: &str) -> String {
        format!("projects[{}].{field}", self.at)
    }

    fn field(&self, field: &str) -> String {
        format!("`{}`", self.path(field))
    }

    /// Returns the change that sets a permission.
    pub(super) fn permission(&self, field: &str) -> String {
        format!("set `{}: true`", self.path(field))
    }

    fn addition(&self, text: &str, field: &str) -> String {
        format!("add `{}` to {}", item(text), self.field(field))
    }
}

/// Returns the message that no entry of the policy in `file` matches the project.
pub(super) fn no_entry(project: &str, file: &str) -> String {
    let location = if file == MOUNTED {
        format!("ConfigMap {CONFIG_MAP} in Argo CD's namespace")
    } else {
        file.to_owned()
    };
    let project = item(project);
    format!(
        "the policy has no entry for project {project}, so it may deliver nothing: add `- names: [{project}]`, with its clusters, \
         namespaces and kinds, to `projects` in {location}"
    )
}

/// Returns the message that the project may not deliver to a managed cluster.
pub(super) fn of_cluster(rules: Rules<'_>, cluster: &str, allowed: &Patterns) -> String {
    format!(
        "cluster {cluster}: the policy lets project {} deliver nothing to it, only to {allowed}: to allow it, {}",
        item(rules.project),
        rules.addition(cluster, "clusters")
    )
}

/// Returns the message that the project may not deliver with a placement. `has_list` is true if the entry lists placements.
pub(super) fn of_placement(rules: Rules<'_>, placement: &str, limit: &str, has_list: bool) -> String {
    let change = if has_list {
        rules.addition(placement, "placements")
    } else {
        format!("set `{}: [{}]`", rules.path("placements"), item(placement))
    };
    format!(
        "placement {placement}: the policy does not let project {} use it, {limit}: to allow it, {change}",
        item(rules.project)
    )
}

/// Returns a text as an item of a YAML list: quoted if YAML would read it differently, and with unprintable characters escaped.
pub(super) fn item(text: &str) -> Cow<'_, str> {
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
    fn quotes_ambiguous_yaml_and_escapes_other_texts() {
        for (text, expected) in [
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
            assert_eq!(item(text), expected);
        }
    }

    #[test]
    fn refusal_names_the_shipped_config_map() {
        assert_eq!(
            no_entry("web", MOUNTED),
            "the policy has no entry for project web, so it may deliver nothing: add `- names: [web]`, with its clusters, namespaces \
             and kinds, to `projects` in ConfigMap argocd-ocm-cmp-policy in Argo CD's namespace"
        );
        assert!(
            no_entry("1", "/p.yaml")
                .ends_with("add `- names: [\"1\"]`, with its clusters, namespaces and kinds, to `projects` in /p.yaml")
        );
    }
}
