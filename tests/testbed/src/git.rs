//! A Git repository for Argo CD to read.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{folder, process};

/// A repository on this machine with one branch, `main`. Dropping it removes it.
#[derive(Debug)]
pub struct GitRepository {
    folder: TempDir,
}

impl GitRepository {
    /// Creates an empty repository.
    pub fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("testbed-git-").tempdir()?;
        let repository = Self { folder };
        repository.git(&["init", "--quiet", "--initial-branch=main"])?;
        Ok(repository)
    }

    /// Clones the repository at `source` as a user does: its HEAD, without changes that are not committed. The branch is `main`.
    pub fn clone_of(source: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("testbed-git-").tempdir()?;
        let clone = Self { folder };
        let source = format!("file://{}", source.display());
        // CI runs as root on the checkout of another user.
        let upload_pack = "--upload-pack=git -c safe.directory=* upload-pack";
        clone.git(&["clone", "--quiet", upload_pack, &source, "."])?;
        if clone.git(&["rev-parse", "--is-shallow-repository"])? == "true" {
            clone.forget_history()?;
        }
        clone.git(&["checkout", "--quiet", "-B", "main"])?;
        Ok(clone)
    }

    /// Makes the files of a shallow clone its only commit: Argo CD cannot fetch from a shallow clone.
    fn forget_history(&self) -> Result<()> {
        self.git(&["checkout", "--quiet", "--orphan", "complete"])?;
        self.git(&["commit", "--quiet", "--message=The files of a shallow clone"])?;
        self.git(&["remote", "remove", "origin"])?;
        self.git(&["branch", "--quiet", "-D", "main"]).ok();
        fs::remove_file(self.folder.path().join(".git/shallow"))?;
        Ok(())
    }

    /// Returns the URL for Argo CD, `file:///…`.
    pub fn url(&self) -> String {
        format!("file://{}", self.folder.path().display())
    }

    /// Returns the folder with the files, to write what [`commit`](Self::commit) cannot, such as symbolic links.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes files, given as path and content, and commits them with all other changes. Returns the commit.
    pub fn commit(&self, files: &[(&str, &str)]) -> Result<String> {
        for (path, content) in files {
            let file = self.folder.path().join(path);
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&file, content).with_context(|| format!("failed to write {path}"))?;
        }
        let what: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
        self.commit_all(&format!("Write {}", what.join(", ")))
    }

    /// Copies a folder to `path` in the repository and commits it. Returns the commit.
    pub fn commit_folder(&self, folder: &Path, path: &str) -> Result<String> {
        folder::copy(folder, &self.folder.path().join(path))?;
        self.commit_all(&format!("Copy {path}"))
    }

    /// Removes files or folders and commits that. Returns the commit.
    pub fn remove(&self, paths: &[&str]) -> Result<String> {
        let mut arguments = vec!["rm", "-r", "--quiet", "--"];
        arguments.extend(paths);
        self.git(&arguments)?;
        self.commit_all(&format!("Remove {}", paths.join(", ")))
    }

    fn commit_all(&self, message: &str) -> Result<String> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message])?;
        self.git(&["rev-parse", "HEAD"])
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let mut command: Command = process::command("git", self.folder.path());
        command.current_dir(self.folder.path()).args(arguments);
        // Settings of the machine, such as signing every commit, must not matter.
        command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "testbed")
                .env(format!("GIT_{who}_EMAIL"), "testbed@localhost");
        }
        let output = command.output().context("failed to run git")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "git {} failed: {}",
            arguments.join(" "),
            errors.trim()
        );
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_of_a_shallow_clone_is_complete() {
        let git = GitRepository::new().unwrap();
        git.commit(&[("a.yaml", "first")]).unwrap();
        git.commit(&[("a.yaml", "second")]).unwrap();
        let shallow = GitRepository {
            folder: tempfile::tempdir().unwrap(),
        };
        shallow
            .git(&["clone", "--quiet", "--depth=1", &git.url(), "."])
            .unwrap();
        let clone = GitRepository::clone_of(shallow.path()).unwrap();
        let fetched = GitRepository::new().unwrap();
        fetched.git(&["fetch", "--quiet", &clone.url(), "main"]).unwrap();
        assert_eq!(fetched.git(&["show", "FETCH_HEAD:a.yaml"]).unwrap(), "second");
    }
}
