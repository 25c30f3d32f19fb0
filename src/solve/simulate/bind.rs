//! Numbers of a model under the values of its parameters, checked for what a simulation can use.

use crate::{
    error_chain::chain,
    model::{Bindings, Model, Number},
    solve::SolveError,
};

/// Most servers, threads, customers or copies of one element, beyond which it must be infinite or the model is refused.
pub(super) const COUNT_LIMIT: f64 = 1e6;

/// How many of something there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// This many, at least 1.
    Finite(u32),
    /// As many as are wanted.
    Infinite,
}

/// Parameter values, complete with the model's own definitions.
pub(super) struct Binder {
    values: Bindings,
}

/// An unusable element.
pub(super) fn unusable(element: impl Into<String>, reason: impl Into<String>) -> SolveError {
    SolveError::Unusable { element: element.into(), reason: reason.into() }
}

impl Binder {
    /// The model's own definitions, overridden by `values`.
    pub(super) fn new(model: &Model, values: &Bindings) -> Result<Self, SolveError> {
        let values = model.bindings(values).map_err(|e| unusable("parameters", chain(&e)))?;
        Ok(Self { values })
    }

    /// A finite number ≥ 0.
    pub(super) fn amount(&self, number: &Number, element: &str, what: &str) -> Result<f64, SolveError> {
        let value = number.eval(&self.values)?;
        if value.is_finite() && value >= 0.0 {
            return Ok(value);
        }
        Err(unusable(element, format!("its {what} is {value}, expected a finite number of at least 0")))
    }

    /// A finite number > 0.
    pub(super) fn positive(&self, number: &Number, element: &str, what: &str) -> Result<f64, SolveError> {
        let value = self.amount(number, element, what)?;
        if value > 0.0 { Ok(value) } else { Err(unusable(element, format!("its {what} is 0, expected more than 0"))) }
    }

    /// A finite number of either sign.
    pub(super) fn finite(&self, number: &Number, element: &str, what: &str) -> Result<f64, SolveError> {
        let value = number.eval(&self.values)?;
        if value.is_finite() { Ok(value) } else { Err(unusable(element, format!("its {what} is {value}, expected a finite number"))) }
    }

    /// An integer ≥ 1, or infinity.
    pub(super) fn count(&self, number: &Number, element: &str, what: &str) -> Result<Count, SolveError> {
        let value = number.eval(&self.values)?;
        if value == f64::INFINITY {
            return Ok(Count::Infinite);
        }
        self.whole(number, element, what, 1.0).map(Count::Finite)
    }

    /// An integer of at least `least`.
    pub(super) fn whole(&self, number: &Number, element: &str, what: &str, least: f64) -> Result<u32, SolveError> {
        let value = number.eval(&self.values)?;
        if !value.is_finite() || value.fract() != 0.0 || value < least {
            return Err(unusable(element, format!("its {what} is {value}, expected an integer of at least {least}")));
        }
        if value > COUNT_LIMIT {
            return Err(unusable(element, format!("its {what} is {value}, more than the {COUNT_LIMIT} that can be simulated")));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
        Ok(value as u32)
    }
}
