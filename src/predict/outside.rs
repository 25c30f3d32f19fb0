//! Whether an operating point is outside what was measured: controlled values beyond their ranges, or not measured together; resources that
//! are busier than in any trial.

use super::{
    bands::{Ground, UTILIZATION_MARGIN},
    hull::is_outside,
};
use crate::{
    fit::{Trial, digits::six_digits, utilization::utilizations},
    model::{Bindings, ParameterValue},
    solve::Sensitivities,
};

impl Ground<'_> {
    /// Controlled values outside the ranges of the trials, or, if none is, outside their hull.
    pub(super) fn outside(&self, controlled: &Bindings) -> Vec<String> {
        let trials = &self.fit.problem.trials;
        let remark = |(name, value): (&str, f64)| match trials.controlled_range(name) {
            Some((low, high)) if value < low || value > high => {
                Some(format!("{name} = {value} is outside the measured range {low} to {high}"))
            }
            None if let Some((low, high)) = self.fit.parameters.get(name).and_then(|p| p.lower.zip(p.upper)) => {
                (value < low || value > high).then(|| {
                    format!(
                        "{name} = {value} is outside its interval {} to {}, of what the trials were taken with",
                        six_digits(low),
                        six_digits(high)
                    )
                })
            }
            None if !self.fit.parameters.contains_key(name) && self.value_in_trials(name) != Some(value) => {
                Some(format!("{name} was not varied in the trials"))
            }
            _ => None,
        };
        let mut remarks: Vec<String> = controlled.iter().filter_map(remark).collect();
        if remarks.is_empty() {
            remarks.extend(self.outside_together(controlled));
        }
        remarks
    }

    /// What every trial had of a parameter that none of them sets.
    fn value_in_trials(&self, name: &str) -> Option<f64> {
        let of_model = || self.fit.problem.model.parameters.iter().find(|p| p.name == name);
        self.base.get(name).or_else(|| match of_model()?.value {
            ParameterValue::Number(value) => Some(value),
            _ => None,
        })
    }

    /// Whether controlled values, each of which is within its range, were not measured together: what lies outside the convex hull of
    /// the trials is extrapolated too.
    fn outside_together(&self, controlled: &Bindings) -> Option<String> {
        let trials = &self.fit.problem.trials;
        let varies = |name: &str| trials.controlled_range(name).is_some_and(|(low, high)| low < high);
        let asked: Vec<(&str, f64)> = controlled.iter().filter(|(name, _)| varies(name)).collect();
        let of_trial = |t: &Trial| asked.iter().map(|(name, _)| t.controlled.get(name)).collect::<Option<Vec<f64>>>();
        let points: Vec<Vec<f64>> = trials.trials.iter().filter_map(of_trial).collect();
        let at: Vec<f64> = asked.iter().map(|(_, value)| *value).collect();
        (at.len() > 1 && is_outside(&points, &at)).then(|| {
            let names: Vec<String> = asked.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            format!("{} were not measured together: outside the convex hull of the trials", names.join(" and "))
        })
    }

    /// Resources busier than in any trial.
    pub(super) fn busier(&self, values: &Bindings, solved: &Sensitivities) -> Vec<String> {
        let found = utilizations(&self.fit.problem.model, values, &solved.solution);
        let remark = |(resource, utilization): (&String, &f64)| {
            let largest = self.fit.largest_utilizations.get(resource)?;
            (*utilization > largest + UTILIZATION_MARGIN)
                .then(|| format!("{resource} is {:.0} % busy, in the trials at most {:.0} %", 100.0 * utilization, 100.0 * largest))
        };
        found.iter().filter_map(remark).collect()
    }
}
