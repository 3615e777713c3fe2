//! Shell completion of commands, flags and values, and of names on the hub.
//!
//! When the user presses Tab, the script in the shell calls the program with the words typed so far. Names are read with the kubeconfig
//! that they select. If the hub does not answer in time, there are no names, and no error.

use crate::cli::{Cli, HubArgs};
use crate::fetch;
use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use clap_complete::Shell;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use ocm::application_works::ApplicationName;
use ocm::resources::{APPLICATIONS, CLUSTERS, GITOPS_CLUSTERS};
use primitives::resource::Resource;
use std::env;
use std::ffi::OsStr;

/// The environment variable with which a script calls the program. Its value is the name of the shell.
const VARIABLE: &str = "ARGOCD_OCM_CMP_COMPLETE";

/// Prints completions and ends the process, if the script of a shell calls.
pub fn complete_if_called() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// Returns the script with which a shell completes the program.
pub fn script(shell: Shell) -> String {
    let program = Cli::command();
    let name = program.get_name();
    let shells = Shells::builtins();
    let shell = shells.completer(&shell.to_string()).expect("a known shell");
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, name, name, name, &mut script)
        .expect("writing to memory never fails");
    String::from_utf8(script).expect("the script is UTF-8")
}

/// Completes the name of a context of the kubeconfig.
pub(crate) fn contexts(typed: &OsStr) -> Vec<CompletionCandidate> {
    candidates(typed, Words::typed().hub.connection().contexts())
}

pub(crate) fn applications(typed: &OsStr) -> Vec<CompletionCandidate> {
    candidates(typed, qualified(&APPLICATIONS))
}

pub(crate) fn gitops_clusters(typed: &OsStr) -> Vec<CompletionCandidate> {
    candidates(typed, qualified(&GITOPS_CLUSTERS))
}

/// Completes the last managed cluster of a list that is separated by commas.
pub(crate) fn clusters(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = typed.to_str() else { return Vec::new() };
    // Empty if the flag has a delimiter: then clap passes only the last name.
    let before = &text[..text.rfind(',').map_or(0, |at| at + 1)];
    let Words { hub, last, .. } = Words::typed();
    let (listed, _) = last.rsplit_once(',').unwrap_or_default();
    let listed: Vec<&str> = listed.split([',', '=']).collect();
    let names = fetch::names(&hub, &CLUSTERS, None).into_iter();
    let rest = names.filter(|(_, name)| !listed.contains(&&**name));
    candidates(typed, rest.map(|(_, name)| format!("{before}{name}")))
}

/// Completes the name of an object that the Application before it delivers.
pub(crate) fn objects(typed: &OsStr) -> Vec<CompletionCandidate> {
    let words = Words::typed();
    let application = words
        .application
        .as_deref()
        .map(|name| ApplicationName::named(name, &words.namespace));
    let Some(Ok(application)) = application else {
        return Vec::new();
    };
    candidates(
        typed,
        fetch::delivered(&words.hub, &application, words.cluster.as_deref()),
    )
}

/// Returns the names of all objects of a kind, those outside Argo CD's namespace as `NAMESPACE/NAME`.
fn qualified(resource: &'static Resource) -> impl Iterator<Item = String> {
    let Words { hub, namespace, .. } = Words::typed();
    let pairs = fetch::names(&hub, resource, Some(&namespace));
    let of_argo_cd = move |(of, name)| if of == namespace { name } else { format!("{of}/{name}") };
    pairs.into_iter().map(of_argo_cd)
}

fn candidates(typed: &OsStr, all: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let matching = all.into_iter().filter(|name| name.starts_with(typed));
    matching.map(CompletionCandidate::new).collect()
}

/// The options for the hub among the words typed so far.
#[derive(Debug)]
struct Words {
    hub: HubArgs,
    /// The namespace of Argo CD.
    namespace: String,
    /// The first word after the command that is no option.
    application: Option<String>,
    /// The managed cluster.
    cluster: Option<String>,
    /// The last word.
    last: String,
}

/// The options without a value of the commands with an Application and an object.
const SWITCHES: [&str; 7] = ["-f", "--follow", "-p", "--previous", "-fp", "-pf", "--send-my-token"];

impl Words {
    fn typed() -> Self {
        // The script passes the words after `--`.
        let words = env::args_os().filter_map(|word| word.into_string().ok());
        Self::new(&words.skip_while(|word| word != "--").collect::<Vec<_>>())
    }

    fn new(words: &[String]) -> Self {
        let value = |flags: &[&str]| {
            words.iter().enumerate().find_map(|(at, word)| {
                let (flag, value) = word.split_once('=').unwrap_or((word, ""));
                let next = || words.get(at + 1).map_or("", String::as_str);
                let value = if word.contains('=') { value } else { next() };
                (flags.contains(&flag) && !value.is_empty()).then(|| value.to_owned())
            })
        };
        Self {
            hub: HubArgs {
                kubeconfig: value(&["--kubeconfig"]).map(Into::into),
                context: value(&["--context"]),
            },
            application: Self::application(words),
            cluster: value(&["--cluster"]),
            namespace: value(&["-n", "--namespace", "--argocd-namespace"]).unwrap_or_else(|| "argocd".to_owned()),
            last: words.last().cloned().unwrap_or_default(),
        }
    }

    fn application(words: &[String]) -> Option<String> {
        // After `--`, the program and the command.
        let mut words = words.iter().skip(3);
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                return Some(word.clone());
            }
            if !word.contains('=') && !SWITCHES.contains(&&**word) {
                words.next();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &str) -> Words {
        Words::new(&typed.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn words_select_the_hub() {
        let typed = words("status --kubeconfig a --context=b -n gitops sh");
        assert_eq!(typed.hub.kubeconfig.as_deref(), Some("a".as_ref()));
        assert_eq!(typed.hub.context.as_deref(), Some("b"));
        assert_eq!(typed.namespace, "gitops");
        for switches in [
            "-f --cluster eu1 --tail=5",
            "-fp --cluster=eu1",
            "--send-my-token --cluster eu1",
        ] {
            let typed = words(&format!("-- argocd-ocm-cmp logs {switches} -n gitops shop dep"));
            let names = (typed.application.as_deref(), typed.cluster.as_deref());
            assert_eq!(names, (Some("shop"), Some("eu1")), "{switches}");
        }
        let typed = words("status --context ");
        assert!(typed.hub.kubeconfig.is_none() && typed.hub.context.is_none());
        assert_eq!(typed.namespace, "argocd");
    }
}
