//! Tests of argocd-agent on managed clusters: the controller as shipped, with OCM's own registration, placement, add-on and work
//! controllers and agents, on two clusters that have joined as real ones do.
//!
//! There is one hub, and the tests run in sequence: a fleet gets agents, changes, and loses them again.
//!
//! If the testbed is not available (no Go …), the tests fail and name what is missing.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "clippy.toml restricts the program; tests may read files and the clock, and print"
)]

#[path = "../common/agent_controller.rs"]
mod agent_controller;
mod agent_writes;
mod argocd_addon;
mod controller;
mod discovery;
mod handshake;
mod operator;
mod requests;
mod rollout;
mod stage;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use ocm::argocd_agent::CLIENT_SECRET;
use pki::Recipe;
use serde_json::{Value, json};
use stage::{Stage, data, run};
use std::time::Instant;
use testbed::{ObjectRef, is_applied, is_true, wait};

#[tokio::test]
async fn fleet_gets_updates_and_loses_agents() -> Result<()> {
    let stage = Box::pin(Stage::start()).await?;
    let scenario = Scenario {
        stage,
        since: Instant::now(),
    };
    scenario.installed().await?;
    handshake::check_handshakes(&scenario.stage, stage::ADDRESS).await?;
    scenario.log_step("the handshakes succeed");
    discovery::check_exposures(&scenario.stage).await?;
    scenario.log_step("the address follows a Route");
    requests::check_foreign_requests(&scenario.stage).await?;
    scenario.log_step("requests for another agent are denied");
    agent_writes::check_limits(&scenario.stage).await?;
    scenario.log_step("the agents' writes are limited");
    agent_writes::check_hostile_values(&scenario.stage).await?;
    scenario.log_step("hostile values of an agent have changed nothing");
    rollout::rolls_out_one_cluster_at_a_time(&scenario.stage).await?;
    scenario.log_step("the rollout of a version that does not start stops");
    operator::check_selection_and_deselection(&scenario.stage).await?;
    scenario.log_step("the operator was installed and removed");
    scenario.renewed().await?;
    scenario.changed_mode().await?;
    scenario.revoked().await?;
    scenario.deselected().await?;
    operator::check_deletion_order(&scenario.stage).await?;
    scenario.log_step("the operator was deleted last");
    scenario.deleted().await?;
    agent_writes::check_detaching(&scenario.stage).await?;
    scenario.log_step("a cluster was detached");
    scenario.stage.check_permissions()?;
    scenario.stage.stop().await
}

struct Scenario {
    stage: Stage,
    since: Instant,
}

impl Scenario {
    fn log_step(&self, what: &str) {
        println!("{what} after {:.1?}", self.since.elapsed());
    }

    /// Checks that a GitOpsCluster creates the add-on, certificates and Secrets for every cluster that its Placement selects.
    async fn installed(&self) -> Result<()> {
        let Stage { hub, .. } = &self.stage;
        let users_spec = async || anyhow::Ok(hub.read(&stage::placement()).await?["spec"].clone());
        let before = users_spec().await?;
        hub.create(&stage::gitops_cluster()).await?;
        for cluster in self.stage.clusters() {
            let name = cluster.name();
            hub.wait_for(&stage::addon(name), |addon| is_true(addon, "Available"))
                .await?;
            cluster
                .wait_for(&ObjectRef::secret("argocd", CLIENT_SECRET), |secret| {
                    secret["data"]["tls.crt"].is_string()
                })
                .await?;
            let authority = ObjectRef::secret("argocd", "argocd-agent-ca");
            let authority = cluster.wait_for(&authority, |_| true).await?;
            ensure!(
                authority["data"].as_object().is_some_and(|data| data.len() == 1),
                "the private key stays on the hub"
            );
            let known = hub
                .wait_for(&ObjectRef::secret("argocd", &format!("cluster-{name}")), |_| true)
                .await?;
            let server = format!("https://argocd-agent-resource-proxy:9090?agentName={name}");
            assert_eq!(data(&known, "server")?, server);
            assert_eq!(
                known["metadata"]["labels"]["env"], "test",
                "the Secret has the labels of the cluster"
            );
        }
        let fleet = hub.wait_for(&stage::fleet(), |fleet| is_true(fleet, "Ready")).await?;
        self.log_step("every agent is ready");
        assert_eq!(fleet["status"]["clusters"]["connected"], 2, "{:#}", fleet["status"]);
        assert_eq!(
            fleet["status"]["server"],
            json!({"address": stage::ADDRESS, "port": stage::PORT})
        );
        let states = fleet["status"]["clusterStates"].as_array().context("states")?;
        assert!(states.iter().all(|state| state["state"] == "Connected"), "{states:#?}");
        // The exit code is 0 only if every agent is connected.
        run(hub, "gitopscluster status fleet -o wide")?;
        assert_eq!(users_spec().await?, before, "the spec is unchanged");
        Ok(())
    }

    /// Checks that an authority close to its expiry is replaced by one that all trust before it signs.
    async fn renewed(&self) -> Result<()> {
        let Stage { hub, cluster1, .. } = &self.stage;
        let authority = ObjectRef::secret("argocd", "argocd-agent-ca");
        let started_with = async || {
            let principal = hub.read(&stage::principal()).await?;
            let annotations = &principal["spec"]["template"]["metadata"]["annotations"];
            anyhow::Ok((annotations.clone(), principal["metadata"]["generation"].clone()))
        };
        let before = started_with().await?;
        let now = Timestamp::now();
        let day = SignedDuration::from_hours(24);
        let (not_before, not_after) = (now - day * 300, now + day * 60);
        let old = pki::make(
            &Recipe::Authority {
                common_name: pki::authority_name(not_before),
                validity: not_before..not_after,
            },
            None,
        )?;
        let mut old: serde_json::Map<_, _> = old
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value.map(ByteString))))
            .collect();
        // The old authority signed the agents' certificates, so it stays trusted while they may be in use.
        let before_that = hub.read(&authority).await?;
        let both = data(&json!({"data": old}), "tls.crt")? + &data(&before_that, "tls.crt")?;
        old.insert("tls.crt".to_owned(), json!(ByteString(both.into_bytes())));
        hub.patch(&authority, &json!({"data": old})).await?;
        let name_of = |index: usize| {
            move |secret: &Value| {
                let text = data(secret, "tls.crt").unwrap_or_default();
                let all = pki::Certificate::read_all(text.as_bytes()).unwrap_or_default();
                all.get(index).map(|certificate| certificate.common_name.to_string())
            }
        };
        let old = pki::authority_name(not_before);
        let promoted = hub
            .wait_for(&authority, |secret| {
                name_of(0)(secret).is_some_and(|name| name != old) && name_of(1)(secret).as_deref() == Some(&*old)
            })
            .await?;
        assert_eq!(promoted["data"]["next.key"], Value::Null, "it signs");
        let bundle = data(&promoted, "tls.crt")?;
        cluster1
            .wait_for(&ObjectRef::secret("argocd", "argocd-agent-ca"), |secret| {
                data(secret, "ca.crt").is_ok_and(|text| text == bundle)
            })
            .await?;
        let signer = pki::Certificate::read_all(bundle.as_bytes())?.swap_remove(0);
        for leaf in ["argocd-agent-principal-tls", "argocd-agent-resource-proxy-tls"] {
            hub.wait_for(&ObjectRef::secret("argocd", leaf), |secret| {
                let text = data(secret, "tls.crt").unwrap_or_default();
                let leaf = pki::Certificate::read_all(text.as_bytes()).unwrap_or_default();
                leaf.first().is_some_and(|leaf| leaf.is_issued_by(&signer))
            })
            .await?;
        }
        let restarted = async || (started_with().await.ok()? != before).then_some(());
        wait::eventually("the principal is restarted", wait::DEADLINE, restarted).await?;
        handshake::check_handshakes(&self.stage, stage::ADDRESS).await?;
        hub.wait_for(&stage::fleet(), |fleet| is_true(fleet, "Ready")).await?;
        self.log_step("the authority was replaced");
        Ok(())
    }

    /// Checks the change from managed to autonomous agents.
    async fn changed_mode(&self) -> Result<()> {
        self.stage
            .patch(&json!({"argoCDAgentAddon": {"mode": "autonomous"}}))
            .await?;
        for cluster in self.stage.clusters() {
            cluster
                .wait_for(&stage::agent(), |agent| agent.to_string().contains("autonomous"))
                .await?;
        }
        self.log_step("the agents are autonomous");
        Ok(())
    }

    /// Checks that a revoked cluster loses its agent and the principal rejects its certificate, until it is admitted again. Its
    /// agent can change objects in its own namespace, which makes no difference.
    async fn revoked(&self) -> Result<()> {
        let Stage { hub, cluster2, .. } = &self.stage;
        requests::foreign_revocations_have_no_effect(&self.stage).await?;
        self.log_step("a GitOpsCluster of another namespace revokes nothing");
        let issued = requests::issued(&self.stage, "cluster2").await?;
        ensure!(!issued.is_empty(), "cluster2 has certificates");
        let forged = format!("{}=2126-01-01T00:00:00Z", "A".repeat(64));
        let forged = json!({"metadata": {"annotations": {"argocd-ocm-cmp.github.io/agent-certificates": forged}}});
        hub.patch(&ObjectRef::manifest_work("cluster2", "argocd-agent-ca-mw"), &forged)
            .await?;
        self.stage
            .patch(&json!({"agent": {"revokedClusters": ["cluster2"]}}))
            .await?;
        hub.wait_gone(&stage::addon("cluster2")).await?;
        let blocklist = ObjectRef::config_map("argocd", "argocd-agent-tls-blocklist");
        let has_all = |blocklist: &Value| {
            issued
                .iter()
                .all(|fingerprint| blocklist["data"][fingerprint].is_string())
        };
        let blocklist = hub.wait_for(&blocklist, has_all).await?;
        ensure!(blocklist["data"]["A".repeat(64)].is_null(), "{blocklist:#}");
        let refused: Vec<_> = blocklist["data"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
            .collect();
        let is_fingerprint =
            |key: &&String| key.len() == 64 && key.chars().all(|digit| "0123456789ABCDEF".contains(digit));
        ensure!(
            !refused.is_empty() && refused.iter().all(is_fingerprint),
            "{blocklist:#}"
        );
        hub.wait_gone(&ObjectRef::manifest_work("cluster2", "argocd-agent-ca-mw"))
            .await?;
        cluster2.wait_gone(&stage::agent()).await?;
        self.log_step("one cluster is revoked");
        self.stage.patch(&json!({"agent": {"revokedClusters": null}})).await?;
        hub.wait_for(&stage::addon("cluster2"), |addon| is_true(addon, "Available"))
            .await?;
        cluster2
            .wait_for(&ObjectRef::secret("argocd", CLIENT_SECRET), |secret| {
                secret["data"]["tls.crt"].is_string()
            })
            .await?;
        self.log_step("the cluster is admitted again");
        Ok(())
    }

    /// Checks that a cluster that leaves the Placement loses its agent, and no other does.
    async fn deselected(&self) -> Result<()> {
        let Stage {
            hub,
            cluster1,
            cluster2,
            ..
        } = &self.stage;
        hub.patch(
            &ObjectRef::managed_cluster("cluster2"),
            &json!({"metadata": {"labels": {"env": null}}}),
        )
        .await?;
        // While the agent is connected, it would delete what the Applications of a cluster without a Secret have deployed.
        hub.wait_gone(&ObjectRef::secret("argocd", "cluster-cluster2")).await?;
        for uninstalled in [
            stage::addon("cluster2"),
            ObjectRef::manifest_work("cluster2", "argocd-agent-ca-mw"),
            ObjectRef::manifest_work("cluster2", "addon-argocd-agent-addon-deploy-0"),
        ] {
            assert!(hub.get(&uninstalled).await?.is_none(), "{uninstalled:?} goes first");
        }
        cluster2.wait_gone(&stage::agent()).await?;
        let stays = ObjectRef::manifest_work("cluster1", "argocd-agent-ca-mw");
        assert!(hub.get(&stays).await?.is_some_and(|work| is_applied(&work)));
        assert!(cluster1.get(&stage::agent()).await?.is_some());
        let crd = "applications.argoproj.io";
        let crd = ObjectRef::crd(crd);
        let crd = cluster2.read(&crd).await?;
        assert_eq!(crd["metadata"]["deletionTimestamp"], Value::Null);
        requests::check_request_count(&self.stage).await?;
        self.log_step("one cluster was deselected");
        Ok(())
    }

    /// Checks that deleting the last GitOpsCluster deletes all objects created for it, and nothing else.
    async fn deleted(&self) -> Result<()> {
        let Stage { hub, cluster1, .. } = &self.stage;
        hub.wait_gone(&stage::fleet()).await?;
        assert!(
            cluster1.get(&stage::agent()).await?.is_none(),
            "the GitOpsCluster waits for the agents"
        );
        for (api_version, kind) in [
            ("addon.open-cluster-management.io/v1alpha1", "AddOnTemplate"),
            ("addon.open-cluster-management.io/v1alpha1", "AddOnDeploymentConfig"),
            ("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn"),
            ("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn"),
        ] {
            assert_eq!(hub.list(api_version, kind).await?, [Value::Null; 0], "{kind}");
        }
        let no_works = async || {
            let works = hub.works().await.ok()?;
            works.is_empty().then_some(())
        };
        wait::eventually("OCM's works are deleted", wait::DEADLINE, no_works).await?;
        let secrets = hub.list("v1", "Secret").await?;
        let deselected: Vec<_> = secrets
            .iter()
            .filter(|secret| secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "argocd-ocm-cmp")
            .map(|secret| &secret["metadata"]["name"])
            .collect();
        assert!(deselected.is_empty(), "{deselected:?}");
        let placements = hub
            .list("cluster.open-cluster-management.io/v1beta1", "Placement")
            .await?;
        assert_eq!(placements.len(), 1, "the user's");
        self.log_step("every object is deleted");
        Ok(())
    }
}
