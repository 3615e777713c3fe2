//! `agent restart`: restarts the Pods of a Deployment when files have changed that they read only at their start.
//!
//! The digest of the files is an annotation of the Pods: Kubernetes replaces the Pods when the value changes, and does nothing
//! when it is the same. So a restart of this program does not restart the Pods, and the next run retries a failed restart.

use super::Exit;
use super::prepare::{connect, send};
use super::run::{REREAD_DELAY, contents};
use crate::cli::RestartArgs;
use crate::commands::say;
use crate::restart_on_change;
use crate::restart_on_change::{FileWatch, Reaction};
use crate::runtime::runtime;
use controller::controllers::MANAGER;
use kube::Client;
use kube::core::params::{Patch, PatchParams};
use kube::core::request::Request;
use manifest::problem::Problems;
use ocm::resources::DEPLOYMENTS;
use runtime::signals::Signals;
use serde_json::json;
use tokio::select;
use tokio::time::sleep;

/// The annotation of the Pods with the digest.
const STARTED_WITH: &str = "argocd-ocm-cmp.github.io/certificates";

pub(super) fn run(args: &RestartArgs) -> Result<Exit, Problems> {
    runtime()?.block_on(async {
        let mut signals = Signals::install()?;
        let (client, _) = connect(&args.at).await?;
        let (mut watch, mut reported) = (FileWatch::default(), None);
        loop {
            let result = contents(&args.files);
            let waiting = result.as_ref().err().map(|problem| format!("waiting for {problem}"));
            let (pause, line) = match watch.observe(result.ok()) {
                Reaction::None => (args.interval, waiting),
                Reaction::ReadAgain => (args.interval.min(REREAD_DELAY), waiting),
                Reaction::Start | Reaction::Restart(_) => {
                    let digest = restart_on_change::digest(watch.started().map_or(&[], Vec::as_slice));
                    let done = write(&client, args, &digest).await;
                    if done.is_err() {
                        watch.stopped();
                    }
                    (args.interval, Some(done.unwrap_or_else(|why| why)))
                }
            };
            if line.is_some() && line != reported {
                say(&format!("{}\n", line.as_deref().unwrap_or_default()));
                reported = line;
            }
            select! {
                _ = signals.received() => return Ok(Exit::SUCCESS),
                () = sleep(pause) => {}
            }
        }
    })
}

/// Writes the digest, and returns the result as text.
async fn write(client: &Client, args: &RestartArgs, digest: &str) -> Result<String, String> {
    let (namespace, name) = (&args.at.namespace, &args.deployment);
    let requests = Request::new(DEPLOYMENTS.path(namespace));
    let params = PatchParams::apply(MANAGER);
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {STARTED_WITH: digest}}}}});
    match send(client, requests.patch(name, &params, &Patch::Merge(patch))).await {
        Ok(_) => Ok(format!("Deployment {namespace}/{name}: started with {digest}")),
        Err(error) => Err(format!(
            "Deployment {namespace}/{name} cannot be written: {}",
            hub::reason(&error)
        )),
    }
}
