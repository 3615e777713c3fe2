//! Decides when a program is restarted that reads files only at its start: once for each change of their content, as a pure
//! function of the reads.
//!
//! The files are in a volume that kubelet updates: it writes a new folder and swaps a link, so that paths may be missing for a
//! moment, and many files change at once while they are read one after the other. So contents count only if they are complete and
//! were read twice.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use primitives::hash::hex;
use sha2::{Digest, Sha256};

/// The content of each file, in the order of the arguments.
pub type Contents = Vec<FileDigest>;

/// The content of a file, as a digest: it may be a private key, which must not stay in our memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileDigest([u8; 32]);

impl FileDigest {
    /// Returns the digest of these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

/// Returns one text for the contents of all files, for an annotation: it changes with the contents.
pub fn digest(contents: &[FileDigest]) -> String {
    let mut digest = Sha256::new();
    for FileDigest(content) in contents {
        digest.update(content);
    }
    hex(&digest.finalize()[..16])
}

/// The next action after a read of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Wait until the next read.
    None,
    /// Read again soon: these contents are new.
    ReadAgain,
    /// Start the program.
    Start,
    /// Restart the program: these files have changed, as indices into the list.
    Restart(Vec<usize>),
}

/// The known contents of the files.
#[derive(Debug, Default)]
pub struct FileWatch {
    /// The contents when the running program was started.
    started: Option<Contents>,
    /// The contents at the last read.
    last: Option<Contents>,
}

impl FileWatch {
    /// Processes a read of the files: their contents, or `None` if one is missing, empty or unreadable.
    ///
    /// If the result is to start or restart, the program counts as started with these contents.
    pub fn observe(&mut self, contents_read: Option<Contents>) -> Reaction {
        let is_twice = contents_read.is_some() && contents_read == self.last;
        self.last = contents_read;
        let Some(now) = &self.last else { return Reaction::None };
        if self.started.as_ref() == Some(now) {
            return Reaction::None;
        }
        if !is_twice {
            return Reaction::ReadAgain;
        }
        match self.started.replace(now.clone()) {
            None => Reaction::Start,
            Some(before) => {
                let pairs = before.iter().zip(now).enumerate();
                let changed = pairs.filter(|(_, (before, now))| before != now);
                Reaction::Restart(changed.map(|(at, _)| at).collect())
            }
        }
    }

    /// Returns the contents at the last start of the program.
    pub fn started(&self) -> Option<&Contents> {
        self.started.as_ref()
    }

    /// Records that the program has ended: it is to be started with the contents that are read then, which may have changed again
    /// while it stopped.
    pub fn stopped(&mut self) {
        self.started = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(texts: [&str; 2]) -> Contents {
        texts.map(|text| FileDigest::from_bytes(text.as_bytes())).into()
    }

    fn running(texts: [&str; 2]) -> FileWatch {
        let mut watch = FileWatch::default();
        assert_eq!(watch.observe(Some(contents(texts))), Reaction::ReadAgain);
        assert_eq!(watch.observe(Some(contents(texts))), Reaction::Start);
        watch
    }

    #[test]
    fn changed_content_changes_the_digest() {
        let texts = [["a", "1"], ["a", "2"], ["a1", ""]].map(|texts| digest(&contents(texts)));
        assert_eq!(texts[0], digest(&contents(["a", "1"])));
        assert!(texts[0] != texts[1] && texts[0] != texts[2] && texts[0].len() == 32);
    }

    #[test]
    fn starts_when_all_files_exist_and_are_stable() {
        let mut watch = FileWatch::default();
        assert_eq!(watch.observe(None), Reaction::None);
        assert_eq!(watch.observe(Some(contents(["a", "1"]))), Reaction::ReadAgain);
        assert_eq!(watch.observe(Some(contents(["b", "1"]))), Reaction::ReadAgain);
        assert_eq!(watch.observe(None), Reaction::None);
        assert_eq!(watch.observe(Some(contents(["b", "1"]))), Reaction::ReadAgain);
        assert_eq!(watch.observe(Some(contents(["b", "1"]))), Reaction::Start);
        assert_eq!(watch.observe(Some(contents(["b", "1"]))), Reaction::None);
    }

    #[test]
    fn restarts_once_when_all_files_are_written() {
        let mut watch = running(["a", "1"]);
        assert_eq!(watch.observe(Some(contents(["b", "1"]))), Reaction::ReadAgain);
        assert_eq!(watch.observe(Some(contents(["b", "2"]))), Reaction::ReadAgain);
        assert_eq!(watch.observe(Some(contents(["b", "2"]))), Reaction::Restart(vec![0, 1]));
        assert_eq!(watch.observe(Some(contents(["b", "2"]))), Reaction::None);
        assert_eq!(watch.observe(Some(contents(["b", "3"]))), Reaction::ReadAgain);
        assert_eq!(watch.observe(Some(contents(["b", "3"]))), Reaction::Restart(vec![1]));
    }

    #[test]
    fn removed_and_restored_files_do_not_restart() {
        let mut watch = running(["a", "1"]);
        for contents_read in [None, None, Some(["a", "1"]), Some(["b", "1"]), None] {
            assert!(matches!(
                watch.observe(contents_read.map(contents)),
                Reaction::None | Reaction::ReadAgain
            ));
        }
        assert_eq!(watch.observe(Some(contents(["a", "1"]))), Reaction::None);
        assert_eq!(watch.observe(Some(contents(["a", "1"]))), Reaction::None);
    }

    #[test]
    fn starts_a_stopped_program_with_the_current_files() {
        let mut watch = running(["a", "1"]);
        watch.observe(Some(contents(["b", "1"])));
        assert_eq!(watch.observe(Some(contents(["b", "1"]))), Reaction::Restart(vec![0]));
        watch.stopped();
        assert_eq!(watch.observe(Some(contents(["c", "1"]))), Reaction::ReadAgain);
        assert_eq!(watch.observe(Some(contents(["c", "1"]))), Reaction::Start);
        watch.stopped();
        assert_eq!(watch.observe(Some(contents(["c", "1"]))), Reaction::Start);
    }
}
