//! From the counts of all blocks to distributions with confidence intervals.
//!
//! The part `F(x)` of the times below `x` is a ratio over the `B` blocks left after the warm-up, of counts `A_b` below `x` to
//! counts `N_b`; its half-width is that of batch means,
//!
//! ```text
//! h(x) = t_{B-1}(1/2 + confidence/2) sqrt(B/(B-1) * sum (A_b - F N_b)^2) / sum N_b
//! ```
//!
//! The quantile at `p` is where `F` reaches `p`, linear within a bucket; its interval is from the beginning of the bucket in which `F` reaches
//! `p - h` to the end of that in which it reaches `p + h`, as nothing is known of where in a bucket the times are.
//! Where these leave (0, 1) there is no such end: the run is too short to tell.
//!
//! Source: Woodruff 1952, *Confidence intervals for medians and other position measures* (JASA 47), for clustered samples.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::times::{Buckets, Cumulated, Times, lower_end};
use crate::solve::{Bin, Quantile};

/// Most bins of a reported histogram.
const MOST_BINS: usize = 40;

/// Part of the shortest times that make the first bin of a reported histogram.
const FIRST_BIN: f64 = 0.002;

/// Fewest blocks for confidence intervals.
const FEWEST_BLOCKS: usize = 4;

/// The times of a simulation, warm-up removed.
#[derive(Debug, Default)]
pub(super) struct Blocks<'a> {
    blocks: Vec<&'a Times>,
    quantile: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}

impl<'a> Blocks<'a> {
    /// The blocks for intervals at `confidence`.
    pub(super) fn new(blocks: Vec<&'a Times>, confidence: f64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a count of blocks")]
        let freedom = blocks.len() as f64 - 1.0;
        let enough = blocks.len() >= FEWEST_BLOCKS;
        let student = StudentsT::new(0.0, 1.0, freedom).ok().filter(|_| enough);
        Self { blocks, quantile: student.map_or(f64::NAN, |s| s.inverse_cdf(0.5 + 0.5 * confidence)) }
    }

    /// Sum of the parts over that of the wholes, by blocks, with half-width.
    fn part(&self, pairs: impl Iterator<Item = (f64, f64)>) -> (f64, Option<f64>) {
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let (sum, whole) = pairs.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
        if whole == 0.0 {
            return (0.0, None);
        }
        let mean = sum / whole;
        let squares: f64 = pairs.iter().map(|(s, n)| (s - mean * n).powi(2)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a count of blocks")]
        let n = pairs.len() as f64;
        let half_width = self.quantile * (n / (n - 1.0) * squares).sqrt() / whole;
        (mean, half_width.is_finite().then_some(half_width))
    }

    /// A part with its half-width, which is none where all times fell on one side: nothing is known of how far off 0 or 1 is.
    fn unless_never((part, half_width): (f64, Option<f64>)) -> (f64, Option<f64>) {
        (part, half_width.filter(|_| part > 0.0 && part < 1.0))
    }

    /// Response times of entry `entry`.
    pub(super) fn response(&self, entry: usize) -> Responses<'_> {
        let mut all = Buckets::default();
        self.blocks.iter().for_each(|b| all.merge(&b.responses[entry]));
        let parts = self.blocks.iter().map(|b| b.responses[entry].cumulated()).collect();
        Responses { blocks: self, all, parts }
    }

    /// Whether watch `watch` counted nothing.
    pub(super) fn is_unwatched(&self, watch: usize) -> bool {
        self.blocks.iter().all(|b| b.watched[watch].counts.iter().all(|&count| count == 0))
    }

    /// Part of the times of watch `watch` that fall into its bin `bin`, with half-width.
    pub(super) fn watched(&self, watch: usize, bin: usize) -> (f64, Option<f64>) {
        let counts = self.blocks.iter().map(|b| &b.watched[watch].counts);
        Self::unless_never(self.part(counts.map(|c| (real(c[bin]), real(c.iter().sum())))))
    }
}

/// The response times of one entry.
#[derive(Debug)]
pub(super) struct Responses<'a> {
    blocks: &'a Blocks<'a>,
    all: Buckets,
    parts: Vec<Cumulated>,
}

impl Responses<'_> {
    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.all.total()
    }

    /// Part of the times from `begin` to before `end`, with half-width.
    fn part(&self, begin: f64, end: f64) -> (f64, Option<f64>) {
        self.blocks.part(self.parts.iter().map(|b| (b.below(end) - b.below(begin), b.total())))
    }

    /// Their quantiles.
    pub(super) fn quantiles(&self, probabilities: &[f64]) -> Vec<Quantile> {
        let of = |&probability: &f64| {
            let value = quantile(&self.all, probability)?;
            let (_, half_width) = self.part(0.0, value);
            let ends = |p: f64| if p > 0.0 && p < 1.0 { bucket(&self.all, p) } else { None };
            let lower = half_width.and_then(|h| ends(probability - h)).map(|at| at.begin);
            let upper = half_width.and_then(|h| ends(probability + h)).map(|at| at.end);
            Some(Quantile { probability, value, lower, upper })
        };
        probabilities.iter().filter_map(of).collect()
    }

    /// Their histogram.
    pub(super) fn histogram(&self) -> Vec<Bin> {
        let bin = |ends: &[f64]| {
            let (probability, probability_half_width) = Blocks::unless_never(self.part(ends[0], ends[1]));
            Bin { begin: ends[0], end: Some(ends[1]), probability, probability_half_width }
        };
        edges(&self.all).windows(2).map(bin).collect()
    }
}

/// The bucket in which a part of the times is reached, and how far into it.
struct Reached {
    begin: f64,
    end: f64,
    /// Of its times.
    share: f64,
}

/// Where the part `p` of the times is reached; `None` without times.
fn bucket(all: &Buckets, p: f64) -> Option<Reached> {
    let wanted = p * real(all.total());
    let mut sum = 0.0;
    let mut last = None;
    for (bucket, count) in all.iter() {
        let end = if bucket == 0 { 0.0 } else { lower_end(bucket + 1) };
        let at = |share| Reached { begin: lower_end(bucket), end, share };
        if sum + real(count) >= wanted {
            return Some(at(((wanted - sum) / real(count)).max(0.0)));
        }
        sum += real(count);
        last = Some(at(1.0));
    }
    last
}

/// The time below which the part `p` of the times lie; `None` without times.
fn quantile(all: &Buckets, p: f64) -> Option<f64> {
    bucket(all, p).map(|at| at.begin + (at.end - at.begin) * at.share)
}

/// Ends of the bins that show `all`: buckets put together by powers of two until there are few enough.
fn edges(all: &Buckets) -> Vec<f64> {
    let Some((longest, _)) = all.iter().last() else { return Vec::new() };
    let wanted = FIRST_BIN * real(all.total());
    if longest == 0 {
        return vec![0.0, lower_end(1)];
    }
    let cumulated = all.iter().filter(|&(bucket, _)| bucket > 0).scan(0.0, |sum, (bucket, count)| {
        *sum += real(count);
        Some((bucket, *sum))
    });
    let shortest = cumulated.into_iter().find(|&(_, sum)| sum > wanted).map_or(longest, |(bucket, _)| bucket);
    let mut width = 1;
    while longest / width - shortest / width >= MOST_BINS {
        width *= 2;
    }
    let first = if all.iter().any(|(bucket, _)| bucket < shortest / width * width) { vec![0.0] } else { Vec::new() };
    let ends = (shortest / width..=longest / width + 1).map(|i| lower_end(i * width));
    first.into_iter().chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::simulate::law::{exponential, stream};

    /// 16 blocks of exponential times of mean 2.
    fn exponential_blocks(seed: u64, each: usize) -> Vec<Times> {
        let mut numbers = stream(seed, 0, 0);
        let block = |_| {
            let mut times = Times::new(1, &[]);
            (0..each).for_each(|_| times.responses[0].add(exponential(&mut numbers, 2.0)));
            times
        };
        (0..16).map(block).collect()
    }

    fn truth(p: f64) -> f64 {
        -2.0 * (1.0 - p).ln()
    }

    #[test]
    fn quantiles_of_an_exponential_law_lie_within_their_bounds_as_often_as_they_say() {
        let probabilities = [0.1, 0.5, 0.9, 0.99];
        let mut covered = 0;
        for seed in 0..50 {
            let times = exponential_blocks(seed, 500);
            let blocks = Blocks::new(times.iter().collect(), 0.95);
            for q in blocks.response(0).quantiles(&probabilities) {
                let (lower, upper) = (q.lower.unwrap(), q.upper.unwrap());
                assert!(lower <= q.value && q.value <= upper);
                assert!((q.value / truth(q.probability) - 1.0).abs() < 0.12, "{q:?}");
                covered += usize::from((lower..=upper).contains(&truth(q.probability)));
            }
        }
        // 200 draws of 95 %: three standard deviations are 4.6 %.
        assert!((181..=199).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn histogram_is_complete_and_narrow() {
        let times = exponential_blocks(1, 2000);
        let blocks = Blocks::new(times.iter().collect(), 0.95);
        let bins = blocks.response(0).histogram();
        assert!((5..=MOST_BINS + 2).contains(&bins.len()), "{}", bins.len());
        assert!((bins.iter().map(|b| b.probability).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(bins[0].begin == 0.0 && bins.windows(2).all(|w| w[0].end == Some(w[1].begin)));
        for bin in &bins {
            let mass = (-bin.begin / 2.0).exp() - (-bin.end.unwrap() / 2.0).exp();
            assert!((bin.probability - mass).abs() <= 4.0 * bin.probability_half_width.unwrap() + 1e-4, "{bin:?} {mass}");
        }
    }

    #[test]
    fn too_few_blocks_give_no_bounds() {
        let times = exponential_blocks(1, 10);
        let blocks = Blocks::new(times.iter().take(3).collect(), 0.95);
        let quantiles = blocks.response(0).quantiles(&[0.5]);
        assert_eq!((quantiles[0].lower, quantiles[0].upper), (None, None));
        let none = Times::new(1, &[]);
        assert!(Blocks::new(vec![&none], 0.95).response(0).quantiles(&[0.5]).is_empty());
    }

    #[test]
    fn bounds_beyond_the_sample_are_absent() {
        let times = exponential_blocks(1, 5);
        let blocks = Blocks::new(times.iter().collect(), 0.95);
        assert_eq!(blocks.response(0).quantiles(&[0.9999])[0].upper, None);
    }

    #[test]
    fn constant_times_have_their_value_as_every_quantile() {
        let mut times = Times::new(1, &[]);
        (0..100).for_each(|_| times.responses[0].add(3.0));
        let blocks: Vec<Times> = (0..8).map(|_| times.clone()).collect();
        let blocks = Blocks::new(blocks.iter().collect(), 0.95);
        for q in blocks.response(0).quantiles(&[0.01, 0.5, 0.99]) {
            assert!((3.0..3.05).contains(&q.value), "{q:?}");
        }
    }

    #[test]
    fn times_of_zero_do_not_widen_the_bins() {
        let mut times = Times::new(1, &[]);
        (0..1000).for_each(|i| times.responses[0].add(if i % 2 == 0 { 0.0 } else { 1.0 + f64::from(i) / 1000.0 }));
        let blocks = Blocks::new(vec![&times; 8], 0.95);
        let bins = blocks.response(0).histogram();
        assert!(bins.len() > 10 && (bins[0].probability - 0.5).abs() < 0.01, "{bins:?}");
        times.responses[0] = Buckets::default();
        times.responses[0].add(0.0);
        assert_eq!(Blocks::new(vec![&times], 0.95).response(0).histogram().len(), 1);
    }
}
