//! Runs `doctor`: reads a hub once, and prints its problems.

use super::{Exit, colours, print_answer, progress};
use crate::cli::DoctorArgs;
use crate::doctor;
use crate::doctor::CheckResult;
use crate::fetch::WorkReader;
use crate::list;
use generate::settings::Env;
use jiff::Timestamp;
use manifest::problem::Problems;

pub(super) fn run(args: &DoctorArgs, env: &Env) -> Result<Exit, Problems> {
    let hub_state = progress::shown("reading the hub", || {
        WorkReader::connect(&args.hub).and_then(|reader| reader.examine(&args.argo_cd.namespace))
    })?;
    let mut findings = doctor::examine(&hub_state, Timestamp::now());
    if args.pre {
        findings.retain(|finding| doctor::BEFORE_INSTALL.contains(&finding.check));
    } else if !args.checks.is_empty() {
        findings.retain(|finding| args.checks.iter().any(|name| name == finding.check));
    }
    let exit = match doctor::overall_result(&findings) {
        CheckResult::Passed => Exit::SUCCESS,
        CheckResult::Failed => Exit::FAILURE,
        CheckResult::Unknown => Exit::CANNOT_TELL,
    };
    let text = list::format_coloured(&*findings, args.output, colours(args.color, env))?;
    print_answer("findings", &text, exit)
}
