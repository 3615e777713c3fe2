//! A shell as somebody has it who reads the pages: the shipped files before them, and the program on the `PATH`.

use crate::page::{pages, root};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Files that a page shows as the first YAML of a section, and then names in a command.
const OF_PAGES: &[(&str, &str)] = &[
    ("fleet.yaml", "docs/argocd-agent.md#installing"),
    ("policy.yaml", "docs/policies.md#what-a-project-may-deliver"),
];

/// Where the shipped Applications are from, which is not there yet while they are tested.
const REPOSITORY: &str = "https://github.com/argocd-ocm-cmp/argocd-ocm-cmp.git";

/// A folder with what the commands of the pages expect, and what is on the `PATH`.
pub(crate) struct Shell {
    folder: TempDir,
    path: Vec<PathBuf>,
    kubeconfig: Option<PathBuf>,
}

/// What a command comes to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Shell {
    /// A shell in a folder of its own: with the shipped files, in which `repository` stands for the one that they name, with the
    /// folders of tests/docs/stage, and with the files that pages show.
    pub(crate) fn new(repository: &str) -> Self {
        let folder = TempDir::new().expect("a scratch folder");
        for entry in fs::read_dir(root()).expect("the repository") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|it| it == "yaml") {
                let text = fs::read_to_string(&path).expect("a shipped file");
                let name = path.file_name().expect("a name");
                fs::write(folder.path().join(name), text.replace(REPOSITORY, repository)).expect("a file");
            }
        }
        copy(&root().join("guestbook"), &folder.path().join("guestbook"));
        copy(&root().join("tests/docs/stage"), folder.path());
        let pages = pages();
        for (file, section) in OF_PAGES {
            let (path, anchor) = section.split_once('#').expect("a section");
            let page = pages.iter().find(|page| page.path == path).expect("a page");
            let mut blocks = page
                .blocks
                .iter()
                .filter(|it| it.section == anchor && it.language == "yaml");
            let block = blocks.next().unwrap_or_else(|| panic!("{section} shows no {file}"));
            fs::write(folder.path().join(file), &block.text).expect("a file");
        }
        let program = Path::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
        Self {
            folder,
            path: vec![program.parent().expect("it is in a folder").to_owned()],
            kubeconfig: None,
        }
    }

    /// The same with a kubeconfig, and more folders on the `PATH`.
    pub(crate) fn with_cluster(mut self, kubeconfig: PathBuf, path: &[&Path]) -> Self {
        self.kubeconfig = Some(kubeconfig);
        self.path.extend(path.iter().copied().map(Path::to_owned));
        self
    }

    /// The folder in which commands run.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command as it would be typed.
    pub(crate) fn run(&self, text: &str) -> Outcome {
        let system = env::var_os("PATH").unwrap_or_default();
        let path: OsString =
            env::join_paths(self.path.iter().cloned().chain(env::split_paths(&system))).expect("plain paths");
        let output = Command::new("bash")
            .args(["-o", "pipefail", "-c", text])
            .current_dir(self.folder())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder())
            .env("LANG", "C.UTF-8")
            .envs(self.kubeconfig.as_ref().map(|it| ("KUBECONFIG", it)))
            .stdin(Stdio::null())
            .output()
            .expect("bash");
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Outcome {
    /// Whether it has done what it was to do: what compares and what judges says by 1 that something differs, or is not well.
    pub(crate) fn is_fine(&self, text: &str) -> bool {
        let judges = [
            "argocd-ocm-cmp diff ",
            "argocd-ocm-cmp status ",
            "argocd-ocm-cmp gitopscluster status ",
        ];
        match self.code {
            Some(0) => true,
            Some(1) => judges.iter().any(|it| text.starts_with(it)) && self.stderr.is_empty(),
            _ => false,
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let there = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &there);
        } else {
            fs::copy(&path, &there).expect("a file");
        }
    }
}
