//! The program: parse, run, write once, and turn errors into a line and an exit code.

use argocd_ocm_cmp::cli::{Cli, Command, GenerateArgs, PolicyCheckArgs, PolicyCommand, PrintArgs};
use argocd_ocm_cmp::generate::problem::{Problems, plain};
use argocd_ocm_cmp::generate::settings::{self, Env, Settings};
use argocd_ocm_cmp::generate::{Generated, generate, policy, print, summary};
use argocd_ocm_cmp::{completion, manual, works, yaml};
use clap::{CommandFactory, Parser};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Deeply nested documents are handled by recursion, for which the first thread's stack may be too small.
    let run = thread::Builder::new().stack_size(yaml::STACK).spawn(|| match command {
        Command::Generate(args) => run_generate(*args),
        Command::Parameters => announce_parameters(),
        Command::Policy(PolicyCommand::Check(args)) => check_policy(&args),
        Command::Completion(args) => show("completion", &completion::script(args.shell, Cli::command())),
        Command::Man => show("manual page", &manual::page(Cli::command())),
    });
    match run.map(thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => ExitCode::FAILURE,
        Err(error) => fail(&format!("error: no thread can be started: {error}\n")),
    }
}

fn run_generate(args: PrintArgs) -> ExitCode {
    let (settings, generated) = match generated(args.generate, &env()) {
        Ok(made) => made,
        Err(problems) => return fail(&problems.to_string()),
    };
    let printed = if args.summary {
        let texts: Vec<String> = generated.works(&settings).map(|work| print::json(&work)).collect();
        let table = summary::table(&works::read_back(&texts), settings.manifest_limit);
        io::stdout().write_all(table.as_bytes())
    } else {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        print::works(generated.works(&settings), args.output, &mut out)
    };
    // The process ends here, which gives its memory back faster than object by object.
    std::mem::forget(generated);
    written("works", printed)
}

fn generated(args: GenerateArgs, env: &Env) -> Result<(Settings, Generated), Problems> {
    let settings = Settings::resolve(args, env)?;
    let generated = generate(&settings)?;
    for notice in &generated.notices {
        say(&format!("warning: {notice}\n"));
    }
    Ok((settings, generated))
}

fn announce_parameters() -> ExitCode {
    match settings::announcements(Path::new("."), &env()) {
        Ok(announced) => show("parameters", &announced),
        Err(problems) => fail(&problems.to_string()),
    }
}

fn env() -> Env {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn check_policy(args: &PolicyCheckArgs) -> ExitCode {
    match policy::check(&args.file, args.project.as_deref()) {
        Ok(summary) => show("summary", &summary),
        Err(problems) => fail(&problems.to_string()),
    }
}

fn show(what: &str, text: &str) -> ExitCode {
    written(what, io::stdout().write_all(text.as_bytes()))
}

fn written(what: &str, result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => fail(&format!("error: the {what} cannot be written: {}\n", plain(&error))),
    }
}

fn fail(lines: &str) -> ExitCode {
    say(lines);
    ExitCode::FAILURE
}

/// Nobody can be told that standard error is closed, so that is left alone.
fn say(lines: &str) {
    let _ = io::stderr().write_all(lines.as_bytes());
}
