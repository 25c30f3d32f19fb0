//! How many threads of a pool are busy whose only callers are the threads of another.
//!
//! These are no sources that come each at its own pace: they are busy by turns, as their own callers come, and while many are, many are below. What a request
//! finds there is what a thread of a closed network of `j` finds (R. R. Muntz and J. W. Wong, 1974; the equations of the parent module), `j` the others that
//! are busy as it finds them:
//!
//! ```text
//! q_T(i) = Σ_j q_U(j) P(N_j = i),     P_T(i) = Σ_j P_U(j) P(N_j = i)         N_j of j sources, Q_T(j) there
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `U`, `T` | the pool above and the one below, of `m_T` threads |
//! | `q`, `P` | chances of so many busy threads as an arrival finds them, and at any time |
//! | `N_j`, `Q_T(j)` | how many of `j` threads of `U` are at `T`, waiting or served, with the chances of [`super::super::busy`] (`there`; `m_T` and more are one), and their mean |
//!
//! What one customer less leaves is not asked here: `ψ` is over what is there with all customers.

use super::{
    super::{
        Layout, Sweep,
        crowd::{Crowds, HowMany, Numbers},
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
        let Some(&above) = layout.pools.first().filter(|_| is_told) else { continue };
        // Where fewer can come than there are threads above, the others' are never here.
        if customers(sweep, layout) < sweep.populations.strands_at(sweep.net, above, station) {
            continue;
        }
        let Some(above) = pools.iter().find(|pool| pool.task == above) else { continue };
        let there = above.stops.iter().find(|stop| stop.station == station).map(|stop| &stop.numbers);
        let Some((numbers, there)) = above.numbers.as_ref().zip(there.filter(|there| !there.is_empty())) else { continue };
        let pool = &pools[below];
        let numbers = numbers.below(there, pool.threads);
        let counts = above.counts;
        let busy = (pool.executions * pool.service, pool.service);
        if crowds.add(station, pool.threads, HowMany::Numbers(numbers), pool.services_alone(), busy, pool.stops.iter().map(|s| s.stay)) {
            pools[below].counts = counts;
            pools[below].find_others(crowds, true);
        }
    }
}

/// How many customers there are of the classes that all requests at a station are of; infinitely many where some come from outside.
fn customers<S: Scalar>(sweep: &Sweep<'_, S>, layout: &Layout) -> f64 {
    let populations = sweep.populations.customers;
    let n = populations.len();
    let shares = |&arc: &usize| sweep.net.kin_of_arc(arc).map(|kin| &sweep.exclusion.class_shares[kin * n..(kin + 1) * n]);
    let Some(shares) = layout.arcs.iter().map(shares).collect::<Option<Vec<_>>>() else { return f64::INFINITY };
    if shares.iter().any(|of_arc| of_arc.iter().map(Scalar::value).sum::<f64>() < 1.0 - NEGLIGIBLE) {
        return f64::INFINITY;
    }
    let comes = |class: usize| shares.iter().any(|of_arc| of_arc[class] > 0.0);
    populations.iter().enumerate().filter(|(class, _)| comes(*class)).map(|(_, customers)| customers).sum()
}

impl<S: Scalar> Numbers<S> {
    /// The same of so many threads below, where of one of these and more so many are with the chances `there`.
    fn below(&self, there: &[Vec<S>], threads: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the largest pool")]
        let all = threads as usize;
        let none = vec![S::from(0.0); all + 1];
        let mut below = Self { found: none.clone(), at_any_time: none };
        let (others, nobody) = (self.others(), [S::from(1.0)]);
        for (n, &at_any_time) in self.at_any_time.iter().enumerate() {
            let found = others.get(n).copied().unwrap_or(S::from(0.0));
            if found <= NEGLIGIBLE && at_any_time <= NEGLIGIBLE {
                continue;
            }
            let there = n.checked_sub(1).map_or(Some(&nobody[..]), |more| there.get(more).map(Vec::as_slice));
            for (i, &chance) in there.into_iter().flatten().enumerate() {
                below.found[i.min(all)] += found * chance;
                below.at_any_time[i.min(all)] += at_any_time * chance;
            }
        }
        below
    }
}
