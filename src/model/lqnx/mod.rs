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

use super::{Declared, Model, Places, format::ParseError};

/// Reads a model.
///
/// # Errors
/// [`ParseError`] with line and column.
pub fn parse(text: &str) -> Result<Model, ParseError> {
    read(text).map(|(model, _)| model)
}

/// Reads a model, with where its elements stand.
pub(super) fn read(text: &str) -> Result<(Model, Places), ParseError> {
    ParseError::check_size(text)?;
    let to_parse_error = |error: element::SyntaxError| ParseError::at(text, error.offset, error.reason);
    let root = document::parse(text).map_err(to_parse_error)?;
    let model = read::read_model(&root).map_err(to_parse_error)?;
    let mut places = Places::default();
    root.children.iter().for_each(|child| find_places(child, None, None, &mut places));
    Ok((model, places))
}

/// Where the elements in `element` stand, which is in this task and entry.
fn find_places<'a>(element: &'a element::Element<'_>, task: Option<&'a str>, entry: Option<&'a str>, places: &mut Places) {
    let name = element.text_of("name");
    let named = name.unwrap_or_default().to_owned();
    let (mut task, mut entry) = (task, entry);
    let declared = match (element.name.as_ref(), task, entry) {
        ("processor", ..) => Some(Declared::Processor(named)),
        ("group", ..) => Some(Declared::Group(named)),
        ("task", ..) => {
            task = name;
            Some(Declared::Task(named))
        }
        ("entry", ..) => {
            entry = name;
            Some(Declared::Entry(named))
        }
        ("activity", _, Some(entry)) => element.text_of("phase").and_then(|n| n.parse().ok()).map(|n| Declared::Phase(entry.to_owned(), n)),
        // Activities in precedences only refer.
        ("activity", Some(task), None) if element.text_of("host-demand-mean").is_some() || !element.children.is_empty() => {
            Some(Declared::Activity { task: task.to_owned(), activity: named })
        }
        _ => None,
    };
    declared.into_iter().for_each(|declared| places.add(declared, element.offset));
    element.children.iter().for_each(|child| find_places(child, task, entry, places));
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
