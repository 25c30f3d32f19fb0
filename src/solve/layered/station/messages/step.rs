//! What becomes of what was sent, as the request goes on.

use crate::model::Scalar;

/// Less than this of a cycle forgets nothing.
const NEVER_FORGOTTEN: f64 = 1e-9;

/// What becomes of `o`: `δ` and `β`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<S> {
    pub kept: S,
    pub added: S,
}

impl<S: Scalar> Step<S> {
    pub fn none() -> Self {
        Self { kept: S::from(1.0), added: S::from(0.0) }
    }

    pub fn of(self, found: S) -> S {
        self.kept * found + self.added
    }

    /// The same of each of a number of which this is the sum.
    pub fn over(self, number: S) -> Self {
        Self { kept: self.kept / number, added: self.added / number }
    }

    /// With no more kept than such a part.
    pub fn taken(self, part: S) -> Self {
        Self { kept: self.kept * part, ..self }
    }

    /// So many times.
    pub fn repeated(self, number: S) -> Self {
        let kept = if self.kept > 0.0 { (self.kept.ln() * number).exp() } else { S::from(0.0) };
        Self { kept, added: self.added * (-kept + 1.0) / self.forgotten() }
    }

    /// `o` in the mean where it begins with so many, after this, and so on, so many in all.
    pub fn mean_of(self, begins: S, number: S) -> S {
        let kept = (-self.repeated(number).kept + 1.0) / (self.forgotten() * number);
        kept * begins + self.added * (-kept + 1.0) / self.forgotten()
    }

    pub fn forgotten(self) -> S {
        let forgotten = -self.kept + 1.0;
        if forgotten > NEVER_FORGOTTEN { forgotten } else { S::from(NEVER_FORGOTTEN) }
    }

    pub fn then(self, next: Self) -> Self {
        Self { kept: self.kept * next.kept, added: next.of(self.added) }
    }
}
