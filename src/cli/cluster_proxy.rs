//! The address of OCM's cluster-proxy.

use clap::Args;
use http::Uri;

/// The argument that `live` and the commands that show live objects share.
#[derive(Debug, Args)]
pub struct ClusterProxyArgs {
    /// URL of the user-server of OCM's cluster-proxy
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_CLUSTER_PROXY",
        hide_env_values = true,
        value_name = "URL",
        default_value = "https://cluster-proxy-addon-user.open-cluster-management-addon.svc:9092"
    )]
    pub cluster_proxy: String,
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
