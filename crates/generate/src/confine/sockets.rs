//! A seccomp filter that refuses sockets: no network, and no connection to other programs of the container, such as other plugins.

use nix::libc;
use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter, apply_filter};
use std::collections::BTreeMap;

/// The bit that marks system calls of the x32 ABI, which x86-64 kernels may accept too.
const X32: i64 = 0x4000_0000;

/// Refuses to create sockets in this process and its children, also by `io_uring`. Returns the reason if the kernel has no filters.
pub(super) fn forbid() -> Option<String> {
    filter()
        .err()
        .map(|error| format!("the kernel refuses a seccomp filter: {error}"))
}

fn filter() -> Result<(), Error> {
    let calls = [libc::SYS_socket, libc::SYS_socketpair, libc::SYS_io_uring_setup];
    let rules: BTreeMap<i64, Vec<_>> = calls
        .into_iter()
        .flat_map(|call| [call, call | X32])
        .map(|call| (call, Vec::new()))
        .collect();
    let refuse = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)
}
