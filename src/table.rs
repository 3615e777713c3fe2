//! Tables for people: columns as wide as their content, separated by three spaces.

use jiff::SignedDuration;
use manifest::text::printable;
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

/// Formats rows without colours, each as a line.
#[must_use]
pub fn lines<const N: usize>(rows: &[[String; N]]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| row.each_ref().map(|cell| printable_cell(cell)))
        .collect();
    let widths = widths(rows.iter());
    rows.iter().map(|row| line(row, &widths, None) + "\n").collect()
}

/// Removes control characters and line breaks: a name on the hub or a message may contain anything, including terminal escapes.
pub(crate) fn clean(text: &str) -> String {
    printable_cell(text.trim())
}

/// Returns the text of a cell, which has one line.
fn printable_cell(text: &str) -> String {
    printable(&text.replace(['\n', '\t'], " "))
}

/// Formats a duration as kubectl formats an AGE (`HumanDuration` of its `k8s.io/apimachinery/pkg/util/duration`): two units if
/// the second is significant.
#[must_use]
pub fn age(time: SignedDuration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |first: i64, unit: char, rest: i64, small: char| match rest {
        0 => format!("{first}{unit}"),
        rest => format!("{first}{unit}{rest}{small}"),
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, 'd', hours % 24, 'h'),
        () if days < 2 * 365 => format!("{days}d"),
        () if years < 8 => two(years, 'y', days % 365, 'd'),
        () => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cannot_control_the_terminal() {
        let rows = [["CLUSTER", "MESSAGE"], ["eu1", "broken:\n\u{1b}[2Jgone"]].map(|row| row.map(str::to_owned));
        assert_eq!(lines(&rows), "CLUSTER   MESSAGE\neu1       broken: \u{fffd}[2Jgone\n");
    }

    #[test]
    fn formats_ages_like_kubectl() {
        const DAY: i64 = 24 * 3600;
        for (seconds, expected) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * 3600 - 1, "179m"),
            (3 * 3600, "3h"),
            (8 * 3600 - 1, "7h59m"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (2 * 365 * DAY - 1, "729d"),
            (2 * 365 * DAY, "2y"),
            (3 * 365 * DAY - 1, "2y364d"),
            (8 * 365 * DAY, "8y"),
        ] {
            assert_eq!(age(SignedDuration::from_secs(seconds)), expected, "{seconds}");
        }
    }
}
