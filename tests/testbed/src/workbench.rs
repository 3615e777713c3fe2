//! The shared resources of one testbed: the built programs, a folder, a certificate authority.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::certificates::Authority;
use crate::parts::{Part, Parts};
use crate::process::{self, Process};

/// The prefix of every testbed's folder.
const PREFIX: &str = "testbed-";

/// The lock file in a testbed's folder, locked while the testbed runs.
const ALIVE: &str = "alive";

/// The marker file in the folder of a failed testbed, whose logs stay for a day.
const FAILED: &str = "failed";

/// The program of Argo CD that compares Applications.
const APPLICATION_CONTROLLER: &str = "argocd-application-controller";

/// A testbed's folder and programs. Dropping the last reference deletes the folder, unless there was a failure: then the logs
/// stay.
#[derive(Debug)]
pub(crate) struct Workbench {
    pub(crate) parts: Parts,
    pub(crate) authority: Authority,
    folder: TempDir,
    failed: AtomicBool,
    /// The application controllers of Argo CD. Once one did not end a comparison for minutes, as with
    /// <https://github.com/argoproj/argo-cd/issues/28928>: a failure prints what they wait for.
    application_controllers: Mutex<Vec<(u32, PathBuf)>>,
    _alive: File,
}

impl Workbench {
    pub(crate) fn new(parts: Parts) -> Result<Arc<Self>> {
        sweep(&std::env::temp_dir());
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let path = folder.path();
        // Locked before it gets its name, so that the sweep of another testbed never sees it unlocked.
        let unnamed = path.join("starting");
        let alive = File::create(&unnamed)?;
        alive.lock()?;
        fs::rename(unnamed, path.join(ALIVE))?;
        fs::create_dir(path.join("logs"))?;
        let authority = Authority::new(path)?;
        Ok(Arc::new(Self {
            parts,
            authority,
            folder,
            failed: AtomicBool::new(false),
            application_controllers: Mutex::default(),
            _alive: alive,
        }))
    }

    /// Returns the folder of the logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    /// Returns a folder of that name, created if needed.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
        Ok(folder)
    }

    /// Returns a command that runs a part.
    pub(crate) fn command(&self, part: Part) -> Command {
        process::command(self.parts.program(part), self.folder.path())
    }

    /// Returns a command that runs the same program with the same arguments, to start it more than once.
    pub(crate) fn same(&self, command: &Command) -> Command {
        let mut same = process::command(command.get_program(), self.folder.path());
        same.args(command.get_args());
        same
    }

    /// Returns a command that starts `command` again after each failure.
    pub(crate) fn restarting(&self, command: &Command) -> Command {
        process::restarting(command, self.folder.path())
    }

    /// Starts a command with its log in this testbed's folder of logs.
    pub(crate) fn start(&self, name: &str, command: Command) -> Result<Process> {
        let log = self.logs().join(format!("{name}.log"));
        let process = Process::start(name, command, &log)?;
        if name.starts_with(APPLICATION_CONTROLLER) {
            let mut all = self
                .application_controllers
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.push((process.id(), log));
        }
        Ok(process)
    }

    /// Records a failure: prints the end of each log that may contain the reason, once, and keeps the logs.
    pub(crate) fn fail(&self) {
        if self.failed.swap(true, Ordering::Relaxed) {
            return;
        }
        let logs = self.logs();
        let mut files: Vec<PathBuf> = fs::read_dir(&logs)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        files.sort();
        for log in files {
            let name = log.file_stem().unwrap_or_default().to_string_lossy();
            if let Ok(tail) = process::tail(&log, lines_to_print(&name))
                && !tail.is_empty()
            {
                eprintln!("---- {name}\n{tail}");
            }
        }
        let controllers = self
            .application_controllers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (id, log) in &*controllers {
            // After the tails: it ends the controller, whose log then ends with a dump of goroutines.
            for functions in process::locked_goroutines(*id, APPLICATION_CONTROLLER, log).unwrap_or_default() {
                eprintln!("---- {APPLICATION_CONTROLLER} waits in\n{functions}");
            }
        }
        eprintln!("---- all logs are in {}", logs.display());
    }
}

/// Returns the number of lines of a log to print: infrastructure logs are long and rarely contain the reason.
fn lines_to_print(name: &str) -> usize {
    let machinery = ["etcd", "redis", "kube-"];
    if machinery.iter().any(|part| name.starts_with(part)) {
        3
    } else {
        20
    }
}

impl Drop for Workbench {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fail();
        }
        let path = self.folder.path();
        if self.failed.load(Ordering::Relaxed) && File::create(path.join(FAILED)).is_ok() {
            let _ = fs::remove_dir_all(path.join("etcd"));
            self.folder.disable_cleanup(true);
        }
    }
}

/// Removes the folders of testbeds that were killed before their cleanup.
fn sweep(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    const LOGS_STAY: Duration = Duration::from_secs(24 * 60 * 60);
    let Ok(alive) = File::open(folder.join(ALIVE)) else {
        return false;
    };
    if matches!(alive.try_lock(), Ok(()) | Err(TryLockError::Error(_))) {
        let failed = fs::metadata(folder.join(FAILED)).and_then(|failed| failed.modified());
        return failed.map_or(true, |when| when.elapsed().is_ok_and(|age| age > LOGS_STAY));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_only_abandoned_folders() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = |name: &str, files: &[&str]| {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).unwrap();
            for file in files {
                File::create(folder.join(file)).unwrap();
            }
            folder
        };
        let abandoned = folder("testbed-abandoned", &[ALIVE]);
        let running = folder("testbed-running", &[ALIVE]);
        let failed = folder("testbed-failed", &[ALIVE, FAILED]);
        let foreign = folder("testbed-of-another-program", &[]);
        let lock = File::open(running.join(ALIVE)).unwrap();
        lock.lock().unwrap();

        sweep(temporary.path());
        assert!(!abandoned.exists());
        assert!(running.exists() && failed.exists() && foreign.exists());
    }
}
