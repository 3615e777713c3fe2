//! Applications with all kinds that the hub evaluates, and the works that the release before this one generated for them.

use std::path::{Path, PathBuf};

/// An object of each kind.
pub(crate) const OBJECTS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/upgrade/objects.yaml"));

const EVERYDAY: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/objects/everyday.yaml"));

/// An Application for `cluster1` and the namespace `default`.
pub(crate) struct Case {
    /// The name of the Application.
    pub(crate) name: String,
    /// The manifests of its folder.
    pub(crate) manifests: String,
    /// A setting and its value.
    pub(crate) setting: Option<(&'static str, &'static str)>,
}

/// Returns the file with the recorded works of an Application, one a line.
pub(crate) fn recorded(name: &str) -> PathBuf {
    let file = format!("tests/data/upgrade/works/{name}.jsonl");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Returns the Applications: each object alone, with either kind of feedback, and several objects together.
pub(crate) fn cases() -> Vec<Case> {
    let case = |name: &str, manifests: &str, setting| Case {
        name: name.to_owned(),
        manifests: manifests.to_owned(),
        setting,
    };
    let mut cases = vec![
        case("everyday", EVERYDAY, None),
        case("everyday-watched", EVERYDAY, Some(("feedback", "watch"))),
        case("together", OBJECTS, None),
        case("together-updated", OBJECTS, Some(("update-strategy", "Update"))),
    ];
    for object in OBJECTS.split("---\n") {
        let name = object.split("name: ").nth(1).and_then(|rest| rest.split('}').next());
        let name = name.unwrap_or_default();
        cases.push(case(name, object, None));
        cases.push(case(&format!("{name}-watched"), object, Some(("feedback", "watch"))));
    }
    cases
}
