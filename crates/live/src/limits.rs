//! The limits of answers: a cluster is not trusted, and one user must not take the service from the others.

use std::time::Duration;

/// The time until a cluster must begin to answer. A cluster that cannot be reached is reported after it.
pub const REACH_TIMEOUT: Duration = Duration::from_secs(5);

/// The time limit for a whole answer of a cluster that is no stream.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// The maximum size of an object, in bytes: etcd stores at most 1.5 MiB.
pub const OBJECT_BYTES: usize = 4 << 20;

/// The maximum size of a page of a list, in bytes.
pub const PAGE_BYTES: usize = 16 << 20;

/// The average number of bytes for each JSON value of an answer, at least: a value takes 32 bytes or more of memory, so that an answer of
/// only digits and commas would take 16 times its size.
pub const BYTES_PER_VALUE: usize = 16;

/// The maximum size of all lists of a tree, in bytes. More objects truncate the answer.
pub const TREE_BYTES: usize = 32 << 20;

/// The maximum number of objects in a page of a list.
pub const PAGE_OBJECTS: usize = 500;

/// The maximum number of pages that are read of one kind. More objects truncate the answer.
pub const PAGES: usize = 4;

/// The maximum number of objects in a tree.
pub const NODES: usize = 500;

/// The maximum number of Events in an answer.
pub const EVENTS: usize = 200;

/// The maximum number of differences in an answer.
pub const DIFFERENCES: usize = 200;

/// The number of lines of a log that are read by default, and at most.
pub const TAIL: u32 = 1_000;
/// See [`TAIL`].
pub const TAIL_MAX: u32 = 10_000;

/// The maximum size of the log of one container, in bytes.
pub const LOG_BYTES: usize = 16 << 20;

/// The maximum size of a line of a log, in bytes: longer ones are wrapped.
pub const LINE_BYTES: usize = 16 << 10;

/// The time after which a stream ends; the user follows again. A user whose access was withdrawn sees no more after it.
pub const STREAM_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The maximum number of containers whose logs are read at the same time: in total, of one user, and of one request.
pub const STREAMS: usize = 128;
/// See [`STREAMS`].
pub const USER_STREAMS: usize = 40;
/// See [`STREAMS`].
pub const REQUEST_STREAMS: usize = 20;

/// The maximum number of connections; others wait.
pub const CONNECTIONS: usize = 512;

/// The time limit for a TLS handshake, for sending a request, and of an idle connection.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of the head of a request, in bytes.
pub const HEAD_BYTES: usize = 32 << 10;

/// The number of requests for a cluster that are sent at once, and the time between further ones. OCM's service-proxy handles no more:
/// its clients are limited to a burst of 10 and 5 reviews of tokens a second.
pub const PACE_BURST: u32 = 10;
/// See [`PACE_BURST`].
pub const PACE_INTERVAL: Duration = Duration::from_millis(210);

/// The maximum time that a request waits for its turn.
pub const PACE_WAIT: Duration = Duration::from_secs(3);
