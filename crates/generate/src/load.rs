//! Reads files in parallel, or texts that are already in memory, and parses them with [`documents`]. The result does not depend on the
//! timing of threads.

use super::discover::ManifestFile;
use super::documents::{self, FileObjects, ManifestText, ReadOptions};
use super::source::Manifests;
use manifest::problem::{Problems, plain};
use manifest::yaml;
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

/// The text that makes Argo CD skip a file, anywhere in it.
static SKIP_MARK: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("+argocd:skip-file-rendering"));

/// The start of the file that Git has in the place of one that is stored by its extension LFS.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The number of files that justifies another thread.
const FILES_PER_THREAD: usize = 16;

/// Reads the files. This thread must have [`yaml::STACK`] bytes of stack.
///
/// # Errors
/// Returns an error with all problems of all files; or a single one if the files together exceed `max_size` bytes or a thread
/// cannot be started.
pub fn files(
    files: Vec<ManifestFile>,
    max_size: Option<u64>,
    options: impl Into<ReadOptions>,
) -> Result<Manifests, Problems> {
    let options = options.into();
    let budget = Budget {
        max: max_size,
        read: AtomicU64::new(0),
    };
    let mut threads = 1;
    if files.len() > FILES_PER_THREAD {
        // Counting the cores takes as long as reading a few files.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        threads = files.len().div_ceil(FILES_PER_THREAD).min(cores);
    }
    let next = AtomicUsize::new(0);
    let loaded = thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|_| {
                // The parser recurses, and documents may be nested deeply.
                thread::Builder::new()
                    .stack_size(yaml::STACK)
                    .spawn_scoped(scope, || work(&files, &next, &budget, options))
            })
            .collect();
        let mut loaded = work(&files, &next, &budget, options);
        for other in others {
            let done = other?.join().map_err(|_| io::Error::other("a thread stopped"))?;
            loaded.extend(done);
        }
        Ok(loaded)
    });
    let mut loaded =
        loaded.map_err(|error: io::Error| Problems::one(format!("the files cannot be read: {}", plain(&error))))?;
    if let Some(max) = budget.exceeded() {
        return Err(Problems::one(too_large(max)));
    }
    loaded.sort_unstable_by_key(|(at, _)| *at);
    let names = files.into_iter().map(|file| file.name).collect();
    combined(loaded.into_iter().map(|(_, read)| read), names)
}

/// Parses the objects in the output of a tool, in order; each text has a name for messages.
///
/// # Errors
/// Returns an error with all problems of all texts.
pub fn texts(texts: &[(String, &[u8])], options: ReadOptions) -> Result<Manifests, Problems> {
    let read = texts.iter().enumerate().map(|(index, (name, bytes))| {
        let text = &decoded(name, bytes)?;
        documents::rendered(ManifestText { index, name, text }, options)
    });
    combined(read, texts.iter().map(|(name, _)| name.clone()).collect())
}

/// Returns the message about manifests of more than `max` bytes.
pub fn too_large(max: u64) -> String {
    format!(
        "the manifests have more than {max} bytes together: split the folder into several Applications, or ask an administrator to raise \
         --max-size (ARGOCD_REPO_SERVER_MAX_COMBINED_DIRECTORY_MANIFESTS_SIZE in the sidecar)"
    )
}

/// Returns the objects of these files together.
fn combined(
    read: impl Iterator<Item = Result<FileObjects, Vec<String>>>,
    files: Vec<String>,
) -> Result<Manifests, Problems> {
    let mut all = Manifests {
        files,
        ..Manifests::default()
    };
    let mut problems = Vec::new();
    for read in read {
        match read {
            Ok(FileObjects { objects, notices }) => {
                if all.objects.is_empty() {
                    all.objects = objects;
                } else {
                    all.objects.extend(objects);
                }
                all.notices.extend(notices);
            }
            Err(errors) => problems.extend(errors),
        }
    }
    Problems::or(problems, all)
}

/// The number of bytes that all threads together may read.
struct Budget {
    max: Option<u64>,
    read: AtomicU64,
}

impl Budget {
    /// Takes `bytes` from the budget. Returns true if they were available.
    fn take(&self, bytes: u64) -> bool {
        let before = self.read.fetch_add(bytes, Ordering::Relaxed);
        self.max.is_none_or(|max| before.saturating_add(bytes) <= max)
    }

    fn exceeded(&self) -> Option<u64> {
        self.max.filter(|&max| self.read.load(Ordering::Relaxed) > max)
    }
}

/// Reads files until there are no more, or until they exceed the budget. `next` is the index of the next one. Returns their indexes, too.
fn work(
    files: &[ManifestFile],
    next: &AtomicUsize,
    budget: &Budget,
    options: ReadOptions,
) -> Vec<(usize, Result<FileObjects, Vec<String>>)> {
    let mut loaded = Vec::new();
    let mut bytes = Vec::new();
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(file) = files.get(at) else { return loaded };
        let read = match read_within_budget(file, budget, &mut bytes) {
            Ok(true) => documents_of(at, &file.name, &bytes, options),
            Ok(false) => return loaded,
            Err(error) => Err(vec![format!(
                "{}: the file cannot be read: {}",
                file.name,
                plain(&error)
            )]),
        };
        loaded.push((at, read));
    }
}

/// Reads a file into `bytes`, unless it would exceed the budget.
fn read_within_budget(file: &ManifestFile, budget: &Budget, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut open = File::open(&file.path)?;
    let size = open.metadata()?.len();
    if !budget.take(size) {
        return Ok(false);
    }
    bytes.clear();
    bytes.reserve(usize::try_from(size).unwrap_or(0));
    // Read no more bytes than were taken from the budget, even if the file grows meanwhile.
    open.by_ref().take(size).read_to_end(bytes)?;
    Ok(true)
}

fn documents_of(index: usize, name: &str, bytes: &[u8], options: ReadOptions) -> Result<FileObjects, Vec<String>> {
    if SKIP_MARK.find(bytes).is_some() {
        return Ok(FileObjects::default());
    }
    if bytes.starts_with(LFS_POINTER) {
        // As YAML it is a text, so Argo CD would skip the file, and prune its objects.
        return Err(vec![format!(
            "{name}: Git LFS has not fetched this file: run 'git lfs pull', or set enableLfs of the repository in Argo CD; or exclude it"
        )]);
    }
    let text = &decoded(name, bytes)?;
    documents::objects(ManifestText { index, name, text }, options)
}

fn decoded<'b>(name: &str, bytes: &'b [u8]) -> Result<Cow<'b, str>, Vec<String>> {
    yaml::decode(bytes).map_err(|error| vec![format!("{name}:{}: {}", error.line, error.message)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::FieldValidation;
    use std::path::PathBuf;

    #[test]
    fn loads_objects_in_file_order_from_any_thread() {
        let scratch = tempfile::TempDir::new().expect("a scratch folder");
        let names: Vec<String> = (0..500).map(|at| format!("{at:03}.yaml")).collect();
        for name in &names {
            let text = if name.ends_with("7.yaml") {
                "no: manifest\n".to_owned()
            } else {
                format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}\n")
            };
            std::fs::write(scratch.path().join(name), text).expect("a file");
        }
        let load = || {
            let files = names.iter().map(|name| ManifestFile {
                path: scratch.path().join(name),
                name: name.clone(),
            });
            super::files(files.collect(), None, FieldValidation::Warn)
        };
        let loaded = load().expect("good files");
        assert_eq!(loaded.files, names);
        assert_eq!(loaded.objects.len(), 450);
        for object in &loaded.objects {
            assert_eq!(*object.key.name, names[object.source.file as usize]);
        }
        assert!(loaded.objects.is_sorted_by_key(|object| object.source.file));
        let broken = ["013.yaml", "250.yaml", "411.yaml"];
        for name in broken {
            let text = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}";
            std::fs::write(scratch.path().join(name), text).expect("a file");
        }
        let problems = load().expect_err("broken files").to_string();
        let start = |name| format!("error: {name}:1: ");
        assert_eq!(problems.lines().count(), broken.len(), "{problems}");
        assert!(
            problems
                .lines()
                .zip(broken.map(start))
                .all(|(line, start)| line.starts_with(&start)),
            "{problems}"
        );
    }

    #[test]
    fn refuses_files_that_git_lfs_has_not_fetched() {
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
        let refused = documents_of(0, "a.yaml", pointer, FieldValidation::Warn.into()).expect_err("a pointer");
        assert!(
            refused[0].starts_with("a.yaml: Git LFS has not fetched this file: "),
            "{refused:?}"
        );
    }

    #[test]
    fn missing_file_is_named() {
        let files = [ManifestFile {
            path: PathBuf::from("/nonexistent/web.yaml"),
            name: "web.yaml".to_owned(),
        }];
        let message = super::files(files.into(), None, FieldValidation::Warn)
            .unwrap_err()
            .to_string();
        assert_eq!(
            message,
            "error: web.yaml: the file cannot be read: no such file or directory\n"
        );
    }
}
