//! Tests of `deploy_cmp.yaml`, and `deploy/deploy_policy.yaml` after it, on the repo-server of Argo CD's own core-install.

use crate::stage::{apply_server_side, program, shipped, stage};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::{ObjectRef, Parts};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\n";

#[tokio::test]
async fn sidecar_patch_changes_nothing_else_of_the_repo_server() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    let repo_server = ObjectRef::deployment("argocd", "argocd-repo-server");
    let before = hub.read(&repo_server).await?;
    apply_server_side(hub, "deploy_cmp.yaml")?;
    let after = hub.read(&repo_server).await?;

    let (added, kept) = split(&after, "containers");
    assert_eq!(added.len(), 1);
    assert_eq!(added[0]["command"][0], "/var/run/argocd/argocd-cmp-server");
    assert_eq!(
        kept,
        list(&before, "containers"),
        "the original containers are unchanged"
    );
    let (added, kept) = split(&after, "initContainers");
    assert_eq!(added.len(), 1);
    assert_eq!(kept, list(&before, "initContainers"));
    let (added, kept) = split(&after, "volumes");
    assert_eq!(added.len(), 4);
    assert_eq!(kept, list(&before, "volumes"));
    let mut reduced = after.clone();
    for part in ["containers", "initContainers", "volumes"] {
        reduced["spec"]["template"]["spec"][part] = before["spec"]["template"]["spec"][part].clone();
    }
    assert_eq!(reduced["spec"], before["spec"], "the rest is unchanged");

    apply_server_side(hub, "deploy_cmp.yaml")?;
    let again = hub.read(&repo_server).await?;
    assert_eq!(
        again["metadata"]["generation"], after["metadata"]["generation"],
        "a second apply changes nothing"
    );

    // The volumes that the sidecar mounts exist: Argo CD's own, and our ConfigMap.
    let volumes = list(&after, "volumes");
    for mount in sidecar(&after)["volumeMounts"].as_array().context("mounts")? {
        assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
    }

    // The policy changes only the sidecar, and applying either file again keeps the fields of the other.
    let manager = "--field-manager=argocd-ocm-cmp-policy";
    hub.apply_file(&shipped("deploy/deploy_policy.yaml"), &["--server-side", manager])?;
    apply_server_side(hub, "deploy_cmp.yaml")?;
    let bound = hub.read(&repo_server).await?;
    let mut expected = sidecar(&after);
    let bound_sidecar = sidecar(&bound);
    let mount = json!({"name": "argocd-ocm-cmp-policy", "mountPath": "/etc/argocd-ocm-cmp"});
    let variable = json!({"name": "ARGOCD_OCM_CMP_POLICY_FILE", "value": "/etc/argocd-ocm-cmp/policy.yaml"});
    expected["env"].as_array_mut().context("variables")?.push(variable);
    expected["volumeMounts"].as_array_mut().context("mounts")?.push(mount);
    assert_eq!(bound_sidecar, expected);
    assert_eq!(split(&bound, "containers").1, list(&before, "containers"));
    assert_eq!(split(&bound, "volumes").0.len(), 5);
    Ok(())
}

#[test]
fn sidecars_permissions_suffice_to_render() -> Result<()> {
    // Programs and sources that every user can read, and only the owner of the tests can write.
    let folder = tempfile::tempdir()?;
    let readable = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755));
    readable(folder.path())?;
    let programs = folder.path().join("bin");
    fs::create_dir(&programs)?;
    let tools = Parts::ensure()?.tools().to_owned();
    for program in [tools.join("kustomize"), tools.join("helm"), program()] {
        let copy = programs.join(program.file_name().context("a program")?);
        fs::copy(&program, &copy)?;
        readable(&copy)?;
    }
    let write = |file: &str, text: &str| -> Result<()> {
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().context("a folder")?)?;
        Ok(fs::write(file, text)?)
    };
    write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 0.1.0\n")?;
    write("chart/values.yaml", "colour: green\n")?;
    let template = CONFIG_MAP.replace("config", "coloured") + "data:\n  colour: {{ .Values.colour }}\n";
    write("chart/templates/config.yaml", &template)?;
    // A file that helm would read if the folder were its home, and fail on.
    write("chart/.local/share/helm/plugins/any/plugin.yaml", "name: [\n")?;
    write("base/config.yaml", CONFIG_MAP)?;
    let base = "resources: [config.yaml]\nconfigMapGenerator: [{name: texts, literals: [a=b]}]\n";
    write("base/kustomization.yaml", base)?;
    let inflated = "namePrefix: eu-\nresources: [../base]\nhelmGlobals: {chartHome: ..}\nhelmCharts: [{name: chart}]\n";
    write("overlay/kustomization.yaml", inflated)?;
    let (home, tmp) = (folder.path().join("home"), folder.path().join("tmp"));
    fs::create_dir(&home)?;
    fs::create_dir(&tmp)?;
    fs::set_permissions(&home, Permissions::from_mode(0o555))?;
    fs::set_permissions(&tmp, Permissions::from_mode(0o777))?;

    // A user that no machine knows, such as OpenShift assigns.
    let user = "1000650000";
    let output = Command::new("id").arg("-u").output()?;
    let may_change_user = output.stdout == b"0\n";
    let render = |source: &str, home: Option<&Path>| -> Result<String> {
        let mut command = Command::new("setpriv");
        if may_change_user {
            command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
        }
        command.args(["--no-new-privs", "env", "--ignore-environment"]);
        command.arg(format!("PATH={}", programs.display()));
        command.arg(format!("TMPDIR={}", tmp.display()));
        command.arg(format!("ARGOCD_APP_SOURCE_PATH={source}"));
        command.args(home.map(|home| format!("HOME={}", home.display())));
        command.args([
            "argocd-ocm-cmp",
            "generate",
            ".",
            "--cluster",
            "cluster1",
            "--name",
            "shop",
        ]);
        command.args([
            "--kustomize-options",
            "--enable-helm --load-restrictor=LoadRestrictionsNone",
        ]);
        command.current_dir(folder.path().join(source));
        let output = command.output()?;
        let printed = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && printed.is_empty(), "{source}: {printed}");
        Ok(String::from_utf8(output.stdout)?)
    };
    let before = files(folder.path());
    for home in [Some(&*home), Some(Path::new("/")), None] {
        assert!(render("chart", home)?.contains("colour: green"));
        let works = render("overlay", home)?;
        for name in [
            "name: eu-config",
            "name: eu-texts-",
            "name: eu-coloured",
            "colour: green",
        ] {
            assert!(works.contains(name), "{name}: {works}");
        }
    }
    let mut after = files(folder.path());
    // The locks that limit the tools of all processes stay.
    after.retain(|path| !path.to_string_lossy().contains(".argocd-ocm-cmp-slots-"));
    assert_eq!(after, before, "no file is left behind");
    Ok(())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let files = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    files.map(|file| file.path().to_owned()).collect()
}

fn list(deployment: &Value, part: &str) -> Vec<Value> {
    deployment["spec"]["template"]["spec"][part]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

/// Returns our entries, and the others.
fn split(deployment: &Value, part: &str) -> (Vec<Value>, Vec<Value>) {
    let ours = |entry: &Value| {
        entry["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("argocd-ocm-cmp"))
    };
    list(deployment, part).into_iter().partition(ours)
}

fn sidecar(deployment: &Value) -> Value {
    split(deployment, "containers").0.remove(0)
}
