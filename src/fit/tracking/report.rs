//! The result of tracking.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{
    change::{Consistency, Whiteness, consistency, cusum, cusum_limit, whiteness},
    jump::jump,
    linear::Gaussian,
    track::{FilteredTrial, Smoothed, Tracker},
};
use crate::{
    fit::{
        digits::four_digits,
        engine::view::Scale,
        inference::distribution::{chi_square_upper_tail, normal_two_sided},
        search::weights::WeightSource,
    },
    model::Measure,
};

/// Tracked parameters. No number in it is NaN or infinite: what does not exist is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Track {
    /// Whether the smoothed track settled.
    pub converged: bool,
    /// Level of intervals and tests, in (0, 1).
    pub confidence: f64,
    /// Whether trials were ordered by their times; else by their rows, one unit of time apart.
    pub timed: bool,
    /// The tracked parameters.
    pub parameters: IndexMap<String, TrackedParameter>,
    /// Trials in the order of time.
    pub trials: Vec<TrackedTrial>,
    /// Errors by measure.
    pub errors: IndexMap<Measure, TrackedErrors>,
    /// Logarithm of the likelihood of the innovations, linearised along the smoothed track; flat where nothing is known at first.
    pub log_likelihood: f64,
    /// Drifts against none, where drifts were estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_test: Option<DriftTest>,
    /// Whether innovations are as large as the filter says.
    pub consistency: Option<Consistency>,
    /// Whether innovations follow one another, by measure.
    pub whiteness: IndexMap<Measure, Whiteness>,
    /// Changes that the walk does not explain.
    pub changes: Vec<Change>,
    /// Why there are no intervals, and no tests; absent where there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_interval: Option<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One tracked parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedParameter {
    /// Standard deviation of its walk over one unit of time, per root of time; relative where `logarithmic`.
    pub drift: f64,
    /// Whether the drift was estimated.
    pub drift_estimated: bool,
    /// Whether it is tracked by its logarithm; else as it is, projected on its bounds.
    pub logarithmic: bool,
    /// The fit to all trials as if it did not drift.
    pub fitted: f64,
}

/// One trial of a track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedTrial {
    /// Its id.
    pub trial: String,
    /// When it was measured, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// Estimates by parameter from this trial and those before; empty until they determine the parameters.
    pub filtered: IndexMap<String, TrackedEstimate>,
    /// Estimates by parameter from all trials.
    pub smoothed: IndexMap<String, TrackedEstimate>,
    /// The trial against those before; absent until they determine the parameters, and where no error can be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub innovation: Option<TrialInnovation>,
}

/// An estimate at one trial; without standard error and interval where no error can be estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedEstimate {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error (of the parameter itself, to first order, where it is tracked by its logarithm).
    pub std_error: Option<f64>,
    /// Lower end of its interval.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
}

/// One trial against those before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialInnovation {
    /// Normalised innovation squared.
    pub squared: f64,
    /// Its degrees of freedom.
    pub dof: usize,
    /// Probability of one as large.
    pub p_value: f64,
    /// The same for the running window that ends here; absent until it is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_p_value: Option<f64>,
    /// By measure.
    pub measures: IndexMap<Measure, MeasureInnovation>,
}

/// One measured value against what came before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureInnovation {
    /// The measured value.
    pub measured: f64,
    /// What the filter predicted.
    pub predicted: f64,
    /// The difference in its standard deviations.
    pub standardised: f64,
}

/// How a measure's errors were taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackedErrors {
    /// Where they come from.
    pub weighted_by: WeightSource,
    /// Factor by which standard errors were multiplied; absent where they are taken as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Typical standard deviation of one measurement.
    pub deviation: f64,
}

/// Drifts against none, by the ratio of likelihoods.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriftTest {
    /// Twice the difference of the logarithms, ≥ 0.
    pub statistic: f64,
    /// Drifts that were estimated.
    pub n_drifts: usize,
    /// Probability of a ratio as large without drift; at most this where several drifts were estimated.
    pub p_value: f64,
}

/// A change that the walk does not explain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// Parameters jumped into a trial.
    Jump {
        /// The first trial after the jump.
        trial: String,
        /// The parameter that shows it most.
        parameter: String,
        /// Size of its jump; a factor where it is tracked by its logarithm.
        size: f64,
        /// Standard error of the size, on the scale of the track: of the factor's logarithm where it is tracked by that.
        std_error: f64,
        /// Lower end of the interval of the size, a factor likewise.
        #[serde(default)]
        lower: Option<f64>,
        /// Upper end.
        #[serde(default)]
        upper: Option<f64>,
        /// Whether the parameter is tracked by its logarithm, and the size is a factor; else it is a difference.
        #[serde(default)]
        logarithmic: bool,
        /// Probability of as much evidence in any trial without a jump.
        p_value: f64,
        /// Whether parameters that stay but for the jump explain the trials clearly better than drift.
        instead_of_drift: bool,
    },
    /// A measure moved away from what the filter predicts, for good.
    Moved {
        /// The measure.
        measure: Measure,
        /// Trial at which it began.
        from_trial: String,
        /// Trial at which it was noticed.
        noticed_at: String,
        /// Whether it rose.
        rose: bool,
        /// Limit of the sum that was crossed, in standard deviations.
        limit: f64,
    },
    /// One trial that does not belong to those before.
    Outlying {
        /// The trial.
        trial: String,
        /// Probability of as large an innovation in any trial.
        p_value: f64,
    },
}

struct Assembly<'a> {
    tracker: &'a Tracker<'a>,
    smoothed: &'a Smoothed,
    filtered: &'a [FilteredTrial],
    quantile: f64,
    /// Why there are no intervals.
    no_interval: Option<String>,
}

pub(super) fn assemble(tracker: &Tracker<'_>, smoothed: &Smoothed, filtered: &[FilteredTrial]) -> Track {
    let confidence = tracker.problem.confidence;
    let quantile = normal_two_sided(confidence).unwrap_or(f64::MAX);
    let a = Assembly { tracker, smoothed, filtered, quantile, no_interval: tracker.no_error_left() };
    let innovations: Vec<(f64, usize)> = filtered.iter().filter_map(|f| f.innovation.as_ref().map(|i| (i.squared, i.dof))).collect();
    let tested = a.no_interval.is_none();
    let mut track = Track {
        converged: smoothed.converged,
        confidence,
        timed: tracker.problem.trials.trials.iter().any(|t| t.time.is_some()),
        parameters: a.parameters(),
        trials: (0..filtered.len()).map(|place| a.trial(place)).collect(),
        errors: a.errors(),
        log_likelihood: smoothed.noise.log_likelihood,
        drift_test: a.drift_test().filter(|_| tested),
        consistency: consistency(&innovations, confidence).filter(|_| tested),
        whiteness: a
            .series()
            .into_iter()
            .filter_map(|(m, s)| Some((m, whiteness(&s.iter().map(|(_, e)| *e).collect::<Vec<_>>())?)))
            .collect(),
        changes: if tested { a.changes() } else { Vec::new() },
        no_interval: a.no_interval.clone(),
        notes: Vec::new(),
    };
    track.notes = a.notes(&track);
    track
}

impl Assembly<'_> {
    fn names(&self) -> Vec<String> {
        self.tracker.problem.estimated_names()
    }

    fn id(&self, place: usize) -> String {
        self.tracker.problem.trials.trials[self.tracker.order[place]].id.clone()
    }

    fn parameters(&self) -> IndexMap<String, TrackedParameter> {
        let estimated = self.tracker.estimated_drifts();
        let of = |(j, (name, fitted)): (usize, (&str, f64))| {
            let drift = self.smoothed.noise.noise.drifts[j];
            let logarithmic = self.tracker.scales[j] == Scale::Log;
            (name.to_owned(), TrackedParameter { drift, drift_estimated: estimated.contains(&j), logarithmic, fitted })
        };
        self.tracker.fit.estimates().enumerate().map(of).collect()
    }

    fn estimates(&self, gaussian: &Gaussian) -> IndexMap<String, TrackedEstimate> {
        let mean = self.tracker.clamped(&gaussian.mean);
        let of = |(j, name): (usize, String)| {
            let (scale, (low, high)) = (self.tracker.scales[j], self.tracker.bounds[j]);
            let deviation = gaussian.covariance[(j, j)].max(0.0).sqrt();
            let known = |value: f64| Some(value).filter(|_| self.no_interval.is_none());
            let end = |sign: f64| known(scale.from((mean[j] + sign * self.quantile * deviation).clamp(low, high)));
            let estimate = scale.from(mean[j]);
            (name, TrackedEstimate { estimate, std_error: known(deviation * scale.slope(estimate)), lower: end(-1.0), upper: end(1.0) })
        };
        self.names().into_iter().enumerate().map(of).collect()
    }

    fn trial(&self, place: usize) -> TrackedTrial {
        let filtered = &self.filtered[place];
        TrackedTrial {
            trial: self.id(place),
            time: self.tracker.problem.trials.trials[self.tracker.order[place]].time,
            filtered: filtered.filtered.as_ref().map(|g| self.estimates(g)).unwrap_or_default(),
            smoothed: self.estimates(&self.smoothed.pass.smoothed[place]),
            innovation: self.innovation(place).filter(|_| self.no_interval.is_none()),
        }
    }

    fn innovation(&self, place: usize) -> Option<TrialInnovation> {
        let innovation = self.filtered[place].innovation.as_ref()?;
        let trials = &self.tracker.problem.trials;
        let measured = &trials.trials[self.tracker.order[place]].measured;
        let of = |(k, standardised): &(usize, f64)| {
            let measured = measured.get(*k).copied().flatten()?.value;
            Some((
                trials.measures[*k].clone(),
                MeasureInnovation { measured, predicted: innovation.predicted[*k], standardised: *standardised },
            ))
        };
        Some(TrialInnovation {
            squared: innovation.squared,
            dof: innovation.dof,
            p_value: chi_square_upper_tail(innovation.squared, innovation.dof)?,
            window_p_value: self.window(place),
            measures: innovation.standardised.iter().filter_map(of).collect(),
        })
    }

    /// The running window that ends at `place`.
    fn window(&self, place: usize) -> Option<f64> {
        let last: Vec<(f64, usize)> = self.filtered[..=place]
            .iter()
            .rev()
            .filter_map(|f| f.innovation.as_ref().map(|i| (i.squared, i.dof)))
            .take(self.tracker.options.window)
            .collect();
        let full = last.len() == self.tracker.options.window;
        full.then(|| chi_square_upper_tail(last.iter().map(|l| l.0).sum(), last.iter().map(|l| l.1).sum())).flatten()
    }

    fn errors(&self) -> IndexMap<Measure, TrackedErrors> {
        let measures = self.tracker.problem.trials.measures.iter().enumerate();
        let of = |(k, measure): (usize, &Measure)| {
            let factor = self.tracker.factor_of(k).map(|f| self.smoothed.noise.noise.factors[f]);
            let (weighted_by, deviation) = self.tracker.error(k);
            (measure.clone(), TrackedErrors { weighted_by, factor, deviation: deviation * factor.unwrap_or(1.0) })
        };
        measures.map(of).collect()
    }

    fn drift_test(&self) -> Option<DriftTest> {
        let n_drifts = self.tracker.estimated_drifts().len();
        let statistic = (2.0 * (self.smoothed.noise.log_likelihood - self.smoothed.noise.without_drift?)).max(0.0);
        let tail = chi_square_upper_tail(statistic, n_drifts)?;
        let p_value = if statistic == 0.0 {
            1.0
        } else if n_drifts == 1 {
            0.5 * tail
        } else {
            tail
        };
        Some(DriftTest { statistic, n_drifts, p_value })
    }

    /// Standardised innovations by measure: place and value.
    fn series(&self) -> IndexMap<Measure, Vec<(usize, f64)>> {
        let mut series: IndexMap<Measure, Vec<(usize, f64)>> = IndexMap::new();
        for (place, filtered) in self.filtered.iter().enumerate() {
            for (k, e) in filtered.innovation.iter().flat_map(|i| &i.standardised) {
                series.entry(self.tracker.problem.trials.measures[*k].clone()).or_default().push((place, *e));
            }
        }
        series
    }

    fn changes(&self) -> Vec<Change> {
        let alpha = 1.0 - self.tracker.problem.confidence;
        let mut changes: Vec<Change> = jump(self.tracker, self.smoothed, alpha, self.quantile).into_iter().collect();
        changes.extend(self.moved(alpha));
        let tested: Vec<(usize, f64)> = (0..self.filtered.len()).filter_map(|p| Some((p, self.innovation(p)?.p_value))).collect();
        let count = f64::from(u32::try_from(tested.len()).unwrap_or(u32::MAX));
        let outlying = tested.into_iter().map(|(p, value)| (p, (value * count).min(1.0))).filter(|(_, p_value)| *p_value < alpha);
        changes.extend(outlying.map(|(place, p_value)| Change::Outlying { trial: self.id(place), p_value }));
        changes
    }

    fn moved(&self, alpha: f64) -> Vec<Change> {
        let series = self.series();
        let limit = cusum_limit(self.filtered.len(), series.len(), alpha);
        let of = |(measure, places): (Measure, Vec<(usize, f64)>)| {
            let alarm = cusum(&places.iter().map(|(_, e)| *e).collect::<Vec<_>>(), limit)?;
            let id = |k: usize| self.id(places[k].0);
            Some(Change::Moved { measure, from_trial: id(alarm.onset), noticed_at: id(alarm.at), rose: alarm.rose, limit })
        };
        series.into_iter().filter_map(of).collect()
    }

    fn notes(&self, track: &Track) -> Vec<String> {
        let mut notes = Vec::new();
        let drifts = track.parameters.values().any(|p| p.drift_estimated);
        let errors = track.errors.values().any(|e| e.factor.is_some());
        notes.extend(track.no_interval.clone());
        if (drifts || errors) && track.no_interval.is_none() {
            let what = match (drifts, errors) {
                (true, true) => "drifts and errors",
                (true, false) => "drifts",
                _ => "errors",
            };
            notes.push(format!(
                "intervals take the estimated {what} for known, and so are too narrow where trials are few (simulated, one parameter, ten trials, both estimated: \
                 95 % intervals covered 75 %; with given drifts and known errors 95 %)"
            ));
        }
        if !track.converged {
            notes.push("the smoothed track did not settle: take it as a rough one".to_owned());
        }
        if !self.tracker.fit.converged {
            notes.push("the fit to all trials, where the track starts, found no minimum".into());
        }
        if self.tracker.problem.method.correct_solver.is_some() {
            notes.push("the track is that of the analytic solver: it is not corrected for the solver's error".into());
        }
        let projected = self.filtered.iter().filter(|f| f.projected).count();
        if projected > 0 {
            notes.push(format!(
                "the filter left the bounds at {projected} trials and was projected on them; --log keeps a parameter above 0 by itself"
            ));
        }
        if let Some(c) = track.consistency.filter(|c| !c.consistent) {
            let what = if c.mean > c.upper {
                "larger than the filter says: drifts or errors are larger, or the model is wrong"
            } else {
                "smaller than the filter says: drifts or errors are smaller"
            };
            notes.push(format!("the innovations are {what} (mean {} of 1)", four_digits(c.mean)));
        }
        let alpha = 1.0 - track.confidence;
        for (measure, w) in
            track.whiteness.iter().filter(|(_, w)| w.p_value < alpha / f64::from(u32::try_from(track.whiteness.len()).unwrap_or(u32::MAX)))
        {
            notes.push(format!(
                "the innovations of {measure} follow one another (p = {}): the filter lags, or the model misses something",
                four_digits(w.p_value)
            ));
        }
        for note in self.tracker.weight_notes() {
            notes.push(note.clone());
        }
        notes
    }
}
