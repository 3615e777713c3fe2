//! Keeps the paths that a source names within its repository.

use crate::discover;
use manifest::problem::plain;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use walkdir::WalkDir;

/// The repository that a source must stay within.
#[derive(Debug)]
pub(super) struct Repository {
    /// The root: absolute, without symbolic links.
    root: PathBuf,
    /// The path of the root in Git, if Argo CD passes only a part of the repository.
    above: PathBuf,
}

/// The target of a path after following links.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkTarget {
    /// Nothing exists there, and no link on the way could later lead elsewhere.
    Nothing,
    /// A regular file.
    File(PathBuf),
    Folder(PathBuf),
}

/// The maximum number of bytes of a file that is read here: many times what people write.
pub(super) const TEXT_SIZE: u64 = 5 << 20;

const OUTSIDE: &str = "it is outside the repository: copy it into it";

const NOT_PASSED: &str =
    "Argo CD does not pass it: add its folder to the annotation argocd.argoproj.io/manifest-generate-paths";

impl Repository {
    /// Returns the repository of `folder`; `source_path` is the path of the folder in it, if Argo CD passes it.
    pub(super) fn locate(folder: &Path, source_path: &str) -> Self {
        let (root, above) = discover::repository(folder, source_path);
        Self {
            above,
            ..Self::at(root)
        }
    }

    pub(super) fn at(root: PathBuf) -> Self {
        Self {
            root: root.canonicalize().unwrap_or(root),
            above: PathBuf::new(),
        }
    }

    /// Returns this repository at another root.
    pub(super) fn moved_to(&self, root: PathBuf) -> Self {
        Self {
            above: self.above.clone(),
            ..Self::at(root)
        }
    }

    /// Returns the location of a path in Git, which is outside the root if Argo CD has not passed it.
    pub(super) fn join(&self, path: &str) -> PathBuf {
        match Path::new(path).strip_prefix(&self.above) {
            Ok(path) => self.root.join(path),
            Err(_) => self
                .above
                .iter()
                .fold(self.root.clone(), |up, _| up.join(".."))
                .join(path),
        }
    }

    /// Returns the reason why nothing outside the root can be used.
    pub(super) fn outside(&self) -> String {
        let why = if self.above.as_os_str().is_empty() {
            OUTSIDE
        } else {
            NOT_PASSED
        };
        why.to_owned()
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path relative to the repository, for messages.
    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    }

    /// Resolves a path, which must lead to a target within the repository.
    ///
    /// # Errors
    /// Returns an error with the reason and the remedy if the path leads out of the repository, through a dangling link, or to a
    /// device.
    pub(super) fn follow(&self, path: &Path) -> Result<LinkTarget, String> {
        let canonical = match path.canonicalize() {
            Ok(canonical) => canonical,
            Err(error) if is_missing(&error) => return self.nothing_at(path),
            Err(error) => return Err(format!("it cannot be read: {}", plain(&error))),
        };
        if !canonical.starts_with(&self.root) {
            return Err(self.outside());
        }
        match fs::metadata(&canonical) {
            Ok(metadata) if metadata.is_file() => Ok(LinkTarget::File(canonical)),
            Ok(metadata) if metadata.is_dir() => Ok(LinkTarget::Folder(canonical)),
            Ok(_) => Err("it is neither a file nor a folder, so it cannot come from Git: remove it".to_owned()),
            Err(error) => Err(format!("it cannot be read: {}", plain(&error))),
        }
    }

    /// Returns a line for each link below `folder` that leads out of the repository, where the tools cannot follow it, or to one of its
    /// own parents, which they would follow forever.
    pub(super) fn links_out_of(&self, folder: &Path) -> Vec<String> {
        let links = WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
        let links = links.filter(|entry| entry.depth() > 0 && entry.path_is_symlink());
        let mut problems = Vec::new();
        for link in links {
            let why = match self.follow(link.path()) {
                Err(why) => why,
                Ok(LinkTarget::Folder(target)) if is_parent(&target, link.path()) => {
                    "it leads to one of its parent folders: remove the link".to_owned()
                }
                Ok(_) => continue,
            };
            let shown = link.path().strip_prefix(folder).unwrap_or(link.path());
            problems.push(format!("{}: {why}", shown.display()));
        }
        problems
    }

    /// Reads a small text file; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error with the reason if the file is outside the repository, unreadable or too large.
    pub(super) fn read_text(&self, path: &Path) -> Result<Option<String>, String> {
        match self.follow(path)? {
            LinkTarget::File(file) => read_limited(&file, TEXT_SIZE).map(Some),
            LinkTarget::Folder(_) | LinkTarget::Nothing => Ok(None),
        }
    }

    /// Checks that a missing path ends within the repository and not at a link. A target may appear before a tool reads it, such
    /// as the folder of a process in `/proc`.
    fn nothing_at(&self, path: &Path) -> Result<LinkTarget, String> {
        let mut existing = path;
        while let Some(parent) = existing.parent() {
            if existing.symlink_metadata().is_ok() {
                break;
            }
            existing = parent;
        }
        match existing.canonicalize() {
            Ok(canonical) if canonical.starts_with(&self.root) => {
                let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
                if cleaned(&canonical.join(rest)).starts_with(&self.root) {
                    Ok(LinkTarget::Nothing)
                } else {
                    Err(self.outside())
                }
            }
            Ok(_) => Err(self.outside()),
            Err(_) => Err("its target does not exist: correct or remove the link".to_owned()),
        }
    }
}

/// Returns true if nothing exists at the path, or a file where a folder should be.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

/// Cleans a path lexically: `..` removes the previous part even if that is a link.
pub(super) fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

/// Returns true if the folder, whose links are resolved, contains the path.
fn is_parent(folder: &Path, path: &Path) -> bool {
    path.parent()
        .and_then(|parent| parent.canonicalize().ok())
        .is_some_and(|parent| parent.starts_with(folder))
}

/// Reads a text file of at most `most` bytes.
pub(super) fn read_limited(file: &Path, most: u64) -> Result<String, String> {
    let mut text = String::new();
    match fs::File::open(file).and_then(|file| file.take(most + 1).read_to_string(&mut text)) {
        Err(error) => Err(format!("it cannot be read: {}", plain(&error))),
        Ok(_) if text.len() as u64 > most => Err(format!("it is larger than {} MiB: make it smaller", most >> 20)),
        Ok(_) => Ok(text),
    }
}

/// Checks that Helm reads a file name as a plain name. Helm separates files by commas, interprets quotes and escapes in lists of files, and
/// braces in values.
pub(super) fn check_for_helm(name: &str) -> Result<(), String> {
    let special = name.chars().find_map(|char| match char {
        ',' => Some("a comma"),
        '\\' => Some("a backslash"),
        '"' => Some("a quotation mark"),
        '{' | '}' => Some("a brace"),
        char if char.is_control() => Some("a control character"),
        _ => None,
    });
    special.map_or(Ok(()), |what| {
        Err(format!(
            "its name has {what}, which Helm does not accept in a name: rename the file"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn repository() -> (TempDir, Repository) {
        let scratch = TempDir::new().expect("a scratch folder");
        let root = scratch.path().canonicalize().expect("a folder").join("repository");
        fs::create_dir_all(root.join("apps/shop")).expect("a folder");
        fs::write(root.join("shared.yaml"), "").expect("a file");
        fs::write(scratch.path().join("secret.yaml"), "").expect("a file");
        (scratch, Repository::at(root))
    }

    #[test]
    fn follows_paths_within_the_repository_only() {
        let (_scratch, repository) = repository();
        let shop = repository.root().join("apps/shop");
        symlink("../../shared.yaml", shop.join("inside")).expect("a link");
        symlink("inside", shop.join("inside-too")).expect("a link");
        symlink("../../../secret.yaml", shop.join("outside")).expect("a link");
        symlink("outside", shop.join("outside-too")).expect("a link");
        symlink("/proc/self/none", shop.join("nowhere")).expect("a link");
        symlink("loop", shop.join("loop")).expect("a link");
        let follow = |name: &str| repository.follow(&cleaned(&shop.join(name)));
        let shared = repository.root().join("shared.yaml");
        for name in ["../../shared.yaml", "inside", "inside-too", "none/../inside"] {
            assert_eq!(follow(name), Ok(LinkTarget::File(shared.clone())), "{name}");
        }
        assert_eq!(follow("../.."), Ok(LinkTarget::Folder(repository.root().to_owned())));
        for name in ["none", "none/none", "inside/none"] {
            assert_eq!(follow(name), Ok(LinkTarget::Nothing), "{name}");
        }
        for name in [
            "outside",
            "outside-too",
            "nowhere",
            "nowhere/cwd",
            "loop",
            "../../../none",
            "../../../../../../../../../../proc/4000000/cwd",
        ] {
            assert!(follow(name).is_err(), "{name}");
        }
    }

    #[test]
    fn names_links_that_no_tool_can_follow() {
        let (_scratch, repository) = repository();
        let shop = repository.root().join("apps/shop");
        fs::create_dir(shop.join("files")).expect("a folder");
        symlink("../../shared.yaml", shop.join("inside")).expect("a link");
        symlink("../../../../secret.yaml", shop.join("files/outside")).expect("a link");
        symlink("..", shop.join("files/up")).expect("a link");
        symlink("nothing", shop.join("none")).expect("a link");
        assert_eq!(
            repository.links_out_of(&shop),
            [
                "files/outside: it is outside the repository: copy it into it",
                "files/up: it leads to one of its parent folders: remove the link",
                "none: its target does not exist: correct or remove the link",
            ]
        );
    }

    #[test]
    fn names_characters_that_helm_would_interpret() {
        for (name, expected) in [
            ("x,/etc/passwd", "its name has a comma, "),
            (r"a\", "its name has a backslash, "),
            ("a\nb", "its name has a control character, "),
            ("{a}", "its name has a brace, "),
            ("values prod-eu.yaml", ""),
            ("../../values/prod@2=[1].yaml", ""),
        ] {
            let refused = check_for_helm(name).err().unwrap_or_default();
            assert!(refused.starts_with(expected), "{name}: {refused}");
        }
    }
}
