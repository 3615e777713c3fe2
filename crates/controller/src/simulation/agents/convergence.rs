//! Tests that each change reconciles all objects that depend on it, however indirectly: afterwards, a complete reconciliation writes
//! nothing.

use super::*;

/// Creates a hub with agents of `all` on eu1 and eu2, and of `other` on eu3.
fn with_two() -> Hub {
    let mut hub = Hub::with_all_agents();
    hub.add_other(&["eu3"], &bringing("others", &[]));
    assert_eq!(hub.with_addon(), CLUSTERS);
    hub
}

#[test]
fn deselected_cluster_gets_its_works_back_when_invalid_agents_are_corrected() {
    let mut hub = Hub::with_all_agents();
    hub.write(&all(), &invalid("some"));
    hub.settle();
    hub.select(&["eu1"]);
    hub.settle();
    let work = ObjectRef::new("eu2", names::CA_WORK);
    let has_work = |hub: &Hub| hub.get(Kind::AgentWorks, &work).is_some();
    assert!(!has_work(&hub), "the Placement released it");
    // It cannot be uninstalled any more.
    hub.availability("eu2", Availability::Unavailable);
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert!(has_work(&hub));
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    hub.is_at_rest();
}

#[test]
fn agent_can_be_revoked_by_its_gitopscluster_once_the_previous_one_no_longer_revokes_it() {
    let mut hub = Hub::with_all_agents();
    let (user, group) = (
        "system:open-cluster-management:eu1:agent1",
        "system:open-cluster-management:eu1",
    );
    let request = fake_ocm::agent_request((user, group), "eu1", &format!("/CN={}", names::user("eu1")), true);
    hub.put(Kind::Requests, &ObjectRef::new("", "csr"), Some(request));
    hub.settle();
    let record = of_argocd(&names::issued("eu1"));
    let owner = |hub: &Hub| {
        let record = hub.get(Kind::IssuedCertificates, &record);
        record.expect("it is recorded")["metadata"]["annotations"][hub_state::annotations::OWNER].clone()
    };
    hub.write(&all(), &bringing("some", &["eu1"]));
    hub.select(&["eu2"]);
    hub.add_other(&["eu1"], &bringing("others", &[]));
    assert_eq!(
        (owner(&hub), hub.with_addon()),
        (json!("argocd/all"), vec!["eu1", "eu2"])
    );
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(owner(&hub), "argocd/other");
    hub.is_at_rest();
}

#[test]
fn status_names_a_revoked_cluster_of_another_gitopscluster_until_it_leaves() {
    let mut hub = with_two();
    hub.write(&all(), &bringing("some", &["eu3"]));
    hub.write(&of_argocd("other"), &invalid("others"));
    hub.settle();
    let names_it = |hub: &Hub| {
        hub.objects[&all()]["status"]
            .to_string()
            .contains("eu3 (of GitOpsCluster argocd/other)")
    };
    assert!(names_it(&hub));
    hub.leave("eu3");
    hub.settle();
    assert!(!names_it(&hub));
    hub.is_at_rest();
}

#[test]
fn second_gitopscluster_gets_a_cluster_that_the_first_never_named() {
    let mut hub = Hub::with_all_agents();
    hub.add_other(&["eu3"], &bringing("others", &[]));
    hub.decide(&some(), 1, Some(&["eu1", "eu2", "eu3"]));
    hub.settle();
    hub.set_selected_count(&some(), Some(3));
    hub.settle();
    hub.write(&of_argocd("other"), &invalid("others"));
    hub.select_for(&of_argocd("others"), &["eu2"]);
    hub.settle();
    assert_eq!(hub.with_addon(), CLUSTERS);
    hub.is_at_rest();
}
