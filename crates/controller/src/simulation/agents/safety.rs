//! Tests of the order of writes, and of objects that must not be overwritten or deleted. Each names the harm that it prevents.

use super::*;
use std::cell::Cell;

/// Returns the metadata of an object that is being deleted, which a finalizer delays.
fn being_deleted() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-06-01T12:00:00Z", "finalizers": ["example.com/wait"]}})
}

impl Hub {
    /// Reconciles all that is queued, requests of this kind last, and calls `check` after each.
    fn settle_last(&mut self, last: Kind, check: impl Fn(&Self)) {
        while !self.affected.is_empty() || self.tick() {
            self.affected.sort_by_key(|(kind, _)| *kind != last);
            self.settle_steps(1);
            check(self);
        }
    }

    /// Changes the address at which agents reach the principal, or removes it.
    fn serve_principal_at(&mut self, ingress: &Value) {
        let principal = of_argocd(names::PRINCIPAL_DEPLOYMENTS[0]);
        let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
        self.edit(Kind::Services, &principal, &status);
        self.settle();
    }

    /// Returns true if the cluster has a ManifestWork with an ArgoCD resource.
    fn has_argocd(&self, cluster: &str) -> bool {
        let works = self.kept(Kind::AgentWorks);
        works
            .iter()
            .any(|(at, _)| *at.namespace == *cluster && *at.name != *names::CA_WORK)
    }
}

/// Otherwise the tokens of other programs with that key become invalid.
#[test]
fn deletion_keeps_a_token_key_of_others() {
    let mut hub = Hub::new();
    let (kind, key) = (Kind::TokenKey, of_argocd(names::JWT_SECRET));
    hub.put(kind, &key, Some(json!({"metadata": {}, "data": {"jwt.key": ""}})));
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    hub.delete_principal();
    hub.delete(&all());
    hub.settle();
    assert!(!hub.objects.contains_key(&all()));
    assert!(hub.get(kind, &key).is_some());
}

/// Otherwise OCM reads the entry, and uninstalls the add-on from the clusters that are not decided yet.
#[test]
fn add_on_gets_an_entry_only_after_all_clusters_are_decided() {
    let mut hub = Hub::new();
    hub.write(&all(), &bringing("some", &[]));
    while hub.kept(Kind::ManagementAddOn).is_empty() {
        // The ClusterManagementAddOn is always reconciled first.
        hub.affected.push((Kind::Namespace, ObjectRef::new("", "argocd")));
        hub.settle_steps(2);
    }
    let decisions = hub.kept(Kind::OwnDecisions);
    assert_eq!(
        decisions[0].1["status"]["decisions"].as_array().map(Vec::len),
        Some(2),
        "{decisions:?}"
    );
}

/// Otherwise OCM deletes the Argo CD of each cluster when the address of a load balancer is lost.
#[test]
fn works_stay_while_the_address_of_the_principal_is_unknown() {
    let mut hub = Hub::with_all_agents();
    hub.write(&all(), &handover::operated("some"));
    hub.settle();
    hub.serve_principal_at(&json!([]));
    hub.reconcile_all();
    assert_eq!(["eu1", "eu2"].map(|cluster| hub.has_argocd(cluster)), [true; 2]);
}

/// Otherwise users of that namespace take the label from the configuration, and set registries and the address of another principal.
#[test]
fn configuration_of_another_namespace_moves_to_argo_cds_without_a_gap() {
    let mut hub = Hub::new();
    let far = ObjectRef::new("team", "far");
    hub.open(true);
    hub.select_for(&ObjectRef::new("team", "some"), &["eu3"]);
    hub.write(&far, &bringing("some", &[]));
    hub.settle();
    let configs = |hub: &Hub| {
        let all = hub.kept(Kind::AddOnConfigs).into_iter().map(|(at, _)| at.to_string());
        let spec = &hub.get(Kind::ManagementAddOn, &management()).expect("the add-on")["spec"];
        let installed = &spec["installStrategy"]["placements"][0]["configs"][1];
        let text = |key: &str| installed[key].as_str().unwrap_or_default().to_owned();
        (
            all.collect::<Vec<_>>(),
            format!("{}/{}", text("namespace"), text("name")),
        )
    };
    let (all, installed) = configs(&hub);
    assert_eq!(all, [&*installed]);
    assert!(installed.starts_with("argocd/"), "{installed}");
    // As an earlier version has left it.
    let [(at, config)] = hub.kept(Kind::AddOnConfigs)[..] else {
        panic!("one configuration")
    };
    let (at, config, old) = (at.clone(), config.clone(), ObjectRef::new("team", "far-argocd-agent"));
    let mut addon = hub
        .get(Kind::ManagementAddOn, &management())
        .expect("the add-on")
        .clone();
    let reference = json!({"namespace": "team", "name": "far-argocd-agent"});
    merge(
        &mut addon["spec"]["installStrategy"]["placements"][0]["configs"][1],
        &reference,
    );
    addon["spec"]["supportedConfigs"][1]["defaultConfig"] = reference;
    hub.put(Kind::AddOnConfigs, &at, None);
    hub.put(Kind::AddOnConfigs, &old, Some(config));
    hub.put(Kind::ManagementAddOn, &management(), Some(addon));
    hub.serve_principal_at(&json!([]));
    let before = (
        vec!["team/far-argocd-agent".to_owned()],
        "team/far-argocd-agent".to_owned(),
    );
    assert_eq!(configs(&hub), before, "the content of another is not known");
    hub.serve_principal_at(&json!([{"hostname": "hub.example.com"}]));
    assert_eq!(configs(&hub), (vec![installed.clone()], installed));
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu3"], vec![]));
    hub.is_at_rest();
}

/// Otherwise running agents lose the CA that they trust.
#[test]
fn shared_objects_stay_until_all_add_ons_are_deleted() {
    let mut hub = Hub::with_all_agents();
    hub.delete_principal();
    hub.delete(&all());
    hub.put(Kind::ManagementAddOn, &management(), None);
    let argocd = ObjectRef::new("", "argocd");
    assert_eq!(hub.next_writes(&HUB, &argocd), []);
    for cluster in ["eu1", "eu2"] {
        hub.put(Kind::AddOns, &addon_of(cluster), None);
    }
    let writes = hub.next_writes(&HUB, &argocd);
    let deleted: Vec<_> = writes
        .iter()
        .map(|write| (write.verb.name(), &write.object_ref))
        .collect();
    assert_eq!(deleted, [("delete", &of_argocd(names::CA_BUNDLE))]);
}

/// Otherwise ApplicationSets delete the Applications of the cluster while its agent is connected, which deletes what they deployed.
#[test]
fn secret_stays_until_the_agent_is_uninstalled() {
    let leaves: [fn(&mut Hub); 3] = [
        |hub| hub.select(&["eu1"]),
        |hub| hub.delete(&all()),
        |hub| hub.edit(Kind::Clusters, &ObjectRef::new("", "eu2"), &being_deleted()),
    ];
    for leave in leaves {
        let mut hub = Hub::with_all_agents();
        leave(&mut hub);
        // The Secret is reconciled before OCM learns anything.
        hub.settle_last(Kind::GitOpsClusters, |hub| {
            let has_works = hub.kept(Kind::AgentWorks).iter().any(|(at, _)| *at.namespace == *"eu2");
            let is_installed = has_works || hub.with_addon().contains(&"eu2");
            assert!(
                hub.secrets.contains_key("cluster-eu2") || !is_installed,
                "the Secret is gone"
            );
            // OCM's work with the agent exists longer than the add-on.
            let writes = hub.next_writes(&AGENT_SECRETS, &ObjectRef::new("", "eu2"));
            let mut deletions = writes.iter().filter(|write| write.verb.name() == "delete");
            let waits_for = |write: &Write| write.unless_exists.clone().map(|(_, work)| work.to_string());
            let addon_work = "eu2/addon-argocd-agent-addon-deploy-0";
            assert!(
                deletions.all(|write| write.waits && waits_for(write).as_deref() == Some(addon_work)),
                "{writes:?}"
            );
        });
        assert!(!hub.secrets.contains_key("cluster-eu2"));
    }
}

/// Otherwise the agent of a stolen cluster stays connected for as long as it delays its removal.
#[test]
fn secret_of_a_revoked_cluster_does_not_wait_for_its_agent() {
    let mut hub = Hub::with_all_agents();
    hub.write(&all(), &bringing("some", &["eu2"]));
    let was_first = Cell::new(false);
    hub.settle_last(Kind::GitOpsClusters, |hub| {
        let is_first = !hub.secrets.contains_key("cluster-eu2") && hub.with_addon().contains(&"eu2");
        was_first.set(was_first.get() || is_first);
    });
    assert!(was_first.get(), "the Secret has waited");
}

/// Otherwise the ArgoCD of the cluster stays forever: its finalizer needs the operator.
#[test]
fn operator_stays_until_its_argocd_is_deleted() {
    let mut hub = Hub::with_all_agents();
    let mut spec = bringing("some", &[]);
    spec["agent"]["operator"] = json!({"enabled": true});
    hub.write(&all(), &spec);
    hub.settle();
    assert!(hub.has_argocd("eu2"));
    hub.select(&["eu1"]);
    hub.settle_last(Kind::Clusters, |hub| {
        assert!(
            hub.with_addon().contains(&"eu2") || !hub.has_argocd("eu2"),
            "the operator is gone"
        );
    });
    assert_eq!((hub.has_argocd("eu2"), hub.taken()), (false, vec!["eu2"]));
}

/// Otherwise the ManagedCluster stays forever: OCM deletes the add-on there before any work, and installs it again while it is decided.
#[test]
fn cluster_in_deletion_has_no_add_on() {
    let mut hub = Hub::with_all_agents();
    hub.write(&all(), &invalid("some"));
    hub.edit(Kind::Clusters, &ObjectRef::new("", "eu2"), &being_deleted());
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1"], "it is not served");
    let mut hub = Hub::with_all_agents();
    let mut spec = bringing("some", &[]);
    spec["agent"]["operator"] = json!({"enabled": true});
    hub.write(&all(), &spec);
    hub.settle();
    let work = handover::argocd("eu2", "all");
    hub.edit(
        Kind::AgentWorks,
        &work,
        &json!({"metadata": {"finalizers": ["example.com/wait"]}}),
    );
    hub.availability("eu2", Availability::Unknown);
    hub.edit(Kind::Clusters, &ObjectRef::new("", "eu2"), &being_deleted());
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1"]);
    let work = hub.get(Kind::AgentWorks, &work).expect("the agent is gone");
    assert!(work["metadata"]["deletionTimestamp"].is_string());
}

/// Otherwise two controllers with different caches delete the agents of each other.
#[test]
fn only_the_controller_that_owns_a_gitopscluster_deletes_its_leftovers() {
    let mut hub = Hub::with_all_agents();
    hub.write(&all(), &acm(&json!({})));
    hub.put(Kind::ManagementAddOn, &management(), None);
    for cluster in ["eu1", "eu2"] {
        hub.put(Kind::AddOns, &addon_of(cluster), None);
    }
    hub.serve("gitops");
    assert_eq!(hub.next_writes(&ADDON, &all()), []);
    hub.serve("argocd");
    assert_ne!(hub.next_writes(&ADDON, &all()), []);
}

/// Otherwise OCM deletes the objects that both works have, and creates them again.
#[test]
fn old_work_stays_until_the_cluster_has_applied_the_new_one() {
    let mut hub = Hub::with_all_agents();
    hub.write(&all(), &handover::operated("some"));
    hub.settle();
    hub.add_other(&["eu1", "eu2"], &handover::operated("others"));
    hub.stuck("eu1", true);
    hub.select(&["eu2"]);
    hub.settle();
    let works =
        |hub: &Hub| ["all", "other"].map(|name| hub.get(Kind::AgentWorks, &handover::argocd("eu1", name)).is_some());
    assert_eq!(works(&hub), [true, true]);
    hub.stuck("eu1", false);
    hub.settle();
    assert_eq!(works(&hub), [false, true]);
}

/// Otherwise uninstalled agents can still connect, and no object is left that tells the controller to block them.
#[test]
fn finalizer_stays_until_the_certificates_are_blocked() {
    let mut hub = Hub::with_all_agents();
    hub.add_other(&["eu3"], &bringing("others", &[]));
    hub.issued("one", "eu1").expect("it is signed");
    hub.delete(&all());
    hub.settle_last(Kind::Namespace, |hub| {
        assert!(
            hub.objects.contains_key(&all()) || !hub.blocked().is_empty(),
            "it is not blocked"
        );
    });
    assert!(!hub.objects.contains_key(&all()));
}

/// Otherwise an agent is readmitted by another GitOpsCluster that selects it, or by waiting for a day.
#[test]
fn another_gitopscluster_readmits_no_revoked_agent() {
    let mut hub = Hub::with_all_agents();
    hub.issued("one", "eu1").expect("it is signed");
    hub.add_other(&["eu1"], &bringing("others", &[]));
    hub.write(&all(), &bringing("some", &["eu1"]));
    hub.settle();
    for name in ["two", "three"] {
        assert_eq!(hub.issued(name, "eu1"), None);
        assert_eq!(hub.why_refused(name), "AgentRevoked");
        hub.advance_to(hub.now + days(2));
    }
}

/// Otherwise an add-on whose deletion hangs delays all others.
#[test]
fn add_on_that_is_being_deleted_delays_no_installation() {
    let mut hub = Hub::new();
    install_theirs(&mut hub, &[]);
    hub.leave("eu3");
    hub.put(Kind::AddOns, &addon_of("eu3"), Some(being_deleted()));
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
}

impl Hub {
    fn record(&self) -> &Value {
        let (kind, record) = (Kind::IssuedCertificates, of_argocd("argocd-agent-issued-eu1"));
        self.get(kind, &record).expect("it is there")
    }
}

/// Otherwise the record of an agent that is never offline grows until the API server refuses it.
#[test]
fn signing_removes_expired_certificates_from_the_record() {
    let mut hub = Hub::with_all_agents();
    for name in ["one", "two", "three"] {
        hub.issued(name, "eu1").expect("it is signed");
        hub.advance_to(hub.now + SignedDuration::from_hours(13));
    }
    assert_eq!(hub.record()["data"].as_object().map(serde_json::Map::len), Some(2));
}

/// Otherwise the API server refuses the ConfigMap, and with it every later revocation.
#[test]
fn blocklist_stays_below_the_limit_of_an_object() {
    let mut hub = Hub::with_all_agents();
    let text = "x".repeat(900 * 1024);
    hub.put(
        Kind::Blocklist,
        &of_argocd(names::BLOCKLIST),
        Some(json!({"metadata": {}, "data": {"AA": text}})),
    );
    hub.issued("one", "eu1").expect("it is signed");
    hub.write(&all(), &bringing("some", &["eu1"]));
    hub.settle();
    assert_eq!(hub.blocked(), ["AA"]);
}

/// Otherwise agents refuse the principal at its new address.
#[test]
fn new_address_of_the_principal_is_in_its_certificate() {
    let mut hub = Hub::with_all_agents();
    hub.serve_principal_at(&json!([{"hostname": "moved.example.com"}]));
    let principal = hub
        .cache
        .certificate(names::PRINCIPAL_TLS)
        .and_then(|secret| secret.leaf());
    let names = &principal.expect("a certificate").names;
    assert!(names.contains("moved.example.com"), "{names:?}");
}

/// Otherwise the certificate is renewed without end, or the principal has none.
#[test]
fn every_form_of_the_principals_address_gets_one_certificate() {
    for address in [
        "2001:0DB8::1",
        "::ffff:192.0.2.1",
        "hub.example.com:443",
        "https://hub.example.com",
    ] {
        let mut hub = Hub::new();
        let mut spec = bringing("some", &[]);
        spec["gitopsAddon"]["argoCDAgent"]["serverAddress"] = json!(address);
        hub.write(&all(), &spec);
        hub.settle();
        assert!(hub.cache.certificate(names::PRINCIPAL_TLS).is_some(), "{address}");
        assert_eq!(hub.ocm.restarts, 1, "{address}");
        hub.is_at_rest();
    }
}

/// Otherwise the agent has a certificate that no record names, so it can never be blocked.
#[test]
fn signs_nothing_into_a_record_that_is_being_deleted() {
    let mut hub = Hub::with_all_agents();
    hub.issued("one", "eu1").expect("it is signed");
    let (kind, record) = (Kind::IssuedCertificates, of_argocd("argocd-agent-issued-eu1"));
    hub.edit(kind, &record, &being_deleted());
    hub.settle();
    assert_eq!(hub.issued("two", "eu1"), None);
    assert_eq!(hub.record()["data"].as_object().map(serde_json::Map::len), Some(1));
    hub.put(kind, &record, None);
    hub.settle();
    assert!(hub.became("two").1.is_some());
}

/// Otherwise the API server refuses the second of two writes, each time.
#[test]
fn object_is_written_before_its_status() {
    let mut hub = Hub::with_all_agents();
    let decision = hub.kept(Kind::OwnDecisions)[0].0.clone();
    let both = json!({
        "metadata": {"labels": {"cluster.open-cluster-management.io/decision-group-index": "7"}},
        "status": {"decisions": [{"clusterName": "eu1", "reason": "?"}, {"clusterName": "eu2", "reason": "?"}]},
    });
    hub.edit(Kind::OwnDecisions, &decision, &both);
    // The simulation refuses two patches of one version.
    hub.settle();
    hub.is_at_rest();
    let (_, decision) = hub.kept(Kind::OwnDecisions)[0];
    assert_eq!(decision["status"]["decisions"][0]["reason"], "", "{decision}");
}
