//! What the controller is to do, and where: what was typed, and what the Pod says of itself.

use super::lease;
use super::promises::{PROMISES, Promise, Settings};
use super::watches::Kind;
use crate::cli::{ControllerArgs, HubArgs};
use crate::generate::settings::Env;
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
        promises.flat_map(|promise| promise.needs).copied().collect()
    }

    /// Puts together what was typed and what the Pod says of itself.
    ///
    /// # Errors
    /// With one plain line, when something is asked for that is not there.
    pub fn resolve(args: &ControllerArgs, env: &Env) -> Result<Self, String> {
        let known = || {
            PROMISES
                .iter()
                .map(|promise| promise.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut promises = Vec::new();
        for name in args.controllers.iter().map(|name| name.trim()) {
            let named = PROMISES.iter().filter(|promise| name == "*" || promise.name == name);
            let before = promises.len();
            promises.extend(named);
            if promises.len() == before {
                return Err(format!(
                    "there is no controller {name:?}: --controllers takes {} or '*'",
                    known()
                ));
            }
        }
        promises.dedup_by_key(|promise| promise.name);
        let of_pod = |name: &str| env.get(name).filter(|text| !text.is_empty()).cloned();
        let namespace = args
            .leader_election_namespace
            .clone()
            .or_else(|| of_pod("POD_NAMESPACE"));
        let pod = of_pod("POD_NAME").or_else(|| of_pod("HOSTNAME"));
        let namespace = namespace.unwrap_or_else(|| args.argocd_namespace.clone());
        Ok(Self {
            hub: args.hub.clone(),
            promises,
            lease_namespace: (args.leader_elect && !args.dry_run).then_some(namespace),
            settings: Settings {
                argocd: args.argocd_namespace.clone(),
            },
            identity: lease::identity(pod.as_deref().unwrap_or("local"), fastrand::u64(..)),
            address: args.bind_address,
            dry_run: args.dry_run,
            concurrent_writes: args.concurrent_writes.into(),
        })
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
        for arguments in [
            &[][..],
            &["--controllers", "*"],
            &["--controllers", "application-status, *"],
        ] {
            let options = resolve(arguments, &[]).expect("options");
            let names: Vec<_> = options.promises.iter().map(|promise| promise.name).collect();
            assert_eq!(names, ["application-status"]);
        }
        assert_eq!(
            resolve(&["--controllers", "pull"], &[]).expect_err("there is none"),
            "there is no controller \"pull\": --controllers takes application-status or '*'"
        );
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
