//! Finds the value files of charts, by paths and by globs, as Argo CD does.

use super::bounds::{LinkTarget, Repository, check_for_helm, cleaned};
use super::remote::is_url;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of folders that a glob searches behind links, which can lead to any number of paths.
const BEHIND_LINKS_MAX: usize = 10_000;

/// Returns the location of a path in a setting: relative to the folder, or to the repository with a leading `/`.
pub(super) fn location(path: &str, folder: &Path, repository: &Repository) -> PathBuf {
    match path.strip_prefix('/') {
        Some(path) => repository.join(path),
        None => folder.join(path),
    }
}

/// The folders of value files.
pub(super) struct ValueFiles<'a> {
    pub(super) chart: &'a Path,
    pub(super) repository: &'a Repository,
}

impl ValueFiles<'_> {
    /// Returns the path of a file; `None` if it does not exist. As in Argo CD, it may be anywhere in the repository, and links out of
    /// the repository are not followed.
    pub(super) fn find(&self, file: &str) -> Result<Option<String>, String> {
        if is_url(file) {
            return Err("it is a URL, and Helm has no network access here: commit it to the repository".to_owned());
        }
        check_for_helm(file)?;
        self.resolve(&location(file, self.chart, self.repository))
    }

    /// Returns the paths of all files, each once: at its first position if it is listed by its name, else where the first glob finds
    /// it. A file that does not exist is an error, unless `ignores_missing`.
    pub(super) fn find_all(&self, files: &[String], ignores_missing: bool) -> Result<Vec<String>, Vec<String>> {
        let is_glob = |file: &str| !is_url(file) && file.contains(['*', '?', '[']);
        let named: BTreeSet<PathBuf> = files
            .iter()
            .filter(|file| !is_glob(file))
            .map(|file| self.place(file))
            .collect();
        let mut known = BTreeSet::new();
        let (mut file_paths, mut problems) = (Vec::new(), Vec::new());
        for file in files {
            let paths = if is_glob(file) {
                self.matches(file).map(|mut paths| {
                    let is_empty = paths.is_empty();
                    paths.retain(|path| !named.contains(path) && known.insert(path.clone()));
                    let paths: Vec<_> = paths.iter().map(|path| self.resolve(path)).collect();
                    if is_empty { vec![Ok(None)] } else { paths }
                })
            } else if known.insert(self.place(file)) {
                Ok(vec![self.find(file)])
            } else {
                Ok(Vec::new())
            };
            for path in paths.unwrap_or_else(|why| vec![Err(why)]) {
                match path {
                    Ok(Some(path)) => file_paths.push(path),
                    Ok(None) if ignores_missing => {}
                    Ok(None) => problems.push(format!(
                        "helm-value-files: {file}: there is no such file: correct it, or set helm-ignore-missing-value-files"
                    )),
                    Err(why) => problems.push(format!("helm-value-files: {file}: {why}")),
                }
            }
        }
        if problems.is_empty() {
            Ok(file_paths)
        } else {
            Err(problems)
        }
    }

    /// Returns the absolute path of a file or a glob.
    fn place(&self, file: &str) -> PathBuf {
        let chart = self.chart.canonicalize().unwrap_or_else(|_| self.chart.to_owned());
        cleaned(&location(file, &chart, self.repository))
    }

    fn resolve(&self, path: &Path) -> Result<Option<String>, String> {
        match self.repository.follow(path)? {
            LinkTarget::Nothing => Ok(None),
            LinkTarget::Folder(_) => Err("it is a folder, not a file: name a file in it".to_owned()),
            LinkTarget::File(path) => {
                check_for_helm(&self.repository.shown(&path))?;
                let path_text = path.into_os_string().into_string();
                path_text
                    .map(Some)
                    .map_err(|_| "its name is not UTF-8: rename the file".to_owned())
            }
        }
    }

    /// Returns the paths that a glob matches, in the order of Argo CD: a folder before its sub-folders, and by name in each.
    fn matches(&self, glob: &str) -> Result<Vec<PathBuf>, String> {
        if glob.contains(['{', '}', '\\']) {
            return Err(
                "a glob with braces or backslashes is not supported: list one glob for each alternative".to_owned(),
            );
        }
        let path = self.place(glob);
        let Ok(inside) = path.strip_prefix(self.repository.root()) else {
            return Err(self.repository.outside());
        };
        let parts: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        for part in parts.iter().filter(|part| *part != "**") {
            check_pattern(part)?;
        }
        let mut expansion = Expansion::default();
        expansion.expand(self.repository.root(), &parts, false)?;
        Ok(expansion.files)
    }
}

/// The files that a glob finds.
#[derive(Default)]
struct Expansion {
    files: Vec<PathBuf>,
    /// The folders that were searched, with the number of parts that were left.
    searched: HashSet<(PathBuf, usize)>,
    /// The number of those that a link leads to.
    behind_links: usize,
}

impl Expansion {
    /// Adds the paths below a folder that match the parts of a glob. As in Argo CD, links to folders are followed.
    fn expand(&mut self, folder: &Path, parts: &[String], is_behind_link: bool) -> Result<(), String> {
        let Some((part, rest)) = parts.split_first() else {
            self.files.push(folder.to_owned());
            return Ok(());
        };
        if !part.contains(['*', '?', '[']) {
            let path = folder.join(part);
            return match path.symlink_metadata() {
                Ok(metadata) => self.expand(&path, rest, is_behind_link || metadata.is_symlink()),
                Err(_) => Ok(()),
            };
        }
        if !self.searched.insert((folder.to_owned(), parts.len())) {
            return Ok(());
        }
        self.behind_links += usize::from(is_behind_link);
        if self.behind_links > BEHIND_LINKS_MAX {
            return Err(format!(
                "links to folders lead to more than {BEHIND_LINKS_MAX} folders: name the folder of the files instead of **"
            ));
        }
        if part == "**" {
            self.expand(folder, rest, is_behind_link)?;
        }
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        for name in names {
            let path = folder.join(&name);
            let is_behind_link = is_behind_link || path.is_symlink();
            if part == "**" {
                if path.is_dir() {
                    self.expand(&path, parts, is_behind_link)?;
                }
            } else if matches(part.as_bytes(), name.as_bytes()) && (rest.is_empty() || path.is_dir()) {
                self.expand(&path, rest, is_behind_link)?;
            }
        }
        Ok(())
    }
}

/// Checks that each `[` in a part of a glob is closed.
fn check_pattern(part: &str) -> Result<(), String> {
    let mut rest = part;
    while let Some((_, class)) = rest.split_once('[') {
        match class_of(class.as_bytes(), 0) {
            Some((_, length)) => rest = class.get(length..).unwrap_or_default(),
            None => return Err("it is not a glob: a '[' is not closed by ']'".to_owned()),
        }
    }
    Ok(())
}

/// Returns true if a name matches one part of a glob: `*`, `?`, `[a-z]` and `[!a-z]`. If a later part does not match, only what the last
/// `*` stands for has to grow, so the time is at most the product of both lengths.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    let mut last_star = None;
    loop {
        let next = match (pattern.split_first(), name.split_first()) {
            (None, None) => return true,
            (Some((b'*', rest)), _) => {
                last_star = Some((rest, name));
                Some((rest, name))
            }
            (Some((b'?', rest)), Some(_)) => Some((rest, &name[character_length(name)..])),
            (Some((b'[', class)), Some((&byte, after))) => class_of(class, byte)
                .filter(|(is_in, _)| *is_in)
                .map(|(_, length)| (&class[length..], after)),
            (Some((byte, rest)), Some((other, after))) if byte == other => Some((rest, after)),
            _ => None,
        };
        (pattern, name) = match next {
            Some(next) => next,
            None => match last_star {
                Some((rest, [_, after @ ..])) => {
                    last_star = Some((rest, after));
                    (rest, after)
                }
                _ => return false,
            },
        };
    }
}

/// Returns the bytes of the first character.
fn character_length(text: &[u8]) -> usize {
    1 + text[1..].iter().take_while(|&&byte| byte & 0xC0 == 0x80).count()
}

/// Returns true if a class contains a byte, and the length of the class with its `]`; `None` if it does not end.
fn class_of(class: &[u8], byte: u8) -> Option<(bool, usize)> {
    let is_negated = matches!(class.first(), Some(b'!' | b'^'));
    let start = usize::from(is_negated);
    let length = class.get(start + 1..)?.iter().position(|&byte| byte == b']')? + start + 1;
    let mut members = &class[start..length];
    let mut is_in = false;
    while let [first, rest @ ..] = members {
        (is_in, members) = match rest {
            [b'-', last, rest @ ..] => (is_in || (*first..=*last).contains(&byte), rest),
            _ => (is_in || *first == byte, rest),
        };
    }
    Some((is_in != is_negated, length + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `manifest-generate-paths`, Argo CD may pass only the folder `teams/a` of the repository.
    #[test]
    fn finds_paths_from_the_root_of_git_in_the_passed_part() {
        let scratch = tempfile::TempDir::new().expect("a scratch folder");
        let chart = scratch.path().join("charts/shop");
        for folder in [&chart, &scratch.path().join("values")] {
            fs::create_dir_all(folder).expect("a folder");
        }
        fs::write(scratch.path().join("values/eu.yaml"), "").expect("a file");
        let repository = Repository::locate(&chart, "teams/a/charts/shop");
        let files = ValueFiles {
            chart: &chart,
            repository: &repository,
        };
        let find = |file: &str| files.find_all(&[file.to_owned()], true).map(|found| found.len());
        for (file, expected) in [
            ("/teams/a/values/eu.yaml", Ok(1)),
            ("/teams/a/values/*.yaml", Ok(1)),
            ("../../values/eu.yaml", Ok(1)),
            ("/teams/a/values/us.yaml", Ok(0)),
        ] {
            assert_eq!(find(file), expected, "{file}");
        }
        for file in [
            "/values/eu.yaml",
            "/values/*.yaml",
            "/teams/b/eu.yaml",
            "../../../b/eu.yaml",
        ] {
            let problems = find(file).expect_err("it may exist in Git");
            assert!(problems[0].contains("Argo CD does not pass it"), "{problems:?}");
        }
    }

    #[test]
    fn globs_match_one_name() {
        for (pattern, name, expected) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", ".yaml", true),
            ("*.yaml", "a.yml", false),
            ("a*a", "a", false),
            ("a*b*c", "axbbyc", true),
            ("?.yaml", "é.yaml", true),
            ("[a-c]1", "b1", true),
            ("[!a-c]1", "b1", false),
            ("[^a-c]1", "d1", true),
            ("[]]", "]", true),
            ("[a-]", "-", true),
            ("*?", "é", true),
            ("*[a-b]*c", "xbybc", true),
            ("*[a-b]*c", "xybcd", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
        assert!(check_pattern("a[b").is_err() && check_pattern("a[b]c[").is_err());
        assert_eq!(check_pattern("a[!b-d]c"), Ok(()));
    }
}
