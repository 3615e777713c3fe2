//! The works, whose they are, and when they fare otherwise though nothing happens.

use super::{Noticed, Touched, remove};
use crate::controller::seen::{Place, Standing, Work, WorkKind};
use crate::generate::names::WorkName;
use crate::pull::Carried;
use crate::pull::work::may_carry;
use crate::status::Verdict;
use crate::tracking::Tracking;
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The works on the hub.
#[derive(Debug)]
pub(super) struct Works {
    /// Argo CD's own namespace.
    argocd: Arc<str>,
    tracking: Tracking,
    all: BTreeMap<(WorkKind, Place), Work>,
    /// The works that Argo CD has applied for each Application.
    applied: HashMap<Place, BTreeSet<(WorkKind, Place)>>,
    /// The works that OCM has made of each ManifestWorkReplicaSet, by `NAMESPACE.NAME`.
    made: HashMap<Box<str>, BTreeSet<Place>>,
    /// The works that claim to carry each Application.
    claiming: HashMap<Place, BTreeSet<Place>>,
    /// The works that have an Application in them or claim to, by their names.
    with_application: HashMap<Arc<str>, BTreeSet<Place>>,
    /// When works fare otherwise, though nothing happens.
    foreseen: BTreeSet<(Timestamp, WorkKind, Place)>,
    /// How many works fare so, in the order of [`Verdict::ALL`].
    verdicts: [usize; Verdict::ALL.len()],
}

impl Works {
    pub(super) fn new(argocd: &str) -> Self {
        Self {
            argocd: argocd.into(),
            tracking: Tracking::configured(|_| None),
            all: BTreeMap::new(),
            applied: HashMap::new(),
            made: HashMap::new(),
            claiming: HashMap::new(),
            with_application: HashMap::new(),
            foreseen: BTreeSet::new(),
            verdicts: [0; Verdict::ALL.len()],
        }
    }

    /// The works of an Application: those that Argo CD has applied, and those that OCM has made of them.
    pub(super) fn of(&self, application: &Place) -> impl Iterator<Item = (WorkKind, &Place, &Work)> {
        let applied = self.applied.get(application).into_iter().flatten();
        applied.flat_map(|(kind, place)| {
            let made = (*kind == WorkKind::Set)
                .then(|| self.made.get(set_name(place).as_str()))
                .flatten();
            let made = made.into_iter().flatten().map(|place| (WorkKind::Work, place));
            let all = std::iter::once((*kind, place)).chain(made);
            all.filter_map(|(kind, place)| Some((kind, place, self.get(kind, place)?)))
        })
    }

    /// The works that claim to carry an Application.
    pub(super) fn claiming(&self, application: &Place) -> impl Iterator<Item = (&Place, &Carried)> {
        self.carried(self.claiming.get(application))
    }

    /// The works of this name that have an Application in them or claim to.
    pub(super) fn with_application(&self, name: &str) -> impl Iterator<Item = (&Place, &Carried)> {
        self.carried(self.with_application.get(name))
    }

    fn carried<'w>(&'w self, places: Option<&'w BTreeSet<Place>>) -> impl Iterator<Item = (&'w Place, &'w Carried)> {
        let places = places.into_iter().flatten();
        places.filter_map(|place| Some((place, self.get(WorkKind::Work, place)?.carried.as_deref()?)))
    }

    /// A work.
    pub(super) fn get(&self, kind: WorkKind, place: &Place) -> Option<&Work> {
        self.all.get(&(kind, place.clone()))
    }

    /// How Argo CD tracks.
    pub(super) fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    /// How many works fare so.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.verdicts[verdict as usize]
    }

    /// When works next fare otherwise, though nothing happens.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.foreseen.first().map(|(at, ..)| *at)
    }

    /// Those of a kind that are not among all of it.
    pub(super) fn missing(&self, kind: WorkKind, all: &HashSet<Place>) -> Vec<Place> {
        let known = self.all.keys().filter(|(other, _)| *other == kind);
        super::missing(known.map(|(_, place)| place), all)
    }

    /// Lets it be this late.
    pub(super) fn tick(&mut self, now: Timestamp) -> Vec<Touched> {
        let mut all = Vec::new();
        while self.next().is_some_and(|next| next <= now) {
            let Some((_, kind, place)) = self.foreseen.pop_first() else {
                break;
            };
            let Some(mut work) = self.all.get(&(kind, place.clone())).cloned() else {
                continue;
            };
            while work.later.first().is_some_and(|(at, _)| *at <= now) {
                work.standing = work.later.remove(0).1;
            }
            for mut each in self.put(kind, &place, Some(work)) {
                // Nothing has happened that Argo CD could have noticed.
                each.noticed = Noticed::No;
                all.push(each);
            }
        }
        all
    }

    /// A work is so, or is gone.
    pub(super) fn put(&mut self, kind: WorkKind, place: &Place, work: Option<Work>) -> Vec<Touched> {
        let key = (kind, place.clone());
        let before = self.all.remove(&key);
        let mut was = None;
        if let Some(before) = &before {
            let count = &mut self.verdicts[before.standing.verdict as usize];
            *count = count.saturating_sub(1);
            was = self.unlink(kind, place, before);
        }
        let noticed = noticed(before.as_ref(), work.as_ref());
        let same = before.as_ref().zip(work.as_ref()).is_some_and(|(before, work)| {
            before.standing == work.standing && before.parts == work.parts && work.carried.is_none()
        });
        let mut is = None;
        if let Some(work) = work {
            let count = &mut self.verdicts[work.standing.verdict as usize];
            *count = count.saturating_add(1);
            is = self.link(kind, place, &work);
            self.all.insert(key, work);
        }
        if same && was == is {
            return Vec::new();
        }
        let concerned: BTreeSet<_> = was.into_iter().chain(is).collect();
        let touched = |application| Touched {
            noticed,
            ..Touched::application(application)
        };
        concerned.into_iter().map(touched).collect()
    }

    /// Notes whose a work is.
    fn link(&mut self, kind: WorkKind, place: &Place, work: &Work) -> Option<Place> {
        if let Some((at, _)) = work.later.first() {
            self.foreseen.insert((*at, kind, place.clone()));
        }
        if let Some(set) = &work.set {
            if !is_made_of(set, &place.name) {
                return None;
            }
            self.made.entry(set.clone()).or_default().insert(place.clone());
            return self.owner_of_set(set);
        }
        if work.carried.is_some() {
            let named = self.with_application.entry(Arc::clone(&place.name)).or_default();
            named.insert(place.clone());
        }
        if let Some(application) = claimed(place, work) {
            let claiming = self.claiming.entry(application.clone()).or_default();
            claiming.insert(place.clone());
            return Some(application);
        }
        let application = self.owner(kind, place, work)?;
        let entry = self.applied.entry(application.clone()).or_default();
        entry.insert((kind, place.clone()));
        Some(application)
    }

    fn unlink(&mut self, kind: WorkKind, place: &Place, work: &Work) -> Option<Place> {
        if let Some((at, _)) = work.later.first() {
            self.foreseen.remove(&(*at, kind, place.clone()));
        }
        if let Some(set) = &work.set {
            let owner = self.owner_of_set(set);
            remove(&mut self.made, set, place);
            return owner.filter(|_| is_made_of(set, &place.name));
        }
        if work.carried.is_some() {
            remove(&mut self.with_application, &place.name, place);
        }
        if let Some(application) = claimed(place, work) {
            remove(&mut self.claiming, &application, place);
            return Some(application);
        }
        let application = self.owner(kind, place, work)?;
        remove(&mut self.applied, &application, &(kind, place.clone()));
        Some(application)
    }

    /// Returns the Application that Argo CD has applied a work for. Its marks count only on a work of a name that this Application's
    /// works have: a cluster's agent may write the marks of its works, and can neither create nor rename works.
    fn owner(&self, kind: WorkKind, place: &Place, work: &Work) -> Option<Place> {
        let instance = work.application(&self.tracking, kind, place)?;
        let name: WorkName = instance.parse().ok()?;
        let is_its = match kind {
            WorkKind::Work => name.is_of(&place.name),
            WorkKind::Set => name.is_of_set(&place.name, &place.namespace),
        };
        if !is_its {
            return None;
        }
        Some(match instance.split_once('_') {
            Some((namespace, name)) => Place::new(namespace, name),
            None => Place {
                namespace: Arc::clone(&self.argocd),
                name: instance.into(),
            },
        })
    }

    fn owner_of_set(&self, set: &str) -> Option<Place> {
        let (namespace, name) = set.split_once('.')?;
        let place = Place::new(namespace, name);
        let work = self.get(WorkKind::Set, &place)?;
        self.owner(WorkKind::Set, &place, work)
    }

    /// Whose works are for a managed cluster.
    pub(super) fn on(&self, cluster: &Arc<str>) -> BTreeSet<Place> {
        let first = Place::first_of(cluster);
        let works = self.all.range((WorkKind::Work, first)..);
        let works = works.take_while(|((kind, place), _)| *kind == WorkKind::Work && place.namespace == *cluster);
        let owner = |((kind, place), work): (&(WorkKind, Place), &Work)| match &work.set {
            Some(set) => self.owner_of_set(set).filter(|_| is_made_of(set, &place.name)),
            None => claimed(place, work).or_else(|| self.owner(*kind, place, work)),
        };
        works.filter_map(owner).collect()
    }

    /// Whose each work is may be another now.
    pub(super) fn track(&mut self, tracking: Tracking) -> Vec<Touched> {
        if self.tracking == tracking {
            return Vec::new();
        }
        let mut concerned: BTreeSet<Place> = self.applied.drain().map(|(application, _)| application).collect();
        self.tracking = tracking;
        self.made.clear();
        self.claiming.clear();
        self.with_application.clear();
        self.foreseen.clear();
        let places: Vec<_> = self.all.keys().cloned().collect();
        for (kind, place) in places {
            let work = self.all.get(&(kind, place.clone())).cloned();
            concerned.extend(work.and_then(|work| self.link(kind, &place, &work)));
        }
        concerned.into_iter().map(Touched::application).collect()
    }
}

/// Returns the Application that a work of the basic pull model claims to carry, if it has a name that such works have.
fn claimed(place: &Place, work: &Work) -> Option<Place> {
    let (namespace, name) = work.carried.as_ref()?.claim.as_ref()?;
    may_carry(&place.name, name).then(|| Place::new(namespace, name))
}

/// Returns true if OCM gives works of this ManifestWorkReplicaSet, called `NAMESPACE.NAME`, this name: that of the set, from OCM 1.3
/// on with five random characters, before which the API server cuts it to 58.
fn is_made_of(set: &str, work: &str) -> bool {
    const RANDOM: usize = 5;
    const BASE_MAX: usize = 58;
    let Some((_, name)) = set.split_once('.') else {
        return false;
    };
    let generated = || {
        let base = work.get(..work.len().checked_sub(RANDOM)?)?;
        Some(base == name || base.len() == BASE_MAX && name.starts_with(base))
    };
    work == name || generated().unwrap_or_default()
}

fn set_name(place: &Place) -> String {
    format!("{}.{}", place.namespace, place.name)
}

/// What OCM makes of a set is none of Argo CD's objects, and one that is new, or gone, is what it has written itself.
fn noticed(before: Option<&Work>, after: Option<&Work>) -> Noticed {
    let (Some(before), Some(after)) = (before, after.filter(|after| after.set.is_none())) else {
        return Noticed::Nothing;
    };
    let [before, after]: [&Standing; 2] = [&before.standing, &after.standing];
    if !before.is_same_in_argo_cd(after) {
        Noticed::Yes
    } else if before.message != after.message {
        Noticed::No
    } else {
        Noticed::Nothing
    }
}
