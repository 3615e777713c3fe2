//! Tables for people: columns as wide as their content, separated by three spaces.

use std::fmt::Write as _;
use std::iter;

/// Returns the width of each column, in characters.
#[must_use]
pub fn widths<'a, const N: usize>(rows: impl Iterator<Item = &'a [String; N]>) -> [usize; N] {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

/// Formats a row without trailing spaces; `painted` is the coloured column, with the codes at its start and end.
#[must_use]
pub fn line<const N: usize>(row: &[String; N], widths: &[usize; N], painted: Option<(usize, [&str; 2])>) -> String {
    let last = row.iter().rposition(|cell| !cell.is_empty()).unwrap_or(0);
    let mut line = String::new();
    for (at, cell) in row.iter().enumerate().take(last + 1) {
        match painted.filter(|(column, _)| *column == at) {
            Some((_, [begin, end])) => write!(line, "{begin}{cell}{end}").expect("writing to a String never fails"),
            None => line.push_str(cell),
        }
        if at < last {
            line.extend(iter::repeat_n(' ', widths[at] + 3 - cell.chars().count()));
        }
    }
    line
}
