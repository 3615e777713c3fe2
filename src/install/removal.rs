//! The selection of objects to remove on uninstall, and the reasons to keep some.

use super::argo_cd::NAME;
use super::settings::{self, CONTROLLER};
use super::{LIVE, MANAGER, PART_MANAGERS, ShippedObject, is_own_policy};
use crate::workload::{items, name, object_ref};
use hub_state::json::borrowed;
use hub_state::pull;
use ocm::gitops_cluster::{SHARED_FINALIZER, namespace_of_finalizer};
use serde_json::{Value, json};

/// The label selector of our objects, including those of earlier releases.
pub const LABELS: &str = "app.kubernetes.io/name in (argocd-ocm-cmp,argocd-ocm-cmp-controller,argocd-ocm-cmp-live)";

/// The AppProject of proj.yaml.
pub const PROJECT: &str = "managed-clusters";

/// Returns true if we installed a live object with the name of one of ours: it has our label or, if ours has none, we have
/// applied it, or its description equals ours.
pub fn is_ours(object: &ShippedObject, live: &Value) -> bool {
    if let Some(name) = object.label(NAME) {
        return live["metadata"]["labels"][NAME] == name;
    }
    let description = &object.value["spec"]["description"];
    let is_described = description.is_string() && live["spec"]["description"] == *description;
    is_described || our_managers(live).next().is_some()
}

/// Returns why a ConfigMap of ours has content of the administrator, if it has: a reinstallation does not restore it.
pub fn content_of_administrator(config_map: &Value) -> Option<&'static str> {
    if is_own_policy(config_map) {
        return Some("its policy is not our sample");
    }
    let has_settings = name(config_map) == CONTROLLER && !settings::others(Some(config_map)).is_empty();
    has_settings.then_some("it has settings of your own")
}

/// The objects that other products install under the same names: the CRD of Red Hat ACM, whose schema our reports match, and the
/// ConfigMap of all integrations of OCM with Argo CD, which has the same content.
const SHARED: [(&str, &str); 2] = [
    (
        "CustomResourceDefinition",
        "multiclusterapplicationsetreports.apps.open-cluster-management.io",
    ),
    ("ConfigMap", "ocm-placement-generator"),
];

/// Returns true if another product has installed a live object with the name of one of ours, and needs it.
pub fn belongs_to_another_product(object: &ShippedObject, live: &Value) -> bool {
    SHARED.contains(&(object.kind(), object.name())) && !is_ours(object, live)
}

/// Returns one of Argo CD's workloads as an object to which our field managers have added; `None` for others, and for those that we
/// have installed.
pub fn addition_to(live: &Value) -> Option<ShippedObject> {
    const NAMES: [&str; 3] = ["argocd-ocm-cmp", "argocd-ocm-cmp-controller", LIVE];
    let metadata = &live["metadata"];
    let is_installed = metadata["labels"][NAME]
        .as_str()
        .is_some_and(|text| NAMES.contains(&text));
    our_managers(live).next().filter(|_| !is_installed)?;
    Some(ShippedObject::addition(json!({
        "apiVersion": "apps/v1",
        "kind": live["kind"],
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
    })))
}

/// Returns the field managers of ours that have applied an object, those that add to the other's fields first.
pub fn our_managers(live: &Value) -> impl Iterator<Item = &'static str> {
    let entries = items(&live["metadata"]["managedFields"]);
    let applies = move |manager: &&str| {
        let mut entries = entries.iter();
        entries.any(|entry| entry["manager"] == **manager && entry["operation"] == "Apply")
    };
    PART_MANAGERS.into_iter().chain([MANAGER]).filter(applies)
}

/// Returns the Helm release that deletes an object. An object that Helm keeps names its release also when that is uninstalled.
pub fn helm_release(live: &Value) -> Option<&str> {
    let annotations = &live["metadata"]["annotations"];
    let release = annotations["meta.helm.sh/release-name"].as_str();
    release.filter(|_| annotations["helm.sh/resource-policy"] != "keep")
}

/// Returns true if a cluster-scoped object with our labels belongs to a controller beside another Argo CD, which an administrator has
/// added under other names than `ours`. `bindings` are all `ClusterRoleBinding`s with our labels.
pub fn belongs_to_added_controller(live: &Value, ours: &[ShippedObject], bindings: &[Value], namespace: &str) -> bool {
    let is_same = |object: &ShippedObject| live["kind"] == object.kind() && live["metadata"]["name"] == object.name();
    !ours.iter().any(is_same) && served_namespace(live, bindings).is_some_and(|served| served != namespace)
}

/// Returns true if an object is that of the Argo CD in this namespace, where the installation with our names is beside another one:
/// that has all objects without a namespace.
pub fn is_beside_installation(object: &ShippedObject, live: &Value, bindings: &[Value], namespace: &str) -> bool {
    let is_here = live["metadata"]["namespace"] == namespace || object.is_admission_policy();
    is_here || served_namespace(live, bindings) == Some(namespace)
}

/// Returns the namespace that a cluster-scoped object is for, if it or its binding names one.
fn served_namespace<'v>(live: &'v Value, bindings: &'v [Value]) -> Option<&'v str> {
    let served = match live["kind"].as_str()? {
        "ClusterRoleBinding" => &live["subjects"][0]["namespace"],
        "ClusterRole" => {
            let mut bindings = bindings.iter();
            let binding = bindings.find(|binding| binding["roleRef"]["name"] == live["metadata"]["name"])?;
            &binding["subjects"][0]["namespace"]
        }
        "FlowSchema" => &live["spec"]["rules"][0]["subjects"][0]["serviceAccount"]["namespace"],
        _ => return None,
    };
    served.as_str()
}

/// Returns true if one of Argo CD's objects still has some of our additions after our managers released them: another manager
/// owns them too.
pub fn has_additions(addition: &ShippedObject, live: &Value) -> bool {
    let mut spec = live.clone();
    spec["metadata"] = Value::Null;
    // A health check may be that of another release. Other keys are Argo CD's settings, which others set too.
    let is_ours = |(key, value): (&String, &Value)| {
        live["data"]
            .get(key)
            .is_some_and(|live| key.starts_with("resource.") || live == value)
    };
    let keys = addition.value["data"].as_object();
    keys.is_some_and(|keys| keys.iter().any(is_ours)) || spec.to_string().contains("\"argocd-ocm-cmp")
}

/// Returns a line for each object that would wait for ever for the controller of this namespace after its removal. GitOpsClusters
/// that have only the finalizer of another namespace's controller do not.
pub fn stuck_deletions(namespace: &str, gitops_clusters: &[Value], applications: &[Value]) -> Vec<String> {
    let ours = |value: &Value| {
        let mut all = items(&value["metadata"]["finalizers"]).iter().filter_map(Value::as_str);
        let is_ours = |text: &str| text == SHARED_FINALIZER || namespace_of_finalizer(text) == Some(namespace);
        all.find(|text| is_ours(text)).map(str::to_owned)
    };
    let clusters = gitops_clusters.iter().filter_map(|gitops_cluster| {
        let finalizer = ours(gitops_cluster)?;
        Some(format!(
            "GitOpsCluster {} has the controller's finalizer {finalizer}, and cannot be deleted without the controller: delete it \
             first, which removes its clusters from Argo CD, or remove the finalizer to keep them there",
            object_ref(gitops_cluster)
        ))
    });
    let waits = |value: &&Value| {
        // One that the controller cannot read never waits for it.
        let application = pull::Application::from_json(&borrowed(value)).ok().flatten();
        application.is_some_and(|application| application.deleting && application.argocd_finalizers().next().is_some())
    };
    let applications = applications.iter().filter(waits).map(|application| {
        let qualified_name = object_ref(application);
        format!(
            "Application {qualified_name} is being deleted by the controller (pull model): wait until it is deleted"
        )
    });
    clusters.chain(applications).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::tests::shipped_object;
    use crate::install::{InstallOptions, objects};
    use controller::LEASE;
    use ocm::gitops_cluster::finalizer;

    #[test]
    fn recognizes_own_objects_by_label_manager_or_text() {
        let account = shipped_object("ServiceAccount", LEASE);
        let labelled = |name: &str| json!({"metadata": {"labels": {"app.kubernetes.io/name": name}}});
        assert!(is_ours(&account, &labelled(LEASE)) && !is_ours(&account, &labelled("other")));
        let project = shipped_object("AppProject", PROJECT);
        let applied =
            |manager: &str| json!({"metadata": {"managedFields": [{"manager": manager, "operation": "Apply"}]}});
        assert!(is_ours(&project, &applied(MANAGER)) && !is_ours(&project, &applied("theirs")));
        let described = json!({"spec": {"description": "Applications delivered to managed clusters by pull"}});
        assert!(is_ours(&project, &described) && !is_ours(&project, &json!({"spec": {"description": "mine"}})));
    }

    #[test]
    fn settings_of_the_administrator_are_found() {
        let mut config_map = shipped_object("ConfigMap", CONTROLLER).value;
        assert_eq!(content_of_administrator(&config_map), None);
        config_map["data"]["ARGOCD_OCM_CMP_WORKERS"] = "9".into();
        assert!(content_of_administrator(&config_map).is_some());
    }

    #[test]
    fn objects_of_other_products_are_left_to_them() {
        for (kind, name) in SHARED {
            let object = shipped_object(kind, name);
            assert!(
                !belongs_to_another_product(&object, &object.value),
                "{name}: kubectl has applied ours"
            );
            let theirs = json!({"metadata": {"labels": {"app.kubernetes.io/name": "theirs"}}});
            assert!(belongs_to_another_product(&object, &theirs), "{name}");
        }
        let ours = shipped_object("ConfigMap", "argocd-ocm-cmp");
        assert!(!belongs_to_another_product(&ours, &json!({})));
    }

    #[test]
    fn object_that_helm_keeps_is_of_no_release() {
        let release = |policy: &str| {
            json!({"metadata": {"annotations": {
                "meta.helm.sh/release-name": "ours", "helm.sh/resource-policy": policy,
            }}})
        };
        assert_eq!(helm_release(&release("")), Some("ours"));
        assert_eq!(helm_release(&release("keep")), None);
        assert_eq!(helm_release(&json!({})), None);
    }

    #[test]
    fn controller_of_another_argo_cd_is_not_uninstalled() {
        let ours = objects(&InstallOptions::everything("argocd"));
        let moved = objects(&InstallOptions::everything("other"));
        let renamed = |kind: &str, name: &str| {
            let mut live = moved
                .iter()
                .find(|object| (object.kind(), object.name()) == (kind, LEASE))
                .expect(kind)
                .value
                .clone();
            live["metadata"]["name"] = name.into();
            live["roleRef"]["name"] = "second".into();
            live
        };
        let bindings = [renamed("ClusterRoleBinding", "second")];
        for kind in ["ClusterRole", "ClusterRoleBinding", "FlowSchema"] {
            let belongs = |name: &str, namespace: &str| {
                belongs_to_added_controller(&renamed(kind, name), &ours, &bindings, namespace)
            };
            assert!(belongs("second", "argocd"), "{kind}");
            assert!(!belongs("second", "other"), "{kind}");
            assert!(!belongs(LEASE, "argocd"), "{kind}: our own name is an error");
            let object = shipped_object(kind, LEASE);
            let is_beside = |namespace| is_beside_installation(&object, &renamed(kind, "second"), &bindings, namespace);
            assert!(is_beside("other") && !is_beside("argocd"), "{kind}");
        }
        let earlier = json!({"kind": "ClusterRole", "metadata": {"name": "of-an-earlier-release"}});
        assert!(!belongs_to_added_controller(&earlier, &ours, &bindings, "argocd"));
    }

    #[test]
    fn detects_our_parts_left_in_argo_cds_objects() {
        let repo_server = shipped_object("Deployment", "argocd-repo-server");
        let pod = |containers: Value| json!({"metadata": {"annotations": {"a": "argocd-ocm-cmp"}}, "spec": {"containers": containers}});
        assert!(has_additions(&repo_server, &pod(json!([{"name": "argocd-ocm-cmp"}]))));
        assert!(!has_additions(
            &repo_server,
            &pod(json!([{"name": "argocd-repo-server"}]))
        ));
        let config = shipped_object("ConfigMap", "argocd-cm");
        let key = "resource.customizations.health.work.open-cluster-management.io_ManifestWork";
        assert!(
            has_additions(&config, &json!({"data": {key: ""}}))
                && !has_additions(&config, &json!({"data": {"url": ""}}))
        );
    }

    #[test]
    fn hanging_finalizers_are_listed_with_remediation() {
        let cluster =
            |finalizer: &str| json!({"metadata": {"namespace": "argocd", "name": "all", "finalizers": [finalizer]}});
        let application = |deleted: Value, label: &str| {
            json!({"metadata": {
                "namespace": "argocd", "name": "shop", "deletionTimestamp": deleted, "labels": {(ocm::pull_model::PULL): label},
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            }})
        };
        let now = || json!("2026-06-01T12:00:00Z");
        assert_eq!(
            stuck_deletions(
                "argocd",
                &[cluster("example.com/x"), cluster(&finalizer("gitops"))],
                &[application(Value::Null, "true")]
            ),
            [""; 0]
        );
        assert_eq!(
            stuck_deletions("argocd", &[], &[application(now(), "false")]),
            [""; 0],
            "that is Argo CD's"
        );
        for ours in [finalizer("argocd"), SHARED_FINALIZER.to_owned()] {
            let lines = stuck_deletions("argocd", &[cluster(&ours)], &[application(now(), "true")]);
            assert_eq!(lines.len(), 2);
            let start = format!("GitOpsCluster argocd/all has the controller's finalizer {ours}, ");
            assert!(
                lines[0].starts_with(&start) && lines[0].contains("delete it first"),
                "{lines:?}"
            );
            assert!(
                lines[1].starts_with("Application argocd/shop is being deleted"),
                "{lines:?}"
            );
        }
    }
}
