//! Runs recursive code.

use manifest::yaml;

/// Runs `work` with the stack size that the parser needs.
pub(crate) fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(yaml::STACK);
        thread
            .spawn_scoped(scope, work)
            .expect("a thread starts")
            .join()
            .expect("the work does not panic")
    })
}
