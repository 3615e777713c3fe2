//! Renders a kustomization as Argo CD does: by `kustomize build`.

use super::bounds::Repository;
use super::helm::plain_version;
use super::tool::{Complaint, Needs};
use super::{Manifests, Source, kustomization, rendered};
use crate::generate::problem::Problems;
use std::path::Path;

/// The files that make a folder a kustomization, as kustomize knows them.
pub(super) const FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Returns the objects that `kustomize build` makes of the kustomization at `below` in `folder`.
///
/// # Errors
/// When the kustomization leads out of the repository, and with what kustomize complains about.
pub(super) fn render(folder: &Path, below: &str, source: &Source) -> Result<Manifests, Problems> {
    let repository = Repository::of(folder, &source.path);
    let folder = &folder.join(below);
    Problems::or(kustomization::problems(folder, &repository, &source.remotes), ())?;
    let mut arguments = vec!["build", "."];
    arguments.extend(source.kustomize_options.iter().map(String::as_str));
    let version = source.helm.kube_version.as_deref().map(plain_version);
    if let Some(version) = version.filter(|_| arguments.contains(&"--enable-helm")) {
        arguments.extend(["--helm-kube-version", version]);
    }
    let needs = Needs::of_kustomize(repository.root(), &source.remotes, &source.kustomize_options);
    let written = source.tools.run("kustomize", arguments, folder, None, &needs)?;
    let written = written.map_err(|Complaint(line)| Problems::one(format!("kustomize build: {}", shown(&line))))?;
    let texts = vec![("kustomize build".to_owned(), &*written.manifests)];
    let mut manifests = rendered(texts, written.manifests.len(), source)?;
    manifests.notices = written.notices("kustomize build");
    Ok(manifests)
}

/// What kustomize complains about; of a chart that failed only what helm said, not the command line it was called with.
fn shown(said: &str) -> &str {
    match said.split_once(" : unable to run: 'helm ") {
        Some((of_helm, _)) if !of_helm.is_empty() => of_helm.strip_prefix("Error: ").unwrap_or(of_helm),
        _ => said,
    }
}
