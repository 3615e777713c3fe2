//! Reads works by any writer, as `diff` shows them.

use manifest::key::ObjectKey;
use manifest::kinds::GroupKind;
use manifest::value::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The label of all objects that this program writes on the hub, and of its works.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The value of [`MANAGED_BY`]. A user who sets it on another cluster Secret of the right name hands that Secret over to the
/// controller.
pub const OURS: &str = "argocd-ocm-cmp";

/// The label of a work with the name of its Application: `NAME`, or `NAMESPACE_NAME` outside Argo CD's namespace.
pub const APPLICATION_LABEL: &str = "argocd-ocm-cmp.github.io/application";

/// The annotation of an object with the hash of its content.
pub const CONTENT_HASH: &str = "argocd-ocm-cmp.github.io/content-hash";

/// A `ManifestWork`, or a `ManifestWorkReplicaSet`, from which OCM creates one for each cluster of a Placement.
#[derive(Debug)]
pub struct Work<'a> {
    /// The target of its objects.
    pub target: Target,
    /// The namespace on the hub.
    pub namespace: String,
    /// The name.
    pub name: String,
    fields: Map<'a>,
}

/// The target of a work's objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// This managed cluster.
    Cluster(String),
    /// The clusters of this Placement, `NAMESPACE/NAME`.
    Placement(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(name) | Self::Placement(name) => f.write_str(name),
        }
    }
}

impl<'a> Work<'a> {
    /// Converts a value to a work.
    ///
    /// # Errors
    /// Returns a description of the value if it is not a work.
    pub fn new(value: Value<'a>) -> Result<Self, String> {
        let Value::Map(fields) = value else {
            return Err(format!("it is {}, not a ManifestWork", value.type_name()));
        };
        let text = |value: Option<&Value<'_>>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = kind(&fields);
        let metadata = fields.get("metadata").and_then(Value::as_map);
        let name = text(metadata.and_then(|metadata| metadata.get("name")));
        let namespace = text(metadata.and_then(|metadata| metadata.get("namespace")));
        let target = if kind.is(GROUP, KIND) {
            Target::Cluster(namespace.clone())
        } else if kind.is(GROUP, SET_KIND) {
            let spec = fields.get("spec").and_then(Value::as_map);
            let first = spec.and_then(|spec| spec.items("placementRefs").first()?.as_map()?.get("name"));
            Target::Placement(format!("{namespace}/{}", text(first)))
        } else {
            return Err(format!("{kind} {name} is not a ManifestWork"));
        };
        if name.is_empty() || namespace.is_empty() {
            return Err(format!("a {kind} without name or namespace"));
        }
        Ok(Self {
            target,
            namespace,
            name,
            fields,
        })
    }

    /// Returns the kind of the work.
    pub fn kind(&self) -> &'static str {
        match self.target {
            Target::Cluster(_) => KIND,
            Target::Placement(_) => SET_KIND,
        }
    }

    /// Returns the work's own annotation of this name.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata()?.get("annotations")?.as_map()?.get(name)?.as_str()
    }

    /// Returns the sync wave of the work on the hub.
    pub fn wave(&self) -> i32 {
        let wave = self.annotation("argocd.argoproj.io/sync-wave");
        wave.and_then(|wave| wave.parse().ok()).unwrap_or_default()
    }

    /// Returns the work's own `metadata`.
    pub fn metadata(&self) -> Option<&Map<'a>> {
        self.fields.get("metadata")?.as_map()
    }

    /// Returns the `spec`.
    pub fn spec(&self) -> Option<&Map<'a>> {
        self.fields.get("spec")?.as_map()
    }

    /// Returns the spec for OCM's agent.
    fn for_agent(&self) -> Option<&Map<'a>> {
        match self.target {
            Target::Cluster(_) => self.spec(),
            Target::Placement(_) => self.spec()?.get(TEMPLATE)?.as_map(),
        }
    }

    /// Removes the objects from the work and returns them.
    pub fn take_manifests(&mut self) -> Vec<Value<'a>> {
        let workload = match self.target {
            Target::Cluster(_) => self.fields.map_at_mut(&["spec", WORKLOAD]),
            Target::Placement(_) => self.fields.map_at_mut(&["spec", TEMPLATE, WORKLOAD]),
        };
        match workload.and_then(|workload| workload.remove("manifests")) {
            Some(Value::List(manifests)) => manifests,
            _ => Vec::new(),
        }
    }

    /// Returns true if an object stays on the cluster when it is removed from this work.
    pub fn keeps(&self, key: &ObjectKey) -> bool {
        let Some(option) = self.for_agent().and_then(|spec| spec.get("deleteOption")?.as_map()) else {
            return false;
        };
        let orphans = option.get("selectivelyOrphans").and_then(Value::as_map);
        let rules = orphans.map_or(&[][..], |orphans| orphans.items("orphaningRules"));
        let is_of_it = |rule: &Map<'_>| {
            let text = |key| rule.get(key).and_then(Value::as_str).unwrap_or_default();
            let namespace = key.namespace.as_deref().unwrap_or_default();
            text("group") == &*key.kind.group && text("namespace") == namespace && text("name") == &*key.name
        };
        rules.iter().filter_map(Value::as_map).any(is_of_it)
            || option.get("propagationPolicy").and_then(Value::as_str) == Some("Orphan")
    }

    /// Returns true if the agent only reports an object of this work, and neither creates nor owns it.
    pub fn only_reads(&self, key: &ObjectKey) -> bool {
        let plurals = key.kind.plurals();
        let strategy_of_it = |config: &'_ Map<'a>| {
            let identifier = config.get("resourceIdentifier")?.as_map()?;
            let text = |key| identifier.get(key).and_then(Value::as_str).unwrap_or_default();
            let selects = |field, value: &str| text(field) == value || matches!(text(field), "*" | "**");
            let is_of_it = text("group") == &*key.kind.group
                && plurals.iter().any(|plural| plural == text("resource"))
                && selects("namespace", key.namespace.as_deref().unwrap_or_default())
                && selects("name", &key.name);
            let strategy = config.at(&["updateStrategy", "type"])?.as_str()?;
            is_of_it.then(|| strategy == "ReadOnly")
        };
        let spec = self.for_agent();
        let mut configs = spec.into_iter().flat_map(|spec| spec.maps("manifestConfigs"));
        configs.find_map(strategy_of_it) == Some(true)
    }
}

/// The API group of works.
pub const GROUP: &str = "work.open-cluster-management.io";

/// The `apiVersion` of a work for one managed cluster.
pub const API_VERSION: &str = "work.open-cluster-management.io/v1";

/// The kind of a work for one managed cluster.
pub const KIND: &str = "ManifestWork";
/// The kind of a work for a Placement.
pub const SET_KIND: &str = "ManifestWorkReplicaSet";

/// The field of a `ManifestWorkReplicaSet` with the `spec` of its works.
pub const TEMPLATE: &str = "manifestWorkTemplate";

/// The field of a work with its objects.
pub const WORKLOAD: &str = "workload";

/// Returns the identity of an object; missing fields are empty.
pub fn key(object: &Value<'_>) -> ObjectKey {
    let nothing = Map::default();
    let fields = object.as_map().unwrap_or(&nothing);
    let metadata = fields.get("metadata").and_then(Value::as_map);
    let text = |key| metadata.and_then(|metadata| metadata.get(key)?.as_str());
    ObjectKey {
        kind: kind(fields),
        namespace: text("namespace")
            .filter(|namespace| !namespace.is_empty())
            .map(Arc::from),
        name: text("name").unwrap_or_default().into(),
    }
}

/// Returns the identifiers of the entries of `manifestConfigs` that apply to an object, given by its group, resource, namespace and name:
/// the last two may be `*`.
pub fn config_identifiers([group, resource, namespace, name]: [&str; 4]) -> [[&str; 4]; 4] {
    [[namespace, name], [namespace, "*"], ["*", name], ["*", "*"]]
        .map(|[namespace, name]| [group, resource, namespace, name])
}

fn kind(fields: &Map<'_>) -> GroupKind {
    let text = |key| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    GroupKind::from_api_version(text("apiVersion"), text("kind"))
}
