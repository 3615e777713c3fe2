//! Removes works. The finalizers of the Application on the cluster decide if the Argo CD there deletes what it deployed, and users
//! change them together with the deletion, as `argocd app delete` does. An agent applies no work that is being deleted, so the
//! finalizers come first.

use crate::work::server_side_apply;
use hub_state::annotations::REFRESH;
use hub_state::pull::PullWork;
use hub_state::pull::payload_id::replace_finalizers;
use hub_state::pull::pull_work::Retention;
use hub_state::{Application, Cache, Context, PullWorkRef};
use ocm::pull_model as names;
use ocm::resources::WORKS;
use runtime::action::Write;
use serde_json::{Value, json};

/// Returns the writes that remove works of an Application: their deletion after the cluster's Application has the same finalizers. Works
/// of managed clusters on hold stay: the API server would refuse the writes.
///
/// A finalizer keeps a deleted Application until its works are gone. So the Application in a work whose Application is gone loses its
/// finalizers, even if another Application has the same name by now.
pub(super) fn removed<'w>(
    works: impl IntoIterator<Item = &'w PullWorkRef<'w>>,
    application: Option<&Application>,
    cache: &Cache,
    context: &Context<'_>,
) -> Vec<Write> {
    let is_on_hold = |work: &PullWorkRef<'_>| cache.hold(&work.object_ref.namespace, context.now).is_some();
    let leaving = works
        .into_iter()
        .filter(|work| !work.pull_work.deleting && !is_on_hold(work));
    let writes = leaving.filter_map(|work| {
        let uid = work.pull_work.application_uid.as_deref();
        // Without the label, its finalizers are of the next way of delivery: what was released stays released.
        let is_in_use = |application: &Application| application.pull.is_some() || !work.pull_work.has_finalizers(&[]);
        let own =
            application.filter(|application| uid.is_none_or(|uid| *uid == *application.uid) && is_in_use(application));
        let finalizers = own.into_iter().flat_map(|application| &application.argocd_finalizers);
        let finalizers: Vec<_> = finalizers.map(|finalizer| &**finalizer).collect();
        removal(work, &finalizers)
    });
    writes.collect()
}

/// Returns the next write that removes a work; `None` while its agent has to apply the last one.
fn removal(work: &PullWorkRef<'_>, finalizers: &[&str]) -> Option<Write> {
    let (object_ref, pull_work) = (work.object_ref.clone(), work.pull_work);
    // The API server refuses changes of a work without its marks, which its agent has removed.
    let has_marks = pull_work.has_agent_finalizer && pull_work.claim.is_some();
    // An agent that only observes would create a missing Application again, which then deploys.
    let is_missing = pull_work.missing && pull_work.is_frozen_by_another();
    let can_patch = has_marks && !is_missing && pull_work.retention == Retention::Owned;
    let patch = can_patch.then(|| finalizers_patch(pull_work, finalizers)).flatten();
    match patch {
        Some(patch) => Some(Write::json_patch(&WORKS, object_ref, patch)),
        None if can_patch && !pull_work.has_applied_finalizers() => None,
        None => Some(Write::delete(&WORKS, object_ref, (&pull_work.uid, &pull_work.version))),
    }
}

/// Returns the JSON patch to these finalizers of the Application in a work; `None` if it has them. It also removes the requests: the agent
/// applies all of a changed payload, and a sync that is done would run again.
fn finalizers_patch(pull_work: &PullWork, finalizers: &[&str]) -> Option<Value> {
    let (position, _) = pull_work.manifest.as_ref()?;
    if pull_work.has_finalizers(finalizers) {
        return None;
    }
    let metadata = format!("/spec/workload/manifests/{position}/metadata");
    let list = format!("{metadata}/finalizers");
    let mut operations = vec![
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": pull_work.version}),
        if finalizers.is_empty() {
            json!({"op": "remove", "path": list})
        } else {
            json!({"op": "add", "path": list, "value": finalizers})
        },
    ];
    // Red Hat ACM makes the works of its disabled pull model read-only.
    operations.extend(pull_work.read_only_config.map(|at| {
        let path = format!("/spec/manifestConfigs/{at}/updateStrategy");
        json!({"op": "replace", "path": path, "value": server_side_apply(&json!({"force": true}))})
    }));
    let annotation = |name: &str| format!("{metadata}/annotations/{}", name.replace('/', "~1"));
    let mut requests = Vec::new();
    if pull_work.operation.is_some() {
        requests.push(format!("/spec/workload/manifests/{position}/operation"));
    }
    if let Some(refresh) = &pull_work.refresh {
        requests.push(annotation(REFRESH));
        requests.extend(refresh.hydrate.as_ref().map(|_| annotation(names::HYDRATE)));
    }
    operations.extend(requests.iter().map(|path| json!({"op": "remove", "path": path})));
    if let Some(id) = &pull_work.payload {
        let path = annotation(names::PAYLOAD);
        operations.push(json!({"op": "add", "path": path, "value": replace_finalizers(id, finalizers)}));
    }
    Some(operations.into())
}
