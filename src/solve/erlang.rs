//! The M/M/m queue: probability of waiting, and moments of the number of busy servers.
//!
//! ```text
//! B(0) = 1,  B(k) = a B(k-1) / (k + a B(k-1))                 Erlang B at offered load a = λ s
//! C = B(m) / (1 - (a/m)(1 - B(m)))                            Erlang C: P(all m servers busy)
//! ```

use crate::model::Scalar;

/// A weight beyond which all are scaled down.
pub(super) const LARGE: f64 = 1e200;

/// Share of a sum that rounding hides.
pub(super) const NEGLIGIBLE: f64 = 1e-18;

/// Scales the `weight` of a state and the `sums` over all so far down together before they overflow, as those of hundreds of servers
/// would: only their ratios count.
pub(super) fn keep_finite<S: Scalar, const N: usize>(weight: &mut S, sums: [&mut S; N]) {
    if *weight > LARGE {
        *weight /= LARGE;
        sums.into_iter().for_each(|sum| *sum /= LARGE);
    }
}

/// Probability that all `m` servers are busy at offered load `load` (in servers); 1 from saturation on.
pub fn erlang_c<S: Scalar>(m: u32, load: S) -> S {
    let servers = f64::from(m);
    if load >= servers {
        return S::from(1.0);
    }
    if load <= 0.0 {
        return S::from(0.0);
    }
    let mut b = S::from(1.0);
    for k in 1..=m {
        let ab = load * b;
        b = ab / (ab + f64::from(k));
    }
    b / (S::from(1.0) - load / servers * (S::from(1.0) - b))
}

/// `E[B(B-1)] / E[B]²` of the number `B` of busy servers: the factor by which two threads of a pool coexist less often
/// than if they were independent. 1 for an idle pool, `(m-1)/m` for a saturated one.
pub fn coexistence<S: Scalar>(m: u32, load: S) -> S {
    let servers = f64::from(m);
    if m <= 1 {
        return S::from(0.0);
    }
    if load >= servers * (1.0 - 1e-9) {
        return S::from((servers - 1.0) / servers);
    }
    if load <= 1e-12 {
        return S::from(1.0);
    }
    // State probabilities up to a common factor: p_k = a^k / k! for k < m, and the tail k >= m together.
    let (mut weight, mut total, mut second) = (S::from(1.0), S::from(1.0), S::from(0.0));
    for k in 1..m {
        let k = f64::from(k);
        weight *= load / k;
        total += weight;
        second += weight * (k * (k - 1.0));
        keep_finite(&mut weight, [&mut total, &mut second]);
        if load < k && weight * (k * k) < second * NEGLIGIBLE {
            return second / total / (load * load);
        }
    }
    let tail = weight * load / servers / (S::from(1.0) - load / servers);
    total += tail;
    second += tail * (servers * (servers - 1.0));
    second / total / (load * load)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_waits_with_its_utilization() {
        assert!((erlang_c(1, 0.3_f64) - 0.3).abs() < 1e-15);
    }

    /// Tables of the Erlang C formula: 10 servers at 8 erlang.
    #[test]
    fn ten_servers_at_eight_erlang() {
        assert!((erlang_c(10, 8.0_f64) - 0.409_18).abs() < 1e-5);
    }

    #[test]
    fn coexistence_has_its_limits() {
        assert!((coexistence(4, 1e-6_f64) - 1.0).abs() < 1e-5);
        assert!((coexistence(4, 3.999_999_f64) - 0.75).abs() < 1e-5);
        assert_eq!(coexistence(1, 0.5_f64), 0.0);
    }

    /// With many more servers than load, busy ones are Poisson: `E[B(B-1)] = E[B]²`.
    #[test]
    fn coexistence_of_thousands_neither_overflows_nor_takes_long() {
        for (m, load) in [(1_000, 750.0), (1_000_000, 20.0), (u32::MAX, 3000.0)] {
            let found = coexistence(m, load);
            assert!((found - 1.0).abs() < 1e-9, "{m} {load}: {found}");
        }
        let full = coexistence(1_000, 999.0_f64);
        assert!((0.998..0.9995).contains(&full), "{full}");
        let derivative = (coexistence(800, 791.0_f64) - coexistence(800, 789.0)) / 2.0;
        let exact = coexistence(800, num_dual::Dual64::new(790.0, 1.0)).eps;
        assert!((exact / derivative - 1.0).abs() < 1e-2, "{exact}, not {derivative}");
    }
}
