//! Numbers of names that were seen of late, found without the cost of a hash that is safe against chosen names: a name that
//! is displaced by others only costs the look-up that it would have cost.

/// Names that are remembered; a power of two.
const N_REMEMBERED: usize = 1024;

/// Longest names that are remembered, bytes.
const LONGEST_BYTES: usize = 64;

/// A pair of names and its number.
#[derive(Debug)]
struct Known {
    first: Box<str>,
    second: Box<str>,
    number: u32,
}

/// Pairs of names with their numbers.
#[derive(Debug)]
pub(super) struct Recent(Vec<Option<Known>>);

impl Default for Recent {
    fn default() -> Self {
        Self(std::iter::repeat_with(|| None).take(N_REMEMBERED).collect())
    }
}

impl Recent {
    /// The number of a pair: the one remembered, or what `number` says.
    pub(super) fn number(&mut self, first: &str, second: &str, number: impl FnOnce() -> u32) -> u32 {
        if first.len() + second.len() > LONGEST_BYTES {
            return number();
        }
        let place = &mut self.0[place(first, second)];
        match place {
            Some(known) if *known.first == *first && *known.second == *second => known.number,
            _ => {
                let number = number();
                *place = Some(Known { first: first.into(), second: second.into(), number });
                number
            }
        }
    }
}

/// Fowler, Noll and Vo's hash.
fn place(first: &str, second: &str) -> usize {
    let bytes = first.bytes().chain([u8::MAX]).chain(second.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ (hash >> 32)) as usize % N_REMEMBERED
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
