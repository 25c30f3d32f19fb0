//! The text grammar of the LQN tools (5.32), read.
//!
//! ```text
//! model = {var} [G] P [U] T E {A} [R] [C]
//! G general   P processors   U groups   T tasks   E entries   A activities of a task   R results   C convergence
//! ```
//!
//! Sections end with `-1`; counts at their start are ignored. Phases have no names in text: they are called
//! `<entry>_ph1` and so on. A phase stands in the model where some line gives it work; phase 1 stands wherever the entry
//! is described by phases at all. An expression in braces becomes a generated parameter (`$_1`, or another name that the
//! file does not use). The model takes its name from the text of the G section.
//!
//! Loops are read both with the activity after the loop last, as the manual has it, and after the first body, as the
//! tools' parser does.

mod activities;
mod entries;
mod sections;

use super::{Model, Places, format::ParseError};

/// Reads a model.
///
/// # Errors
/// [`ParseError`] with line and column.
pub fn parse(text: &str) -> Result<Model, ParseError> {
    read(text).map(|(model, _)| model)
}

/// Reads a model, with where its elements stand: entries where they are described, if they are.
pub(super) fn read(text: &str) -> Result<(Model, Places), ParseError> {
    ParseError::check_size(text)?;
    sections::read_model(text).map_err(|error| error.into_parse_error(text))
}
