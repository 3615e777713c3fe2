//! Checks that random texts are parsed as Go's libraries parse them, or rejected if they reject them.
//!
//! `FUZZ_SEED` selects other texts, `FUZZ_INPUTS` sets their number, `FUZZ_ONLY` selects one generator, and `FUZZ_CORPUS` names
//! one more folder of `*.yaml` files to mutate.
//!
//! Go's answer is ignored
//!
//! - if two keys of different types have the same text: Go selects one at random, we reject the file;
//! - for U+FEFF within a text: Go's scanner loses characters if one is at the start of its buffer;
//! - for ill-formed UTF-8 after a byte order mark: we reject the complete file, Go may return some documents first;
//! - for a control character after the root node: Go detects it only if it is in the buffer;
//! - for a last line without a line break of certain lengths: Go loses the line, we reject the file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{answer, make, oracle, stack};
use manifest::yaml;

#[test]
fn random_texts_agree_with_go() {
    let mut oracle = oracle::Oracle::start("yaml");
    let number = |name: &str, otherwise: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} must be a number")),
        Err(_) => otherwise,
    };
    let seed = number("FUZZ_SEED", 1);
    let inputs = number("FUZZ_INPUTS", 30_000);
    let mut generator = make::Generator::new(seed, corpus(), std::env::var("FUZZ_ONLY").ok());
    let (mut agreeing, mut excepted, mut differing) = (0_u64, 0_u64, 0_u64);
    while agreeing + excepted + differing < inputs {
        let batch: Vec<Vec<u8>> = (0..500).map(|_| generator.next_input()).collect();
        let answers = oracle.ask(&batch);
        stack::with_stack(|| {
            for (input, answer) in batch.iter().zip(&answers) {
                match answer::difference(input, answer) {
                    None => agreeing += 1,
                    Some(_) if is_excepted(input) => excepted += 1,
                    Some(difference) => {
                        differing += 1;
                        println!("b\"{}\"\n{difference}", input.escape_ascii());
                    }
                }
            }
        });
    }
    println!("yaml fuzz, seed {seed}: {agreeing} agree, {excepted} ignored, {differing} differ");
    assert_eq!(differing, 0, "texts differ");
}

fn corpus() -> Vec<Vec<u8>> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/yaml-corpus")];
    folders.extend(std::env::var_os("FUZZ_CORPUS").map(PathBuf::from));
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("the corpus can be read"));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the corpus can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    let contents = files.iter().map(|file| fs::read(file).expect("the case can be read"));
    contents.filter(|content| content.len() < 3000).collect()
}

/// Returns true if Go's answer to this input is ignored.
fn is_excepted(input: &[u8]) -> bool {
    let Ok(text) = yaml::decode(input) else { return true };
    let known = |error: &yaml::YamlError| {
        ["once as text and once as another type", "reader silently drops it"]
            .iter()
            .any(|part| error.message.contains(part))
    };
    let refused = |c: char| (c.is_control() && !"\t\n\r\u{85}".contains(c)) || matches!(c, '\u{FFFE}' | '\u{FFFF}');
    let last_line = input.len() - input.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    text.contains('\u{FEFF}')
        || (last_line > 0 && last_line.is_multiple_of(4096))
        || (input.len() > 512 && text.contains(refused))
        || yaml::documents(&text).any(|document| document.is_err_and(|error| known(&error)))
}
