//! The manifests of an agent on a managed cluster, from the files in `deploy/argocd_agent`, which explain them.
//!
//! A comment `# only CASE` at the end of a line keeps this line and the lines below it that are indented more for that case; after
//! `---`, the document. A text `${NAME}` is a value.

use hub_state::Mode;
use manifest::{json, yaml};
use serde_json::Value;

pub(super) const CRDS: &str = include_str!("../../../deploy/argocd_agent/crds.yaml");
pub(super) const RIGHTS: &str = include_str!("../../../deploy/argocd_agent/rights.yaml");
pub(super) const ARGOCD: &str = include_str!("../../../deploy/argocd_agent/argocd.yaml");
pub(super) const AGENT: &str = include_str!("../../../deploy/argocd_agent/agent.yaml");
pub(super) const DEFAULT_PROJECT: &str = include_str!("../../../deploy/argocd_agent/default_project.yaml");
pub(super) const OPERATOR_CRDS: &str = include_str!("../../../deploy/argocd_agent/operator_crds.yaml");
pub(super) const OPERATOR_RIGHTS: &str = include_str!("../../../deploy/argocd_agent/operator_rights.yaml");
pub(super) const OPERATOR: &str = include_str!("../../../deploy/argocd_agent/operator.yaml");
pub(super) const ARGOCD_RESOURCE: &str = include_str!("../../../deploy/argocd_agent/argocd_resource.yaml");
pub(super) const ARGOCD_RESOURCE_RIGHTS: &str =
    include_str!("../../../deploy/argocd_agent/argocd_resource_rights.yaml");

/// The case for a template without argocd-operator.
pub(super) const WITHOUT_AN_OPERATOR: &str = "without an operator";

/// The cases that hold, and the values, for the manifests of one GitOpsCluster.
pub(super) struct Parameters<'a> {
    pub(super) cases: Vec<&'static str>,
    pub(super) values: Vec<(&'static str, &'a str)>,
}

impl Parameters<'_> {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            cases: vec![mode.name()],
            values: vec![("MODE", mode.name())],
        }
    }

    pub(super) fn manifests(&self, file: &str) -> Vec<Value> {
        let text = self.filter_lines(file);
        let parsed = yaml::documents(&text).map(|document| {
            let mut text = String::new();
            json::write(&document.expect("the files are YAML").value, &mut text).expect("YAML values are JSON");
            let mut manifest = serde_json::from_str(&text).expect("JSON");
            self.fill(&mut manifest);
            manifest
        });
        parsed.collect()
    }

    /// Returns the text of a file with what the cases keep.
    fn filter_lines(&self, file: &str) -> String {
        let mut text = String::new();
        for document in file.split("\n---") {
            let mut lines = document.lines();
            if !lines.next().is_none_or(|first| self.keeps(first)) {
                continue;
            }
            text.push_str("---\n");
            let mut left_out = usize::MAX;
            for line in lines {
                let indent = line.chars().take_while(|char| *char == ' ').count();
                if indent > left_out {
                    continue;
                }
                left_out = if self.keeps(line) { usize::MAX } else { indent };
                if left_out == usize::MAX {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        text
    }

    fn keeps(&self, line: &str) -> bool {
        line.split_once(" # only ")
            .is_none_or(|(_, case)| self.cases.contains(&case))
    }

    /// Replaces the texts that name a value.
    fn fill(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                let known = name.and_then(|name| self.values.iter().find(|(known, _)| *known == name));
                if let Some((_, value)) = known {
                    (*value).clone_into(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.fill(field)),
            _ => {}
        }
    }
}

/// Returns the names of the objects of a kind in a file, for every case.
pub(super) fn names(file: &str, kind: &str) -> Vec<String> {
    let all = Parameters::new(Mode::Autonomous).manifests(file);
    let named = all.iter().filter(|manifest| manifest["kind"] == kind);
    named
        .filter_map(|manifest| Some(manifest["metadata"]["name"].as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_keep_documents_and_lines_for_their_cases() {
        let file = "# A comment.\n--- # only autonomous\na: 1\n---\nb:\n  - c: 1 # only managed\n    d: 2\n  - e # only autonomous\n  - f\n";
        assert_eq!(
            Parameters::new(Mode::Autonomous).filter_lines(file),
            "---\n---\na: 1\n---\nb:\n  - e # only autonomous\n  - f\n"
        );
        assert_eq!(
            Parameters::new(Mode::Managed).filter_lines(file),
            "---\n---\nb:\n  - c: 1 # only managed\n    d: 2\n  - f\n"
        );
    }

    #[test]
    fn values_replace_only_whole_texts() {
        let mut parameters = Parameters::new(Mode::Managed);
        parameters.values.extend([("A", "${B}"), ("B", "2")]);
        let manifests = parameters.manifests("\n---\na: \"${A}\"\nb: [\"${B}\", \"x ${B}\", \"${C}\"]\n");
        assert_eq!(
            manifests,
            [serde_json::json!({"a": "${B}", "b": ["2", "x ${B}", "${C}"]})]
        );
    }

    #[test]
    fn files_name_only_known_cases() {
        let known = [
            "managed",
            "autonomous",
            "with a supervisor",
            "without a supervisor",
            WITHOUT_AN_OPERATOR,
        ];
        for file in [
            CRDS,
            RIGHTS,
            ARGOCD,
            AGENT,
            DEFAULT_PROJECT,
            OPERATOR_RIGHTS,
            OPERATOR,
            ARGOCD_RESOURCE,
        ] {
            for line in file.lines() {
                let case = line.split_once(" # only ").map(|(_, case)| case);
                assert!(case.is_none_or(|case| known.contains(&case)), "{line}");
            }
        }
    }
}
