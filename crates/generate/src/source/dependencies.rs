//! Adds the dependencies that a chart lacks in its folder `charts`, as Argo CD does with `helm dependency build`: charts elsewhere in
//! the repository (`file://`), and those of repositories that the administrator allows.
//!
//! They are added to a copy of the checkout, once for all clusters.

use super::Source;
use super::bounds::{LinkTarget, Repository};
use super::checkout::CheckoutCopy;
use super::fetch::Chart;
use super::tool::ToolAccess;
use crate::fetched::RemoteContent;
use manifest::problem::{Problems, plain};
use manifest::value::Value;
use manifest::yaml;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The copies with the dependencies of charts, by the folders of the charts.
#[derive(Debug, Default)]
pub struct CompletedCharts(Mutex<HashMap<PathBuf, Arc<CheckoutCopy>>>);

impl CompletedCharts {
    /// Returns the copy that another rendering of the chart in this folder has completed.
    pub(super) fn existing(&self, chart: &Path) -> Option<Arc<CheckoutCopy>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(chart)
            .cloned()
    }

    /// Returns the copy with the missing dependencies of the chart in this folder; `None` if it can have none: all are in repositories,
    /// and none is allowed.
    pub(super) fn get(
        &self,
        chart: &Path,
        missing: &[String],
        repository: &Repository,
        source: &Source,
    ) -> Result<Option<Arc<CheckoutCopy>>, Problems> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(copy) = all.get(chart) {
            return Ok(Some(copy.clone()));
        }
        let Some(copy) = complete(chart, missing, repository, source)? else {
            return Ok(None);
        };
        let copy = Arc::new(copy);
        all.insert(chart.to_owned(), copy.clone());
        Ok(Some(copy))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Dependency {
    name: String,
    version: String,
    repository: String,
}

impl Dependency {
    /// Returns the path of a chart in this repository, relative to the chart that depends on it.
    fn path(&self) -> Option<&str> {
        self.repository.strip_prefix("file://")
    }

    /// Adds the dependency to the copy of the chart.
    fn add(&self, copy: &CheckoutCopy, source: &Source) -> Result<(), Problems> {
        let charts = match copy.repository.follow(&copy.folder.join("charts")) {
            Ok(LinkTarget::Folder(charts)) => charts,
            Ok(_) => return Err(Problems::one("charts/ is not a folder: remove it")),
            Err(why) => return Err(Problems::one(format!("charts/: {why}"))),
        };
        if let Some(path) = self.path() {
            return self.package(path, &charts, copy, source);
        }
        let is_address = |scheme| self.repository.starts_with(scheme);
        if !["https://", "http://", "oci://"].into_iter().any(is_address) {
            return Err(Problems::one(format!(
                "{:?} is not the address of a chart repository: run 'helm dependency update', and commit charts/",
                self.repository
            )));
        }
        let chart = Chart::fetch(
            &RemoteContent::Chart {
                repository: self.repository.clone(),
                name: self.name.clone(),
                version: self.version.clone(),
            },
            source,
        )?;
        let stored = File::create_new(charts.join(chart.file)).and_then(|mut file| file.write_all(&chart.archive));
        stored.map_err(|error| not_stored(&error))
    }

    /// Packages a chart of this repository: Helm does that for a chart that depends only on it, so that it checks the version.
    fn package(&self, path: &str, charts: &Path, copy: &CheckoutCopy, source: &Source) -> Result<(), Problems> {
        let failed = |why: &str| Problems::one(format!("{}: {why}", self.repository));
        let folder = match copy.repository.follow(&copy.folder.join(path)) {
            Ok(LinkTarget::Folder(folder)) => folder,
            Ok(_) => return Err(failed("there is no such folder: correct the path")),
            Err(why) => return Err(failed(&why)),
        };
        Problems::or(copy.repository.links_out_of(&folder), ())?;
        let parent = copy.scratch.path().join("parent");
        let address = format!("file://{}", folder.display());
        let dependency = serde_json::json!({
            "name": self.name,
            "version": self.version,
            "repository": address,
        });
        let chart =
            serde_json::json!({"apiVersion": "v2", "name": "parent", "version": "0.0.0", "dependencies": [dependency]});
        fs::create_dir(&parent)
            .and_then(|()| fs::write(parent.join("Chart.yaml"), chart.to_string()))
            .map_err(|error| not_stored(&error))?;
        let access = ToolAccess::index(copy.scratch.path()).with_writes();
        if let Err(error) = source.tools.run("helm", BUILD, &parent, None, &access)? {
            // The next dependency needs the folder.
            let _ = fs::remove_dir_all(&parent);
            // Messages have paths relative to the folder in which Helm ran.
            let below = folder.strip_prefix(copy.scratch.path()).unwrap_or(&folder);
            let shown = format!("file://../{}", below.display());
            return Err(failed(&error.line().replace(&shown, &self.repository)));
        }
        let moved = fs::read_dir(parent.join("charts")).and_then(|packages| {
            for package in packages {
                let package = package?;
                fs::rename(package.path(), charts.join(package.file_name()))?;
            }
            fs::remove_dir_all(&parent)
        });
        moved.map_err(|error| not_stored(&error))
    }
}

fn not_stored(error: &io::Error) -> Problems {
    Problems::one(format!("it cannot be stored in a copy of charts/: {}", plain(error)))
}

fn complete(
    chart: &Path,
    missing: &[String],
    repository: &Repository,
    source: &Source,
) -> Result<Option<CheckoutCopy>, Problems> {
    let read = |files: [&str; 2]| -> Result<Vec<Dependency>, Problems> {
        let mut all = Vec::new();
        for file in files {
            all.extend(dependencies_in(&chart.join(file), repository)?);
        }
        Ok(all)
    };
    let locked = read(["Chart.lock", "requirements.lock"])?;
    let is_locked = !locked.is_empty();
    let known = if is_locked {
        locked
    } else {
        read(["Chart.yaml", "requirements.yaml"])?
    };
    let is_local = |name: &String| {
        known
            .iter()
            .any(|dependency| dependency.name == *name && dependency.path().is_some())
    };
    if source.remotes.is_empty() && !missing.iter().any(is_local) {
        return Ok(None);
    }
    let chart = chart.canonicalize().unwrap_or_else(|_| chart.to_owned());
    let copy = CheckoutCopy::new(&chart, repository)?;
    if is_locked {
        check_lock(&copy, source)?;
    }
    // Adding reports a folder that cannot be created.
    let _ = fs::create_dir(copy.folder.join("charts"));
    let mut problems = Vec::new();
    for name in missing {
        let mut of_name: Vec<&Dependency> = known.iter().filter(|dependency| dependency.name == *name).collect();
        of_name.dedup();
        if of_name.is_empty() {
            problems.push(format!("Chart.lock: {name} is missing: {UPDATE}"));
        }
        for dependency in of_name {
            if let Err(problem) = dependency.add(&copy, source) {
                let lines = problem.into_lines().into_iter();
                problems.extend(lines.map(|line| format!("Chart.yaml: {name}: {line}")));
            }
        }
    }
    Problems::or(problems, Some(copy))
}

/// The remedy for dependencies that are missing, or locked in other versions.
const UPDATE: &str = "run 'helm dependency update', and commit Chart.lock";

/// The arguments with which Helm adds dependencies, as for Argo CD.
const BUILD: [&str; 4] = ["dependency", "build", ".", "--skip-refresh"];

/// Checks that the lock file was made for these dependencies. Helm does that before it misses the network.
fn check_lock(copy: &CheckoutCopy, source: &Source) -> Result<(), Problems> {
    let access = ToolAccess::index(copy.repository.root());
    match source.tools.run("helm", BUILD, &copy.folder, None, &access)? {
        Err(error) if error.contains("out of sync") => Err(Problems::one(format!(
            "Chart.lock: it does not match the dependencies in Chart.yaml: {UPDATE}"
        ))),
        _ => Ok(()),
    }
}

/// Reads the field `dependencies` of a file.
fn dependencies_in(file: &Path, repository: &Repository) -> Result<Vec<Dependency>, Problems> {
    let shown = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some(text) = repository
        .read_text(file)
        .map_err(|why| Problems::one(format!("{shown}: {why}")))?
    else {
        return Ok(Vec::new());
    };
    let mut dependencies = Vec::new();
    for document in yaml::documents(&text).take(1) {
        let document = document.map_err(|error| Problems::one(format!("{shown}:{}: {}", error.line, error.message)))?;
        let Some(Value::List(all)) = document.value.as_map().and_then(|fields| fields.get("dependencies")) else {
            continue;
        };
        for fields in all.iter().filter_map(Value::as_map) {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            dependencies.push(Dependency {
                name: text("name"),
                version: text("version"),
                repository: text("repository"),
            });
        }
    }
    Ok(dependencies)
}
