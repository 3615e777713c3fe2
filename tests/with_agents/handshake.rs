//! Performs TLS 1.3 handshakes with certificates on both sides, as the principal requires of agents.

use crate::stage::{Stage, data};
use anyhow::{Context, Result};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use serde_json::{Value, json};
use std::sync::Arc;
use testbed::ObjectRef;

/// Returns the certificates of a Secret, and the key of the first.
fn identity(secret: &Value) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let chain = data(secret, "tls.crt")?;
    let chain: Result<_, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(data(secret, "tls.key")?.as_bytes())?;
    Ok((chain?, key))
}

fn trusted(bundle: &str) -> Result<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate?)?;
    }
    Ok(roots.into())
}

/// Checks that a server of this name and a client trust each other, each with its certificate and its trusted authorities.
fn shake_hands(name: &str, server: (&Value, &str), client: (&Value, &str)) -> Result<()> {
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(trusted(server.1)?, Arc::clone(&provider)).build()?;
    let (chain, key) = identity(server.0)?;
    let serving = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    let (chain, key) = identity(client.0)?;
    let connecting = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(trusted(client.1)?)
        .with_client_auth_cert(chain, key)?;
    let mut client = ClientConnection::new(connecting.into(), ServerName::try_from(name.to_owned())?)?;
    let mut server = ServerConnection::new(serving.into())?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire)?;
        server.read_tls(&mut wire.as_slice())?;
        server.process_new_packets().context("the server")?;
        let mut wire = Vec::new();
        server.write_tls(&mut wire)?;
        client.read_tls(&mut wire.as_slice())?;
        client.process_new_packets().context("the client")?;
    }
    Ok(())
}

/// Checks that principal and agents trust each other at this address with their certificates, and Argo CD and the resource proxy
/// likewise.
pub(crate) async fn check_handshakes(stage: &Stage, address: &str) -> Result<()> {
    let Stage { hub, cluster1, .. } = stage;
    let read = async |name: &str| {
        hub.get(&ObjectRef::secret("argocd", name))
            .await?
            .context(name.to_owned())
    };
    let authority = read("argocd-agent-ca").await?;
    let client = cluster1
        .read(&ObjectRef::secret("argocd", ocm::argocd_agent::CLIENT_SECRET))
        .await?;
    let trusted = cluster1.read(&ObjectRef::secret("argocd", "argocd-agent-ca")).await?;
    shake_hands(
        address,
        (
            &read("argocd-agent-principal-tls").await?,
            &data(&authority, "tls.crt")?,
        ),
        (&client, &data(&trusted, "ca.crt")?),
    )?;
    let config: Value = serde_json::from_str(&data(&read("cluster-cluster1").await?, "config")?)?;
    let config = &config["tlsClientConfig"];
    let known =
        json!({"data": {"tls.crt": config["certData"], "tls.key": config["keyData"], "ca.crt": config["caData"]}});
    shake_hands(
        "argocd-agent-resource-proxy",
        (
            &read("argocd-agent-resource-proxy-tls").await?,
            &data(&authority, "tls.crt")?,
        ),
        (&known, &data(&known, "ca.crt")?),
    )
}
