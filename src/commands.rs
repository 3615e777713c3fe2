//! The commands. Each reads its inputs, calls the pure modules, writes its output once, and returns an exit code.

mod additions;
mod admission;
mod agent;
mod controller;
mod doctor;
mod gitopscluster;
mod hold;
mod install;
mod live;
mod migrate;
mod progress;
mod rollout;
mod status;
mod uninstall;
mod view;

use crate::cli::{
    Cli, Color, Command, DiffArgs, GenerateArgs, GitOpsClusterCommand, HealthCommand, ListFormat, MigrateCommand,
    Output, PolicyCommand, PrintArgs, RightsArgs, RolloutCommand,
};
use crate::diagnosis::cluster_problem;
use crate::diff;
use crate::diff::{ComparedWork, DiffStyle};
use crate::summary::WorkSummary;
use crate::{completion, fetch, list, manual};
use clap::CommandFactory;
use generate::confine;
use generate::settings;
use generate::settings::{Arguments, Env, Settings};
use generate::{GeneratedWorks, generate, health_rules, policy, print};
use manifest::problem::{Problems, plain};
use manifest::text::one_line;
use ocm::names::is_dns_subdomain;
use ocm::ownership::Ownership;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of a command: the exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit(pub u8);

impl Exit {
    /// The command succeeded.
    pub const SUCCESS: Self = Self(0);
    /// The command failed. For `diff`: there are differences; for `status`: something is not healthy; for `doctor`: there is an
    /// error.
    pub const FAILURE: Self = Self(1);
    /// A command that answers a question could not answer it.
    pub const CANNOT_TELL: Self = Self(2);

    /// Returns the exit code of an answer.
    pub fn of_answer(is_good: bool) -> Self {
        if is_good { Self::SUCCESS } else { Self::FAILURE }
    }

    /// Returns this exit code unless it is that of success.
    pub fn or(self, other: Self) -> Self {
        if self == Self::SUCCESS { other } else { self }
    }
}

/// Runs the command, and prints its error if it fails.
pub fn run(command: Command, env: &Env) -> Exit {
    let failure = failure(&command);
    execute(command, env).unwrap_or_else(|problems| {
        let _ = fail(problems);
        failure
    })
}

fn execute(command: Command, env: &Env) -> Result<Exit, Problems> {
    match command {
        Command::Generate(args) => print_works(*args, env),
        Command::Diff(args) => differences(*args, env),
        Command::Rights(args) => print_rights(*args, env),
        Command::Status(args) => status::run(&args, env),
        Command::Get(args) => view::get(&args),
        Command::Events(args) => view::events(&args),
        Command::Logs(args) => view::logs(&args),
        Command::GitOpsCluster(GitOpsClusterCommand::Status(args)) => gitopscluster::run(&args, env),
        Command::Migrate(MigrateCommand::Plan(args)) => migrate::plan(&args),
        Command::Hold(args) => hold::run(&args),
        Command::Release(args) => hold::run_release(&args),
        Command::Rollout(command) => rollout::run(&command),
        Command::Doctor(args) => doctor::run(&args, env),
        Command::Controller(args) => controller::run(&args, env),
        Command::Live(args) => live::run(&args),
        Command::Install(args) => install::run(&args),
        Command::Uninstall(args) => uninstall::run(&args),
        Command::Agent(command) => agent::run(&command),
        Command::Parameters => show("parameters", &settings::announcements(Path::new("."), env)?),
        Command::Confinement => show_confinement(),
        Command::Policy(PolicyCommand::Check(args)) => {
            show("summary", &policy::check(&args.file, args.project.as_deref())?)
        }
        Command::Health(HealthCommand::Check(args)) => show(
            "summary",
            &health_rules::custom::check(&args.file, args.object.as_deref())?,
        ),
        Command::Completion(args) => show("completion", &completion::script(args.shell)),
        Command::Man(args) => show("manual page", &manual::page(Cli::command(), &args.command)?),
        Command::Version(args) => show("version", &version(args.output)),
    }
}

/// Returns the environment variables that are UTF-8: a shell sets `PWD` to the name of any folder.
///
/// # Errors
/// Returns an error with each setting that is not UTF-8. If it were ignored, one of the administrator could be missing, such as the
/// file of the policy.
pub fn environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Env, Problems> {
    let mut env = Env::new();
    let mut problems = Vec::new();
    let is_setting = |name: &str| {
        let mut variables = settings::SETTINGS.iter().flat_map(|setting| setting.variables());
        name.starts_with("ARGOCD_") || variables.any(|variable| variable == name)
    };
    for (name, value) in variables {
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => {
                env.insert(name, value);
            }
            Err(_) if is_setting(&name) => problems.push(format!(
                "the environment variable {name} is not UTF-8: correct its value, or unset it"
            )),
            Err(_) => {}
        }
    }
    Problems::or(problems, env)
}

/// Returns the exit code of a command that did not complete.
pub fn failure(command: &Command) -> Exit {
    match command {
        Command::Diff(_)
        | Command::Status(_)
        | Command::GitOpsCluster(_)
        | Command::Migrate(_)
        | Command::Rollout(RolloutCommand::Status(_))
        | Command::Doctor(_) => Exit::CANNOT_TELL,
        _ => Exit::FAILURE,
    }
}

fn print_works(args: PrintArgs, env: &Env) -> Result<Exit, Problems> {
    let output = match args.output {
        None | Some(ListFormat::Yaml) => Output::Yaml,
        Some(ListFormat::Json) => Output::Json,
        Some(_) if args.summary => Output::Yaml,
        Some(_) => {
            say("error: works have no such format: use -o yaml or -o json, or list them with --summary\n");
            return Ok(Exit::CANNOT_TELL);
        }
    };
    let settings = settings(args.generate, env)?;
    let generated = generated(&settings)?;
    let works = generated.works(&settings.name);
    let printed = if args.summary {
        let summary = WorkSummary {
            works: works.collect(),
            limit: settings.manifest_limit,
        };
        let text = list::format_list(&summary, args.output.unwrap_or(ListFormat::Table))?;
        io::stdout().write_all(text.as_bytes())
    } else {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        print::works(works, output.into(), &mut out)
    };
    // The process ends here: exiting frees memory faster than dropping object by object.
    std::mem::forget(generated);
    written("works", printed)
}

/// Prints the differences, with the exit codes of `kubectl diff`.
fn differences(args: DiffArgs, env: &Env) -> Result<Exit, Problems> {
    let colours = colours(args.color, env);
    let stdin = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if stdin(&args.file) && stdin(&args.generate.folder) {
        return Err(Problems::one(
            "standard input can be read only once: put the manifests or the works into a file",
        ));
    }
    let mut settings = settings(args.generate.clone(), env)?;
    if args.file.is_none() && !env.contains_key("KUBE_VERSION") && settings.source.is_rendered() {
        // Argo CD passes it, and charts depend on it.
        let version = fetch::kubernetes_version(&args.hub).map(|version| ("KUBE_VERSION".to_owned(), version));
        settings = self::settings(args.generate, &env.clone().into_iter().chain(version).collect())?;
    }
    let generated = generated(&settings)?;
    let mut works: Vec<ComparedWork<'_>> = generated.works(&settings.name).map(ComparedWork::from).collect();
    let ownership = Ownership::on_hub(
        &settings.name,
        settings.target.clusters(),
        works.iter().map(|work| &work.work),
    );
    let (side, texts, ownership) = if let Some(file) = &args.file {
        let texts = vec![diff::read_input(file)?];
        (file.display().to_string(), texts, Arc::new(ownership.in_file()))
    } else {
        let ownership = Arc::new(ownership);
        let fetched = progress::shown("reading the works on the hub", || fetch::works(&args.hub, &ownership));
        let fetched = fetched?;
        let clusters = settings.target.clusters().iter();
        let problems = clusters.filter_map(|cluster| cluster_problem(&cluster.to_string(), fetched.clusters.as_ref()?));
        warn(&fetched.notices);
        warn(&problems.map(|diagnosis| diagnosis.line()).collect::<Vec<_>>());
        ("hub".to_owned(), fetched.works, ownership)
    };
    let mut live = Vec::new();
    for text in &texts {
        live.extend(
            diff::works(text, &side, &ownership)?
                .into_iter()
                .map(ComparedWork::from),
        );
    }
    let renamed;
    if diff::is_named_by_policy(&settings.name, live.iter().map(|work| work.work.name.as_str())) {
        // The policy is not available here, but on the hub the works have the names that it gives them.
        renamed = settings.name.clone().under_policy();
        works = generated.works(&renamed).map(ComparedWork::from).collect();
    }
    let changes = diff::compare(&live, &works, args.file.is_none());
    let text = match args.output {
        None => {
            let style = DiffStyle {
                colours,
                live: side,
                changed: "generated",
            };
            diff::format_changes(&changes, &style)
        }
        // As kubectl diff: nothing to show is no output.
        Some(ListFormat::Table | ListFormat::Wide) if changes.is_empty() => String::new(),
        Some(format) => list::format_list(&*changes, format)?,
    };
    print_answer("differences", &text, Exit::of_answer(changes.is_empty()))
}

/// Returns true if the output has colours.
fn colours(when: Color, env: &Env) -> bool {
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => io::stdout().is_terminal() && env.get("NO_COLOR").is_none_or(String::is_empty),
    }
}

fn settings(args: GenerateArgs, env: &Env) -> Result<Settings, Problems> {
    let launcher = Some(confine::this_program());
    Settings::resolve(
        Arguments {
            launcher,
            ..args.into()
        },
        env,
    )
}

fn generated(settings: &Settings) -> Result<GeneratedWorks<'_>, Problems> {
    if let Some(bytes) = settings.memory {
        confine::limit_own_memory(bytes);
    }
    let generated = progress::shown("generating works", || generate(settings))?;
    warn(&generated.notices);
    Ok(generated)
}

fn version(output: Option<Output>) -> String {
    let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    match output {
        None => format!("{name} {version}\n"),
        Some(Output::Json) => format!("{{\"name\":\"{name}\",\"version\":\"{version}\"}}\n"),
        Some(Output::Yaml) => format!("name: {name}\nversion: {version}\n"),
    }
}

/// Prints the confinement in force for a tool that may use nothing; fails if files or the network are not confined.
fn show_confinement() -> Result<Exit, Problems> {
    let in_force = confine::in_force();
    let in_force = in_force.map_err(|error| format!("the confinement cannot be tested: {}", plain(&error)))?;
    let is_confined = Exit::of_answer(in_force.confines_files() && in_force.confines_network());
    Ok(show("confinement", &in_force.to_string())?.or(is_confined))
}

/// Prints the permissions for the objects of a folder. They depend neither on the name nor on the cluster, so both have defaults.
fn print_rights(args: RightsArgs, env: &Env) -> Result<Exit, Problems> {
    let mut env = env.clone();
    env.entry("TARGET_CLUSTER".to_owned())
        .or_insert_with(|| "cluster1".to_owned());
    let folder = args.generate.folder.as_deref().unwrap_or(Path::new("."));
    if !env.contains_key("ARGOCD_APP_NAME") {
        let folder = folder.canonicalize().unwrap_or_default();
        let name = folder
            .file_name()
            .and_then(OsStr::to_str)
            .filter(|name| is_dns_subdomain(name));
        let name = name.unwrap_or("rights").to_owned();
        env.entry("ARGOCD_ENV_NAME".to_owned()).or_insert(name);
    }
    let settings = settings(args.generate, &env)?;
    show("permissions", &generate::rights(&settings)?)
}

fn show(what: &str, text: &str) -> Result<Exit, Problems> {
    written(what, io::stdout().write_all(text.as_bytes()))
}

/// Prints the output of a command whose exit code answers a question.
fn print_answer(what: &str, text: &str, exit: Exit) -> Result<Exit, Problems> {
    Ok(match show(what, text)? {
        Exit::SUCCESS => exit,
        _ => Exit::CANNOT_TELL,
    })
}

fn written(what: &str, result: io::Result<()>) -> Result<Exit, Problems> {
    match result {
        Ok(()) => Ok(Exit::SUCCESS),
        // The reader has closed the pipe, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::FAILURE),
        Err(error) => Err(Problems::one(format!(
            "the {what} cannot be written: {}",
            plain(&error)
        ))),
    }
}

/// Prints the error.
pub fn fail(problems: impl Into<Problems>) -> Exit {
    say(&problems.into().to_string());
    Exit::FAILURE
}

fn warn(lines: &[impl AsRef<str>]) {
    for line in lines {
        say(&format!("warning: {}\n", one_line(line.as_ref())));
    }
}

/// Prints to standard error. Ignores write errors: if standard error is closed, there is no place to report them.
fn say(lines: &str) {
    let _ = io::stderr().write_all(lines.as_bytes());
}
