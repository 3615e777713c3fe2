//! Reads both outputs of a program until they end or time runs out. It uses one thread, because starting others takes longer than
//! the rest of the work.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// One of the outputs.
pub(super) struct Pipe {
    /// The open pipe; `None` after reading ends. A program that writes more then fails, because the pipe is closed.
    from: Option<File>,
    /// The maximum number of bytes to read.
    limit: usize,
    pub(super) bytes: Vec<u8>,
}

impl Pipe {
    pub(super) fn new(from: impl Into<OwnedFd>, limit: Option<u64>) -> Self {
        Self {
            from: Some(File::from(from.into())),
            limit: limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            bytes: Vec::new(),
        }
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let Some(from) = &mut self.from else { return Ok(()) };
        let most = buffer.len().min(self.limit - self.bytes.len());
        let read = match from.read(&mut buffer[..most]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            read => read?,
        };
        self.bytes.extend_from_slice(&buffer[..read]);
        if read == 0 || self.bytes.len() >= self.limit {
            self.from = None;
        }
        Ok(())
    }
}

/// Reads until all pipes are closed or reach their limits. Returns true if that was in time.
#[expect(clippy::disallowed_methods, reason = "the run time of another program is measured")]
pub(super) fn read_all(pipes: &mut [Pipe], time: Duration) -> io::Result<bool> {
    let start = Instant::now();
    let mut buffer = vec![0; 1 << 16];
    while pipes.iter().any(|pipe| pipe.from.is_some()) {
        let left = time.saturating_sub(start.elapsed());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let open = pipes.iter().filter_map(|pipe| pipe.from.as_ref());
        let mut waiting: Vec<PollFd<'_>> = open.map(|from| PollFd::new(from.as_fd(), PollFlags::POLLIN)).collect();
        match poll(&mut waiting, left) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = waiting.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        let open = pipes.iter_mut().filter(|pipe| pipe.from.is_some());
        for (pipe, _) in open.zip(ready).filter(|(_, ready)| *ready) {
            pipe.read_some(&mut buffer)?;
        }
    }
    Ok(true)
}
