//! The names of the works of Applications.

use super::application::{Application, HASH_DIGITS};
use primitives::hash::{beginning, with_hash};

/// The maximum length of a work's name: the agent adds a prefix of 65 characters.
pub const NAME_MAX: usize = 188;

/// The number of UID characters that the peer integrations put into a work's name.
const UID_DIGITS: usize = 5;

/// Returns the name of a new work of an Application: that of the peer integrations, unless it is too long for the agent.
pub fn name(application: &Application) -> String {
    let Application { name, uid, .. } = application;
    let digits: String = uid.chars().take(UID_DIGITS).collect();
    let short = format!("{name}-{digits}");
    let is_usable = short.len() <= NAME_MAX && digits.len() == UID_DIGITS;
    if is_usable { short } else { other_name(application) }
}

/// Returns the name to use if another Application's work has the first one.
pub fn other_name(application: &Application) -> String {
    let Application { name, name_hash, .. } = application;
    with_hash(name.to_string(), "-", name_hash, NAME_MAX)
}

/// Returns the names that works of an Application have: [`name`] and [`other_name`]. Both contain part of its UID, and a
/// cluster's agent can neither create nor rename works.
pub fn names(application: &Application) -> [String; 2] {
    [name(application), other_name(application)]
}

/// Returns true if this is one of the [`names()`] of an Application's works.
pub fn is_name(work: &str, application: &Application) -> bool {
    // Many Applications may have the same name, in different namespaces, or long names that begin alike: of most, the digits differ.
    let digits = work.rsplit_once('-').map_or("", |(_, digits)| digits);
    let may_be = match digits.len() {
        UID_DIGITS => application.uid.starts_with(digits),
        HASH_DIGITS => *application.name_hash == *digits,
        _ => true,
    };
    may_be && (name(application) == work || other_name(application) == work)
}

/// Returns true if a work of this name may carry an Application named `application`, with any UID.
pub fn may_be_work_of(work: &str, application: &str) -> bool {
    let Some((name, digits)) = work.rsplit_once('-') else {
        return false;
    };
    digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && match digits.len() {
            UID_DIGITS => name == application,
            HASH_DIGITS => name == stem_of(application),
            _ => false,
        }
}

/// Returns what [`names()`] of an Application begin with: its name, or the first part of a long one.
pub fn stem_of(application: &str) -> &str {
    beginning(application, NAME_MAX - HASH_DIGITS - 1)
}

/// Returns the [stem](stem_of) of the Applications whose works have this name.
pub fn stem(work: &str) -> &str {
    stem_of(work.rsplit_once('-').map_or(work, |(name, _)| name))
}
