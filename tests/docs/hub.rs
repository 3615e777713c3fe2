//! Runs the commands that need a hub, in the order in which a user would run them: in a clone of the repository, which is also the
//! repository that Argo CD reads, on a real hub with Argo CD, the plugin and the controller, and a managed cluster.

use crate::applications;
use crate::commands::{Runs, Shown, commands, runs};
use crate::page::root;
use crate::shell::{Outcome, Shell, programs};
use crate::shown::is_shown;
use anyhow::{Result, bail, ensure};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use testbed::{ArgoCd, GitRepository, Hub, Kubelet, ManagedCluster, ManagedClusterOptions, ObjectRef, Parts, wait};

/// The sections whose commands are run, in order.
const SCENES: &[&str] = &[
    "README.md#quick-start-on-a-hub",
    "docs/install.md#install-with-kubectl",
    "docs/install.md#install-with-the-program",
    "docs/helm.md#install-with-helm",
    "docs/install.md#without-the-internet",
    "docs/troubleshooting.md#argo-cd-loses-what-it-had-when-something-is-applied-server-side",
    "docs/ui.md#install-the-extension",
    "docs/controller.md#the-state-of-the-works-in-applications",
    "docs/terminal.md#preview-the-works",
    "docs/terminal.md#the-state-of-an-application",
    "docs/terminal.md#all-applications-or-those-on-a-cluster",
    "docs/holds.md#hold-a-cluster",
    "docs/notifications.md#notifications",
    "docs/sources.md#sources",
    "docs/policies.md#what-a-project-may-deliver",
    "docs/clusters.md#a-placement-instead-of-clusters",
    "docs/pull.md#the-basic-pull-model",
    "docs/pull.md#argo-cd-on-managed-clusters",
    "docs/migration.md#argo-cd-on-clusters",
    "docs/pull.md#a-report-for-each-applicationset",
    "docs/gitopscluster.md#registering-clusters",
    "docs/argocd-agent.md#installing",
    "docs/migration.md#from-the-proof-of-concept",
    "docs/metrics.md#alerts",
];

/// The outputs that are not compared with the page, with the reasons. The commands themselves are run.
const NOT_COMPARED: &str = "\
kubectl -n argocd describe application guestbook: this hub has no second, broken cluster
kubectl get appsetreports -n argocd: no ApplicationSet has Applications here; tests/with_argocd/fleet/report.rs tests this
kubectl get managedclusteraddons -A: OCM's add-on manager does not run here; tests/with_agents tests this
kubectl -n argocd get goc: OCM's placement controller does not run here; tests/with_agents tests this
argocd-ocm-cmp gitopscluster status fleet -o wide: no agent runs here; tests/with_agents tests this";

fn not_compared() -> impl Iterator<Item = (&'static str, &'static str)> {
    NOT_COMPARED.lines().filter_map(|line| line.split_once(": "))
}

/// The interval of Argo CD's comparisons in seconds, which is its default.
const RESYNC: u32 = 120;

/// The delay before a command is retried.
const RETRY_DELAY: Duration = Duration::from_millis(500);

#[test]
fn every_hub_command_belongs_to_a_scene() {
    let all = commands();
    let for_hub = || all.iter().filter(|command| runs(&command.text) == Some(Runs::OnHub));
    for command in for_hub() {
        assert!(
            SCENES.contains(&&*command.section) || applications::SCENES.contains(&&*command.section),
            "{}: {} is not run: add {} to the scenes",
            command.location,
            command.text,
            command.section
        );
    }
    for scene in SCENES.iter().chain(&applications::SCENES) {
        assert!(
            for_hub().any(|command| command.section == *scene),
            "{scene} has no command for a hub"
        );
    }
    for (text, reason) in not_compared() {
        let has_output = |command: &&Shown| command.text == text && !command.output.is_empty();
        assert!(
            for_hub().any(|command| has_output(&command)),
            "no page shows an output of {text}, which is not compared because {reason}"
        );
    }
}

#[tokio::test]
async fn hub_commands_behave_as_documented() -> Result<()> {
    let hub = Hub::start().await?;
    let cloning = Instant::now();
    let clone = GitRepository::clone_of(&root())?;
    let (cluster1, started) = tokio::join!(
        hub.add_managed_cluster("cluster1", ManagedClusterOptions::default()),
        hub.start_argocd(options())
    );
    started?;
    let cluster1 = cluster1?;
    for name in ["eu1", "us1", "prod-eu"] {
        hub.declare_managed_cluster(name).await?;
    }
    let shell = Shell::in_clone(&clone);
    let programs = programs(shell.folder())?;
    let kubeconfig = kubeconfig(shell.folder(), &hub, &[&cluster1])?;
    let shell = shell.with_cluster(kubeconfig, &[&programs, Parts::ensure()?.tools()]);
    // A typical Argo CD, applied without --server-side: one of its settings, and argocd-server, which the testbed lacks. The works
    // are those of an earlier state of the folder shop.
    let config_map = ObjectRef::config_map("argocd", "argocd-cm").with(json!({
        "metadata": {"labels": {"app.kubernetes.io/part-of": "argocd"}},
        "data": {"help.chatText": "ask us"},
    }));
    hub.kubectl_with_input("apply -f -", &config_map.to_string())?;
    let server = Parts::ensure()?
        .argocd_manifests()
        .join("base/server/argocd-server-deployment.yaml");
    hub.apply_file(&server, &["--namespace=argocd"])?;
    // As argocd-pull-integration's chart creates it, with fewer manifests.
    hub.create(
        &ObjectRef::cluster("addon.open-cluster-management.io/v1alpha1", "AddOnTemplate", "argocd")
            .with(json!({"spec": {"addonName": "argocd", "agentSpec": {"workload": {"manifests": []}}}})),
    )
    .await?;
    let before = "argocd-ocm-cmp generate shop-before --clusters eu1,us1 --name shop --namespace shop --allow-secrets | kubectl apply -f -";
    let prepared = shell.run(before);
    ensure!(prepared.code == Some(0), "{prepared:?}");

    let mut kubelet = Kubelet::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    let mut errors = Vec::new();
    let all = commands();
    for scene in SCENES {
        for command in all
            .iter()
            .filter(|command| command.section == *scene && runs(&command.text) != Some(Runs::Never))
        {
            // Reports all errors at once: a hub takes a while to start.
            errors.extend(run(&shell, command).await.err());
            kubelet.sync(&hub).await?;
        }
        if *scene == applications::QUICK_START {
            errors.extend(applications::wait_until_healthy(&hub, &["guestbook"]).await.err());
            println!("from git clone to a healthy guestbook: {:?}", cloning.elapsed());
        }
    }
    let config_map = hub.read(&ObjectRef::config_map("argocd", "argocd-cm")).await?;
    ensure!(
        config_map["data"]["help.chatText"] == "ask us",
        "an existing setting was removed: {config_map}"
    );
    ensure!(
        config_map["metadata"]["labels"]["app.kubernetes.io/part-of"] == "argocd",
        "Argo CD finds the ConfigMap by its label"
    );
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    ensure!(errors.is_empty(), "{}", errors.join("\n\n"));
    Ok(())
}

/// Runs a command until its exit code and output match the page. Queries may have to wait for changes in progress; commands that
/// change something succeed at once.
pub(crate) async fn run(shell: &Shell, command: &Shown) -> Result<()> {
    let is_query = [" get ", " describe "].iter().any(|verb| command.text.contains(verb))
        || command.text.starts_with("argocd-ocm-cmp ");
    let holds = |outcome: &Outcome| {
        let is_other = not_compared().any(|(text, _)| text == command.text);
        outcome.has_succeeded(&command.text)
            && (command.output.is_empty() || is_other || is_shown(&command.output, &outcome.stdout))
    };
    let started = Instant::now();
    loop {
        let outcome = shell.run(&command.text);
        if holds(&outcome) {
            return Ok(());
        }
        if !is_query || started.elapsed() > wait::DEADLINE {
            let shown = command.output.join("\n");
            bail!(
                "{}: {}\nexit code {:?}, {}\nprints\n{}\nand shows\n{shown}",
                command.location,
                command.text,
                outcome.code,
                outcome.stderr,
                outcome.stdout
            );
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Returns the Argo CD of the tests, with the permissions and the interval of a usual one, and without a plugin.
pub(crate) fn options() -> ArgoCd {
    ArgoCd {
        resync: RESYNC,
        account: Some("argocd-application-controller".to_owned()),
        ..ArgoCd::default()
    }
}

/// Creates a kubeconfig for the hub, with the managed clusters as other contexts.
pub(crate) fn kubeconfig(folder: &Path, hub: &Hub, clusters: &[&ManagedCluster]) -> Result<PathBuf> {
    let path = folder.join("kubeconfig");
    fs::write(&path, hub.kubeconfig_with(clusters.iter().map(|cluster| &***cluster))?)?;
    Ok(path)
}
