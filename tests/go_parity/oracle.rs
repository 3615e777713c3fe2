//! Talks to the Go program in `tests/oracle`, which returns the results of Go's libraries.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// A running oracle.
pub(crate) struct Oracle {
    process: Child,
}

impl Oracle {
    /// Starts one of its subcommands.
    pub(crate) fn start(command: &str) -> Self {
        static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
        let program = PROGRAM.get_or_init(|| built("oracle", ".", &[]));
        Self::run(Command::new(program).arg(command))
    }

    /// Starts the work agent. It has the versions of the agent of the test bed, and shares its compiled packages.
    pub(crate) fn start_agent() -> Self {
        let options = ["-modfile=../../testbed/go/ocm/go.mod", "-gcflags=all=-dwarf=false"];
        let program = built("oracle-agent", "agent", &options);
        Self::run(&mut Command::new(program))
    }

    fn run(command: &mut Command) -> Self {
        let process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the oracle starts");
        Self { process }
    }

    /// Sends many inputs, and returns the responses in the same order.
    pub(crate) fn ask<T: AsRef<[u8]> + Sync>(&mut self, inputs: &[T]) -> Vec<String> {
        let stdin = self.process.stdin.as_mut().expect("stdin is piped");
        let stdout = self.process.stdout.as_mut().expect("stdout is piped");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for input in inputs {
                    let input = input.as_ref();
                    let size = u32::try_from(input.len()).expect("the input fits a frame");
                    let sent = stdin
                        .write_all(&size.to_le_bytes())
                        .and_then(|()| stdin.write_all(input));
                    sent.expect("the oracle reads the input");
                }
                stdin.flush().expect("the oracle reads the input");
            });
            inputs
                .iter()
                .map(|_| {
                    let mut size = [0; 4];
                    stdout.read_exact(&mut size).expect("the oracle answers");
                    let mut answer = vec![0; u32::from_le_bytes(size) as usize];
                    stdout.read_exact(&mut answer).expect("the oracle answers");
                    String::from_utf8(answer).expect("the answer is JSON")
                })
                .collect()
        })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Builds the program in a folder of the oracle.
fn built(name: &str, folder: &str, options: &[&str]) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let built = Command::new("go")
        .args(["build", "-buildvcs=false", "-o"])
        .arg(&program)
        .args(options)
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(folder))
        .status();
    let built = built.expect("go is on the PATH: run `cargo xtask setup` with the PATH that it prints");
    assert!(built.success(), "{name} does not build");
    program
}
