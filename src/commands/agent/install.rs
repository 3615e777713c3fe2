//! `agent install`: copies this program for another container.

use super::Exit;
use crate::cli::InstallArgs;
use manifest::problem::{Problems, plain};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{env, fs::File};

/// The file name of the copy.
const NAME: &str = "argocd-ocm-cmp";

/// Executable by every user: the other container may run as any of them.
const MODE: u32 = 0o755;

pub(super) fn run(args: &InstallArgs) -> Result<Exit, Problems> {
    let file = args.folder.join(NAME);
    install(&args.folder, &file).map_err(|error| format!("{} cannot be written: {}", file.display(), plain(&error)))?;
    Ok(Exit::SUCCESS)
}

/// Copies the program under a temporary name and renames the complete copy, which also works while the old copy runs.
fn install(folder: &Path, file: &Path) -> io::Result<()> {
    let unfinished = folder.join(format!(".{NAME}.unfinished"));
    match fs::remove_file(&unfinished) {
        // An interrupted run may have left the temporary file.
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let copied = env::current_exe()
        .and_then(|program| fs::copy(program, &unfinished))
        .and_then(|_| fs::set_permissions(&unfinished, Permissions::from_mode(MODE)))
        .and_then(|()| File::open(&unfinished)?.sync_all())
        .and_then(|()| fs::rename(&unfinished, file));
    if copied.is_err() {
        // The error of the copy is reported; an error of the cleanup has the same cause.
        let _ = fs::remove_file(&unfinished);
    }
    copied
}
