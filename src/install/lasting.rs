//! The objects that must stay when a Helm release, or an Application of Argo CD, no longer has them. The chart does the same.

use super::{POLICY, ShippedObject};
use crate::workload::items;
use serde_json::Value;
use std::collections::BTreeSet;

/// The annotation with which Argo CD neither prunes an object nor deletes it with its Application.
const SYNC_OPTIONS: (&str, &str) = ("argocd.argoproj.io/sync-options", "Prune=false,Delete=false");

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

/// Adds an annotation for Argo CD to its own objects, and to those that others use: a CRD with the objects of users, the add-on with Argo
/// CD on managed clusters, and ConfigMaps that Argo CD's Pods mount.
pub fn keep_in_argo_cd(objects: &mut [ShippedObject]) {
    let mounted = mounted_config_maps(objects);
    for object in objects {
        let is_mounted = object.kind() == "ConfigMap" && (object.name() == POLICY || mounted.contains(object.name()));
        let is_used = object.kind() == "CustomResourceDefinition"
            || object.api_version().starts_with("addon.open-cluster-management.io/");
        if object.is_addition() || is_mounted || is_used {
            let (name, options) = SYNC_OPTIONS;
            object.value["metadata"]["annotations"][name] = options.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{InstallOptions, objects};

    #[test]
    fn argo_cd_keeps_its_own_objects_and_those_that_others_use() {
        let mut all = objects(&InstallOptions::everything("argocd"));
        keep_in_argo_cd(&mut all);
        let is_kept = |object: &&ShippedObject| {
            object.value["metadata"]["annotations"][SYNC_OPTIONS.0] == "Prune=false,Delete=false"
        };
        let kept: Vec<String> = all.iter().filter(is_kept).map(ShippedObject::to_string).collect();
        let template = all
            .iter()
            .find(|object| object.kind() == "AddOnTemplate")
            .expect("a template")
            .name();
        insta::assert_snapshot!(kept.join("\n").replace(template, "argocd-addon-HASH"), @r"
        customresourcedefinition.apiextensions.k8s.io/multiclusterapplicationsetreports.apps.open-cluster-management.io
        customresourcedefinition.apiextensions.k8s.io/gitopsclusters.apps.open-cluster-management.io
        configmap/argocd-ocm-cmp
        configmap/argocd-cm
        configmap/argocd-ocm-cmp-policy
        configmap/argocd-cmd-params-cm
        configmap/argocd-ocm-cmp-ui
        addondeploymentconfig.addon.open-cluster-management.io/argocd-addon
        addontemplate.addon.open-cluster-management.io/argocd-addon-HASH
        clustermanagementaddon.addon.open-cluster-management.io/argocd
        deployment.apps/argocd-repo-server
        deployment.apps/argocd-server
        ");
    }
}
