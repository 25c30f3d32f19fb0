//! Operating points that could be measured.

use csv::ReaderBuilder;
use serde::{Deserialize, Serialize};

use crate::{
    fit::problem::{Problem, trials::is_parameter_name},
    model::{Bindings, Measure},
    solve::multiplicity_parameters,
};

/// An operating point that could be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Controlled values; what all trials share may be left out.
    pub controlled: Bindings,
    /// What a trial there costs, > 0, in any unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Its length in multiples of the trials that there are, > 0; variances fall as its inverse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<f64>,
}

/// Candidates that cannot be read. Rows are counted from 1 below the header.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CandidateError {
    /// The CSV itself is broken, or a row has another number of cells than the header.
    #[error("row {row}: {reason}")]
    Csv {
        /// The row; 0 is the header.
        row: usize,
        /// What is wrong.
        reason: String,
    },
    /// A header cell that means nothing here.
    #[error("header cell \"{0}\": expected $NAME, cost, length or duration")]
    Header(String),
    /// A cell that is no number of the kind.
    #[error("row {row}, column {column}: \"{cell}\": expected {expected}")]
    Cell {
        /// The row.
        row: usize,
        /// The column's header.
        column: String,
        /// The cell.
        cell: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Durations where the trials have none to compare them with.
    #[error("column duration: the trials have no durations to compare it with; give length, in multiples of a trial")]
    Duration,
    /// No rows.
    #[error("no operating points: expected at least one row below the header")]
    Empty,
}

impl Candidate {
    /// The operating point `controlled`, without a cost and as long as the trials are.
    pub fn at(controlled: Bindings) -> Self {
        Self { controlled, ..Self::default() }
    }

    /// Reads CSV: columns `$name`, `cost`, and `length` (in multiples of a trial) or `duration` (in the unit of the trials' durations,
    /// of which `trial_duration` is the mean). An empty `cost`, `length` or `duration` is left open.
    ///
    /// # Errors
    /// [`CandidateError`] naming row and column.
    pub fn from_csv(bytes: &[u8], trial_duration: Option<f64>) -> Result<Vec<Self>, CandidateError> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let mut reader = ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
        let failed = |row: usize| move |e: csv::Error| CandidateError::Csv { row, reason: e.to_string() };
        let header: Vec<String> = reader.headers().map_err(failed(0))?.iter().map(str::to_owned).collect();
        let mut found = Vec::new();
        for (index, record) in reader.records().enumerate() {
            let row = index + 1;
            let record = record.map_err(failed(row))?;
            let mut candidate = Self::default();
            for (column, cell) in header.iter().zip(&record) {
                candidate.read(column, cell, row, trial_duration)?;
            }
            found.push(candidate);
        }
        if found.is_empty() { Err(CandidateError::Empty) } else { Ok(found) }
    }

    fn read(&mut self, column: &str, cell: &str, row: usize, trial_duration: Option<f64>) -> Result<(), CandidateError> {
        let wrong = |expected| CandidateError::Cell { row, column: column.to_owned(), cell: cell.to_owned(), expected };
        let number = || cell.parse::<f64>().ok().filter(|v| v.is_finite());
        let positive = || number().filter(|v| *v > 0.0).ok_or_else(|| wrong("a finite number above 0"));
        match (column, column.strip_prefix('$')) {
            (_, Some(name)) if is_parameter_name(name) => self.controlled.set(name, number().ok_or_else(|| wrong("a finite number"))?),
            ("cost" | "length" | "duration", _) if cell.is_empty() => {}
            ("cost", _) => self.cost = Some(positive()?),
            ("length", _) => self.length = Some(positive()?),
            ("duration", _) => self.length = Some(positive()? / trial_duration.ok_or(CandidateError::Duration)?),
            _ => return Err(CandidateError::Header(column.to_owned())),
        }
        Ok(())
    }
}

/// Operating points around those of the trials, one controlled value varied at a time with the others at their middle: its least,
/// middle and largest value, half the least and twice the largest.
pub fn around_the_trials(problem: &Problem) -> Vec<Candidate> {
    let trials = &problem.trials;
    let counts = multiplicity_parameters(&problem.model);
    let names = trials.controlled_names();
    let middle = |name: &str| {
        let mut values: Vec<f64> = trials.trials.iter().filter_map(|t| t.controlled.get(name)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let centre: Bindings = names.iter().filter_map(|n| Some((*n, middle(n)?))).collect();
    let mut found: Vec<Candidate> = Vec::new();
    for name in names {
        let Some((low, high)) = trials.controlled_range(name) else { continue };
        let whole = |v: f64| if counts.contains(name) { v.round().max(1.0) } else { v };
        for value in [0.5 * low, low, 0.5 * (low + high), high, 2.0 * high].map(whole) {
            let mut controlled = centre.clone();
            controlled.set(name, value);
            if !found.iter().any(|c| c.controlled == controlled) {
                found.push(Candidate::at(controlled));
            }
        }
    }
    found
}

/// Those of `all` that are not `known`.
pub(super) fn missing_from<'m>(all: &'m [Measure], known: &[Measure]) -> Vec<&'m Measure> {
    all.iter().filter(|m| !known.contains(m)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Candidate>, CandidateError> {
        Candidate::from_csv(text.as_bytes(), Some(100.0))
    }

    #[test]
    fn points_costs_and_lengths_are_read() {
        let found = read("$users,$think,cost,duration\n10,5,2.5,200\n20, 5,,\n").unwrap();
        assert_eq!((found[0].cost, found[0].length, found[0].controlled.get("users")), (Some(2.5), Some(2.0), Some(10.0)));
        assert_eq!((found[1].cost, found[1].length), (None, None));
        assert_eq!(Candidate::from_csv(b"$users,length\n1,4\n", None).unwrap()[0].length, Some(4.0));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let says = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(says("$users,price\n1,2\n"), "header cell \"price\": expected $NAME, cost, length or duration");
        assert_eq!(says("$users,cost\n1,0\n"), "row 1, column cost: \"0\": expected a finite number above 0");
        assert_eq!(says("$users\nx\n"), "row 1, column $users: \"x\": expected a finite number");
        assert_eq!(says("$users\n"), "no operating points: expected at least one row below the header");
        assert!(says("$users,cost\n1\n").starts_with("row 1: "));
        assert_eq!(Candidate::from_csv(b"$users,duration\n1,4\n", None), Err(CandidateError::Duration));
    }
}
