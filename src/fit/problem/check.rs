//! The checks that a problem must pass before anything is solved.

use std::collections::HashSet;

use super::{Problem, ProblemError, Transform, Weighting, parameter_uses::parameter_uses};
use crate::{
    model::{Bindings, Severity},
    solve,
};

impl Problem {
    /// Checks everything that can be checked without solving the model.
    ///
    /// # Errors
    /// The first [`ProblemError`] found.
    pub fn check(&self) -> Result<(), ProblemError> {
        self.trials.check()?;
        self.check_plan()?;
        let (n_obs, n_params) = (self.n_observations() + self.priors().count(), self.estimate.len());
        if n_obs < n_params { Err(ProblemError::TooFewMeasurements { n_obs, n_params }) } else { self.check_replicates() }
    }

    /// Checks that every measure was taken twice at an operating point, where errors are to be those of replicates.
    fn check_replicates(&self) -> Result<(), ProblemError> {
        if self.weighting != Weighting::Replicates {
            return Ok(());
        }
        let groups = self.trials.replicates();
        let is_repeated = |measure: usize| {
            let n_of = |group: &Vec<usize>| {
                group.iter().filter(|&&t| self.trials.trials[t].measured.get(measure).is_some_and(Option::is_some)).count()
            };
            groups.iter().any(|group| n_of(group) > 1)
        };
        if (0..self.trials.measures.len()).all(is_repeated) { Ok(()) } else { Err(ProblemError::NoReplicates) }
    }

    /// As [`Problem::check`] for trials that are planned: they need not have values.
    ///
    /// # Errors
    /// The first [`ProblemError`] found.
    pub fn check_plan(&self) -> Result<(), ProblemError> {
        self.trials.check_plan()?;
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(ProblemError::Confidence(self.confidence));
        }
        self.method.check()?;
        self.check_names()?;
        self.check_ranges()?;
        self.check_whole_numbers()?;
        self.check_scales()?;
        for measure in &self.trials.measures {
            solve::measure::check(&self.model, measure)?;
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), ProblemError> {
        let uses = parameter_uses(&self.model);
        let available: Vec<String> = uses.keys().cloned().collect();
        if self.estimate.is_empty() {
            return Err(ProblemError::NothingToEstimate { available });
        }
        let controlled = self.trials.controlled_names();
        let not_in_model = |part, name: &str| ProblemError::NotInModel { part, name: name.to_owned(), available: available.clone() };
        let is_defined = |name: &str| self.model.parameters.iter().any(|p| p.name == name);
        for (index, estimated) in self.estimate.iter().enumerate() {
            let name = estimated.name.as_str();
            if !uses.contains_key(name) {
                return Err(not_in_model("estimated", name));
            }
            if self.estimate[..index].iter().any(|e| e.name == name) {
                return Err(ProblemError::EstimatedTwice { name: name.to_owned() });
            }
            if controlled.contains(&name) {
                return Err(ProblemError::TwoParts { name: name.to_owned(), first: "estimated", second: "controlled by the trials" });
            }
            if self.assumed.get(name).is_some() {
                return Err(ProblemError::TwoParts { name: name.to_owned(), first: "estimated", second: "given a value" });
            }
        }
        if let Some(name) = controlled.iter().find(|n| !uses.contains_key(**n)) {
            return Err(not_in_model("controlled", name));
        }
        for (name, value) in self.assumed.iter() {
            if !uses.contains_key(name) && !is_defined(name) {
                return Err(not_in_model("assumed", name));
            }
            if controlled.contains(&name) {
                return Err(ProblemError::TwoParts { name: name.to_owned(), first: "given a value", second: "controlled by the trials" });
            }
            if !value.is_finite() {
                return Err(ProblemError::Assumed { name: name.to_owned(), value });
            }
        }
        self.check_bound(&controlled, &available, is_defined)?;
        self.check_controlled(&controlled)
    }

    /// Checks that the model can have the controlled values, each by itself and those of a trial together.
    fn check_controlled(&self, names: &[&str]) -> Result<(), ProblemError> {
        if let Some(reason) = self.first_defect(&self.assumed) {
            return Err(ProblemError::AssumedValue { reason });
        }
        let mut seen = HashSet::new();
        for (index, trial) in self.trials.trials.iter().enumerate() {
            let refused = |values: &Bindings| {
                self.first_defect(values).map(|reason| {
                    let column = values.iter().map(|(name, _)| format!("${name}")).collect::<Vec<_>>().join(", ");
                    ProblemError::ControlledValue { row: index + 1, trial: trial.id.clone(), column, reason }
                })
            };
            for name in names {
                let value = trial.controlled.get(name).unwrap_or(0.0);
                if seen.insert((*name, value.to_bits()))
                    && let Some(error) = refused(&[((*name).to_owned(), value)].into_iter().collect())
                {
                    return Err(error);
                }
            }
            if let (true, Some(error)) = (names.len() > 1, refused(&trial.controlled)) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The first thing that is wrong with the model under these values and is not wrong without them.
    fn first_defect(&self, values: &Bindings) -> Option<String> {
        let of = |values: &Bindings| self.model.validate_bound(values).into_iter().filter(|d| d.kind.severity() == Severity::Error);
        let own: Vec<_> = of(&Bindings::new()).collect();
        of(values).find(|defect| !own.contains(defect)).map(|defect| defect.to_string())
    }

    fn check_bound(&self, controlled: &[&str], used: &[String], is_defined: impl Fn(&str) -> bool) -> Result<(), ProblemError> {
        for name in controlled {
            if let Some(trial) = self.trials.trials.iter().find(|t| t.controlled.get(name).is_none()) {
                return Err(ProblemError::ControlledMissing { trial: trial.id.clone(), name: (*name).to_owned() });
            }
        }
        let is_bound = |name: &String| {
            controlled.contains(&name.as_str())
                || self.assumed.get(name).is_some()
                || self.estimate.iter().any(|e| e.name == *name)
                || is_defined(name)
        };
        match used.iter().find(|name| !is_bound(name)) {
            Some(name) => Err(ProblemError::Unbound { name: name.clone() }),
            None => Ok(()),
        }
    }

    fn check_ranges(&self) -> Result<(), ProblemError> {
        for (estimated, (min, max)) in self.estimate.iter().zip(self.bounds()) {
            let name = estimated.name.clone();
            let is_number = |bound: Option<f64>| bound.is_none_or(|b| !b.is_nan());
            if !(min < max && is_number(estimated.min) && is_number(estimated.max)) {
                return Err(ProblemError::Bounds { name, min: estimated.min.unwrap_or(min), max: estimated.max.unwrap_or(max) });
            }
            if let Some(start) = estimated.start.filter(|s| !(s.is_finite() && min <= *s && *s <= max)) {
                return Err(ProblemError::Start { name, start, min, max });
            }
        }
        Ok(())
    }

    fn check_whole_numbers(&self) -> Result<(), ProblemError> {
        for (estimated, _) in self.estimate.iter().zip(self.whole_numbers()).filter(|(_, whole)| *whole) {
            let parts = [("start", estimated.start), ("lower bound", estimated.min), ("upper bound", estimated.max)];
            if let Some((part, value)) =
                parts.into_iter().find_map(|(part, v)| Some((part, v.filter(|v| v.is_finite() && v.fract() != 0.0)?)))
            {
                return Err(ProblemError::NotWhole { name: estimated.name.clone(), part, value });
            }
        }
        Ok(())
    }

    fn check_scales(&self) -> Result<(), ProblemError> {
        let (whole, bounds) = (self.whole_numbers(), self.bounds());
        for (j, estimated) in self.estimate.iter().enumerate() {
            let name = || estimated.name.clone();
            if let Some(prior) = estimated.prior.filter(|p| !p.is_range()) {
                return Err(ProblemError::Prior { name: name(), prior });
            }
            if estimated.transform == Transform::Log {
                let reason = match () {
                    () if whole[j] => "it counts servers, threads or copies",
                    () if bounds[j].0 < 0.0 => "it may be negative; give it a lower bound of 0 or more",
                    () if estimated.start.is_some_and(|s| s <= 0.0) => "its start must be above 0",
                    () => continue,
                };
                return Err(ProblemError::Logarithm { name: name(), reason });
            }
        }
        Ok(())
    }
}
