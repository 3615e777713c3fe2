//! Tests of the ways into Argo CD besides a folder of a Git repository, as docs/ways-in.md describes them: OCI artefacts, Helm
//! repositories, the source hydrator, several sources, variables that tools write, and monorepos.

use super::{colour, desk};
use crate::documents::documents;
use crate::policy::{PROJECT, comparison_error};
use crate::stage::{PLUGIN_WITH_POLICY, application, apply, shipped_object};
use anyhow::{Context, Result, ensure};
use primitives::hash::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use testbed::{GitRepository, ObjectRef, is_applied, wait};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Starts a server of files by path, each with its media type, and returns its address. It ends with the program.
pub(crate) fn serve(files: BTreeMap<String, (&'static str, Vec<u8>)>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that hangs up is not a fault of the server.
            drop(answer(stream, &files));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, files: &BTreeMap<String, (&'static str, Vec<u8>)>) -> std::io::Result<()> {
    let mut request = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    request.read_line(&mut line)?;
    let mut header = String::new();
    while request.read_line(&mut header)? > 2 {
        header.clear();
    }
    let mut words = line.split_whitespace();
    let (is_head, path) = (words.next() == Some("HEAD"), words.next().unwrap_or_default());
    let Some((media_type, content)) = files.get(path) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nDocker-Content-Digest: {}\r\nConnection: \
         close\r\n\r\n",
        content.len(),
        digest(content)
    )?;
    if is_head { Ok(()) } else { stream.write_all(content) }
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(content)))
}

/// Returns files, given as path and content, as an archive.
fn archive(files: &[(&str, &str)]) -> Result<Vec<u8>> {
    let repository = GitRepository::new()?;
    repository.commit(files)?;
    git(&repository, "archive --format=tar.gz HEAD")
}

/// Runs Git in a repository, and returns its output.
fn git(repository: &GitRepository, words: &str) -> Result<Vec<u8>> {
    let mut command = Command::new("git");
    let output = command.args(words.split(' ')).current_dir(repository.path()).output()?;
    ensure!(output.status.success(), "git {words}: {output:?}");
    Ok(output.stdout)
}

/// Returns a chart with a ConfigMap whose colour is a value.
fn chart(name: &str) -> [(String, String); 2] {
    let (chart, template) = (
        format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"),
        colour(name, "{{ .Values.colour }}"),
    );
    [
        (format!("{name}/Chart.yaml"), chart),
        (format!("{name}/templates/colour.yaml"), template),
    ]
}

#[tokio::test]
async fn delivers_an_oci_artefact() -> Result<()> {
    let desk = desk().await?;
    let name = "artefact";
    let layer = archive(&[("deploy/colour.yaml", &colour(name, "green"))])?;
    let config = b"{}".to_vec();
    let descriptor = |media_type: &str, content: &[u8]| json!({"mediaType": media_type, "digest": digest(content), "size": content.len()});
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor("application/vnd.oci.empty.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer)],
    });
    let manifest = manifest.to_string().into_bytes();
    let (json, bytes) = ("application/json", "application/octet-stream");
    let tags = br#"{"name":"shop","tags":["1.0.0"]}"#.to_vec();
    let by_digest = format!("/v2/shop/manifests/{}", digest(&manifest));
    let address = serve(BTreeMap::from([
        ("/v2/".to_owned(), (json, b"{}".to_vec())),
        ("/v2/shop/tags/list".to_owned(), (json, tags)),
        ("/v2/shop/manifests/1.0.0".to_owned(), (MANIFEST, manifest.clone())),
        (by_digest, (MANIFEST, manifest)),
        (format!("/v2/shop/blobs/{}", digest(&config)), (bytes, config)),
        (format!("/v2/shop/blobs/{}", digest(&layer)), (bytes, layer)),
    ]))?;
    let url = format!("oci://{address}/shop");
    desk.hub
        .apply(&ObjectRef::secret("argocd", name).with(json!({
            "metadata": {"labels": {"argocd.argoproj.io/secret-type": "repository"}},
            "stringData": {"type": "oci", "url": url, "insecureOCIForceHttp": "true"},
        })))
        .await?;
    desk.create(name, &GitRepository::new()?, |app| {
        let source = &mut app["spec"]["source"];
        source["repoURL"] = json!(url);
        source["targetRevision"] = json!("1.0.0");
        source["path"] = json!("deploy");
    })
    .await?;
    desk.sync(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "green"}));
    desk.delete(name)
}

#[tokio::test]
async fn delivers_a_chart_of_a_helm_repository() -> Result<()> {
    let desk = desk().await?;
    let name = "packaged";
    let files = chart(name);
    let files = files.each_ref().map(|(path, content)| (&**path, &**content));
    let package = archive(&files)?;
    let index = format!(
        "apiVersion: v1\nentries:\n  {name}:\n  - apiVersion: v2\n    name: {name}\n    version: 1.0.0\n    digest: {}\n    urls: \
         [{name}-1.0.0.tgz]\n",
        hex(&Sha256::digest(&package))
    );
    let address = serve(BTreeMap::from([
        ("/index.yaml".to_owned(), ("text/yaml", index.into_bytes())),
        (format!("/{name}-1.0.0.tgz"), ("application/gzip", package)),
    ]))?;
    desk.create(name, &GitRepository::new()?, |app| {
        let source = &mut app["spec"]["source"];
        source["repoURL"] = json!(format!("http://{address}"));
        source["chart"] = json!(name);
        source["targetRevision"] = json!("1.0.0");
        source["path"] = Value::Null;
        source["plugin"]["parameters"] = json!([{"name": "helm-parameters", "map": {"colour": "blue"}}]);
    })
    .await?;
    desk.sync(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "blue"}));
    desk.delete(name)
}

/// Returns true if the hydrator of Argo CD runs plugins, and can sign its commits.
fn hydrates_plugins() -> bool {
    testbed::argocd_version() != "3.2"
}

/// Returns the shipped Application with a source for the hydrator instead.
fn hydrated(name: &str, git: &GitRepository) -> Result<Value> {
    let mut app = application(name, git)?;
    let dry = app["spec"]["source"].take();
    let spec = app["spec"].as_object_mut().context("a spec")?;
    spec.remove("source");
    let hydrated = json!({"targetBranch": format!("hydrated/{name}"), "path": "works"});
    spec.insert(
        "sourceHydrator".to_owned(),
        json!({"drySource": dry, "syncSource": hydrated}),
    );
    Ok(app)
}

#[tokio::test]
async fn hydrated_works_are_delivered_as_the_plugin_made_them() -> Result<()> {
    if !hydrates_plugins() {
        return Ok(());
    }
    let desk = desk().await?;
    let name = "hydrated";
    let repository = GitRepository::new()?;
    let files = chart(name);
    let mut files: Vec<_> = files.iter().map(|(path, content)| (&**path, &**content)).collect();
    files.push(("hydrated/values.yaml", "colour: green\n"));
    repository.commit(&files)?;
    desk.hub.create_application(&hydrated(name, &repository)?).await?;
    desk.wait(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "green"}));

    let committed = git(&repository, "show hydrated/hydrated:works/manifest.yaml")?;
    let committed = documents(&String::from_utf8(committed)?)?;
    let committed = committed.first().context("a work")?;
    let work = ObjectRef::manifest_work("cluster1", name);
    let work = desk.hub.wait_for(&work, is_applied).await?;
    assert_eq!(committed["spec"]["workload"], work["spec"]["workload"]);
    desk.delete(name)
}

/// Pushes a change of a file to a branch, as a user with write access to the repository.
fn push_to(repository: &GitRepository, branch: &str, file: &str, change: impl Fn(&str) -> String) -> Result<()> {
    let clone = GitRepository::clone_of(repository.path())?;
    git(&clone, &format!("checkout --quiet -B {branch} origin/{branch}"))?;
    let text = fs::read_to_string(clone.path().join(file))?;
    clone.commit(&[(file, &change(&text))])?;
    git(&clone, &format!("push --quiet origin {branch}")).map(drop)
}

#[tokio::test]
async fn only_signed_hydrated_commits_are_delivered() -> Result<()> {
    if !hydrates_plugins() {
        return Ok(());
    }
    let desk = desk().await?;
    let name = "signed";
    let (dry, wet) = (GitRepository::new()?, GitRepository::new()?);
    dry.commit(&[("signed/colour.yaml", &colour(name, "green"))])?;
    wet.commit(&[("README.md", "Hydrated works\n")])?;
    let mut project = shipped_object("proj.yaml")?;
    project["metadata"]["name"] = json!(name);
    let gpg = json!({"mode": "head", "keys": [desk.signing_key]});
    project["spec"]["sourceIntegrity"] = json!({"git": {"policies": [{"repos": [{"url": wet.url()}], "gpg": gpg}]}});
    desk.hub.apply(&project).await?;
    let mut app = hydrated(name, &dry)?;
    app["spec"]["project"] = json!(name);
    app["spec"]["sourceHydrator"]["syncSource"]["repoURL"] = json!(wet.url());
    desk.hub.create_application(&app).await?;
    desk.wait(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "green"}));

    push_to(&wet, "hydrated/signed", "works/manifest.yaml", |work| {
        work.replace("green", "red")
    })?;
    desk.hub.refresh_application(name, "hard").await?;
    let application = ObjectRef::application(name);
    let is_refused = |app: &Value| {
        app["status"]["conditions"]
            .to_string()
            .contains("Failed verifying revision")
    };
    desk.hub.wait_for(&application, is_refused).await?;
    assert_eq!(desk.data(name).await?, json!({"colour": "green"}));
    desk.remove(&application).await
}

#[tokio::test]
async fn policy_refuses_to_hydrate() -> Result<()> {
    if !hydrates_plugins() {
        return Ok(());
    }
    let desk = desk().await?;
    let name = "refused";
    let mut project = shipped_object("proj.yaml")?;
    project["metadata"]["name"] = json!(PROJECT);
    desk.hub.apply(&project).await?;
    let repository = GitRepository::new()?;
    let limits = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: limits, namespace: team-a}\nspec: {limits: []}\n";
    repository.commit(&[("refused/limits.yaml", limits)])?;
    let mut app = hydrated(name, &repository)?;
    app["spec"]["project"] = json!(PROJECT);
    app["spec"]["sourceHydrator"]["drySource"]["plugin"]["name"] = json!(PLUGIN_WITH_POLICY);
    desk.hub.create_application(&app).await?;
    let application = ObjectRef::application(name);
    let has_failed = |app: &Value| app["status"]["sourceHydrator"]["currentOperation"]["phase"] == "Failed";
    let app = desk.hub.wait_for(&application, has_failed).await?;
    let message = app["status"]["sourceHydrator"]["currentOperation"]["message"].as_str();
    let message = message.context("a message")?;
    assert!(message.contains("LimitRange"), "{message}");
    let findings = desk.findings()?;
    assert!(findings.contains("applications-policy"), "{findings}");
    let branches = git(&repository, "branch --list hydrated/*")?;
    assert!(branches.is_empty(), "{}", String::from_utf8_lossy(&branches));
    desk.remove(&application).await
}

#[tokio::test]
async fn sources_that_share_works_are_refused_and_others_are_delivered() -> Result<()> {
    let desk = desk().await?;
    let git = GitRepository::new()?;
    git.commit(&[
        ("front/colour.yaml", &colour("several-front", "green")),
        ("back/colour.yaml", &colour("several-back", "blue")),
    ])?;
    apply(&desk.hub, "deploy/plugin_sources.yaml")?;
    let source_for = |cluster: &str, folder: &str, name: Option<&str>| {
        let mut plugin = json!({"name": "argocd-ocm-cmp", "env": [{"name": "TARGET_CLUSTER", "value": cluster}]});
        if let Some(name) = name {
            plugin["parameters"] = json!([{"name": "name", "string": name}]);
        }
        json!({"repoURL": git.url(), "targetRevision": "HEAD", "path": folder, "plugin": plugin})
    };
    let source = |folder: &str, name: Option<&str>| source_for("cluster1", folder, name);
    let app = |sources: &[Value]| {
        let mut app = application("several", &git)?;
        app["metadata"]["namespace"] = json!("argocd");
        app["spec"]["source"] = Value::Null;
        app["spec"]["sources"] = json!(sources);
        app["spec"]["syncPolicy"] = Value::Null;
        anyhow::Ok(app)
    };
    let create = |app: &Value| {
        let arguments = ["create", "--dry-run=server", "-f", "-"];
        desk.hub.kubectl_with_input(&arguments, &app.to_string())
    };
    let shared = app(&[source("front", None), source("back", None)])?;
    // The API server enforces a new policy after some seconds.
    let refused = async || Some(format!("{:#}", create(&shared).err()?));
    let refused = wait::eventually("the policy is enforced", wait::DEADLINE, refused).await?;
    assert!(
        refused.contains("sources of the Application share the works"),
        "{refused}"
    );
    // The sets of Placements are in the namespaces of these.
    let selected_by = |placement: &str| {
        let mut source = source("front", None);
        source["plugin"]["parameters"] = json!([{"name": "placement", "string": placement}]);
        source
    };
    create(&app(&[selected_by("fleet/eu"), selected_by("other/us")])?)?;
    let two_clusters = source_for("cluster1, cluster2", "front", None);
    for (what, sources) in [
        (
            "one name",
            [source("front", Some("front")), source("back", Some("front"))],
        ),
        (
            "the default name",
            [source("front", Some("several")), source("back", None)],
        ),
        // As the plugin reads them: a blank text is none, and one text may name several clusters.
        ("a blank name", [source("front", Some(" ")), source("back", None)]),
        ("a cluster of two", [two_clusters, source_for("cluster2", "back", None)]),
        ("one namespace", [selected_by("fleet/eu"), selected_by("fleet/us")]),
    ] {
        assert!(create(&app(&sources)?).is_err(), "{what}");
    }
    create(&application("several", &git)?)?;
    // Sources of other plugins, those that Argo CD detects, and those of other clusters share nothing.
    let mut others = [source("front", None), source("back", None)];
    others[0]["plugin"]["name"] = json!("another");
    create(&app(&others)?)?;
    for other in &mut others {
        other["plugin"] = json!({"env": [{"name": "A", "value": "b"}], "parameters": [{"string": "c"}]});
    }
    create(&app(&others)?)?;
    create(&app(&[source("front", None), source_for("cluster2", "back", None)])?)?;

    let separate = app(&[source("front", Some("several-front")), source("back", None)])?;
    desk.hub.create_application(&separate).await?;
    desk.sync("several")?;
    assert_eq!(desk.data("several-front").await?, json!({"colour": "green"}));
    assert_eq!(desk.data("several-back").await?, json!({"colour": "blue"}));
    desk.delete("several")
}

#[tokio::test]
async fn variables_that_a_tool_writes_reach_a_chart() -> Result<()> {
    let desk = desk().await?;
    let name = "variables";
    let git = GitRepository::new()?;
    let files = chart(name);
    git.commit(&files.each_ref().map(|(path, content)| (&**path, &**content)))?;
    desk.create(name, &git, |app| {
        let plugin = &mut app["spec"]["source"]["plugin"];
        plugin["parameters"] = json!([
            {"name": "clusters", "array": ["cluster1"]},
            {"name": "helm-parameters", "map": {"colour": "$ARGOCD_ENV_IMAGE_TAG"}},
        ]);
        plugin["env"] = json!([{"name": "IMAGE_TAG", "value": "1.0.0"}]);
    })
    .await?;
    desk.sync(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "1.0.0"}));

    // Argo CD merges the file that Argo CD Image Updater commits.
    let parameters =
        "plugin:\n  env:\n  - name: TARGET_CLUSTER\n    value: cluster1\n  - name: IMAGE_TAG\n    value: 1.1.0\n";
    git.commit(&[("variables/.argocd-source-variables.yaml", parameters)])?;
    desk.hub.refresh_application(name, "hard").await?;
    desk.sync(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "1.1.0"}));
    desk.delete(name)
}

#[tokio::test]
async fn plugin_gets_the_named_paths_of_a_monorepo() -> Result<()> {
    let desk = desk().await?;
    let name = "monorepo";
    let git = GitRepository::new()?;
    git.commit(&[
        ("base/kustomization.yaml", "resources: [colour.yaml]\n"),
        ("base/colour.yaml", &colour(name, "green")),
        ("monorepo/kustomization.yaml", "resources: [../base]\n"),
        ("unrelated/large.yaml", "a: b\n"),
    ])?;
    let annotation = "argocd.argoproj.io/manifest-generate-paths";
    desk.create(name, &git, |app| {
        app["metadata"]["annotations"] = json!({annotation: "."});
    })
    .await?;
    let application = ObjectRef::application(name);
    let has_error = |app: &Value| comparison_error(app).is_some();
    let app = desk.hub.wait_for(&application, has_error).await?;
    let error = comparison_error(&app).context("an error")?;
    assert!(error.contains("../base"), "{error}");

    let both = json!({"metadata": {"annotations": {annotation: ".;/base"}}});
    desk.hub.patch(&application, &both).await?;
    desk.hub.refresh_application(name, "hard").await?;
    desk.sync(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "green"}));

    // Files that the administrator excludes are not sent.
    fs::write(git.path().join("monorepo/disk.iso"), "large")?;
    let with_disk = "resources: [../base]\nconfigMapGenerator: [{name: disk, files: [disk.iso]}]\n";
    git.commit(&[("monorepo/kustomization.yaml", with_disk)])?;
    desk.hub.refresh_application(name, "hard").await?;
    let is_missing = |app: &Value| comparison_error(app).is_some_and(|error| error.contains("disk.iso"));
    desk.hub.wait_for(&application, is_missing).await?;
    desk.delete(name)
}
