//! Confinement of helm and kustomize: limits on what they use, and walls around what they reach.
//!
//! A chart or kustomization is a program that a tenant wrote, so a tool that renders one gets no more than it needs. The program
//! starts itself again as a supervisor ([`supervise`]), which confines itself, starts the tool, and waits for it:
//!
//! - The supervisor leads a process group. It kills the group when the process that started it ends.
//! - Resource limits bound memory, the size of files, processor time, open files and, where they count for this tool alone,
//!   processes.
//! - User, mount, PID, IPC and network namespaces: the tool sees only the files that it may use, no `/proc`, and no network
//!   unless it is allowed.
//! - Landlock: the same rules for files and TCP connections, and no signals or abstract sockets to processes outside.
//!
//! The kernel or a seccomp profile may refuse namespaces or Landlock. Each is used where it is available, and the tool runs
//! without the other. [`Confinement::probe`] tells what is in force.

mod files;
mod limits;
mod namespaces;
mod supervisor;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, geteuid, mkdtemp};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

pub use limits::Limits;
pub use supervisor::supervise;

/// The first argument of the program as a supervisor. It is no command of the command line: nobody types it.
const SUPERVISOR: &str = "confined";

/// The walls of the kernel to use. The limits and the process group are always used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Namespaces and Landlock, each where it is available.
    #[default]
    All,
    /// Landlock only.
    Landlock,
    /// Namespaces only.
    Namespaces,
    /// Neither.
    None,
}

impl Isolation {
    fn has_namespaces(self) -> bool {
        matches!(self, Self::All | Self::Namespaces)
    }

    fn has_landlock(self) -> bool {
        matches!(self, Self::All | Self::Landlock)
    }
}

impl FromStr for Isolation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "landlock" => Ok(Self::Landlock),
            "namespaces" => Ok(Self::Namespaces),
            "none" => Ok(Self::None),
            _ => Err(format!(
                "{text:?} is not an isolation: use all, landlock, namespaces or none"
            )),
        }
    }
}

/// Files and folders that a confined tool may use, with everything below them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Readable.
    pub read: Vec<PathBuf>,
    /// Readable, and programs there can be started.
    pub run: Vec<PathBuf>,
    /// Readable and writable.
    pub write: Vec<PathBuf>,
}

/// What a tool is confined to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Files within reach.
    pub reach: Reach,
    /// True if the tool may use the network.
    pub network: bool,
    /// Limits on resources.
    pub limits: Limits,
    /// The walls of the kernel to use.
    pub isolation: Isolation,
    /// An empty folder, in which the supervisor builds the file system of the tool. Beside it the supervisor reports what is in
    /// force, where the tool cannot write.
    root: PathBuf,
    /// The process that starts the supervisor, which kills the tool when that process ends.
    parent: i32,
}

/// What is in force for a confined process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// User, mount, PID, IPC and network namespaces; or why not.
    pub namespaces: Option<Missing>,
    /// Landlock rules for files; or why not.
    pub landlock_files: Option<Missing>,
    /// Landlock rules for TCP; or why not.
    pub landlock_network: Option<Missing>,
}

/// Begins the line of the log about a tool that the kernel does not confine. `doctor` looks for it.
pub const UNCONFINED: &str = "helm and kustomize are not confined and can reach ";

/// Returns what the last line about an unconfined tool in a log says that it can reach. The log may quote the line.
#[must_use]
pub fn reached_in_log(log: &str) -> Option<&str> {
    let (_, rest) = log.rsplit_once(UNCONFINED)?;
    rest.split_once(':').map(|(reached, _)| reached)
}

/// Why a wall is missing.
pub type Missing = String;

impl Confinement {
    /// A confinement for one tool that this process starts. `root` is an empty folder that nothing else uses, in a folder where
    /// nothing else is called like it.
    #[must_use]
    pub fn new(reach: Reach, network: bool, limits: Limits, isolation: Isolation, root: PathBuf) -> Self {
        let parent = Pid::this().as_raw();
        Self {
            reach,
            network,
            limits,
            isolation,
            root,
            parent,
        }
    }

    /// Returns the command that runs `program` under this confinement: `launcher` is this program.
    ///
    /// # Errors
    /// When a path is not UTF-8.
    pub fn command(&self, launcher: &Path, program: &Path) -> io::Result<Command> {
        let mut command = self.supervisor(launcher)?;
        command.arg(program);
        Ok(command)
    }

    fn supervisor(&self, launcher: &Path) -> io::Result<Command> {
        let mut command = Command::new(launcher);
        command.arg0(env!("CARGO_PKG_NAME"));
        command
            .args([SUPERVISOR, &serde_json::to_string(self)?])
            .process_group(0);
        Ok(command)
    }

    /// Starts the supervisor without a tool, and returns what is in force there.
    ///
    /// # Errors
    /// When it cannot be started or ends with an error.
    pub fn probe(&self, launcher: &Path) -> io::Result<InForce> {
        let output = self.supervisor(launcher)?.env_clear().output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("{}: {}", output.status, why.trim())));
        }
        self.reported()
    }

    /// Returns what was in force for the tool that was run.
    ///
    /// # Errors
    /// When the supervisor ended before it said so.
    pub fn reported(&self) -> io::Result<InForce> {
        let report = File::open(self.report())?.take(REPORT_SIZE);
        Ok(serde_json::from_reader(report)?)
    }

    fn report(&self) -> PathBuf {
        self.root.with_extension("in-force")
    }
}

/// The most bytes of a report of the supervisor: three reasons, each a line.
const REPORT_SIZE: u64 = 64 << 10;

/// Tries what is in force for a tool that may use nothing.
///
/// # Errors
/// When there is no temporary folder, or the program cannot be started again.
pub fn in_force() -> io::Result<InForce> {
    let scratch = Scratch::new(&std::env::temp_dir())?;
    let root = scratch.folder("root")?;
    let confinement = Confinement::new(Reach::default(), false, Limits::default(), Isolation::All, root);
    confinement.probe(&this_program())
}

/// Returns this program, to be started again; it is found even after an upgrade has replaced the file.
#[must_use]
pub fn this_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Kills a child that leads a process group, with all of the group.
pub fn kill_group(child: &mut Child) {
    if let Ok(leader) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
    }
    let _ = child.kill();
}

/// A private folder for one run of a tool, which is removed with its contents when this is dropped.
///
/// A process that is killed leaves its folder behind. The lock tells such a folder from one that is in use, and the next [`Scratch`]
/// beside it removes it: otherwise they would fill the volume of a sidecar that runs for months.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: Flock<File>,
}

/// Begins the names of the folders.
const SCRATCH: &str = concat!(env!("CARGO_PKG_NAME"), "-");

/// The age at which a folder without a lock was left behind: many times what it takes to lock a new one.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

impl Scratch {
    /// Creates an empty folder below `parent` that only this user can use, and removes those that ended processes left there.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn new(parent: &Path) -> io::Result<Self> {
        let path = mkdtemp(&parent.join(format!("{SCRATCH}XXXXXX")))?;
        let lock = lock(&path)?;
        if let Ok(now) = lock.metadata().and_then(|it| it.modified()) {
            remove_abandoned(parent, now);
        }
        Ok(Self { path, _lock: lock })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a folder in it.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        std::fs::create_dir(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Locks a folder for this process alone. The lock ends with the process.
fn lock(folder: &Path) -> io::Result<Flock<File>> {
    Flock::lock(File::open(folder)?, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}

/// Removes folders of a [`Scratch`] that no process uses any more, by the time of the file system. What cannot be removed stays.
fn remove_abandoned(parent: &Path, now: SystemTime) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(SCRATCH.as_bytes()) {
            continue;
        }
        // Of the entry itself: a link is not followed.
        let Ok(found) = entry.metadata() else { continue };
        let is_old = found
            .modified()
            .is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > ABANDONED));
        if found.is_dir() && found.uid() == geteuid().as_raw() && is_old {
            // Held until it is removed, so that two processes do not remove it at once.
            if let Ok(_lock) = lock(&entry.path()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Display for InForce {
    /// One line for each wall.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (wall, missing) in [
            ("namespaces (files, processes, network)", &self.namespaces),
            ("Landlock (files)", &self.landlock_files),
            ("Landlock (TCP connections)", &self.landlock_network),
        ] {
            match missing {
                None => writeln!(f, "{wall}: in force")?,
                Some(why) => writeln!(f, "{wall}: missing: {why}")?,
            }
        }
        Ok(())
    }
}

impl InForce {
    /// Returns true if other processes and files outside the reach of a tool are out of its reach.
    #[must_use]
    pub fn confines_files(&self) -> bool {
        self.namespaces.is_none() || self.landlock_files.is_none()
    }

    /// Returns true if a tool cannot open TCP connections.
    #[must_use]
    pub fn confines_network(&self) -> bool {
        self.namespaces.is_none() || self.landlock_network.is_none()
    }

    /// Returns what a tool can reach for lack of walls: a line for the log that begins with [`UNCONFINED`]. `network` is true for a
    /// tool that may use the network.
    #[must_use]
    pub fn lack(&self, network: bool) -> Option<String> {
        let reached = match (self.confines_files(), self.confines_network() || network) {
            (true, true) => return None,
            (false, true) => "files and processes of others",
            (true, false) => "the network",
            (false, false) => "files and processes of others and the network",
        };
        Some(format!(
            "{UNCONFINED}{reached}: see why by `argocd-ocm-cmp confinement` in the same container"
        ))
    }
}

/// The arguments of the supervisor, where the program was started as one.
fn supervised(arguments: impl IntoIterator<Item = OsString>) -> Option<(OsString, Vec<OsString>)> {
    let mut arguments = arguments.into_iter().skip(1);
    let first = arguments.next()?;
    if first != OsStr::new(SUPERVISOR) {
        return None;
    }
    Some((arguments.next()?, arguments.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_supervisors_argument_starts_a_supervisor() {
        let of = |words: &[&str]| supervised(words.iter().map(OsString::from));
        assert_eq!(of(&["argocd-ocm-cmp"]), None);
        assert_eq!(of(&["argocd-ocm-cmp", "generate", "confined"]), None);
        assert_eq!(of(&["argocd-ocm-cmp", "confined"]), None);
        let tool = vec![OsString::from("helm"), OsString::from("template")];
        assert_eq!(
            of(&["argocd-ocm-cmp", "confined", "{}", "helm", "template"]),
            Some((OsString::from("{}"), tool))
        );
    }

    #[test]
    fn refuses_unknown_isolation() {
        assert_eq!("landlock".parse(), Ok(Isolation::Landlock));
        let told = "docker".parse::<Isolation>().unwrap_err();
        assert_eq!(
            told,
            "\"docker\" is not an isolation: use all, landlock, namespaces or none"
        );
    }

    #[test]
    fn either_wall_confines_files_and_network() {
        let missing = || Some("no".to_owned());
        let only_namespaces = InForce {
            landlock_files: missing(),
            landlock_network: missing(),
            ..InForce::default()
        };
        assert!(only_namespaces.confines_files() && only_namespaces.confines_network());
        assert_eq!(only_namespaces.lack(false), None);
        let old_landlock = InForce {
            namespaces: missing(),
            landlock_network: missing(),
            ..InForce::default()
        };
        assert!(old_landlock.confines_files() && !old_landlock.confines_network());
        assert_eq!(old_landlock.lack(true), None, "it may use the network");
        let lack = old_landlock.lack(false).expect("it must not use the network");
        assert!(
            lack.starts_with(UNCONFINED) && lack.contains("can reach the network: see"),
            "{lack}"
        );
        let neither = InForce {
            landlock_files: missing(),
            ..old_landlock.clone()
        };
        let lack = neither.lack(true).expect("files are within reach");
        assert!(lack.contains("can reach files and processes of others: see"), "{lack}");
        // As argocd-cmp-server logs it.
        let log = format!("level=info msg=\"Plugin command successful\" stderr=\"warning: {lack}\\n\"\nlevel=info\n");
        assert_eq!(reached_in_log(&log), Some("files and processes of others"));
        assert_eq!(reached_in_log("level=info\n"), None);
        assert!(
            old_landlock
                .to_string()
                .contains("Landlock (TCP connections): missing: no\n")
        );
    }

    #[test]
    fn scratch_folder_is_private_and_removed() {
        use std::os::unix::fs::PermissionsExt as _;
        let parent = tempfile::tempdir().expect("a scratch folder");
        let scratch = Scratch::new(parent.path()).expect("a folder");
        let path = scratch.path().to_owned();
        std::fs::write(scratch.folder("home").expect("a folder").join("file"), "text").expect("a file");
        let mode = path.metadata().expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn folders_of_killed_processes_are_removed_and_those_in_use_are_not() {
        let parent = tempfile::tempdir().expect("a scratch folder");
        let killed = parent.path().join("argocd-ocm-cmp-killed");
        let foreign = parent.path().join("argocd-ocm-plan");
        let link = parent.path().join("argocd-ocm-cmp-link");
        std::fs::create_dir_all(killed.join("tmp")).expect("a folder");
        std::fs::create_dir(&foreign).expect("a folder");
        std::os::unix::fs::symlink(&foreign, &link).expect("a link");
        let used = Scratch::new(parent.path()).expect("a folder");
        drop(Scratch::new(parent.path()).expect("a folder"));
        assert!(killed.exists(), "it may be a new one that is not locked yet");
        for folder in [killed.as_path(), used.path(), &foreign] {
            let folder = File::open(folder).expect("a folder");
            let changed = folder.metadata().and_then(|it| it.modified()).expect("a time");
            folder.set_modified(changed - ABANDONED * 2).expect("a time");
        }
        drop(Scratch::new(parent.path()).expect("a folder"));
        assert!(!killed.exists());
        assert!(used.path().exists() && foreign.exists() && link.is_symlink());
    }
}
