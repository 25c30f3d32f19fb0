//! Trials: measured operating points, in CSV (see [`Trials::from_csv`]) and in JSON ([`Trials::from_json`]).

use std::collections::HashSet;

use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

pub use super::{covariance::ErrorCovariance, trials_json::AsSent};
use crate::model::{Bindings, Measure, MeasureError};

/// What some programs begin UTF-8 text with.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A set of trials with common columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trials {
    /// Measures that the set has, in column order.
    pub measures: Vec<Measure>,
    /// One for each operating point.
    pub trials: Vec<Trial>,
}

/// One measured operating point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its id; the row number, from 1, where the file gives none.
    pub id: String,
    /// How long it was measured, where known; > 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    /// When it was measured, in any unit that all trials share; it orders them where parameters drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// Controlled values by parameter name (without `$`).
    pub controlled: Bindings,
    /// Measured values, one for each of [`Trials::measures`].
    pub measured: Vec<Option<Measured>>,
    /// Covariances between the errors of its measured values, where known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covariances: Vec<ErrorCovariance>,
    /// Standard errors that values which are not measured yet will have, one for each of [`Trials::measures`]; empty where none is planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planned_errors: Vec<Option<f64>>,
}

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The value, in the model's units.
    pub value: f64,
    /// Its standard error, where known; > 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std_error: Option<f64>,
    /// Its weight in the sum of squares, where given; ≥ 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// How large a set of trials may be that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most trials.
    pub n_trials: usize,
    /// Most columns: controlled values and measures, their standard errors, weights and covariances.
    pub n_columns: usize,
    /// Most cells: trials times columns.
    pub n_cells: usize,
}

impl Bounds {
    /// As large as memory is.
    pub const NONE: Self = Self { n_trials: usize::MAX, n_columns: usize::MAX, n_cells: usize::MAX };

    /// Checks the size of a set.
    ///
    /// # Errors
    /// [`TrialsError::TooMany`].
    pub(super) fn check(&self, n_trials: usize, n_columns: usize) -> Result<(), TrialsError> {
        let counts = [(n_trials, self.n_trials, "trials"), (n_columns, self.n_columns, "columns")];
        match counts.into_iter().find(|(n, most, _)| n > most) {
            Some((_, most, what)) => Err(TrialsError::TooMany { what, most }),
            None => self.check_cells(n_trials.saturating_mul(n_columns)),
        }
    }

    /// Checks a number of cells.
    ///
    /// # Errors
    /// [`TrialsError::TooMany`].
    pub(super) fn check_cells(&self, n_cells: usize) -> Result<(), TrialsError> {
        match n_cells > self.n_cells {
            true => Err(TrialsError::TooMany { what: "cells (trials times columns)", most: self.n_cells }),
            false => Ok(()),
        }
    }
}

/// Trials that cannot be read. Rows are counted from 1 below the header; for JSON a row is an element of `trials`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrialsError {
    /// The bytes are not UTF-8.
    #[error("not UTF-8 text (byte {byte})")]
    NotUtf8 {
        /// Offset of the first wrong byte.
        byte: usize,
    },
    /// The CSV itself is broken.
    #[error("row {row}: {reason}")]
    Csv {
        /// The row; 0 is the header.
        row: usize,
        /// What is wrong.
        reason: String,
    },
    /// The JSON itself is broken or has another shape.
    #[error("line {line}, column {column}: {reason}")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// No header.
    #[error("the file is empty: expected a header such as $users,throughput(User)")]
    Empty,
    /// A header of one cell that has other separators than commas.
    #[error("the cells of the header seem to be separated by {found}: expected commas, and decimal points in numbers")]
    Separator {
        /// What separates them, in words.
        found: &'static str,
    },
    /// No trials.
    #[error("no trials: expected at least one, a row below the header of CSV or an element of \"trials\" of JSON")]
    NoTrials,
    /// More than there may be.
    #[error("more than {most} {what}: expected fewer in one set of trials")]
    TooMany {
        /// Of what there are too many.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// No measures.
    #[error("no measure among the columns: expected at least one such as throughput(User)")]
    NoMeasures,
    /// A header cell that means nothing.
    #[error(
        "header cell \"{cell}\" (column {column}): expected $NAME, a measure, stderr(MEASURE), weight(MEASURE), \
         covariance(MEASURE;MEASURE), trial, time or duration"
    )]
    Header {
        /// The cell.
        cell: String,
        /// Column, from 1.
        column: usize,
        /// Why it is not a measure.
        #[source]
        source: MeasureError,
    },
    /// A header cell `$...` that is not a parameter's name.
    #[error("header cell \"{cell}\" (column {column}): a name after $ is a letter or underscore, then letters, digits, underscores")]
    HeaderName {
        /// The cell.
        cell: String,
        /// Column, from 1.
        column: usize,
    },
    /// Two columns for the same thing.
    #[error("header cell \"{cell}\" stands twice (columns {first} and {second})")]
    DuplicateColumn {
        /// The cell.
        cell: String,
        /// First column, from 1.
        first: usize,
        /// Second column, from 1.
        second: usize,
    },
    /// A standard error or weight of a measure that is not there.
    #[error("header cell \"{cell}\": there is no column {measure}")]
    Companionless {
        /// The cell.
        cell: String,
        /// The missing measure.
        measure: Measure,
    },
    /// A measure with both a standard error and a weight.
    #[error("{measure} has both a stderr and a weight: give one of the two")]
    StandardErrorAndWeight {
        /// The measure.
        measure: Measure,
    },
    /// A row of the wrong length.
    #[error("row {row}: {found} cells, the header has {expected}")]
    RowLength {
        /// The row.
        row: usize,
        /// Its cells.
        found: usize,
        /// The header's cells.
        expected: usize,
    },
    /// A cell with a value that cannot be used.
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
    /// A standard error or weight beside a missing value.
    #[error("row {row}, column {column}: given although {measure} is missing in this row")]
    WithoutValue {
        /// The row.
        row: usize,
        /// The column's header.
        column: String,
        /// The measure.
        measure: Measure,
    },
    /// Covariances that no errors can have.
    #[error("row {row}: the covariances are not those of any errors (a variance of {least:.2e} in some direction)")]
    NotACovariance {
        /// The row.
        row: usize,
        /// Smallest variance of a combination of standardised errors, below 0.
        least: f64,
    },
    /// A trial without a controlled value that others have.
    #[error("row {row} (trial \"{id}\"): it has no value of ${name}, which other trials have")]
    ControlledMissing {
        /// The row.
        row: usize,
        /// The trial.
        id: String,
        /// The name.
        name: String,
    },
    /// A row without any measured value.
    #[error("row {row} (trial \"{id}\"): nothing was measured")]
    NothingMeasured {
        /// The row.
        row: usize,
        /// The trial.
        id: String,
    },
    /// Two trials with one id.
    #[error("row {row}: the trial id \"{id}\" is also that of row {first}")]
    DuplicateId {
        /// The second row.
        row: usize,
        /// The first row.
        first: usize,
        /// The id.
        id: String,
    },
}

impl Trials {
    /// Number of measured values.
    pub fn n_measured(&self) -> usize {
        self.trials.iter().map(|t| t.measured.iter().flatten().count()).sum()
    }

    /// Names of controlled values, in the order of their first appearance.
    pub fn controlled_names(&self) -> Vec<&str> {
        let names: IndexSet<&str> = self.trials.iter().flat_map(|t| t.controlled.iter()).map(|(name, _)| name).collect();
        names.into_iter().collect()
    }

    /// Smallest and largest value of the controlled value `name`; `None` when no trial has it.
    pub fn controlled_range(&self, name: &str) -> Option<(f64, f64)> {
        let values = self.trials.iter().filter_map(|t| t.controlled.get(name));
        values.fold(None, |range, v| Some(range.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v)))))
    }

    /// Number of columns that the set has as CSV, but for those of ids, durations and times.
    pub(super) fn n_columns(&self) -> usize {
        let any = |index: usize, of: fn(&Measured) -> Option<f64>| {
            self.trials.iter().any(|t| t.measured.get(index).copied().flatten().and_then(|m| of(&m)).is_some())
        };
        let columns_of = |index| 1 + usize::from(any(index, |m| m.std_error)) + usize::from(any(index, |m| m.weight));
        let pairs: HashSet<_> =
            self.trials.iter().flat_map(|t| &t.covariances).map(|c| (c.first.min(c.second), c.first.max(c.second))).collect();
        self.controlled_names().len() + (0..self.measures.len()).map(columns_of).sum::<usize>() + pairs.len()
    }

    /// Checks what every reader and every hand-made set must satisfy.
    ///
    /// # Errors
    /// [`TrialsError`] naming row and column.
    pub fn check(&self) -> Result<(), TrialsError> {
        if self.measures.is_empty() {
            return Err(TrialsError::NoMeasures);
        }
        if self.trials.is_empty() {
            return Err(TrialsError::NoTrials);
        }
        self.check_plan()?;
        for (index, trial) in self.trials.iter().enumerate() {
            if let Some((measure, _)) = self.measures.iter().zip(&trial.planned_errors).find(|(_, error)| error.is_some()) {
                let column = format!("stderr({measure})");
                return Err(TrialsError::WithoutValue { row: index + 1, column, measure: measure.clone() });
            }
        }
        let empty = |(_, t): &(usize, &Trial)| t.measured.iter().all(Option::is_none);
        match self.trials.iter().enumerate().find(empty) {
            Some((index, trial)) => Err(TrialsError::NothingMeasured { row: index + 1, id: trial.id.clone() }),
            None => Ok(()),
        }
    }

    /// Checks what trials must satisfy that are planned, and need not have any values, nor be any.
    ///
    /// # Errors
    /// [`TrialsError`] naming row and column.
    pub fn check_plan(&self) -> Result<(), TrialsError> {
        if self.measures.is_empty() {
            return Err(TrialsError::NoMeasures);
        }
        for (index, measure) in self.measures.iter().enumerate() {
            if let Some(first) = self.measures[..index].iter().position(|m| m == measure) {
                return Err(TrialsError::DuplicateColumn { cell: measure.to_string(), first: first + 1, second: index + 1 });
            }
        }
        let mut rows_by_id: IndexMap<&str, usize> = IndexMap::new();
        for (index, trial) in self.trials.iter().enumerate() {
            self.check_trial(index + 1, trial)?;
            if let Some(first) = rows_by_id.insert(&trial.id, index + 1) {
                return Err(TrialsError::DuplicateId { row: index + 1, first, id: trial.id.clone() });
            }
        }
        Ok(())
    }

    fn check_trial(&self, row: usize, trial: &Trial) -> Result<(), TrialsError> {
        if trial.measured.len() != self.measures.len() {
            return Err(TrialsError::RowLength { row, found: trial.measured.len(), expected: self.measures.len() });
        }
        let cell = |column: String, value: f64, expected| TrialsError::Cell { row, column, cell: value.to_string(), expected };
        if let Some((name, value)) = trial.controlled.iter().find(|(_, v)| !v.is_finite()) {
            return Err(cell(format!("${name}"), value, FINITE));
        }
        if let Some(duration) = trial.duration.filter(|d| !(d.is_finite() && *d > 0.0)) {
            return Err(cell("duration".into(), duration, POSITIVE));
        }
        if let Some(time) = trial.time.filter(|t| !t.is_finite()) {
            return Err(cell("time".into(), time, FINITE));
        }
        for (measure, measured) in self.measures.iter().zip(&trial.measured) {
            let Some(measured) = measured else { continue };
            if !measured.value.is_finite() {
                return Err(cell(measure.to_string(), measured.value, FINITE));
            }
            if !has_a_square(measured.value) {
                return Err(cell(measure.to_string(), measured.value, WITH_A_SQUARE));
            }
            if let Some(error) = measured.std_error {
                let named = |expected| Err(cell(format!("stderr({measure})"), error, expected));
                match error {
                    e if !(e.is_finite() && e > 0.0) => return named(POSITIVE),
                    e if !has_a_square(e) => return named(POSITIVE_WITH_A_SQUARE),
                    _ => {}
                }
            }
            if let Some(weight) = measured.weight.filter(|w| !(w.is_finite() && *w >= 0.0)) {
                return Err(cell(format!("weight({measure})"), weight, NOT_NEGATIVE));
            }
            if measured.std_error.is_some() && measured.weight.is_some() {
                return Err(TrialsError::StandardErrorAndWeight { measure: measure.clone() });
            }
        }
        self.check_covariances(row, trial)
    }
}

pub(super) const FINITE: &str = "a finite number";
pub(super) const POSITIVE: &str = "a finite number above 0";
pub(super) const NOT_NEGATIVE: &str = "a finite number, 0 or more";
pub(super) const WITH_A_SQUARE: &str = "0, or a number from 1e-100 to 1e100 with either sign";
pub(super) const POSITIVE_WITH_A_SQUARE: &str = "a number from 1e-100 to 1e100";

/// Whether sums of squares of such numbers, and of their ratios, are numbers.
pub(super) fn has_a_square(value: f64) -> bool {
    value == 0.0 || (1e-100..=1e100).contains(&value.abs())
}

/// Whether `name` can follow a `$` in a model.
pub(crate) fn is_parameter_name(name: &str) -> bool {
    crate::model::Number::parse(&format!("${name}")).is_some_and(|n| n.parameter() == Some(name))
}
