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

/// Returns what follows these words at the beginnings of lines.
fn fields<'p>(printed: &'p str, words: &str) -> Vec<&'p str> {
    printed.lines().filter_map(|line| line.strip_prefix(words)).collect()
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
    let printed = rights(folder.path(), "shop");
    let names = ["[tank, tanks]", "[customresourcedefinitions]", "[tank, tanks]"];
    assert_eq!(fields(&printed, "  resources: "), names, "{printed}");
    let groups = ["[\"1.5\"]", "[apiextensions.k8s.io]", "[example.com]"];
    assert_eq!(fields(&printed, "- apiGroups: "), groups, "{printed}");
    assert!(!printed.contains('*'), "{printed}");
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
    let kinds = "ClusterRole ClusterRoleBinding Role RoleBinding";
    assert_eq!(fields(printed, "kind: ").join(" "), kinds, "{printed}");
    let groups = "[cert-manager.io] [\"\"] [apps] [example.com] [networking.k8s.io] [rbac.authorization.k8s.io] [rbac.authorization.k8s.io]";
    assert_eq!(fields(printed, "- apiGroups: ").join(" "), groups, "{printed}");
    let resources =
        "[clusterissuers] [configmaps] [deployments] [mice] [ingresses] [rolebindings] [clusterroles, roles]";
    assert_eq!(fields(printed, "  resources: ").join(" "), resources, "{printed}");
    let verbs = [&["[create, delete, get, patch, update]"; 6][..], &["[bind]"]].concat();
    assert_eq!(fields(printed, "  verbs: "), verbs, "{printed}");
    assert_eq!(
        fields(printed, "  namespace: "),
        ["shop", "default", "default", "shop"],
        "{printed}"
    );
    let subject = "subjects:\n- kind: ServiceAccount\n  name: deployer\n  namespace: shop\n";
    assert_eq!(printed.matches(subject).count(), 2, "{printed}");
    let none = rights(shop().path(), &format!("{arguments} --include=none"));
    assert!(none.contains("error: no manifests"), "as generate: {none}");
}
