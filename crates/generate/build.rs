//! Writes the constants of the CEL expressions in src/health_rules/expressions.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "this is how cargo is spoken to"
)]

#[path = "src/health_rules/expressions.rs"]
mod expressions;

use expressions::{Definitions, expand, read_definitions};
use std::path::Path;
use std::{env, fs};

const FOLDER: &str = "src/health_rules/expressions";

/// The expressions of a file, in the order of the constants.
const NAMES: [&str; 4] = ["progressing", "progressing_message", "healthy", "healthy_message"];

fn main() {
    println!("cargo:rerun-if-changed={FOLDER}");
    println!("cargo:rerun-if-changed={FOLDER}.rs");
    let file = |name: &str| fs::read_to_string(format!("{FOLDER}/{name}.cel")).expect("a file of expressions");
    let mut constants = String::new();
    for name in ["pod", "autoscaler", "custom"] {
        let mut definitions = Definitions::new();
        read_definitions(&file("common"), &mut definitions);
        read_definitions(&file(name), &mut definitions);
        let expressions = NAMES.map(|name| expand(name, &definitions));
        constants.extend([
            &format!("pub(super) const {}: [&str; {}] = ", name.to_uppercase(), NAMES.len()),
            &*format!("{expressions:?};\n"),
        ]);
    }
    let folder = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join("expressions.rs"), constants).expect("the folder of the build is writable");
}
