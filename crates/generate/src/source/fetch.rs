//! Fetches what a source uses from the network, before it is rendered without one.
//!
//! Only addresses that the administrator allows are fetched. Git, Helm and the download run with the network and the credentials of the
//! user, but read nothing of the repository: their arguments are the whole request.

use super::Source;
use super::bounds::Repository;
use super::remote::Remotes;
use super::tool::{ToolAccess, ToolError};
use crate::confine::Scratch;
use crate::fetched::{Request, create_stand_ins};
use manifest::problem::{Problems, plain};
use manifest::value::Value;
use manifest::yaml;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of requests of a source, and so of attempts to render it.
pub(super) const REQUESTS: usize = 100;

/// The maximum number of redirects of an address.
const REDIRECTS: usize = 10;

/// The options of Git: no redirects, because only the address itself is allowed, and no other protocols.
const GIT_OPTIONS: [&str; 10] = [
    "-c",
    "http.followRedirects=false",
    "-c",
    "protocol.allow=never",
    "-c",
    "protocol.https.allow=always",
    "-c",
    "protocol.http.allow=always",
    "-c",
    "protocol.ssh.allow=always",
];

/// The fetched content for a kustomization.
pub(super) struct Fetched {
    /// A private folder.
    scratch: Scratch,
    /// The addresses of single files, with the repositories in whose folders they are.
    files: BTreeMap<String, Request>,
}

impl Fetched {
    /// Creates the folders, and the programs that stand in for Git and Helm.
    pub(super) fn new() -> Result<Self, Problems> {
        let create = || {
            let scratch = Scratch::new(&env::temp_dir())?;
            scratch.folder("content")?;
            create_stand_ins(&scratch.folder("bin")?, &env::current_exe()?)?;
            Ok(scratch)
        };
        let scratch = create().map_err(|error: io::Error| {
            Problems::one(format!(
                "kustomize needs a temporary folder, which cannot be created in TMPDIR or /tmp: {}: mount a writable volume there",
                plain(&error)
            ))
        })?;
        let files = BTreeMap::new();
        Ok(Self { scratch, files })
    }

    /// Returns the folder of the programs that stand in for Git and Helm.
    pub(super) fn programs(&self) -> PathBuf {
        self.scratch.path().join("bin")
    }

    /// Returns the folder of the fetched content.
    pub(super) fn content(&self) -> PathBuf {
        self.scratch.path().join("content")
    }

    /// Fetches what kustomize lacked according to its error message. Returns false if it lacked nothing.
    ///
    /// # Errors
    /// Returns an error if the address is not allowed, or cannot be fetched.
    pub(super) fn provide(&mut self, error: &ToolError, source: &Source) -> Result<bool, Problems> {
        // kustomize reads an address as a file first, then as a repository.
        if let Some(file) = error.file.as_ref().filter(|file| !self.files.contains_key(*file)) {
            let known = error.request.iter().chain(self.files.values());
            let repository = known.clone().find(|request| below(file, request).is_some()).cloned();
            if repository.is_some() || error.request.is_none() {
                check_allowed(&Request::File { url: file.clone() }, &source.remotes)?;
            }
            if let Some(repository) = repository
                && self.provide_file(file, repository, source)?
            {
                return Ok(true);
            }
        }
        let Some(request) = &error.request else {
            return Ok(false);
        };
        check_allowed(request, &source.remotes)?;
        self.fetch(request, source)?;
        Ok(true)
    }

    /// Fetches a file with manifests. kustomize gets it as a kustomization in a folder of its repository, because it has no network to
    /// read a file. Returns false if the content is something else, such as the page of a repository.
    fn provide_file(&mut self, file: &str, repository: Request, source: &Source) -> Result<bool, Problems> {
        let Some(path) = below(file, &repository) else {
            return Ok(false);
        };
        if file.contains('?') {
            return Ok(false);
        }
        let content = download(file, source)?;
        if !is_list_of_manifests(&content) {
            return Ok(false);
        }
        let folder = repository.folder(&self.content()).join(path);
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join("kustomization.yaml"), "resources: [content.yaml]\n"))
            .and_then(|()| fs::write(folder.join("content.yaml"), content))
            .map_err(|error| Problems::one(format!("{file} cannot be stored: {}", plain(&error))))?;
        self.files.insert(file.to_owned(), repository);
        Ok(true)
    }

    fn fetch(&self, request: &Request, source: &Source) -> Result<(), Problems> {
        let folder = request.folder(&self.content());
        let failed = |why: &str| Problems::one(format!("{} cannot be fetched: {why}", request.address()));
        fs::create_dir(&folder).map_err(|error| failed(&plain(&error)))?;
        let access = ToolAccess::fetch(&folder);
        let run = |name: &str, arguments: &[&str]| match source.tools.run(name, arguments, &folder, None, &access)? {
            Ok(_) => Ok(()),
            Err(error) => Err(failed(&error.line)),
        };
        match request {
            Request::Git { url, revision } => {
                run("git", &["init", "--quiet"])?;
                let fetch = [
                    "fetch",
                    "--quiet",
                    "--depth=1",
                    "--no-tags",
                    "--no-recurse-submodules",
                    "--",
                    url,
                    revision,
                ];
                run("git", &[GIT_OPTIONS.as_slice(), &fetch].concat())?;
                run("git", &["checkout", "--quiet", "FETCH_HEAD"])?;
                fs::remove_dir_all(folder.join(".git")).map_err(|error| failed(&plain(&error)))
            }
            Request::Chart { .. } => {
                let arguments = pull_arguments(request).map_err(|why| failed(&why))?;
                let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                arguments.push("--untar");
                run("helm", &arguments)
            }
            Request::File { .. } => Ok(()),
        }
    }
}

/// Returns the arguments of `helm pull` for a chart, or the reason why it is none.
fn pull_arguments(request: &Request) -> Result<Vec<String>, String> {
    let Request::Chart {
        repository,
        name,
        version,
    } = request
    else {
        return Err("it is not a chart".to_owned());
    };
    let is_word = |text: &str, more: &str| {
        text.chars()
            .all(|char| char.is_ascii_alphanumeric() || more.contains(char))
            && !text.starts_with('-')
    };
    if name.is_empty() || !is_word(name, "._-") {
        return Err("use letters, digits, '-', '_' and '.' in the name of a chart".to_owned());
    }
    if !is_word(version, "._-+~^*<>=|, ") {
        return Err(format!("{version:?} is not a version: write it like 1.4.2"));
    }
    let mut arguments = vec!["pull".to_owned()];
    if repository.starts_with("oci://") {
        arguments.push(request.address());
    } else {
        arguments.extend([name.clone(), "--repo".to_owned(), repository.clone()]);
    }
    if !version.is_empty() {
        arguments.extend(["--version".to_owned(), version.clone()]);
    }
    Ok(arguments)
}

/// Checks that the administrator allows an address.
fn check_allowed(request: &Request, remotes: &Remotes) -> Result<(), Problems> {
    let is_allowed = match request {
        // A prefix may be that of all files in a repository.
        Request::Git { url, revision } => {
            let url = url.strip_suffix(".git").unwrap_or(url).trim_end_matches('/');
            remotes.allow(&format!("{url}/?ref={revision}"))
        }
        Request::Chart { .. } | Request::File { .. } => remotes.allow(&request.address()),
    };
    if is_allowed {
        return Ok(());
    }
    Err(Problems::one(format!(
        "{}: it would be fetched from the network: {}",
        request.address(),
        Remotes::remedy()
    )))
}

/// Returns the path of a file below the repository of a request.
fn below<'a>(file: &'a str, request: &Request) -> Option<&'a str> {
    let Request::Git { url, .. } = request else { return None };
    let rest = file.strip_prefix(url.strip_suffix(".git").unwrap_or(url))?;
    rest.strip_prefix('/').or_else(|| rest.is_empty().then_some(rest))
}

/// Returns the content of a file. Redirects are followed to allowed addresses only.
fn download(url: &str, source: &Source) -> Result<Vec<u8>, Problems> {
    let mut url = url.to_owned();
    for _ in 0..=REDIRECTS {
        match source.tools.download(&url)? {
            Ok(content) => return Ok(content),
            Err(ToolError {
                request: Some(request @ Request::File { .. }),
                ..
            }) => {
                let target = request.address();
                if let Err(problems) = check_allowed(&request, &source.remotes) {
                    let why = problems.into_lines().concat();
                    return Err(Problems::one(format!("{url} redirects to {why}")));
                }
                url = target;
            }
            Err(error) => return Err(Problems::one(format!("{url} cannot be fetched: {}", error.line))),
        }
    }
    Err(Problems::one(format!(
        "{url} cannot be fetched: more than {REDIRECTS} redirects: use the address where they end"
    )))
}

/// Returns true if a file has manifests only.
fn is_list_of_manifests(content: &[u8]) -> bool {
    std::str::from_utf8(content).is_ok_and(|text| {
        yaml::documents(text)
            .all(|document| document.is_ok_and(|document| matches!(document.value, Value::Map(_) | Value::Null)))
    })
}

/// Fetches the dependencies of the chart in `chart` that are missing in its folder `charts`, in the versions of its lock file.
///
/// # Errors
/// Returns an error with each dependency that cannot be fetched.
pub(super) fn dependencies(
    chart: &Path,
    missing: &[String],
    repository: &Repository,
    source: &Source,
) -> Result<(), Problems> {
    let locked = ["Chart.lock", "requirements.lock"];
    let declared = ["Chart.yaml", "requirements.yaml"];
    let read = |files: [&str; 2]| -> Result<Vec<(String, Request)>, Problems> {
        let mut all = Vec::new();
        for file in files {
            all.extend(dependencies_in(&chart.join(file), repository)?);
        }
        Ok(all)
    };
    let (locked, declared) = (read(locked)?, read(declared)?);
    // Helm itself reports a folder that cannot be created.
    let _ = fs::create_dir(chart.join("charts"));
    let mut problems = Vec::new();
    for name in missing {
        let of = |all: &[(String, Request)]| all.iter().find(|(known, _)| known == name).map(|(_, it)| it.clone());
        let request = if locked.is_empty() { of(&declared) } else { of(&locked) };
        let Some(request) = request else {
            problems.push(format!(
                "Chart.lock: {name} is missing: run 'helm dependency update', and commit Chart.lock"
            ));
            continue;
        };
        if let Err(found) = dependency(chart, &request, repository, source) {
            problems.extend(
                found
                    .into_lines()
                    .into_iter()
                    .map(|line| format!("Chart.yaml: {name}: {line}")),
            );
        }
    }
    Problems::or(problems, ())
}

fn dependency(chart: &Path, request: &Request, repository: &Repository, source: &Source) -> Result<(), Problems> {
    check_allowed(request, &source.remotes)?;
    let mut arguments = pull_arguments(request).map_err(Problems::one)?;
    arguments.extend(["--destination".to_owned(), "charts".to_owned()]);
    let access = ToolAccess::fetch(repository.root());
    match source.tools.run("helm", arguments, chart, None, &access)? {
        Ok(_) => Ok(()),
        Err(error) => Err(Problems::one(format!("it cannot be fetched: {}", error.line))),
    }
}

/// Reads the field `dependencies` of a file.
fn dependencies_in(file: &Path, repository: &Repository) -> Result<Vec<(String, Request)>, Problems> {
    let shown = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some(text) = repository
        .read(file)
        .map_err(|why| Problems::one(format!("{shown}: {why}")))?
    else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for document in yaml::documents(&text).take(1) {
        let document = document.map_err(|error| Problems::one(format!("{shown}:{}: {}", error.line, error.message)))?;
        let Some(Value::List(all)) = document.value.as_map().and_then(|fields| fields.get("dependencies")) else {
            continue;
        };
        for fields in all.iter().filter_map(Value::as_map) {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let request = Request::Chart {
                repository: text("repository"),
                name: text("name"),
                version: text("version"),
            };
            found.push((text("name"), request));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(url: &str) -> Request {
        Request::Git {
            url: url.to_owned(),
            revision: "v1".to_owned(),
        }
    }

    #[test]
    fn repository_is_allowed_by_the_prefix_of_its_files() {
        let remotes: Remotes = ["https://git.example.com/team/base/", "git@git.example.com:platform/"]
            .iter()
            .map(|prefix| prefix.parse().expect("a prefix"))
            .collect();
        let is_allowed = |url: &str| check_allowed(&git(url), &remotes).is_ok();
        for url in [
            "https://git.example.com/team/base",
            "https://git.example.com/team/base.git",
            "git@git.example.com:platform/base.git",
        ] {
            assert!(is_allowed(url), "{url}");
        }
        for url in [
            "https://git.example.com/team",
            "https://git.example.com/team/base2",
            "git@git.example.com:other/base",
            "file:///etc",
            "-u",
        ] {
            assert!(!is_allowed(url), "{url}");
        }
    }

    #[test]
    fn file_is_found_below_its_repository() {
        let request = git("https://github.com/org/repo.git");
        assert_eq!(
            below("https://github.com/org/repo/a/b.yaml", &request),
            Some("a/b.yaml")
        );
        assert_eq!(below("https://github.com/org/repo2/b.yaml", &request), None);
        assert_eq!(
            below("https://a.example.com/b/c.yaml", &git("https://a.example.com/b/c.yaml")),
            Some("")
        );
    }

    #[test]
    fn chart_is_pulled_with_plain_arguments_only() {
        let arguments = |repository: &str, name: &str, version: &str| {
            pull_arguments(&Request::Chart {
                repository: repository.to_owned(),
                name: name.to_owned(),
                version: version.to_owned(),
            })
        };
        let expected = ["pull", "oci://r.example.com/charts/db", "--version", "1.0.0"].map(str::to_owned);
        assert_eq!(
            arguments("oci://r.example.com/charts", "db", "1.0.0"),
            Ok(expected.to_vec())
        );
        let expected = ["pull", "db", "--repo", "https://c.example.com"].map(str::to_owned);
        assert_eq!(arguments("https://c.example.com", "db", ""), Ok(expected.to_vec()));
        for (name, version) in [
            ("--debug", ""),
            ("../db", ""),
            ("", ""),
            ("db", "--devel"),
            ("db", "1/2"),
        ] {
            assert!(
                arguments("https://c.example.com", name, version).is_err(),
                "{name} {version}"
            );
        }
    }
}
