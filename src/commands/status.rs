//! Runs `status`: reads and prints, repeatedly if `--wait` or `--watch` is set.

use super::progress::CLEAR_LINE;
use super::{Exit, colours, print_answer, progress, say, warn};
use crate::cli::{ListFormat, StatusArgs};
use crate::diagnosis;
use crate::diagnosis::{DiagnosedApplication, DiagnosedCluster, Diagnosis};
use crate::doctor::Lookup;
use crate::fetch::WorkReader;
use crate::list;
use crate::status;
use crate::status::ApplicationStatus;
use crate::view::full_name;
use generate::settings::Env;
use jiff::Timestamp;
use live::request::{self, ObjectId};
use manifest::kinds::GroupKind;
use manifest::problem::Problems;
use manifest::text::one_line;
use ocm::application_works::ApplicationName;
use ocm::duration;
use ocm::health::{Clock, HealthReport, HealthStatus, ObjectStatus, WorkStatus};
use ocm::hold::Hold;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The minimum pause between two reads.
const PAUSE: Duration = Duration::from_secs(2);

/// The time that a read has at least. The last one begins when the time of `--timeout` is over.
const READ_TIMEOUT_MIN: Duration = Duration::from_secs(10);

/// The pause as a multiple of the duration of a read: large Applications are read less often.
const PAUSE_FACTOR: u32 = 10;

/// An escape code that clears the screen of a terminal. The scrollback stays: it is not ours.
const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J";

/// Escape codes that make a terminal cut off a line at its right end instead of wrapping it: a wrapped line could not be erased.
const CUT: [&str; 2] = ["\x1b[?7l", "\x1b[?7h"];

pub(super) fn run(args: &StatusArgs, env: &Env) -> Result<Exit, Problems> {
    let Some(name) = &args.application else {
        return list_applications(args, env);
    };
    let health = follow(args, env, &ApplicationName::named(name, &args.argo_cd.namespace)?)?;
    Ok(Exit::of_answer(health == HealthStatus::Healthy))
}

/// Lists the Applications of the hub, or those on the named managed clusters.
fn list_applications(args: &StatusArgs, env: &Env) -> Result<Exit, Problems> {
    let (mut overview, notices) = progress::shown("reading the hub", || {
        let reader = WorkReader::connect(&args.hub)?;
        let read = reader.overview(&args.argo_cd.namespace, &args.clusters)?;
        if !args.clusters.is_empty() {
            // The Applications on some clusters do not show that a name is misspelled.
            reader.check_projects(&args.argo_cd.namespace, &args.project)?;
        }
        Ok::<_, String>(read)
    })?;
    warn(&notices);
    overview.keep(&args.health, &args.project)?;
    let exit = Exit::of_answer(overview.health() == HealthStatus::Healthy);
    let text = list::format_coloured(&overview, args.output, colours(args.color, env))?;
    print_answer("status", &text, exit)
}

/// Reads until there is no more to wait for, and returns the last health of the Application.
fn follow(args: &StatusArgs, env: &Env, application: &ApplicationName) -> Result<HealthStatus, String> {
    let mut reader = WorkReader::connect(&args.hub)?;
    let mut screen = Screen {
        format: args.output,
        colours: colours(args.color, env),
        last: LastOutput::default(),
        logged: None,
        has_progress: false,
        warned: HashSet::new(),
    };
    let started = now();
    let mut has_answered = false;
    loop {
        let read_at = now();
        if args.wait {
            let remaining = args.timeout.saturating_sub(started.elapsed());
            reader.limit(read_at.checked_add(remaining.max(READ_TIMEOUT_MIN)));
        }
        let result = read_status(&mut reader, args, application, &mut screen);
        has_answered |= !matches!(result, Err(NoStatus::NoHub(_))) || reader.is_overloaded();
        let rest = PAUSE.max(read_at.elapsed() * PAUSE_FACTOR);
        let remaining = args.timeout.saturating_sub(started.elapsed());
        let is_over = match &result {
            Ok(status) if args.wait => {
                status.health() == HealthStatus::Healthy || status.is_permanent() || remaining.is_zero()
            }
            // A hub may be unreachable for a while, but a hub that has never answered is an error.
            Err(NoStatus::NoHub(_)) if !has_answered => true,
            Err(_) if args.wait => remaining.is_zero(),
            _ => !args.watch,
        };
        let gave_up = || format!("gave up after {}", duration::format(args.timeout));
        match result {
            Ok(status) if is_over || args.watch => {
                screen.print(&status, args.watch)?;
                if is_over {
                    if args.wait && status.health() != HealthStatus::Healthy && !status.is_permanent() {
                        say(&format!("error: {}\n", gave_up()));
                    }
                    return Ok(status.health());
                }
            }
            Ok(status) => screen.progress(&status::progress(&status)),
            Err(no_status) if is_over => {
                screen.end_progress();
                let line = no_status.line();
                return Err(if args.wait && has_answered {
                    format!("{}: {line}", gave_up())
                } else {
                    line
                });
            }
            Err(no_status) if args.watch => screen.fail(&no_status.line()),
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
    reader: &mut WorkReader,
    args: &StatusArgs,
    application: &ApplicationName,
    screen: &mut Screen,
) -> Result<ApplicationStatus, NoStatus> {
    let mut read = || reader.read_works(application, &args.clusters);
    // A progress line or a printed status already shows that the command runs.
    let state = if screen.has_progress || screen.last.status.is_some() {
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
    let clusters = state.clusters.as_ref();
    let unreachable = clusters.map(diagnosis::unreachable).unwrap_or_default();
    let has_works = !works.is_empty();
    let sync = state.application.found().and_then(DiagnosedApplication::running_sync);
    let syncing = sync.map(|sync| sync.message.clone());
    let report = HealthReport::new(&application.instance, works, &unreachable, syncing);
    let is_absent = matches!(state.application, Lookup::NotFound);
    let in_argo_cd = match state.application {
        Lookup::Found(in_argo_cd) => Some(in_argo_cd),
        _ if has_works => None,
        Lookup::NotFound => {
            return Err(NoStatus::NoWorks(format!(
                "the hub at {} has no Application {}/{}, and no works of it: check its name, or pass NAMESPACE/NAME",
                reader.url(),
                application.namespace,
                application.name
            )));
        }
        Lookup::Refused(why) => {
            return Err(NoStatus::NoWorks(format!(
                "the hub at {} has no works of Application {}, and its state cannot be read: {why}",
                reader.url(),
                application.instance
            )));
        }
    };
    let mut problems = problems(&report, in_argo_cd.as_ref(), clusters, &args.clusters);
    problems.extend(diagnosis::standstill(
        &report.works,
        clusters,
        &state.unsatisfied_placements,
    ));
    if is_absent && state.works.iter().any(|work| diagnosis::is_tracked(work)) {
        problems.push(diagnosis::describe_abandoned(&application.namespace, &application.name));
    }
    let mut holds = state.holds;
    let is_target = |hold: &Hold| report.works.iter().any(|work| work.cluster() == Some(&hold.cluster));
    holds.retain(is_target);
    let look = degraded(&report).filter(|(cluster, _)| reader.has_tunnel(cluster));
    let look = look.map(|(cluster, object)| look_command(args, cluster, object));
    Ok(ApplicationStatus {
        look,
        holds,
        report,
        application: in_argo_cd,
        problems,
    })
}

/// Returns the first Degraded object with its managed cluster, of those whose name means nothing to a shell.
fn degraded(report: &HealthReport) -> Option<(&str, &ObjectStatus)> {
    let is_plain = |text: &String| text.is_empty() || request::segment("name", text).is_ok();
    let is_degraded = |object: &&ObjectStatus| {
        let names = [&object.group, &object.kind, &object.namespace, &object.name];
        object.health == HealthStatus::Degraded && names.into_iter().all(is_plain)
    };
    for work in &report.works {
        if let (Some(cluster), Some(object)) = (work.cluster(), work.objects.iter().find(is_degraded)) {
            return Some((cluster, object));
        }
    }
    None
}

/// Returns the command that shows an object as it is, for the same hub.
fn look_command(args: &StatusArgs, cluster: &str, object: &ObjectStatus) -> String {
    let id = ObjectId {
        kind: GroupKind {
            group: object.group.as_str().into(),
            kind: object.kind.as_str().into(),
        },
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    };
    let mut command = "argocd-ocm-cmp get".to_owned();
    let kubeconfig = args.hub.kubeconfig.as_ref().map(|path| path.display().to_string());
    let namespace = Some(args.argo_cd.namespace.clone()).filter(|namespace| namespace != "argocd");
    let options = [
        ("", args.application.clone()),
        ("", Some(full_name(&id))),
        ("--cluster ", Some(cluster.to_owned())),
        ("--namespace ", namespace),
        ("--context ", args.hub.context.clone()),
        ("--kubeconfig ", kubeconfig),
    ];
    for (flag, value) in options {
        if let Some(value) = value {
            command.extend([" ", flag, &value]);
        }
    }
    command
}

/// Returns the problems of an Application, only for the managed clusters `shown` if there are any.
fn problems(
    report: &HealthReport,
    in_argo_cd: Option<&DiagnosedApplication>,
    clusters: Option<&BTreeMap<String, DiagnosedCluster>>,
    shown: &[String],
) -> Vec<Diagnosis> {
    let mut application = in_argo_cd.cloned().unwrap_or_default();
    if report.works.is_empty() {
        return diagnosis::absence(&application, shown, clusters);
    }
    let with_works: BTreeSet<&str> = report.works.iter().filter_map(WorkStatus::cluster).collect();
    let mut without_work = shown.to_vec();
    without_work.retain(|name| !with_works.contains(&**name));
    let absence = diagnosis::absence_besides(&without_work, &application, clusters);
    application.targets.extend(with_works.into_iter().map(str::to_owned));
    application
        .targets
        .retain(|name| shown.is_empty() || shown.contains(name));
    if application.is_synced_on(shown) {
        "Synced".clone_into(&mut application.sync);
    }
    let problems = match in_argo_cd {
        Some(_) => diagnosis::problems_of_works(&application, clusters),
        // Its state is not known.
        None => diagnosis::problems(&application, clusters),
    };
    if problems.is_empty() { absence } else { problems }
}

/// The last printed status, and the reason why no later one could be read.
#[derive(Default)]
struct LastOutput {
    status: Option<String>,
    failure: Option<String>,
}

impl LastOutput {
    /// Returns true if a status is printed: it is not the last one, or shows that the hub answers again.
    fn is_news(&mut self, status: &str) -> bool {
        self.failure.take().is_some() || self.status.as_deref() != Some(status)
    }

    /// Returns true if a failure is printed: it is not that of the last read.
    fn is_new_failure(&mut self, line: &str) -> bool {
        self.failure.replace(line.to_owned()).as_deref() != Some(line)
    }
}

/// The output that the user sees.
struct Screen {
    format: ListFormat,
    colours: bool,
    last: LastOutput,
    /// The last line of progress that is not on a terminal.
    logged: Option<String>,
    /// True if the last line is a progress line.
    has_progress: bool,
    /// The warnings that were printed.
    warned: HashSet<String>,
}

impl Screen {
    /// Prints a status, unless it equals the last one.
    fn print(&mut self, status: &ApplicationStatus, again: bool) -> Result<(), String> {
        self.end_progress();
        let mut text = list::format_coloured(status, self.format, self.colours)?;
        if again && self.format == ListFormat::Yaml {
            text.insert_str(0, "---\n");
        }
        if !self.last.is_news(&text) {
            return Ok(());
        }
        let is_table = matches!(self.format, ListFormat::Table | ListFormat::Wide);
        let before = match &self.last.status {
            _ if is_table && again && io::stdout().is_terminal() => CLEAR_SCREEN,
            Some(_) if is_table => "\n",
            _ => "",
        };
        let mut out = io::stdout().lock();
        let written = out
            .write_all(format!("{before}{text}").as_bytes())
            .and_then(|()| out.flush());
        self.last.status = Some(text);
        match written {
            // The reader has closed the pipe, as `head` does.
            Err(error) if error.kind() == ErrorKind::BrokenPipe && !again => Ok(()),
            Err(error) => Err(format!("the status cannot be written: {error}")),
            Ok(()) => Ok(()),
        }
    }

    /// Shows the state that the command waits for: replaces the progress line on a terminal, and prints a line elsewhere if it has
    /// changed.
    fn progress(&mut self, line: &str) {
        /// The maximum width of a terminal.
        const WIDTH: usize = 500;
        if io::stderr().is_terminal() {
            let line: String = line.chars().take(WIDTH).collect();
            let [cut, uncut] = CUT;
            say(&format!("{CLEAR_LINE}{cut}{line}{uncut}"));
            self.has_progress = true;
        } else if self.logged.as_deref() != Some(line) {
            say(&format!("{}\n", one_line(line)));
            self.logged = Some(line.to_owned());
        }
    }

    fn end_progress(&mut self) {
        if std::mem::take(&mut self.has_progress) {
            say(CLEAR_LINE);
        }
    }

    /// Prints the reason why there is no status.
    fn fail(&mut self, line: &str) {
        if self.last.is_new_failure(line) {
            self.end_progress();
            warn(&[line]);
        }
    }

    /// Prints a warning once.
    fn warn(&mut self, line: &str) {
        if self.warned.insert(line.to_owned()) {
            self.end_progress();
            warn(&[line]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the status before a second outage would look current.
    #[test]
    fn each_outage_of_the_hub_is_printed_and_its_end() {
        let mut last = LastOutput::default();
        for outage in ["first", "second"] {
            assert!(last.is_news("Healthy"), "{outage}");
            last.status = Some("Healthy".to_owned());
            assert!(!last.is_news("Healthy"), "{outage}");
            assert!(last.is_new_failure("refused"), "{outage}");
            assert!(!last.is_new_failure("refused"), "{outage}");
        }
        assert!(last.is_new_failure("timed out"));
    }
}
