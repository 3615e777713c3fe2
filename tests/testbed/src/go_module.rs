//! Programs built from a Go module that pins them, and kept in a cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aws_lc_rs::digest;

use crate::progress;

/// The interval of progress messages during a build.
const STILL_BUILDING: Duration = Duration::from_secs(60);

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

/// One of the modules in this crate's `go` folder, with its folder in the cache.
#[derive(Debug)]
pub(crate) struct GoModule {
    source: PathBuf,
    built: PathBuf,
    stamps: &'static [Stamp],
}

impl GoModule {
    /// Creates the module of that name.
    ///
    /// The name of its folder in the cache is a hash of its files, so changed pins cause a new build.
    pub(crate) fn new(name: &str, cache: &Path, stamps: &'static [Stamp]) -> Result<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("go").join(name);
        let key = key(&source)?;
        let built = cache.join(format!("{name}-{key}"));
        fs::create_dir_all(&built).with_context(|| format!("failed to create {}", built.display()))?;
        Ok(Self { source, built, stamps })
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
            self.go(&[
                "build",
                "-buildvcs=false",
                "-ldflags",
                &self.linker_flags()?,
                "-o",
                &target,
                package,
            ])?;
            fs::rename(&unfinished, &program)?;
            progress(&format!("building {file} … {} s", started.elapsed().as_secs()));
        }
        Ok(program)
    }

    fn linker_flags(&self) -> Result<String> {
        let mut flags = "-s -w".to_owned();
        for stamp in self.stamps {
            let version = self.go(&["list", "-m", "-f", "{{.Version}}", stamp.module])?;
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
        let locate = ["list", "-m", "-f", "{{.Dir}}", module];
        let mut folder = self.go(&locate)?;
        if folder.is_empty() {
            // The programs are in our cache, but Go's own was cleaned.
            self.go(&["mod", "download", module])?;
            folder = self.go(&locate)?;
        }
        ensure!(!folder.is_empty(), "go has no folder of {module}");
        Ok(PathBuf::from(folder))
    }

    fn go(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("go");
        // A go.work above the repository must not affect the build.
        command.current_dir(&self.source).args(arguments).env("GOWORK", "off");
        let output = command.output().context("failed to run go")?;
        ensure!(
            output.status.success(),
            "go {} in {} failed:\n{}",
            arguments.join(" "),
            self.source.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// Returns sixteen hexadecimal digits that change with the files of the module.
fn key(module: &Path) -> Result<String> {
    let mut files = Vec::new();
    files_below(module, &mut files)?;
    files.sort();
    let mut content = digest::Context::new(&digest::SHA256);
    for file in files {
        content.update(file.strip_prefix(module)?.to_string_lossy().as_bytes());
        content.update(&fs::read(&file)?);
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
