//! Steady states by elimination within a band.
//!
//! The method of Grassmann, Taksar and Heyman (1985) removes the states from the last to the first, each time sending its flow on to
//! those that are left: `q_ij += q_ik q_kj / sum_{l<k} q_kl`. It subtracts nothing, so that every probability keeps its digits,
//! however small. Where states are ordered by their distance from one at the edge (Cuthill & McKee 1969), what is linked is
//! near, and nothing arises outside of the band: with `f(k)` the first state that any from `k` on is linked with, row and column `k` need
//! only their parts from `f(k)` to `k`.

use super::chain::Rows;

/// Multiplications beyond which elimination takes too long.
const WORK_LIMIT: f64 = 6e8;

/// The probabilities of an irreducible chain, by elimination; `None` where that would take too long.
pub(super) fn eliminate(rates: &Rows) -> Option<Vec<f64>> {
    let order = by_distance(rates);
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(k, &s)| place[s] = k);
    let mut band = Band::new(rates, &place)?;
    for k in (1..order.len()).rev() {
        band.remove(k);
    }
    let x = band.probabilities();
    x.iter().all(|v| v.is_finite()).then(|| place.iter().map(|&k| x[k]).collect())
}

/// The states in the order of their distance, over links in either direction, from one of those that are farthest from the
/// first.
fn by_distance(rates: &Rows) -> Vec<usize> {
    let links = links(rates, true);
    edge(&links).map_or_else(Vec::new, |edge| from(edge, &links))
}

/// The states in the order of their distance from one at the edge, as they follow each other.
pub(super) fn by_flow(rates: &Rows) -> Vec<usize> {
    edge(&links(rates, true)).map_or_else(Vec::new, |edge| from(edge, &links(rates, false)))
}

/// States that are one step away, in either direction or forward.
fn links(rates: &Rows, both_ways: bool) -> Vec<Vec<u32>> {
    let mut links: Vec<Vec<u32>> = vec![Vec::new(); rates.len()];
    for i in 0..rates.len() {
        for (j, _) in rates.row(i) {
            links[i].push(super::compile::index(j));
            if both_ways {
                links[j].push(super::compile::index(i));
            }
        }
    }
    links
}

/// One of the states that are farthest from the first; none of none.
fn edge(links: &[Vec<u32>]) -> Option<usize> {
    if links.is_empty() { None } else { from(0, links).last().copied() }
}

/// All states that can be reached, in the order of their distance.
fn from(start: usize, links: &[Vec<u32>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(links.len());
    let mut is_seen = vec![false; links.len()];
    order.push(start);
    is_seen[start] = true;
    let mut at = 0;
    while let Some(&state) = order.get(at) {
        for &next in &links[state] {
            if !std::mem::replace(&mut is_seen[next as usize], true) {
                order.push(next as usize);
            }
        }
        at += 1;
    }
    order
}

/// A matrix of rates of which row and column `k` are kept from `first[k]` to `k`.
struct Band {
    first: Vec<usize>,
    /// Rates from `k` to lower states.
    rows: Vec<Vec<f64>>,
    /// Rates from lower states to `k`; once `k` is removed, per unit of the flow out of it.
    columns: Vec<Vec<f64>>,
}

impl Band {
    fn new(rates: &Rows, place: &[usize]) -> Option<Self> {
        let n = place.len();
        let mut first: Vec<usize> = (0..n).collect();
        let links = || (0..n).flat_map(|i| rates.row(i).map(move |(j, rate)| (place[i], place[j], rate)));
        links().for_each(|(i, j, _)| first[i.max(j)] = first[i.max(j)].min(i.min(j)));
        for k in (1..n).rev() {
            first[k - 1] = first[k - 1].min(first[k]);
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let work: f64 = (0..n).map(|k| ((k - first[k]) as f64).powi(2)).sum();
        if work > WORK_LIMIT {
            return None;
        }
        let rows: Vec<Vec<f64>> = (0..n).map(|k| vec![0.0; k - first[k]]).collect();
        let mut band = Self { columns: rows.clone(), rows, first };
        for (i, j, rate) in links() {
            let (list, k, other) = if i > j { (&mut band.rows, i, j) } else { (&mut band.columns, j, i) };
            list[k][other - band.first[k]] += rate;
        }
        Some(band)
    }

    /// Removes state `k`, the last that is left.
    fn remove(&mut self, k: usize) {
        let first = self.first[k];
        let out: f64 = self.rows[k].iter().sum();
        self.columns[k].iter_mut().for_each(|rate| *rate /= out);
        let (row, column) = (std::mem::take(&mut self.rows[k]), std::mem::take(&mut self.columns[k]));
        for i in first..k {
            let start = first - self.first[i];
            for (list, part, line) in [(&mut self.rows[i], column[i - first], &row), (&mut self.columns[i], row[i - first], &column)] {
                if part > 0.0 {
                    list[start..].iter_mut().zip(line).for_each(|(rate, other)| *rate += part * other);
                }
            }
        }
        self.columns[k] = column;
    }

    fn probabilities(&self) -> Vec<f64> {
        let mut x = vec![1.0];
        for k in 1..self.first.len() {
            x.push(self.columns[k].iter().zip(&x[self.first[k]..]).map(|(rate, v)| rate * v).sum());
        }
        let sum: f64 = x.iter().sum();
        x.iter_mut().for_each(|v| *v /= sum);
        x
    }
}
