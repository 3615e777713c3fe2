//! Limits the number of streams: in total, and of each user.

use crate::limits::{STREAMS, USER_STREAMS};
use crate::refusal::HttpRefusal;
use http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The open streams, by user.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<String, usize>>>);

/// Open streams of a user. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct Permit {
    streams: Streams,
    user: String,
    count: usize,
}

impl Streams {
    /// Opens streams of a user.
    pub(crate) fn open(&self, user: &str, count: usize) -> Result<Permit, HttpRefusal> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = open.values().sum();
        let of_user = open.get(user).copied().unwrap_or_default();
        let line = if of_user.saturating_add(count) > USER_STREAMS {
            format!("you follow {of_user} logs, of at most {USER_STREAMS}: close some of them")
        } else if total.saturating_add(count) > STREAMS {
            format!("{total} logs are followed, of at most {STREAMS}: try again later")
        } else {
            open.insert(user.to_owned(), of_user.saturating_add(count));
            return Ok(Permit {
                streams: self.clone(),
                user: user.to_owned(),
                count,
            });
        };
        Err(HttpRefusal::new(StatusCode::TOO_MANY_REQUESTS, line))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = open.get(&self.user).map_or(0, |open| open.saturating_sub(self.count));
        if left == 0 {
            open.remove(&self.user);
        } else {
            open.insert(self.user.clone(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_streams_of_a_user_and_in_total() {
        let streams = Streams::default();
        let first: Vec<_> = (0..USER_STREAMS)
            .map(|_| streams.open("ann", 1).expect("a stream"))
            .collect();
        let refused = streams.open("ann", 1).expect_err("too many");
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        let mut others = Vec::new();
        let refused = (0..200).find_map(|user| match streams.open(&format!("user{user}"), 1) {
            Ok(permit) => {
                others.push(permit);
                None
            }
            Err(refused) => Some(refused),
        });
        assert!(refused.expect("too many").line.contains("try again later"));
        assert_eq!(others.len(), STREAMS - USER_STREAMS);
        drop(first);
        assert!(streams.open("ann", USER_STREAMS).is_ok());
        drop(others);
        assert_eq!(streams.0.lock().expect("no panic").len(), 0, "no user is kept");
    }
}
