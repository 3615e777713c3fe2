//! Runs `gitopscluster status`: reads once, and prints.

use super::{Exit, colours, print_answer, progress, warn};
use crate::cli::{GitOpsClusterStatusArgs, ListFormat};
use crate::fetch::{GitOpsClusterSelection, WorkReader};
use crate::list;
use crate::status::gitopscluster::{GitOpsClusterList, GitOpsClusterReport};
use generate::settings::Env;
use jiff::Timestamp;
use manifest::problem::Problems;

pub(super) fn run(args: &GitOpsClusterStatusArgs, env: &Env) -> Result<Exit, Problems> {
    let selection = match &args.name {
        _ if args.all_namespaces => GitOpsClusterSelection::All,
        None => GitOpsClusterSelection::Namespace(args.argo_cd.namespace.clone()),
        Some(name) => {
            let (namespace, name) = name.split_once('/').unwrap_or((&args.argo_cd.namespace, name));
            GitOpsClusterSelection::One {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }
        }
    };
    // Listing the works of a fleet takes the hub longer than all other reads.
    let certificates = !matches!(args.output, ListFormat::Table | ListFormat::Name);
    let fleet = progress::shown("reading the hub", || {
        WorkReader::connect(&args.hub).and_then(|reader| reader.fleet(&selection, certificates))
    })?;
    warn(&fleet.notices);
    let reports = fleet.gitops_clusters.iter();
    let reports: Vec<_> = reports
        .map(|gitops_cluster| GitOpsClusterReport::new(gitops_cluster, &fleet))
        .collect();
    let listed = GitOpsClusterList {
        reports: &reports,
        is_one: args.name.is_some(),
        now: Timestamp::now(),
        colours: colours(args.color, env),
    };
    let exit = Exit::of_answer(reports.iter().all(GitOpsClusterReport::is_healthy));
    print_answer("status", &list::format_list(&listed, args.output)?, exit)
}
