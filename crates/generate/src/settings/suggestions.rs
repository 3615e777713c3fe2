//! Finds the setting that a misspelled name probably means.

use super::Env;
use super::table::SETTINGS;
use crate::similar::similar;
use std::borrow::Cow;

/// The prefixes of environment variables that are meant for this program. Argo CD adds the first to the plugin environment variables
/// of an Application.
const PREFIXES: [&str; 2] = ["ARGOCD_ENV_", "ARGOCD_OCM_CMP_"];

/// Returns a warning for each environment variable that is no setting, but nearly has the name of one. Others are not ours to
/// question: value files and charts may use any name.
pub(super) fn misspelled_variables(env: &Env) -> Vec<String> {
    let known: Vec<Cow<'static, str>> = SETTINGS.iter().flat_map(|setting| setting.variables()).collect();
    let warning = |name: &String| {
        let prefix = PREFIXES.into_iter().find(|prefix| name.starts_with(prefix))?;
        if known.iter().any(|text| text == name) {
            return None;
        }
        let short = name.strip_prefix(prefix)?;
        let meant = similar(short, known.iter().filter_map(|name| name.strip_prefix(prefix)))?;
        // An Application sets the name without the prefix.
        let [name, meant] = match prefix {
            "ARGOCD_ENV_" => [format!("plugin env {short}"), meant.to_owned()],
            _ => [format!("env {name}"), format!("{prefix}{meant}")],
        };
        Some(format!(
            "{name} is not a setting, and is ignored: did you mean {meant}?"
        ))
    };
    let mut warnings: Vec<String> = env.keys().filter_map(warning).collect();
    warnings.sort_unstable();
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(names: &[&str]) -> Vec<String> {
        let env: Env = names
            .iter()
            .map(|name| ((*name).to_owned(), "true".to_owned()))
            .collect();
        misspelled_variables(&env)
    }

    #[test]
    fn names_the_setting_that_a_misspelled_variable_means() {
        assert_eq!(
            warnings(&["ARGOCD_ENV_CREATE_NAMESPACES", "ARGOCD_OCM_CMP_WORKSIZE"]),
            [
                "env ARGOCD_OCM_CMP_WORKSIZE is not a setting, and is ignored: did you mean ARGOCD_OCM_CMP_WORK_SIZE?",
                "plugin env CREATE_NAMESPACES is not a setting, and is ignored: did you mean CREATE_NAMESPACE?",
            ]
        );
    }

    #[test]
    fn settings_and_unrelated_variables_are_silent() {
        let none: [String; 0] = [];
        assert_eq!(
            warnings(&[
                "ARGOCD_ENV_CREATE_NAMESPACE",
                "ARGOCD_ENV_TARGET_CLUSTER",
                "ARGOCD_ENV_NAMES",
                "ARGOCD_ENV_REGION",
                "HOME"
            ]),
            none
        );
    }
}
