//! Embeds the shipped files, and links the program at a fixed address, as Go's programs are. A release with the Kubernetes client has
//! sixteen thousand relocations when it is position-independent, which would take a third of the time of a small `generate`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "this is how cargo is spoken to"
)]

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// The shipped files outside `deploy/`.
const TOP_FILES: [&str; 5] = [
    "plugin.yaml",
    "cm_plugin.yaml",
    "deploy_cmp.yaml",
    "proj.yaml",
    "chart/features.yaml",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=deploy");
    let mut files: Vec<String> = TOP_FILES.map(str::to_owned).into();
    for entry in fs::read_dir("deploy")? {
        let name = entry?
            .file_name()
            .into_string()
            .map_err(|name| format!("{} is not UTF-8", name.display()))?;
        if Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(format!("deploy/{name}"));
        }
    }
    files.sort();
    // Not an absolute path: the checkout may be moved together with its target folder.
    let row = |file: &String| {
        let path = format!("/{file}");
        format!("({file:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),\n")
    };
    let table: String = files.iter().map(row).collect();
    let out = Path::new(&env::var("OUT_DIR")?).join("files.rs");
    fs::write(out, format!("&[\n{table}]\n"))?;

    let is = |name: &str, value: &str| env::var(name).is_ok_and(|values| values.split(',').any(|each| each == value));
    // A static program is linked in another way.
    if is("CARGO_CFG_TARGET_OS", "linux") && !is("CARGO_CFG_TARGET_FEATURE", "crt-static") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    Ok(())
}
