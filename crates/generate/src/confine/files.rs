//! Landlock: kernel rules for the files of a process, without any privilege.

use super::AllowedPaths;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::path::PathBuf;

/// The newest rules covered by the tests. Rules unknown to the kernel are skipped.
const RULES: ABI = ABI::V6;

/// Restricts this process and its children to `allowed_paths`. They cannot use signals or abstract sockets of other processes. Returns
/// the reason why the rules are missing.
pub(super) fn restrict(allowed_paths: &AllowedPaths) -> Option<String> {
    let status = match rules(allowed_paths).and_then(RulesetCreated::restrict_self) {
        Ok(status) => status,
        Err(error) => return Some(error.to_string()),
    };
    let why = match status.landlock {
        LandlockStatus::Available { .. } if status.ruleset != RulesetStatus::NotEnforced => return None,
        LandlockStatus::NotEnabled => "the kernel has Landlock, but does not use it: add it to its parameter lsm",
        _ => "the kernel has no Landlock, or seccomp forbids it",
    };
    Some(why.to_owned())
}

fn rules(allowed_paths: &AllowedPaths) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RULES))?
        .scope(Scope::from_all(RULES))?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = AccessFs::from_read(RULES);
    let write = AccessFs::from_all(RULES) & !(AccessFs::Execute | AccessFs::IoctlDev);
    let mut created = ruleset.create()?;
    for (paths, access) in [
        (&allowed_paths.read, read),
        (&allowed_paths.run, run),
        (&allowed_paths.write, write),
    ] {
        created = allow(created, paths, access)?;
    }
    Ok(created)
}

/// Allows access to paths; missing paths need no rule.
fn allow(
    mut ruleset: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        let Ok(opened) = PathFd::new(path) else { continue };
        let access = if path.is_dir() {
            access
        } else {
            access & AccessFs::from_file(RULES)
        };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, access))?;
    }
    Ok(ruleset)
}
