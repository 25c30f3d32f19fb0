//! The file formats of models, by name and by file extension.

use super::{Model, json, lqn_text, lqnx};

/// A model file's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// XML of the LQN tools.
    Lqnx,
    /// Text grammar of the LQN tools.
    LqnText,
    /// The project's JSON.
    Json,
}

/// A model that cannot be read, with where and why.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub reason: String,
}

/// Reads a model in `format`. The model is not validated beyond what the format itself demands: see [`Model::validate`].
///
/// # Errors
/// [`ParseError`] with line and column.
pub fn parse(text: &str, format: Format) -> Result<Model, ParseError> {
    match format {
        Format::Lqnx => lqnx::parse(text),
        Format::LqnText => lqn_text::parse(text),
        Format::Json => json::parse(text),
    }
}

impl Format {
    /// The format of a file name: `.lqnx` or `.xml`, `.lqn`, `.json`.
    pub fn from_file_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "lqnx" | "xml" => Some(Self::Lqnx),
            "lqn" => Some(Self::LqnText),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}
