//! Reads one address for the plugin, in a separate process with the network.

use crate::runtime::runtime;
use generate::fetched::{DOWNLOAD, Request};
use http::Uri;
use http::header::LOCATION;
use kube::client::Body;
use kube::{Client, Config};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Prints the content of an address, if the program was started for that; otherwise returns `None`. A redirect is a failure that
/// requests its target, which the plugin has to allow.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()?.to_str() != Some(DOWNLOAD) {
        return None;
    }
    let url = arguments.next()?.into_string().ok()?;
    let result = read(&url).and_then(|content| io::stdout().write_all(&content).map_err(|error| error.to_string()));
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(io::stderr(), "{why}");
            ExitCode::FAILURE
        }
    })
}

fn read(url: &str) -> Result<Vec<u8>, String> {
    let uri: Uri = url.parse().map_err(|_| "it is not an address".to_owned())?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let host = format!(
        "{}://{}",
        uri.scheme_str().unwrap_or_default(),
        uri.authority().map_or("", |host| host.as_str())
    );
    let request = http::Request::get(path)
        .body(Body::empty())
        .map_err(|_| "it is not an address".to_owned())?;
    runtime()?.block_on(async {
        let mut config = Config::new(host.parse().map_err(|_| "it is not an address".to_owned())?);
        config.default_retry = false;
        let client = Client::try_from(config).map_err(|error| error.to_string())?;
        let answer = client.send(request).await.map_err(|error| hub::explain(&error))?;
        let status = answer.status();
        if let (true, Some(target)) = (status.is_redirection(), answer.headers().get(LOCATION)) {
            let target = target.to_str().unwrap_or_default();
            // A target without a host is on the same one.
            let url = if target.starts_with('/') {
                format!("{host}{target}")
            } else {
                target.to_owned()
            };
            return Err(Request::File { url }.line());
        }
        if !status.is_success() {
            return Err(format!("the server answers {status}"));
        }
        let content = answer.into_body().collect_bytes().await;
        Ok(content.map_err(|error| hub::explain(&error))?.to_vec())
    })
}
