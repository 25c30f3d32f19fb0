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

use super::{super::linear::solve_fixed_point, At, Scratch};
use crate::model::Scalar;

/// Bound on `φ`, beyond which the boost is not believed.
const MAX_BOOST_SHARE: f64 = 0.9;
/// Removal systems up to this size are solved directly.
const LARGEST_DIRECT_SYSTEM: usize = 12;
/// Gauss-Seidel passes over a larger one in a sweep; its state is kept, so that the passes go on where they stopped.
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
        let Scratch { keep, alpha, beta, alpha_own, beta_own, own, wait, small, matrix, .. } = scratch;
        for (group, &row) in self.layout.row_of_group.iter().enumerate() {
            let keep = &keep[row * n..(row + 1) * n];
            let ratio = &mut removal[group * n_rows..(group + 1) * n_rows];
            if keep.iter().all(|k| *k == 1.0) && !self.layout.siblings {
                ratio.fill(one);
                continue;
            }
            small.clear();
            matrix.clear();
            matrix.resize(n_rows * n_rows, zero);
            for b in 0..n_rows {
                let mut constant = own[b];
                for x in 0..n {
                    let at = b * n + x;
                    let (mut a, mut c) = (keep[x] * alpha[at], keep[x] * beta[at]);
                    if self.layout.siblings {
                        // Own strands stay, except the arrival's own.
                        let stays = if self.layout.group_of[x] == Some(group) { zero } else { one };
                        a += alpha_own[at] * (stays - keep[x]);
                        c += beta_own[at] * (stays - keep[x]);
                    }
                    matrix[b * n_rows + self.layout.row_of[x]] += a;
                    constant += c;
                }
                small.push(constant);
            }
            let direct =
                if n_rows <= LARGEST_DIRECT_SYSTEM { solve_fixed_point(n_rows, |b, x| matrix[b * n_rows + x], small) } else { None };
            let without = |b: usize| direct.as_ref().map(|w| w[b]);
            let mut w: Vec<S> = Vec::new();
            if direct.is_none() {
                let old = &self.sweep.unknowns[self.places.removal + group * n_rows..];
                w.extend(wait.iter().zip(old).map(|(&w, &r)| w * r));
                for _ in 0..REMOVAL_PASSES {
                    for b in 0..n_rows {
                        w[b] = matrix[b * n_rows..(b + 1) * n_rows].iter().zip(&w).fold(small[b], |sum, (&m, &w)| sum + m * w);
                    }
                }
            }
            for b in 0..n_rows {
                let w = without(b).unwrap_or_else(|| w[b]);
                let r = if wait[b] > 0.0 { w / wait[b] } else { one };
                ratio[b] = if r > 1.0 {
                    one
                } else if r < 0.0 {
                    zero
                } else {
                    r
                };
            }
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
