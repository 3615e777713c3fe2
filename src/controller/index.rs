//! What is on the hub, as the watches tell it, and whom a change concerns. No I/O: every change is a value, and time is one.

use super::seen::{Application, Place, Reach, Standing, Work, WorkKind};
use crate::status::Verdict;
use crate::tracking::Tracking;
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// What a watch tells.
#[derive(Debug)]
pub enum Change {
    /// An Application is so, or is gone.
    Application(Place, Option<Application>),
    /// A work is so, or is gone.
    Work(WorkKind, Place, Option<Work>),
    /// A managed cluster is heard, or not, or is gone.
    Cluster(Arc<str>, Option<Reach>),
    /// Argo CD tracks so.
    Tracking(Tracking),
    /// Whether Argo CD's configuration is there at all.
    ConfigIsThere(bool),
    /// These Applications are all that there are.
    OnlyApplications(HashSet<Place>),
    /// These works are all of their kind.
    OnlyWorks(WorkKind, HashSet<Place>),
    /// These managed clusters are all.
    OnlyClusters(HashSet<Arc<str>>),
}

/// An Application that a change concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Where it is.
    pub application: Place,
    /// What Argo CD makes of the change by itself.
    pub noticed: Noticed,
}

/// What Argo CD makes of a change by itself. It looks at an Application again when the health of one of its objects has another
/// word; when only the message is another it does not (`skipResourceUpdate` in its `controller/cache`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// It shows what it would show if it looked again.
    Nothing,
    /// It looks again, at the whole Application.
    Yes,
    /// It goes on to show what is no longer so.
    No,
}

/// What is on the hub.
#[derive(Debug)]
pub struct Index {
    /// Argo CD's own namespace.
    argocd: Arc<str>,
    tracking: Tracking,
    applications: HashMap<Place, Application>,
    works: BTreeMap<(WorkKind, Place), Work>,
    clusters: HashMap<Arc<str>, Reach>,
    /// The works that Argo CD has applied for each Application.
    applied: HashMap<Place, BTreeSet<(WorkKind, Place)>>,
    /// The works that OCM has made of each ManifestWorkReplicaSet, by `NAMESPACE.NAME`.
    made: HashMap<Box<str>, BTreeSet<Place>>,
    /// When works fare otherwise, though nothing happens.
    foreseen: BTreeSet<(Timestamp, WorkKind, Place)>,
    /// How many works fare so, in the order of [`Verdict::ALL`].
    verdicts: [usize; Verdict::ALL.len()],
}

impl Index {
    /// Nothing yet of the hub whose Argo CD is in this namespace.
    #[must_use]
    pub fn new(argocd: &str) -> Self {
        Self {
            argocd: argocd.into(),
            tracking: Tracking::configured(|_| None),
            applications: HashMap::new(),
            works: BTreeMap::new(),
            clusters: HashMap::new(),
            applied: HashMap::new(),
            made: HashMap::new(),
            foreseen: BTreeSet::new(),
            verdicts: [0; Verdict::ALL.len()],
        }
    }

    /// An Application.
    #[must_use]
    pub fn application(&self, place: &Place) -> Option<&Application> {
        self.applications.get(place)
    }

    /// The works of an Application: those that Argo CD has applied, and those that OCM has made of them.
    pub fn works_of(&self, application: &Place) -> impl Iterator<Item = (WorkKind, &Place, &Work)> {
        let applied = self.applied.get(application).into_iter().flatten();
        applied.flat_map(|(kind, place)| {
            let made = (*kind == WorkKind::Set)
                .then(|| self.made.get(set_name(place).as_str()))
                .flatten();
            let made = made.into_iter().flatten().map(|place| (WorkKind::Work, place));
            let all = std::iter::once((*kind, place)).chain(made);
            all.filter_map(|(kind, place)| Some((kind, place, self.works.get(&(kind, place.clone()))?)))
        })
    }

    /// Whether the hub hears from a managed cluster; one that is not known has not joined.
    #[must_use]
    pub fn reach(&self, cluster: &str) -> Reach {
        self.clusters.get(cluster).copied().unwrap_or(Reach::Heard)
    }

    /// How many works fare so.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts[verdict as usize]
    }

    /// When works next fare otherwise, though nothing happens.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        self.foreseen.first().map(|(at, ..)| *at)
    }

    /// Takes in what a watch tells.
    pub fn apply(&mut self, change: Change) -> Vec<Touched> {
        match change {
            Change::Application(place, application) => {
                match application {
                    Some(application) => self.applications.insert(place.clone(), application),
                    None => self.applications.remove(&place),
                };
                vec![touched(place)]
            }
            Change::Work(kind, place, work) => self.put(kind, &place, work),
            Change::Cluster(cluster, reach) => {
                let before = self.reach(&cluster);
                match reach {
                    Some(reach) => self.clusters.insert(Arc::clone(&cluster), reach),
                    None => self.clusters.remove(&cluster),
                };
                if self.reach(&cluster) == before {
                    return Vec::new();
                }
                self.on(&cluster).into_iter().map(touched).collect()
            }
            Change::Tracking(tracking) => self.track(tracking),
            Change::ConfigIsThere(true) => Vec::new(),
            Change::ConfigIsThere(false) => self.track(Tracking::configured(|_| None)),
            Change::OnlyApplications(all) => {
                let gone = missing(self.applications.keys(), &all).into_iter();
                gone.flat_map(|place| self.apply(Change::Application(place, None)))
                    .collect()
            }
            Change::OnlyWorks(kind, all) => {
                let known = self.works.keys().filter(|(other, _)| *other == kind);
                let gone = missing(known.map(|(_, place)| place), &all).into_iter();
                gone.flat_map(|place| self.put(kind, &place, None)).collect()
            }
            Change::OnlyClusters(all) => {
                let gone = missing(self.clusters.keys(), &all).into_iter();
                gone.flat_map(|name| self.apply(Change::Cluster(name, None))).collect()
            }
        }
    }

    /// Lets it be this late.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Touched> {
        let mut all = Vec::new();
        while self.next().is_some_and(|next| next <= now) {
            let Some((_, kind, place)) = self.foreseen.pop_first() else {
                break;
            };
            let Some(mut work) = self.works.get(&(kind, place.clone())).cloned() else {
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

    fn put(&mut self, kind: WorkKind, place: &Place, work: Option<Work>) -> Vec<Touched> {
        let key = (kind, place.clone());
        let before = self.works.remove(&key);
        let mut concerned = BTreeSet::new();
        if let Some(before) = &before {
            self.verdicts[before.standing.verdict as usize] -= 1;
            concerned.extend(self.unlink(kind, place, before));
        }
        let noticed = noticed(before.as_ref(), work.as_ref());
        let same = before
            .as_ref()
            .zip(work.as_ref())
            .is_some_and(|(before, work)| before.standing == work.standing);
        let was = concerned.clone();
        if let Some(work) = work {
            self.verdicts[work.standing.verdict as usize] += 1;
            concerned.extend(self.link(kind, place, &work));
            self.works.insert(key, work);
        }
        if same && was == concerned {
            return Vec::new();
        }
        let touched = concerned
            .into_iter()
            .map(|application| Touched { application, noticed });
        touched.collect()
    }

    /// Notes whose a work is.
    fn link(&mut self, kind: WorkKind, place: &Place, work: &Work) -> Option<Place> {
        if let Some((at, _)) = work.later.first() {
            self.foreseen.insert((*at, kind, place.clone()));
        }
        if let Some(set) = &work.set {
            self.made.entry(set.clone()).or_default().insert(place.clone());
            return self.owner_of_set(set);
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
            return owner;
        }
        let application = self.owner(kind, place, work)?;
        remove(&mut self.applied, &application, &(kind, place.clone()));
        Some(application)
    }

    fn owner(&self, kind: WorkKind, place: &Place, work: &Work) -> Option<Place> {
        let instance = work.application(&self.tracking, kind, place)?;
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
        let work = self.works.get(&(WorkKind::Set, place.clone()))?;
        self.owner(WorkKind::Set, &place, work)
    }

    /// Whose works are for a managed cluster.
    fn on(&self, cluster: &Arc<str>) -> BTreeSet<Place> {
        let first = Place {
            namespace: Arc::clone(cluster),
            name: "".into(),
        };
        let works = self.works.range((WorkKind::Work, first)..);
        let works = works.take_while(|((kind, place), _)| *kind == WorkKind::Work && place.namespace == *cluster);
        let owner = |((kind, place), work): (&(WorkKind, Place), &Work)| match &work.set {
            Some(set) => self.owner_of_set(set),
            None => self.owner(*kind, place, work),
        };
        works.filter_map(owner).collect()
    }

    /// Whose each work is may be another now.
    fn track(&mut self, tracking: Tracking) -> Vec<Touched> {
        if self.tracking == tracking {
            return Vec::new();
        }
        let mut concerned: BTreeSet<Place> = self.applied.drain().map(|(application, _)| application).collect();
        self.tracking = tracking;
        self.made.clear();
        self.foreseen.clear();
        let places: Vec<_> = self.works.keys().cloned().collect();
        for (kind, place) in places {
            let work = self.works.get(&(kind, place.clone())).cloned();
            concerned.extend(work.and_then(|work| self.link(kind, &place, &work)));
        }
        concerned.into_iter().map(touched).collect()
    }
}

/// Those that are known, and not among all.
fn missing<'k, K: Clone + Eq + Hash + 'k>(known: impl Iterator<Item = &'k K>, all: &HashSet<K>) -> Vec<K> {
    known.filter(|key| !all.contains(*key)).cloned().collect()
}

fn touched(application: Place) -> Touched {
    Touched {
        application,
        noticed: Noticed::Nothing,
    }
}

fn set_name(place: &Place) -> String {
    format!("{}.{}", place.namespace, place.name)
}

fn remove<K: Eq + Hash, V: Ord>(map: &mut HashMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(values) = map.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            map.remove(key);
        }
    }
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::controller::seen::Place;

    /// A time that works are judged at.
    pub(crate) const NOW: &str = "2026-06-01T12:00:00Z";

    pub(crate) fn now() -> Timestamp {
        NOW.parse().expect("a time")
    }

    /// A work with one Deployment, of which the agent says this: the status of `Applied` and of `Healthy`, the message of the one
    /// that is not True, and since when.
    pub(crate) struct Fares<'f>(
        pub(crate) &'static str,
        pub(crate) &'static str,
        pub(crate) &'f str,
        pub(crate) &'static str,
    );

    pub(crate) const WELL: Fares<'_> = Fares("True", "True", "", "2026-06-01T11:00:00Z");
    pub(crate) const BROKEN: Fares<'_> = Fares("True", "False", "no image", "2026-06-01T11:00:00Z");
    pub(crate) const REFUSED: Fares<'_> = Fares("False", "True", "forbidden", "2026-06-01T11:00:00Z");

    pub(crate) fn work(place: &Place, marks: &str, fares: &Fares<'_>) -> Change {
        let Place { namespace, name } = place;
        let Fares(applied, healthy, message, since) = fares;
        let condition = |kind: &str, status: &str| {
            format!(
                r#"{{"type":"{kind}","status":"{status}","message":"{message}","reason":"ConditionRuleEvaluated","lastTransitionTime":"{since}","observedGeneration":1}}"#
            )
        };
        let text = format!(
            r#"{{"kind":"ManifestWork","metadata":{{"name":"{name}","namespace":"{namespace}","generation":1,{marks}}},
            "spec":{{"workload":{{"manifests":[{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web","namespace":"shop"}}}}]}}}},
            "status":{{"conditions":[{}],"resourceStatus":{{"manifests":[{{"resourceMeta":{{"group":"apps","kind":"Deployment","namespace":"shop","name":"web"}},"conditions":[{},{},{}]}}]}}}}}}"#,
            condition("Applied", applied),
            condition("Applied", applied),
            condition("Available", "True"),
            condition("Healthy", healthy),
        );
        let work = Work::read(&text, now()).expect("a work");
        Change::Work(WorkKind::Work, place.clone(), work)
    }

    pub(crate) fn tracked(application: &str, place: &Place) -> String {
        format!(
            r#""annotations":{{"argocd.argoproj.io/tracking-id":"{application}:work.open-cluster-management.io/ManifestWork:{place}"}}"#
        )
    }

    pub(crate) fn of_set(set: &str) -> String {
        format!(r#""labels":{{"work.open-cluster-management.io/manifestworkreplicaset":"{set}"}}"#)
    }

    pub(crate) fn set(place: &Place, application: &str) -> Change {
        let Place { namespace, name } = place;
        let text = format!(
            r#"{{"kind":"ManifestWorkReplicaSet","metadata":{{"name":"{name}","namespace":"{namespace}","generation":1,
            "annotations":{{"argocd.argoproj.io/tracking-id":"{application}:work.open-cluster-management.io/ManifestWorkReplicaSet:{place}"}}}}}}"#
        );
        Change::Work(WorkKind::Set, place.clone(), Work::read(&text, now()).expect("a set"))
    }

    fn names(touched: &[Touched]) -> Vec<String> {
        touched.iter().map(|it| it.application.to_string()).collect()
    }

    fn works(index: &Index, application: &str) -> Vec<String> {
        let (namespace, name) = application.split_once('/').expect("a place");
        let place = Place::new(namespace, name);
        let works = index.works_of(&place);
        works.map(|(_, place, _)| place.to_string()).collect()
    }

    #[test]
    fn a_work_concerns_the_application_that_argo_cd_tracks_it_for() {
        let mut index = Index::new("argocd");
        let (one, other) = (Place::new("eu1", "shop"), Place::new("eu1", "cart"));
        assert_eq!(
            names(&index.apply(work(&one, &tracked("shop", &one), &WELL))),
            ["argocd/shop"]
        );
        assert_eq!(
            names(&index.apply(work(&other, &tracked("team_cart", &other), &WELL))),
            ["team/cart"]
        );
        let copied = Place::new("eu1", "copy");
        assert_eq!(
            names(&index.apply(work(&copied, &tracked("shop", &one), &WELL))),
            [""; 0]
        );
        assert_eq!(works(&index, "argocd/shop"), ["eu1/shop"]);
        assert_eq!(works(&index, "team/cart"), ["eu1/cart"]);
        assert_eq!(index.count(Verdict::Healthy), 3);
        assert_eq!(
            names(&index.apply(Change::Work(WorkKind::Work, one, None))),
            ["argocd/shop"]
        );
        assert_eq!(works(&index, "argocd/shop"), [""; 0]);
    }

    #[test]
    fn what_says_nothing_new_concerns_nobody() {
        let mut index = Index::new("argocd");
        let place = Place::new("eu1", "shop");
        let marks = tracked("shop", &place);
        index.apply(work(&place, &marks, &WELL));
        assert_eq!(index.apply(work(&place, &marks, &WELL)), []);
        let touched = index.apply(work(&place, &tracked("cart", &place), &WELL));
        assert_eq!(
            names(&touched),
            ["argocd/cart", "argocd/shop"],
            "whose it was and whose it is"
        );
    }

    #[test]
    fn works_of_a_set_are_those_of_its_application_whichever_is_seen_first() {
        let (set_place, made) = (Place::new("fleet", "shop-x1"), Place::new("eu1", "shop-x1"));
        let changes = || [set(&set_place, "shop"), work(&made, &of_set("fleet.shop-x1"), &WELL)];
        for reverse in [false, true] {
            let mut index = Index::new("argocd");
            let mut changes: Vec<_> = changes().into();
            if reverse {
                changes.reverse();
            }
            for change in changes {
                index.apply(change);
            }
            assert_eq!(works(&index, "argocd/shop"), ["fleet/shop-x1", "eu1/shop-x1"]);
            let touched = index.apply(work(&made, &of_set("fleet.shop-x1"), &BROKEN));
            assert_eq!(names(&touched), ["argocd/shop"]);
            assert_eq!(touched[0].noticed, Noticed::Nothing, "it is none of Argo CD's objects");
        }
    }

    #[test]
    fn a_cluster_concerns_those_who_have_works_on_it() {
        let mut index = Index::new("argocd");
        for (cluster, name) in [("eu1", "shop"), ("eu1", "cart"), ("eu10", "shop"), ("us1", "mail")] {
            let place = Place::new(cluster, name);
            index.apply(work(&place, &tracked(name, &place), &WELL));
        }
        let silent = |cluster: &str, reach| Change::Cluster(cluster.into(), reach);
        assert_eq!(index.apply(silent("eu1", Some(Reach::Heard))), [], "which is no news");
        let touched = index.apply(silent("eu1", Some(Reach::Silent)));
        assert_eq!(names(&touched), ["argocd/cart", "argocd/shop"]);
        assert_eq!(index.reach("eu1"), Reach::Silent);
        assert_eq!(names(&index.apply(silent("eu1", None))), ["argocd/cart", "argocd/shop"]);
    }

    #[test]
    fn argo_cd_notices_another_word_and_not_another_message() {
        let mut index = Index::new("argocd");
        let place = Place::new("eu1", "shop");
        let marks = tracked("shop", &place);
        let mut noticed = |fares: &Fares<'_>| {
            let touched = index.apply(work(&place, &marks, fares));
            touched.first().map(|it| it.noticed)
        };
        assert_eq!(noticed(&WELL), Some(Noticed::Nothing), "it has made it");
        assert_eq!(noticed(&BROKEN), Some(Noticed::Yes));
        assert_eq!(
            noticed(&Fares("True", "False", "no memory", BROKEN.3)),
            Some(Noticed::No)
        );
        assert_eq!(noticed(&WELL), Some(Noticed::Yes));
    }

    #[test]
    fn a_failure_becomes_one_by_time_alone() {
        let mut index = Index::new("argocd");
        let place = Place::new("eu1", "shop");
        index.apply(work(
            &place,
            &tracked("shop", &place),
            &Fares("False", "True", "no match", "2026-06-01T11:59:50Z"),
        ));
        assert_eq!(
            (index.count(Verdict::Progressing), index.count(Verdict::Degraded)),
            (1, 0)
        );
        let then: Timestamp = "2026-06-01T12:00:50Z".parse().expect("a time");
        assert_eq!(index.next(), Some(then));
        assert_eq!(index.tick(now()), []);
        let touched = index.tick(then);
        assert_eq!(names(&touched), ["argocd/shop"]);
        assert_eq!(touched[0].noticed, Noticed::No);
        assert_eq!(
            (index.count(Verdict::Progressing), index.count(Verdict::Degraded)),
            (0, 1)
        );
        assert_eq!((index.next(), index.tick(then)), (None, Vec::new()));
    }

    #[test]
    fn a_clock_that_jumps_makes_a_failure_of_what_waits_and_the_next_word_is_judged_anew() {
        let mut index = Index::new("argocd");
        let place = Place::new("eu1", "shop");
        let waits = || {
            let fares = Fares("False", "True", "no match", "2026-06-01T11:59:50Z");
            work(&place, &tracked("shop", &place), &fares)
        };
        let [back, ahead]: [Timestamp; 2] =
            ["1970-01-01T00:00:00Z", "2199-01-01T00:00:00Z"].map(|time| time.parse().expect("a time"));
        index.apply(waits());
        let foreseen = index.next();
        assert!(foreseen.is_some());
        assert_eq!((index.tick(back), index.next()), (Vec::new(), foreseen));
        assert_eq!(names(&index.tick(ahead)), ["argocd/shop"]);
        assert_eq!(index.count(Verdict::Degraded), 1);
        for time in [back, now(), ahead] {
            assert_eq!((index.tick(time), index.next()), (Vec::new(), None));
        }
        assert_eq!(names(&index.apply(waits())), ["argocd/shop"]);
        assert_eq!((index.count(Verdict::Progressing), index.next()), (1, foreseen));
    }

    #[test]
    fn what_a_list_does_not_have_is_gone() {
        let mut index = Index::new("argocd");
        let [one, other] = ["one", "other"].map(|name| Place::new("eu1", name));
        for place in [&one, &other] {
            index.apply(work(place, &tracked(&place.name, place), &WELL));
        }
        let touched = index.apply(Change::OnlyWorks(WorkKind::Work, HashSet::from([one])));
        assert_eq!(names(&touched), ["argocd/other"]);
        assert_eq!(index.count(Verdict::Healthy), 1);
    }

    #[test]
    fn when_argo_cd_tracks_otherwise_works_are_somebody_elses() {
        let mut index = Index::new("argocd");
        let place = Place::new("eu1", "shop");
        let marks = format!(
            r#"{},"labels":{{"app.kubernetes.io/instance":"cart"}}"#,
            tracked("shop", &place)
        );
        index.apply(work(&place, &marks, &WELL));
        assert_eq!(works(&index, "argocd/shop"), ["eu1/shop"]);
        let by_label = Tracking::configured(|key| (key == "application.resourceTrackingMethod").then_some("label"));
        let touched = index.apply(Change::Tracking(by_label.clone()));
        assert_eq!(names(&touched), ["argocd/cart", "argocd/shop"]);
        assert_eq!(
            (works(&index, "argocd/shop").len(), works(&index, "argocd/cart").len()),
            (0, 1)
        );
        assert_eq!(index.apply(Change::Tracking(by_label)), []);
        index.apply(Change::ConfigIsThere(false));
        assert_eq!(works(&index, "argocd/shop"), ["eu1/shop"]);
    }
}
