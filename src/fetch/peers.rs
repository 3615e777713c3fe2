//! Reads the controllers of other software on a hub.

use super::{Hub, describe_error, why_forbidden};
use crate::cli::HubArgs;
use crate::peers::{ACM_CONFIG_MAP, Peer};
use kube::Error;
use kube::core::params::ListParams;
use ocm::resources::{CONFIG_MAPS, DEPLOYMENTS};

/// Returns the Deployments on a hub with controllers that write the objects of ours, and the reads that failed, one line each.
pub(crate) async fn peers(hub: &HubArgs) -> Result<(Vec<Peer>, Vec<String>), String> {
    let hub = Hub::connect(hub).await?;
    hub.peers().await.map_err(|error| describe_error(&error, &hub.url))
}

impl Hub {
    async fn peers(&self) -> Result<(Vec<Peer>, Vec<String>), Error> {
        let (mut peers, mut notices) = (Vec::new(), Vec::new());
        let keep = |deployment| peers.extend(Peer::from_deployment(&deployment));
        let read = self.each(&DEPLOYMENTS, "", ListParams::default(), keep).await;
        if let Some(why) = why_forbidden(read)? {
            notices.push(format!(
                "Deployments are not read ({why}): check that no other controller writes these objects"
            ));
        }
        for peer in &mut peers {
            let Some(namespace) = peer.config_namespace() else {
                continue;
            };
            let config_map = self.get_text(&CONFIG_MAPS, namespace, ACM_CONFIG_MAP).await?;
            if let Some(config_map) = config_map.found().and_then(|text| serde_json::from_str(text).ok()) {
                peer.apply_config(&config_map);
            }
        }
        Ok((peers, notices))
    }
}
