//! Several servers of one pool of callers that go on after the reply, solved exactly.
//!
//! `N` sources come back at once with chance `1 - u`, else after an exponential time of mean `z/u`, wait in order of arrival for one of `m` servers and an
//! exponential first phase `s₁`, go, and leave the server to a second phase `s₂`. State: `j` sources at the station, and `k` servers in second phases;
//! `f = min(j, m - k)` are in first phases. From level `j` to the next, `T` the rates at which a level is left for good:
//!
//! ```text
//! U_j = (N - j) u/z        L_j: k → k + 1 with u f/s₁        D_j: k → k - 1 with k/s₂, k → k + 1 with (1 - u) f/s₁
//! T_N = D_N        T_j = D_j - U_j T_{j+1}⁻¹ L_{j+1}        π_0 T_0 = 0        π_{j+1} = π_j U_j T_{j+1}⁻¹
//! ```
//!
//! (the matrix-analytic solution of a finite level-dependent chain; M. F. Neuts 1981). Those who were away see `(j, k)` in proportion to `(N - j) u/z`, those who
//! come back at once `(j - 1, k + 1)` in proportion to `(1 - u) f/s₁`. Whoever finds all servers busy, `f` of them in first phases, with `q` before him, waits for
//!
//! ```text
//! V(q, f) = [1 + f/s₁ V(q, f-1) + (m-f)/s₂ V(q-1, f+1)] / [f/s₁ + (m-f)/s₂]        V(-1, ·) = 0
//! ```
//!
//! with `u` as of one server ([`super::second_phase`]). Where first phases take longer the more servers are in them, `f/s₁(f)` stands for `f/s₁`, with `s₁` the mean.

use super::{At, Scratch, comes_again::ComesAgain, second_phase::away_at_all, visit::SHORTEST_GAP};
use crate::{
    model::Scalar,
    solve::layered::net::{Discipline, Work},
};

/// Servers and their sources.
#[derive(Clone, Debug)]
pub(super) struct Servers<'a, S> {
    pub sources: usize,
    pub servers: usize,
    pub away: S,
    /// `s₁` in the mean, and by how many servers are in first phases over that; none where it is the same.
    pub first: S,
    pub growth: &'a [S],
    pub late: S,
    /// `H`.
    pub own: S,
}

/// A matrix by rows.
type Matrix<S> = Vec<S>;

/// How long a request waits in the mean, and with what chance at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay<S> {
    pub wait: S,
    pub chance: S,
}

/// Multiplications for which the chain is solved, at most.
const MOST_WORK: f64 = 8e3;
/// Unnormalized probabilities beyond this are scaled down.
const LARGE: f64 = 1e100;

impl<S: Scalar> Servers<'_, S> {
    /// Whether it is not too much to solve.
    pub fn is_small(sources: f64, servers: f64) -> bool {
        let width = servers + 1.0;
        sources * width * width * width <= MOST_WORK
    }

    /// The same servers with services of which the mean is `first`.
    fn normalized(&self) -> Self {
        if self.growth.is_empty() {
            return self.clone();
        }
        let steady = self.steady();
        let (mut busy, mut ended) = (S::from(0.0), S::from(0.0));
        for (j, level) in steady.iter().enumerate() {
            for (k, &p) in level.iter().enumerate() {
                let f = self.in_first(j, k);
                busy += p * count(f);
                ended += p * self.first_phases_end(f);
            }
        }
        Self { first: self.first * self.first * ended / busy, ..self.clone() }
    }

    /// The wait of an arrival; none where numbers are not numbers.
    pub fn delay(&self) -> Option<Delay<S>> {
        self.normalized().delay_of_services()
    }

    fn delay_of_services(&self) -> Option<Delay<S>> {
        let seen = self.seen();
        let delays = self.delays();
        let (mut wait, mut chance, mut all) = (S::from(0.0), S::from(0.0), S::from(0.0));
        for (j, level) in seen.iter().enumerate() {
            for (k, &p) in level.iter().enumerate() {
                all += p;
                let first = self.in_first(j, k);
                if first + k == self.servers {
                    wait += p * delays[j - first][first];
                    chance += p;
                }
            }
        }
        let delay = Delay { wait: wait / all, chance: chance / all };
        (delay.wait >= 0.0 && delay.wait.value().is_finite()).then_some(delay)
    }

    fn in_first(&self, j: usize, k: usize) -> usize {
        j.min(self.servers - k)
    }

    /// `f/s₁`.
    fn first_phases_end(&self, f: usize) -> S {
        let growth = f.checked_sub(1).and_then(|f| self.growth.get(f));
        let first = growth.map_or(self.first, |&growth| self.first * growth);
        first.recip() * count(f)
    }

    /// `V`, by `q` and `f`.
    fn delays(&self) -> Vec<Vec<S>> {
        let mut delays: Vec<Vec<S>> = Vec::with_capacity(self.sources);
        for q in 0..self.sources {
            let mut row: Vec<S> = Vec::with_capacity(self.servers + 1);
            for f in 0..=self.servers {
                let (firsts, lates) = (self.first_phases_end(f), self.late.recip() * count(self.servers - f));
                let mut sum = S::from(1.0);
                if f > 0 {
                    sum += firsts * row[f - 1];
                }
                if let (Some(before), true) = (q.checked_sub(1), f < self.servers) {
                    sum += lates * delays[before][f + 1];
                }
                row.push(sum / (firsts + lates));
            }
            delays.push(row);
        }
        delays
    }

    /// `u`.
    fn away_at_all(&self) -> S {
        away_at_all(self.own, self.away, self.late)
    }

    /// What an arrival sees of the others, by `j` and `k`, up to a factor.
    fn seen(&self) -> Vec<Vec<S>> {
        let (n, m, often) = (self.sources, self.servers, self.away_at_all());
        let steady = self.steady();
        let mut seen = vec![vec![S::from(0.0); m + 1]; n];
        for (j, level) in steady.iter().enumerate() {
            for (k, &p) in level.iter().enumerate() {
                if j < n {
                    seen[j][k] += p * often / self.away * count(n - j);
                }
                if j > 0 && k < m {
                    seen[j - 1][k + 1] += p * (-often + 1.0) * self.first_phases_end(self.in_first(j, k));
                }
            }
        }
        seen
    }

    /// `π`, by `j` and `k`, up to a factor.
    fn steady(&self) -> Vec<Vec<S>> {
        let (width, often) = (self.servers + 1, self.away_at_all());
        let up: Vec<S> = (0..=self.sources).map(|j| often / self.away * count(self.sources - j)).collect();
        let (first, inverses) = self.left_for_good(&up, often);
        // π_0 T_0 = 0 without the equation of nobody there, whose number is 1: it follows from the others.
        let rest = (1..width).flat_map(|k| (1..width).map(move |to| k * width + to)).map(|place| first[place]).collect();
        let asked: Vec<S> = (1..width).map(|to| -first[to]).collect();
        let mut level = vec![S::from(1.0)];
        level.extend(times(&asked, &inverted(rest, width - 1)));
        let mut levels = vec![level];
        for (j, inverse) in inverses.iter().enumerate() {
            let asked: Vec<S> = levels[j].iter().map(|&p| p * up[j]).collect();
            levels.push(times(&asked, inverse));
            if levels[j + 1].iter().any(|p| *p > LARGE) {
                levels.iter_mut().flatten().for_each(|p| *p /= LARGE);
            }
        }
        levels
    }

    /// `T_0`, and `T_1⁻¹` to `T_N⁻¹`.
    fn left_for_good(&self, up: &[S], often: S) -> (Matrix<S>, Vec<Matrix<S>>) {
        let width = self.servers + 1;
        let mut inverses: Vec<Matrix<S>> = Vec::with_capacity(self.sources);
        for j in (1..=self.sources).rev() {
            let level = self.left_of(j, up[j], often, inverses.last());
            inverses.push(inverted(level, width));
        }
        let nobody = self.left_of(0, up[0], often, inverses.last());
        inverses.reverse();
        (nobody, inverses)
    }

    /// `T_j`, with `T_{j+1}⁻¹` from `above`.
    fn left_of(&self, j: usize, up: S, often: S, above: Option<&Matrix<S>>) -> Matrix<S> {
        let width = self.servers + 1;
        let ends = |j: usize, k: usize| self.first_phases_end(self.in_first(j, k));
        let mut level = vec![S::from(0.0); width * width];
        for k in 0..width {
            let (late, end) = (self.late.recip() * count(k), ends(j, k));
            level[k * width + k] = up + end + late;
            if k > 0 {
                level[k * width + k - 1] -= late;
            }
            if k < self.servers {
                level[k * width + k + 1] -= end * (-often + 1.0);
            }
        }
        if let Some(above) = above {
            for (k, to) in (0..width).flat_map(|k| (1..width).map(move |to| (k, to))) {
                level[k * width + to] -= up * above[k * width + to - 1] * ends(j + 1, to - 1) * often;
            }
        }
        level
    }
}

impl<S: Scalar> At<'_, S> {
    /// Waits of a station's rows as the chain has them, and the chances of them.
    pub(super) fn wait_for_second_phases(&self, scratch: &mut Scratch<S>, probability: &mut [S]) {
        let Some(Delay { wait, chance }) = self.second_phases().and_then(|servers| servers.delay()) else { return };
        let n = self.visits.len();
        for r in 0..self.layout.rows.len() {
            let terms = r * n..(r + 1) * n;
            scratch.alpha[terms.clone()].fill(S::from(0.0));
            scratch.beta[terms].fill(S::from(0.0));
            scratch.own[r] = wait;
            probability[r] = chance;
        }
    }

    /// The servers of a task that one pool calls, or customers alone, and that goes on after the reply, where their chain is small.
    fn second_phases(&self) -> Option<Servers<'_, S>> {
        let pools = 0..self.layout.pools.len();
        if pools.len() != 1 && !pools.clone().all(|pool| self.sweep.net.tasks[self.layout.pools[pool]].class.is_some()) {
            return None;
        }
        let is_taken = self.late && self.servers > 1.0 && self.servers.is_finite() && !self.layout.open;
        if !is_taken || self.station < self.sweep.net.n_processors || self.discipline != Discipline::Fcfs {
            return None;
        }
        let net = self.sweep.net;
        let in_phases = |&arc: &usize| net.arcs[arc].target.is_some_and(|entry| matches!(net.entries[entry].work, Work::Phases(_)));
        if !self.layout.arcs.iter().all(in_phases) {
            return None;
        }
        let callers = ComesAgain { sweep: self.sweep, layout: self.layout };
        let sources = pools.clone().map(|pool| callers.sources(pool)).sum::<f64>();
        if sources < 1.0 || !Servers::<'_, S>::is_small(sources, self.servers) {
            return None;
        }
        let (mut rate, mut first, mut late, mut there) = (S::from(0.0), S::from(0.0), S::from(0.0), S::from(0.0));
        for v in self.visits {
            rate += v.rate;
            first += v.rate * v.first;
            late += v.rate * v.late;
            there += v.rate * (v.wait + v.first);
        }
        if first <= 0.0 || late <= 0.0 {
            return None;
        }
        let least = first / rate * SHORTEST_GAP;
        let away = (-there + sources) / rate;
        let away = if away > least { away } else { least };
        let own = pools.fold(S::from(0.0), |sum, pool| sum + callers.find_own(pool) * self.pool_rate(pool)) / rate;
        let (sources, servers) = (sources as usize, self.servers as usize);
        Some(Servers { sources, servers, away, first: first / rate, growth: self.services, late: late / rate, own })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a small count")]
fn count(n: usize) -> f64 {
    n as f64
}

/// A row times a matrix.
fn times<S: Scalar>(row: &[S], matrix: &[S]) -> Vec<S> {
    let width = row.len();
    (0..width).map(|to| (0..width).fold(S::from(0.0), |sum, k| sum + row[k] * matrix[k * width + to])).collect()
}

/// The inverse of a matrix of rates, which needs no other pivots than those on its diagonal.
fn inverted<S: Scalar>(mut matrix: Matrix<S>, width: usize) -> Matrix<S> {
    for i in 0..width {
        let pivot = matrix[i * width + i].recip();
        matrix[i * width + i] = S::from(1.0);
        matrix[i * width..(i + 1) * width].iter_mut().for_each(|x| *x *= pivot);
        for row in (0..width).filter(|&row| row != i) {
            let factor = matrix[row * width + i];
            matrix[row * width + i] = S::from(0.0);
            for column in 0..width {
                let part = factor * matrix[i * width + column];
                matrix[row * width + column] -= part;
            }
        }
    }
    matrix
}
