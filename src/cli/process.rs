//! Flags of the processes that run on a hub, each with an environment variable for a Deployment that is patched rather than written.

use clap::Args;
use runtime::telemetry::{self, Format, Level};

/// The namespace of Argo CD on the hub.
#[derive(Debug, Args)]
pub struct ProcessNamespace {
    /// The namespace of Argo CD
    #[arg(
        long,
        short = 'n',
        visible_alias = "namespace",
        env = "ARGOCD_OCM_CMP_ARGOCD_NAMESPACE",
        value_name = "NAME",
        default_value = "argocd"
    )]
    pub argocd_namespace: String,
}

/// The log on standard error.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Log level
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_LOG_LEVEL",
        value_enum,
        value_name = "LEVEL",
        default_value = "info"
    )]
    pub log_level: Level,

    /// Log format
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_LOG_FORMAT",
        value_enum,
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub log_format: Format,
}

/// The crates of this program that log: `--log-level` is the level of these.
const OUR_CRATES: [&str; 5] = ["argocd_ocm_cmp", "controller", "hub", "live", "runtime"];

impl LogArgs {
    /// Logs to standard error from now on.
    pub fn init(&self) {
        telemetry::init(self.log_level, self.log_format, &OUR_CRATES);
    }
}
