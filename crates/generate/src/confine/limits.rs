//! Resource limits of a tool.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The maximum number of open files of a tool.
const OPEN_FILES: u64 = 4096;

/// The maximum number of processes and threads of a tool: a Go program has one thread per core, and a few more.
const PROCESSES: u64 = 1024;

/// The limited memory. It is not the address space, of which Go reserves far more than it uses.
const MEMORY: Resource = Resource::RLIMIT_DATA;

/// The resource limits of a tool, for each of its processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// The maximum number of bytes of writable memory; `None` for no limit.
    pub memory: Option<u64>,
    /// The maximum number of bytes of a written file; `None` for no limit.
    pub file_size: Option<u64>,
    /// The maximum processor time of all threads together; `None` for no limit.
    pub processor_time: Option<Duration>,
}

impl ResourceLimits {
    /// Applies the limits to this process and its children. Existing lower limits are kept.
    pub(super) fn apply(&self) {
        // The limit of the plugin itself is not that of a tool.
        if let Ok((_, hard)) = getrlimit(MEMORY) {
            let _ = setrlimit(MEMORY, hard, hard);
        }
        lower(MEMORY, self.memory);
        lower(Resource::RLIMIT_FSIZE, self.file_size);
        lower(
            Resource::RLIMIT_CPU,
            self.processor_time.map(|time| time.as_secs().saturating_add(1)),
        );
        lower(Resource::RLIMIT_NOFILE, Some(OPEN_FILES));
        lower(Resource::RLIMIT_CORE, Some(0));
    }
}

/// Limits the writable memory of this process, but not that of the tools that it starts: they have [`ResourceLimits`].
pub fn limit_own_memory(bytes: u64) {
    if let Ok((_, hard)) = getrlimit(MEMORY) {
        let _ = setrlimit(MEMORY, bytes.min(hard), hard);
    }
}

/// Limits the number of processes, which the kernel counts per user: call it only in a user namespace with its own count.
pub(super) fn limit_processes() {
    lower(Resource::RLIMIT_NPROC, Some(PROCESSES));
}

/// Returns true if this Linux release counts processes per user namespace (5.14 and newer) rather than per user on the whole
/// machine, which would include other containers of the same user.
pub(super) fn counts_processes_by_namespace(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (major, minor) >= (5, 14)
}

/// Lowers a limit. The kernel refuses to raise one; failures are ignored, because they should not prevent rendering.
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
    fn linux_counts_processes_per_namespace_since_5_14() {
        for release in ["5.14.0-70.el9", "6.18.5", "10.0"] {
            assert!(counts_processes_by_namespace(release), "{release}");
        }
        for release in ["5.13.19", "4.18.0-553.el8", "", "x"] {
            assert!(!counts_processes_by_namespace(release), "{release}");
        }
    }
}
