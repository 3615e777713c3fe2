//! Finds a hub and creates a client for it.

use crate::{PATIENCE, reason};
use http::{HeaderValue, Uri};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use manifest::problem::plain;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use tower::util::MapRequestLayer;

/// The connection options, equal to kubectl's flags of the same names.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// The kubeconfig; by default the one that kubectl finds.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; by default the current one.
    pub context: Option<String>,
}

impl Connection {
    /// Returns the names of all contexts of the kubeconfig; none if it cannot be read.
    pub fn contexts(&self) -> Vec<String> {
        let contexts = self
            .read_kubeconfig()
            .map(|kubeconfig| kubeconfig.contexts)
            .unwrap_or_default();
        contexts.into_iter().map(|context| context.name).collect()
    }

    fn read_kubeconfig(&self) -> Result<Kubeconfig, KubeconfigError> {
        match &self.kubeconfig {
            Some(file) => Kubeconfig::read_from(file),
            None => read_listed(std::env::split_paths(&variable("KUBECONFIG"))),
        }
    }
}

/// Reads the files that `KUBECONFIG` lists, or else the default file. As for kubectl, not all of them must exist.
fn read_listed(files: impl Iterator<Item = PathBuf>) -> Result<Kubeconfig, KubeconfigError> {
    let files: Vec<_> = files.filter(|file| !file.as_os_str().is_empty()).collect();
    let existing: Vec<_> = files.iter().filter(|file| file.exists()).collect();
    match files.first() {
        None => Kubeconfig::read(),
        Some(first) if existing.is_empty() => Kubeconfig::read_from(first),
        Some(_) => existing.into_iter().try_fold(Kubeconfig::default(), |merged, file| {
            merged.merge(Kubeconfig::read_from(file)?)
        }),
    }
}

#[expect(clippy::disallowed_methods, reason = "the variables that kubectl reads")]
fn variable(name: &str) -> OsString {
    std::env::var_os(name).unwrap_or_default()
}

/// The prefix of the error if no hub is configured.
pub const NO_HUB: &str = "no hub to read from: ";

pub type RequestHook = fn(http::Request<Body>) -> http::Request<Body>;

/// Creates a client and returns it with the URL of its API server. Sends nothing yet; `hook` changes each request.
pub fn client(config: Config, hook: RequestHook) -> Result<(Client, String), String> {
    let url = config.cluster_url.to_string();
    match ClientBuilder::try_from(config) {
        Ok(client) => Ok((client.with_layer(&MapRequestLayer::new(hook)).build(), url)),
        Err(error) => Err(format!("cannot create a client for {url}: {}", reason(&error))),
    }
}

/// Finds the hub and the credentials by kubectl's rules: the flags, `KUBECONFIG`, `~/.kube/config`, and in a Pod its
/// ServiceAccount.
pub async fn config(connection: &Connection) -> Result<Config, String> {
    let options = KubeConfigOptions {
        context: connection.context.clone(),
        ..KubeConfigOptions::default()
    };
    let read = match connection.read_kubeconfig() {
        Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
        Err(error) => Err(error),
    };
    let names_a_hub = connection.kubeconfig.is_some() || connection.context.is_some();
    let config = match read {
        Err(error) if !names_a_hub => Config::incluster().map_err(|_| error),
        read => read,
    };
    let mut config = config.map_err(|error| {
        let reason = match &error {
            KubeconfigError::ReadConfig(error, file) => format!("{}: {}", file.display(), plain(error)),
            KubeconfigError::CurrentContextNotSet => "the kubeconfig has no current context".to_owned(),
            KubeconfigError::LoadContext(name) => format!("the kubeconfig has no context {name}"),
            // The error of a file that cannot be parsed continues with an excerpt on further lines.
            other => other.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        format!("{NO_HUB}{reason}: set --kubeconfig or --context")
    })?;
    refuse_proxy(&mut config)?;
    config.read_timeout = Some(PATIENCE);
    clean_token(&mut config.auth_info)?;
    Ok(config)
}

/// Removes the proxy of the environment if it is not for the hub: kube reads it whatever `NO_PROXY` lists. The error
/// names a proxy of the hub: kube supports none here.
fn refuse_proxy(config: &mut Config) -> Result<(), String> {
    let Some(proxy) = config.proxy_url.take() else {
        return Ok(());
    };
    let host = config.cluster_url.host().unwrap_or_default();
    let texts = |names: [&str; 2]| names.map(|name| variable(name).to_string_lossy().into_owned());
    let mut of_environment = texts(["HTTPS_PROXY", "https_proxy"]).into_iter();
    let is_of_environment = of_environment.any(|text| text.parse::<Uri>().is_ok_and(|uri| uri == proxy));
    let direct = if !is_of_environment {
        String::new()
    } else if is_direct(host, &texts(["NO_PROXY", "no_proxy"]).join(",")) {
        return Ok(());
    } else {
        format!("add {host} to NO_PROXY if it can be reached directly, or ")
    };
    Err(format!(
        "{NO_HUB}{host} is behind the proxy {}, and proxies are not supported: {direct}run kubectl proxy and name its address in a kubeconfig",
        proxy.host().unwrap_or_default()
    ))
}

/// Returns true if kubectl reaches a host without the proxy of the environment: this machine, and the hosts that `NO_PROXY` lists.
fn is_direct(host: &str, no_proxy: &str) -> bool {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    let address = host.parse::<IpAddr>().ok();
    let is_listed = |entry: &str| {
        let entry = entry.to_ascii_lowercase();
        let above = host.strip_suffix(entry.trim_start_matches('.'));
        let is_below = above.is_some_and(|above| above.ends_with('.'));
        entry == "*" || host == entry || is_below || address.is_some_and(|address| is_in_network(address, &entry))
    };
    let mut entries = no_proxy.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    host == "localhost" || address.is_some_and(|address| address.is_loopback()) || entries.any(is_listed)
}

/// Returns true if an address is in a network such as `10.0.0.0/8`.
fn is_in_network(address: IpAddr, network: &str) -> bool {
    let bits = |address| match address {
        IpAddr::V4(address) => (32_u32, u128::from(address.to_bits())),
        IpAddr::V6(address) => (128, address.to_bits()),
    };
    let parts = network.split_once('/');
    let Some((Ok(network), Ok(length))) = parts.map(|(network, length)| (network.parse(), length.parse())) else {
        return false;
    };
    let ((width, address), (network_width, network)) = (bits(address), bits(network));
    let rest = width.checked_sub(length).filter(|_| width == network_width);
    rest.is_some_and(|rest| address.checked_shr(rest) == network.checked_shr(rest))
}

/// Removes the line break in which a file with a token ends, as kubectl does. kube would panic because of it, or refuse the token.
fn clean_token(credentials: &mut AuthInfo) -> Result<(), String> {
    // The type of the token hides it.
    let Ok(values) = serde_json::to_value(&*credentials) else {
        return Ok(());
    };
    let cleaned = match (values["token"].as_str(), &credentials.token_file) {
        (Some(text), _) if !text.trim().is_empty() => Some(trim_token(text)?.to_owned()),
        // Otherwise kube reads the file repeatedly.
        (_, Some(file)) => match read_token_file(file) {
            Some(text) if text.trim() != text => Some(trim_token(&text)?.to_owned()),
            _ => None,
        },
        _ => None,
    };
    credentials.token = cleaned.map(Into::into);
    Ok(())
}

/// Returns a token without the blanks around it.
pub fn trim_token(text: &str) -> Result<&str, String> {
    let text = text.trim();
    match HeaderValue::try_from(text) {
        Ok(_) => Ok(text),
        Err(_) => Err("the token has a line break or another control character: copy it again as one line".to_owned()),
    }
}

#[expect(clippy::disallowed_methods, reason = "a file that the kubeconfig names")]
fn read_token_file(file: &str) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn cleaned(credentials: Value) -> Result<Value, String> {
        let mut credentials: AuthInfo = serde_json::from_value(credentials).expect("credentials");
        clean_token(&mut credentials)?;
        Ok(serde_json::to_value(&credentials).expect("JSON"))
    }

    #[test]
    fn token_may_end_in_a_line_break_and_has_none_within() {
        assert_eq!(cleaned(json!({"token": "t\n"})), Ok(json!({"token": "t"})));
        assert_eq!(cleaned(json!({"token": ""})), Ok(json!({})));
        assert!(cleaned(json!({"token": "a\nb"})).is_err_and(|line| line.contains("a line break")));
        assert_eq!(cleaned(json!({"username": "u"})), Ok(json!({"username": "u"})));
        let file = std::env::temp_dir().join(format!("argocd-ocm-cmp-token-{}", std::process::id()));
        let in_file = |text: &str| {
            std::fs::write(&file, text).expect("a file");
            cleaned(json!({"tokenFile": file}))
        };
        assert_eq!(in_file("t\n"), Ok(json!({"token": "t", "tokenFile": file})));
        assert_eq!(in_file("t"), Ok(json!({"tokenFile": file})), "it may be renewed");
        std::fs::remove_file(&file).expect("a file");
    }

    #[test]
    fn proxy_is_not_for_this_machine_and_what_no_proxy_lists() {
        let listed = ".example.com, hub, 10.0.0.0/8,fd00::/8,192.0.2.7";
        for host in "localhost 127.0.0.1 [::1] api.Example.com hub a.hub 10.1.2.3 [fd00::7] 192.0.2.7".split(' ') {
            assert!(is_direct(host, listed), "{host}");
        }
        for host in "example.com badexample.com hub2 11.0.0.1 [fe80::1] 192.0.2.8 api.hub.example.org".split(' ') {
            assert!(!is_direct(host, listed), "{host}");
            assert!(is_direct(host, "*"), "{host}");
        }
    }

    #[tokio::test]
    async fn kubeconfig_with_a_proxy_or_a_broken_token_is_refused() {
        let file = std::env::temp_dir().join(format!("argocd-ocm-cmp-config-{}", std::process::id()));
        let connection = Connection {
            kubeconfig: Some(file.clone()),
            context: None,
        };
        let read = async |proxy: &str, token: &str| {
            let kubeconfig = json!({
                "current-context": "one",
                "contexts": [{"name": "one", "context": {"cluster": "hub", "user": "me"}}],
                "clusters": [{"name": "hub", "cluster": {"server": "https://127.0.0.1", "proxy-url": proxy}}],
                "users": [{"name": "me", "user": {"token": token}}],
            });
            std::fs::write(&file, kubeconfig.to_string()).expect("a file");
            config(&connection).await.map(drop)
        };
        assert_eq!(read("", "t\n").await, Ok(()));
        let line = read("socks5://bastion:1080", "t").await.expect_err("a proxy");
        assert!(line.contains("127.0.0.1 is behind the proxy bastion"), "{line}");
        let line = read("", "a\nb").await.expect_err("a broken token");
        assert!(line.contains("the token has a line break"), "{line}");
        std::fs::remove_file(&file).expect("a file");
    }
}
