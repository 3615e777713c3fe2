//! The AddOnTemplate: what OCM brings to each managed cluster of a GitOpsCluster.
//!
//! Only the agent is a Deployment. OCM mounts the agent's certificate and key into every Deployment and DaemonSet of a template, and
//! lets none of them start before they are there (`volumeDecorator` in OCM's `pkg/addon/templateagent`); neither is for the
//! repo-server, which runs what is in Git, nor for Redis. So these are StatefulSets, as the application-controller is anyway. It also
//! makes the agent alone what OCM asks for the health of the add-on, and the agent is ready when it is connected to the hub.
//!
//! Where argocd-operator is chosen, it is what the add-on brings, and the ArgoCD that it makes an Argo CD and an agent of goes to each
//! cluster by a work.
//!
//! The Namespace is not here but in the work with the CA: here it would be deleted, with all that is in it, as soon as another
//! is asked for. The CRDs of Argo CD are in every template, also where an operator brings it. They are not to go with the add-on, and
//! not with a template either, because with a CRD go all Applications.

mod agent;
mod argocd;
mod crds;
mod operator;
mod pod;
mod rights;

use super::{Images, Mode, Wanted, labels, names, owner, works};
use serde_json::{Value, json};

/// What is to be said where no image of this program is set.
pub const WITHOUT_OURS: &str = "no image of argocd-ocm-cmp is set for managed clusters: there the agent's pod must be restarted by \
    hand for each new certificate, and the Secrets argocd-redis (auth) and argocd-secret (server.secretkey) must be made by hand";

/// The same where argocd-operator is chosen, which makes these Secrets.
pub const WITHOUT_OURS_BESIDE_AN_OPERATOR: &str = "no image of argocd-ocm-cmp is set for managed clusters: there the agent's pod must \
    be restarted by hand for each new certificate";

/// The AddOnTemplate of a GitOpsCluster, whose images are the wanted ones, else these defaults, else [`Images::shipped`]; `argocd`
/// is the namespace of Argo CD on the hub. Its name says its content (see [`names::template`]), so one that is there under that name is
/// right. It is not to be compared: OCM's CRD adds fields to its lists.
#[must_use]
pub fn template(goc: (&str, &str), wanted: &Wanted, defaults: &Images, argocd: &str) -> Value {
    let images = wanted.images.or(defaults).or(&Images::shipped());
    let spec = json!({
        "addonName": names::ADDON,
        "agentSpec": {
            "workload": {"manifests": manifests(wanted, &images)},
            "manifestConfigs": configs(wanted),
        },
        "registration": [{
            "type": "CustomSigner",
            "customSigner": {
                "signerName": names::SIGNER,
                "signingCA": {"name": names::NO_CA_SECRET, "namespace": argocd},
            },
        }],
    });
    // Whose it is counts along: two GitOpsClusters never share one, so each may delete its own.
    let (namespace, name) = goc;
    let hash = names::hash(&format!("{namespace}/{name}\n{spec}"));
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1",
        "kind": "AddOnTemplate",
        "metadata": {"name": names::template(goc, &hash), "labels": labels(), "annotations": owner(goc)},
        "spec": spec,
    })
}

/// What the managed cluster gets. OCM 1.3 and later apply it in an order of their own, older ones in this.
fn manifests(wanted: &Wanted, images: &Images) -> Vec<Value> {
    let mut manifests = crds::all();
    let place = Place {
        namespace: &wanted.namespace,
        mode: wanted.mode,
        images,
    };
    if wanted.operator {
        manifests.extend(crds::of_the_operator());
        manifests.extend(operator::all(&place, &works::argocd_name(wanted)));
    } else if wanted.brings_argocd() {
        manifests.extend(rights::of_argocd(&place));
        manifests.extend(rights::of_the_agent(&place));
        manifests.extend(argocd::all(&place));
        manifests.push(agent::deployment(&place));
    }
    if wanted.brings_argocd() && place.mode == Mode::Autonomous {
        manifests.extend(argocd::default_project(&place));
    }
    manifests
}

/// The annotation of what OCM leaves behind when the add-on goes.
const STAYS: &str = "addon.open-cluster-management.io/deletion-orphan";

/// Of what and for where the manifests are.
struct Place<'a> {
    namespace: &'a str,
    mode: Mode,
    images: &'a Images,
}

impl Place<'_> {
    /// The metadata of an object in the namespace.
    fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace, "labels": labels()})
    }
}

/// A Deployment of one pod, beside which there is never a second, so that none needs to lead.
fn deployment_of(place: &Place<'_>, name: &str, pod: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": place.metadata(name),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": pod::selector(name)},
            "template": pod,
        },
    })
}

/// How the agent of OCM applies what is not just updated. OCM takes these from the add-on's default template only, for all
/// namespaces therefore, and every template has the same; one with an operator has more, which is for CRDs that somebody else's
/// operator has brought, and counts where the default template is such a one.
fn configs(wanted: &Wanted) -> Vec<Value> {
    let config = |(group, resource, namespace): (&str, &str, Option<&str>), name: &str, strategy: &Value| {
        let mut identifier = json!({"group": group, "resource": resource, "name": name});
        if let Some(namespace) = namespace {
            identifier["namespace"] = namespace.into();
        }
        json!({"resourceIdentifier": identifier, "updateStrategy": strategy})
    };
    // A real Argo CD's are better, and a project is whose the Applications are.
    let crd = ("apiextensions.k8s.io", "customresourcedefinitions", None);
    let create_only = json!({"type": "CreateOnly"});
    let mut configs: Vec<Value> = crds::names().map(|name| config(crd, &name, &create_only)).into();
    configs.push(config(
        ("argoproj.io", "appprojects", Some("*")),
        argocd::DEFAULT_PROJECT,
        &create_only,
    ));
    // The keys that others set in them stay, and GPG keys are set by the agent itself.
    let apply = json!({"type": "ServerSideApply", "serverSideApply": {"force": true, "fieldManager": "work-agent"}});
    configs.extend(argocd::CONFIG_MAPS.map(|name| config(("", "configmaps", Some("*")), name, &apply)));
    if wanted.operator {
        configs.extend(crds::names_of_the_operator().map(|name| config(crd, &name, &create_only)));
    }
    configs
}

#[cfg(test)]
mod tests;
