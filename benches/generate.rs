//! `generate` as a whole process, next to a shell loop and a small Go program that do the same, and to the floor: reading the
//! files and printing them as they are.
//!
//! ```text
//! cargo bench --bench generate                         # all of it
//! cargo bench --bench generate -- 300 30000            # folders of so many files
//! cargo bench --bench generate -- guestbook            # the example that comes with the project
//! cargo bench --bench generate -- documents config-map # one file of 20 MB, and one object of 10 MB
//! ```
//!
//! Needs Go, and of a shell's tools find, sed, xargs and cat. That all do the same work is checked first. Then they run in turn;
//! the tables show medians, and medians of the ratios of runs that stood side by side.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "figures for people, and time is what this measures"
)]

mod contest;

use contest::{Baseline, Corpus, MEASURE, check, contenders, in_turn, measure, table};
use std::io::{self, Write as _};

/// What is measured where nothing is asked for.
const ALL: [&str; 7] = ["guestbook", "3", "300", "3000", "30000", "documents", "config-map"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == MEASURE) {
        let [wall, cpu, memory] = measure(&arguments[1..]);
        print(&format!("{wall} {cpu} {memory}\n"));
        return;
    }
    // Cargo adds options of its own.
    let mut cases: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    if cases.is_empty() {
        cases.extend(ALL);
    }
    let baseline = Baseline::build();
    for case in cases {
        let corpus = match case {
            "guestbook" => Corpus::guestbook(),
            "documents" => Corpus::documents_of(20_000_000),
            "config-map" => Corpus::config_map_of(10_000_000),
            files => Corpus::folder_of(files.parse().expect("a number of files, or one of the names")),
        };
        let contenders = contenders(&corpus, &baseline);
        check(&contenders, &corpus);
        let runs = runs(&corpus);
        let Corpus { files, documents, .. } = corpus;
        let size = corpus.bytes as f64 / 1e6;
        print(&format!(
            "\n{case}: {files} files, {documents} documents, {size:.3} MB, {runs} runs\n"
        ));
        print(&table(&contenders, &in_turn(&contenders, runs)));
    }
}

/// How many runs count: more where they are short, and so differ more.
fn runs(corpus: &Corpus) -> usize {
    match corpus.bytes {
        ..10_000 => 101,
        10_000..1_000_000 => 31,
        1_000_000.. => 11,
    }
}

fn print(text: &str) {
    io::stdout().write_all(text.as_bytes()).expect("standard output");
}
