//! Reads GitOpsClusters, and the health of the agents that they install on managed clusters.

use super::{Hub, WorkReader, describe_error, no_api, request_text};
use crate::diagnosis::unreachable;
use crate::status::gitopscluster::{AgentInputs, FleetState, has_agents};
use hub::{HubObject, explain, status};
use hub_state::annotations::OWNER;
use hub_state::model::{Kind, Object, PlacementDecision};
use kube::Error;
use kube::core::params::ListParams;
use ocm::argocd_agent as names;
use ocm::resources::{ADDONS, DECISIONS, GITOPS_CLUSTERS, SECRETS};
use ocm::work::{MANAGED_BY, OURS};
use primitives::object_ref::ObjectRef;
use primitives::timestamp::format_time;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the error about a hub without a GitOpsCluster of this name; an empty name or namespace means all.
fn describe_missing(selected: &ObjectRef, url: &str) -> String {
    let ObjectRef { namespace, name } = selected;
    match (&**namespace, &**name) {
        ("", _) => format!("the hub at {url} has no GitOpsClusters"),
        (namespace, "") => {
            format!(
                "the hub at {url} has no GitOpsClusters in the namespace {namespace}: pass --all-namespaces to read all"
            )
        }
        (namespace, name) => format!(
            "the hub at {url} has no GitOpsCluster {name} in the namespace {namespace}: pass another one with --namespace"
        ),
    }
}

impl WorkReader {
    /// Reads GitOpsClusters, of this name or of all, and the health of their agents, and, if `certificates` is set, the expiry of the
    /// agents' certificates. Returns at least one GitOpsCluster.
    pub(crate) fn fleet(&self, selected: &ObjectRef, certificates: bool) -> Result<FleetState, String> {
        let Self { runtime, hub, .. } = self;
        let url = &hub.url;
        let fleet = runtime.block_on(hub.fleet(selected, certificates));
        let fleet = fleet.map_err(|error| match &error {
            Error::Api(refused) if refused.code == 404 && refused.reason == "NotFound" => describe_missing(selected, url),
            Error::Api(refused) if refused.code == 404 => {
                format!("the hub at {url} does not serve GitOpsClusters: apply deploy/gitopscluster_crd.yaml, or choose another hub with \
                         --context")
            }
            _ => describe_error(&error, url),
        })?;
        if fleet.gitops_clusters.is_empty() {
            return Err(describe_missing(selected, url));
        }
        Ok(fleet)
    }
}

impl Hub {
    async fn fleet(&self, selected: &ObjectRef, certificates: bool) -> Result<FleetState, Error> {
        let mut fleet = FleetState::default();
        if selected.name.is_empty() {
            let keep = |value: Value| fleet.gitops_clusters.push(value);
            self.each(&GITOPS_CLUSTERS, &selected.namespace, ListParams::default(), keep)
                .await?;
        } else {
            let ObjectRef { namespace, name } = selected;
            let text = request_text(&self.client, &GITOPS_CLUSTERS, namespace, name).await?;
            fleet
                .gitops_clusters
                .push(serde_json::from_str(&text).map_err(|_| no_api())?);
        }
        if !fleet.gitops_clusters.iter().any(has_agents) {
            return Ok(fleet);
        }
        let agents = self.agents(&selected.namespace).await;
        let instead = "showing the state of agents that the controller last wrote";
        fleet.agents = or_notice(agents, instead, &mut fleet.notices)?;
        if certificates {
            let with_agents = fleet
                .gitops_clusters
                .iter()
                .filter(|gitops_cluster| has_agents(gitops_cluster));
            let namespaces = with_agents.filter_map(|value| {
                let argocd = value["spec"]["argoServer"]["argoNamespace"]
                    .as_str()
                    .filter(|argo_namespace| !argo_namespace.is_empty());
                argocd.or(value["metadata"]["namespace"].as_str()).map(str::to_owned)
            });
            let namespaces = namespaces.collect();
            let certificates = self.certificates(&namespaces).await;
            let instead = "showing the expiry of certificates as far as the controller wrote it";
            fleet.certificates = or_notice(certificates, instead, &mut fleet.notices)?;
        }
        Ok(fleet)
    }

    /// Reads the managed clusters that get an agent, and the health of each agent.
    async fn agents(&self, namespace: &str) -> Result<AgentInputs, Error> {
        let mut agents = AgentInputs::default();
        let ours = ListParams::default().labels(&format!("{MANAGED_BY}={OURS}"));
        let keep = |decision: Value| {
            let Some(owner) = decision["metadata"]["annotations"][OWNER].as_str() else {
                return;
            };
            let decided = PlacementDecision::from_json(&decision.to_string())
                .unwrap_or_default()
                .clusters;
            let members = agents.members.entry(owner.to_owned()).or_default();
            members.extend(decided.iter().map(ToString::to_string));
        };
        self.each(&DECISIONS, namespace, ours, keep).await?;
        let named = ListParams::default().fields(&format!("metadata.name={}", names::ADDON));
        let keep = |HubObject(addon)| {
            if let Some(cluster) = addon["metadata"]["namespace"].as_str() {
                let status = json!({"status": {"conditions": addon["status"]["conditions"]}});
                agents.addons.insert(cluster.to_owned(), status);
            }
        };
        self.each(&ADDONS, "", named, keep).await?;
        agents.silent = unreachable(&self.clusters().await?.unwrap_or_default());
        Ok(agents)
    }

    /// Reads when the certificates of agents expire, by managed cluster, in these namespaces of Argo CD.
    async fn certificates(&self, namespaces: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Error> {
        let mut certificates = BTreeMap::new();
        for namespace in namespaces {
            let issued = ListParams::default().fields(&format!("type={}", names::ISSUED_TYPE));
            let keep = |secret: Value| {
                let cluster = secret["metadata"]["name"].as_str().and_then(names::cluster_of_issued);
                let record = Object::from_json(Kind::IssuedCertificates, &secret.to_string()).ok();
                if let (Some(cluster), Some(until)) = (cluster, record.and_then(|record| record.last_expiry())) {
                    certificates.insert(cluster.to_owned(), format_time(until));
                }
            };
            self.each(&SECRETS, namespace, issued, keep).await?;
        }
        Ok(certificates)
    }
}

/// Returns an answer, or adds a notice about what is shown `instead` if the hub does not permit the read, or does not serve the kind.
fn or_notice<T>(answer: Result<T, Error>, instead: &str, notices: &mut Vec<String>) -> Result<Option<T>, Error> {
    match answer {
        Err(error) if matches!(status(&error), Some(403 | 404)) => {
            notices.push(format!("{instead}: {}", explain(&error)));
            Ok(None)
        }
        answer => answer.map(Some),
    }
}
