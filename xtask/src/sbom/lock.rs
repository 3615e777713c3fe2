//! The checksums of Cargo.lock.

use std::collections::BTreeMap;

use super::tree::Package;
use crate::toml_text;

/// Returns the SHA-256 of each package's archive. Packages of the workspace have none.
pub(super) fn checksums(lock: &str) -> BTreeMap<Package, String> {
    let packages = lock.split("[[package]]").skip(1);
    packages
        .filter_map(|package| {
            let value = |key: &str| toml_text(package, key).map(str::to_owned);
            let (name, version) = (value("name")?, value("version")?);
            let package = Package {
                name,
                version,
                is_local: false,
            };
            Some((package, value("checksum")?))
        })
        .collect()
}
