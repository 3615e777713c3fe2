//! Limits the tools that run at a time, whatever starts them: each process of a user that renders takes one of a few locks. The tools of
//! an AppProject take at most all but one of them. Otherwise, Applications whose charts never end, or whose remote bases do not answer,
//! would stop those of all other projects: Argo CD ends a request that waits, and then shows the error for an hour.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::getuid;
use primitives::hash;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process;
use std::thread;
use std::time::Duration;

/// The maximum number of tools of a user that run at a time: each may use the memory limit of a tool.
pub(crate) const TOOLS_AT_A_TIME: usize = 4;

/// The maximum number of tools of an AppProject that run at a time.
const TOOLS_OF_A_PROJECT: usize = TOOLS_AT_A_TIME - 1;

/// The interval at which a process looks for a free lock: any of them may become free first.
const INTERVAL: Duration = Duration::from_millis(10);

/// The right to run a tool, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Slot {
    _lock: Flock<File>,
    _lock_of_project: Option<Flock<File>>,
}

impl Slot {
    /// Waits until fewer than [`TOOLS_AT_A_TIME`] tools run, and fewer than [`TOOLS_OF_A_PROJECT`] of this AppProject. The locks are in a
    /// folder in `parent`.
    pub(crate) fn acquire(parent: &Path, project: Option<&str>) -> io::Result<Self> {
        let folder = parent.join(format!(".argocd-ocm-cmp-slots-{}", getuid()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let lock_of_project = project.map(|project| {
            let locks = Locks {
                folder: &folder,
                prefix: format!("{}-", hash::hash([project], 40)),
                count: TOOLS_OF_A_PROJECT,
            };
            match locks.try_any()? {
                Some(lock) => Ok(lock),
                // The slot of the tool that has ended is free, too: first those of other projects look for one, at the next interval.
                // Otherwise a project with many tools would take each slot that it frees.
                None => locks.wait().inspect(|_| thread::sleep(INTERVAL * 2)),
            }
        });
        let lock_of_project = lock_of_project.transpose()?;
        let locks = Locks {
            folder: &folder,
            prefix: String::new(),
            count: TOOLS_AT_A_TIME,
        };
        loop {
            if let Some(lock) = locks.try_any()? {
                return Ok(Self {
                    _lock: lock,
                    _lock_of_project: lock_of_project,
                });
            }
            thread::sleep(INTERVAL);
        }
    }
}

/// Locks of which each allows one tool.
struct Locks<'a> {
    folder: &'a Path,
    /// The start of the names of their files; a number follows.
    prefix: String,
    count: usize,
}

impl Locks<'_> {
    fn open(&self, number: usize) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(self.folder.join(format!("{}{number}", self.prefix)))
    }

    /// Takes a free lock, if there is one.
    fn try_any(&self) -> io::Result<Option<Flock<File>>> {
        for number in 0..self.count {
            match Flock::lock(self.open(number)?, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Some(lock)),
                Err((_, Errno::EWOULDBLOCK)) => {}
                Err((_, error)) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Waits for one of the locks. Processes that wait are spread over them, so that few of them look for a free one.
    fn wait(&self) -> io::Result<Flock<File>> {
        let number = usize::try_from(process::id()).unwrap_or_default() % self.count;
        loop {
            match Flock::lock(self.open(number)?, FlockArg::LockExclusive) {
                Ok(lock) => return Ok(lock),
                Err((_, Errno::EINTR)) => {}
                Err((_, error)) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tempfile::TempDir;

    #[test]
    fn one_more_waits_until_another_ends() {
        for (project, at_a_time) in [(None, TOOLS_AT_A_TIME), (Some("shop"), TOOLS_OF_A_PROJECT)] {
            let parent = TempDir::new().expect("a folder");
            let acquire = || Slot::acquire(parent.path(), project).expect("a slot");
            let slots: Vec<Slot> = (0..at_a_time).map(|_| acquire()).collect();
            let (acquired, wait) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(|| acquired.send(acquire()).expect("the test waits"));
                assert!(
                    wait.recv_timeout(Duration::from_millis(50)).is_err(),
                    "all slots are taken"
                );
                drop(slots);
                assert!(wait.recv_timeout(Duration::from_secs(120)).is_ok());
            });
        }
    }

    #[test]
    fn tools_of_a_project_leave_a_slot_to_others() {
        let parent = TempDir::new().expect("a folder");
        let acquire = |project| Slot::acquire(parent.path(), Some(project)).expect("a slot");
        let slots: Vec<Slot> = (0..TOOLS_OF_A_PROJECT).map(|_| acquire("shop")).collect();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| acquire("shop"));
            thread::sleep(Duration::from_millis(50));
            assert!(!waiting.is_finished());
            drop(acquire("bank"));
            drop(slots);
        });
    }
}
