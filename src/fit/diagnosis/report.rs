//! The whole diagnosis of a fit.

use indexmap::IndexMap;
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use super::{
    covariance::{Claim, error_covariance_test},
    lack_of_fit::{LackOfFit, lack_of_fit},
    leave_out::LeaveOneOut,
    little::little_test,
    normality::shapiro_wilk,
    pattern::{RunsTest, runs_test, spread_test},
    residuals::{Influence, RowInfluence, influence},
};
use crate::{
    fit::{
        digits::four_digits,
        engine::least_squares::Minimum,
        inference::distribution::{chi_square_upper_tail, f_upper_tail, normal_two_sided_tail, t_two_sided_tail},
        problem::{ErrorScale, Intervals, Problem, Weighting},
        report::Fit,
        search::weights::{Block, WeightSource, Weights},
    },
    model::Measure,
};

/// Level at which a test is remarked in the notes.
const REMARKED: f64 = 0.01;

/// Level at which errors that cancel against the weights are remarked: they decide whether intervals can be trusted.
const CANCELLING: f64 = 0.05;

/// Level at which a value counts as an outlier.
const OUTLIER: f64 = 0.01;

/// Share by which an outlier may miss a power of ten and still look like a typing error.
const TYPING_ERROR: f64 = 0.25;

/// Cook's distance of a trial above which it is remarked: leaving it out moves the estimates to the edge of their joint
/// 50 % region (R. Cook and S. Weisberg, 1982, section 3.5).
const PULLS: f64 = 1.0;

/// Efficiency of the median absolute deviation as an estimate of the deviation of normal errors (F. Hampel, 1974).
const EFFICIENCY_OF_MEDIAN: f64 = 0.37;

/// A test with its probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// The statistic.
    pub statistic: f64,
    /// Probability of one as extreme if nothing is the matter.
    pub p_value: f64,
    /// Values, or trials, tested.
    pub n: usize,
}

/// What the residuals say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Diagnosis {
    /// Are the errors normal? Shapiro and Wilk's W of the standardised residuals.
    pub normality: Option<TestResult>,
    /// Are the errors what the weights say? Chi-square.
    pub error_covariance: Option<TestResult>,
    /// Do the errors of delays and throughput cancel more, or less, than the weights say, by Little's law? F.
    pub little: Option<TestResult>,
    /// Is the sum of squares what known errors allow? Chi-square; only where the errors are taken as known.
    pub error_scale: Option<TestResult>,
    /// Misfit against the error that replicates show.
    pub lack_of_fit: Option<LackOfFit>,
    /// The model against none (all predictions zero): F with the parameters' and the residuals' degrees of freedom.
    pub overall: Option<TestResult>,
    /// By measure.
    pub measures: IndexMap<Measure, MeasureDiagnosis>,
    /// By measured value that counts.
    pub points: Vec<PointDiagnosis>,
    /// By trial, the one that pulls most first.
    pub trials: Vec<TrialDiagnosis>,
    /// Values that do not belong to the others.
    pub outliers: Vec<Outlier>,
    /// Each trial predicted by a fit to the others, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave_one_out: Option<LeaveOneOut>,
}

/// What the residuals of one measure say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasureDiagnosis {
    /// Runs of signs in the order of the operating points.
    pub runs: Option<RunsTest>,
    /// Does the spread grow with the value? Koenker's form of Breusch and Pagan's test.
    pub spread: Option<TestResult>,
    /// Share of the variance of the measured values that the model explains.
    pub r_squared: Option<f64>,
}

/// What is known of one measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointDiagnosis {
    /// Id of the trial.
    pub trial: String,
    /// The measure.
    pub measure: Measure,
    /// Weighted residual, in standard deviations of its error.
    pub standardised: Option<f64>,
    /// The same against the error that the other values show.
    pub studentised: Option<f64>,
    /// Its leverage, 0 to 1.
    pub leverage: f64,
    /// Cook's distance.
    pub cooks_distance: Option<f64>,
}

/// How one trial pulls the fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialDiagnosis {
    /// Its id.
    pub trial: String,
    /// Number of parameters that it determines by itself.
    pub leverage: f64,
    /// Cook's distance; absent where the fit hangs on this trial.
    pub cooks_distance: Option<f64>,
    /// The parameter that would move most without it, with its move in standard errors.
    pub moves: Option<(String, f64)>,
}

/// A value that does not belong to the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// Id of the trial.
    pub trial: String,
    /// The measure.
    pub measure: Measure,
    /// What was measured.
    pub value: f64,
    /// What the fit has there.
    pub predicted: f64,
    /// Probability of a value as far out as the farthest of all.
    pub p_value: f64,
    /// The power of ten, 10 or 0.1 and so on, that the value seems to be off by.
    pub factor: Option<f64>,
}

/// The diagnosis of `fit`, which ended at `minimum` under `weights`; `free` are the parameters not at a bound, `scale` the
/// variance of a weighted residual.
pub(crate) fn diagnose(
    fit: &Fit,
    weights: &Weights,
    minimum: &Minimum,
    free: &[usize],
    scale: Option<f64>,
    rank_tolerance: f64,
) -> Diagnosis {
    let rows: Vec<std::ops::Range<usize>> = weights.blocks.iter().map(|b| b.rows.clone()).collect();
    let jacobian = minimum.jacobian.select_columns(free);
    let own_variances = weights.are_estimated();
    // One number for each variance that is estimated by itself: the measures that share one have the first number.
    let shares = |k: usize| weights.sources[k] == WeightSource::SharedResidualVariance;
    let group = |k: usize| if shares(k) { (0..k).find(|&j| shares(j)).unwrap_or(k) } else { k };
    let groups: Vec<usize> = weights.observations.iter().filter(|_| own_variances).map(|o| group(o.measure_idx)).collect();
    let found = influence(&minimum.residuals, &jacobian, &rows, scale, fit.degrees_of_freedom, &groups, rank_tolerance);
    let subject = Subject { fit, weights, minimum, influence: &found, scale };
    let standardised: Vec<f64> = found.rows.iter().filter_map(|r| r.standardised).collect();
    // Residuals of a few degrees of freedom have the form that the model gives them, whatever the errors.
    let are_free = 2 * fit.degrees_of_freedom >= fit.n_observations;
    if fit.is_perfect() {
        return Diagnosis { measures: subject.measures(), points: subject.points(), ..Diagnosis::default() };
    }
    Diagnosis {
        normality: shapiro_wilk(&standardised).filter(|_| are_free),
        error_covariance: subject.error_covariance(),
        little: subject.little(),
        error_scale: subject.error_scale(),
        lack_of_fit: lack_of_fit(&fit.problem.trials, weights, fit.sum_of_squares, fit.degrees_of_freedom),
        overall: subject.overall(),
        measures: subject.measures(),
        points: subject.points(),
        trials: subject.trials(free),
        outliers: subject.outliers(),
        leave_one_out: None,
    }
}

struct Subject<'a> {
    fit: &'a Fit,
    weights: &'a Weights,
    minimum: &'a Minimum,
    influence: &'a Influence,
    scale: Option<f64>,
}

impl Subject<'_> {
    /// Rows of blocks that are measured values one by one, as `(row, observation)`.
    fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let whole = self.weights.blocks.iter().filter(|b| b.rows.len() == b.observations.len());
        whole.flat_map(|b| b.rows.clone().zip(b.observations.clone()))
    }

    fn error_covariance(&self) -> Option<TestResult> {
        let m = self.fit.problem.trials.measures.len();
        let complete: Vec<&Block> = self.weights.blocks.iter().filter(|b| b.rows.len() == m).collect();
        let rows = DMatrix::from_fn(complete.len(), m, |t, k| {
            let row = complete[t].rows.start + k;
            let leverage = self.influence.rows[row].leverage;
            self.minimum.residuals[row] / (1.0 - leverage).max(0.1).sqrt()
        });
        let claim = if self.weights.are_estimated() { Claim::Independence } else { Claim::EqualVariances };
        // Leverage is taken off row by row, so that the parameters' share is not taken off again.
        error_covariance_test(&rows, 0, claim)
    }

    fn little(&self) -> Option<TestResult> {
        let predicted: Vec<Vec<f64>> = self.fit.predicted.iter().map(|row| row.values().copied().collect()).collect();
        little_test(&self.fit.problem, self.weights, self.minimum, &predicted, self.fit.degrees_of_freedom)
    }

    fn error_scale(&self) -> Option<TestResult> {
        let fit = self.fit;
        let known = fit.problem.method.error_scale == ErrorScale::Known && !self.weights.are_estimated();
        known.then_some(())?;
        let p_value = chi_square_upper_tail(fit.sum_of_squares, fit.degrees_of_freedom)?;
        Some(TestResult { statistic: fit.sum_of_squares, p_value, n: fit.n_observations })
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of observations are far below 2^53")]
    fn overall(&self) -> Option<TestResult> {
        let values: Vec<f64> = self.weights.observations.iter().map(|o| o.value).collect();
        let whole = self.weights.whiten(&values).norm_squared();
        let (n, dof) = (self.fit.parameters.len(), self.fit.degrees_of_freedom);
        let mse = self.fit.mean_square_error.filter(|m| *m > 0.0)?;
        let statistic = ((whole - self.fit.sum_of_squares) / n as f64 / mse).max(0.0);
        Some(TestResult { statistic, p_value: f_upper_tail(statistic, n, dof)?, n: self.fit.n_observations })
    }

    fn measures(&self) -> IndexMap<Measure, MeasureDiagnosis> {
        let problem = &self.fit.problem;
        let names = problem.trials.controlled_names();
        let by_operating_point = |a: &usize, b: &usize| {
            let value = |row: &usize, name: &str| problem.trials.trials[self.trial_of(*row)].controlled.get(name).unwrap_or(0.0);
            names.iter().map(|n| value(a, n).total_cmp(&value(b, n))).find(|o| o.is_ne()).unwrap_or(a.cmp(b))
        };
        let of = |k: usize, measure: &Measure| {
            let mut found: Vec<(usize, usize)> = self.rows().filter(|(_, o)| self.weights.observations[*o].measure_idx == k).collect();
            found.sort_by(|a, b| by_operating_point(&a.0, &b.0));
            let residuals: Vec<f64> = found.iter().map(|(row, _)| self.minimum.residuals[*row]).collect();
            let predicted: Vec<f64> = found.iter().map(|(_, o)| self.predicted(*o)).collect();
            let measured: Vec<f64> = found.iter().map(|(_, o)| self.weights.observations[*o].value).collect();
            let diagnosis = MeasureDiagnosis {
                runs: runs_test(&residuals),
                spread: spread_test(&residuals, &predicted),
                r_squared: r_squared(&measured, &predicted),
            };
            (measure.clone(), diagnosis)
        };
        problem.trials.measures.iter().enumerate().map(|(k, m)| of(k, m)).collect()
    }

    fn trial_of(&self, row: usize) -> usize {
        self.weights.blocks.iter().find(|b| b.rows.contains(&row)).map_or(0, |b| b.trial_idx)
    }

    fn predicted(&self, observation: usize) -> f64 {
        let o = &self.weights.observations[observation];
        self.fit.predicted[o.trial_idx][o.measure_idx]
    }

    fn points(&self) -> Vec<PointDiagnosis> {
        let point = |(row, observation): (usize, usize)| {
            let (trial, measure) = self.names(observation);
            let RowInfluence { leverage, standardised, studentised, cooks_distance, .. } = self.influence.rows[row];
            PointDiagnosis { trial, measure, standardised, studentised, leverage, cooks_distance }
        };
        self.rows().map(point).collect()
    }

    fn names(&self, observation: usize) -> (String, Measure) {
        let trials = &self.fit.problem.trials;
        let o = &self.weights.observations[observation];
        (trials.trials[o.trial_idx].id.clone(), trials.measures[o.measure_idx].clone())
    }

    fn trials(&self, free: &[usize]) -> Vec<TrialDiagnosis> {
        let trials = &self.fit.problem.trials.trials;
        let of = |(block, found): (&Block, &super::residuals::TrialInfluence)| {
            let moves = found.shifts.as_ref().and_then(|shifts| {
                let largest = (0..shifts.len()).max_by(|&a, &b| shifts[a].abs().total_cmp(&shifts[b].abs()))?;
                Some((self.fit.problem.estimate[free[largest]].name.clone(), shifts[largest]))
            });
            TrialDiagnosis {
                trial: trials[block.trial_idx].id.clone(),
                leverage: found.leverage,
                cooks_distance: found.cooks_distance,
                moves,
            }
        };
        let mut found: Vec<TrialDiagnosis> = self.weights.blocks.iter().zip(&self.influence.trials).map(of).collect();
        let pull = |t: &TrialDiagnosis| t.cooks_distance.unwrap_or(f64::INFINITY);
        found.sort_by(|a, b| pull(b).total_cmp(&pull(a)));
        found
    }

    /// Values of normal errors whose standard deviation would be known as well as the median absolute deviation by which a row is judged
    /// under a loss that bounds outliers; absent where that is known.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "small and positive")]
    fn values_of_scale(&self, row: usize) -> Option<usize> {
        let known = self.fit.problem.method.error_scale == ErrorScale::Known && !self.weights.are_estimated();
        let measure = self.weights.observations.get(row).map(|o| o.measure_idx).filter(|_| self.weights.are_estimated());
        let alike = self.weights.observations.iter().filter(|o| measure.is_none_or(|k| o.measure_idx == k)).count();
        let share = alike as f64 * self.fit.degrees_of_freedom as f64 / self.fit.n_observations.max(1) as f64;
        (!known).then(|| ((EFFICIENCY_OF_MEDIAN * share) as usize).max(1))
    }

    fn outliers(&self) -> Vec<Outlier> {
        let robust = !self.fit.problem.method.loss.is_squared();
        let n = f64::from(u32::try_from(self.influence.rows.len()).unwrap_or(u32::MAX));
        let p_value = |row: usize| match robust {
            false => self.influence.rows[row].outlier_p_value,
            true => {
                let factor = self.weights.factors.get(row).copied().unwrap_or(1.0);
                let rest = (1.0 - self.influence.rows[row].leverage).max(0.1).sqrt();
                let deviation = self.minimum.residuals[row] / (factor * self.scale?.sqrt() * rest);
                let p = match self.values_of_scale(row) {
                    None => normal_two_sided_tail(deviation),
                    Some(values) => t_two_sided_tail(deviation, values),
                };
                p.map(|p| (p * n).min(1.0))
            }
        };
        let outlier = |(row, observation): (usize, usize)| {
            let p_value = p_value(row).filter(|p| *p < OUTLIER)?;
            let (trial, measure) = self.names(observation);
            let (value, predicted) = (self.weights.observations[observation].value, self.predicted(observation));
            Some(Outlier { trial, measure, value, predicted, p_value, factor: typing_error(value, predicted) })
        };
        self.rows().filter_map(outlier).collect()
    }
}

fn r_squared(measured: &[f64], predicted: &[f64]) -> Option<f64> {
    let mean = measured.iter().sum::<f64>() / f64::from(u32::try_from(measured.len()).ok().filter(|n| *n > 1)?);
    let total: f64 = measured.iter().map(|v| (v - mean).powi(2)).sum();
    let rest: f64 = measured.iter().zip(predicted).map(|(a, b)| (a - b).powi(2)).sum();
    (total > 0.0).then(|| 1.0 - rest / total)
}

/// The power of ten by which `value` seems to be off `predicted`.
fn typing_error(value: f64, predicted: f64) -> Option<f64> {
    let ratio = value / predicted;
    let power = ratio.log10().round();
    let factor = 10.0_f64.powf(power);
    let close = (ratio / factor - 1.0).abs() <= TYPING_ERROR;
    (ratio > 0.0 && ratio.is_finite() && power != 0.0 && close).then_some(factor)
}

impl Diagnosis {
    /// What a reader should know, in words, of a fit to `problem`.
    pub(crate) fn notes(&self, problem: &Problem) -> Vec<String> {
        let remedy = remedy(problem);
        let mut notes: Vec<String> = self.outliers.iter().map(Outlier::in_words).collect();
        let p = |t: &TestResult| four_digits(t.p_value);
        if let Some(test) = self.error_covariance.filter(|t| t.p_value < REMARKED) {
            notes.push(format!(
                "the errors are not what the weights say (p = {}): measures of one trial are correlated, or some are more exact than others; \
                 {remedy}",
                p(&test)
            ));
        }
        notes.extend(self.little.and_then(|test| little_in_words(&test, problem.weighting, &remedy)));
        if let Some(test) = self.error_scale.filter(|t| t.p_value < REMARKED) {
            notes.push(format!("the sum of squares is more than the known errors allow (p = {}): the model misses something", p(&test)));
        }
        if let Some(found) = self.lack_of_fit.filter(|t| t.p_value < REMARKED) {
            notes.push(format!(
                "the model misses more than the error of measurement explains: F({}, {}) = {}, p = {}; longer trials cannot help",
                found.misfit_dof,
                found.pure_error_dof,
                four_digits(found.f),
                four_digits(found.p_value)
            ));
        }
        if let Some(test) = self.normality.filter(|t| t.p_value < REMARKED && self.outliers.is_empty()) {
            notes.push(format!("the residuals are not normal (W = {}, p = {})", four_digits(test.statistic), p(&test)));
        }
        for (measure, found) in &self.measures {
            if let Some(runs) = found.runs.filter(|r| r.p_value < REMARKED) {
                notes.push(format!(
                    "{measure}: its residuals change sign {} often than by chance ({} runs, {} expected, p = {})",
                    if f64::from(u32::try_from(runs.runs).unwrap_or(u32::MAX)) < runs.expected { "less" } else { "more" },
                    runs.runs,
                    four_digits(runs.expected),
                    four_digits(runs.p_value)
                ));
            }
            if let Some(test) = found.spread.filter(|t| t.p_value < REMARKED) {
                notes.push(format!("{measure}: the size of its residuals depends on its value (p = {}); weigh it accordingly", p(&test)));
            }
        }
        notes.extend(self.trials.iter().filter_map(TrialDiagnosis::in_words));
        notes
    }
}

/// What errors mean that are not what the weights say, and what helps.
fn remedy(problem: &Problem) -> String {
    if problem.method.intervals == Intervals::Sandwich {
        return "intervals from what trials scatter by allow for that, F tests and AIC do not; estimates could be sharper with covariances"
            .into();
    }
    let or_replicates = if problem.weighting == Weighting::Replicates { "" } else { ", or use replicates" };
    format!(
        "standard errors and intervals are not to be trusted. Give the trials standard errors and covariances{or_replicates}{}",
        problem.method.or_sandwich()
    )
}

/// What errors of delays and throughput that do not cancel as weighed mean.
fn little_in_words(test: &TestResult, weighting: Weighting, remedy: &str) -> Option<String> {
    let p = four_digits(test.p_value);
    if test.statistic < 1.0 && test.p_value < 2.0 * CANCELLING {
        let why = match weighting {
            Weighting::Replicates => "by more than the covariance says that replicates of all loads have together",
            Weighting::Auto | Weighting::Residual | Weighting::None => "and the weights take them as independent",
        };
        return Some(format!(
            "the errors of delays and throughput in one trial cancel (Little's law; {} of what the weights say, p = {p}), {why}: {remedy}",
            four_digits(test.statistic)
        ));
    }
    (test.statistic > 1.0 && test.p_value < REMARKED).then(|| {
        format!(
            "the measured delays and throughput break Little's law by more than their errors ({} times, p = {p}): they may be of different \
             customers, or in other units than the model's",
            four_digits(test.statistic)
        )
    })
}

impl Outlier {
    fn in_words(&self) -> String {
        let guess = match self.factor {
            Some(factor) if factor > 1.0 => format!("; it looks {factor} times too large: a typing error?"),
            Some(factor) => format!("; it looks {} times too small: a typing error?", (1.0 / factor).round()),
            None => String::new(),
        };
        format!(
            "trial \"{}\": {} is {}, the fit has {} there (p = {}){guess}",
            self.trial,
            self.measure,
            four_digits(self.value),
            four_digits(self.predicted),
            four_digits(self.p_value)
        )
    }
}

impl TrialDiagnosis {
    fn in_words(&self) -> Option<String> {
        let distance = self.cooks_distance.filter(|d| *d > PULLS)?;
        let (name, shift) = self.moves.as_ref()?;
        Some(format!(
            "trial \"{}\" pulls the fit (Cook's distance {}): without it {name} would move by {} standard errors",
            self.trial,
            four_digits(distance),
            four_digits(*shift)
        ))
    }
}

/// Leverages of the data rows.
pub(crate) fn leverages(minimum: &Minimum, free: &[usize], n_rows: usize, rank_tolerance: f64) -> DVector<f64> {
    let blocks: Vec<std::ops::Range<usize>> = (0..n_rows).map(|i| i..i + 1).collect();
    let found = influence(&minimum.residuals, &minimum.jacobian.select_columns(free), &blocks, None, 0, &[], rank_tolerance);
    DVector::from_iterator(n_rows, found.rows.iter().map(|r| r.leverage))
}
