//! Runs `migrate plan`: the controllers decide as they would after an installation, and their writes are only counted.

use super::controller::{CLOCKS, pull_settings};
use super::{Exit, print_answer, progress, warn};
use crate::cli::MigratePlanArgs;
use crate::fetch;
use crate::runtime::runtime;
use crate::table;
use controller::controllers::AGENTS;
use controller::{Options, named};
use hub_state::model::Images;
use hub_state::reconcile::Settings;
use manifest::problem::Problems;
use manifest::text::one_line;
use runtime::plan::{Plan, Totals};
use std::fmt::Write as _;
use std::net::SocketAddr;

pub(super) fn plan(args: &MigratePlanArgs) -> Result<Exit, Problems> {
    let options = options(args)?;
    let planned: Vec<_> = options.controllers.iter().map(|controller| controller.name).collect();
    let runtime = runtime()?;
    let (plan, peers, notices) = progress::shown("reading the hub", || {
        runtime.block_on(async {
            let plan = controller::plan(options, CLOCKS).await?;
            let (peers, notices) = fetch::peers(&args.hub).await?;
            Ok::<_, String>((plan, peers, notices))
        })
    })?;
    warn(&notices);
    let remedies: Vec<_> = peers.iter().filter_map(|peer| peer.remedy(&planned)).collect();
    let exit = Exit::of_answer(plan.problems().next().is_none());
    print_answer("plan", &format_plan(&plan, &remedies), exit)
}

fn options(args: &MigratePlanArgs) -> Result<Options, String> {
    let controllers = named(args.controllers.iter().map(|name| name.trim()))?;
    let argocd = &args.argo_cd.argocd_namespace;
    Ok(Options {
        hub: args.hub.connection(),
        lease_namespace: None,
        settings: Settings {
            argocd: argocd.clone(),
            hub_cluster: args.hub_cluster.clone(),
            agents: controllers.iter().any(|controller| controller.name == AGENTS),
            images: Images::default(),
            pull: pull_settings(&args.pull, argocd),
        },
        controllers,
        identity: "plan".to_owned(),
        // Nothing listens.
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        dry_run: true,
        concurrent_writes: 48,
    })
}

/// Returns a table with the totals by kind, and a line for each problem and for each controller to stop.
fn format_plan(plan: &Plan, remedies: &[String]) -> String {
    let rows = plan.totals().into_iter().map(|(kind, totals)| {
        let Totals {
            read,
            created,
            updated,
            deleted,
        } = totals;
        let [read, created, updated, deleted] = [read, created, updated, deleted].map(|count| count.to_string());
        [kind.to_owned(), read, created, updated, deleted]
    });
    let mut text = table::lines(&["KIND", "READ", "CREATE", "UPDATE", "DELETE"], rows);
    for problem in plan.problems() {
        writeln!(text, "not possible: {}", one_line(problem)).expect("writing to a String never fails");
    }
    for remedy in remedies {
        writeln!(text, "to stop: {}", one_line(remedy)).expect("writing to a String never fails");
    }
    text
}
