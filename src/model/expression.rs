//! Expressions over parameters, as the text grammar has them. (Evaluation is generic, so that derivatives pass through.)

use super::{Bindings, Scalar};

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {}

/// An expression that cannot be read or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expression \"{text}\": {reason}")]
pub struct ExpressionError {
    /// The expression.
    pub text: String,
    /// What is wrong and where.
    pub reason: String,
}

impl Expression {
    /// Reads `text`.
    ///
    /// # Errors
    /// [`ExpressionError`] with the position of what was not expected.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        Err(ExpressionError { text: text.to_owned(), reason: "not read yet".into() })
    }

    /// Its value under `bindings`.
    ///
    /// # Errors
    /// [`ExpressionError`] for a parameter without a value or an operation without a result.
    pub fn eval<S: Scalar>(&self, _bindings: &Bindings<S>) -> Result<S, ExpressionError> {
        Err(ExpressionError { text: String::new(), reason: "not evaluated yet".into() })
    }
}
