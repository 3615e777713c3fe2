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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_workspace_have_no_checksum() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"s\"\nchecksum = \"0f\"\n\
                    dependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"0.1.0\"\n";
        let a = Package {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            is_local: false,
        };
        assert_eq!(checksums(lock), BTreeMap::from([(a, "0f".to_owned())]));
    }
}
