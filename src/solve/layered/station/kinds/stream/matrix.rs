//! Small matrices of a chain between levels.

use smallvec::SmallVec;

use crate::model::Scalar;

/// A small square matrix, or one between two levels: row by row.
#[derive(Clone, Debug)]
pub(super) struct Matrix<S> {
    pub columns: usize,
    pub of: SmallVec<[S; 25]>,
}

impl<S: Scalar> Matrix<S> {
    pub fn none(rows: usize, columns: usize) -> Self {
        Self { columns, of: SmallVec::from_elem(S::from(0.0), rows * columns) }
    }

    pub fn diagonal(size: usize, value: S) -> Self {
        let mut it = Self::none(size, size);
        (0..size).for_each(|i| *it.at(i, i) = value);
        it
    }

    pub fn at(&mut self, row: usize, column: usize) -> &mut S {
        &mut self.of[row * self.columns + column]
    }

    pub fn times(&self, other: &Self) -> Self {
        let rows = self.of.len() / self.columns;
        let mut product = Self::none(rows, other.columns);
        for (row, sum) in self.of.chunks_exact(self.columns).zip(product.of.chunks_exact_mut(other.columns)) {
            for (&x, others) in row.iter().zip(other.of.chunks_exact(other.columns)) {
                sum.iter_mut().zip(others).for_each(|(sum, &y)| *sum += x * y);
            }
        }
        product
    }

    pub fn plus(mut self, other: &Self) -> Self {
        self.of.iter_mut().zip(&other.of).for_each(|(x, &y)| *x += y);
        self
    }

    pub fn minus(mut self, other: &Self) -> Self {
        self.of.iter_mut().zip(&other.of).for_each(|(x, &y)| *x -= y);
        self
    }

    pub fn sum(&self) -> S {
        self.of.iter().fold(S::from(0.0), |sum, &x| sum + x)
    }

    pub fn is_less_than(&self, most: f64) -> bool {
        self.of.iter().all(|x| x.value().abs() <= most && x.derivatives().iter().all(|slope| slope.abs() <= most))
    }

    /// By elimination without exchange of rows, which these do not need: of a unit less a matrix without negative numbers whose powers vanish, or rows of a chain.
    pub fn inverse(mut self) -> Option<Self> {
        let n = self.columns;
        let mut inverse = Self::diagonal(n, S::from(1.0));
        for k in 0..n {
            let pivot = *self.at(k, k);
            if pivot.value().is_nan() || pivot <= 0.0 {
                return None;
            }
            let scale = pivot.recip();
            for of in [&mut self.of, &mut inverse.of] {
                of[k * n..(k + 1) * n].iter_mut().for_each(|x| *x *= scale);
            }
            for i in (0..n).filter(|&i| i != k) {
                let factor = *self.at(i, k);
                if factor == S::from(0.0) {
                    continue;
                }
                for of in [&mut self.of, &mut inverse.of] {
                    for j in 0..n {
                        let taken = of[k * n + j] * factor;
                        of[i * n + j] -= taken;
                    }
                }
            }
        }
        Some(inverse)
    }
}
