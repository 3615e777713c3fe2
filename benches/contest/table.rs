//! The measurements as a table.

use super::contender::Contender;
use super::measure::Usage;
use std::fmt::Write as _;

/// Formats a row for each contender: medians, and the medians of the ratios of adjacent runs to the first row.
pub(crate) fn table(contenders: &[Contender], usages: &[Vec<Usage>]) -> String {
    let mut table = format!(
        "{:<24}{:>12}{:>8}{:>12}{:>8}{:>13}{:>8}\n",
        "", "wall", "ratio", "CPU", "ratio", "peak", "ratio"
    );
    for (contender, of_it) in contenders.iter().zip(usages) {
        write!(table, "{:<24}", contender.name).expect("writing to a String never fails");
        for (at, (width, scale, unit)) in [(9, 1e3, " ms"), (9, 1e3, " ms"), (9, 1.0 / 1024.0, " MiB")]
            .into_iter()
            .enumerate()
        {
            let figure = median(of_it.iter().map(|usage| usage[at]));
            let ratio = median(of_it.iter().zip(&usages[0]).map(|(usage, ours)| usage[at] / ours[at]));
            match figure.zip(ratio) {
                Some((figure, ratio)) => {
                    write!(table, "{:>width$.1}{unit}{ratio:>8.2}", figure * scale)
                }
                None => write!(table, "{:>1$}{2:>8}", "–", width + unit.len(), "–"),
            }
            .expect("writing to a String never fails");
        }
        table.push('\n');
    }
    table
}

fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}
