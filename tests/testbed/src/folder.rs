//! Copies and lists folders.

use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Copies the content of a folder into another one, which it creates if necessary. A link stays a link to the same target.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("failed to read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, target)?;
        } else if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Returns all files below a folder whose names have one of these extensions, sorted. Follows no links.
pub fn files(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let extension = path.extension().unwrap_or_default();
        if kind.is_dir() {
            files.extend(self::files(&path, extensions)?);
        } else if kind.is_file() && extensions.iter().any(|ending| extension == *ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
