//! What a thread that comes back finds of requests from outside, in order of arrival.
//!
//! When a thread leaves a first-come first-served queue, all that was there before it is gone: what it finds at its next visit
//! has come since it came itself. A thread that is seldom away so finds less than the mean of what waits, and the less the longer
//! those services are. With `U` the work from outside that it leaves behind, `V` what it would find at any time, and the time `τ` in which
//! work grows from none to `V` at the rate at which it comes,
//!
//! ```text
//! found(z) = (V z' + U τ) / (z' + τ)        U = ρ (W + s + l),   τ = V/ρ,   z' = z²/(z + l)
//!          = V (z' + W + s + l) / (z' + V/ρ)
//! ```
//!
//! `τ` follows from `dV/dz = ρ` at an empty queue, and exponential relaxation met by an exponential gap. It is 1 for services that are exponential
//! and alike, where the arrival theorem holds: there `V = ρ (W + s)`.
//!
//! What comes to a processor finds what has come since the last slice of the same request there ([`super::previous`]), with that one's `W + s`; and where a thread of a bounded pool is back sooner than
//! that, what has come since then. Requests from outside that a pool bounds are, at processors that several tasks share, as from outside in the part `1 - C` in which not all of its threads are busy
//! (Erlang's `C` at their number), and as threads' otherwise; no more of them are found than at any time, as no more threads come than there are.
//!
//! | symbol | is |
//! |---|---|
//! | `ρ` | load from outside |
//! | `V` | those waiting and the rest in service, as found at any time |
//! | `C` | [`super::visit::Visit::as_from_outside`] is `1 - C` |
//! | `W`, `s`, `l` | the thread's own wait, its service until the reply and after it |
//! | `z` | how long it was away ([`super::visit`]); `z'` without the service after the reply |

use super::{At, Scratch, visit::Visit};
use crate::model::Scalar;

impl<S: Scalar> At<'_, S> {
    /// Scales what a row's arrivals find of requests from outside to what has come since their thread came last, or their request.
    pub(super) fn limit_outside(&self, r: usize, scratch: &mut Scratch<S>) {
        let me = &self.visits[self.layout.rows[r].arc];
        if me.gap.long.is_none() && !me.from_outside {
            return;
        }
        let n = self.visits.len();
        let is_processor = self.station < self.sweep.net.n_processors;
        let places = || (0..n).filter(|x| self.visits[*x].as_from_outside > 0.0).map(|x| (x, r * n + x));
        let [mut work, mut rest, mut load] = [S::from(0.0); 3];
        for (x, at) in places() {
            let it = &self.visits[x];
            work += (scratch.alpha[at] * it.wait + scratch.beta[at]) * it.as_from_outside;
            rest += scratch.beta[at] * it.as_from_outside;
            load += it.rate * (it.first + it.late) * it.as_from_outside;
        }
        if work <= 0.0 || load <= 0.0 {
            return;
        }
        let (relaxes, rest) = (work / load, rest / load);
        // With several servers others are still served when it leaves.
        let stay = |it: &Visit<S>| it.wait + (it.first + it.late + rest * (self.servers - 1.0)) / self.servers;
        let found = |stay: S, idle: S| (stay + idle) / (relaxes + idle);
        let mut share = S::from(1.0);
        if is_processor {
            self.courses().for_each_previous(r, |part, slice, away| share += part * (found(stay(&self.visits[slice]), away) - 1.0));
        }
        if !(me.from_outside && is_processor) {
            let stay = stay(me);
            let after = |gap: S| found(stay, if gap > 0.0 { gap * gap / (gap + me.late) } else { gap });
            let mut of_thread = me.gap.long.map_or(S::from(1.0), after);
            if me.gap.short_share > 0.0 {
                of_thread += me.gap.short_share * (after(me.gap.short) - of_thread);
            }
            if of_thread < share {
                share = of_thread;
            }
        }
        for (x, at) in places() {
            let it = &self.visits[x];
            // Of few threads no more come than there are.
            let left = if it.from_outside || share < 1.0 { (share - 1.0) * it.as_from_outside + 1.0 } else { S::from(1.0) };
            scratch.alpha[at] *= left;
            scratch.beta[at] *= left;
        }
    }
}
