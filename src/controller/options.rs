//! What the controller is to do, and where: what was typed, and what the Pod says of itself.

use super::lease;
use super::promises::{AGENTS, PROMISES, PULL, Promise, Settings};
use super::watches::Kind;
use crate::agent::Images;
use crate::cli::{ControllerArgs, HubArgs, ImageArgs, PullArgs};
use crate::generate::settings::Env;
use crate::pull;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// What the controller is to do, and where.
#[derive(Debug)]
pub struct Options {
    pub(super) hub: HubArgs,
    pub(super) promises: Vec<&'static Promise>,
    pub(super) settings: Settings,
    /// Where the Lease is; none where nobody else writes.
    pub(super) lease_namespace: Option<String>,
    /// Among how many Leases the work is divided.
    pub(super) shards: usize,
    /// Who this replica is.
    pub(super) identity: String,
    pub(super) address: SocketAddr,
    pub(super) dry_run: bool,
    pub(super) concurrent_writes: usize,
}

impl Options {
    /// What must be known for what it is to do.
    pub(super) fn needs(&self) -> BTreeSet<Kind> {
        let promises = self.promises.iter();
        let mut needs: BTreeSet<_> = promises.flat_map(|promise| promise.needs).copied().collect();
        if self.promises.iter().any(|promise| promise.name == PULL) {
            let pull = &self.settings.pull;
            needs.extend(pull.placement.then_some(Kind::Decisions));
        }
        needs
    }

    /// Puts together what was typed and what the Pod says of itself.
    ///
    /// # Errors
    /// With one plain line, when something is asked for that is not there.
    pub fn resolve(args: &ControllerArgs, env: &Env) -> Result<Self, String> {
        let known = || names(PROMISES).join(", ");
        let mut promises: Vec<&'static Promise> = Vec::new();
        for name in args.controllers.iter().map(|name| name.trim()) {
            let is_named = |promise: &&Promise| name == "*" || promise.name == name;
            if !PROMISES.iter().any(|promise| is_named(&promise)) {
                return Err(format!(
                    "there is no controller {name:?}: --controllers takes {} or '*'",
                    known()
                ));
            }
            for promise in PROMISES.iter().filter(is_named) {
                if promises.iter().all(|other| !std::ptr::eq(*other, promise)) {
                    promises.push(promise);
                }
            }
        }
        let of_pod = |name: &str| env.get(name).filter(|text| !text.is_empty()).cloned();
        let namespace = args
            .leader_election_namespace
            .clone()
            .or_else(|| of_pod("POD_NAMESPACE"));
        let pod = of_pod("POD_NAME").or_else(|| of_pod("HOSTNAME"));
        let namespace = namespace.unwrap_or_else(|| args.argocd_namespace.clone());
        Ok(Self {
            hub: args.hub.clone(),
            lease_namespace: (args.leader_elect && !args.dry_run).then_some(namespace),
            settings: Settings {
                argocd: args.argocd_namespace.clone(),
                agents: promises.iter().any(|promise| promise.name == AGENTS),
                images: images(&args.images),
                pull: pull_settings(args),
            },
            shards: args.shards.into(),
            promises,
            identity: lease::identity(pod.as_deref().unwrap_or("local"), fastrand::u64(..)),
            address: args.bind_address,
            dry_run: args.dry_run,
            concurrent_writes: args.concurrent_writes.into(),
        })
    }
}

/// What promises are called, each once.
pub(super) fn names<'p>(promises: impl IntoIterator<Item = &'p Promise>) -> Vec<&'static str> {
    let mut names: Vec<_> = promises.into_iter().map(|promise| promise.name).collect();
    names.dedup();
    names
}

fn images(args: &ImageArgs) -> Images {
    let some = |image: &String| Some(image.as_str().into());
    Images {
        agent: some(&args.agent_image),
        argocd: some(&args.agent_argocd_image),
        redis: some(&args.agent_redis_image),
        operator: some(&args.agent_operator_image),
        ours: args.agent_supervisor_image.as_ref().and_then(some),
    }
}

/// What a dialect does by itself, where nothing else was said.
fn pull_settings(args: &ControllerArgs) -> pull::Settings {
    let PullArgs {
        pull_dialect: dialect,
        pull_namespace,
        pull_project,
        pull_placement,
        pull_read_only: read_only,
    } = args.pull;
    let by_itself = dialect == pull::Dialect::Acm;
    pull::Settings {
        dialect,
        namespace: pull_namespace.unwrap_or(by_itself),
        project: pull_project.unwrap_or(by_itself),
        placement: pull_placement.unwrap_or(by_itself),
        read_only,
        argocd: args.argocd_namespace.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn resolve(arguments: &[&str], env: &[(&str, &str)]) -> Result<Options, String> {
        let all = ["argocd-ocm-cmp", "controller"].iter().chain(arguments);
        let Command::Controller(args) = Cli::parse_from(all).command else {
            panic!("it is the controller");
        };
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Options::resolve(&args, &env.collect())
    }

    #[test]
    fn promises_are_chosen_by_name() {
        let chosen = |arguments: &[&str]| {
            let options = resolve(arguments, &[]).expect("options");
            options.promises.iter().map(|it| it.name).collect::<Vec<_>>()
        };
        let all: Vec<_> = PROMISES.iter().map(|promise| promise.name).collect();
        assert_eq!(
            chosen(&[]),
            ["application-status"],
            "which needs no more than it was given before there were others"
        );
        assert_eq!(chosen(&["--controllers", "*"]), all);
        assert_eq!(chosen(&["--controllers", "pull, *"]).len(), all.len(), "each once");
        assert_eq!(
            chosen(&["--controllers", "gitopscluster"]),
            ["gitopscluster"; 2],
            "both of its parts"
        );
        assert_eq!(
            chosen(&["--controllers", "pull,application-status"]),
            ["pull", "application-status"]
        );
        let error = resolve(&["--controllers", "push"], &[]).expect_err("there is none");
        assert_eq!(
            error,
            format!(
                "there is no controller \"push\": --controllers takes {} or '*'",
                names(PROMISES).join(", ")
            )
        );
    }

    #[test]
    fn a_dialect_says_what_is_not_said_otherwise() {
        let pull = |arguments: &[&str]| resolve(arguments, &[]).expect("options").settings.pull;
        let said = |it: &pull::Settings| (it.namespace, it.project, it.placement, it.read_only);
        assert_eq!(said(&pull(&[])), (false, false, false, false));
        let acm = &["--pull-dialect", "acm", "--argocd-namespace", "gitops"];
        assert_eq!(said(&pull(acm)), (true, true, true, false));
        assert_eq!(pull(acm).argocd, "gitops");
        let other = &["--pull-dialect=acm", "--pull-project=false", "--pull-read-only"];
        assert_eq!(said(&pull(other)), (true, false, true, true));
        assert_eq!(said(&pull(&["--pull-placement"])), (false, false, true, false));
    }

    #[test]
    fn only_what_is_needed_is_watched() {
        let needs = |arguments: &[&str]| resolve(arguments, &[]).expect("options").needs();
        let has = |needs: &BTreeSet<Kind>| [Kind::Decisions, Kind::Projects].map(|kind| needs.contains(&kind));
        assert_eq!(has(&needs(&["--pull-placement"])), [false, false], "it does not pull");
        assert_eq!(has(&needs(&["--controllers=pull"])), [false, true]);
        assert_eq!(has(&needs(&["--controllers=pull", "--pull-placement"])), [true, true]);
    }

    #[test]
    fn the_lease_is_where_the_pod_is() {
        let lease =
            |arguments: &[&str], env: &[(&str, &str)]| resolve(arguments, env).expect("options").lease_namespace;
        let pod = [("POD_NAMESPACE", "ops"), ("POD_NAME", "one")];
        assert_eq!(lease(&[], &pod).as_deref(), Some("ops"));
        assert_eq!(lease(&[], &[]).as_deref(), Some("argocd"));
        assert_eq!(lease(&["--argocd-namespace", "gitops"], &[]).as_deref(), Some("gitops"));
        assert_eq!(lease(&["--leader-election-namespace", "a"], &pod).as_deref(), Some("a"));
        assert_eq!(lease(&["--leader-elect=false"], &pod), None);
        assert_eq!(lease(&["--dry-run"], &pod), None, "nothing is written");
        let identity = resolve(&[], &pod).expect("options").identity;
        assert!(identity.starts_with("one_"), "{identity}");
    }
}
