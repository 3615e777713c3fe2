//! Chooses the objects that OCM's agent watches, so that a change of their health reaches the hub within a second.
//!
//! The agent polls all other objects: every 10 to 19 seconds, or every 60 to 114 seconds in a klusterlet with one replica. It
//! watches with one informer per kind and namespace, of which it runs at most 50 (`--max-feedback-watch`, since OCM 1.2) for all
//! works of its cluster, and polls silently beyond. An informer also caches the objects of others in the namespace. So only the
//! kinds whose health changes without a change in Git are watched, and first where most objects share an informer.

use super::placed::Placed;
use manifest::kinds::GroupKind;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// The way in which agents notice that an object has changed on the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScrapeType {
    /// The agent reads all objects periodically.
    #[default]
    Poll,
    /// The agent watches the objects whose health changes by itself, and polls the others.
    Watch,
}

impl FromStr for ScrapeType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "poll" => Ok(Self::Poll),
            "watch" => Ok(Self::Watch),
            _ => Err(format!("{name:?} is not a way of feedback: set poll or watch")),
        }
    }
}

/// The maximum number of informers of an agent.
const INFORMERS_MAX: usize = 50;

/// The kinds whose health changes without a change in Git.
const KINDS: [(&str, &str); 5] = [
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
    ("", "PersistentVolumeClaim"),
];

/// The namespaces in which the agent watches, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched(BTreeMap<GroupKind, BTreeSet<Box<str>>>);

impl Watched {
    /// Chooses what the agent watches among all objects of an Application on a cluster.
    pub fn new(feedback: ScrapeType, objects: &[Placed]) -> Self {
        match feedback {
            ScrapeType::Poll => Self::default(),
            ScrapeType::Watch => Self::up_to(INFORMERS_MAX, objects),
        }
    }

    fn up_to(informers: usize, objects: &[Placed]) -> Self {
        let mut counts: BTreeMap<(&GroupKind, &str), usize> = BTreeMap::new();
        for Placed { object, .. } in objects {
            let kind = &object.key.kind;
            if let Some(namespace) = object.key.namespace.as_deref()
                && KINDS.contains(&(&*kind.group, &*kind.kind))
            {
                *counts.entry((kind, namespace)).or_default() += 1;
            }
        }
        let mut by_count: Vec<_> = counts.into_iter().collect();
        by_count.sort_by_key(|&(_, count)| Reverse(count));
        let mut watched = Self::default();
        for ((kind, namespace), _) in by_count.into_iter().take(informers) {
            watched.0.entry(kind.clone()).or_default().insert(namespace.into());
        }
        watched
    }

    /// Returns which objects of a kind the agent watches, among those in `namespaces`.
    pub(crate) fn find_watched_share<'n>(&self, kind: &GroupKind, namespaces: impl Iterator<Item = &'n str>) -> Share {
        let Some(watched) = self.0.get(kind) else {
            return Share::None;
        };
        let namespaces: BTreeSet<&str> = namespaces.collect();
        let (chosen, others): (Vec<_>, Vec<_>) = namespaces
            .into_iter()
            .partition(|&namespace| watched.contains(namespace));
        match (chosen.is_empty(), others.is_empty()) {
            (true, _) => Share::None,
            (false, true) => Share::All,
            (false, false) => Share::Namespaces(chosen.into_iter().map(str::to_owned).collect()),
        }
    }
}

/// The objects of a kind in a ManifestWork that the agent watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    None,
    All,
    /// The objects in these namespaces, which are not all.
    Namespaces(Vec<String>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placed::tests::placed;
    use std::str::FromStr;

    fn objects(kind: &str, namespace: &str, count: usize) -> Vec<String> {
        let (api_version, kind) = kind.split_once(' ').expect("two words");
        let object = |number| {
            format!(
                "{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: o{number}, namespace: {namespace}}}}}"
            )
        };
        (0..count).map(object).collect()
    }

    fn all(objects: &[Vec<String>]) -> Vec<Placed> {
        let texts: Vec<&str> = objects.iter().flatten().map(String::as_str).collect();
        placed(&texts)
    }

    fn share(watched: &Watched, kind: &str, namespaces: &[&str]) -> Share {
        let kind = GroupKind::from_str(kind).expect("a kind");
        watched.find_watched_share(&kind, namespaces.iter().copied())
    }

    #[test]
    fn polling_watches_nothing() {
        let objects = all(&[objects("apps/v1 Deployment", "web", 3)]);
        assert_eq!(Watched::new(ScrapeType::Poll, &objects), Watched::default());
        assert_eq!(share(&Watched::default(), "Deployment.apps", &["web"]), Share::None);
    }

    #[test]
    fn watches_only_kinds_whose_health_changes_by_itself() {
        let objects = all(&[
            objects("apps/v1 Deployment", "web", 1),
            objects("v1 ConfigMap", "web", 9),
            objects("v1 Service", "web", 9),
        ]);
        let watched = Watched::new(ScrapeType::Watch, &objects);
        assert_eq!(share(&watched, "Deployment.apps", &["web"]), Share::All);
        assert_eq!(share(&watched, "ConfigMap", &["web"]), Share::None);
        assert_eq!(share(&watched, "Service", &["web"]), Share::None);
    }

    #[test]
    fn informers_go_to_the_namespaces_with_most_objects() {
        let objects = all(&[
            objects("apps/v1 Deployment", "one", 1),
            objects("apps/v1 Deployment", "two", 2),
            objects("batch/v1 Job", "three", 3),
        ]);
        let watched = Watched::up_to(2, &objects);
        assert_eq!(share(&watched, "Job.batch", &["three"]), Share::All);
        assert_eq!(
            share(&watched, "Deployment.apps", &["one", "two"]),
            Share::Namespaces(vec!["two".to_owned()])
        );
        assert_eq!(share(&watched, "Deployment.apps", &["one"]), Share::None);
    }

    #[test]
    fn refuses_other_words() {
        let error = ScrapeType::from_str("Watch").expect_err("an error");
        assert_eq!(error, "\"Watch\" is not a way of feedback: set poll or watch");
    }
}
