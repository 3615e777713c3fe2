//! Namespaces: a file system, processes and a network of its own for a tool, where an unprivileged user may create them.

use super::{Confinement, Missing, limits};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chdir, getgid, getuid, pivot_root};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Moves this process into namespaces of its own, and those that it starts into a PID namespace. The process must have one thread.
/// Returns why that was not possible; the process is then where it was.
pub(super) fn enter(confinement: &Confinement) -> Option<Missing> {
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
    // Without its own number the user would be nobody, of whom Git trusts no repository.
    let mapped = fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")));
    let narrowed = mapped.and_then(|()| narrow(confinement));
    if by_namespace {
        limits::limit_processes();
    }
    narrowed
        .err()
        .map(|error| format!("a file system of its own cannot be mounted: {error}"))
}

/// Makes a file system of the paths that are within reach the root, and everything else unreachable, `/proc` included.
fn narrow(confinement: &Confinement) -> io::Result<()> {
    let nothing: Option<&str> = None;
    let working = std::env::current_dir()?;
    // Nothing of what follows reaches the namespace of others.
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)?;
    let root = &confinement.root;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), root, Some("tmpfs"), flags, Some("size=1m,mode=755"))?;
    let reach = &confinement.reach;
    for (paths, writable) in [(&reach.run, false), (&reach.read, false), (&reach.write, true)] {
        for path in paths {
            show(path, root, writable)?;
        }
    }
    chdir(root)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    // A probe may have a folder out of reach.
    chdir(&working).or_else(|_| chdir("/"))?;
    Ok(())
}

/// Mounts a path below `root` under the same name; one that does not exist is left out.
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
        // The flags of a mount that this user did not make can only be added to; where it has others the rights of files hold.
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        let kept = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        let _ = mount(nothing, &target, nothing, flags | kept, nothing)
            .or_else(|_| mount(nothing, &target, nothing, flags | kept | MsFlags::MS_NOEXEC, nothing));
    }
    Ok(())
}

/// The path of `path` below `root`.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_placed_below_the_root() {
        assert_eq!(
            below(Path::new("/tmp/root"), Path::new("/usr/bin")),
            Path::new("/tmp/root/usr/bin")
        );
    }
}
