//! The connection of Argo CD to a managed cluster: the `config` of a cluster Secret (its `ClusterConfig`).

use k8s_openapi::ByteString;
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterConfig {
    tls_client_config: TlsClientConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TlsClientConfig {
    insecure: bool,
    cert_data: ByteString,
    key_data: ByteString,
    ca_data: ByteString,
}

/// Writes a configuration with this certificate, its key and the trusted CAs, all in PEM.
pub(super) fn write(certificate: Vec<u8>, key: Vec<u8>, bundle: &[u8]) -> Vec<u8> {
    let tls_client_config = TlsClientConfig {
        insecure: false,
        cert_data: ByteString(certificate),
        key_data: ByteString(key),
        ca_data: ByteString(bundle.to_vec()),
    };
    serde_json::to_vec(&ClusterConfig { tls_client_config })
        .expect("the configuration contains only strings and booleans")
}
