//! Reads files side by side, or texts that were read before, and hands each to [`documents`]. What comes out does not depend on
//! which thread was faster.

use super::discover::ManifestFile;
use super::documents;
use super::object::Object;
use super::problem::{Problems, plain};
use crate::yaml;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

/// Argo CD leaves a file out that holds this text anywhere.
const SKIP_MARK: &[u8] = b"+argocd:skip-file-rendering";

/// Fewer files than this are not worth another thread.
const FILES_PER_THREAD: usize = 16;

/// The objects of all files, in the order of the files.
///
/// # Errors
/// With every problem of every file; or with one when the files are larger together than `max_size` bytes, or a thread
/// cannot be started.
pub fn files(files: &[ManifestFile], max_size: Option<u64>) -> Result<Vec<Object>, Problems> {
    let next = AtomicUsize::new(0);
    let budget = Budget {
        max: max_size,
        read: AtomicU64::new(0),
    };
    let threads = match files.len().div_ceil(FILES_PER_THREAD) {
        0 | 1 => 1,
        // Asking how many there are takes as long as reading a few files.
        more => thread::available_parallelism().map_or(1, usize::from).min(more),
    };
    let loaded = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                // Documents may be nested deeply, and are read by recursion.
                thread::Builder::new()
                    .stack_size(yaml::STACK)
                    .spawn_scoped(scope, || work(files, &next, &budget))
            })
            .collect();
        let mut loaded = Vec::with_capacity(files.len());
        for worker in workers {
            let done = worker?.join().map_err(|_| io::Error::other("a thread stopped"))?;
            loaded.extend(done);
        }
        Ok(loaded)
    });
    let mut loaded: Vec<Loaded> =
        loaded.map_err(|error: io::Error| Problems::one(format!("the files cannot be read: {}", plain(&error))))?;
    if let Some(max) = budget.exceeded() {
        return Err(Problems::one(too_large(max)));
    }
    loaded.sort_unstable_by_key(|loaded| loaded.file);
    together(loaded.into_iter().map(|loaded| loaded.objects))
}

/// The objects of texts that a tool has written, in their order; each has a name for messages.
///
/// # Errors
/// With every problem of every text.
pub fn texts(texts: &[(String, &[u8])]) -> Result<Vec<Object>, Problems> {
    let texts = texts.iter().enumerate();
    together(texts.map(|(at, (name, bytes))| decoded(at, name, bytes, documents::rendered)))
}

/// What is said about manifests with more than `max` bytes.
#[must_use]
pub fn too_large(max: u64) -> String {
    format!(
        "the manifests have more than {max} bytes together: leave files out with exclude, split the folder into several \
         Applications, or raise --max-size"
    )
}

fn together(loaded: impl Iterator<Item = Result<Vec<Object>, Vec<String>>>) -> Result<Vec<Object>, Problems> {
    let mut objects = Vec::new();
    let mut problems = Vec::new();
    for loaded in loaded {
        match loaded {
            Ok(found) if objects.is_empty() => objects = found,
            Ok(found) => objects.extend(found),
            Err(found) => problems.extend(found),
        }
    }
    Problems::or(problems, objects)
}

struct Loaded {
    file: usize,
    objects: Result<Vec<Object>, Vec<String>>,
}

/// How much may be read, by all threads together.
struct Budget {
    max: Option<u64>,
    read: AtomicU64,
}

impl Budget {
    /// Takes `bytes`, and says whether they were left.
    fn take(&self, bytes: u64) -> bool {
        let before = self.read.fetch_add(bytes, Ordering::Relaxed);
        self.max.is_none_or(|max| before.saturating_add(bytes) <= max)
    }

    fn exceeded(&self) -> Option<u64> {
        self.max.filter(|&max| self.read.load(Ordering::Relaxed) > max)
    }
}

fn work(files: &[ManifestFile], next: &AtomicUsize, budget: &Budget) -> Vec<Loaded> {
    let mut loaded = Vec::new();
    let mut bytes = Vec::new();
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(file) = files.get(at) else {
            return loaded;
        };
        match read(file, budget, &mut bytes) {
            Ok(true) => {}
            Ok(false) => return loaded,
            Err(error) => {
                loaded.push(Loaded {
                    file: at,
                    objects: Err(vec![format!(
                        "{}: the file cannot be read: {}",
                        file.name,
                        plain(&error)
                    )]),
                });
                continue;
            }
        }
        let objects = objects_of(at, &file.name, &bytes);
        // Most files have objects; what has none needs no place in the order.
        if !matches!(&objects, Ok(objects) if objects.is_empty()) {
            loaded.push(Loaded { file: at, objects });
        }
    }
}

/// Reads a file into `bytes`, unless that would go over the budget.
fn read(file: &ManifestFile, budget: &Budget, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut open = File::open(&file.path)?;
    let size = open.metadata()?.len();
    if !budget.take(size) {
        return Ok(false);
    }
    bytes.clear();
    bytes.reserve(usize::try_from(size).unwrap_or(0));
    // Not a byte more than was taken from the budget, even if the file grows meanwhile.
    open.by_ref().take(size).read_to_end(bytes)?;
    Ok(true)
}

fn objects_of(at: usize, name: &str, bytes: &[u8]) -> Result<Vec<Object>, Vec<String>> {
    if memchr::memmem::find(bytes, SKIP_MARK).is_some() {
        return Ok(Vec::new());
    }
    decoded(at, name, bytes, documents::objects)
}

fn decoded(
    at: usize,
    name: &str,
    bytes: &[u8],
    read: impl Fn(usize, &str, &str) -> Result<Vec<Object>, Vec<String>>,
) -> Result<Vec<Object>, Vec<String>> {
    match yaml::decode(bytes) {
        Ok(text) => read(at, name, &text),
        Err(error) => Err(vec![format!("{name}:{}: {}", error.line, error.message)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_file_that_vanishes_is_named() {
        let files = [ManifestFile {
            path: PathBuf::from("/nonexistent/web.yaml"),
            name: "web.yaml".to_owned(),
        }];
        let told = super::files(&files, None).unwrap_err().to_string();
        assert_eq!(
            told,
            "error: web.yaml: the file cannot be read: no such file or directory\n"
        );
    }
}
