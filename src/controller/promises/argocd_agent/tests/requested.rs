//! Requests for certificates, and what becomes of who is revoked.

use super::*;
use crate::controller::promises::simulation::ocm::agent_request;
use crate::pki::Certificate;
use k8s_openapi::ByteString;
use serde::Deserialize;

fn user(cluster: &str) -> String {
    format!("system:open-cluster-management:{cluster}:agent1")
}

fn own(cluster: &str) -> String {
    format!("/CN={}", names::user(cluster))
}

/// A request of somebody in the group of a cluster.
struct Asked {
    user: String,
    group: String,
    subject: String,
}

fn asked(cluster: &str) -> Asked {
    Asked {
        user: user(cluster),
        group: format!("system:open-cluster-management:{cluster}"),
        subject: own(cluster),
    }
}

impl Hub {
    fn ask_for(&mut self, name: &str, asked: &Asked, is_approved: bool) {
        let cluster = asked.user.split(':').nth(2).unwrap_or_default();
        let request = agent_request((&asked.user, &asked.group), cluster, &asked.subject, is_approved);
        self.put(Kind::Kept(Kept::Requests), &Place::new("", name), Some(request));
    }

    /// What has become of a request: its conditions, and its certificate.
    fn became(&self, name: &str) -> (String, Option<Certificate>) {
        let status = &self
            .get(Kind::Kept(Kept::Requests), &Place::new("", name))
            .expect("it is there")["status"];
        let kinds = status["conditions"].as_array().into_iter().flatten();
        let kinds: Vec<_> = kinds.filter_map(|it| it["type"].as_str()).collect();
        let certificate = ByteString::deserialize(&status["certificate"])
            .ok()
            .filter(|it| !it.0.is_empty());
        let certificate = certificate.map(|text| Certificate::read_all(&text.0).expect("it can be read").remove(0));
        (kinds.join(" "), certificate)
    }
}

#[test]
fn an_agent_gets_the_certificate_of_its_own_cluster_once() {
    for is_approved in [false, true] {
        let mut hub = Hub::with_all_agents();
        hub.ask_for("csr", &asked("eu1"), is_approved);
        let written = hub.settle();
        let (conditions, certificate) = hub.became("csr");
        assert_eq!(conditions, "Approved");
        let certificate = certificate.expect("it is signed");
        assert_eq!(*certificate.common_name, *names::user("eu1"));
        assert!(certificate.is_client && !certificate.serves && !certificate.is_authority);
        assert_eq!(certificate.not_after, hub.now + days(1));
        assert!(certificate.is_issued_by(&hub.ca().certificates[0]));
        let signed = written.iter().filter(|write| write.starts_with("status Certificate"));
        assert_eq!(signed.count(), 1, "{written:#?}");
        hub.is_at_rest();
        assert_eq!(hub.events, [""; 0]);
    }
}

#[test]
fn whoever_asks_for_anything_else_gets_nothing_and_is_told() {
    let with = |change: fn(&mut Asked)| {
        let mut asked = asked("eu1");
        change(&mut asked);
        asked
    };
    let all = [
        ("the name of another cluster", with(|it| it.subject = own("eu2"))),
        ("another name", with(|it| it.subject = "/CN=admin".to_owned())),
        (
            "a group of administrators",
            with(|it| it.subject = format!("/O=system:masters{}", own("eu1"))),
        ),
        (
            "the group of another cluster",
            with(|it| it.subject = format!("/O={}{}", names::groups("eu2")[0], own("eu1"))),
        ),
        (
            "two names",
            with(|it| it.subject = format!("{}{}", own("eu2"), own("eu1"))),
        ),
        ("a unit besides", with(|it| it.subject = format!("/OU=x{}", own("eu1")))),
        ("somebody else", with(|it| it.user = "kubernetes-admin".to_owned())),
        ("the agent of another cluster", with(|it| it.user = user("eu2"))),
        (
            "somebody who is not in the group",
            with(|it| it.group = "system:authenticated".to_owned()),
        ),
        ("nothing", with(|it| it.subject = String::new())),
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
            assert_eq!(hub.events.len(), 1, "{what}: {:?}", hub.events);
            hub.is_at_rest();
            assert_eq!(hub.events.len(), 1, "{what}");
        }
    }
}

#[test]
fn an_agent_whose_cluster_is_not_selected_yet_waits() {
    for is_approved in [false, true] {
        let mut hub = Hub::with_all_agents();
        let before = if is_approved { "Approved" } else { "" };
        hub.ask_for("csr", &asked("eu3"), is_approved);
        hub.settle();
        assert_eq!(hub.became("csr"), (before.to_owned(), None));
        hub.is_at_rest();
        hub.choose(&some(), &["eu1", "eu2", "eu3"]);
        hub.settle();
        let at = hub.now + SignedDuration::from_secs(11);
        hub.pass_to(at);
        let (conditions, certificate) = hub.became("csr");
        assert_eq!((&*conditions, certificate.is_some()), ("Approved", true));
    }
}

#[test]
fn without_an_authority_nothing_is_signed_until_there_is_one() {
    let mut hub = Hub::with_all_agents();
    let broken = json!({"data": {"tls.key": "bm9uZQ=="}});
    let place = of_argocd(names::CA_SECRET);
    let whole = hub.get(Kind::Certificates, &place).cloned();
    hub.edit(Kind::Certificates, &place, &broken);
    hub.ask_for("csr", &asked("eu1"), true);
    hub.settle();
    assert_eq!(hub.became("csr"), ("Approved".to_owned(), None));
    hub.put(Kind::Certificates, &place, whole);
    let at = hub.now + SignedDuration::from_secs(11);
    hub.pass_to(at);
    assert!(hub.became("csr").1.is_some());
}

#[test]
fn a_revoked_agent_is_refused_before_what_it_had_is_forgotten_and_until_it_ends() {
    let mut hub = Hub::with_all_agents();
    hub.ask_for("csr", &asked("eu1"), true);
    hub.settle();
    let fingerprint = hub
        .became("csr")
        .1
        .expect("it is signed")
        .fingerprint()
        .to_ascii_uppercase();
    // The hub forgets requests within the hour.
    hub.put(Kind::Kept(Kept::Requests), &Place::new("", "csr"), None);
    hub.settle();
    assert!(certificate_until(&hub.index, "eu1").is_some());
    hub.write(&all(), &bringing("some", &["eu1"]));
    let written = hub.settle();
    let refused = position(&written, "create ConfigMap argocd/argocd-agent-tls-blocklist");
    let forgotten = position(&written, "delete ManifestWork eu1/argocd-agent-ca-mw");
    assert!(refused < forgotten, "{written:#?}");
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu2"], vec!["eu1"]));
    hub.is_at_rest();
    let is_listed = |hub: &Hub| {
        let there = hub.get(Kind::Kept(Kept::Blocklist), &of_argocd(names::BLOCKLIST));
        there.is_some_and(|there| there["data"][&fingerprint].is_string())
    };
    // Somebody else's entry stays for good.
    let theirs = json!({"data": {"AA": "stolen"}});
    hub.edit(Kind::Kept(Kept::Blocklist), &of_argocd(names::BLOCKLIST), &theirs);
    let end = hub.now + days(1);
    for (at, is_refused) in [
        (end - SignedDuration::from_secs(1), true),
        (end + SignedDuration::from_secs(1), false),
    ] {
        hub.pass_to(at);
        hub.look_at_everything();
        assert_eq!(is_listed(&hub), is_refused);
    }
    let list = hub.get(Kind::Kept(Kept::Blocklist), &of_argocd(names::BLOCKLIST));
    assert_eq!(list.map(|it| &it["data"]), Some(&json!({"AA": "stolen"})));
    hub.is_at_rest();
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
}
