//! Levels of equations of which each knows only the one before and the one after, taken out from the last to the first (as at the head of
//! [`super::moments`]).

use crate::model::Scalar;

/// Vectors whose numbers grow beyond this are scaled down, with all before.
const LARGE: f64 = 1e100;

/// A matrix by rows.
#[derive(Clone, Debug)]
pub(super) struct Matrix<T> {
    columns: usize,
    cells: Vec<T>,
}

impl<T: Scalar> Matrix<T> {
    fn new(rows: usize, columns: usize) -> Self {
        Self { columns, cells: vec![T::from(0.0); rows * columns] }
    }

    pub fn add(&mut self, row: usize, column: usize, value: T) {
        self.cells[row * self.columns + column] += value;
    }

    fn rows(&self) -> std::slice::ChunksExact<'_, T> {
        self.cells.chunks_exact(self.columns.max(1))
    }

    fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.cells[row * self.columns..(row + 1) * self.columns]
    }

    /// Two rows, of which the first is to be before the second.
    fn two_rows(&mut self, first: usize, second: usize) -> (&[T], &mut [T]) {
        let (before, after) = self.cells.split_at_mut(second * self.columns);
        (&before[first * self.columns..(first + 1) * self.columns], &mut after[..self.columns])
    }
}

/// What leaves a level, and what of it comes to the level before and to the one after, by the numbers of the level.
pub(super) struct Block<T> {
    pub own: Matrix<T>,
    pub down: Matrix<T>,
    pub up: Matrix<T>,
}

impl<T: Scalar> Block<T> {
    /// That of a level of so many numbers, between one of `before` and one of `after`.
    pub fn new(own: usize, before: usize, after: usize) -> Self {
        Self { own: Matrix::new(own, own), down: Matrix::new(before, own), up: Matrix::new(after, own) }
    }
}

/// The levels that are taken out, the last one first.
pub(super) struct Levels<T> {
    /// `G`.
    ratios: Vec<Matrix<T>>,
    /// The one before them, whose `G` waits for what comes up to it.
    next: Option<Block<T>>,
}

impl<T: Scalar> Levels<T> {
    pub fn new() -> Self {
        Self { ratios: Vec::new(), next: None }
    }

    /// Takes out the level after `block`, which is the one before it.
    pub fn take_out(&mut self, mut block: Block<T>) {
        if let Some(after) = self.next.take() {
            let ratio = solve(after.own, block.up.clone());
            for (row, down) in after.down.rows().enumerate() {
                let own = block.own.row_mut(row);
                for (&down, ratio) in down.iter().zip(ratio.rows()).filter(|(down, _)| **down != T::from(0.0)) {
                    own.iter_mut().zip(ratio).for_each(|(own, &ratio)| *own -= down * ratio);
                }
            }
            self.ratios.push(ratio);
        }
        self.next = Some(block);
    }

    /// The vectors of the levels, from the first, which is of one number; all of them times the same.
    pub fn vectors(&self) -> Vec<Vec<T>> {
        let mut vectors = vec![vec![T::from(1.0)]];
        for ratio in self.ratios.iter().rev() {
            let before = &vectors[vectors.len() - 1];
            let next: Vec<T> =
                ratio.rows().map(|row| row.iter().zip(before).fold(T::from(0.0), |sum, (&ratio, &number)| sum + ratio * number)).collect();
            let is_large = next.iter().any(|number| number.value().abs() > LARGE);
            vectors.push(next);
            if is_large {
                vectors.iter_mut().flatten().for_each(|number| *number /= LARGE);
            }
        }
        vectors
    }
}

/// Solves `own · found = up`, by elimination with the largest of each column.
fn solve<T: Scalar>(mut own: Matrix<T>, mut up: Matrix<T>) -> Matrix<T> {
    let size = own.columns;
    for column in 0..size {
        let value = |row: usize| own.cells[row * size + column].value().abs();
        let best = (column..size).fold(column, |best, row| if value(row) > value(best) { row } else { best });
        if best != column {
            for matrix in [&mut own, &mut up] {
                let columns = matrix.columns;
                let (before, after) = matrix.cells.split_at_mut(best * columns);
                before[column * columns..(column + 1) * columns].swap_with_slice(&mut after[..columns]);
            }
        }
        let pivot = own.cells[column * size + column].recip();
        for row in column + 1..size {
            let factor = own.cells[row * size + column] * pivot;
            if factor == T::from(0.0) {
                continue;
            }
            let (from, to) = own.two_rows(column, row);
            to[column + 1..].iter_mut().zip(&from[column + 1..]).for_each(|(to, &from)| *to -= factor * from);
            let (from, to) = up.two_rows(column, row);
            to.iter_mut().zip(from).for_each(|(to, &from)| *to -= factor * from);
        }
    }
    for row in (0..size).rev() {
        for after in row + 1..size {
            let factor = own.cells[row * size + after];
            let (before, of_after) = up.cells.split_at_mut(after * up.columns);
            let to = &mut before[row * up.columns..(row + 1) * up.columns];
            to.iter_mut().zip(&of_after[..up.columns]).for_each(|(to, &from)| *to -= factor * from);
        }
        let pivot = own.cells[row * size + row].recip();
        up.row_mut(row).iter_mut().for_each(|number| *number *= pivot);
    }
    up
}
