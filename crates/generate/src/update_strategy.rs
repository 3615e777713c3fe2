//! Update strategies: how OCM's agent updates an object that exists on the cluster.
//!
//! The agent's own default, `Update`, keeps labels on the cluster that were removed in Git, does not repair a Service, reverts
//! the replicas set by an autoscaler, and fails on Jobs and bound PersistentVolumeClaims, whose fields the API server has
//! defaulted. Server-side apply behaves like `kubectl apply`, so it is the default here.

use super::hooks::Role;
use super::placed::Placed;
use manifest::text::and_more_objects;
use std::str::FromStr;

/// The update strategies of a `ManifestWork`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateStrategy {
    /// Server-side apply with forced conflicts: takes over the fields in Git and leaves others unchanged.
    ServerSideApply,
    /// The agent's merge for the kinds it knows, else a full replacement.
    Update,
    /// Creation of a missing object, without later updates.
    CreateOnly,
    /// Feedback only: the agent never creates or updates the object.
    ReadOnly,
}

impl UpdateStrategy {
    /// Returns OCM's name of the strategy.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServerSideApply => "ServerSideApply",
            Self::Update => "Update",
            Self::CreateOnly => "CreateOnly",
            Self::ReadOnly => "ReadOnly",
        }
    }

    /// Returns true if changes in Git reach an existing object.
    pub fn applies(self) -> bool {
        matches!(self, Self::ServerSideApply | Self::Update)
    }

    /// Returns the strategy of an object: its annotation, else the setting, else the default of its kind.
    pub fn choose(placed: &Placed, setting: Option<Self>) -> Self {
        let object = &placed.object;
        let annotation = object.annotations.as_ref().and_then(|annotations| annotations.strategy);
        annotation.unwrap_or_else(|| match Self::of_kind(placed, setting) {
            Self::ServerSideApply if object.unsafe_for_apply && setting.is_none() => Self::Update,
            usual => usual,
        })
    }

    /// Returns the strategy of objects of the same kind and role without an annotation.
    pub fn of_kind(placed: &Placed, setting: Option<Self>) -> Self {
        if placed.role == Role::Run {
            // Independent of the setting: the API server rejects changes to an existing run.
            return Self::CreateOnly;
        }
        setting.unwrap_or_else(|| {
            // By default, OCM does not permit the agent to patch CRDs; it merges them well without.
            if &*placed.object.key.kind.group == "apiextensions.k8s.io" {
                Self::Update
            } else {
                Self::ServerSideApply
            }
        })
    }
}

/// Returns a warning for the objects that are to stay, although the setting makes them read-only: the agent removes its owner reference
/// only when it applies an object. An object's own annotation is refused; a chart may have such options for clusters of others.
pub(super) fn warnings(objects: &[Placed], setting: Option<UpdateStrategy>) -> Option<String> {
    let is_kept = |placed: &&Placed| {
        placed
            .object
            .annotations
            .as_ref()
            .is_some_and(|annotations| annotations.keep)
    };
    let is_read_only = |placed: &&Placed| UpdateStrategy::choose(placed, setting) == UpdateStrategy::ReadOnly;
    let mut objects = objects.iter().filter(is_kept).filter(is_read_only);
    let first = objects.next()?;
    let more = and_more_objects(objects.count());
    Some(format!(
        "{}{more}: the setting update-strategy ReadOnly does not keep objects that the agent has applied before: set CreateOnly first",
        first.object.key
    ))
}

impl FromStr for UpdateStrategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::ServerSideApply, Self::Update, Self::CreateOnly, Self::ReadOnly]
            .into_iter()
            .find(|strategy| strategy.name() == name)
            .ok_or_else(|| {
                format!("{name:?} is not an update strategy: OCM has ServerSideApply, Update, CreateOnly and ReadOnly")
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placed::tests::placed;

    fn strategy(kind: &str, annotations: &str, setting: Option<UpdateStrategy>) -> UpdateStrategy {
        let (api_version, kind) = kind.split_once(' ').expect("two words");
        let yaml = format!(
            "{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: a, annotations: {{{annotations}}}}}}}"
        );
        UpdateStrategy::choose(&placed(&[&yaml])[0], setting)
    }

    #[test]
    fn annotation_overrides_setting_and_setting_overrides_default() {
        use UpdateStrategy::{CreateOnly, ReadOnly, ServerSideApply, Update};
        let read_only = "argocd-ocm-cmp.github.io/update-strategy: ReadOnly";
        assert_eq!(strategy("v1 ConfigMap", "", None), ServerSideApply);
        assert_eq!(strategy("v1 ConfigMap", "", Some(CreateOnly)), CreateOnly);
        assert_eq!(strategy("v1 ConfigMap", read_only, Some(CreateOnly)), ReadOnly);
        let crd = "apiextensions.k8s.io/v1 CustomResourceDefinition";
        assert_eq!(strategy(crd, "", None), Update);
        assert_eq!(strategy(crd, "", Some(ServerSideApply)), ServerSideApply);
    }

    #[test]
    fn warns_of_kept_objects_that_the_setting_makes_read_only() {
        let kept =
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/resource-policy: keep}}}";
        let objects = placed(&[
            kept,
            &kept.replace("name: a", "name: b"),
            &kept.replace("keep", "other"),
        ]);
        let warning = warnings(&objects, Some(UpdateStrategy::ReadOnly)).expect("a warning");
        assert!(
            warning.starts_with("ConfigMap a and 1 more object: the setting"),
            "{warning}"
        );
        assert_eq!(warnings(&objects, Some(UpdateStrategy::CreateOnly)), None);
    }

    #[test]
    fn uses_update_where_an_apply_patch_would_change_text() {
        for (data, expected) in [
            ("plain: text", UpdateStrategy::ServerSideApply),
            ("next-line: \"a\\x85b\"", UpdateStrategy::Update),
            ("delete: \"a\\x7fb\"", UpdateStrategy::Update),
            ("separator: \"a\\u2028b\"", UpdateStrategy::ServerSideApply),
            ("number: 9007199254740993", UpdateStrategy::ServerSideApply),
        ] {
            let yaml = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{{data}}}}}");
            assert_eq!(UpdateStrategy::choose(&placed(&[&yaml])[0], None), expected, "{data}");
        }
    }
}
