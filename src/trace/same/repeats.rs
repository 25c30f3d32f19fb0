//! What a log says again.
//!
//! A message id is that of a message, perhaps also of its reply: only what is alike in all, with an id, is a repetition. What is alike
//! has one time, so that it leaves a window together: of the time at hand, all is remembered.

use std::hash::Hash;

use super::Time;
use crate::trace::hashed::HashSet;

/// What is gone through one by one.
const FEW: usize = 16;

/// Most of one time that are remembered beyond the few.
const MOST: usize = 1 << 17;

/// What there was at the time at hand, and with the `seq` at hand.
#[derive(Clone, Debug)]
pub(super) struct Repeats<T> {
    at: Option<(Time, u64)>,
    few: Vec<T>,
    many: HashSet<T>,
}

impl<T> Default for Repeats<T> {
    fn default() -> Self {
        Self { at: None, few: Vec::new(), many: HashSet::default() }
    }
}

impl<T: Eq + Hash> Repeats<T> {
    /// Whether the same was there at the same time; times are to come in order.
    pub(super) fn has_seen(&mut self, at: (Time, u64), what: T) -> bool {
        if self.at != Some(at) {
            self.at = Some(at);
            self.few.clear();
            if !self.many.is_empty() {
                self.many = HashSet::default();
            }
        }
        if self.few.contains(&what) {
            return true;
        }
        if self.few.len() < FEW {
            self.few.push(what);
            return false;
        }
        if self.many.len() >= MOST {
            self.many.clear();
        }
        !self.many.insert(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_one_time_is_remembered() {
        let mut repeats = Repeats::default();
        for time in [1, 2, 1] {
            let at = (Time::from_ticks(time), 0);
            assert!((0..1000).all(|what| !repeats.has_seen(at, what)));
            assert!((0..1000).all(|what| repeats.has_seen(at, what)));
        }
        assert!(!repeats.has_seen((Time::from_ticks(1), 1), 0));
        let at = (Time::from_ticks(5), 0);
        assert!((0..3 * MOST).all(|what| !repeats.has_seen(at, what)) && repeats.many.len() <= MOST);
    }
}
