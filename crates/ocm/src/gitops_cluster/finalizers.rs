//! The finalizers of GitOpsClusters: one for each Argo CD, so that each of several controllers adds and removes only its own.

/// The finalizer of earlier versions, which the controllers of all Argo CDs shared.
pub const SHARED_FINALIZER: &str = "argocd-ocm-cmp.github.io/gitopscluster";

/// The prefix of the finalizers. The name of a namespace follows; both namespaces and this part of finalizers allow 63
/// characters.
const PREFIX: &str = "gitopscluster.argocd-ocm-cmp.github.io/";

/// Returns the finalizer of the controller for the Argo CD in this namespace.
pub fn finalizer(argocd: &str) -> String {
    format!("{PREFIX}{argocd}")
}

/// Returns the namespace of the Argo CD whose controller adds and removes this finalizer, or `None` for the shared one and those
/// of others.
pub fn namespace_of_finalizer(finalizer: &str) -> Option<&str> {
    finalizer.strip_prefix(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_namespace_has_its_own_finalizer() {
        let longest = "n".repeat(63);
        let ours = finalizer(&longest);
        assert_eq!(namespace_of_finalizer(&ours), Some(&*longest));
        let (prefix, name) = ours.split_once('/').expect("a qualified name");
        assert!(prefix.len() <= 253 && name.len() <= 63, "the API server accepts {ours}");
        assert_ne!(finalizer("argocd"), finalizer("gitops"));
        for others in [SHARED_FINALIZER, "example.com/argocd", "argocd"] {
            assert_eq!(namespace_of_finalizer(others), None, "{others}");
        }
    }
}
