//! Discovery of manifest files in a folder, by the rules of Argo CD's directory source.
//!
//! Two differences are intended: hidden folders are skipped (Argo CD would read `.git/x.yaml`), and recursion is on by default,
//! as in the proof of concept. Files that Argo CD would render with another tool are refused with a remedy.

use manifest::problem::{Problems, plain};
use ocm::glob::Glob;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// The start of the names of files that configure Argo CD's source.
const SOURCE_OVERRIDES: &str = ".argocd-source";

pub(super) const KUSTOMIZATION_FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The selection of files in a folder.
#[derive(Debug, Clone, Default)]
pub struct FileSelection {
    /// True if sub-folders are read.
    pub recurse: bool,
    /// The patterns of which one must match; empty for all files.
    pub include: Vec<Glob>,
    /// The patterns of which none may match; checked first.
    pub exclude: Vec<Glob>,
    /// The maximum number of bytes of all files together; `None` for no limit.
    pub max_size: Option<u64>,
    /// The folders to skip below the start.
    pub leave_out: HashSet<PathBuf>,
}

impl FileSelection {
    /// Returns true if the file is selected; `path` is relative to the folder.
    pub fn selects(&self, path: &str) -> bool {
        !self.exclude.iter().any(|glob| glob.matches(path))
            && (self.include.is_empty() || self.include.iter().any(|glob| glob.matches(path)))
    }
}

/// A file that may contain manifests.
#[derive(Debug)]
pub struct ManifestFile {
    /// The path to open.
    pub path: PathBuf,
    /// The path relative to the folder, for messages.
    pub name: String,
}

/// Lists the files of `folder`, or of its sub-folder `below`, that may contain manifests, folder by folder in byte order of their names.
/// `source_path` is the path of `folder` in its repository, if known. Returns warnings about skipped entries, too, one line each.
///
/// # Errors
/// Returns an error if the folder does not exist, or if a part of it is unreadable or contains unsupported files.
pub fn manifests(
    folder: &Path,
    below: &str,
    source_path: &str,
    selection: &FileSelection,
) -> Result<(Vec<ManifestFile>, Vec<String>), Problems> {
    let start = if below.is_empty() {
        folder.to_owned()
    } else {
        folder.join(below)
    };
    let shown = start.display();
    let metadata = fs::metadata(&start)
        .map_err(|error| Problems::one(format!("{shown}: the folder cannot be read: {}", plain(&error))))?;
    if !metadata.is_dir() {
        return Err(Problems::one(format!(
            "{shown}: not a folder: name the folder that holds the manifests"
        )));
    }
    let is_looked_at = |entry: &DirEntry| !is_hidden_folder(entry) && !selection.leave_out.contains(entry.path());
    let walk = WalkDir::new(&start)
        .min_depth(1)
        .max_depth(if selection.recurse { usize::MAX } else { 1 })
        .sort_by_file_name()
        .into_iter()
        .filter_entry(is_looked_at);
    let (mut files, mut notices, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for entry in walk {
        let file = match entry {
            Ok(entry) => consider(&entry, folder, source_path, selection, &mut notices),
            Err(error) => {
                let path = error.path().map_or_else(String::new, |path| relative(path, folder));
                let why = error.io_error().map_or_else(|| "it cannot be read".to_owned(), plain);
                Err(format!("{path}: the folder cannot be read: {why}"))
            }
        };
        match file {
            Ok(file) => files.extend(file),
            Err(line) => problems.push(line),
        }
    }
    Problems::or(problems, (files, notices))
}

/// Returns an entry of the folder if it is a file to read, or the problem of a file that cannot be delivered.
fn consider(
    entry: &DirEntry,
    folder: &Path,
    source_path: &str,
    selection: &FileSelection,
    notices: &mut Vec<String>,
) -> Result<Option<ManifestFile>, String> {
    let kind = entry.file_type();
    let base = entry.file_name().to_string_lossy();
    if let Some(tool) = tool_of(&base).filter(|_| entry.depth() > 1 && !kind.is_dir()) {
        let name = relative(entry.path(), folder);
        let inside = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        if selection.selects(&name) {
            return Err(format!(
                "{name}: {tool} does not render a sub-folder, so its files would be delivered as they are: deliver {inside} with an \
                 Application of its own, or exclude {inside}/*"
            ));
        }
    }
    let Some((_, extension)) = base.rsplit_once('.') else {
        return Ok(None);
    };
    // `.argocd-source.yaml` and `.argocd-source-<app>.yaml` configure Argo CD's source; they are not manifests.
    let about_the_source = base.starts_with(SOURCE_OVERRIDES) && extension == "yaml";
    if kind.is_dir() || about_the_source || !matches!(extension, "yaml" | "yml" | "json" | "jsonnet") {
        return Ok(None);
    }
    let name = relative(entry.path(), folder);
    if !selection.selects(&name) {
        return Ok(None);
    }
    if kind.is_symlink() {
        let why_not = linked_file(entry.path(), folder, source_path);
        if let Some(why) = why_not.map_err(|why| format!("{name}: {why}"))? {
            notices.push(format!("{name}: left out: {why}"));
            return Ok(None);
        }
    } else if !kind.is_file() {
        return Err(format!(
            "{name}: not a regular file, so it cannot come from Git: remove it or exclude it"
        ));
    }
    if extension == "jsonnet" {
        return Err(format!(
            "{name}: Jsonnet is not rendered here: commit the JSON that it renders to, or exclude it"
        ));
    }
    let path = entry.path().to_owned();
    Ok(Some(ManifestFile { path, name }))
}

/// Returns the tool that a file of this name is for.
fn tool_of(name: &str) -> Option<&'static str> {
    match name {
        _ if KUSTOMIZATION_FILES.contains(&name) => Some("kustomize"),
        "Chart.yaml" => Some("helm"),
        _ => None,
    }
}

/// Checks a symbolic link. Returns the reason to leave it out, if it does not lead to a file.
fn linked_file(link: &Path, folder: &Path, source_path: &str) -> Result<Option<&'static str>, String> {
    if fs::read_link(link).is_ok_and(|target| target.is_absolute()) {
        return Err(
            "the link has an absolute path, for which Argo CD refuses the repository: make it relative".to_owned(),
        );
    }
    let target = match fs::canonicalize(link) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Some("the target of the link does not exist"));
        }
        Err(error) => return Err(format!("the link cannot be followed: {}", plain(&error))),
    };
    if !target.starts_with(repository(folder, source_path).0) {
        return Err("the link leads outside the repository: copy the file into it, or exclude the link".to_owned());
    }
    let is_file = fs::metadata(&target).is_ok_and(|metadata| metadata.is_file());
    Ok((!is_file).then_some("the link does not lead to a regular file"))
}

/// Returns the files from which Argo CD takes settings of the Application, and overrides those of its source.
pub(super) fn source_overrides(folder: &Path, application: Option<&str>) -> Vec<String> {
    let of_application = application.map(|name| format!("{SOURCE_OVERRIDES}-{name}.yaml"));
    let mut names: Vec<String> = of_application.into_iter().collect();
    names.insert(0, format!("{SOURCE_OVERRIDES}.yaml"));
    names.retain(|name| folder.join(name).symlink_metadata().is_ok_and(|file| !file.is_dir()));
    names
}

/// Returns the absolute root of the repository of `folder`: derived from Argo CD's path of the source, else the nearest folder
/// with a `.git`, as for a path with links, else the folder itself. If Argo CD passes only a part of the repository
/// (`manifest-generate-paths`), without `.git`, the folder ends with a part of that path, or is the whole part; then the root is that of
/// the part, and the second path is where the part is in the repository.
pub(super) fn repository(folder: &Path, source_path: &str) -> (PathBuf, PathBuf) {
    let folder = &fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let whole = Path::new(source_path.trim_start_matches("./"));
    let is_plain = whole.components().all(|part| matches!(part, Component::Normal(_)));
    let whole = if is_plain { whole } else { Path::new("") };
    let root_below = |above: &&Path| {
        let path = whole.strip_prefix(above).ok()?;
        let root = folder.ancestors().nth(path.components().count())?;
        folder.ends_with(path).then(|| (root.to_owned(), above.to_path_buf()))
    };
    let of_git = || {
        let root = folder.ancestors().find(|ancestor| ancestor.join(".git").exists())?;
        Some((root.to_owned(), PathBuf::new()))
    };
    // The last is that of the whole path.
    let above: Vec<_> = whole.ancestors().skip(1).collect();
    let root = above.last().and_then(root_below).or_else(of_git);
    root.or_else(|| above.iter().rev().find_map(root_below))
        .unwrap_or_else(|| (folder.to_owned(), whole.to_owned()))
}

fn is_hidden_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_dir() && entry.file_name().as_encoded_bytes().starts_with(b".")
}

fn relative(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_repository_by_argo_cds_path_or_git() {
        let folder = Path::new("/tmp/request/apps/shop");
        for (source_path, root, above) in [
            ("apps/shop", "/tmp/request", ""),
            ("./apps/shop", "/tmp/request", ""),
            // A part of the repository, without the folders above `apps`, or above `shop`, or above the files.
            ("teams/a/apps/shop", "/tmp/request", "teams/a"),
            ("teams/a/shop", "/tmp/request/apps", "teams/a"),
            ("other", "/tmp/request/apps/shop", "other"),
            ("../apps/shop", "/tmp/request/apps/shop", ""),
            (".", "/tmp/request/apps/shop", ""),
            ("", "/tmp/request/apps/shop", ""),
        ] {
            let expected = (root.into(), above.into());
            assert_eq!(repository(folder, source_path), expected, "{source_path}");
        }
        let scratch = tempfile::TempDir::new().expect("a scratch folder");
        fs::create_dir_all(scratch.path().join(".git")).expect("a folder");
        fs::create_dir_all(scratch.path().join("apps/shop")).expect("a folder");
        let shop = scratch.path().join("apps/shop");
        // A link to that folder.
        for source_path in ["", "other", "environments/eu/shop"] {
            let expected = (scratch.path().to_owned(), PathBuf::new());
            assert_eq!(repository(&shop, source_path), expected, "{source_path}");
        }
    }

    #[test]
    fn only_files_of_the_application_override_its_source() {
        let scratch = tempfile::TempDir::new().expect("a scratch folder");
        let folder = scratch.path();
        assert_eq!(source_overrides(folder, Some("shop")), [""; 0]);
        fs::write(folder.join(".argocd-source-other.yaml"), "").expect("a file");
        fs::create_dir(folder.join(".argocd-source.yaml")).expect("a folder");
        assert_eq!(source_overrides(folder, Some("shop")), [""; 0]);
        fs::write(folder.join(".argocd-source-shop.yaml"), "").expect("a file");
        assert_eq!(source_overrides(folder, Some("shop")), [".argocd-source-shop.yaml"]);
        assert_eq!(source_overrides(folder, None), [""; 0]);
        fs::remove_dir(folder.join(".argocd-source.yaml")).expect("a folder");
        std::os::unix::fs::symlink("settings.yaml", folder.join(".argocd-source.yaml")).expect("a link");
        assert_eq!(source_overrides(folder, None), [".argocd-source.yaml"]);
    }

    #[test]
    fn reports_every_refused_file() {
        let scratch = tempfile::TempDir::new().expect("a scratch folder");
        for name in ["a.yaml", "b.jsonnet", "c.yaml", "d.jsonnet"] {
            fs::write(scratch.path().join(name), "").expect("a file");
        }
        let files = manifests(scratch.path(), "", "", &FileSelection::default());
        let message = files.unwrap_err().to_string();
        assert!(
            message.contains("b.jsonnet: ") && message.contains("d.jsonnet: "),
            "{message}"
        );
    }

    #[test]
    fn a_link_may_leave_the_folder_but_not_the_repository() {
        let scratch = tempfile::TempDir::new().expect("a scratch folder");
        let folder = scratch.path().join("repository/apps");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(scratch.path().join("repository/shared.yaml"), "").expect("a file");
        fs::write(scratch.path().join("secret.yaml"), "").expect("a file");
        let absolute = scratch.path().join("repository/shared.yaml");
        for (link, target) in [
            ("inside.yaml", Path::new("../shared.yaml")),
            ("outside.yaml", Path::new("../../secret.yaml")),
            ("absolute.yaml", &absolute),
            ("of-another-machine.yaml", Path::new("/home/user/shared.yaml")),
        ] {
            std::os::unix::fs::symlink(target, folder.join(link)).expect("a link");
        }
        let followed = |link: &str| linked_file(&folder.join(link), &folder, "apps");
        assert_eq!(followed("inside.yaml"), Ok(None));
        for link in ["outside.yaml", "absolute.yaml", "of-another-machine.yaml"] {
            assert!(followed(link).is_err(), "{link}");
        }
    }
}
