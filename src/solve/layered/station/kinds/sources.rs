//! Sources of two kinds, and who of them is there: what the chains are asked and tell.

use smallvec::SmallVec;

use crate::model::Scalar;

/// Sources of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Kind<S> {
    /// How many; infinite of a Poisson stream.
    pub sources: f64,
    /// Mean time until one that went is back, unless it is back at once; of a stream, between two that come.
    pub away: S,
    pub service: S,
    /// Chance that one that was served is back at once, behind all who are there.
    pub again: S,
}

/// Most kinds that a chain tells apart.
const MOST_KINDS: usize = 3;

/// How many of each of `K` kinds wait, and how many are in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct There<S, const K: usize = 2> {
    pub waiting: [S; K],
    pub busy: [S; K],
}

/// What a transition is by, of a kind: one comes, has been served and goes, or is back at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Comes(usize),
    Goes(usize),
    Stays(usize),
}

/// What transitions of a chain are by.
pub(super) trait Causes: Copy {
    /// All there are, in the order of their numbers.
    fn all() -> impl Iterator<Item = Self>;

    fn number(self) -> usize;
}

/// A number that rates of a chain depend on.
pub(super) trait Weigh: Copy {
    type By: Causes;

    /// How the logarithm of a rate by such a cause changes with the number.
    fn weight(self, by: Self::By) -> f64;
}

/// How the logarithms of rates change, by cause.
#[derive(Clone, Debug)]
pub(super) struct Weights(SmallVec<[f64; 18]>);

impl Weights {
    /// Where numbers change by so much.
    fn new<A: Weigh>(parts: &[(f64, A)]) -> Self {
        Self(A::By::all().map(|by| parts.iter().map(|(slope, along)| slope * along.weight(by)).sum()).collect())
    }

    pub fn of(&self, by: impl Causes) -> f64 {
        self.0[by.number()]
    }
}

/// A number of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Along {
    Away(usize, f64),
    Service(usize, f64),
    Again(usize, f64),
}

impl Causes for Cause {
    fn all() -> impl Iterator<Item = Self> {
        [Self::Comes, Self::Goes, Self::Stays].into_iter().flat_map(|cause| (0..MOST_KINDS).map(cause))
    }

    fn number(self) -> usize {
        match self {
            Self::Comes(of) => of,
            Self::Goes(of) => MOST_KINDS + of,
            Self::Stays(of) => 2 * MOST_KINDS + of,
        }
    }
}

impl Weigh for Along {
    type By = Cause;

    fn weight(self, by: Cause) -> f64 {
        match (self, by) {
            (Self::Away(kind, time), Cause::Comes(of)) | (Self::Service(kind, time), Cause::Goes(of) | Cause::Stays(of)) if kind == of => {
                -time.recip()
            }
            (Self::Again(kind, chance), Cause::Stays(of)) if kind == of => chance.recip(),
            (Self::Again(kind, chance), Cause::Goes(of)) if kind == of => -(1.0 - chance).recip(),
            _ => 0.0,
        }
    }
}

impl<S, const K: usize> There<S, K> {
    fn each_with(&mut self, other: There<f64, K>, mut change: impl FnMut(&mut S, f64)) {
        let ours = self.waiting.iter_mut().chain(&mut self.busy);
        ours.zip(other.waiting.into_iter().chain(other.busy)).for_each(|(it, other)| change(it, other));
    }
}

impl<const K: usize> There<f64, K> {
    pub fn map(self, to: impl Fn(f64) -> f64) -> Self {
        Self { waiting: self.waiting.map(&to), busy: self.busy.map(&to) }
    }

    pub fn zip(self, other: Self, to: impl Fn(f64, f64) -> f64) -> Self {
        let both = |ours: [f64; K], others: [f64; K]| std::array::from_fn(|of| to(ours[of], others[of]));
        Self { waiting: both(self.waiting, other.waiting), busy: both(self.busy, other.busy) }
    }
}

/// From what a chain of plain numbers says, and `slopes`: how that changes where rates change by such weights. One is asked for each direction of
/// derivatives, or for each of the `numbers`, whichever are fewer.
pub(super) fn with_slopes<S: Scalar, A: Weigh, const K: usize>(
    values: There<f64, K>,
    numbers: impl IntoIterator<Item = (S, A)>,
    mut slopes: impl FnMut(&Weights) -> Option<There<f64, K>>,
) -> Option<There<S, K>> {
    let mut it = There { waiting: values.waiting.map(S::from), busy: values.busy.map(S::from) };
    let moves: SmallVec<[(S, A); 6]> =
        numbers.into_iter().filter(|(number, _)| number.derivatives().iter().any(|slope| *slope != 0.0)).collect();
    let n_directions = moves.iter().map(|(number, _)| number.derivatives().len()).max().unwrap_or(0);
    if n_directions < moves.len() {
        for direction in 0..n_directions {
            let slope_of = |number: &S| number.derivatives().get(direction).copied().unwrap_or(0.0);
            let parts: SmallVec<[(f64, A); 6]> =
                moves.iter().map(|(number, along)| (slope_of(number), *along)).filter(|(slope, _)| *slope != 0.0).collect();
            if parts.is_empty() {
                continue;
            }
            let slopes = slopes(&Weights::new(&parts))?;
            it.each_with(slopes, |found, slope| found.derivatives_mut()[direction] += slope);
        }
        return Some(it);
    }
    for (number, along) in moves {
        let slopes = slopes(&Weights::new(&[(1.0, along)]))?;
        let moved = number - number.value();
        it.each_with(slopes, |found, slope| *found += moved * slope);
    }
    Some(it)
}

/// All numbers of the kinds.
pub(super) fn numbers<S: Scalar, const K: usize>(kinds: &[Kind<S>; K]) -> impl Iterator<Item = (S, Along)> {
    kinds.iter().enumerate().flat_map(|(of, kind)| {
        let &Kind { away, service, again, .. } = kind;
        let along = [Along::Away(of, away.value()), Along::Service(of, service.value()), Along::Again(of, again.value())];
        [away, service, again].into_iter().zip(along)
    })
}

/// The kinds without derivatives.
pub(super) fn plain<S: Scalar, const K: usize>(kinds: &[Kind<S>; K]) -> [Kind<f64>; K] {
    kinds.map(|kind| Kind { sources: kind.sources, away: kind.away.value(), service: kind.service.value(), again: kind.again.value() })
}

/// The kinds with so many sources, away for shorter in the same proportion.
pub(super) fn of_sources<S: Scalar, const K: usize>(kinds: &[Kind<S>; K], fewer: [f64; K]) -> [Kind<S>; K] {
    std::array::from_fn(|of| {
        let Kind { sources, away, .. } = kinds[of];
        let part = if sources > 0.0 && sources.is_finite() { fewer[of] / sources } else { 1.0 };
        Kind { sources: fewer[of], away: away * part, ..kinds[of] }
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of sources and servers are few here")]
pub(super) fn number(sources: f64) -> usize {
    sources as usize
}

#[expect(clippy::cast_precision_loss, reason = "numbers of sources are few here")]
pub(super) fn count(n: usize) -> f64 {
    n as f64
}

/// 0 up to the one, 1 from the other, and smooth between them.
pub(super) fn ramp<S: Scalar>(x: S, [none, all]: [f64; 2]) -> S {
    if x <= none {
        return S::from(0.0);
    }
    if x >= all {
        return S::from(1.0);
    }
    let part = (x - none) / (all - none);
    part * part * (-part * 2.0 + 3.0)
}
