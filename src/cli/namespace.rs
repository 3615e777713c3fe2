//! The flag for Argo CD's namespace, and names of objects.

use clap::Args;

/// The namespace of Argo CD on the hub.
#[derive(Debug, Args)]
pub struct ArgoCdNamespace {
    /// The namespace of Argo CD
    #[arg(
        long,
        short,
        visible_alias = "argocd-namespace",
        value_name = "NAME",
        default_value = "argocd",
        value_parser = name
    )]
    pub namespace: String,
}

/// Parses a name, which becomes a part of a path.
pub(super) fn name(text: &str) -> Result<String, String> {
    let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_of_name) {
        Ok(text.to_owned())
    } else {
        Err("not a Kubernetes name: use lower-case letters, digits, '-' and '.'".to_owned())
    }
}
