//! `agent install`: a copy of this program for another container.

use super::Exit;
use crate::cli::InstallArgs;
use crate::generate::problem::plain;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{env, fs::File};

/// The name that it has there.
const NAME: &str = "argocd-ocm-cmp";

/// Whoever runs the other container may run it.
const MODE: u32 = 0o755;

pub(super) fn run(args: &InstallArgs) -> Result<Exit, String> {
    let file = args.folder.join(NAME);
    install(&args.folder, &file).map_err(|error| format!("{} cannot be written: {}", file.display(), plain(&error)))?;
    Ok(Exit::SUCCESS)
}

/// Under its name only when it is complete, also where one is that is being run.
fn install(folder: &Path, file: &Path) -> io::Result<()> {
    let unfinished = folder.join(format!(".{NAME}.unfinished"));
    match fs::remove_file(&unfinished) {
        // One that was interrupted may have left it.
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let copied = env::current_exe()
        .and_then(|program| fs::copy(program, &unfinished))
        .and_then(|_| fs::set_permissions(&unfinished, Permissions::from_mode(MODE)))
        .and_then(|()| File::open(&unfinished)?.sync_all())
        .and_then(|()| fs::rename(&unfinished, file));
    if copied.is_err() {
        // What went wrong is said; that it cannot be tidied up either is the same trouble.
        let _ = fs::remove_file(&unfinished);
    }
    copied
}
