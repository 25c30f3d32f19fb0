//! What the arrival's own thread does to the queue it finds.
//!
//! From the parts `W_b = Σ_x (α_bx W_x + β_bx) + own_b` of a sweep: without the thread of node `i`,
//!
//! ```text
//! w_ib = Σ_x K'_ix B_i,pool(x) (α_bx w_ix + β_bx) + own_b        R_ib = w_ib / W_b
//! φ_i,pool = Σ_{b of the pool} ℓ_b (W_b - w_ib) / threads        B = 1/(1 - φ)
//! ```
//!
//! with `K' = K`, but between threads of one pool `min(1, K/K̄)`: how much they exclude each other in the mean is known better ([`super::pool`]).
//! What a thread's own strands wait for each other stays, but for the arrival's own strand, which `w` and `φ` are without.
//!
//! The Linearizer has part of this: with one customer less of the arrival's class ([`super::super::linearizer`]) there is less of its own pool.
//! With `Q` the requests of that pool here, and `m` threads that can be busy, what it leaves of the own thread is
//!
//! ```text
//! ψ = 1 - m (1 - Q(N - 1_c)/Q(N)), at least 0        R ← 1 - ψ (1 - R)    φ ← ψ φ    D ← ψ D
//! ```
//!
//! (0 for a thread that works for one customer only, 1 for one that others keep as busy), `D` of [`super::spared`].
//!
//! `R` is the share of those waiting who would wait all the same, `φ` the share of its time that a thread of the other pool
//! spends waiting behind `i`'s. Together they are exact for two customers of equal service. `R` follows the waits a sweep late and takes
//! sweeps of its own; in the network with one customer less it is that of all of them.

use super::{super::vectors::dot_of_two, At, Scratch, layout};
use crate::model::Scalar;

/// Bound on `φ`, beyond which the boost is not believed.
const MAX_BOOST_SHARE: f64 = 0.9;
/// Waits below this fraction of a service are rounding: what is left of them is not asked.
const NEGLIGIBLE_WAIT: f64 = 1e-12;

/// Threads that meet less than this in the mean do not meet but for rounding.
pub(super) const NEVER: f64 = 1e-9;

/// Held between 0 and 1.
pub(super) fn bounded<S: Scalar>(x: S) -> S {
    if x > 1.0 {
        S::from(1.0)
    } else if x < 0.0 {
        S::from(0.0)
    } else {
        x
    }
}

impl<S: Scalar> At<'_, S> {
    pub(super) fn removal_ratio(&self, group: Option<usize>, row: usize) -> S {
        group.map_or(S::from(1.0), |g| self.sweep.unknowns[self.places.removal + g * self.layout.rows.len() + row])
    }

    /// `ψ`: how much of what the own thread does the Linearizer leaves, for the arrivals of a row.
    pub(super) fn remaining(&self, row: &layout::Row) -> S {
        if self.sweep.populations.changes.are_known { self.share_of_thread(row) } else { S::from(1.0) }
    }

    /// The same, also before it is known what one customer less changes.
    pub(super) fn share_of_thread(&self, row: &layout::Row) -> S {
        let one = S::from(1.0);
        let populations = self.sweep.populations;
        let Some(pool) = row.pool else { return one };
        let shares = &*self.absent_shares(row);
        let (mut less, mut full) = (S::from(0.0), S::from(0.0));
        for ((v, &arc), _) in self.visits.iter().zip(&self.layout.arcs).zip(&self.layout.pool_of).filter(|(_, p)| **p == Some(pool)) {
            let seen = self.sweep.seen(shares, arc);
            less += v.rate * (seen.waiting * v.wait + seen.first * v.first);
            full += v.rate * (v.wait + v.first);
        }
        let threads = populations.caps[self.layout.pools[pool]];
        if full <= 0.0 || threads.is_infinite() {
            return one;
        }
        bounded(one - (one - less / full) * threads)
    }

    /// `R` within a pool. Strands of a fork stay with their thread.
    pub(super) fn removal_within(&self, group: Option<usize>, row: usize) -> S {
        if self.is_removed_within() { self.removal_ratio(group, row) } else { S::from(1.0) }
    }

    fn is_removed_within(&self) -> bool {
        self.sweep.tells_strands && !self.layout.of_forks
    }

    /// `B` of every pool for the arrivals of a group; ones for those that no thread sends.
    pub(super) fn set_boosts(&self, group: Option<usize>, remaining: S, boosts: &mut Vec<S>) {
        let n_pools = self.layout.pools.len();
        boosts.clear();
        let Some(group) = group else {
            boosts.resize(n_pools, S::from(1.0));
            return;
        };
        let from = self.places.boost + group * n_pools;
        boosts.extend(self.sweep.unknowns[from..from + n_pools].iter().map(|&share| (-(share * remaining) + 1.0).recip()));
    }

    /// `K'` of every group, by arc.
    pub(super) fn find_apart(&self, keep: &[S], apart: &mut Vec<S>) {
        let n = self.visits.len();
        apart.clear();
        for &row in &self.layout.row_of_group {
            let from = apart.len();
            apart.extend_from_slice(&keep[row * n..(row + 1) * n]);
            let Some(pool) = self.layout.rows[row].pool.filter(|&pool| self.left[pool].is_less() && self.is_removed_within()) else {
                continue;
            };
            let mean = self.left[pool].keep;
            let meet = mean > NEVER;
            for (k, _) in apart[from..].iter_mut().zip(&self.layout.pool_of).filter(|(_, p)| **p == Some(pool)) {
                *k = if meet && *k < mean { *k / mean } else { S::from(1.0) };
            }
        }
    }

    /// One pass of Gauss and Seidel over the system of `w`, from the last `R`, for every group, and `R = w / W` from it.
    pub(super) fn update_removal(&self, scratch: &mut Scratch<S>, removal: &mut [S]) {
        let (n, n_rows) = (self.visits.len(), self.layout.rows.len());
        let one = S::from(1.0);
        let negligible = self.mean_service * NEGLIGIBLE_WAIT;
        let Scratch { without, wait, alpha, beta, own, apart, alpha_own, beta_own, boosts, kept, terms: kept_waits, .. } = scratch;
        for group in 0..self.layout.row_of_group.len() {
            let ratios = &mut removal[group * n_rows..(group + 1) * n_rows];
            let keep = &apart[group * n..(group + 1) * n];
            if keep.iter().all(|k| *k == 1.0) && !self.layout.siblings {
                ratios.fill(one);
                continue;
            }
            self.set_boosts(Some(group), one, boosts);
            kept.clear();
            kept.extend(keep.iter().zip(&self.layout.pool_of).map(|(&k, pool)| pool.map_or(k, |pool| k * boosts[pool])));
            let last = &self.sweep.unknowns[self.places.removal + group * n_rows..][..n_rows];
            without.clear();
            without.extend(wait.iter().zip(last).map(|(&wait, &ratio)| wait * ratio));
            kept_waits.clear();
            kept_waits.extend(kept.iter().zip(&self.layout.row_of).map(|(&kept, &row)| kept * without[row]));
            let terms = alpha.chunks_exact(n).zip(beta.chunks_exact(n)).zip(own.iter().zip(wait.iter()));
            for (b, (((alpha, beta), (&own, &wait)), ratio)) in terms.zip(ratios).enumerate() {
                if wait <= negligible {
                    *ratio = one;
                    continue;
                }
                let mut left = own + dot_of_two((alpha, kept_waits), (beta, kept));
                if self.layout.siblings {
                    left += self.own_strands_left(group, b, kept, without, alpha_own, beta_own);
                }
                without[b] = left;
                self.layout.arcs_of(b).iter().for_each(|&x| kept_waits[x] = kept[x] * left);
                *ratio = if left > wait { one } else { bounded(left / wait) };
            }
        }
    }

    /// Own strands stay, except the arrival's own; what was `kept` of them with the others is taken back.
    fn own_strands_left(&self, group: usize, b: usize, kept: &[S], without: &[S], alpha_own: &[S], beta_own: &[S]) -> S {
        let n = self.visits.len();
        (0..n).fold(S::from(0.0), |sum, x| {
            let at = b * n + x;
            let own = alpha_own[at] * without[self.layout.row_of[x]] + beta_own[at];
            let stays = if self.layout.group_of[x] == Some(group) { 0.0 } else { 1.0 };
            sum + own * (-kept[x] + stays)
        })
    }

    /// What a row waits for the arrival's own strand, whose absence speeds up no other thread.
    fn own_strand_gone(&self, group: usize, b: usize, alpha_own: &[S], beta_own: &[S]) -> S {
        let n = self.visits.len();
        let own = (0..n).filter(|&x| self.layout.group_of[x] == Some(group));
        own.fold(S::from(0.0), |sum, x| sum + alpha_own[b * n + x] * self.visits[x].wait + beta_own[b * n + x])
    }

    /// `φ` of every group and pool, from the `removal` of this sweep.
    pub(super) fn update_boost(&self, scratch: &mut Scratch<S>, removal: &[S], boost: &mut [S]) {
        let n_rows = self.layout.rows.len();
        let n_pools = self.layout.pools.len();
        let Scratch { wait, weights, alpha_own, beta_own, .. } = scratch;
        // Requests of a thread in each row, a unit of time.
        weights.clear();
        weights.resize(n_rows, S::from(0.0));
        for (b, v) in self.visits.iter().enumerate() {
            let Some(pool) = self.layout.pool_of[b] else { continue };
            let threads = self.sweep.populations.threads(self.sweep.net, self.layout.pools[pool]);
            let threads = threads * self.sweep.net.tasks[self.layout.pools[pool]].width;
            if threads.is_infinite() || threads <= 0.0 {
                continue;
            }
            weights[self.layout.row_of[b]] += v.rate / threads;
        }
        let weighed = weights.iter().zip(wait.iter()).zip(&self.layout.rows);
        for group in 0..self.layout.row_of_group.len() {
            let ratios = &removal[group * n_rows..(group + 1) * n_rows];
            let shares = &mut boost[group * n_pools..(group + 1) * n_pools];
            shares.fill(S::from(0.0));
            for (b, (((&weight, &wait), row), &ratio)) in weighed.clone().zip(ratios).enumerate() {
                let Some(pool) = row.pool else { continue };
                let mut saved = wait * (-ratio + 1.0);
                if self.layout.siblings {
                    saved -= self.own_strand_gone(group, b, alpha_own, beta_own);
                }
                shares[pool] += weight * saved;
            }
            shares.iter_mut().filter(|share| **share > MAX_BOOST_SHARE).for_each(|share| *share = S::from(MAX_BOOST_SHARE));
        }
    }
}
