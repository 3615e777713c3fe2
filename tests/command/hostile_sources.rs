//! Tests of hostile input in a repository or an Application against the real kustomize and Helm.
//!
//! Each case tries to read a file outside of the repository, a credential, the environment or the folder of another process, or to
//! fetch an address. It may be rendered or refused: but nothing of these may be reached, under any isolation, whether or not other
//! addresses are allowed.
//!
//! If the tools cannot be built, the tests fail and name what is missing.

#![allow(clippy::too_many_lines, reason = "the functions are tables")]

use crate::program::{packed, program, tools};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use tempfile::TempDir;
use walkdir::WalkDir;

/// The content outside of the repository, which must not appear anywhere.
const CANARY: &str = "canary-4711";

/// A source: a repository, the settings of the Application, and those of the administrator.
#[derive(Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The files below the repository, whose root is `/` and whose source is in `/app`, with their contents.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    /// The links, with their targets.
    links: Vec<(String, String)>,
    parameters: Vec<(&'static str, Value)>,
    environment: Vec<(&'static str, String)>,
    /// The name of the checkout folder; `None` for the default.
    checkout: Option<&'static str>,
    /// The text that the error has to name, or that the works have to contain; only a hint in other cases.
    expected: String,
}

impl Case {
    pub(crate) fn new(name: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            expected: expected.into(),
            ..Self::default()
        }
    }

    pub(crate) fn file(mut self, path: impl Into<String>, content: impl AsRef<[u8]>) -> Self {
        self.files.push((path.into(), content.as_ref().to_vec()));
        self
    }

    fn link(mut self, path: impl Into<String>, target: impl Into<String>) -> Self {
        self.links.push((path.into(), target.into()));
        self
    }

    pub(crate) fn parameter(mut self, name: &'static str, value: Value) -> Self {
        self.parameters.push((name, value));
        self
    }

    /// Returns the parameters as Argo CD passes them.
    pub(crate) fn parameters(&self, filled: impl Fn(&str) -> String) -> String {
        let parameters = self.parameters.iter().map(|(name, value)| {
            let form = match value {
                Value::Array(_) => "array",
                Value::Object(_) => "map",
                _ => "string",
            };
            let value: Value = serde_json::from_str(&filled(&value.to_string())).expect("JSON");
            json!({"name": name, form: value})
        });
        parameters.collect::<Value>().to_string()
    }

    fn environment(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }
}

/// A chart that prints all its values and all its files.
const CHART: &str = "apiVersion: v2\nname: shop\nversion: 0.1.0\n";
const TEMPLATE: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: all}
data:
  values: {{ toJson .Values | quote }}
  release: {{ .Release.Name | quote }}
  {{- range $path, $bytes := .Files.Glob \"**\" }}
  {{ $path | replace \"/\" \"_\" | quote }}: {{ $bytes | toString | quote }}
  {{- end }}
";

fn chart(name: impl Into<String>, expected: impl Into<String>) -> Case {
    Case::new(name, expected)
        .file("app/Chart.yaml", CHART)
        .file("app/templates/all.yaml", TEMPLATE)
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: b}\n";

fn kustomization(name: impl Into<String>, text: &str) -> Case {
    Case::new(name, "app/kustomization.yaml")
        .file("app/kustomization.yaml", text)
        .file("app/web.yaml", CONFIG_MAP)
}

/// The environment of the cases: files outside the repository, a listening server, and another process.
struct HostileEnvironment {
    scratch: TempDir,
    listener: TcpListener,
    other: Child,
}

impl HostileEnvironment {
    fn new() -> Self {
        let scratch = TempDir::new().expect("a scratch folder");
        let outside = scratch.path().join("outside");
        fs::create_dir(&outside).expect("a folder");
        let write = |name: &str, content: String| fs::write(outside.join(name), content).expect("a file");
        write("secret.yaml", format!("leak: {CANARY}\n"));
        write("secret.env", format!("LEAK={CANARY}\n"));
        write("kustomization.yaml", "resources: [map.yaml]\n".to_owned());
        write(
            "map.yaml",
            format!("{CONFIG_MAP}  leak: {CANARY}\n").replace("{a: b}\n", "\n"),
        );
        write("Chart.yaml", CHART.to_owned());
        write("schema.json", format!("{{\"const\": \"{CANARY}\"}}"));
        let home = scratch.path().join("home");
        for file in ".git-credentials .netrc .config/helm/repositories.yaml .ssh/id_rsa".split(' ') {
            let file = home.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, format!("leak: {CANARY}\n")).expect("a file");
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let other = Command::new("sleep")
            .arg("3600")
            .env("LEAK", CANARY)
            .current_dir(&outside)
            .stdin(Stdio::null())
            .spawn()
            .expect("sleep");
        Self {
            scratch,
            listener,
            other,
        }
    }

    /// Replaces `{outside}`, `{url}` and `{pid}`.
    fn filled(&self, text: &str) -> String {
        let address = self.listener.local_addr().expect("an address");
        let outside = self.scratch.path().join("outside");
        text.replace("{outside}", &outside.to_string_lossy())
            .replace("{url}", &format!("http://{address}"))
            .replace("{host}", &address.to_string())
            .replace("{pid}", &self.other.id().to_string())
    }

    fn run(&self, case: &Case, tools: &Path) -> Output {
        self.run_under("all", None, case, tools)
    }

    /// Runs a case under an isolation; `remotes` are the allowed addresses, unless the case has others.
    fn run_under(&self, isolation: &str, remotes: Option<&str>, case: &Case, tools: &Path) -> Output {
        let repository = self.scratch.path().join(case.checkout.unwrap_or("repository"));
        drop(fs::remove_dir_all(&repository));
        fs::create_dir_all(repository.join("app")).expect("a folder");
        fs::create_dir(repository.join(".git")).expect("a folder");
        let place = |path: &str| {
            let path = repository.join(self.filled(path));
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            path
        };
        for (path, content) in &case.files {
            let content = match std::str::from_utf8(content) {
                Ok(text) => self.filled(text).into_bytes(),
                Err(_) => content.clone(),
            };
            fs::write(place(path), content).expect("a file");
        }
        for (path, target) in &case.links {
            symlink(self.filled(target), place(path)).expect("a link");
        }
        let home = self.scratch.path().join("home");
        let mut command = program(&repository.join("app"));
        command
            .arg("generate")
            .env("ARGOCD_APP_NAME", "shop")
            .env("ARGOCD_APP_NAMESPACE", "shop")
            .env("ARGOCD_APP_SOURCE_PATH", "app")
            .env("ARGOCD_ENV_TARGET_CLUSTER", "cluster1")
            .env("ARGOCD_APP_PARAMETERS", case.parameters(|text| self.filled(text)))
            .env("HTTPS_PROXY", format!("http://user:{CANARY}@127.0.0.1:1"))
            .env(
                "PATH",
                std::env::join_paths([tools, Path::new("/usr/bin"), Path::new("/bin")]).expect("folders"),
            )
            .env("HOME", home)
            .env("ARGOCD_OCM_CMP_TOOL_ISOLATION", isolation);
        if let Some(remotes) = remotes {
            command.env("ARGOCD_OCM_CMP_REMOTE_BASES", self.filled(remotes));
        }
        for (name, value) in &case.environment {
            command.env(name, self.filled(value));
        }
        command.output().expect("the program runs")
    }

    /// Returns the names of the files outside of the repository.
    fn outside(&self) -> BTreeSet<PathBuf> {
        let outside = ["outside", "home"].map(|folder| self.scratch.path().join(folder));
        let files = outside.iter().flat_map(WalkDir::new).flatten();
        files.map(walkdir::DirEntry::into_path).collect()
    }

    /// Returns true if the server has received a request since the last call.
    fn received_a_request(&self) -> bool {
        match self.listener.accept() {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                false
            }
        }
    }
}

impl Drop for HostileEnvironment {
    fn drop(&mut self) {
        drop(self.other.kill());
        drop(self.other.wait());
    }
}

/// Returns cases of Helm values: files, single values, names and versions.
fn helm_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Value files, in every syntax that names one.
    for (what, name) in [
        ("a comma before a path", "x,{outside}/secret.yaml"),
        ("a comma before a file of a process", "x,/proc/{pid}/cwd/secret.yaml"),
        ("a comma before an address", "x,{url}/secret.yaml"),
        ("a backslash and a comma", r"x\\,{outside}/secret.yaml"),
        ("a quotation mark and a comma", "\"x\",{outside}/secret.yaml"),
        ("a line break", "x\n{outside}/secret.yaml"),
        ("a brace", "{x,{outside}/secret.yaml"),
    ] {
        let below = |case: Case| case.file(format!("app/{name}"), "a: 1\n").file("app/x", "a: 1\n");
        let value_files = "helm-value-files: ";
        cases.push(
            below(chart(format!("value file: {what}"), value_files)).parameter("helm-value-files", json!([name])),
        );
        cases.push(
            below(chart(format!("value file by flag of the plugin: {what}"), value_files))
                .environment("ARGOCD_ENV_HELM_VALUE_FILES", name),
        );
        if !name.contains('\n') {
            cases.push(
                below(chart(format!("overlay: {what}"), "overlays: ")).parameter("overlays", json!({"cluster1": name})),
            );
        }
        cases.push(
            below(chart(format!("file parameter: {what}"), "helm-file-parameters: a: "))
                .parameter("helm-file-parameters", json!({"a": name})),
        );
    }
    for name in [
        "{outside}/secret.yaml",
        "../../outside/secret.yaml",
        "/../outside/secret.yaml",
        "/proc/{pid}/cwd/secret.yaml",
        "../../../../../../../../../../../proc/{pid}/environ",
        "{url}/secret.yaml",
        "file://{outside}/secret.yaml",
        "s3://bucket/secret.yaml",
        "oci://{host}/secret",
        "git::{url}/secret.yaml",
        "link.yaml",
        "folder/secret.yaml",
        "process/secret.yaml",
        "-",
    ] {
        // The error names a link below a chart before the file that is reached through it.
        let link = match name {
            "link.yaml" => Some(("link.yaml", "{outside}/secret.yaml")),
            "folder/secret.yaml" => Some(("folder", "../../outside")),
            "process/secret.yaml" => Some(("process", "/proc/{pid}/cwd")),
            _ => None,
        };
        let case = |setting: &'static str, value: Value| {
            let expected = link.map_or(setting, |(link, _)| link);
            let case = chart(format!("{setting}: {name}"), format!("{expected}: ")).parameter(setting, value);
            match link {
                Some((link, target)) => case.link(format!("app/{link}"), target),
                None => case,
            }
        };
        cases.push(case("helm-value-files", json!([name])));
        cases.push(case("helm-file-parameters", json!({"a": name})));
    }
    // A second file or value in a single parameter.
    for (setting, key, value) in [
        ("helm-file-parameters", "a=x,leak", "{outside}/secret.yaml"),
        ("helm-file-parameters", "a,leak", "values.yaml"),
        ("helm-file-parameters", "a\\", "{outside}/secret.yaml"),
        ("helm-file-parameters", "a\nb", "values.yaml"),
        ("helm-parameters", "a,leak", "1"),
        ("helm-parameters", "a\\", "1,leak=1"),
        ("helm-parameters", "a[x]", "1"),
        ("helm-parameters", "a[99999999999]", "1"),
        ("helm-parameters", "a", "{x},leak=1"),
        ("helm-parameters", "a", "{x}leak=1"),
        ("helm-parameters", "a", "{x"),
        ("helm-parameters", "a", "x\u{0}"),
        ("helm-string-parameters", "a,leak", "1"),
        ("helm-string-parameters", "a", "{x},leak={y}"),
        ("helm-string-parameters", "a", "{{ .Files.Get \"x\" }}"),
    ] {
        cases.push(
            chart(format!("{setting}: {key:?} = {value:?}"), format!("{setting}: "))
                .file("app/values.yaml", "a: 1\n")
                .parameter(setting, json!({key: value})),
        );
    }
    cases.push(
        chart("an index in an index, 100 times", "helm-parameters: ")
            .parameter("helm-parameters", json!({format!("a{}", "[65536]".repeat(100)): "1"})),
    );
    // Names that are templates, flags or invalid.
    for name in "{{ fail (env \"HTTPS_PROXY\") }}¦{{ env \"HTTPS_PROXY\" }}¦\
        {{ getHostByName \"localhost\" }}¦--post-renderer=/bin/true¦-f{outside}/secret.yaml¦shop,a¦\
        a/../b¦shop\n¦Shop"
        .split('¦')
    {
        cases.push(
            chart(format!("release name: {name:?}"), "release name ").parameter("helm-release-name", json!(name)),
        );
    }
    for version in [
        "v1,\"",
        "--values={outside}/secret.yaml",
        "{outside}",
        "{{ env \"HOME\" }}",
        "a\nb",
    ] {
        cases.push(
            chart(format!("API version: {version:?}"), "helm-api-versions: ")
                .parameter("helm-api-versions", json!([version])),
        );
        cases.push(
            chart(format!("Kubernetes version: {version:?}"), "helm-kube-version: ")
                .parameter("helm-kube-version", json!(version)),
        );
    }
    cases.push(
        chart("values from standard input that name a file", "helm-values: ")
            .parameter("helm-values", json!("a: !!binary {outside}/secret.yaml\n")),
    );
    cases
}

/// Returns cases of charts.
fn chart_cases() -> Vec<Case> {
    use tar::EntryType::{Char, Link, Regular, Symlink};
    const SUB: &str = "apiVersion: v2\nname: db\nversion: 0.1.0\n";
    let mut cases = Vec::new();
    for place in "app app/files/deep app/templates app/charts/db app/charts/db/templates app/charts app/crds".split(' ')
    {
        for target in [
            "{outside}/secret.yaml",
            "/proc/{pid}/environ",
            "/proc/{pid}/cwd",
            "/proc/self/environ",
            "/etc/passwd",
            "../../../../../../../../../../../../../../../../etc",
            "/proc/4194304/cwd",
        ] {
            let place = place.strip_prefix("app").unwrap_or_default().trim_start_matches('/');
            let link = if place.is_empty() {
                "leak.yaml".to_owned()
            } else {
                format!("{place}/leak.yaml")
            };
            cases.push(
                chart(format!("link {link} to {target}"), format!("{link}: "))
                    .file("app/charts/db/Chart.yaml", SUB)
                    .link(format!("app/{link}"), target),
            );
        }
    }
    let linked = [
        chart("a value file by a link to a link", "helm-value-files: ")
            .parameter("helm-value-files", json!(["/one"]))
            .link("one", "two")
            .link("two", "{outside}/secret.yaml"),
        chart("a link to a link", "one: ")
            .link("app/one", "../two")
            .link("two", "{outside}/secret.yaml"),
        chart("a link to a folder with a link", "files/leak: ")
            .link("shared/leak", "{outside}/secret.yaml")
            .link("app/files", "../shared"),
        chart("a folder in its own folder", "files/again: ")
            .file("app/files/a", "a")
            .link("app/files/again", ".."),
        chart("a packaged chart that is a link", "charts/db.tgz: ").link("app/charts/db.tgz", "{outside}/db.tgz"),
        chart("an ignore file that is a link", ".helmignore: ").link("app/.helmignore", "{outside}/secret.yaml"),
        chart("default values that are a link", "values.yaml: ").link("app/values.yaml", "{outside}/secret.yaml"),
        Case::new("a chart that is a link", "Chart.yaml: ")
            .link("app/Chart.yaml", "{outside}/Chart.yaml")
            .file("app/templates/all.yaml", TEMPLATE),
        chart("a schema that is a link", "values.schema.json: ")
            .link("app/values.schema.json", "{outside}/schema.json"),
        chart("a chart of a cluster that is a link", "overlays: ")
            .link("app/eu", "{outside}")
            .parameter("overlays", json!({"cluster1": "eu"})),
        chart("a dependency on a folder outside", "postgresql").file(
            "app/Chart.yaml",
            format!(
                "{CHART}dependencies: [{{name: postgresql, version: 1.0.0, repository: 'file://../../outside'}}]\n"
            ),
        ),
        chart("a dependency on an address", "postgresql").file(
            "app/Chart.yaml",
            format!("{CHART}dependencies: [{{name: postgresql, version: 1.0.0, repository: '{{url}}'}}]\n"),
        ),
        chart("a dependency on a registry", "postgresql").file(
            "app/Chart.yaml",
            format!("{CHART}dependencies: [{{name: postgresql, version: 1.0.0, repository: 'oci://{{host}}/a'}}]\n"),
        ),
    ];
    cases.extend(linked);
    let chart_yaml = (Regular, "db/Chart.yaml", SUB);
    for (what, entry) in [
        ("a link", (Symlink, "db/files/leak", "/etc/passwd")),
        ("a hard link", (Link, "db/files/leak", "/etc/passwd")),
        ("a device", (Char, "db/files/leak", "")),
        (
            "a link for a template",
            (Symlink, "db/templates/leak.yaml", "../../../../../etc/passwd"),
        ),
        ("an absolute name", (Regular, "/etc/leak", "a")),
        ("a name with ..", (Regular, "db/../../leak", "a")),
        ("a Windows path", (Regular, r"db\..\..\leak", "a")),
        (
            "a schema that reads a file",
            (Regular, "db/values.schema.json", r#"{"$ref": "file:///etc/passwd"}"#),
        ),
    ] {
        cases.push(
            chart(format!("in a packaged chart: {what}"), "charts/db-0.1.0.tgz: ")
                .file("app/charts/db-0.1.0.tgz", packed(&[chart_yaml, entry])),
        );
    }
    for (what, schema) in [
        ("a file", r#"{"$ref": "file://{outside}/schema.json"}"#),
        (
            "a file of a process",
            r#"{"$ref": "file:///proc/{pid}/cwd/schema.json"}"#,
        ),
        ("an address", r#"{"$ref": "{url}/schema.json"}"#),
        (
            "a nested address",
            r#"{"properties": {"a": {"items": [{"$ref": "{url}/schema.json"}]}}}"#,
        ),
        ("a name below an address", r#"{"$id": "{url}/", "$ref": "schema.json"}"#),
        ("a schema of schemas", r#"{"$schema": "{url}/schema.json"}"#),
        ("an escaped keyword", r#"{"\u0024ref": "file://{outside}/schema.json"}"#),
    ] {
        for name in ["values.schema.json", "charts/db/values.schema.json"] {
            cases.push(
                chart(format!("{name} that refers to {what}"), format!("{name}: "))
                    .file("app/charts/db/Chart.yaml", SUB)
                    .file("app/values.yaml", "db: {a: [1]}\na: [1]\n")
                    .file(format!("app/{name}"), schema),
            );
        }
    }
    cases
}

/// Returns the rows of a table: what they are, and a text in which `\n` is a line break.
fn rows(table: &str) -> Vec<(&str, String)> {
    let cells = table.lines().filter_map(|line| line.split_once(" | "));
    cells.map(|(what, text)| (what, text.replace(r"\n", "\n"))).collect()
}

/// The fields of a kustomization that name a file or a folder: what they are, and a kustomization with a placeholder for the name.
const FILES: &str = r"
resources | resources: ['@']
resources in capitals | RESOURCES: ['@']
bases | bases: ['@']
components | resources: [web.yaml]\ncomponents: ['@']
crds | resources: [web.yaml]\ncrds: ['@']
configurations | resources: [web.yaml]\nconfigurations: ['@']
generators | generators: ['@']
transformers | resources: [web.yaml]\ntransformers: ['@']
validators | resources: [web.yaml]\nvalidators: ['@']
patches | resources: [web.yaml]\npatches: [{path: '@'}]
patchesJson6902 | resources: [web.yaml]\npatchesJson6902: [{path: '@', target: {version: v1, kind: ConfigMap, name: web}}]
patchesStrategicMerge | resources: [web.yaml]\npatchesStrategicMerge: ['@']
replacements | resources: [web.yaml]\nreplacements: [{path: '@'}]
openapi | resources: [web.yaml]\nopenapi: {path: '@'}
configMapGenerator files | configMapGenerator: [{name: a, files: ['@']}]
configMapGenerator files by key | configMapGenerator: [{name: a, files: ['leak=@']}]
configMapGenerator envs | configMapGenerator: [{name: a, envs: ['@']}]
configMapGenerator env | configMapGenerator: [{name: a, env: '@'}]
secretGenerator files | secretGenerator: [{name: a, files: ['leak=@']}]
secretGenerator envs | secretGenerator: [{name: a, envs: ['@']}]
a generator in the text | generators:\n- |\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: a}\n  files: ['leak=@']
";

/// The names that lead out of the repository, or to an address.
const NAMES: [&str; 17] = [
    "{url}/a.yaml",
    "HTTP://{host}/a.yaml",
    "file://{outside}",
    "s3://bucket/a.yaml",
    "git::{url}/org/repo",
    "git::https://{host}/org/repo",
    "oci://{host}/a",
    "ssh://git@{host}/org/repo",
    "{outside}/secret.env",
    "{outside}",
    "../../outside/secret.env",
    "../../outside",
    "/proc/{pid}/cwd",
    "../../../../../../../../../../../../proc/{pid}/cwd",
    "link/secret.env",
    "link",
    "link-to-link",
];

const UNRESTRICTED: &str = "--load-restrictor=LoadRestrictionsNone --enable-helm";

fn kustomization_cases() -> Vec<Case> {
    let linked = |case: Case| {
        case.link("app/link", "{outside}")
            .link("app/link-to-link", "link")
            .link("app/nowhere", "/proc/4194304/cwd")
    };
    let mut cases = Vec::new();
    for (field, text) in rows(FILES) {
        for name in NAMES {
            cases.push(
                linked(kustomization(format!("{field}: {name}"), &text.replace('@', name)))
                    .environment("ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS", UNRESTRICTED),
            );
        }
    }
    // Bases in the short forms of Git servers, and in forms that only some versions know.
    for name in [
        "github.com/org/repo?ref=main",
        "GitHub.com:org/repo",
        "git@github.com:org/repo",
        "git@{host}:org/repo.git//path?ref=main",
        "user@{host}/org/repo",
        "gh:org/repo",
        "bitbucket.org/org/repo",
        "git.example.com/org/repo//path?ref=main",
        "{url}/org/repo.git?ref=--upload-pack=touch",
        "{url}/org/repo\n",
        " {url}/org/repo",
        "nowhere",
    ] {
        for field in ["resources", "components", "generators", "transformers", "bases"] {
            let text = json!({field: [name]}).to_string();
            cases.push(linked(kustomization(format!("{field}: {name:?}"), &text)));
        }
    }
    // File names with a special meaning, and texts that are also paths.
    let plugin = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: ['leak={url}/a.yaml']\n";
    let patch =
        |path: &str| format!("apiVersion: builtin\nkind: PatchTransformer\nmetadata: {{name: a}}\npath: '{path}'\n");
    let list = "apiVersion: v1\nkind: ConfigMapGeneratorList\nmetadata: {name: a}\nitems:\n- {apiVersion: builtin, kind: ConfigMapGenerator, \
                metadata: {name: a}, files: ['{url}/a']}\n";
    let more = [
        kustomization("a text that is a path for kustomize", "generators: ['a: b/../../../../../../../../../../../proc/{pid}/cwd']"),
        kustomization("a text that is an address for kustomize", "generators: ['{url}/org/repo: a']"),
        kustomization("a text of several documents", "generators:\n- |\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: a}\n  ---\n  apiVersion: builtin\n  kind: SecretGenerator\n  metadata: {name: a}\n  files: ['{url}/a.yaml']"),
        kustomization("a text with an empty item, which kustomize takes for a path", "generators:\n- |-\n  {apiVersion: builtin, kind: A, metadata: {name: a}, l: [null], p: '/../../../../../../../../../../../proc/{pid}/cwd'}"),
        kustomization("an unknown generator", "generators:\n- |\n  apiVersion: builtin\n  kind: FileGenerator\n  metadata: {name: a}\n  anything: '{url}/a'"),
        kustomization("a file of generators", "generators: [a.yaml]").file("app/a.yaml", plugin),
        kustomization("a file of generators in JSON", "generators: [a.json]")
            .file("app/a.json", r#"{"apiVersion": "builtin", "kind": "SecretGenerator", "metadata": {"name": "a"}, "envs": ["{url}/a"]}"#),
        kustomization("a list of generators", "generators: [a.yaml]").file("app/a.yaml", list),
        kustomization("a folder of generators", "generators: [plugins]")
            .file("app/plugins/kustomization.yaml", "resources: [a.yaml]\n")
            .file("app/plugins/a.yaml", plugin),
        kustomization("a folder of generators that is patched", "generators: [plugins]")
            .file("app/plugins/kustomization.yaml", "resources: [a.yaml]\npatches: [{path: b.yaml}]\n")
            .file("app/plugins/a.yaml", plugin.replace("{url}/a.yaml", "a.yaml"))
            .file("app/plugins/b.yaml", plugin),
        kustomization("a file of transformers", "resources: [web.yaml]\ntransformers: [a.yaml]").file("app/a.yaml", patch("{url}/a")),
        kustomization("a file of transformers with a path", "resources: [web.yaml]\ntransformers: [a.yaml]")
            .file("app/a.yaml", patch("../../outside/secret.yaml")),
        kustomization("a transformer of patches", "resources: [web.yaml]\ntransformers: [a.yaml]")
            .file("app/a.yaml", "apiVersion: builtin\nkind: PatchStrategicMergeTransformer\nmetadata: {name: a}\npaths: ['{url}/a']\n"),
        kustomization("a transformer of JSON patches", "resources: [web.yaml]\ntransformers: [a.yaml]")
            .file("app/a.yaml", "apiVersion: builtin\nkind: PatchJson6902Transformer\nmetadata: {name: a}\ntarget: {name: a}\nPath: '{url}/a'\n"),
        kustomization("a transformer of replacements", "resources: [web.yaml]\ntransformers: [a.yaml]")
            .file("app/a.yaml", "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: a}\nreplacements: [{path: '{url}/a'}]\n"),
        kustomization("a transformer that adds values", "resources: [web.yaml]\ntransformers: [a.yaml]")
            .file("app/a.yaml", "apiVersion: builtin\nkind: ValueAddTransformer\nmetadata: {name: a}\ntargetFilePath: '{url}/a'\n"),
        kustomization("a base of a base", "resources: [../base]").file("base/kustomization.yaml", "resources: [deep]\n")
            .file("base/deep/kustomization.yml", "configMapGenerator: [{name: a, files: ['{url}/a']}]\n"),
        kustomization("a component of a base", "resources: [../base]").file("base/kustomization.yaml", "components: [deep]\n")
            .file("base/deep/Kustomization", "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nconfigMapGenerator: [{name: a, envs: ['{url}/a']}]\n"),
        kustomization("a base that is a link", "resources: [../base]").link("base", "{outside}"),
        kustomization("a base whose kustomization is a link", "resources: [../base]").link("base/kustomization.yaml", "{outside}/kustomization.yaml"),
        Case::new("a kustomization that is a link", "app/kustomization.yaml").link("app/kustomization.yaml", "{outside}/kustomization.yaml"),
        Case::new("a kustomization that begins like JSON", "app/kustomization.yaml")
            .file("app/kustomization.yaml", "{\"resources\": [\"{url}/a\"], # no JSON\n}"),
        Case::new("a kustomization behind a separator", "app/kustomization.yaml")
            .file("app/kustomization.yaml", "--- {resources: ['{url}/a']}\n"),
        Case::new("a kustomization behind a comment", "app/kustomization.yaml")
            .file("app/kustomization.yaml", "# nothing\n---\nresources: ['{url}/a']\n"),
        Case::new("a kustomization by an anchor", "app/kustomization.yaml")
            .file("app/kustomization.yaml", "metadata: {annotations: {a: &a '{url}/a'}}\nresources: [*a]\n"),
        Case::new("a kustomization by a merge", "app/kustomization.yaml")
            .file("app/kustomization.yaml", "<<: {resources: ['{url}/a']}\n"),
        Case::new("a kustomization with a letter that folds", "app/kustomization.yaml")
            .file("app/kustomization.yaml", "reſourceſ: ['{url}/a']\n"),
        Case::new("a kustomization with a field twice", "app/kustomization.yaml")
            .file("app/kustomization.yaml", "resources: ['{url}/a']\nResources: [web.yaml]\n"),
        Case::new("a kustomization in UTF-16", "app/kustomization.yaml")
            .file("app/kustomization.yaml", b"\xFF\xFEr\0e\0s\0".as_slice()),
        kustomization("an overlay that is a kustomization", "resources: [web.yaml]")
            .file("app/eu/kustomization.yaml", "resources: ['{url}/a']\n").parameter("overlays", json!({"cluster1": "eu"})),
    ];
    cases.extend(more.map(|case| case.environment("ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS", UNRESTRICTED)));
    cases.extend(cases_of_charts_in_kustomizations());
    cases.extend(address_cases());
    cases
}

/// Charts in a kustomization, by fields besides their name.
const CHARTS: &str = r#"
a flag for a release name | releaseName: --post-renderer=./run.sh
a flag for a value file | releaseName: '-f{outside}/secret.yaml'
a template for a name | nameTemplate: '{{ env "HTTPS_PROXY" }}'
a value file outside | valuesFile: ../../outside/secret.yaml
a value file by its absolute path | valuesFile: '{outside}/secret.yaml'
a value file on the network | valuesFile: '{url}/secret.yaml'
another value file outside | additionalValuesFiles: [../../outside/secret.yaml]
another value file on the network | additionalValuesFiles: ['{url}/secret.yaml']
another value file with a comma | additionalValuesFiles: ['x,{outside}/secret.yaml']
a version that is a path | version: ../../../outside, repo: '{url}'
a version that is a flag | version: --values=x, repo: '{url}'
an API version that is a list | apiVersions: ['a,"']
an invalid Kubernetes version | kubeVersion: '--debug'
a namespace that is a flag | namespace: '--debug'
"#;

/// Kustomizations with charts.
const FIELDS_WITH_CHARTS: &str = r#"
a name with .. | helmCharts: [{name: ../../outside}]
a name with a comma | helmCharts: [{name: 'x,{outside}/secret.yaml,'}]
a name that is an address | helmCharts: [{name: '{url}/a.tgz', repo: '{url}'}]
a name that is a flag | helmCharts: [{name: '--debug', repo: '{url}'}]
a repository | helmCharts: [{name: none, repo: '{url}', version: 1.0.0}]
a registry | helmCharts: [{name: none, repo: 'oci://{host}/charts'}]
a file for a repository | helmCharts: [{name: none, repo: 'file://{outside}'}]
a repository that is a flag | helmCharts: [{name: none, repo: '--debug'}]
charts outside | helmGlobals: {chartHome: ../../outside}\nhelmCharts: [{name: web}]
charts outside by their absolute path | helmGlobals: {chartHome: '{outside}'}\nhelmCharts: [{name: web}]
charts of a process | helmGlobals: {chartHome: '../../../../../../../../../proc/{pid}'}\nhelmCharts: [{name: cwd}]
Helm's own folder | helmGlobals: {configHome: helm}\nhelmCharts: [{name: web}]
a chart with a link | helmCharts: [{name: linked}]
a chart with a schema | helmCharts: [{name: strict}]
a chart that is a link | helmCharts: [{name: link}]
the form of kustomize 3: a repository | helmChartInflationGenerator: [{chartName: none, chartRepoUrl: '{url}'}]
the form of kustomize 3: a release name | helmChartInflationGenerator: [{chartName: web, releaseName: --debug}]
the form of kustomize 3: values | helmChartInflationGenerator: [{chartName: web, values: '{outside}/secret.yaml'}]
the form of kustomize 3: charts | helmChartInflationGenerator: [{chartName: web, chartHome: ../../outside}]
the form of kustomize 3: Helm | helmChartInflationGenerator: [{chartName: web, helmBin: ./run.sh}]
a generator | generators: ["{apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {name: a}, name: web, releaseName: --debug}"]
a generator with a repository | generators: ["{apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {name: a}, name: none, repo: '{url}'}"]
"#;

/// Returns cases of charts in kustomizations, which the administrator allows.
fn cases_of_charts_in_kustomizations() -> Vec<Case> {
    let mut cases: Vec<(String, String)> = Vec::new();
    for (what, chart) in rows(CHARTS) {
        cases.push((
            format!("helmCharts: {what}"),
            format!("helmCharts: [{{name: web, {chart}}}]"),
        ));
    }
    let others = rows(FIELDS_WITH_CHARTS).into_iter();
    cases.extend(others.map(|(what, text)| (format!("helmCharts: {what}"), text)));
    let web = |case: Case| {
        ["web", "linked", "strict"].iter().fold(case, |case, name| {
            case.file(
                format!("app/charts/{name}/Chart.yaml"),
                format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n"),
            )
            .file(format!("app/charts/{name}/values.yaml"), "a: 1\n")
            .file(format!("app/charts/{name}/templates/all.yaml"), TEMPLATE)
        })
    };
    let filled = |(name, text): (String, String)| {
        web(kustomization(name, &text))
            .file("app/x", "a: 1\n")
            .file("app/x,{outside}/secret.yaml", "a: 1\n")
            .link("app/charts/link", "{outside}")
            .link("app/charts/linked/leak.yaml", "{outside}/secret.yaml")
            .file(
                "app/charts/strict/values.schema.json",
                r#"{"$ref": "{url}/schema.json"}"#,
            )
            .environment("ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS", UNRESTRICTED)
    };
    cases.into_iter().map(filled).collect()
}

/// Returns cases of addresses that resemble an allowed address.
fn address_cases() -> Vec<Case> {
    let address = [
        "{url}/platform-evil/base",
        "{url}/platform/../evil",
        "{url}/platform/%2e%2e/evil",
        "{url}/platform/base?ref=--upload-pack=touch",
        "{url}/platform/base?ref=%2D%2Dupload-pack=touch",
        "{url}@{host}/platform/base",
        "https://{host}/platform/base",
        "{url}/Platform/base",
    ];
    let case = |name: &str| {
        kustomization(format!("not allowed: {name}"), &format!("resources: ['{name}']\n"))
            .environment("ARGOCD_OCM_CMP_REMOTE_BASES", "{url}/platform/, https://example.com/")
    };
    address.into_iter().map(case).collect()
}

/// Runs all cases under an isolation, and returns a line for each that reaches something.
fn cases_that_reach_something(isolation: &str, remotes: Option<&str>, cases: &[Case], tools: &Path) -> Vec<String> {
    let environment = HostileEnvironment::new();
    let outside = environment.outside();
    let mut lines = Vec::new();
    for case in cases {
        let output = environment.run_under(isolation, remotes, case, tools);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_refused = output.status.code() == Some(1);
        let problems = [
            (environment.received_a_request(), "a request was sent"),
            (format!("{output:?}").contains(CANARY), "the secret was printed"),
            (environment.outside() != outside, "a file was written"),
            (!is_refused && !output.status.success(), "it crashed"),
            (is_refused && !output.stdout.is_empty(), "works were printed"),
            (
                is_refused && !stderr.lines().all(|line| line.starts_with("error: ")),
                "an error has several lines",
            ),
            (stderr.lines().any(|line| line.len() > 9_000), "a line has no limit"),
        ];
        let problems: Vec<&str> = problems
            .into_iter()
            .filter_map(|(is_true, what)| is_true.then_some(what))
            .collect();
        if !problems.is_empty() {
            let what = problems.join(", ");
            lines.push(format!(
                "{isolation}, {remotes:?}, {}: {what}\n  {}",
                case.name,
                stderr.trim()
            ));
        }
    }
    lines
}

#[test]
fn hostile_sources_reach_nothing_under_any_isolation() {
    check_hostile_sources(&["all", "namespaces"]);
}

#[test]
#[ignore = "confinement::tests_of_landlock_pass_where_the_kernel_has_it runs it"]
fn hostile_sources_reach_nothing_under_landlock() {
    check_hostile_sources(&["landlock"]);
}

fn check_hostile_sources(isolations: &[&'static str]) {
    let tools = tools();
    let cases: Vec<Case> = [helm_cases(), chart_cases(), kustomization_cases()]
        .into_iter()
        .flatten()
        .collect();
    assert!(cases.len() > 600, "{} hostile inputs", cases.len());
    let modes: Vec<_> = isolations
        .iter()
        .flat_map(|&isolation| [(isolation, None), (isolation, Some("{url}/platform/"))])
        .collect();
    let lines: Vec<String> = thread::scope(|scope| {
        let (cases, tools) = (&cases, &tools);
        let started: Vec<_> = modes
            .iter()
            .map(|&(isolation, remotes)| {
                scope.spawn(move || cases_that_reach_something(isolation, remotes, cases, tools))
            })
            .collect();
        let ended = started
            .into_iter()
            .map(|thread| thread.join().expect("the thread ends"));
        ended.flatten().collect()
    });
    assert!(lines.is_empty(), "{} cases:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn refuses_hostile_settings_before_helm_starts() {
    let tools = tools();
    let environment = HostileEnvironment::new();
    for case in helm_cases() {
        let output = environment.run(&case, &tools);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {stderr}", case.name);
        assert!(stderr.contains(&case.expected), "{}: {stderr}", case.name);
        assert!(!stderr.contains("helm template:"), "{}: {stderr}", case.name);
    }
}

/// Returns common valid sources, which must still work.
fn valid_charts() -> Vec<Case> {
    const SUB: &str = "apiVersion: v2\nname: db\nversion: 0.1.0\n";
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\ndata: {of: db-of-a-chart}\n";
    let regular = tar::EntryType::Regular;
    let package = packed(&[
        (regular, "db/Chart.yaml", SUB),
        (regular, "db/templates/map.yaml", map),
        (
            regular,
            "db/values.schema.json",
            r##"{"$ref": "#/definitions/a", "definitions": {"a": {"type": "object"}}}"##,
        ),
    ]);
    let registry = "dependencies: [{name: db, version: 0.1.0, repository: 'oci://registry.example.com/charts'}]\n";
    let strict = r##"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/definitions/a"}},
        "definitions": {"a": {"type": "integer"}}}"##;
    let mut cases = vec![
        chart("a value file elsewhere in the repository", "of-production")
            .file("values/prod.yaml", "a: of-production\n")
            .parameter("helm-value-files", json!(["../values/prod.yaml"])),
        chart("a value file from the root of the repository", "of-production")
            .file("values/prod.yaml", "a: of-production\n")
            .parameter("helm-value-files", json!(["/values/prod.yaml"])),
        chart("a value file of a cluster", "of-cluster1")
            .file("app/eu/values.yaml", "a: of-cluster1\n")
            .parameter("overlays", json!({"cluster1": "eu/values.yaml"})),
        chart("a checkout of any name", "of-production")
            .file("app/values.txt", "b: of-production\n")
            .file("app/prod.yaml", "a: 1\n")
            .parameter("helm-value-files", json!(["prod.yaml"]))
            .parameter("helm-file-parameters", json!({"c": "values.txt"})),
        chart("a file for a value", "of-a-file")
            .file("shared/a.txt", "of-a-file")
            .parameter("helm-file-parameters", json!({r"a\.b": "../shared/a.txt"})),
        chart("links within the repository", "of-a-file")
            .file("shared/deep/a.txt", "of-a-file")
            .link("app/files", "../shared")
            .link("shared/b.txt", "deep/a.txt"),
        chart("charts in charts/", "db-of-a-chart")
            .file("app/charts/db/Chart.yaml", SUB)
            .file("app/charts/db/templates/map.yaml", map),
        chart("a packaged chart of a registry", "db-of-a-chart")
            .file("app/Chart.yaml", format!("{CHART}{registry}"))
            .file("app/charts/db-0.1.0.tgz", &package),
        chart("a packaged chart by a link", "db-of-a-chart")
            .file("app/Chart.yaml", format!("{CHART}{registry}"))
            .file("vendor/db-0.1.0.tgz", &package)
            .link("app/charts", "../vendor"),
        chart("a release name with a dot", "shop.blue").parameter("helm-release-name", json!("shop.blue")),
        chart("a schema", "\\\"a\\\":7")
            .file("app/values.schema.json", strict)
            .parameter("helm-parameters", json!({"a": "7"})),
        chart("a schema that is not read", "values")
            .file(
                "app/values.schema.json",
                r#"{"$ref": "https://example.com/schema.json"}"#,
            )
            .parameter("helm-skip-schema-validation", json!("true")),
        chart("versions", "values")
            .parameter("helm-kube-version", json!("v1.34.1+k3s1"))
            .parameter("helm-api-versions", json!(["monitoring.coreos.com/v1/ServiceMonitor"])),
    ];
    cases[3].checkout = Some("a,b \"c\" {d}\\");
    for (key, value, values) in [
        ("a", "{x,y}", r#""a":["x","y"]"#),
        ("a", "x,y", r#""a":"x,y""#),
        ("a", r"x\,y", r#""a":"x,y""#),
        ("a", r"x\\,leak=1", r#""a":"x\\,leak=1""#),
        ("a", "b=c", r#""a":"b=c""#),
        ("a", r"\{x", r#""a":"{x""#),
        ("a", "one\ntwo", r#""a":"one\ntwo""#),
        ("a", "--debug", r#""a":"--debug""#),
        ("a", "file:///etc/passwd", r#""a":"file:///etc/passwd""#),
        ("image.tag", "1.4.2", r#""image":{"tag":"1.4.2"}"#),
        ("a[1].b", "x", r#""a":[null,{"b":"x"}]"#),
        (r"a.b\.c/d", "x", r#""a":{"b.c/d":"x"}"#),
    ] {
        let written = json!(values).to_string();
        let written = &written[1..written.len() - 1];
        for setting in ["helm-parameters", "helm-string-parameters"] {
            cases.push(chart(format!("{setting}: {key} = {value:?}"), written).parameter(setting, json!({key: value})));
        }
    }
    cases.extend(valid_kustomizations());
    cases
}

fn valid_kustomizations() -> Vec<Case> {
    let patch = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {c: patched}\n";
    let one = |name: &str, text: &str, expected: &str| Case {
        expected: expected.to_owned(),
        ..kustomization(name, text)
    };
    let web = "resources: [web.yaml]\n";
    let named = "generatorOptions: {disableNameSuffixHash: true}\n";
    vec![
        one("a base elsewhere in the repository", "resources: [../base]", "of-a-base")
            .file("base/kustomization.yaml", "resources: [map.yaml]\n")
            .file("base/map.yaml", CONFIG_MAP.replace("a: b", "a: of-a-base")),
        one("a base by a link", "resources: [base]", "of-a-base")
            .file("base/kustomization.yaml", "resources: [map.yaml]\n")
            .file("base/map.yaml", CONFIG_MAP.replace("a: b", "a: of-a-base"))
            .link("app/base", "../base"),
        one("a component", "resources: [web.yaml]\ncomponents: [../component]", "patched")
            .file("component/kustomization.yaml", "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\npatches: [{path: a.yaml}]\n")
            .file("component/a.yaml", patch),
        one("fields in capitals", "Resources: [web.yaml]", "name: web"),
        one("a folder named like a server", "resources: [./github.com/org/repo]", "of-a-base")
            .file("app/github.com/org/repo/kustomization.yaml", "configMapGenerator: [{name: a, literals: [a=of-a-base]}]\n"),
        one("a file with an @", "resources: [web@1.yaml]", "of-a-base").file("app/web@1.yaml", CONFIG_MAP.replace("a: b", "a: of-a-base")),
        one("generators", &format!("{named}configMapGenerator: [{{name: a, files: [k=a.txt, b.txt], literals: ['url=https://example.com/a'], envs: [a.env]}}]"), "https://example.com/a")
            .file("app/a.txt", "a")
            .file("app/b.txt", "b")
            .file("app/a.env", "E=https://example.com\n"),
        one("patches by files", &format!("{web}patches: [{{path: a.yaml}}]"), "patched").file("app/a.yaml", patch),
        one("patches in the text", &format!("{web}patchesStrategicMerge:\n- |-\n  {}", patch.replace("patched", "'https://example.com/../../../a'").replace('\n', "\n  ")), "https://example.com/../../../a"),
        one("a generator in the text", "generators:\n- |\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: a, annotations: {a: 'https://example.com'}}\n  name: a\n  files: [k=a.txt]\n", "of-a-file")
            .file("app/a.txt", "of-a-file"),
        one("a transformer in a file", &format!("{web}transformers: [a.yaml]"), "eu-web")
            .file("app/a.yaml", "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: a}\nprefix: eu-\nfieldSpecs: [{path: metadata/name}]\n"),
        one("a folder of transformers", &format!("{web}transformers: [../transformers]"), "eu-web")
            .file("transformers/kustomization.yaml", "resources: [a.yaml]\n")
            .file("transformers/a.yaml", "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: a}\nprefix: eu-\nfieldSpecs: [{path: metadata/name}]\n"),
        one("replacements by a file", &format!("{web}replacements: [{{path: a.yaml}}]"), "c: web")
            .file("app/a.yaml", "source: {kind: ConfigMap, name: web}\ntargets: [{select: {kind: ConfigMap}, fieldPaths: [data.c], options: {create: true}}]\n"),
        one("a file of another folder, if the administrator allows it", "resources: [../shared/map.yaml]", "of-a-base")
            .file("shared/map.yaml", CONFIG_MAP.replace("a: b", "a: of-a-base"))
            .environment("ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS", UNRESTRICTED),
        one("a chart", "helmCharts: [{name: web, releaseName: eu, valuesFile: a.yaml, additionalValuesFiles: [b.yaml]}]", "of-a-chart")
            .file("app/charts/web/Chart.yaml", CHART)
            .file("app/charts/web/templates/all.yaml", TEMPLATE)
            .file("app/a.yaml", "a: 1\n")
            .file("app/b.yaml", "b: of-a-chart\n")
            .environment("ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS", UNRESTRICTED),
        one("a chart of a repository that is already downloaded", "helmCharts: [{name: web, releaseName: eu, version: 0.1.0, repo: 'oci://registry.example.com/charts'}]", "of-a-chart")
            .file("app/charts/web-0.1.0/web/Chart.yaml", CHART)
            .file("app/charts/web-0.1.0/web/values.yaml", "a: of-a-chart\n")
            .file("app/charts/web-0.1.0/web/templates/all.yaml", TEMPLATE)
            .environment("ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS", UNRESTRICTED),
    ]
}

#[test]
fn ordinary_sources_still_render() {
    let tools = tools();
    let environment = HostileEnvironment::new();
    for case in valid_charts() {
        let output = environment.run(&case, &tools);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {stderr}", case.name);
        assert!(
            printed.contains(&case.expected),
            "{}: no {} in\n{printed}",
            case.name,
            case.expected
        );
        assert!(!environment.received_a_request(), "{}", case.name);
    }
}

#[test]
fn application_cannot_allow_addresses() {
    let tools = tools();
    let environment = HostileEnvironment::new();
    for name in ["ARGOCD_ENV_OCM_REMOTE_BASES", "ARGOCD_ENV_REMOTE_BASES"] {
        let case = kustomization("not allowed", "resources: ['{url}/platform/web.yaml']\n")
            .environment(name, "{url}/platform/");
        assert_eq!(environment.run(&case, &tools).status.code(), Some(1), "{name}");
        assert!(!environment.received_a_request(), "{name}");
    }
}
