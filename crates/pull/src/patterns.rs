//! The patterns for managed clusters in the rules of AppProjects, as Argo CD matches them.

use ocm::glob;

/// Returns the servers that a cluster Secret of the pull model may have.
pub(super) fn servers(cluster: &str) -> [String; 2] {
    ["", ":6443"].map(|port| format!("https://{cluster}-control-plane{port}"))
}

/// Returns true if the name or the server of a destination matches this managed cluster, or denies only others.
pub(super) fn permits_cluster([name, server]: [&str; 2], cluster: &str) -> bool {
    permits_text(name, &[cluster]) || permits_text(server, &servers(cluster).each_ref().map(String::as_str))
}

/// Returns true if a pattern of other rules, which know no denials, matches the name or the server of this managed cluster.
pub(super) fn names_cluster(pattern: &str, cluster: &str) -> bool {
    glob::matches(pattern, cluster) || servers(cluster).iter().any(|server| glob::matches(pattern, server))
}

/// Returns true if a destination's pattern matches one of these equivalent texts; for a pattern after `!`, if it matches none.
pub(super) fn permits_text(pattern: &str, texts: &[&str]) -> bool {
    let has_any = |pattern: &str| texts.iter().any(|text| glob::matches(pattern, text));
    match pattern.strip_prefix('!') {
        Some(denied) => !has_any(denied),
        None => has_any(pattern),
    }
}
