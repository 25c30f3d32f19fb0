//! Arguments that say what is fitted, for one model or for several.

use std::path::Path;

use super::{
    Failure,
    estimates::{bounds, estimated, parameter_name},
    fit::{self, WeightingArgument},
    input,
};
use crate::fit::{Estimated, Method, Problem, Trials, problem::parameter_uses::parameter_uses};

/// Arguments of a family: each may begin with `MODEL:`, a file, a file's name without its ending, or a place, 1, 2, ….
#[derive(Debug, clap::Args)]
pub(super) struct ProblemArguments {
    /// Parameter to estimate, with a start or without; of one model, or of each that uses it. May be repeated.
    #[arg(long, value_name = "[MODEL:]NAME[=START]", required = true)]
    estimate: Vec<String>,
    /// Bounds of an estimated parameter; either end may be left out.
    #[arg(long, value_name = "[MODEL:]NAME=MIN..MAX", allow_hyphen_values = true)]
    bounds: Vec<String>,
    /// Known value of another parameter.
    #[arg(long = "set", value_name = "[MODEL:]NAME=VALUE")]
    set: Vec<String>,
    /// Search an estimated parameter by its logarithm. May be repeated.
    #[arg(long, value_name = "[MODEL:]NAME")]
    log: Vec<String>,
    /// How residuals are weighed.
    #[arg(long, value_enum, default_value_t)]
    weighting: WeightingArgument,
    /// Level of intervals and tests, between 0 and 1.
    #[arg(long, default_value_t = 0.95)]
    confidence: f64,
}

/// A model of several.
pub(super) struct Named<'a> {
    /// Its file.
    pub(super) path: &'a Path,
    /// Its name in reports.
    pub(super) name: String,
    /// Its place, from 1.
    pub(super) place: usize,
}

impl Named<'_> {
    fn is(&self, prefix: &str) -> bool {
        let stem = self.path.file_stem().map(|s| s.to_string_lossy());
        prefix == self.name || prefix == self.place.to_string() || Path::new(prefix) == self.path || stem.is_some_and(|s| s == prefix)
    }
}

/// Names of `paths`: their file names without ending, with a number where that is not one of its own.
pub(super) fn named<'a>(paths: &[&'a Path]) -> Vec<Named<'a>> {
    let stem = |path: &Path| path.file_stem().map_or_else(|| path.display().to_string(), |s| s.to_string_lossy().into_owned());
    let name = |i: usize| {
        let stem_i = stem(paths[i]);
        let alike = paths.iter().filter(|p| stem(p) == stem_i).count();
        if alike > 1 { format!("{stem_i}#{}", i + 1) } else { stem_i }
    };
    paths.iter().enumerate().map(|(i, path)| Named { path, name: name(i), place: i + 1 }).collect()
}

/// The model that an argument is of, if it names one, and the rest of it.
fn split(text: &str) -> (Option<&str>, &str) {
    let end = text.find('=').unwrap_or(text.len());
    match text[..end].rfind(':') {
        Some(colon) => (Some(text[..colon].trim()), &text[colon + 1..]),
        None => (None, text),
    }
}

/// The arguments of `texts` that are of `of`; those that name no model at all with `true`.
fn own<'t>(texts: &'t [String], of: &Named<'_>) -> Vec<(&'t str, bool)> {
    let parts = texts.iter().map(|text| split(text));
    parts.filter(|(prefix, _)| prefix.is_none_or(|p| of.is(p))).map(|(prefix, rest)| (rest, prefix.is_none())).collect()
}

impl ProblemArguments {
    /// The problems of `models` with `trials`.
    pub(super) fn problems(&self, models: &[Named<'_>], trials: &Trials, method: Method) -> Result<Vec<Problem>, Failure> {
        for text in self.estimate.iter().chain(&self.bounds).chain(&self.set).chain(&self.log) {
            if let (Some(prefix), _) = split(text)
                && !models.iter().any(|m| m.is(prefix))
            {
                let names: Vec<&str> = models.iter().map(|m| m.name.as_str()).collect();
                return Err(Failure::with_hint(
                    format!("{text}: there is no model \"{prefix}\""),
                    format!("a model is named by its file, its place from 1, or {}", names.join(", ")),
                ));
            }
        }
        let problems = models.iter().map(|m| self.problem(m, trials, method)).collect::<Result<Vec<_>, _>>()?;
        for text in &self.set {
            let (name, _) = input::binding(split(text).1)?;
            let refusals: Vec<_> = problems.iter().filter_map(|p| p.model.require_parameter(&name).err()).collect();
            if refusals.len() == problems.len()
                && let Some(refusal) = refusals.first()
            {
                return Err(Failure::input_text(format!("--set {text}: {refusal}")));
            }
        }
        for text in &self.estimate {
            let name = estimated(split(text).1)?.name;
            if !problems.iter().any(|p| p.estimate.iter().any(|e| e.name == name)) {
                return Err(Failure::input_text(format!("--estimate {text}: no model uses ${name}")));
            }
        }
        Ok(problems)
    }

    fn problem(&self, of: &Named<'_>, trials: &Trials, method: Method) -> Result<Problem, Failure> {
        let model = input::read_model(of.path)?;
        let uses = parameter_uses(&model);
        let is_used = |name: &str, shared: bool| !shared || uses.contains_key(name);
        let mut estimate: Vec<Estimated> = Vec::new();
        for (text, shared) in own(&self.estimate, of) {
            let found = estimated(text)?;
            if is_used(&found.name, shared) {
                // One for this model alone overrules one for all.
                estimate.retain(|e| e.name != found.name || !shared);
                estimate.push(found);
            }
        }
        for (text, shared) in own(&self.bounds, of) {
            let (name, min, max) = bounds(text)?;
            match estimate.iter_mut().find(|e| e.name == name) {
                Some(e) => (e.min, e.max) = (min, max),
                None if shared => {}
                None => return Err(Failure::input_text(format!("--bounds {text}: {name} is not estimated in {}", of.name))),
            }
        }
        for (text, shared) in own(&self.log, of) {
            let name = parameter_name(text).ok_or_else(|| Failure::input_text(format!("--log {text}: expected a parameter's name")))?;
            match estimate.iter_mut().find(|e| e.name == name) {
                Some(e) => e.transform = crate::fit::Transform::Log,
                None if shared => {}
                None => return Err(Failure::input_text(format!("--log {text}: {name} is not estimated in {}", of.name))),
            }
        }
        let mut assumed = crate::model::Bindings::new();
        for (text, shared) in own(&self.set, of) {
            let (name, value) = input::binding(text)?;
            if is_used(&name, shared) || model.parameters.iter().any(|p| p.name == name) {
                assumed.set(name, value);
            }
        }
        // Held at a value for this model alone, although others estimate it.
        estimate.retain(|e| assumed.get(&e.name).is_none());
        let weighting = self.weighting.weighting();
        Ok(Problem { model, estimate, assumed, trials: trials.clone(), weighting, confidence: self.confidence, method })
    }
}

/// The trials in a file.
pub(super) fn read_trials(path: &Path) -> Result<Trials, Failure> {
    fit::read_trials(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_before_a_colon_is_split_off() {
        assert_eq!(split("d1=2"), (None, "d1=2"));
        assert_eq!(split("small:d1=2"), (Some("small"), "d1=2"));
        assert_eq!(split("C:/m.lqnx:d1"), (Some("C:/m.lqnx"), "d1"));
        assert_eq!(split("x=a:b"), (None, "x=a:b"));
    }

    #[test]
    fn models_of_one_name_are_numbered() {
        let paths = [Path::new("a/m.lqnx"), Path::new("b/m.lqnx"), Path::new("n.lqn")];
        let names: Vec<String> = named(&paths).into_iter().map(|n| n.name).collect();
        assert_eq!(names, ["m#1", "m#2", "n"]);
        assert!(named(&paths)[1].is("2") && named(&paths)[1].is("b/m.lqnx") && !named(&paths)[1].is("1"));
    }
}
