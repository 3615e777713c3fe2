//! Tables for people: columns as wide as their content, separated by three spaces.

use jiff::SignedDuration;
use manifest::text::printable;
use std::iter;

/// The escape codes of a terminal.
pub(crate) const BOLD: &str = "\x1b[1m";
pub(crate) const END: &str = "\x1b[0m";
pub(crate) const RED: &str = "\x1b[31m";
pub(crate) const GREEN: &str = "\x1b[32m";
pub(crate) const YELLOW: &str = "\x1b[33m";
pub(crate) const CYAN: &str = "\x1b[36m";

/// A table of objects in some state.
pub(crate) struct Table<'t> {
    /// The headings of all columns.
    pub(crate) headings: &'t [&'t str],
    /// The column of the state, which has its colour.
    pub(crate) state: usize,
    /// The columns that only the wide table has, after that of the state.
    pub(crate) wide: &'t [usize],
}

impl Table<'_> {
    /// Formats the headings, and the rows with the colours of their states, which may be empty.
    pub(crate) fn format(&self, rows: Vec<(&'static str, Vec<String>)>, wide: bool, colours: bool) -> String {
        let (states, mut cells): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        cells.insert(0, self.headings.iter().map(ToString::to_string).collect());
        for row in cells.iter_mut().filter(|_| !wide) {
            for column in self.wide.iter().rev() {
                row.remove(*column);
            }
        }
        let text = painted(&cells, |at| {
            let colour = states.get(at.checked_sub(1)?)?;
            (colours && !colour.is_empty()).then_some((self.state, *colour))
        });
        let (headings, rows) = text.split_once('\n').unwrap_or((&text, ""));
        format!("{}\n{rows}", bold(headings, colours))
    }
}

/// Makes a line bold if `colours` is set.
pub(crate) fn bold(line: &str, colours: bool) -> String {
    if colours {
        format!("{BOLD}{line}{END}")
    } else {
        line.to_owned()
    }
}

/// Formats rows, each as a line without trailing spaces. `paint` returns the column of a row that has a colour.
pub(crate) fn painted<R: AsRef<[String]>>(
    rows: &[R],
    paint: impl Fn(usize) -> Option<(usize, &'static str)>,
) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows.iter().map(AsRef::as_ref) {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for (number, row) in rows.iter().map(AsRef::as_ref).enumerate() {
        let painted = paint(number);
        let last = row.iter().rposition(|cell| !cell.is_empty()).unwrap_or(0);
        for (at, cell) in row.iter().enumerate().take(last + 1) {
            match painted.filter(|(column, _)| *column == at) {
                Some((_, colour)) => text.extend([colour, cell, END]),
                None => text.push_str(cell),
            }
            if at < last {
                text.extend(iter::repeat_n(' ', widths[at] + 3 - cell.chars().count()));
            }
        }
        text.push('\n');
    }
    text
}

/// Formats headings and rows without colours, each as a line.
pub(crate) fn lines<R: AsRef<[String]>>(headings: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let headings = headings.iter().map(ToString::to_string).collect();
    let printable = |row: R| row.as_ref().iter().map(|cell| printable_cell(cell)).collect();
    let rows: Vec<Vec<String>> = iter::once(headings).chain(rows.into_iter().map(printable)).collect();
    painted(&rows, |_| None)
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
pub(crate) fn age(time: SignedDuration) -> String {
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
        let row = ["eu1", "broken:\n\u{1b}[2Jgone"].map(str::to_owned);
        assert_eq!(
            lines(&["CLUSTER", "MESSAGE"], [row]),
            "CLUSTER   MESSAGE\neu1       broken: \u{fffd}[2Jgone\n"
        );
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
