//! The signals that end a process: SIGTERM and SIGINT.

use std::io;
use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug)]
pub struct Signals {
    terminated: Signal,
    interrupted: Signal,
}

impl Signals {
    /// Installs the handlers: from now on, the signals no longer end the process by themselves.
    pub fn install() -> Result<Self, String> {
        let unheard = |error: io::Error| format!("cannot install signal handlers: {error}");
        Ok(Self {
            terminated: signal(SignalKind::terminate()).map_err(unheard)?,
            interrupted: signal(SignalKind::interrupt()).map_err(unheard)?,
        })
    }

    pub async fn received(&mut self) -> SignalKind {
        select! {
            _ = self.terminated.recv() => SignalKind::terminate(),
            _ = self.interrupted.recv() => SignalKind::interrupt(),
        }
    }
}
