//! When the k-th of several independent pieces of work ends, from their means and variances.
//!
//! Each completion time is given the law of its first two moments that is easiest to integrate:
//!
//! | squared coefficient of variation | law |
//! |---|---|
//! | `c² ≥ 1` | hyperexponential of two branches, balanced means |
//! | `1/4 ≤ c² < 1` | mixture of Erlang laws of `k-1` and `k` stages, `1/k ≤ c² ≤ 1/(k-1)` |
//! | `c² < 1/4` | a constant plus an Erlang law of four stages |
//!
//! Work that makes a random number of calls makes none at all with a chance that no two moments tell: it has the mixture of two such laws,
//! of the time without calls and of the rest.
//!
//! With `F_i` the distribution functions and `P_k(t)` the probability that at least `k` have ended by `t`,
//!
//! ```text
//! E[X] = ∫ (1 - P_k(t)) dt,    E[X²] = ∫ 2t (1 - P_k(t)) dt,    overlap = ∫ (F_s - F_e)(G_s - G_e) dt
//! ```
//!
//! by Gauss-Legendre rules between the constants and on a mapped half line after the last. Fits: Tijms 1994, "Stochastic
//! Models", appendix B; all is smooth in the moments, so that derivatives pass through.

use std::ops::Add;

use crate::model::Scalar;

/// Mean and variance of a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments<S> {
    pub mean: S,
    pub variance: S,
    /// The time of work that may make no call at all, where it makes none.
    pub without_calls: Option<WithoutCalls<S>>,
}

/// With which chance no call is made, and mean and variance of the time then.
#[derive(Clone, Copy, Debug)]
pub(super) struct WithoutCalls<S> {
    pub chance: S,
    pub mean: S,
    pub variance: S,
}

impl<S: Scalar> Moments<S> {
    pub fn new(mean: S, variance: S) -> Self {
        Self { mean, variance, without_calls: None }
    }

    pub fn zero() -> Self {
        Self::new(S::from(0.0), S::from(0.0))
    }

    /// What is left without a part that is independent of the rest, and always there.
    pub fn without(self, part: Self) -> Self {
        let positive = |x: S| if x > 0.0 { x } else { S::from(0.0) };
        let (mean, variance) = (positive(self.mean - part.mean), positive(self.variance - part.variance));
        let without_calls = self.without_calls.map(|it| WithoutCalls {
            chance: it.chance,
            mean: positive(it.mean - part.mean),
            variance: positive(it.variance - part.variance),
        });
        Self { mean, variance, without_calls }
    }

    /// From an `earlier` time to this one; of which no more is known, where that varies as much, than that it is not constant.
    pub fn after(self, earlier: Self) -> Self {
        let rest = self.without(earlier);
        let variance = if rest.variance > 0.0 { rest.variance } else { rest.mean * rest.mean };
        Self::new(rest.mean, variance)
    }

    /// Moments of a geometric number of repetitions of this mean.
    pub fn repeated(self, count: S) -> Self {
        let mean = self.mean * count;
        Self::new(mean, self.variance * count + self.mean * self.mean * count * (count + 1.0))
    }

    /// Moments of so many of them, or of a share.
    pub fn times(self, number: S) -> Self {
        Self::new(self.mean * number, self.variance * number)
    }

    /// The same times in another unit.
    pub fn scaled(self, by: S) -> Self {
        let without_calls =
            self.without_calls.map(|it| WithoutCalls { chance: it.chance, mean: it.mean * by, variance: it.variance * by * by });
        Self { mean: self.mean * by, variance: self.variance * by * by, without_calls }
    }

    /// Moments of the time where calls are made; none where that is sure or hardly ever so.
    fn with_calls(self) -> Option<(WithoutCalls<S>, S, S)> {
        let it = self.without_calls.filter(|it| it.chance > LEAST_CHANCE && it.chance < 1.0 - LEAST_CHANCE)?;
        let calls = -it.chance + 1.0;
        let mean = (self.mean - it.chance * it.mean) / calls;
        let second = (self.variance + self.mean * self.mean - it.chance * (it.variance + it.mean * it.mean)) / calls;
        let variance = second - mean * mean;
        (mean >= it.mean && variance >= 0.0).then_some((it, mean, variance))
    }
}

impl<S: Scalar> Add for Moments<S> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let plus =
            |it: WithoutCalls<S>, mean: S, variance: S| WithoutCalls { mean: it.mean + mean, variance: it.variance + variance, ..it };
        let without_calls = match (self.without_calls, other.without_calls) {
            (Some(one), Some(two)) => Some(WithoutCalls { chance: one.chance * two.chance, ..plus(one, two.mean, two.variance) }),
            (Some(one), None) => Some(plus(one, other.mean, other.variance)),
            (None, Some(two)) => Some(plus(two, self.mean, self.variance)),
            (None, None) => None,
        };
        Self { mean: self.mean + other.mean, variance: self.variance + other.variance, without_calls }
    }
}

/// A law of two moments, or with some chance another, of the time without calls.
struct Law<S> {
    law: Plain<S>,
    without_calls: Option<(S, Plain<S>)>,
}

/// A distribution function `Σ_k weight_k Erlang(stages_k, rate_k)(t - shift)`.
#[derive(Clone)]
struct Plain<S> {
    shift: S,
    parts: [(S, u32, S); 2],
    spread: S,
}

/// Below this, a time counts as none and a variance as that of a constant.
const NEGLIGIBLE: f64 = 1e-12;
/// Chance, of calls or of none, that is not told apart.
const LEAST_CHANCE: f64 = 1e-6;
/// Squared coefficient of variation from which a constant part is split off, and the stages of the rest.
const LEAST_MIXED_CVSQ: f64 = 0.25;
const SHIFTED_STAGES: u32 = 4;
/// How far from a bound, relatively, a time begins to feel it.
const CORNER: f64 = 0.05;
/// The half line starts with intervals of this many spreads.
const SPREADS: f64 = 1.0;

impl<S: Scalar> Law<S> {
    fn new(moments: Moments<S>) -> Self {
        match moments.with_calls() {
            Some((without, mean, variance)) => {
                let without_calls = Some((without.chance, Plain::new(without.mean, without.variance)));
                Self { law: Plain::new(mean, variance), without_calls }
            }
            None => Self { law: Plain::new(moments.mean, moments.variance), without_calls: None },
        }
    }

    fn plain(&self) -> impl Iterator<Item = &Plain<S>> {
        std::iter::once(&self.law).chain(self.without_calls.as_ref().map(|(_, law)| law))
    }

    /// The laws that it is a mixture of, with their chances.
    fn weighted(&self) -> impl Iterator<Item = (S, &Plain<S>)> {
        let without = self.without_calls.as_ref().map(|(chance, law)| (*chance, law));
        let calls = without.map_or(S::from(1.0), |(chance, _)| -chance + 1.0);
        std::iter::once((calls, &self.law)).chain(without)
    }

    fn distribution(&self, t: S) -> S {
        let law = self.law.distribution(t);
        self.without_calls.as_ref().map_or(law, |(chance, without)| law + *chance * (without.distribution(t) - law))
    }
}

impl<S: Scalar> Plain<S> {
    fn new(mean: S, variance: S) -> Self {
        let zero = S::from(0.0);
        if mean <= 0.0 || variance <= mean * mean * NEGLIGIBLE {
            return Self { shift: mean, parts: [(S::from(1.0), 0, zero), (zero, 0, zero)], spread: zero };
        }
        let cvsq = variance / (mean * mean);
        if cvsq >= 1.0 {
            let p = (((cvsq - 1.0) / (cvsq + 1.0)).max_zero().sqrt_safe() + 1.0) * 0.5;
            let q = -p + 1.0;
            return Self { shift: zero, parts: [(p, 1, p * 2.0 / mean), (q, 1, q * 2.0 / mean)], spread: mean };
        }
        if cvsq >= LEAST_MIXED_CVSQ {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 2 and 4")]
            let k = (1.0 / cvsq.value()).ceil().clamp(2.0, 4.0) as u32;
            let n = f64::from(k);
            let root = ((cvsq + 1.0) * n - cvsq * (n * n)).max_zero().sqrt_safe();
            let p = (cvsq * n - root) / (cvsq + 1.0);
            let rate = (-p + n) / mean;
            return Self { shift: zero, parts: [(p, k - 1, rate), (-p + 1.0, k, rate)], spread: mean };
        }
        let random = variance.sqrt() * f64::from(SHIFTED_STAGES).sqrt();
        let rate = random.recip() * f64::from(SHIFTED_STAGES);
        Self { shift: mean - random, parts: [(S::from(1.0), SHIFTED_STAGES, rate), (zero, 0, zero)], spread: random }
    }

    fn distribution(&self, t: S) -> S {
        let x = t - self.shift;
        if x < 0.0 {
            return S::from(0.0);
        }
        self.parts.iter().fold(S::from(0.0), |sum, &(weight, stages, rate)| sum + weight * erlang(stages, rate * x))
    }

    /// The slope of that, where it is no constant.
    fn density(&self, t: S) -> S {
        let x = t - self.shift;
        if x < 0.0 {
            return S::from(0.0);
        }
        let of_part = |&(weight, stages, rate): &(S, u32, S)| {
            let earlier = (1..stages).fold(S::from(1.0), |term, k| term * (rate * x) / f64::from(k));
            if stages == 0 { S::from(0.0) } else { weight * rate * earlier * (-(rate * x)).exp() }
        };
        self.parts.iter().fold(S::from(0.0), |sum, part| sum + of_part(part))
    }
}

/// Roots and bounds that do not lose their derivatives where they need not.
trait Guarded: Sized {
    fn max_zero(self) -> Self;
    fn sqrt_safe(self) -> Self;
}

impl<S: Scalar> Guarded for S {
    fn max_zero(self) -> Self {
        if self > 0.0 { self } else { S::from(0.0) }
    }

    fn sqrt_safe(self) -> Self {
        if self > NEGLIGIBLE { self.sqrt() } else { S::from(0.0) }
    }
}

/// Distribution function of an Erlang law of unit rate; of a constant, for no stages.
fn erlang<S: Scalar>(stages: u32, x: S) -> S {
    if stages == 0 {
        return S::from(1.0);
    }
    let (mut term, mut sum) = (S::from(1.0), S::from(1.0));
    for k in 1..stages {
        term *= x / f64::from(k);
        sum += term;
    }
    -(sum * (-x).exp()) + 1.0
}

/// Mean and variance of the time at which `k` of the independent `pieces` have ended.
pub(super) fn kth_completion<S: Scalar>(k: usize, pieces: &[Moments<S>]) -> Moments<S> {
    let laws: Vec<Law<S>> = pieces.iter().map(|&m| Law::new(m)).collect();
    let zero = S::from(0.0);
    if let [only] = pieces {
        return *only;
    }
    let (mut mean, mut square) = (zero, zero);
    let mut counts = vec![zero; laws.len() + 1];
    integrate(&laws.iter().collect::<Vec<_>>(), |t, w| {
        let rest = -at_least(k, &laws, t, &mut counts) + 1.0;
        mean += w * rest;
        square += w * rest * t * 2.0;
    });
    let variance = square - mean * mean;
    Moments::new(mean, if variance > 0.0 { variance } else { zero })
}

/// Means of the times at which one, two and so on of the independent `pieces` have ended.
pub(super) fn mean_completions<S: Scalar>(pieces: &[Moments<S>]) -> Vec<S> {
    let laws: Vec<Law<S>> = pieces.iter().map(|&m| Law::new(m)).collect();
    let zero = S::from(0.0);
    let (mut means, mut counts) = (vec![zero; laws.len()], vec![zero; laws.len() + 1]);
    integrate(&laws.iter().collect::<Vec<_>>(), |t, w| {
        count(&laws, t, &mut counts);
        let mut fewer = zero;
        for (mean, &chance) in means.iter_mut().zip(&counts) {
            fewer += chance;
            *mean += w * fewer;
        }
    });
    means
}

/// A number that is no more than `most`, with the corner between the two rounded so that derivatives pass it.
pub(super) fn at_most<S: Scalar>(number: S, most: f64) -> S {
    if number <= most * (1.0 - CORNER) {
        return number;
    }
    let above = -(number / most) + (1.0 + CORNER);
    if above > 0.0 { (-(above * above) / (4.0 * CORNER) + 1.0) * most } else { S::from(most) }
}

/// Mean time in which two independent pieces of work, each given by its start and its end, both run.
pub(super) fn overlap<S: Scalar>(one: (Moments<S>, Moments<S>), other: (Moments<S>, Moments<S>)) -> S {
    let laws = [one.0, one.1, other.0, other.1].map(Law::new);
    let mut total = S::from(0.0);
    integrate(&laws.iter().collect::<Vec<_>>(), |t, w| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|i: usize| laws[i].distribution(t));
        let both = (a - b) * (c - d);
        if both > 0.0 {
            total += w * both;
        }
    });
    total
}

/// Chance that a piece of work, given by its start and its end, runs at a random time, all three independent.
pub(super) fn runs_at<S: Scalar>(run: (Moments<S>, Moments<S>), time: Moments<S>) -> S {
    let (start, end, at) = (Law::new(run.0), Law::new(run.1), Law::new(time));
    let runs = |t: S| start.distribution(t) - end.distribution(t);
    let (mut chance, mut all) = (S::from(0.0), S::from(0.0));
    for (weight, law) in at.weighted() {
        if law.spread <= 0.0 {
            chance += weight * runs(law.shift);
            all += weight;
            continue;
        }
        integrate(&[&Law { law: law.clone(), without_calls: None }], |t, w| {
            let w = weight * w * law.density(t);
            chance += w * runs(t);
            all += w;
        });
    }
    if all > 0.0 { chance / all } else { S::from(0.0) }
}

/// `P_k(t)`.
fn at_least<S: Scalar>(k: usize, laws: &[Law<S>], t: S, counts: &mut [S]) -> S {
    count(laws, t, counts);
    counts[k..].iter().fold(S::from(0.0), |sum, &c| sum + c)
}

/// Chances that so many pieces have ended, by adding one after the other to the distribution of their number.
fn count<S: Scalar>(laws: &[Law<S>], t: S, counts: &mut [S]) {
    counts.fill(S::from(0.0));
    counts[0] = S::from(1.0);
    for (n, law) in laws.iter().enumerate() {
        let p = law.distribution(t);
        for j in (0..=n + 1).rev() {
            let stays = counts[j] * (-p + 1.0);
            counts[j] = if j > 0 { stays + counts[j - 1] * p } else { stays };
        }
    }
}

/// Calls `at(t, weight)` over the half line, in intervals between the constants of `laws` and a mapped rest.
fn integrate<S: Scalar>(laws: &[&Law<S>], mut at: impl FnMut(S, S)) {
    let mut shifts: Vec<S> = laws.iter().flat_map(|l| l.plain()).map(|l| l.shift).collect();
    shifts.sort_by(|a, b| a.value().total_cmp(&b.value()));
    let mut from = S::from(0.0);
    for &to in &shifts {
        let width = to - from;
        if width > 0.0 {
            for (x, w) in rule() {
                at(from + width * x, width * w);
            }
            from = to;
        }
    }
    let spread = laws.iter().flat_map(|l| l.plain()).map(|l| l.spread).fold(S::from(0.0), |m, s| if s > m { s } else { m });
    if spread <= 0.0 {
        return;
    }
    // t = from + spread x / (1 - x) in two halves of the unit interval.
    for half in [0.0, 0.5] {
        for (x, w) in rule() {
            let x = half + x * 0.5;
            let slope = SPREADS / ((1.0 - x) * (1.0 - x));
            at(from + spread * (SPREADS * x / (1.0 - x)), spread * (slope * w * 0.5));
        }
    }
}

/// Nodes and weights of the 16-point Gauss-Legendre rule on the unit interval (Abramowitz & Stegun 1964, table 25.4).
fn rule() -> impl Iterator<Item = (f64, f64)> {
    const HALF: [(f64, f64); 8] = [
        (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
        (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
        (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
        (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
        (0.755_404_408_355_003, 0.124_628_971_255_533_87),
        (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
        (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
        (0.989_400_934_991_649_9, 0.027_152_459_411_754_095),
    ];
    HALF.into_iter().flat_map(|(x, w)| [(0.5 - x / 2.0, w / 2.0), (0.5 + x / 2.0, w / 2.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(mean: f64) -> Moments<f64> {
        Moments::new(mean, mean * mean)
    }

    #[test]
    fn the_last_of_two_exponential_times_has_its_closed_form() {
        let last = kth_completion(2, &[exponential(1.0), exponential(3.0)]);
        let mean = 1.0 + 3.0 - 1.0 / (1.0 + 1.0 / 3.0);
        assert!((last.mean - mean).abs() < 1e-5, "{} {mean}", last.mean);
        // E[max²] = 2a² + 2b² - 2 (1/(1/a + 1/b))².
        let square = 2.0 + 18.0 - 2.0 * 0.75 * 0.75;
        assert!((last.variance - (square - mean * mean)).abs() < 1e-3, "{}", last.variance);
    }

    #[test]
    fn order_statistics_of_three_equal_exponential_times() {
        let three = [exponential(1.0); 3];
        for (k, mean) in [(1, 1.0 / 3.0), (2, 1.0 / 3.0 + 0.5), (3, 1.0 / 3.0 + 0.5 + 1.0)] {
            assert!((kth_completion(k, &three).mean - mean).abs() < 1e-5, "{k}");
        }
    }

    #[test]
    fn constants_are_constants() {
        let pieces = [Moments::new(2.0, 0.0), Moments::new(5.0, 0.0)];
        let last = kth_completion(2, &pieces);
        assert!((last.mean - 5.0).abs() < 1e-12 && last.variance < 1e-9, "{last:?}");
        assert!((overlap((Moments::zero(), pieces[0]), (Moments::zero(), pieces[1])) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_law_keeps_its_moments() {
        for cvsq in [0.05, 0.25, 0.3, 0.5, 0.9, 1.0, 2.5] {
            let law = Law::new(Moments::new(2.0, 4.0 * cvsq));
            let (mut mean, mut square) = (0.0, 0.0);
            integrate(&[&law], |t, w| {
                mean += w * (1.0 - law.distribution(t));
                square += w * 2.0 * t * (1.0 - law.distribution(t));
            });
            assert!((mean - 2.0_f64).abs() < 1e-4 && (square - mean * mean - 4.0_f64 * cvsq).abs() < 2e-2, "{cvsq} {mean} {square}");
        }
    }

    /// Geometric numbers of exponential calls, of mean 1: nothing as often as an exponential time of twice the mean.
    #[test]
    fn work_that_may_make_no_call_is_not_waited_for_then() {
        let none = WithoutCalls { chance: 0.5, mean: 0.0, variance: 0.0 };
        let one = Moments { mean: 0.5, variance: 0.75, without_calls: Some(none) };
        for (k, expected) in [(2, 0.25 * 1.5 + 0.5), (3, 0.125 * (1.0 + 0.5 + 1.0 / 3.0) + 0.375 * 1.5 + 0.375)] {
            let last = kth_completion(k, &vec![one; k]);
            assert!((last.mean - expected).abs() < 1e-4, "{last:?} {expected}");
        }
        // Two such pieces, one after the other: none in a quarter.
        let two = one + one;
        let without = two.without_calls.unwrap();
        assert!((without.chance - 0.25).abs() < 1e-12 && (two.mean - 1.0).abs() < 1e-12);
    }

    #[test]
    fn two_exponential_times_overlap_for_the_smaller() {
        let start = Moments::zero();
        let both = overlap((start, exponential(1.0)), (start, exponential(3.0)));
        assert!((both - 0.75).abs() < 1e-5, "{both}");
    }
}
