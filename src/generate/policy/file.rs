//! The file of a policy: the only input of this module that is not a value.

use super::{Policy, summary};
use crate::generate::problem::{Problems, plain};
use crate::yaml;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// No ConfigMap holds more.
const MAX_SIZE: u64 = 1 << 20;

/// Reads a policy. Reading recurses with the depth of the file: run it with [`yaml::STACK`] bytes of stack.
///
/// # Errors
/// When the file is not there, cannot be read or is not a policy. Each is an error and never "no policy": a mount that was
/// forgotten must not open what it was to keep closed.
pub fn load(path: &Path) -> Result<Policy, Problems> {
    Policy::parse(&text(path)?, &path.display().to_string())
}

/// The text of a policy, once it is known to be one.
///
/// # Errors
/// As [`load`].
pub fn checked(path: &Path) -> Result<String, Problems> {
    let text = text(path)?;
    Policy::parse(&text, &path.display().to_string())?;
    Ok(text)
}

fn text(path: &Path) -> Result<String, Problems> {
    let shown = path.display().to_string();
    let bytes =
        read(path).map_err(|error| Problems::one(format!("{shown}: the policy cannot be read: {}", plain(&error))))?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(Problems::one(format!(
            "{shown}: the policy has more than {MAX_SIZE} bytes, which no ConfigMap holds"
        )));
    }
    let text = yaml::decode(&bytes);
    let text = text.map_err(|error| Problems::one(format!("{shown}:{}: {}", error.line, error.message)))?;
    Ok(text.into_owned())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the policy at `path` says, for people: in full, or about one project.
///
/// # Errors
/// When it cannot be read, is not a policy, or lets the project deliver nothing.
pub fn check(path: &Path, project: Option<&str>) -> Result<String, Problems> {
    let policy = load(path)?;
    match project {
        Some(project) => Ok(summary::of_project(&policy.rules_for(Some(project))?)),
        None => Ok(summary::of_policy(&policy)),
    }
}
