//! Wraps a part of an Application in a ManifestWork for a managed cluster, or in a ManifestWorkReplicaSet for a placement.

use super::annotations::Phase;
use super::content_hash::{self, Embedded};
use super::feedback_watch::Watched;
use super::manifest_configs::{self, WorkOptions};
use super::partition::{self, Partition, SyncStep};
use super::plurals::Plurals;
use super::settings::Recipient;
use manifest::json;
use manifest::value::{Map, Value};
use manifest::yaml;
use ocm::names::{WorkName, application_label};
use ocm::work::{API_VERSION, APPLICATION_LABEL, KIND, MANAGED_BY, OURS, SET_KIND, TEMPLATE, WORKLOAD};
use std::convert::Infallible;

/// A ManifestWork without its name and recipient.
#[derive(Debug)]
pub struct Template {
    /// The suffix that distinguishes it from other ManifestWorks of the Application.
    suffix: String,
    /// The step of a sync that applies it.
    pub step: SyncStep,
    /// True if Argo CD applies it server-side. Otherwise it has a copy in an annotation.
    server_side: bool,
    annotations: Map<'static>,
    /// The fields of `spec` besides the workload, as a JSON object.
    spec: String,
    /// Its objects, in the order of application.
    pub objects: Vec<Embedded>,
}

/// The `apiVersion` of a ManifestWorkReplicaSet.
const SET_API_VERSION: &str = "work.open-cluster-management.io/v1alpha1";

/// The maximum size of a ManifestWork that Argo CD can apply client-side, with a copy of it in an annotation: Kubernetes limits
/// annotations to 262,144 bytes, including others.
const CLIENT_SIDE_MAX: u64 = 250_000;

/// The number of bytes of an object in the status of a ManifestWork: its identity and three conditions.
const STATUS_SIZE: u64 = 600;

/// The deletion of a ManifestWorkReplicaSet: after that of its ManifestWorks, as a ManifestWork is deleted after its objects, so
/// that others can wait for it.
const CASCADE: &str = "Foreground";

/// Creates the ManifestWork of each partition.
pub fn templates(
    partitions: Vec<Partition>,
    plurals: &Plurals,
    watched: &Watched,
    options: &WorkOptions,
) -> Vec<Template> {
    let last = partition::last_step(&partitions);
    let template = |partition| Template::new(partition, last, plurals, watched, options);
    partitions.into_iter().map(template).collect()
}

impl Template {
    /// Creates the ManifestWork that carries `partition`; `last` is the last step of all that is no hook.
    fn new(
        partition: Partition,
        last: Option<SyncStep>,
        plurals: &Plurals,
        watched: &Watched,
        options: &WorkOptions,
    ) -> Self {
        let Partition {
            suffix,
            step,
            objects,
            size,
        } = partition;
        let bytes: u64 = objects.iter().map(|placed| placed.object.size() as u64).sum();
        let objects = content_hash::embedded(objects, content_hash::is_needed(step, last, options), options);
        let weight = size + objects.iter().map(Embedded::size).sum::<u64>() - bytes;
        let spec_of = |defaults| json_of(&manifest_configs::fields(&objects, plurals, watched, options, defaults));
        let mut spec = spec_of(false);
        let printed = weight + json::passage(without_end(&spec)).length as u64;
        let server_side = options.server_side_apply || printed > CLIENT_SIDE_MAX;
        if server_side {
            spec = spec_of(true);
        }
        Self {
            annotations: annotations(step, server_side),
            suffix,
            step,
            server_side,
            spec,
            objects,
        }
    }

    /// Returns the number of bytes of its objects.
    pub fn size(&self) -> u64 {
        self.objects.iter().map(Embedded::size).sum()
    }

    /// Returns the number of bytes that etcd stores, more or less: its spec, the copy of it in an annotation, and its status.
    pub(crate) fn stored_size(&self) -> u64 {
        let spec = self.size() + self.spec.len() as u64;
        let copies = if self.server_side { 1 } else { 2 };
        spec * copies + self.objects.len() as u64 * STATUS_SIZE
    }
}

fn annotations(step: SyncStep, server_side: bool) -> Map<'static> {
    let mut all = Vec::new();
    let mut add = |name: &'static str, text: String| all.push((name.into(), Value::String(text.into())));
    if let Some(hook) = step.hook() {
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
    if step.hub_wave() != 0 {
        add("argocd.argoproj.io/sync-wave", step.hub_wave().to_string());
    }
    Map::from_entries(all)
}

fn json_of(map: &Map<'_>) -> String {
    let mut out = String::new();
    json::write_map(map, &mut out).expect("nothing in it is long or deep");
    out
}

/// Returns a JSON object without its closing brace, so that further fields can follow.
fn without_end(object: &str) -> &str {
    object.strip_suffix('}').expect("an object ends with a brace")
}

/// A `ManifestWork`, or the `ManifestWorkReplicaSet` for a placement for which
/// [`PlacementTarget::objections`] returns nothing.
///
/// [`PlacementTarget::objections`]: super::placement::PlacementTarget::objections
#[derive(Clone, Copy, Debug)]
pub struct ManifestWork<'a> {
    /// The content.
    pub template: &'a Template,
    /// The recipient.
    pub recipient: Recipient<'a>,
    /// The Application that it carries.
    pub application: &'a WorkName,
}

impl<'a> ManifestWork<'a> {
    /// Returns its name.
    pub fn name(&self) -> String {
        let suffix = &self.template.suffix;
        match self.recipient {
            Recipient::Cluster { .. } => self.application.part(suffix),
            Recipient::Placement(placement) => {
                // Argo CD never prunes hooks that it starts itself: it replaces the one of the same name, also for another Placement.
                let hashed = match self.template.step.hook() {
                    Some(_) => placement.namespace.clone(),
                    None => placement.to_string(),
                };
                self.application.set_part(suffix, &hashed, placement.name_max())
            }
        }
    }

    /// Passes the canonical JSON to `write`, piece by piece.
    pub(crate) fn each_piece<E>(&self, mut write: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let [before, behind] = self.around();
        write(&before)?;
        for (at, embedded) in self.template.objects.iter().enumerate() {
            if at > 0 {
                write(",")?;
            }
            embedded
                .placed
                .object
                .pieces()
                .iter()
                .try_for_each(|piece| write(piece))?;
        }
        write(&behind)
    }

    /// Returns the number of bytes of its canonical JSON with a line break.
    pub(crate) fn printed_size(&self) -> u64 {
        let mut bytes = 1;
        let Ok(()) = self.each_piece(|piece| {
            bytes += piece.len() as u64;
            Ok::<_, Infallible>(())
        });
        bytes
    }

    /// Returns the JSON before and after the objects, which follow the other fields of the spec.
    fn around(&self) -> [String; 2] {
        let (api_version, kind) = self.kind();
        let metadata = json_of(&self.metadata());
        let start = format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{metadata},"spec":"#);
        let spec = format!(r#"{},"{WORKLOAD}":{{"manifests":["#, without_end(&self.template.spec));
        match self.recipient {
            Recipient::Cluster { .. } => [start + &spec, "]}}}".to_owned()],
            Recipient::Placement(placement) => [
                format!(r#"{start}{{"cascadeDeletionPolicy":"{CASCADE}","{TEMPLATE}":{spec}"#),
                format!(r#"]}}}},"placementRefs":[{}]}}}}"#, json_of(&placement.reference())),
            ],
        }
    }

    /// Returns the ManifestWork as a value. Parses the canonical JSON of one object after the other.
    pub fn to_value(&self) -> Value<'a> {
        self.with_manifests(self.template.objects.iter().map(Embedded::to_value).collect())
    }

    /// Returns the ManifestWork as a value with an empty workload.
    pub fn without_objects(&self) -> Value<'a> {
        self.with_manifests(Vec::new())
    }

    fn with_manifests(&self, manifests: Vec<Value<'a>>) -> Value<'a> {
        let mut spec = yaml::json(&self.template.spec).expect("the spec is JSON");
        let workload = Value::map([("manifests", Value::List(manifests))]);
        spec.as_map_mut()
            .expect("the spec is an object")
            .insert(WORKLOAD, workload);
        if let Recipient::Placement(placement) = self.recipient {
            spec = Value::map([
                ("cascadeDeletionPolicy", Value::String(CASCADE.into())),
                (TEMPLATE, spec),
                ("placementRefs", Value::List(vec![Value::Map(placement.reference())])),
            ]);
        }
        let (api_version, kind) = self.kind();
        Value::map([
            ("apiVersion", Value::String(api_version.into())),
            ("kind", Value::String(kind.into())),
            ("metadata", Value::Map(self.metadata())),
            ("spec", spec),
        ])
    }

    fn kind(&self) -> (&'static str, &'static str) {
        match self.recipient {
            Recipient::Cluster { .. } => (API_VERSION, KIND),
            Recipient::Placement(_) => (SET_API_VERSION, SET_KIND),
        }
    }

    fn metadata(&self) -> Map<'static> {
        let namespace = match self.recipient {
            Recipient::Cluster { name, .. } => name.to_string(),
            Recipient::Placement(placement) => placement.namespace.clone(),
        };
        let application = application_label(self.application.application());
        let labels = Value::map([
            (MANAGED_BY, Value::String(OURS.into())),
            (APPLICATION_LABEL, Value::from_text(application)),
        ]);
        Map::from_fields([
            ("annotations", Value::Map(self.template.annotations.clone())),
            ("labels", labels),
            ("name", Value::from_text(self.name())),
            ("namespace", Value::from_text(namespace)),
        ])
    }
}
