//! Creates every Application and `ApplicationSet` of the shipped files and of the pages on a real hub, with a clone of the repository
//! as their source, and waits until Argo CD shows the Applications as Synced and Healthy.

use crate::commands::{Runs, commands, runs};
use crate::hub::{kubeconfig, options, run};
use crate::page::{pages, root};
use crate::shell::{Shell, programs};
use anyhow::{Context, Result, ensure};
use manifest::{json, yaml};
use serde_json::Value;
use std::fs;
use testbed::{ArgoCd, GitRepository, Hub, Kubelet, ManagedClusterOptions, ObjectRef, Parts};

/// The section of the README that creates `app.yaml`. The test of all commands follows it.
pub(crate) const QUICK_START: &str = "README.md#quick-start-on-a-hub";

/// The sections with `ApplicationSets`, whose commands are run here.
pub(crate) const SCENES: [&str; 2] = [
    "docs/clusters.md#an-application-for-each-cluster-of-a-placement",
    "docs/cluster-secrets.md#a-secret-for-each-cluster",
];

/// All Applications and `ApplicationSets`: the file, the kind and the name. Each is created here or by [`QUICK_START`], or by
/// `with_argocd/fleet/rolling_sync.rs` and `with_argocd/values.rs`.
const FOLLOWED: [(&str, &str, &str); 10] = [
    ("app.yaml", "Application", "guestbook"),
    ("docs/cluster-secrets.md", "ApplicationSet", "guestbook-prod"),
    ("docs/clusters.md", "Application", "shop"),
    ("docs/clusters.md", "ApplicationSet", "guestbook"),
    ("docs/pull.md", "Application", "guestbook"),
    ("examples/appset.yaml", "ApplicationSet", "guestbook"),
    ("examples/appset_values.yaml", "ApplicationSet", "shop-by-claim"),
    ("examples/appset_values.yaml", "ApplicationSet", "shop-by-group"),
    ("examples/appset_values.yaml", "ApplicationSet", "shop-by-label"),
    ("examples/rolling_sync.yaml", "ApplicationSet", "guestbook-waves"),
];

/// The policy of the administrator of this hub: the page on clusters asks to allow them.
const POLICY: &str = "\
apiVersion: argocd-ocm-cmp.github.io/v1alpha1
kind: Policy
projects:
- names: [managed-clusters]
  clusters: [cluster1, eu1, us1]
  namespaces: [default, shop]
  kinds: [Service, Deployment.apps]
";

/// An Application or `ApplicationSet` that a file shows.
struct Shown {
    file: String,
    object: Value,
    /// The YAML that contains it.
    text: String,
}

impl Shown {
    fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Creates it with another repository, as a user does.
    fn create(&self, hub: &Hub, repository: &str) -> Result<()> {
        let lines = self.text.lines().map(|line| match line.split_once("repoURL: ") {
            Some((indentation, _)) => format!("{indentation}repoURL: {repository}\n"),
            None => format!("{line}\n"),
        });
        hub.kubectl_with_input("apply -f -", &lines.collect::<String>())?;
        Ok(())
    }
}

/// Returns the Applications and `ApplicationSets` of the YAML files that users apply, and of all pages.
fn shown() -> Result<Vec<Shown>> {
    let mut texts = Vec::new();
    for folder in ["", "deploy", "examples"] {
        for entry in fs::read_dir(root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                let file = path.strip_prefix(root())?.display().to_string();
                texts.push((file, fs::read_to_string(&path)?));
            }
        }
    }
    for page in pages() {
        let blocks = page.blocks.into_iter().filter(|block| block.language == "yaml");
        texts.extend(blocks.map(|block| (page.path.clone(), block.text)));
    }
    let mut all = Vec::new();
    for (file, text) in texts {
        // Some blocks are only a part of a document.
        for document in yaml::documents(&text).flatten() {
            let mut object = String::new();
            json::write(&document.value, &mut object)?;
            let object: Value = serde_json::from_str(&object)?;
            if object["kind"] == "Application" || object["kind"] == "ApplicationSet" {
                let (file, text) = (file.clone(), text.clone());
                all.push(Shown { file, object, text });
            }
        }
    }
    Ok(all)
}

/// Returns the one that a file shows.
fn shown_in(file: &str, kind: &str) -> Result<Shown> {
    let mut all = shown()?.into_iter();
    all.find(|object| object.file == file && object.kind() == kind)
        .with_context(|| format!("{file} shows no {kind}"))
}

#[test]
fn follows_every_application() -> Result<()> {
    let all = shown()?;
    let mut names: Vec<_> = all
        .iter()
        .map(|object| (&*object.file, object.kind(), object.name()))
        .collect();
    names.sort_unstable();
    assert_eq!(names, FOLLOWED);
    Ok(())
}

#[test]
fn page_on_clusters_shows_the_example() -> Result<()> {
    let [page, example] = ["docs/clusters.md", "examples/appset.yaml"].map(|file| shown_in(file, "ApplicationSet"));
    assert_eq!(page?.object, example?.object);
    Ok(())
}

#[tokio::test]
async fn applications_of_the_pages_become_healthy() -> Result<()> {
    let clone = GitRepository::clone_of(&root())?;
    let hub = Hub::start().await?;
    let argocd = ArgoCd {
        application_sets: true,
        ..options()
    };
    let with_argocd = ManagedClusterOptions {
        argocd: Some(ArgoCd::default()),
        ..ManagedClusterOptions::default()
    };
    let cluster = |name, options| hub.add_managed_cluster(name, options);
    let (cluster1, eu1, us1, started, ocm) = tokio::join!(
        cluster("cluster1", with_argocd),
        cluster("eu1", ManagedClusterOptions::default()),
        cluster("us1", ManagedClusterOptions::default()),
        hub.start_argocd(argocd),
        hub.start_ocm_controllers()
    );
    let (cluster1, eu1, us1) = (cluster1?, eu1?, us1?);
    started?;
    ocm?;
    let shell = Shell::in_clone(&clone);
    let programs = programs(shell.folder())?;
    let kubeconfig = kubeconfig(shell.folder(), &hub, &[&cluster1, &eu1, &us1])?;
    let shell = shell.with_cluster(kubeconfig, &[&programs, Parts::ensure()?.tools()]);
    let mut kubelet = Kubelet::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    fs::write(shell.folder().join("everything.yaml"), POLICY)?;
    let install = |features: &str| {
        let image = "$REGISTRY/argocd-ocm-cmp:0.1.0";
        let outcome = shell.run(&format!("argocd-ocm-cmp install --image {image} --features {features}"));
        ensure!(outcome.code == Some(0), "{outcome:?}");
        Ok(())
    };
    let [for_each_decision, for_each_secret] = SCENES;

    install("plugin,project,controller --policy everything.yaml")?;
    kubelet.sync(&hub).await?;
    let git = GitRepository::new()?;
    git.commit_folder(&root().join("guestbook"), "deploy")?;
    for cluster in [&eu1, &us1] {
        cluster.create_namespace("shop").await?;
    }
    shown_in("docs/clusters.md", "Application")?.create(&hub, &git.url())?;
    wait_until_healthy(&hub, &["shop"]).await?;
    hub.kubectl("-n argocd delete application shop")?;

    run_scene(&shell, for_each_decision, &hub, &mut kubelet).await?;
    let created = ["guestbook-cluster1", "guestbook-eu1"];
    wait_until_healthy(&hub, &created).await?;
    hub.kubectl("-n argocd delete applicationset guestbook")?;
    for name in created {
        hub.wait_gone(&ObjectRef::application(name)).await?;
    }
    let secrets = "argocd.argoproj.io/secret-type=cluster";
    hub.kubectl(&["-n", "argocd", "delete", "secret", "-l", secrets])?;

    install("plugin,project,pull")?;
    kubelet.sync(&hub).await?;
    let permissions = shell.run("kubectl --context cluster1 apply -f deploy/pull_cluster_rbac.yaml");
    ensure!(permissions.code == Some(0), "{permissions:?}");
    shown_in("docs/pull.md", "Application")?.create(&hub, &clone.url())?;
    wait_until_healthy(&hub, &["guestbook"]).await?;
    hub.kubectl("-n argocd delete application guestbook")?;

    shown_in("docs/cluster-secrets.md", "ApplicationSet")?.create(&hub, &clone.url())?;
    run_scene(&shell, for_each_secret, &hub, &mut kubelet).await?;
    wait_until_healthy(&hub, &["guestbook-cluster1"]).await
}

/// Runs the commands of a section as the page shows them.
async fn run_scene(shell: &Shell, section: &str, hub: &Hub, kubelet: &mut Kubelet) -> Result<()> {
    let commands = commands().into_iter().filter(|command| command.section == section);
    for command in commands.filter(|command| runs(&command.text) == Some(Runs::OnHub)) {
        run(shell, &command).await?;
        kubelet.sync(hub).await?;
    }
    Ok(())
}

/// Waits until Argo CD shows these Applications as Synced and Healthy.
pub(crate) async fn wait_until_healthy(hub: &Hub, applications: &[&str]) -> Result<()> {
    let is_healthy = |application: &Value| {
        let status = &application["status"];
        status["sync"]["status"] == "Synced" && status["health"]["status"] == "Healthy"
    };
    for name in applications {
        hub.wait_for(&ObjectRef::application(name), is_healthy).await?;
    }
    Ok(())
}
