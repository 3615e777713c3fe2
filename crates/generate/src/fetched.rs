//! Requests for content from the network, and the programs that take the place of Git and Helm to deliver it.
//!
//! kustomize renders without a network. Its first `git` and `helm` on the PATH are this program, which copies what was
//! [requested](RemoteContent) before from a folder, or names the request and fails. The plugin then decides about the request, fetches
//! it, and renders again. So no text of a repository has to be read twice: the requests are those of kustomize, at any depth.
//!
//! Helm has no network either. It chooses the version of a chart from an index that the plugin fetched, names the address, and
//! unpacks the archive, which this program hands to it as a downloader.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nix::unistd::mkdtemp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Content on the network that a kustomization or a chart refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemoteContent {
    /// A revision of a Git repository.
    Git {
        /// The address of the repository.
        url: String,
        /// The branch, tag or commit; `HEAD` for the default branch.
        revision: String,
    },
    /// A chart.
    Chart {
        /// The address of the repository, or of the chart in a registry without its last part.
        repository: String,
        /// The name of the chart.
        name: String,
        /// The version, or a range of versions; empty for the newest.
        version: String,
    },
    /// A file.
    File {
        /// The address of the file.
        url: String,
    },
}

/// The start of a request in the error output of a program, before Base64.
const MARK: &str = "argocd-ocm-cmp-requests:";

/// The names of the programs that kustomize and Helm start to fetch.
pub(crate) const STAND_INS: [&str; 3] = ["git", "helm", DOWNLOADER];

/// The name of the program with which Helm reads a packaged chart.
const DOWNLOADER: &str = "helm-downloader";

/// The address at which Helm finds the packaged chart.
pub(crate) const ARCHIVE_ADDRESS: &str = "fetched://here/chart.tgz";

/// The file of that address in the folder of fetched content.
pub(crate) const ARCHIVE: &str = "chart.tgz";

/// Helm's plugin for that address.
const PLUGIN: &str = "name: fetched
version: 0.1.0
usage: fetched
description: fetched
command: helm-downloader
downloaders: [{command: helm-downloader, protocols: [fetched]}]
";

/// The first argument of this program as the process that reads an address. It is an internal command.
pub const DOWNLOAD: &str = "download";

/// The start of the reason of a download that fails because a server does not have the content.
pub const SERVER_ANSWERS: &str = "the server answers";

/// The environment variable with the folder of fetched content.
pub(crate) const FOLDER: &str = "ARGOCD_OCM_CMP_FETCHED";

impl RemoteContent {
    /// Returns the address.
    pub fn address(&self) -> String {
        match self {
            Self::Git { url, revision } if revision == "HEAD" => url.clone(),
            Self::Git { url, revision } => format!("{url}?ref={revision}"),
            Self::Chart { repository, name, .. } => format!("{}/{name}", repository.trim_end_matches('/')),
            Self::File { url } => url.clone(),
        }
    }

    /// Returns the line that names the request in the error output of a program.
    pub fn line(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        format!("{} is not here: {MARK}{}", self.address(), URL_SAFE_NO_PAD.encode(text))
    }

    /// Returns the last request in the error output of a program.
    pub(crate) fn last_in(error_output: &str) -> Option<Self> {
        let (_, rest) = error_output.rsplit_once(MARK)?;
        let is_encoded = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
        let end = rest.find(|char| !is_encoded(char)).unwrap_or(rest.len());
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&rest[..end]).ok()?).ok()
    }

    /// Returns the folder of the content below that of all fetched content.
    pub(crate) fn folder(&self, fetched: &Path) -> PathBuf {
        let hash = Sha256::digest(serde_json::to_vec(self).unwrap_or_default());
        fetched.join(URL_SAFE_NO_PAD.encode(hash))
    }
}

/// Creates the stand-ins in a folder, as links to this program, and Helm's plugin in a folder below it.
pub(crate) fn create_stand_ins(folder: &Path, program: &Path) -> io::Result<()> {
    let plugin = folder.join("fetched");
    fs::create_dir(&plugin)?;
    fs::write(plugin.join("plugin.yaml"), PLUGIN)?;
    symlink(program, plugin.join(DOWNLOADER))?;
    ["git", "helm"]
        .iter()
        .try_for_each(|name| symlink(program, folder.join(name)))
}

/// Acts as Git or Helm, if kustomize or Helm started this program as such; otherwise returns `None`. `environment` is that of the process.
pub fn stand_in(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter();
    let program = PathBuf::from(arguments.next()?);
    let name = program.file_name()?.to_str().filter(|name| STAND_INS.contains(name))?;
    let (mut fetched, mut path) = (None, OsString::new());
    for (variable, value) in environment {
        if variable == FOLDER {
            fetched = Some(PathBuf::from(value));
        } else if variable == "PATH" {
            path = value;
        }
    }
    let fetched = fetched?;
    let arguments: Vec<OsString> = arguments.collect();
    let words: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let result = match (name, words.as_slice()) {
        ("git", ["remote", "add", "origin", url]) => fs::write(ORIGIN, url),
        ("git", ["fetch", .., url, revision]) => fetch(url, revision, &fetched),
        ("git", ["submodule", ..]) if Path::new(".gitmodules").exists() => Err(io::Error::other(SUBMODULES)),
        ("git", _) => Ok(()),
        (DOWNLOADER, _) => print(&fetched.join(ARCHIVE)),
        (_, ["pull", rest @ ..]) => pull(rest, &fetched),
        _ => Err(start_helm(&arguments, &path)),
    };
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    })
}

/// The file in which a stand-in for Git keeps the address of a repository.
const ORIGIN: &str = ".git-origin";

/// The message about a Git repository with submodules.
pub(crate) const SUBMODULES: &str = "it has Git submodules, which are not fetched";

fn print(file: &Path) -> io::Result<()> {
    io::copy(&mut fs::File::open(file)?, &mut io::stdout()).map(drop)
}

/// Copies a revision of a Git repository into the current folder.
fn fetch(url: &str, revision: &str, fetched: &Path) -> io::Result<()> {
    let url = match url {
        "origin" => io::read_to_string(fs::File::open(ORIGIN)?)?,
        url => url.to_owned(),
    };
    let revision = revision.to_owned();
    let content = requested(&RemoteContent::Git { url, revision }, fetched)?;
    copy(&content, Path::new("."))
}

/// Copies a chart as `helm pull --untar` does, with the arguments of kustomize.
fn pull(arguments: &[&str], fetched: &Path) -> io::Result<()> {
    let (mut target, mut repository, mut name, mut version) = (".", "", "", "");
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        let mut value = || rest.next().copied().unwrap_or_default();
        match argument {
            "--untar" => {}
            "--untardir" => target = value(),
            "--repo" => repository = value(),
            "--version" => version = value(),
            flag if flag.starts_with('-') => {
                return Err(io::Error::other(format!("{flag} of helm pull is not supported")));
            }
            chart => name = chart,
        }
    }
    if repository.is_empty() {
        (repository, name) = name.rsplit_once('/').unwrap_or((name, ""));
    }
    let request = RemoteContent::Chart {
        repository: repository.to_owned(),
        name: name.to_owned(),
        version: version.to_owned(),
    };
    unpack(&requested(&request, fetched)?, Path::new(target))
}

/// Returns the folder of requested content, or fails with the request.
fn requested(request: &RemoteContent, fetched: &Path) -> io::Result<PathBuf> {
    let folder = request.folder(fetched);
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(io::Error::other(request.line()))
    }
}

/// Copies the chart in a folder into the checkout, and moves it to its place at once: kustomize considers a folder that exists the whole
/// chart, and other runs may render the same checkout meanwhile.
fn unpack(folder: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for chart in fs::read_dir(folder)? {
        let chart = chart?;
        let (copied, place) = (mkdtemp(&target.join(".chart-XXXXXX"))?, target.join(chart.file_name()));
        let moved = copy(&chart.path(), &copied)
            .and_then(|()| fs::set_permissions(&copied, chart.metadata()?.permissions()))
            .and_then(|()| fs::rename(&copied, &place));
        if let Err(error) = moved {
            fs::remove_dir_all(&copied)?;
            // Another run may have been first.
            if !place.is_dir() {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Copies a folder with all files and links in it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Replaces this process by the next Helm on the PATH; returns only if that fails.
fn start_helm(arguments: &[OsString], path: &OsStr) -> io::Error {
    // The first folder is that of the stand-ins.
    let mut programs = std::env::split_paths(path).skip(1).map(|folder| folder.join("helm"));
    match programs.find(|program| program.is_file()) {
        Some(helm) => Command::new(helm).args(arguments).exec(),
        None => io::Error::other("helm is not on the PATH: install helm; in the sidecar, deploy_cmp.yaml provides it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_found_in_a_quoted_error() {
        let request = RemoteContent::Git {
            url: "https://github.com/org/repo.git".to_owned(),
            revision: "v1".to_owned(),
        };
        let error_output = format!("Error: loader.New {:?}\n", format!("failed: {}\n", request.line()));
        assert_eq!(RemoteContent::last_in(&error_output), Some(request.clone()));
        assert_eq!(request.address(), "https://github.com/org/repo.git?ref=v1");
        assert_eq!(RemoteContent::last_in("argocd-ocm-cmp-requests:x"), None);
    }

    #[test]
    fn only_kustomize_starts_a_stand_in() {
        let start = |program: &str, folder: Option<&str>| {
            let environment = folder.map(|folder| (OsString::from(FOLDER), OsString::from(folder)));
            stand_in([program, "init"].map(OsString::from), environment)
        };
        assert!(start("/tmp/bin/git", Some("/tmp/fetched")).is_some());
        assert!(start("/usr/bin/argocd-ocm-cmp", Some("/tmp/fetched")).is_none());
        assert!(start("git", None).is_none());
    }

    #[test]
    fn chart_is_unpacked_as_a_whole_or_not_at_all() {
        let scratch = tempfile::TempDir::new().expect("a folder");
        let [from, target] = ["from", "charts/web-1.0.0"].map(|name| scratch.path().join(name));
        fs::create_dir_all(from.join("web/templates")).expect("a folder");
        fs::write(from.join("web/templates/a.yaml"), "").expect("a file");
        let names = |folder: &Path| -> Vec<_> {
            let entries = fs::read_dir(folder).expect("a folder");
            entries.map(|entry| entry.expect("an entry").file_name()).collect()
        };
        let no_file = std::os::unix::net::UnixListener::bind(from.join("web/socket")).expect("a socket");
        assert!(unpack(&from, &target).is_err() && names(&target).is_empty());
        drop(no_file);
        fs::remove_file(from.join("web/socket")).expect("a socket");
        unpack(&from, &target).expect("a chart");
        assert_eq!(
            (names(&target), names(&target.join("web"))),
            (vec!["web".into()], vec!["templates".into()])
        );
        // Of another run.
        fs::write(target.join("web/Chart.yaml"), "").expect("a file");
        unpack(&from, &target).expect("the chart of another run");
        assert_eq!((names(&target).len(), names(&target.join("web")).len()), (1, 2));
    }
}
