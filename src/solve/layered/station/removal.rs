//! What the arrival's own thread does to the queue it finds.
//!
//! From the parts `W_b = Σ_x (α_bx W_x + β_bx) + own_b` of a sweep: without the thread of node `i`,
//!
//! ```text
//! w_ib = Σ_x K_ix (α_bx w_ix + β_bx) + own_b        R_ib = w_ib / W_b
//! φ_i,pool = Σ_{b of the pool} ℓ_b Σ_x (α_bx W_x + β_bx)(1 - K_ix) / threads        B = 1/(1 - φ)
//! ```
//!
//! `R` is the share of those waiting who would wait all the same, `φ` the share of its time that a thread of the other pool
//! spends waiting behind `i`'s. Together they are exact for two customers of equal service.

use super::{At, Scratch};
use crate::model::Scalar;

/// Bound on `φ`, beyond which the boost is not believed.
const MAX_BOOST_SHARE: f64 = 0.9;
/// Gauss-Seidel passes over the system of `w` in a sweep; `R` is kept, so that they go on where they stopped.
const REMOVAL_PASSES: usize = 2;

impl<S: Scalar> At<'_, S> {
    pub(super) fn removal_ratio(&self, group: Option<usize>, row: usize) -> S {
        group.map_or(S::from(1.0), |g| self.sweep.unknowns[self.places.removal + g * self.layout.rows.len() + row])
    }

    pub(super) fn boost(&self, group: Option<usize>, x: usize) -> S {
        let (Some(group), Some(pool)) = (group, self.layout.pool_of[x]) else { return S::from(1.0) };
        let share = self.sweep.unknowns[self.places.boost + group * self.layout.pools.len() + pool];
        if share == 0.0 && share.derivatives().is_empty() { S::from(1.0) } else { (-share + 1.0).recip() }
    }

    /// Solves for `w` of every group and keeps `R = w / W`.
    pub(super) fn update_removal(&self, scratch: &mut Scratch<S>, removal: &mut [S]) {
        let (n, n_rows) = (self.visits.len(), self.layout.rows.len());
        let (zero, one) = (S::from(0.0), S::from(1.0));
        for (group, &row) in self.layout.row_of_group.iter().enumerate() {
            let ratio = &mut removal[group * n_rows..(group + 1) * n_rows];
            if scratch.keep[row * n..(row + 1) * n].iter().all(|k| *k == 1.0) && !self.layout.siblings {
                ratio.fill(one);
                continue;
            }
            self.system_without(group, row, scratch);
            let Scratch { wait, small, matrix, without, .. } = &mut *scratch;
            let old = &self.sweep.unknowns[self.places.removal + group * n_rows..];
            without.clear();
            without.extend(wait.iter().zip(old).map(|(&w, &r)| w * r));
            for _ in 0..REMOVAL_PASSES {
                for (b, (row, &constant)) in matrix.chunks_exact(n_rows).zip(small.iter()).enumerate() {
                    without[b] = row.iter().zip(without.iter()).fold(constant, |sum, (&m, &w)| sum + m * w);
                }
            }
            for ((ratio, &w), &wait) in ratio.iter_mut().zip(without.iter()).zip(wait.iter()) {
                let r = if wait > 0.0 { w / wait } else { one };
                *ratio = if r > 1.0 {
                    one
                } else if r < 0.0 {
                    zero
                } else {
                    r
                };
            }
        }
    }

    /// Sets `matrix` and `small` to the coefficients and constants of the system of `w` without the thread of `group`.
    fn system_without(&self, group: usize, row: usize, scratch: &mut Scratch<S>) {
        let (n, n_rows) = (self.visits.len(), self.layout.rows.len());
        let (zero, one) = (S::from(0.0), S::from(1.0));
        let Scratch { keep, alpha, beta, alpha_own, beta_own, own, small, matrix, .. } = scratch;
        let keep = &keep[row * n..(row + 1) * n];
        small.clear();
        matrix.clear();
        matrix.resize(n_rows * n_rows, zero);
        for (b, &own) in own.iter().enumerate() {
            let terms = b * n..(b + 1) * n;
            let coefficients = &mut matrix[b * n_rows..(b + 1) * n_rows];
            let mut constant = own;
            for (((&k, &a), &c), &row) in keep.iter().zip(&alpha[terms.clone()]).zip(&beta[terms.clone()]).zip(&self.layout.row_of) {
                coefficients[row] += k * a;
                constant += k * c;
            }
            if self.layout.siblings {
                // Own strands stay, except the arrival's own.
                for (x, at) in terms.enumerate() {
                    let stays = if self.layout.group_of[x] == Some(group) { zero } else { one };
                    coefficients[self.layout.row_of[x]] += alpha_own[at] * (stays - keep[x]);
                    constant += beta_own[at] * (stays - keep[x]);
                }
            }
            small.push(constant);
        }
    }

    pub(super) fn update_boost(&self, scratch: &mut Scratch<S>, boost: &mut [S]) {
        let (n, n_rows) = (self.visits.len(), self.layout.rows.len());
        let n_pools = self.layout.pools.len();
        let Scratch { keep, alpha, beta, alpha_own, beta_own, small, matrix, .. } = scratch;
        // What arc x adds to the wait of row b.
        small.clear();
        for b in 0..n_rows {
            for x in 0..n {
                let at = b * n + x;
                let mut caused = alpha[at] * self.visits[x].wait + beta[at];
                if self.layout.siblings {
                    caused -= alpha_own[at] * self.visits[x].wait + beta_own[at];
                }
                small.push(caused);
            }
        }
        // Time that threads of a pool wait behind arc x, over all its arcs.
        matrix.clear();
        matrix.resize(n_pools * n, S::from(0.0));
        for (b, v) in self.visits.iter().enumerate() {
            let Some(pool) = self.layout.pool_of[b] else { continue };
            let threads = self.sweep.populations.threads(self.sweep.net, self.layout.pools[pool]);
            let threads = threads * self.sweep.net.tasks[self.layout.pools[pool]].width;
            if threads.is_infinite() || threads <= 0.0 {
                continue;
            }
            let row = self.layout.row_of[b];
            let weight = v.rate / threads;
            for x in 0..n {
                let add = weight * small[row * n + x];
                matrix[pool * n + x] += add;
            }
        }
        for (group, &row) in self.layout.row_of_group.iter().enumerate() {
            let keep = &keep[row * n..(row + 1) * n];
            for pool in 0..n_pools {
                let share = keep.iter().zip(&matrix[pool * n..]).fold(S::from(0.0), |sum, (&k, &behind)| sum + behind * (-k + 1.0));
                boost[group * n_pools + pool] = if share > MAX_BOOST_SHARE { S::from(MAX_BOOST_SHARE) } else { share };
            }
        }
    }
}
