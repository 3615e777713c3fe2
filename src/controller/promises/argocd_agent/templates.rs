//! The templates of what runs on the clusters of a GitOpsCluster. Their names say their content, which is some tens of kilobytes, and
//! are asked for at every look: those of last are remembered.

use super::pair;
use crate::agent::{self, Images, Wanted};
use crate::controller::promises::Moment;
use crate::controller::seen::Place;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::VecDeque;

/// How many names are remembered.
const KNOWN: usize = 64;

/// All that a template is made of, and its name.
struct Known {
    place: Place,
    wanted: Wanted,
    images: Images,
    argocd: String,
    name: String,
}

thread_local! {
    static NAMES: RefCell<VecDeque<Known>> = const { RefCell::new(VecDeque::new()) };
}

/// What runs on the clusters of a GitOpsCluster.
pub(super) fn template(place: &Place, wanted: &Wanted, moment: &Moment<'_>) -> Value {
    agent::template(pair(place), wanted, &moment.settings.images, &moment.settings.argocd)
}

/// The name of that.
pub(super) fn template_name(place: &Place, wanted: &Wanted, moment: &Moment<'_>) -> String {
    let settings = moment.settings;
    let is_it = |known: &&Known| {
        known.place == *place
            && known.wanted == *wanted
            && known.images == settings.images
            && known.argocd == settings.argocd
    };
    let known = NAMES.with_borrow(|names| names.iter().find(is_it).map(|known| known.name.clone()));
    known.unwrap_or_else(|| {
        let template = template(place, wanted, moment);
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
