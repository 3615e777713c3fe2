//! A short-lived cache of the CA key for bursts of certificates: when a fleet is registered or its certificates are renewed, each
//! cluster needs a certificate, and the CA's Secret is read once and not for each.

use crate::metadata::Metadata;
use k8s_openapi::ByteString;
use pki::{Authority, AuthorityData};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::sleep;

/// The maximum time for which a key stays in memory.
const TTL: Duration = Duration::from_secs(5);

#[derive(Clone, Default)]
pub(super) struct CaCache {
    last: Arc<Mutex<Option<CachedCa>>>,
}

type CachedCa = (Authority, Arc<AuthorityData>);

impl CaCache {
    /// Returns the CA in this resource version, read only if it has not been read just before; none if it has another resource
    /// version by now. Concurrent callers wait for one read.
    pub(super) async fn authority<E>(
        &self,
        desired: &Authority,
        read: impl AsyncFnOnce() -> Result<(Authority, AuthorityData), E>,
    ) -> Result<Option<Arc<AuthorityData>>, E> {
        let mut last = self.last.lock().await;
        if let Some((_, data)) = last.as_ref().filter(|(authority, _)| authority == desired) {
            return Ok(Some(Arc::clone(data)));
        }
        let (authority, data) = read().await?;
        let data = Arc::new(data);
        let is_wanted = authority == *desired;
        *last = Some((authority, Arc::clone(&data)));
        let all = Arc::clone(&self.last);
        tokio::spawn(async move {
            sleep(TTL).await;
            *all.lock().await = None;
        });
        Ok(is_wanted.then_some(data))
    }
}

/// Reads the resource version, and the key and certificates of a CA, from the JSON of its Secret. The key must not be cached for
/// long. The error quotes nothing of the Secret.
pub fn read_authority(text: &str) -> Result<(Box<str>, AuthorityData), String> {
    #[derive(Deserialize)]
    struct Secret {
        metadata: Metadata,
        data: Option<BTreeMap<String, ByteString>>,
    }
    let Secret { metadata, data } = serde_json::from_str(text).map_err(|_| "not a valid Secret".to_owned())?;
    let data = AuthorityData::new(data.unwrap_or_default()).map_err(|error| error.to_string())?;
    Ok((metadata.resource_version, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::object_ref::ObjectRef;
    use std::cell::Cell;

    fn authority_ref(version: &str) -> Authority {
        Authority {
            object_ref: ObjectRef::new("argocd", "argocd-agent-ca"),
            version: version.into(),
        }
    }

    fn data() -> AuthorityData {
        let parts = ["tls.crt", "tls.key"].map(|part| (part.to_owned(), ByteString(Vec::new())));
        AuthorityData::new(parts.into()).expect("it has both")
    }

    #[tokio::test(start_paused = true)]
    async fn caches_the_ca_for_one_burst() {
        let (ca_cache, reads) = (CaCache::default(), Cell::new(0));
        let ask = async |desired: &str, existing: &str| {
            let read = async || {
                reads.set(reads.get() + 1);
                Ok::<_, ()>((authority_ref(existing), data()))
            };
            let authority = ca_cache.authority(&authority_ref(desired), read).await;
            (authority.expect("it is read").is_some(), reads.get())
        };
        assert_eq!(ask("1", "1").await, (true, 1));
        assert_eq!(ask("1", "1").await, (true, 1));
        assert_eq!(ask("2", "2").await, (true, 2), "another form is read");
        assert_eq!(
            ask("1", "2").await,
            (false, 3),
            "what was decided of another is not made"
        );
        assert_eq!(ask("2", "2").await, (true, 3));
        sleep(TTL * 2).await;
        assert!(ca_cache.last.lock().await.is_none());
        assert_eq!(ask("2", "2").await, (true, 4));
    }

    #[tokio::test]
    async fn retries_a_failed_read_of_the_ca() {
        let ca_cache = CaCache::default();
        let refused = ca_cache.authority(&authority_ref("1"), async || Err("no answer")).await;
        assert_eq!(refused.err(), Some("no answer"));
        let read = ca_cache
            .authority(&authority_ref("1"), async || Ok::<_, ()>((authority_ref("1"), data())))
            .await;
        assert!(read.expect("it is read").is_some());
    }
}
