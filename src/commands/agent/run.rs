//! `agent run`: runs a program, and restarts it when its files have changed.
//!
//! As the first process of a container, it waits only for the program that it started: Argo CD's agent starts no other processes,
//! so none are left behind.

use super::Exit;
use crate::cli::RunArgs;
use crate::commands::say;
use crate::restart_on_change::{Contents, FileDigest, FileWatch, Reaction};
use crate::runtime::runtime;
use manifest::problem::{Problems, plain};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runtime::signals::Signals;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::select;
use tokio::signal::unix::SignalKind;
use tokio::time::{sleep, timeout};

/// The maximum delay before files are read again after a change was first read.
pub(super) const REREAD_DELAY: Duration = Duration::from_secs(1);

/// The maximum size of a file. No Secret and no ConfigMap is larger.
const MAX: u64 = 4 << 20;

/// The offset that shells add to the number of a signal that ended a program.
const ENDED_BY: i32 = 128;

pub(super) fn run(args: &RunArgs) -> Result<Exit, Problems> {
    runtime()?.block_on(async {
        let mut supervisor = Supervisor {
            args,
            signals: Signals::install()?,
            watch: FileWatch::default(),
            reported: None,
        };
        supervisor.run().await
    })
}

struct Supervisor<'a> {
    args: &'a RunArgs,
    signals: Signals,
    watch: FileWatch,
    /// The last message about a missing file.
    reported: Option<String>,
}

/// The outcome of a program.
enum Stopped {
    /// The program is to be started again.
    ForRestart,
    /// The program has ended for good.
    ForGood(ExitStatus),
}

impl Supervisor<'_> {
    async fn run(&mut self) -> Result<Exit, Problems> {
        loop {
            if let Some(signal) = self.wait_for_files().await {
                return Ok(exit(ENDED_BY + signal.as_raw_value()));
            }
            let mut program = self.start()?;
            match self.wait_for_end(&mut program).await {
                Ok(Stopped::ForRestart) => self.watch.stopped(),
                Ok(Stopped::ForGood(status)) => return Ok(exit_of(status)),
                Err(error) => return Err(format!("cannot wait for {}: {}", self.name(), plain(&error)).into()),
            }
        }
    }

    fn name(&self) -> String {
        self.args.command[0].to_string_lossy().into_owned()
    }

    fn start(&self) -> Result<Child, String> {
        let (program, arguments) = self.args.command.split_first().expect("clap requires a command");
        let started = Command::new(program).args(arguments).spawn();
        started.map_err(|error| format!("{} cannot be started: {}", self.name(), plain(&error)))
    }

    /// Waits until the program is to be started, or a signal arrives.
    async fn wait_for_files(&mut self) -> Option<SignalKind> {
        loop {
            let result = contents(&self.args.files);
            if let Err(problem) = &result
                && self.reported.as_ref() != Some(problem)
            {
                say(&format!("waiting for {problem}\n"));
                self.reported = Some(problem.clone());
            }
            let pause = match self.watch.observe(result.ok()) {
                Reaction::Start | Reaction::Restart(_) => return None,
                Reaction::ReadAgain => self.reread_delay(),
                Reaction::None => self.args.interval,
            };
            select! {
                signal = self.signals.received() => return Some(signal),
                () = sleep(pause) => {}
            }
        }
    }

    /// Waits until the program has ended, or was stopped for a restart.
    async fn wait_for_end(&mut self, program: &mut Child) -> io::Result<Stopped> {
        let mut pause = self.args.interval;
        loop {
            select! {
                ended = program.wait() => return Ok(Stopped::ForGood(ended?)),
                signal = self.signals.received() => return self.stop(program, signal).await.map(Stopped::ForGood),
                () = sleep(pause) => {}
            }
            pause = match self.watch.observe(contents(&self.args.files).ok()) {
                Reaction::None | Reaction::Start => self.args.interval,
                Reaction::ReadAgain => self.reread_delay(),
                Reaction::Restart(changed) => {
                    let files = changed.iter().filter_map(|&at| self.args.files.get(at));
                    let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
                    say(&format!("restarting {}: {} changed\n", self.name(), files.join(", ")));
                    // A signal for this process may arrive while the program stops.
                    return select! {
                        stopped = stop(program, SignalKind::terminate(), self.args.grace_period) => stopped.map(|_| Stopped::ForRestart),
                        signal = self.signals.received() => self.stop(program, signal).await.map(Stopped::ForGood),
                    };
                }
            };
        }
    }

    /// Forwards a signal, and those that follow, until the program has ended.
    async fn stop(&mut self, program: &mut Child, mut signal: SignalKind) -> io::Result<ExitStatus> {
        loop {
            select! {
                stopped = stop(program, signal, self.args.grace_period) => return stopped,
                again = self.signals.received() => signal = again,
            }
        }
    }

    fn reread_delay(&self) -> Duration {
        self.args.interval.min(REREAD_DELAY)
    }
}

/// Sends a signal, and kills the program if it does not end within the grace period.
async fn stop(program: &mut Child, signal: SignalKind, grace_period: Duration) -> io::Result<ExitStatus> {
    // The id is valid until the program is reaped; a signal to a program that has just ended has no effect.
    let signal = Signal::try_from(signal.as_raw_value());
    if let (Some(id), Ok(signal)) = (program.id().and_then(|id| i32::try_from(id).ok()), signal) {
        let _ = kill(Pid::from_raw(id), signal);
    }
    if let Ok(ended) = timeout(grace_period, program.wait()).await {
        return ended;
    }
    say(&format!("killed after {}s: it did not stop\n", grace_period.as_secs()));
    program.start_kill()?;
    program.wait().await
}

/// Returns the contents of the files, or the first unreadable file with the reason.
pub(super) fn contents(files: &[impl AsRef<Path>]) -> Result<Contents, String> {
    files.iter().map(|file| content(file.as_ref())).collect()
}

fn content(file: &Path) -> Result<FileDigest, String> {
    let problem = |why: &str| format!("{}: {why}", file.display());
    let read = || {
        // Reads of other file types may never end, or never begin.
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        File::open(file)?.take(MAX + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    };
    match read() {
        Err(error) => Err(problem(&plain(&error))),
        Ok(None) => Err(problem("not a file")),
        Ok(Some(bytes)) if bytes.is_empty() => Err(problem("empty")),
        Ok(Some(bytes)) if bytes.len() as u64 > MAX => Err(problem("larger than 4 MiB")),
        Ok(Some(bytes)) => Ok(FileDigest::from_bytes(&bytes)),
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    let ended_by = || status.signal().map(|signal| ENDED_BY + signal);
    exit(status.code().or_else(ended_by).unwrap_or(1))
}

fn exit(code: i32) -> Exit {
    u8::try_from(code).map_or(Exit::FAILURE, Exit)
}
