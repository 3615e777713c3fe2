//! A shell in the state that the pages assume: the shipped files in the folder, and the program on the `PATH`.

use crate::page::{pages, root};
use anyhow::Result;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use testbed::{GitRepository, Part, Parts};

/// The files that a page shows as the first YAML of a section, and then names in a command.
const OF_PAGES: &[(&str, &str)] = &[
    ("addon.yaml", "docs/pull.md#argo-cd-on-managed-clusters"),
    ("fleet.yaml", "docs/argocd-agent.md#installing"),
    ("policy.yaml", "docs/policies.md#what-a-project-may-deliver"),
];

/// The repository of the shipped Applications, which does not exist while they are tested.
const REPOSITORY: &str = "https://github.com/argocd-ocm-cmp/argocd-ocm-cmp.git";

/// A folder with the files that the commands of the pages need, and the `PATH`.
pub(crate) struct Shell {
    folder: PathBuf,
    path: Vec<PathBuf>,
    kubeconfig: Option<PathBuf>,
    /// Shell variables that the README tells its readers to set, as lines of a script.
    variables: String,
    /// Deletes the folder with the shell, unless it is a clone.
    scratch: Option<TempDir>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Shell {
    /// Creates a shell in a new folder: with the shipped files, in which `repository` replaces their repository, with the folders
    /// of tests/data/docs, and with the files that pages show.
    pub(crate) fn new(repository: &str) -> Self {
        let scratch = TempDir::new().expect("a scratch folder");
        let folder = scratch.path();
        for part in ["", "deploy", "examples"] {
            let to = folder.join(part);
            fs::create_dir_all(&to).expect("a folder");
            for entry in fs::read_dir(root().join(part)).expect("a folder of the repository") {
                let path = entry.expect("an entry").path();
                if path.extension().is_some_and(|extension| extension == "yaml") {
                    let text = fs::read_to_string(&path).expect("a shipped file");
                    let name = path.file_name().expect("a name");
                    fs::write(to.join(name), text.replace(REPOSITORY, repository)).expect("a file");
                }
            }
        }
        testbed::copy(&root().join("guestbook"), &folder.join("guestbook")).expect("a copy");
        let mut shell = Self::in_folder(folder.to_owned());
        shell.scratch = Some(scratch);
        shell
    }

    /// Creates a shell in a clone of the repository, whose files stay as they are, with the folders of tests/data/docs and the files
    /// that pages show beside them.
    pub(crate) fn in_clone(clone: &GitRepository) -> Self {
        Self {
            variables: format!("REPOSITORY={} REGISTRY=registry.example.com/ours\n", clone.url()),
            ..Self::in_folder(clone.path().to_owned())
        }
    }

    fn in_folder(folder: PathBuf) -> Self {
        testbed::copy(&root().join("tests/data/docs"), &folder).expect("a copy");
        let pages = pages();
        for (file, section) in OF_PAGES {
            let (path, anchor) = section.split_once('#').expect("a section");
            let page = pages.iter().find(|page| page.path == path).expect("a page");
            let mut blocks = page
                .blocks
                .iter()
                .filter(|block| block.section == anchor && block.language == "yaml");
            let block = blocks.next().unwrap_or_else(|| panic!("{section} shows no {file}"));
            fs::write(folder.join(file), &block.text).expect("a file");
        }
        let program = Path::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
        Self {
            folder,
            path: vec![program.parent().expect("a parent folder").to_owned()],
            kubeconfig: None,
            variables: String::new(),
            scratch: None,
        }
    }

    /// Adds a kubeconfig, and more folders on the `PATH`.
    pub(crate) fn with_cluster(mut self, kubeconfig: PathBuf, path: &[&Path]) -> Self {
        self.kubeconfig = Some(kubeconfig);
        self.path.extend(path.iter().copied().map(Path::to_owned));
        self
    }

    /// Returns the folder in which commands run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a command as typed.
    pub(crate) fn run(&self, text: &str) -> Outcome {
        let script = format!("{}{text}", self.variables);
        bash(&script, self.folder(), &self.path, self.kubeconfig.as_deref())
    }
}

/// Runs a command as typed in a folder, with these folders first on the `PATH`, and without other variables of the user.
pub(crate) fn bash(text: &str, folder: &Path, path: &[PathBuf], kubeconfig: Option<&Path>) -> Outcome {
    let system = env::var_os("PATH").unwrap_or_default();
    let path: OsString = env::join_paths(path.iter().cloned().chain(env::split_paths(&system))).expect("plain paths");
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", text])
        .current_dir(folder)
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder)
        .env("LANG", "C.UTF-8")
        .envs(kubeconfig.map(|kubeconfig| ("KUBECONFIG", kubeconfig)))
        .stdin(Stdio::null())
        .output()
        .expect("bash");
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Creates a folder with kubectl in it.
pub(crate) fn programs(folder: &Path) -> Result<PathBuf> {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs)?;
    symlink(Parts::ensure()?.program(Part::Kubectl), programs.join("kubectl"))?;
    Ok(programs)
}

impl Outcome {
    /// Returns true if the command has succeeded: for comparisons and checks, exit code 1 means a difference or a problem.
    pub(crate) fn has_succeeded(&self, text: &str) -> bool {
        let reports_findings = [
            "argocd-ocm-cmp diff ",
            "argocd-ocm-cmp status ",
            "argocd-ocm-cmp gitopscluster status ",
        ];
        match self.code {
            Some(0) => true,
            Some(1) => reports_findings.iter().any(|start| text.starts_with(start)) && self.stderr.is_empty(),
            _ => false,
        }
    }
}
