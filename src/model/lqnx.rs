//! lqnx

use super::{Model, format::ParseError};

/// Reads a model.
///
/// # Errors
/// [`ParseError`] with line and column.
pub fn parse(_text: &str) -> Result<Model, ParseError> {
    Err(ParseError { line: 1, column: 1, reason: "not read yet".into() })
}

/// Writes a model.
pub fn write(_model: &Model) -> String {
    String::new()
}
