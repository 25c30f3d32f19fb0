//! Values and tables on the terminal.

use std::fmt::Write as _;

/// A value, with its half-width where a simulation gives one.
pub(super) fn number(value: f64, half_width: Option<f64>) -> String {
    let rounded = |v: f64| if v != 0.0 && (v.abs() < 1e-3 || v.abs() >= 1e6) { format!("{v:.4e}") } else { format!("{v:.5}") };
    match half_width {
        None => rounded(value),
        Some(h) => format!("{} ±{}", rounded(value), rounded(h)),
    }
}

/// As [`number`]; of what a simulation never observed, that.
pub(super) fn observed(value: Option<f64>, half_width: Option<f64>) -> String {
    value.map_or_else(|| "not observed".to_owned(), |value| number(value, half_width))
}

/// Lines of equal columns, two spaces apart.
pub(super) fn table(out: &mut String, rows: &[Vec<String>]) {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    for row in rows {
        let line: Vec<String> = row.iter().zip(&widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
        let _ = writeln!(out, "  {}", line.join("  ").trim_end());
    }
}
