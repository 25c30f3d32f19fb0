//! Distributions of times, as a simulation measures them.

use serde::{Deserialize, Serialize};

/// The distribution of a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Times measured.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Half-width of the mean's confidence interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_half_width: Option<f64>,
    /// Standard deviation of one time.
    pub std_deviation: f64,
    /// Quantiles, by ascending probability.
    pub quantiles: Vec<Quantile>,
    /// Bins without gaps from 0 to the longest time measured, of equal relative width save the first.
    pub histogram: Vec<Bin>,
}

/// A quantile: the time that is not exceeded with `probability`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// Probability, in (0, 1).
    pub probability: f64,
    /// The time.
    pub value: f64,
    /// Lower end of the confidence interval; absent where the run is too short to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Upper end of the confidence interval; absent where the run is too short to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Lower end, which belongs to the bin.
    pub begin: f64,
    /// Upper end, which does not; absent for the bin of all longer times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<f64>,
    /// Part of the times that fall into the bin.
    pub probability: f64,
    /// Half-width of the probability's confidence interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability_half_width: Option<f64>,
}

/// What the model asks for by `max-service-time`: how often a service time exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exceedance {
    /// The limit.
    pub limit: f64,
    /// Part of the service times beyond it.
    pub probability: f64,
    /// Half-width of the probability's confidence interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability_half_width: Option<f64>,
}

/// What the model asks for by `max-service-time` and `service-time-distribution` of one phase, activity or lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AskedTimes {
    /// The phase, of an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<u8>,
    /// How often the limit is exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exceeds: Option<Exceedance>,
    /// The bins asked for, from the one of all shorter to the one of all longer times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<Bin>,
}
