//! Several servers of one pool of callers that go on after the reply, solved exactly.
//!
//! `N` sources come back after an exponential time of mean `z`, wait in order of arrival for one of `m` servers and an exponential first phase `s₁`, go, and
//! leave the server to a second phase `s₂`. State: `j` sources at the station, and `k` servers in second phases; `f = min(j, m - k)` are in first phases.
//! From level `j` to the next, `T` the rates at which a level is left for good:
//!
//! ```text
//! U_j = (N - j)/z        L_j: k → k + 1 with f/s₁        D_j: k → k - 1 with k/s₂
//! T_N = D_N        T_j = D_j - U_j T_{j+1}⁻¹ L_{j+1}        π_0 T_0 = 0        π_{j+1} = π_j U_j T_{j+1}⁻¹
//! ```
//!
//! (the matrix-analytic solution of a finite level-dependent chain; M. F. Neuts 1981). Whoever finds all servers busy, `f` of them in first phases, with `q`
//! before him, waits for
//!
//! ```text
//! V(q, f) = [1 + f/s₁ V(q, f-1) + (m-f)/s₂ V(q-1, f+1)] / [f/s₁ + (m-f)/s₂]        V(-1, ·) = 0
//! ```
//!
//! Sources that are away for exponential times see the state in proportion to `N - j`. Others find their own second phase with another chance `H`
//! ([`super::comes_again`]) than `H̄ = s₂/(s₂ + z)`. They are taken to be back at once with a chance `1 - u`, and else after an exponential time, so that `H` and the
//! mean `z` are met (where `H` is less than `H̄`, `u` is more than 1, up to 1.2):
//!
//! ```text
//! u = z (1 - H) / (z - s₂ (1 - H))        p = (1 - u) π_d + u π_d (I - z/u Q)⁻¹
//! ```
//!
//! Where first phases take longer the more servers are in them, `f/s₁(f)` stands for `f/s₁`, with `s₁` the mean. `π_d` is what a source leaves behind in the chain, and `Q` its rates with the other `N - 1`.

use super::{At, Scratch, comes_again::ComesAgain};
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

/// How long a request waits in the mean, and with what chance at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay<S> {
    pub wait: S,
    pub chance: S,
}

/// Multiplications for which the chain is solved, at most.
const MOST_WORK: f64 = 8e3;
/// Times away that are shorter, over a service, count as this.
const SHORTEST_AWAY: f64 = 1e-6;
/// `u` below which all are back at once, and beyond which it is not believed: where `H` is less than `H̄`.
const NEVER_LATER: f64 = 1e-9;
const LATEST: f64 = 1.2;

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
        let steady = Levels::new(self, self.sources, S::from(0.0)).steady();
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

    /// What an arrival sees of the others, by `j` and `k`, up to a factor.
    fn seen(&self) -> Vec<Vec<S>> {
        let (n, m) = (self.sources, self.servers);
        let all = Levels::new(self, n, S::from(0.0));
        let steady = all.steady();
        let exponential = self.late / (self.late + self.away);
        let others = (-self.own + 1.0) * self.late;
        // From `u` itself the slopes come, also where it is 1.
        let later = self.away * (-self.own + 1.0) / (self.away - others);
        let is_less = self.own < exponential && !(later > 0.0 && later < LATEST);
        let later = if is_less { S::from(LATEST) } else { later };
        let mut left: Vec<Vec<S>> = vec![vec![S::from(0.0); m + 1]; n];
        for j in 1..=n {
            for k in 0..m {
                left[j - 1][k + 1] = steady[j][k] * self.first_phases_end(self.in_first(j, k));
            }
        }
        if later <= NEVER_LATER {
            return left;
        }
        let returned = Levels::new(self, n - 1, later / self.away).answer(&left, later / self.away);
        let back = left.iter().zip(&returned);
        back.map(|(left, returned)| left.iter().zip(returned).map(|(&left, &late)| left + (late - left) * later).collect()).collect()
    }
}

/// The levels of the chain, from the last one on.
struct Levels<S> {
    width: usize,
    /// `U_j`, and `T_j⁻¹` by rows; `T_0` itself.
    up: Vec<S>,
    inverse: Vec<Vec<S>>,
    first: Vec<S>,
    /// `L_{j+1}` of each `k`, by level.
    down: Vec<Vec<S>>,
}

impl<S: Scalar> Levels<S> {
    /// Those of so many sources, of a chain that is also left for good at a rate.
    fn new(of: &Servers<'_, S>, sources: usize, leaves: S) -> Self {
        let width = of.servers + 1;
        let up: Vec<S> = (0..=sources).map(|j| of.away.recip() * count(sources - j)).collect();
        let down = |j: usize| (0..width).map(|k| of.first_phases_end(of.in_first(j, k))).collect::<Vec<S>>();
        let down: Vec<Vec<S>> = (0..=sources).map(down).collect();
        let mut inverse = vec![Vec::new(); sources + 1];
        let mut first = Vec::new();
        for j in (0..=sources).rev() {
            let mut level = vec![S::from(0.0); width * width];
            for k in 0..width {
                let late = of.late.recip() * count(k);
                level[k * width + k] = up[j] + down[j][k] + late + leaves;
                if k > 0 {
                    level[k * width + k - 1] -= late;
                }
            }
            if let Some(above) = inverse.get(j + 1) {
                for k in 0..width {
                    for to in 1..width {
                        level[k * width + to] -= up[j] * above[k * width + to - 1] * down[j + 1][to - 1];
                    }
                }
            }
            if j == 0 {
                first.clone_from(&level);
            }
            inverse[j] = if j == 0 && leaves == 0.0 { Vec::new() } else { inverted(level, width) };
        }
        Self { width, up, inverse, first, down }
    }

    /// `π`, up to a factor.
    fn steady(&self) -> Vec<Vec<S>> {
        let width = self.width;
        // π_0 T_0 = 0, without the equation of nobody there, whose number is 1: of the others that is an answer.
        let n = width - 1;
        let rest: Vec<S> = (1..width).flat_map(|k| (1..width).map(move |to| (k, to))).map(|(k, to)| self.first[k * width + to]).collect();
        let inverse = inverted(rest, n);
        let asked: Vec<S> = (1..width).map(|to| -self.first[to]).collect();
        let mut level = vec![S::from(1.0)];
        level.extend((0..n).map(|to| (0..n).fold(S::from(0.0), |sum, k| sum + asked[k] * inverse[k * n + to])));
        let mut levels = vec![level];
        for j in 1..self.up.len() {
            let asked: Vec<S> = levels[j - 1].iter().map(|&p| p * self.up[j - 1]).collect();
            levels.push(times(&asked, &self.inverse[j], width));
        }
        levels
    }

    /// `x` with `x (l I - Q) = r b`, where the chain leaves with rate `l`.
    fn answer(&self, asked: &[Vec<S>], rate: S) -> Vec<Vec<S>> {
        let (width, n) = (self.width, self.up.len());
        let mut asked: Vec<Vec<S>> = asked.iter().map(|level| level.iter().map(|&p| p * rate).collect()).collect();
        for j in (1..n).rev() {
            let there = times(&asked[j], &self.inverse[j], width);
            for k in 0..width - 1 {
                let falls = there[k] * self.down[j][k];
                asked[j - 1][k + 1] += falls;
            }
        }
        let mut levels: Vec<Vec<S>> = vec![times(&asked[0], &self.inverse[0], width)];
        for j in 1..n {
            let sum: Vec<S> = asked[j].iter().zip(&levels[j - 1]).map(|(&asked, &below)| asked + below * self.up[j - 1]).collect();
            levels.push(times(&sum, &self.inverse[j], width));
        }
        levels
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

    /// The servers of a task that one pool calls and that goes on after the reply, where their chain is small.
    fn second_phases(&self) -> Option<Servers<'_, S>> {
        let [_] = self.layout.pools[..] else { return None };
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
        let sources = callers.sources(0);
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
        let least = first / rate * SHORTEST_AWAY;
        let away = (-there + sources) / rate;
        let away = if away > least { away } else { least };
        let own = self.sweep.overtakes.map_or(S::from(0.0), |overtakes| overtakes.found_in_all(self.sweep, self.layout, 0));
        let (sources, servers) = (sources as usize, self.servers as usize);
        Some(Servers { sources, servers, away, first: first / rate, growth: self.services, late: late / rate, own })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a small count")]
fn count(n: usize) -> f64 {
    n as f64
}

/// A row times a matrix.
fn times<S: Scalar>(row: &[S], matrix: &[S], width: usize) -> Vec<S> {
    (0..width).map(|to| (0..width).fold(S::from(0.0), |sum, k| sum + row[k] * matrix[k * width + to])).collect()
}

/// The inverse of a matrix of rates, which needs no other pivots than those on its diagonal.
fn inverted<S: Scalar>(mut matrix: Vec<S>, width: usize) -> Vec<S> {
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
