//! What goes on for a request without it, as one station sees it.
//!
//! It is there slice by slice, some of which follow each other at once, or elsewhere, by turns; times are taken to be exponential. After a time `t` in which it meets nothing that is told here, with
//! `H` and `A` that are here and elsewhere,
//!
//! ```text
//! H' (1 + t (1 - p)/h) = H + t q A'/a        A' (1 + t/a) = A + t r H'/h
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `h`, `a` | how long a slice takes here with its wait, and a time elsewhere |
//! | `p`, `r` | chance that a slice is followed by another at once, and that it is followed by a time elsewhere |
//! | `q` | chance that a slice follows a time elsewhere |

use super::step::{Kept, There};
use crate::model::Scalar;

/// Least share of slices that no other follows at once.
const LEAST_OTHERS: f64 = 1e-3;

/// How something that goes on is at a station and elsewhere by turns.
#[derive(Clone, Debug)]
pub(super) struct Presence<S> {
    pub slices: Vec<Slices<S>>,
    /// How long one of them is served, in the mean.
    pub service: S,
    /// `h`, `a`.
    pub here: S,
    pub away: S,
    /// `p`, `r`, `q`.
    pub on: S,
    pub leaves: S,
    pub returns: S,
    /// The chance that it begins here.
    pub begins_here: S,
}

/// Its slices at one place among the station's arcs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slices<S> {
    pub arc: usize,
    /// Their share of all.
    pub share: S,
    /// The share of all of those that are of the same threads, and how many threads there are for them, where it has to wait for one again and again.
    pub of_pool: S,
    pub threads: f64,
}

impl<S: Scalar> Slices<S> {
    /// How many there are here of so many that are here in all, for whom some threads are taken.
    pub fn of(&self, here: S, taken: f64) -> S {
        let all = here * self.of_pool;
        let held = if self.threads.is_finite() { (all / (all + 1.0)).powf((self.threads - taken).max(0.0)) } else { S::from(0.0) };
        here * self.share * (-held + 1.0)
    }
}

impl<S: Scalar> Presence<S> {
    /// One that begins.
    pub fn begun(&self) -> There<S> {
        There { here: self.begins_here, away: -self.begins_here + 1.0 }
    }

    /// The chance that a part of it that begins is still there after such a time.
    pub fn outlasts(&self, time: S) -> S {
        let it = self.after(time).of(self.begun());
        it.here + it.away
    }

    /// After such a time.
    pub fn after(&self, time: S) -> Kept<S> {
        if time <= 0.0 {
            return Kept::all();
        }
        let (zero, one) = (S::from(0.0), S::from(1.0));
        // In units of which those elsewhere are `a`.
        let slices = time / self.here;
        let (here, here_away) = (slices * (-self.on + 1.0) + 1.0, -(time * self.returns));
        let (away_here, away) = (-(slices * self.leaves), self.away + time);
        let per_det = (here * away - here_away * away_here).recip();
        let solved = |h: S, a: S| {
            let (h, a) = (h * per_det, a * per_det);
            There { here: h * away - here_away * a, away: (here * a - away_here * h) * self.away }
        };
        Kept { here: solved(one, zero), away: solved(zero, one) }
    }

    /// The same of one elsewhere, while whoever comes stays.
    pub fn gather(&self, time: S) -> There<S> {
        let stays = if time > 0.0 { self.away / (self.away + time) } else { S::from(1.0) };
        There { here: self.returns * (-stays + 1.0), away: stays }
    }

    /// Slices that follow each other at once, of one that begins.
    pub fn slices_together(&self) -> S {
        let others = -self.on + 1.0;
        if others > LEAST_OTHERS { others.recip() } else { S::from(LEAST_OTHERS.recip()) }
    }

    /// What has become of those here where a less urgent request comes after them.
    pub fn go_before(&self, it: There<S>) -> There<S> {
        There { here: S::from(0.0), away: it.away + it.here * self.leaves * self.slices_together() }
    }

    /// One whose slice here ends, such a time before.
    pub fn ended(&self, time: S) -> There<S> {
        let left = self.gather(time).times(self.leaves);
        There { here: left.here + self.on, ..left }
    }
}
