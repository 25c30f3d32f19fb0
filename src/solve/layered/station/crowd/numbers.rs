//! How many threads of a pool are busy, and what tells that.

use crate::model::Scalar;

/// How many threads of a pool are busy.
#[derive(Debug)]
pub(in super::super) struct Busy<'a, S> {
    /// `q`.
    pub others: &'a [S],
    /// `Π`: all of them, as an arrival finds them.
    pub all: S,
    /// Chances of 0 to all of them at any time; none where that is not known.
    pub at_any_time: &'a [S],
}

/// Who may come to a station.
#[derive(Debug)]
pub(in super::super) struct Come<'a, S> {
    /// How many; infinitely many from outside.
    pub sources: f64,
    /// How many are there in the mean.
    pub there: S,
    /// Where the queue was found last.
    pub found: &'a mut Option<f64>,
}

/// Chances of 0 to all of the threads of a pool that are busy, as an arrival finds them and at any time.
#[derive(Clone, Debug)]
pub(in super::super) struct Numbers<S> {
    pub found: Vec<S>,
    pub at_any_time: Vec<S>,
}

/// What tells how many threads of a pool are busy.
#[derive(Debug)]
pub(in super::super) enum HowMany<'a, S> {
    /// How many are in the mean, and no more.
    Mean,
    Come(Come<'a, S>),
    Numbers(Numbers<S>),
}

impl<'a, S> HowMany<'a, S> {
    pub fn by(come: Option<Come<'a, S>>) -> Self {
        come.map_or(Self::Mean, Self::Come)
    }
}

impl<S: Scalar> Numbers<S> {
    /// `q`: who finds all busy waits until one is not.
    pub fn others(&self) -> Vec<S> {
        let mut others = self.found.clone();
        let all = others.pop();
        others.last_mut().zip(all).into_iter().for_each(|(last, all)| *last += all);
        others
    }
}
