//! Runs `doctor`: reads a hub once, and prints its problems.

use super::{Exit, colours, progress, say, show};
use crate::cli::DoctorArgs;
use crate::doctor;
use crate::doctor::{CheckResult, FindingList};
use crate::fetch::WorkReader;
use crate::list;
use generate::settings::Env;
use jiff::Timestamp;
use manifest::text::one_line;

pub(super) fn run(args: &DoctorArgs, env: &Env) -> Exit {
    let hub_state = progress::shown("reading the hub", || {
        WorkReader::connect(&args.hub).and_then(|reader| reader.examine(&args.argo_cd.namespace))
    });
    let findings = hub_state.map(|hub_state| doctor::examine(&hub_state, Timestamp::now()));
    let printed = findings.and_then(|mut findings| {
        if args.pre {
            findings.retain(|finding| doctor::BEFORE_INSTALL.contains(&finding.check));
        } else if !args.checks.is_empty() {
            findings.retain(|finding| args.checks.iter().any(|name| name == finding.check));
        }
        let listed = FindingList {
            findings: &findings,
            colours: colours(args.color, env),
        };
        let text = list::format_list(&listed, args.output)?;
        Ok((text, doctor::overall_result(&findings)))
    });
    match printed {
        Ok((text, overall_result)) => match (show("findings", &text), overall_result) {
            (Exit::SUCCESS, CheckResult::Passed) => Exit::SUCCESS,
            (Exit::SUCCESS, CheckResult::Failed) => Exit::FAILURE,
            _ => Exit::CANNOT_TELL,
        },
        Err(line) => {
            say(&format!("error: {}\n", one_line(&line)));
            Exit::CANNOT_TELL
        }
    }
}
