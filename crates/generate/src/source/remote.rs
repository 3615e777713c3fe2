//! Network addresses that the administrator allows.

use std::fmt::{self, Display};
use std::str::FromStr;

/// The addresses that may be fetched for a source; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remotes(Vec<Remote>);

/// A prefix of addresses that may be fetched, up to a `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote(String);

impl FromStr for Remote {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let prefix = normal(text);
        let (host, is_url) = match prefix.split_once("://") {
            Some((_, rest)) => (rest.split('/').next().unwrap_or_default(), true),
            None => (prefix.split_once(':').map_or("", |(host, _)| host), has_user(&prefix)),
        };
        if is_url && !host.is_empty() && is_plain(&prefix) {
            Ok(Self(prefix))
        } else {
            Err(format!(
                "{text:?} is not a URL prefix: write it like https://git.example.com/platform/ or git@git.example.com:platform/"
            ))
        }
    }
}

impl FromIterator<Remote> for Remotes {
    fn from_iter<I: IntoIterator<Item = Remote>>(remotes: I) -> Self {
        Self(remotes.into_iter().collect())
    }
}

impl Remotes {
    /// Returns true if no address is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the administrator allows the address and it contains nothing that the server or Git could interpret as
    /// another address or as an option: `..`, escapes, or a reference that begins with `-`.
    pub fn allow(&self, address: &str) -> bool {
        let query = address.split_once('?').map_or("", |(_, query)| query);
        is_plain_query(query) && self.allow_file(address)
    }

    /// Returns true if the administrator allows the address of a file, whose query may be a signature of any characters.
    pub fn allow_file(&self, address: &str) -> bool {
        let address = normal(address);
        let path = address.split('?').next().unwrap_or_default();
        let is_allowed = |Remote(prefix): &Remote| {
            path.strip_prefix(prefix.as_str()).is_some_and(|rest| {
                rest.is_empty()
                    || prefix.ends_with(['/', ':'])
                    || rest.starts_with('/')
                    || has_path(prefix)
                        && rest
                            .strip_prefix(".git")
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        is_plain(path) && self.0.iter().any(is_allowed)
    }

    /// Returns the message about an address that is not allowed.
    pub fn refusal(address: &str) -> String {
        format!(
            "{address}: it would be fetched from the network: commit its content, or ask the administrator to allow it in \
             ARGOCD_OCM_CMP_REMOTE_BASES"
        )
    }
}

impl Display for Remotes {
    /// Writes the prefixes, separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes: Vec<&str> = self.0.iter().map(|Remote(prefix)| prefix.as_str()).collect();
        f.write_str(&prefixes.join(","))
    }
}

/// Normalizes an address: removes kustomize's `git::`, adds the scheme that kustomize uses for GitHub, and converts scheme and
/// host to lowercase.
fn normal(address: &str) -> String {
    let address = strip_ignoring_case(address, "git::").unwrap_or(address);
    if let Some(path) = ["github.com/", "github.com:"]
        .iter()
        .find_map(|host| strip_ignoring_case(address, host))
    {
        return format!("https://github.com/{path}");
    }
    let end = match address.split_once("://") {
        Some((scheme, rest)) => scheme.len() + 3 + rest.find('/').unwrap_or(rest.len()),
        None => address.find([':', '/']).unwrap_or(0),
    };
    format!("{}{}", address[..end].to_lowercase(), &address[end..])
}

fn strip_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Returns true if the address has a single interpretation.
fn is_plain(address: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-._~/:@+=".contains(char);
    address.chars().all(is_plain) && !address.split(['/', ':']).any(|part| matches!(part, "." | ".."))
}

/// Returns true for a query such as `ref=v1.0&timeout=120`. kustomize passes the reference to `git fetch`, which interprets a
/// leading `-` as an option.
fn is_plain_query(query: &str) -> bool {
    query.is_empty()
        || query.split('&').all(|pair| {
            pair.split_once('=').is_some_and(|(name, value)| {
                name.chars().all(|char| char.is_ascii_alphanumeric())
                    && value
                        .chars()
                        .all(|char| char.is_ascii_alphanumeric() || "-._/".contains(char))
                    && !value.starts_with('-')
            })
        })
}

/// Returns true if a prefix does not end with its host, whose name would go on.
fn has_path(prefix: &str) -> bool {
    prefix.split_once("://").is_none_or(|(_, rest)| rest.contains('/'))
}

/// Returns true for a name that begins like `user@host`.
fn has_user(name: &str) -> bool {
    let is_of_a_user = |char: char| char.is_ascii_alphanumeric() || char == '-';
    name.split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && user.chars().all(is_of_a_user) && host.contains(['/', ':']))
}

/// Returns true if kustomize or Helm could fetch a file of this name from the network.
pub(super) fn is_url(name: &str) -> bool {
    let name = name.trim();
    name.contains("://")
        || ["http:", "https:"]
            .iter()
            .any(|text| strip_ignoring_case(name, text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remotes(prefixes: &[&str]) -> Remotes {
        prefixes
            .iter()
            .map(|prefix| prefix.parse::<Remote>().expect("a prefix"))
            .collect()
    }

    #[test]
    fn allows_addresses_below_a_prefix_only() {
        let allowed = remotes(&[
            "https://github.com/argoproj/",
            "https://Git.example.com/platform",
            "git@git.example.com:platform/",
            "oci://ghcr.io/charts/",
            "https://git.example.org",
        ]);
        for address in [
            "https://github.com/argoproj/argo-cd//manifests/cluster-install?ref=v3.1.0&timeout=120",
            "github.com/argoproj/argo-cd/manifests/cluster-install?ref=stable",
            "git::https://github.com/argoproj/argo-cd.git",
            "https://git.example.com/platform/base?ref=main",
            "HTTPS://GIT.example.com/platform.git/base",
            "git@git.example.com:platform/base.git",
            "oci://ghcr.io/charts/web",
            "https://git.example.org/x",
        ] {
            assert!(allowed.allow(address), "{address}");
        }
        for address in [
            "https://github.com/argoproj-evil/x",
            "https://github.com/argoproj/../evil/x",
            "https://github.com/argoproj/%2e%2e/evil/x",
            "https://github.com@evil.example.com/argoproj/x",
            "https://git.example.com.evil.example.com/platform/x",
            "https://git.example.com:8443/platform/x",
            "https://git.example.com/platform-evil",
            "http://git.example.com/platform/x",
            "https://github.com/argoproj/x?ref=--upload-pack=touch",
            "https://github.com/argoproj/x?ref=%2d%2dupload-pack",
            "https://github.com/argoproj/x?ref",
            "https://github.com/argoproj/x y",
            "https://github.com/argoproj/x\n",
            "oci://ghcr.io/chartsevil",
            "https://git.example.org.git/x",
            "https://git.example.org.git",
        ] {
            assert!(!allowed.allow(address), "{address}");
        }
        let signed = "https://github.com/argoproj/x?sig=a%2Fb&name=a%20b";
        assert!(allowed.allow_file(signed) && !allowed.allow(signed));
        assert!(!allowed.allow_file("https://github.com/argoproj/%2e%2e/x"));
        assert!(!Remotes::default().allow("https://github.com/argoproj/argo-cd"));
    }

    #[test]
    fn refuses_prefixes_without_a_host() {
        for text in "https://¦https¦*¦/srv¦github.com¦https://a b/¦git.example.com".split('¦') {
            assert!(text.parse::<Remote>().is_err(), "{text}");
        }
        assert_eq!(
            "github.com/argoproj/".parse(),
            Ok(Remote("https://github.com/argoproj/".to_owned()))
        );
    }
}
