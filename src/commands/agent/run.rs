//! `agent run`: a program, restarted when its files have changed.
//!
//! As the first process of a container it waits for the program that it has started, and for no other: Argo CD's agent starts none,
//! so none are left behind.

use super::{Exit, runtime};
use crate::cli::RunArgs;
use crate::commands::say;
use crate::generate::problem::plain;
use crate::supervise::{Content, Contents, Verdict, Watch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::select;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::{sleep, timeout};

/// How soon to look again at what was seen for the first time, at most.
pub(super) const SOON: Duration = Duration::from_secs(1);

/// How large a file may be. No Secret and no ConfigMap is larger.
const MAX: u64 = 4 << 20;

/// What is added to the number of a signal that ended a program, as shells do.
const ENDED_BY: i32 = 128;

pub(super) fn run(args: &RunArgs) -> Result<Exit, String> {
    runtime()?.block_on(async {
        let mut supervisor = Supervisor {
            args,
            asked: Asked::listen()?,
            watch: Watch::default(),
            told: None,
        };
        supervisor.run().await
    })
}

/// The signals that ask us to end.
pub(super) struct Asked {
    terminated: unix::Signal,
    interrupted: unix::Signal,
}

impl Asked {
    pub(super) fn listen() -> Result<Self, String> {
        let hear = |kind| signal(kind).map_err(|error| format!("signals cannot be heard: {error}"));
        Ok(Self {
            terminated: hear(SignalKind::terminate())?,
            interrupted: hear(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Signal {
        select! {
            _ = self.terminated.recv() => Signal::SIGTERM,
            _ = self.interrupted.recv() => Signal::SIGINT,
        }
    }
}

struct Supervisor<'a> {
    args: &'a RunArgs,
    asked: Asked,
    watch: Watch,
    /// What was said last of a file that is waited for.
    told: Option<String>,
}

/// How a program was stopped.
enum Stopped {
    /// To be started again.
    ForRestart,
    /// To go on no more.
    ForGood(ExitStatus),
}

impl Supervisor<'_> {
    async fn run(&mut self) -> Result<Exit, String> {
        loop {
            if let Some(signal) = self.until_files_are_there().await {
                return Ok(exit(ENDED_BY + signal as i32));
            }
            let mut program = self.start()?;
            match self.until_it_ends(&mut program).await {
                Ok(Stopped::ForRestart) => self.watch.stopped(),
                Ok(Stopped::ForGood(status)) => return Ok(exit_of(status)),
                Err(error) => return Err(format!("{} is lost: {}", self.name(), plain(&error))),
            }
        }
    }

    fn name(&self) -> String {
        self.args.command[0].to_string_lossy().into_owned()
    }

    fn start(&self) -> Result<Child, String> {
        let (program, arguments) = self.args.command.split_first().expect("clap demands one");
        let started = Command::new(program).args(arguments).spawn();
        started.map_err(|error| format!("{} cannot be started: {}", self.name(), plain(&error)))
    }

    /// Waits until the program is to be started, or a signal comes.
    async fn until_files_are_there(&mut self) -> Option<Signal> {
        loop {
            let seen = contents(&self.args.files);
            if let Err(lack) = &seen
                && self.told.as_ref() != Some(lack)
            {
                say(&format!("waiting for {lack}\n"));
                self.told = Some(lack.clone());
            }
            let pause = match self.watch.look(seen.ok()) {
                Verdict::Start | Verdict::Restart(_) => return None,
                Verdict::LookAgain => self.soon(),
                Verdict::Nothing => self.args.interval,
            };
            select! {
                signal = self.asked.next() => return Some(signal),
                () = sleep(pause) => {}
            }
        }
    }

    /// Waits until the program has ended, or has been stopped for a restart.
    async fn until_it_ends(&mut self, program: &mut Child) -> io::Result<Stopped> {
        let mut pause = self.args.interval;
        loop {
            select! {
                ended = program.wait() => return Ok(Stopped::ForGood(ended?)),
                signal = self.asked.next() => return self.stop(program, signal).await.map(Stopped::ForGood),
                () = sleep(pause) => {}
            }
            pause = match self.watch.look(contents(&self.args.files).ok()) {
                Verdict::Nothing | Verdict::Start => self.args.interval,
                Verdict::LookAgain => self.soon(),
                Verdict::Restart(changed) => {
                    let files = changed.iter().filter_map(|&at| self.args.files.get(at));
                    let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
                    say(&format!("restarting {}: {} changed\n", self.name(), files.join(", ")));
                    // Once it is asked to stop, somebody may ask us too.
                    return select! {
                        stopped = stop(program, Signal::SIGTERM, self.args.grace_period) => stopped.map(|_| Stopped::ForRestart),
                        signal = self.asked.next() => self.stop(program, signal).await.map(Stopped::ForGood),
                    };
                }
            };
        }
    }

    /// Passes a signal on, and those that follow, until the program has ended.
    async fn stop(&mut self, program: &mut Child, mut signal: Signal) -> io::Result<ExitStatus> {
        loop {
            select! {
                stopped = stop(program, signal, self.args.grace_period) => return stopped,
                again = self.asked.next() => signal = again,
            }
        }
    }

    fn soon(&self) -> Duration {
        self.args.interval.min(SOON)
    }
}

/// Sends a signal, and kills what does not end of it in time.
async fn stop(program: &mut Child, signal: Signal, grace_period: Duration) -> io::Result<ExitStatus> {
    // It has an id until it is known to have ended; that it has ended just now is found out by waiting.
    if let Some(id) = program.id().and_then(|id| i32::try_from(id).ok()) {
        let _ = kill(Pid::from_raw(id), signal);
    }
    if let Ok(ended) = timeout(grace_period, program.wait()).await {
        return ended;
    }
    say(&format!("killed after {}s: it did not stop\n", grace_period.as_secs()));
    program.start_kill()?;
    program.wait().await
}

/// What is in the files, or which is not there to be read, and why.
pub(super) fn contents(files: &[impl AsRef<Path>]) -> Result<Contents, String> {
    files.iter().map(|file| content(file.as_ref())).collect()
}

fn content(file: &Path) -> Result<Content, String> {
    let lacks = |why: &str| format!("{}: {why}", file.display());
    let read = || {
        // What is no file may never end, or never begin.
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        File::open(file)?.take(MAX + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    };
    match read() {
        Err(error) => Err(lacks(&plain(&error))),
        Ok(None) => Err(lacks("not a file")),
        Ok(Some(bytes)) if bytes.is_empty() => Err(lacks("empty")),
        Ok(Some(bytes)) if bytes.len() as u64 > MAX => Err(lacks("larger than 4 MiB")),
        Ok(Some(bytes)) => Ok(Content::of(&bytes)),
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    let ended_by = || status.signal().map(|signal| ENDED_BY + signal);
    exit(status.code().or_else(ended_by).unwrap_or(1))
}

fn exit(code: i32) -> Exit {
    u8::try_from(code).map_or(Exit::FAILURE, Exit)
}
