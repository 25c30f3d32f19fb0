//! What is kept of many observations of one time: moments and a quantile sketch, both mergeable.
//!
//! Input: observations x ≥ 0 in seconds with weights w > 0; output: count, mean, variance, extremes, quantiles.
//!
//! ```text
//! W' = W + w      mean' = mean + w (x - mean) / W'      M' = M + w (x - mean)(x - mean')
//! of two samples: M = M₁ + M₂ + W₁ W₂ (mean₁ - mean₂)² / (W₁ + W₂)          variance = M / W
//! bucket of x:    i = ⌈ln x / ln γ⌉,  γ = (1 + α) / (1 - α),  read back as 2 γⁱ / (γ + 1)
//! ```
//!
//! | symbol | field | is |
//! |---|---|---|
//! | n | `n` | number of observations |
//! | W | `weight` | sum of their weights: how many executions they stand for |
//! | M | `squares` | sum of weighted squared deviations from the mean, s² |
//! | α | [`RELATIVE_ERROR`] | relative error of a quantile |
//!
//! The sketch has logarithmic buckets (Masson et al. 2019, "DDSketch"): merging adds counts, so that the order and grouping
//! of observations do not matter. Variances divide by W, not W - 1: then the variances within contexts and between their
//! means add up to that of the whole, and a context of one observation has spread 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Relative error of quantiles between [`SHORTEST_S`] and [`LONGEST_S`].
pub const RELATIVE_ERROR: f64 = 0.01;

/// Times below this count as zero in quantiles, seconds.
pub const SHORTEST_S: f64 = 1e-12;

/// Times above this share one bucket, seconds; with [`SHORTEST_S`] it bounds a sketch to some 2 800 buckets.
pub const LONGEST_S: f64 = 1e12;

/// A summary of observations of one time, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    n: u64,
    weight: f64,
    mean: f64,
    squares: f64,
    extremes: Option<(f64, f64)>,
    zeros: f64,
    buckets: BTreeMap<i16, f64>,
}

/// A sample as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSummary {
    /// Number of observations.
    pub n: u64,
    /// How many executions they stand for.
    pub weight: f64,
    /// Mean, seconds.
    pub mean_s: f64,
    /// Variance about the mean (divided by the weight), s².
    pub variance: f64,
    /// Standard deviation, seconds.
    pub sd_s: f64,
    /// Coefficient of variation, sd / mean; 0 where the mean is 0.
    pub cv: f64,
    /// Least, seconds.
    pub min_s: f64,
    /// Lower quartile, seconds.
    pub p25_s: f64,
    /// Median, seconds.
    pub median_s: f64,
    /// Upper quartile, seconds.
    pub p75_s: f64,
    /// 95 % quantile, seconds.
    pub p95_s: f64,
    /// 99 % quantile, seconds.
    pub p99_s: f64,
    /// Greatest, seconds.
    pub max_s: f64,
}

fn log_gamma() -> f64 {
    ((1.0 + RELATIVE_ERROR) / (1.0 - RELATIVE_ERROR)).ln()
}

#[expect(clippy::cast_possible_truncation, reason = "the range of values bounds the index")]
fn bucket_of(seconds: f64) -> i16 {
    (seconds.min(LONGEST_S).ln() / log_gamma()).ceil() as i16
}

fn middle_of(bucket: i16) -> f64 {
    let gamma = log_gamma().exp();
    2.0 * (f64::from(bucket) * log_gamma()).exp() / (gamma + 1.0)
}

impl Sample {
    /// Counts one observation; `false`, and nothing counted, unless `seconds` is finite and ≥ 0 and `weight` finite and > 0.
    pub fn add(&mut self, seconds: f64, weight: f64) -> bool {
        if !(seconds.is_finite() && seconds >= 0.0 && weight.is_finite() && weight > 0.0) {
            return false;
        }
        self.n += 1;
        self.weight += weight;
        let before = seconds - self.mean;
        self.mean += weight / self.weight * before;
        self.squares += weight * before * (seconds - self.mean);
        self.widen(seconds, seconds);
        if seconds < SHORTEST_S {
            self.zeros += weight;
        } else {
            *self.buckets.entry(bucket_of(seconds)).or_insert(0.0) += weight;
        }
        true
    }

    /// Adds what another sample observed.
    pub fn merge(&mut self, other: &Self) {
        let Some((least, greatest)) = other.extremes else { return };
        let weight = self.weight + other.weight;
        let between = other.mean - self.mean;
        self.squares += other.squares + between * between * self.weight * other.weight / weight;
        self.mean += between * other.weight / weight;
        self.n += other.n;
        self.weight = weight;
        self.widen(least, greatest);
        self.zeros += other.zeros;
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_insert(0.0) += count;
        }
    }

    fn widen(&mut self, least: f64, greatest: f64) {
        let (min, max) = self.extremes.unwrap_or((least, greatest));
        self.extremes = Some((min.min(least), max.max(greatest)));
    }

    /// Number of observations.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// How many executions they stand for.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Mean, seconds; `None` without observations.
    pub fn mean(&self) -> Option<f64> {
        self.extremes.map(|_| self.mean)
    }

    /// Variance (divided by the weight), s²; 0 without observations.
    pub fn variance(&self) -> f64 {
        if self.weight > 0.0 { (self.squares / self.weight).max(0.0) } else { 0.0 }
    }

    /// Standard deviation, seconds; 0 without observations.
    pub fn sd(&self) -> f64 {
        self.variance().sqrt()
    }

    /// Squared coefficient of variation; `None` without observations or with mean 0.
    pub fn cv_squared(&self) -> Option<f64> {
        self.mean().filter(|mean| *mean > 0.0).map(|mean| self.variance() / (mean * mean))
    }

    /// The quantile at `probability` in \[0, 1\], seconds, to [`RELATIVE_ERROR`]; `None` without observations.
    pub fn quantile(&self, probability: f64) -> Option<f64> {
        let (min, max) = self.extremes?;
        let wanted = probability.clamp(0.0, 1.0) * self.weight;
        if wanted <= self.zeros && self.zeros > 0.0 {
            return Some(min);
        }
        let mut sum = self.zeros;
        for (bucket, count) in &self.buckets {
            sum += count;
            if sum >= wanted {
                return Some(middle_of(*bucket).clamp(min, max));
            }
        }
        Some(max)
    }

    /// The part of the observations at or below the upper end of each bucket: `(seconds, probability)`, ascending.
    pub fn cumulated(&self) -> Vec<(f64, f64)> {
        let mut sum = self.zeros;
        let first = (self.zeros > 0.0).then_some((0.0, sum / self.weight));
        let rest = self.buckets.iter().map(|(bucket, count)| {
            sum += count;
            ((f64::from(*bucket) * log_gamma()).exp(), sum / self.weight)
        });
        first.into_iter().chain(rest.collect::<Vec<_>>()).collect()
    }

    /// The sample as it is reported; `None` without observations.
    pub fn summary(&self) -> Option<SampleSummary> {
        let (min_s, max_s) = self.extremes?;
        let at = |p| self.quantile(p).unwrap_or(min_s);
        Some(SampleSummary {
            n: self.n,
            weight: self.weight,
            mean_s: self.mean,
            variance: self.variance(),
            sd_s: self.sd(),
            cv: self.cv_squared().map_or(0.0, f64::sqrt),
            min_s,
            p25_s: at(0.25),
            median_s: at(0.5),
            p75_s: at(0.75),
            p95_s: at(0.95),
            p99_s: at(0.99),
            max_s,
        })
    }
}

/// Response times and self times of the same executions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Wall time between entry and exit.
    pub response: Sample,
    /// Wall time without that of synchronous sub-calls.
    pub self_time: Sample,
}

impl Observed {
    /// Adds what others observed.
    pub fn merge(&mut self, other: &Self) {
        self.response.merge(&other.response);
        self.self_time.merge(&other.self_time);
    }

    /// The sample of `metric`.
    pub fn of(&self, metric: Metric) -> &Sample {
        match metric {
            Metric::Response => &self.response,
            Metric::SelfTime => &self.self_time,
        }
    }
}

/// Which time of an execution is profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Wall time between entry and exit, sub-calls and waiting included: no demand.
    #[default]
    Response,
    /// Wall time without that of synchronous sub-calls: what demands of entries start from.
    SelfTime,
}
