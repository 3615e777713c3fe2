//! Runs `status`: reads and prints, repeatedly if `--wait` or `--watch` is set.

use super::progress::CLEAR_LINE;
use super::{Exit, colours, progress, say};
use crate::cli::{ListFormat, StatusArgs};
use crate::fetch::Reader;
use crate::list;
use crate::status;
use crate::status::StatusList;
use generate::settings::Env;
use jiff::Timestamp;
use manifest::text::one_line;
use ocm::application_works::Application;
use ocm::health::Report;
use ocm::health::{Clock, HealthStatus};
use std::collections::HashSet;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The minimum pause between two reads.
const PAUSE: Duration = Duration::from_secs(2);

/// The pause as a multiple of the duration of a read: large Applications are read less often.
const PAUSE_FACTOR: u32 = 10;

/// An escape code that clears the screen of a terminal. The scrollback stays: it is not ours.
const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J";

/// Escape codes that make a terminal cut off a line at its right end instead of wrapping it: a wrapped line could not be erased.
const CUT: [&str; 2] = ["\x1b[?7l", "\x1b[?7h"];

pub(super) fn run(args: &StatusArgs, env: &Env) -> Exit {
    match Application::named(&args.application, &args.argo_cd.namespace)
        .and_then(|application| follow(args, env, &application))
    {
        Ok(HealthStatus::Healthy) => Exit::SUCCESS,
        Ok(_) => Exit::FAILURE,
        Err(line) => {
            say(&format!("error: {}\n", one_line(&line)));
            Exit::CANNOT_TELL
        }
    }
}

/// Reads until there is no more to wait for, and returns the last health of the Application.
fn follow(args: &StatusArgs, env: &Env, application: &Application) -> Result<HealthStatus, String> {
    let mut reader = Reader::connect(&args.hub)?;
    let mut screen = Screen {
        format: args.output,
        colours: colours(args.color, env),
        printed: None,
        has_progress: false,
        warned: HashSet::new(),
    };
    let started = now();
    let mut has_answered = false;
    loop {
        let read_at = now();
        let result = read_status(&mut reader, args, application, &mut screen);
        let rest = PAUSE.max(read_at.elapsed() * PAUSE_FACTOR);
        let remaining = args.timeout.saturating_sub(started.elapsed());
        let is_over = match &result {
            Ok(report) if args.wait => report.health() == HealthStatus::Healthy || remaining.is_zero(),
            // A hub may be unreachable for a while, but a hub that has never answered is an error.
            Err(NoStatus::NoHub(_)) if !has_answered => true,
            Err(_) if args.wait => remaining.is_zero(),
            _ => !args.watch,
        };
        has_answered |= !matches!(result, Err(NoStatus::NoHub(_)));
        match result {
            Ok(report) if is_over || args.watch => {
                screen.print(&report, args.watch)?;
                if is_over {
                    return Ok(report.health());
                }
            }
            Ok(report) => screen.progress(&status::progress(&report)),
            Err(no_status) if is_over => {
                screen.end_progress();
                return Err(no_status.line());
            }
            Err(no_status) if args.watch => screen.warn(&no_status.line()),
            Err(no_status) => screen.progress(&no_status.line()),
        }
        reader.pause(if args.wait { rest.min(remaining) } else { rest });
    }
}

#[expect(clippy::disallowed_methods, reason = "`status` measures how long it waits")]
fn now() -> Instant {
    Instant::now()
}

/// The reason why there is no health.
enum NoStatus {
    /// The hub does not answer, or rejects us.
    NoHub(String),
    /// There are no works yet.
    NoWorks(String),
}

impl NoStatus {
    fn line(self) -> String {
        match self {
            Self::NoHub(line) | Self::NoWorks(line) => line,
        }
    }
}

fn read_status(
    reader: &mut Reader,
    args: &StatusArgs,
    application: &Application,
    screen: &mut Screen,
) -> Result<Report, NoStatus> {
    let mut read = || reader.read(application, &args.clusters);
    // A progress line or a printed status already shows that the command runs.
    let state = if screen.has_progress || screen.printed.is_some() {
        read()
    } else {
        progress::shown("reading the works on the hub", read)
    };
    let state = state.map_err(NoStatus::NoHub)?;
    for notice in &state.notices {
        screen.warn(notice);
    }
    let clock = Clock::at(Timestamp::now());
    let works: Result<Vec<_>, _> = state
        .works
        .iter()
        .map(|text| ocm::health::evaluate(text, &clock))
        .collect();
    let works = works.map_err(|error| NoStatus::NoHub(format!("the hub at {} answers with {error}", reader.url())))?;
    if works.is_empty() {
        return Err(NoStatus::NoWorks(format!(
            "the hub at {} has no works of Application {}: check its name, and that it is synced",
            reader.url(),
            application.instance
        )));
    }
    Ok(Report::new(&application.instance, works, &state.silent, state.syncing))
}

/// The output that the user sees.
struct Screen {
    format: ListFormat,
    colours: bool,
    /// The last printed report.
    printed: Option<String>,
    /// True if the last line is a progress line.
    has_progress: bool,
    /// The warnings that were printed.
    warned: HashSet<String>,
}

impl Screen {
    /// Prints a report, unless it equals the last one.
    fn print(&mut self, report: &Report, again: bool) -> Result<(), String> {
        self.end_progress();
        let listed = StatusList {
            report,
            colours: self.colours,
        };
        let mut text = list::text(&listed, self.format)?;
        if again && self.format == ListFormat::Yaml {
            text.insert_str(0, "---\n");
        }
        if self.printed.as_ref() == Some(&text) {
            return Ok(());
        }
        let is_table = matches!(self.format, ListFormat::Table | ListFormat::Wide);
        let before = match &self.printed {
            _ if is_table && again && io::stdout().is_terminal() => CLEAR_SCREEN,
            Some(_) if is_table => "\n",
            _ => "",
        };
        let mut out = io::stdout().lock();
        let written = out
            .write_all(format!("{before}{text}").as_bytes())
            .and_then(|()| out.flush());
        self.printed = Some(text);
        match written {
            // The reader has closed the pipe, as `head` does.
            Err(error) if error.kind() == ErrorKind::BrokenPipe && !again => Ok(()),
            Err(error) => Err(format!("the status cannot be written: {error}")),
            Ok(()) => Ok(()),
        }
    }

    /// Replaces the progress line on a terminal, which names the state that the command waits for.
    fn progress(&mut self, line: &str) {
        /// The maximum width of a terminal.
        const WIDTH: usize = 500;
        if io::stderr().is_terminal() {
            let line: String = line.chars().take(WIDTH).collect();
            let [cut, uncut] = CUT;
            say(&format!("{CLEAR_LINE}{cut}{line}{uncut}"));
            self.has_progress = true;
        }
    }

    fn end_progress(&mut self) {
        if std::mem::take(&mut self.has_progress) {
            say(CLEAR_LINE);
        }
    }

    /// Prints a warning once.
    fn warn(&mut self, line: &str) {
        if self.warned.insert(line.to_owned()) {
            self.end_progress();
            say(&format!("warning: {}\n", one_line(line)));
        }
    }
}
