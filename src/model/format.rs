//! The file formats of models, by name and by file extension.

use super::{Model, Places, json, lqn_text, lqnx};

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

/// Largest input that is read: 64 MiB hold a model of some 200,000 tasks with results, far beyond what is solved.
pub const MAX_INPUT_BYTES: usize = 64 << 20;

impl ParseError {
    /// `reason` at the byte `offset` of `text`.
    pub(super) fn at(text: &str, offset: usize, reason: impl Into<String>) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = text.get(..end).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        Self { line: before.bytes().filter(|b| *b == b'\n').count() + 1, column, reason: reason.into() }
    }

    /// Refuses inputs above [`MAX_INPUT_BYTES`].
    pub(super) fn check_size(text: &str) -> Result<(), Self> {
        let reason = || format!("the input is larger than {MAX_INPUT_BYTES} bytes");
        if text.len() > MAX_INPUT_BYTES { Err(Self { line: 1, column: 1, reason: reason() }) } else { Ok(()) }
    }
}

/// Reads a model in `format`. The model is not validated beyond what the format itself demands: see [`Model::validate`].
///
/// # Errors
/// [`ParseError`] with line and column.
pub fn parse(text: &str, format: Format) -> Result<Model, ParseError> {
    read(text, format).map(|(model, _)| model)
}

/// Reads a model as [`parse`] does, with where its elements stand.
///
/// # Errors
/// As [`parse`].
pub fn read(text: &str, format: Format) -> Result<(Model, Places), ParseError> {
    ParseError::check_size(text)?;
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(ParseError { line: 1, column: 1, reason: "the file is empty: expected a model".into() });
    }
    match format {
        Format::Lqnx => lqnx::read(text),
        Format::LqnText => lqn_text::read(text),
        Format::Json => Ok((json::parse(text)?, Places::default())),
    }
}

impl Format {
    /// The format of a file name: `.lqnx`, `.xml` or, as files with results are called, `.lqxo`; `.lqn`; `.json`.
    pub fn from_file_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "lqnx" | "lqxo" | "xml" => Some(Self::Lqnx),
            "lqn" => Some(Self::LqnText),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}
