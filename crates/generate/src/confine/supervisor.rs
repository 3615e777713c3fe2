//! The supervisor: this program, started again to confine itself and run a tool.

use super::{ActiveIsolation, Confinement, Isolation, files, namespaces, sockets, supervised};
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, killpg, raise};
use nix::unistd::{Pid, getpgrp, getppid};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus};

/// The exit code of a supervisor that cannot start the tool, as in shells.
const CANNOT_START: u8 = 126;

/// Runs a tool confined and returns its exit code, if the program was started as a supervisor; otherwise `None`. Must be called
/// before any thread starts: only a single-threaded process can leave its user namespace.
pub fn supervise(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let (confinement, tool) = supervised(arguments)?;
    let result = confinement
        .into_string()
        .map_err(|_| io::Error::other("the confinement is not UTF-8"))
        .and_then(|text| Ok(serde_json::from_str::<Confinement>(&text)?))
        .and_then(|confinement| run(&confinement, &tool));
    Some(result.unwrap_or_else(|error| {
        let name = tool.first().map(|tool| tool.to_string_lossy()).unwrap_or_default();
        let _ = writeln!(io::stderr(), "{name} cannot be run confined: {error}");
        ExitCode::from(CANNOT_START)
    }))
}

fn run(confinement: &Confinement, tool: &[OsString]) -> io::Result<ExitCode> {
    // First, so that no signal is missed.
    let awaited: SigSet = [Signal::SIGCHLD, Signal::SIGTERM].into_iter().collect();
    awaited.thread_block()?;
    set_pdeathsig(Signal::SIGTERM)?;
    if getppid() != Pid::from_raw(confinement.parent) {
        return Err(io::Error::other("the process that started it has ended"));
    }
    // When memory runs out, the kernel kills the tool before other processes of the container.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    // Opened before, because this process is confined too.
    let mut report = fs::File::create(confinement.report())?;
    let in_force = confine(confinement)?;
    report.write_all(serde_json::to_string(&in_force)?.as_bytes())?;
    let Some((program, arguments)) = tool.split_first() else {
        return Ok(ExitCode::SUCCESS);
    };
    // The process that started the supervisor reads the reason from the report.
    if confinement.isolation != Isolation::None && in_force.missing_isolation(confinement.network).is_some() {
        return Ok(ExitCode::from(CANNOT_START));
    }
    let mut child = Command::new(program).args(arguments).spawn()?;
    end_like(wait(&mut child, &awaited)?, &awaited)
}

/// Applies the limits and all available isolation.
fn confine(confinement: &Confinement) -> io::Result<ActiveIsolation> {
    set_no_new_privs()?;
    confinement.limits.apply();
    let off = || Some("turned off by tool-isolation".to_owned());
    let namespaces = match confinement.isolation {
        Isolation::All | Isolation::Namespaces => namespaces::enter(confinement),
        _ => off(),
    };
    let landlock = match confinement.isolation {
        Isolation::All | Isolation::Landlock => files::restrict(&confinement.allowed_paths),
        _ => off(),
    };
    let sockets = if confinement.network {
        Some("this process may use the network".to_owned())
    } else {
        sockets::forbid()
    };
    Ok(ActiveIsolation {
        namespaces,
        landlock,
        sockets,
    })
}

/// Waits for the tool. When the process that started the supervisor ends, kills the whole group, including this process.
fn wait(child: &mut Child, awaited: &SigSet) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if awaited.wait()? == Signal::SIGTERM {
            killpg(getpgrp(), Signal::SIGKILL)?;
        }
    }
}

/// Ends as the tool ended: with its exit code or by its signal.
fn end_like(status: ExitStatus, awaited: &SigSet) -> io::Result<ExitCode> {
    if let Some(signal) = status.signal() {
        awaited.thread_unblock()?;
        raise(Signal::try_from(signal)?)?;
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(CANNOT_START)))
}
