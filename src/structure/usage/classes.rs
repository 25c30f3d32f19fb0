//! Classes of behaviour: sessions grouped by how they go from service to service.
//!
//! Input: sessions kept whole; output: for each of them the probability of each class, and the number of classes.
//!
//! ```text
//! x(s)          counts of the steps of session s, divided by their number
//! k-means       over x, from several seeded starts (k-means++): where the search begins
//! mixture       P(s) = Σ_c p_c Π_step q_c(step)^count(s, step)         fitted by expectation and maximisation
//! BIC(k)        -2 ln L + (k (steps - rows) + k - 1) ln n              least wins; k ≤ cap
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | step | (from, to), with the start and Exit; only steps that some session took |
//! | row | what a step may start from |
//! | p_c, q_c | share of class c; probability of a step given its row |
//! | n | number of sessions |
//!
//! k-means alone cuts classes that overlap at a wall between them, which biases shares and rows; the mixture of chains does
//! not, and gives BIC its likelihood. Each q_c counts 0.01 for each possible step beyond those seen, so that no step is
//! impossible. Sessions with equal counts are one pattern.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::summary::{KeptSession, Step, steps};

const PRIOR: f64 = 0.01;
const RESTARTS: u64 = 4;
const MOST_MEANS_STEPS: usize = 30;
const SHORT_EM_STEPS: usize = 10;
const LONG_EM_STEPS: usize = 100;
/// Relative rise of the likelihood below which a mixture has settled.
const SETTLED: f64 = 1e-9;

/// Sessions in classes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Classes {
    /// Of each session the probability of each class, shape `(n_sessions, k)`.
    pub(super) memberships: Vec<Vec<f64>>,
    /// BIC by number of classes, from 1, as far as it was searched.
    pub(super) bic: Vec<f64>,
}

/// Distinct sessions.
struct Patterns {
    /// Row of each step.
    row_of: Vec<usize>,
    n_rows: usize,
    /// Counts by step, sorted.
    counts: Vec<Vec<(usize, f64)>>,
    /// Number of sessions with these counts.
    n: Vec<f64>,
    /// Pattern of each session.
    of_session: Vec<usize>,
}

impl Patterns {
    fn of(sessions: &[&KeptSession]) -> Self {
        let mut step_of: IndexMap<Step, usize> = IndexMap::new();
        let mut known: IndexMap<Vec<(usize, u32)>, f64> = IndexMap::new();
        let mut of_session = Vec::with_capacity(sessions.len());
        for session in sessions {
            let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
            for step in steps(&session.services) {
                let next = step_of.len();
                *counts.entry(*step_of.entry(step).or_insert(next)).or_insert(0) += 1;
            }
            let entry = known.entry(counts.into_iter().collect());
            of_session.push(entry.index());
            *entry.or_insert(0.0) += 1.0;
        }
        let mut rows: IndexMap<Option<u32>, ()> = IndexMap::new();
        let row_of = step_of.keys().map(|(from, _)| rows.insert_full(*from, ()).0).collect();
        let counts = known.keys().map(|pattern| pattern.iter().map(|(step, n)| (*step, f64::from(*n))).collect()).collect();
        Self { row_of, n_rows: rows.len(), counts, n: known.into_values().collect(), of_session }
    }

    fn n_sessions(&self) -> f64 {
        self.n.iter().sum()
    }

    /// Part of each step in a pattern.
    fn point(&self, pattern: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let total: f64 = self.counts[pattern].iter().map(|(_, n)| n).sum();
        self.counts[pattern].iter().map(move |(step, n)| (*step, n / total))
    }

    fn distance(&self, pattern: usize, centre: &[f64], square: f64) -> f64 {
        self.point(pattern).map(|(step, x)| x * (x - 2.0 * centre[step])).sum::<f64>() + square
    }

    /// The nearest centre of every pattern, from a start drawn by k-means++.
    fn means(&self, k: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let dense = |pattern: usize| {
            let mut centre = vec![0.0; self.row_of.len()];
            self.point(pattern).for_each(|(step, x)| centre[step] = x);
            centre
        };
        let square = |centre: &[f64]| centre.iter().map(|x| x * x).sum::<f64>();
        let mut centres = vec![dense(draw(&self.n, rng))];
        let mut nearest = vec![f64::INFINITY; self.n.len()];
        while centres.len() < k {
            let (last, length) = (&centres[centres.len() - 1], square(&centres[centres.len() - 1]));
            for (pattern, nearest) in nearest.iter_mut().enumerate() {
                *nearest = nearest.min(self.distance(pattern, last, length).max(0.0));
            }
            let weights: Vec<f64> = nearest.iter().zip(&self.n).map(|(d, n)| d * n).collect();
            centres.push(dense(draw(&weights, rng)));
        }
        let mut of_pattern = vec![usize::MAX; self.n.len()];
        for _ in 0..MOST_MEANS_STEPS {
            let squares: Vec<f64> = centres.iter().map(|centre| square(centre)).collect();
            let mut moved = false;
            for (pattern, of) in of_pattern.iter_mut().enumerate() {
                let distance = |c: &usize| self.distance(pattern, &centres[*c], squares[*c]);
                let best = (0..k).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0);
                moved |= *of != best;
                *of = best;
            }
            if !moved {
                break;
            }
            let mut weights = vec![0.0; k];
            centres.iter_mut().for_each(|centre| centre.fill(0.0));
            for (pattern, of) in of_pattern.iter().enumerate() {
                weights[*of] += self.n[pattern];
                self.point(pattern).for_each(|(step, x)| centres[*of][step] += self.n[pattern] * x);
            }
            for (centre, weight) in centres.iter_mut().zip(weights) {
                centre.iter_mut().for_each(|x| *x /= f64::max(weight, 1.0));
            }
        }
        of_pattern
    }
}

/// An index with probability proportional to its weight; the first where all are 0.
fn draw(weights: &[f64], rng: &mut ChaCha8Rng) -> usize {
    let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
    for (index, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return index;
        }
    }
    weights.iter().position(|weight| *weight > 0.0).unwrap_or(0)
}

/// A mixture of k chains.
struct Mixture {
    /// Shape `(n_patterns, k)`.
    memberships: Vec<Vec<f64>>,
    log_likelihood: f64,
}

impl Mixture {
    fn from_means(patterns: &Patterns, k: usize, rng: &mut ChaCha8Rng) -> Self {
        let mut memberships = vec![vec![0.0; k]; patterns.n.len()];
        for (row, of) in memberships.iter_mut().zip(patterns.means(k, rng)) {
            row[of] = 1.0;
        }
        Self { memberships, log_likelihood: f64::NEG_INFINITY }
    }

    fn improve(&mut self, patterns: &Patterns, most_steps: usize) {
        for _ in 0..most_steps {
            let before = self.log_likelihood;
            let logs = self.maximize(patterns);
            self.expect(patterns, &logs);
            if (self.log_likelihood - before).abs() <= SETTLED * self.log_likelihood.abs() {
                return;
            }
        }
    }

    /// ln p_c and ln q_c of each class.
    fn maximize(&self, patterns: &Patterns) -> Vec<(f64, Vec<f64>)> {
        let k = self.memberships.first().map_or(0, Vec::len);
        let total = patterns.n_sessions();
        let class = |c: usize| {
            let mut q = vec![PRIOR; patterns.row_of.len()];
            let mut weight = 0.0;
            for (pattern, row) in self.memberships.iter().enumerate() {
                let n = patterns.n[pattern] * row[c];
                weight += n;
                patterns.counts[pattern].iter().for_each(|(step, count)| q[*step] += n * count);
            }
            let mut sums = vec![0.0; patterns.n_rows];
            q.iter().zip(&patterns.row_of).for_each(|(q, row)| sums[*row] += q);
            let logs = q.iter().zip(&patterns.row_of).map(|(q, row)| (q / sums[*row]).ln()).collect();
            ((weight / total).max(f64::MIN_POSITIVE).ln(), logs)
        };
        (0..k).map(class).collect()
    }

    fn expect(&mut self, patterns: &Patterns, logs: &[(f64, Vec<f64>)]) {
        self.log_likelihood = 0.0;
        for (pattern, row) in self.memberships.iter_mut().enumerate() {
            for (membership, (share, q)) in row.iter_mut().zip(logs) {
                *membership = share + patterns.counts[pattern].iter().map(|(step, count)| count * q[*step]).sum::<f64>();
            }
            let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|x| (x - greatest).exp()).sum();
            row.iter_mut().for_each(|x| *x = (*x - greatest).exp() / sum);
            self.log_likelihood += patterns.n[pattern] * (greatest + sum.ln());
        }
    }
}

/// Groups sessions into at most `most_classes` classes, the largest first; the search is the same in every run.
pub(super) fn cluster(sessions: &[&KeptSession], most_classes: usize) -> Classes {
    let patterns = Patterns::of(sessions);
    let most_classes = most_classes.clamp(1, patterns.n.len().max(1));
    let mut best: Option<(f64, Mixture)> = None;
    let mut bic: Vec<f64> = Vec::new();
    for k in 1..=most_classes {
        let restarts = if k == 1 { 1 } else { RESTARTS };
        let start = |restart: u64| {
            let mut rng = ChaCha8Rng::seed_from_u64(1000 * k as u64 + restart);
            let mut mixture = Mixture::from_means(&patterns, k, &mut rng);
            mixture.improve(&patterns, SHORT_EM_STEPS);
            mixture
        };
        let likeliest = (0..restarts).map(start).max_by(|a, b| a.log_likelihood.total_cmp(&b.log_likelihood));
        let Some(mut mixture) = likeliest else { continue };
        mixture.improve(&patterns, LONG_EM_STEPS);
        let n_free = k * (patterns.row_of.len() - patterns.n_rows) + k - 1;
        let found = -2.0 * mixture.log_likelihood + n_free as f64 * patterns.n_sessions().max(1.0).ln();
        bic.push(found);
        if best.as_ref().is_none_or(|(least, _)| found < *least) {
            best = Some((found, mixture));
        }
        let rising = bic.windows(2).rev().take_while(|pair| pair[1] >= pair[0]).count();
        if rising >= 2 {
            break;
        }
    }
    let memberships = best.map_or_else(Vec::new, |(_, mixture)| by_size(mixture.memberships, &patterns));
    Classes { memberships: patterns.of_session.iter().map(|pattern| memberships[*pattern].clone()).collect(), bic }
}

/// Orders classes by size, largest first.
fn by_size(memberships: Vec<Vec<f64>>, patterns: &Patterns) -> Vec<Vec<f64>> {
    let k = memberships.first().map_or(0, Vec::len);
    let size = |c: &usize| memberships.iter().zip(&patterns.n).map(|(row, n)| row[*c] * n).sum::<f64>();
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.cmp(b)));
    memberships.iter().map(|row| order.iter().map(|c| row[*c]).collect()).collect()
}

/// One class for each label, by name; sessions without one are of the class `(none)`.
pub(super) fn by_label(sessions: &[&KeptSession]) -> (Vec<String>, Classes) {
    let label = |session: &&KeptSession| session.class.clone().unwrap_or_else(|| "(none)".to_owned());
    let mut names: Vec<String> = sessions.iter().map(label).collect();
    names.sort();
    names.dedup();
    let row = |session: &&KeptSession| {
        let of = label(session);
        names.iter().map(|name| f64::from(u8::from(*name == of))).collect()
    };
    let memberships = sessions.iter().map(row).collect();
    (names.clone(), Classes { memberships, bic: Vec::new() })
}
