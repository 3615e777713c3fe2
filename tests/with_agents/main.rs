//! Tests of argocd-agent on managed clusters: the controller as shipped, with OCM's own registration, placement, add-on and work
//! controllers and agents, on two clusters that have joined as real ones do.
//!
//! There is one hub, and the tests run in sequence: a fleet gets agents, changes, and loses them again.
//!
//! If the parts cannot run (no Go …), a local run prints that and skips the tests; with `CI=true` it fails.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the walls are around the program; tests read what they like, and say what they measure"
)]

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
use pki::Recipe;
use serde_json::{Value, json};
use stage::{Stage, condition, data};
use std::time::Instant;
use testbed::{ObjectRef, is_applied, is_true, wait};

const SIGNED: &str = "argocd-agent-addon-open-cluster-management.io-argocd-agent-addon-client-cert";

#[tokio::test]
async fn a_fleet_gets_agents_and_loses_them() -> Result<()> {
    let Some(stage) = Stage::start().await? else {
        return Ok(());
    };
    let story = Story {
        stage,
        since: Instant::now(),
    };
    story.installed().await?;
    story.met().await?;
    story.found().await?;
    story.impersonated().await?;
    story.rolled_out().await?;
    rollout::is_gated(&story.stage).await?;
    story.note("a version that does not start is stopped");
    operator::is_chosen_and_given_up(&story.stage).await?;
    story.note("an operator has come and gone");
    story.renewed().await?;
    story.changed_mode().await?;
    story.revoked().await?;
    story.left().await?;
    operator::is_there_until_the_end(&story.stage).await?;
    story.note("an operator has gone last");
    story.deleted().await?;
    story.stage.rights_are_as_used()?;
    story.stage.stop().await
}

struct Story {
    stage: Stage,
    since: Instant,
}

impl Story {
    fn note(&self, what: &str) {
        println!("{what} after {:.1?}", self.since.elapsed());
    }

    /// Checks that a GitOpsCluster creates the add-on, certificates and Secrets for every cluster that its Placement selects.
    async fn installed(&self) -> Result<()> {
        let Stage { hub, .. } = &self.stage;
        let started = Instant::now();
        hub.create(&stage::gitops_cluster(&json!({}))).await?;
        for cluster in self.stage.clusters() {
            let name = cluster.name();
            hub.wait_for(&stage::addon(name), |it| is_true(it, "Available")).await?;
            cluster
                .wait_for(&ObjectRef::secret("argocd", SIGNED), |it| {
                    it["data"]["tls.crt"].is_string()
                })
                .await?;
            let authority = ObjectRef::secret("argocd", "argocd-agent-ca");
            let authority = cluster.wait_for(&authority, |_| true).await?;
            ensure!(
                authority["data"].as_object().is_some_and(|data| data.len() == 1),
                "no key leaves the hub"
            );
            let known = hub
                .wait_for(&ObjectRef::secret("argocd", &format!("cluster-{name}")), |_| true)
                .await?;
            let server = format!("https://argocd-agent-resource-proxy:9090?agentName={name}");
            assert_eq!(data(&known, "server")?, server);
            assert_eq!(
                known["metadata"]["labels"]["env"], "test",
                "the cluster's labels are there to select on"
            );
        }
        let it = hub
            .wait_for(&stage::fleet(), |it| condition(it, "Ready")[0] == "True")
            .await?;
        self.note("all is ready");
        ensure!(started.elapsed().as_secs() < 120, "it takes {:?}", started.elapsed());
        assert_eq!(it["status"]["clusters"]["connected"], 2, "{:#}", it["status"]);
        assert_eq!(
            it["status"]["server"],
            json!({"address": stage::ADDRESS, "port": stage::PORT})
        );
        let states = it["status"]["clusterStates"].as_array().context("states")?;
        assert!(states.iter().all(|it| it["state"] == "Connected"), "{states:#?}");
        let printed = self.stage.status("fleet")?;
        println!("{printed}");
        for cluster in ["cluster1", "cluster2"] {
            ensure!(
                printed
                    .lines()
                    .any(|line| line.contains(cluster) && line.contains("Connected")),
                "{printed}"
            );
        }
        let placement = hub.get(&stage::placement()).await?.context("the user's Placement")?;
        assert_eq!(placement["spec"], stage::placement_spec(), "it is not rewritten");
        Ok(())
    }

    /// Checks that principal and agents trust each other, and Argo CD and the resource proxy likewise.
    async fn met(&self) -> Result<()> {
        handshake::all_meet(&self.stage, stage::ADDRESS).await?;
        self.note("they have met");
        Ok(())
    }

    /// Checks that agents find the principal after its exposure changes.
    async fn found(&self) -> Result<()> {
        discovery::is_followed(&self.stage).await?;
        self.note("a Route has come and gone, and a port of the nodes");
        Ok(())
    }

    /// Checks that no agent gets the certificate of another cluster.
    async fn impersonated(&self) -> Result<()> {
        requests::are_refused(&self.stage).await?;
        self.note("another's name is refused");
        Ok(())
    }

    /// Checks that a new version rolls out cluster by cluster, and the old template is removed.
    async fn rolled_out(&self) -> Result<()> {
        let Stage { hub, .. } = &self.stage;
        let template = async || {
            let add_on = hub.get(&stage::management()).await?.context("the add-on")?;
            let configs = &add_on["spec"]["installStrategy"]["placements"][0]["configs"];
            anyhow::Ok(configs[0]["name"].as_str().context("a template")?.to_owned())
        };
        let before = template().await?;
        let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
        let agent = json!({"images": {"agent": "example.com/argocd-agent:v9"}, "rolloutStrategy": strategy});
        self.stage.patch(&json!({"agent": agent})).await?;
        for cluster in self.stage.clusters() {
            cluster
                .wait_for(&stage::agent(), |it| stage::image(it) == "example.com/argocd-agent:v9")
                .await?;
        }
        hub.wait_gone(&stage::template(&before)).await?;
        assert_ne!(template().await?, before);
        self.note("another version is everywhere");
        let before_that = json!({"images": {"agent": null}, "rolloutStrategy": null});
        self.stage.patch(&json!({"agent": before_that})).await?;
        for cluster in self.stage.clusters() {
            cluster
                .wait_for(&stage::agent(), |it| stage::image(it) != "example.com/argocd-agent:v9")
                .await?;
        }
        hub.wait_for(&stage::fleet(), |it| condition(it, "Ready")[0] == "True")
            .await?;
        assert_eq!(template().await?, before, "it is the same as before");
        self.note("the version before is back");
        Ok(())
    }

    /// Checks that an authority that nears its expiry is replaced by another, which all trust before it signs.
    async fn renewed(&self) -> Result<()> {
        let Stage { hub, cluster1, .. } = &self.stage;
        let authority = ObjectRef::secret("argocd", "argocd-agent-ca");
        let started_with = async || {
            let principal = hub.get(&stage::principal()).await?.context("the principal")?;
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
                not_before,
                not_after,
            },
            None,
        )?;
        let mut old: serde_json::Map<_, _> = old
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value.map(ByteString))))
            .collect();
        // The agents' certificates are from the old authority, which is trusted as long as they may be in use.
        let before_that = hub.get(&authority).await?.context("the authority")?;
        let both = data(&json!({"data": old}), "tls.crt")? + &data(&before_that, "tls.crt")?;
        old.insert("tls.crt".to_owned(), json!(ByteString(both.into_bytes())));
        hub.patch(&authority, &json!({"data": old})).await?;
        let name_of = |index: usize| {
            move |it: &Value| {
                let text = data(it, "tls.crt").unwrap_or_default();
                let all = pki::Certificate::read_all(text.as_bytes()).unwrap_or_default();
                all.get(index).map(|it| it.common_name.to_string())
            }
        };
        let old = pki::authority_name(not_before);
        let promoted = hub
            .wait_for(&authority, |it| {
                name_of(0)(it).is_some_and(|name| name != old) && name_of(1)(it).as_deref() == Some(&*old)
            })
            .await?;
        assert_eq!(promoted["data"]["next.key"], Value::Null, "it signs");
        let bundle = data(&promoted, "tls.crt")?;
        cluster1
            .wait_for(&ObjectRef::secret("argocd", "argocd-agent-ca"), |it| {
                data(it, "ca.crt").is_ok_and(|it| it == bundle)
            })
            .await?;
        let signer = pki::Certificate::read_all(bundle.as_bytes())?.swap_remove(0);
        for leaf in ["argocd-agent-principal-tls", "argocd-agent-resource-proxy-tls"] {
            hub.wait_for(&ObjectRef::secret("argocd", leaf), |it| {
                let text = data(it, "tls.crt").unwrap_or_default();
                let leaf = pki::Certificate::read_all(text.as_bytes()).unwrap_or_default();
                leaf.first().is_some_and(|leaf| leaf.is_issued_by(&signer))
            })
            .await?;
        }
        let restarted = async || (started_with().await.ok()? != before).then_some(());
        wait::eventually("the principal is started anew", wait::DEADLINE, restarted).await?;
        self.met().await?;
        hub.wait_for(&stage::fleet(), |it| condition(it, "Ready")[0] == "True")
            .await?;
        self.note("the authority is another");
        Ok(())
    }

    /// Checks the change from managed to autonomous agents.
    async fn changed_mode(&self) -> Result<()> {
        self.stage
            .patch(&json!({"argoCDAgentAddon": {"mode": "autonomous"}}))
            .await?;
        for cluster in self.stage.clusters() {
            cluster
                .wait_for(&stage::agent(), |it| it.to_string().contains("autonomous"))
                .await?;
        }
        self.note("they are autonomous");
        Ok(())
    }

    /// Checks that a revoked cluster loses its agent and the principal rejects its certificate, until it is admitted again. Its
    /// agent can change objects in its own namespace, which makes no difference.
    async fn revoked(&self) -> Result<()> {
        let Stage { hub, cluster2, .. } = &self.stage;
        requests::foreign_revocations_have_no_effect(&self.stage).await?;
        self.note("a GitOpsCluster of another namespace has revoked nothing");
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
        let has_all = |it: &Value| issued.iter().all(|fingerprint| it["data"][fingerprint].is_string());
        let blocklist = hub.wait_for(&blocklist, has_all).await?;
        ensure!(blocklist["data"]["A".repeat(64)].is_null(), "{blocklist:#}");
        let refused: Vec<_> = blocklist["data"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
            .collect();
        let is_fingerprint = |key: &&String| key.len() == 64 && key.chars().all(|it| "0123456789ABCDEF".contains(it));
        ensure!(
            !refused.is_empty() && refused.iter().all(is_fingerprint),
            "{blocklist:#}"
        );
        hub.wait_gone(&ObjectRef::manifest_work("cluster2", "argocd-agent-ca-mw"))
            .await?;
        cluster2.wait_gone(&stage::agent()).await?;
        self.note("one is revoked");
        self.stage.patch(&json!({"agent": {"revokedClusters": null}})).await?;
        hub.wait_for(&stage::addon("cluster2"), |it| is_true(it, "Available"))
            .await?;
        cluster2
            .wait_for(&ObjectRef::secret("argocd", SIGNED), |it| {
                it["data"]["tls.crt"].is_string()
            })
            .await?;
        self.note("it is back");
        Ok(())
    }

    /// Checks that a cluster that leaves the Placement loses its agent, and no other does.
    async fn left(&self) -> Result<()> {
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
        hub.wait_gone(&stage::addon("cluster2")).await?;
        hub.wait_gone(&ObjectRef::secret("argocd", "cluster-cluster2")).await?;
        hub.wait_gone(&ObjectRef::manifest_work("cluster2", "argocd-agent-ca-mw"))
            .await?;
        cluster2.wait_gone(&stage::agent()).await?;
        let stays = ObjectRef::manifest_work("cluster1", "argocd-agent-ca-mw");
        assert!(hub.get(&stays).await?.is_some_and(|work| is_applied(&work)));
        assert!(cluster1.get(&stage::agent()).await?.is_some());
        let crd = "applications.argoproj.io";
        let crd = ObjectRef::crd(crd);
        let crd = cluster2
            .get(&crd)
            .await?
            .context("what takes Applications along stays")?;
        assert_eq!(crd["metadata"]["deletionTimestamp"], Value::Null);
        requests::are_few(&self.stage).await?;
        self.note("one has left");
        Ok(())
    }

    /// Checks that deleting the last GitOpsCluster deletes all objects created for it, and nothing else.
    async fn deleted(&self) -> Result<()> {
        let Stage { hub, cluster1, .. } = &self.stage;
        hub.wait_gone(&stage::fleet()).await?;
        assert!(cluster1.get(&stage::agent()).await?.is_none(), "it waits for that");
        for (api_version, kind) in [
            ("addon.open-cluster-management.io/v1alpha1", "AddOnTemplate"),
            ("addon.open-cluster-management.io/v1alpha1", "AddOnDeploymentConfig"),
            ("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn"),
            ("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn"),
        ] {
            assert_eq!(hub.list(api_version, kind).await?, [Value::Null; 0], "{kind}");
        }
        let no_works = async || {
            let works = hub
                .list("work.open-cluster-management.io/v1", "ManifestWork")
                .await
                .ok()?;
            works.is_empty().then_some(())
        };
        wait::eventually("the works of OCM's are gone too", wait::DEADLINE, no_works).await?;
        let secrets = hub.list("v1", "Secret").await?;
        let left: Vec<_> = secrets
            .iter()
            .filter(|it| it["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "argocd-ocm-cmp")
            .map(|it| &it["metadata"]["name"])
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let placements = hub
            .list("cluster.open-cluster-management.io/v1beta1", "Placement")
            .await?;
        assert_eq!(placements.len(), 1, "the user's");
        self.note("nothing is left");
        Ok(())
    }
}
