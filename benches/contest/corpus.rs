//! The wrapped manifests, the same on every run.

use super::objects::{KINDS, Written};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder of manifests.
pub(crate) struct Corpus {
    folder: PathBuf,
    /// The temporary folder, deleted when dropped.
    scratch: Option<TempDir>,
    /// The number of files.
    pub(crate) files: usize,
    /// The number of objects in the files.
    pub(crate) documents: usize,
    /// The total size of the files.
    pub(crate) bytes: usize,
}

impl Corpus {
    fn empty() -> Self {
        let scratch = TempDir::new().expect("a scratch folder");
        Self {
            folder: scratch.path().to_owned(),
            scratch: Some(scratch),
            files: 0,
            documents: 0,
            bytes: 0,
        }
    }

    /// Returns the example that comes with the project.
    pub(crate) fn guestbook() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guestbook");
        let sizes = fs::read_dir(&folder).expect("the guestbook").map(|file| {
            let metadata = file.and_then(|file| file.metadata()).expect("a file");
            usize::try_from(metadata.len()).expect("a small file")
        });
        let sizes: Vec<usize> = sizes.collect();
        Self {
            folder,
            scratch: None,
            files: sizes.len(),
            documents: sizes.len(),
            bytes: sizes.iter().sum(),
        }
    }

    /// Creates this number of files as teams write them: a Deployment, a Service and a ConfigMap in the folder of each app, of ten apps
    /// one in JSON, one in flow style, and one whose files have two documents each.
    pub(crate) fn folder_of(files: usize) -> Self {
        let mut corpus = Self::empty();
        for file in 0..files {
            let (app, kind) = (file / KINDS.len(), &KINDS[file % KINDS.len()]);
            let folder = format!("team-{}/app-{app}", app % 20);
            let (written, extension) = match app % 10 {
                7 => (Written::Json, "json"),
                8 => (Written::Flow, "yml"),
                _ => (Written::Block, "yaml"),
            };
            let mut text = kind.render(&format!("app-{app}"), written);
            let mut documents = 1;
            if app % 10 == 9 {
                text = format!(
                    "# Both of one app.\n---\n{text}---\n{}",
                    kind.render(&format!("app-{app}-canary"), written)
                );
                documents += 1;
            }
            corpus.add(&format!("{folder}/{}.{extension}", kind.name), &text, documents);
        }
        corpus
    }

    /// Creates one file of about this size, with many documents.
    pub(crate) fn documents_of(bytes: usize) -> Self {
        let mut text = String::new();
        let mut documents = 0;
        while text.len() < bytes {
            let app = format!("app-{}", documents / KINDS.len());
            text += "---\n";
            text += &KINDS[documents % KINDS.len()].render(&app, Written::Block);
            documents += 1;
        }
        let mut corpus = Self::empty();
        corpus.add("all.yaml", &text, documents);
        corpus
    }

    /// Creates one ConfigMap of about this size: ten texts of many lines.
    pub(crate) fn config_map_of(bytes: usize) -> Self {
        let mut text =
            String::from("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: large\n  namespace: team\ndata:\n");
        for part in 1..=10 {
            writeln!(text, "  part-{part}.properties: |").expect("writing to a String never fails");
            for line in 0.. {
                if text.len() >= bytes / 10 * part {
                    break;
                }
                writeln!(
                    text,
                    "    shop.item.{line}.title=A thing \"as shown\", number {line} of very many"
                )
                .expect("writing to a String never fails");
            }
        }
        let mut corpus = Self::empty();
        corpus.add("large.yaml", &text, 1);
        corpus
    }

    fn add(&mut self, name: &str, text: &str, documents: usize) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
        self.files += 1;
        self.documents += documents;
        self.bytes += text.len();
    }

    /// Returns the folder of the files.
    pub(crate) fn folder(&self) -> &Path {
        self.scratch.as_ref().map_or(&self.folder, TempDir::path)
    }
}
