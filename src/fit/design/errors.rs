//! How well each measure can be measured at an operating point where it has not been yet.
//!
//! | the trials' weights come from | standard deviation at a value `h` |
//! |---|---|
//! | standard errors, covariances | the trials' relative errors, interpolated between their operating points as in predictions, times the size of `h`; never below their smallest error |
//! | anything else | that of the fit, the same everywhere |
//! | nothing: a measure that no trial has | the relative error asked for, or the root mean square of those of the other measures, times the size of `h` |
//!
//! A relative error is at least a thousandth of what it is for the largest value of the same unit (times, throughputs, utilizations): nobody
//! measures a wait of 10⁻¹² s beside a response of 1 s to some per cent.
//! All scaled by the mean square error where that is what the fit knows the scale by. A trial of length `ℓ` has `1 / ℓ` of the
//! variance. Correlations are the mean of those that the trials give.

use indexmap::IndexMap;
use nalgebra::DMatrix;

use crate::{
    fit::{
        problem::{Problem, trials::Trial},
        report::{
            Fit,
            new_errors::{Stated, StatedErrors},
        },
        search::weights::{WeightSource, same_column},
    },
    model::{Bindings, Measure},
};

/// Relative error of a measure where nothing at all is known.
const RELATIVE_ERROR: f64 = 0.05;

/// Smallest error, relative to the largest predicted value, that is believed.
const LEAST_RELATIVE: f64 = 1e-9;

/// Share of the largest value below which an error is no smaller.
const SMALL: f64 = 1e-3;

#[derive(Clone, Debug, PartialEq)]
enum Deviation {
    Constant(f64),
    Relative { share: f64, floor: f64 },
    Stated { errors: StatedErrors, floor: f64 },
}

/// Errors of one trial of length 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MeasurementErrors {
    by_measure: IndexMap<Measure, Deviation>,
    /// Correlations of the measures, `(n_measures, n_measures)`, in the order of `by_measure`; absent where none are given.
    correlation: Option<DMatrix<f64>>,
    /// Relative error of other measures.
    pub(super) otherwise: f64,
    /// Largest values known, by unit.
    largest: IndexMap<Unit, f64>,
}

/// What makes values of measures comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Unit {
    Time,
    Throughput,
    Utilization,
}

impl Unit {
    fn of(measure: &Measure) -> Self {
        match measure {
            Measure::Throughput(_) => Self::Throughput,
            Measure::Utilization(_) => Self::Utilization,
            Measure::ResponseTime(_) | Measure::ServiceTime { .. } | Measure::Waiting { .. } | Measure::ResidenceTime(_) => Self::Time,
        }
    }

    fn largest<'a>(sizes: impl Iterator<Item = (&'a Measure, f64)>) -> IndexMap<Self, f64> {
        let mut found = IndexMap::new();
        for (measure, size) in sizes {
            let most = found.entry(Self::of(measure)).or_insert(0.0_f64);
            *most = most.max(size);
        }
        found
    }
}

impl MeasurementErrors {
    /// As the trials of a fit had them; other measures have the relative error `asked`.
    pub(super) fn of_fit(fit: &Fit, asked: Option<f64>) -> Self {
        let problem = &fit.problem;
        let duration = mean_duration(problem);
        let mut by_measure: IndexMap<Measure, Deviation> = IndexMap::new();
        let (mut relative, mut sizes) = (Vec::new(), Vec::new());
        for (k, (measure, found)) in fit.weighting.measures.iter().enumerate() {
            let Some(deviation) = found.deviation else {
                // What does not count because it has the values of another is measured as well as that.
                let same = same_column(problem, k).and_then(|same| by_measure.get(same).cloned());
                by_measure.extend(same.map(|same| (measure.clone(), same)));
                continue;
            };
            let given: Vec<Stated> = cells(problem, k, duration)
                .filter_map(|(t, trial, scale)| {
                    let std_error = trial.error_covariance(&[k]).ok()?[(0, 0)].sqrt() * scale;
                    let predicted = fit.predicted.get(t)?.get(measure)?.abs();
                    Some(Stated { controlled: trial.controlled.clone(), deviation: std_error, predicted })
                })
                .collect();
            let own = matches!(found.weighted_by, WeightSource::StandardErrors | WeightSource::Covariances) && !given.is_empty();
            let size = root_mean_square(fit.predicted.iter().filter_map(|row| row.get(measure).copied()));
            sizes.push((measure, size));
            // The fitted scale of the errors: what the report says of a typical one over what the trials say.
            let scale = deviation / root_mean_square(given.iter().map(|s| s.deviation));
            let floor = scale * given.iter().map(|s| s.deviation).fold(f64::INFINITY, f64::min);
            let share = scale * root_mean_square(given.iter().map(|s| s.deviation / s.predicted));
            let stated = Some(given).filter(|given| own && given.iter().all(|s| s.predicted > 0.0));
            let entry = match stated.and_then(|given| StatedErrors::of(given, deviation)) {
                Some(errors) => {
                    relative.push(share);
                    Deviation::Stated { errors, floor }
                }
                None => {
                    relative.extend(Some(deviation / size).filter(|_| size > 0.0));
                    Deviation::Constant(deviation.max(LEAST_RELATIVE * size))
                }
            };
            by_measure.insert(measure.clone(), entry);
        }
        let typical = if relative.is_empty() { RELATIVE_ERROR } else { root_mean_square(relative.into_iter()) };
        let correlation = correlation(problem, by_measure.keys(), duration);
        Self { by_measure, correlation, otherwise: asked.unwrap_or(typical), largest: Unit::largest(sizes.into_iter()) }
    }

    /// The same relative error for every measure; values near zero are taken to be known as well as a thousandth of `size`.
    pub(super) fn relative(sizes: &IndexMap<Measure, f64>, share: f64) -> Self {
        let entry = |(m, size): (&Measure, &f64)| (m.clone(), Deviation::Relative { share, floor: SMALL * share * size });
        let largest = Unit::largest(sizes.iter().map(|(m, size)| (m, *size)));
        Self { by_measure: sizes.iter().map(entry).collect(), correlation: None, otherwise: share, largest }
    }

    /// Whether the errors of a trial are known to depend on each other.
    pub(super) fn are_correlated(&self) -> bool {
        self.correlation.is_some()
    }

    /// Whether something is known of the errors of `measure`.
    pub(super) fn knows(&self, measure: &Measure) -> bool {
        self.by_measure.contains_key(measure)
    }

    /// Standard deviation of `measure` at a predicted `value` at the operating point `at`; 0 where nothing can be said, its value being zero.
    pub(super) fn deviation(&self, measure: &Measure, value: f64, at: &Bindings) -> f64 {
        let small = SMALL * self.largest.get(&Unit::of(measure)).copied().unwrap_or(0.0);
        match self.by_measure.get(measure) {
            Some(Deviation::Constant(d)) => *d,
            Some(Deviation::Stated { errors, floor }) if value != 0.0 => errors.deviation(at, value.abs().max(small)).max(*floor),
            Some(Deviation::Stated { floor, .. }) => *floor,
            Some(Deviation::Relative { share, floor }) if value != 0.0 => (share * value.abs().max(small)).max(*floor),
            Some(Deviation::Relative { floor, .. }) => *floor,
            None if value != 0.0 => self.otherwise * value.abs().max(small),
            None => 0.0,
        }
    }

    /// Covariance of `measures` at predicted `values` in a trial of length 1 at the operating point `at`; a measure without an error has variance 0.
    pub(super) fn covariance(&self, measures: &[Measure], values: &[f64], at: &Bindings) -> DMatrix<f64> {
        let deviations: Vec<f64> = measures.iter().zip(values).map(|(m, v)| self.deviation(m, *v, at)).collect();
        let position: Vec<Option<usize>> = measures.iter().map(|m| self.by_measure.get_index_of(m)).collect();
        DMatrix::from_fn(measures.len(), measures.len(), |i, j| {
            let correlation = match (&self.correlation, position[i], position[j]) {
                _ if i == j => 1.0,
                (Some(c), Some(a), Some(b)) => c[(a, b)],
                _ => 0.0,
            };
            correlation * deviations[i] * deviations[j]
        })
    }
}

/// Trials that have a value of measure `k`, with their position and what scales their errors to the mean duration.
fn cells(problem: &Problem, k: usize, duration: Option<f64>) -> impl Iterator<Item = (usize, &Trial, f64)> {
    problem.trials.trials.iter().enumerate().filter(move |(_, t)| t.measured.get(k).copied().flatten().is_some()).map(move |(i, t)| {
        let scale = t.duration.zip(duration).map_or(1.0, |(own, mean)| (own / mean).sqrt());
        (i, t, scale)
    })
}

/// Mean duration of the trials of `problem`, where every trial has one: the duration of a trial of length 1.
pub fn mean_duration(problem: &Problem) -> Option<f64> {
    let durations: Option<Vec<f64>> = problem.trials.trials.iter().map(|t| t.duration).collect();
    let durations = durations.filter(|d| !d.is_empty())?;
    Some(durations.iter().sum::<f64>() / f64::from(u32::try_from(durations.len()).unwrap_or(u32::MAX)))
}

/// Mean correlations of the errors within trials; `None` without covariances.
fn correlation<'a>(problem: &Problem, measures: impl Iterator<Item = &'a Measure>, duration: Option<f64>) -> Option<DMatrix<f64>> {
    if !problem.trials.have_covariances() {
        return None;
    }
    let positions: Vec<usize> = measures.filter_map(|m| problem.trials.measures.iter().position(|known| known == m)).collect();
    let n = positions.len();
    let (mut sums, mut counts) = (DMatrix::<f64>::zeros(n, n), DMatrix::<f64>::zeros(n, n));
    for (a, &i) in positions.iter().enumerate() {
        for (b, &j) in positions.iter().enumerate() {
            for (_, trial, _) in cells(problem, i, duration).filter(|(_, t, _)| t.measured.get(j).copied().flatten().is_some()) {
                if let Ok(r) = trial.error_covariance(&[i, j]) {
                    sums[(a, b)] += if a == b { 1.0 } else { r[(0, 1)] / (r[(0, 0)] * r[(1, 1)]).sqrt() };
                    counts[(a, b)] += 1.0;
                }
            }
        }
    }
    Some(DMatrix::from_fn(n, n, |a, b| if a == b { 1.0 } else { sums[(a, b)] / counts[(a, b)].max(1.0) }))
}

fn root_mean_square(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(s, n), v| (s + v * v, n + 1.0));
    if n > 0.0 { (sum / n).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_measures_next_to_nothing_to_some_per_cent() {
        let measure = |text: &str| -> Measure { text.parse().unwrap() };
        let sizes = [("response_time(U)", 2.0), ("utilization(P)", 0.5)].map(|(m, size)| (measure(m), size));
        let errors = MeasurementErrors::relative(&sizes.into_iter().collect(), 0.05);
        for (text, value, expected) in [
            ("response_time(U)", 1.0, 0.05),
            ("waiting(a->b)", 1e-12, 0.05 * 2e-3),
            ("waiting(a->b)", 0.5, 0.025),
            ("utilization(Q)", 1e-9, 0.05 * 0.5e-3),
            ("throughput(U)", 1e-9, 0.05 * 1e-9),
            ("waiting(a->b)", 0.0, 0.0),
        ] {
            let found = errors.deviation(&measure(text), value, &Bindings::new());
            assert!((found - expected).abs() <= 1e-12 * expected, "{text} {value}: {found}");
        }
    }
}
