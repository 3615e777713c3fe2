//! The objects of an app, as teams write them: with comments, in block and flow style, or as JSON.

use manifest::{json, yaml};

/// The format of a manifest.
#[derive(Clone, Copy)]
pub(crate) enum Written {
    Block,
    Flow,
    Json,
}

/// A kind of object that each app has.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    block: &'static str,
    flow: &'static str,
}

/// The kinds: together about 2.4 kB for each app, in either style.
pub(crate) const KINDS: [Kind; 3] = [
    Kind {
        name: "deployment",
        block: include_str!("objects/deployment.yaml"),
        flow: include_str!("objects/deployment-flow.yaml"),
    },
    Kind {
        name: "service",
        block: include_str!("objects/service.yaml"),
        flow: include_str!("objects/service-flow.yaml"),
    },
    Kind {
        name: "config-map",
        block: include_str!("objects/config-map.yaml"),
        flow: include_str!("objects/config-map-flow.yaml"),
    },
];

impl Kind {
    /// Returns the object of the app of this name.
    pub(crate) fn render(&self, app: &str, written: Written) -> String {
        let text = match written {
            Written::Block | Written::Json => self.block,
            Written::Flow => self.flow,
        };
        let text = text.replace("APP", app);
        match written {
            Written::Block | Written::Flow => text,
            Written::Json => as_json(&text),
        }
    }
}

/// Formats a manifest as tools write it for people.
fn as_json(text: &str) -> String {
    let manifest = yaml::documents(text).next().expect("a document").expect("YAML");
    let mut compact = String::new();
    json::write(&manifest.value, &mut compact).expect("within the limits of the writer");
    let value: serde_json::Value = serde_json::from_str(&compact).expect("JSON");
    serde_json::to_string_pretty(&value).expect("a JSON value") + "\n"
}
