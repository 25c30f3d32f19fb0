//! How long a request's customer has been away from a processor that several tasks of one chain share, or one task without bound has, of which
//! each request has a thread of its own.
//!
//! It was there for the slice before, a moment or a call ago ([`super::previous`]), whichever task ran it; the threads of the task that runs this
//! one may not have been there for long. Of the arrivals of row `b`, `p_bk` follow slice `k` after a gap `a_bk`. The others, of class `c`, were away for
//!
//! ```text
//! z_c = [N_c - Σ_b λ_b ρ_b(c) (W_b + s_b + Σ_k p_bk a_bk)] / Σ_b λ_b ρ_b(c) (1 - Σ_k p_bk)
//! ```
//!
//! over the rows of slices that the customers wait for, so that the mean over all is the mean time for which the customers of the class are away;
//! where the thread that runs the slice was here later, since it works for others too, as long as that was. What is left of the services that
//! they find follows, by [`super::super::residual`], from each of these gaps and from what was served before it.
//!
//! | symbol | is |
//! |---|---|
//! | `N_c`, `ρ_b(c)` | customers of the class, and its share of the row's requests |
//! | `λ_b`, `W_b`, `s_b` | slices of the row a unit of time, the wait for one, and how long it is served |

use super::{At, visit::SHORTEST_GAP};
use crate::model::Scalar;

/// One way in which a request was at its processor last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since<S> {
    /// Share of the arrivals.
    part: S,
    /// What it was served then.
    pub served: S,
    /// The mean rest of such a service.
    pub rest: S,
    /// How long ago.
    pub gap: S,
}

impl<S: Scalar> Since<S> {
    /// The same, of all arrivals.
    pub fn alone(self) -> Self {
        Self { part: S::from(1.0), ..self }
    }
}

/// How the requests of a station were there last.
#[derive(Clone, Debug)]
pub(super) struct Absences<S> {
    since: Vec<Since<S>>,
    /// Where those of each row begin, and the last end; empty where they are not known.
    first: Vec<usize>,
    /// `z_c` with its denominator, by class.
    away: Vec<(S, S)>,
}

impl<S> Absences<S> {
    /// Nothing known.
    pub fn new() -> Self {
        Self { since: Vec::new(), first: Vec::new(), away: Vec::new() }
    }

    /// Those of a row; none where they are not known, as of what goes on after the reply.
    pub fn of_row(&self, r: usize) -> &[Since<S>] {
        self.first.get(r..r + 2).map_or(&[], |ends| &self.since[ends[0]..ends[1]])
    }

    fn clear(&mut self) {
        self.since.clear();
        self.first.clear();
        self.away.clear();
    }
}

impl<S: Scalar> At<'_, S> {
    /// Finds them at a station that is customers' alone.
    pub(super) fn find_absences(&self, absences: &mut Absences<S>) {
        absences.clear();
        if !self.layout.of_customers {
            return;
        }
        let zero = S::from(0.0);
        let Absences { since, first, away } = absences;
        away.extend(self.sweep.populations.customers.iter().map(|&n| (S::from(n), zero)));
        let least = self.mean_service * SHORTEST_GAP + f64::MIN_POSITIVE;
        let floor = |gap: S| if gap > least { gap } else { least };
        for (r, row) in self.layout.rows.iter().enumerate() {
            let from = since.len();
            first.push(from);
            if row.follows_reply {
                continue;
            }
            let it = &self.visits[row.arc];
            let (mut others, mut time) = (S::from(1.0), it.wait + it.first);
            self.courses().for_each_previous(r, |part, slice, gap| {
                others -= part;
                time += part * gap;
                match since[from..].last_mut() {
                    // What was served counts where there is only one other.
                    Some(last) if self.sources > 2.0 && gap <= last.gap && last.gap <= least => last.part += part,
                    _ => since.push(Since { part, served: self.visits[slice].first, rest: self.visits[slice].first_rest, gap: floor(gap) }),
                }
            });
            since.push(Since { part: others, served: it.first, rest: it.first_rest, gap: least });
            for ((away, visits), &share) in away.iter_mut().zip(self.class_shares(row.kin)) {
                let rate = it.rate * share;
                *away -= rate * time;
                *visits += rate * others;
            }
        }
        first.push(since.len());
        for (away, visits) in away.iter_mut() {
            *away = if *away > 0.0 && *visits > 0.0 { *away / *visits } else { zero };
        }
        for (row, &next) in self.layout.rows.iter().zip(&first[1..]).filter(|(row, _)| !row.follows_reply) {
            let long = self.class_shares(row.kin).iter().zip(&*away).fold(zero, |sum, (&share, &(away, _))| sum + share * away);
            // A thread that others keep busy is back before the customer.
            let long = self.visits[row.arc].gap.long.filter(|thread| *thread < long).unwrap_or(long);
            since[next - 1].gap = floor(long);
        }
    }
}

/// The mean of a value over the ways in which requests were here last.
pub(super) fn mean_since<S: Scalar>(since: &[Since<S>], of: impl Fn(&Since<S>) -> S) -> S {
    since.iter().fold(S::from(0.0), |sum, before| sum + before.part * of(before))
}
