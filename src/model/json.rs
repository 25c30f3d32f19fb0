//! The project's own JSON: the model's fields as they are, numbers as numbers or `"$name"`, defaults left out.

use serde::Deserialize;

use super::{Model, format::ParseError, objects::Objects};

/// Reads a model. Nesting is bounded by the JSON reader; unknown keys are errors.
///
/// # Errors
/// [`ParseError`] with line and column.
pub fn parse(text: &str) -> Result<Model, ParseError> {
    ParseError::check_size(text)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let start = text.len() - text.trim_start().len();
    if text[start..].starts_with('[') {
        return Err(ParseError::at(text, start, "expected a model in braces, found a list"));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let read = Model::deserialize(Objects(&mut json)).and_then(|model| json.end().map(|()| model));
    read.map_err(|error| {
        let reason = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let reason = reason.strip_suffix(&place).unwrap_or(&reason).to_owned();
        ParseError { line: error.line().max(1), column: error.column().max(1), reason }
    })
}

/// Writes a model, indented. Numbers that are not finite, which no valid model has outside multiplicities, become
/// strings.
pub fn write(model: &Model) -> String {
    serde_json::to_string_pretty(model).unwrap_or_default()
}
