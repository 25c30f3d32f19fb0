//! The one jump of a track: beyond the walk, or instead of it.
//!
//! Evidence of a shift of the state ([`super::linear`]) is sought into every one of `m` trials, and its probability multiplied by `m` (Bonferroni).
//! Where drifts were estimated, constant parameters with the jump that explains most are held against them, too:
//!
//! ```text
//! jump   -2 ln L₀ - max_t χ²_t + 2 (k_s + 1) + 2 ln m          L₀: constant parameters; k_s: sizes of the jump, one more for its place
//! drift  -2 ln L + 2 k_q                                       k_q: drifts above 0
//! ```
//!
//! These are Akaike's criteria, but for `2 ln m`: the place is no parameter of a smooth likelihood but the best of `m`, each of a probability of `1 / m` before.
//! A walk without any jump has its largest step somewhere, and without that term was taken for one in up to a quarter of tracks. The jump must be better by
//! [`CLEARLY`]; counted over simulated walks in docs/CALIBRATION.md.
//!
//! Source: P. de Jong and J. Penzer, Journal of the American Statistical Association 93 (1998), for the shifts; K. Burnham and D. Anderson (2002), section 2.2, for
//! the criterion; that a place costs more than a parameter is in N. Zhang and D. Siegmund, Biometrics 63 (2007).

use super::{
    linear::{LinearPass, Shift},
    report::Change,
    track::{Smoothed, Tracker},
};
use crate::fit::{
    engine::view::Scale,
    inference::distribution::{as_f64, chi_square_upper_tail},
};

/// By how much the criterion must prefer a jump to drift: an odds of twenty.
const CLEARLY: f64 = 6.0;

/// The trial with the most evidence of a shift.
struct Strongest<'a> {
    place: usize,
    shift: &'a Shift,
    /// Trials that were tested.
    n_places: usize,
    /// Probability of as much evidence in any of them.
    p_value: f64,
}

/// The jump with the most evidence at level `alpha`: beyond the walk, or instead of it where it explains the trials clearly better. Its interval is `quantile`
/// standard errors to either side.
pub(super) fn jump(tracker: &Tracker<'_>, smoothed: &Smoothed, alpha: f64, quantile: f64) -> Option<Change> {
    let instead = instead_of_drift(smoothed);
    let instead_of_drift = instead.is_some();
    let Strongest { place, shift, p_value, .. } = instead.or_else(|| strongest(&smoothed.pass))?;
    let ratio = |j: usize| (shift.sizes[j] / shift.std_errors[j]).abs();
    let j = (0..shift.sizes.len()).max_by(|&a, &b| ratio(a).total_cmp(&ratio(b)))?;
    if p_value >= alpha || !shift.std_errors[j].is_finite() {
        return None;
    }
    let logarithmic = tracker.scales[j] == Scale::Log;
    let at = |size: f64| if logarithmic { size.exp() } else { size };
    let end = |sign: f64| Some(at(shift.sizes[j] + sign * quantile * shift.std_errors[j])).filter(|v| v.is_finite());
    Some(Change::Jump {
        trial: tracker.problem.trials.trials[tracker.order[place]].id.clone(),
        parameter: tracker.problem.estimated_names()[j].clone(),
        size: at(shift.sizes[j]),
        std_error: shift.std_errors[j],
        lower: end(-1.0),
        upper: end(1.0),
        logarithmic,
        p_value,
        instead_of_drift,
    })
}

/// The jump of constant parameters, where these explain the trials clearly better with it than drift does.
fn instead_of_drift(smoothed: &Smoothed) -> Option<Strongest<'_>> {
    let n_drifts = smoothed.noise.noise.drifts.iter().filter(|q| **q > 0.0).count();
    let constant = smoothed.constant.as_ref().filter(|_| n_drifts > 0)?;
    let found = strongest(constant)?;
    let of_place = 2.0 + 2.0 * as_f64(found.n_places).ln();
    let with_jump = 2.0 * as_f64(found.shift.dof) + of_place - 2.0 * constant.log_likelihood - found.shift.chi_square;
    let with_drift = 2.0 * as_f64(n_drifts) - 2.0 * smoothed.noise.log_likelihood;
    (with_jump + CLEARLY <= with_drift).then_some(found)
}

fn strongest(pass: &LinearPass) -> Option<Strongest<'_>> {
    let tested: Vec<(usize, &Shift, f64)> = pass
        .shifts
        .iter()
        .enumerate()
        .filter_map(|(place, shift)| shift.as_ref().and_then(|s| Some((place, s, chi_square_upper_tail(s.chi_square, s.dof)?))))
        .collect();
    let n_places = tested.len();
    // Probabilities of much evidence are all 0: of those the most evidence.
    let order = |a: &(usize, &Shift, f64), b: &(usize, &Shift, f64)| a.2.total_cmp(&b.2).then(b.1.chi_square.total_cmp(&a.1.chi_square));
    let (place, shift, p_value) = tested.into_iter().min_by(order)?;
    Some(Strongest { place, shift, n_places, p_value: (p_value * as_f64(n_places)).min(1.0) })
}
