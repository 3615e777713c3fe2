//! The identity of the service: its certificate, and the token by which argocd-server identifies itself. The service fills a Secret that
//! its installation creates, so that neither is in a file.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::{constant_time, rand};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hub::{explain, status};
use jiff::{SignedDuration, Timestamp};
use kube::core::params::{GetParams, Patch, PatchParams};
use kube::core::request::{self, Request};
use kube::{Client, Error};
use ocm::resources::{CONFIG_MAPS, SECRETS};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name of the Secret with the certificate, its key and the token; also of the ConfigMap with the certificate, and of the Service.
pub const NAME: &str = "argocd-ocm-cmp-live";

/// The header with the token.
pub const TOKEN_HEADER: &str = "argocd-ocm-cmp-live-token";

/// The validity of the certificate.
const VALIDITY: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// The start of validity before now: clocks differ.
const SKEW: SignedDuration = SignedDuration::from_hours(1);

/// The number of attempts if another replica writes at the same time.
const ATTEMPTS: usize = 5;

/// The certificate of the service and the token of its client.
pub struct Identity {
    /// The TLS configuration of the server.
    pub tls: Arc<ServerConfig>,
    /// The digest of the token.
    token: [u8; 32],
}

impl Identity {
    /// Returns true if this is the token, in constant time.
    pub fn accepts(&self, token: &[u8]) -> bool {
        constant_time::verify_slices_are_equal(&self.token, digest(&SHA256, token).as_ref()).is_ok()
    }

    /// Reads the identity from the `data` of the Secret.
    ///
    /// # Errors
    /// Returns one line if a part is missing or invalid.
    pub fn from_secret(data: &Value) -> Result<Self, String> {
        let bytes = |key: &str| {
            let text = data[key].as_str().filter(|text| !text.is_empty());
            let text = text.ok_or_else(|| format!("{key} is missing"))?;
            STANDARD.decode(text).map_err(|_| format!("{key} is not base64"))
        };
        let (certificate, key, token) = (bytes("tls.crt")?, bytes("tls.key")?, bytes("token")?);
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
        let chain = chain.map_err(|_| "tls.crt is not a certificate")?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| "tls.key is not a private key")?;
        let tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key);
        let tls = tls.map_err(|error| format!("tls.crt and tls.key: {error}"))?;
        if token.len() < 16 {
            return Err("token is too short".to_owned());
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, &token).as_ref());
        Ok(Self {
            tls: Arc::new(tls),
            token: hash,
        })
    }
}

/// Returns the data of a Secret with a new certificate for the Service in this namespace, and a new token.
///
/// # Errors
/// Returns one line if the crypto library fails.
pub fn create(namespace: &str, now: Timestamp) -> Result<Value, String> {
    let of_service = ["", ".svc", ".svc.cluster.local"].map(|text| format!("{NAME}.{namespace}{text}"));
    // argocd-server connects by the name alone. Through `kubectl port-forward`, it is localhost.
    let names = of_service.into_iter().chain([NAME, "localhost"].map(str::to_owned));
    let names: BTreeSet<Box<str>> = names.map(Into::into).collect();
    let until = now.checked_add(VALIDITY).map_err(|error| error.to_string())?;
    let since = now.checked_sub(SKEW).map_err(|error| error.to_string())?;
    let (certificate, key) = pki::self_signed(NAME, &names, since..until).map_err(|error| error.to_string())?;
    let mut token = [0; 32];
    rand::fill(&mut token).map_err(|_| "the system has no random numbers")?;
    let encoded = |bytes: &[u8]| STANDARD.encode(bytes);
    Ok(json!({
        "tls.crt": encoded(&certificate),
        "tls.key": encoded(&key),
        "token": encoded(URL_SAFE_NO_PAD.encode(token).as_bytes()),
    }))
}

/// Returns the certificate in the `data` of the Secret, in PEM.
pub fn certificate(data: &Value) -> Option<String> {
    let bytes = STANDARD.decode(data["tls.crt"].as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

/// Reads the identity from the Secret in this namespace, which it fills if it is empty, and writes the certificate to the ConfigMap.
///
/// # Errors
/// Returns one line if the Secret cannot be read or written, or has another content.
pub async fn load(hub: &Client, namespace: &str, now: Timestamp) -> Result<Identity, String> {
    let [secrets, config_maps] = [&SECRETS, &CONFIG_MAPS].map(|resource| Request::new(resource.path(namespace)));
    let read = |requests: &Request| requests.get(NAME, &GetParams::default());
    let change = |requests: &Request, patch: Value| requests.patch(NAME, &PatchParams::default(), &Patch::Merge(patch));
    for _ in 0..ATTEMPTS {
        let mut secret = send(hub, read(&secrets)).await?.ok_or("changed while it was read")?;
        if secret["data"].as_object().is_none_or(serde_json::Map::is_empty) {
            let version = &secret["metadata"]["resourceVersion"];
            let patch = json!({"metadata": {"resourceVersion": version}, "data": create(namespace, now)?});
            match send(hub, change(&secrets, patch)).await? {
                Some(written) => secret = written,
                None => continue,
            }
        }
        let identity = Identity::from_secret(&secret["data"]).map_err(|error| {
            format!("Secret {namespace}/{NAME}: {error}: remove its data and that of the ConfigMap, and restart, and restart argocd-server")
        })?;
        let certificate = certificate(&secret["data"]).unwrap_or_default();
        let published = send(hub, read(&config_maps)).await?.unwrap_or_default();
        if published["data"]["tls.crt"] != *certificate {
            send(hub, change(&config_maps, json!({"data": {"tls.crt": certificate}}))).await?;
        }
        return Ok(identity);
    }
    Err(format!("Secret {namespace}/{NAME} changes with each read: restart"))
}

/// Sends a request; returns `None` if the object has changed meanwhile.
async fn send(hub: &Client, request: Result<http::Request<Vec<u8>>, request::Error>) -> Result<Option<Value>, String> {
    let sent = match request {
        Ok(request) => hub.request(request).await,
        Err(error) => Err(Error::BuildRequest(error)),
    };
    match sent {
        Ok(object) => Ok(Some(object)),
        Err(error) if status(&error) == Some(409) => Ok(None),
        Err(error) => Err(format!(
            "{NAME} on the hub: {}: apply deploy/live.yaml",
            explain(&error)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_its_token() {
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        let data = create("argocd", now).expect("an identity");
        let identity = Identity::from_secret(&data).expect("an identity");
        let token = STANDARD
            .decode(data["token"].as_str().expect("a token"))
            .expect("base64");
        assert!(identity.accepts(&token));
        for other in [&b""[..], b"x", &token[1..], &[&token[..], b" "].concat()] {
            assert!(!identity.accepts(other));
        }
        let another = create("argocd", now).expect("an identity");
        assert_ne!(another["token"], data["token"]);
    }

    #[test]
    fn refuses_an_incomplete_secret() {
        let data = create("argocd", Timestamp::from_second(1_800_000_000).expect("a time")).expect("an identity");
        for key in ["tls.crt", "tls.key", "token"] {
            for value in [Value::Null, json!(""), json!("eA=="), json!("%")] {
                let mut changed = data.clone();
                changed[key] = value;
                let error = Identity::from_secret(&changed).err().expect(key);
                assert!(error.contains(key), "{error}");
            }
        }
    }
}
