//! The images of an installation: from the flags, from the hub, or of this release.

use super::InstallHub;
use crate::cli::HubInstallArgs;
use crate::install::{
    AGENT_IMAGE, ARGOCD_IMAGE, ArgoCd, IMAGE, IS_PUBLISHED, InstallImages, InstallOptions, Installed, REPO_SERVER,
    ShippedObject, argocd_image,
};
use crate::workload::items;
use ocm::image::tag;
use ocm::pull_model::ADDON;
use ocm::resources::{MANAGEMENTS, TEMPLATES};

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
    let choose = |flag: &Option<String>, live: &Option<String>, shipped| {
        flag.clone().or_else(|| live.clone()).unwrap_or(shipped)
    };
    InstallImages {
        controller: ours(controller, sidecar),
        sidecar: ours(sidecar, controller),
        tools: choose(&args.argocd_image, &argo_cd.image, shipped.tools),
        argocd: choose(&args.argocd_image, &installed.argocd_image, shipped.argocd),
        agent: choose(&args.agent_image, &installed.agent_image, shipped.agent),
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
    let tag_of = |image: &str| tag(image).unwrap_or_default().trim_start_matches('v').to_owned();
    let images = [
        ("--image", &args.image, &installed.controller_image, IMAGE),
        ("--image", &args.image, &installed.sidecar_image, IMAGE),
        ("--agent-image", &args.agent_image, &installed.agent_image, AGENT_IMAGE),
        (
            "--argocd-image",
            &args.argocd_image,
            &installed.argocd_image,
            ARGOCD_IMAGE,
        ),
    ];
    let mut lines: Vec<String> = Vec::new();
    for (flag, requested, live, shipped) in images {
        let Some(image) = live.as_ref().filter(|_| requested.is_none()) else {
            continue;
        };
        let is_other = tag(image).is_some() && tag_of(image) != tag_of(shipped);
        let line = format!("image {image} kept: to upgrade it, pass {flag}\n");
        if is_other && !lines.contains(&line) && objects.iter().any(|object| has_image(object, image)) {
            lines.push(line);
        }
    }
    lines.concat()
}

/// Returns the image of Argo CD that our add-on installs by default on managed clusters, if it is on the hub.
pub(super) async fn read_addon_image(hub: &InstallHub) -> Result<Option<String>, String> {
    let management = hub.get(&MANAGEMENTS.path(""), ADDON).await?.unwrap_or_default();
    let configs = items(&management["spec"]["supportedConfigs"]).iter();
    let templates = configs.filter(|config| config["resource"] == "addontemplates");
    for name in templates.filter_map(|config| config["defaultConfig"]["name"].as_str()) {
        let template = hub.get(&TEMPLATES.path(""), name).await?;
        if let Some(image) = template.as_ref().and_then(argocd_image) {
            return Ok(Some(image));
        }
    }
    Ok(None)
}

/// Returns true if a container of the object runs the image.
fn has_image(object: &ShippedObject, image: &str) -> bool {
    object.json().contains(&format!("\"image\":\"{image}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::install::tests::args;
    use crate::install::objects;

    #[test]
    fn images_on_the_hub_stay_unless_a_flag_names_others() {
        let ours = "registry.example.com/argocd-ocm-cmp:9".to_owned();
        let argocd = "registry.example.com/argocd:v9".to_owned();
        let agent = "registry.example.com/agent:v9".to_owned();
        let installed = Installed {
            controller_image: Some(ours.clone()),
            agent_image: Some(agent.clone()),
            argocd_image: Some(argocd.clone()),
            ..Installed::default()
        };
        let images = selected(&args(&[]), &installed, &ArgoCd::default());
        let on_the_hub = InstallImages {
            controller: ours.clone(),
            sidecar: ours,
            argocd,
            agent,
            ..InstallImages::default()
        };
        assert_eq!(images, on_the_hub);
        let objects = objects(&InstallOptions {
            images,
            ..InstallOptions::everything("argocd")
        });
        let lines = "image registry.example.com/argocd-ocm-cmp:9 kept: to upgrade it, pass --image\n\
                     image registry.example.com/agent:v9 kept: to upgrade it, pass --agent-image\n\
                     image registry.example.com/argocd:v9 kept: to upgrade it, pass --argocd-image\n";
        assert_eq!(kept(&args(&[]), &installed, &objects), lines);
        let flags = args(&["--image=a:1", "--agent-image=b:1", "--argocd-image=c:1"]);
        let images = selected(&flags, &installed, &ArgoCd::default());
        let named = [images.controller, images.agent, images.argocd, images.tools];
        assert_eq!(named, ["a:1", "b:1", "c:1", "c:1"]);
        assert_eq!(kept(&flags, &installed, &objects), "");
        assert_eq!(
            selected(&args(&[]), &Installed::default(), &ArgoCd::default()),
            InstallImages::default()
        );
    }
}
