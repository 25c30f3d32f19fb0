//! Which operations are over, in little memory where they are numbered in sequence.

use std::collections::BTreeMap;

/// Most ranges that are kept: some 40 MB. Beyond it the lowest numbers are forgotten.
const MAX_RANGES: usize = 1 << 20;

/// A set of operations, as ranges of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OperationSet {
    /// First → last, inclusive; neither touching nor overlapping.
    ranges: BTreeMap<u64, u64>,
}

impl OperationSet {
    pub(super) fn contains(&self, number: u64) -> bool {
        self.ranges.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }

    pub(super) fn insert(&mut self, number: u64) {
        self.insert_range(number, number);
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (first, last) in other.ranges {
            self.insert_range(first, last);
        }
    }

    fn insert_range(&mut self, mut first: u64, mut last: u64) {
        if let Some((before, end)) = self.ranges.range(..=first).next_back().map(|(a, b)| (*a, *b))
            && end.saturating_add(1) >= first
        {
            (first, last) = (before, last.max(end));
        }
        while let Some((next, end)) = self.ranges.range(first..=last.saturating_add(1)).next_back().map(|(a, b)| (*a, *b)) {
            self.ranges.remove(&next);
            last = last.max(end);
        }
        self.ranges.insert(first, last);
        if self.ranges.len() > MAX_RANGES {
            self.ranges.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn holds_what_a_set_holds_in_disjoint_ranges(a in prop::collection::vec(0..40_u64, 0..60), b in prop::collection::vec(0..40_u64, 0..60)) {
            let of = |numbers: &[u64]| {
                let mut set = OperationSet::default();
                numbers.iter().for_each(|n| set.insert(*n));
                set
            };
            let mut merged = of(&a);
            merged.merge(of(&b));
            let expected: BTreeSet<u64> = a.iter().chain(&b).copied().collect();
            for n in 0..45 {
                prop_assert_eq!(merged.contains(n), expected.contains(&n));
            }
            let ranges: Vec<(u64, u64)> = merged.ranges.iter().map(|(first, last)| (*first, *last)).collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", ranges);
        }
    }

    #[test]
    fn the_largest_number_is_one_of_many() {
        let mut set = OperationSet::default();
        for number in [u64::MAX, 0, u64::MAX - 1] {
            set.insert(number);
        }
        assert!(set.contains(u64::MAX) && set.contains(u64::MAX - 1) && set.contains(0) && !set.contains(1));
        assert_eq!(set.ranges.len(), 2);
    }
}
