//! The AddOnTemplates of GitOpsClusters. The name of a template contains the hash of its content, which has some tens of
//! kilobytes, and every reconciliation needs the name, so the most recent names are cached.

use super::pair;
use crate::argocd_agent as agent;
use crate::argocd_agent::{DesiredAgent, Images};
use crate::reconcile::Context;
use ocm::object_ref::ObjectRef;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The maximum number of cached names.
const KNOWN: usize = 64;

/// The inputs of a template, and its name.
struct Known {
    place: ObjectRef,
    wanted: DesiredAgent,
    images: Images,
    argocd: String,
    name: String,
}

thread_local! {
    static NAMES: RefCell<VecDeque<Known>> = const { RefCell::new(VecDeque::new()) };
}

/// Returns the AddOnTemplate of a GitOpsCluster.
pub(super) fn template(place: &ObjectRef, wanted: &DesiredAgent, context: &Context<'_>) -> Value {
    agent::template(pair(place), wanted, &context.settings.images, &context.settings.argocd)
}

/// Returns the name of the AddOnTemplate of a GitOpsCluster.
pub(super) fn template_name(place: &ObjectRef, wanted: &DesiredAgent, context: &Context<'_>) -> String {
    let settings = context.settings;
    let is_it = |known: &&Known| {
        known.place == *place
            && known.wanted == *wanted
            && known.images == settings.images
            && known.argocd == settings.argocd
    };
    let known = NAMES.with_borrow(|names| names.iter().find(is_it).map(|known| known.name.clone()));
    known.unwrap_or_else(|| {
        let template = template(place, wanted, context);
        let name = template["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        NAMES.with_borrow_mut(|names| {
            names.truncate(KNOWN - 1);
            names.push_front(Known {
                place: place.clone(),
                wanted: wanted.clone(),
                images: settings.images.clone(),
                argocd: settings.argocd.clone(),
                name: name.clone(),
            });
        });
        name
    })
}
