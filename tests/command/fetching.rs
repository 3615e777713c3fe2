//! Tests of the step that fetches remote bases and charts before the source is rendered, with a server for files, charts and Git.

use crate::program::{packed, program, tools, transcript};
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tar::EntryType;
use tempfile::TempDir;

/// A server of files and redirects by path, of the Git repositories in a folder, of tokens for what is below `/v2/private/`, and of the
/// tags of `/v2/pages-N/db`, in N pages, of which the last has 1.2.0.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

/// The certificate of a server with TLS, in a folder.
const CERTIFICATE: &str = "certificate.pem";

fn tls_in(folder: &Path) -> Arc<ServerConfig> {
    let (now, hour) = (Timestamp::now(), SignedDuration::from_hours(1));
    let names = BTreeSet::from(["127.0.0.1".into()]);
    let (certificate, key) = pki::self_signed("127.0.0.1", &names, now - hour..now + hour).expect("a certificate");
    fs::write(folder.join(CERTIFICATE), &certificate).expect("a file");
    let certificate = CertificateDer::from_pem_slice(&certificate).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(&key).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], key);
    Arc::new(config.expect("a certificate with its key"))
}

impl Server {
    /// Starts a server. A file that begins with `http` is a redirect to that address; `{url}` is the server.
    fn start(files: &[(&str, Vec<u8>)], repositories: &Path, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().expect("an address"));
        let (requests, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let filled = |content: &[u8]| match std::str::from_utf8(content) {
            Ok(text) => text.replace("{url}", &url).into_bytes(),
            Err(_) => content.to_vec(),
        };
        let files: BTreeMap<String, Vec<u8>> = files
            .iter()
            .map(|(path, content)| ((*path).to_owned(), filled(content)))
            .collect();
        let server = Self {
            url: url.clone(),
            requests: Arc::clone(&requests),
            stop: Arc::clone(&stop),
        };
        let repositories = repositories.to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                // A client that hangs up is not a fault of the server.
                drop(match &tls {
                    Some(tls) => ServerConnection::new(Arc::clone(tls))
                        .map_err(std::io::Error::other)
                        .and_then(|connection| {
                            let mut stream = StreamOwned::new(connection, stream);
                            answer(&mut stream, &url, &files, &repositories, &requests)?;
                            stream.conn.send_close_notify();
                            stream.flush()
                        }),
                    None => answer(stream, &url, &files, &repositories, &requests),
                });
            }
        });
        server
    }

    /// Returns the paths of all requests so far.
    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("the server runs").clone()
    }

    fn host(&self) -> &str {
        self.url.split("//").last().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.host()));
    }
}

fn answer(
    stream: impl std::io::Read + std::io::Write,
    url: &str,
    files: &BTreeMap<String, Vec<u8>>,
    repositories: &Path,
    requests: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.trim().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
            None => break,
        };
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    requests.lock().expect("a lock").push(target.to_owned());
    let stream = reader.get_mut();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let authorization = headers.get("authorization").map_or("", String::as_str);
    let missing = match path {
        "/token" if authorization != "Basic cmVhZGVyOnBhc3N3b3Jk" => "Basic realm=\"none\"".to_owned(),
        path if path.starts_with("/v2/private/") && authorization != "Bearer for-the-reader" => {
            format!("Bearer realm=\"{url}/token\",service=\"registry\",scope=\"repository:private/db:pull\"")
        }
        _ => String::new(),
    };
    let mut respond = |head: &str, content: &[u8]| {
        let length = content.len();
        write!(
            stream,
            "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )?;
        stream.write_all(content)
    };
    if !missing.is_empty() {
        return respond(&format!("401 Unauthorized\r\nWWW-Authenticate: {missing}"), b"");
    }
    if let Some(content) = files.get(path) {
        if content.starts_with(b"http") {
            return respond(
                &format!("302 Found\r\nLocation: {}", String::from_utf8_lossy(content)),
                b"",
            );
        }
        return respond("200 OK", content);
    }
    let pages = path.strip_prefix("/v2/pages-");
    if let Some(pages) = pages.and_then(|pages| pages.strip_suffix("/db/tags/list")) {
        let page: u32 = query
            .strip_prefix("last=")
            .map_or(1, |page| page.parse().expect("a page"));
        let (next_page, tag) = match pages.parse::<u32>().expect("a number") {
            pages if page == pages => (String::new(), "1.2.0".to_owned()),
            _ => {
                let next = page + 1;
                (
                    format!("\r\nLink: <{path}?last={next}>; rel=\"next\""),
                    format!("1.1.{page}"),
                )
            }
        };
        return respond(
            &format!("200 OK{next_page}"),
            format!("{{\"tags\": [\"{tag}\"]}}").as_bytes(),
        );
    }
    let is_of_git = |path: &&str| path.ends_with("/info/refs") || path.ends_with("/git-upload-pack");
    let Some(path) = path.strip_prefix("/git").filter(is_of_git) else {
        return respond("404 Not Found", b"");
    };
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", repositories)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    backend.stdin.take().expect("a pipe").write_all(&body)?;
    let output = backend.wait_with_output()?;
    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n")?;
    stream.write_all(&output.stdout)
}

fn map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: {value}}}\n")
}

/// Returns a packaged chart with one template.
fn package(name: &str) -> Vec<u8> {
    let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.2.0\n");
    let template = map(name, &format!("of-{name}"));
    packed(&[
        (EntryType::Regular, &format!("{name}/Chart.yaml"), &chart),
        (EntryType::Regular, &format!("{name}/values.yaml"), ""),
        (EntryType::Regular, &format!("{name}/templates/all.yaml"), &template),
    ])
}

/// A repository, and the server.
struct Stage {
    scratch: TempDir,
    server: Server,
    tools: PathBuf,
}

impl Stage {
    fn new(files: &[(&str, Vec<u8>)]) -> Self {
        Self::with(files, |_| None)
    }

    fn with_tls(files: &[(&str, Vec<u8>)]) -> Self {
        Self::with(files, |folder| Some(tls_in(folder)))
    }

    fn with(files: &[(&str, Vec<u8>)], tls: impl Fn(&Path) -> Option<Arc<ServerConfig>>) -> Self {
        let scratch = TempDir::new().expect("a scratch folder");
        let server = Server::start(files, &scratch.path().join("git"), tls(scratch.path()));
        fs::create_dir_all(scratch.path().join("home")).expect("a folder");
        let stage = Self {
            scratch,
            server,
            tools: tools(),
        };
        stage.write("repository/.git/HEAD", "");
        stage
    }

    fn write(&self, file: &str, text: &str) {
        let file = self.scratch.path().join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, self.filled(text)).expect("a file");
    }

    /// Writes a kustomization with one resource.
    fn resources(&self, address: &str) {
        let kustomization = format!("resources: ['{address}']\n");
        self.write("repository/app/kustomization.yaml", &kustomization);
    }

    fn filled(&self, text: &str) -> String {
        text.replace("{url}", &self.server.url)
            .replace("{host}", self.server.host())
    }

    /// Creates a Git repository on the server with the branch `main`.
    fn repository(&self, name: &str, files: &[(&str, &str)]) {
        let folder = self.scratch.path().join("work").join(name);
        for (file, text) in files {
            self.write(&format!("work/{name}/{file}"), text);
        }
        let target = self.scratch.path().join("git").join(name);
        let target = target.to_str().expect("UTF-8");
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "."],
            &[&identity[..], &["commit", "--quiet", "--message=a"]].concat(),
            &["clone", "--quiet", "--bare", ".", target],
        ] {
            let status = Command::new("git").args(arguments).current_dir(&folder).status();
            assert!(status.expect("git runs").success(), "{arguments:?}");
        }
    }

    fn generate(&self, remotes: &str) -> Output {
        let mut command = self.command(remotes);
        command.args(["--cluster", "cluster1"]);
        command.output().expect("the program runs")
    }

    /// Returns all files of the repository.
    fn files(&self) -> Vec<PathBuf> {
        let all = walkdir::WalkDir::new(self.scratch.path().join("repository")).sort_by_file_name();
        all.into_iter()
            .map(|entry| entry.expect("a file").into_path())
            .collect()
    }

    fn command(&self, remotes: &str) -> Command {
        let mut command = program(&self.scratch.path().join("repository/app"));
        command
            .args(["generate", "--name", "shop"])
            .env("PATH", format!("{}:/usr/bin:/bin", self.tools.display()))
            .env("HOME", self.scratch.path().join("home"))
            .env("ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS", "--enable-helm")
            .env("ARGOCD_OCM_CMP_REMOTE_BASES", self.filled(remotes));
        let certificate = self.scratch.path().join(CERTIFICATE);
        if certificate.exists() {
            command.env("SSL_CERT_FILE", certificate);
        }
        command
    }

    fn renders(&self, remotes: &str, expected: &[&str]) {
        let output = self.generate(remotes);
        assert!(output.status.success(), "{}", transcript(&output));
        let printed = String::from_utf8_lossy(&output.stdout);
        for text in expected {
            assert!(printed.contains(text), "no {text} in {printed}");
        }
    }

    fn refuses(&self, remotes: &str, expected: &str) {
        let output = self.generate(remotes);
        assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
        let printed = String::from_utf8_lossy(&output.stderr);
        let expected = self.filled(expected);
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(printed.contains(&expected), "no {expected} in {printed}");
    }
}

#[test]
fn renders_files_of_allowed_addresses() {
    let files = [
        ("/team/web.yaml", map("web", "of-web").into_bytes()),
        ("/team/apps/one.yaml", map("one", "of-one").into_bytes()),
        ("/team/apps/two.yaml", map("two", "of-two").into_bytes()),
        ("/team/moved.yaml", b"{url}/team/apps/two.yaml".to_vec()),
        ("/team/away.yaml", b"{url}/other/secret.yaml".to_vec()),
    ];
    let stage = Stage::new(&files);
    let kustomization = "resources: ['{url}/team/web.yaml', '{url}/team/apps/one.yaml', '{url}/team/apps/two.yaml']\n";
    stage.write("repository/app/kustomization.yaml", kustomization);
    stage.renders("{url}/team/", &["of-web", "of-one", "of-two"]);
    assert_eq!(
        stage.server.requests(),
        ["/team/web.yaml", "/team/apps/one.yaml", "/team/apps/two.yaml"]
    );
    stage.refuses(
        "{url}/team/apps/",
        "error: {url}/team/web.yaml: it would be fetched from the network: commit its content",
    );
    assert_eq!(stage.server.requests().len(), 3, "{:?}", stage.server.requests());

    stage.resources("{url}/team/moved.yaml");
    stage.renders("{url}/team/", &["of-two"]);
    stage.resources("{url}/team/away.yaml");
    stage.refuses(
        "{url}/team/",
        "error: {url}/team/away.yaml redirects to {url}/other/secret.yaml: it would be fetched",
    );
    assert!(!stage.server.requests().contains(&"/other/secret.yaml".to_owned()));
    stage.resources("{url}/team/none.yaml");
    stage.refuses(
        "{url}/team/",
        "error: {url}/team/none.yaml cannot be fetched: the server answers 404 Not Found; {url}/team/none.yaml cannot be fetched: ",
    );
}

/// kustomize takes what follows `//` for a path in a repository, and many servers for the same path as with `/`.
#[test]
fn stores_files_only_in_its_own_folder() {
    let outside = TempDir::new().expect("a folder");
    let path = outside.path().join("owned");
    let address = format!("/team/base/{}", path.display());
    let stage = Stage::new(&[(&address, map("web", "of-web").into_bytes())]);
    stage.resources(&format!("{{url}}{address}"));
    stage.renders("{url}/team/", &["of-web"]);
    assert_eq!(stage.server.requests(), [address]);
    assert!(!path.exists(), "the program has written {}", path.display());
}

#[test]
fn renders_bases_of_allowed_git_repositories_at_any_depth() {
    let stage = Stage::new(&[]);
    stage.repository(
        "deep.git",
        &[
            ("base/kustomization.yaml", "resources: [map.yaml]\n"),
            ("base/map.yaml", &map("web", "of-deep")),
        ],
    );
    stage.repository(
        "base.git",
        &[(
            "eu/kustomization.yaml",
            "namePrefix: eu-\nresources: ['{url}/git/deep.git//base?ref=main']\n",
        )],
    );
    stage.resources("{url}/git/base.git//eu?ref=main");
    stage.renders("{url}/git/", &["eu-web", "of-deep"]);
    let requests = stage.server.requests().len();
    stage.refuses(
        "{url}/git/base/",
        "error: {url}/git/deep.git?ref=main: it would be fetched from the network",
    );
    let later = &stage.server.requests()[requests..];
    assert!(later.iter().all(|path| path.starts_with("/git/base.git")), "{later:?}");
    stage.refuses(
        "",
        "error: {url}/git/base.git?ref=main: it would be fetched from the network",
    );
    stage.resources("{url}/git/base.git//eu?ref=none");
    stage.refuses("{url}/git/", "error: {url}/git/base.git?ref=none cannot be fetched: ");
    stage.resources("{url}/git/deep.git//none?ref=main");
    stage.refuses("{url}/git/", "error: kustomize build: accumulating resources: ");

    // Without a query, it is read as a file first.
    stage.repository(
        "plain",
        &[
            ("eu/kustomization.yaml", "resources: [map.yaml]\n"),
            ("eu/map.yaml", &map("web", "of-plain")),
        ],
    );
    stage.resources("{url}/git/plain//eu");
    stage.renders("{url}/git/", &["of-plain"]);
}

const INDEX: &str = "apiVersion: v1
entries:
  db:
  - {apiVersion: v2, name: db, version: 1.3.0, urls: ['{url}/charts/none.tgz']}
  - {apiVersion: v2, name: db, version: 1.2.0, urls: ['db-1.2.0.tgz']}
";

fn sha256(content: &[u8]) -> String {
    primitives::hash::hex(&Sha256::digest(content))
}

impl Stage {
    /// Writes a chart with the dependency `db`, and its lock file as Helm does, if it has one.
    fn chart(&self, range: &str, locked: Option<&str>, repository: &str) {
        let repository = self.filled(repository);
        let dependency =
            |version: &str| format!("{{\"name\":\"db\",\"version\":\"{version}\",\"repository\":\"{repository}\"}}");
        let _ = fs::remove_dir_all(self.scratch.path().join("repository/app"));
        let chart = format!(
            "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies: [{}]\n",
            dependency(range)
        );
        self.write("repository/app/Chart.yaml", &chart);
        if let Some(version) = locked {
            let locked = dependency(version);
            // Go's encoder escapes these.
            let range = range.replace('>', "\\u003e").replace('<', "\\u003c");
            let digest = sha256(format!("[[{}],[{locked}]]", dependency(&range)).as_bytes());
            let lock = format!("dependencies: [{locked}]\ndigest: sha256:{digest}\n");
            self.write("repository/app/Chart.lock", &lock);
        }
    }

    /// Writes a kustomization with the chart `db`.
    fn kustomization(&self, version: &str, repository: &str) {
        let _ = fs::remove_dir_all(self.scratch.path().join("repository/app"));
        let chart = format!("helmCharts: [{{name: db, version: '{version}', repo: '{repository}', releaseName: a}}]\n");
        self.write("repository/app/kustomization.yaml", &chart);
    }
}

fn stage_with_charts() -> Stage {
    Stage::new(&[
        ("/charts/index.yaml", INDEX.as_bytes().to_vec()),
        ("/charts/db-1.2.0.tgz", package("db")),
    ])
}

#[test]
fn renders_charts_of_allowed_repositories() {
    let stage = stage_with_charts();
    stage.chart(">=1.0.0", Some("1.2.0"), "{url}/charts");
    stage.refuses(
        "",
        "error: Chart.yaml: dependencies are missing in charts/: db: run 'helm dependency update'",
    );
    stage.refuses(
        "{url}/other/",
        "error: Chart.yaml: db: {url}/charts/db: it would be fetched from the network",
    );
    assert!(stage.server.requests().is_empty(), "{:?}", stage.server.requests());
    stage.renders("{url}/charts/", &["of-db"]);
    assert_eq!(stage.server.requests(), ["/charts/index.yaml", "/charts/db-1.2.0.tgz"]);
    // Without a lock file, Helm chooses the version.
    stage.chart("~1.2", None, "{url}/charts");
    stage.renders("{url}/charts/", &["of-db"]);
    stage.chart(">=2.0.0", None, "{url}/charts");
    stage.refuses(
        "{url}/charts/",
        "error: Chart.yaml: db: {url}/charts/db cannot be fetched: chart \"db\" matching >=2.0.0 not found in fetched index.",
    );

    stage.kustomization("1.2.0", "{url}/charts");
    stage.refuses(
        "{url}/other/",
        "error: {url}/charts/db: it would be fetched from the network",
    );
    stage.renders("{url}/charts/", &["of-db"]);
}

#[test]
fn chart_lock_must_match_the_dependencies() {
    let stage = stage_with_charts();
    stage.chart("1.2.0", Some("1.2.0"), "{url}/charts");
    let lock = fs::read_to_string(stage.scratch.path().join("repository/app/Chart.lock")).expect("a file");
    stage.chart(">=1.0.0", None, "{url}/charts");
    for lock in [
        lock.as_str(),
        &lock.replace("1.2.0", "1.3.0"),
        "dependencies: [{name: db, version: 1.2.0}]\n",
    ] {
        stage.write("repository/app/Chart.lock", lock);
        stage.refuses(
            "{url}/charts/",
            "error: Chart.lock: it does not match the dependencies in Chart.yaml: run 'helm dependency update', and commit Chart.lock",
        );
    }
    assert!(stage.server.requests().is_empty(), "{:?}", stage.server.requests());
    for repository in ["@charts", ""] {
        stage.chart("1.2.0", None, repository);
        stage.refuses(
            "{url}/charts/",
            &format!("error: Chart.yaml: db: {repository:?} is not the address of a chart repository: run 'helm dependency update'"),
        );
    }
}

/// With a value file for each cluster, they are added once for renderings at the same time, and never to the user's folder.
#[test]
fn renders_charts_elsewhere_in_the_repository() {
    let stage = Stage::new(&[]);
    stage.chart("^1.0.0", None, "file://../db");
    stage.write("repository/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.2.0\n");
    stage.write(
        "repository/db/templates/db.yaml",
        &map("db", "of-{{ .Values.global.cluster }}"),
    );
    let clusters = ["a", "b", "c"];
    for cluster in clusters {
        let values = format!("global: {{cluster: {cluster}}}\n");
        stage.write(&format!("repository/app/{cluster}.yaml"), &values);
    }
    let before = stage.files();
    let overlays = clusters.map(|cluster| (cluster.to_owned(), format!("{cluster}.yaml")));
    let parameters = serde_json::json!([
        {"name": "clusters", "array": clusters},
        {"name": "overlays", "map": BTreeMap::from(overlays)},
    ]);
    let mut command = stage.command("");
    let output = command.env("ARGOCD_APP_PARAMETERS", parameters.to_string()).output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{}", transcript(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    for cluster in clusters {
        assert!(printed.contains(&format!("of-{cluster}")), "{printed}");
    }
    assert_eq!(stage.files(), before, "the user's folder has changed");

    for (range, repository, expected) in [
        ("2.x", "file://../db", "can't get a valid version for "),
        ("1.x", "file://../none", "there is no such folder"),
        ("1.x", "file://../../git", "it is outside the repository"),
    ] {
        stage.chart(range, None, repository);
        stage.refuses("", &format!("error: Chart.yaml: db: {repository}: {expected}"));
    }
    // One dependency that fails does not change the error of another.
    let failing = |name: &str| format!("{{name: {name}, version: 2.x, repository: 'file://../db'}}");
    let both = format!(
        "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies: [{}, {}]\n",
        failing("db"),
        failing("cache")
    );
    stage.write("repository/app/Chart.yaml", &both);
    let output = stage.generate("");
    let errors = String::from_utf8_lossy(&output.stderr);
    for name in ["db", "cache"] {
        let expected = format!("error: Chart.yaml: {name}: file://../db: can't get a valid version for ");
        assert!(errors.contains(&expected), "no {expected} in {errors}");
    }
    stage.chart("1.2.0", Some("1.1.0"), "file://../db");
    let chart = fs::read_to_string(stage.scratch.path().join("repository/app/Chart.yaml")).expect("a file");
    stage.write("repository/app/Chart.yaml", &chart.replace("1.2.0", "^1.2.0"));
    stage.refuses(
        "",
        "error: Chart.lock: it does not match the dependencies in Chart.yaml",
    );
}

/// Each repository of charts with the error of the address that is not allowed, or that cannot be fetched.
const REFUSED: &str = "\
absolute: {url}/elsewhere/db-1.2.0.tgz: it would be fetched from the network
upwards: {url}/elsewhere/db-1.2.0.tgz: it would be fetched from the network
redirected: {url}/redirected/again.tgz redirects to {url}/elsewhere/db-1.2.0.tgz?signature=a%2Fb%3D: it would be fetched
moved: {url}/moved/index.yaml redirects to {url}/elsewhere/index.yaml: it would be fetched
local: {url}/local/db cannot be fetched:\x20
circle: {url}/circle/index.yaml cannot be fetched: more than 10 redirects";

#[test]
fn each_address_of_a_chart_is_checked_before_it_is_fetched() {
    let index = |url: &str| INDEX.replace("db-1.2.0.tgz", url).into_bytes();
    let redirect = |to: &str| format!("{{url}}{to}").into_bytes();
    let files = [
        ("/absolute/index.yaml", index("{url}/elsewhere/db-1.2.0.tgz")),
        ("/upwards/index.yaml", index("../elsewhere/db-1.2.0.tgz")),
        ("/redirected/index.yaml", index("db-1.2.0.tgz")),
        ("/redirected/db-1.2.0.tgz", redirect("/redirected/again.tgz")),
        (
            "/redirected/again.tgz",
            redirect("/elsewhere/db-1.2.0.tgz?signature=a%2Fb%3D"),
        ),
        ("/moved/index.yaml", redirect("/elsewhere/index.yaml")),
        ("/elsewhere/index.yaml", index("{url}/elsewhere/db-1.2.0.tgz")),
        ("/elsewhere/db-1.2.0.tgz", package("db")),
        ("/local/index.yaml", index("file:///etc/passwd")),
        ("/circle/index.yaml", redirect("/circle/index.yaml")),
    ];
    let stage = Stage::new(&files);
    for line in REFUSED.lines() {
        let (repository, expected) = line.split_once(": ").expect("a repository and an error");
        let (url, allowed) = (format!("{{url}}/{repository}"), format!("{{url}}/{repository}/"));
        stage.chart("1.2.0", Some("1.2.0"), &url);
        stage.refuses(&allowed, &format!("error: Chart.yaml: db: {expected}"));
        stage.kustomization("1.2.0", &url);
        stage.refuses(&allowed, &format!("error: {expected}"));
        let requests = stage.server.requests();
        assert!(
            !requests.iter().any(|path| path.starts_with("/elsewhere/")),
            "{repository}: {requests:?}"
        );
    }
    for repository in ["absolute", "upwards", "redirected", "moved"] {
        let url = format!("{{url}}/{repository}");
        let allowed = format!("{url}/,{{url}}/elsewhere/");
        stage.chart("1.2.0", None, &url);
        stage.renders(&allowed, &["of-db"]);
        stage.kustomization("1.2.0", &url);
        stage.renders(&allowed, &["of-db"]);
    }
}

#[test]
fn renders_charts_of_allowed_registries() {
    let (chart, other) = (package("db"), package("other"));
    let manifest = |content: &[u8]| {
        let layer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
        let digest = sha256(content);
        format!("{{\"layers\": [{{\"mediaType\": \"{layer}\", \"digest\": \"sha256:{digest}\"}}]}}").into_bytes()
    };
    let tags = b"{\"tags\": [\"latest\", \"1.1.0\", \"1.2.0\", \"2.0.0\"]}".to_vec();
    let blob = |path: &str| format!("/v2/{path}/blobs/sha256:{}", sha256(&chart));
    let moved = b"{url}/storage/chart".to_vec();
    let (public, private, stored) = (blob("charts/db"), blob("private/db"), blob("stored/db"));
    let wrong = blob("wrong/db");
    let files = [
        ("/v2/charts/db/tags/list", tags),
        ("/v2/charts/db/manifests/1.2.0", manifest(&chart)),
        ("/v2/private/db/manifests/1.2.0", manifest(&chart)),
        ("/v2/stored/db/manifests/1.2.0", manifest(&chart)),
        ("/v2/wrong/db/manifests/1.2.0", manifest(&chart)),
        (
            "/v2/image/db/manifests/1.2.0",
            b"{\"layers\": [{\"mediaType\": \"a\"}]}".to_vec(),
        ),
        (&public, chart.clone()),
        (&private, chart.clone()),
        (&stored, moved),
        (&wrong, other),
        ("/storage/chart", chart.clone()),
        ("/token", b"{\"token\": \"for-the-reader\"}".to_vec()),
    ];
    let stage = Stage::with_tls(&files);
    stage.chart("1.2.0", Some("1.2.0"), "oci://{host}/charts");
    stage.refuses(
        "oci://{host}/other/,{url}/charts/",
        "error: Chart.yaml: db: oci://{host}/charts/db: it would be fetched from the network",
    );
    assert!(stage.server.requests().is_empty(), "{:?}", stage.server.requests());
    stage.renders("oci://{host}/charts/", &["of-db"]);
    assert_eq!(
        stage.server.requests(),
        ["/v2/charts/db/manifests/1.2.0", public.as_str()]
    );
    stage.chart("~1.0 || ^1.1", None, "oci://{host}/charts");
    stage.renders("oci://{host}/charts/", &["of-db"]);
    stage.kustomization("1.2.0", "oci://{host}/charts");
    stage.renders("oci://{host}/charts/", &["of-db"]);

    stage.chart("1.2.0", None, "oci://{host}/stored");
    stage.refuses(
        "oci://{host}/stored/",
        "redirects to {url}/storage/chart: it would be fetched from the network",
    );
    assert!(!stage.server.requests().contains(&"/storage/chart".to_owned()));
    stage.renders("oci://{host}/stored/,{url}/storage/", &["of-db"]);

    stage.chart("1.2.0", None, "oci://{host}/private");
    stage.refuses(
        "oci://{host}/private/",
        "cannot be fetched: the server answers 401 Unauthorized",
    );
    let login = "{\"auths\": {\"{host}\": {\"auth\": \"cmVhZGVyOnBhc3N3b3Jk\"}}}";
    stage.write("home/.config/helm/registry/config.json", login);
    stage.renders("oci://{host}/private/", &["of-db"]);

    for (path, expected) in [
        ("wrong", "its content does not have the digest sha256:"),
        ("image", "it is not a chart"),
        ("none", "the server answers 404 Not Found"),
    ] {
        stage.chart("1.2.0", None, &format!("oci://{{host}}/{path}"));
        let expected = format!("error: Chart.yaml: db: oci://{{host}}/{path}/db:1.2.0 cannot be fetched: {expected}");
        stage.refuses(&format!("oci://{{host}}/{path}/"), &expected);
    }
}

#[test]
fn reads_all_pages_of_the_tags_in_a_registry() {
    let chart = package("db");
    let digest = sha256(&chart);
    let layer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    let manifest = format!("{{\"layers\": [{{\"mediaType\": \"{layer}\", \"digest\": \"sha256:{digest}\"}}]}}");
    let blob = format!("/v2/pages-12/db/blobs/sha256:{digest}");
    let stage = Stage::with_tls(&[
        ("/v2/pages-12/db/manifests/1.2.0", manifest.into_bytes()),
        (&blob, chart),
    ]);
    stage.chart("^1.0", None, "oci://{host}/pages-12");
    stage.renders("oci://{host}/pages-12/", &["of-db"]);
    stage.chart("^1.0", None, "oci://{host}/pages-101");
    stage.refuses(
        "oci://{host}/pages-101/",
        "error: Chart.yaml: db: oci://{host}/pages-101/db cannot be fetched: more than 100 pages of tags: request an exact version",
    );
}

#[test]
fn refuses_submodules_and_files_by_address_outside_resources() {
    let stage = Stage::new(&[("/team/a.yaml", map("web", "of-web").into_bytes())]);
    let base = [
        ("kustomization.yaml", "resources: [map.yaml]\n"),
        ("map.yaml", &map("web", "of-base")),
        (
            ".gitmodules",
            "[submodule \"a\"]\n\tpath = a\n\turl = {url}/git/a.git\n",
        ),
    ];
    let secret = "secretGenerator: [{name: db, literals: [hunter2-of-the-base]}]\n";
    stage.repository("secret.git", &[("kustomization.yaml", secret)]);
    stage.resources("{url}/git/secret.git?ref=main");
    stage.refuses("{url}/git/", "invalid literal source [hidden], expected key=value");
    stage.repository("base.git", &base);
    stage.resources("{url}/git/base.git?ref=main");
    stage.refuses(
        "{url}/git/",
        "error: kustomize build: a remote base cannot be fetched: it has Git submodules, which are not fetched: commit its content",
    );
    let without = "resources: ['{url}/git/base.git?ref=main&submodules=false']\n";
    stage.write("repository/app/kustomization.yaml", without);
    stage.renders("{url}/git/", &["of-base"]);

    stage.write("repository/app/map.yaml", &map("web", "of-app"));
    let requests = stage.server.requests().len();
    for field in [
        "patches: [{path: '{url}/team/a.yaml'}]",
        "patchesStrategicMerge: ['{url}/team/a.yaml']",
        "patchesJson6902: [{target: {version: v1, kind: ConfigMap, name: web}, path: '{url}/team/a.yaml'}]",
        "crds: ['{url}/team/a.yaml']",
        "configurations: ['{url}/team/a.yaml']",
        "openapi: {path: '{url}/team/a.yaml'}",
        "replacements: [{path: '{url}/team/a.yaml'}]",
        "configMapGenerator: [{name: b, files: ['{url}/team/a.yaml']}]",
        "secretGenerator: [{name: b, files: ['b={url}/team/a.yaml']}]",
        "configMapGenerator: [{name: b, envs: ['{url}/team/a.yaml']}]",
    ] {
        let kustomization = format!("resources: [map.yaml]\n{field}\n");
        stage.write("repository/app/kustomization.yaml", &kustomization);
        stage.refuses(
            "",
            "error: {url}/team/a.yaml: it would be fetched from the network: commit its content",
        );
        stage.refuses(
            "{url}/team/",
            "error: {url}/team/a.yaml: only a file in 'resources' can be fetched: commit this one to the repository",
        );
    }
    for field in ["components", "generators", "transformers", "validators"] {
        let kustomization = format!("resources: [map.yaml]\n{field}: ['{{url}}/team/a.yaml']\n");
        stage.write("repository/app/kustomization.yaml", &kustomization);
        stage.refuses(
            "",
            "error: {url}/team/a.yaml: it would be fetched from the network: commit its content",
        );
    }
    assert_eq!(stage.server.requests().len(), requests, "{:?}", stage.server.requests());
}
