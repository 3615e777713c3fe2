//! The parts of argocd-agent on the hub, and of the add-on that brings it to managed clusters.

use crate::controller::seen::{Object, Place, TlsSecret};
use crate::controller::watches::Kept;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// What there is of them.
#[derive(Debug, Default)]
pub(super) struct Agents {
    objects: BTreeMap<(Kept, Place), Object>,
    certificates: HashMap<Arc<str>, TlsSecret>,
}

impl Agents {
    pub(super) fn get(&self, kind: Kept, place: &Place) -> Option<&Object> {
        self.objects.get(&(kind, place.clone()))
    }

    /// All of a kind.
    pub(super) fn all(&self, kind: Kept) -> impl Iterator<Item = (&Place, &Object)> {
        let first = (kind, Place::new("", ""));
        let all = self.objects.range(first..);
        all.take_while(move |((other, _), _)| *other == kind)
            .map(|((_, place), object)| (place, object))
    }

    pub(super) fn certificate(&self, name: &str) -> Option<&TlsSecret> {
        self.certificates.get(name)
    }

    /// An object is so, or is gone: how it was, and whether that is news.
    pub(super) fn put(&mut self, kind: Kept, place: &Place, object: Option<Object>) -> (Option<Object>, bool) {
        let key = (kind, place.clone());
        let before = match object {
            Some(object) => self.objects.insert(key, object),
            None => self.objects.remove(&key),
        };
        let is_news = self.get(kind, place) != before.as_ref();
        (before, is_news)
    }

    /// A Secret with certificates is so, or is gone: whether that is news.
    pub(super) fn put_certificate(&mut self, name: &Arc<str>, secret: Option<TlsSecret>) -> bool {
        let before = match secret {
            Some(secret) => self.certificates.insert(Arc::clone(name), secret),
            None => self.certificates.remove(name),
        };
        self.certificates.get(name) != before.as_ref()
    }

    /// Those that are not among all.
    pub(super) fn missing(&self, kind: Kept, all: &HashSet<Place>) -> Vec<Place> {
        let known = self.all(kind).map(|(place, _)| place);
        known.filter(|place| !all.contains(*place)).cloned().collect()
    }

    /// The Secrets with certificates that are not among all.
    pub(super) fn missing_certificates(&self, all: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
        super::missing(self.certificates.keys(), all)
    }
}
