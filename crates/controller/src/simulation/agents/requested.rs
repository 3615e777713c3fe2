//! Tests of CertificateSigningRequests and of revoked agents.

use super::*;
use argocd_agent::reconcile::MAX_CERTIFICATES;
use assignment::certificates::record;
use fake_ocm::agent_request;
use hub_state::model::Object;
use k8s_openapi::ByteString;
use pki::{CLOCK_SKEW, Certificate};
use serde::Deserialize;

fn user(cluster: &str) -> String {
    format!("system:open-cluster-management:{cluster}:agent1")
}

fn own(cluster: &str) -> String {
    format!("/CN={}", names::user(cluster))
}

fn group(cluster: &str) -> String {
    format!("system:open-cluster-management:{cluster}")
}

/// The user, the group and the subject of a request.
type Asked = [String; 3];

fn asked(cluster: &str) -> Asked {
    [user(cluster), group(cluster), own(cluster)]
}

impl Hub {
    fn ask_for(&mut self, name: &str, asked: &Asked, is_approved: bool) {
        let [user, group, subject] = asked;
        let cluster = user.split(':').nth(2).unwrap_or_default();
        let request = agent_request((user, group), cluster, subject, is_approved);
        self.put(Kind::Requests, &ObjectRef::new("", name), Some(request));
    }

    /// Returns the reason of the last condition of a request.
    pub(super) fn why_refused(&self, name: &str) -> &str {
        let request = self.get(Kind::Requests, &ObjectRef::new("", name));
        let conditions = request.expect("it is there")["status"]["conditions"].as_array();
        let last = conditions.and_then(|all| all.last());
        last.and_then(|condition| condition["reason"].as_str())
            .unwrap_or_default()
    }

    pub(super) fn became(&self, name: &str) -> (String, Option<Certificate>) {
        let status = &self
            .get(Kind::Requests, &ObjectRef::new("", name))
            .expect("it is there")["status"];
        let kinds = status["conditions"].as_array().into_iter().flatten();
        let kinds: Vec<_> = kinds.filter_map(|condition| condition["type"].as_str()).collect();
        let certificate = ByteString::deserialize(&status["certificate"])
            .ok()
            .filter(|certificate| !certificate.0.is_empty());
        let certificate = certificate.map(|text| Certificate::read_all(&text.0).expect("it can be read").remove(0));
        (kinds.join(" "), certificate)
    }
}

#[test]
fn signs_a_request_for_the_agents_own_cluster_once() {
    for is_approved in [false, true] {
        let mut hub = Hub::with_all_agents();
        hub.ask_for("csr", &asked("eu1"), is_approved);
        let written = hub.settle();
        let (conditions, certificate) = hub.became("csr");
        assert_eq!(conditions, "Approved");
        let certificate = certificate.expect("it is signed");
        assert_eq!(*certificate.common_name, *names::user("eu1"));
        assert!(!certificate.serves && !certificate.is_authority);
        assert_eq!(certificate.not_after, hub.now + days(1));
        assert!(certificate.is_issued_by(&hub.ca().certificates[0]));
        let signed = written.iter().filter(|write| write.starts_with("status Certificate"));
        assert_eq!(signed.count(), 1, "{written:#?}");
        hub.is_at_rest();
        assert_eq!(hub.events, [""; 0]);
    }
}

#[test]
fn refuses_any_other_request_with_an_event() {
    let of_subject = |subject: String| [user("eu1"), group("eu1"), subject];
    let masters = format!("/O=system:masters{}", own("eu1"));
    let other_group = format!("/O={}{}", names::groups("eu2")[0], own("eu1"));
    let all = [
        ("the name of another cluster", of_subject(own("eu2"))),
        ("another name", of_subject("/CN=admin".to_owned())),
        ("a group of administrators", of_subject(masters)),
        ("the group of another cluster", of_subject(other_group)),
        ("two names", of_subject(own("eu2") + &own("eu1"))),
        ("a unit besides", of_subject(format!("/OU=x{}", own("eu1")))),
        ("nothing", of_subject(String::new())),
        (
            "another user",
            ["kubernetes-admin".to_owned(), group("eu1"), own("eu1")],
        ),
        ("the agent of another cluster", [user("eu2"), group("eu1"), own("eu1")]),
        (
            "a user outside the group",
            [user("eu1"), "system:authenticated".to_owned(), own("eu1")],
        ),
        ("the revoked one", asked("eu2")),
    ];
    for is_approved in [false, true] {
        let mut hub = Hub::with_all_agents();
        for (what, asked) in &all {
            if *what == "the revoked one" {
                hub.write(&super::all(), &bringing("some", &["eu2"]));
                hub.settle();
            }
            hub.events.clear();
            hub.ask_for("csr", asked, is_approved);
            hub.settle();
            let (conditions, certificate) = hub.became("csr");
            let expected = if is_approved { "Approved Failed" } else { "Denied" };
            assert_eq!((&*conditions, certificate), (expected, None), "{what}");
            let reasons: &[&str] = match *what {
                "the revoked one" => &["AgentRevoked"],
                _ => &["NotOfThisCluster", "RequestInvalid"],
            };
            let reason = hub.why_refused("csr");
            assert!(reasons.contains(&reason), "{what}: {reason}");
            assert_eq!(hub.events.len(), 1, "{what}: {:?}", hub.events);
            hub.is_at_rest();
            assert_eq!(hub.events.len(), 1, "{what}");
        }
    }
}

#[test]
fn unreadable_request_is_refused_once_its_cluster_is_known() {
    let mut hub = Hub::with_all_agents();
    for (cluster, became) in [("eu1", "Denied"), ("eu3", "")] {
        let mut request = agent_request((&user(cluster), &group(cluster)), cluster, &own(cluster), false);
        let readable: ByteString = serde_json::from_value(request["spec"]["request"].take()).expect("bytes");
        // PEM may have any text before it, and a signed request is stored as text.
        for unreadable in [b"none".to_vec(), [b"\xff\n", &*readable.0].concat()] {
            request["spec"]["request"] = json!(ByteString(unreadable));
            hub.put(Kind::Requests, &ObjectRef::new("", "csr"), Some(request.clone()));
            hub.settle();
            assert_eq!(hub.became("csr"), (became.to_owned(), None), "{cluster}");
        }
    }
}

#[test]
fn a_refusal_is_one_line_of_bounded_length() {
    for is_approved in [false, true] {
        let mut hub = Hub::with_all_agents();
        let subject = format!("/CN={}", "name\u{1b}".repeat(1000));
        hub.ask_for("csr", &[user("eu1"), group("eu1"), subject], is_approved);
        hub.settle();
        let [event] = &hub.events[..] else {
            panic!("one Event: {:?}", hub.events)
        };
        // An Event holds at most 1,024 bytes.
        assert!(event.len() < 700, "{event}");
        assert!(!event.contains('\u{1b}'), "{event}");
    }
}

#[test]
fn request_of_an_unselected_cluster_waits() {
    for is_approved in [false, true] {
        let mut hub = Hub::with_all_agents();
        let before = if is_approved { "Approved" } else { "" };
        hub.ask_for("csr", &asked("eu3"), is_approved);
        hub.settle();
        assert_eq!(hub.became("csr"), (before.to_owned(), None));
        hub.is_at_rest();
        hub.select(&["eu1", "eu2", "eu3"]);
        hub.settle();
        let at = hub.now + SignedDuration::from_secs(11);
        hub.advance_to(at);
        let (conditions, certificate) = hub.became("csr");
        assert_eq!((&*conditions, certificate.is_some()), ("Approved", true));
    }
}

#[test]
fn requests_wait_until_there_is_a_ca() {
    let mut hub = Hub::with_all_agents();
    let broken = json!({"data": {"tls.key": "bm9uZQ=="}});
    let object_ref = of_argocd(names::CA_SECRET);
    let whole = hub.get(Kind::Certificates, &object_ref).cloned();
    hub.edit(Kind::Certificates, &object_ref, &broken);
    hub.ask_for("csr", &asked("eu1"), true);
    hub.settle();
    assert_eq!(hub.became("csr"), ("Approved".to_owned(), None));
    hub.put(Kind::Certificates, &object_ref, whole);
    let at = hub.now + SignedDuration::from_secs(11);
    hub.advance_to(at);
    assert!(hub.became("csr").1.is_some());
}

#[test]
fn revocation_blocks_every_certificate_of_a_cluster_before_deleting_works() {
    let mut hub = Hub::with_all_agents();
    hub.issued("other", "eu2").expect("it is signed");
    // Both in the same second.
    let issued = ["one", "two"].map(|name| hub.issued(name, "eu1").expect("it is signed"));
    // The hub deletes requests within an hour.
    for name in ["one", "two"] {
        hub.put(Kind::Requests, &ObjectRef::new("", name), None);
    }
    hub.settle();
    assert!(record(&hub.cache, "eu1").and_then(Object::last_expiry).is_some());
    assert_eq!(hub.blocked(), [""; 0]);
    hub.write(&all(), &bringing("some", &["eu1"]));
    let written = hub.settle();
    let refused = position(&written, "create ConfigMap argocd/argocd-agent-tls-blocklist");
    let forgotten = position(&written, "delete ManifestWork eu1/argocd-agent-ca-mw");
    assert!(refused < forgotten, "{written:#?}");
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu2"], vec!["eu1"]));
    assert_eq!(hub.blocked(), sorted(issued.clone()));
    hub.is_at_rest();
    let is_listed = |hub: &Hub| issued.iter().all(|fingerprint| hub.blocked().contains(fingerprint));
    // Entries of others stay forever.
    let theirs = json!({"data": {"AA": "stolen"}});
    hub.edit(Kind::Blocklist, &of_argocd(names::BLOCKLIST), &theirs);
    let end = hub.now + days(1);
    for (at, is_refused) in [
        (end - SignedDuration::from_secs(1), true),
        (end + CLOCK_SKEW, true),
        (end + CLOCK_SKEW + SignedDuration::from_secs(1), false),
    ] {
        hub.advance_to(at);
        hub.reconcile_all();
        assert_eq!(is_listed(&hub), is_refused);
    }
    let list = hub.get(Kind::Blocklist, &of_argocd(names::BLOCKLIST));
    assert_eq!(
        list.map(|config_map| &config_map["data"]),
        Some(&json!({"AA": "stolen"}))
    );
    hub.is_at_rest();
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
}

impl Hub {
    /// Requests a certificate of a cluster's agent with misleading labels, and returns its fingerprint.
    pub(super) fn issued(&mut self, name: &str, cluster: &str) -> Option<String> {
        let mut request = agent_request((&user(cluster), &group(cluster)), cluster, &own(cluster), true);
        request["metadata"]["labels"] = json!({"open-cluster-management.io/cluster-name": "eu3"});
        self.put(Kind::Requests, &ObjectRef::new("", name), Some(request));
        self.settle();
        let certificate = self.became(name).1?;
        Some(certificate.fingerprint().to_ascii_uppercase())
    }

    /// Returns the fingerprints on the blocklist.
    pub(super) fn blocked(&self) -> Vec<String> {
        let list = self.get(Kind::Blocklist, &of_argocd(names::BLOCKLIST));
        let data = list.and_then(|list| list["data"].as_object());
        data.into_iter().flatten().map(|(key, _)| key.clone()).collect()
    }
}

fn sorted<const N: usize>(mut all: [String; N]) -> [String; N] {
    all.sort_unstable();
    all
}

#[test]
fn records_a_certificate_before_it_is_handed_out() {
    let mut hub = Hub::with_all_agents();
    hub.ask_for("csr", &asked("eu1"), true);
    let record = of_argocd("argocd-agent-issued-eu1");
    while hub.get(Kind::IssuedCertificates, &record).is_none() {
        hub.settle_steps(1);
    }
    assert_eq!(hub.became("csr").1, None);
    // A crash between the writes leaves the record, from which the agent gets the same certificate.
    hub.restart_controller();
    hub.settle();
    assert!(hub.became("csr").1.is_some());
    let record = hub.get(Kind::IssuedCertificates, &record).expect("it is there");
    assert_eq!(record["data"].as_object().map(serde_json::Map::len), Some(1));
}

#[test]
fn refuses_more_certificates_than_the_limit_until_one_expires() {
    let mut hub = Hub::with_all_agents();
    for number in 0..MAX_CERTIFICATES {
        assert!(hub.issued(&format!("csr-{number}"), "eu1").is_some(), "{number}");
    }
    hub.events.clear();
    assert_eq!(hub.issued("more", "eu1"), None);
    assert_eq!(hub.became("more").0, "Approved Failed");
    assert_eq!(hub.why_refused("more"), "TooManyCertificates");
    let [message] = &hub.events[..] else {
        panic!("one Event: {:?}", hub.events)
    };
    assert!(message.contains("20 unexpired certificates"), "{message}");
    assert!(hub.issued("other", "eu2").is_some(), "others have their own limit");
    let later = hub.now + days(1) + CLOCK_SKEW;
    hub.advance_to(later);
    assert!(hub.issued("later", "eu1").is_some());
    hub.is_at_rest();
}

#[test]
fn blocks_the_certificates_of_a_cluster_that_leaves() {
    let mut hub = Hub::with_all_agents();
    let [first, second] = [("one", "eu1"), ("two", "eu2")].map(|(name, cluster)| {
        let issued = hub.issued(name, cluster);
        issued.expect("it is signed")
    });
    hub.select(&["eu1"]);
    hub.settle();
    assert_eq!((hub.with_addon(), hub.blocked()), (vec!["eu1"], vec![second.clone()]));
    hub.is_at_rest();
    // The cluster is selected again with another certificate, and the blocked one stays blocked.
    hub.select(&["eu1", "eu2"]);
    hub.settle();
    let third = hub.issued("three", "eu2").expect("it is signed");
    assert_ne!(third, second);
    assert_eq!(hub.blocked(), std::slice::from_ref(&second));
    // Deleting the GitOpsCluster removes all clusters.
    hub.delete(&all());
    hub.settle();
    assert!(hub.objects.is_empty());
    assert_eq!(hub.blocked(), sorted([first, second, third]));
}

#[test]
fn a_gitopscluster_that_does_not_have_a_cluster_cannot_revoke_it() {
    let mut hub = Hub::with_all_agents();
    hub.issued("one", "eu1").expect("it is signed");
    hub.open(true);
    hub.settle();
    let restarts = hub.ocm.restarts;
    let far = ObjectRef::new("team", "far");
    let mut spec = bringing("some", &["eu1"]);
    spec["gitopsAddon"]["argoCDAgent"]["serverAddress"] = json!("attacker.example.com");
    spec["agent"]["images"] = json!({"agent": "attacker:1"});
    for with_placement in [false, true] {
        if with_placement {
            hub.select_for(&ObjectRef::new("team", "some"), &["eu1"]);
        }
        hub.write(&far, &spec);
        hub.finalize(&far, &[&ocm::gitops_cluster::finalizer("argocd")]);
        hub.events.clear();
        hub.settle();
        hub.reconcile_all();
        assert_eq!((hub.with_addon(), hub.blocked()), (vec!["eu1", "eu2"], vec![]));
        assert_eq!(hub.ocm.restarts, restarts);
        let principal = hub.cache.certificate(names::PRINCIPAL_TLS).expect("it is there");
        let names = format!("{:?}", principal.certificates);
        assert!(!names.contains("attacker"), "{names}");
        let templates = format!("{:?}", hub.kept(Kind::Templates));
        assert!(!templates.contains("attacker"), "{templates}");
        let name = format!("csr-{with_placement}");
        assert!(hub.issued(&name, "eu1").is_some(), "its agent still gets certificates");
    }
    let [status, reason, message] = hub.condition_of(&far, "SpecPermitted");
    assert_eq!([status, reason], ["False", "NotPermitted"]);
    for part in [
        "only a GitOpsCluster in the namespace argocd can set the principal's server address, agent.images",
        "has no effect on clusters of other GitOpsClusters, revoke them there: eu1 (of GitOpsCluster argocd/all)",
    ] {
        assert!(message.contains(part), "{message}");
    }
    // The GitOpsCluster that runs the agent can.
    hub.write(&all(), &bringing("some", &["eu1"]));
    hub.settle();
    assert_eq!(hub.blocked().len(), 3);
    assert_eq!(hub.with_addon(), ["eu2"]);
}

#[test]
fn invalid_agent_settings_let_no_other_gitopscluster_revoke_the_agent() {
    let mut hub = Hub::with_all_agents();
    let other = hub.add_other(&["eu1", "eu3"], &bringing("others", &["eu1"]));
    hub.write(&all(), &invalid("some"));
    hub.settle();
    assert_eq!(hub.issued("one", "eu1"), None);
    assert_ne!(hub.why_refused("one"), "AgentRevoked");
    hub.says(
        &other,
        "SpecPermitted",
        ["False", ""],
        "eu1 (of GitOpsCluster argocd/all)",
    );
    hub.is_at_rest();
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    hub.reconcile_all();
    assert!(hub.became("one").1.is_some());
}

#[test]
fn removes_expired_entries_of_the_blocklist_without_other_events() {
    let mut hub = Hub::with_all_agents();
    hub.issued("one", "eu1").expect("it is signed");
    hub.delete(&all());
    hub.settle();
    assert_eq!((hub.blocked().len(), hub.objects.len()), (1, 0));
    hub.advance_to(hub.now + days(1));
    hub.advance_to(hub.now + CLOCK_SKEW);
    assert_eq!(hub.blocked().len(), 1, "the clock of the principal may be behind");
    hub.advance_to(hub.now + SignedDuration::from_secs(1));
    assert_eq!(hub.blocked(), [""; 0]);
}
