//! The measurements as a table.

use std::fmt::{self, Write as _};

/// The cells of a row that the other controller has no measurement for.
pub(crate) const NONE: [&str; 2] = [""; 2];

/// A table with a row for each measurement and a column for each size.
pub(crate) struct Table {
    columns: Vec<Vec<Row>>,
    beside_go: bool,
}

struct Row {
    name: &'static str,
    figure: String,
    go: [&'static str; 2],
}

impl Table {
    /// Creates a table with two more columns for the measurements of argocd-pull-integration, a controller in Go, on the same
    /// setup with 1,000 Applications on 100 managed clusters, and with 3,000 on 300.
    pub(crate) fn beside_go() -> Self {
        Self {
            columns: Vec::new(),
            beside_go: true,
        }
    }

    /// Creates a table of features that the other controller does not have.
    pub(crate) fn alone() -> Self {
        Self {
            columns: Vec::new(),
            beside_go: false,
        }
    }

    /// Begins a column.
    pub(crate) fn begin(&mut self, name: &str) {
        self.columns.push(Vec::new());
        self.note("", name.to_owned(), ["Go 1000/100", "Go 3000/300"]);
    }

    /// Adds a measurement to the column; all columns have the same rows.
    pub(crate) fn note(&mut self, name: &'static str, figure: String, go: [&'static str; 2]) {
        let column = self.columns.last_mut().expect("a column has begun");
        column.push(Row { name, figure, go });
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.columns.first().into_iter().flatten().enumerate();
        for (at, Row { name, go, .. }) in rows {
            let figures = self.columns.iter().map(|column| column[at].figure.as_str());
            let go = go.iter().filter(|_| self.beside_go).map(|figure| (15, *figure));
            let figures = figures.map(|figure| (12, figure)).chain(go);
            let mut line = format!("{name:<42}");
            for (width, figure) in figures {
                write!(line, "{figure:>width$}")?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
