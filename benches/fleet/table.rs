//! The measurements as a table.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};

/// A table with a row for each measurement, and a column for each size and program.
#[derive(Default)]
pub(crate) struct Table {
    columns: Vec<Vec<Row>>,
}

struct Row {
    name: &'static str,
    figure: String,
}

impl Table {
    /// Begins a column.
    pub(crate) fn begin(&mut self, name: &str) {
        self.columns.push(Vec::new());
        self.note("", name.to_owned());
    }

    /// Adds a measurement to the column, and shows it as progress. All columns have the rows of the first, or the first of them.
    pub(crate) fn note(&mut self, name: &'static str, figure: String) {
        let column = self.columns.last_mut().expect("a column has begun");
        writeln!(io::stderr(), "{name:<42}{figure:>14}").ok();
        column.push(Row { name, figure });
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.columns.first().into_iter().flatten().enumerate();
        for (at, Row { name, .. }) in rows {
            let mut line = format!("{name:<42}");
            for column in &self.columns {
                let figure = column.get(at).map_or("", |row| &row.figure);
                let width = column[0].figure.len().max(13) + 1;
                write!(line, "{figure:>width$}")?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
