//! Messages of checks, and findings.

use manifest::text::{count, with_reason};
use std::fmt::Display;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something may work, and needs attention.
    Warning,
    /// Everything is in order.
    Ok,
}

impl Severity {
    /// Returns the printed name of the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Ok => "ok",
        }
    }
}

/// A possible finding, with names of unknown values in braces. docs/doctor.md lists each that needs action.
#[derive(Debug)]
pub struct Message {
    /// The id in JSON, which does not change.
    pub id: &'static str,
    /// The severity.
    pub level: Severity,
    /// True if something could not be read.
    pub unreadable: bool,
    /// The text of the finding.
    pub text: &'static str,
    /// The remediation.
    pub remediation: &'static str,
}

impl Message {
    /// Creates a message about something that does not work.
    pub(super) const fn error(id: &'static str, text: &'static str, remediation: &'static str) -> Self {
        Self {
            id,
            level: Severity::Error,
            unreadable: false,
            text,
            remediation,
        }
    }

    /// Creates a message about something that needs attention.
    pub(super) const fn warning(id: &'static str, text: &'static str, remediation: &'static str) -> Self {
        Self {
            level: Severity::Warning,
            ..Self::error(id, text, remediation)
        }
    }

    /// Creates a message about something that could not be read.
    pub(super) const fn unreadable(id: &'static str, text: &'static str, remediation: &'static str) -> Self {
        Self {
            unreadable: true,
            ..Self::warning(id, text, remediation)
        }
    }

    /// Creates a message about something that is in order.
    pub(super) const fn ok(id: &'static str, text: &'static str) -> Self {
        Self {
            level: Severity::Ok,
            ..Self::error(id, text, "")
        }
    }

    /// Creates a finding about objects, if there are any: `{names}` lists them, and the name of their kind in braces stands for their
    /// number.
    pub(super) fn about<T: AsRef<str>>(
        &'static self,
        (key, kind): CountedKind,
        names: impl IntoIterator<Item = T>,
        values: &[(&str, &dyn Display)],
    ) -> Option<Finding> {
        let names: Vec<T> = names.into_iter().collect();
        if names.is_empty() {
            return None;
        }
        let (number, names) = (count(names.len(), kind), list_names(names));
        Some(self.finding(&[&[(key, &number as &dyn Display), ("names", &names)], values].concat()))
    }

    /// Returns these findings, or one with these values if there are none.
    pub(super) fn if_none(&'static self, findings: Vec<Finding>, values: &[(&str, &dyn Display)]) -> Vec<Finding> {
        if findings.is_empty() {
            vec![self.finding(values)]
        } else {
            findings
        }
    }

    /// Creates a finding with these values for the names in braces.
    pub(super) fn finding(&'static self, values: &[(&str, &dyn Display)]) -> Finding {
        Finding {
            check: "",
            message: self,
            text: filled(self.text, values),
            remediation: filled(self.remediation, values),
        }
    }
}

/// A kind of objects: its name in the braces of a message, and its name for people.
pub(super) type CountedKind = (&'static str, &'static str);

pub(super) const APPLICATIONS: CountedKind = ("applications", "Application");
pub(super) const CLUSTERS: CountedKind = ("clusters", "managed cluster");
pub(super) const PODS: CountedKind = ("pods", "pod");
pub(super) const WORKS: CountedKind = ("works", "work");

/// Defines a check that the function `run` runs, with its name, and with the level, id, text and remediation of each of its messages.
macro_rules! check {
    ($check:literal $($level:ident $name:ident $id:literal: $($text:literal),+;)+) => {
        pub(super) static CHECK: $crate::doctor::Check = $crate::doctor::Check {
            name: $check,
            messages: &[$(&$name),+],
            run,
        };
        $(static $name: $crate::doctor::Message = $crate::doctor::Message::$level($id, $($text),+);)+
    };
}
pub(super) use check;

/// The page about the findings. It has an anchor for each message.
const PAGE: &str = "https://github.com/argocd-ocm-cmp/argocd-ocm-cmp/blob/main/docs/doctor.md";

/// The result of one check about one object, or about the hub.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// The check that reported it.
    pub(crate) check: &'static str,
    /// Its message.
    pub(crate) message: &'static Message,
    /// The text of the finding.
    pub(crate) text: String,
    /// The remediation; empty if there is nothing to do.
    pub(crate) remediation: String,
}

impl Finding {
    /// Returns the address of its part of docs/doctor.md, if there is something to do.
    pub(crate) fn link(&self) -> Option<String> {
        let id = self.message.id;
        (self.message.level != Severity::Ok).then(|| format!("{PAGE}#{id}"))
    }

    /// Formats the finding as one line.
    pub(crate) fn line(&self) -> String {
        with_reason(&self.text, &self.remediation)
    }
}

/// Fills a template with values for the names in braces. Inserted values are not expanded again.
fn filled(template: &str, values: &[(&str, &dyn Display)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (name, behind) = after.split_once('}').unwrap_or((after, ""));
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
            text.push_str(&value.to_string());
        }
        rest = behind;
    }
    text + rest
}

/// The maximum number of listed names.
const LISTED: usize = 5;

/// Lists the first names in order, and the number of the others.
pub(super) fn list_names<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> String {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
    all.dedup_by(|one, other| one.as_ref() == other.as_ref());
    list_first(&all)
}

/// Lists the first texts, and the number of the others.
pub(super) fn list_first<T: AsRef<str>>(all: &[T]) -> String {
    let listed: Vec<_> = all.iter().take(LISTED).map(AsRef::as_ref).collect();
    match all.len().saturating_sub(LISTED) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static MESSAGE: Message = Message::error("a", "{who} has no {what}", "give {who} one");

    #[test]
    fn fills_placeholders_once() {
        let finding = MESSAGE.finding(&[("who", &"{what}"), ("what", &2)]);
        assert_eq!(finding.line(), "{what} has no 2: give {what} one");
    }

    #[test]
    fn truncates_long_lists() {
        assert_eq!(list_names(["b", "a", "b"]), "a, b");
        assert_eq!(
            list_names(["7", "6", "5", "4", "3", "2", "1"]),
            "1, 2, 3, 4, 5 and 2 more"
        );
    }
}
