//! Distributions of times while a run goes on: counts that can be merged.
//!
//! The response times of an entry are counted in buckets of equal relative width: a time's bucket is its exponent and the
//! [`BITS`] leading bits of its mantissa, so that a bucket's ends are apart by at most `2^-BITS` of its lower end (0.8 %),
//! and finding it takes a shift. Only buckets between the shortest and the longest time above 0 are kept: some hundreds of
//! counts an entry. What the model asks for itself is counted in its own equal bins.
//!
//! A run keeps the counts of at most [`MOST_BLOCKS`] blocks of equal time, so that warm-up can be left out afterwards and
//! the spread between blocks gives confidence intervals.

use super::network::{Watch, Watched};

/// Leading bits of the mantissa that a bucket is found by.
const BITS: u32 = 7;

/// Bits of the mantissa that do not count.
const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - BITS;

/// Most blocks of a run.
pub(super) const MOST_BLOCKS: usize = 16;

/// Counts of times in buckets of equal relative width.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Buckets {
    /// Counts of bucket 0, which is far from all others.
    zeros: u64,
    /// Bucket of `counts[0]`.
    first: usize,
    counts: Vec<u64>,
}

/// Lower end of a bucket; 0 for the first.
pub(super) fn lower_end(bucket: usize) -> f64 {
    f64::from_bits((bucket as u64) << SHIFT)
}

#[inline]
fn bucket_of(time: f64) -> usize {
    if time > 0.0 { (time.to_bits() >> SHIFT) as usize } else { 0 }
}

impl Buckets {
    /// Counts a time of at least 0.
    #[inline]
    pub(super) fn add(&mut self, time: f64) {
        self.put(bucket_of(time), 1);
    }

    #[inline]
    fn put(&mut self, bucket: usize, count: u64) {
        if bucket == 0 {
            self.zeros += count;
            return;
        }
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(sum) => *sum += count,
            None => self.widen(bucket, count),
        }
    }

    /// Adds to a bucket outside of those kept, above 0.
    #[cold]
    fn widen(&mut self, bucket: usize, count: u64) {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            self.counts.splice(..0, std::iter::repeat_n(0, self.first - bucket));
            self.first = bucket;
        }
        let place = bucket - self.first;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += count;
    }

    /// Forgets all counts, and keeps the room.
    fn clear(&mut self) {
        self.zeros = 0;
        self.counts.fill(0);
    }

    /// Adds the counts of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(bucket, count)| self.put(bucket, count));
    }

    /// The buckets with a count, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let above = self.counts.iter().enumerate().map(|(i, &count)| (self.first + i, count));
        std::iter::once((0, self.zeros)).chain(above).filter(|(_, count)| *count > 0)
    }

    /// Times counted.
    pub(super) fn total(&self) -> u64 {
        self.zeros + self.counts.iter().sum::<u64>()
    }

    /// The counts summed up, to be asked often.
    pub(super) fn cumulated(&self) -> Cumulated {
        let sums = self.counts.iter().scan(self.zeros, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Cumulated { first: self.first.max(1), sums: [self.zeros].into_iter().chain(sums).collect() }
    }
}

/// How many times lie below each bucket.
#[derive(Clone, Debug)]
pub(super) struct Cumulated {
    first: usize,
    /// Of the bucket `first + i`, and for the last all.
    sums: Vec<u64>,
}

impl Cumulated {
    /// Times counted.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    pub(super) fn total(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0) as f64
    }

    /// How many times are shorter than `time`, those of its own bucket in proportion.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    pub(super) fn below(&self, time: f64) -> f64 {
        let bucket = bucket_of(time);
        let Some(place) = bucket.checked_sub(self.first) else {
            return if bucket == 0 { 0.0 } else { self.sums.first().copied().unwrap_or(0) as f64 };
        };
        let (Some(&before), Some(&after)) = (self.sums.get(place), self.sums.get(place + 1)) else { return self.total() };
        let (begin, end) = (lower_end(bucket), lower_end(bucket + 1));
        before as f64 + (after - before) as f64 * (time - begin) / (end - begin)
    }
}

/// Counts of times in equal bins between two ends, and beyond both.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bins {
    begin: f64,
    end: f64,
    /// Times shorter than `begin`, those in each bin, and those of at least `end`.
    pub(super) counts: Vec<u64>,
}

impl Bins {
    fn new(watch: &Watch) -> Self {
        Self { begin: watch.begin, end: watch.end, counts: vec![0; watch.bins as usize + 2] }
    }

    /// Counts a time.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
    fn add(&mut self, time: f64) {
        let bins = self.counts.len() - 2;
        let place = if time < self.begin {
            0
        } else if time >= self.end {
            bins + 1
        } else {
            1 + (((time - self.begin) / (self.end - self.begin) * bins as f64) as usize).min(bins - 1)
        };
        self.counts[place] += 1;
    }
}

/// The times of one block.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Times {
    /// Response times by entry.
    pub(super) responses: Vec<Buckets>,
    /// What the model asks for, in the order of [`super::network::Origins::watches`].
    pub(super) watched: Vec<Bins>,
}

impl Times {
    /// Without times.
    pub(super) fn new(n_entries: usize, watches: &[Watch]) -> Self {
        Self { responses: vec![Buckets::default(); n_entries], watched: watches.iter().map(Bins::new).collect() }
    }

    /// Adds the times of `other`.
    fn merge(&mut self, other: &Self) {
        self.responses.iter_mut().zip(&other.responses).for_each(|(sum, counts)| sum.merge(counts));
        for (sum, bins) in self.watched.iter_mut().zip(&other.watched) {
            sum.counts.iter_mut().zip(&bins.counts).for_each(|(sum, count)| *sum += count);
        }
    }

    /// Ends a block: returns its times and begins the next with as much room.
    pub(super) fn cut(&mut self) -> Self {
        let block = self.clone();
        self.responses.iter_mut().for_each(Buckets::clear);
        self.watched.iter_mut().for_each(|b| b.counts.fill(0));
        block
    }

    /// Counts a time of what the model asks for.
    #[cold]
    pub(super) fn watch(&mut self, watches: &[Watch], of: Watched, time: f64) {
        let asked = watches.iter().zip(&mut self.watched).filter(|(watch, _)| watch.of == of);
        asked.for_each(|(_, bins)| bins.add(time));
    }
}

/// Puts every two blocks together.
pub(super) fn halve(blocks: &mut Vec<Times>) {
    let mut halves = Vec::with_capacity(MOST_BLOCKS);
    let mut rest = std::mem::take(blocks).into_iter();
    while let Some(mut first) = rest.next() {
        if let Some(second) = rest.next() {
            first.merge(&second);
        }
        halves.push(first);
    }
    *blocks = halves;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_are_narrow_and_without_gaps() {
        for time in [1e-9, 0.3, 1.0, 1.017, 5.5, 1e12] {
            let bucket = bucket_of(time);
            let (begin, end) = (lower_end(bucket), lower_end(bucket + 1));
            assert!(begin <= time && time < end, "{begin} {time} {end}");
            assert!((end - begin) / begin <= 1.0 / 128.0 + 1e-12, "{begin} {end}");
        }
        assert_eq!(bucket_of(0.0), 0);
        assert_eq!(bucket_of(-0.0), 0);
        assert!(lower_end(0) == 0.0);
    }

    #[test]
    fn times_of_nothing_take_no_room_up_to_others() {
        let mut buckets = Buckets::default();
        [0.0, 1.0, 0.0, 2.0].iter().for_each(|&time| buckets.add(time));
        assert!(buckets.counts.len() <= 129, "{}", buckets.counts.len());
        assert_eq!((buckets.total(), buckets.iter().next()), (4, Some((0, 2))));
        let below = buckets.cumulated();
        assert_eq!([0.0, 0.5, 1.5, 9.0].map(|time| below.below(time)), [0.0, 2.0, 3.0, 4.0]);
        buckets.clear();
        assert_eq!(buckets.total(), 0);
    }

    proptest! {
        /// Counts in any parts and order merge to the same, and lose none.
        #[test]
        fn merging_is_counting_together(times in proptest::collection::vec(0.0_f64..1e6, 1..200), at in 0usize..200) {
            let count = |times: &[f64]| {
                let mut buckets = Buckets::default();
                times.iter().for_each(|&t| buckets.add(t));
                buckets
            };
            let (left, right) = times.split_at(at.min(times.len()));
            let mut merged = count(right);
            merged.merge(&count(left));
            let whole = count(&times);
            prop_assert_eq!(merged.iter().collect::<Vec<_>>(), whole.iter().collect::<Vec<_>>());
            prop_assert_eq!(whole.total(), times.len() as u64);
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            let whole = whole.cumulated();
            prop_assert!(whole.below(least) < times.iter().filter(|&&t| t <= least * 1.02).count() as f64 + 1e-9);
            prop_assert!((whole.below(2e6) - times.len() as f64).abs() < 1e-9);
        }
    }

    #[test]
    fn asked_bins_hold_their_lower_ends() {
        let watch = Watch { of: Watched::Holding { task: 0 }, begin: 1.0, end: 3.0, bins: 2 };
        let mut bins = Bins::new(&watch);
        [0.0, 0.999, 1.0, 1.999, 2.0, 2.999, 3.0, 50.0].iter().for_each(|&t| bins.add(t));
        assert_eq!(bins.counts, [2, 2, 2, 2]);
        let mut limit = Bins::new(&Watch { end: 1.0, bins: 0, ..watch });
        [0.5, 1.0, 1.5].iter().for_each(|&t| limit.add(t));
        assert_eq!(limit.counts, [1, 2]);
    }

    #[test]
    fn halving_merges_neighbours() {
        let block = |time: f64| {
            let mut times = Times::new(1, &[]);
            times.responses[0].add(time);
            times
        };
        let mut blocks = vec![block(1.0), block(2.0), block(4.0)];
        halve(&mut blocks);
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].responses[0].total(), 2);
        assert_eq!(blocks[1], block(4.0));
    }
}
