//! API resources.

/// An API resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version that the program writes.
    pub version: &'static str,
    /// The plural in API paths.
    pub plural: &'static str,
    /// The kind in objects.
    pub kind: &'static str,
    /// True if written objects must not be shown.
    pub secret: bool,
    /// The subresource to patch, or `None` for the object itself.
    pub subresource: Option<&'static str>,
}

impl Resource {
    /// Describes a resource whose objects may be shown.
    pub const fn new(group: &'static str, version: &'static str, plural: &'static str, kind: &'static str) -> Self {
        Self {
            group,
            version,
            plural,
            kind,
            secret: false,
            subresource: None,
        }
    }

    /// Returns a subresource of the resource.
    pub const fn subresource(&self, subresource: &'static str) -> Self {
        Self {
            subresource: Some(subresource),
            ..Self::new(self.group, self.version, self.plural, self.kind)
        }
    }

    /// Returns the `apiVersion`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns the API path of the resource in a namespace; an empty one means all, or none if the resource is cluster-scoped.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let (api_version, plural) = (self.api_version(), self.plural);
        match namespace {
            "" => format!("/{root}/{api_version}/{plural}"),
            namespace => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        }
    }
}
