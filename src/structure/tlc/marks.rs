//! Places that are marked, and the nearest of them at or before another, in a tree of words of 64 bits.
//!
//! Level 0 has a bit for each place, level k + 1 one for each word of level k, set if any bit in it is: O(log₆₄ n) each.

/// Marked places among the first `n`.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    levels: Vec<Vec<u64>>,
}

const BITS: usize = u64::BITS as usize;

impl Marks {
    /// Takes all marks off, and makes room for `n` places.
    pub(super) fn reset(&mut self, n: usize) {
        let mut n_words = n.div_ceil(BITS).max(1);
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            self.levels[level].clear();
            self.levels[level].resize(n_words, 0);
            if n_words == 1 {
                self.levels.truncate(level + 1);
                break;
            }
            n_words = n_words.div_ceil(BITS);
        }
    }

    /// Marks a place below `n`.
    pub(super) fn insert(&mut self, place: u32) {
        let mut at = place as usize;
        for words in &mut self.levels {
            words[at / BITS] |= 1 << (at % BITS);
            at /= BITS;
        }
    }

    /// The last marked place up to this one.
    pub(super) fn last_up_to(&self, place: u32) -> Option<u32> {
        let mut at = place as usize;
        for (level, words) in self.levels.iter().enumerate() {
            let (word, bit) = (at / BITS, at % BITS);
            // The place itself counts; above, the word that it is in has been looked at.
            let mask = if level == 0 { u64::MAX >> (BITS - 1 - bit) } else { (1 << bit) - 1 };
            let before = words.get(word).map_or(0, |bits| bits & mask);
            if before != 0 {
                let last = |word: usize, bits: u64| word * BITS + bits.ilog2() as usize;
                let below = self.levels[..level].iter().rev();
                return u32::try_from(below.fold(last(word, before), |word, words| last(word, words[word]))).ok();
            }
            at = word;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_an_ordered_set_finds(n in prop_oneof![1..10_000_u32, Just(64), Just(4_096)], places in prop::collection::vec((0..10_000_u32, 0..10_000_u32), 0..200)) {
            let (mut marks, mut set) = (Marks::default(), BTreeSet::new());
            marks.reset(70_000);
            marks.insert(n);
            marks.reset(n as usize);
            for (place, asked) in places {
                marks.insert(place % n);
                set.insert(place % n);
                for asked in [asked % n, n - 1] {
                    prop_assert_eq!(marks.last_up_to(asked), set.range(..=asked).next_back().copied());
                }
            }
        }
    }
}
