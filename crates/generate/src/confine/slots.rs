//! Limits the tools that run at a time, whatever starts them: each process of a user that renders takes one of a few locks.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::getuid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process;

/// The maximum number of tools of a user that run at a time: each may use the memory limit of a tool.
pub(crate) const TOOLS_AT_A_TIME: usize = 4;

/// The right to run a tool, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Slot {
    _lock: Flock<File>,
}

impl Slot {
    /// Waits until fewer than [`TOOLS_AT_A_TIME`] tools run. The locks are in a folder in `parent`.
    pub(crate) fn acquire(parent: &Path) -> io::Result<Self> {
        let folder = parent.join(format!(".argocd-ocm-cmp-slots-{}", getuid()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let open = |slot: usize| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600);
            options.open(folder.join(slot.to_string()))
        };
        for slot in 0..TOOLS_AT_A_TIME {
            match Flock::lock(open(slot)?, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Self { _lock: lock }),
                Err((_, Errno::EWOULDBLOCK)) => {}
                Err((_, error)) => return Err(error.into()),
            }
        }
        // Processes that wait are spread over the locks, so that no timer is needed.
        let slot = usize::try_from(process::id()).unwrap_or_default() % TOOLS_AT_A_TIME;
        loop {
            match Flock::lock(open(slot)?, FlockArg::LockExclusive) {
                Ok(lock) => return Ok(Self { _lock: lock }),
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
    use std::thread;
    use std::time::Duration;
    use tempfile::TempDir;

    #[test]
    fn one_more_waits_until_another_ends() {
        let parent = TempDir::new().expect("a folder");
        let acquire = || Slot::acquire(parent.path()).expect("a slot");
        let slots: Vec<Slot> = (0..TOOLS_AT_A_TIME).map(|_| acquire()).collect();
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
