//! Levels of equations of which each knows only the one before and the one after, taken out from the last to the first (as at the head of
//! [`super::moments`]).

use std::ops::Range;

use nalgebra::{DMatrix, DVector, Dyn, LU};

/// Vectors whose numbers grow beyond this are scaled down, with all before.
const LARGE: f64 = 1e100;

/// What leaves a level, and what of it comes to the level before and to the one after, by the numbers of the level.
pub(super) struct Block {
    pub own: DMatrix<f64>,
    pub down: DMatrix<f64>,
    pub up: DMatrix<f64>,
}

/// A level that is taken out.
struct Out {
    /// `D - L G`, as factors.
    own: LU<f64, Dyn, Dyn>,
    /// `L`.
    down: DMatrix<f64>,
    /// `G`.
    ratio: DMatrix<f64>,
}

/// The levels that are taken out, the last one first.
pub(super) struct Levels {
    /// Where the numbers of each level begin in a vector of all, and where the last ones end.
    starts: Vec<usize>,
    out: Vec<Out>,
    /// The one before them, whose `G` waits for what comes up to it.
    next: Option<Block>,
}

impl Levels {
    pub fn new(starts: Vec<usize>) -> Self {
        Self { starts, out: Vec::new(), next: None }
    }

    /// An empty block of a level.
    pub fn block(&self, level: usize) -> Block {
        let size = |level: usize| self.range(level).len();
        let own = size(level);
        let before = if level > 0 { size(level - 1) } else { 0 };
        let after = if level + 2 < self.starts.len() { size(level + 1) } else { 0 };
        Block { own: DMatrix::zeros(own, own), down: DMatrix::zeros(before, own), up: DMatrix::zeros(after, own) }
    }

    fn range(&self, level: usize) -> Range<usize> {
        self.starts[level]..self.starts[level + 1]
    }

    /// Takes out the level after `block`, which is the one before it; none where its equations have no solution.
    pub fn take_out(&mut self, mut block: Block) -> Option<()> {
        if let Some(after) = self.next.take() {
            let own = after.own.lu();
            let ratio = own.solve(&block.up)?;
            block.own.gemm(-1.0, &after.down, &ratio, 1.0);
            self.out.push(Out { own, down: after.down, ratio });
        }
        self.next = Some(block);
        Some(())
    }

    /// The numbers of all levels, of which the very first is 1; or less, and all others with it.
    pub fn vector(&self) -> DVector<f64> {
        let mut vector = DVector::zeros(self.starts[self.starts.len() - 1]);
        vector[0] = 1.0;
        for (level, n) in self.out.iter().rev().zip(1..) {
            let (before, mut its) = vector.rows_range_pair_mut(self.range(n - 1), self.range(n));
            its.gemv(1.0, &level.ratio, &before, 0.0);
            if its.amax() > LARGE {
                vector /= LARGE;
            }
        }
        vector
    }

    /// The numbers for which the equations of the levels are not 0 but `asked`, with 0 in the first level.
    pub fn answers(&self, mut asked: DVector<f64>) -> Option<DVector<f64>> {
        for (level, n) in self.out.iter().zip((1..self.starts.len() - 1).rev()) {
            let (mut before, mut its) = asked.rows_range_pair_mut(self.range(n - 1), self.range(n));
            if !level.own.solve_mut(&mut its) {
                return None;
            }
            before.gemv(1.0, &level.down, &its, 1.0);
        }
        asked.rows_range_mut(self.range(0)).fill(0.0);
        for (level, n) in self.out.iter().rev().zip(1..) {
            let (before, mut its) = asked.rows_range_pair_mut(self.range(n - 1), self.range(n));
            its.gemv(1.0, &level.ratio, &before, 1.0);
        }
        Some(asked)
    }
}
