//! The bill of materials: every package of which there is code in the program, by `CycloneDX` 1.5.
//!
//! The packages are those that cargo resolves for the target without dev-dependencies, build scripts and macros, whose code runs
//! while building only. What a static program has besides is what the compilers add: Rust's standard library, glibc, and
//! libgcc's unwinder. There is no time and no random number in it, so one commit and one builder give one bill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

mod lock;
mod tree;

use tree::Package;

/// The package of the program.
const PROGRAM: &str = "argocd-ocm-cmp";

/// What a compiler adds to the program.
struct Added {
    name: &'static str,
    version: String,
    licence: &'static str,
}

/// The bill of the program for a target, by the cargo, rustc and C compiler that are on the PATH.
pub(crate) fn of(target: &str) -> Result<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tree = tree::of(&root, PROGRAM, target)?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
    bill(&tree, &lock::checksums(&lock), &added()?)
}

/// What the compilers here add. The C library and the C compiler are those of the machine, so the bill is made where the program is.
fn added() -> Result<Vec<Added>> {
    let rustc = said("rustc", &["--version"])?;
    let glibc = said("getconf", &["GNU_LIBC_VERSION"])?;
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
            version: said("cc", &["-dumpfullversion"])?,
            licence: "GPL-3.0-or-later WITH GCC-exception-3.1",
        },
    ])
}

fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("{program} cannot be run"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} failed: {}", errors.trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Puts the bill together.
fn bill(tree: &tree::Tree, checksums: &BTreeMap<Package, String>, added: &[Added]) -> Result<Value> {
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for (package, needed) in &tree.needs {
        let licence = tree.licences.get(package).map(String::as_str).unwrap_or_default();
        ensure!(!licence.is_empty(), "{package} names no licence");
        let mut component = component("cargo", &package.name, &package.version, licence);
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
    let program = components.iter().position(is_program).context("the program itself")?;
    let mut program = components.remove(program);
    program["type"] = json!("application");
    for each in added {
        components.push(component("generic", each.name, &each.version, each.licence));
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

fn component(kind: &str, name: &str, version: &str, licence: &str) -> Value {
    let purl = format!("pkg:{kind}/{name}@{}", version.replace('+', "%2B"));
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{"expression": expression(licence)}],
        "purl": purl,
    })
}

/// The licence as SPDX writes it: packages of old have a slash between those of which one may choose.
fn expression(licence: &str) -> String {
    licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

fn purl(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

fn reference(added: &Added) -> String {
    format!("pkg:generic/{}@{}", added.name, added.version)
}

#[cfg(test)]
mod tests;
