//! Runs `generate` in a second process, whose memory is limited, so that a lack of memory is an error like any other.

use super::this_program;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{self, Command, ExitCode, ExitStatus, Stdio};

/// The start of the name of the second process; the id of the first follows.
const NAME: &str = "argocd-ocm-cmp-";

/// Runs `generate` in a second process, and returns its exit code. Returns `None` in that process, for other commands, and outside of
/// Argo CD: the user of a terminal sees why a program ends.
pub fn generate_in_second_process(
    arguments: impl IntoIterator<Item = OsString>,
    is_in_argo_cd: bool,
) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter();
    let name = arguments.next()?;
    if let Some(parent) = name.to_str().and_then(|name| name.strip_prefix(NAME)) {
        let is_alive = set_pdeathsig(Signal::SIGKILL).is_ok() && getppid().to_string() == parent;
        return if is_alive { None } else { Some(ExitCode::FAILURE) };
    }
    let arguments: Vec<OsString> = arguments.collect();
    if arguments.first().is_none_or(|command| command != "generate") || !is_in_argo_cd {
        return None;
    }
    // If the process cannot be started, this one generates.
    run(&arguments).ok()
}

fn run(arguments: &[OsString]) -> io::Result<ExitCode> {
    let mut second = Command::new(this_program())
        .arg0(format!("{NAME}{}", process::id()))
        .args(arguments)
        // Printing a backtrace needs memory: without any, the standard library would wait for itself.
        .env("RUST_BACKTRACE", "0")
        .stderr(Stdio::piped())
        .spawn()?;
    let mut text = Vec::new();
    if let Some(stderr) = &mut second.stderr {
        let _ = stderr.read_to_end(&mut text);
    }
    let status = second.wait()?;
    let code = match lack_of_memory(status, &String::from_utf8_lossy(&text)) {
        Some(line) => {
            text = line.into_bytes();
            1
        }
        None => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
    };
    let _ = io::stderr().write_all(&text);
    Ok(ExitCode::from(code))
}

/// Returns the error message of a process that ended for lack of memory.
fn lack_of_memory(status: ExitStatus, text: &str) -> Option<String> {
    let is_full = [
        "memory allocation of ",
        "Cannot allocate memory",
        "a thread can be started",
    ]
    .iter()
    .any(|sign| text.contains(sign));
    let (what, remedy) = match status.signal() {
        Some(signal) if signal == Signal::SIGKILL as i32 => (
            "the plugin was killed, usually because the memory of the container is full",
            "give the sidecar more memory",
        ),
        None if status.success() => return None,
        _ if is_full => (
            "the plugin needs more memory than its limit",
            "raise --memory (ARGOCD_OCM_CMP_MEMORY in the sidecar)",
        ),
        _ => return None,
    };
    Some(format!(
        "error: {what}: deliver fewer manifests or overlays with one Application, or ask an administrator to {remedy}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lack_of_memory_is_one_line() {
        let aborted = ExitStatus::from_raw(Signal::SIGABRT as i32);
        let line = lack_of_memory(aborted, "memory allocation of 4096 bytes failed\n").expect("a message");
        assert!(
            line.starts_with("error: the plugin needs more memory than its limit: "),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1);
        let killed = ExitStatus::from_raw(Signal::SIGKILL as i32);
        assert!(lack_of_memory(killed, "").is_some_and(|line| line.contains("was killed")));
        assert_eq!(lack_of_memory(aborted, "a bug\n"), None);
        assert_eq!(
            lack_of_memory(ExitStatus::from_raw(1 << 8), "error: a.yaml: wrong\n"),
            None
        );
        assert_eq!(lack_of_memory(ExitStatus::from_raw(0), "memory allocation of "), None);
    }
}
