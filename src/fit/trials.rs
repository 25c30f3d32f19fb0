//! Trials: measured operating points, and the CSV they come in.
//!
//! One row a trial. A header cell is `$name` (a controlled value), a measure (`throughput(User)`), `stderr(MEASURE)`,
//! `weight(MEASURE)`, `trial` (an id) or `duration`. An empty cell is a missing value.

use serde::{Deserialize, Serialize};

use crate::model::{Bindings, Measure};

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
    /// How long it was measured, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    /// Controlled values by parameter name (without `$`).
    pub controlled: Bindings,
    /// Measured values, one for each of [`Trials::measures`].
    pub measured: Vec<Option<Measured>>,
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
