//! Tests of extreme inputs and environments: no panic, no hang, no partial output, and no disproportionate memory.

use crate::program::{self, failed, folder, program_with, transcript};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const WORDS: [&str; 5] = [
    "generate",
    "--cluster=cluster1",
    "--name=shop",
    "--output=json",
    "--max-size=0",
];

fn config_map(name: &str, data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{data}")
}

fn run(folder: &Path, more: &[&str]) -> String {
    program::run(folder, &[&WORDS, more].concat())
}

#[test]
fn refuses_a_pipe_in_the_folder_without_reading_it() {
    let folder = folder(&[("a.yaml", config_map("a", "  k: v\n").as_bytes())]);
    let made = Command::new("mkfifo")
        .arg(folder.path().join("pipe.yaml"))
        .status()
        .expect("mkfifo");
    assert!(made.success());
    assert_eq!(
        run(folder.path(), &[]),
        failed(
            1,
            "pipe.yaml: not a regular file, so it cannot come from Git: remove it or exclude it"
        )
    );
    assert!(run(folder.path(), &["--exclude", "pipe.yaml"]).starts_with("exit code: 0\n"));
}

#[test]
fn links_to_folders_are_not_followed() {
    let folder = folder(&[("deep/a.yaml", config_map("a", "  k: v\n"))]);
    symlink("deep", folder.path().join("again.yaml")).expect("a link");
    symlink("..", folder.path().join("deep/up")).expect("a link");
    let printed = run(folder.path(), &[]);
    assert!(printed.starts_with("exit code: 0\n"), "{printed}");
    assert!(
        printed
            .ends_with("----- stderr -----\nwarning: again.yaml: left out: the link does not lead to a regular file\n"),
        "{printed}"
    );
}

#[test]
fn unreadable_file_or_folder_is_named() {
    let folder = folder(&[
        ("closed/a.yaml", "a".to_owned()),
        ("b.yaml", "b".to_owned()),
        ("c.yaml", config_map("c", "  k: v\n")),
    ]);
    let open = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(folder.path(), open(0o755)).expect("chmod");
    fs::set_permissions(folder.path().join("closed"), open(0o000)).expect("chmod");
    let mut command = program_with(folder.path(), WORDS);
    // Permissions do not bind root, and tests may run as root in a container.
    let is_root = fs::read_dir(folder.path().join("closed")).is_ok();
    let other_user = 65534;
    let binary = folder.path().join("program");
    if is_root {
        // Another user may not be able to enter the build folder. A process of its own writes the copy: a program that a test beside
        // this one starts meanwhile would inherit our open file, and Linux runs no file that is open for writing.
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_argocd-ocm-cmp"))
            .arg(&binary)
            .status();
        assert!(copied.expect("cp").success());
        command = Command::new(&binary);
        command
            .args(WORDS)
            .current_dir(folder.path())
            .env_clear()
            .uid(other_user)
            .gid(other_user);
    }
    assert_eq!(
        transcript(&command.output().expect("the program runs")),
        failed(1, "closed: the folder cannot be read: permission denied")
    );
    fs::set_permissions(folder.path().join("closed"), open(0o755)).expect("chmod");
    fs::set_permissions(folder.path().join("b.yaml"), open(0o000)).expect("chmod");
    assert_eq!(
        transcript(&command.output().expect("the program runs")),
        failed(1, "b.yaml: the file cannot be read: permission denied")
    );
}

#[test]
fn closed_pipe_is_silent_and_full_disk_is_an_error() {
    let large = config_map("a", &format!("  k: {}\n", "x".repeat(200_000)));
    let folder = folder(&[("a.yaml", large.as_bytes())]);
    let mut child = program_with(folder.path(), WORDS)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(1), &b""[..]));

    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let output = program_with(folder.path(), WORDS)
        .stdout(full)
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: the works cannot be written: no space left on device\n"
    );
}

#[test]
fn limits_nesting() {
    let nested = |levels: usize| config_map("a", &format!("  k: {}{}\n", "[".repeat(levels), "]".repeat(levels)));
    for (levels, works) in [(9_980, true), (9_995, false), (10_001, false), (1_000_000, false)] {
        let folder = folder(&[("a.yaml", nested(levels).as_bytes())]);
        let printed = run(folder.path(), &["--manifest-limit=100M"]);
        if works {
            assert!(printed.starts_with("exit code: 0\n"), "{levels}");
            let mut readable = program_with(
                folder.path(),
                ["generate", "--cluster=cluster1", "--name=shop", "--manifest-limit=0"],
            );
            assert!(
                readable.output().expect("the program runs").status.success(),
                "{levels}"
            );
        } else {
            assert!(
                printed.starts_with(&failed(1, "a.yaml:")[..60]),
                "{levels}: {}",
                &printed[..300.min(printed.len())]
            );
            assert_eq!(printed.lines().count(), 4, "{levels}");
        }
    }
    let unclosed = config_map("a", &format!("  k: {}\n", "[{a: ".repeat(500_000)));
    let folder = folder(&[("a.yaml", unclosed.as_bytes())]);
    assert_eq!(run(folder.path(), &[]).lines().count(), 4);
}

#[test]
fn refuses_an_alias_bomb() {
    let mut bomb = String::from("  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "  a{level}: &a{level} [{aliases}]").expect("writing to a String never fails");
    }
    let folder = folder(&[("a.yaml", config_map("a", &bomb).as_bytes())]);
    // A limit of the address space far below the size of the expanded aliases; the stacks of threads use a part of it.
    let printed = transcript(&run_limited("ulimit -v 1000000", folder.path(), ""));
    assert!(printed.starts_with(&failed(1, "a.yaml:")[..60]), "{printed}");
    assert_eq!(printed.lines().count(), 4);
}

/// Each of these files took minutes when the time grew with the square of its size, or doubled with each star or link.
#[test]
fn time_does_not_grow_faster_than_the_input() {
    let numbered =
        |count: usize, line: &str| -> String { (0..count).map(|n| line.replace('#', &n.to_string())).collect() };
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports:\n";
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n";
    for (name, content) in [
        (
            "actions",
            config_map("a", &format!("  k: '{}'\n", "{".repeat(1_000_000))),
        ),
        (
            "documents",
            config_map("a", "  k: v\n") + &"apiVersion: v1\n".repeat(70_000),
        ),
        (
            "ports",
            service.to_owned() + &numbered(200_000, "  - {port: #, name: p#}\n"),
        ),
        (
            "Secret",
            format!(
                "{secret}data:\n{}stringData:\n{}",
                numbered(200_000, "  z#: eA==\n"),
                numbered(200_000, "  a#: v\n")
            ),
        ),
    ] {
        let folder = folder(&[("a.yaml", content.as_bytes())]);
        ends_within_processor_time(
            name,
            folder.path(),
            "--manifest-limit=1G --work-size=1G --allow-secrets",
        );
    }
    let chart = "apiVersion: v2\nname: shop\nversion: 0.1.0\n";
    let files = [
        ("charts/shop/Chart.yaml", chart.to_owned()),
        (&*format!("charts/shop/{}", "a".repeat(100)), String::new()),
        ("loops/x.yaml", String::new()),
        (".git/HEAD", String::new()),
    ];
    let folder = folder(&files);
    for name in ["a", "b"] {
        symlink(".", folder.path().join("loops").join(name)).expect("a link");
    }
    let chart = folder.path().join("charts/shop");
    let stars = "*a".repeat(20);
    let printed = ends_within_processor_time("stars", &chart, &format!("--helm-value-files={stars}b"));
    assert!(printed.contains("there is no such file"), "{printed}");
    let printed = ends_within_processor_time("links", &chart, "--helm-value-files=/**/none.yaml");
    assert!(
        printed.contains("links to folders lead to more than 10000 folders"),
        "{printed}"
    );
}

/// Runs the program under a limit of the shell.
fn run_limited(limit: &str, folder: &Path, more: &str) -> Output {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("set -f; {limit}; exec \"$0\" {} {more}", WORDS.join(" ")),
    ]);
    command.arg(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    command
        .current_dir(folder)
        .env_clear()
        .output()
        .expect("the program runs")
}

/// Runs the program with a limit on its processor time, which does not depend on the load of the machine. Returns its output.
fn ends_within_processor_time(name: &str, folder: &Path, more: &str) -> String {
    let output = run_limited("ulimit -t 20", folder, more);
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{name}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn memory_stays_below_four_times_the_input() {
    const MIB: u64 = 1 << 20;
    // The memory that the program uses for any input.
    const BASE: u64 = 8 * MIB;
    let line = config_map("line", &format!("  k: {}\n", "x".repeat(10 << 20)));
    let block = config_map(
        "block",
        &format!("  k: |\n{}", "    some text that continues\n".repeat(300_000)),
    );
    let mut small = String::new();
    for n in 0..40_000 {
        write!(
            small,
            "---\n{}",
            config_map(&format!("c{n}"), "  some: text\n  number: '1'\n")
        )
        .expect("writing to a String never fails");
    }
    for (name, content) in [("line", line), ("block", block), ("small", small)] {
        let folder = folder(&[("a.yaml", content.as_bytes())]);
        let mut child = program_with(folder.path(), WORDS.into_iter().chain(["--manifest-limit=1G"]))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut stdout = child.stdout.take().expect("a pipe");
        // The reader stops: all input has been read and processed, and the process blocks on its output.
        let mut start = [0; 1];
        stdout.read_exact(&mut start).expect("output");
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("its status");
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).expect("output");
        assert!(child.wait().expect("the program ends").success(), "{name}");
        let figure = |name| {
            let figure = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
            figure.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
        };
        // Without the mapped pages of the program's own file, which is large without optimisation.
        let peak = figure("VmHWM:") - figure("RssFile:");
        let input = content.len() as u64;
        println!("{name}: {} MiB of input, {} MiB at the peak", input / MIB, peak / 1024);
        assert!(peak * 1024 < 4 * input + BASE, "{name}: {peak} kB for {input} bytes");
    }
}

#[test]
fn output_limit_counts_every_printed_byte() {
    let mut files = vec![("a.yaml".to_owned(), config_map("a", "  k: '<&>'\n"))];
    for n in 0..5 {
        let hook = format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j{n}, annotations: {{argocd.argoproj.io/hook: PreSync}}}}\n"
        );
        files.push((format!("j{n}.yaml"), hook));
    }
    let folder = folder(&files);
    let targets = ["--clusters=a,bb,a-much-longer-name", "--namespace=shop"];
    let printed = run(folder.path(), &targets);
    let (_, works) = printed.split_once("----- stdout -----\n").expect("the works");
    let works = works.split("----- stderr").next().expect("the works");
    let bytes = works.len();
    assert!(works.lines().count() > 20, "{printed}");
    let limited = |max: usize| {
        run(
            folder.path(),
            &[&targets[..], &[&format!("--max-output={max}")]].concat(),
        )
    };
    assert!(limited(bytes).starts_with("exit code: 0\n"));
    assert!(limited(bytes - 1).starts_with(failed(1, "the works of").trim_end()));
}

#[test]
fn a_setting_that_is_not_utf8_is_an_error() {
    let folder = folder(&[("a.yaml", config_map("a", "  k: v\n"))]);
    let printed = |name: &str| {
        let mut program = program_with(folder.path(), WORDS);
        let output = program.env(name, OsStr::from_bytes(b"/home/J\xfcrgen")).output();
        transcript(&output.expect("the program runs"))
    };
    for name in ["ARGOCD_OCM_CMP_POLICY_FILE", "TARGET_CLUSTER"] {
        let line = format!("the environment variable {name} is not UTF-8: correct its value, or unset it");
        assert_eq!(printed(name), failed(1, &line));
    }
    // Another program's variable may have any content.
    assert!(printed("OLDPWD").starts_with("exit code: 0\n"));
}
