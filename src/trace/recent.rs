//! Numbers of pairs of names that were seen of late: a pair that is displaced by others only costs the look-up that it would have
//! cost. Short names, which most are, are compared as a few words that hold all of their bytes.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::hashed::alike;

/// Places for names; a power of two. Those for short ones hold two pairs each.
const N_PLACES: usize = 1024;

/// Longest names that are remembered, bytes.
const LONGEST_BYTES: usize = 256;

/// A pair of short names and its number.
#[derive(Clone, Copy, Debug, Default)]
struct Short {
    words: Words,
    number: u32,
}

/// A pair of longer names and its number.
#[derive(Debug)]
struct Long {
    first: Box<[u8]>,
    second: Box<[u8]>,
    number: u32,
}

/// Pairs of names with their numbers.
#[derive(Debug)]
pub(super) struct Recent {
    hasher: RandomState,
    short: Box<[[Short; 2]]>,
    long: Box<[Option<Long>]>,
}

impl Default for Recent {
    fn default() -> Self {
        let long = std::iter::repeat_with(|| None).take(N_PLACES).collect();
        Self { hasher: RandomState::default(), short: vec![Default::default(); N_PLACES].into(), long }
    }
}

impl Recent {
    /// The number of a pair: the one remembered, or what `number` says.
    #[inline]
    pub(super) fn number(&mut self, first: &str, second: &str, number: impl FnOnce() -> u32) -> u32 {
        self.number_of_bytes(first.as_bytes(), second.as_bytes(), number)
    }

    /// The same of names in bytes.
    #[inline]
    pub(super) fn number_of_bytes(&mut self, first: &[u8], second: &[u8], number: impl FnOnce() -> u32) -> u32 {
        let Some(words) = Words::of(first, second) else { return self.long_number(first, second, number) };
        let place = &mut self.short[words.place()];
        if let Some(known) = place.iter().find(|known| known.words == words) {
            return known.number;
        }
        let number = number();
        *place = [Short { words, number }, place[0]];
        number
    }

    fn long_number(&mut self, first: &[u8], second: &[u8], number: impl FnOnce() -> u32) -> u32 {
        if first.len() + second.len() > LONGEST_BYTES {
            return number();
        }
        let mut hasher = self.hasher.build_hasher();
        hasher.write(first);
        hasher.write(second);
        let place = &mut self.long[hasher.finish() as usize % N_PLACES];
        match place {
            Some(known) if alike(&known.first, first) && alike(&known.second, second) => known.number,
            _ => {
                let number = number();
                *place = Some(Long { first: first.into(), second: second.into(), number });
                number
            }
        }
    }
}

/// Two names, of at most 16 and 8 bytes, as words that no other two have; none has those of the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Words {
    first: [u64; 2],
    second: u64,
    lengths: u64,
}

impl Words {
    #[inline]
    fn of(first: &[u8], second: &[u8]) -> Option<Self> {
        let lengths = 1 << 16 | (first.len() as u64) << 8 | second.len() as u64;
        let first = match (first.first_chunk(), first.last_chunk()) {
            _ if first.len() > 16 => return None,
            (Some(begin), Some(end)) => [u64::from_le_bytes(*begin), u64::from_le_bytes(*end)],
            _ => [word(first)?, 0],
        };
        Some(Self { first, second: word(second)?, lengths })
    }

    /// Whoever finds names that share a place gains nothing but that they are looked up: this needs no seed.
    #[inline]
    fn place(self) -> usize {
        const ODD: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];
        let first = self.first[0].wrapping_mul(ODD[0]) ^ self.first[1].wrapping_mul(ODD[1]).rotate_left(32);
        let both = first ^ (self.second ^ self.lengths << 56).wrapping_mul(ODD[2]);
        (both ^ both >> 32).wrapping_mul(ODD[0]) as usize >> (usize::BITS - N_PLACES.trailing_zeros())
    }
}

/// At most eight bytes as a word, in which those of one length are told apart.
#[inline]
fn word(bytes: &[u8]) -> Option<u64> {
    match (bytes, bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        ([], ..) => Some(0),
        (_, Some(begin), Some(end)) => {
            (bytes.len() <= 8).then(|| u64::from(u32::from_le_bytes(*begin)) | u64::from(u32::from_le_bytes(*end)) << 32)
        }
        ([first, .., last], ..) => Some(u64::from(*first) | u64::from(bytes[1]) << 8 | u64::from(*last) << 16),
        ([only], ..) => Some(u64::from(*only)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        /// Words are those of one pair only, however its bytes repeat.
        #[test]
        fn words_tell_pairs_apart(pairs in prop::collection::vec(("[ab]{0,17}|[ab]{0,3}|[ab]{7,9}", "[ab]{0,9}|[ab]{0,3}"), 2..40)) {
            for (first, second) in &pairs {
                let words = Words::of(first.as_bytes(), second.as_bytes());
                prop_assert_eq!(words.is_some(), first.len() <= 16 && second.len() <= 8);
                prop_assert_ne!(words, Some(Words::default()));
                for other in &pairs {
                    let others = Words::of(other.0.as_bytes(), other.1.as_bytes());
                    prop_assert!(words.is_none() || (words == others) == (other == &(first.clone(), second.clone())));
                }
            }
        }
    }
}
