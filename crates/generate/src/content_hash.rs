//! Content hashes, which limit health to objects that the current ManifestWork has applied.
//!
//! OCM's agent evaluates the objects of a ManifestWork as soon as it receives a change, possibly before applying it; the
//! resulting status describes the old objects but has the new generation, and nothing in it shows that it is stale. If a later
//! wave or another cluster waits for the health, it would continue too early. So the objects of such a ManifestWork carry an
//! annotation with a hash of their content. The agent reports it, and the hub accepts only the health of objects with the hash in
//! the ManifestWork. For a rollout across clusters, which OCM decides, the condition rules compare it.

use super::health_rules;
use super::hooks::Role;
use super::ignored_fields;
use super::manifest_configs::WorkOptions;
use super::partition::SyncStep;
use super::placed::Placed;
use super::update_strategy::UpdateStrategy;
use manifest::kinds::GroupKind;
use manifest::value::Value;
use primitives::hash;

/// The number of hex digits of a content hash: 40 bits are enough for the few contents of one object.
pub const HASH_DIGITS: usize = 10;

/// The annotation with the hash of the object's content.
pub const CONTENT: &str = ocm::work::CONTENT_HASH;

/// The JSONPath of that annotation.
pub const PATH: &str = r".metadata.annotations['argocd-ocm-cmp\.github\.io/content-hash']";

/// An object as a ManifestWork embeds it.
#[derive(Debug)]
pub struct Embedded {
    /// The object.
    pub placed: Placed,
    /// The value of its annotation [`CONTENT`], if this program has added it.
    pub hash: Option<Box<str>>,
}

impl Embedded {
    /// Returns the kind of the object.
    pub fn kind(&self) -> &GroupKind {
        &self.placed.object.key.kind
    }

    /// Parses the canonical JSON of this object.
    pub fn to_value(&self) -> Value<'_> {
        self.placed.object.to_value()
    }

    /// Returns the size as a manifest, as OCM's admission webhook counts it.
    pub fn size(&self) -> u64 {
        self.placed.object.size() as u64
    }
}

/// Returns true if the objects of a ManifestWork carry a content hash: if a later wave, up to that of the step `last`, or another
/// cluster waits for it.
pub fn is_needed(step: SyncStep, last: Option<SyncStep>, options: &WorkOptions) -> bool {
    let waits = step.hook().is_none() && Some(step) != last;
    options.condition_rules && (waits || options.is_progressive())
}

/// Embeds the objects of a ManifestWork; if hashes are needed, with those of the objects whose health is evaluated.
pub fn embedded(objects: Vec<Placed>, is_needed: bool, options: &WorkOptions) -> Vec<Embedded> {
    // For a rollout across clusters all objects share one hash: the agent does not evaluate an added object at first, and the
    // changed hash of the existing objects shows that the ManifestWork is not applied yet.
    let of_all = (is_needed && options.rollout.is_some())
        .then(|| hash::hash(objects.iter().flat_map(|placed| placed.object.pieces()), HASH_DIGITS));
    let of_one = |placed: &Placed| hash::hash(placed.object.pieces(), HASH_DIGITS);
    let embed = |mut placed: Placed| {
        let hash =
            (is_needed && carries_hash(&placed, options)).then(|| of_all.clone().unwrap_or_else(|| of_one(&placed)));
        if let Some(hash) = &hash {
            placed.object.set_content_hash(hash);
        }
        Embedded {
            hash: hash.map(Into::into),
            placed,
        }
    };
    objects.into_iter().map(embed).collect()
}

fn carries_hash(placed: &Placed, options: &WorkOptions) -> bool {
    let strategy = UpdateStrategy::choose(placed, options.strategy);
    let is_ignored = || {
        strategy == UpdateStrategy::ServerSideApply
            && ignored_fields::may_ignore_annotation(&placed.object, CONTENT, options)
    };
    has_health(placed, options) && placed.role != Role::Run && strategy.applies() && !is_ignored()
}

/// Returns true if an object has a health besides that it is applied. Of the Services for a named cluster, only load balancers do.
pub fn has_health(placed: &Placed, options: &WorkOptions) -> bool {
    let Placed { object, .. } = placed;
    let kind = &object.key.kind;
    (options.rollout.is_some() || object.is_load_balancer || !kind.is("", "Service"))
        && health_rules::of_kind(kind).is_some()
}

/// Returns CEL that is true for an object with the content of a placement's ManifestWork, whose objects all have this hash.
pub(crate) fn hash_matches_expression(hash: &str) -> String {
    format!("object.metadata.?annotations[?'{CONTENT}'].orValue('none')=='{hash}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback_watch::Watched;
    use crate::manifest_configs;
    use crate::placed::tests::placed;
    use crate::placement::RolloutKind;
    use crate::plurals::Plurals;
    use manifest::json;

    fn deployment(name: &str, ignored: &str) -> String {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}, annotations: \
             {{argocd-ocm-cmp.github.io/ignore-fields: '{ignored}'}}}}}}"
        )
    }

    /// OCM's agent creates an object without the annotations that it ignores.
    #[test]
    fn objects_whose_annotations_are_ignored_carry_none() {
        let options = WorkOptions {
            condition_rules: true,
            ..WorkOptions::default()
        };
        for (ignored, is_expected) in [
            ("/spec/replicas", true),
            ("/metadata/annotations", false),
            ("/metadata/annotations/argocd-ocm-cmp.github.io~1content-hash", false),
            ("/metadata/annotations/example.com~1content-hash", true),
            (".metadata.annotations[]?", false),
            (".metadata | .labels, .annotations", false),
            (r#".metadata.annotations["a/b"]"#, true),
        ] {
            let objects = placed(&[&deployment("web", ignored)]);
            let embedded = embedded(objects.clone(), true, &options);
            assert_eq!(embedded[0].hash.is_some(), is_expected, "{ignored}");
            // The other strategies apply the fields.
            let update = WorkOptions {
                strategy: Some(UpdateStrategy::Update),
                ..options.clone()
            };
            let embedded = super::embedded(objects, true, &update);
            assert!(embedded[0].hash.is_some(), "{ignored}");
        }
    }

    #[test]
    fn rules_of_a_rollout_expect_it_only_of_objects_that_carry_it() {
        let options = WorkOptions {
            condition_rules: true,
            rollout: Some(RolloutKind::Progressive),
            ..WorkOptions::default()
        };
        let objects = placed(&[
            &deployment("a", "/metadata/annotations"),
            &deployment("b", "/spec/replicas"),
        ]);
        let embedded = embedded(objects, true, &options);
        let fields = manifest_configs::fields(&embedded, &Plurals::default(), &Watched::default(), &options, false);
        let mut text = String::new();
        json::write_map(&fields, &mut text).expect("short fields");
        let fields: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let entries = fields["manifestConfigs"].as_array().expect("entries");
        let rules = |name: &str| {
            let mut entries = entries.iter();
            let entry = entries.find(|entry| entry["resourceIdentifier"]["name"] == name);
            entry.expect(name)["conditionRules"].to_string()
        };
        assert!(
            rules("a").contains("Healthy") && !rules("a").contains(CONTENT),
            "{text}"
        );
        assert_eq!(rules("b"), "null");
        assert!(rules("*").contains(CONTENT), "{text}");
    }
}
