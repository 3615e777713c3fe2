//! The features that can be installed by name, and their files.

use crate::embedded;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::Deserialize;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A feature that can be installed: the name of a row of the table `chart/features.yaml`, whose order is that of the features and in
/// which their files are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature(&'static str);

/// A row of the table of features, which the chart reads too.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    about: String,
    #[serde(default)]
    requires: Vec<String>,
    controller: Option<String>,
    extends: Option<String>,
    permissions: Option<String>,
    #[serde(default)]
    files: Vec<String>,
}

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let rows = embedded::shipped("chart/features.yaml").remove(0);
    serde_json::from_value(rows).expect("the table of features has only the fields of a row")
});

static ALL: LazyLock<Vec<Feature>> = LazyLock::new(|| TABLE.iter().map(|row| Feature(&row.name)).collect());

impl Feature {
    pub const PLUGIN: Self = Self("plugin");
    pub const POLICY: Self = Self("policy");
    pub const APPLICATION_SET: Self = Self("applicationset");
    pub const ARGOCD_RBAC: Self = Self("argocd-rbac");
    pub const CONTROLLER: Self = Self("controller");
    pub const PULL: Self = Self("pull");
    pub const ARGOCD_ADDON: Self = Self("argocd-addon");
    pub const CLUSTER_SECRETS: Self = Self("cluster-secrets");
    pub const REPORT: Self = Self("report");
    pub const GITOPS_CLUSTER: Self = Self("gitopscluster");
    pub const ARGOCD_AGENT: Self = Self("argocd-agent");
    pub const UI: Self = Self("ui");
    pub const LIVE: Self = Self("live");

    /// Returns all features.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// Returns the name of the feature in the table and in flags.
    pub fn name(self) -> &'static str {
        self.0
    }

    fn index(self) -> usize {
        let index = ALL.iter().position(|feature| *feature == self);
        index.expect("every feature is in the table")
    }

    fn row(self) -> &'static Row {
        &TABLE[self.index()]
    }

    /// Returns the component of Argo CD that the feature extends.
    pub(super) fn component(self) -> Option<&'static str> {
        self.row().extends.as_deref()
    }

    /// Returns the file with the permissions that the feature grants.
    pub(crate) fn permissions(self) -> Option<&'static str> {
        self.row().permissions.as_deref()
    }

    pub(super) fn files(self) -> impl Iterator<Item = &'static str> {
        self.permissions()
            .into_iter()
            .chain(self.row().files.iter().map(String::as_str))
    }

    /// Returns the controller that the feature enables.
    pub(crate) fn controller(self) -> Option<&'static str> {
        self.row().controller.as_deref()
    }
}

impl Ord for Feature {
    fn cmp(&self, other: &Self) -> Ordering {
        self.index().cmp(&other.index())
    }
}

impl PartialOrd for Feature {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A feature can also be named by its controller.
impl ValueEnum for Feature {
    fn value_variants<'a>() -> &'a [Self] {
        Self::all()
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.0).help(self.row().about.as_str());
        let controller = self.controller().filter(|controller| *controller != self.0);
        Some(value.aliases(controller))
    }
}

/// Returns the features with all features that they imply.
pub fn with_implied(requested: impl IntoIterator<Item = Feature>) -> BTreeSet<Feature> {
    let mut all = BTreeSet::new();
    let mut open: Vec<_> = requested.into_iter().collect();
    while let Some(feature) = open.pop() {
        if all.insert(feature) {
            open.extend(feature.row().requires.iter().map(|name| Feature(name)));
        }
    }
    all
}
