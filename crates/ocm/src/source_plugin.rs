//! The plugin of an Application's source, and its settings as the plugin reads them.

use crate::names::WorkName;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::iter;

/// The plugin of a source.
#[derive(Debug, Deserialize)]
pub struct SourcePlugin {
    /// Its name; if it is empty, Argo CD chooses the plugin.
    #[serde(default)]
    pub name: String,
    parameters: Option<Vec<SourceParameter>>,
    env: Option<Vec<SourceParameter>>,
}

/// A parameter, with its value in `string` or `array`, or an environment variable, with its value in `value`.
#[derive(Debug, Deserialize)]
struct SourceParameter {
    #[serde(default)]
    name: String,
    #[serde(alias = "string")]
    value: Option<String>,
    array: Option<Vec<String>>,
}

/// The location of works of a source.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkLocation {
    /// A managed cluster.
    Cluster(String),
    /// The namespace of a Placement.
    Placement(String),
    /// That of the sidecar's environment.
    Default,
}

/// Returns the sources in the `spec` of an Application.
pub fn sources(spec: &Value) -> impl Iterator<Item = &Value> {
    let one = [spec.get("source"), spec.pointer("/sourceHydrator/drySource")];
    let several = spec["sources"].as_array().into_iter().flatten();
    one.into_iter().flatten().chain(several)
}

/// Returns the names that the sources of an Application set for their works instead of that of the Application.
pub(crate) fn work_names(spec: &Value) -> impl Iterator<Item = WorkName> {
    let plugins = sources(spec).filter_map(|source| SourcePlugin::deserialize(&source["plugin"]).ok());
    plugins.filter_map(|plugin| plugin.work_name()?.parse().ok())
}

impl SourcePlugin {
    /// Returns the managed clusters that it sets.
    pub fn clusters(&self) -> BTreeSet<String> {
        let texts = self.texts("clusters", &["CLUSTERS", "TARGET_CLUSTER"]);
        let names = texts.iter().flat_map(|text| text.split(','));
        let names = names.map(|name| name.trim().to_owned());
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Returns the locations of its works: the namespaces of its managed clusters or, for ManifestWorkReplicaSets, that of its
    /// Placement; [`WorkLocation::Default`] if it sets neither. Of these two settings, a parameter precedes a variable.
    pub fn work_locations(&self) -> BTreeSet<WorkLocation> {
        let has_parameter = |name: &str| !texts_of(self.parameters.as_ref(), name).is_empty();
        let clusters = self.clusters();
        let is_placement = has_parameter("placement") && !has_parameter("clusters") || clusters.is_empty();
        let mut locations: BTreeSet<_> = if is_placement {
            let placement = self.texts("placement", &["PLACEMENT"]);
            let namespaces = placement.iter().filter_map(|text| text.trim().split('/').next());
            namespaces
                .map(|name| WorkLocation::Placement(name.to_owned()))
                .collect()
        } else {
            clusters.into_iter().map(WorkLocation::Cluster).collect()
        };
        if locations.is_empty() {
            locations.insert(WorkLocation::Default);
        }
        locations
    }

    /// Returns true if it sets a placement, rather than clusters.
    pub fn names_a_placement(&self) -> bool {
        !self.texts("placement", &["PLACEMENT"]).is_empty()
    }

    /// Returns the name that it sets for its works instead of that of the Application.
    pub fn work_name(&self) -> Option<&str> {
        self.texts("name", &["NAME"]).pop()
    }

    /// Returns the texts of a setting as the plugin reads them: those of the parameter, else of the first of these variables that is not
    /// blank.
    pub fn texts(&self, parameter: &str, variables: &[&str]) -> Vec<&str> {
        let of_parameter = texts_of(self.parameters.as_ref(), parameter);
        let of_variables = variables.iter().map(|variable| texts_of(self.env.as_ref(), variable));
        let mut given = iter::once(of_parameter).chain(of_variables);
        given.find(|texts| !texts.is_empty()).unwrap_or_default()
    }
}

/// Returns the texts of the entries of this name that are not blank.
fn texts_of<'p>(entries: Option<&'p Vec<SourceParameter>>, name: &str) -> Vec<&'p str> {
    let entries = entries.into_iter().flatten().filter(|entry| entry.name == name);
    let texts = entries.flat_map(|entry| entry.array.iter().flatten().chain(&entry.value));
    texts
        .map(String::as_str)
        .filter(|text| !text.trim().is_empty())
        .collect()
}
