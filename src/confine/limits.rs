//! Limits on the resources of a tool.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most files that a tool may have open at a time.
const OPEN_FILES: u64 = 4096;

/// The most processes and threads of a tool: a Go program has a thread for each core, and some more.
const PROCESSES: u64 = 1024;

/// Limits on the resources of a tool, each for every process that the tool starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The most bytes of writable memory; `None` for no limit.
    pub memory: Option<u64>,
    /// The most bytes of a file that the tool writes; `None` for no limit.
    pub file_size: Option<u64>,
    /// The most processor time, of all threads together; `None` for no limit.
    pub processor_time: Option<Duration>,
}

impl Limits {
    /// Applies the limits to this process and those that it starts. A limit that is lower already stays.
    pub(super) fn apply(&self) {
        // RLIMIT_DATA and not RLIMIT_AS: Go reserves address space far beyond the memory that it uses.
        lower(Resource::RLIMIT_DATA, self.memory);
        lower(Resource::RLIMIT_FSIZE, self.file_size);
        lower(
            Resource::RLIMIT_CPU,
            self.processor_time.map(|time| time.as_secs().saturating_add(1)),
        );
        lower(Resource::RLIMIT_NOFILE, Some(OPEN_FILES));
        lower(Resource::RLIMIT_CORE, Some(0));
    }
}

/// Limits the number of processes, which the kernel counts for the user: only for use in a user namespace that counts for itself.
pub(super) fn limit_processes() {
    lower(Resource::RLIMIT_NPROC, Some(PROCESSES));
}

/// Returns true if this release of Linux counts processes for each user namespace (5.14 and newer), rather than for the user on the
/// whole machine, where other containers of the same user count too.
pub(super) fn counts_processes_by_namespace(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (major, minor) >= (5, 14)
}

/// The kernel refuses to raise a limit, and a limit that cannot be set is no reason not to render.
fn lower(resource: Resource, limit: Option<u64>) {
    if let (Some(limit), Ok((_, hard))) = (limit, getrlimit(resource)) {
        let limit = limit.min(hard);
        let _ = setrlimit(resource, limit, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_by_namespace_since_linux_5_14() {
        for release in ["5.14.0-70.el9", "6.18.5", "10.0"] {
            assert!(counts_processes_by_namespace(release), "{release}");
        }
        for release in ["5.13.19", "4.18.0-553.el8", "", "x"] {
            assert!(!counts_processes_by_namespace(release), "{release}");
        }
    }
}
