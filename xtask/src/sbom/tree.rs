//! The linked packages of a package, from `cargo tree`: with the features that are enabled for one target, which `cargo metadata`
//! mixes with those that only tests enable.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A package, in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// True if the sources are in this repository.
    pub(super) is_local: bool,
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// The packages under a root, itself included.
#[derive(Debug)]
pub(super) struct PackageTree {
    pub(super) root: Package,
    /// The packages that each is linked with directly.
    pub(super) needs: BTreeMap<Package, BTreeSet<Package>>,
    /// The licences in each Cargo.toml.
    pub(super) licences: BTreeMap<Package, String>,
}

/// Returns the packages that `program` is linked with on a target.
pub(super) fn read_tree(workspace: &Path, program: &str, target: &str) -> Result<PackageTree> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace);
    cargo.args(["tree", "--locked", "--package", program, "--target", target]);
    cargo.args(["--edges", "normal,no-proc-macro", "--charset", "ascii"]);
    cargo.args(["--prefix", "depth", "--format", "\t{p}\t{l}\t"]);
    let output = cargo.output().context("cargo cannot be run")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo tree failed: {}", errors.trim());
    parse_tree(&String::from_utf8(output.stdout)?)
}

/// Parses a line for each edge: its depth, the package and its licence. The dependencies of a package are listed once.
fn parse_tree(text: &str) -> Result<PackageTree> {
    let (mut needs, mut licences) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::new());
    let mut above: Vec<Package> = Vec::new();
    for line in text.lines() {
        let package =
            package(line, &mut licences).with_context(|| format!("unexpected line of cargo tree: {line:?}"))?;
        let depth: usize = line.split('\t').next().unwrap_or_default().parse()?;
        above.truncate(depth);
        ensure!(above.len() == depth, "cargo tree leaves out a level before {package}");
        if let Some(parent) = above.last() {
            needs.entry(parent.clone()).or_default().insert(package.clone());
        }
        needs.entry(package.clone()).or_default();
        above.push(package);
    }
    let root = above.into_iter().next().context("cargo tree prints nothing")?;
    Ok(PackageTree { root, needs, licences })
}

fn package(line: &str, licences: &mut BTreeMap<Package, String>) -> Option<Package> {
    let mut fields = line.split('\t').skip(1);
    let (package, licence) = (fields.next()?, fields.next()?);
    let mut words = package.split(' ');
    let package = Package {
        name: words.next()?.to_owned(),
        version: words.next()?.strip_prefix('v')?.to_owned(),
        is_local: words.next().is_some_and(|source| source.starts_with("(/")),
    };
    licences.insert(package.clone(), licence.to_owned());
    Some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_edges_from_depths() {
        let text =
            "0\ta v0.1.0 (/src)\tApache-2.0\t\n1\tb v1.0.0\tMIT\t\n2\tc v2.0.0+up\tMIT\t\n1\tc v2.0.0+up\tMIT\t (*)\n";
        let tree = parse_tree(text).unwrap();
        let listed_by_bill: Vec<String> = tree
            .needs
            .iter()
            .map(|(package, needs)| {
                let needs: Vec<_> = needs.iter().map(Package::to_string).collect();
                format!("{package}: {} ({})", needs.join(", "), tree.licences[package])
            })
            .collect();
        assert_eq!(tree.root.to_string(), "a 0.1.0");
        assert_eq!(
            listed_by_bill,
            [
                "a 0.1.0: b 1.0.0, c 2.0.0+up (Apache-2.0)",
                "b 1.0.0: c 2.0.0+up (MIT)",
                "c 2.0.0+up:  (MIT)"
            ]
        );
        for broken in ["", "0\ta\tMIT\t\n", "2\ta v1.0.0\tMIT\t\n"] {
            assert!(parse_tree(broken).is_err(), "{broken:?}");
        }
    }
}
