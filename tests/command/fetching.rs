//! Tests of the step that fetches remote bases and charts before the source is rendered, with a server for files, charts and Git.

use crate::program::{gzip, program, tools, transcript};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

/// A server of files and redirects by path, and of the Git repositories in a folder.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Starts a server. A file that begins with `http` is a redirect to that address; `{url}` is the server.
    fn start(files: &[(&str, Vec<u8>)], repositories: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
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
            url,
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
                drop(answer(stream, &files, &repositories, &requests));
            }
        });
        server
    }

    /// Returns the paths of all requests so far.
    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("the server runs").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.url.trim_start_matches("http://")));
    }
}

fn answer(
    mut stream: TcpStream,
    files: &BTreeMap<String, Vec<u8>>,
    repositories: &Path,
    requests: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
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
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if let Some(content) = files.get(path) {
        if content.starts_with(b"http") {
            let target = String::from_utf8_lossy(content);
            return write!(
                stream,
                "HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        let length = content.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )?;
        return stream.write_all(content);
    }
    let Some(path) = path.strip_prefix("/git").filter(|path| path.contains(".git/")) else {
        return write!(
            stream,
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
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
    let mut builder = tar::Builder::new(Vec::new());
    let template = map(name, &format!("of-{name}"));
    let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.2.0\n");
    for (path, content) in [
        ("Chart.yaml", chart),
        ("values.yaml", String::new()),
        ("templates/all.yaml", template),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder
            .append_data(&mut header, format!("{name}/{path}"), content.as_bytes())
            .expect("an entry");
    }
    gzip(builder)
}

/// A repository, and the server.
struct Stage {
    scratch: TempDir,
    server: Server,
    tools: PathBuf,
}

impl Stage {
    fn new(files: &[(&str, Vec<u8>)]) -> Self {
        let scratch = TempDir::new().expect("a scratch folder");
        let server = Server::start(files, &scratch.path().join("git"));
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
        fs::write(&file, text.replace("{url}", &self.server.url)).expect("a file");
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
        let mut command = program(&self.scratch.path().join("repository/app"));
        command
            .args(["generate", "--cluster", "cluster1", "--name", "shop"])
            .env("PATH", format!("{}:/usr/bin:/bin", self.tools.display()))
            .env("HOME", self.scratch.path().join("home"))
            .env("ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS", "--enable-helm")
            .env(
                "ARGOCD_OCM_CMP_REMOTE_BASES",
                remotes.replace("{url}", &self.server.url),
            );
        command.output().expect("the program runs")
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
        let expected = expected.replace("{url}", &self.server.url);
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

    stage.write(
        "repository/app/kustomization.yaml",
        "resources: ['{url}/team/moved.yaml']\n",
    );
    stage.renders("{url}/team/", &["of-two"]);
    stage.write(
        "repository/app/kustomization.yaml",
        "resources: ['{url}/team/away.yaml']\n",
    );
    stage.refuses(
        "{url}/team/",
        "error: {url}/team/away.yaml redirects to {url}/other/secret.yaml: it would be fetched",
    );
    assert!(!stage.server.requests().contains(&"/other/secret.yaml".to_owned()));
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
    stage.write(
        "repository/app/kustomization.yaml",
        "resources: ['{url}/git/base.git//eu?ref=main']\n",
    );
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
    stage.write(
        "repository/app/kustomization.yaml",
        "resources: ['{url}/git/base.git//eu?ref=none']\n",
    );
    stage.refuses("{url}/git/", "error: {url}/git/base.git?ref=none cannot be fetched: ");
}

const INDEX: &str = "apiVersion: v1
entries:
  db:
  - {apiVersion: v2, name: db, version: 1.3.0, urls: ['{url}/charts/none.tgz']}
  - {apiVersion: v2, name: db, version: 1.2.0, urls: ['{url}/charts/db-1.2.0.tgz']}
";

#[test]
fn renders_charts_of_allowed_repositories() {
    let files = [
        ("/charts/index.yaml", INDEX.as_bytes().to_vec()),
        ("/charts/db-1.2.0.tgz", package("db")),
    ];
    let stage = Stage::new(&files);
    let chart = "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies: [{name: db, version: '>=1.0.0', repository: '{url}/charts'}]\n";
    stage.write("repository/app/Chart.yaml", chart);
    stage.write(
        "repository/app/Chart.lock",
        "dependencies: [{name: db, version: 1.2.0, repository: '{url}/charts'}]\n",
    );
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
    assert!(
        !stage.server.requests().contains(&"/charts/none.tgz".to_owned()),
        "the lock file has the version"
    );

    fs::remove_dir_all(stage.scratch.path().join("repository/app")).expect("a folder");
    let kustomization = "helmCharts: [{name: db, version: 1.2.0, repo: '{url}/charts', releaseName: a}]\n";
    stage.write("repository/app/kustomization.yaml", kustomization);
    stage.refuses(
        "{url}/other/",
        "error: {url}/charts/db: it would be fetched from the network",
    );
    stage.renders("{url}/charts/", &["of-db"]);
}
