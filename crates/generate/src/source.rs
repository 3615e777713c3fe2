//! Reads manifests: plain files of a folder, the output of kustomize or helm for it, or standard input; and the overlays of
//! single clusters.
//!
//! A folder is read once, however many clusters share it. A cluster may have an overlay: a value file to render the chart with; a
//! sub-folder to render instead of the folder; or a sub-folder of plain manifests that replace or extend those of the folder.

mod bounds;
mod checkout;
mod dependencies;
mod fetch;
mod helm;
mod kustomize;
mod pipes;
mod redact;
mod remote;
mod strvals;
mod tool;
mod value_files;

use super::confine::TOOLS_AT_A_TIME;
use super::discover::{self, FileSelection};
use super::documents::ReadOptions;
use super::load;
use super::object::Object;
use super::schema::FieldValidation;
use super::settings::{DeliveryTarget, Recipient, Settings};
use super::validate;
use bounds::{LinkTarget, Repository};
use manifest::key::ObjectKey;
use manifest::problem::{Problems, plain};
use manifest::yaml;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;

pub use dependencies::CompletedCharts;
pub use helm::HelmSettings;
pub(super) use helm::SKIP_SCHEMA_VALIDATION;
pub(super) use kustomize::check_patches;
pub use kustomize::{Edit, KustomizeSettings};
pub use remote::{Remote, Remotes};
pub use tool::Tools;

/// The type of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderKind {
    /// Plain manifests.
    Directory,
    /// A kustomization.
    Kustomize,
    /// A chart.
    Helm,
}

impl FromStr for FolderKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "directory" => Ok(Self::Directory),
            "kustomize" => Ok(Self::Kustomize),
            "helm" => Ok(Self::Helm),
            _ => Err(format!(
                "{text:?} is not a source type: use directory, kustomize or helm"
            )),
        }
    }
}

impl FolderKind {
    /// Detects the type of a folder from the selected files in its root. A kustomization wins over a chart, as in Argo CD, which
    /// visits the files in the order of their names and keeps the last match.
    pub fn detect(folder: &Path, selection: &FileSelection) -> Self {
        let has = |name: &str| selection.selects(name) && folder.join(name).symlink_metadata().is_ok();
        if discover::KUSTOMIZATION_FILES.iter().any(|name| has(name)) {
            Self::Kustomize
        } else if has("Chart.yaml") {
            Self::Helm
        } else {
            Self::Directory
        }
    }
}

/// The source of manifests and the settings to read it with.
#[derive(Debug)]
pub struct Source {
    /// The folder; `None` for standard input, the output of another program.
    pub folder: Option<PathBuf>,
    /// The path of the folder in its repository as Argo CD passes it; empty if unknown.
    pub path: String,
    /// The type of the folder; `None` to detect it.
    pub kind: Option<FolderKind>,
    /// The selection of files in a folder of plain manifests.
    pub selection: FileSelection,
    /// The origin of a setting that applies to plain manifests only, if one is set.
    pub for_plain_manifests: Option<String>,
    /// The settings for rendering charts.
    pub helm: HelmSettings,
    /// The settings for rendering kustomizations.
    pub kustomize: KustomizeSettings,
    /// The addresses that may be fetched before kustomize and Helm start.
    pub remotes: Remotes,
    /// The charts with dependencies that are not in their folders `charts`.
    pub completed: CompletedCharts,
    /// The settings for running the tools that render manifests.
    pub tools: Tools,
    /// The options for reading the objects.
    pub reading: ReadOptions,
    /// The overlays: paths relative to the folder, by cluster. They may name clusters that are not targets.
    pub overlays: BTreeMap<String, String>,
}

/// Manifests that were read.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// The objects, in the order of the files.
    pub objects: Vec<Box<Object>>,
    /// The names of their files, for messages.
    pub files: Vec<String>,
    /// Warnings about skipped content, one line each.
    pub notices: Vec<String>,
    /// The type of the folder; `None` for standard input.
    pub kind: Option<FolderKind>,
}

impl Manifests {
    /// Returns the number of bytes of all objects.
    fn size(&self) -> u64 {
        self.objects.iter().map(|object| object.size() as u64).sum()
    }

    /// Adds the manifests of an overlay. Each replaces the object with the same identity. `namespace` is the default for objects
    /// without one.
    fn apply_overlay(&mut self, over: Self, namespace: Option<&str>) {
        let with_default = |key: &ObjectKey| ObjectKey {
            namespace: key.namespace.clone().or_else(|| namespace.map(Arc::from)),
            ..key.clone()
        };
        let replaced: HashSet<ObjectKey> = over.objects.iter().map(|object| with_default(&object.key)).collect();
        self.objects
            .retain(|object| !replaced.contains(&with_default(&object.key)));
        let files = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.objects.extend(over.objects.into_iter().map(|mut object| {
            object.source.file = object.source.file.saturating_add(files);
            object
        }));
        self.files.extend(over.files);
        self.notices.extend(over.notices);
    }
}

/// The manifests of a group of recipients.
#[derive(Debug)]
pub struct Variant<'s> {
    /// The recipients, at least one.
    pub recipients: Vec<Recipient<'s>>,
    /// The manifests of these recipients.
    pub manifests: Manifests,
}

/// Reads the manifests of each recipient; recipients with the same manifests share a variant.
///
/// # Errors
/// Returns an error if the input is invalid, with one line per problem, or if the objects of all recipients together are too
/// large.
pub fn variants(settings: &Settings) -> Result<Vec<Variant<'_>>, Problems> {
    let source = &settings.source;
    let ReadPlan { reads, variants } = ReadPlan::new(source, &settings.target)?;
    let mut problems = Vec::new();
    let mut read: Vec<Arc<Manifests>> = Vec::with_capacity(reads.len());
    let mut size = 0;
    for some in reads.chunks(concurrency(reads.len())) {
        for outcome in in_parallel(some, |read| read.manifests(source)) {
            match outcome {
                Ok(manifests) => {
                    size += manifests.size();
                    read.push(Arc::new(manifests));
                }
                Err(errors) => problems.extend(errors.into_lines()),
            }
        }
        validate::within(size, settings.max_output)?;
    }
    Problems::or(problems, ())?;
    if !settings.allow_empty {
        check_overlays(&reads, &read, &variants)?;
    }
    let layers_of = |layers: Vec<usize>| -> Vec<_> { layers.into_iter().map(|at| Arc::clone(&read[at])).collect() };
    let variants: Vec<_> = variants
        .into_iter()
        .map(|(recipients, layers)| (recipients, layers_of(layers)))
        .collect();
    // The last of several variants moves the shared manifests instead of copying them.
    drop(read);
    let mut done = Vec::with_capacity(variants.len());
    let mut size = 0;
    for (recipients, layers) in variants {
        let mut layers = layers.into_iter().map(Arc::unwrap_or_clone);
        let mut manifests = layers.next().unwrap_or_default();
        for over in layers {
            manifests.apply_overlay(over, settings.namespace.as_deref());
        }
        size += manifests.size() * recipients.len() as u64;
        validate::within(size, settings.max_output)?;
        done.push(Variant { recipients, manifests });
    }
    Ok(done)
}

/// Checks that each overlay of plain manifests has objects: without, its clusters would get those of the others.
fn check_overlays(
    reads: &[Read<'_>],
    read: &[Arc<Manifests>],
    variants: &[(Vec<Recipient<'_>>, Vec<usize>)],
) -> Result<(), Problems> {
    let overlays: BTreeSet<usize> = variants.iter().flat_map(|(_, layers)| &layers[1..]).copied().collect();
    let empty = overlays.into_iter().filter(|&at| read[at].objects.is_empty());
    let problems = empty.map(|at| {
        format!(
            "overlays: {}: it has no Kubernetes object in a .yaml, .yml or .json file that include and exclude select, whose paths begin \
             at the folder around it: add one, or leave the overlay out",
            reads[at].below
        )
    });
    Problems::or(problems.collect(), ())
}

/// An input that is read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read<'s> {
    /// The source's folder; `None` for standard input.
    folder: Option<&'s Path>,
    kind: FolderKind,
    /// The path below the source's folder; empty for that folder.
    below: &'s str,
    /// The value file of a cluster, relative to the source's folder.
    values: Option<&'s str>,
}

/// The inputs to read, and the inputs of each variant: the shared input first, then the overlay.
#[derive(Default)]
struct ReadPlan<'s, 't> {
    reads: Vec<Read<'s>>,
    variants: Vec<(Vec<Recipient<'t>>, Vec<usize>)>,
}

impl<'s, 't> ReadPlan<'s, 't> {
    fn new(source: &'s Source, target: &'t DeliveryTarget) -> Result<Self, Problems> {
        let mut plan = Self::default();
        let folder = source.folder.as_deref();
        if folder.is_none() && source.kind.is_some_and(|kind| kind != FolderKind::Directory) {
            return Err(Problems::one(
                "standard input holds manifests that are rendered already: leave source out, or name the folder",
            ));
        }
        let detected = || {
            folder.map_or(FolderKind::Directory, |folder| {
                FolderKind::detect(folder, &source.selection)
            })
        };
        let shared = Read {
            folder,
            kind: source.kind.unwrap_or_else(detected),
            below: "",
            values: None,
        };
        let mut problems = Vec::new();
        // Many clusters may share an overlay: check it once.
        let mut looked_at: HashMap<&str, Result<Vec<Read<'_>>, String>> = HashMap::new();
        for recipient in target.recipients() {
            let overlay = match recipient {
                Recipient::Cluster { name, .. } => source.overlays.get(&name.to_string()),
                Recipient::Placement(_) => None,
            };
            let reads = match overlay {
                None => Ok(vec![shared]),
                Some(path) => {
                    let reads = looked_at
                        .entry(path)
                        .or_insert_with(|| overlay_over(shared, path, source));
                    reads.clone()
                }
            };
            match reads {
                Ok(reads) => plan.add(&reads, recipient),
                Err(line) => problems.push(format!("overlays: {line}")),
            }
        }
        let kinds = plan.reads.iter().chain([&shared]).map(|read| read.kind);
        problems.extend(source.unused_setting(&kinds.collect::<Vec<_>>()));
        Problems::or(problems, plan)
    }

    fn add(&mut self, reads: &[Read<'s>], recipient: Recipient<'t>) {
        let mut layers = Vec::new();
        for read in reads {
            let at = self.reads.iter().position(|known| known == read).unwrap_or_else(|| {
                self.reads.push(*read);
                self.reads.len() - 1
            });
            layers.push(at);
        }
        match self.variants.iter_mut().find(|(_, known)| *known == layers) {
            Some((recipients, _)) => recipients.push(recipient),
            None => self.variants.push((vec![recipient], layers)),
        }
    }
}

/// Returns the inputs of a cluster with the overlay `path`, or the reason why the overlay is invalid.
fn overlay_over<'s>(shared: Read<'s>, path: &'s str, source: &'s Source) -> Result<Vec<Read<'s>>, String> {
    let Some(folder) = shared.folder else {
        return Err("standard input has no sub-folders: name the folder instead, or leave overlays out".to_owned());
    };
    let is_inside = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let repository = Repository::locate(folder, &source.path);
    let file = value_files::location(path, folder, &repository);
    match repository.follow(&file).map_err(|why| format!("{path}: {why}"))? {
        LinkTarget::File(_) if shared.kind == FolderKind::Helm => {
            let values = Some(path);
            Ok(vec![Read { values, ..shared }])
        }
        _ if !is_inside => Err(format!(
            "{path}: it is outside the folder: name a sub-folder of it, or a value file for a chart"
        )),
        LinkTarget::Nothing => Err(format!("{path}: it cannot be read: no such file or directory")),
        LinkTarget::Folder(_) => {
            let below = path;
            let of_cluster = |kind| Read { kind, below, ..shared };
            Ok(match FolderKind::detect(&file, &source.selection) {
                FolderKind::Directory => vec![shared, of_cluster(FolderKind::Directory)],
                rendered => vec![of_cluster(rendered)],
            })
        }
        LinkTarget::File(_) => Err(format!(
            "{path}: it is a file, and only a chart has value files: name a sub-folder"
        )),
    }
}

impl Source {
    /// Returns true if helm or kustomize renders the folder, or an overlay.
    pub fn is_rendered(&self) -> bool {
        let Some(folder) = &self.folder else { return false };
        let detect = |below: &str| FolderKind::detect(&folder.join(below), &self.selection);
        let overlays = self.overlays.values().map(|below| detect(below));
        let mut kinds = overlays.chain([self.kind.unwrap_or_else(|| detect(""))]);
        kinds.any(|kind| kind != FolderKind::Directory)
    }

    /// Returns the problem of a setting that applies to none of these types of folders, the shared one and the overlays, or not to
    /// standard input.
    fn unused_setting(&self, kinds: &[FolderKind]) -> Option<String> {
        let settings = [
            (
                &self.for_plain_manifests,
                FolderKind::Directory,
                "it applies only to plain manifests, and this folder is rendered: leave it out, or set source to directory",
            ),
            (
                &self.kustomize.given,
                FolderKind::Kustomize,
                "it applies only to kustomizations, and the folder has no kustomization.yaml in its root: leave it out, or name the \
                 folder of the kustomization",
            ),
            (
                &self.helm.given,
                FolderKind::Helm,
                "it applies only to charts, and the folder has no Chart.yaml in its root: leave it out, or name the chart's folder",
            ),
        ];
        settings.into_iter().find_map(|(given, kind, why)| {
            let given = given.as_ref()?;
            match self.folder {
                None => Some(format!(
                    "{given}: standard input holds manifests that are rendered already: leave it out, or name the folder"
                )),
                Some(_) => (!kinds.contains(&kind)).then(|| format!("{given}: {why}")),
            }
        })
    }
}

impl Read<'_> {
    fn manifests(&self, source: &Source) -> Result<Manifests, Problems> {
        let Some(folder) = self.folder else {
            return standard_input(source);
        };
        let manifests = match self.kind {
            FolderKind::Directory => directory(folder, self.below, source),
            FolderKind::Kustomize => kustomize::render(folder, self.below, source),
            FolderKind::Helm => helm::render(folder, self.below, self.values, source),
        };
        manifests.map(|manifests| Manifests {
            kind: Some(self.kind),
            ..manifests
        })
    }
}

fn directory(folder: &Path, below: &str, source: &Source) -> Result<Manifests, Problems> {
    let selection = &source.selection;
    let (files, notices) = discover::manifests(folder, below, &source.path, selection)?;
    let mut manifests = load::files(files, selection.max_size, source.reading)?;
    if source.reading.validation == FieldValidation::Strict {
        // What is left out may be missing on the cluster.
        Problems::or(notices.clone(), ())?;
    }
    manifests.notices.splice(..0, notices);
    Ok(manifests)
}

fn standard_input(source: &Source) -> Result<Manifests, Problems> {
    let name = "standard input";
    let max = source.selection.max_size;
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(max.map_or(u64::MAX, |max| max.saturating_add(1)))
        .read_to_end(&mut bytes)
        .map_err(|error| Problems::one(format!("{name} cannot be read: {}", plain(&error))))?;
    rendered(&[(name.to_owned(), &*bytes)], source)
}

/// Parses the objects in the output of a program; each text has its own name.
fn rendered(texts: &[(String, &[u8])], source: &Source) -> Result<Manifests, Problems> {
    let size: u64 = texts.iter().map(|(_, text)| text.len() as u64).sum();
    match source.selection.max_size.filter(|&max| size > max) {
        Some(max) => Err(Problems::one(load::too_large(max))),
        None => load::texts(texts, source.reading),
    }
}

/// Returns the number of sources to read concurrently, out of `count`. Counting the cores reads cgroup files, so a single source
/// skips it.
fn concurrency(count: usize) -> usize {
    match count {
        0 | 1 => 1,
        _ => thread::available_parallelism()
            .map_or(1, usize::from)
            .min(TOOLS_AT_A_TIME),
    }
}

/// Applies `work` to each of a few items on a separate thread, and returns the results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if let [item] = items {
        return vec![work(item)];
    }
    thread::scope(|scope| {
        let start = |item| {
            let work = &work;
            let thread = thread::Builder::new().stack_size(yaml::STACK);
            thread
                .spawn_scoped(scope, move || work(item))
                .expect("a thread can be started")
        };
        let started: Vec<_> = items.iter().map(start).collect();
        let done = started.into_iter().map(thread::ScopedJoinHandle::join);
        done.map(|result| result.expect("the thread does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Arguments;
    use std::fs;

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let scratch = tempfile::TempDir::new().expect("a scratch folder");
        for file in files {
            let path = scratch.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, "").expect("a file");
        }
        scratch
    }

    /// Returns the settings of an Application for clusters `a` and `b` with this folder.
    fn settings(folder: &Path, parameters: &str) -> Settings {
        let clusters = r#"{"name": "clusters", "array": ["a", "b"]}"#;
        let env = [
            ("ARGOCD_APP_NAME", "shop"),
            ("ARGOCD_APP_PARAMETERS", &format!("[{clusters}, {parameters}]")),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let args = Arguments {
            folder: Some(folder.to_owned()),
            ..Arguments::default()
        };
        Settings::resolve(args, &env).expect("valid settings")
    }

    /// Returns the problem of the settings of an Application for clusters `a` and `b`, in a folder with these files.
    fn problem(files: &[&str], parameters: &str) -> Option<String> {
        let scratch = folder_with(files);
        let settings = settings(scratch.path(), parameters);
        let plan = ReadPlan::new(&settings.source, &settings.target);
        plan.err().map(|problems| problems.to_string())
    }

    #[test]
    fn a_setting_may_apply_to_the_folder_or_to_an_overlay() {
        let overlay = r#"{"name": "overlays", "map": {"a": "eu"}}"#;
        let exclude = r#"{"name": "exclude", "string": "x.yaml"}"#;
        let values = r#"{"name": "helm-parameters", "map": {"x": "y"}}"#;
        for (files, parameters, expected) in [
            (&["Chart.yaml", "eu/a.yaml"][..], values, None),
            (&["Chart.yaml", "eu/a.yaml"], exclude, None),
            (&["web.yaml", "eu/kustomization.yaml"], exclude, None),
            (&["web.yaml", "eu/Chart.yaml"], values, None),
            (
                &["Chart.yaml", "eu/kustomization.yaml"],
                exclude,
                Some("this folder is rendered"),
            ),
            (
                &["web.yaml", "eu/kustomization.yaml"],
                values,
                Some("applies only to charts"),
            ),
        ] {
            let problem = problem(files, &format!("{overlay}, {parameters}"));
            let message = problem.as_deref().unwrap_or_default();
            assert_eq!(
                problem.is_some(),
                expected.is_some(),
                "{files:?} {parameters}: {message}"
            );
            assert!(
                message.contains(expected.unwrap_or_default()),
                "{files:?} {parameters}: {message}"
            );
        }
    }

    #[test]
    fn refuses_settings_of_folders_for_standard_input() {
        let settings = |parameters: &str| settings(Path::new("-"), parameters);
        for (name, value) in [
            ("exclude", "x"),
            ("helm-values", "a: b"),
            ("kustomize-name-prefix", "x"),
        ] {
            let settings = settings(&format!(r#"{{"name": "{name}", "string": "{value}"}}"#));
            let problems = ReadPlan::new(&settings.source, &settings.target)
                .err()
                .expect("a problem");
            let line = format!("error: parameter {name}: standard input holds manifests that are rendered already: ");
            assert!(problems.to_string().starts_with(&line), "{problems}");
        }
        let settings = settings(r#"{"name": "executor", "string": "a/b"}"#);
        assert!(ReadPlan::new(&settings.source, &settings.target).is_ok());
    }

    #[test]
    fn refuses_overlays_without_objects() {
        let scratch = folder_with(&["eu/values.yaml", "us/x.yaml"]);
        let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
        for file in ["web.yaml", "us/x.yaml"] {
            fs::write(scratch.path().join(file), object).expect("a file");
        }
        let overlays = r#"{"name": "overlays", "map": {"a": "eu", "b": "us"}}"#;
        let empty = |more: &str| {
            let settings = settings(scratch.path(), &format!("{overlays}{more}"));
            let problems = variants(&settings).err();
            problems.map_or_else(String::new, |problems| problems.to_string())
        };
        let line = |overlay: &str| {
            format!(
                "error: overlays: {overlay}: it has no Kubernetes object in a .yaml, .yml or .json file that include and exclude \
                 select, whose paths begin at the folder around it: add one, or leave the overlay out\n"
            )
        };
        assert_eq!(empty(""), line("eu"));
        assert_eq!(empty(r#", {"name": "include", "string": "*.yaml"}"#), line("eu"));
        let excluded = empty(r#", {"name": "exclude", "string": "us/*"}"#);
        assert_eq!(excluded, line("eu") + &line("us"));
        assert_eq!(empty(r#", {"name": "allow-empty", "string": "true"}"#), "");
    }
}
