//! The etcd of all API servers of a testbed.

use anyhow::Result;

use crate::parts::Part;
use crate::ports;
use crate::process::Process;
use crate::workbench::Workbench;

/// A running etcd. Its data is deleted with it, so it does not sync to disk.
#[derive(Debug)]
pub(crate) struct Etcd {
    url: String,
    _process: Process,
}

impl Etcd {
    /// Starts an etcd. API servers wait for it themselves.
    pub(crate) fn start(bench: &Workbench) -> Result<Self> {
        let url = format!("http://127.0.0.1:{}", ports::free()?);
        let peer = format!("http://127.0.0.1:{}", ports::free()?);
        let mut command = bench.command(Part::Etcd);
        command.arg("--data-dir").arg(bench.folder("etcd")?);
        command.arg(format!("--listen-client-urls={url}"));
        command.arg(format!("--advertise-client-urls={url}"));
        command.arg(format!("--listen-peer-urls={peer}"));
        command.arg(format!("--initial-advertise-peer-urls={peer}"));
        command.arg(format!("--initial-cluster=default={peer}"));
        command.arg("--unsafe-no-fsync");
        // The largest that etcd recommends; benchmarks exceed the default of 2 GB.
        command.arg("--quota-backend-bytes=8589934592");
        Ok(Self {
            url,
            _process: bench.start("etcd", command)?,
        })
    }

    /// Returns its URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}
