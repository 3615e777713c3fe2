//! Links the program at a fixed address, as Go's programs are. A release with the Kubernetes client has sixteen thousand
//! relocations when it is position-independent, which would take a third of the time of a small `generate`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "this is how cargo is spoken to"
)]

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|values| values.split(',').any(|each| each == value));
    // A static program is linked in another way.
    if is("CARGO_CFG_TARGET_OS", "linux") && !is("CARGO_CFG_TARGET_FEATURE", "crt-static") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
