//! Tests of `rights`, which prints the permissions that a folder needs on managed clusters.

use crate::program::{folder, run};
use std::path::Path;
use tempfile::TempDir;

const OBJECTS: &str = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {}, template: {}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {name: view}}
---
{apiVersion: cert-manager.io/v1, kind: ClusterIssuer, metadata: {name: a}}
---
{apiVersion: example.com/v1, kind: Mouse, metadata: {name: a}}
";

fn rights(folder: &Path, arguments: &str) -> String {
    run(folder, &format!("rights {arguments}"))
}

fn shop() -> TempDir {
    folder(&[("shop/all.yaml", OBJECTS)])
}

#[test]
fn prints_a_role_for_the_agent() {
    insta::assert_snapshot!(rights(shop().path(), "shop --create-namespace"), @r#"
    exit code: 0
    ----- stdout -----
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      name: argocd-ocm-cmp:shop
      labels:
        open-cluster-management.io/aggregate-to-work: "true"
    rules:
    - apiGroups: [""]
      resources: [configmaps, namespaces]
      verbs: [create, delete, get, list, patch, update, watch]
    - apiGroups: [apps]
      resources: [deployments]
      verbs: [create, delete, get, list, patch, update, watch]
    - apiGroups: [cert-manager.io]
      resources: [clusterissuers]
      verbs: [create, delete, get, list, patch, update, watch]
    - apiGroups: [example.com]
      resources: [mouse, mouses]
      verbs: [create, delete, get, list, patch, update, watch]
    - apiGroups: [networking.k8s.io]
      resources: [ingresses]
      verbs: [create, delete, get, list, patch, update, watch]
    - apiGroups: [rbac.authorization.k8s.io]
      resources: [rolebindings]
      verbs: [create, delete, get, list, patch, update, watch]
    - apiGroups: [rbac.authorization.k8s.io]
      resources: [clusterroles, roles]
      verbs: [bind]
    ----- stderr -----
    "#);
}

/// The output is for `kubectl apply`: no text of a repository may add permissions to it.
#[test]
fn plural_of_a_crd_adds_no_permissions() {
    let plural = r#"tanks]\n  verbs: [\"*\"]\n- apiGroups: [\"*\"]\n  resources: [\"*\""#;
    let objects = format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: x}}, \
         spec: {{group: example.com, scope: Namespaced, names: {{kind: Tank, plural: \"{plural}\"}}}}}}\n---\n\
         {{apiVersion: example.com/v1, kind: Tank, metadata: {{name: a}}}}\n---\n\
         {{apiVersion: '1.5/v1', kind: Tank, metadata: {{name: a}}}}\n"
    );
    let folder = folder(&[("shop/all.yaml", objects)]);
    insta::assert_snapshot!(rights(folder.path(), "shop"), @r#"
    exit code: 0
    ----- stdout -----
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      name: argocd-ocm-cmp:shop
      labels:
        open-cluster-management.io/aggregate-to-work: "true"
    rules:
    - apiGroups: ["1.5"]
      resources: [tank, tanks]
      verbs: [create, delete, get, list, patch, update, watch]
    - apiGroups: [apiextensions.k8s.io]
      resources: [customresourcedefinitions]
      verbs: [create, delete, get, list, patch, update, watch]
    - apiGroups: [example.com]
      resources: [tank, tanks]
      verbs: [create, delete, get, list, patch, update, watch]
    ----- stderr -----
    "#);
}

#[test]
fn prints_roles_of_the_namespaces_for_the_executor() {
    let arguments = "shop --executor=shop/deployer --resource-names=Mouse.example.com=mice";
    let folder = shop();
    std::fs::write(
        folder.path().join("shop/other.yaml"),
        "{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: other}}\n",
    )
    .expect("a file");
    let printed = rights(folder.path(), &format!("{arguments} --allow-secrets"));
    let role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: argocd-ocm-cmp:shop\n  namespace: ";
    let (printed, other) = printed.split_once(&format!("{role}other\n")).expect("a second Role");
    let secrets =
        "rules:\n- apiGroups: [\"\"]\n  resources: [secrets]\n  verbs: [create, delete, get, patch, update]\n---\n";
    assert!(
        other.starts_with(secrets) && other.contains("kind: RoleBinding"),
        "{other}"
    );
    insta::assert_snapshot!(printed, @r#"
    exit code: 0
    ----- stdout -----
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      name: argocd-ocm-cmp:shop
    rules:
    - apiGroups: [cert-manager.io]
      resources: [clusterissuers]
      verbs: [create, delete, get, patch, update]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata:
      name: argocd-ocm-cmp:shop
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: ClusterRole
      name: argocd-ocm-cmp:shop
    subjects:
    - kind: ServiceAccount
      name: deployer
      namespace: shop
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      name: argocd-ocm-cmp:shop
      namespace: default
    rules:
    - apiGroups: [""]
      resources: [configmaps]
      verbs: [create, delete, get, patch, update]
    - apiGroups: [apps]
      resources: [deployments]
      verbs: [create, delete, get, patch, update]
    - apiGroups: [example.com]
      resources: [mice]
      verbs: [create, delete, get, patch, update]
    - apiGroups: [networking.k8s.io]
      resources: [ingresses]
      verbs: [create, delete, get, patch, update]
    - apiGroups: [rbac.authorization.k8s.io]
      resources: [rolebindings]
      verbs: [create, delete, get, patch, update]
    - apiGroups: [rbac.authorization.k8s.io]
      resources: [clusterroles, roles]
      verbs: [bind]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata:
      name: argocd-ocm-cmp:shop
      namespace: default
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: Role
      name: argocd-ocm-cmp:shop
    subjects:
    - kind: ServiceAccount
      name: deployer
      namespace: shop
    "#);
    let none = rights(shop().path(), &format!("{arguments} --include=none"));
    assert!(none.contains("error: no manifests"), "as generate: {none}");
}
