//! Laws of think times.
//!
//! Input: a sample of think times; output: the law that fits it best among those without negative times.
//!
//! ```text
//! gamma        shape 1 / c²,  scale mean × c²                     c² squared coefficient of variation
//! log-normal   σ² = ln(1 + c²),  μ = ln mean - σ²/2
//! normal       clamped at 0:   mean m Φ(m/s) + s φ(m/s);   truncated at 0:   m + s φ(m/s) / Φ(m/s)
//! ```
//!
//! The first three are fitted by moments; the one with the smallest Kolmogorov distance to the sample's distribution is
//! taken, one with fewer parameters where it is as near to 0.005. A normal law, as load generators have it, puts part of its mass below
//! 0: it is taken from a plan only with what is done about that.

use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::structure::profile::Sample;

/// Squared coefficient of variation below which a law has no spread.
const NO_SPREAD: f64 = 1e-6;

/// Kolmogorov distance by which a law with more parameters must be nearer.
const NEARER_BY: f64 = 0.005;

/// What a normal law does with its negative times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BelowZero {
    /// They count as 0.
    Clamped,
    /// They are drawn anew.
    Truncated,
}

/// A law of non-negative times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "law", deny_unknown_fields)]
pub enum ThinkLaw {
    /// Always the same.
    Constant {
        /// Seconds, ≥ 0.
        mean_s: f64,
    },
    /// Exponential.
    Exponential {
        /// Seconds, > 0.
        mean_s: f64,
    },
    /// Gamma.
    Gamma {
        /// Shape, > 0.
        shape: f64,
        /// Scale in seconds, > 0.
        scale_s: f64,
    },
    /// Log-normal.
    LogNormal {
        /// Mean of the logarithm (of seconds).
        mu: f64,
        /// Standard deviation of the logarithm, > 0.
        sigma: f64,
    },
    /// Normal, without its negative part.
    Normal {
        /// Mean before that, seconds.
        location_s: f64,
        /// Standard deviation before that, seconds, > 0.
        scale_s: f64,
        /// What becomes of the negative part.
        below_zero: BelowZero,
    },
}

fn standard_normal_cdf(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

fn standard_normal_density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

impl ThinkLaw {
    /// Mean, seconds.
    pub fn mean_s(&self) -> f64 {
        match *self {
            Self::Constant { mean_s } | Self::Exponential { mean_s } => mean_s,
            Self::Gamma { shape, scale_s } => shape * scale_s,
            Self::LogNormal { mu, sigma } => (mu + sigma * sigma / 2.0).exp(),
            Self::Normal { location_s, scale_s, below_zero } => {
                let z = location_s / scale_s;
                let (above, density) = (standard_normal_cdf(z), standard_normal_density(z));
                match below_zero {
                    BelowZero::Clamped => location_s * above + scale_s * density,
                    BelowZero::Truncated => location_s + scale_s * density / above,
                }
            }
        }
    }

    /// The mass that a normal law with these parameters has below 0.
    pub fn negative_mass(location_s: f64, scale_s: f64) -> f64 {
        standard_normal_cdf(-location_s / scale_s)
    }

    /// The probability of a time of at most `time_s`.
    pub fn cdf(&self, time_s: f64) -> f64 {
        if time_s < 0.0 {
            return 0.0;
        }
        match *self {
            Self::Constant { mean_s } => f64::from(u8::from(time_s >= mean_s)),
            Self::Exponential { mean_s } => 1.0 - (-time_s / mean_s).exp(),
            Self::Gamma { shape, scale_s } => {
                if time_s > 0.0 {
                    statrs::function::gamma::gamma_lr(shape, time_s / scale_s)
                } else {
                    0.0
                }
            }
            Self::LogNormal { mu, sigma } => standard_normal_cdf((time_s.ln() - mu) / sigma),
            Self::Normal { location_s, scale_s, below_zero } => {
                let (below, negative) = (standard_normal_cdf((time_s - location_s) / scale_s), Self::negative_mass(location_s, scale_s));
                match below_zero {
                    BelowZero::Clamped => below,
                    BelowZero::Truncated => (below - negative) / (1.0 - negative),
                }
            }
        }
    }

    /// Draws a time, seconds.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        match *self {
            Self::Constant { mean_s } => mean_s,
            Self::Exponential { mean_s } => mean_s * Distribution::<f64>::sample(&Exp1, rng),
            Self::Gamma { shape, scale_s } => rand_distr::Gamma::new(shape, scale_s).map_or(shape * scale_s, |law| law.sample(rng)),
            Self::LogNormal { mu, sigma } => (mu + sigma * Distribution::<f64>::sample(&StandardNormal, rng)).exp(),
            Self::Normal { location_s, scale_s, below_zero } => {
                // Half of a normal law with a mean of at least 0 is positive; the bound is for laws with hardly any.
                for _ in 0..1000 {
                    let drawn = location_s + scale_s * Distribution::<f64>::sample(&StandardNormal, rng);
                    if drawn >= 0.0 {
                        return drawn;
                    }
                    if below_zero == BelowZero::Clamped {
                        return 0.0;
                    }
                }
                0.0
            }
        }
    }

    /// The law that fits `sample`, with its Kolmogorov distance; `None` without observations.
    pub fn fit(sample: &Sample) -> Option<(Self, f64)> {
        let mean_s = sample.mean()?;
        let c2 = sample.cv_squared().unwrap_or(0.0);
        if c2 < NO_SPREAD {
            return Some((Self::Constant { mean_s }, 0.0));
        }
        let sigma = c2.ln_1p().sqrt();
        let mut candidates = [
            Self::Exponential { mean_s },
            Self::Gamma { shape: 1.0 / c2, scale_s: mean_s * c2 },
            Self::LogNormal { mu: mean_s.ln() - sigma * sigma / 2.0, sigma },
        ]
        .into_iter()
        .map(|law| (law, law.distance(sample)));
        let first = candidates.next()?;
        Some(candidates.fold(first, |best, next| if next.1 < best.1 - NEARER_BY { next } else { best }))
    }

    /// Largest difference of the distribution functions at the ends of the sample's buckets.
    fn distance(&self, sample: &Sample) -> f64 {
        sample.cumulated().iter().map(|(time_s, p)| (self.cdf(*time_s) - p).abs()).fold(0.0, f64::max)
    }
}
