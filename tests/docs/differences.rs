//! Checks tests/README.md, which lists the differences between the set-up of the tests and a user's hub.

use crate::page::root;
use std::fs;

#[test]
fn every_listed_difference_exists() {
    let readme = fs::read_to_string(root().join("tests/README.md")).expect("tests/README.md");
    let rows: Vec<Vec<&str>> = readme
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split(" | ").collect())
        .collect();
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let code = |cell: &str| cell.split('`').nth(1).map(str::to_owned);
        let (Some(difference), Some(file)) = (code(row[0]), code(row[1])) else {
            panic!("tests/README.md: a row needs a difference and a file as code: {row:?}");
        };
        let text = fs::read_to_string(root().join("tests").join(&file)).expect(&file);
        assert!(
            text.contains(&difference),
            "{file} has no {difference}: remove its row from tests/README.md"
        );
    }
}
