//! The authority by which a writer makes certificates, for as long as a burst of them lasts: a fleet that is registered, or whose
//! certificates are renewed, needs one certificate for each cluster, and its Secret is asked for once and not as often.

use crate::pki::{Authority, AuthorityData};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::sleep;

/// How long a key is kept in memory at most.
const KEPT: Duration = Duration::from_secs(5);

/// What has been read last, for a moment.
#[derive(Clone, Default)]
pub(super) struct Burst {
    last: Arc<Mutex<Option<Read>>>,
}

/// An authority that has been read.
struct Read {
    form: Authority,
    data: Arc<AuthorityData>,
}

impl Burst {
    /// An authority in this form, read only where it has not been read just now; nothing where it is in another form by now. Who
    /// comes while it is being read waits for that.
    ///
    /// # Errors
    /// With what keeps it from being read.
    pub(super) async fn authority<E>(
        &self,
        wanted: &Authority,
        read: impl AsyncFnOnce() -> Result<(Authority, AuthorityData), E>,
    ) -> Result<Option<Arc<AuthorityData>>, E> {
        let mut last = self.last.lock().await;
        if let Some(known) = last.as_ref().filter(|known| known.form == *wanted) {
            return Ok(Some(Arc::clone(&known.data)));
        }
        let (form, data) = read().await?;
        let data = Arc::new(data);
        let is_wanted = form == *wanted;
        *last = Some(Read {
            form,
            data: Arc::clone(&data),
        });
        let all = Arc::clone(&self.last);
        tokio::spawn(async move {
            sleep(KEPT).await;
            *all.lock().await = None;
        });
        Ok(is_wanted.then_some(data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::seen::Place;
    use k8s_openapi::ByteString;
    use std::cell::Cell;

    fn form(version: &str) -> Authority {
        Authority {
            place: Place::new("argocd", "argocd-agent-ca"),
            version: version.into(),
        }
    }

    fn data() -> AuthorityData {
        let parts = ["tls.crt", "tls.key"].map(|part| (part.to_owned(), ByteString(Vec::new())));
        AuthorityData::new(parts.into()).expect("it has both")
    }

    #[tokio::test(start_paused = true)]
    async fn an_authority_is_read_once_for_a_burst_and_forgotten_after_it() {
        let (burst, reads) = (Burst::default(), Cell::new(0));
        let ask = async |wanted: &str, there: &str| {
            let read = async || {
                reads.set(reads.get() + 1);
                Ok::<_, ()>((form(there), data()))
            };
            let found = burst.authority(&form(wanted), read).await;
            (found.expect("it is read").is_some(), reads.get())
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
        sleep(KEPT * 2).await;
        assert!(burst.last.lock().await.is_none());
        assert_eq!(ask("2", "2").await, (true, 4));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_asked_for_again() {
        let burst = Burst::default();
        let refused = burst.authority(&form("1"), async || Err("no answer")).await;
        assert_eq!(refused.err(), Some("no answer"));
        let read = burst
            .authority(&form("1"), async || Ok::<_, ()>((form("1"), data())))
            .await;
        assert!(read.expect("it is read").is_some());
    }
}
