//! Measures the cost that `generate` adds to the rendering tool: it compares the tool alone with `generate` over the same folder,
//! which runs the tool.
//!
//! ```text
//! cargo bench --bench render        # 31 pairs a case
//! cargo bench --bench render -- 101 # another number
//! ```
//!
//! Uses the testbed's kustomize and Helm, and so needs Go the first time. The two of a pair run one after the other, and the
//! first of one pair is the second of the next, so that a drift of the machine's speed affects both. The table shows medians, and
//! the median of the ratios of pairs; and the minimum of all, which is robust on a busy machine.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;
use testbed::Parts;

/// The number of counted pairs of runs; one more comes first, to warm the page cache.
const PAIRS: usize = 31;

/// The number of objects of a large source.
const LARGE: usize = 300;

fn main() {
    let pairs = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(PAIRS);
    let parts = Parts::ensure().expect("the testbed's kustomize and Helm");
    let scratch = TempDir::new().expect("a scratch folder");
    let (overlay, chart) = (scratch.path().join("overlay"), scratch.path().join("chart"));
    make_overlay(&overlay);
    make_chart(&chart);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/render");
    let mut table = format!(
        "{pairs} pairs, wall time\n{:<16}{:>9}{:>13}{:>12}{:>8}{:>14}{:>12}{:>8}\n",
        "", "objects", "median alone", "generate", "ratio", "least alone", "generate", "ratio"
    );
    for (name, folder, tool) in [
        (
            "small overlay",
            sources.join("kustomize-overlays/input/overlays/prod"),
            &KUSTOMIZE,
        ),
        ("large overlay", overlay, &KUSTOMIZE),
        ("small chart", sources.join("helm-web/input/charts/web"), &HELM),
        ("large chart", chart, &HELM),
    ] {
        let [alone, ours] = [tool, &GENERATE].map(|program| program.command(&parts, &folder));
        let objects = objects(tool.command(&parts, &folder));
        let [[alone, ours, ratio], [least_alone, least, least_ratio]] = compare(alone, ours, pairs);
        writeln!(
            table,
            "{name:<16}{objects:>9}{alone:>10.1} ms{ours:>9.1} ms{ratio:>8.3}{least_alone:>11.1} ms{least:>9.1} ms{least_ratio:>8.3}",
        )
        .expect("writing to a String never fails");
    }
    io::Write::write_all(&mut io::stdout(), table.as_bytes()).expect("standard output");
}

/// A program, with its arguments in the folder of a source.
struct Program {
    name: &'static str,
    arguments: &'static [&'static str],
}

const KUSTOMIZE: Program = Program {
    name: "kustomize",
    arguments: &["build", "."],
};
const HELM: Program = Program {
    name: "helm",
    arguments: &[
        "template",
        ".",
        "--name-template",
        "bench",
        "--namespace",
        "bench",
        "--include-crds",
    ],
};
const GENERATE: Program = Program {
    name: env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
    arguments: &[
        "generate",
        "--cluster=cluster1",
        "--name=bench",
        "--namespace=bench",
        "--output=json",
    ],
};

impl Program {
    fn command(&self, parts: &Parts, folder: &Path) -> Command {
        // An absolute path replaces the folder.
        let mut command = Command::new(parts.tools().join(self.name));
        command.args(self.arguments).current_dir(folder);
        command.env_clear().env("PATH", parts.tools()).env("HOME", folder);
        command
    }
}

/// Returns the milliseconds of the tool alone and of `generate`, and their ratio: the medians, and the minima.
fn compare(mut alone: Command, mut ours: Command, pairs: usize) -> [[f64; 3]; 2] {
    let (mut of_one, mut of_ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..=pairs {
        let (one, ours) = if pair % 2 == 0 {
            let one = measure(&mut alone);
            (one, measure(&mut ours))
        } else {
            let ours = measure(&mut ours);
            (measure(&mut alone), ours)
        };
        if pair > 0 {
            of_one.push(one);
            of_ours.push(ours);
            ratios.push(ours / one);
        }
    }
    for figures in [&mut of_one, &mut of_ours, &mut ratios] {
        figures.sort_by(f64::total_cmp);
    }
    let middle = pairs / 2;
    [
        [of_one[middle], of_ours[middle], ratios[middle]],
        [of_one[0], of_ours[0], of_ours[0] / of_one[0]],
    ]
}

/// Runs a command to its end, discards its output, and returns its milliseconds.
fn measure(command: &mut Command) -> f64 {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    assert!(status.expect("the command starts").success(), "{command:?} failed");
    milliseconds
}

fn objects(mut command: Command) -> usize {
    let output = command.output().expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().filter(|line| line.starts_with("kind: ")).count()
}

/// Creates an overlay of a base with as many objects, of which it changes some.
fn make_overlay(folder: &Path) {
    let base = folder.join("base");
    let mut resources = String::from("resources:\n");
    for n in 0..LARGE / 3 {
        write(&base.join(format!("app-{n}.yaml")), &app(&format!("app-{n}"), "info"));
        writeln!(resources, "- app-{n}.yaml").expect("writing to a String never fails");
    }
    write(&base.join("kustomization.yaml"), &resources);
    let kustomization = "resources: [base]\nnamePrefix: prod-\nnamespace: shop\ncommonAnnotations: {example.com/stage: prod}\n\
                         images:\n- {name: registry.example.com/shop/app, newTag: \"2.0\"}\n\
                         patches:\n- target: {kind: Deployment}\n  patch: |-\n    - {op: replace, path: /spec/replicas, value: 5}\n";
    write(&folder.join("kustomization.yaml"), kustomization);
}

/// Creates a chart with as many objects.
fn make_chart(folder: &Path) {
    write(
        &folder.join("Chart.yaml"),
        "apiVersion: v2\nname: large\nversion: 1.0.0\nappVersion: \"1.0\"\n",
    );
    write(&folder.join("values.yaml"), "level: info\n");
    for n in 0..LARGE / 3 {
        let name = format!("{{{{ .Release.Name }}}}-app-{n}");
        let template = app(&name, "{{ .Values.level }}");
        write(&folder.join(format!("templates/app-{n}.yaml")), &template);
    }
}

/// Returns a Deployment, a Service and a ConfigMap.
fn app(name: &str, level: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  labels:\n    app.kubernetes.io/name: {name}\nspec:\n  \
         replicas: 3\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: {name}\n  template:\n    metadata:\n      labels:\n        \
         app.kubernetes.io/name: {name}\n    spec:\n      containers:\n      - name: app\n        image: registry.example.com/shop/app:1.0\n        \
         args: [--listen, \":8080\"]\n        ports:\n        - containerPort: 8080\n          name: http\n        envFrom:\n        \
         - configMapRef:\n            name: {name}\n        resources:\n          requests: {{cpu: 100m, memory: 128Mi}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  selector:\n    app.kubernetes.io/name: {name}\n  ports:\n  \
         - name: http\n    port: 80\n    targetPort: http\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  level: {level}\n  application.properties: |\n    # read at start\n    \
         server.port=8080\n    server.name=app\n    feature.checkout=true\n"
    )
}

fn write(file: &Path, text: &str) {
    let folder: PathBuf = file.parent().expect("a folder").to_owned();
    fs::create_dir_all(folder).expect("a folder");
    fs::write(file, text).expect("a file");
}
