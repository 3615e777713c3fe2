//! The address of OCM's cluster-proxy.

use clap::Args;
use http::Uri;
use std::path::PathBuf;

/// The arguments that `live` and the commands that show live objects share.
#[derive(Debug, Args)]
pub struct ClusterProxyArgs {
    /// URL of the user-server of OCM's cluster-proxy
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_CLUSTER_PROXY",
        value_name = "URL",
        default_value = "https://cluster-proxy-addon-user.open-cluster-management-addon.svc:9092"
    )]
    pub cluster_proxy: String,

    /// Certificate authority of the user-server [default: that in ConfigMap argocd-ocm-cmp-cluster-proxy]
    #[arg(long, env = "ARGOCD_OCM_CMP_CLUSTER_PROXY_CA", value_name = "FILE")]
    pub cluster_proxy_ca: Option<PathBuf>,
}

impl ClusterProxyArgs {
    /// Parses the URL.
    ///
    /// # Errors
    /// Returns one line if it is none.
    pub fn url(&self) -> Result<Uri, String> {
        let url = self.cluster_proxy.parse();
        url.map_err(|_| format!("--cluster-proxy {:?} is not a URL", self.cluster_proxy))
    }
}
