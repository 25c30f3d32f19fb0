//! What is known to follow from a pass, in those that find what slices find.
//!
//! A pass that changes what is found by `r` changes it in the next by about `P r M`: what was found moves on, and of whom there is more fewer come, in more time. All that follows
//! from it is known, too, with `λ` the rates of slices and `r̃_jx = r_jx / λ_x`:
//!
//! ```text
//! δ = r + P δ M          P_jk = p_jk + Σ_c ρ_j(c) (1 - Σ_k p_jk) h_c λ_k ρ_k(c) w_k out_k / Λ'_c
//! M_yx = λ_x Q_xy / λ_y   Q_xy = p_xy + λ_y Σ_c ρ_x(c) (1 - Σ_k p_xk) / Λ_c [E_c e_c s_y (1 - v/(n Σ E)) / (1 + t)² - w_y ρ_y(c) (1 - out_y) t / (1 + t)]
//! δ_jx = r_jx + λ_x W_a(j)a(x)                     W = V r̃ Uᵀ + A W Bᵀ
//! ```
//!
//! with the times `t = e_c (V° + s)` of a slice in the mean, and the mean `n` and variance `v` of others. What rows that follow the same slices find changes by the same: of each group `a`, `V` and `U` have the row of `P` and of `Q`, and `A` and `B` the sums of these over the groups. `W` is found by doubling:
//!
//! ```text
//! W ← W + A W Bᵀ,   A ← A²,   B ← B²
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `p`, `ρ`, `h`, `w`, `out`, `s`, `E`, `Λ`, `e`, `V°` | as in the parent module |
//! | `Λ'_c` | those of source `c` who leave a unit of time |
//!
//! Source: Smith 1968 (doubling).

use super::{super::At, Followed, keep, leave};
use crate::model::Scalar;

/// Largest change that is left by what follows and not told any more, and most doublings.
const LEAST_LEFT: f64 = 1e-2;
const MOST_DOUBLINGS: usize = 10;
/// What is left after these, above which what follows grows, and nothing of it is told.
const MOST_LEFT: f64 = 2.0;

/// What follows what, in plain numbers: the passes end at the same, wherever they are led.
#[derive(Debug, Default)]
pub(super) struct Lead {
    /// By row.
    rates: Vec<f64>,
    groups: Vec<usize>,
    /// `V`, and `U` over the rates, groups × rows.
    ahead: Vec<f64>,
    moved: Vec<f64>,
    /// `A` and `B`, groups × groups, each pair the square of that before it.
    powers: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Lead {
    /// Of rows with such rates, with `P` and `Q`, rows × rows.
    pub fn new(rates: Vec<f64>, all_ahead: &[f64], all_moved: &[f64]) -> Self {
        let n = rates.len();
        let (mut ahead, mut moved): (Vec<&[f64]>, Vec<&[f64]>) = (Vec::new(), Vec::new());
        let mut groups = Vec::with_capacity(n);
        for (p, q) in all_ahead.chunks_exact(n).zip(all_moved.chunks_exact(n)) {
            let group = (0..ahead.len()).find(|&g| ahead[g] == p && moved[g] == q).unwrap_or(ahead.len());
            groups.push(group);
            if group == ahead.len() {
                ahead.push(p);
                moved.push(q);
            }
        }
        let m = ahead.len();
        let (ahead, mut moved) = (ahead.concat(), moved.concat());
        let over_groups = |p: &[f64]| {
            let mut sums = vec![0.0; m * m];
            for (of_row, sums) in p.chunks_exact(n).zip(sums.chunks_exact_mut(m)) {
                of_row.iter().zip(&groups).for_each(|(&part, &g)| sums[g] += part);
            }
            sums
        };
        let most = |p: &[f64]| p.chunks_exact(m).map(|row| row.iter().map(|part| part.abs()).sum::<f64>()).fold(0.0, f64::max);
        let (mut a, mut b) = (over_groups(&ahead), over_groups(&moved));
        for of_group in moved.chunks_exact_mut(n) {
            of_group.iter_mut().zip(&rates).for_each(|(part, &rate)| *part = if rate > 0.0 { *part / rate } else { 0.0 });
        }
        let mut powers = Vec::new();
        while powers.len() < MOST_DOUBLINGS && most(&a) * most(&b) > LEAST_LEFT {
            let squares = (square(&a, m), square(&b, m));
            powers.push((std::mem::replace(&mut a, squares.0), std::mem::replace(&mut b, squares.1)));
        }
        if most(&a) * most(&b) > MOST_LEFT {
            powers.clear();
        }
        Self { rates, groups, ahead, moved, powers }
    }

    /// `δ` from `r`, rows × rows.
    pub fn follow<S: Scalar>(&self, change: &mut [S]) {
        let n = self.rates.len();
        if self.powers.is_empty() {
            return;
        }
        let zero = S::from(0.0);
        let m = self.ahead.len() / n;
        let mut half = vec![zero; n * m];
        for (change, half) in change.chunks_exact(n).zip(half.chunks_exact_mut(m)) {
            for (moved, half) in self.moved.chunks_exact(n).zip(half) {
                for (&part, &change) in moved.iter().zip(change).filter(|(part, _)| **part != 0.0) {
                    *half += change * part;
                }
            }
        }
        let mut all = vec![zero; m * m];
        add_product(&self.ahead, &half, m, &mut all);
        let (mut turned, mut more) = (vec![zero; m * m], vec![zero; m * m]);
        for (a, b) in &self.powers {
            // (W Bᵀ), a row of A after the other.
            for (turned, all) in turned.chunks_exact_mut(m).zip(all.chunks_exact(m)) {
                for (turned, b) in turned.iter_mut().zip(b.chunks_exact(m)) {
                    *turned = all.iter().zip(b).fold(zero, |sum, (&w, &b)| sum + w * b);
                }
            }
            more.fill(zero);
            add_product(a, &turned, m, &mut more);
            all.iter_mut().zip(&more).for_each(|(w, &more)| *w += more);
        }
        for (change, &a) in change.chunks_exact_mut(n).zip(&self.groups) {
            for ((change, &b), &rate) in change.iter_mut().zip(&self.groups).zip(&self.rates) {
                *change += all[a * m + b] * rate;
            }
        }
    }
}

impl<S: Scalar> At<'_, S> {
    /// What is known to follow in the next passes from what changes in one.
    pub(super) fn lead(&self, room: &Followed<S>) -> Lead {
        let n = room.slices.len();
        let mut moved = vec![0.0; n * n];
        for it in &room.parts {
            moved[it.after * n + it.before] += it.part.value();
        }
        let mut ahead = moved.clone();
        for (r, ahead) in ahead.chunks_exact_mut(n).enumerate() {
            for c in (0..room.sources.len()).filter(|&c| room.sources[c].end > 0.0) {
                let stays = keep(room, (r, c));
                if stays > 0.0 {
                    ahead.iter_mut().enumerate().for_each(|(k, part)| *part += (stays * leave(room, (k, c))).value());
                }
            }
        }
        self.add_who_comes(room, &mut moved);
        Lead::new(room.slices.iter().map(|slice| slice.rate.value()).collect(), &ahead, &moved)
    }

    /// Adds how many more come of whom there is more.
    fn add_who_comes(&self, room: &Followed<S>, moved: &mut [f64]) {
        let n = room.slices.len();
        let rates = || room.slices.iter().map(|slice| slice.rate.value());
        let times = room.slices.iter().map(|slice| (room.waits[slice.row] + slice.service).value() * slice.rate.value());
        let time = times.sum::<f64>() / rates().sum::<f64>();
        let (mean, variance) = self.number_of_others(room);
        let of_time = if mean > 0.0 { (1.0 - (variance / (mean * room.all_away())).value()).max(0.0) } else { 1.0 };
        let n_sources = room.sources.len();
        for (c, it) in room.sources.iter().enumerate().filter(|(_, it)| it.begin > 0.0) {
            let share = |slice: usize| room.shares[slice * n_sources + c].value();
            let comes = it.comes.value();
            let t = comes * time;
            for (y, slice) in room.slices.iter().enumerate() {
                let gone = share(y) * slice.strands * (1.0 - room.out[y].value());
                let later = it.away.value() * comes * slice.service.value() * of_time / (1.0 + t);
                let more = (later - gone * t) / (1.0 + t) * slice.rate.value() / it.begin.value();
                for x in 0..n {
                    moved[x * n + y] += more * share(x) * room.others[x].value();
                }
            }
        }
    }
}

/// Adds `a b`, of which `b` and the sum have so many columns.
fn add_product<S: Scalar>(a: &[f64], b: &[S], columns: usize, sum: &mut [S]) {
    let inner = b.len() / columns;
    for (a, sum) in a.chunks_exact(inner).zip(sum.chunks_exact_mut(columns)) {
        for (&a, b) in a.iter().zip(b.chunks_exact(columns)) {
            if a != 0.0 {
                sum.iter_mut().zip(b).for_each(|(sum, &b)| *sum += b * a);
            }
        }
    }
}

fn square(a: &[f64], n: usize) -> Vec<f64> {
    let mut square = vec![0.0; n * n];
    add_product(a, a, n, &mut square);
    square
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One slice that follows itself: `r + p² r + p⁴ r + ...`, and nothing of it where that grows.
    #[test]
    fn all_that_follows_is_the_sum_of_all_steps_where_there_is_one() {
        let follows = |p: f64| {
            let mut change = [3.0];
            Lead::new(vec![2.0], &[p], &[p]).follow(&mut change);
            change[0]
        };
        assert!((follows(0.8) - 3.0 / 0.36).abs() < 3.0 / 0.36 * LEAST_LEFT, "{}", follows(0.8));
        assert!((follows(1.1) - 3.0).abs() < f64::EPSILON, "{}", follows(1.1));
    }
}
