//! How OCM's agent updates an object that is already on the cluster.
//!
//! The agent's own default, `Update`, leaves labels on the cluster that were removed in Git, does not repair a Service,
//! reverts the replicas that an autoscaler has set, and fails on Jobs and bound PersistentVolumeClaims, whose fields the
//! API server has completed. Server-side apply does what `kubectl apply` does, so it is the default here.

use super::object::{Object, Role};
use std::str::FromStr;

/// The update strategies of a `ManifestWork`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Server-side apply that takes over fields of others: what Git says is what is there, the rest is left alone.
    ServerSideApply,
    /// The agent's merge for kinds it knows, else a full replacement.
    Update,
    /// Created where it is missing, and never touched again.
    CreateOnly,
    /// Only looked at, for feedback: not even created.
    ReadOnly,
}

impl Strategy {
    /// OCM's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ServerSideApply => "ServerSideApply",
            Self::Update => "Update",
            Self::CreateOnly => "CreateOnly",
            Self::ReadOnly => "ReadOnly",
        }
    }

    /// Whether what Git says reaches an object that is there already.
    #[must_use]
    pub fn applies(self) -> bool {
        matches!(self, Self::ServerSideApply | Self::Update)
    }

    /// The strategy of an object: what its annotation says, else the setting, else what suits it.
    #[must_use]
    pub fn of(object: &Object, setting: Option<Self>) -> Self {
        let asked = object.wishes.as_ref().and_then(|wishes| wishes.strategy);
        asked.unwrap_or_else(|| match Self::of_kind(object, setting) {
            Self::ServerSideApply if object.awkward && setting.is_none() => Self::Update,
            usual => usual,
        })
    }

    /// The strategy of the objects of the same kind and role that ask for nothing.
    #[must_use]
    pub fn of_kind(object: &Object, setting: Option<Self>) -> Self {
        if object.role == Role::Run {
            // Whatever the setting: a run that is applied again must not change, or the API server refuses it.
            return Self::CreateOnly;
        }
        setting.unwrap_or_else(|| {
            // The agent's rights, as OCM ships them, do not include to patch CRDs; it merges them well without.
            if &*object.key.kind.group == "apiextensions.k8s.io" {
                Self::Update
            } else {
                Self::ServerSideApply
            }
        })
    }
}

impl FromStr for Strategy {
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
    use crate::generate::object::tests::object;

    fn strategy(kind: &str, annotations: &str, setting: Option<Strategy>) -> Strategy {
        let (api_version, kind) = kind.split_once(' ').expect("two words");
        let object = object(&format!(
            "{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: a, annotations: {{{annotations}}}}}}}"
        ));
        Strategy::of(&object, setting)
    }

    #[test]
    fn the_annotation_wins_over_the_setting_and_that_over_what_suits_the_kind() {
        use Strategy::{CreateOnly, ReadOnly, ServerSideApply, Update};
        let read_only = "argocd-ocm-cmp.github.io/update-strategy: ReadOnly";
        assert_eq!(strategy("v1 ConfigMap", "", None), ServerSideApply);
        assert_eq!(strategy("v1 ConfigMap", "", Some(CreateOnly)), CreateOnly);
        assert_eq!(strategy("v1 ConfigMap", read_only, Some(CreateOnly)), ReadOnly);
        let crd = "apiextensions.k8s.io/v1 CustomResourceDefinition";
        assert_eq!(strategy(crd, "", None), Update);
        assert_eq!(strategy(crd, "", Some(ServerSideApply)), ServerSideApply);
    }

    #[test]
    fn what_an_apply_patch_would_change_is_not_sent_as_one() {
        for (data, wanted) in [
            ("plain: text", Strategy::ServerSideApply),
            ("next-line: \"a\\x85b\"", Strategy::Update),
            ("delete: \"a\\x7fb\"", Strategy::Update),
            ("separator: \"a\\u2028b\"", Strategy::ServerSideApply),
            ("number: 9007199254740993", Strategy::ServerSideApply),
        ] {
            let object = object(&format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{{data}}}}}"
            ));
            assert_eq!(Strategy::of(&object, None), wanted, "{data}");
        }
    }
}
