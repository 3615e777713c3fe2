//! Finds the setting that a misspelled name probably means.

use super::Env;
use super::table::SETTINGS;
use crate::similar::similar;
use std::borrow::Cow;

/// The prefixes of environment variables that are meant for this program. Argo CD adds the first to the plugin environment variables
/// of an Application.
const PREFIXES: [&str; 2] = ["ARGOCD_ENV_", "ARGOCD_OCM_CMP_"];

/// The environment variables that are no setting, but nearly have the name of one. Others are not ours to question: value files and
/// charts may use any name, and the kubelet names variables after Services.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Misspelled {
    /// A line for each plugin environment variable of the Application, which is ignored.
    pub(super) warnings: Vec<String>,
    /// A line for each variable of the sidecar: most restrict the plugin, which must not be lifted by a typing error.
    pub(super) problems: Vec<String>,
}

/// Finds misspelled variables, in the order of their names.
pub(super) fn misspelled_variables(env: &Env) -> Misspelled {
    let known: Vec<Cow<'static, str>> = SETTINGS.iter().flat_map(|setting| setting.variables()).collect();
    let mut misspelled = Misspelled::default();
    for name in env.keys().filter(|name| !known.contains(&Cow::Borrowed(name.as_str()))) {
        let Some((prefix, short)) = PREFIXES
            .into_iter()
            .find_map(|prefix| Some((prefix, name.strip_prefix(prefix)?)))
        else {
            continue;
        };
        let with_prefix = || known.iter().filter_map(|name| name.strip_prefix(prefix));
        if prefix == PREFIXES[0] {
            // An Application sets the name without the prefix.
            misspelled
                .warnings
                .extend(similar(short, with_prefix()).map(|meant| {
                    format!("plugin env {short} is not a setting, and is ignored: did you mean {meant}?")
                }));
        } else {
            misspelled.problems.extend(misspelled_variable(name, &known));
        }
    }
    misspelled
}

/// Returns a line about a variable of this program that is not known, but nearly has the name of a known one or is its start.
pub fn misspelled_variable(name: &str, known: &[impl AsRef<str>]) -> Option<String> {
    let prefix = PREFIXES[1];
    let short = name.strip_prefix(prefix)?;
    let others = || known.iter().filter_map(|known| known.as_ref().strip_prefix(prefix));
    let is_start = |meant: &&str| meant.strip_prefix(short).is_some_and(|rest| rest.starts_with('_'));
    let meant = similar(short, others()).or_else(|| others().find(is_start))?;
    Some(format!("env {name} is not a setting: did you mean {prefix}{meant}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misspelled(names: &[&str]) -> Misspelled {
        let env = names.iter().map(|name| ((*name).to_owned(), "true".to_owned()));
        misspelled_variables(&env.collect())
    }

    #[test]
    fn names_the_setting_that_a_misspelled_variable_means() {
        assert_eq!(
            misspelled(&[
                "ARGOCD_ENV_CREATE_NAMESPACES",
                "ARGOCD_OCM_CMP_WORKSIZE",
                "ARGOCD_OCM_CMP_POLICY"
            ]),
            Misspelled {
                warnings: vec![
                    "plugin env CREATE_NAMESPACES is not a setting, and is ignored: did you mean CREATE_NAMESPACE?"
                        .to_owned()
                ],
                problems: vec![
                    "env ARGOCD_OCM_CMP_POLICY is not a setting: did you mean ARGOCD_OCM_CMP_POLICY_FILE?".to_owned(),
                    "env ARGOCD_OCM_CMP_WORKSIZE is not a setting: did you mean ARGOCD_OCM_CMP_WORK_SIZE?".to_owned(),
                ],
            }
        );
    }

    #[test]
    fn settings_and_unrelated_variables_are_silent() {
        assert_eq!(
            misspelled(&[
                "ARGOCD_ENV_CREATE_NAMESPACE",
                "ARGOCD_ENV_TARGET_CLUSTER",
                "ARGOCD_ENV_NAMES",
                "ARGOCD_ENV_REGION",
                "ARGOCD_OCM_CMP_CONTROLLER_SERVICE_HOST",
                "ARGOCD_OCM_CMP_LOG_LEVEL",
                "HOME"
            ]),
            Misspelled::default()
        );
    }
}
