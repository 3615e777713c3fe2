//! When a program is restarted that reads files only at its start: once for each change of their content, as a pure function of
//! what was seen of them.
//!
//! The files are those of a volume that kubelet keeps up to date: it writes a new folder and swaps a link, so that paths may be
//! gone for a moment, and many files change at once, while they are read one after the other. So what is read counts only when it
//! is complete and has been read twice.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::generate::names::hex;
use sha2::{Digest, Sha256};

/// The content of each file, in the order in which they were named.
pub type Contents = Vec<Content>;

/// The content of a file, as a digest: it may be a private key, which nobody shall find in our memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content([u8; 32]);

impl Content {
    /// That of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

/// One text for the contents of all files, such as an annotation takes: another content is another text.
#[must_use]
pub fn digest(contents: &[Content]) -> String {
    let mut digest = Sha256::new();
    for Content(content) in contents {
        digest.update(content);
    }
    hex(&digest.finalize()[..16])
}

/// What is to be done after a look at the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing, until it is time to look again.
    Nothing,
    /// Look again soon: this was seen for the first time.
    LookAgain,
    /// Start the program.
    Start,
    /// Restart the program: these files have changed, by their places in the order.
    Restart(Vec<usize>),
}

/// What is known of the files.
#[derive(Debug, Default)]
pub struct Watch {
    /// What they were when the program that runs was started.
    started: Option<Contents>,
    /// What they were at the last look.
    last: Option<Contents>,
}

impl Watch {
    /// Takes note of a look at the files: their contents, or nothing where one is missing, empty or unreadable.
    ///
    /// Where that says to start or to restart, the program is taken to be started with these contents.
    pub fn look(&mut self, seen: Option<Contents>) -> Verdict {
        let is_twice = seen.is_some() && seen == self.last;
        self.last = seen;
        let Some(now) = &self.last else { return Verdict::Nothing };
        if self.started.as_ref() == Some(now) {
            return Verdict::Nothing;
        }
        if !is_twice {
            return Verdict::LookAgain;
        }
        match self.started.replace(now.clone()) {
            None => Verdict::Start,
            Some(before) => {
                let pairs = before.iter().zip(now).enumerate();
                let changed = pairs.filter(|(_, (before, now))| before != now);
                Verdict::Restart(changed.map(|(at, _)| at).collect())
            }
        }
    }

    /// What the files were when the program was to be started last.
    #[must_use]
    pub fn started(&self) -> Option<&Contents> {
        self.started.as_ref()
    }

    /// Takes note that the program does not run any more: it is to be started with what is there then, which may have changed
    /// again while it stopped.
    pub fn stopped(&mut self) {
        self.started = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(texts: [&str; 2]) -> Contents {
        texts.map(|text| Content::of(text.as_bytes())).into()
    }

    fn running(texts: [&str; 2]) -> Watch {
        let mut watch = Watch::default();
        assert_eq!(watch.look(Some(contents(texts))), Verdict::LookAgain);
        assert_eq!(watch.look(Some(contents(texts))), Verdict::Start);
        watch
    }

    #[test]
    fn another_content_is_another_text() {
        let texts = [["a", "1"], ["a", "2"], ["a1", ""]].map(|texts| digest(&contents(texts)));
        assert_eq!(texts[0], digest(&contents(["a", "1"])));
        assert!(texts[0] != texts[1] && texts[0] != texts[2] && texts[0].len() == 32);
    }

    #[test]
    fn it_starts_when_all_is_there_and_stays() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(None), Verdict::Nothing);
        assert_eq!(watch.look(Some(contents(["a", "1"]))), Verdict::LookAgain);
        assert_eq!(watch.look(Some(contents(["b", "1"]))), Verdict::LookAgain);
        assert_eq!(watch.look(None), Verdict::Nothing);
        assert_eq!(watch.look(Some(contents(["b", "1"]))), Verdict::LookAgain);
        assert_eq!(watch.look(Some(contents(["b", "1"]))), Verdict::Start);
        assert_eq!(watch.look(Some(contents(["b", "1"]))), Verdict::Nothing);
    }

    #[test]
    fn it_restarts_once_when_all_is_written() {
        let mut watch = running(["a", "1"]);
        assert_eq!(watch.look(Some(contents(["b", "1"]))), Verdict::LookAgain);
        assert_eq!(watch.look(Some(contents(["b", "2"]))), Verdict::LookAgain);
        assert_eq!(watch.look(Some(contents(["b", "2"]))), Verdict::Restart(vec![0, 1]));
        assert_eq!(watch.look(Some(contents(["b", "2"]))), Verdict::Nothing);
        assert_eq!(watch.look(Some(contents(["b", "3"]))), Verdict::LookAgain);
        assert_eq!(watch.look(Some(contents(["b", "3"]))), Verdict::Restart(vec![1]));
    }

    #[test]
    fn what_is_gone_or_comes_back_is_no_change() {
        let mut watch = running(["a", "1"]);
        for seen in [None, None, Some(["a", "1"]), Some(["b", "1"]), None] {
            assert!(matches!(
                watch.look(seen.map(contents)),
                Verdict::Nothing | Verdict::LookAgain
            ));
        }
        assert_eq!(watch.look(Some(contents(["a", "1"]))), Verdict::Nothing);
        assert_eq!(watch.look(Some(contents(["a", "1"]))), Verdict::Nothing);
    }

    #[test]
    fn what_has_stopped_is_started_with_what_is_there_then() {
        let mut watch = running(["a", "1"]);
        watch.look(Some(contents(["b", "1"])));
        assert_eq!(watch.look(Some(contents(["b", "1"]))), Verdict::Restart(vec![0]));
        watch.stopped();
        assert_eq!(watch.look(Some(contents(["c", "1"]))), Verdict::LookAgain);
        assert_eq!(watch.look(Some(contents(["c", "1"]))), Verdict::Start);
        watch.stopped();
        assert_eq!(watch.look(Some(contents(["c", "1"]))), Verdict::Start);
    }
}
