//! Renders a kustomization as Argo CD does: with `kustomize build`.

use super::bounds::Repository;
use super::fetch::{Fetched, REQUESTS};
use super::helm::plain_version;
use super::tool::ToolAccess;
use super::{Manifests, Source, rendered};
use manifest::problem::Problems;
use std::path::Path;

/// Renders the kustomization at `below` in `folder` with `kustomize build`.
///
/// # Errors
/// Returns an error if the kustomization needs an address that is not allowed, or with the message of kustomize.
pub(super) fn render(folder: &Path, below: &str, source: &Source) -> Result<Manifests, Problems> {
    let repository = Repository::of(folder, &source.path);
    let folder = &folder.join(below);
    let mut arguments = vec!["build", "."];
    arguments.extend(source.kustomize_options.iter().map(String::as_str));
    let version = source.helm.kube_version.as_deref().map(plain_version);
    if let Some(version) = version.filter(|_| arguments.contains(&"--enable-helm")) {
        arguments.extend(["--helm-kube-version", version]);
    }
    let mut fetched = Fetched::new()?;
    let mut attempts = 0;
    let written = loop {
        let access = ToolAccess::kustomize(repository.root(), &source.remotes, &source.kustomize_options, &fetched);
        match source.tools.run("kustomize", &arguments, folder, None, &access)? {
            Ok(written) => break written,
            Err(error) if attempts < REQUESTS && fetched.provide(&error, source)? => attempts += 1,
            Err(error) => return Err(Problems::one(format!("kustomize build: {}", shown(&error.line())))),
        }
    };
    let texts = vec![("kustomize build".to_owned(), &*written.manifests)];
    let mut manifests = rendered(texts, written.manifests.len(), source)?;
    manifests.notices.extend(written.notices("kustomize build"));
    Ok(manifests)
}

/// Returns kustomize's error message; for a failed chart only helm's message, without the command line.
fn shown(error_output: &str) -> &str {
    match error_output.split_once(" : unable to run: 'helm ") {
        Some((of_helm, _)) if !of_helm.is_empty() => of_helm.strip_prefix("Error: ").unwrap_or(of_helm),
        _ => error_output,
    }
}
