//! The AddOnTemplates of GitOpsClusters. The name of a template contains the hash of its content, which has some tens of
//! kilobytes, and every reconciliation needs the name, so the most recent names are cached.

use super::namespace_and_name;
use crate::argocd_agent as agent;
use crate::argocd_agent::{DesiredAgent, Images};
use crate::reconcile::Context;
use ocm::object_ref::ObjectRef;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The maximum number of cached names.
const CACHE_SIZE: usize = 64;

/// The inputs of a template, and its name.
struct CachedName {
    object_ref: ObjectRef,
    desired: DesiredAgent,
    images: Images,
    argocd: String,
    name: String,
}

thread_local! {
    static NAMES: RefCell<VecDeque<CachedName>> = const { RefCell::new(VecDeque::new()) };
}

/// Returns the AddOnTemplate of a GitOpsCluster.
pub(super) fn template(object_ref: &ObjectRef, desired: &DesiredAgent, context: &Context<'_>) -> Value {
    agent::template(
        namespace_and_name(object_ref),
        desired,
        &context.settings.images,
        &context.settings.argocd,
    )
}

/// Returns the name of the AddOnTemplate of a GitOpsCluster.
pub(super) fn template_name(object_ref: &ObjectRef, desired: &DesiredAgent, context: &Context<'_>) -> String {
    let settings = context.settings;
    let is_it = |known: &&CachedName| {
        known.object_ref == *object_ref
            && known.desired == *desired
            && known.images == settings.images
            && known.argocd == settings.argocd
    };
    let known = NAMES.with_borrow(|names| names.iter().find(is_it).map(|known| known.name.clone()));
    known.unwrap_or_else(|| {
        let template = template(object_ref, desired, context);
        let name = template["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        NAMES.with_borrow_mut(|names| {
            names.truncate(CACHE_SIZE - 1);
            names.push_front(CachedName {
                object_ref: object_ref.clone(),
                desired: desired.clone(),
                images: settings.images.clone(),
                argocd: settings.argocd.clone(),
                name: name.clone(),
            });
        });
        name
    })
}
