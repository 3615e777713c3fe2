//! Checks the layers of the crates: the dependencies that each must not have.

use crate::modules::{folder, sources};
use std::collections::BTreeSet;
use std::process::Command;

/// Returns the names of all packages that a crate is built with, except dev-dependencies.
fn dependencies(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", package, "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

fn check(package: &str, forbidden: &[&str]) {
    let packages = dependencies(package);
    assert_eq!(packages.first().map(String::as_str), Some(package));
    for name in forbidden {
        assert!(
            !packages.iter().any(|dependency| dependency == name),
            "{package} must not depend on {name}"
        );
    }
}

/// Packages, each with those that it must not depend on. Only Helm reads packaged charts: no second reading can differ from its own.
const FORBIDDEN: &str = "
primitives: CLIENTS CRYPTO manifest ocm generate runtime controller
manifest: CLIENTS CRYPTO primitives ocm generate runtime controller
ocm: CLIENTS CRYPTO generate hub pki runtime controller
generate: CLIENTS CRYPTO hub pki runtime controller
pki: CLIENTS manifest ocm generate hub runtime controller
hub: ocm generate pki runtime controller
runtime: ocm generate controller
hub_state: ABOVE CONTROLLERS assignment
assignment: ABOVE CONTROLLERS
controller: generate argocd-ocm-cmp
live: generate controller
argocd-ocm-cmp: tar
";

#[test]
fn crates_keep_their_layers() {
    let above = ["generate", "controller", "argocd-ocm-cmp"];
    let table = include_str!("../../crates/controller/src/controllers.rs").lines();
    let names = table.filter_map(|line| Some(line.strip_prefix("    ")?.split_once("::")?.0));
    let controllers: Vec<_> = names.collect::<BTreeSet<_>>().into_iter().collect();
    assert!(controllers.len() > 5, "{controllers:?}");
    for package in &controllers {
        let uses = match *package {
            "gitopscluster" => &["assignment", "cluster_secrets", "argocd_agent"][..],
            "cluster_secrets" | "argocd_agent" => &["assignment"],
            _ => &[],
        };
        let mut all = [&above, &controllers[..], &["assignment"]].concat();
        all.retain(|name| name != package && !uses.contains(name));
        check(package, &all);
    }
    for (package, forbidden) in FORBIDDEN.lines().filter_map(|line| line.split_once(": ")) {
        let names = forbidden.split(' ').flat_map(|name| match name {
            "CLIENTS" => vec!["kube", "kube-client", "kube-core", "tokio", "hyper"],
            "CRYPTO" => vec!["aws-lc-rs", "aws-lc-sys", "rustls"],
            "ABOVE" => above.to_vec(),
            "CONTROLLERS" => controllers.clone(),
            name => vec![name],
        });
        check(package, &names.collect::<Vec<_>>());
    }
}

/// Comments count too: they would explain the runtime by what a controller does with it.
#[test]
fn runtime_names_no_api_of_argo_cd_or_ocm() {
    let files = sources(&folder("runtime"));
    assert!(files.iter().any(|file| file.ends_with("lib.rs")), "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a text");
        let end = text.find("mod tests {").unwrap_or(text.len());
        let text = text[..end].to_lowercase();
        let words = "argo cd¦argocd¦argoproj¦ocm¦open cluster¦managed cluster¦manifestwork¦gitops¦placement¦add-on";
        for word in words.split('¦') {
            assert!(!text.contains(word), "{}: {word}", file.display());
        }
    }
}

#[test]
fn commands_that_show_a_hub_only_read() {
    let fetch = crate::shipped_files::root().join("src/fetch");
    let paths = walkdir::WalkDir::new(&fetch)
        .into_iter()
        .map(|entry| entry.expect("a file").into_path());
    let files: Vec<_> = paths
        .filter(|path| path.is_file())
        .chain([fetch.with_extension("rs")])
        .collect();
    let mut reviews = 0;
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a text");
        for write in ["PatchParams", "DeleteParams", "POST", "PATCH", "PUT", "DELETE"] {
            assert!(!text.contains(write), "{}: {write}", file.display());
        }
        // The API server answers a review of permissions, and stores nothing.
        reviews += text.matches("&PostParams").count();
        assert_eq!(text.contains("&PostParams"), text.contains("v1/subjectaccessreviews\""));
    }
    assert_eq!(reviews, 1);
}
