//! Reading the files that subcommands are given.

use std::{fs, path::Path};

use super::Failure;
use crate::model::{Bindings, Measure, Model, Number, Severity, format};

/// Largest model file that is read, bytes.
const MODEL_LIMIT_BYTES: u64 = 64 << 20;

/// The whole of a file.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|e| Failure::input_text(format!("{}: {e}", path.display())))
}

/// The whole of a file as UTF-8 text.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read_bytes(path)?)
        .map_err(|e| Failure::input_text(format!("{}: not UTF-8 text (byte {})", path.display(), e.utf8_error().valid_up_to())))
}

/// The model in a file, validated; warnings go to standard error.
pub(super) fn read_model(path: &Path) -> Result<Model, Failure> {
    let shown = path.display();
    let Some(format) = format::Format::from_file_name(&path.to_string_lossy()) else {
        return Err(Failure::with_hint(
            format!("{shown}: a model's file name ends in .lqnx, .lqn or .json"),
            "rename the file after its format",
        ));
    };
    if fs::metadata(path).is_ok_and(|m| m.len() > MODEL_LIMIT_BYTES) {
        return Err(Failure::input_text(format!("{shown}: larger than {MODEL_LIMIT_BYTES} bytes")));
    }
    let text = read_text(path)?;
    let (model, places) = format::read(&text, format).map_err(|e| Failure::input_text(format!("{shown}: {e}")))?;
    let defects = model.validate();
    let mut errors = Vec::new();
    for (defect, place) in defects.iter().zip(places.of(&defects, &text)) {
        let place = place.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default();
        let said = format!("{shown}: {place}{defect}");
        match defect.kind.severity() {
            Severity::Error => errors.push(said),
            Severity::Warning => note!("warning: {said}"),
        }
    }
    if errors.is_empty() { Ok(model) } else { Err(Failure::input_text(errors.join("\nerror: "))) }
}

/// The `--set` arguments as bindings of parameters that the model has.
pub(super) fn settings(model: &Model, arguments: &[String]) -> Result<Bindings, Failure> {
    let known = |argument: &String| {
        let (name, value) = binding(argument)?;
        require_parameter(model, &name, &format!("--set {argument}"))?;
        Ok((name, value))
    };
    let found: Vec<(String, f64)> = arguments.iter().map(known).collect::<Result<_, _>>()?;
    each_once("--set", arguments, found.iter().map(|(name, _)| name.as_str()))?;
    Ok(found.into_iter().collect())
}

/// Checks that the `arguments` of an option, which are of parameters with these names, are of different ones.
pub(super) fn each_once<'a>(option: &str, arguments: &[String], names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let names: Vec<&str> = names.collect();
    let again = (0..names.len()).find(|&i| names[..i].contains(&names[i]));
    again.map_or(Ok(()), |i| Err(Failure::input_text(format!("{option} {}: {} is given twice", arguments[i], names[i]))))
}

/// Checks that the `arguments` of `--measure` are different `measures`.
pub(super) fn measures_once(arguments: &[String], measures: &[Measure]) -> Result<(), Failure> {
    let names: Vec<String> = measures.iter().map(Measure::to_string).collect();
    each_once("--measure", arguments, names.iter().map(String::as_str))
}

/// Checks that the model has the parameter of `argument`.
pub(super) fn require_parameter(model: &Model, name: &str, argument: &str) -> Result<(), Failure> {
    model.require_parameter(name).map_err(|e| Failure::input_text(format!("{argument}: {e}")))
}

/// `--set NAME=VALUE` (or `$NAME=VALUE`) arguments as bindings.
pub(super) fn bindings(arguments: &[String]) -> Result<Bindings, Failure> {
    let found = arguments.iter().map(|argument| binding(argument)).collect::<Result<Vec<_>, _>>()?;
    each_once("--set", arguments, found.iter().map(|(name, _)| name.as_str()))?;
    Ok(found.into_iter().collect())
}

/// A `NAME=VALUE` (or `$NAME=VALUE`) argument.
pub(super) fn binding(argument: &str) -> Result<(String, f64), Failure> {
    let parsed = argument.split_once('=').and_then(|(name, value)| {
        let name = name.trim().trim_start_matches('$');
        Some((name.to_owned(), Number::parse(value)?.literal()?))
    });
    parsed
        .filter(|(name, value)| !name.is_empty() && !value.is_nan())
        .ok_or_else(|| Failure::input_text(format!("\"{argument}\": expected NAME=VALUE with a number, as in users=50")))
}
