//! A part of an Application in a ManifestWork for one managed cluster, or in a ManifestWorkReplicaSet for a placement.

use super::arrange::Part;
use super::configure::{self, Plurals, Wanted};
use super::names::{ClusterName, WorkName};
use super::object::Object;
use super::placement::Placement;
use super::settings::Target;
use super::wishes::Phase;
use crate::json;
use crate::value::{Map, Value};
use crate::works::{API_VERSION, KIND, SET_KIND};
use std::ops::Range;

/// A work that still lacks what it is for.
#[derive(Debug)]
pub struct Template {
    name: String,
    /// What tells it from the Application's other works.
    suffix: String,
    /// The annotations, as a JSON mapping.
    annotations: String,
    /// What stands in `spec` before the workload: JSON, open at its end.
    fields: String,
    /// Its objects among all.
    objects: Range<usize>,
}

/// The most bytes of a work that Argo CD can apply as it does by default, with a copy of it in an annotation: Kubernetes
/// takes 262,144 bytes of annotations, and there are others.
const CLIENT_SIDE_MAX: u64 = 250_000;

impl Template {
    /// The work that carries `part` of the Application called `application` to `target`; the part's objects are among `objects`.
    #[must_use]
    pub fn new(
        application: &WorkName,
        target: &Target,
        part: Part,
        objects: &[Object],
        plurals: &Plurals,
        wanted: &Wanted,
    ) -> Self {
        let carried = &objects[part.objects.clone()];
        let spec = |defaults| {
            let mut spec = json_of(&configure::fields(carried, plurals, wanted, defaults));
            spec.pop();
            spec
        };
        let mut fields = spec(false);
        let server_side = part.size + json::passage(&fields).length as u64 > CLIENT_SIDE_MAX;
        if server_side {
            fields = spec(true);
        }
        Self {
            name: work_name(application, target, &part.suffix),
            annotations: annotations(&part, server_side),
            suffix: part.suffix,
            fields,
            objects: part.objects,
        }
    }

    /// Names the work after `application`.
    pub fn rename(&mut self, application: &WorkName, target: &Target) {
        self.name = work_name(application, target, &self.suffix);
    }

    /// The work for one cluster; `objects` are those of the template.
    #[must_use]
    pub fn for_cluster<'a>(&self, cluster: &ClusterName, objects: &'a [Object]) -> Work<'a> {
        let mut start = self.start(API_VERSION, KIND, &cluster.to_string());
        start.push_str(&self.fields);
        self.around(start, "}", objects)
    }

    /// The work for the clusters of a placement, which [`Placement::objections`] has none against.
    #[must_use]
    pub fn for_placement<'a>(&self, placement: &Placement, objects: &'a [Object]) -> Work<'a> {
        let mut start = self.start(
            "work.open-cluster-management.io/v1alpha1",
            SET_KIND,
            &placement.namespace,
        );
        // It goes when its works have gone, as a work goes when its objects have: what waits for that may rely on it.
        start.push_str(r#"{"cascadeDeletionPolicy":"Foreground","manifestWorkTemplate":"#);
        start.push_str(&self.fields);
        let end = format!(r#","placementRefs":[{}]}}}}"#, json_of(&placement.reference()));
        self.around(start, &end, objects)
    }

    /// The work with its objects, which stand behind the fields of its spec.
    fn around<'a>(&self, mut before: String, behind: &str, objects: &'a [Object]) -> Work<'a> {
        before.push_str(r#","workload":{"manifests":["#);
        Work {
            around: [before, format!("]}}}}{behind}")],
            objects: &objects[self.objects.clone()],
        }
    }

    /// A work up to its `spec`.
    fn start(&self, api_version: &str, kind: &str, namespace: &str) -> String {
        let Self { name, annotations, .. } = self;
        // None of these has anything in it that JSON escapes.
        format!(
            r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"annotations":{annotations},"name":"{name}","namespace":"{namespace}"}},"spec":"#
        )
    }
}

fn work_name(application: &WorkName, target: &Target, suffix: &str) -> String {
    match target {
        Target::Clusters(_) => application.part(suffix),
        Target::Placement(placement) => application.set_part(suffix, &placement.namespace, placement.name_max()),
    }
}

fn annotations(part: &Part, server_side: bool) -> String {
    let mut all = Vec::new();
    let mut add = |name: &'static str, text: String| all.push((name.into(), Value::String(text.into())));
    if let Some(hook) = part.hook {
        // Nothing is created after the deletion of the Application: what has run then has to go by itself.
        let policy = match hook {
            Phase::PreDelete | Phase::PostDelete => "HookSucceeded",
            _ => "BeforeHookCreation",
        };
        add("argocd.argoproj.io/hook", hook.name().to_owned());
        add("argocd.argoproj.io/hook-delete-policy", policy.to_owned());
    }
    // A work that is replaced by others goes when they are healthy. Argo CD prunes before it applies unless the work that is
    // to go already says so.
    let options = if server_side {
        "PruneLast=true,ServerSideApply=true"
    } else {
        "PruneLast=true"
    };
    add("argocd.argoproj.io/sync-options", options.to_owned());
    if part.wave != 0 {
        add("argocd.argoproj.io/sync-wave", part.wave.to_string());
    }
    json_of(&Map::from_entries(all))
}

fn json_of(map: &Map<'_>) -> String {
    let mut out = String::new();
    json::write_map(map, &mut out).expect("nothing in it is long or deep");
    out
}

/// A `ManifestWork`, or a `ManifestWorkReplicaSet`: the objects that one cluster is given, or each of several.
#[derive(Debug)]
pub struct Work<'a> {
    /// Its JSON before the objects, and behind them.
    around: [String; 2],
    objects: &'a [Object],
}

impl Work<'_> {
    /// Hands the canonical JSON of the work to `write`, piece by piece.
    ///
    /// # Errors
    /// The first error of `write`.
    pub fn each_piece<E>(&self, mut write: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let [before, behind] = &self.around;
        write(before)?;
        for (at, object) in self.objects.iter().enumerate() {
            if at > 0 {
                write(",")?;
            }
            for piece in object.pieces() {
                write(&piece)?;
            }
        }
        write(behind)
    }
}
