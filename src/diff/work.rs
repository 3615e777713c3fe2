//! The works that `diff` compares.

use generate::content_hash::Embedded;
use generate::manifestwork::ManifestWork;
use manifest::key::ObjectKey;
use manifest::value::Value;
use ocm::work as works;
use ocm::work::Work;
use std::borrow::Cow;

/// A work, and its objects in the order of application.
#[derive(Debug)]
pub(crate) struct ComparedWork<'a> {
    /// The work without its objects.
    pub(crate) work: Work<'a>,
    pub(super) objects: Vec<ComparedObject<'a>>,
}

impl ComparedWork<'_> {
    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects.iter().map(ComparedObject::key)
    }
}

impl<'a> From<Work<'a>> for ComparedWork<'a> {
    fn from(mut work: Work<'a>) -> Self {
        let manifests = work.take_manifests().into_iter();
        let objects = manifests.map(|value| ComparedObject::Parsed(works::key(&value), value));
        Self {
            objects: objects.collect(),
            work,
        }
    }
}

impl<'a> From<ManifestWork<'a>> for ComparedWork<'a> {
    fn from(generated: ManifestWork<'a>) -> Self {
        let work = Work::new(generated.without_objects()).expect("a ManifestWork has a name and a namespace");
        Self {
            work,
            objects: generated
                .template
                .objects
                .iter()
                .map(ComparedObject::Generated)
                .collect(),
        }
    }
}

/// An object in a work.
#[derive(Debug)]
pub(super) enum ComparedObject<'a> {
    /// An object that was parsed with its work.
    Parsed(ObjectKey, Value<'a>),
    /// A generated object. It is kept as JSON, because the values of all objects need more memory.
    Generated(&'a Embedded),
}

impl<'a> ComparedObject<'a> {
    pub(super) fn key(&self) -> &ObjectKey {
        match self {
            Self::Parsed(key, _) => key,
            Self::Generated(embedded) => &embedded.placed.object.key,
        }
    }

    /// Returns the value of the object; parses it if it is generated.
    pub(super) fn to_value(&self) -> Cow<'_, Value<'a>> {
        match self {
            Self::Parsed(_, value) => Cow::Borrowed(value),
            Self::Generated(embedded) => Cow::Owned(embedded.to_value()),
        }
    }
}
