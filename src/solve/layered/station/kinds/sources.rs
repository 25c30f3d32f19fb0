//! Sources of two kinds, and who of them is there: what the chains are asked and tell.

use crate::model::Scalar;

/// Sources of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Kind<S> {
    pub sources: f64,
    /// Mean time until one that went is back, unless it is back at once.
    pub away: S,
    pub service: S,
    /// Chance that one that was served is back at once, behind all who are there.
    pub again: S,
}

/// How many of each kind wait, and how many are in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct There<S> {
    pub waiting: [S; 2],
    pub busy: [S; 2],
}

/// What a transition is by, of a kind: one comes, has been served and goes, or is back at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Comes(usize),
    Goes(usize),
    Stays(usize),
}

/// A number of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Along {
    Away(usize, f64),
    Service(usize, f64),
    Again(usize, f64),
}

impl Along {
    /// How the logarithm of a rate by such a cause changes with it.
    pub fn weight(self, by: Cause) -> f64 {
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

impl There<f64> {
    pub fn map(self, to: impl Fn(f64) -> f64) -> Self {
        Self { waiting: self.waiting.map(&to), busy: self.busy.map(&to) }
    }

    pub fn zip(self, other: Self, to: impl Fn(f64, f64) -> f64) -> Self {
        let both = |ours: [f64; 2], others: [f64; 2]| std::array::from_fn(|of| to(ours[of], others[of]));
        Self { waiting: both(self.waiting, other.waiting), busy: both(self.busy, other.busy) }
    }
}

/// From what a chain of plain numbers says, and how that changes with each of its `numbers`.
pub(super) fn with_slopes<S: Scalar, A>(
    values: There<f64>,
    numbers: impl IntoIterator<Item = (S, A)>,
    mut slopes: impl FnMut(A) -> Option<There<f64>>,
) -> Option<There<S>> {
    let mut it = There { waiting: values.waiting.map(S::from), busy: values.busy.map(S::from) };
    for (number, along) in numbers {
        if number.derivatives().iter().all(|slope| *slope == 0.0) {
            continue;
        }
        let slopes = slopes(along)?;
        let moved = number - number.value();
        for (found, slope) in it.waiting.iter_mut().chain(&mut it.busy).zip(slopes.waiting.into_iter().chain(slopes.busy)) {
            *found += moved * slope;
        }
    }
    Some(it)
}

/// All numbers of the kinds.
pub(super) fn numbers<S: Scalar>(kinds: &[Kind<S>; 2]) -> impl Iterator<Item = (S, Along)> {
    kinds.iter().enumerate().flat_map(|(of, kind)| {
        [
            (kind.away, Along::Away(of, kind.away.value())),
            (kind.service, Along::Service(of, kind.service.value())),
            (kind.again, Along::Again(of, kind.again.value())),
        ]
    })
}

/// The kinds without derivatives.
pub(super) fn plain<S: Scalar>(kinds: &[Kind<S>; 2]) -> [Kind<f64>; 2] {
    kinds.map(|kind| Kind { sources: kind.sources, away: kind.away.value(), service: kind.service.value(), again: kind.again.value() })
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
