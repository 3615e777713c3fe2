//! Processes that end with this one, each with its own log.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The interval of readiness checks of a starting process.
const POLL: Duration = Duration::from_millis(50);

/// The time limit for a process to become ready. Only reached on failures.
const START_DEADLINE: Duration = Duration::from_secs(180);

/// The time limit for a process to end after SIGTERM.
const END_DEADLINE: Duration = Duration::from_secs(60);

/// A running program. Dropping it kills the program and waits for its end.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    child: Mutex<Child>,
}

/// Returns a command that runs `program` with a controlled environment, and that the kernel kills when this process dies.
///
/// It inherits only `PATH` and the settings of Go's garbage collector: `home` replaces the home and the temporary folder, so that no
/// kubeconfig, Git configuration or credential of the user is read.
pub fn command(program: impl AsRef<OsStr>, home: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command.env_clear();
    for name in ["PATH", "GOGC", "GOMEMLIMIT"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.envs([("HOME", home), ("TMPDIR", home)]);
    command
}

/// Returns a command that starts `command` again, a second after each failure, as a kubelet does with a container.
pub(crate) fn restarting(command: &Command, home: &Path) -> Command {
    let mut shell = self::command("sh", home);
    shell.args(["-c", r#"until "$@"; do sleep 1; done"#, "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

/// Returns the command `controller` of the program under test with these arguments, listening on `port` of 127.0.0.1.
pub fn controller(
    program: impl AsRef<OsStr>,
    home: &Path,
    arguments: &[&str],
    port: u16,
    kubeconfig: impl AsRef<OsStr>,
) -> Command {
    let mut command = command(program, home);
    command.arg("controller").args(arguments);
    command.arg(format!("--bind-address=127.0.0.1:{port}"));
    command.arg("--kubeconfig").arg(kubeconfig);
    command
}

impl Process {
    /// Starts `command`, made by [`command`], with all its output in `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // In a separate process group, so that Ctrl-C on a terminal reaches only this process, which stops the others in order.
        command.process_group(0);
        let child = spawn(command).with_context(|| format!("failed to start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            log: log.to_owned(),
            child: Mutex::new(child),
        })
    }

    /// Returns the file with all output of the process.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    /// Waits until `probe` returns true. Fails at once, with the end of the log, if the process ends.
    pub async fn until_ready(&self, probe: impl AsyncFn() -> bool) -> Result<()> {
        let started = Instant::now();
        while !probe().await {
            if let Some(status) = self.ended()? {
                bail!("{} ended with {status}:\n{}", self.name, tail(&self.log, 20)?);
            }
            if started.elapsed() > START_DEADLINE {
                bail!(
                    "{} is not ready after {START_DEADLINE:?}:\n{}",
                    self.name,
                    tail(&self.log, 20)?
                );
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Waits until a server listens on `port` of 127.0.0.1.
    pub async fn until_listening(&self, port: u16) -> Result<()> {
        self.until_ready(async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok())
            .await
    }

    /// Sends SIGTERM, as Kubernetes does, and waits until the process has ended.
    pub async fn terminate(&self) -> Result<ExitStatus> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        // A process that has ended keeps its id until it is waited for, as here.
        kill_process(id.context("a process has an id")?, Signal::TERM)?;
        let signalled = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if signalled.elapsed() > END_DEADLINE {
                bail!(
                    "{} has not ended after {END_DEADLINE:?}:\n{}",
                    self.name,
                    tail(&self.log, 20)?
                );
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Stops the process until the result is dropped.
    pub(crate) fn pause(&self) -> Result<Pause> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        let id = id.context("a process has an id")?;
        kill_process(id, Signal::STOP)?;
        Ok(Pause(id))
    }

    fn ended(&self) -> io::Result<Option<ExitStatus>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait()
    }
}

/// A pause of a process.
pub(crate) struct Pause(Pid);

impl Drop for Pause {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Not if it has already ended: another process may have its id.
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        // SIGKILL instead of SIGTERM: the state of these processes is deleted, and an API server takes seconds to terminate. The
        // group includes the children of the process, such as a plugin in the middle of its work.
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
    }
}

/// Starts a process from a thread that lives as long as this process.
///
/// The kernel sends the parent-death signal when the *thread* that started a process ends, and a test's threads end with the test
/// while a hub that several tests share has to continue.
fn spawn(command: Command) -> io::Result<Child> {
    type Request = (Command, mpsc::Sender<io::Result<Child>>);
    static SPAWNER: OnceLock<mpsc::Sender<Request>> = OnceLock::new();

    let spawner = SPAWNER.get_or_init(|| {
        let (requests, inbox) = mpsc::channel::<Request>();
        thread::spawn(move || {
            for (mut command, reply) in inbox {
                let _ = reply.send(command.spawn());
            }
        });
        requests
    });
    let (reply, answer) = mpsc::channel();
    spawner.send((command, reply)).map_err(io::Error::other)?;
    answer.recv().map_err(io::Error::other)?
}

/// Returns the last `lines` lines of a log, each cut to a readable length.
pub(crate) fn tail(log: &Path, lines: usize) -> io::Result<String> {
    const TAIL_BYTES: i64 = 64 * 1024;
    const LINE_MAX: usize = 500;
    let mut file = File::open(log)?;
    if file.metadata()?.len() > TAIL_BYTES.unsigned_abs() {
        file.seek(SeekFrom::End(-TAIL_BYTES))?;
    }
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end);
    let all: Vec<String> = end.lines().map(|line| line.chars().take(LINE_MAX).collect()).collect();
    Ok(all[all.len().saturating_sub(lines)..].join("\n"))
}

/// Ends a Go program, unless it has ended, and returns the functions of its goroutines that have waited for a lock for minutes. All
/// goroutines are in its log then.
pub(crate) fn locked_goroutines(id: u32, program: &str, log: &Path) -> Result<BTreeSet<String>> {
    let folder = PathBuf::from(format!("/proc/{id}"));
    if fs::read_to_string(folder.join("cmdline"))?.contains(program) {
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        kill_process(pid.context("a process has an id")?, Signal::QUIT)?;
        let signalled = Instant::now();
        // An ended process has no command line, and stays until its parent waits for it.
        while fs::read(folder.join("cmdline")).is_ok_and(|words| !words.is_empty())
            && signalled.elapsed() < END_DEADLINE
        {
            thread::sleep(POLL);
        }
    }
    Ok(waiting_for_locks(&String::from_utf8_lossy(&fs::read(log)?)))
}

/// Returns the functions of each goroutine in a dump that has waited for a lock for minutes, of one for each place.
fn waiting_for_locks(dump: &str) -> BTreeSet<String> {
    const FUNCTIONS: usize = 16;
    let goroutines = dump.split("\n\n").filter_map(|block| {
        let (state, frames) = block.trim_start().split_once('\n')?;
        let (_, state) = state.strip_prefix("goroutine ")?.split_once('[')?;
        let is_waiting =
            state.contains(" minutes") && ["sync.", "semacquire"].iter().any(|lock| state.starts_with(lock));
        let functions = frames.lines().filter_map(|line| Some(line.rsplit_once('(')?.0));
        is_waiting.then(|| functions.take(FUNCTIONS).collect::<Vec<_>>().join("\n"))
    });
    goroutines.collect()
}

/// Returns the status code and the body of the answer of an HTTP server on this machine.
pub async fn http_get(port: u16, path: &str) -> Result<(u16, String)> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    timeout(START_DEADLINE, connection.read_to_string(&mut answer)).await??;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
    let code = head.split(' ').nth(1).context("an answer has a code")?.parse()?;
    Ok((code, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goroutines_that_wait_for_a_lock_are_found_in_a_dump() {
        let goroutine = |number: u8, state: &str| {
            format!(
                "goroutine {number} gp=0x{number} m=nil [{state}]:\nsync.(*RWMutex).Lock(0x{number})\n\t/go/rwmutex.go:155 +0x12\nmain.main()\n\n"
            )
        };
        let waits = "sync.RWMutex.Lock, 5 minutes";
        let dump: String = [(1, waits), (2, waits), (3, "select, 5 minutes"), (4, "sync.Cond.Wait")]
            .map(|(number, state)| goroutine(number, state))
            .concat();
        let expected = BTreeSet::from(["sync.(*RWMutex).Lock\nmain.main".to_owned()]);
        assert_eq!(waiting_for_locks(&format!("a line of the log\n\n{dump}")), expected);
    }
}
