//! Reads addresses for the plugin, in a separate process with the network.
//!
//! Each address is checked before it is read: the first one, those of redirects, and that of the tokens of a registry.

use crate::runtime::runtime;
use generate::fetched::{DOWNLOAD, SERVER_ANSWERS};
use generate::source::Remotes;
use http::header::{ACCEPT, AUTHORIZATION, HeaderValue, LINK, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode, Uri};
use kube::client::Body;
use kube::{Client, Config};
use primitives::hash::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The maximum number of redirects of an address.
const REDIRECTS: usize = 10;

/// The maximum number of pages of the tags in a registry, which often have 100 tags each.
const PAGES: usize = 100;

/// The media type of the manifest of a chart in a registry.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The media type of a packaged chart in a registry.
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Prints the content of an address, if the program was started for that; otherwise returns `None`. For `oci://HOST/CHART:TAG`, that
/// is the packaged chart; for `oci://HOST/CHART`, an index of the versions of a chart repository.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()?.to_str() != Some(DOWNLOAD) {
        return None;
    }
    let address = arguments.next()?.into_string().ok()?;
    let remotes = arguments.next()?.into_string().ok()?;
    let mut environment = environment.into_iter();
    let home = environment
        .find(|(name, _)| name == "HOME")
        .map(|(_, home)| PathBuf::from(home));
    let result = download_chart_file(&address, &remotes, &home.unwrap_or_default())
        .and_then(|content| io::stdout().write_all(&content).map_err(|error| error.to_string()));
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(io::stderr(), "{why}");
            ExitCode::FAILURE
        }
    })
}

fn download_chart_file(address: &str, remotes: &str, home: &Path) -> Result<Vec<u8>, String> {
    let remotes = remotes.split(',').filter(|prefix| !prefix.is_empty());
    let remotes: Remotes = remotes.map(str::parse).collect::<Result<_, _>>()?;
    runtime()?.block_on(async {
        let Some(chart) = address.strip_prefix("oci://") else {
            let answer = get(address, &HeaderMap::new(), |url| remotes.allow_file(url)).await?;
            return answer.content(address);
        };
        let (chart, tag) = match chart.rsplit_once(':') {
            Some((chart, tag)) if !tag.contains('/') => (chart, Some(tag)),
            _ => (chart, None),
        };
        let (host, path) = chart.split_once('/').ok_or_else(|| not_an_address(address))?;
        if !remotes.allow(&format!("oci://{chart}")) {
            return Err(Remotes::refusal(address));
        }
        let mut registry = Registry {
            host,
            path,
            remotes: &remotes,
            login: login(host, home),
            authorization: None,
        };
        match tag {
            Some(tag) => registry.chart(tag).await,
            None => registry.index().await,
        }
    })
}

struct ServerAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl ServerAnswer {
    fn content(self, url: &str) -> Result<Vec<u8>, String> {
        if self.status.is_success() {
            Ok(self.body)
        } else {
            Err(format!("{url} cannot be fetched: {SERVER_ANSWERS} {}", self.status))
        }
    }

    fn header(&self, name: http::HeaderName) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

fn not_an_address(url: &str) -> String {
    format!("{url} cannot be fetched: it is not an address")
}

/// Reads an address, and follows redirects, if they are allowed. The credentials are for the first host only.
async fn get(url: &str, headers: &HeaderMap, is_allowed: impl Fn(&str) -> bool) -> Result<ServerAnswer, String> {
    let mut headers = headers.clone();
    let mut url = url.to_owned();
    if !is_allowed(&url) {
        return Err(Remotes::refusal(&url));
    }
    for _ in 0..=REDIRECTS {
        let answer = get_once(&url, &headers).await?;
        let target = answer.header(LOCATION);
        if !answer.status.is_redirection() || target.is_empty() {
            return Ok(answer);
        }
        let target = resolve(&url, target);
        if !is_allowed(&target) {
            return Err(format!("{url} redirects to {}", Remotes::refusal(&target)));
        }
        if host(&target) != host(&url) {
            headers.remove(AUTHORIZATION);
        }
        url = target;
    }
    Err(format!(
        "{url} cannot be fetched: more than {REDIRECTS} redirects: use the address where they end"
    ))
}

/// Returns the scheme and the host of an address.
fn host(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
    &url[..end]
}

/// Returns the address to which a reference at an address leads.
fn resolve(url: &str, reference: &str) -> String {
    if reference.contains("://") {
        return reference.to_owned();
    }
    if reference.starts_with("//") {
        let scheme = url.split("//").next().unwrap_or_default();
        return format!("{scheme}{reference}");
    }
    if reference.starts_with('/') {
        return format!("{}{reference}", host(url));
    }
    let path = url.split('?').next().unwrap_or_default();
    let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
    format!("{folder}/{reference}")
}

async fn get_once(url: &str, headers: &HeaderMap) -> Result<ServerAnswer, String> {
    let failed = |why: &str| format!("{url} cannot be fetched: {why}");
    let uri: Uri = url.parse().map_err(|_| not_an_address(url))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = http::Request::get(path)
        .body(Body::empty())
        .map_err(|_| not_an_address(url))?;
    request.headers_mut().extend(headers.clone());
    let mut config = Config::new(host(url).parse().map_err(|_| not_an_address(url))?);
    config.default_retry = false;
    let client = Client::try_from(config).map_err(|error| failed(&error.to_string()))?;
    let answer = client
        .send(request)
        .await
        .map_err(|error| failed(&hub::explain(&error)))?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body = answer.into_body().collect_bytes().await;
    Ok(ServerAnswer {
        status,
        headers,
        body: body.map_err(|error| failed(&hub::explain(&error)))?.to_vec(),
    })
}

/// The repository of a chart in a registry.
struct Registry<'a> {
    host: &'a str,
    path: &'a str,
    remotes: &'a Remotes,
    /// The user's credentials, as in the header of basic authorization.
    login: Option<String>,
    /// The header for the next requests, after the registry has asked for one.
    authorization: Option<String>,
}

impl Registry<'_> {
    /// Returns the start of all addresses of this repository.
    fn root(&self) -> String {
        format!("https://{}/v2/{}/", self.host, self.path)
    }

    /// Reads a path of the repository. A token comes from the registry itself, or from an allowed address.
    async fn get(&mut self, path: &str) -> Result<ServerAnswer, String> {
        let url = format!("{}{path}", self.root());
        let answer = self.try_get(&url).await?;
        if answer.status != StatusCode::UNAUTHORIZED || self.authorization.is_some() {
            return Ok(answer);
        }
        let challenge = answer.header(WWW_AUTHENTICATE);
        let parameter = |name: &str| {
            let (_, rest) = challenge.split_once(&format!("{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        self.authorization = match parameter("realm") {
            Some(realm)
                if challenge
                    .get(..7)
                    .is_some_and(|text| text.eq_ignore_ascii_case("bearer ")) =>
            {
                let default = format!("repository:{}:pull", self.path);
                let scope = parameter("scope").unwrap_or(&default);
                let mut url = format!("{realm}?scope={}", encode(scope));
                if let Some(service) = parameter("service") {
                    let _ = write!(url, "&service={}", encode(service));
                }
                Some(format!("Bearer {}", self.token(&url).await?))
            }
            _ => self.login.as_ref().map(|login| format!("Basic {login}")),
        };
        if self.authorization.is_some() {
            self.try_get(&url).await
        } else {
            Ok(answer)
        }
    }

    async fn try_get(&self, url: &str) -> Result<ServerAnswer, String> {
        let (root, remotes) = (self.root(), self.remotes);
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(MANIFEST))]);
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, secret(authorization)?);
        }
        let is_own = |target: &str| target.starts_with(&root) && !target.contains("/../");
        get(url, &headers, |target| is_own(target) || remotes.allow_file(target)).await
    }

    async fn token(&self, url: &str) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        if let Some(login) = &self.login {
            headers.insert(AUTHORIZATION, secret(&format!("Basic {login}"))?);
        }
        let (registry, remotes) = (format!("https://{}", self.host), self.remotes);
        let answer = get(url, &headers, |target| {
            host(target) == registry || remotes.allow_file(target)
        })
        .await?;
        let token: Value = serde_json::from_slice(&answer.content(url)?).unwrap_or_default();
        let token = token["token"].as_str().or_else(|| token["access_token"].as_str());
        token
            .map(str::to_owned)
            .ok_or_else(|| format!("{url} cannot be fetched: its answer has no token"))
    }

    /// Returns a packaged chart, whose digest is that of its manifest.
    async fn chart(&mut self, tag: &str) -> Result<Vec<u8>, String> {
        let address = format!("oci://{}/{}:{tag}", self.host, self.path);
        let manifest = self.get(&format!("manifests/{tag}")).await?.content(&address)?;
        let manifest: Value = serde_json::from_slice(&manifest).unwrap_or_default();
        let layers = manifest["layers"].as_array();
        let mut digests = layers.into_iter().flatten().filter(|layer| layer["mediaType"] == CHART);
        let digest = digests
            .next()
            .and_then(|layer| layer["digest"].as_str())
            .unwrap_or_default();
        let expected = digest
            .strip_prefix("sha256:")
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let expected = expected.ok_or_else(|| format!("{address} cannot be fetched: it is not a chart"))?;
        let archive = self.get(&format!("blobs/{digest}")).await?.content(&address)?;
        if hex(&Sha256::digest(&archive)) == expected {
            Ok(archive)
        } else {
            Err(format!(
                "{address} cannot be fetched: its content does not have the digest {digest}"
            ))
        }
    }

    /// Returns the tags as the index of a chart repository.
    async fn index(&mut self) -> Result<Vec<u8>, String> {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let address = format!("oci://{}/{}", self.host, self.path);
        let mut versions = Vec::new();
        let mut next = Some("tags/list".to_owned());
        for _ in 0..PAGES {
            let Some(path) = next.take() else { break };
            let answer = self.get(&path).await?;
            next = answer.header(LINK).split_once('<').and_then(|(_, link)| {
                let (link, rest) = link.split_once('>')?;
                let url = rest.contains("next").then(|| resolve(&self.root(), link))?;
                url.strip_prefix(&self.root()).map(str::to_owned)
            });
            let tags: Value = serde_json::from_slice(&answer.content(&address)?).unwrap_or_default();
            let tags = tags["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
            versions.extend(tags.map(|tag| {
                let url = format!("{}manifests/{tag}", self.root());
                json!({"apiVersion": "v2", "name": name, "version": tag.replace('_', "+"), "urls": [url]})
            }));
        }
        if next.is_some() {
            return Err(format!(
                "{address} cannot be fetched: more than {PAGES} pages of tags: request an exact version"
            ));
        }
        Ok(json!({"apiVersion": "v1", "entries": {name: versions}})
            .to_string()
            .into_bytes())
    }
}

/// Returns the value of a header that is not logged.
fn secret(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text).map_err(|_| "the token of the registry is not text".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'-' | b'.' | b'_' | b'/' | b':' | b',' => encoded.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            byte => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        encoded
    })
}

/// Returns the user's credentials for a registry, from the files of `helm registry login` and `docker login`.
fn login(host: &str, home: &Path) -> Option<String> {
    let files = [".config/helm/registry/config.json", ".docker/config.json"];
    files.iter().find_map(|file| {
        let config: Value = serde_json::from_reader(File::open(home.join(file)).ok()?).ok()?;
        config["auths"][host]["auth"].as_str().map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_addresses() {
        for (reference, expected) in [
            ("https://b.example.com/c", "https://b.example.com/c"),
            ("//b.example.com/c", "https://b.example.com/c"),
            ("/c?d=e", "https://a.example.com/c?d=e"),
            ("c", "https://a.example.com/charts/c"),
        ] {
            assert_eq!(resolve("https://a.example.com/charts/b?c=/d", reference), expected);
        }
        assert_eq!(host("https://a.example.com?b"), "https://a.example.com");
    }
}
