//! Wraps a part of an Application in a ManifestWork for a managed cluster, or in a ManifestWorkReplicaSet for a placement.

use super::annotations::Phase;
use super::content_hash::{self, Embedded};
use super::manifest_configs::{self, Plurals, WorkOptions};
use super::partition::Partition;
use super::placement::Placement;
use super::settings::Recipient;
use manifest::json;
use manifest::value::{Map, Value};
use ocm::names::{WorkName, application_label};
use ocm::work::{API_VERSION, APPLICATION_LABEL, KIND, MANAGED_BY, OURS, SET_KIND, TEMPLATE};

/// A ManifestWork without its name and recipient.
#[derive(Debug)]
pub struct Template {
    /// The suffix that distinguishes it from other ManifestWorks of the Application.
    suffix: String,
    /// The annotations, as a JSON object.
    annotations: String,
    /// The part of `spec` before the workload: JSON without its end.
    fields: String,
    /// Its objects, in the order of application.
    objects: Vec<Embedded>,
    /// The number of bytes of its objects, with those that their configuration adds.
    weight: u64,
}

/// The `apiVersion` of a ManifestWorkReplicaSet.
const SET_API_VERSION: &str = "work.open-cluster-management.io/v1alpha1";

/// The maximum size of a ManifestWork that Argo CD can apply client-side, with a copy of it in an annotation: Kubernetes limits
/// annotations to 262,144 bytes, including others.
const CLIENT_SIDE_MAX: u64 = 250_000;

impl Template {
    /// Creates the ManifestWork that carries `partition`; `last_wave` is the last of all.
    #[must_use]
    pub fn new(partition: Partition, last_wave: Option<i32>, plurals: &Plurals, wanted: &WorkOptions) -> Self {
        let is_hashed = content_hash::is_needed(&partition, last_wave, wanted);
        let Partition {
            suffix,
            wave,
            hook,
            objects,
            size,
        } = partition;
        let bytes: u64 = objects.iter().map(|placed| placed.object.size() as u64).sum();
        let objects = if is_hashed {
            content_hash::hashed(objects, wanted)
        } else {
            content_hash::unhashed(objects)
        };
        let weight = size + objects.iter().map(Embedded::size).sum::<u64>() - bytes;
        let spec = |defaults| {
            let mut spec = json_of(&manifest_configs::fields(&objects, plurals, wanted, defaults));
            spec.pop();
            spec
        };
        let mut fields = spec(false);
        let server_side = weight + json::passage(&fields).length as u64 > CLIENT_SIDE_MAX;
        if server_side {
            fields = spec(true);
        }
        Self {
            annotations: annotations(wave, hook, server_side),
            suffix,
            fields,
            objects,
            weight,
        }
    }

    /// Returns the number of bytes of its objects, with those that their configuration adds.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the number of bytes of its objects.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.objects.iter().map(Embedded::size).sum()
    }

    /// Returns the ManifestWork of the Application called `application` for `recipient`.
    #[must_use]
    pub fn to(&self, recipient: Recipient<'_>, application: &WorkName) -> Work<'_> {
        let suffix = &self.suffix;
        let [mut before, behind] = match recipient {
            Recipient::Cluster { name, .. } => {
                let metadata = self.metadata(&application.part(suffix), &name.to_string(), application);
                self.for_cluster(&metadata)
            }
            Recipient::Placement(placement) => {
                let name = application.set_part(suffix, &placement.namespace, placement.name_max());
                let metadata = self.metadata(&name, &placement.namespace, application);
                self.for_placement(&metadata, placement)
            }
        };
        // The objects follow the other fields of the spec.
        before.push_str(r#","workload":{"manifests":["#);
        Work {
            around: [before, format!("]}}}}{behind}")],
            objects: &self.objects,
        }
    }

    fn for_cluster(&self, metadata: &str) -> [String; 2] {
        let fields = &self.fields;
        [
            format!(r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","metadata":{metadata},"spec":{fields}"#),
            "}".to_owned(),
        ]
    }

    /// Returns the ManifestWorkReplicaSet for a placement to which [`Placement::objections`] has none.
    fn for_placement(&self, metadata: &str, placement: &Placement) -> [String; 2] {
        let fields = &self.fields;
        let placement = json_of(&placement.reference());
        // It is deleted after its ManifestWorks, as a ManifestWork is deleted after its objects, so others can wait for its
        // deletion.
        [
            format!(
                r#"{{"apiVersion":"{SET_API_VERSION}","kind":"{SET_KIND}","metadata":{metadata},"spec":{{"cascadeDeletionPolicy":"Foreground","{TEMPLATE}":{fields}"#
            ),
            format!(r#","placementRefs":[{placement}]}}}}"#),
        ]
    }

    fn metadata(&self, name: &str, namespace: &str, application: &WorkName) -> String {
        let annotations = &self.annotations;
        let application = application_label(application.application());
        let labels = format!(r#"{{"{MANAGED_BY}":"{OURS}","{APPLICATION_LABEL}":"{application}"}}"#);
        // None of these contains characters that JSON escapes.
        format!(r#"{{"annotations":{annotations},"labels":{labels},"name":"{name}","namespace":"{namespace}"}}"#)
    }
}

fn annotations(wave: i32, hook: Option<Phase>, server_side: bool) -> String {
    let mut all = Vec::new();
    let mut add = |name: &'static str, text: String| all.push((name.into(), Value::String(text.into())));
    if let Some(hook) = hook {
        // After the deletion of an Application no later hook triggers BeforeHookCreation, so these hooks are deleted on success.
        let policy = match hook {
            Phase::PreDelete | Phase::PostDelete => "HookSucceeded",
            _ => "BeforeHookCreation",
        };
        add("argocd.argoproj.io/hook", hook.name().to_owned());
        add("argocd.argoproj.io/hook-delete-policy", policy.to_owned());
    }
    // A replaced ManifestWork is deleted once its successors are healthy. Argo CD prunes before it applies unless the
    // ManifestWork to prune already has this option.
    let options = if server_side {
        "PruneLast=true,ServerSideApply=true"
    } else {
        "PruneLast=true"
    };
    add("argocd.argoproj.io/sync-options", options.to_owned());
    if wave != 0 {
        add("argocd.argoproj.io/sync-wave", wave.to_string());
    }
    json_of(&Map::from_entries(all))
}

fn json_of(map: &Map<'_>) -> String {
    let mut out = String::new();
    json::write_map(map, &mut out).expect("nothing in it is long or deep");
    out
}

/// A `ManifestWork` or `ManifestWorkReplicaSet` with the objects of one cluster or of each cluster of a placement.
#[derive(Debug)]
pub struct Work<'a> {
    /// The JSON before and after the objects.
    around: [String; 2],
    objects: &'a [Embedded],
}

impl Work<'_> {
    /// Passes the canonical JSON to `write`, piece by piece.
    ///
    /// # Errors
    /// Returns the first error of `write`.
    pub fn each_piece<E>(&self, mut write: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let [before, behind] = &self.around;
        write(before)?;
        for (at, embedded) in self.objects.iter().enumerate() {
            if at > 0 {
                write(",")?;
            }
            embedded.each_piece(&mut write)?;
        }
        write(behind)
    }
}
