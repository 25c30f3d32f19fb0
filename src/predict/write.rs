//! Predictions as CSV and as a table for people.

use std::fmt::Write as _;

use indexmap::IndexMap;

use super::bands::{PredictedMeasure, PredictedRow, Predictions, SolverError};
use crate::fit::digits::{four_digits, percent, six_digits};

/// A column of what the solver is off by: its name, and its number.
type SolverColumn = (&'static str, fn(&SolverError) -> Option<f64>);

const SOLVER_COLUMNS: [SolverColumn; 7] = [
    ("mean_simulated", |e| Some(e.mean_simulated)),
    ("solver_error", |e| Some(e.solver_error)),
    ("solver_error_half_width", |e| e.solver_error_half_width),
    ("lower_with_solver_error", |e| e.lower_with_solver_error),
    ("upper_with_solver_error", |e| e.upper_with_solver_error),
    ("new_lower_with_solver_error", |e| e.new_lower_with_solver_error),
    ("new_upper_with_solver_error", |e| e.new_upper_with_solver_error),
];

/// Most points that a remark names.
const MOST_POINTS_NAMED: usize = 4;

impl Predictions {
    /// CSV: controlled values, then for each measure its mean, `lower(M)`, `upper(M)`, `new_lower(M)`, `new_upper(M)`, and where it was
    /// simulated `mean_simulated(M)`, `solver_error(M)`, `solver_error_half_width(M)`, `lower_with_solver_error(M)`,
    /// `upper_with_solver_error(M)`, `new_lower_with_solver_error(M)`, `new_upper_with_solver_error(M)`; then `notes`. An absent number is an empty cell.
    pub fn to_csv(&self) -> String {
        let (names, is_simulated) = (self.controlled_names(), self.is_simulated());
        let mut header: Vec<String> = names.iter().map(|n| format!("${n}")).collect();
        for m in &self.measures {
            header.extend([
                m.to_string(),
                format!("lower({m})"),
                format!("upper({m})"),
                format!("new_lower({m})"),
                format!("new_upper({m})"),
            ]);
            if is_simulated {
                header.extend(SOLVER_COLUMNS.iter().map(|(name, _)| format!("{name}({m})")));
            }
        }
        header.push("notes".into());
        let mut text = csv_line(&header);
        for row in &self.rows {
            text.push_str(&csv_line(&self.csv_cells(row, &names, is_simulated)));
        }
        text
    }

    fn csv_cells(&self, row: &PredictedRow, names: &[&str], is_simulated: bool) -> Vec<String> {
        let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
        let mut cells: Vec<String> = names.iter().map(|n| number(row.controlled.get(n))).collect();
        for m in &self.measures {
            let found = row.measures.get(m);
            let of = |f: fn(&PredictedMeasure) -> Option<f64>| number(found.and_then(f));
            cells.extend([of(|p| Some(p.mean)), of(|p| p.lower), of(|p| p.upper), of(|p| p.new_lower), of(|p| p.new_upper)]);
            if is_simulated {
                let error = found.and_then(|p| p.solver_error);
                cells.extend(SOLVER_COLUMNS.iter().map(|(_, column)| number(error.as_ref().and_then(column))));
            }
        }
        cells.push(row.remarks().join("; "));
        cells
    }

    /// Whether any value was simulated too.
    fn is_simulated(&self) -> bool {
        self.rows.iter().flat_map(|row| row.measures.values()).any(|p| p.solver_error.is_some())
    }

    fn controlled_names(&self) -> Vec<&str> {
        self.rows.first().map(|row| row.controlled.iter().map(|(n, _)| n).collect()).unwrap_or_default()
    }

    /// A table for people: mean and band of each measure, remarks below; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let (names, is_simulated) = (self.controlled_names(), self.is_simulated());
        let mut header: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        for m in &self.measures {
            header.extend([m.to_string(), "band of the mean".into(), "new measurement".into()]);
            if is_simulated {
                header.extend(["simulated".into(), "solver error".into(), "band with it".into(), "new measurement with it".into()]);
            }
        }
        let mut table = vec![header];
        table.extend(self.rows.iter().map(|row| self.text_cells(row, &names, is_simulated)));
        let columns = table[0].len();
        let width = |column: usize| table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = format!("bands of {} %\n", percent(self.confidence));
        for cells in &table {
            let line: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
            text.push_str(line.join("  ").trim_end());
            text.push('\n');
        }
        self.write_remarks(&mut text);
        text
    }

    fn text_cells(&self, row: &PredictedRow, names: &[&str], is_simulated: bool) -> Vec<String> {
        let mut cells: Vec<String> = names.iter().map(|n| row.controlled.get(n).map_or_else(String::new, |v| v.to_string())).collect();
        for m in &self.measures {
            match row.measures.get(m) {
                Some(p) => cells.extend([six_digits(p.mean), interval(p.lower, p.upper), interval(p.new_lower, p.new_upper)]),
                None => cells.extend(["no solution".into(), String::new(), String::new()]),
            }
            match row.measures.get(m).and_then(|p| p.solver_error) {
                Some(e) => cells.extend([
                    format!("{}{}", six_digits(e.mean_simulated), plus_minus(e.solver_error_half_width)),
                    four_digits(e.solver_error),
                    interval(e.lower_with_solver_error, e.upper_with_solver_error),
                    interval(e.new_lower_with_solver_error, e.new_upper_with_solver_error),
                ]),
                None if is_simulated => cells.extend(["none".into(), String::new(), String::new(), String::new()]),
                None => {}
            }
        }
        cells
    }

    fn write_remarks(&self, text: &mut String) {
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        let mut points_by_remark: IndexMap<String, Vec<String>> = IndexMap::new();
        for row in &self.rows {
            let point: Vec<String> = row.controlled.iter().map(|(n, v)| format!("{n}={v}")).collect();
            row.remarks().into_iter().for_each(|remark| points_by_remark.entry(remark).or_default().push(point.join(" ")));
        }
        for (remark, points) in &points_by_remark {
            let _ = writeln!(text, "{}{remark}", places(points, self.rows.len()));
        }
    }
}

/// The points of a remark before it, of so many in all.
fn places(points: &[String], of: usize) -> String {
    match points {
        [only] if only.is_empty() => String::new(),
        [only] => format!("{only}: "),
        _ if points.len() == of => "at all points: ".into(),
        _ if points.len() <= MOST_POINTS_NAMED => format!("{}: ", points.join(", ")),
        _ => format!("{} and {} more: ", points[..MOST_POINTS_NAMED].join(", "), points.len() - MOST_POINTS_NAMED),
    }
}

impl PredictedRow {
    /// Failure, notes, and why bands are missing; each once.
    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.failure.iter().chain(&self.notes).cloned().collect();
        for (measure, p) in &self.measures {
            remarks.extend(p.no_band.iter().map(|reason| format!("{measure}: no band of the mean: {reason}")));
            let new_reason = p.no_new_band.as_ref().filter(|reason| p.no_band.as_ref() != Some(*reason));
            remarks.extend(new_reason.map(|reason| format!("{measure}: no band of a new measurement: {reason}")));
        }
        remarks
    }
}

fn plus_minus(half_width: Option<f64>) -> String {
    half_width.map_or(String::new(), |w| format!(" ± {}", four_digits(w)))
}

fn interval(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{} .. {}", six_digits(low), six_digits(high)),
        _ => "none".into(),
    }
}

fn csv_line(cells: &[String]) -> String {
    let quoted = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}
