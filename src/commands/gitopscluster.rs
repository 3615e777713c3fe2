//! Runs `gitopscluster status`: reads once, and prints.

use super::{Exit, colours, progress, say, show};
use crate::cli::{GitOpsClusterStatusArgs, ListFormat};
use crate::fetch::{GitOpsClusterSelection, WorkReader};
use crate::list;
use crate::status::gitopscluster::{GitOpsClusterList, GitOpsClusterReport};
use generate::settings::Env;
use jiff::Timestamp;
use manifest::text::one_line;

pub(super) fn run(args: &GitOpsClusterStatusArgs, env: &Env) -> Exit {
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
    });
    let printed = fleet.and_then(|fleet| {
        for notice in &fleet.notices {
            say(&format!("warning: {}\n", one_line(notice)));
        }
        let reports = fleet
            .gitops_clusters
            .iter()
            .map(|gitops_cluster| GitOpsClusterReport::new(gitops_cluster, &fleet));
        let reports: Vec<_> = reports.collect();
        let listed = GitOpsClusterList {
            reports: &reports,
            is_one: args.name.is_some(),
            now: Timestamp::now(),
            colours: colours(args.color, env),
        };
        let text = list::format_list(&listed, args.output)?;
        Ok((text, reports.iter().all(GitOpsClusterReport::is_healthy)))
    });
    match printed {
        Ok((text, is_healthy)) => match show("status", &text) {
            Exit::SUCCESS if is_healthy => Exit::SUCCESS,
            Exit::SUCCESS => Exit::FAILURE,
            _ => Exit::CANNOT_TELL,
        },
        Err(line) => {
            say(&format!("error: {}\n", one_line(&line)));
            Exit::CANNOT_TELL
        }
    }
}
