//! Laws of random times, and the streams of random numbers they are drawn from.
//!
//! A law is given by its mean `m` and squared coefficient of variation `c`:
//!
//! | `c` | law |
//! |---|---|
//! | 0 | constant `m` |
//! | (0, 1) | gamma of shape `1/c`, scale `m c` |
//! | 1 | exponential |
//! | > 1 | two exponential branches of balanced means: `p = (1 - sqrt((c-1)/(c+1))) / 2`, means `m / 2p` and `m / 2(1-p)` |
//! | bursty customers | Pareto of index `k = 1 + sqrt(1 + 1/c)` from `m (k-1) / k` |
//! | uniform customers | uniform on `[0, 2m]` |

use rand::{Rng, RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Gamma};

/// A stream of random numbers, the same on every machine.
pub(super) type Stream = Xoshiro256PlusPlus;

/// Stream `number` of replication `replication` under `seed`: begins at a place in the generator's cycle of `2^256` drawn from
/// a ChaCha stream of its own, so that no two streams overlap in practice.
pub(super) fn stream(seed: u64, replication: u32, number: u32) -> Stream {
    let mut places = ChaCha8Rng::seed_from_u64(seed);
    places.set_stream((u64::from(replication) << 32) | u64::from(number));
    Stream::from_rng(&mut places)
}

/// A uniform number in `[0, 1)`.
#[inline]
pub(super) fn uniform(stream: &mut impl Rng) -> f64 {
    stream.random::<f64>()
}

/// An exponential number of the given mean.
#[inline]
pub(super) fn exponential(stream: &mut impl Rng, mean: f64) -> f64 {
    let unit: f64 = Exp1.sample(stream);
    unit * mean
}

/// A law of non-negative times.
#[derive(Clone, Debug)]
pub(super) enum Law {
    /// Always the same time.
    Constant(f64),
    /// Exponential of this mean.
    Exponential(f64),
    /// Gamma.
    Gamma(Gamma<f64>),
    /// One of two exponential branches.
    Hyperexponential {
        /// Probability of the first branch.
        probability: f64,
        /// Means of the branches.
        means: [f64; 2],
    },
    /// Pareto.
    Pareto {
        /// Index `k`.
        index: f64,
        /// Smallest value.
        least: f64,
    },
    /// Uniform from 0 to this value.
    Uniform(f64),
}

/// The family that laws of a task are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// By the squared coefficient of variation.
    ByVariation,
    /// Pareto, of bursty customers.
    Pareto,
    /// Uniform, of uniform customers.
    Uniform,
}

impl Law {
    /// The law of `family` with mean `mean` ≥ 0 and squared coefficient of variation `cvsq` ≥ 0, or why there is none.
    pub(super) fn new(family: Family, mean: f64, cvsq: f64) -> Result<Self, &'static str> {
        if mean == 0.0 {
            return Ok(Self::Constant(0.0));
        }
        match family {
            Family::Uniform => Ok(Self::Uniform(2.0 * mean)),
            Family::Pareto if cvsq > 0.0 => {
                let index = 1.0 + (1.0 + 1.0 / cvsq).sqrt();
                Ok(Self::Pareto { index, least: mean * (index - 1.0) / index })
            }
            _ if cvsq == 0.0 => Ok(Self::Constant(mean)),
            _ if cvsq < 1.0 => Gamma::new(1.0 / cvsq, mean * cvsq)
                .map(Self::Gamma)
                .map_err(|_| "the squared coefficient of variation is too small for a gamma law"),
            #[expect(clippy::float_cmp, reason = "1 is the exponential law exactly; beside it the other laws are right")]
            _ if cvsq == 1.0 => Ok(Self::Exponential(mean)),
            _ => {
                let probability = 0.5 * (1.0 - ((cvsq - 1.0) / (cvsq + 1.0)).sqrt());
                Ok(Self::Hyperexponential { probability, means: [mean / (2.0 * probability), mean / (2.0 * (1.0 - probability))] })
            }
        }
    }

    /// A time.
    #[inline]
    pub(super) fn draw(&self, stream: &mut impl Rng) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Exponential(mean) => exponential(stream, *mean),
            Self::Gamma(gamma) => gamma.sample(stream),
            Self::Hyperexponential { probability, means } => {
                let branch = usize::from(uniform(stream) >= *probability);
                exponential(stream, means[branch])
            }
            Self::Pareto { index, least } => least * (1.0 - uniform(stream)).powf(-1.0 / index),
            Self::Uniform(end) => end * uniform(stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 400_000;

    /// Mean and squared coefficient of variation of many draws.
    fn moments(law: &Law) -> (f64, f64) {
        let mut stream = stream(7, 0, 1);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let x = law.draw(&mut stream);
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(DRAWS);
        (mean, squares / f64::from(DRAWS) / (mean * mean) - 1.0)
    }

    #[test]
    fn laws_have_the_moments_asked_for() {
        for cvsq in [0.0, 0.25, 0.9, 1.0, 1.5, 4.0] {
            let (mean, got) = moments(&Law::new(Family::ByVariation, 3.0, cvsq).unwrap());
            assert!((mean - 3.0).abs() < 0.02 * (1.0 + cvsq), "mean {mean} of c {cvsq}");
            assert!((got - cvsq).abs() <= 0.03 * cvsq, "c {got} for {cvsq}");
        }
        let (mean, got) = moments(&Law::new(Family::Uniform, 3.0, 1.0).unwrap());
        assert!((mean - 3.0).abs() < 0.01 && (got - 1.0 / 3.0).abs() < 0.005, "uniform {mean} {got}");
        let (mean, _) = moments(&Law::new(Family::Pareto, 3.0, 1.0).unwrap());
        assert!((mean - 3.0).abs() < 0.06, "Pareto {mean}");
    }

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |replication, number| uniform(&mut stream(1, replication, number));
        assert_eq!(draw(0, 1).to_bits(), draw(0, 1).to_bits());
        assert_ne!(draw(0, 1).to_bits(), draw(0, 2).to_bits());
        assert_ne!(draw(0, 1).to_bits(), draw(1, 1).to_bits());
    }
}
