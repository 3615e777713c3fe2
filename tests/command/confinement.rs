//! Checks the confinement of the tools: limits on resources, and isolation from files and the network.
//!
//! A script that replaces helm tests the isolation: it does what a vulnerability in Helm would allow a chart.

use crate::program::{program, tools, transcript, wait_for};
use generate::confine::{AllowedPaths, Confinement, Isolation, ResourceLimits, Scratch};
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A chart, a folder beside it that must not be readable, and a folder of programs.
struct Stage(TempDir);

impl Stage {
    fn new(template: &str) -> Self {
        let stage = Self(TempDir::new().expect("a scratch folder"));
        stage.write("repository/.git/HEAD", "");
        stage.write(
            "repository/chart/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 0.1.0\n",
        );
        stage.write("repository/chart/templates/object.yaml", template);
        stage.write("outside/secret", "canary-of-the-outside\n");
        stage
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        let file = self.0.path().join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, text).expect("a file");
        file
    }

    /// Replaces helm with a script.
    fn helm(&self, script: &str) -> PathBuf {
        let helm = self.write("programs/helm", &format!("#!/bin/bash\n{script}"));
        fs::set_permissions(&helm, Permissions::from_mode(0o755)).expect("permissions");
        helm.parent().expect("a folder").to_owned()
    }

    fn generate(&self, tools: &Path, isolation: &str) -> Command {
        let mut command = program(&self.0.path().join("repository/chart"));
        command
            .args(["generate", "--cluster", "cluster1", "--name", "shop"])
            .env("PATH", format!("{}:/usr/bin:/bin", tools.display()))
            .env("CANARY", "canary-of-the-environment")
            .env("ARGOCD_OCM_CMP_TOOL_ISOLATION", isolation);
        command
    }
}

impl Stage {
    /// Returns a script in its own namespaces that runs `generate`: `$0` is the program, `$1` the folder of the tools, and the
    /// arguments follow.
    fn unshared(&self, tools: &Path, isolation: &str, namespaces: &[&str], script: &str) -> Command {
        let generate = self.generate(tools, isolation);
        let mut command = Command::new("unshare");
        command.args(namespaces).args(["bash", "-euc", script]);
        command.arg(generate.get_program()).arg(tools).args(generate.get_args());
        command.env_clear();
        for (name, value) in generate.get_envs() {
            command.envs(value.map(|value| (name, value)));
        }
        command.current_dir(self.0.path().join("repository/chart"));
        command
    }
}

/// Returns a ConfigMap with one value.
fn config_map(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{x: \"{value}\"}}\n")
}

/// Returns what is missing for an isolation here; an empty text if nothing is.
fn missing(isolation: &str) -> String {
    let scratch = Scratch::new(&std::env::temp_dir()).expect("a folder");
    let root = scratch.folder("root").expect("a folder");
    let isolation: Isolation = isolation.parse().expect("an isolation");
    let confinement = Confinement::new(
        AllowedPaths::default(),
        false,
        ResourceLimits::default(),
        isolation,
        root,
    );
    let in_force = confinement
        .probe(Path::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp")))
        .expect("the supervisor runs");
    if in_force.confines_files() && in_force.confines_network() {
        String::new()
    } else {
        in_force.to_string()
    }
}

/// Starts the ignored tests of Landlock where the kernel has it. Elsewhere, they are reported as ignored.
#[test]
fn tests_of_landlock_pass_where_the_kernel_has_it() {
    let missing = missing("landlock");
    if !missing.is_empty() {
        assert!(std::env::var_os("CI").is_none(), "{missing}");
        return;
    }
    let this = std::env::current_exe().expect("the path of this program");
    let output = Command::new(this).args(["--ignored", "under_landlock"]).output();
    let output = output.expect("the tests run");
    assert!(output.status.success(), "{}", transcript(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("2 passed; 0 failed; 0 ignored"), "{printed}");
}

#[test]
#[ignore = "tests_of_landlock_pass_where_the_kernel_has_it runs it"]
fn tools_are_confined_and_render_under_landlock() {
    check_access(&["landlock"]);
    check_race(&["landlock"]);
    check_any_user(&["landlock"]);
    check_rendering(&["landlock"]);
}

/// Checks that a run fails and prints no works, and returns its error.
fn refused(output: &Output) -> String {
    let none = output.stdout.is_empty() && output.status.code() == Some(1);
    assert!(none, "{}", transcript(output));
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", transcript(output));
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn tool_cannot_access_foreign_files_processes_or_network() {
    check_access(&["all", "namespaces"]);
}

fn check_access(isolations: &[&str]) {
    let stage = Stage::new("");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let outside = stage.0.path().join("outside/secret");
    let script = format!(
        "found=$({{\n\
         cat {}\n\
         cat /proc/[0-9]*/environ | tr '\\0' '\\n'\n\
         (exec 3<>/dev/tcp/127.0.0.1/{port}) && echo canary-of-the-network\n\
         touch escaped && echo canary-of-the-checkout\n\
         [ -f Chart.yaml ] || echo canary-of-nothing\n\
         }} 2>/dev/null | grep -o 'canary-[a-z-]*' | sort -u | paste -sd' ')\n\
         echo \"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{x: '$found'}}}}\"\n",
        outside.display()
    );
    let tools = stage.helm(&script);
    let escaped = stage.0.path().join("repository/chart/escaped");
    for isolation in isolations {
        let works = printed(&stage.generate(&tools, isolation).output().expect("the program runs"));
        assert!(
            works.contains("x: \"\"") || works.contains("x: ''"),
            "{isolation}: {works}"
        );
        assert!(!escaped.exists(), "{isolation}");
    }
    // Without isolation, the script reaches files and processes, but no network.
    let works = printed(&stage.generate(&tools, "none").output().expect("the program runs"));
    for place in ["outside", "environment", "checkout"] {
        assert!(works.contains(&format!("canary-of-the-{place}")), "{place}: {works}");
    }
    assert!(!works.contains("canary-of-the-network"), "{works}");
}

#[test]
fn helm_cannot_follow_a_link_that_is_created_while_it_runs() {
    check_race(&["all", "namespaces"]);
}

fn check_race(isolations: &[&str]) {
    let real = tools();
    let stage = Stage::new(&config_map("{{ .Files.Get \"link\" | trim }}"));
    let secret = stage.0.path().join("outside/secret");
    // Simulates a race between the check and Helm, or a gap in the check.
    let tools = stage.helm(&format!(
        "cp -r . \"$TMPDIR/chart\"\ncd \"$TMPDIR/chart\"\nln -s {} link\nexec {} \"$@\"\n",
        secret.display(),
        real.join("helm").display()
    ));
    let path = format!("{}:{}:/usr/bin:/bin", tools.display(), real.display());
    for isolation in isolations {
        let output = stage.generate(&tools, isolation).env("PATH", &path).output();
        let transcript = transcript(&output.expect("the program runs"));
        assert!(!transcript.contains("canary"), "{isolation}: {transcript}");
        assert!(
            transcript.contains("error: helm template: "),
            "{isolation}: {transcript}"
        );
    }
    // Helm follows it without isolation.
    let output = stage.generate(&tools, "none").env("PATH", &path).output();
    let works = printed(&output.expect("the program runs"));
    assert!(works.contains("x: canary-of-the-outside"), "{works}");
}

#[test]
fn refuses_to_render_without_walls() {
    let tools = tools();
    let stage = Stage::new(&config_map("rendered"));
    let without_namespaces = |isolation: &str| {
        let script = "shift; echo 0 >/proc/sys/user/max_user_namespaces; exec \"$0\" \"$@\"";
        let output = stage
            .unshared(&tools, isolation, &["--user", "--map-root-user"], script)
            .output();
        output.expect("the program runs")
    };
    let output = without_namespaces("namespaces");
    assert_eq!(
        refused(&output),
        "error: helm and kustomize cannot be confined here, and could reach files and processes of others: run this where the kernel \
         has Landlock or user namespaces (`argocd-ocm-cmp confinement` prints what is missing), or set \
         ARGOCD_OCM_CMP_TOOL_ISOLATION=none to trust all sources as Argo CD does\n"
    );
    let accepted = without_namespaces("none");
    assert!(printed(&accepted).contains("x: rendered") && accepted.stderr.is_empty());
}

#[test]
fn tools_render_as_any_user_on_a_read_only_filesystem() {
    check_any_user(&["all", "namespaces"]);
}

fn check_any_user(isolations: &[&str]) {
    let tools = tools();
    if !nix::unistd::geteuid().is_root() {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI runs as root, which can become any user"
        );
        return;
    }
    let stage = Stage::new(&config_map("rendered"));
    fs::set_permissions(stage.0.path(), Permissions::from_mode(0o755)).expect("permissions");
    for isolation in isolations {
        // As on OpenShift: a user without an entry in /etc/passwd, in group root, without a home. The files are copied because
        // only root may be able to enter the original folders.
        let script = "mount -t tmpfs -o mode=1777 tmpfs /mnt\n\
             cp \"$0\" /mnt/argocd-ocm-cmp\n\
             cp \"$1/helm\" /mnt\n\
             shift\n\
             mount -o remount,bind,ro /\n\
             exec setpriv --reuid 1000650000 --regid 0 --clear-groups --no-new-privs --bounding-set=-all \
             /mnt/argocd-ocm-cmp \"$@\"";
        let mut command = stage.unshared(&tools, isolation, &["--mount"], script);
        command.env("PATH", "/mnt:/usr/bin:/bin");
        let output = command.env("HOME", "/").env("TMPDIR", "/mnt").output();
        let works = printed(&output.expect("the program runs"));
        assert!(works.contains("x: rendered"), "{isolation}: {works}");
    }
}

#[test]
fn tools_render_under_every_isolation() {
    check_rendering(&["all", "namespaces", "none"]);
}

fn check_rendering(isolations: &[&str]) {
    let tools = tools();
    let stage = Stage::new(&config_map("rendered"));
    stage.write("repository/overlay/kustomization.yaml", "resources: [../base]\n");
    stage.write("repository/base/kustomization.yaml", "resources: [object.yaml]\n");
    stage.write("repository/base/object.yaml", &config_map("rendered"));
    for isolation in isolations {
        for folder in ["chart", "overlay"] {
            let mut command = stage.generate(&tools, isolation);
            let output = command
                .current_dir(stage.0.path().join("repository").join(folder))
                .output();
            let works = printed(&output.expect("the program runs"));
            assert!(works.contains("x: rendered"), "{isolation}, {folder}: {works}");
        }
    }
}

#[test]
fn refuses_a_chart_that_takes_all_memory() {
    let tools = tools();
    let stage = Stage::new(&config_map("{{ until 2000000000 | len }}"));
    for isolation in ["all", "none"] {
        let start = Instant::now();
        let output = stage.generate(&tools, isolation).output().expect("the program runs");
        assert!(start.elapsed() < Duration::from_secs(60), "{isolation}");
        assert_eq!(
            refused(&output),
            "error: helm needs more than 1073741824 bytes of memory: make the source simpler, or ask an administrator to raise \
             --tool-memory (ARGOCD_OCM_CMP_TOOL_MEMORY in the sidecar)\n",
            "{isolation}"
        );
    }
}

#[test]
fn lack_of_own_memory_is_an_error_of_one_line() {
    let folder = TempDir::new().expect("a scratch folder");
    let object = |number: usize| config_map(&format!("of-{number}")).replace("name: a", &format!("name: a{number}"));
    let objects: Vec<String> = (0..60_000).map(object).collect();
    fs::write(folder.path().join("objects.yaml"), objects.join("---\n")).expect("a file");
    let generate = |memory: &str| {
        let mut command = program(folder.path());
        command.args(["generate", "--name=shop", "--cluster=cluster1", "--memory", memory]);
        command
            .env("ARGOCD_APP_NAME", "shop")
            .env("ARGOCD_APP_NAMESPACE", "shop");
        command.output().expect("the program runs")
    };
    let output = generate("80Mi");
    assert_eq!(
        refused(&output),
        "error: the plugin needs more memory than its limit: deliver fewer manifests or overlays with one Application, or ask an \
         administrator to raise --memory (ARGOCD_OCM_CMP_MEMORY in the sidecar)\n"
    );
    let output = generate("2Gi");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn ending_a_tool_ends_its_children() {
    for (nap, isolation) in [("98701.5", "all"), ("98702.5", "none")] {
        let stage = Stage::new("");
        let tools = stage.helm(&format!("sleep {nap} &\nwait\n"));
        let output = stage
            .generate(&tools, isolation)
            .args(["--exec-timeout", "1s"])
            .output();
        let output = output.expect("the program runs");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(printed.contains("helm has not ended after 1 seconds"), "{printed}");
        wait_for(&format!("{isolation}: the sleep ends"), || !is_running(nap));

        // Also when the program is killed from outside, as argocd-cmp-server does.
        let mut child = stage.generate(&tools, isolation).spawn().expect("the program starts");
        wait_for(&format!("{isolation}: the sleep starts"), || is_running(nap));
        child.kill().expect("the program is running");
        child.wait().expect("the program ends");
        wait_for(&format!("{isolation}: the sleep ends with the program"), || {
            !is_running(nap)
        });
    }
}

#[test]
fn refuses_output_and_clusters_beyond_the_limits() {
    let folder = TempDir::new().expect("a scratch folder");
    let object = config_map(&"x".repeat(400_000));
    fs::write(folder.path().join("object.yaml"), object).expect("a file");
    let clusters: Vec<String> = (0..600).map(|number| format!("c{number}")).collect();
    let generate = |more: &[&str]| {
        let mut command = program(folder.path());
        command
            .args(["generate", "--name", "shop", "--cluster", &clusters.join(",")])
            .args(more);
        // Settings of an Application have another name.
        command
            .env("ARGOCD_ENV_MAX_OUTPUT", "0")
            .env("ARGOCD_ENV_OCM_MAX_OUTPUT", "0");
        let output = command.output().expect("the program runs");
        refused(&output)
    };
    let printed = generate(&[]);
    assert!(
        printed.starts_with("error: the works of all clusters have more than 200000000 bytes"),
        "{printed}"
    );
    assert!(
        printed.contains("ARGOCD_OCM_CMP_MAX_OUTPUT") && printed.lines().count() == 1,
        "{printed}"
    );
    let printed = generate(&["--max-clusters", "500"]);
    assert!(
        printed.starts_with("error: the Application has 600 clusters, and the limit is 500"),
        "{printed}"
    );
    let more: Vec<String> = (0..4000).map(|number| format!("d{number}")).collect();
    let printed = generate(&["--max-output", "10G", "--cluster", &more.join(",")]);
    assert!(
        printed.starts_with("error: the Application has 4600 works, of which Argo CD stores 1730560 bytes"),
        "{printed}"
    );
}

/// Returns true if a `sleep` with this duration runs.
fn is_running(nap: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let mut commands = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    commands.any(|command| command == format!("sleep\0{nap}\0").into_bytes())
}
