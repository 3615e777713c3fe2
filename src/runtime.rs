//! The async runtime of the commands.

use tokio::runtime::{Builder, Runtime};

/// Creates a runtime with one thread: the commands and the controllers mostly wait, and compute little.
pub(crate) fn runtime() -> Result<Runtime, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start the async runtime: {error}"))
}
