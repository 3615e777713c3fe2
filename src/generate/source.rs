//! Where manifests come from: the files of a folder, what kustomize or helm render of it, or standard input; and what differs
//! from cluster to cluster.
//!
//! A folder is read once, however many clusters share it. A cluster may have an overlay: a value file, with which the chart is
//! rendered for it; a sub-folder to be rendered, which then stands for the folder; or a sub-folder of plain manifests, which is
//! laid over it.

mod bounds;
mod chart;
mod helm;
mod kustomization;
mod kustomize;
mod pipes;
mod remote;
mod strvals;
mod tool;

use super::check;
use super::discover::{self, Selection};
use super::load;
use super::object::{Object, ObjectKey};
use super::problem::{Problems, plain};
use super::settings::Target;
use crate::yaml;
use bounds::{Repository, Target as Found};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;

pub use helm::HelmSettings;
pub(super) use helm::SKIP_SCHEMA_VALIDATION;
pub use remote::{Remote, Remotes};
pub use tool::Tools;

/// What is wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A folder.
    Folder(PathBuf),
    /// What another program has written.
    StandardInput,
}

impl Input {
    /// What was typed: nothing for the current folder, `-` for standard input.
    #[must_use]
    pub fn new(typed: Option<PathBuf>) -> Self {
        match typed {
            None => Self::Folder(PathBuf::from(".")),
            Some(path) if path.as_os_str() == "-" => Self::StandardInput,
            Some(path) => Self::Folder(path),
        }
    }
}

/// What a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain manifests.
    Directory,
    /// A kustomization.
    Kustomize,
    /// A chart.
    Helm,
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "directory" => Ok(Self::Directory),
            "kustomize" => Ok(Self::Kustomize),
            "helm" => Ok(Self::Helm),
            _ => Err(format!("{text:?} is not a source: it is directory, kustomize or helm")),
        }
    }
}

impl Kind {
    /// What the files in its root that are selected make of a folder. As in Argo CD, which looks at them in the order of their
    /// names and keeps the last, a kustomization wins over a chart.
    #[must_use]
    pub fn of(folder: &Path, selection: &Selection) -> Self {
        let has = |name: &str| selection.selects(name) && folder.join(name).symlink_metadata().is_ok();
        if kustomize::FILES.iter().any(|name| has(name)) {
            Self::Kustomize
        } else if has("Chart.yaml") {
            Self::Helm
        } else {
            Self::Directory
        }
    }
}

/// Where manifests come from, and how they are read.
#[derive(Debug)]
pub struct Source {
    /// What is wrapped.
    pub input: Input,
    /// The path of the folder in its repository as Argo CD tells it; empty when unknown.
    pub path: String,
    /// What the folder is; `None` for what is found in it.
    pub kind: Option<Kind>,
    /// Which files of a folder of plain manifests are read.
    pub selection: Selection,
    /// Where a setting comes from that only plain manifests heed, if one is given.
    pub for_plain_manifests: Option<String>,
    /// How charts are rendered.
    pub helm: HelmSettings,
    /// What is given to `kustomize build`.
    pub kustomize_options: Vec<String>,
    /// What kustomize and Helm may fetch from the network.
    pub remotes: Remotes,
    /// How tools are run that render manifests.
    pub tools: Tools,
    /// What differs from cluster to cluster: a path relative to the folder. It may name more clusters than are delivered to.
    pub overlays: BTreeMap<String, String>,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// The objects, in the order of the files.
    pub objects: Vec<Object>,
    /// What to call the files that they are from.
    pub files: Vec<String>,
    /// What was left out and might be missed: one line each.
    pub notices: Vec<String>,
}

impl Manifests {
    /// Returns the bytes of all objects.
    fn size(&self) -> u64 {
        self.objects.iter().map(|object| object.size() as u64).sum()
    }

    /// Adds manifests of which each takes the place of the object that it shares its identity with. `namespace` is that of
    /// objects that name none.
    fn lay_over(&mut self, over: Self, namespace: Option<&str>) {
        let home = |key: &ObjectKey| ObjectKey {
            namespace: key.namespace.clone().or_else(|| namespace.map(Arc::from)),
            ..key.clone()
        };
        let replaced: HashSet<ObjectKey> = over.objects.iter().map(|object| home(&object.key)).collect();
        self.objects.retain(|object| !replaced.contains(&home(&object.key)));
        let files = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.objects.extend(over.objects.into_iter().map(|mut object| {
            object.source.file = object.source.file.saturating_add(files);
            object
        }));
        self.files.extend(over.files);
        self.notices.extend(over.notices);
    }
}

/// What some clusters are given.
#[derive(Debug)]
pub struct Variant {
    /// The clusters, by their places in the target's list; none for a placement.
    pub clusters: Vec<usize>,
    /// What they are given.
    pub manifests: Manifests,
}

/// Reads what each cluster of `target` is given; clusters that are given the same share a variant. `namespace` is that of objects
/// that name none. All variants together may have `max_output` bytes of objects, each for at least one cluster.
///
/// # Errors
/// With everything that is wrong with what is read, or that it is too large.
pub fn variants(
    source: &Source,
    target: &Target,
    namespace: Option<&str>,
    max_output: Option<u64>,
) -> Result<Vec<Variant>, Problems> {
    let Plan { reads, mut variants } = Plan::new(source, target)?;
    let mut problems = Vec::new();
    let budget = |size: u64| match max_output.filter(|&max| size > max) {
        Some(max) => Err(Problems::one(check::too_large(max))),
        None => Ok(()),
    };
    let mut read: Vec<Option<Manifests>> = Vec::with_capacity(reads.len());
    let mut size = 0;
    for some in reads.chunks(at_a_time(reads.len())) {
        for found in side_by_side(some, |read| read.manifests(source)) {
            let found = found.map_err(|found| problems.extend(found.into_lines())).ok();
            size += found.as_ref().map_or(0, Manifests::size);
            read.push(found);
        }
        budget(size)?;
    }
    Problems::or(problems, ())?;
    let mut done = Vec::new();
    let mut size = 0;
    while let Some((clusters, layers)) = variants.pop() {
        let mut manifests = Manifests::default();
        for (at, &layer) in layers.iter().enumerate() {
            let needed_again = variants.iter().any(|(_, layers)| layers.contains(&layer));
            let read = &mut read[layer];
            let read = if needed_again { read.clone() } else { read.take() };
            let read = read.expect("it was read, and the last that needs it takes it");
            if at == 0 {
                manifests = read;
            } else {
                manifests.lay_over(read, namespace);
            }
        }
        size += manifests.size() * clusters.len().max(1) as u64;
        budget(size)?;
        done.push(Variant { clusters, manifests });
    }
    done.reverse();
    Ok(done)
}

/// Something that is read once.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Read<'s> {
    StandardInput,
    Folder {
        kind: Kind,
        /// Its path below the source's folder; empty for that itself.
        below: &'s str,
        /// The value file of a cluster, relative to the source's folder.
        values: Option<&'s str>,
    },
}

/// What is to be read, and which clusters are given what of it: the shared part first, and what is laid over it.
#[derive(Default)]
struct Plan<'s> {
    reads: Vec<Read<'s>>,
    variants: Vec<(Vec<usize>, Vec<usize>)>,
}

impl<'s> Plan<'s> {
    fn new(source: &'s Source, target: &Target) -> Result<Self, Problems> {
        let mut plan = Self::default();
        let shared = match &source.input {
            Input::Folder(folder) => Read::Folder {
                kind: source.kind.unwrap_or_else(|| Kind::of(folder, &source.selection)),
                below: "",
                values: None,
            },
            Input::StandardInput if source.kind.is_some_and(|kind| kind != Kind::Directory) => {
                return Err(Problems::one(
                    "standard input holds manifests that are rendered already: leave source out, or name the folder",
                ));
            }
            Input::StandardInput => Read::StandardInput,
        };
        let mut problems = Vec::new();
        let clusters = match target {
            Target::Clusters(clusters) => clusters,
            Target::Placement(_) => {
                plan.add(&[shared], None);
                return Ok(plan);
            }
        };
        // Many clusters may have the same overlay, which is looked at once.
        let mut looked_at: HashMap<&str, Result<Vec<Read<'_>>, String>> = HashMap::new();
        for (at, cluster) in clusters.iter().enumerate() {
            let overlay = source.overlays.get(&cluster.to_string());
            let reads = match overlay {
                None => Ok(vec![shared.clone()]),
                Some(path) => {
                    let reads = looked_at
                        .entry(path)
                        .or_insert_with(|| overlay_over(&shared, path, source));
                    reads.clone()
                }
            };
            match reads {
                Ok(reads) => plan.add(&reads, Some(at)),
                Err(line) => problems.push(format!("overlays: {line}")),
            }
        }
        Problems::or(problems, plan)
    }

    fn add(&mut self, reads: &[Read<'s>], cluster: Option<usize>) {
        let mut layers = Vec::new();
        for read in reads {
            let at = self.reads.iter().position(|known| known == read).unwrap_or_else(|| {
                self.reads.push(read.clone());
                self.reads.len() - 1
            });
            layers.push(at);
        }
        match self.variants.iter_mut().find(|(_, known)| *known == layers) {
            Some((clusters, _)) => clusters.extend(cluster),
            None => self.variants.push((cluster.into_iter().collect(), layers)),
        }
    }
}

/// What a cluster with the overlay `path` is given; the reason otherwise.
fn overlay_over<'s>(shared: &Read<'s>, path: &'s str, source: &'s Source) -> Result<Vec<Read<'s>>, String> {
    let (Input::Folder(folder), Read::Folder { kind, .. }) = (&source.input, shared) else {
        return Err("standard input has no sub-folders: name the folder instead, or leave overlays out".to_owned());
    };
    let inside = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside {
        return Err(format!(
            "{path}: it leaves the folder: name a sub-folder or a value file in it"
        ));
    }
    let repository = Repository::of(folder, &source.path);
    let found = folder.join(path);
    match repository.follow(&found).map_err(|why| format!("{path}: {why}"))? {
        Found::Nothing => Err(format!("{path}: it cannot be read: no such file or directory")),
        Found::Folder(_) => {
            let of_cluster = |kind| Read::Folder {
                kind,
                below: path,
                values: None,
            };
            Ok(match Kind::of(&found, &source.selection) {
                Kind::Directory => vec![shared.clone(), of_cluster(Kind::Directory)],
                rendered => vec![of_cluster(rendered)],
            })
        }
        Found::File(_) if *kind == Kind::Helm => Ok(vec![Read::Folder {
            kind: Kind::Helm,
            below: "",
            values: Some(path),
        }]),
        Found::File(_) => Err(format!(
            "{path}: it is a file, and only a chart has value files: name a sub-folder with what differs"
        )),
    }
}

impl Read<'_> {
    fn manifests(&self, source: &Source) -> Result<Manifests, Problems> {
        let (folder, kind, below, values) = match (self, &source.input) {
            (Self::Folder { kind, below, values }, Input::Folder(folder)) => (folder, *kind, *below, *values),
            _ => return standard_input(source),
        };
        if kind != Kind::Directory
            && let Some(given) = &source.for_plain_manifests
        {
            return Err(Problems::one(format!(
                "{given}: it is about the files of plain manifests, and this folder is rendered: leave it out, or set source to \
                 directory"
            )));
        }
        if kind != Kind::Helm
            && let Some(given) = &source.helm.given
        {
            return Err(Problems::one(format!(
                "{given}: it is about charts, and there is no Chart.yaml in the root of the folder: leave it out, or name the \
                 chart's folder"
            )));
        }
        match kind {
            Kind::Directory => directory(folder, below, source),
            Kind::Kustomize => kustomize::render(folder, below, source),
            Kind::Helm => helm::render(folder, below, values, source),
        }
    }
}

fn directory(folder: &Path, below: &str, source: &Source) -> Result<Manifests, Problems> {
    // What some cluster is given alone is not shared, whichever clusters the target has.
    let overlays = source.overlays.values().filter(|_| below.is_empty());
    let selection = Selection {
        leave_out: overlays.map(|path| folder.join(path)).collect(),
        ..source.selection.clone()
    };
    let mut found = discover::manifests(folder, below, &source.path, &selection)?;
    let loaded = load::files(&mut found, selection.max_size);
    // A folder that cannot be listed as a whole is what has to be mended first.
    let notices = found.end()?;
    let load::Files { names, objects } = loaded?;
    Ok(Manifests {
        objects,
        files: names,
        notices,
    })
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
    rendered(vec![(name.to_owned(), &bytes)], bytes.len(), source)
}

/// The objects of texts that a program has written, each under a name of its own.
fn rendered(texts: Vec<(String, &[u8])>, size: usize, source: &Source) -> Result<Manifests, Problems> {
    if let Some(max) = source.selection.max_size.filter(|&max| size as u64 > max) {
        return Err(Problems::one(load::too_large(max)));
    }
    let objects = load::texts(&texts)?;
    Ok(Manifests {
        objects,
        files: texts.into_iter().map(|(name, _)| name).collect(),
        notices: Vec::new(),
    })
}

/// The most sources that are read at a time: each may take the memory of a tool.
const AT_A_TIME: usize = 4;

/// Returns how many of `count` sources are read at a time. To know the cores, files of cgroups are read, so not for a single source.
fn at_a_time(count: usize) -> usize {
    match count {
        0 | 1 => 1,
        _ => thread::available_parallelism().map_or(1, usize::from).min(AT_A_TIME),
    }
}

/// Does `work` with each item, as many at a time as there are cores, and gives what came of it in the order of the items.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if let [item] = items {
        return vec![work(item)];
    }
    let mut done = Vec::with_capacity(items.len());
    for some in items.chunks(at_a_time(items.len())) {
        let some = thread::scope(|scope| {
            let start = |item| {
                let work = &work;
                let thread = thread::Builder::new().stack_size(yaml::STACK);
                thread
                    .spawn_scoped(scope, move || work(item))
                    .expect("a thread can be started")
            };
            let started: Vec<_> = some.iter().map(start).collect();
            started
                .into_iter()
                .map(thread::ScopedJoinHandle::join)
                .collect::<Vec<_>>()
        });
        done.extend(some.into_iter().map(|result| result.expect("it does not panic")));
    }
    done
}
