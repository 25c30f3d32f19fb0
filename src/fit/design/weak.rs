//! Combinations of parameters that the trials cannot tell apart, and what would settle them.
//!
//! With the columns of the weighted Jacobian scaled to length one and its singular values `s_1 ≥ … ≥ s_n`, a direction `v_i` with
//! `s_1 / s_i ≥ 30` is a strong dependency between the parameters in it (D. Belsley, E. Kuh and R. Welsch, Regression Diagnostics
//! (1980), section 3.2). Parameters may move along it, `x + τ D⁻¹ v`, with hardly any effect on what is measured; combinations
//! `gᵀ x` with `gᵀ D⁻¹ v = 0` do not move, and are as well determined as the rest. A parameter whose interval is wider than its value
//! is listed too, alone.
//!
//! What would settle a direction is ranked by the variance along it that would be left: each measure that the trials do not have, at
//! their operating points, and operating points around those there are, with the measures there are.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use indexmap::IndexMap;

use super::{
    candidate::{Candidate, around_the_trials, missing_from},
    choose::Scorer,
    criterion::Objective,
    ground::{Ground, same_slopes},
    observable::observables,
};
use crate::{
    fit::{
        inference::{Identification, direction_in_words},
        report::{Fit, digits::four_digits},
        search::{run::FitOptions, solver::SolveFn},
    },
    model::{Bindings, Measure},
};

/// Condition index from which a dependency is strong.
const STRONG: f64 = 30.0;

/// Share of a parameter in a direction below which it is not counted in.
const WORTH_NAMING: f64 = 0.05;

/// Most cures listed of each kind.
const MOST_CURES: usize = 5;

/// Whether what would settle a weak direction is looked for: it takes a solution of every trial with its sensitivities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cures {
    /// It is not.
    #[default]
    LeftOut,
    /// It is, and listed.
    Listed,
}

/// A direction in which the parameters are hardly determined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeakDirection {
    /// The direction in words, as in `dirD up by 1 with appDph1 down by 0.3`.
    pub direction: String,
    /// Largest singular value over that of the direction; absent where nothing is seen of it, or for one parameter alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition_index: Option<f64>,
    /// Half-widths of the parameters in it, as they are; `null` where a parameter is not determined at all.
    pub half_widths: IndexMap<String, Option<f64>>,
    /// Combinations of the same parameters that are determined nevertheless.
    pub determined: Vec<KnownCombination>,
    /// What would settle it best: measures at the operating points of the trials. Empty where that was not looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Cure>,
    /// What would settle it best: one more trial at an operating point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Cure>,
}

/// A combination of parameters that is better determined than its terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownCombination {
    /// The combination, as in `appDph1 + 0.3 dirD`.
    pub combination: String,
    /// Its value at the estimates.
    pub value: f64,
    /// Half-width of its confidence interval.
    pub half_width: f64,
}

/// Something that could be measured, and what it would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cure {
    /// The additional measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// The operating point of one more trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controlled: Option<Bindings>,
    /// Half-widths that the parameters would have; `null` where one would still not be determined.
    pub half_widths: IndexMap<String, Option<f64>>,
}

/// Things that could be measured, with the rows that they add to the information.
pub(super) struct Remedies {
    pub(super) measures: Vec<(Measure, DMatrix<f64>)>,
    pub(super) points: Vec<(Candidate, DMatrix<f64>)>,
}

impl Remedies {
    /// Every measure that the trials do not have, at their operating points; operating points around theirs.
    pub(super) fn of(ground: &Ground<'_>, solver: &SolveFn<'_>) -> Self {
        let points = around_the_trials(ground.problem).into_iter().filter_map(|c| {
            let rows = ground.trial_rows(&c, &ground.measures, solver).ok()?;
            Some((c, rows))
        });
        Self { points: points.collect(), measures: Self::measures(ground, solver) }
    }

    /// Every measure that the trials do not have, at their operating points; those that are always a multiple of one that they have, as a throughput
    /// is of another in the same flow, would be the same counts again and are left out.
    pub(super) fn measures(ground: &Ground<'_>, solver: &SolveFn<'_>) -> Vec<(Measure, DMatrix<f64>)> {
        let all = observables(&ground.problem.model);
        let wanted: Vec<Measure> = missing_from(&all, &ground.problem.trials.measures).into_iter().cloned().collect();
        let n_wanted = wanted.len();
        let every: Vec<Measure> = wanted.into_iter().chain(ground.measures.iter().cloned()).collect();
        let mut seen: Vec<Vec<Option<Seen>>> = vec![Vec::new(); every.len()];
        for trial in &ground.problem.trials.trials {
            for (k, found) in ground.at_most(&trial.controlled, &every, solver).into_iter().enumerate() {
                seen[k].push(found);
            }
        }
        let (of_wanted, of_known) = seen.split_at(n_wanted);
        let n = ground.free.len();
        let built = every.iter().zip(of_wanted).filter(|(_, seen)| !of_known.iter().any(|known| are_proportional(seen, known)));
        let built = built.filter_map(|(measure, seen)| {
            let rows: Vec<&Seen> = seen.iter().flatten().filter(|s| s.deviation > 0.0).collect();
            let matrix = DMatrix::from_fn(rows.len(), n, |i, j| rows[i].slopes[j] / rows[i].deviation);
            (matrix.norm() > 0.0).then(|| (measure.clone(), matrix))
        });
        built.collect()
    }
}

/// A measure at one operating point.
#[derive(Clone, Debug)]
struct Seen {
    value: f64,
    slopes: DVector<f64>,
    deviation: f64,
}

/// Whether two measures have the same relative sensitivities wherever both have a value.
fn are_proportional(a: &[Option<Seen>], b: &[Option<Seen>]) -> bool {
    let both = || a.iter().zip(b).filter_map(|(a, b)| Some((a.as_ref()?, b.as_ref()?)));
    let alike = |(a, b): (&Seen, &Seen)| a.slopes.norm() > 0.0 && same_slopes(&(&a.slopes * b.value), &(&b.slopes * a.value));
    both().next().is_some() && both().all(alike)
}

impl Ground<'_> {
    /// Each of `measures` at one operating point; `None` for those without a value there.
    fn at_most(&self, controlled: &Bindings, measures: &[Measure], solver: &SolveFn<'_>) -> Vec<Option<Seen>> {
        let seen = |solved: &crate::solve::Sensitivities, k: usize, measure: &Measure| {
            let (value, slopes) = (solved.values[k], solved.jacobian.row(k).transpose());
            Seen { value, slopes, deviation: self.errors.deviation(measure, value, controlled) }
        };
        match self.at(controlled, measures, solver) {
            Ok(solved) => measures.iter().enumerate().map(|(k, m)| Some(seen(&solved, k, m))).collect(),
            // One measure without a finite value refuses them all: then one by one.
            Err(_) if measures.len() > 1 => measures
                .iter()
                .map(|m| {
                    let solved = self.at(controlled, std::slice::from_ref(m), solver).ok()?;
                    Some(seen(&solved, 0, m))
                })
                .collect(),
            Err(_) => vec![None; measures.len()],
        }
    }
}

/// The weak directions of a finished fit, strongest dependency first; none where it has no covariance.
pub(crate) fn of_fit(fit: &Fit, options: &FitOptions, solver: &SolveFn<'_>) -> Vec<WeakDirection> {
    if !fit.converged || fit.identifiability.covariance.is_none() {
        return Vec::new();
    }
    match Ground::of_fit(fit, None, options, solver) {
        Ok(ground) => weak_directions(&ground, options.cures, solver),
        Err(_) => Vec::new(),
    }
}

/// The directions that are hardly determined.
pub(super) fn weak_directions(ground: &Ground<'_>, cures: Cures, solver: &SolveFn<'_>) -> Vec<WeakDirection> {
    let found = ground.with(&[]);
    let directions = directions(ground, &found);
    if directions.is_empty() {
        return Vec::new();
    }
    let remedies = match cures {
        Cures::Listed => Remedies::of(ground, solver),
        Cures::LeftOut => Remedies { measures: Vec::new(), points: Vec::new() },
    };
    directions.into_iter().map(|(direction, index)| described(ground, &found, &direction, index, &remedies)).collect()
}

/// Strong dependencies, weakest first, then single parameters whose interval is wider than their value.
fn directions(ground: &Ground<'_>, found: &Identification) -> Vec<(DVector<f64>, Option<f64>)> {
    let largest = found.singular_values.first().copied().unwrap_or(0.0);
    let n = found.singular_values.len();
    let is_unseen = |i: usize| i >= found.rank;
    let strong = (0..n).rev().filter(|&i| is_unseen(i) || found.singular_values[i] * STRONG <= largest);
    let mut all: Vec<(DVector<f64>, Option<f64>)> =
        strong.map(|i| (found.directions.column(i).into_owned(), (!is_unseen(i)).then(|| largest / found.singular_values[i]))).collect();
    let (values, widths) = (ground.free_values(), ground.half_widths(found, 0));
    for (k, width) in widths.values().enumerate() {
        let wide = width.is_some_and(|w| w > values[k].abs());
        if wide && !all.iter().any(|(v, _)| involved(v).contains(&k)) {
            let mut alone = DVector::zeros(n);
            alone[k] = 1.0;
            all.push((alone, None));
        }
    }
    all
}

/// Parameters in a direction.
fn involved(direction: &DVector<f64>) -> Vec<usize> {
    let largest = direction.amax();
    (0..direction.len()).filter(|&k| direction[k].abs() >= WORTH_NAMING * largest).collect()
}

fn described(
    ground: &Ground<'_>,
    found: &Identification,
    direction: &DVector<f64>,
    condition_index: Option<f64>,
    remedies: &Remedies,
) -> WeakDirection {
    let within = involved(direction);
    let names: Vec<&String> = within.iter().map(|&k| &ground.names[k]).collect();
    let of_these = |all: IndexMap<String, Option<f64>>| all.into_iter().filter(|(n, _)| names.contains(&n)).collect();
    let along: Vec<f64> = direction.iter().zip(&found.scale).map(|(v, d)| v * d).collect();
    let every: Vec<&DMatrix<f64>> = remedies.measures.iter().map(|m| &m.1).chain(remedies.points.iter().map(|p| &p.1)).collect();
    let scorer = Scorer::new(ground, &every, |scale| Objective::Combination(DVector::from_fn(along.len(), |k, _| along[k] / scale[k])));
    let widths_with = |rows: &DMatrix<f64>| of_these(ground.attainable_half_widths(&ground.with(&[rows]), rows.nrows()));
    let mut measures: Vec<(f64, &(Measure, DMatrix<f64>))> = remedies.measures.iter().map(|m| (scorer.gain(&[&m.1]), m)).collect();
    let mut points: Vec<(f64, &(Candidate, DMatrix<f64>))> = remedies.points.iter().map(|p| (scorer.gain(&[&p.1]), p)).collect();
    measures.sort_by(|a, b| b.0.total_cmp(&a.0));
    points.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best_measures = measures.into_iter().take(MOST_CURES).filter(|(gain, _)| *gain > 0.0);
    let best_points = points.into_iter().take(MOST_CURES).filter(|(gain, _)| *gain > 0.0);
    WeakDirection {
        direction: direction_in_words(direction.as_slice(), &ground.names, &found.scale),
        condition_index,
        half_widths: of_these(ground.half_widths(found, 0)),
        determined: combinations(ground, found, direction, &within),
        measures: best_measures
            .map(|(_, (m, rows))| Cure { measure: Some(m.clone()), controlled: None, half_widths: widths_with(rows) })
            .collect(),
        points: best_points
            .map(|(_, (c, rows))| Cure { measure: None, controlled: Some(c.controlled.clone()), half_widths: widths_with(rows) })
            .collect(),
    }
}

/// What stays as it is along the direction: each parameter in it with so much of the one that moves most, relative to its size, that
/// the two changes cancel. Those no better determined than their terms are left out.
fn combinations(ground: &Ground<'_>, found: &Identification, direction: &DVector<f64>, within: &[usize]) -> Vec<KnownCombination> {
    let values = ground.free_values();
    let step = |k: usize| direction[k] / found.scale[k];
    let relative = |k: usize| step(k).abs() / if values[k] == 0.0 { 1.0 } else { values[k].abs() };
    let Some(lead) = within.iter().copied().max_by(|&a, &b| relative(a).total_cmp(&relative(b))) else { return Vec::new() };
    let widths = ground.half_widths(found, 0);
    let combination = |k: usize| {
        let share = -step(k) / step(lead);
        let mut gradient = vec![0.0; values.len()];
        (gradient[k], gradient[lead]) = (1.0, share);
        let half_width = ground.half_width_of(found, &gradient, 0)?;
        let sign = if share < 0.0 { '-' } else { '+' };
        let factor = match four_digits(share.abs()) {
            one if one == "1" => String::new(),
            other => format!("{other} "),
        };
        let better = widths[k].is_none_or(|w| half_width < 0.5 * w);
        better.then(|| KnownCombination {
            combination: format!("{} {sign} {factor}{}", ground.names[k], ground.names[lead]),
            value: values[k] + share * values[lead],
            half_width,
        })
    };
    within.iter().copied().filter(|&k| k != lead).filter_map(combination).collect()
}
