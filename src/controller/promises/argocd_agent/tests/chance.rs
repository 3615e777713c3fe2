//! Whatever happens in whatever order: no cluster loses its agent without certainty, which the simulated OCM sees to, nobody meets a
//! certificate of an authority that it does not know, all comes to rest, and in the end all of ours goes.

use super::*;
use crate::controller::promises::simulation::ocm::agent_request;
use crate::pki::{Certificate, ClientConfig};
use fastrand::Rng;
use k8s_openapi::ByteString;
use serde::Deserialize;

const CLUSTERS: [&str; 3] = ["eu1", "eu2", "eu3"];
/// As many as take a few seconds.
const SEEDS: u64 = 3;
const STEPS: usize = 50;
/// How often one object is written at most for one event: what is made, patched, and has a status, for each of two that it
/// passes between.
const WRITES: usize = 4;
/// More looks than any event needs.
const MANY: usize = 5_000;

/// The GitOpsClusters, and their Placements.
fn gitops(number: usize) -> (Place, &'static str, Place) {
    let (place, placement) = [
        (all(), "some"),
        (of_argocd("other"), "others"),
        (Place::new("team", "far"), "some"),
    ][number]
        .clone();
    let chosen = Place::new(&place.namespace, placement);
    (place, placement, chosen)
}

fn subset(rng: &mut Rng) -> Vec<&'static str> {
    CLUSTERS.into_iter().filter(|_| rng.bool()).collect()
}

/// Something happens.
fn happen(hub: &mut Hub, rng: &mut Rng) -> String {
    let (place, placement, chosen) = gitops(rng.usize(..3));
    let cluster = CLUSTERS[rng.usize(..3)];
    match rng.usize(..21) {
        0..4 => {
            let clusters = subset(rng);
            hub.choose(&chosen, &clusters);
            format!("{chosen} selects {clusters:?}")
        }
        4 => {
            let clusters = subset(rng);
            hub.decide_of(&chosen, rng.bool().then_some(&clusters));
            format!("{chosen} decides {clusters:?} or nothing")
        }
        5 => {
            let says = rng.bool().then(|| rng.usize(..4));
            hub.say_of(&chosen, says);
            format!("{chosen} says {says:?}")
        }
        6..9 => {
            let reach = [Reach::Heard, Reach::Silent, Reach::Unwell][rng.usize(..3)];
            hub.join(cluster, reach);
            format!("{cluster} is {reach:?}")
        }
        9 => {
            hub.put(Kind::Clusters, &Place::new("", cluster), None);
            hub.play();
            format!("{cluster} leaves")
        }
        10..13 => {
            let revoked: &[&str] = if rng.usize(..4) == 0 { &[cluster] } else { &[] };
            let is_going = hub
                .objects
                .get(&place)
                .is_some_and(|it| it["metadata"]["deletionTimestamp"].is_string());
            if !is_going {
                hub.write(&place, &bringing(placement, revoked));
            }
            format!("{place} asks, without {revoked:?}")
        }
        13 => {
            if hub.objects.contains_key(&place) {
                hub.delete(&place);
            }
            format!("{place} goes")
        }
        14 => {
            if hub.objects.contains_key(&place) {
                let unclear = json!({
                    "placementRef": {"name": placement},
                    "gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true, "mode": "unheard-of"}},
                });
                hub.write(&place, &acm(&unclear));
            }
            format!("{place} asks nobody knows how")
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
            hub.put(Kind::Kept(Kept::Requests), &Place::new("", &name), Some(request));
            format!("{name} of {cluster}")
        }
        17 => {
            let kinds = [Kept::Bundle, Kept::Works, Kept::AddOnConfigs];
            let kind = kinds[rng.usize(..3)];
            let there: Vec<_> = hub.kept(kind).into_iter().map(|(place, _)| place.clone()).collect();
            if let Some(place) = there.first() {
                hub.put(Kind::Kept(kind), place, None);
            }
            format!("somebody deletes {kind:?}")
        }
        18 => {
            let hours = [1, 25, 24 * 8][rng.usize(..3)];
            let at = hub.now + SignedDuration::from_hours(hours);
            hub.pass_to(at);
            format!("{hours} hours pass")
        }
        19 => {
            let is_stuck = rng.bool();
            hub.stuck(cluster, is_stuck);
            format!("{cluster} applies no works: {is_stuck}")
        }
        _ => {
            hub.start_anew();
            "another controller starts".to_owned()
        }
    }
}

#[test]
fn whatever_happens_no_agent_goes_without_certainty_and_all_comes_to_rest() {
    for seed in 1..=SEEDS {
        let (mut rng, mut happened) = (Rng::with_seed(seed), Vec::new());
        let went_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| live(&mut rng, &mut happened)));
        assert!(went_well.is_ok(), "seed {seed}: {happened:#?}");
    }
}

impl Hub {
    /// Looks at so many of what is touched, and after each at who trusts whom.
    fn settle_with_care(&mut self, looks: usize) {
        for _ in 0..looks {
            if self.touched.is_empty() {
                return;
            }
            self.settle_for(1);
            self.is_trusted();
        }
        assert!(looks < MANY, "it goes on and on");
    }

    /// Goes off if anything is in use whose issuer is not trusted where it is shown.
    fn is_trusted(&mut self) {
        if self.index.certificate(names::CA_SECRET).is_none() {
            // What it has issued ends with it.
            for place in self.places(Kept::Requests) {
                self.put(Kind::Kept(Kept::Requests), &place, None);
            }
            return;
        }
        let now = self.now;
        let is_of = |leaf: &Certificate, all: &[Certificate]| {
            leaf.not_after < now || all.iter().any(|authority| leaf.is_issued_by(authority))
        };
        let leaf = |name: &str| self.index.certificate(name).and_then(|it| it.certificates.first());
        let (principal, proxy) = (leaf(names::PRINCIPAL_TLS), leaf(names::RESOURCE_PROXY_TLS));
        let ca = &self.ca().certificates;
        for (place, request) in self.kept(Kept::Requests) {
            let Ok(text) = ByteString::deserialize(&request["status"]["certificate"]) else {
                continue;
            };
            for agent in Certificate::read_all(&text.0).unwrap_or_default() {
                assert!(is_of(&agent, ca), "the principal does not know the agent of {place}");
            }
        }
        // What is not asked for in words that are understood stays as it is.
        let keeps_up = |it: &Value| {
            let owner = &it["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"];
            asking(&self.index, "argocd").any(|(place, ..)| *owner == place.to_string())
        };
        for (name, secret) in self.secrets.iter().filter(|(_, it)| keeps_up(it)) {
            let Ok(config) = ByteString::deserialize(&secret["data"]["config"]) else {
                continue;
            };
            let known = ClientConfig::read(&config.0).expect("a configuration");
            assert!(is_of(&known.certificate, ca), "the resource proxy does not know {name}");
            let text: Value = serde_json::from_slice(&config.0).expect("JSON");
            let trusted = ByteString::deserialize(&text["tlsClientConfig"]["caData"]).expect("authorities");
            let trusted = Certificate::read_all(&trusted.0).expect("certificates");
            assert!(
                proxy.is_none_or(|proxy| is_of(proxy, &trusted)),
                "{name} does not know the resource proxy"
            );
        }
        for (place, work) in self.kept(Kept::Works).into_iter().filter(|(_, it)| keeps_up(it)) {
            let is_applied = work["status"]["conditions"][0]["observedGeneration"] == work["metadata"]["generation"];
            let manifests = work["spec"]["workload"]["manifests"].as_array().into_iter().flatten();
            for text in manifests.filter_map(|it| it["data"].get("ca.crt")) {
                let text = ByteString::deserialize(text).expect("base64");
                let trusted = Certificate::read_all(&text.0).expect("certificates");
                let knows = principal.is_none_or(|principal| is_of(principal, &trusted));
                assert!(knows || !is_applied, "{place} does not know the principal");
            }
        }
    }

    fn places(&self, kind: Kept) -> Vec<Place> {
        self.kept(kind).into_iter().map(|(place, _)| place.clone()).collect()
    }
}

fn live(rng: &mut Rng, happened: &mut Vec<String>) {
    let mut hub = Hub::with_all_agents();
    if rng.bool() {
        // The next authority is soon due.
        let at = hub.now + days(renewal::DUE - 2);
        hub.pass_to(at);
    }
    for _ in 0..STEPS {
        hub.ocm.as_mut().expect("it plays").writes.clear();
        happened.push(happen(&mut hub, rng));
        rng.shuffle(&mut hub.touched);
        // The next thing may happen before all is written.
        if rng.usize(..4) == 0 {
            happened.push("meanwhile".to_owned());
            hub.settle_with_care(rng.usize(..6));
            continue;
        }
        hub.settle_with_care(MANY);
        let writes = &hub.ocm.as_ref().expect("it plays").writes;
        let most = writes.iter().max_by_key(|(_, times)| **times);
        assert!(most.is_none_or(|(_, times)| *times <= WRITES), "{most:?}");
        // Requests whose cluster was not selected before are looked at every ten seconds.
        hub.pass_to(hub.now + SignedDuration::from_secs(11));
        let rest = hub.look_at_everything();
        assert_eq!(rest, [""; 0], "at rest nothing is written");
    }
    all_is_well(&mut hub);
    happened.push("all is well".to_owned());
    hub.look_at_everything();
    assert_eq!(hub.with_addon(), CLUSTERS);
    hub.is_at_rest();
    for number in 0..3 {
        hub.delete(&gitops(number).0);
    }
    rng.shuffle(&mut hub.touched);
    hub.settle_with_care(MANY);
    hub.look_at_everything();
    happened.push("all is deleted".to_owned());
    assert!(hub.objects.is_empty(), "{:?}", hub.objects);
    let mut left = hub.ours();
    left.retain(|name| !name.ends_with(names::BLOCKLIST));
    assert_eq!(left, [""; 0]);
}

/// Every cluster is heard, and has a GitOpsCluster of its own.
fn all_is_well(hub: &mut Hub) {
    for cluster in CLUSTERS {
        hub.join(cluster, Reach::Heard);
        hub.stuck(cluster, false);
    }
    hub.open(true);
    for (number, clusters) in [&["eu1"][..], &["eu2"], &["eu3"]].into_iter().enumerate() {
        let (place, placement, chosen) = gitops(number);
        hub.settle_with_care(MANY);
        hub.choose(&chosen, clusters);
        hub.write(&place, &bringing(placement, &[]));
        hub.settle_with_care(MANY);
    }
}
