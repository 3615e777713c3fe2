//! A part of an Application in a ManifestWork for one managed cluster.

use super::arrange::Part;
use super::configure::{self, Plurals, Wanted};
use super::names::{ClusterName, WorkName};
use super::object::Object;
use super::wishes::Phase;
use crate::json;
use crate::value::{Map, Value};
use std::ops::Range;

/// A `ManifestWork` that still lacks the cluster it is for.
#[derive(Debug)]
pub struct Template {
    name: WorkName,
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
    /// The work that carries `part` of the Application called `name`; the part's objects are among `objects`.
    #[must_use]
    pub fn new(name: &WorkName, part: Part, objects: &[Object], plurals: &Plurals, wanted: &Wanted) -> Self {
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
            name: name.part(&part.suffix),
            annotations: annotations(&part, server_side),
            fields,
            objects: part.objects,
        }
    }

    /// The work for one cluster, of the same objects as the template.
    #[must_use]
    pub fn for_cluster<'a>(&'a self, cluster: &'a ClusterName, objects: &'a [Object]) -> Work<'a> {
        Work {
            template: self,
            cluster,
            objects: &objects[self.objects.clone()],
        }
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

/// A `ManifestWork`: the objects that one cluster is given.
#[derive(Debug)]
pub struct Work<'a> {
    template: &'a Template,
    cluster: &'a ClusterName,
    objects: &'a [Object],
}

impl Work<'_> {
    /// Hands the canonical JSON of the work to `write`, piece by piece.
    ///
    /// # Errors
    /// The first error of `write`.
    pub fn each_piece<E>(&self, mut write: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let template = self.template;
        let mut piece = String::from(
            r#"{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"annotations":"#,
        );
        piece.push_str(&template.annotations);
        piece.push_str(r#","name":"#);
        json::write_text(&template.name.to_string(), &mut piece);
        piece.push_str(r#","namespace":"#);
        json::write_text(&self.cluster.to_string(), &mut piece);
        piece.push_str(r#"},"spec":"#);
        piece.push_str(&template.fields);
        piece.push_str(r#","workload":{"manifests":["#);
        for (at, object) in self.objects.iter().enumerate() {
            if at > 0 {
                piece.push(',');
            }
            write(&piece)?;
            piece.clear();
            for piece in object.pieces() {
                write(&piece)?;
            }
        }
        piece.push_str("]}}}");
        write(&piece)
    }
}
