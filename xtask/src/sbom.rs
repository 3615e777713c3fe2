//! The bill of materials: every package with code in the program, in `CycloneDX` 1.5.
//!
//! The packages are those that cargo resolves for the target without dev-dependencies, build scripts and macros, whose code runs
//! only during the build. A static program also contains the code that the compilers add: Rust's standard library, glibc, and
//! libgcc's unwinder. The bill contains no time and no random number, so one commit and one builder give one bill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{PROGRAM, output};

mod lock;
mod tree;

use tree::Package;

/// A component that a compiler adds to the program.
struct Added {
    name: &'static str,
    version: String,
    licence: &'static str,
}

/// Returns the bill of the program for a target, from the cargo, rustc and C compiler on the PATH.
pub(crate) fn build_sbom(target: &str) -> Result<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tree = tree::read_tree(&root, PROGRAM, target)?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
    bill(&tree, &lock::checksums(&lock), &added()?)
}

/// Returns the components that the compilers here add. The C library and the C compiler are those of the machine, so the bill
/// must be created on the machine that builds the program.
fn added() -> Result<Vec<Added>> {
    let rustc = output(Command::new("rustc").arg("--version"))?;
    let glibc = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let second = |text: &str| text.split(' ').nth(1).map(str::to_owned).context("a version");
    Ok(vec![
        Added {
            name: "rust-std",
            version: second(&rustc)?,
            licence: "MIT OR Apache-2.0",
        },
        Added {
            name: "glibc",
            version: second(&glibc)?,
            licence: "LGPL-2.1-or-later",
        },
        Added {
            name: "libgcc",
            version: output(Command::new("cc").arg("-dumpfullversion"))?,
            licence: "GPL-3.0-or-later WITH GCC-exception-3.1",
        },
    ])
}

/// Creates the bill.
fn bill(tree: &tree::PackageTree, checksums: &BTreeMap<Package, String>, added: &[Added]) -> Result<Value> {
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for (package, needed) in &tree.needs {
        let licence = tree.licences.get(package).map(String::as_str).unwrap_or_default();
        ensure!(!licence.is_empty(), "{package} has no licence");
        let mut component = component(&purl(package), &package.name, &package.version, licence);
        if let Some(checksum) = checksums.get(package) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        components.push(component);
        let mut needed: BTreeSet<String> = needed.iter().map(purl).collect();
        if *package == tree.root {
            needed.extend(added.iter().map(reference));
        }
        dependencies.push(json!({"ref": purl(package), "dependsOn": needed}));
    }
    let is_program = |component: &Value| component["bom-ref"] == purl(&tree.root);
    let program = components
        .iter()
        .position(is_program)
        .context("the program is not in the bill")?;
    let mut program = components.remove(program);
    program["type"] = json!("application");
    for each in added {
        components.push(component(&reference(each), each.name, &each.version, each.licence));
        dependencies.push(json!({"ref": reference(each)}));
    }
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(purl: &str, name: &str, version: &str, licence: &str) -> Value {
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{"expression": expression(licence)}],
        "purl": purl,
    })
}

/// Converts a licence to SPDX: old packages separate alternative licences with a slash.
fn expression(licence: &str) -> String {
    licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

fn purl(package: &Package) -> String {
    let (name, version) = (&package.name, package.version.replace('+', "%2B"));
    // The crates of this repository are on no registry, where other packages have their names.
    if package.is_local && name != PROGRAM {
        format!("pkg:generic/{PROGRAM}/{name}@{version}")
    } else {
        format!("pkg:cargo/{name}@{version}")
    }
}

fn reference(added: &Added) -> String {
    format!("pkg:generic/{}@{}", added.name, added.version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests;
