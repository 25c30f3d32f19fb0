//! Numbers of a model under the values of its parameters, checked for what solvers can use that count threads and customers one by one.

use super::SolveError;
use crate::{
    error_chain::chain,
    model::{Bindings, Defect, Model, Number, Scalar, Severity},
};

/// Most servers, threads, customers or copies of one element, beyond which it must be infinite or the model is refused.
pub(super) const COUNT_LIMIT: f64 = 1e6;

/// Integers below are written out.
const EXACT: f64 = 1e15;

/// How many of something there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// This many, at least 1.
    Finite(u32),
    /// As many as are wanted.
    Infinite,
}

impl Count {
    /// As a number, the largest for infinity.
    pub(super) fn number(self) -> usize {
        match self {
            Self::Finite(n) => n as usize,
            Self::Infinite => usize::MAX,
        }
    }
}

/// Parameter values, complete with the model's own definitions.
pub(super) struct Binder {
    values: Bindings,
}

/// An unusable element.
pub(super) fn unusable(element: impl Into<String>, reason: impl Into<String>) -> SolveError {
    SolveError::Unusable { element: element.into(), reason: reason.into() }
}

/// Values of all parameters: those given, and the model's own definitions for the rest.
pub(super) fn bindings<S: Scalar>(model: &Model, values: &Bindings<S>) -> Result<Bindings<S>, SolveError> {
    model.bindings(values).map_err(|e| unusable("parameters", chain(&e)))
}

/// [`bindings`] of a model whose numbers are within their ranges at these values: a `$name` may have any, where a number in its place is refused.
pub(super) fn checked_bindings(model: &Model, values: &Bindings) -> Result<Bindings, SolveError> {
    let bound = bindings(model, values)?;
    if model.has_parameters() {
        let defect = model.validate_bound(&bound).into_iter().find(|defect| defect.kind.severity() == Severity::Error);
        if let Some(Defect { element, kind, .. }) = defect {
            return Err(unusable(element, kind.to_string()));
        }
    }
    Ok(bound)
}

/// Checks that `value` is an integer of at least `least` that can be counted to.
pub(super) fn whole(value: f64, element: &str, what: &str, least: f64) -> Result<u32, SolveError> {
    let shown = if value.abs() < EXACT { value.to_string() } else { format!("{value:e}") };
    if !value.is_finite() || value.fract() != 0.0 || value < least {
        return Err(unusable(element, format!("its {what} is {shown}, expected an integer of at least {least}")));
    }
    if value > COUNT_LIMIT {
        return Err(unusable(element, format!("its {what} is {shown}, expected at most {COUNT_LIMIT}")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    Ok(value as u32)
}

impl Binder {
    /// The model's own definitions, overridden by `values`.
    pub(super) fn new(model: &Model, values: &Bindings) -> Result<Self, SolveError> {
        bindings(model, values).map(|values| Self { values })
    }

    /// All of them.
    pub(super) fn values(&self) -> &Bindings {
        &self.values
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
        whole(value, element, what, 1.0).map(Count::Finite)
    }

    /// An integer of at least `least`.
    pub(super) fn whole(&self, number: &Number, element: &str, what: &str, least: f64) -> Result<u32, SolveError> {
        whole(number.eval(&self.values)?, element, what, least)
    }
}
