//! Measures `generate` as a whole process, compared with a shell loop and a small Go program that do the same, and with the lower
//! bound: reading the files and printing them as they are.
//!
//! ```text
//! cargo bench --bench generate                         # all cases
//! cargo bench --bench generate -- 300 30000            # folders with these numbers of files
//! cargo bench --bench generate -- guestbook            # the example that comes with the project
//! cargo bench --bench generate -- documents config-map # one file of 20 MB, and one object of 10 MB
//! ```
//!
//! Needs Go, and the tools find, sed, xargs and cat. First checks that all do the same work. Then they run in turn; the tables
//! show medians, and medians of the ratios of adjacent runs.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod contest;

use contest::{Baseline, Corpus, MEASURE, check, contenders, in_turn, measure, table};
use std::io::{self, Write as _};

/// The cases that are measured by default.
const ALL: [&str; 7] = ["guestbook", "3", "300", "3000", "30000", "documents", "config-map"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == MEASURE) {
        let [wall, cpu, memory] = measure(&arguments[1..]);
        print(&format!("{wall} {cpu} {memory}\n"));
        return;
    }
    // Cargo adds options.
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
            files => Corpus::folder_of(files.parse().expect("a number of files, or a name of a case")),
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

/// Returns the number of counted runs: more if they are short, and so vary more.
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
