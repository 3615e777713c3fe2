//! Linux namespaces: a separate file system, process tree and network for a tool, if an unprivileged user may create them.

use super::{Confinement, limits};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chdir, getgid, getuid, pivot_root};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Moves this process into new namespaces, and its children into a new PID namespace. The process must have one thread. On
/// failure returns the reason; the process then stays where it was.
pub(super) fn enter(confinement: &Confinement) -> Option<String> {
    let (user, group) = (getuid(), getgid());
    let mut kinds =
        CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC;
    if !confinement.network {
        kinds |= CloneFlags::CLONE_NEWNET;
    }
    let by_namespace = fs::File::open("/proc/sys/kernel/osrelease")
        .and_then(io::read_to_string)
        .is_ok_and(|release| limits::counts_processes_by_namespace(&release));
    if let Err(error) = unshare(kinds) {
        return Some(format!(
            "the kernel or its seccomp profile refuses user namespaces: {}",
            error.desc()
        ));
    }
    // Without a mapping the user would be `nobody`, for whom Git trusts no repository.
    let mapped = fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")));
    let narrowed = mapped.and_then(|()| narrow(confinement));
    if by_namespace {
        limits::limit_processes();
    }
    narrowed
        .err()
        .map(|error| format!("cannot mount a private file system: {error}"))
}

/// Creates a root file system of the reachable paths and makes everything else inaccessible, including `/proc`.
fn narrow(confinement: &Confinement) -> io::Result<()> {
    let nothing: Option<&str> = None;
    let working = std::env::current_dir()?;
    // Keep the following mounts out of the parent namespace.
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)?;
    let root = &confinement.root;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), root, Some("tmpfs"), flags, Some("size=1m,mode=755"))?;
    let allowed_paths = &confinement.allowed_paths;
    for (paths, writable) in [
        (&allowed_paths.run, false),
        (&allowed_paths.read, false),
        (&allowed_paths.write, true),
    ] {
        for path in paths {
            show(path, root, writable)?;
        }
    }
    chdir(root)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    // The working folder of a probe may be out of reach.
    chdir(&working).or_else(|_| chdir("/"))?;
    Ok(())
}

/// Mounts a path below `root` under the same name, as a bind mount; a missing path is skipped.
fn show(path: &Path, root: &Path, writable: bool) -> io::Result<()> {
    let nothing: Option<&str> = None;
    let Ok(metadata) = fs::metadata(path) else {
        return Ok(());
    };
    let target = below(root, path);
    if metadata.is_dir() {
        fs::create_dir_all(&target)?;
    } else {
        fs::create_dir_all(target.parent().unwrap_or(root))?;
        if !target.exists() {
            File::create(&target)?;
        }
    }
    mount(
        Some(path),
        &target,
        nothing,
        MsFlags::MS_BIND | MsFlags::MS_REC,
        nothing,
    )?;
    if !writable {
        // Flags of a mount by another user can only be extended; if it has others, the permissions of the files apply.
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        let base_flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        let _ = mount(nothing, &target, nothing, flags | base_flags, nothing).or_else(|_| {
            mount(
                nothing,
                &target,
                nothing,
                flags | base_flags | MsFlags::MS_NOEXEC,
                nothing,
            )
        });
    }
    Ok(())
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
