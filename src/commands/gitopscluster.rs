//! Runs `gitopscluster status`: reads once, and prints.

use super::{Exit, colours, print_answer, progress, warn};
use crate::cli::{GitOpsClusterStatusArgs, ListFormat};
use crate::fetch::WorkReader;
use crate::list;
use crate::status::gitopscluster::{GitOpsClusterList, GitOpsClusterReport};
use generate::settings::Env;
use jiff::Timestamp;
use manifest::problem::Problems;
use primitives::object_ref::ObjectRef;

pub(super) fn run(args: &GitOpsClusterStatusArgs, env: &Env) -> Result<Exit, Problems> {
    let argo_cd = args.argo_cd.namespace.as_str();
    let (namespace, name) = match args.name.as_deref() {
        _ if args.all_namespaces => ("", ""),
        None => (argo_cd, ""),
        Some(name) => name.split_once('/').unwrap_or((argo_cd, name)),
    };
    let selected = ObjectRef::new(namespace, name);
    // Listing the works of a fleet takes the hub longer than all other reads.
    let certificates = !matches!(args.output, ListFormat::Table | ListFormat::Name);
    let fleet = progress::shown("reading the hub", || {
        WorkReader::connect(&args.hub).and_then(|reader| reader.fleet(&selected, certificates))
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
    };
    let exit = Exit::of_answer(reports.iter().all(GitOpsClusterReport::is_healthy));
    let text = list::format_coloured(&listed, args.output, colours(args.color, env))?;
    print_answer("status", &text, exit)
}
