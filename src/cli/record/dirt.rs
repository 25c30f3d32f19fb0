//! What spans suffer on their way: sampling, clocks that disagree, and loss.
//!
//! Every decision is drawn from a hash of what it is about, so that a recording is always written alike.

/// What spans suffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dirt {
    /// Share of cycles that are traced at all, (0, 1]; with less than 1 the rest say so in their `tracestate`, as consistent
    /// probability sampling does (`ot=th:…`).
    pub sampled: f64,
    /// Largest offset of a host's clock either way, seconds.
    pub skew_s: f64,
    /// Share of spans that never arrive, [0, 1).
    pub lost: f64,
    /// Seed of all decisions.
    pub seed: u64,
}

impl Default for Dirt {
    fn default() -> Self {
        Self { sampled: 1.0, skew_s: 0.0, lost: 0.0, seed: 1 }
    }
}

/// A well-mixed function of two numbers (splitmix64: Steele, Lea & Flood 2014).
pub fn mix(seed: u64, number: u64) -> u64 {
    let mut z = number.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number in [0, 1) from a hash.
fn unit(hash: u64) -> f64 {
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

/// Bits of randomness that thresholds of `tracestate` have.
const THRESHOLD_BITS: u32 = 56;

impl Dirt {
    /// Whether a cycle is traced.
    pub fn samples(&self, cycle: u64) -> bool {
        self.sampled >= 1.0 || unit(mix(self.seed, cycle)) < self.sampled
    }

    /// Whether a span never arrives.
    pub fn loses(&self, span: u64) -> bool {
        self.lost > 0.0 && unit(mix(self.seed ^ 0x1051, span)) < self.lost
    }

    /// What the clock of a host shows too much, seconds.
    pub fn offset_s(&self, host: &str) -> f64 {
        let hash = host.bytes().fold(self.seed ^ 0x0c10c, |hash, byte| mix(hash, u64::from(byte)));
        self.skew_s * (2.0 * unit(hash) - 1.0)
    }

    /// The `tracestate` of sampled spans: the rejection threshold of 56 bits in hexadecimal, without zeros at its end.
    pub fn tracestate(&self) -> Option<String> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 2^56")]
        let threshold = ((1.0 - self.sampled) * (1_u64 << THRESHOLD_BITS) as f64) as u64;
        (self.sampled < 1.0).then(|| format!("ot=th:{}", format!("{threshold:014x}").trim_end_matches('0')))
    }
}

#[cfg(test)]
mod tests {
    use super::Dirt;

    #[test]
    fn a_quarter_sampled_has_the_threshold_c() {
        assert_eq!(Dirt { sampled: 0.25, ..Dirt::default() }.tracestate().as_deref(), Some("ot=th:c"));
        assert_eq!(Dirt::default().tracestate(), None);
        let dirt = Dirt { sampled: 0.25, ..Dirt::default() };
        let kept = (0..10_000).filter(|cycle| dirt.samples(*cycle)).count();
        assert!((2300..2700).contains(&kept), "{kept}");
    }

    #[test]
    fn clocks_are_off_by_no_more_than_asked() {
        let dirt = Dirt { skew_s: 0.05, ..Dirt::default() };
        let offsets: Vec<f64> = (0..100).map(|host| dirt.offset_s(&format!("h{host}"))).collect();
        assert!(offsets.iter().all(|o| o.abs() <= 0.05));
        assert!(offsets.iter().any(|o| *o > 0.03) && offsets.iter().any(|o| *o < -0.03));
    }
}
