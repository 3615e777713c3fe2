//! Runs `doctor`: reads a hub once, and prints its problems.

use super::{Exit, colours, say, show};
use crate::cli::{DoctorArgs, DoctorFormat};
use crate::doctor;
use crate::doctor::CheckResult;
use crate::fetch::Reader;
use generate::settings::Env;
use jiff::Timestamp;
use manifest::text::one_line;
use manifest::{json, yaml};

pub(super) fn run(args: &DoctorArgs, env: &Env) -> Exit {
    let hub_state = Reader::connect(&args.hub).and_then(|reader| reader.examine(&args.namespace));
    let findings = hub_state.map(|hub_state| doctor::examine(&hub_state, Timestamp::now()));
    let printed = findings.and_then(|mut findings| {
        findings.retain(|finding| args.checks.is_empty() || args.checks.iter().any(|name| name == finding.check));
        let text = match args.output {
            DoctorFormat::Table => doctor::table(&findings, colours(args.color, env)),
            DoctorFormat::Json => {
                let mut text = String::new();
                json::write(&doctor::value(&findings), &mut text).map_err(|error| error.to_string())?;
                text + "\n"
            }
            DoctorFormat::Yaml => yaml::write(&doctor::value(&findings)),
        };
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
