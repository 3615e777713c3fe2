//! What may be found, and what is.

use std::fmt::Display;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It does not work.
    Error,
    /// It may work, and somebody should look at it.
    Warning,
    /// It is as it should be.
    Fine,
}

impl Level {
    /// As it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Fine => "ok",
        }
    }
}

/// What may be found, with the names of what is not known before in braces. docs/doctor.md explains each.
#[derive(Debug)]
pub struct Message {
    /// What it is called in JSON, which does not change.
    pub id: &'static str,
    /// How bad it is.
    pub level: Level,
    /// Whether it says that something could not be looked at.
    pub blind: bool,
    /// What is so.
    pub text: &'static str,
    /// What to do about it.
    pub way_out: &'static str,
}

impl Message {
    /// Something does not work.
    pub(super) const fn error(id: &'static str, text: &'static str, way_out: &'static str) -> Self {
        Self {
            id,
            level: Level::Error,
            blind: false,
            text,
            way_out,
        }
    }

    /// Something should be looked at.
    pub(super) const fn warning(id: &'static str, text: &'static str, way_out: &'static str) -> Self {
        Self {
            level: Level::Warning,
            ..Self::error(id, text, way_out)
        }
    }

    /// Something could not be looked at.
    pub(super) const fn blind(id: &'static str, text: &'static str, way_out: &'static str) -> Self {
        Self {
            blind: true,
            ..Self::warning(id, text, way_out)
        }
    }

    /// Something is as it should be.
    pub(super) const fn fine(id: &'static str, text: &'static str) -> Self {
        Self {
            level: Level::Fine,
            ..Self::error(id, text, "")
        }
    }

    /// It is found, with these for the names in braces.
    pub(super) fn of(&'static self, values: &[(&str, &dyn Display)]) -> Finding {
        Finding {
            check: "",
            message: self,
            text: filled(self.text, values),
            way_out: filled(self.way_out, values),
        }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The check that has found it.
    pub check: &'static str,
    /// What it is.
    pub message: &'static Message,
    /// What is so.
    pub text: String,
    /// What to do about it; empty where nothing is to be done.
    pub way_out: String,
}

impl Finding {
    /// In one line.
    #[must_use]
    pub fn line(&self) -> String {
        match &*self.way_out {
            "" => self.text.clone(),
            way_out => format!("{}: {way_out}", self.text),
        }
    }
}

/// The template with values for the names in braces. What was put in is not looked at again.
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

/// How many names are listed of many things.
const LISTED: usize = 5;

/// The first of these in order, and how many there are besides.
pub(super) fn some<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> String {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
    all.dedup_by(|one, other| one.as_ref() == other.as_ref());
    let listed: Vec<_> = all.iter().take(LISTED).map(AsRef::as_ref).collect();
    match all.len().saturating_sub(LISTED) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// How many, in words: `1 work`, `2 works`.
pub(super) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    static MESSAGE: Message = Message::error("a", "{who} has no {what}", "give {who} one");

    #[test]
    fn names_are_filled_in_and_what_was_put_in_stays() {
        let found = MESSAGE.of(&[("who", &"{what}"), ("what", &2)]);
        assert_eq!(found.line(), "{what} has no 2: give {what} one");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(some(["b", "a", "b"]), "a, b");
        assert_eq!(some(["7", "6", "5", "4", "3", "2", "1"]), "1, 2, 3, 4, 5 and 2 more");
        assert_eq!(
            (count(1, "work"), count(0, "work")),
            ("1 work".to_owned(), "0 works".to_owned())
        );
    }
}
