//! `generate` as a whole process, next to a small Go program that does the same with the field's own libraries and to the
//! floor: reading the files and printing them as they are.
//!
//! ```text
//! cargo bench --bench generate              # 3,000 files
//! cargo bench --bench generate -- 300 30000 # other sizes
//! ```
//!
//! Needs Go, find, xargs and cat. The commands run in turn, so that a machine whose speed drifts drifts for all of them; the
//! table shows medians, and medians of the ratios of runs that stood side by side.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "figures for people, and time is what this measures"
)]

use nix::sys::resource::{UsageWho, getrusage};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Counted runs of each command; one more comes first, to warm the page cache.
const RUNS: usize = 11;

/// The argument by which this program starts itself to measure one command: only so do the operating system's figures for
/// finished children belong to that command alone.
const MEASURE: &str = "--measure";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == MEASURE) {
        let usage = measure(&arguments[1..]);
        print(&format!("{} {} {}\n", usage.wall, usage.cpu, usage.memory));
        return;
    }
    let mut sizes: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes.push(3000);
    }
    let baseline = build_baseline();
    for size in sizes {
        let folder = TempDir::new().expect("a scratch folder");
        let bytes = make_manifests(folder.path(), size);
        print(&format!("\n{size} files, {:.1} MB, {RUNS} runs\n", bytes as f64 / 1e6));
        compare(&commands(folder.path(), &baseline));
    }
}

struct Contender {
    name: &'static str,
    command: Vec<String>,
}

fn commands(folder: &Path, baseline: &Path) -> [Contender; 3] {
    let folder = folder.to_str().expect("a plain path");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let floor = format!("find {folder} -type f -print0 | xargs -0 cat");
    [
        Contender {
            name: "argocd-ocm-cmp generate",
            command: words(&[
                env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
                "generate",
                folder,
                "--cluster=cluster1",
                "--name=bench",
                "--output=json",
                "--max-size=0",
                "--manifest-limit=0",
            ]),
        },
        Contender {
            name: "Go, apimachinery",
            command: words(&[baseline.to_str().expect("a plain path"), folder, "cluster1", "bench"]),
        },
        Contender {
            name: "find | xargs cat",
            command: words(&["sh", "-c", &floor]),
        },
    ]
}

/// What a finished command took: seconds, seconds, KiB.
#[derive(Clone, Copy)]
struct Usage {
    wall: f64,
    cpu: f64,
    memory: f64,
}

fn compare(contenders: &[Contender; 3]) {
    let myself = std::env::current_exe().expect("this program");
    let mut usages: [Vec<Usage>; 3] = Default::default();
    for run in 0..=RUNS {
        for (contender, usages) in contenders.iter().zip(&mut usages) {
            let output = Command::new(&myself)
                .arg(MEASURE)
                .args(&contender.command)
                .output()
                .expect("it runs");
            assert!(
                output.status.success(),
                "{}: {}",
                contender.name,
                String::from_utf8_lossy(&output.stderr)
            );
            let figures: Vec<f64> = String::from_utf8_lossy(&output.stdout)
                .split_whitespace()
                .map(|figure| figure.parse().expect("a number"))
                .collect();
            if run > 0 {
                usages.push(Usage {
                    wall: figures[0],
                    cpu: figures[1],
                    memory: figures[2],
                });
            }
        }
    }
    let mut table = format!(
        "{:<24}{:>10}{:>8}{:>10}{:>8}{:>12}{:>8}\n",
        "", "wall", "ratio", "CPU", "ratio", "peak", "ratio"
    );
    for (contender, of_it) in contenders.iter().zip(&usages) {
        let figures: [fn(&Usage) -> f64; 3] = [|usage| usage.wall, |usage| usage.cpu, |usage| usage.memory];
        let median_of = |figure: fn(&Usage) -> f64| median(of_it.iter().map(figure).collect());
        let ratio_of = |figure: fn(&Usage) -> f64| {
            median(
                of_it
                    .iter()
                    .zip(&usages[0])
                    .map(|(its, ours)| figure(its) / figure(ours))
                    .collect(),
            )
        };
        let [wall, cpu, memory] = figures.map(median_of);
        let [wall_ratio, cpu_ratio, memory_ratio] = figures.map(ratio_of);
        writeln!(
            table,
            "{:<24}{:>7.0} ms{wall_ratio:>8.2}{:>7.0} ms{cpu_ratio:>8.2}{:>8.1} MiB{memory_ratio:>8.2}",
            contender.name,
            wall * 1e3,
            cpu * 1e3,
            memory / 1024.0
        )
        .expect("a String takes all");
    }
    print(&table);
}

/// Runs a command to its end, reading its output through a pipe as Argo CD does.
fn measure(command: &[String]) -> Usage {
    let start = Instant::now();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut buffer = vec![0; 1 << 16];
    while stdout.read(&mut buffer).expect("its output") > 0 {}
    assert!(child.wait().expect("it ends").success(), "{command:?} failed");
    let wall = start.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("its usage");
    let seconds = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec().unsigned_abs(), 0).as_secs_f64() + time.tv_usec() as f64 / 1e6
    };
    Usage {
        wall,
        cpu: seconds(usage.user_time()) + seconds(usage.system_time()),
        memory: usage.max_rss() as f64,
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn build_baseline() -> PathBuf {
    let binary = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("baseline");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&binary)
        .arg(".")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/baseline"))
        .status()
        .expect("the baseline is built with Go, which must be on the PATH");
    assert!(built.success(), "the baseline does not build");
    binary
}

/// Writes `count` files as teams write them: one object each for the most part, some with several, some JSON, in flow and
/// block style, with comments. Returns how many bytes they have.
fn make_manifests(folder: &Path, count: usize) -> u64 {
    let mut bytes = 0;
    for n in 0..count {
        let team = folder.join(format!("team-{}/app-{}", n % 20, n % 300));
        fs::create_dir_all(&team).expect("a folder");
        let (extension, content) = match n % 10 {
            0..=3 => ("yaml", deployment(n)),
            4 | 5 => ("yaml", config_map(n)),
            6 | 7 => (
                "yml",
                format!("# Both of one app.\n---\n{}---\n{}", service(n), config_map(n)),
            ),
            8 => ("yaml", flow(n)),
            _ => ("json", json(n)),
        };
        bytes += content.len() as u64;
        fs::write(team.join(format!("{n}.{extension}")), content).expect("a file");
    }
    bytes
}

fn deployment(n: usize) -> String {
    format!(
        "# Deployed by the platform team; ask before changing resources.\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  \
         name: app-{n}\n  namespace: team\n  labels:\n    app.kubernetes.io/name: app-{n}\n    app.kubernetes.io/part-of: shop\nspec:\n  \
         replicas: 3\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: app-{n}\n  template:\n    metadata:\n      labels:\n        \
         app.kubernetes.io/name: app-{n}\n    spec:\n      containers:\n      - name: app\n        image: \"registry.example.com/shop/app:{n}.1.0\" # pinned\n        \
         args: [\"--listen\", \":8080\", --verbose]\n        ports:\n        - containerPort: 8080\n          name: http\n        resources:\n          \
         requests: {{cpu: 100m, memory: 128Mi}}\n          limits:\n            memory: 256Mi\n"
    )
}

fn service(n: usize) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: app-{n}\n  namespace: team\nspec:\n  selector:\n    app.kubernetes.io/name: app-{n}\n  \
         ports:\n  - name: http\n    port: 80\n    targetPort: http\n"
    )
}

fn config_map(n: usize) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-{n}\n  namespace: team\ndata:\n  level: info\n  retries: \"{n}\"\n  \
         application.properties: |\n    # read at start\n    server.port=8080\n    server.name=app-{n}\n    database.url=jdbc:postgresql://db.shop.svc:5432/shop\n    \
         feature.checkout=true\n    feature.search=false\n  motd: 'It''s number {n}'\n  description: >-\n    A longer text that is folded\n    over several lines of the file\n    \
         because somebody thought it reads better.\n"
    )
}

fn flow(n: usize) -> String {
    format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: flow-{n}, namespace: team, labels: {{app: flow-{n}, tier: web}}}},\n  \
         spec: {{selector: {{app: flow-{n}}}, ports: [{{name: http, port: 80, targetPort: 8080}}, {{name: metrics, port: 9090}}]}}}}\n"
    )
}

fn json(n: usize) -> String {
    format!(
        "{{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"ConfigMap\",\n  \"metadata\": {{\n    \"name\": \"json-{n}\",\n    \"namespace\": \"team\",\n    \
         \"annotations\": {{\"example.com/owner\": \"team-{}\"}}\n  }},\n  \"data\": {{\n    \"settings.json\": \"{{\\\"number\\\": {n}, \\\"items\\\": [1, 2, 3]}}\"\n  }}\n}}\n",
        n % 20
    )
}

fn print(text: &str) {
    io::Write::write_all(&mut io::stdout(), text.as_bytes()).expect("standard output");
}
