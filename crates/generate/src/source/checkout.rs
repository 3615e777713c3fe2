//! Copies of the checkout for what must be written before a source is rendered: other renderings read the checkout at the same time,
//! and on a terminal it is the user's own folder.

use super::bounds::Repository;
use crate::confine::Scratch;
use manifest::problem::{Problems, plain};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// A copy of the checkout, which is removed in the end. Its files are hard links where the file system allows it.
#[derive(Debug)]
pub(super) struct CheckoutCopy {
    /// A private folder around the copy.
    pub(super) scratch: Scratch,
    /// The folder of the source in the copy.
    pub(super) folder: PathBuf,
    pub(super) repository: Repository,
}

impl CheckoutCopy {
    /// Copies the repository; `folder` is the folder of the source in it.
    pub(super) fn new(folder: &Path, repository: &Repository) -> Result<Self, Problems> {
        let scratch = Scratch::new(&env::temp_dir()).map_err(|error| not_copied(&error))?;
        let root = scratch.path().join("checkout");
        copy(repository.root(), &root, scratch.path()).map_err(|error| not_copied(&error))?;
        let below = folder.strip_prefix(repository.root()).unwrap_or(Path::new(""));
        let repository = repository.moved_to(root);
        Ok(Self {
            folder: repository.root().join(below),
            repository,
            scratch,
        })
    }
}

/// Returns the problem of a copy that fails.
pub(super) fn not_copied(error: &io::Error) -> Problems {
    Problems::one(format!(
        "the repository cannot be copied to TMPDIR or /tmp: {}: mount a larger volume there",
        plain(error)
    ))
}

/// Copies a folder without Git's data, and without the folder `except`, which may be in it. Links are copied as links. Files
/// and folders that this user may not read, such as the data of a container, become links to themselves: a tool that needs one fails.
fn copy(from: &Path, to: &Path, except: &Path) -> io::Result<()> {
    let except = except.canonicalize()?;
    let is_of_git = |entry: &DirEntry| entry.depth() == 1 && entry.file_name() == OsStr::new(".git");
    let is_copied = |entry: &DirEntry| !is_of_git(entry) && entry.path() != except;
    for entry in WalkDir::new(from).into_iter().filter_entry(is_copied) {
        let path = entry
            .as_ref()
            .map_or_else(walkdir::Error::path, |entry| Some(entry.path()));
        let within = path
            .and_then(|path| path.strip_prefix(from).ok())
            .unwrap_or(Path::new(""))
            .to_owned();
        let target = to.join(&within);
        let copied = entry
            .map_err(io::Error::from)
            .and_then(|entry| copy_entry(&entry, &target));
        match (copied, within.file_name()) {
            (Err(error), Some(name)) if error.kind() == io::ErrorKind::PermissionDenied => {
                if target.is_dir() {
                    fs::remove_dir(&target)?;
                }
                std::os::unix::fs::symlink(name, &target)?;
            }
            (copied, _) => copied?,
        }
    }
    Ok(())
}

fn copy_entry(entry: &DirEntry, target: &Path) -> io::Result<()> {
    let kind = entry.file_type();
    if kind.is_dir() {
        fs::create_dir(target)?;
    } else if kind.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
    } else if kind.is_file() && fs::hard_link(entry.path(), target).is_err() {
        fs::copy(entry.path(), target)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{Uid, setfsuid};
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread;

    #[test]
    fn no_tool_misses_what_this_user_may_not_read() {
        let scratch = tempfile::TempDir::new().expect("a folder");
        let [from, to] = ["from", "to"].map(|name| scratch.path().join(name));
        fs::create_dir_all(from.join("data/of-another-user")).expect("a folder");
        fs::write(from.join("web.yaml"), "").expect("a file");
        let permit = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions");
        permit(scratch.path(), 0o777);
        permit(&from.join("data"), 0);
        let copied = thread::scope(|scope| {
            let copy = || {
                // Of this thread only: root may read all.
                setfsuid(Uid::from_raw(65_534));
                copy(&from, &to, Path::new("/"))
            };
            scope.spawn(copy).join().expect("the thread does not panic")
        });
        copied.expect("a copy");
        assert!(to.join("web.yaml").is_file());
        assert!(fs::read_dir(to.join("data")).is_err(), "no empty folder");
        permit(&from.join("data"), 0o700);
    }
}
