//! What is asked of a correction, and what it says.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Correction, SimulationOptions, simulated::SHORT_OF};
use crate::fit::report::{
    Fit,
    digits::{four_digits, two_digits},
};

/// Most rounds that can be asked for.
const MOST_ROUNDS: usize = 100;

/// How much more a corrected fit may leave than the plain one before that is remarked: the simulation's own error is in both.
const MORE_LEFT: f64 = 1.1;

/// Share of a sum of squares from which the simulation's own error is remarked.
const REMARKED_SHARE: f64 = 0.2;

const POSITIVE: &str = "a number above 0";

/// How to correct a fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CorrectionOptions {
    /// How to simulate each operating point.
    pub simulation: SimulationOptions,
    /// Largest move of a parameter, in half-widths of its interval, at which the fit has settled.
    pub settled: f64,
    /// Most rounds, at least 1.
    pub max_rounds: usize,
}

impl Default for CorrectionOptions {
    fn default() -> Self {
        Self { simulation: SimulationOptions::default(), settled: 0.1, max_rounds: 10 }
    }
}

impl CorrectionOptions {
    /// The first option that cannot be used, its value, and what was expected.
    #[expect(clippy::cast_precision_loss, reason = "for an error text")]
    pub(crate) fn defect(&self) -> Option<(&'static str, f64, &'static str)> {
        let is_positive = |v: f64| v.is_finite() && v > 0.0;
        match self {
            Self { settled, .. } if !is_positive(*settled) => {
                Some(("the share of a half-width at which a correction settles", *settled, POSITIVE))
            }
            Self { max_rounds, .. } if !(1..=MOST_ROUNDS).contains(max_rounds) => {
                Some(("the number of rounds of a correction", *max_rounds as f64, "1 to 100"))
            }
            Self { simulation, .. } => simulation.defect(),
        }
    }
}

/// How a correction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CorrectionOutcome {
    /// No parameter moved by more than the share of its half-width asked.
    Settled,
    /// The rounds were used up; the estimates are those of the last.
    NotSettled,
    /// A round found no minimum: the estimates are not corrected, or only as far as the rounds before went.
    NoMinimum,
}

/// One round of a correction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrectionRound {
    /// Estimates at its end.
    pub parameters: IndexMap<String, f64>,
    /// Largest move of a parameter in half-widths of its interval.
    pub largest_move: f64,
    /// Whether slopes of the ratios were simulated in it.
    #[serde(default)]
    pub slopes: bool,
}

/// An estimate without the correction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainEstimate {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error.
    pub std_error: Option<f64>,
    /// Lower end of its confidence interval.
    pub lower: Option<f64>,
    /// Upper end of its confidence interval.
    pub upper: Option<f64>,
}

/// What a correction did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrectionReport {
    /// How it ended.
    pub outcome: CorrectionOutcome,
    /// Its rounds.
    pub rounds: Vec<CorrectionRound>,
    /// The estimates without it.
    pub plain: IndexMap<String, PlainEstimate>,
    /// Seed of the simulations.
    pub seed: u64,
    /// Largest relative half-width of a simulated value; absent where one is not known.
    pub precision: Option<f64>,
    /// Part of the sum of squares that the simulation's own error adds to be expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_squares: Option<f64>,
    /// Steps along which slopes of the ratios were simulated last, either way, by parameter: a standard error long, or as far as
    /// bounds allow; what the trials determine least first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slopes_along: Vec<IndexMap<String, f64>>,
    /// The factors of the last round.
    pub correction: Correction,
}

/// Share of a `sum_of_squares` that is to be expected from the simulation's own error, where that is worth a remark.
pub(super) fn own_share(report: &CorrectionReport, sum_of_squares: f64) -> Option<f64> {
    report.own_squares.filter(|own| *own > REMARKED_SHARE * sum_of_squares).map(|own| (own / sum_of_squares).min(1.0))
}

/// Says whose rank the simulation's own error may have a part in: structures are corrected by simulations of their own.
pub(crate) fn simulated_apart(members: &[(&str, &Fit)]) -> Option<String> {
    let share = |fit: &Fit| own_share(fit.correction.as_ref()?, fit.sum_of_squares);
    let each = members.iter().filter_map(|(name, fit)| Some(format!("{name} {} %", two_digits(100.0 * share(fit)?))));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "the simulation's own error is much of the sums of squares ({}), and every structure has simulations of its own: ranks may be by \
             that; ask a smaller precision of it",
            each.join(", ")
        )
    })
}

/// Says that a correction left more than there was: where slopes are lost in the simulation's error, it may have been led away from
/// the best fit.
pub(super) fn explains_less(plain: f64, corrected: f64) -> Option<String> {
    (corrected > MORE_LEFT * plain).then(|| {
        format!(
            "the correction for the solver's error explains the measurements no better (sum of squares {} with it, {} without): it may have gone \
             along a direction that the trials hardly determine",
            four_digits(corrected),
            four_digits(plain)
        )
    })
}

/// Remarks on a correction of which `asked` was the precision.
pub(super) fn notes(report: &CorrectionReport, asked: Option<f64>) -> Vec<String> {
    let mut notes = Vec::new();
    let n = report.rounds.len();
    match report.outcome {
        CorrectionOutcome::Settled => {}
        CorrectionOutcome::NotSettled => {
            let last = report.rounds.last().map_or(0.0, |r| r.largest_move);
            notes.push(format!(
                "the correction for the solver's error did not settle in {n} rounds: a parameter still moved by {} half-widths",
                four_digits(last)
            ));
        }
        CorrectionOutcome::NoMinimum => notes.push("the correction for the solver's error ended without a minimum".into()),
    }
    if let Some((reached, asked)) = report.precision.zip(asked).filter(|(reached, asked)| *reached > SHORT_OF * asked) {
        notes.push(format!(
            "simulated to {} % for the {} % asked: more events of an operating point may get nearer (--correct-events, max_events)",
            four_digits(100.0 * reached),
            four_digits(100.0 * asked)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_that_leaves_more_is_remarked() {
        let said = explains_less(0.0176, 0.0206).unwrap();
        assert!(said.contains("0.0206 with it, 0.0176 without"), "{said}");
        assert_eq!(explains_less(0.0205, 0.002), None);
        assert_eq!(explains_less(1.0, 1.02), None);
    }
}
