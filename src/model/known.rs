//! Names of parameters that a model does not have, and those that may have been meant.

use indexmap::IndexSet;

use super::{Expression, Model};

/// Most names that an error lists.
const MOST_LISTED: usize = 12;

/// A value for a parameter that the model neither uses nor defines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model has no parameter ${name} (it has {})", listed(.known))]
pub struct UnknownParameter {
    /// The name, without `$`.
    pub name: String,
    /// The parameters of the model, the most alike first.
    pub known: Vec<String>,
}

fn listed(known: &[String]) -> String {
    if known.is_empty() {
        return "none".into();
    }
    let mut names: Vec<String> = known.iter().take(MOST_LISTED).map(|name| format!("${name}")).collect();
    if known.len() > MOST_LISTED {
        names.push(format!("and {} more", known.len() - MOST_LISTED));
    }
    names.join(", ")
}

impl Model {
    /// Checks that the model uses or defines a parameter `name`.
    ///
    /// # Errors
    /// [`UnknownParameter`] with the names that there are.
    pub fn require_parameter(&self, name: &str) -> Result<(), UnknownParameter> {
        let mut known: IndexSet<String> = self.parameter_names().into_iter().collect();
        for parameter in &self.parameters {
            known.insert(parameter.name.clone());
            known.extend(parameter.value.expressions().iter().filter_map(|text| Expression::parse(text).ok()).flat_map(|e| e.parameters()));
        }
        if known.contains(name) {
            return Ok(());
        }
        let mut known: Vec<String> = known.into_iter().collect();
        let wanted = name.to_lowercase();
        known.sort_by_cached_key(|k| strsim::levenshtein(&k.to_lowercase(), &wanted));
        Err(UnknownParameter { name: name.to_owned(), known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Number, Parameter, ParameterValue, Task};

    #[test]
    fn unknown_names_are_said_with_the_nearest_first() {
        let mut task = Task::new("t", "p");
        task.think_time = Number::Parameter("think".into());
        task.multiplicity = Number::Parameter("users".into());
        let value = ParameterValue::Expression("2 * $base".into());
        let mut model = Model { tasks: vec![task], parameters: vec![Parameter { name: "think".into(), value }], ..Model::default() };
        for name in ["think", "users", "base"] {
            assert_eq!(model.require_parameter(name), Ok(()), "{name}");
        }
        let error = model.require_parameter("USRES").unwrap_err();
        assert_eq!(error.known[0], "users");
        assert!(error.to_string().starts_with("the model has no parameter $USRES (it has $users, "), "{error}");
        model.tasks.clear();
        model.parameters.clear();
        assert_eq!(model.require_parameter("n").unwrap_err().to_string(), "the model has no parameter $n (it has none)");
    }
}
