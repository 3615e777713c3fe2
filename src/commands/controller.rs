//! `controller`: runs the controllers until a signal ends it.

use super::Exit;
use crate::cli::{Cli, ControllerArgs, ImageArgs, PullArgs};
use crate::runtime::runtime;
use clap::CommandFactory;
use controller::controllers::AGENTS;
use controller::{Options, named};
use generate::settings::{Env, SETTINGS, misspelled_variable};
use hub_state::model::Images;
use hub_state::pull;
use hub_state::reconcile::Settings;
use jiff::Timestamp;
use manifest::problem::Problems;
use runtime::lease;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Instant;

pub(super) fn run(args: &ControllerArgs, env: &Env) -> Result<Exit, Problems> {
    args.log.init();
    Problems::or(misspelled_variables(env), ())?;
    let options = options(args, env)?;
    runtime()?.block_on(controller::run(&options, CLOCKS))?;
    Ok(Exit::SUCCESS)
}

#[expect(clippy::disallowed_methods, reason = "the clocks of the controller")]
pub(super) const CLOCKS: controller::Clocks = controller::Clocks {
    time: Timestamp::now,
    elapsed: Instant::now,
};

/// Returns a line for each variable that nearly has the name of one of the controller: some of these limit it.
fn misspelled_variables(env: &Env) -> Vec<String> {
    let cli = Cli::command();
    let of_commands = cli.get_subcommands().flat_map(variables);
    let of_settings = SETTINGS.iter().flat_map(|setting| setting.variables());
    let known: BTreeSet<String> = of_commands.chain(of_settings.map(Cow::into_owned)).collect();
    let own: Vec<String> = cli
        .find_subcommand("controller")
        .into_iter()
        .flat_map(variables)
        .collect();
    let unknown = env.keys().filter(|name| !known.contains(*name));
    unknown.filter_map(|name| misspelled_variable(name, &own)).collect()
}

/// Returns the environment variables of a command.
fn variables(command: &clap::Command) -> impl Iterator<Item = String> {
    let variables = command.get_arguments().filter_map(clap::Arg::get_env);
    variables.map(|name| name.to_string_lossy().into_owned())
}

/// Merges the arguments with the environment of the Pod.
///
/// # Errors
/// One line that names the unknown controller.
fn options(args: &ControllerArgs, env: &Env) -> Result<Options, String> {
    let controllers = named(args.controllers.iter().map(|name| name.trim()))?;
    let of_pod = |name: &str| env.get(name).filter(|text| !text.is_empty()).cloned();
    let namespace = args
        .leader_election_namespace
        .clone()
        .or_else(|| of_pod("POD_NAMESPACE"));
    let pod = of_pod("POD_NAME").or_else(|| of_pod("HOSTNAME"));
    let argocd = &args.argo_cd.argocd_namespace;
    let namespace = namespace.unwrap_or_else(|| argocd.clone());
    Ok(Options {
        hub: args.hub.connection(),
        lease_namespace: (args.leader_elect && !args.dry_run).then_some(namespace),
        settings: Settings {
            argocd: argocd.clone(),
            hub_cluster: args.hub_cluster.clone().filter(|name| !name.is_empty()),
            agents: controllers.iter().any(|controller| controller.name == AGENTS),
            images: images(&args.images),
            pull: pull_settings(&args.pull, argocd),
        },
        controllers,
        identity: lease::identity(pod.as_deref().unwrap_or("local"), fastrand::u64(..)),
        address: args.bind_address,
        dry_run: args.dry_run,
        concurrent_writes: args.concurrent_writes.into(),
    })
}

fn images(args: &ImageArgs) -> Images {
    let some = |image: &String| Some(image.as_str().into());
    Images {
        agent: args.agent_image.as_ref().and_then(some),
        argocd: some(&args.agent_argocd_image),
        redis: some(&args.agent_redis_image),
        operator: some(&args.agent_operator_image),
        ours: args.agent_supervisor_image.as_ref().and_then(some),
    }
}

/// Returns the settings of the pull model: the flags, with the dialect's defaults for those that are not set.
pub(super) fn pull_settings(args: &PullArgs, argocd: &str) -> pull::Settings {
    let PullArgs {
        pull_dialect: dialect,
        pull_namespace,
        pull_project,
        pull_placement,
        pull_feedback: feedback,
        pull_read_only: read_only,
    } = *args;
    let by_itself = dialect == pull::Dialect::Acm;
    pull::Settings {
        dialect,
        namespace: pull_namespace.unwrap_or(by_itself),
        project: pull_project.unwrap_or(by_itself),
        placement: pull_placement.unwrap_or(by_itself),
        feedback,
        read_only,
        argocd: argocd.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Command;
    use clap::Parser;
    use controller::controllers::CONTROLLERS;
    use hub_state::model::Kind;

    fn resolve(arguments: &[&str], env: &[(&str, &str)]) -> Result<Options, String> {
        let all = ["argocd-ocm-cmp", "controller"].iter().chain(arguments);
        let Command::Controller(args) = Cli::parse_from(all).command else {
            panic!("not the command controller");
        };
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        options(&args, &env.collect())
    }

    #[test]
    fn selects_controllers_by_name() {
        let chosen = |arguments: &[&str]| {
            let options = resolve(arguments, &[]).expect("options");
            options
                .controllers
                .iter()
                .map(|controller| controller.name)
                .collect::<Vec<_>>()
        };
        let all: Vec<_> = CONTROLLERS.iter().map(|controller| controller.name).collect();
        assert_eq!(
            chosen(&[]),
            ["application-status"],
            "the default needs no permissions of the other controllers"
        );
        assert_eq!(chosen(&["--controllers", "*"]), all);
        assert_eq!(chosen(&["--controllers", "pull, *"]).len(), all.len(), "each once");
        assert_eq!(
            chosen(&["--controllers", "gitopscluster"]),
            ["gitopscluster"; 2],
            "both kinds that it reconciles"
        );
        assert_eq!(
            chosen(&["--controllers", "pull,application-status"]),
            ["pull", "application-status"]
        );
        let error = resolve(&["--controllers", "push"], &[]).expect_err("no such controller");
        assert_eq!(
            error,
            format!(
                "unknown controller \"push\": --controllers accepts {} or '*'",
                controller::names(CONTROLLERS).join(", ")
            )
        );
    }

    #[test]
    fn refuses_misspelled_variables() {
        let env = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        assert_eq!(
            misspelled_variables(&env(&["ARGOCD_OCM_CMP_DRYRUN", "ARGOCD_OCM_CMP_PULL_READONLY"])),
            [
                "env ARGOCD_OCM_CMP_DRYRUN is not a setting: did you mean ARGOCD_OCM_CMP_DRY_RUN?",
                "env ARGOCD_OCM_CMP_PULL_READONLY is not a setting: did you mean ARGOCD_OCM_CMP_PULL_READ_ONLY?",
            ]
        );
        let others = [
            "ARGOCD_OCM_CMP_CONTROLLERS",
            "ARGOCD_OCM_CMP_CLUSTER_PROXY",
            "ARGOCD_OCM_CMP_WORK_SIZE",
            "ARGOCD_OCM_CMP_CONTROLLER_SERVICE_HOST",
            "ARGOCD_OCM_CMP_CONTROLLER_SERVICE_PORT_METRICS",
            "ARGOCD_OCM_CMP_CONTROLLER_PORT",
            "ARGOCD_OCM_CMP_CONTROLLER_PORT_8080_TCP_ADDR",
            "ARGOCD_OCM_CMP_LIVE_PORT",
            "ARGOCD_OCM_CMP_PORT",
            "KUBERNETES_SERVICE_HOST",
        ];
        assert_eq!(misspelled_variables(&env(&others)), [""; 0]);
    }

    #[test]
    fn dialect_sets_defaults_that_flags_override() {
        let pull = |arguments: &[&str]| resolve(arguments, &[]).expect("options").settings.pull;
        let flags = |settings: &pull::Settings| {
            (
                settings.namespace,
                settings.project,
                settings.placement,
                settings.read_only,
            )
        };
        assert_eq!(flags(&pull(&[])), (false, false, false, false));
        let acm = &["--pull-dialect", "acm", "--argocd-namespace", "gitops"];
        assert_eq!(flags(&pull(acm)), (true, true, true, false));
        assert_eq!(pull(acm).argocd, "gitops");
        let other = &["--pull-dialect=acm", "--pull-project=false", "--pull-read-only"];
        assert_eq!(flags(&pull(other)), (true, false, true, true));
        assert_eq!(flags(&pull(&["--pull-placement"])), (false, false, true, false));
    }

    #[test]
    fn watches_only_required_kinds() {
        let needs = |arguments: &[&str]| resolve(arguments, &[]).expect("options").needs();
        let has = |needs: &BTreeSet<Kind>| [Kind::Decisions, Kind::Projects].map(|kind| needs.contains(&kind));
        assert_eq!(
            has(&needs(&["--pull-placement"])),
            [false, false],
            "the pull model is disabled"
        );
        assert_eq!(has(&needs(&["--controllers=pull"])), [false, true]);
        assert_eq!(has(&needs(&["--controllers=pull", "--pull-placement"])), [true, true]);
    }

    #[test]
    fn lease_is_in_the_pods_namespace() {
        let lease =
            |arguments: &[&str], env: &[(&str, &str)]| resolve(arguments, env).expect("options").lease_namespace;
        let pod = [("POD_NAMESPACE", "ops"), ("POD_NAME", "one")];
        assert_eq!(lease(&[], &pod).as_deref(), Some("ops"));
        assert_eq!(lease(&[], &[]).as_deref(), Some("argocd"));
        assert_eq!(lease(&["--argocd-namespace", "gitops"], &[]).as_deref(), Some("gitops"));
        assert_eq!(lease(&["--leader-election-namespace", "a"], &pod).as_deref(), Some("a"));
        assert_eq!(lease(&["--leader-elect=false"], &pod), None);
        assert_eq!(lease(&["--dry-run"], &pod), None, "a dry run writes nothing");
        let identity = resolve(&[], &pod).expect("options").identity;
        assert!(identity.starts_with("one_"), "{identity}");
    }
}
