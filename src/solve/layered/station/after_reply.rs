//! Several servers that go on after the reply, of one pool of callers or of customers, by the chain of their sources.
//!
//! `N` sources come back at once with chance `1 - u`, else after an exponential time of mean `z/u` (`z` of how many are away), wait in order of arrival for one of `m` servers and an
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
//! with `u` as of one server ([`super::second_phase`]). `s₁` and `s₂` may depend on `f` and `k`: where threads hold each other up in first phases, `s₁` on `f`, so
//! that it is what it is in the mean; at a processor of their own, both ([`threads`]).

mod sources;
mod threads;

pub(in super::super) use self::sources::{Told as ToldAfterReply, find_after_reply};
use crate::model::Scalar;

/// Servers and their sources.
#[derive(Clone, Copy, Debug)]
pub(super) struct Servers<'a, S> {
    pub sources: usize,
    pub servers: usize,
    /// `z`, by how many are away.
    pub away: &'a [S],
    /// `u`.
    pub often: S,
    pub times: &'a Times<S>,
}

/// How long phases take, by how many servers are in first phases and how many in second.
#[derive(Clone, Debug)]
pub(super) struct Times<S> {
    servers: usize,
    first: Vec<S>,
    late: Vec<S>,
}

/// A matrix by rows.
type Matrix<S> = Vec<S>;

/// How long a request waits and is served in the mean, and with what chance it waits at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay<S> {
    pub wait: S,
    pub chance: S,
    pub first: S,
    pub late: S,
    /// How long a source is away: `z`.
    pub away: S,
}

/// Multiplications for which chains are solved, at most; and for which those of a pool are that is nearly always full, which settles with them, and hardly without.
const MOST_WORK: f64 = 8_192.0;
const MOST_WORK_OF_FULL: f64 = 7e4;
/// Numbers of busy threads that have any chance, of a pool that is nearly always full.
const NUMBERS_OF_FULL: usize = 3;
/// Unnormalized probabilities beyond this are scaled down.
const LARGE: f64 = 1e100;

impl<S: Scalar> Times<S> {
    /// Of `of(f, k)`, either phase, at so many servers.
    pub fn new(servers: usize, of: impl Fn(usize, usize) -> (S, S)) -> Self {
        let all = (0..=servers).flat_map(|f| (0..=servers).map(move |k| (f, k)));
        let (first, late) = all.map(|(f, k)| of(f, k.min(servers - f))).unzip();
        Self { servers, first, late }
    }

    /// The same, with first phases of at least so long.
    pub fn at_least(mut self, least: S) -> Self {
        self.first.iter_mut().filter(|first| **first < least).for_each(|first| *first = least);
        self
    }

    /// The same, with first phases that take so much longer.
    pub fn with_first(mut self, by: S) -> Self {
        self.first.iter_mut().for_each(|first| *first *= by);
        self
    }

    fn at(&self, f: usize, k: usize) -> (S, S) {
        let place = f * (self.servers + 1) + k;
        (self.first[place], self.late[place])
    }
}

impl<S: Scalar> Servers<'_, S> {
    /// Whether chains of so many sources, which are busy threads or not, are not too much to solve.
    pub fn is_small((sources, are_busy): (&[(usize, S)], bool), servers: f64) -> bool {
        let width = servers + 1.0;
        let levels: f64 = sources.iter().map(|(sources, _)| count(*sources)).sum();
        levels * width * width * width <= if are_busy && sources.len() <= NUMBERS_OF_FULL { MOST_WORK_OF_FULL } else { MOST_WORK }
    }

    /// The stay of an arrival; none where numbers are not numbers.
    pub fn stay(&self) -> Option<Stay<S>> {
        let zero = S::from(0.0);
        let steady = self.steady();
        let (mut firsts, mut lates, mut ended) = (zero, zero, zero);
        let (mut away, mut returned) = (zero, zero);
        for (j, level) in steady.iter().enumerate() {
            for (k, &p) in level.iter().enumerate() {
                let f = self.in_first(j, k);
                firsts += p * count(f);
                lates += p * count(k);
                ended += p * self.first_phases_end(f, k);
                away += p * count(self.sources - j);
                returned += p * self.return_rate(j);
            }
        }
        let delays = self.delays();
        let (mut wait, mut chance, mut all) = (zero, zero, zero);
        for (j, level) in self.seen(&steady).iter().enumerate() {
            for (k, &p) in level.iter().enumerate() {
                all += p;
                let first = self.in_first(j, k);
                if first + k == self.servers {
                    wait += p * delays[j - first][first];
                    chance += p;
                }
            }
        }
        let stay = Stay { wait: wait / all, chance: chance / all, first: firsts / ended, late: lates / ended, away: away / returned };
        let are_numbers = [stay.wait, stay.chance, stay.first, stay.late, stay.away].iter().all(|x| x.value().is_finite());
        (stay.wait >= 0.0 && are_numbers).then_some(stay)
    }

    fn in_first(&self, j: usize, k: usize) -> usize {
        j.min(self.servers - k)
    }

    /// `(N - j)/z`, with `j` that are there.
    fn return_rate(&self, j: usize) -> S {
        let away = self.sources - j;
        if away > 0 { self.away[away - 1].recip() * count(away) } else { S::from(0.0) }
    }

    /// `f/s₁`.
    fn first_phases_end(&self, f: usize, k: usize) -> S {
        if f > 0 { self.times.at(f, k).0.recip() * count(f) } else { S::from(0.0) }
    }

    /// `k/s₂`.
    fn second_phases_end(&self, f: usize, k: usize) -> S {
        if k > 0 { self.times.at(f, k).1.recip() * count(k) } else { S::from(0.0) }
    }

    /// `V`, by `q` and `f`.
    fn delays(&self) -> Vec<Vec<S>> {
        let mut delays: Vec<Vec<S>> = Vec::with_capacity(self.sources);
        for q in 0..self.sources {
            let mut row: Vec<S> = Vec::with_capacity(self.servers + 1);
            for f in 0..=self.servers {
                let k = self.servers - f;
                let (firsts, lates) = (self.first_phases_end(f, k), self.second_phases_end(f, k));
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
    fn seen(&self, steady: &[Vec<S>]) -> Vec<Vec<S>> {
        let (n, m, often) = (self.sources, self.servers, self.often);
        let mut seen = vec![vec![S::from(0.0); m + 1]; n];
        for (j, level) in steady.iter().enumerate() {
            for (k, &p) in level.iter().enumerate() {
                if j < n {
                    seen[j][k] += p * often * self.return_rate(j);
                }
                if j > 0 && k < m {
                    seen[j - 1][k + 1] += p * (-often + 1.0) * self.first_phases_end(self.in_first(j, k), k);
                }
            }
        }
        seen
    }

    /// `π`, by `j` and `k`, up to a factor.
    fn steady(&self) -> Vec<Vec<S>> {
        let (width, often) = (self.servers + 1, self.often);
        let up: Vec<S> = (0..=self.sources).map(|j| self.return_rate(j) * often).collect();
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
        let ends = |j: usize, k: usize| self.first_phases_end(self.in_first(j, k), k);
        let mut level = vec![S::from(0.0); width * width];
        for k in 0..width {
            let (late, end) = (self.second_phases_end(self.in_first(j, k), k), ends(j, k));
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
