//! Runs `gitopscluster status`: reads once, and prints.

use super::{Exit, colours, say, show};
use crate::cli::{FleetFormat, GitOpsClusterStatusArgs};
use crate::fetch::{GitOpsClusterSelection, Reader};
use crate::status::gitopscluster::{Report, table, value};
use generate::settings::Env;
use jiff::Timestamp;
use manifest::text::one_line;
use manifest::value::Value;
use manifest::{json, yaml};

pub(super) fn run(args: &GitOpsClusterStatusArgs, env: &Env) -> Exit {
    let selection = match &args.name {
        _ if args.all_namespaces => GitOpsClusterSelection::All,
        None => GitOpsClusterSelection::Namespace(args.namespace.clone()),
        Some(name) => GitOpsClusterSelection::One {
            namespace: args.namespace.clone(),
            name: name.clone(),
        },
    };
    // Listing the works of a fleet takes the hub longer than all other reads.
    let certificates = args.output != FleetFormat::Table;
    let fleet = Reader::connect(&args.hub).and_then(|reader| reader.fleet(&selection, certificates));
    let printed = fleet.and_then(|fleet| {
        for notice in &fleet.notices {
            say(&format!("warning: {}\n", one_line(notice)));
        }
        let reports = fleet.gitops_clusters.iter().map(|it| Report::new(it, &fleet));
        let reports: Vec<_> = reports.collect();
        let text = text(&reports, args, colours(args.color, env))?;
        Ok((text, reports.iter().all(Report::is_healthy)))
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

/// Returns the output for all requested GitOpsClusters.
fn text(reports: &[Report], args: &GitOpsClusterStatusArgs, colours: bool) -> Result<String, String> {
    let all_reports = || match reports {
        [one] if args.name.is_some() => value(one),
        all => Value::map([("items", Value::List(all.iter().map(value).collect()))]),
    };
    match args.output {
        FleetFormat::Table | FleetFormat::Wide => {
            let (now, wide) = (Timestamp::now(), args.output == FleetFormat::Wide);
            let tables = reports.iter().map(|report| table(report, now, wide, colours));
            Ok(tables.collect::<Vec<_>>().join("\n\n"))
        }
        FleetFormat::Json => {
            let mut text = String::new();
            json::write(&all_reports(), &mut text).map_err(|error| error.to_string())?;
            Ok(text + "\n")
        }
        FleetFormat::Yaml => Ok(yaml::write(&all_reports())),
    }
}
