//! The images of an installation: from the flags, from the hub, or of this release.

use crate::cli::HubInstallArgs;
use crate::install::{
    ArgoCd, IMAGE, IS_PUBLISHED, InstallImages, InstallOptions, Installed, REPO_SERVER, ShippedObject,
};
use ocm::image::tag;
use std::fmt::Write as _;

/// The version of this program, which its release tags the image with.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the images: a flag overrides the image on the hub, and that the image of this release. Kustomize and helm are those of the
/// hub's Argo CD, so that the plugin renders as Argo CD does.
pub(super) fn selected(args: &HubInstallArgs, installed: &Installed, argo_cd: &ArgoCd) -> InstallImages {
    let shipped = InstallImages::default();
    let ours = |live: &Option<String>, other: &Option<String>| {
        let known = [&args.image, live, other].into_iter().flatten().next();
        known.map_or(IMAGE.to_owned(), String::clone)
    };
    let (controller, sidecar) = (&installed.controller_image, &installed.sidecar_image);
    let requested = &args.argocd_image;
    InstallImages {
        controller: ours(controller, sidecar),
        sidecar: ours(sidecar, controller),
        tools: requested.clone().or(argo_cd.image.clone()).unwrap_or(shipped.tools),
        argocd: requested.clone().unwrap_or(shipped.argocd),
        agent: args.agent_image.clone(),
    }
}

/// Returns an error if the objects need an image of this program, and there is none yet.
pub(super) fn missing(args: &HubInstallArgs, installed: &Installed, objects: &[ShippedObject]) -> Vec<String> {
    let is_known = IS_PUBLISHED
        || args.image.is_some()
        || installed.controller_image.is_some()
        || installed.sidecar_image.is_some();
    let problem = format!(
        "--image is not set, and no release is published yet: build and push an image with cargo xtask release --to oci://REGISTRY, then \
         pass --image REGISTRY/argocd-ocm-cmp:{VERSION}"
    );
    let is_missing = !is_known && objects.iter().any(|object| has_image(object, IMAGE));
    is_missing.then_some(problem).into_iter().collect()
}

/// Returns an error if the objects need the image of the hub's Argo CD, and it is not known.
pub(super) fn unknown_tools(
    args: &HubInstallArgs,
    options: &InstallOptions,
    objects: &[ShippedObject],
) -> Option<String> {
    let argo_cd = &options.argo_cd;
    let is_found = argo_cd.why_unknown(REPO_SERVER).is_none();
    let has_sidecar = || {
        let mut additions = objects.iter().filter(|object| object.is_addition());
        additions.any(|object| has_image(object, &options.images.sidecar))
    };
    let is_unknown = is_found && argo_cd.image.is_none() && args.argocd_image.is_none() && has_sidecar();
    is_unknown.then(|| {
        format!(
            "Deployment {}/{}: the container of argocd-repo-server is not known: pass its image with --argocd-image",
            options.namespace, argo_cd.repo_server
        )
    })
}

/// Returns a line for each image of another version that stays.
pub(super) fn kept(args: &HubInstallArgs, installed: &Installed, objects: &[ShippedObject]) -> String {
    let mut lines = String::new();
    let mut live: Vec<&String> = [&installed.controller_image, &installed.sidecar_image]
        .into_iter()
        .flatten()
        .collect();
    live.dedup();
    let is_other = |image: &&String| tag(image).is_some_and(|tag| tag.trim_start_matches('v') != VERSION);
    for image in live.into_iter().filter(is_other).filter(|_| args.image.is_none()) {
        if objects.iter().any(|object| has_image(object, image)) {
            writeln!(lines, "image {image} kept: to upgrade it, pass --image")
                .expect("writing to a String never fails");
        }
    }
    lines
}

/// Returns true if a container of the object runs the image.
fn has_image(object: &ShippedObject, image: &str) -> bool {
    object.json().contains(&format!("\"image\":\"{image}\""))
}
