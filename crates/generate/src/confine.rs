//! Confinement of helm and kustomize: resource limits and kernel isolation.
//!
//! A chart or kustomization is a program written by a tenant, so the tool that renders it gets minimal access. The program starts
//! itself again as a supervisor ([`supervise`]), which confines itself, starts the tool, and waits for it:
//!
//! - The supervisor leads a process group. It kills the group when the process that started it ends.
//! - Resource limits bound memory, file size, processor time, open files and, if they count for this tool alone, processes.
//! - User, mount, PID, IPC and network namespaces: the tool sees only the files that it may use, no `/proc`, and no network
//!   unless it is allowed.
//! - Landlock: the same rules for files, and no signals or abstract sockets to outside processes.
//! - A seccomp filter: no sockets unless the network is allowed.
//!
//! The kernel or a seccomp profile may refuse namespaces or Landlock. Each is used if available. If files or the network remain
//! within reach, the supervisor does not start the tool, unless the administrator accepts that ([`Isolation::None`]).

mod files;
mod limits;
mod namespaces;
mod own_memory;
mod slots;
mod sockets;
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
use std::path::{self, Path, PathBuf};
use std::process::{Child, Command};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

pub use limits::{ResourceLimits, limit_own_memory};
pub use own_memory::generate_in_second_process;
pub(crate) use slots::{Slot, TOOLS_AT_A_TIME};
pub use supervisor::supervise;

/// The first argument of the program as a supervisor. It is an internal command, not part of the command line.
const SUPERVISOR: &str = "confined";

/// The kernel isolation to use. Resource limits and the process group always apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Namespaces and Landlock, each if available.
    #[default]
    All,
    /// Landlock only.
    Landlock,
    /// Namespaces only.
    Namespaces,
    /// Neither: the tool reaches the files and processes of this user. It still gets no sockets, unless the network is allowed.
    None,
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

/// The files and folders that a confined tool may use, including everything below them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedPaths {
    /// Readable paths.
    pub read: Vec<PathBuf>,
    /// Readable paths whose programs may be executed.
    pub run: Vec<PathBuf>,
    /// Readable and writable paths.
    pub write: Vec<PathBuf>,
}

/// The confinement of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The files within reach.
    pub allowed_paths: AllowedPaths,
    /// True if the tool may use the network.
    pub network: bool,
    /// The resource limits.
    pub limits: ResourceLimits,
    /// The kernel isolation to use.
    pub isolation: Isolation,
    /// An empty folder in which the supervisor builds the tool's root file system. The supervisor reports what is in force in a
    /// file beside it, where the tool cannot write.
    root: PathBuf,
    /// The process that starts the supervisor. The supervisor kills the tool when that process ends.
    parent: i32,
}

/// The isolation in force for a confined process: `None` for each that is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveIsolation {
    /// The reason why user, mount, PID, IPC and network namespaces are missing.
    pub namespaces: Option<String>,
    /// The reason why Landlock rules are missing.
    pub landlock: Option<String>,
    /// The reason why the filter against sockets is missing.
    pub sockets: Option<String>,
}

/// The start of the message about a tool that cannot be confined. `doctor` searches for it in the log.
pub const UNCONFINED: &str = "helm and kustomize cannot be confined here, and could reach ";

/// Returns what a tool could reach without confinement, according to the last such line in a log. The log may quote the line.
pub fn reached_in_log(log: &str) -> Option<&str> {
    let (_, rest) = log.rsplit_once(UNCONFINED)?;
    rest.split_once(':').map(|(reached, _)| reached)
}

impl Confinement {
    /// Creates the confinement of one tool that this process starts. `root` is an empty folder reserved for it, with a unique
    /// name in its parent.
    pub fn new(
        allowed_paths: AllowedPaths,
        network: bool,
        limits: ResourceLimits,
        isolation: Isolation,
        root: PathBuf,
    ) -> Self {
        let parent = Pid::this().as_raw();
        Self {
            allowed_paths,
            network,
            limits,
            isolation,
            root,
            parent,
        }
    }

    /// Returns the command that runs a program, if any, under this confinement; `launcher` is this program.
    pub(crate) fn command(&self, launcher: &Path, program: Option<&Path>) -> io::Result<Command> {
        let mut command = Command::new(launcher);
        command.arg0("argocd-ocm-cmp").process_group(0);
        command.args([SUPERVISOR, &serde_json::to_string(self)?]).args(program);
        Ok(command)
    }

    /// Starts the supervisor without a tool, and returns what is in force there.
    ///
    /// # Errors
    /// Returns an error if the supervisor cannot be started or fails.
    pub fn probe(&self, launcher: &Path) -> io::Result<ActiveIsolation> {
        let output = self.command(launcher, None)?.env_clear().output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("{}: {}", output.status, why.trim())));
        }
        self.reported()
    }

    /// Returns what was in force for the last run of the tool.
    ///
    /// # Errors
    /// Returns an error if the supervisor ended before it reported.
    pub fn reported(&self) -> io::Result<ActiveIsolation> {
        let report = File::open(self.report())?.take(REPORT_SIZE);
        Ok(serde_json::from_reader(report)?)
    }

    fn report(&self) -> PathBuf {
        self.root.with_extension("in-force")
    }
}

/// The maximum number of bytes of a supervisor's report: three reasons, one line each.
const REPORT_SIZE: u64 = 64 << 10;

/// Probes what is in force for a tool without any access.
///
/// # Errors
/// Returns an error if there is no temporary folder, or the program cannot start itself.
pub fn in_force() -> io::Result<ActiveIsolation> {
    let scratch = Scratch::new(&std::env::temp_dir())?;
    let root = scratch.folder("root")?;
    let confinement = Confinement::new(
        AllowedPaths::default(),
        false,
        ResourceLimits::default(),
        Isolation::All,
        root,
    );
    confinement.probe(&this_program())
}

/// Returns the path to start this program again; it works even after an upgrade has replaced the file.
pub fn this_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Kills a child that leads a process group, with the whole group.
pub(crate) fn kill_group(child: &mut Child) {
    if let Ok(leader) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
    }
    let _ = child.kill();
}

/// A private folder for one run of a tool, deleted with its contents on drop.
///
/// A killed process leaves its folder behind. A lock distinguishes folders in use from abandoned ones; the next [`Scratch`] in
/// the same parent deletes the latter, which would otherwise fill the volume of a sidecar that runs for months.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: Flock<File>,
}

/// The prefix of the folder names.
const SCRATCH: &str = "argocd-ocm-cmp-";

/// The age from which an unlocked folder counts as abandoned: many times the duration of locking a new one.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

impl Scratch {
    /// Creates an empty folder below `parent` that only this user can access, and deletes abandoned ones there.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub fn new(parent: &Path) -> io::Result<Self> {
        // Tools run in other folders.
        let path = path::absolute(mkdtemp(&parent.join(format!("{SCRATCH}XXXXXX")))?)?;
        let lock = lock(&path)?;
        if let Ok(now) = lock.metadata().and_then(|metadata| metadata.modified()) {
            remove_abandoned(parent, now);
        }
        Ok(Self { path, _lock: lock })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a sub-folder.
    ///
    /// # Errors
    /// Returns an error if the sub-folder cannot be created.
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

/// Deletes abandoned folders of a [`Scratch`], by the time of the file system. Failures are ignored.
fn remove_abandoned(parent: &Path, now: SystemTime) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(SCRATCH.as_bytes()) {
            continue;
        }
        // The metadata of the entry itself: links are not followed.
        let Ok(metadata) = entry.metadata() else { continue };
        let is_old = metadata
            .modified()
            .is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > ABANDONED));
        if metadata.is_dir() && metadata.uid() == geteuid().as_raw() && is_old {
            // The lock is held until the folder is deleted, so that two processes do not delete it concurrently.
            if let Ok(_lock) = lock(&entry.path()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Display for ActiveIsolation {
    /// Writes one line per isolation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (isolation, missing) in [
            ("namespaces (files, processes, network)", &self.namespaces),
            ("Landlock (files)", &self.landlock),
            ("seccomp (sockets)", &self.sockets),
        ] {
            match missing {
                None => writeln!(f, "{isolation}: in force")?,
                Some(why) => writeln!(f, "{isolation}: missing: {why}")?,
            }
        }
        Ok(())
    }
}

impl ActiveIsolation {
    /// Returns true if the tool cannot access other processes or files outside its confinement.
    pub fn confines_files(&self) -> bool {
        self.namespaces.is_none() || self.landlock.is_none()
    }

    /// Returns true if the tool has no network.
    pub fn confines_network(&self) -> bool {
        self.namespaces.is_none() || self.sockets.is_none()
    }

    /// Returns the reason to refuse a tool, which begins with [`UNCONFINED`]. `network` is true if the tool may use the network.
    pub(crate) fn missing_isolation(&self, network: bool) -> Option<String> {
        let reached = match (self.confines_files(), self.confines_network() || network) {
            (true, true) => return None,
            (false, true) => "files and processes of others",
            (true, false) => "the network",
            (false, false) => "files and processes of others and the network",
        };
        Some(format!(
            "{UNCONFINED}{reached}: run this where the kernel has Landlock or user namespaces (`argocd-ocm-cmp confinement` prints what \
             is missing), or set ARGOCD_OCM_CMP_TOOL_ISOLATION=none to trust all sources as Argo CD does"
        ))
    }
}

/// Returns the arguments of the supervisor if the program was started as one.
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
    fn only_the_confined_argument_starts_a_supervisor() {
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
        let message = "docker".parse::<Isolation>().unwrap_err();
        assert_eq!(
            message,
            "\"docker\" is not an isolation: use all, landlock, namespaces or none"
        );
    }

    #[test]
    fn landlock_or_namespaces_confine_files_and_network() {
        let missing = || Some("no".to_owned());
        let only_namespaces = ActiveIsolation {
            landlock: missing(),
            sockets: missing(),
            ..ActiveIsolation::default()
        };
        assert!(only_namespaces.confines_files() && only_namespaces.confines_network());
        assert_eq!(only_namespaces.missing_isolation(false), None);
        let only_landlock = ActiveIsolation {
            namespaces: missing(),
            sockets: missing(),
            ..ActiveIsolation::default()
        };
        assert!(only_landlock.confines_files() && !only_landlock.confines_network());
        assert_eq!(only_landlock.missing_isolation(true), None, "it may use the network");
        let warning = only_landlock
            .missing_isolation(false)
            .expect("it must not use the network");
        assert!(
            warning.starts_with(UNCONFINED) && warning.contains("could reach the network: run"),
            "{warning}"
        );
        let neither = ActiveIsolation {
            landlock: missing(),
            ..only_landlock.clone()
        };
        let warning = neither.missing_isolation(true).expect("files are within reach");
        assert!(
            warning.contains("could reach files and processes of others: run"),
            "{warning}"
        );
        // The format in which argocd-cmp-server logs it.
        let log = format!(
            "level=error msg=\"Plugin command failed\" error=\"exit status 1: error: {warning}\\n\"\nlevel=info\n"
        );
        assert_eq!(reached_in_log(&log), Some("files and processes of others"));
        assert_eq!(reached_in_log("level=info\n"), None);
        assert!(only_landlock.to_string().contains("seccomp (sockets): missing: no\n"));
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
        let of_relative = Scratch::new(Path::new("src")).expect("a folder");
        assert!(of_relative.path().is_absolute());
    }

    #[test]
    fn removes_only_abandoned_scratch_folders() {
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
            let changed = folder
                .metadata()
                .and_then(|metadata| metadata.modified())
                .expect("a time");
            folder.set_modified(changed - ABANDONED * 2).expect("a time");
        }
        drop(Scratch::new(parent.path()).expect("a folder"));
        assert!(!killed.exists());
        assert!(used.path().exists() && foreign.exists() && link.is_symlink());
    }
}
