//! Reads policy files, the only input of this module besides values.

use super::{CONFIG_MAP_KEY, Policy, summary};
use manifest::problem::{Problems, plain};
use manifest::value::{Map, Value};
use manifest::yaml;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The maximum size of a ConfigMap in bytes, and so of a policy.
pub(crate) const MAX_SIZE: u64 = 1 << 20;

/// Reads a policy, or the one in a ConfigMap. Parsing recurses with the depth of the file: run it with [`yaml::STACK`] bytes of stack.
///
/// # Errors
/// Returns an error if the file is missing, unreadable or not a policy. None of these means "no policy": a forgotten mount must
/// not lift the restrictions.
pub fn load(path: &Path) -> Result<Policy, Problems> {
    load_with_text(path).map(|(policy, _)| policy)
}

/// Reads a policy, and returns its text too.
///
/// # Errors
/// As [`load`].
pub fn load_with_text(path: &Path) -> Result<(Policy, String), Problems> {
    let text = read_policy_text(path)?;
    let shown = path.display();
    let Some(data) = in_config_map(&text) else {
        return Ok((Policy::parse(&text, &shown.to_string())?, text));
    };
    let policy = data.get(CONFIG_MAP_KEY).and_then(Value::as_str);
    let policy = policy.ok_or_else(|| {
        Problems::one(format!(
            "{shown}: the ConfigMap has no policy: add it as {CONFIG_MAP_KEY}"
        ))
    })?;
    let parsed = Policy::parse(policy, &format!("{shown}: data.{CONFIG_MAP_KEY}"))?;
    Ok((parsed, policy.to_owned()))
}

fn read_policy_text(path: &Path) -> Result<String, Problems> {
    let shown = path.display().to_string();
    let bytes = read_config_file(path)
        .map_err(|error| Problems::one(format!("{shown}: the policy cannot be read: {}", plain(&error))))?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(Problems::one(format!(
            "{shown}: the policy has more than {MAX_SIZE} bytes, the limit of a ConfigMap: shorten it"
        )));
    }
    let text = yaml::decode(&bytes);
    let text = text.map_err(|error| Problems::one(format!("{shown}:{}: {}", error.line, error.message)))?;
    Ok(text.into_owned())
}

/// Reads a file that may be from a ConfigMap, up to one byte more than that may have.
pub(crate) fn read_config_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns a summary of the policy at `path`, or in the ConfigMap at `path`: of all of it, or for one project.
///
/// # Errors
/// Returns an error if the file is unreadable, is not a policy, or lets the project deliver nothing.
pub fn check(path: &Path, project: Option<&str>) -> Result<String, Problems> {
    let policy = load(path)?;
    match project {
        Some(project) => Ok(summary::of_project(&policy.rules_for(Some(project))?)),
        None => Ok(summary::of_policy(&policy)),
    }
}

/// Returns the `data` of a ConfigMap, if the text is one.
pub(crate) fn in_config_map(text: &str) -> Option<Map<'_>> {
    let document = yaml::documents(text).next()?.ok()?;
    let fields = document.value.as_map()?;
    let is_config_map = fields.get("kind").and_then(Value::as_str) == Some("ConfigMap");
    let data = fields.get("data").and_then(Value::as_map);
    is_config_map.then(|| data.cloned().unwrap_or_default())
}
