//! Tests of shell completion and the manual page.

use crate::program::program_with;
use argocd_ocm_cmp::cli::Cli;
use clap::CommandFactory as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn printed(words: &str) -> String {
    printed_in(Path::new("/"), words)
}

fn printed_in(folder: &Path, words: &str) -> String {
    let output = program_with(folder, words.split(' '))
        .output()
        .expect("the program runs");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{words}: {output:?}"
    );
    String::from_utf8(output.stdout).expect("text")
}

fn error(words: &str) -> String {
    let output = program_with(Path::new("/"), words.split(' ')).output();
    String::from_utf8(output.expect("the program runs").stderr).expect("text")
}

/// Returns the `PATH` with the program.
fn path() -> String {
    let built = Path::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp")).parent();
    format!("{}:/usr/bin:/bin", built.expect("a folder").display())
}

/// Returns every command that can be run, with its long flags.
fn commands() -> Vec<(Vec<String>, Vec<String>)> {
    let mut program = Cli::command();
    program.build();
    runnable_commands(&program)
}

fn runnable_commands(command: &clap::Command) -> Vec<(Vec<String>, Vec<String>)> {
    if command.has_subcommands() {
        let subcommands = command.get_subcommands().filter(|command| command.get_name() != "help");
        return subcommands.flat_map(runnable_commands).collect();
    }
    let words = command.get_bin_name().expect("a name").split(' ').skip(1);
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let flags = arguments
        .filter_map(clap::Arg::get_long)
        .map(|flag| format!("--{flag}"));
    vec![(words.map(str::to_owned).collect(), flags.collect())]
}

#[test]
fn bash_completes_every_command_and_flag() {
    let folder = TempDir::new().expect("a scratch folder");
    fs::write(folder.path().join("completion"), printed("completion bash")).expect("a file");
    let bash = |script: &str| {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", script]).current_dir(folder.path());
        // The script calls the program by its name.
        let output = bash.env("PATH", path()).output().expect("bash runs");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{script}: {output:?}"
        );
        String::from_utf8(output.stdout).expect("text")
    };
    bash("bash -n completion");
    let registered = bash("source ./completion; complete -p argocd-ocm-cmp");
    let (_, function) = registered.trim_end().split_once("-F ").expect("a function");
    let (function, _) = function.split_once(" argocd-ocm-cmp").expect("for the program");
    let completed = |words: &[&str], last: &str| {
        let words = words.join(" ");
        bash(&format!(
            "source ./completion; COMP_WORDS=(argocd-ocm-cmp {words} {last}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             {function} argocd-ocm-cmp {last} ''; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        ))
    };
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    for (command, flags) in &commands {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let (last, before) = words.split_last().expect("a command");
        let typed = &last[..last.len() - 1];
        assert!(
            completed(before, typed).lines().any(|line| line == *last),
            "{command:?}"
        );
        let offered = completed(&words, "--");
        for flag in flags {
            assert!(
                offered.lines().any(|line| line == flag),
                "{command:?} {flag}: {offered}"
            );
        }
    }
    assert_eq!(completed(&["completion"], "f"), "fish\n");
}

/// Returns the completions of the last word, as fish asks for them.
fn completed(folder: &Path, words: &str) -> String {
    printed_in(
        folder,
        &format!("ARGOCD_OCM_CMP_COMPLETE=fish -- argocd-ocm-cmp {words}"),
    )
}

#[test]
fn contexts_come_from_the_kubeconfig() {
    let folder = TempDir::new().expect("a scratch folder");
    let context = |name| format!("{{name: {name}, context: {{cluster: c, user: u}}}}");
    let contexts = ["hub-eu", "hub-us", "edge"].map(context).join(", ");
    let config = format!("{{apiVersion: v1, kind: Config, clusters: [], users: [], contexts: [{contexts}]}}");
    fs::write(folder.path().join("config"), config).expect("a file");
    for command in ["status shop", "doctor", "install"] {
        let words = format!("{command} --kubeconfig=config --context hub");
        assert_eq!(completed(folder.path(), &words), "hub-eu\nhub-us\n", "{words}");
    }
    // Without a hub there are no names, and no error that would disturb the line that the user types.
    let offered = completed(folder.path(), "status --kubeconfig=config ");
    assert!(!offered.lines().any(|line| line.starts_with("hub")), "{offered}");
    let offered = completed(folder.path(), "status shop --kubeconfig=none --context hub");
    assert_eq!(offered, "");
}

#[test]
fn every_shell_has_a_completion() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&format!("completion {shell}"));
        assert!(script.contains("ARGOCD_OCM_CMP_COMPLETE"), "{shell}: {script}");
    }
}

#[test]
fn help_is_a_command_too() {
    assert_eq!(printed("help policy check"), printed("policy check --help"));
}

#[test]
fn manual_page_lists_every_command_and_flag() {
    let page = printed("man");
    assert!(page.contains("\n.TH argocd-ocm-cmp 1"), "{page}");
    for (command, flags) in commands() {
        let heading = format!("\n.SS \"argocd-ocm-cmp {}\"\n", command.join(" "));
        let (_, section) = page.split_once(&heading).unwrap_or_else(|| panic!("{heading}"));
        let section = section.split("\n.SS ").next().unwrap_or_default();
        for flag in flags {
            let flag = format!("\\fB{}\\fR", flag.replace('-', "\\-"));
            assert!(section.contains(&flag), "{command:?} {flag}: {section}");
        }
    }
    for command in ["status", "policy check", "policy"] {
        let one = printed(&format!("man {command}"));
        let command = command.replace(' ', "-");
        assert!(one.contains(&format!("\n.TH argocd-ocm-cmp-{command} 1")), "{one}");
        assert!(!one.contains("gitopscluster"), "{one}");
    }
    let missing = "error: there is no command \"state\": `argocd-ocm-cmp help` lists all\n";
    assert_eq!(error("man state"), missing);
    // Lines of examples that roff would read as requests, or join, are kept.
    assert!(page.contains("\n.nf\nExamples:\n"), "{page}");
    assert!(page.lines().filter(|line| line.starts_with(".nf")).count() == page.matches("\n.fi\n").count());
}

#[test]
fn printed_lines_install_the_completion() {
    let home = TempDir::new().expect("a scratch folder");
    let help = printed("completion --help");
    let lines: Vec<&str> = help.lines().map(str::trim).collect();
    // Each line runs in its shell: `sh` cannot run those of others.
    let for_sh = |line: &&&str| line.starts_with("mkdir ") || line.contains(" completion ") && line.contains(" > ");
    for line in lines.iter().filter(for_sh) {
        let mut shell = Command::new("sh");
        shell.env_clear().env("HOME", home.path());
        let output = shell.env("PATH", path()).args(["-ec", line]).output().expect("sh runs");
        assert!(output.status.success(), "{line}: {output:?}");
    }
    for file in [
        ".local/share/bash-completion/completions/argocd-ocm-cmp",
        ".zfunc/_argocd-ocm-cmp",
        ".config/fish/completions/argocd-ocm-cmp.fish",
    ] {
        let script = fs::read_to_string(home.path().join(file)).expect(file);
        assert!(script.contains("argocd-ocm-cmp"), "{file}: {script}");
    }
    // fish has no process substitution.
    assert!(lines.contains(&"argocd-ocm-cmp completion fish | source"), "{help}");
}

#[test]
fn suggests_only_corrections_of_typing_errors() {
    for (words, meant) in [
        ("sttaus shop", "'status'"),
        ("generate --polcy a", "'--policy'"),
        ("status shop -o jsn", "'json'"),
    ] {
        let error = error(words);
        assert!(error.contains("similar ") && error.contains(meant), "{error}");
    }
    for words in ["apply", "install --features all"] {
        let error = error(words);
        assert!(!error.contains("similar") && !error.contains("\n\n\n"), "{error}");
    }
}

#[test]
fn version_has_formats() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(printed("version"), format!("argocd-ocm-cmp {version}\n"));
    let json = format!("{{\"name\":\"argocd-ocm-cmp\",\"version\":\"{version}\"}}\n");
    assert_eq!(printed("version -o json"), json);
    let yaml = format!("name: argocd-ocm-cmp\nversion: {version}\n");
    assert_eq!(printed("version -o yaml"), yaml);
}
