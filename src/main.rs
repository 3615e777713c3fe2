//! The entry point of the program.

use argocd_ocm_cmp::cli::Cli;
use argocd_ocm_cmp::commands;
use argocd_ocm_cmp::commands::Exit;
use argocd_ocm_cmp::completion;
use argocd_ocm_cmp::download;
use generate::{confine, fetched};
use manifest::yaml;
use std::process::ExitCode;
use std::{process, thread};

fn main() -> ExitCode {
    let is_in_argo_cd = std::env::vars_os().any(|(name, _)| name == "ARGOCD_APP_NAME");
    if let Some(code) = confine::supervise(std::env::args_os())
        .or_else(|| fetched::stand_in(std::env::args_os(), std::env::vars_os()))
        .or_else(|| download::run(std::env::args_os(), std::env::vars_os()))
        .or_else(|| confine::generate_in_second_process(std::env::args_os(), is_in_argo_cd))
    {
        return code;
    }
    completion::complete_if_called();
    let Cli { command } = Cli::from_process();
    let Exit(failure) = commands::failure(&command);
    let env = match commands::environment(std::env::vars_os()) {
        Ok(env) => env,
        Err(problems) => {
            let _ = commands::fail(problems);
            return ExitCode::from(failure);
        }
    };
    // The parser recurses on deeply nested documents, for which the stack of the first thread may be too small. The process exits
    // when the work is done: freeing the large stack first would only cost time.
    let run = thread::Builder::new().stack_size(yaml::STACK).spawn(move || {
        let Exit(code) = commands::run(command, &env);
        process::exit(code.into())
    });
    match run.map(thread::JoinHandle::join) {
        Ok(Ok(never)) => never,
        Ok(Err(_)) => ExitCode::from(failure),
        Err(error) => ExitCode::from(commands::fail(format!("no thread can be started: {error}")).0),
    }
}
