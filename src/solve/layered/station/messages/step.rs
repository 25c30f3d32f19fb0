//! What becomes of what goes on for a request, as the request goes on itself.

use std::ops::Add;

use crate::model::Scalar;

/// Less than this of a cycle forgets nothing.
const NEVER_FORGOTTEN: f64 = 1e-9;

/// How many are at a station, and how many elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct There<S> {
    pub here: S,
    pub away: S,
}

/// What becomes of `o`: what is left of those that are there, and what is added; each from here and from elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<S> {
    pub kept: Kept<S>,
    pub added: There<S>,
}

/// What is left of one that is here, and of one elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept<S> {
    pub here: There<S>,
    pub away: There<S>,
}

impl<S: Scalar> There<S> {
    pub fn none() -> Self {
        Self { here: S::from(0.0), away: S::from(0.0) }
    }

    pub fn times(self, factor: S) -> Self {
        Self { here: self.here * factor, away: self.away * factor }
    }
}

impl<S: Scalar> Add for There<S> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { here: self.here + other.here, away: self.away + other.away }
    }
}

impl<S: Scalar> Kept<S> {
    pub fn all() -> Self {
        let (zero, one) = (S::from(0.0), S::from(1.0));
        Self { here: There { here: one, away: zero }, away: There { here: zero, away: one } }
    }

    pub fn none() -> Self {
        Self { here: There::none(), away: There::none() }
    }

    pub fn of(self, there: There<S>) -> There<S> {
        self.here.times(there.here) + self.away.times(there.away)
    }

    pub fn times(self, factor: S) -> Self {
        Self { here: self.here.times(factor), away: self.away.times(factor) }
    }

    /// First this, and then what is next.
    pub fn then(self, next: Self) -> Self {
        Self { here: next.of(self.here), away: next.of(self.away) }
    }

    pub fn plus(self, other: Self) -> Self {
        Self { here: self.here + other.here, away: self.away + other.away }
    }

    /// `Σ K^i`, of as much as is forgotten at all.
    pub fn again_and_again(self) -> Self {
        let gone = |kept: S| -kept + 1.0;
        let (here, away) = (gone(self.here.here), gone(self.away.away));
        let det = here * away - self.here.away * self.away.here;
        let det = if det > NEVER_FORGOTTEN { det } else { S::from(NEVER_FORGOTTEN) };
        Self { here: There { here: away / det, away: self.here.away / det }, away: There { here: self.away.here / det, away: here / det } }
    }
}

impl<S: Scalar> Step<S> {
    /// Nothing is done.
    pub fn none() -> Self {
        Self { kept: Kept::all(), added: There::none() }
    }

    /// Nothing is left.
    pub fn nothing() -> Self {
        Self { kept: Kept::none(), added: There::none() }
    }

    pub fn of(self, found: There<S>) -> There<S> {
        self.kept.of(found) + self.added
    }

    /// With so much of it.
    pub fn times(self, factor: S) -> Self {
        Self { kept: self.kept.times(factor), added: self.added.times(factor) }
    }

    /// One or the other, each with its chance in it.
    pub fn or(self, other: Self) -> Self {
        Self { kept: self.kept.plus(other.kept), added: self.added + other.added }
    }

    pub fn then(self, next: Self) -> Self {
        Self { kept: self.kept.then(next.kept), added: next.of(self.added) }
    }

    /// So many times, and what there is in the mean after each of them.
    pub fn repeated(self, number: S) -> (Self, Self) {
        let (mut all, mut sum) = (Self::none(), Self::nothing());
        let (mut power, mut powers) = (self, self);
        let whole = number.value().floor();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number, held to what fits")]
        let mut left = whole as u64;
        while left > 0 {
            if left & 1 == 1 {
                sum = sum.or(all.then(powers));
                all = all.then(power);
            }
            powers = powers.or(power.then(powers));
            power = power.then(power);
            left >>= 1;
        }
        let part = number - whole;
        let next = all.then(self);
        (next.times(part).or(all.times(-part + 1.0)), sum.or(next.times(part)).times(number.recip()))
    }
}
