//! Tests of kustomize and Helm, as Argo CD and its plugins find them.

use std::process::Command;

use anyhow::Result;
use testbed::Parts;

#[test]
fn tools_have_the_pinned_versions() -> Result<()> {
    let parts = Parts::ensure()?;
    let version = |tool: &str, arguments: &[&str]| -> Result<String> {
        let output = Command::new(parts.tools().join(tool)).args(arguments).output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    assert_eq!(version("kustomize", &["version"])?, "v5.8.1");
    assert_eq!(version("helm", &["version", "--short"])?, "v3.19.5");
    Ok(())
}
