//! Programs built from a Go module that pins them, and kept in a cache.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aws_lc_rs::digest;

use crate::{folder, progress};

/// The interval of progress messages during a build.
const STILL_BUILDING: Duration = Duration::from_secs(60);

/// The option of builds without debug information. The linker drops it anyway, and the compiler needs a tenth of its time for it.
const NO_DEBUG_INFO: &str = "-gcflags=all=-dwarf=false";

/// A variable that the linker sets to the version of a program, so that it reports the version of a release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) variable: &'static str,
    /// The required module with that version.
    pub(crate) module: &'static str,
    pub(crate) digits: Digits,
}

/// The part of a version such as `v1.36.3` that is written to a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Digits {
    All,
    Major,
    Minor,
}

/// A text in a file of a required module that is replaced before a build, because a process on this machine cannot run without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement {
    pub(crate) module: &'static str,
    pub(crate) file: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// A Go module with its folder in the cache: one of this crate's `go` folder, or a checkout.
#[derive(Debug)]
pub(crate) struct GoModule {
    source: PathBuf,
    built: PathBuf,
    stamps: &'static [Stamp],
    replacements: &'static [Replacement],
    /// The options of every Go command that loads the module.
    options: Vec<String>,
    /// The options of builds.
    build_options: Vec<String>,
}

impl GoModule {
    /// Creates the module of that name.
    ///
    /// The name of its folder in the cache is a hash of its files, so changed pins cause a new build.
    pub(crate) fn new(name: &str, cache: &Path, stamps: &'static [Stamp]) -> Result<Self> {
        Self::pinned(name, name, cache, stamps)
    }

    /// Creates the module of that name, built with these replacements.
    pub(crate) fn with_replacements(name: &str, cache: &Path, replacements: &'static [Replacement]) -> Result<Self> {
        let source = sources().join(name);
        Ok(Self {
            built: folder_in(cache, name, &key(&[&source], &format!("{replacements:?}"))?)?,
            source,
            stamps: &[],
            replacements,
            options: Vec::new(),
            build_options: Vec::new(),
        })
    }

    /// Creates the module of that name with the pins in `go-VERSION.mod`, built with the tag `NAMEVERSION`, where the version
    /// has `_` instead of `.`.
    pub(crate) fn of_version(name: &str, version: &str, cache: &Path, stamps: &'static [Stamp]) -> Result<Self> {
        Ok(Self {
            options: vec![format!("-modfile=go-{version}.mod")],
            build_options: vec![format!("-tags={name}{}", version.replace('.', "_"))],
            ..Self::pinned(name, &format!("{name}-{version}"), cache, stamps)?
        })
    }

    fn pinned(name: &str, folder: &str, cache: &Path, stamps: &'static [Stamp]) -> Result<Self> {
        let source = sources().join(name);
        let built = folder_in(cache, folder, &key(&[&source], "")?)?;
        Ok(Self {
            source,
            built,
            stamps,
            replacements: &[],
            options: Vec::new(),
            build_options: Vec::new(),
        })
    }

    /// Creates the module of a Git checkout, with the programs of our own module of that name added to it as packages.
    ///
    /// The checkout is not changed. The name of its folder in the cache is a hash of its commit, its changes and our programs.
    pub(crate) fn checkout(name: &str, checkout: &Path, programs: &[&str], cache: &Path) -> Result<Self> {
        let source = fs::canonicalize(checkout).with_context(|| format!("no checkout at {}", checkout.display()))?;
        let state = format!(
            "{}{}",
            git(&source, &["rev-parse", "HEAD"])?,
            git(&source, &["diff", "HEAD"])?
        );
        let ours: Vec<PathBuf> = programs
            .iter()
            .map(|program| sources().join(name).join(program))
            .collect();
        let ours: Vec<&Path> = ours.iter().map(PathBuf::as_path).collect();
        let built = folder_in(cache, &format!("{name}-checkout"), &key(&ours, &state)?)?;
        let mut replaced = serde_json::Map::new();
        for folder in ours {
            let package = source.join(folder.file_name().unwrap_or_default());
            for file in folder.read_dir()? {
                let file = file?.path();
                let added = package.join(file.file_name().unwrap_or_default());
                replaced.insert(added.to_string_lossy().into_owned(), file.to_string_lossy().into());
            }
        }
        let overlay = built.join("overlay.json");
        fs::write(&overlay, serde_json::json!({ "Replace": replaced }).to_string())?;
        Ok(Self {
            source,
            stamps: &[],
            replacements: &[],
            options: Vec::new(),
            build_options: vec![format!("-overlay={}", overlay.display())],
            built,
        })
    }

    /// Returns the program of that name, and builds it if it is not in the cache.
    pub(crate) fn build(&self, file: &str, package: &str) -> Result<PathBuf> {
        let program = self.built.join(file);
        if program.is_file() {
            return Ok(program);
        }
        let lock = File::create(self.built.join("lock"))?;
        if lock.try_lock().is_err() {
            progress(&format!("waiting for another process that builds {file} …"));
            lock.lock()?;
        }
        // Another process may have built it while this one waited for the lock.
        if !program.is_file() {
            let started = Instant::now();
            progress(&format!("building {file} …"));
            // Renamed only when complete, so that an interrupted build leaves no program.
            let unfinished = self.built.join(format!(".{file}"));
            let _still_building = Reminder::new(format!("building {file} …"));
            let target = unfinished.to_string_lossy();
            let flags = self.linker_flags()?;
            let mut arguments = vec!["-buildvcs=false", NO_DEBUG_INFO, "-ldflags", &flags, "-o", &target];
            let replaced = self.replace()?;
            arguments.extend(self.build_options.iter().chain(&replaced).map(String::as_str));
            arguments.push(package);
            self.go(&["build"], &arguments)?;
            fs::rename(&unfinished, &program)?;
            progress(&format!("building {file} … {} s", started.elapsed().as_secs()));
        }
        Ok(program)
    }

    /// Copies the modules with replacements, applies these, and returns the option of a build that uses the copies.
    fn replace(&self) -> Result<Option<String>> {
        let modules: BTreeSet<&str> = self.replacements.iter().map(|replacement| replacement.module).collect();
        if modules.is_empty() {
            return Ok(None);
        }
        let mut requirements = fs::read_to_string(self.source.join("go.mod"))?;
        for (number, module) in modules.into_iter().enumerate() {
            let copy = self.built.join(format!("module{number}"));
            if copy.exists() {
                fs::remove_dir_all(&copy)?;
            }
            folder::copy(Path::new(&self.folder_of(module)?), &copy)?;
            let replacements = self.replacements.iter();
            for Replacement { file, from, to, .. } in replacements.filter(|replacement| replacement.module == module) {
                let path = copy.join(file);
                let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
                ensure!(text.matches(from).count() == 1, "{}: not once: {from}", path.display());
                // Go's module cache is read-only, and so are the copies.
                fs::remove_file(&path)?;
                fs::write(&path, text.replacen(from, to, 1))?;
            }
            requirements.extend(["\nreplace ", module, " => ", &*copy.to_string_lossy(), "\n"]);
        }
        let file = self.built.join("go.mod");
        fs::write(&file, requirements)?;
        fs::copy(self.source.join("go.sum"), self.built.join("go.sum"))?;
        Ok(Some(format!("-modfile={}", file.display())))
    }

    fn linker_flags(&self) -> Result<String> {
        let mut flags = "-s -w".to_owned();
        for stamp in self.stamps {
            let version = self.go(&["list"], &["-m", "-f", "{{.Version}}", stamp.module])?;
            let mut numbers = version.trim_start_matches('v').split('.');
            let value = match stamp.digits {
                Digits::All => &version,
                Digits::Major => numbers.next().unwrap_or_default(),
                Digits::Minor => numbers.nth(1).unwrap_or_default(),
            };
            flags.extend([" -X ", stamp.variable, "=", value]);
        }
        Ok(flags)
    }

    /// Returns the folder with the source of a module that this one requires.
    pub(crate) fn folder_of(&self, module: &str) -> Result<PathBuf> {
        let locate = ["-m", "-f", "{{.Dir}}", module];
        let mut folder = self.go(&["list"], &locate)?;
        if folder.is_empty() {
            // The programs are in our cache, but Go's own was cleaned.
            self.go(&["mod", "download"], &[module])?;
            folder = self.go(&["list"], &locate)?;
        }
        ensure!(!folder.is_empty(), "go has no folder of {module}");
        Ok(PathBuf::from(folder))
    }

    fn go(&self, subcommand: &[&str], arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("go");
        command.current_dir(&self.source);
        command.args(subcommand).args(&self.options).args(arguments);
        // A go.work above the repository must not affect the build. The module says which version of Go it needs.
        command.env("GOWORK", "off").env("GOTOOLCHAIN", "auto");
        let what = format!("go {} {}", subcommand.join(" "), arguments.join(" "));
        output_of(command, &format!("{what} in {}", self.source.display()))
    }
}

/// Returns the folder with our modules.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("go")
}

/// Creates the folder of a module in the cache.
fn folder_in(cache: &Path, name: &str, key: &str) -> Result<PathBuf> {
    let folder = cache.join(format!("{name}-{key}"));
    fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    Ok(folder)
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.current_dir(folder).args(arguments);
    output_of(command, &format!("git {} in {}", arguments.join(" "), folder.display()))
}

fn output_of(mut command: Command, what: &str) -> Result<String> {
    let output = command.output().with_context(|| format!("failed to run {what}"))?;
    ensure!(
        output.status.success(),
        "{what} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Returns sixteen hexadecimal digits that change with the files of the folders, and with the state.
fn key(folders: &[&Path], state: &str) -> Result<String> {
    let mut content = digest::Context::new(&digest::SHA256);
    content.update(state.as_bytes());
    for folder in folders {
        let mut files = Vec::new();
        files_below(folder, &mut files)?;
        files.sort();
        for file in files {
            content.update(file.strip_prefix(folder)?.to_string_lossy().as_bytes());
            content.update(&fs::read(&file)?);
        }
    }
    let mut start = [0; 8];
    start.copy_from_slice(&content.finish().as_ref()[..8]);
    Ok(format!("{:016x}", u64::from_be_bytes(start)))
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files_below(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Repeats a message until it is dropped, so that a long build does not look like a hang.
struct Reminder {
    _done: mpsc::Sender<()>,
}

impl Reminder {
    fn new(line: String) -> Self {
        let (done, wait) = mpsc::channel::<()>();
        thread::spawn(move || {
            let started = Instant::now();
            while wait.recv_timeout(STILL_BUILDING) == Err(RecvTimeoutError::Timeout) {
                progress(&format!("{line} {} s so far", started.elapsed().as_secs()));
            }
        });
        Self { _done: done }
    }
}
