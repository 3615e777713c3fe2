//! The parts of a work that the controller writes, as one hash.

use super::options::FeedbackMode;
use crate::json::{Written, at, items, text_at};
use manifest::value::Value;
use ocm::pull_model as names;
use ocm::work as works;
use sha2::{Digest, Sha256};

/// A hash of the parts of a work that the controller writes: equal works have equal fingerprints.
pub type Fingerprint = [u8; 16];

/// The labels that the controller owns.
pub const LABELS: [&str; 5] = [
    works::MANAGED_BY,
    works::APPLICATION_LABEL,
    names::PULL,
    names::OF_SET,
    names::SET_HASH,
];

/// The annotations that the controller owns.
pub const ANNOTATIONS: [&str; 4] = [names::HUB_NAMESPACE, names::HUB_NAME, names::HUB_UID, names::SET];

/// Returns the fingerprint of a work. No text is copied, because each reconcile of each Application computes it.
pub fn fingerprint(work: &Value<'_>) -> Fingerprint {
    let [labels, annotations] = ["/metadata/labels", "/metadata/annotations"].map(|map| at(work, map)?.as_map());
    let whole = (
        LABELS.map(|name| labels?.get(name).map(Written::whole)),
        ANNOTATIONS.map(|name| annotations?.get(name).map(Written::whole)),
        at(work, "/spec/workload/manifests").map(Written::whole),
        at(work, "/spec/manifestConfigs").map(|configs| Written::without(configs, is_default_or_mode)),
        delete_option(work).map(Written::whole),
    );
    let text = serde_json::to_vec(&whole).expect("JSON is written as JSON");
    let digest = Sha256::digest(text);
    *digest.first_chunk().expect("a digest has 32 bytes")
}

/// The field of a ManifestConfig with its [`FeedbackMode`].
pub const SCRAPE_TYPE: &str = "feedbackScrapeType";

/// Returns the feedback mode of the Application in a work; `None` if the hub's OCM is older than 1.2, whose CRD lacks the field, so
/// that the API server removes it. Newer ones add a default.
pub fn feedback_mode(work: &Value<'_>) -> Option<FeedbackMode> {
    let mut configs = items(work, "/spec/manifestConfigs").iter();
    let of_application =
        configs.find(|config| text_at(config, "/resourceIdentifier/resource") == Some(names::PLURAL))?;
    let scrape_type = of_application.as_map()?.get(SCRAPE_TYPE)?;
    Some(FeedbackMode::of_scrape_type(scrape_type.as_str()?))
}

/// The default that the API server adds to ManifestConfigs, at any depth.
const DEFAULT: (&str, &str) = ("fieldManager", "work-agent");

/// Returns true for a field of a ManifestConfig with the API server's default, and for its feedback mode, which not every API server
/// stores.
fn is_default_or_mode(key: &str, value: &Value<'_>) -> bool {
    key == SCRAPE_TYPE || value.as_str().is_some_and(|value| DEFAULT == (key, value))
}

/// Returns the delete option, or `None` for the default.
fn delete_option<'v, 't>(work: &'v Value<'t>) -> Option<&'v Value<'t>> {
    let option = at(work, "/spec/deleteOption")?;
    let is_default = option.as_map().is_some_and(|fields| {
        let mut fields = fields.iter();
        fields.all(|(key, value)| key == "propagationPolicy" && value.as_str() == Some("Foreground"))
    });
    (!is_default).then_some(option)
}
