//! User behaviour models: absorbing Markov chains over services (van Hoorn et al., Section 3.1).
//!
//! ```text
//! B = (S + Exit, P, z₀, f_tt)        p(i, Exit) = 1 - Σ_j p(i, j)
//! v = z₀ (I - P)⁻¹                   mean visits to each service in a session
//! ```
//!
//! | symbol | field | is | shape |
//! |---|---|---|---|
//! | S | `services` | services, without Exit | n |
//! | z₀ | `start` | probability that a session starts with each service | n |
//! | P | `transitions` | probability of each next service | n × n |
//! | p(·, Exit) | `exit` | probability that the session ends | n |
//! | f_tt | `think` | law of the time between two requests | |
//!
//! The paper has one entry state; sessions in traces start with several services, hence a distribution. Written as a file
//! (one entry, marked `*`), such a chain has a state `(start)` without requests before all others.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use super::think::ThinkLaw;

/// How far probabilities of a row may be from a sum of 1.
pub const ROW_TOLERANCE: f64 = 1e-9;

/// Name of the state without requests from which sessions start, where there are several first services.
pub const START: &str = "(start)";

/// A class of users' behaviour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Behaviour {
    /// Its name.
    pub name: String,
    /// Services, shape `(n,)`.
    pub services: Vec<String>,
    /// Probability of each to be the first, shape `(n,)`.
    pub start: Vec<f64>,
    /// Probability of each next service, shape `(n, n)`.
    pub transitions: DMatrix<f64>,
    /// Probability that the session ends, shape `(n,)`.
    pub exit: Vec<f64>,
    /// Law of the think time; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<ThinkLaw>,
}

/// Why a chain is not a behaviour.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BehaviourError {
    /// Numbers of rows and columns differ from that of services.
    #[error("behaviour \"{name}\": {found} for {services} services, expected {services} × {services} transitions with exit and start")]
    Shape {
        /// The behaviour.
        name: String,
        /// What there is.
        found: String,
        /// Number of services.
        services: usize,
    },
    /// A number is not a probability.
    #[error("behaviour \"{name}\": {what} is {value}, expected a probability")]
    NotAProbability {
        /// The behaviour.
        name: String,
        /// Which.
        what: String,
        /// Its value.
        value: f64,
    },
    /// Probabilities do not sum to 1.
    #[error("behaviour \"{name}\": the probabilities of {row} sum to {sum}, expected 1")]
    RowSum {
        /// The behaviour.
        name: String,
        /// The row.
        row: String,
        /// Their sum.
        sum: f64,
    },
    /// A session may never end.
    #[error("behaviour \"{name}\": the exit cannot be reached from {service}")]
    NoExit {
        /// The behaviour.
        name: String,
        /// From where.
        service: String,
    },
}

impl Behaviour {
    /// Checks that rows sum to 1 within [`ROW_TOLERANCE`] and that Exit is reached from every service.
    ///
    /// # Errors
    /// [`BehaviourError`], naming the row.
    pub fn check(&self) -> Result<(), BehaviourError> {
        let (n, name) = (self.services.len(), || self.name.clone());
        if self.transitions.shape() != (n, n) || self.exit.len() != n || self.start.len() != n {
            let found = format!("{:?} transitions, {} exits, {} starts", self.transitions.shape(), self.exit.len(), self.start.len());
            return Err(BehaviourError::Shape { name: name(), found, services: n });
        }
        let row_of = |i: usize| self.transitions.row(i).iter().copied().chain([self.exit[i]]).collect::<Vec<f64>>();
        let rows = (0..n).map(|i| (self.services[i].clone(), row_of(i))).chain([("the start".to_owned(), self.start.clone())]);
        for (row, probabilities) in rows {
            if let Some(value) = probabilities.iter().find(|p| !(**p >= 0.0 && **p <= 1.0 + ROW_TOLERANCE)) {
                return Err(BehaviourError::NotAProbability { name: name(), what: format!("one from {row}"), value: *value });
            }
            let sum: f64 = probabilities.iter().sum();
            if (sum - 1.0).abs() > ROW_TOLERANCE {
                return Err(BehaviourError::RowSum { name: name(), row, sum });
            }
        }
        match self.reaches_exit().iter().position(|reaches| !reaches) {
            Some(stuck) => Err(BehaviourError::NoExit { name: name(), service: self.services[stuck].clone() }),
            None => Ok(()),
        }
    }

    fn reaches_exit(&self) -> Vec<bool> {
        let mut reaches: Vec<bool> = self.exit.iter().map(|p| *p > 0.0).collect();
        let mut next: Vec<usize> = (0..reaches.len()).filter(|i| reaches[*i]).collect();
        while let Some(to) = next.pop() {
            for from in 0..reaches.len() {
                if !reaches[from] && self.transitions[(from, to)] > 0.0 {
                    reaches[from] = true;
                    next.push(from);
                }
            }
        }
        reaches
    }

    /// Mean visits to each service in a session, shape `(n,)`; `None` where a session may never end.
    pub fn visits(&self) -> Option<Vec<f64>> {
        let n = self.services.len();
        if self.start.len() != n || self.transitions.shape() != (n, n) || self.exit.len() != n {
            return None;
        }
        if self.reaches_exit().contains(&false) {
            return None;
        }
        let matrix = (DMatrix::identity(n, n) - &self.transitions).transpose();
        let visits = matrix.lu().solve(&DVector::from_column_slice(&self.start))?;
        visits.iter().all(|v| v.is_finite()).then(|| visits.iter().map(|v| v.max(0.0)).collect())
    }

    /// The only service that sessions start with; `None` where there are several.
    pub fn entry(&self) -> Option<usize> {
        self.start.iter().position(|p| (p - 1.0).abs() <= ROW_TOLERANCE)
    }
}
