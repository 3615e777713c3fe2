//! Runs a rendering tool from the PATH, with a minimal environment and limits on time and output. Its error messages become one
//! line that is the same on every run.

use super::fetch::Fetched;
use super::helm::missing_dependencies;
use super::pipes::{Pipe, read_all};
use super::redact::{self, Inputs};
use super::remote::Remotes;
use crate::confine::{AllowedPaths, Confinement, Isolation, ResourceLimits, Scratch, Slot, kill_group};
use crate::fetched::{DOWNLOAD, FOLDER, RemoteContent};
use crate::settings::Env;
use manifest::problem::{Problems, plain};
use manifest::text::shortened;
use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{self, Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// The settings for running tools.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The path of this program, which runs as the supervisor that confines tools; without it they run with the permissions of
    /// this process.
    pub launcher: Option<PathBuf>,
    /// The maximum number of bytes of memory of each tool; `None` for no limit.
    pub memory: Option<u64>,
    /// The kernel isolation of the tools.
    pub isolation: Isolation,
    /// The environment of the tools.
    pub env: Vec<(String, String)>,
    /// The maximum duration of each run.
    pub timeout: Duration,
    /// The maximum number of bytes of output; `None` for no limit.
    pub max_size: Option<u64>,
    /// The AppProject, which may run fewer tools at a time than all together; `None` if unknown.
    pub project: Option<String>,
}

/// Returns true if a rendering tool inherits the environment variable. kustomize writes variables into ConfigMaps if a folder asks
/// for it.
fn is_given_to_render(name: &str) -> bool {
    matches!(
        name.to_ascii_uppercase().as_str(),
        "PATH" | "LANG" | "GOGC" | "GOMEMLIMIT"
    )
}

/// The variables in which Git passes the repository and the index of its command to a hook, such as `pre-commit`. A fetch with them would
/// check out the remote content there.
const OF_A_GIT_COMMAND: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
];

/// Returns true if a program that fetches inherits the environment variable: also those to reach a server.
fn is_given_to_fetch(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    is_given_to_render(name)
        || matches!(
            upper.as_str(),
            "HOME"
                | "TMPDIR"
                | "HTTP_PROXY"
                | "HTTPS_PROXY"
                | "NO_PROXY"
                | "SSL_CERT_FILE"
                | "SSL_CERT_DIR"
                | "SSH_AUTH_SOCK"
        )
        || upper.starts_with("GIT_") && !OF_A_GIT_COMMAND.contains(&&*upper)
}

/// The heap growth at which a tool collects garbage, in percent of the live heap. The tools are Go programs that run for some
/// hundredths of a second: at Go's default of 100, collection takes a tenth of that and saves almost no memory.
const COLLECT_AT: &str = "400";

/// The maximum length of an error message: enough to find the fault, and short enough for an Application's status.
const MAX_ERROR_LENGTH: usize = 8000;

/// The maximum number of bytes read of the error output.
const MAX_STDERR: u64 = 1 << 20;

/// The prefix of kustomize's warnings in the error output.
const WARNING: &str = "# Warning: ";

/// The folders of programs and libraries.
const SYSTEM_PATHS: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/etc/alternatives",
];

/// The configuration that any program reads.
const CONFIGURATION_PATHS: [&str; 2] = ["/etc/ld.so.cache", "/etc/localtime"];

/// The configuration that programs read to fetch.
const NETWORK_CONFIGURATION_PATHS: [&str; 14] = [
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/group",
    "/etc/gitconfig",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssh",
];

const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// The files and folders of a home directory that Git and the download read.
const HOME_PATHS: [&str; 8] = [
    ".docker",
    ".gitconfig",
    ".git-credentials",
    ".netrc",
    ".ssh",
    ".config",
    ".cache",
    ".local/share",
];

/// The maximum number of bytes of a file written by a tool, such as a pack of a Git repository.
const FILE_SIZE: u64 = 1 << 30;

/// The folder of kustomize's plugins in a home directory.
const PLUGINS: &str = ".config/kustomize";

#[expect(clippy::struct_excessive_bools, reason = "each is another permission")]
pub(super) struct ToolAccess<'a> {
    /// The repository, or the folder for fetched content.
    folder: &'a Path,
    /// True if it may write into the folder.
    writes: bool,
    /// True if it fetches: it gets the network, and the settings and credentials of its user.
    fetches: bool,
    /// True if it may start programs of the folder, and of the user's plugins.
    starts_programs: bool,
    /// True if its messages may quote values of Secrets.
    reads_manifests: bool,
    /// The programs that stand in for others, and the fetched content.
    fetched: Option<&'a Fetched>,
}

impl<'a> ToolAccess<'a> {
    /// Returns the needs of Helm.
    pub(super) fn helm(repository: &'a Path) -> Self {
        Self {
            folder: repository,
            writes: false,
            fetches: false,
            starts_programs: false,
            reads_manifests: true,
            fetched: None,
        }
    }

    /// Returns the needs of Helm to read the index of a chart repository.
    pub(super) fn index(folder: &'a Path) -> Self {
        Self {
            reads_manifests: false,
            ..Self::helm(folder)
        }
    }

    /// Returns the needs of Helm to unpack the fetched chart into a folder.
    pub(super) fn unpack(folder: &'a Path, fetched: &'a Fetched) -> Self {
        Self {
            writes: true,
            fetched: Some(fetched),
            ..Self::index(folder)
        }
    }

    /// Returns the needs of kustomize, which starts programs if its options allow that, and writes fetched charts into its folder.
    pub(super) fn kustomize(repository: &'a Path, remotes: &Remotes, options: &[String], fetched: &'a Fetched) -> Self {
        Self {
            writes: !remotes.is_empty(),
            starts_programs: options
                .iter()
                .any(|option| option.starts_with("--enable-exec") || option.starts_with("--enable-alpha-plugins")),
            fetched: Some(fetched),
            ..Self::helm(repository)
        }
    }

    /// Returns the needs of a tool that also writes into the folder.
    pub(super) fn with_writes(self) -> Self {
        Self { writes: true, ..self }
    }

    /// Returns the needs of a program that fetches into a folder.
    pub(super) fn fetch(folder: &'a Path) -> Self {
        Self {
            writes: true,
            fetches: true,
            ..Self::index(folder)
        }
    }
}

/// Returns true if a Go program, or its child, crashed for lack of memory. Starting a thread needs memory too.
fn is_out_of_memory(error_output: &str) -> bool {
    let crash = without_dump(error_output);
    crash.len() < error_output.len()
        && [
            "out of memory",
            "allocate memory",
            "create failed",
            "create new OS thread",
        ]
        .iter()
        .any(|sign| crash.contains(sign))
}

/// Returns the text before the dump of goroutines and registers that a crashing Go program prints.
fn without_dump(error_output: &str) -> &str {
    let is_dump = |line: &str| line.starts_with("goroutine ") && line.contains('[');
    let mut end = 0;
    for line in error_output.split_inclusive('\n') {
        if is_dump(line) {
            return &error_output[..end];
        }
        end += line.len();
    }
    error_output
}

/// Returns the reason why the supervisor did not start the tool, if it could not confine it.
fn refusal(confinement: &Confinement) -> Option<String> {
    if confinement.isolation == Isolation::None {
        return None;
    }
    confinement.reported().ok()?.missing_isolation(confinement.network)
}

/// Returns the last address in an error message that a Go program could not read: `Get "https://…": …`. The message may be quoted.
fn unread_address(error_output: &str) -> Option<String> {
    let is_quote = |char: char| char == '"' || char == '\\';
    let (_, rest) = error_output
        .rsplit_once("Get \"http")
        .or_else(|| error_output.rsplit_once("Get \\\"http"))?;
    let address = rest.split(is_quote).next()?;
    Some(format!("http{address}"))
}

pub(super) struct ToolOutput {
    pub(super) manifests: Vec<u8>,
    /// The warnings, one line each.
    warnings: Vec<String>,
}

impl ToolOutput {
    /// Returns the warnings of a successful run. `command` is the name of the tool in messages.
    pub(super) fn notices(self, command: &str) -> Vec<String> {
        self.warnings.iter().map(|line| format!("{command}: {line}")).collect()
    }
}

/// The error output of a tool that has ended. What the tool lacked is read from its text, because its lines may hide values with the same
/// text.
pub(super) struct ToolError {
    text: String,
    /// The inputs of the tool, whose values of Secrets are hidden, if it reads manifests.
    inputs: Option<Inputs>,
    folder: PathBuf,
    /// The folder of its temporary files.
    scratch: PathBuf,
    status: ExitStatus,
}

impl ToolError {
    /// Returns the error message, in one line. It reads the source to hide values of Secrets, so ask for it only to show it.
    pub(super) fn line(&self) -> String {
        let lines = self.lines().into_iter();
        let complaints: Vec<_> = lines.filter(|line| !line.starts_with(WARNING)).collect();
        if complaints.is_empty() {
            format!("it ended with {}", self.status)
        } else {
            complaints.join(" ")
        }
    }

    /// Returns the lines without the values of Secrets, and without the names of temporary folders.
    fn lines(&self) -> Vec<String> {
        let text = in_order(without_dump(&self.text).lines().collect()).join("\n");
        let text = match &self.inputs {
            Some(inputs) => redact::without_secrets(&text, inputs),
            None => text,
        };
        plain_lines(&text.replace(&*self.scratch.to_string_lossy(), "TMPDIR"), &self.folder)
    }

    /// Returns the content that it lacked, according to a program in the place of Git or Helm.
    pub(super) fn request(&self) -> Option<RemoteContent> {
        RemoteContent::last_in(&self.text)
    }

    /// Returns the address that it could not read.
    pub(super) fn file(&self) -> Option<String> {
        unread_address(&self.text)
    }

    /// Returns the dependencies of a chart that are missing in its folder `charts`.
    pub(super) fn missing_dependencies(&self) -> Vec<String> {
        missing_dependencies(&self.text)
    }

    /// Returns true if the tool printed this text.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.text.contains(text)
    }
}

impl Tools {
    /// Returns the variables that tools need, always with a home directory: without one, helm would search for its plugins and
    /// settings in the chart. If `GOGC` is not set, tools collect garbage later than Go's default.
    pub fn environment(env: &Env) -> Vec<(String, String)> {
        let given = env.iter().filter(|(name, _)| is_given_to_fetch(name));
        let mut env: Vec<_> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !env.iter().any(|(name, home)| name == "HOME" && !home.is_empty()) {
            env.push(("HOME".to_owned(), "/".to_owned()));
        }
        if !env.iter().any(|(name, _)| name == "GOGC") {
            env.push(("GOGC".to_owned(), COLLECT_AT.to_owned()));
        }
        env
    }

    /// Runs the tool `name` in a folder with `input` on standard input. Returns its output, or its error message.
    pub(super) fn run<S: AsRef<OsStr>>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = S>,
        folder: &Path,
        input: Option<&str>,
        access: &ToolAccess<'_>,
    ) -> Result<Result<ToolOutput, ToolError>, Problems> {
        self.run_program(name, &self.find(name)?, arguments, folder, input, access)
    }

    /// Returns the content of an address, which this program reads in another process. It follows redirects to allowed addresses.
    pub(super) fn download(&self, url: &str, remotes: &Remotes) -> Result<Vec<u8>, Problems> {
        self.try_download(url, remotes)?
            .map_err(|error| Problems::one(error.line()))
    }

    /// As [`download`](Self::download), but returns the error of the process that reads the address.
    pub(super) fn try_download(&self, url: &str, remotes: &Remotes) -> Result<Result<Vec<u8>, ToolError>, Problems> {
        let failed = |why: &str| Problems::one(format!("{url} cannot be fetched: {why}"));
        let program = env::current_exe().map_err(|error| failed(&plain(&error)))?;
        let (root, access) = (Path::new("/"), ToolAccess::fetch(Path::new("")));
        let arguments = [DOWNLOAD, url, &remotes.to_string()];
        match self.run_program("the download", &program, arguments, root, None, &access)? {
            Ok(output) if self.max_size.is_some_and(|max| output.manifests.len() as u64 > max) => Err(failed(
                "it is larger than --max-size: ask an administrator to raise it \
                 (ARGOCD_REPO_SERVER_MAX_COMBINED_DIRECTORY_MANIFESTS_SIZE in the sidecar)",
            )),
            outcome => Ok(outcome.map(|output| output.manifests)),
        }
    }

    fn run_program<S: AsRef<OsStr>>(
        &self,
        name: &str,
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        folder: &Path,
        input: Option<&str>,
        access: &ToolAccess<'_>,
    ) -> Result<Result<ToolOutput, ToolError>, Problems> {
        let failed =
            |what: &str, error: &io::Error| Problems::one(format!("{name} cannot be {what}: {}", plain(error)));
        let no_folder = |error| no_temporary_folder(name, &error);
        let parent = env::temp_dir();
        let _slot = Slot::acquire(&parent, self.project.as_deref()).map_err(no_folder)?;
        let scratch = Scratch::new(&parent).map_err(no_folder)?;
        let temporary = scratch.folder("tmp").map_err(|error| failed("started", &error))?;
        let (mut command, confinement) = match &self.launcher {
            Some(launcher) => {
                let root = scratch.folder("root").map_err(|error| failed("started", &error))?;
                let confinement = self.confinement(program, access, &temporary, root);
                let command = confinement.command(launcher, Some(program));
                (command.map_err(|error| failed("started", &error))?, Some(confinement))
            }
            None => (Command::new(program), None),
        };
        let arguments: Vec<S> = arguments.into_iter().collect();
        command
            .process_group(0)
            .args(&arguments)
            .current_dir(folder)
            .env_clear();
        self.set_environment(&mut command, access, &temporary);
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed("started", &error))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        if let (Some(mut stdin), Some(input)) = (stdin, input.map(str::to_owned)) {
            // A tool that fails before it has read all input reports the reason itself.
            thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        }
        let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
            return Err(failed("read", &io::Error::other("its output is no pipe")));
        };
        let enough = self.max_size.map(|max| max.saturating_add(1));
        let mut pipes = [Pipe::new(stdout, enough), Pipe::new(stderr, Some(MAX_STDERR))];
        if !read_all(&mut pipes, self.timeout).map_err(|error| failed("read", &error))? {
            // Its children do not end with it, and may hold its output open.
            kill_group(&mut child);
            let _ = child.wait();
            return Err(Problems::one(format!(
                "{name} has not ended after {} seconds: make the source simpler, or raise --exec-timeout",
                self.timeout.as_secs()
            )));
        }
        let [manifests, complaints] = pipes.map(|pipe| pipe.bytes);
        let status = child.wait().map_err(|error| failed("waited for", &error))?;
        if let Some(why) = confinement.as_ref().and_then(refusal) {
            return Err(Problems::one(why));
        }
        let inputs = || Inputs {
            folder: folder.to_owned(),
            repository: access.folder.to_owned(),
            fetched: access.fetched.map(Fetched::content),
            arguments: arguments.iter().map(|argument| argument.as_ref().to_owned()).collect(),
            input: input.map(str::to_owned),
        };
        let error = ToolError {
            text: String::from_utf8_lossy(&complaints).into_owned(),
            inputs: access.reads_manifests.then(inputs),
            folder: folder.to_owned(),
            scratch: scratch.path().to_owned(),
            status,
        };
        self.outcome(name, manifests, error)
    }

    /// Returns the output of a tool that has ended, or its error message. Output that is too large counts as success: the tool may have
    /// failed because it could not write more, and the caller refuses the output.
    fn outcome(
        &self,
        name: &str,
        manifests: Vec<u8>,
        error: ToolError,
    ) -> Result<Result<ToolOutput, ToolError>, Problems> {
        let is_too_large = self.max_size.is_some_and(|max| manifests.len() as u64 > max);
        if !error.status.success() && !is_too_large {
            if let Some(memory) = self.memory
                && is_out_of_memory(&error.text)
            {
                return Err(Problems::one(format!(
                    "{name} needs more than {memory} bytes of memory: make the source simpler, or ask an administrator to raise \
                     --tool-memory (ARGOCD_OCM_CMP_TOOL_MEMORY in the sidecar)"
                )));
            }
            return Ok(Err(error));
        }
        let lines = error.lines().into_iter();
        let (warnings, others): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with(WARNING));
        let warnings = warnings.into_iter().map(|line| line.replacen(WARNING, "", 1));
        Ok(Ok(ToolOutput {
            manifests,
            warnings: warnings.chain(others).collect(),
        }))
    }

    /// Sets the environment of a tool whose temporary folder is `temporary`.
    fn set_environment(&self, command: &mut Command, access: &ToolAccess<'_>, temporary: &Path) {
        let reaches_all = self.launcher.is_none() || self.reaches_all(access);
        let given = self
            .env
            .iter()
            .filter(|(name, _)| reaches_all || is_given_to_render(name));
        command.envs(given.map(|(name, value)| (name, value)));
        command.env("TMPDIR", temporary);
        // Functions of charts for dates use the zone of the machine; that of Argo CD's images is UTC.
        command.env("TZ", "UTC");
        if !reaches_all && !access.starts_programs {
            command.env("HOME", temporary);
        } else if let Some(home) = self.get_variable("HOME") {
            command.env("HOME", home);
        }
        if let Some(fetched) = access.fetched.filter(|_| self.launcher.is_some()) {
            let mut path = fetched.programs().into_os_string();
            path.extend(
                self.get_variable("PATH")
                    .iter()
                    .flat_map(|path| [OsStr::new(":"), OsStr::new(path)]),
            );
            command.env("PATH", path).env(FOLDER, fetched.content());
            // Helm unpacks the fetched chart.
            if !access.reads_manifests {
                command.env("HELM_PLUGINS", fetched.programs());
            }
        }
        if let Some(memory) = self.memory
            && !self.env.iter().any(|(name, _)| name == "GOMEMLIMIT")
        {
            command.env("GOMEMLIMIT", (memory / 4 * 3).to_string());
        }
    }

    /// Returns true if a tool gets the network, the environment and the home of this process: to fetch, or if the administrator lets
    /// kustomize start programs without isolation.
    fn reaches_all(&self, access: &ToolAccess<'_>) -> bool {
        access.fetches || (access.starts_programs && self.isolation == Isolation::None)
    }

    fn get_variable(&self, name: &str) -> Option<&str> {
        self.env
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    fn program_folders(&self) -> impl Iterator<Item = PathBuf> {
        self.get_variable("PATH").into_iter().flat_map(env::split_paths)
    }

    /// Returns the confinement of `program`: it may write to `temporary`; `root` is for the supervisor.
    fn confinement(&self, program: &Path, access: &ToolAccess<'_>, temporary: &Path, root: PathBuf) -> Confinement {
        let mut run: Vec<PathBuf> = SYSTEM_PATHS.iter().map(PathBuf::from).collect();
        let folders: Vec<PathBuf> = self.program_folders().collect();
        // A folder of programs may contain links to the actual programs; kustomize starts the other two.
        let programs = folders
            .iter()
            .flat_map(|folder| ["git", "helm", "kustomize"].map(|name| folder.join(name)));
        run.extend(programs.filter_map(|program| program.canonicalize().ok()));
        run.extend(program.canonicalize());
        run.extend(folders);
        let mut read: Vec<PathBuf> = CONFIGURATION_PATHS.iter().map(PathBuf::from).collect();
        let mut write = vec![temporary.to_owned()];
        write.extend(DEVICES.iter().map(PathBuf::from));
        let home = self.get_variable("HOME").map_or(Path::new("/"), Path::new);
        if access.fetches {
            read.extend(NETWORK_CONFIGURATION_PATHS.iter().map(PathBuf::from));
            run.extend(HOME_PATHS.iter().map(|name| home.join(name)));
            let names_files = |name: &str| {
                ["SSL_CERT_", "GIT_", "SSH_"]
                    .iter()
                    .any(|start| name.starts_with(start))
            };
            let named = self.env.iter().filter(|(name, _)| names_files(name));
            let words = named.flat_map(|(_, value)| value.split([' ', ':', '=']));
            run.extend(words.filter(|word| word.starts_with('/')).map(PathBuf::from));
        }
        if let Some(fetched) = access.fetched {
            run.extend([fetched.programs()]);
            run.extend(env::current_exe());
            read.push(fetched.content());
        }
        if access.starts_programs {
            run.extend([access.folder.to_owned(), home.join(PLUGINS)]);
        }
        if access.writes {
            write.push(access.folder.to_owned());
        } else {
            read.push(access.folder.to_owned());
        }
        for paths in [&mut read, &mut run, &mut write] {
            paths.retain(|path| path.is_absolute() && path.parent().is_some());
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let limits = ResourceLimits {
            memory: self.memory,
            file_size: Some(FILE_SIZE),
            processor_time: Some(self.timeout.saturating_mul(u32::try_from(cores).unwrap_or(u32::MAX))),
        };
        Confinement::new(
            AllowedPaths { read, run, write },
            self.reaches_all(access),
            limits,
            self.isolation,
            root,
        )
    }

    fn find(&self, name: &str) -> Result<PathBuf, Problems> {
        let mut programs = self.program_folders().map(|folder| folder.join(name));
        let program = programs.find(|program| program.is_file());
        // The program is started in another folder.
        program.and_then(|program| path::absolute(program).ok()).ok_or_else(|| {
            Problems::one(format!(
                "{name} is not on the PATH, but renders this folder: install {name}; in the sidecar, deploy_cmp.yaml provides it"
            ))
        })
    }
}

/// Returns the problem of a tool without a temporary folder.
pub(super) fn no_temporary_folder(name: &str, error: &io::Error) -> Problems {
    Problems::one(format!(
        "{name} needs a temporary folder, which cannot be created in TMPDIR or /tmp: {}: mount a writable volume there",
        plain(error)
    ))
}

/// Returns the lines of a tool's messages without details that differ between runs: paths become relative to the folder, names of
/// temporary folders lose their numbers, and lines of a log their times.
fn plain_lines(error_output: &str, folder: &Path) -> Vec<String> {
    let mut error_output = without_numbers(error_output, "TMPDIR/tmp/kustomize-", "kustomize-");
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut relative = PathBuf::new();
    for ancestor in folder.ancestors().take_while(|path| path.parent().is_some()) {
        error_output = with_path(&error_output, &ancestor.to_string_lossy(), &relative);
        relative.push("..");
    }
    let error_output = shortened(&error_output, MAX_ERROR_LENGTH);
    let lines = error_output.lines().map(str::trim).filter(|line| !line.is_empty());
    // Users of Argo CD cannot pass this flag.
    let lines = lines.filter(|line| !line.starts_with("Use --debug flag"));
    lines
        .map(without_time)
        .map(|line| line.strip_prefix("Error: ").unwrap_or(line).to_owned())
        .collect()
}

/// Removes the time with which Go's log begins a line.
fn without_time(line: &str) -> &str {
    const FORM: &str = "0000/00/00 00:00:00 ";
    let is_of_form = |(byte, form)| {
        if form == b'0' {
            u8::is_ascii_digit(&byte)
        } else {
            byte == form
        }
    };
    match line.split_at_checked(FORM.len()) {
        Some((time, rest)) if time.bytes().zip(FORM.bytes()).all(is_of_form) => rest,
        _ => line,
    }
}

/// Sorts helm's messages about values by location: it lists schema violations in a different order every time, with the reasons
/// of each indented below it.
fn in_order(mut lines: Vec<&str>) -> Vec<&str> {
    for violations in lines.chunk_by_mut(|a, b| is_violation(a) && is_violation(b)) {
        let mut above: Vec<&str> = Vec::new();
        let mut locations = Vec::new();
        for line in &*violations {
            let indent = |line: &str| line.len() - line.trim_start().len();
            above.retain(|other| indent(other) < indent(line));
            above.push(line);
            locations.push(above.clone());
        }
        locations.sort();
        for (line, location) in violations.iter_mut().zip(locations) {
            *line = location.last().expect("each location ends in its line");
        }
    }
    lines
}

fn is_violation(line: &str) -> bool {
    line.trim_start().starts_with("- at '")
}

/// Replaces the absolute path `before` of a folder, and that prefix of paths below it, with `after`.
fn with_path(text: &str, before: &str, after: &Path) -> String {
    let is_of_a_name = |char: char| char.is_alphanumeric() || char == '-' || char == '_';
    let mut pieces = text.split(before);
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let below = piece.strip_prefix('/');
        if whole.ends_with(is_of_a_name) || (below.is_none() && piece.trim_start_matches('.').starts_with(is_of_a_name))
        {
            whole.push_str(before);
            whole.push_str(piece);
            continue;
        }
        let path = match (below, after.as_os_str().is_empty()) {
            (Some(_), true) => String::new(),
            (Some(_), false) => format!("{}/", after.display()),
            (None, true) => ".".to_owned(),
            (None, false) => after.display().to_string(),
        };
        whole.push_str(&path);
        whole.push_str(below.unwrap_or(piece));
    }
    whole
}

/// Replaces each `before`, including following lowercase letters, dashes and digits, with `after`.
fn without_numbers(text: &str, before: &str, after: &str) -> String {
    let mut pieces = text.split(before);
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|char: char| char.is_ascii_lowercase() || char == '-');
        whole.push_str(after);
        whole.push_str(&piece[..piece.len() - rest.len()]);
        whole.push_str(rest.trim_start_matches(|char: char| char.is_ascii_digit()));
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tempfile::TempDir;

    fn tools(timeout: Duration) -> Tools {
        let env = [
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("SECRET".to_owned(), "1234".to_owned()),
            ("TZ".to_owned(), "Europe/Berlin".to_owned()),
            ("GIT_ASKPASS".to_owned(), "/bin/ask".to_owned()),
            ("SSH_AUTH_SOCK".to_owned(), "/agent".to_owned()),
            ("GIT_INDEX_FILE".to_owned(), "/shop/.git/index.lock".to_owned()),
        ];
        tools_with(&env.into(), timeout, Some(100))
    }

    fn run(timeout: Duration, script: &str, input: Option<&str>) -> Result<Result<String, String>, String> {
        // An empty repository: texts of this one would be searched for in the messages, if it mentions Secrets.
        let repository = TempDir::new().expect("a scratch folder");
        let access = ToolAccess::helm(repository.path());
        match tools(timeout).run("sh", ["-c", script], Path::new("."), input, &access) {
            Ok(Ok(written)) => Ok(Ok(String::from_utf8(written.manifests).expect("text"))),
            Ok(Err(error)) => Ok(Err(error.line())),
            Err(problems) => Err(problems.to_string()),
        }
    }

    fn tools_with(env: &Env, timeout: Duration, max_size: Option<u64>) -> Tools {
        Tools {
            launcher: None,
            memory: None,
            isolation: Isolation::All,
            env: Tools::environment(env),
            timeout,
            max_size,
            project: None,
        }
    }

    const LONG: Duration = Duration::from_secs(300);

    #[test]
    fn runs_a_tool_with_input_and_without_our_environment() {
        assert_eq!(run(LONG, "cat; echo b", Some("a\n")), Ok(Ok("a\nb\n".to_owned())));
        assert_eq!(
            run(
                LONG,
                "echo $SECRET $TZ $GIT_ASKPASS $GIT_INDEX_FILE $SSH_AUTH_SOCK",
                None
            ),
            Ok(Ok("UTC /bin/ask /agent\n".to_owned())),
            "its environment is not ours"
        );
        let path = [("PATH".to_owned(), "src".to_owned())];
        let program = tools_with(&path.into(), LONG, None).find("lib.rs");
        assert!(program.is_ok_and(|program| program.is_absolute()));
    }

    #[test]
    fn sets_gogc_unless_configured() {
        let collects_at = |env: Env| {
            let tools = tools_with(&env, LONG, None);
            let value = tools.env.iter().filter(|(name, _)| name == "GOGC");
            value.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(collects_at(Env::new()), [COLLECT_AT]);
        assert_eq!(collects_at([("GOGC".to_owned(), "100".to_owned())].into()), ["100"]);
    }

    #[test]
    fn tool_gets_a_home_outside_the_folder() {
        assert_eq!(run(LONG, "echo $HOME", None), Ok(Ok("/\n".to_owned())));
        let env = [("PATH", "/usr/bin:/bin"), ("HOME", "/home/user")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let folder = Path::new(".");
        let run = tools_with(&env.into(), LONG, None).run(
            "sh",
            ["-c", "echo $HOME"],
            folder,
            None,
            &ToolAccess::helm(folder),
        );
        assert_eq!(
            run.ok().and_then(Result::ok).map(|output| output.manifests),
            Some(b"/home/user\n".to_vec())
        );
    }

    #[test]
    fn what_a_tool_lacked_is_read_although_its_line_hides_it() {
        let repository = TempDir::new().expect("a scratch folder");
        let secret = "kind: Secret\nstringData: {a: redis-main}\n";
        std::fs::write(repository.path().join("a.yaml"), secret).expect("a file");
        let script = "echo 'Error: found in Chart.yaml, but missing in charts/ directory: redis-main, db' >&2; exit 1";
        let access = ToolAccess::helm(repository.path());
        let run = tools(LONG).run("sh", ["-c", script], repository.path(), None, &access);
        let error = run.expect("it starts").err().expect("it fails");
        assert_eq!(error.missing_dependencies(), ["redis-main", "db"]);
        assert!(error.line().contains("[hidden], db"), "{}", error.line());
    }

    #[test]
    fn error_of_a_tool_is_one_line() {
        let script = "echo 'Error: no such\n  thing\n\nUse --debug flag to see more' >&2; exit 1";
        assert_eq!(run(LONG, script, None), Ok(Err("no such thing".to_owned())));
        let folder = env::current_dir().expect("a folder");
        let script = format!("echo \"{}/a.yaml: bad\" >&2; exit 2", folder.display());
        assert_eq!(run(LONG, &script, None), Ok(Err("a.yaml: bad".to_owned())));
        // kustomize logs this before its error.
        let script =
            "echo '2026/12/01 16:00:51 vars that were never replaced: a' >&2; echo 'Error: 2026/12/01' >&2; exit 1";
        assert_eq!(
            run(LONG, script, None),
            Ok(Err("vars that were never replaced: a 2026/12/01".to_owned()))
        );
        assert_eq!(
            run(LONG, "exit 3", None),
            Ok(Err("it ended with exit status: 3".to_owned()))
        );
        let script = "echo \"no $TMPDIR/kustomize-12345/a and $TMPDIR/kustomize-helm-9\" >&2; exit 1";
        assert_eq!(
            run(LONG, script, None),
            Ok(Err("no kustomize-/a and kustomize-helm-".to_owned()))
        );
    }

    #[test]
    fn finds_the_last_address_in_an_error() {
        let quoted = format!("{:?}", "Get \"https://b.example.com/b\": no");
        for (error_output, expected) in [
            (
                "Get \"http://a/b\": x; Get \"https://c.example.com/d.yaml\": y",
                Some("https://c.example.com/d.yaml"),
            ),
            (quoted.as_str(), Some("https://b.example.com/b")),
            ("Get \"file:///etc\"", None),
        ] {
            assert_eq!(unread_address(error_output).as_deref(), expected, "{error_output}");
        }
    }

    #[test]
    fn recognizes_out_of_memory_crashes() {
        let dump = "\ngoroutine 1 [running]:\nruntime.throw()\n";
        for error_output in [
            "runtime: out of memory: cannot allocate 4194304-byte block\nfatal error: out of memory\n",
            "runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\n",
            "runtime/cgo: out of memory in thread_start\nSIGABRT: abort\n",
            "runtime: failed to create new OS thread (have 5 already; errno=11)\n",
        ] {
            assert!(is_out_of_memory(&format!("{error_output}{dump}")), "{error_output}");
            assert!(!is_out_of_memory(error_output), "no crash: {error_output}");
        }
        assert!(!is_out_of_memory(&format!(
            "fatal error: all goroutines are asleep\n{dump}"
        )));
        let error_output = "panic: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n";
        assert_eq!(without_dump(error_output), "panic: index out of range\n\n");
        assert_eq!(without_dump("Error: goroutine pool\n"), "Error: goroutine pool\n");
    }

    #[test]
    fn paths_in_errors_are_relative_to_the_folder() {
        for (error_output, shown) in [
            ("no /a/b/c.yaml", "no ../b/c.yaml"),
            ("'/a' and /a: bad", "'..' and ..: bad"),
            ("/ab /x/a /a-b /a.yaml", "/ab /x/a /a-b /a.yaml"),
            ("in /a.", "in ..."),
        ] {
            assert_eq!(with_path(error_output, "/a", Path::new("..")), shown);
        }
        assert_eq!(with_path("/a/b/c.yaml in /a/b", "/a/b", Path::new("")), "c.yaml in .");
    }

    #[test]
    fn sorts_schema_violations() {
        let error_output =
            "in chart:\nweb:\n- at '/b': none\n  - at '/b/z': one\n  - at '/b/y': two\n- at '/a': 1\ndb:\n- at '': 0";
        let mut lines = vec!["in chart:", "web:", "- at '/a': 1", "- at '/b': none"];
        lines.extend(["  - at '/b/y': two", "  - at '/b/z': one", "db:", "- at '': 0"]);
        assert_eq!(in_order(error_output.lines().collect()), lines);
    }

    #[test]
    fn limits_time_and_output_of_a_tool() {
        let message = run(Duration::from_millis(50), "exec cat /dev/zero > /dev/null", None).unwrap_err();
        assert!(message.contains("sh has not ended after 0 seconds"), "{message}");
        // Its children must not outlive it either, such as the helm of a kustomization, which does not end with it.
        let (done, wait) = mpsc::channel();
        thread::spawn(move || {
            let message = run(Duration::from_millis(50), "sleep 30 & wait", None);
            let _ = done.send(message.is_err());
        });
        assert_eq!(wait.recv_timeout(Duration::from_secs(15)), Ok(true));
        let written = run(LONG, "exec cat /dev/zero", None).unwrap().unwrap();
        assert_eq!(written.len(), 101, "enough to see that it is too much");
    }

    #[test]
    fn missing_tool_is_named() {
        let folder = Path::new(".");
        let message = tools(LONG)
            .run("kustomise", [""; 0], folder, None, &ToolAccess::helm(folder))
            .err()
            .expect("none")
            .to_string();
        assert!(message.starts_with("error: kustomise is not on the PATH"), "{message}");
    }
}
