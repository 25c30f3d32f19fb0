//! How many threads of a pool are busy whose only callers are the threads of another.
//!
//! These are no sources that come each at its own pace: they are busy by turns, as their own callers come, and while many are, many are below. What a request
//! finds there is what a thread of a closed network of `j` finds (R. R. Muntz and J. W. Wong, 1974; the equations of the parent module), `j` the others that
//! are busy as it finds them:
//!
//! ```text
//! q_T(i) = Σ_j q_U(j) P(N_j = i),     P_T(i) = Σ_j P_U(j) P(N_j = i)         N_j binomial of j with mean Q_T(j), all from `m_T` on together
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `U`, `T` | the pool above and the one below, of `m_T` threads |
//! | `q`, `P` | chances of so many busy threads as an arrival finds them, and at any time |
//! | `Q_T(j)` | how many of `j` threads of `U` are at `T`, waiting or served |
//!
//! What one customer less leaves is not asked here: `ψ` is over what is there with all customers.

use super::{
    super::{
        Layout, Sweep,
        crowd::{Crowds, Numbers, Told, binomial},
    },
    Pool,
};
use crate::model::Scalar;

/// Chances of fewer are not added up.
const NEGLIGIBLE: f64 = 1e-12;

/// Finds from callers down how many threads are busy, and what an arrival finds of them at their stops.
pub(super) fn find_numbers<S: Scalar>(sweep: &Sweep<'_, S>, layouts: &[Layout], pools: &mut [Pool<S>], crowds: &mut Crowds<S>) {
    for below in (0..pools.len()).rev() {
        let task = pools[below].task;
        let Some(station) = sweep.net.tasks[task].station else { continue };
        let layout = &layouts[station];
        let is_told = layout.is_of_one_pool() && pools[below].numbers.is_some();
        let Some(above) = layout.pools.first().filter(|_| is_told).and_then(|&above| pools.iter().find(|pool| pool.task == above)) else {
            continue;
        };
        let lengths = above.stops.iter().find(|stop| stop.station == station).map(|stop| &stop.lengths);
        let Some((numbers, lengths)) = above.numbers.as_ref().zip(lengths.filter(|lengths| !lengths.is_empty())) else { continue };
        let pool = &pools[below];
        let numbers = numbers.below(lengths, pool.threads);
        let busy = (pool.executions * pool.service, pool.service);
        if crowds.add(station, pool.threads, Told::Numbers(numbers), busy, pool.stops.iter().map(|s| s.stay)) {
            pools[below].find_others(crowds, true);
        }
    }
}

impl<S: Scalar> Numbers<S> {
    /// The same of so many threads below, at which so many of one of these and more are in the mean.
    fn below(&self, lengths: &[S], threads: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the largest pool")]
        let all = threads as usize;
        let none = vec![S::from(0.0); all + 1];
        let mut below = Self { found: none.clone(), at_any_time: none };
        let mut there = Vec::new();
        let others = self.others();
        for n in 0..self.at_any_time.len() {
            let (found, at_any_time) = (others.get(n).copied().unwrap_or(S::from(0.0)), self.at_any_time[n]);
            if found <= NEGLIGIBLE && at_any_time <= NEGLIGIBLE {
                continue;
            }
            binomial_of(n, lengths, &mut there);
            for (i, &chance) in there.iter().enumerate() {
                below.found[i.min(all)] += found * chance;
                below.at_any_time[i.min(all)] += at_any_time * chance;
            }
        }
        below
    }
}

/// Chances of how many of `n` are there, of whom as many are in the mean as `lengths` says by number, from one on.
fn binomial_of<S: Scalar>(n: usize, lengths: &[S], chances: &mut Vec<S>) {
    let Some(&length) = n.checked_sub(1).and_then(|at| lengths.get(at)) else {
        chances.clear();
        chances.push(S::from(1.0));
        return;
    };
    #[expect(clippy::cast_precision_loss, reason = "at most the largest pool")]
    let many = n as f64;
    binomial(many, if length < many { length / many } else { S::from(1.0) }, chances);
}
