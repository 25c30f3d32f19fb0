//! LQNX, the XML of the LQN tools (schema `lqn.xsd`, tools 5.32), read and written.
//!
//! Reading is strict: an element, attribute or value that the format does not have is an error with line and column.
//! Results (`result-*`) in a file are skipped, and so is what the tools skip. Names of elements and attributes are read in any case, values are not.
//! Document types and entities other than XML's own five are refused, and nesting, size and number of elements bounded.
//! What a model does not hold is dropped: XML comments, `comment` attributes, the schema's versions.
//!
//! Written files name every element in the schema's order and leave defaults out, and read back as the model that was
//! written, if that is valid and in file order ([`Model::in_file_order`]).
//!
//! Results of a solution may stand in the file as the LQN tools write them ([`write_with_results`]): a `result-*` element of
//! every element of the model, in the place and with the attributes of the schema.

mod document;
mod element;
mod read;
mod read_task;
mod results;
mod write;
mod write_task;

pub use results::{ResultBin, ResultElement, ResultElements};

use super::{Model, format::ParseError};

/// Reads a model.
///
/// # Errors
/// [`ParseError`] with line and column.
pub fn parse(text: &str) -> Result<Model, ParseError> {
    ParseError::check_size(text)?;
    let to_parse_error = |error: element::SyntaxError| ParseError::at(text, error.offset, error.reason);
    let root = document::parse(text).map_err(to_parse_error)?;
    read::read_model(&root).map_err(to_parse_error)
}

/// Writes a model, its tasks inside their processors.
pub fn write(model: &Model) -> String {
    write::write_model(model, None)
}

/// Writes a model as [`write()`] does, with the results of its elements.
///
/// A file holds results of one solution: the LQN tools read it as such if `model` is bound to values ([`Model::bound_to`]).
pub fn write_with_results(model: &Model, results: &ResultElements) -> String {
    write::write_model(model, Some(results))
}
