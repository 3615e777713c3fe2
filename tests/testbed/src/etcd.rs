//! The etcd of all API servers of a testbed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::folder;
use crate::parts::Part;
use crate::ports;
use crate::process::Process;
use crate::workbench::Workbench;

/// A running etcd. Its data is deleted with it, so it does not sync to disk.
#[derive(Debug)]
pub(crate) struct Etcd {
    url: String,
    data: PathBuf,
    command: Command,
    process: Mutex<Option<Process>>,
}

impl Etcd {
    /// Starts an etcd. API servers wait for it themselves.
    pub(crate) fn start(bench: &Workbench) -> Result<Self> {
        let url = format!("http://127.0.0.1:{}", ports::free()?);
        let peer = format!("http://127.0.0.1:{}", ports::free()?);
        let mut command = bench.command(Part::Etcd);
        let data = bench.folder("etcd")?;
        command.arg("--data-dir").arg(&data);
        command.arg(format!("--listen-client-urls={url}"));
        command.arg(format!("--advertise-client-urls={url}"));
        command.arg(format!("--listen-peer-urls={peer}"));
        command.arg(format!("--initial-advertise-peer-urls={peer}"));
        command.arg(format!("--initial-cluster=default={peer}"));
        command.arg("--unsafe-no-fsync");
        // The largest that etcd recommends; benchmarks exceed the default of 2 GB.
        command.arg("--quota-backend-bytes=8589934592");
        let process = bench.start("etcd", bench.same(&command))?;
        Ok(Self {
            url,
            data,
            command,
            process: Mutex::new(Some(process)),
        })
    }

    /// Copies its data into a folder while it is stopped for a moment.
    pub(crate) fn copy(&self, to: &Path) -> Result<()> {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let _paused = process.as_ref().map(Process::pause).transpose()?;
        folder::copy(&self.data, to)
    }

    /// Kills it, and starts it on the data of a copy, as if nothing had happened since.
    pub(crate) fn restore(&self, bench: &Workbench, copy: &Path) -> Result<()> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        *process = None;
        fs::remove_dir_all(&self.data)?;
        folder::copy(copy, &self.data)?;
        *process = Some(bench.start("etcd", bench.same(&self.command))?);
        Ok(())
    }

    /// Returns its URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}
