//! Runs `doctor`: reads a hub once, and prints its problems.

use super::{Exit, colours, say, show};
use crate::cli::{DoctorArgs, DoctorFormat};
use crate::doctor;
use crate::doctor::Verdict;
use crate::fetch::Reader;
use generate::settings::Env;
use jiff::Timestamp;
use manifest::json;
use manifest::text::one_line;

pub(super) fn run(args: &DoctorArgs, env: &Env) -> Exit {
    let seen = Reader::connect(&args.hub).and_then(|reader| reader.examine(&args.namespace));
    let findings = seen.map(|seen| doctor::examine(&seen, Timestamp::now()));
    let printed = findings.and_then(|findings| {
        let text = match args.output {
            DoctorFormat::Table => doctor::table(&findings, colours(args.color, env)),
            DoctorFormat::Json => {
                let mut text = String::new();
                json::write(&doctor::value(&findings), &mut text).map_err(|error| error.to_string())?;
                text + "\n"
            }
        };
        Ok((text, doctor::verdict(&findings)))
    });
    match printed {
        Ok((text, verdict)) => match (show("findings", &text), verdict) {
            (Exit::SUCCESS, Verdict::Well) => Exit::SUCCESS,
            (Exit::SUCCESS, Verdict::Wrong) => Exit::FAILURE,
            _ => Exit::CANNOT_TELL,
        },
        Err(line) => {
            say(&format!("error: {}\n", one_line(&line)));
            Exit::CANNOT_TELL
        }
    }
}
