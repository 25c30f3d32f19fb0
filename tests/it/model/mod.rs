//! The model language: formats, parameters, validation.

mod constructs;
mod examples;
mod generated;
mod hostile;
mod invalid_json;
mod invalid_models;
mod invalid_text;
mod invalid_xml;
mod parameters;
mod places;
mod text_constructs;

use layerfit::model::{Model, json, lqn_text, lqnx};

/// The model in `xml`, which must be readable.
fn xml(xml: &str) -> Model {
    lqnx::parse(xml).unwrap_or_else(|error| panic!("{error}\n{xml}"))
}

/// The model in `text`, which must be readable.
fn text(text: &str) -> Model {
    lqn_text::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Asserts that a model in file order survives LQNX and JSON.
fn assert_survives(model: &Model) {
    let written = lqnx::write(model);
    assert_eq!(&xml(&written), model, "{written}");
    let written = json::write(model);
    assert_eq!(&json::parse(&written).expect("JSON that was written"), model, "{written}");
}
