//! Numbers of pairs of names that were seen of late, with one hash of both: a pair that is displaced by others only costs the
//! look-up that it would have cost.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::hashed::alike;

/// Names that are remembered; a power of two.
const N_REMEMBERED: usize = 1024;

/// Longest names that are remembered, bytes.
const LONGEST_BYTES: usize = 256;

/// A pair of names and its number.
#[derive(Debug)]
struct Known {
    first: Box<str>,
    second: Box<str>,
    number: u32,
}

/// Pairs of names with their numbers.
#[derive(Debug)]
pub(super) struct Recent {
    hasher: RandomState,
    known: Vec<Option<Known>>,
}

impl Default for Recent {
    fn default() -> Self {
        Self { hasher: RandomState::default(), known: std::iter::repeat_with(|| None).take(N_REMEMBERED).collect() }
    }
}

impl Recent {
    /// The number of a pair: the one remembered, or what `number` says.
    pub(super) fn number(&mut self, first: &str, second: &str, number: impl FnOnce() -> u32) -> u32 {
        if first.len() + second.len() > LONGEST_BYTES {
            return number();
        }
        let is = |known: &str, name: &str| alike(known.as_bytes(), name.as_bytes());
        let mut hasher = self.hasher.build_hasher();
        hasher.write(first.as_bytes());
        hasher.write(second.as_bytes());
        let place = &mut self.known[hasher.finish() as usize % N_REMEMBERED];
        match place {
            Some(known) if is(&known.first, first) && is(&known.second, second) => known.number,
            _ => {
                let number = number();
                *place = Some(Known { first: first.into(), second: second.into(), number });
                number
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::names::Names;

    /// More names than are remembered, in an order that brings them back: each has the number that it was given first.
    #[test]
    fn numbers_are_those_of_the_names() {
        let (mut recent, mut names) = (Recent::default(), Names::default());
        for round in 0..3 {
            for n in 0..5_000_u32 {
                let (first, second) = (format!("p{}", n % 50), format!("{}{}", n / 50, "x".repeat(n as usize % 70)));
                let number = recent.number(&first, &second, || names.intern(&format!("{first}@{second}")));
                assert_eq!(number, n, "round {round}");
            }
        }
    }
}
