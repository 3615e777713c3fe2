//! Finds a hub and creates a client for it.

use crate::{PATIENCE, reason};
use http::HeaderValue;
use kube::Client;
use kube::client::{Body, ClientBuilder};
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use manifest::problem::plain;
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
            None => Kubeconfig::read(),
        }
    }
}

/// The prefix of the error if no hub is configured.
pub const NO_HUB: &str = "no hub to read from: ";

/// A function that changes a request before it is sent.
pub type RequestHook = fn(http::Request<Body>) -> http::Request<Body>;

/// Creates a client and returns it with the URL of its API server. Sends nothing yet; `hook` changes each request.
///
/// # Errors
/// Returns one line if the configuration is invalid.
pub fn client(config: Config, hook: RequestHook) -> Result<(Client, String), String> {
    let url = config.cluster_url.to_string();
    match ClientBuilder::try_from(config) {
        Ok(client) => Ok((client.with_layer(&MapRequestLayer::new(hook)).build(), url)),
        Err(error) => Err(format!("cannot create a client for {url}: {}", reason(&error))),
    }
}

/// Finds the hub and the credentials by kubectl's rules: the flags, `KUBECONFIG`, `~/.kube/config`, and in a Pod its
/// ServiceAccount.
///
/// # Errors
/// Returns one line if no kubeconfig names a hub.
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
    config.read_timeout = Some(PATIENCE);
    clean_token(&mut config.auth_info)?;
    Ok(config)
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
///
/// # Errors
/// Returns one line if it cannot be sent.
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
}
