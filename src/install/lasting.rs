//! The objects that must stay when a Helm release, an Application of Argo CD or a Kustomization of Flux no longer has them. The chart does
//! the same.

use super::{POLICY, ShippedObject};
use crate::workload::items;
use ocm::pull_model::SYNC_OPTIONS;
use serde_json::Value;
use std::collections::BTreeSet;

/// The options with which Argo CD neither prunes an object nor deletes it with its Application.
const OF_KEPT: &str = "Prune=false,Delete=false";

/// As [`OF_KEPT`]. Applied in another way than server-side, an addition would remove Argo CD's own fields.
const OF_ADDITION: &str = "Prune=false,Delete=false,ServerSideApply=true";

/// The annotation with which Flux does not delete an object that leaves a Kustomization, and that with which it leaves fields alone that
/// `kubectl apply` has set. Otherwise it takes these over, and so removes Argo CD's own fields beside an addition.
const KEPT_BY_FLUX: (&str, &str) = ("kustomize.toolkit.fluxcd.io/prune", "disabled");
const MERGED_BY_FLUX: (&str, &str) = ("kustomize.toolkit.fluxcd.io/ssa", "Merge");

/// The lists of volumes in Deployments, and in the ArgoCD resource of an operator.
const VOLUMES: [&str; 3] = [
    "/spec/template/spec/volumes",
    "/spec/repo/volumes",
    "/spec/server/volumes",
];

/// Returns the ConfigMaps without which the Pods of a Deployment, or of an ArgoCD resource, do not start.
pub fn required_config_maps(workload: &Value) -> impl Iterator<Item = &str> {
    let volumes = VOLUMES.iter().filter_map(|list| workload.pointer(list)).flat_map(items);
    let config_maps = volumes.map(|volume| &volume["configMap"]);
    config_maps
        .filter(|config_map| config_map["optional"] != true)
        .filter_map(|config_map| config_map["name"].as_str())
}

/// Returns the ConfigMaps without which Argo CD's Pods do not start with these additions.
pub fn mounted_config_maps(objects: &[ShippedObject]) -> BTreeSet<String> {
    let additions = objects.iter().filter(|object| object.is_addition());
    additions
        .flat_map(|object| required_config_maps(&object.value))
        .map(str::to_owned)
        .collect()
}

/// Adds annotations for Argo CD and Flux to Argo CD's own objects, and to those that others use: a CRD with the objects of users, the
/// AppProject of Applications, the add-on with Argo CD on managed clusters, and ConfigMaps that Argo CD's Pods mount.
pub fn keep_in_gitops(objects: &mut [ShippedObject]) {
    let mounted = mounted_config_maps(objects);
    for object in objects {
        let is_mounted = object.kind() == "ConfigMap" && (object.name() == POLICY || mounted.contains(object.name()));
        let is_used = ["CustomResourceDefinition", "AppProject"].contains(&object.kind())
            || object.api_version().starts_with("addon.open-cluster-management.io/");
        let annotations: &[(&str, &str)] = if object.is_addition() {
            &[(SYNC_OPTIONS, OF_ADDITION), KEPT_BY_FLUX, MERGED_BY_FLUX]
        } else if is_mounted || is_used {
            &[(SYNC_OPTIONS, OF_KEPT), KEPT_BY_FLUX]
        } else {
            continue;
        };
        for (name, value) in annotations {
            object.value["metadata"]["annotations"][name] = (*value).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{InstallOptions, objects};

    #[test]
    fn argo_cds_own_objects_and_those_that_others_use_are_kept() {
        let mut all = objects(&InstallOptions::everything("argocd"));
        keep_in_gitops(&mut all);
        let options = |object: &ShippedObject| object.value["metadata"]["annotations"][SYNC_OPTIONS].clone();
        let kept = all.iter().filter(|object| !options(object).is_null());
        for object in kept.clone() {
            let annotations = &object.value["metadata"]["annotations"];
            assert_eq!(annotations["kustomize.toolkit.fluxcd.io/prune"], "disabled", "{object}");
            assert_eq!(
                annotations["kustomize.toolkit.fluxcd.io/ssa"] == "Merge",
                object.is_addition(),
                "{object}"
            );
        }
        let kept: Vec<String> = kept
            .map(|object| format!("{object} {}", options(object).as_str().unwrap_or_default()))
            .collect();
        let template = all
            .iter()
            .find(|object| object.kind() == "AddOnTemplate")
            .expect("a template")
            .name();
        insta::assert_snapshot!(kept.join("\n").replace(template, "argocd-addon-HASH"), @r"
        customresourcedefinition.apiextensions.k8s.io/multiclusterapplicationsetreports.apps.open-cluster-management.io Prune=false,Delete=false
        customresourcedefinition.apiextensions.k8s.io/gitopsclusters.apps.open-cluster-management.io Prune=false,Delete=false
        appproject.argoproj.io/managed-clusters Prune=false,Delete=false
        configmap/argocd-ocm-cmp Prune=false,Delete=false
        configmap/argocd-cm Prune=false,Delete=false,ServerSideApply=true
        configmap/argocd-ocm-cmp-policy Prune=false,Delete=false
        configmap/argocd-cmd-params-cm Prune=false,Delete=false,ServerSideApply=true
        configmap/argocd-ocm-cmp-ui Prune=false,Delete=false
        addondeploymentconfig.addon.open-cluster-management.io/argocd-addon Prune=false,Delete=false
        addontemplate.addon.open-cluster-management.io/argocd-addon-HASH Prune=false,Delete=false
        clustermanagementaddon.addon.open-cluster-management.io/argocd Prune=false,Delete=false
        deployment.apps/argocd-repo-server Prune=false,Delete=false,ServerSideApply=true
        deployment.apps/argocd-server Prune=false,Delete=false,ServerSideApply=true
        ");
    }
}
