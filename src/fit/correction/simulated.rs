//! Measures by simulation, to a precision asked of every one of them.

use serde::{Deserialize, Serialize};

use crate::{
    fit::inference::distribution::normal_two_sided,
    model::{Bindings, Measure, Model},
    solve::{SimulateOptions, SolveError, simulate::measure},
};

/// Most runs, each longer than the last, to reach a precision.
const MOST_RUNS: usize = 4;

/// By how much more than needed a run is lengthened: its half-width is itself uncertain.
const MARGIN: f64 = 1.3;

/// Most that a run is longer than the last.
const MOST_LONGER: f64 = 100.0;

/// How many times as long a run must be to be worth its time.
const WORTH_A_RUN: f64 = 1.2;

/// Share of the events that may be used up by a run of a given time: replications differ, and one without events left is cut short.
const AFFORDED: f64 = 0.95;

/// Size of a value, relative to the largest of its kind, below which no relative precision is asked of it.
const NEAR_ZERO: f64 = 1e-3;

/// How much coarser than asked a simulation may be before that is remarked, or lengthened: how long it takes is estimated.
pub(super) const SHORT_OF: f64 = 1.5;

/// How to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimulationOptions {
    /// Relative half-width to reach for every measure, > 0.
    pub precision: f64,
    /// Level of the half-widths, in (0, 1).
    pub confidence: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Independent replications.
    pub replications: usize,
    /// Most events of one operating point.
    pub max_events: u64,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self { precision: 0.01, confidence: 0.95, seed: 1, replications: 4, max_events: 40_000_000 }
    }
}

impl SimulationOptions {
    /// The first option that cannot be used, its value, and what was expected.
    #[expect(clippy::cast_precision_loss, reason = "for an error text")]
    pub(crate) fn defect(&self) -> Option<(&'static str, f64, &'static str)> {
        match self {
            Self { precision, .. } if !(*precision > 0.0 && *precision < 1.0) => {
                Some(("the precision of a simulation", *precision, "a number between 0 and 1"))
            }
            Self { confidence, .. } if !(*confidence > 0.0 && *confidence < 1.0) => {
                Some(("the confidence of a simulation", *confidence, "a number between 0 and 1"))
            }
            Self { replications, .. } if !(1..=1000).contains(replications) => {
                Some(("the number of replications", *replications as f64, "1 to 1000"))
            }
            Self { max_events: 0, .. } => Some(("the number of events", 0.0, "1 or more")),
            _ => None,
        }
    }
}

/// What a simulation found.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Means, `(n_measures)`.
    pub values: Vec<f64>,
    /// Half-widths, `(n_measures)`; `None` where there were too few batches.
    pub half_widths: Vec<Option<f64>>,
    /// What each batch adds to the errors of the means, `(n_measures)` of `(n_batches)` as [`crate::solve::simulate::Measured::deviations`];
    /// empty where there were too few batches.
    pub deviations: Vec<Vec<f64>>,
    /// Model time of each replication, warm-up included: what gives the same length again.
    pub run_time: f64,
    /// Largest relative half-width; infinite where a measure has none.
    pub precision: f64,
    /// Events of all replications.
    pub events: u64,
}

impl Simulated {
    /// The run time of a replication that should have half-widths of `precision`, as far as `max_events` allow; none where that is hardly
    /// longer.
    #[expect(clippy::cast_precision_loss, reason = "counts of events, for a ratio")]
    fn longer(&self, precision: f64, max_events: u64) -> Option<f64> {
        let wanted = (MARGIN * (self.precision / precision).powi(2)).min(MOST_LONGER);
        let afforded = AFFORDED * max_events as f64 / self.events.max(1) as f64;
        Some(wanted.min(afforded)).filter(|times| *times > WORTH_A_RUN && self.run_time > 0.0).map(|times| self.run_time * times)
    }
}

/// Simulates `model` at `values` until every measure has the precision asked, or the events are used up; for a model time of `run_time`
/// a replication where that is given.
///
/// # Errors
/// As [`measure`].
pub fn simulated(
    model: &Model,
    values: &Bindings,
    measures: &[Measure],
    options: &SimulationOptions,
    run_time: Option<f64>,
) -> Result<Simulated, SolveError> {
    let mut how = SimulateOptions {
        seed: options.seed,
        confidence: options.confidence,
        run_time,
        precision: if run_time.is_none() { Some(options.precision) } else { None },
        max_events: options.max_events,
        replications: options.replications,
        ..SimulateOptions::default()
    };
    how.check()?;
    let quantile = normal_two_sided(options.confidence).unwrap_or(f64::NAN);
    let mut runs = 0;
    loop {
        runs += 1;
        let found = measure(model, values, &how, measures)?;
        let is_observed = found.values.iter().all(Option::is_some);
        let values: Vec<f64> = found.values.iter().map(|v| v.unwrap_or(0.0)).collect();
        let half_widths: Vec<Option<f64>> = found.std_errors().iter().map(|s| s.map(|s| quantile * s)).collect();
        let largest = values.iter().map(|v| v.abs()).fold(0.0, f64::max);
        let relative = |(v, w): (&f64, &Option<f64>)| w.map_or(f64::INFINITY, |w| w / v.abs());
        let counted = values.iter().zip(&half_widths).filter(|(v, _)| v.abs() > NEAR_ZERO * largest);
        // Where nothing counts, nothing happened in the run.
        let precision = counted.map(relative).reduce(f64::max).filter(|_| is_observed).unwrap_or(f64::INFINITY);
        let observed = found.observed(measures);
        let deviations = found.deviations.into_iter().map(Option::unwrap_or_default).collect();
        let simulated = Simulated { values, half_widths, deviations, run_time: found.run_time, precision, events: found.events };
        let longer = simulated.longer(options.precision, options.max_events);
        if run_time.is_some() || precision <= options.precision || runs >= MOST_RUNS || longer.is_none() {
            return observed.map(|_| simulated);
        }
        (how.precision, how.run_time) = (None, longer);
    }
}

/// The simulations of operating points, of the same length each time: with the same random numbers they differ by the parameters alone.
#[derive(Default)]
pub(super) struct Simulations {
    lengths: Vec<Length>,
    /// Largest relative half-width of any.
    pub(super) precision: f64,
}

/// How long an operating point is simulated.
struct Length {
    /// Model time of each replication.
    run_time: f64,
    /// Relative half-width that the first was long enough for.
    precision: f64,
}

impl Simulations {
    /// The operating point at `place` simulated as long as before; where that is too short by now, for longer.
    ///
    /// # Errors
    /// As [`simulated`].
    pub(super) fn of(
        &mut self,
        place: usize,
        model: &Model,
        values: &Bindings,
        measures: &[Measure],
        how: &SimulationOptions,
    ) -> Result<Simulated, SolveError> {
        let of_length = |run_time| simulated(model, values, measures, how, run_time);
        let found = match self.lengths.get_mut(place) {
            None => {
                let found = of_length(None)?;
                self.lengths.push(Length { run_time: found.run_time, precision: found.precision });
                found
            }
            Some(length) => match of_length(Some(length.run_time)) {
                Err(SolveError::NotObserved { .. }) => {
                    let found = of_length(None)?;
                    length.run_time = found.run_time;
                    found
                }
                other => {
                    let (found, reached) = (other?, length.precision.max(how.precision));
                    match found.longer(reached, how.max_events).filter(|_| found.precision > SHORT_OF * reached) {
                        None => found,
                        Some(run_time) => {
                            length.run_time = run_time;
                            of_length(Some(run_time))?
                        }
                    }
                }
            },
        };
        self.precision = self.precision.max(found.precision);
        Ok(found)
    }
}
