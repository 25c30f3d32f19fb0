//! Equations of which each knows only numbers near its own, taken out from the last to the first.
//!
//! `A z = r` of one number or of two in each of the blocks `k`, with `A_ij = 0` of numbers further apart than the reach. Of the blocks `i, j < k`
//!
//! ```text
//! F_ik = A_ik A_kk⁻¹        A_ij -= F_ik A_kj                    r_i -= F_ik r_k        z_k = A_kk⁻¹ (r_k - Σ_{j<k} A_kj z_j)
//! ```
//!
//! where the first number is given and its equation, which follows from the others, left out.
//!
//! | symbol | here | is |
//! |---|---|---|
//! | `A`, `F` | `rows` | in a band; `F` stands where `A_ik` stood |
//! | `A_kk⁻¹` | `pivots` | when all later blocks are taken out |

use super::super::super::vectors::{add_times, dot};

/// Numbers that grow beyond this are scaled down, with all before.
const LARGE: f64 = 1e100;

/// The equations before blocks are taken out.
pub(super) struct Band {
    reach: usize,
    rows: Vec<f64>,
    /// Where each block begins, and where the last one ends.
    starts: Vec<usize>,
}

/// The equations with all blocks taken out but the first.
pub(super) struct TakenOut {
    band: Band,
    /// `A_kk⁻¹` by rows; of one number the first of them.
    pivots: Vec<[f64; 4]>,
}

impl Band {
    /// Empty equations of such blocks, of one number or two.
    pub fn new(starts: Vec<usize>, reach: usize) -> Self {
        let n = starts[starts.len() - 1];
        Self { reach, rows: vec![0.0; n * (2 * reach + 1)], starts }
    }

    fn place(&self, row: usize, column: usize) -> usize {
        row * (2 * self.reach + 1) + column + self.reach - row
    }

    pub fn add(&mut self, row: usize, column: usize, value: f64) {
        let place = self.place(row, column);
        self.rows[place] += value;
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.rows[self.place(row, column)]
    }

    /// The first number that a block knows of.
    fn first(&self, k: usize) -> usize {
        (self.starts[k + 1] - 1).saturating_sub(self.reach)
    }

    /// Takes out all blocks but the first; none where one has no solution.
    pub fn take_out(mut self) -> Option<TakenOut> {
        let mut pivots = vec![[0.0; 4]; self.starts.len() - 1];
        for k in (1..pivots.len()).rev() {
            let (start, end) = (self.starts[k], self.starts[k + 1]);
            let pivot = if end - start == 1 {
                [self.at(start, start).recip(), 0.0, 0.0, 0.0]
            } else {
                let [a, b, c, d] = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| self.at(start + i, start + j));
                let whole = (a * d - b * c).recip();
                [d * whole, -b * whole, -c * whole, a * whole]
            };
            if pivot.iter().any(|part| !part.is_finite()) {
                return None;
            }
            pivots[k] = pivot;
            self.take_out_block(k, pivot);
        }
        Some(TakenOut { band: self, pivots })
    }

    fn take_out_block(&mut self, k: usize, pivot: [f64; 4]) {
        let (reach, stride, start, first) = (self.reach, 2 * self.reach + 1, self.starts[k], self.first(k));
        let size = self.starts[k + 1] - start;
        let (before, its) = self.rows.split_at_mut(start * stride);
        for row in first..start {
            let row = &mut before[row * stride + reach - row..][first..start + size];
            let (row, own) = row.split_at_mut(start - first);
            if own.iter().all(|value| *value == 0.0) {
                continue;
            }
            let line = |of: usize| &its[of * stride + first + reach - start - of..][..start - first];
            if let [own] = own {
                *own *= pivot[0];
                add_times(row, -*own, line(0));
            } else {
                let [a, b] = [own[0] * pivot[0] + own[1] * pivot[2], own[0] * pivot[1] + own[1] * pivot[3]];
                (own[0], own[1]) = (a, b);
                for ((value, &one), &other) in row.iter_mut().zip(line(0)).zip(line(1)) {
                    *value -= a * one + b * other;
                }
            }
        }
    }
}

impl TakenOut {
    /// All numbers where nothing is asked for and the very first is 1; or less, and all others with it.
    pub fn vector(&self) -> Vec<f64> {
        let mut numbers = vec![0.0; self.band.starts[self.pivots.len()]];
        numbers[0] = 1.0;
        for k in 1..self.pivots.len() {
            self.answer(k, &mut numbers);
            let start = self.band.starts[k];
            if numbers[start].abs() > LARGE {
                numbers[..self.band.starts[k + 1]].iter_mut().for_each(|number| *number /= LARGE);
            }
        }
        numbers
    }

    /// The numbers where so much is asked for and the first are 0.
    pub fn answers(&self, mut asked: Vec<f64>) -> Vec<f64> {
        let Band { reach, rows, starts } = &self.band;
        let stride = 2 * reach + 1;
        for k in (1..self.pivots.len()).rev() {
            let (start, end) = (starts[k], starts[k + 1]);
            let first = self.band.first(k);
            let (before, its) = asked.split_at_mut(start);
            for (row, asked) in (first..start).zip(&mut before[first..]) {
                let shares = &rows[row * stride + reach - row..][start..end];
                shares.iter().zip(&*its).for_each(|(share, its)| *asked -= share * its);
            }
        }
        asked[..starts[1]].fill(0.0);
        for k in 1..self.pivots.len() {
            self.answer(k, &mut asked);
        }
        asked
    }

    /// Sets the numbers of a block from those before and from what is asked for, which stands there.
    fn answer(&self, k: usize, numbers: &mut [f64]) {
        let Band { reach, rows, starts } = &self.band;
        let (start, end) = (starts[k], starts[k + 1]);
        let first = self.band.first(k);
        let (before, its) = numbers.split_at_mut(start);
        let left = |row: usize, asked: f64| {
            let known = &rows[row * (2 * reach + 1) + reach - row..][first..start];
            asked - dot(known, &before[first..])
        };
        let pivot = self.pivots[k];
        if end - start == 1 {
            its[0] = pivot[0] * left(start, its[0]);
        } else {
            let [a, b] = [left(start, its[0]), left(start + 1, its[1])];
            (its[0], its[1]) = (pivot[0] * a + pivot[1] * b, pivot[2] * a + pivot[3] * b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equations of blocks of one number and of two, each of which knows the one before and the one after; those of the first are what the others leave.
    fn equations() -> (Vec<usize>, Vec<(usize, usize, f64)>) {
        let starts = vec![0, 1, 3, 4, 6, 8, 9];
        let near = |k: usize| starts[k.saturating_sub(1)]..starts[(k + 2).min(starts.len() - 1)];
        let parts =
            (0..starts.len() - 1).flat_map(|k| (starts[k]..starts[k + 1]).flat_map(move |row| near(k).map(move |column| (row, column))));
        let value =
            |row: usize, column: usize| if row == column { 5.0 + row as f64 } else { (row as f64 * 1.7 + column as f64 * 2.3).sin() };
        (starts.clone(), parts.map(|(row, column)| (row, column, value(row, column))).collect())
    }

    #[test]
    fn all_equations_hold_but_the_first() {
        let (starts, parts) = equations();
        let n = starts[starts.len() - 1];
        let mut band = Band::new(starts, 4);
        parts.iter().for_each(|&(row, column, value)| band.add(row, column, value));
        let taken_out = band.take_out().unwrap();
        let asked: Vec<f64> = (0..n).map(|row| (row as f64).cos()).collect();
        for (found, asked, first) in [(taken_out.vector(), vec![0.0; n], 1.0), (taken_out.answers(asked.clone()), asked, 0.0)] {
            assert_eq!(found[0], first);
            for row in 1..n {
                let sum: f64 = parts.iter().filter(|part| part.0 == row).map(|&(_, column, value)| value * found[column]).sum();
                assert!((sum - asked[row]).abs() < 1e-12, "{row}: {sum} {}", asked[row]);
            }
        }
    }

    #[test]
    fn equations_without_a_solution_are_none() {
        let mut band = Band::new(vec![0, 1, 3], 2);
        [(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)].into_iter().for_each(|(row, column)| band.add(row, column, 1.0));
        assert!(band.take_out().is_none());
    }

    #[test]
    fn numbers_that_grow_are_scaled() {
        let n = 400;
        let mut band = Band::new((0..=n).collect(), 1);
        for k in 1..n {
            band.add(k, k, 1.0);
            band.add(k, k - 1, -10.0);
        }
        let found = band.take_out().unwrap().vector();
        assert!(found.iter().all(|number| number.is_finite()));
        assert!((found[n - 1] / found[n - 2] - 10.0).abs() < 1e-12 && found[n - 1] > 1.0);
    }
}
