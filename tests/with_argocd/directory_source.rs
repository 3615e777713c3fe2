//! Tests that a folder gives the objects that Argo CD's own directory source reads from it, by running the code of Argo CD.

use crate::application_source::{self, ApplicationSource};
use anyhow::{Context, Result, bail, ensure};
use generate::discover;
use generate::discover::FileSelection;
use generate::load;
use generate::object::{Object, ObjectLocation};
use generate::schema::FieldValidation;
use manifest::value::Value;
use manifest::yaml;
use ocm::glob::Glob;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use testbed::Parts;

/// The files that both exclude: Argo CD would read these as manifests if the source is set to a plain directory, and we reject
/// them with the remediation.
const RENDERED: &str = "{kustomization.yaml,kustomization.yml,Chart.yaml,*.jsonnet}";

#[test]
fn selects_files_like_argo_cds_directory_source() -> Result<()> {
    let parts = Parts::ensure()?;
    let mut argo_cd = ApplicationSource::start(&parts, parts.tools())?;
    let mut compared = Compared::default();

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for case in subfolders(&root.join("tests/data/generate"))? {
        let folder = case.join("input");
        for (include, exclude) in [
            ("", ""),
            ("*.yaml", ""),
            ("{prod/*,*.yml}", "*test*"),
            ("", "[a-c]*"),
            ("?.*", "{b,d}*"),
        ] {
            for recurse in [true, false] {
                let question = Question {
                    recurse,
                    include,
                    exclude: if exclude.is_empty() { RENDERED } else { exclude },
                    ..Question::new(root, &folder)
                };
                compared.add(&mut argo_cd, &question)?;
            }
        }
    }
    let manifests = root.join("tests/data/manifests");
    let question = Question {
        recurse: true,
        ..Question::new(root, &manifests)
    };
    compared.add(&mut argo_cd, &question)?;
    let ours = compared.agree;

    // Every folder of some large projects, as if it were an Application's.
    for root in parts.sources() {
        for folder in folders_below(&root)? {
            compared.add(&mut argo_cd, &Question::new(&root, &folder))?;
        }
    }
    assert!(
        ours > 200 && compared.agree > 800 && compared.objects > 2000,
        "{compared:?}"
    );
    Ok(())
}

/// The errors that only we report: files that need another tool, and two equal keys of which Go picks one at random.
const OURS_ALONE: [&str; 5] = [
    "Jsonnet",
    "Kustomize",
    "Helm",
    "does not render a sub-folder",
    "duplicate key",
];

/// A question to both: the objects of a folder of a repository.
#[derive(Debug)]
struct Question<'a> {
    root: &'a Path,
    folder: &'a Path,
    recurse: bool,
    include: &'a str,
    exclude: &'a str,
}

impl<'a> Question<'a> {
    /// Creates the question about a folder without its subfolders, and every file except those that another tool renders.
    fn new(root: &'a Path, folder: &'a Path) -> Self {
        Self {
            root,
            folder,
            recurse: false,
            include: "",
            exclude: RENDERED,
        }
    }

    fn for_argo_cd(&self) -> application_source::Question<'_> {
        let directory = json!({"recurse": self.recurse, "include": self.include, "exclude": self.exclude});
        application_source::Question {
            root: self.root,
            folder: self.folder,
            name: "application",
            namespace: "default",
            source: json!({ "directory": directory }),
            kube_version: "",
            kustomize_build_options: "",
        }
    }
}

/// The numbers of compared folders.
#[derive(Debug, Default)]
struct Compared {
    /// Folders with the same objects, or an error, on both sides.
    agree: usize,
    /// Folders that Argo CD reads, but whose objects could not be applied or wrapped.
    refused_with_reason: usize,
    objects: usize,
}

impl Compared {
    fn add(&mut self, argo_cd: &mut ApplicationSource, question: &Question<'_>) -> Result<()> {
        let description = format!("{question:?}");
        let ours = our_objects(question);
        let theirs = argo_cd.manifests(&question.for_argo_cd())?;
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let mut theirs = theirs
                    .iter()
                    .map(|manifest| canonical(manifest))
                    .collect::<Result<Vec<_>>>()
                    .with_context(|| description.clone())?;
                theirs.sort();
                // The plugin ignores these files intentionally.
                let hidden = holds_hidden(question.folder, question.recurse)?;
                ensure!(
                    ours == theirs || (hidden && ours.len() < theirs.len()),
                    "{description}:\n{ours:#?}\n{theirs:#?}"
                );
                self.objects += ours.len();
                self.agree += 1;
            }
            (Err(_), Err(_)) => self.agree += 1,
            (Err(error), Ok(theirs)) => {
                let impossible = theirs.iter().any(|manifest| canonical(manifest).is_err());
                let ours_alone = OURS_ALONE.iter().any(|why| error.contains(why));
                ensure!(impossible || ours_alone, "{description}: only we refuse it: {error}");
                self.refused_with_reason += 1;
            }
            // Argo CD checks links before it applies patterns; here an excluded link does no harm.
            (Ok(_), Err(error)) if error.contains("symlink") => self.agree += 1,
            // A file about the source makes it a different source.
            (Ok(_), Err(error)) if error.contains("multiple application sources defined") => {}
            (Ok(ours), Err(error)) => bail!("{description}: only Argo CD refuses it: {error}\n{ours:#?}"),
        }
        Ok(())
    }
}

/// Returns our objects of a folder, as sorted canonical JSON.
fn our_objects(question: &Question<'_>) -> Result<Vec<String>, String> {
    let globs = |pattern: &str| -> Vec<Glob> {
        let selected = Some(pattern).filter(|pattern| !pattern.is_empty());
        selected
            .map(|pattern| Glob::new(pattern).expect("a glob"))
            .into_iter()
            .collect()
    };
    let selection = FileSelection {
        recurse: question.recurse,
        include: globs(question.include),
        exclude: globs(question.exclude),
        max_size: None,
        ..FileSelection::default()
    };
    let (files, _) =
        discover::manifests(question.folder, "", "", &selection).map_err(|problems| problems.to_string())?;
    let loaded = load::files(files, None, FieldValidation::Ignore).map_err(|problems| problems.to_string())?;
    let mut texts: Vec<String> = loaded.objects.iter().map(|object| object.pieces().concat()).collect();
    texts.sort();
    Ok(texts)
}

/// Returns one of Argo CD's manifests in our canonical form.
fn canonical(manifest: &str) -> Result<String> {
    let Value::Map(fields) = yaml::json(manifest)? else {
        bail!("not an object: {manifest}");
    };
    Ok(Object::new(fields, ObjectLocation::document(0, 1, 1))?
        .pieces()
        .concat())
}

fn subfolders(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

/// Returns the folder and all its subfolders.
fn folders_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    for folder in subfolders(folder)? {
        folders.extend(folders_below(&folder)?);
    }
    Ok(folders)
}

/// Returns true if the folder contains files that we leave out and Argo CD does not: hidden folders, and files about the source.
fn holds_hidden(folder: &Path, recurse: bool) -> Result<bool> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_folder = entry.file_type()?.is_dir();
        if name.starts_with(".argocd-source") || (is_folder && recurse && name.starts_with('.')) {
            return Ok(true);
        }
        if is_folder && recurse && holds_hidden(&entry.path(), true)? {
            return Ok(true);
        }
    }
    Ok(false)
}
