//! `agent prepare`: reads the Secrets of Argo CD and writes the missing keys.

use super::Exit;
use crate::bootstrap_secrets::{BYTES, REQUIRED_KEYS, RequiredKey, SecretWrite};
use crate::cli::{PrepareArgs, TargetArgs};
use crate::commands::show;
use crate::runtime::runtime;
use controller::controllers::MANAGER;
use kube::core::params::{GetParams, Patch, PatchParams, PostParams};
use kube::core::request::{self, Request};
use kube::{Client, Error};
use manifest::problem::{Problems, plain};
use ocm::resources::SECRETS;
use serde_json::Value;
use std::convert::identity;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;

/// The maximum number of attempts to write a Secret that others change meanwhile. They have no reason to keep changing it.
const ATTEMPTS: u32 = 10;

pub(super) fn run(args: &PrepareArgs) -> Result<Exit, Problems> {
    let lines = runtime()?.block_on(prepare(&args.at))?;
    show("summary", &lines)
}

async fn prepare(args: &TargetArgs) -> Result<String, String> {
    let (client, url) = connect(args).await?;
    let mut lines = String::new();
    for required_key in REQUIRED_KEYS {
        let qualified_name = format!("{}/{}", args.namespace, required_key.secret);
        let done = ensure_key(&client, &args.namespace, required_key, &url).await?;
        writeln!(lines, "Secret {qualified_name}: {} {done}", required_key.key)
            .expect("writing to a String never fails");
    }
    Ok(lines)
}

/// Connects to the managed cluster. Returns the client and the URL of the API server.
pub(super) async fn connect(args: &TargetArgs) -> Result<(Client, String), String> {
    let cluster = hub::Connection {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    let config = hub::config(&cluster).await;
    let config = config.map_err(|error| error.replace(hub::NO_HUB, "no managed cluster: "))?;
    hub::client(config, identity)
}

/// Ensures that a Secret has the needed key, and returns the result as text.
async fn ensure_key(
    client: &Client,
    namespace: &str,
    required_key: RequiredKey,
    url: &str,
) -> Result<&'static str, String> {
    let qualified_name = format!("{namespace}/{}", required_key.secret);
    let requests = Request::new(SECRETS.path(namespace));
    let cannot = |verb: &str, error: &Error| match error {
        Error::Api(_) => format!("Secret {qualified_name} cannot be {verb}: {}", hub::reason(error)),
        _ => format!("the managed cluster at {url} cannot be reached: {}", hub::reason(error)),
    };
    for _ in 0..ATTEMPTS {
        let live = send(client, requests.get(required_key.secret, &GetParams::default())).await;
        let live = hub::optional(live).map_err(|error| cannot("read", &error))?;
        let (done, request) = match required_key.missing_write(live.as_ref(), namespace, &random()?) {
            None => return Ok("exists"),
            Some(SecretWrite::Create(secret)) => {
                let params = PostParams {
                    field_manager: Some(MANAGER.to_owned()),
                    ..PostParams::default()
                };
                ("created", requests.create(&params, secret.to_string().into_bytes()))
            }
            Some(SecretWrite::Patch(patch)) => {
                let params = PatchParams::apply(MANAGER);
                (
                    "completed",
                    requests.patch(required_key.secret, &params, &Patch::Merge(patch)),
                )
            }
        };
        match send(client, request).await {
            Ok(_) => return Ok(done),
            // Another writer was faster: its value counts.
            Err(Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(cannot(done, &error)),
        }
    }
    Err(format!(
        "Secret {qualified_name} cannot be completed: it keeps changing"
    ))
}

pub(super) async fn send(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, request::Error>,
) -> Result<Value, Error> {
    client.request(request.map_err(Error::BuildRequest)?).await
}

/// Returns random bytes of the operating system, as secrets need.
fn random() -> Result<[u8; BYTES], String> {
    const DEVICE: &str = "/dev/urandom";
    let mut bytes = [0; BYTES];
    File::open(DEVICE)
        .and_then(|mut device| device.read_exact(&mut bytes))
        .map(|()| bytes)
        .map_err(|error| format!("{DEVICE} cannot be read: {}", plain(&error)))
}
