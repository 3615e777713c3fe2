//! Random events in random order: no cluster loses its agent without certainty (checked by the simulated OCM), no component sees
//! a certificate of a CA that it does not trust, all writes come to rest, and in the end all of our objects are deleted.

use super::*;
use crate::simulation::fake_ocm::agent_request;
use fastrand::Rng;
use k8s_openapi::ByteString;
use pki::{Certificate, key_of};
use serde::Deserialize;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The number of histories; `cargo xtask soak` runs others.
const SEEDS: u64 = 200;
const STEPS: usize = 50;
/// The maximum number of writes of one object for one event: create, patch and status, for each of two GitOpsClusters that it
/// passes between.
const WRITES: usize = 4;
/// More reconciliations than any event needs.
const MANY: usize = 5_000;
/// The kinds that the controller, or OCM for it, writes. Their watches may be late, so that it decides without its last writes.
const WRITTEN: [Kind; 14] = [
    Kind::AddOnConfigs,
    Kind::AddOns,
    Kind::AgentWorks,
    Kind::Blocklist,
    Kind::Bundle,
    Kind::Certificates,
    Kind::IssuedCertificates,
    Kind::ManagementAddOn,
    Kind::OwnDecisions,
    Kind::OwnPlacements,
    Kind::Requests,
    Kind::Secrets,
    Kind::Templates,
    Kind::TokenKey,
];

/// Returns a GitOpsCluster and its Placement.
fn gitops(number: usize) -> (ObjectRef, &'static str, ObjectRef) {
    let (object_ref, placement) = [
        (all(), "some"),
        (of_argocd("other"), "others"),
        (ObjectRef::new("team", "far"), "some"),
    ][number]
        .clone();
    let chosen = ObjectRef::new(&object_ref.namespace, placement);
    (object_ref, placement, chosen)
}

fn subset(rng: &mut Rng) -> Vec<&'static str> {
    CLUSTERS.into_iter().filter(|_| rng.bool()).collect()
}

/// Applies a random event.
fn happen(hub: &mut Hub, rng: &mut Rng) -> String {
    let (object_ref, placement, chosen) = gitops(rng.usize(..3));
    let cluster = CLUSTERS[rng.usize(..3)];
    match rng.usize(..23) {
        0..4 => {
            let clusters = subset(rng);
            hub.select_for(&chosen, &clusters);
            format!("{chosen} selects {clusters:?}")
        }
        4 => {
            let clusters = subset(rng);
            hub.decide(&chosen, 1, rng.bool().then_some(&clusters));
            format!("{chosen} decides {clusters:?} or nothing")
        }
        5 => {
            let says = rng.bool().then(|| rng.usize(..4));
            hub.set_selected_count(&chosen, says);
            format!("{chosen} says {says:?}")
        }
        6..9 => {
            let availability = Availability::ALL[rng.usize(..3)];
            hub.availability(cluster, availability);
            format!("{cluster} is {availability:?}")
        }
        9 => {
            hub.leave(cluster);
            format!("{cluster} leaves")
        }
        10..13 => {
            let revoked: &[&str] = if rng.usize(..4) == 0 { &[cluster] } else { &[] };
            let is_going = hub
                .objects
                .get(&object_ref)
                .is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string());
            if !is_going {
                hub.write(&object_ref, &bringing(placement, revoked));
            }
            format!("{object_ref} asks, without {revoked:?}")
        }
        13 => {
            if hub.objects.contains_key(&object_ref) {
                hub.delete(&object_ref);
            }
            format!("{object_ref} is deleted")
        }
        14 => {
            if hub.objects.contains_key(&object_ref) {
                hub.write(&object_ref, &invalid(placement));
            }
            format!("{object_ref} requests agents of an unknown mode")
        }
        15 => {
            let is_open = rng.usize(..3) > 0;
            hub.open(is_open);
            format!("open {is_open}")
        }
        16 => {
            let user = format!("system:open-cluster-management:{cluster}:agent1");
            let group = format!("system:open-cluster-management:{cluster}");
            let subject = format!("/CN={}", names::user(cluster));
            let request = agent_request((&user, &group), cluster, &subject, rng.bool());
            let name = format!("csr-{}", rng.u8(..4));
            hub.put(Kind::Requests, &ObjectRef::new("", &name), Some(request));
            format!("{name} of {cluster}")
        }
        17 => {
            let kinds = [Kind::Bundle, Kind::AgentWorks, Kind::AddOnConfigs];
            let kind = kinds[rng.usize(..3)];
            let existing: Vec<_> = hub.kept(kind).into_iter().map(|(at, _)| at.clone()).collect();
            if let Some(object_ref) = existing.first() {
                hub.put(kind, object_ref, None);
            }
            format!("another client deletes {kind:?}")
        }
        18 => {
            let hours = [1, 25, 24 * 8][rng.usize(..3)];
            let at = hub.now + SignedDuration::from_hours(hours);
            hub.advance_to(at);
            format!("{hours} hours pass")
        }
        19 => {
            let is_stuck = rng.bool();
            hub.stuck(cluster, is_stuck);
            format!("{cluster} applies no works: {is_stuck}")
        }
        20 => {
            hub.restart_controller();
            "another controller starts".to_owned()
        }
        _ => happen_before_watches(hub, rng),
    }
}

/// Applies a random event, which some watches report later.
fn happen_before_watches(hub: &mut Hub, rng: &mut Rng) -> String {
    let kinds: Vec<_> = WRITTEN.into_iter().filter(|_| rng.bool()).collect();
    hub.delay(kinds.iter().copied());
    let meanwhile = happen(hub, rng);
    rng.shuffle(&mut hub.affected);
    for _ in 0..rng.usize(..40) {
        hub.settle_steps(1);
    }
    hub.catch_up();
    hub.ocm.writes.clear();
    format!("{meanwhile}, before the watches of {kinds:?} report it")
}

#[test]
fn random_events_remove_no_agent_in_doubt_and_converge() {
    let seeds = testing::seeds(SEEDS);
    let next = AtomicU64::new(seeds.start);
    let run = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            run_history(seed);
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(run);
        }
    });
}

fn run_history(seed: u64) {
    let (mut rng, mut happened) = (Rng::with_seed(seed), Vec::new());
    let went_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| live(&mut rng, &mut happened)));
    assert!(
        went_well.is_ok(),
        "{happened:#?}\nseed {seed} failed: repeat it with {}={seed} cargo test -p controller --lib random_events",
        testing::SEEDS
    );
}

impl Hub {
    /// Reconciles so many requests of the workqueue, and checks after each that all used certificates are trusted.
    fn settle_with_care(&mut self, looks: usize) {
        let mut checked = None;
        for _ in 0..looks {
            if self.affected.is_empty() {
                return;
            }
            self.settle_steps(1);
            // Without a write, the last result is still valid.
            if checked != Some(self.versions) {
                checked = Some(self.versions);
                self.is_trusted();
            }
        }
        assert!(looks < MANY, "it goes on and on");
    }

    /// Lets some time pass, until nothing is written any more. Requests are reconciled every ten seconds until they have a certificate. In
    /// that time another GitOpsCluster may take over their cluster, so that they get one in the next round.
    fn come_to_rest(&mut self) {
        let is_at_rest = |_| self.advance_to(self.now + SignedDuration::from_secs(11)).is_empty();
        assert!((0..ROUNDS).any(is_at_rest), "it goes on and on");
    }

    /// Panics if a certificate is in use whose issuer is not trusted by its peer.
    fn is_trusted(&mut self) {
        if self.cache.certificate(names::CA_SECRET).is_none() {
            // The CA is deleted, and its certificates are no longer in use.
            for object_ref in self.object_refs(Kind::Requests) {
                self.put(Kind::Requests, &object_ref, None);
            }
            return;
        }
        let now = self.now;
        let is_of = |leaf: &Certificate, all: &[Certificate]| {
            leaf.not_after < now || all.iter().any(|authority| leaf.is_issued_by(authority))
        };
        let leaf = |name: &str| {
            self.cache
                .certificate(name)
                .and_then(|secret| secret.certificates.first())
        };
        let (principal, proxy) = (leaf(names::PRINCIPAL_TLS), leaf(names::RESOURCE_PROXY_TLS));
        let ca = &self.ca().certificates;
        for (object_ref, request) in self.kept(Kind::Requests) {
            let Ok(text) = ByteString::deserialize(&request["status"]["certificate"]) else {
                continue;
            };
            for agent in Certificate::read_all(&text.0).unwrap_or_default() {
                assert!(
                    is_of(&agent, ca),
                    "the principal does not know the agent of {object_ref}"
                );
            }
        }
        // Clusters of an invalid spec stay as they are, and what belongs to a released agent is deleted next.
        let keeps_up = |object: &Value, cluster: &str| {
            let owner = &object["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"];
            let mut all = GitOpsClusterRef::with_agents(&self.cache).map(|(gitops, _)| gitops);
            all.find(|gitops| *owner == gitops.object_ref.to_string())
                .is_some_and(|gitops| !gitops.has_released_agent(cluster))
        };
        for (name, secret) in &self.secrets {
            if !keeps_up(secret, name.strip_prefix("cluster-").unwrap_or(name)) {
                continue;
            }
            let Ok(config) = ByteString::deserialize(&secret["data"]["config"]) else {
                continue;
            };
            let text: Value = serde_json::from_slice(&config.0).expect("JSON");
            let pem = |part: &str| {
                ByteString::deserialize(&text["tlsClientConfig"][part])
                    .expect("base64")
                    .0
            };
            let certificates = |part| Certificate::read_all(&pem(part)).expect("certificates");
            let (known, trusted) = (certificates("certData"), certificates("caData"));
            key_of(&pem("keyData")).expect("a key");
            assert!(is_of(&known[0], ca), "the resource proxy does not know {name}");
            assert!(
                proxy.is_none_or(|proxy| is_of(proxy, &trusted)),
                "{name} does not know the resource proxy"
            );
        }
        for (object_ref, work) in self.kept(Kind::AgentWorks) {
            if !keeps_up(work, &object_ref.namespace) {
                continue;
            }
            let is_applied = work["status"]["conditions"][0]["observedGeneration"] == work["metadata"]["generation"];
            let manifests = work["spec"]["workload"]["manifests"].as_array().into_iter().flatten();
            for text in manifests.filter_map(|manifest| manifest["data"].get("ca.crt")) {
                let text = ByteString::deserialize(text).expect("base64");
                let trusted = Certificate::read_all(&text.0).expect("certificates");
                let knows = principal.is_none_or(|principal| is_of(principal, &trusted));
                assert!(knows || !is_applied, "{object_ref} does not know the principal");
            }
        }
    }

    fn object_refs(&self, kind: Kind) -> Vec<ObjectRef> {
        self.kept(kind).into_iter().map(|(at, _)| at.clone()).collect()
    }
}

/// The maximum number of rounds of ten seconds after an event until nothing is written.
const ROUNDS: usize = 4;

fn live(rng: &mut Rng, happened: &mut Vec<String>) {
    let mut hub = Hub::with_all_agents();
    if rng.bool() {
        // The next CA certificate is due soon.
        let at = hub.now + days(renewal::DUE - 2);
        hub.advance_to(at);
    }
    for _ in 0..STEPS {
        hub.ocm.writes.clear();
        happened.push(happen(&mut hub, rng));
        rng.shuffle(&mut hub.affected);
        // The next event may happen before everything is written.
        if rng.usize(..4) == 0 {
            happened.push("meanwhile".to_owned());
            hub.settle_with_care(rng.usize(..6));
            continue;
        }
        hub.settle_with_care(MANY);
        let writes = &hub.ocm.writes;
        let most = writes.iter().max_by_key(|(_, times)| **times);
        assert!(most.is_none_or(|(_, times)| *times <= WRITES), "{most:?}");
        hub.come_to_rest();
        let rest = hub.reconcile_all();
        assert_eq!(rest, [""; 0], "at rest nothing is written");
    }
    all_is_well(&mut hub);
    happened.push("all is well".to_owned());
    hub.reconcile_all();
    assert_eq!(hub.with_addon(), CLUSTERS);
    hub.is_at_rest();
    // The certificates and keys stay for a principal.
    hub.delete_principal();
    for number in 0..3 {
        hub.delete(&gitops(number).0);
    }
    rng.shuffle(&mut hub.affected);
    hub.settle_with_care(MANY);
    hub.reconcile_all();
    happened.push("all is deleted".to_owned());
    assert!(hub.objects.is_empty(), "{:?}", hub.objects);
    let mut left = hub.ours();
    left.retain(|name| !name.ends_with(names::BLOCKLIST));
    assert_eq!(left, [""; 0]);
}

/// Makes every cluster reachable, with its own GitOpsCluster.
fn all_is_well(hub: &mut Hub) {
    for cluster in CLUSTERS {
        hub.availability(cluster, Availability::Available);
        hub.stuck(cluster, false);
    }
    hub.open(true);
    // A GitOpsCluster in deletion may wait for another one to be valid. It is created again after that.
    for _ in 0..2 {
        for (number, clusters) in [&["eu1"][..], &["eu2"], &["eu3"]].into_iter().enumerate() {
            let (object_ref, placement, chosen) = gitops(number);
            hub.settle_with_care(MANY);
            hub.select_for(&chosen, clusters);
            hub.write(&object_ref, &bringing(placement, &[]));
            hub.settle_with_care(MANY);
        }
        hub.come_to_rest();
    }
}
