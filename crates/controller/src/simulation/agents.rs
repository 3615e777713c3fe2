//! Tests of the argocd-agent controller on a simulated hub that stores its writes, with a simulated OCM.

mod chance;
mod convergence;
mod handover;
mod renewal;
mod requested;
mod safety;
mod secrets;
mod versions;

use super::*;
use assignment::GitOpsClusterRef;
use fake_ocm::{addon_of, bringing, management};
use jiff::SignedDuration;
use std::collections::HashSet;

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

/// Returns the index of the first write with this prefix.
fn position(written: &[String], what: &str) -> usize {
    let index = written.iter().position(|write| write.starts_with(what));
    index.unwrap_or_else(|| panic!("{what} is not among {written:#?}"))
}

impl Hub {
    fn taken(&self) -> Vec<&str> {
        let taken = &self.ocm.taken;
        taken.iter().map(String::as_str).collect()
    }

    /// Lets the GitOpsCluster `other` install agents on these clusters.
    fn add_other(&mut self, clusters: &[&str], spec: &Value) -> ObjectRef {
        let other = of_argocd("other");
        self.select_for(&of_argocd("others"), clusters);
        self.write(&other, spec);
        self.settle();
        other
    }

    fn is_at_rest(&mut self) {
        assert_eq!(self.reconcile_all(), [""; 0], "all is written");
        assert_eq!(self.restart_controller(), [""; 0], "once is enough");
    }

    /// Returns the names of our objects, except the add-ons, which OCM creates.
    fn ours(&self) -> Vec<String> {
        let is_ours = |object: &Value| object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "argocd-ocm-cmp";
        let all = self.existing.iter().filter(|(_, object)| is_ours(object));
        let all = all.map(|((_, object_ref), _)| object_ref.to_string());
        all.chain(self.secrets.keys().cloned()).collect()
    }

    /// Deletes the principal's Deployment.
    fn delete_principal(&mut self) {
        self.put(Kind::Deployments, &of_argocd(names::PRINCIPAL_DEPLOYMENTS[0]), None);
    }
}

#[test]
fn writes_placement_decisions_before_the_add_on() {
    let mut hub = Hub::new();
    hub.write(&all(), &bringing("some", &[]));
    let written = hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    let addon = position(&written, "create ClusterManagementAddOn");
    for before in [
        "create AddOnTemplate",
        "create AddOnDeploymentConfig argocd/all-argocd-agent",
        "create Placement argocd/all-argocd-agent",
        "status PlacementDecision argocd/all-argocd-agent-decision-1",
        "create Secret argocd/argocd-agent-principal-tls",
    ] {
        assert!(position(&written, before) < addon, "{before} is not before");
    }
    let texts: HashSet<_> = written
        .iter()
        .filter(|text| !text.starts_with("status argocd/"))
        .collect();
    let counted = written
        .iter()
        .filter(|text| !text.starts_with("status argocd/"))
        .count();
    assert_eq!(counted, texts.len(), "once each: {written:#?}");
    assert_eq!(hub.ocm.restarts, 1);
    hub.is_at_rest();
    hub.select(&["eu1", "eu2", "eu3"]);
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2", "eu3"]);
    assert_eq!(hub.ocm.restarts, 1, "whoever joins needs no other principal");
    hub.is_at_rest();
}

/// A fleet has thousands of such works, each of which would reconcile the GitOpsCluster with all its clusters.
#[test]
fn reports_about_the_objects_of_an_agents_work_reconcile_nothing() {
    let mut hub = Hub::with_all_agents();
    hub.affected.clear();
    let work = ObjectRef::new("eu1", names::CA_WORK);
    let available = json!({"type": "Available", "status": "True"});
    let mut status = hub.get(Kind::AgentWorks, &work).expect("a work")["status"].clone();
    status["conditions"]
        .as_array_mut()
        .expect("a list")
        .push(available.clone());
    status["resourceStatus"] = json!({"manifests": [{"conditions": [available]}]});
    hub.edit(Kind::AgentWorks, &work, &json!({"status": status}));
    assert_eq!(hub.affected, []);
}

#[test]
fn creates_a_new_template_before_deleting_the_old_one() {
    let mut hub = Hub::with_all_agents();
    let [(before, _)] = hub.kept(Kind::Templates)[..] else {
        panic!("one")
    };
    let before = before.clone();
    let mut spec = bringing("some", &[]);
    spec["agent"]["images"] = json!({"agent": "other:2"});
    hub.write(&all(), &spec);
    let written = hub.settle();
    let [made, switched, gone] = [
        "create AddOnTemplate".to_owned(),
        "patch ClusterManagementAddOn".to_owned(),
        format!("delete AddOnTemplate {before}"),
    ]
    .map(|what| position(&written, &what));
    assert!(made < switched && switched < gone, "{written:#?}");
    assert_eq!(hub.kept(Kind::Templates).len(), 1);
    assert_eq!(hub.taken(), [""; 0]);
    hub.is_at_rest();
}

/// A change that makes the selected clusters uncertain.
type Doubt = fn(&mut Hub);

const DOUBTS: [(&str, Doubt); 10] = [
    ("a decision is gone", |hub| hub.decide(&some(), 1, None)),
    ("nothing is decided", |hub| hub.select(&[])),
    ("the Placement says more", |hub| {
        hub.decide(&some(), 1, Some(&["eu1"]));
    }),
    ("the Placement says less", |hub| {
        hub.set_selected_count(&some(), Some(1));
    }),
    ("the Placement is gone", |hub| hub.set_selected_count(&some(), None)),
    ("all of it is gone", |hub| {
        hub.decide(&some(), 1, None);
        hub.set_selected_count(&some(), None);
    }),
    ("a cluster is unreachable", |hub| {
        hub.availability("eu2", Availability::Unknown);
        hub.select(&["eu1"]);
    }),
    ("a cluster has no status, after a restore", |hub| {
        hub.put(
            Kind::Clusters,
            &ObjectRef::new("", "eu2"),
            Some(json!({"metadata": {}, "spec": {"hubAcceptsClient": true}})),
        );
        hub.select(&["eu1"]);
    }),
    ("a cluster is back, and still has OCM's taint", |hub| {
        let taint = json!({"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect"});
        hub.edit(
            Kind::Clusters,
            &ObjectRef::new("", "eu2"),
            &json!({"spec": {"taints": [taint]}}),
        );
        hub.select(&["eu1"]);
    }),
    ("no GitOpsCluster is listed", |hub| {
        hub.list_none(Kind::GitOpsClusters);
    }),
];

#[test]
fn uncertain_selection_keeps_every_agent() {
    for (why, doubt) in DOUBTS {
        let mut hub = Hub::with_all_agents();
        for (name, cluster) in [("one", "eu1"), ("two", "eu2")] {
            assert!(hub.issued(name, cluster).is_some());
        }
        let works = hub.kept(Kind::AgentWorks).len();
        doubt(&mut hub);
        hub.settle();
        hub.reconcile_all();
        assert_eq!(hub.blocked(), [""; 0], "{why}");
        let later = hub.now + days(25);
        hub.advance_to(later);
        assert_eq!(hub.with_addon(), ["eu1", "eu2"], "{why}");
        assert_eq!(hub.kept(Kind::AgentWorks).len(), works, "{why}");
        hub.restart_controller();
        hub.availability("eu2", Availability::Available);
        hub.select(&["eu1", "eu2"]);
        hub.settle();
        assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1", "eu2"], vec![]), "{why}");
        hub.is_at_rest();
    }
}

#[test]
fn closing_a_namespace_removes_no_agent() {
    let mut hub = Hub::new();
    let (far, placement) = (ObjectRef::new("team", "far"), ObjectRef::new("team", "some"));
    hub.open(true);
    hub.select_for(&placement, &["eu3"]);
    hub.write(&all(), &bringing("some", &[]));
    hub.write(&far, &bringing("some", &[]));
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2", "eu3"]);
    hub.open(false);
    hub.settle();
    hub.select_for(&placement, &["eu2"]);
    hub.select(&["eu1"]);
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu3"], "the other one is served");
    hub.is_at_rest();
    hub.open(true);
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    hub.is_at_rest();
}

#[test]
fn deselected_cluster_loses_its_agent_and_its_works() {
    for is_silent_first in [false, true] {
        let mut hub = Hub::with_all_agents();
        if is_silent_first {
            hub.availability("eu2", Availability::Unknown);
        }
        hub.select(&["eu1"]);
        hub.settle();
        hub.availability("eu2", Availability::Available);
        hub.settle();
        assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1"], vec!["eu2"]));
        let works = hub.kept(Kind::AgentWorks);
        assert!(
            works.iter().all(|(object_ref, _)| *object_ref.namespace == *"eu1"),
            "{works:?}"
        );
        assert_eq!(hub.secrets.keys().collect::<Vec<_>>(), ["cluster-eu1"]);
        hub.is_at_rest();
    }
}

#[test]
fn deleting_the_last_gitopscluster_deletes_only_our_objects() {
    let mut hub = Hub::new();
    let theirs = renewal::server(&renewal::other_authority(), hub.now, 30);
    hub.put(Kind::Certificates, &of_argocd(names::PRINCIPAL_TLS), Some(theirs));
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    hub.delete_principal();
    hub.delete(&all());
    let written = hub.settle();
    let [certificate, ca] = [names::RESOURCE_PROXY_TLS, names::CA_SECRET]
        .map(|name| position(&written, &format!("delete Secret argocd/{name}")));
    assert!(certificate < ca, "the CA is deleted last: {written:#?}");
    assert_eq!(written.last().map(String::as_str), Some("finalizers argocd/all"));
    assert_eq!(hub.taken(), ["eu1", "eu2"]);
    assert_eq!(hub.ours(), [""; 0]);
    assert!(hub.get(Kind::Certificates, &of_argocd(names::PRINCIPAL_TLS)).is_some());
    assert_eq!(hub.restart_controller(), [""; 0]);
}

/// Otherwise Argo CD loses Redis, which it reaches through the principal, as soon as a Pod of the principal is replaced.
#[test]
fn principal_keeps_what_it_needs_to_start() {
    let mut hub = Hub::with_all_agents();
    hub.issued("one", "eu1").expect("it is signed");
    hub.delete(&all());
    hub.settle();
    assert!(!hub.objects.contains_key(&all()));
    let needed = [Kind::Certificates, Kind::TokenKey, Kind::Bundle].map(|kind| hub.kept(kind).len());
    assert_eq!((hub.taken(), needed), (vec!["eu1", "eu2"], [3, 1, 1]));
    let restarts = hub.ocm.restarts;
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!((hub.with_addon(), hub.ocm.restarts), (vec!["eu1", "eu2"], restarts));
    hub.is_at_rest();
    hub.delete_principal();
    hub.delete(&all());
    hub.settle();
    assert_eq!(hub.ours(), [of_argocd(names::BLOCKLIST).to_string()]);
}

/// Returns a GitOpsCluster with an unknown mode of its agents.
fn invalid(placement: &str) -> Value {
    acm(&json!({
        "placementRef": {"name": placement},
        "gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true, "mode": "unheard-of"}},
    }))
}

#[test]
fn deleting_the_last_gitopscluster_with_invalid_agent_settings_deletes_our_objects() {
    for is_oldest_first in [false, true] {
        let mut hub = Hub::with_all_agents();
        hub.write(&all(), &invalid("some"));
        hub.settle();
        assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
        hub.delete_principal();
        hub.delete(&all());
        while !hub.affected.is_empty() {
            hub.affected.rotate_left(usize::from(is_oldest_first));
            hub.settle_steps(1);
        }
        assert_eq!(hub.ours(), [""; 0]);
        assert!(!hub.objects.contains_key(&all()));
    }
}

#[test]
fn gitopscluster_with_invalid_agent_settings_keeps_shared_objects_and_delays_no_deletion() {
    let mut hub = Hub::with_all_agents();
    let other = hub.add_other(&["eu3"], &bringing("others", &[]));
    hub.write(&other, &invalid("others"));
    hub.settle();
    hub.delete_principal();
    hub.delete(&all());
    hub.settle();
    assert!(!hub.objects.contains_key(&all()));
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu3"], vec!["eu1", "eu2"]));
    assert!(hub.get(Kind::Certificates, &of_argocd(names::CA_SECRET)).is_some());
    hub.is_at_rest();
}

#[test]
fn gitopsclusters_that_never_had_agents_delay_no_deletion() {
    for is_valid in [true, false] {
        let mut hub = Hub::with_all_agents();
        let far = ObjectRef::new("team", "far");
        hub.select_for(&ObjectRef::new("team", "some"), &["eu3"]);
        hub.write(
            &far,
            &if is_valid {
                bringing("some", &[])
            } else {
                invalid("some")
            },
        );
        hub.settle();
        hub.delete_principal();
        hub.delete(&all());
        hub.settle();
        assert!(!hub.objects.contains_key(&all()), "valid: {is_valid}");
        assert_eq!(
            (hub.taken(), hub.ours()),
            (vec!["eu1", "eu2"], vec![]),
            "valid: {is_valid}"
        );
    }
}

#[test]
fn gitopscluster_that_became_invalid_before_it_had_agents_delays_no_deletion() {
    let mut hub = Hub::with_all_agents();
    let other = of_argocd("other");
    hub.write(&other, &invalid("others"));
    hub.finalize(&other, &[&ocm::gitops_cluster::finalizer("argocd")]);
    hub.settle();
    hub.delete_principal();
    hub.delete(&all());
    hub.settle();
    assert!(!hub.objects.contains_key(&all()));
    assert_eq!(hub.taken(), ["eu1", "eu2"]);
    assert!(hub.get(Kind::Certificates, &of_argocd(names::CA_SECRET)).is_some());
    hub.is_at_rest();
}

#[test]
fn controller_of_another_argo_cd_removes_no_agents() {
    for is_deleted in [false, true] {
        let mut hub = Hub::with_all_agents();
        if is_deleted {
            hub.delete(&all());
        } else {
            // Its controller may have owned it before, and does not know that it no longer requests agents.
            hub.write(&all(), &acm(&json!({})));
        }
        // It sees everything but the Secrets of the other namespace.
        hub.list_none(Kind::Secrets);
        hub.affected.clear();
        hub.serve("gitops");
        assert_eq!(hub.reconcile_all(), [""; 0], "deleted: {is_deleted}");
        let settings = hub.settings();
        let context = hub_state::testing::context(hub.now, &settings);
        let action = (HUB.reconcile)(&hub.cache, &ObjectRef::new("", "gitops"), &context);
        assert_eq!(action, None, "deleted: {is_deleted}");
        // The controller that installed the agents removes them.
        hub.serve("argocd");
        for (name, secret) in hub.secrets.clone() {
            hub.secret(&name, Some(secret));
        }
        assert_ne!(hub.reconcile_all(), [""; 0]);
        assert_eq!(hub.with_addon(), [""; 0]);
    }
}

#[test]
fn gitopscluster_moved_to_another_argo_cd_keeps_its_agents() {
    let mut hub = Hub::with_all_agents();
    let mut spec = hub.objects[&all()]["spec"].clone();
    spec["argoServer"]["argoNamespace"] = json!("gitops");
    hub.write(&all(), &spec);
    let (works, secrets) = (hub.kept(Kind::AgentWorks).len(), hub.secrets.len());
    hub.settle();
    hub.reconcile_all();
    assert_eq!((hub.kept(Kind::AgentWorks).len(), hub.secrets.len()), (works, secrets));
    // The other controller takes it over.
    let finalizers = ["argocd", "gitops"].map(ocm::gitops_cluster::finalizer);
    hub.finalize(&all(), &finalizers.each_ref().map(String::as_str));
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    assert_eq!(hub.objects[&all()]["metadata"]["finalizers"], json!([finalizers[1]]));
    assert_eq!((hub.kept(Kind::AgentWorks).len(), hub.secrets.len()), (works, 0));
    assert!(!hub.kept(Kind::Templates).is_empty());
}

#[test]
fn enqueues_the_owner_of_objects_on_deselected_clusters() {
    let mut hub = Hub::with_all_agents();
    hub.decide(&some(), 1, None);
    hub.settle();
    hub.secret("cluster-eu1", None);
    for (kind, object_ref) in [
        (Kind::AgentWorks, ObjectRef::new("eu1", names::CA_WORK)),
        (Kind::AddOns, addon_of("eu1")),
    ] {
        hub.affected.clear();
        hub.put(kind, &object_ref, None);
        assert!(hub.affected.contains(&(Kind::GitOpsClusters, all())), "{kind:?}");
    }
}

#[test]
fn unclear_agent_mode_still_enqueues_for_owned_objects() {
    let mut hub = Hub::with_all_agents();
    let mode = json!({"gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true, "mode": "unheard-of"}}});
    hub.write(&all(), &acm(&mode));
    hub.settle();
    hub.put(Kind::ManagementAddOn, &management(), None);
    assert!(hub.affected.contains(&(Kind::GitOpsClusters, all())));
}

#[test]
fn ignores_works_of_deselected_clusters() {
    let mut hub = Hub::with_all_agents();
    let work = hub
        .get(Kind::AgentWorks, &ObjectRef::new("eu1", names::CA_WORK))
        .cloned();
    hub.put(Kind::AgentWorks, &ObjectRef::new("eu3", names::CA_WORK), work);
    hub.affected = vec![(Kind::GitOpsClusters, all())];
    hub.settle_steps(1);
    let [_, _, message] = hub.condition_of(&all(), "ManifestWorksApplied");
    assert!(message.starts_with("2 of 2 clusters"), "{message}");
}

#[test]
fn disabling_agents_deletes_works_and_the_add_on() {
    let mut hub = Hub::with_all_agents();
    hub.write(&all(), &acm(&json!({})));
    hub.settle();
    assert_eq!(hub.with_addon(), [""; 0]);
    for kind in [
        Kind::Templates,
        Kind::AddOnConfigs,
        Kind::OwnPlacements,
        Kind::OwnDecisions,
        Kind::AgentWorks,
        Kind::ManagementAddOn,
    ] {
        assert_eq!(hub.kept(kind), [], "{kind:?}");
    }
    assert_eq!(hub.registered(), ["eu1", "eu2"], "it registers them without");
    hub.is_at_rest();
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    hub.is_at_rest();
}

/// Installs the add-on of argocd-pull-integration on clusters.
fn install_theirs(hub: &mut Hub, clusters: &[&str]) {
    let theirs = json!({"metadata": {}, "spec": {
        "addOnMeta": {"displayName": "theirs"},
        "supportedConfigs": [{"group": "addon.open-cluster-management.io", "resource": "addontemplates",
            "defaultConfig": {"name": "argocd-agent-addon"}}],
        "installStrategy": {"type": "Manual"},
    }});
    hub.put(Kind::ManagementAddOn, &management(), Some(theirs));
    for cluster in clusters {
        let addon = json!({
            "metadata": {"labels": {"app.kubernetes.io/managed-by": "argocd-pull-integration"}},
            "spec": {"configs": [{"resource": "addondeploymentconfigs", "name": "theirs"}]},
        });
        hub.put(Kind::AddOns, &addon_of(cluster), Some(addon));
    }
}

/// Returns the type of the install strategy of the ClusterManagementAddOn.
fn install_strategy(hub: &Hub) -> Value {
    let existing = hub.get(Kind::ManagementAddOn, &management());
    existing.expect("it is there")["spec"]["installStrategy"]["type"].clone()
}

#[test]
fn takes_over_argocd_pull_integration_without_a_gap() {
    let mut hub = Hub::new();
    install_theirs(&mut hub, &["eu1", "eu2"]);
    hub.write(&all(), &bringing("some", &[]));
    let written = hub.settle();
    let named = position(&written, "status PlacementDecision argocd/all-argocd-agent-decision-1");
    let switched = position(&written, "patch ClusterManagementAddOn");
    assert!(named < switched, "{written:#?}");
    for cluster in ["eu1", "eu2"] {
        let patched = position(&written, &format!("patch ManagedClusterAddOn {cluster}/"));
        assert!(switched < patched, "{written:#?}");
        let addon = hub.get(Kind::AddOns, &addon_of(cluster)).expect("it is there");
        assert_eq!(
            (&addon["spec"]["configs"], &addon["metadata"]["labels"]),
            (&json!([]), &Value::Null)
        );
    }
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1", "eu2"], vec![]));
    hub.is_at_rest();
}

#[test]
fn takes_over_argocd_pull_integration_when_its_operators_have_no_argocd() {
    let mut hub = Hub::new();
    install_theirs(&mut hub, &["eu1", "eu2"]);
    let theirs = ObjectRef::new("eu1", "argocd-agent-cr-argocd-all");
    let work = json!({"metadata": {"labels": {
        "app.kubernetes.io/managed-by": "argocd-pull-integration", "apps.open-cluster-management.io/gitopscluster": "true",
    }}, "spec": {}});
    hub.put(Kind::AgentWorks, &theirs, Some(work));
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(install_strategy(&hub), "Manual");
    let [status, _, message] = hub.condition_of(&all(), "ManifestWorksApplied");
    assert!(
        status == "False" && message.contains("ManifestWork argocd-agent-cr-argocd-all of eu1"),
        "{message}"
    );
    hub.is_at_rest();
    hub.put(Kind::AgentWorks, &theirs, None);
    hub.settle();
    assert_eq!(install_strategy(&hub), "Placements");
    hub.is_at_rest();
}

#[test]
fn keeps_the_add_on_of_unselected_clusters_and_reports_it() {
    let mut hub = Hub::new();
    install_theirs(&mut hub, &["eu1", "eu3"]);
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    assert_eq!(install_strategy(&hub), "Manual");
    assert_eq!(hub.with_addon(), ["eu1", "eu3"]);
    let [_, _, message] = hub.condition_of(&all(), "ManagedClusterAddOnsReady");
    assert!(message.contains("no GitOpsCluster selects eu3"), "{message}");
    hub.is_at_rest();
    hub.select(&["eu1", "eu2", "eu3"]);
    hub.settle();
    assert_eq!(install_strategy(&hub), "Placements");
    assert_eq!((hub.with_addon(), hub.taken()), (vec!["eu1", "eu2", "eu3"], vec![]));
    hub.is_at_rest();
    // It delays a new version, too, as long as OCM's add-on manager does not remove it.
    hub.put(
        Kind::AddOns,
        &addon_of("eu4"),
        Some(json!({"metadata": {}, "spec": {}})),
    );
    let mut spec = bringing("some", &[]);
    spec["agent"]["images"] = json!({"agent": "other:2"});
    hub.write(&all(), &spec);
    let status = format!("{:?}", hub.next_writes(&GITOPS, &all()));
    assert!(status.contains("no GitOpsCluster selects eu4"), "{status}");
}
