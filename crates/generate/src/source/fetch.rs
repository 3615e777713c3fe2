//! Fetches what a source uses from the network, before it is rendered without one.
//!
//! Only addresses that the administrator allows are fetched. Git and the download run with the network and the credentials of the
//! user, but read nothing of the repository: their arguments are the whole request. Helm has no network here either: it reads the
//! fetched index of a chart repository, and fails with the address of the chart.

use super::Source;
use super::remote::Remotes;
use super::tool::{ToolAccess, ToolError, no_temporary_folder};
use crate::confine::Scratch;
use crate::fetched::{ARCHIVE, ARCHIVE_ADDRESS, RemoteContent, SERVER_ANSWERS, SUBMODULES, create_stand_ins};
use manifest::problem::{Problems, plain};
use manifest::value::Value;
use manifest::yaml;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The maximum number of requests of a source, and so of attempts to render it.
pub(super) const REQUESTS: usize = 100;

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
    files: BTreeMap<String, RemoteContent>,
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
        let scratch = create().map_err(|error| no_temporary_folder("kustomize", &error))?;
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
    pub(super) fn provide(&mut self, error: &ToolError, source: &Source) -> Result<bool, Problems> {
        let request = error.request();
        if request.is_none() && error.contains(SUBMODULES) {
            return Err(Problems::one(format!(
                "kustomize build: a remote base cannot be fetched: {SUBMODULES}: commit its content, or add submodules=false to the query \
                 of its address if it needs none"
            )));
        }
        // kustomize reads an address as a file first, then as a repository.
        let mut refusal = None;
        if let Some(file) = error.file().filter(|file| !self.files.contains_key(file)) {
            let known = request.iter().chain(self.files.values());
            let repository = known.clone().find(|request| below(&file, request).is_some()).cloned();
            if repository.is_some() || request.is_none() {
                check_allowed(&RemoteContent::File { url: file.clone() }, &source.remotes)?;
            }
            if let Some(repository) = repository {
                match self.provide_file(&file, &repository, source)? {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(line) => refusal = Some(line),
                }
            } else if request.is_none() && !error.contains(&format!("accumulating resources from '{file}'")) {
                return Err(Problems::one(format!(
                    "{file}: only a file in 'resources' can be fetched: commit this one to the repository"
                )));
            }
        }
        let Some(request) = request else {
            return Ok(false);
        };
        check_allowed(&request, &source.remotes)?;
        self.fetch(&request, source).map_err(|problems| match refusal {
            Some(refusal) => Problems::one(format!("{refusal}; {}", problems.into_lines().join("; "))),
            None => problems,
        })?;
        Ok(true)
    }

    /// Fetches a file with manifests. kustomize gets it as a kustomization in a folder of its repository, because it has no network to
    /// read a file. Returns false if it is something else, such as the page of a repository, or the message of a server that does not
    /// have it.
    fn provide_file(
        &mut self,
        file: &str,
        repository: &RemoteContent,
        source: &Source,
    ) -> Result<Result<bool, String>, Problems> {
        let Some(path) = below(file, repository).filter(|_| !file.contains('?')) else {
            return Ok(Ok(false));
        };
        let content = match source.tools.try_download(file, &source.remotes)? {
            Ok(content) => content,
            Err(error) if error.contains(SERVER_ANSWERS) => return Ok(Err(error.line())),
            Err(error) => return Err(Problems::one(error.line())),
        };
        if !is_list_of_manifests(&content) {
            return Ok(Ok(false));
        }
        let folder = repository.folder(&self.content()).join(path);
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join("kustomization.yaml"), "resources: [content.yaml]\n"))
            .and_then(|()| fs::write(folder.join("content.yaml"), content))
            .map_err(|error| Problems::one(format!("{file} cannot be stored: {}", plain(&error))))?;
        self.files.insert(file.to_owned(), repository.clone());
        Ok(Ok(true))
    }

    fn fetch(&self, request: &RemoteContent, source: &Source) -> Result<(), Problems> {
        let folder = request.folder(&self.content());
        let failed = |why: &str| not_fetched(request, why);
        fs::create_dir(&folder).map_err(|error| failed(&plain(&error)))?;
        let run = |name: &str, arguments: &[&str], access: &ToolAccess<'_>| match source
            .tools
            .run(name, arguments, &folder, None, access)?
        {
            Ok(_) => Ok(()),
            Err(error) => Err(failed(&error.line())),
        };
        match request {
            RemoteContent::Git { url, revision } => {
                let access = ToolAccess::fetch(&folder);
                run("git", &["init", "--quiet"], &access)?;
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
                run("git", &[GIT_OPTIONS.as_slice(), &fetch].concat(), &access)?;
                run("git", &["checkout", "--quiet", "FETCH_HEAD"], &access)?;
                fs::remove_dir_all(folder.join(".git")).map_err(|error| failed(&plain(&error)))
            }
            RemoteContent::Chart { .. } => {
                let chart = Chart::fetch(request, source)?;
                fs::write(self.content().join(ARCHIVE), chart.archive).map_err(|error| failed(&plain(&error)))?;
                let access = ToolAccess::unpack(&folder, self);
                run("helm", &["pull", ARCHIVE_ADDRESS, "--untar"], &access)
            }
            RemoteContent::File { .. } => Ok(()),
        }
    }
}

fn not_fetched(request: &RemoteContent, why: &str) -> Problems {
    Problems::one(format!("{} cannot be fetched: {why}", request.address()))
}

pub(super) struct Chart {
    pub(super) file: String,
    pub(super) archive: Vec<u8>,
}

/// The name of a chart repository for Helm.
const REPOSITORY: &str = "fetched";

impl Chart {
    /// Fetches a chart in the newest version that fits, which Helm chooses.
    pub(super) fn fetch(request: &RemoteContent, source: &Source) -> Result<Self, Problems> {
        let RemoteContent::Chart {
            repository,
            name,
            version,
        } = request
        else {
            return Err(Problems::one("it is not a chart"));
        };
        check_words(name, version).map_err(|why| not_fetched(request, &why))?;
        check_allowed(request, &source.remotes)?;
        let download = |address: &str| source.tools.download(address, &source.remotes);
        let is_registry = repository.starts_with("oci://");
        if is_registry && is_exact(version) {
            let tag = version.replace('+', "_");
            let archive = download(&format!("{}:{tag}", request.address()))?;
            let file = format!("{name}-{version}.tgz");
            return Ok(Self { file, archive });
        }
        let index = if is_registry {
            download(&request.address())?
        } else {
            download(&format!("{}/index.yaml", repository.trim_end_matches('/')))?
        };
        let address = choose([repository, name, version], &index, source, |why| {
            not_fetched(request, why)
        })?;
        let file = address.rsplit('/').next().unwrap_or_default();
        Ok(match address.rsplit_once("/manifests/") {
            Some((_, tag)) if is_registry => Self {
                file: format!("{name}-{tag}.tgz"),
                archive: download(&format!("{}:{tag}", request.address()))?,
            },
            _ => Self {
                file: if is_word(file, "._-+") {
                    file.to_owned()
                } else {
                    format!("{name}.tgz")
                },
                archive: download(&address)?,
            },
        })
    }
}

/// Returns the address of a chart in an index. Helm reads the index, and fails to read the address, because it has no network.
fn choose(
    [repository, name, version]: [&String; 3],
    index: &[u8],
    source: &Source,
    failed: impl Fn(&str) -> Problems,
) -> Result<String, Problems> {
    let stored = Scratch::new(&env::temp_dir()).and_then(|scratch| {
        let url = if repository.starts_with("oci://") {
            "https://"
        } else {
            repository.as_str()
        };
        let repositories = serde_json::json!({"apiVersion": "", "repositories": [{"name": REPOSITORY, "url": url}]});
        fs::write(scratch.path().join("repositories.yaml"), repositories.to_string())?;
        fs::write(scratch.path().join(format!("{REPOSITORY}-index.yaml")), index)?;
        Ok(scratch)
    });
    let scratch = stored.map_err(|error| failed(&plain(&error)))?;
    let chart = format!("{REPOSITORY}/{name}");
    let mut arguments = vec![
        "pull",
        &chart,
        "--repository-config",
        "repositories.yaml",
        "--repository-cache",
        ".",
    ];
    if !version.is_empty() {
        arguments.extend(["--version", version]);
    }
    let access = ToolAccess::index(scratch.path());
    match source.tools.run("helm", arguments, scratch.path(), None, &access)? {
        Ok(_) => Err(failed("its address is not one of a server")),
        Err(error) => error.file().ok_or_else(|| {
            let line = error.line();
            failed(line.split(" (try 'helm repo update')").next().unwrap_or(&line))
        }),
    }
}

/// Checks that Helm reads the name and the version of a chart as such.
fn check_words(name: &str, version: &str) -> Result<(), String> {
    if name.is_empty() || !is_word(name, "._-") {
        return Err("use letters, digits, '-', '_' and '.' in the name of a chart".to_owned());
    }
    if !is_word(version, "._-+~^*<>=|, ") {
        return Err(format!("{version:?} is not a version: write it like 1.4.2"));
    }
    Ok(())
}

fn is_word(text: &str, more: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || more.contains(char);
    text.chars().all(is_plain) && !text.starts_with('-')
}

/// Returns true if a version is no range.
fn is_exact(version: &str) -> bool {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3 && numbers.split('.').all(is_number) && is_word(version, ".-+")
}

/// Checks that the administrator allows an address.
fn check_allowed(request: &RemoteContent, remotes: &Remotes) -> Result<(), Problems> {
    let is_allowed = match request {
        // A prefix may be that of all files in a repository.
        RemoteContent::Git { url, revision } => {
            let url = url.strip_suffix(".git").unwrap_or(url).trim_end_matches('/');
            remotes.allow(&format!("{url}/?ref={revision}"))
        }
        RemoteContent::Chart { .. } => remotes.allow(&request.address()),
        RemoteContent::File { url } => remotes.allow_file(url),
    };
    if is_allowed {
        return Ok(());
    }
    Err(Problems::one(Remotes::refusal(&request.address())))
}

/// Returns the path of a file below the repository of a request, which is relative and does not lead out of it.
fn below<'a>(file: &'a str, request: &RemoteContent) -> Option<&'a Path> {
    let RemoteContent::Git { url, .. } = request else {
        return None;
    };
    let rest = file.strip_prefix(url.strip_suffix(".git").unwrap_or(url))?;
    let path = Path::new(rest.trim_start_matches('/'));
    let is_below = rest.is_empty() || rest.starts_with('/');
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    (is_below && is_plain).then_some(path)
}

/// Returns true if a file has manifests only.
fn is_list_of_manifests(content: &[u8]) -> bool {
    std::str::from_utf8(content).is_ok_and(|text| {
        yaml::documents(text)
            .all(|document| document.is_ok_and(|document| matches!(document.value, Value::Map(_) | Value::Null)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(url: &str) -> RemoteContent {
        RemoteContent::Git {
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
        for (file, repository, expected) in [
            (
                "https://github.com/org/repo/a/b.yaml",
                "https://github.com/org/repo.git",
                Some("a/b.yaml"),
            ),
            (
                "https://github.com/org/repo2/b.yaml",
                "https://github.com/org/repo.git",
                None,
            ),
            (
                "https://a.example.com/b/c.yaml",
                "https://a.example.com/b/c.yaml",
                Some(""),
            ),
            (
                "https://a.example.com/b//tmp/x",
                "https://a.example.com/b",
                Some("tmp/x"),
            ),
            (
                "https://a.example.com/b////tmp//x",
                "https://a.example.com/b",
                Some("tmp//x"),
            ),
            ("https://a.example.com/b//../x", "https://a.example.com/b", None),
            ("https://a.example.com/b/a/../../x", "https://a.example.com/b", None),
        ] {
            assert_eq!(below(file, &git(repository)), expected.map(Path::new), "{file}");
        }
    }

    #[test]
    fn names_and_versions_of_charts_are_no_options() {
        for (name, version) in [
            ("db", "1.0.0"),
            ("my-db", ""),
            ("db", ">=1.0.0, <2"),
            ("db", "~1.2 || 3.x"),
        ] {
            assert_eq!(check_words(name, version), Ok(()), "{name} {version}");
        }
        for (name, version) in [
            ("--debug", ""),
            ("../db", ""),
            ("", ""),
            ("db", "--devel"),
            ("db", "1/2"),
        ] {
            assert!(check_words(name, version).is_err(), "{name} {version}");
        }
        assert!(["1.2.3", "1.2.3-rc.1+build"].iter().all(|version| is_exact(version)));
        assert!(
            !["", "1.2", "1.2.x", ">1.2.3", "1.2.3 - 2.0.0"]
                .iter()
                .any(|version| is_exact(version))
        );
    }
}
