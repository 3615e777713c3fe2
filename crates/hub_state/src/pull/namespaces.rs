//! The namespaces in which Argo CD reads Applications, and patterns for them.

mod regex;

use fancy_regex::Regex;
use ocm::glob::Glob;

/// The ConfigMap in Argo CD's namespace that has [`NAMESPACES`].
pub const CONFIG_MAP: &str = "argocd-cmd-params-cm";

/// The key of [`CONFIG_MAP`] with the namespaces of Applications besides Argo CD's own.
pub const NAMESPACES: &str = "application.namespaces";

/// The namespaces besides Argo CD's own in which Applications are allowed. Empty if nothing is configured, as in Argo CD.
#[derive(Clone, Debug, Default)]
pub struct Namespaces {
    patterns: Vec<NamespacePattern>,
    /// The configured text.
    list: String,
}

impl PartialEq for Namespaces {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Namespaces {
    /// Parses the value of [`NAMESPACES`]: globs, or regular expressions between slashes, separated by commas.
    pub fn configured(list: &str) -> Self {
        let patterns = list.split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
        Self {
            patterns: patterns.filter_map(NamespacePattern::new).collect(),
            list: list.to_owned(),
        }
    }

    pub fn has(&self, namespace: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(namespace))
    }
}

#[derive(Clone, Debug)]
pub enum NamespacePattern {
    Glob(Glob),
    Expression(Regex),
}

impl NamespacePattern {
    /// Compiles a glob, or a regular expression between slashes. Returns none for a malformed pattern, which matches nothing, as in
    /// Argo CD, and for an unsupported expression.
    pub fn new(pattern: &str) -> Option<Self> {
        let expression = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        // Argo CD reads `//` as a glob since 3.6: an empty expression would match every namespace.
        match expression.filter(|expression| !expression.is_empty()) {
            Some(expression) => regex::compile(expression).map(Self::Expression),
            None => Glob::new(pattern).ok().map(Self::Glob),
        }
    }

    pub fn matches(&self, namespace: &str) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(namespace),
            Self::Expression(expression) => expression.is_match(namespace).unwrap_or_default(),
        }
    }
}
