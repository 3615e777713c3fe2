//! Checks that durations, times, names and base64 mean what they mean for Go, over the texts of Go's and Kubernetes' own tests, and over
//! texts that begin like one of them and end like another.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::make::Random;
use crate::oracle::Oracle;
use crate::real_files::folder_of;
use manifest::text::decode_base64;
use ocm::hold::Hold;
use ocm::{duration, names};
use serde_json::{Value, json};

/// The number of random texts of each file.
const RANDOM: usize = 20_000;

#[test]
fn texts_mean_the_same_in_go() {
    let root = Command::new("go")
        .args(["env", "GOROOT"])
        .output()
        .expect("Go runs")
        .stdout;
    let root = String::from_utf8(root).expect("a path");
    let go = |file: &str| Path::new(root.trim()).join("src").join(file);
    let validation = folder_of("k8s.io/apimachinery@v0.36.3").join("pkg/util/validation/validation_test.go");
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut inputs = Vec::new();
    for file in [
        go("time/time_test.go"),
        go("time/format_test.go"),
        go("encoding/base64/base64_test.go"),
        validation,
    ] {
        let texts = literals(&file);
        let spliced = (0..RANDOM).map(|_| {
            let [one, other] = [0, 1].map(|_| &texts[random.below(texts.len())]);
            let [end, start] = [one, other].map(|text| random.below(text.len() + 1));
            one.chars().take(end).chain(other.chars().skip(start)).collect()
        });
        let spliced: Vec<String> = spliced.collect();
        inputs.extend(texts.into_iter().chain(spliced));
    }
    let mut counts = [0; 5];
    let mut different = BTreeSet::new();
    for (text, answer) in inputs.iter().zip(Oracle::start("text").ask(&inputs)) {
        let theirs: Value = serde_json::from_str(&answer).expect("an answer");
        let ours = meanings(text);
        for (count, (ours, theirs)) in counts
            .iter_mut()
            .zip(ours.iter().zip(theirs.as_array().expect("a list")))
        {
            *count += usize::from(*ours != Value::Null && *ours != false);
            if ours != theirs && !is_finer_than_nanoseconds(text) {
                different.insert(format!("{text:?}: {ours} here, {theirs} in Go"));
            }
        }
    }
    assert!(different.is_empty(), "{different:#?}");
    assert!(counts.iter().all(|&count| count > 20), "{counts:?}: too few to compare");
}

/// Returns true for a fraction that Go rounds or cuts; here, it is exact in durations, and no time.
fn is_finer_than_nanoseconds(text: &str) -> bool {
    let mut fractions = text.split('.').skip(1);
    fractions.any(|fraction| fraction.chars().take_while(char::is_ascii_digit).count() > 9)
}

/// Returns the texts between quotation marks in the code of a file.
fn literals(file: &Path) -> Vec<String> {
    let code = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let texts = code.lines().flat_map(|line| line.split(['"', '`']).skip(1).step_by(2));
    texts.filter(|text| text.len() < 300).map(str::to_owned).collect()
}

/// Returns the nanoseconds of a duration, a time in UTC, and if the text is a DNS label, a DNS subdomain and base64.
fn meanings(text: &str) -> [Value; 5] {
    let hold = Hold {
        cluster: String::new(),
        until: Some(text.to_owned()),
        reason: None,
    };
    [
        duration::parse(text).map_or(Value::Null, |duration| json!(duration.as_nanos().to_string())),
        hold.end().map_or(Value::Null, |end| json!(end.to_string())),
        json!(names::is_dns_label(text)),
        json!(names::is_dns_subdomain(text)),
        json!(decode_base64(text).is_some()),
    ]
}
