//! Chance of finding all servers of a station busy, when few can come.
//!
//! Of `K` sources, each away for an exponential time, `n` are at the station with
//!
//! ```text
//! p(n) = p(n-1) a (K - n + 1) / min(n, m)         B = Σ p(n) min(n, m),   Π = Σ_{n ≥ m} p(n)         Σ p(n) = 1
//! ```
//!
//! the machine-repair queue M/M/m//K. `a` is the one for which `B` is the load that the arrival sees, found by Newton's method in
//! `ln a`, where `dB / d ln a = E[n min(n, m)] - E[n] B` (and `dΠ / d ln a = E[n; n ≥ m] - E[n] Π`). So only `Π` at that load rests on
//! exponential times; one pool of callers at one station of equal service is solved exactly, given what it sees. Many sources are Poisson: Erlang's formula.
//!
//! | symbol | is |
//! |---|---|
//! | `K` | sources without the arrival's own thread |
//! | `m` | servers |
//! | `a` | time of a service over the time that a source is away |

use super::super::super::erlang::{NEGLIGIBLE, erlang_c, keep_finite};
use crate::model::Scalar;

/// Sources beyond which they count as Poisson: this many for each server, and so many more.
const MANY_A_SERVER: f64 = 4.0;
const MANY: f64 = 48.0;
/// Newton's steps, at most; how far one may go in `ln a`; and when only the last is left, which is taken of `Π` at once and squares
/// the error.
const STEPS: usize = 60;
const LONGEST_STEP: f64 = 2.0;
const NEARLY: f64 = 1e-7;
/// First steps from where `a` was found last that are longer than this show that it is elsewhere now.
const SHORT_STEP: f64 = 0.5;
/// Loads this close to the servers or sources, relatively, are all of them.
const FULL: f64 = 1e-9;

/// `Π` at `load` busy servers of `servers`, with `sources` that may come, both as an arrival sees them. `log` is `ln a` where it was found
/// last, if it was, and becomes where it is found now.
pub(super) fn all_busy<S: Scalar>(servers: u32, sources: f64, load: S, log: &mut Option<f64>) -> S {
    let m = f64::from(servers);
    if load <= 0.0 || sources <= m - 1.0 {
        return S::from(0.0);
    }
    if load >= m.min(sources) * (1.0 - FULL) {
        return S::from(1.0);
    }
    if sources > MANY_A_SERVER * m + MANY {
        return erlang_c(servers, load);
    }
    let u = load.value();
    let step_from = |log: f64| {
        let at = state(servers, sources, log.exp());
        let step = ((u - at.busy) / at.slope).clamp(-LONGEST_STEP, LONGEST_STEP);
        (at, step)
    };
    let again = log.map(|log| (log, step_from(log))).filter(|(_, (_, step))| step.abs() < SHORT_STEP);
    let (mut found, (mut at, mut step)) = again.unwrap_or_else(|| {
        let first = (u / (sources - u)).ln();
        (first, step_from(first))
    });
    for _ in 0..STEPS {
        let is_last = step.abs() < NEARLY;
        // What the last step leaves of `Π` is rounding, but not of its derivative.
        if !step.is_finite() || is_last && load.derivatives().is_empty() {
            break;
        }
        found += step;
        (at, step) = step_from(found);
        if is_last {
            break;
        }
    }
    *log = Some(found).filter(|log| log.is_finite());
    // The last step carries the derivatives.
    let all = (load - at.busy) * (at.all_slope / at.slope) + at.all;
    if all > 1.0 { S::from(1.0) } else { all }
}

/// What the distribution says at one `a`.
struct State {
    /// `B`.
    busy: f64,
    /// `dB / d ln a`.
    slope: f64,
    /// `Π`.
    all: f64,
    /// `dΠ / d ln a`.
    all_slope: f64,
}

fn state(servers: u32, sources: f64, a: f64) -> State {
    let m = f64::from(servers);
    // Below `m`, where all that are there are at work.
    let (mut weight, mut n) = (1.0, 1.0);
    let (mut below, mut below_number, mut below_product) = (1.0, 0.0, 0.0);
    while n < m && sources > n - 1.0 {
        weight *= a * ((sources - n + 1.0) / n);
        below += weight;
        below_number += weight * n;
        below_product += weight * (n * n);
        keep_finite(&mut weight, [&mut below, &mut below_number, &mut below_product]);
        n += 1.0;
    }
    let (mut all, mut all_number) = (0.0, 0.0);
    let each = a / m;
    while sources > n - 1.0 {
        weight *= each * (sources - n + 1.0);
        all += weight;
        all_number += weight * n;
        if weight < NEGLIGIBLE * (below + all) {
            break;
        }
        keep_finite(&mut weight, [&mut below, &mut below_number, &mut below_product, &mut all, &mut all_number]);
        n += 1.0;
    }
    let total = below + all;
    let (busy, number, product) = ((below_number + m * all) / total, (below_number + all_number) / total, below_product + m * all_number);
    let all = all / total;
    State { busy, slope: product / total - busy * number, all, all_slope: all_number / total - all * number }
}

#[cfg(test)]
mod tests {
    use num_dual::Dual64;

    use super::*;

    /// `B` and `Π` of M/M/m//K by its balance equations.
    fn machine_repair(m: u32, sources: u32, a: f64) -> (f64, f64) {
        let mut p = vec![1.0];
        for n in 1..=sources {
            p.push(p[n as usize - 1] * a * f64::from(sources - n + 1) / f64::from(n.min(m)));
        }
        let total: f64 = p.iter().sum();
        let busy = p.iter().zip(0..).map(|(p, n): (_, u32)| p * f64::from(n.min(m))).sum::<f64>() / total;
        (busy, p.iter().skip(m as usize).sum::<f64>() / total)
    }

    #[test]
    fn the_machine_repair_queue_is_exact_at_its_own_load() {
        for (m, sources) in [(2, 2), (2, 3), (3, 9), (4, 40), (8, 9), (20, 100)] {
            for a in [1e-3, 0.05, 0.3, 1.0, 5.0] {
                let (busy, all) = machine_repair(m, sources, a);
                let found = all_busy(m, f64::from(sources), busy, &mut None);
                assert!((found - all).abs() < 1e-9 * (1.0 + all), "{m} {sources} {a}: {found}, not {all}");
            }
        }
    }

    #[test]
    fn where_it_was_found_last_changes_nothing() {
        for last in [-30.0, -2.0, -0.7, 0.0, 1.3, 40.0] {
            for load in [1e-6, 0.4, 1.7, 2.9, 2.9999] {
                let (cold, warm) = (all_busy(3, 9.0, load, &mut None), all_busy(3, 9.0, load, &mut Some(last)));
                assert!((warm - cold).abs() < 1e-13, "{load} from {last}: {warm}, not {cold}");
            }
        }
    }

    /// Balance equations with weights as logarithms, which do not overflow.
    #[test]
    fn thousands_of_servers_do_not_overflow() {
        for (m, sources, a) in [(1000_u32, 3000_u32, 0.45_f64), (1000, 3000, 0.6), (500, 2000, 1.0), (900, 1000, 8.0)] {
            let mut log = vec![0.0_f64];
            for n in 1..=sources {
                log.push(log[n as usize - 1] + (a * f64::from(sources - n + 1) / f64::from(n.min(m))).ln());
            }
            let most = log.iter().copied().fold(f64::MIN, f64::max);
            let p: Vec<f64> = log.iter().map(|l| (l - most).exp()).collect();
            let total: f64 = p.iter().sum();
            let busy = p.iter().zip(0..).map(|(p, n): (_, u32)| p * f64::from(n.min(m))).sum::<f64>() / total;
            let all = p.iter().skip(m as usize).sum::<f64>() / total;
            let found = all_busy(m, f64::from(sources), busy, &mut None);
            assert!((found - all).abs() < 1e-6, "{m} {sources} {a}: {found}, not {all} at {busy}");
        }
    }

    #[test]
    fn sources_fewer_than_servers_never_meet_all_busy_and_many_are_poisson() {
        assert_eq!(all_busy(4, 3.0, 2.9, &mut None), 0.0);
        assert_eq!(all_busy(4, 1e6, 2.9, &mut None), erlang_c(4, 2.9));
        assert_eq!(all_busy(4, 10.0, 4.0, &mut None), 1.0);
        let near = all_busy(4, MANY_A_SERVER * 4.0 + MANY, 2.9, &mut None);
        assert!((near / erlang_c(4, 2.9) - 1.0).abs() < 0.05, "{near}");
    }

    #[test]
    fn the_derivative_is_that_of_differences() {
        let h = 1e-5;
        for load in [0.4, 1.7, 2.9] {
            let exact = all_busy(3, 9.0, Dual64::new(load, 1.0), &mut None).eps;
            let difference = (all_busy(3, 9.0, load + h, &mut None) - all_busy(3, 9.0, load - h, &mut None)) / (2.0 * h);
            assert!((exact - difference).abs() < 1e-8, "{load}: {exact}, not {difference}");
        }
    }
}
