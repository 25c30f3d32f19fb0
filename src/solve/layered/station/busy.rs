//! Chance of finding all servers of a station busy, when few can come.
//!
//! Of `K` sources, each away for an exponential time, `n` are at the station with
//!
//! ```text
//! p(n) = p(n-1) a (K - n + 1) g(n) / min(n, m)         B = Σ p(n) min(n, m),   Π = Σ_{n ≥ m} p(n)         Σ p(n) = 1
//! g(n) = S(min(n, m)) / S(m)
//! ```
//!
//! the machine-repair queue M/M/m//K; where the servers are threads that hold each other up, with services `S(n)` that depend on how
//! many of them are busy ([`super::crowd`]), as those of a flow-equivalent server (K. M. Chandy, U. Herzog and L. Woo, 1975).
//! Sources that are not alike have other numbers than `K - n + 1` ([`super::unlike`]).
//! `a` is the one for which `B` is the load that the arrival sees, found by Newton's method in
//! `ln a`, where `dB / d ln a = E[n min(n, m)] - E[n] B` (and `dΠ / d ln a = E[n; n ≥ m] - E[n] Π`). So only `Π` at that load rests on
//! exponential times; one pool of callers at one station of equal service is solved exactly, given what it sees. Many sources are
//! Poisson: `K - n + 1` becomes 1, and with equal services `Π` is Erlang's formula.
//!
//! | symbol | is |
//! |---|---|
//! | `K` | sources without the arrival's own thread |
//! | `m` | servers |
//! | `a` | time of a service with all busy over the time that a source is away |
//!
//! Derivatives with respect to services, and to who is coming, follow from `d ln p(n) = Σ_{j ≤ n} d ln g(j) + d ln c_j - E[..]`.

mod poisson;
mod there;

pub(super) use self::{
    poisson::chances_of_load,
    there::{Lost, chances_of_number, chances_of_there, lost},
};
use super::super::super::erlang::{NEGLIGIBLE, erlang_c, keep_finite};
use crate::model::Scalar;

/// Sources beyond which they count as Poisson: this many for each server, and so many more.
pub(super) const MANY_A_SERVER: f64 = 4.0;
pub(super) const MANY: f64 = 48.0;
/// Newton's steps, at most; how far one may go in `ln a`; and when only the last is left, which is taken of `Π` at once and squares
/// the error.
const STEPS: usize = 60;
const LONGEST_STEP: f64 = 2.0;
const NEARLY: f64 = 1e-7;
/// First steps from where `a` was found last that are longer than this show that it is elsewhere now; of shorter ones
/// these are the last: their squares vanish with the changes from sweep to sweep.
const SHORT_STEP: f64 = 0.5;
const NEARLY_AGAIN: f64 = 1e-4;
/// Steps that change no derivative.
const NO_STEP: f64 = 1e-11;
/// Loads this close to the servers or sources, relatively, are all of them.
const FULL: f64 = 1e-9;

/// Who may come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources<'a, S> {
    /// How many.
    pub number: f64,
    /// `c_n`, how many may still come as the `n`th, by `n`; none where they are alike.
    pub coming: &'a [S],
}

/// `Π` at `load` busy servers of `servers`, with `sources` that may come, both as an arrival sees them. `services` by the number of
/// busy servers, none if they are equal. `log` is `ln a` where it was found last, if it was, and becomes where it is found now.
pub(super) fn all_busy<S: Scalar>(servers: u32, sources: Sources<'_, S>, load: S, services: &[S], log: &mut Option<f64>) -> S {
    let m = f64::from(servers);
    let Sources { number: sources, coming } = sources;
    if load <= 0.0 || sources <= m - 1.0 {
        return S::from(0.0);
    }
    if load >= m.min(sources) * (1.0 - FULL) {
        return S::from(1.0);
    }
    let many = sources > MANY_A_SERVER * m + MANY;
    if many && services.is_empty() {
        return erlang_c(servers, load);
    }
    let station = Station { m, n_servers: servers as usize, sources: if many { f64::INFINITY } else { sources }, coming, services };
    let Found { log: found, at, next } = station.find(load.value(), log);
    // The last step is taken of `Π` at once; derivatives are those beyond it.
    let all = S::from(at.all + (load.value() - at.busy) * (at.all_slope / at.busy_slope));
    if all > 1.0 {
        return S::from(1.0);
    }
    if load.derivatives().is_empty() {
        return all;
    }
    let at = if (next - found).abs() < NO_STEP { at } else { station.state(next.exp()) };
    let (more_busy, more_all) = station.deviations(&at, next);
    all + more_all + (load - load.value() - more_busy) * (at.all_slope / at.busy_slope)
}

/// Where Newton's method ends: `ln a`, the state there, and where the last step would lead.
struct Found {
    log: f64,
    at: State,
    next: f64,
}

/// Servers and who comes to them.
struct Station<'a, S> {
    m: f64,
    n_servers: usize,
    sources: f64,
    coming: &'a [S],
    services: &'a [S],
}

/// What the distribution says at one `a`, and its derivatives with respect to `ln a`.
struct State {
    busy: f64,
    busy_slope: f64,
    all: f64,
    all_slope: f64,
    /// `p(m)`.
    just_all: f64,
}

impl<S: Scalar> Station<'_, S> {
    /// `g` at `n` busy servers.
    fn growth(&self, n: usize) -> f64 {
        match (self.services.get(n - 1), self.services.last()) {
            (Some(service), Some(slowest)) => service.value() / slowest.value(),
            _ => 1.0,
        }
    }

    /// Sources that may still come as the `n`th, over what they are when nobody has, where they are many.
    fn coming(&self, n: f64, count: usize) -> f64 {
        match self.coming.get(count - 1) {
            Some(coming) => coming.value(),
            None if self.sources.is_infinite() => 1.0,
            None => self.sources - n + 1.0,
        }
    }

    /// Where the load is `u`.
    fn find(&self, u: f64, log: &mut Option<f64>) -> Found {
        let step_from = |log: f64| {
            let at = self.state(log.exp());
            let step = ((u - at.busy) / at.busy_slope).clamp(-LONGEST_STEP, LONGEST_STEP);
            (at, step)
        };
        // Poisson requests that come faster than they are served have no distribution.
        let end = if self.sources.is_infinite() { self.m.ln() } else { f64::INFINITY };
        let again = log.filter(|log| *log < end).map(|log| (log, step_from(log))).filter(|(_, (_, step))| step.abs() < SHORT_STEP);
        let mut nearly = if again.is_some() { NEARLY_AGAIN } else { NEARLY };
        let (mut found, (mut at, mut step)) = again.unwrap_or_else(|| {
            let first = if self.sources.is_infinite() { u.ln() } else { (u / (self.sources - u)).ln() };
            (first, step_from(first))
        });
        let (mut low, mut high) = (f64::NEG_INFINITY, end);
        for _ in 0..STEPS {
            if !step.is_finite() || step.abs() < nearly {
                break;
            }
            // `B` grows with `a`: what was too little or too much is not tried again, as steps that turn back and forth would.
            *(if step > 0.0 { &mut low } else { &mut high }) = found;
            found = if low < found + step && found + step < high { found + step } else { f64::midpoint(low, high) };
            (at, step) = step_from(found);
            nearly = NEARLY;
        }
        *log = [found + step, found].into_iter().find(|log| log.is_finite() && *log < end);
        Found { log: found, at, next: log.unwrap_or(found) }
    }

    fn state(&self, a: f64) -> State {
        let m = self.m;
        // Below `m`, where all that are there are at work: sums of 1, n and n².
        let (mut weight, mut n, mut count) = (1.0, 1.0, 1);
        let (mut below, mut number, mut product) = (1.0, 0.0, 0.0);
        while n < m && self.sources > n - 1.0 {
            weight *= a * (self.coming(n, count) / n) * self.growth(count);
            below += weight;
            number += weight * n;
            product += weight * (n * n);
            keep_finite(&mut weight, [&mut below, &mut number, &mut product]);
            n += 1.0;
            count += 1;
        }
        let each = a / m;
        let (mut all, mut all_number) = (0.0, 0.0);
        let mut just_all = weight * each * self.coming(n, count).max(0.0);
        if self.sources.is_infinite() {
            all = just_all / (1.0 - each);
            all_number = all * (m + each / (1.0 - each));
        } else {
            while self.sources > n - 1.0 {
                weight *= each * self.coming(n, count);
                all += weight;
                all_number += weight * n;
                if weight < NEGLIGIBLE * (below + all) {
                    break;
                }
                keep_finite(&mut weight, [&mut below, &mut number, &mut product, &mut all, &mut all_number, &mut just_all]);
                n += 1.0;
                count += 1;
            }
        }
        let total = below + all;
        let mean = (number + all_number) / total;
        let busy = (number + m * all) / total;
        State {
            busy,
            // Of full servers, rounding.
            busy_slope: f64::max((product + m * all_number) / total - busy * mean, f64::MIN_POSITIVE),
            all: all / total,
            all_slope: all_number / total - all / total * mean,
            just_all: just_all / total,
        }
    }

    /// What the derivatives of the services and of those coming add to `B` and `Π` at `ln a`; without value.
    fn deviations(&self, at: &State, log: f64) -> (S, S) {
        let zero = S::from(0.0);
        if self.services.is_empty() && self.coming.is_empty() {
            return (zero, zero);
        }
        let (a, m) = (log.exp(), self.m);
        let relative = |s: Option<&S>| s.map_or(zero, |&s| s / s.value() - 1.0);
        let slowest = relative(self.services.last());
        // `ln p(n)` beside that of the first state in which all are busy, from there down and up.
        let (mut shift, mut mean, mut busy, mut all) = (zero, zero, zero, zero);
        let (mut n, mut p) = (m, at.just_all);
        for count in (1..=self.n_servers).rev() {
            let growth = if self.services.is_empty() { zero } else { relative(self.services.get(count - 1)) - slowest };
            shift -= growth + relative(self.coming.get(count - 1));
            p *= n / (self.growth(count) * a * self.coming(n, count));
            n -= 1.0;
            mean += shift * p;
            busy += shift * (p * n);
        }
        (shift, n, p) = (zero, m, at.just_all);
        for (count, coming) in self.coming.iter().enumerate().skip(self.n_servers) {
            n += 1.0;
            shift += relative(Some(coming));
            p *= a / m * self.coming(n, count + 1);
            mean += shift * p;
            all += shift * p;
        }
        busy += all * m;
        (busy - mean * at.busy, all - mean * at.all)
    }
}

#[cfg(test)]
mod tests {
    use num_dual::Dual64;

    use super::*;

    fn alike<S>(number: f64) -> Sources<'static, S> {
        Sources { number, coming: &[] }
    }

    fn chance<S: Scalar>(servers: u32, sources: f64, load: S, log: &mut Option<f64>) -> S {
        all_busy(servers, alike(sources), load, &[], log)
    }

    /// `B` and `Π` by the balance equations of services that depend on the number of busy servers; of so many states.
    fn slowed(services: &[f64], coming: impl Fn(usize) -> f64, states: usize) -> (f64, f64) {
        let m = services.len();
        let mut p = vec![1.0];
        for n in 1..=states {
            let busy = n.min(m);
            p.push(p[n - 1] * coming(n) * services[busy - 1] / f64::from(u32::try_from(busy).unwrap()));
        }
        let total: f64 = p.iter().sum();
        let busy_in = |n: usize| f64::from(u32::try_from(n.min(m)).unwrap());
        let busy = p.iter().enumerate().map(|(n, p)| p * busy_in(n)).sum::<f64>() / total;
        (busy, p.iter().skip(m).sum::<f64>() / total)
    }

    #[test]
    fn servers_that_hold_each_other_up_have_the_distribution_of_a_flow_equivalent_server() {
        let services = [0.9, 1.5, 2.1];
        for rate in [0.05, 0.2, 0.4, 1.5] {
            let cases = [
                (9.0, slowed(&services, |n| rate * f64::from(10 - u32::try_from(n).unwrap()), 9)),
                (1e6, slowed(&services, |_| rate, 4000)),
            ];
            for (sources, (busy, all)) in cases.into_iter().filter(|(_, (busy, _))| *busy < 2.99) {
                let found = all_busy(3, alike(sources), busy, &services, &mut None);
                assert!((found - all).abs() < 1e-9, "{sources} {rate}: {found}, not {all}");
            }
        }
    }

    /// From a first step to where all servers are busy but for rounding, and so is the slope.
    #[test]
    fn steps_to_full_servers_lead_back() {
        let services: Vec<f64> = (0..40).map(|n| 0.15 + 0.05 * f64::from(n)).collect();
        let (busy, all) = slowed(&services, |n| 0.118 * f64::from(170 - u32::try_from(n).unwrap()), 169);
        let found = all_busy(40, alike(169.0), busy, &services, &mut None);
        assert!(busy > 4.0 && busy < 36.0 && (found - all).abs() < 1e-9, "{busy}: {found}, not {all}");
    }

    /// Newton's steps go back and forth between two places here, both held at their longest.
    #[test]
    fn steps_that_turn_back_and_forth_end() {
        let services = [0.544, 0.841, 1.223, 1.636, 2.054, 2.473, 2.891];
        for rate in [0.03, 0.05, 0.08, 0.12, 0.2, 0.5] {
            let (busy, all) = slowed(&services, |n| rate * f64::from(34 - u32::try_from(n).unwrap()), 33);
            let found = all_busy(7, alike(33.0), busy, &services, &mut None);
            assert!((found - all).abs() < 1e-9 * (1.0 + all), "{rate} {busy}: {found}, not {all}");
        }
    }

    #[test]
    fn derivatives_with_respect_to_load_and_services_are_those_of_differences() {
        let at = |load: f64, moved: usize, by: f64, sources: f64| {
            let mut services = [0.9, 1.5, 2.1];
            if moved < 3 {
                services[moved] += by;
            }
            all_busy(3, alike(sources), load + if moved == 3 { by } else { 0.0 }, &services, &mut None)
        };
        let h = 1e-5;
        for (sources, load) in [(9.0, 0.4), (9.0, 1.7), (9.0, 2.9), (1e6, 1.3), (1e6, 2.7)] {
            for moved in 0..4 {
                let services: Vec<Dual64> =
                    [0.9, 1.5, 2.1].iter().enumerate().map(|(i, &s)| Dual64::new(s, if i == moved { 1.0 } else { 0.0 })).collect();
                let exact = all_busy(3, alike(sources), Dual64::new(load, if moved == 3 { 1.0 } else { 0.0 }), &services, &mut None).eps;
                let difference = (at(load, moved, h, sources) - at(load, moved, -h, sources)) / (2.0 * h);
                assert!(
                    (exact - difference).abs() < 1e-7 * (1.0 + difference.abs()),
                    "{sources} {load} {moved}: {exact}, not {difference}"
                );
            }
        }
    }

    /// Two pools at two servers, by the states of both: threads of a kind are served for `x` of the time that they are away.
    #[test]
    fn of_unlike_sources_the_chance_is_that_of_their_network() {
        let m = 2;
        for pools in [[(2_u32, 3.0), (1, 0.1)], [(1, 20.0), (2, 0.05)], [(3, 0.4), (3, 0.4)], [(1, 2.0), (6, 0.3)]] {
            let [(first, x), (second, y)] = pools;
            let (mut total, mut all, mut busy) = (0.0, 0.0, [0.0; 2]);
            let choose = |n: u32, k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
            for i in 0..=first {
                for j in 0..=second {
                    let n = i + j;
                    let ways = (1..=n).fold(1.0, |w, l| w * f64::from(l) / f64::from(l.min(m)));
                    let weight = choose(first, i) * f64::powi(x, i as i32) * choose(second, j) * f64::powi(y, j as i32) * ways;
                    total += weight;
                    all += if n >= m { weight } else { 0.0 };
                    let served = f64::from(n.min(m)) / f64::from(n.max(1));
                    busy[0] += weight * f64::from(i) * served;
                    busy[1] += weight * f64::from(j) * served;
                }
            }
            let sources = f64::from(first + second);
            let binomials = |o: f64, n: u32| (0..=n).map(|k| choose(n, k) * f64::powi(o, k as i32)).collect::<Vec<f64>>();
            let (a, b) = (binomials(x, first), binomials(y, second));
            let e = |n: usize| (0..=n).filter(|i| *i < a.len() && n - i < b.len()).map(|i| a[i] * b[n - i]).sum::<f64>();
            let coming: Vec<f64> = (1..=a.len() + b.len() - 2).map(|n| n as f64 * e(n) / e(n - 1)).collect();
            let found = all_busy(m, Sources { number: sources, coming: &coming }, (busy[0] + busy[1]) / total, &[], &mut None);
            assert!((found - all / total).abs() < 1e-9, "{pools:?}: {found}, not {}", all / total);
        }
    }

    #[test]
    fn derivatives_with_respect_to_who_comes_are_those_of_differences() {
        let at = |moved: usize, by: f64, services: &[f64]| {
            let mut coming = [4.5, 2.0, 1.5, 0.7, 0.2];
            coming[moved] += by;
            all_busy(3, Sources { number: 5.0, coming: &coming }, 1.9, services, &mut None)
        };
        let h = 1e-5;
        for services in [&[][..], &[0.9, 1.5, 2.1]] {
            for moved in 0..5 {
                let coming: Vec<Dual64> = [4.5, 2.0, 1.5, 0.7, 0.2]
                    .iter()
                    .enumerate()
                    .map(|(i, &c)| Dual64::new(c, if i == moved { 1.0 } else { 0.0 }))
                    .collect();
                let dual: Vec<Dual64> = services.iter().map(|&s| Dual64::from(s)).collect();
                let exact = all_busy(3, Sources { number: 5.0, coming: &coming }, Dual64::from(1.9), &dual, &mut None).eps;
                let difference = (at(moved, h, services) - at(moved, -h, services)) / (2.0 * h);
                assert!((exact - difference).abs() < 1e-7 * (1.0 + difference.abs()), "{moved} {services:?}: {exact}, not {difference}");
            }
        }
    }

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
                let found = chance(m, f64::from(sources), busy, &mut None);
                assert!((found - all).abs() < 1e-9 * (1.0 + all), "{m} {sources} {a}: {found}, not {all}");
            }
        }
    }

    #[test]
    fn where_it_was_found_last_changes_nothing() {
        for last in [-30.0, -2.0, -0.7, 0.0, 1.3, 40.0] {
            for load in [1e-6, 0.4, 1.7, 2.9, 2.9999] {
                let (cold, warm) = (chance(3, 9.0, load, &mut None), chance(3, 9.0, load, &mut Some(last)));
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
            let found = chance(m, f64::from(sources), busy, &mut None);
            assert!((found - all).abs() < 1e-6, "{m} {sources} {a}: {found}, not {all} at {busy}");
        }
    }

    #[test]
    fn sources_fewer_than_servers_never_meet_all_busy_and_many_are_poisson() {
        assert_eq!(chance(4, 3.0, 2.9, &mut None), 0.0);
        assert_eq!(chance(4, 1e6, 2.9, &mut None), erlang_c(4, 2.9));
        assert_eq!(chance(4, 10.0, 4.0, &mut None), 1.0);
        let near = chance(4, MANY_A_SERVER * 4.0 + MANY, 2.9, &mut None);
        assert!((near / erlang_c(4, 2.9) - 1.0).abs() < 0.05, "{near}");
    }

    #[test]
    fn the_derivative_is_that_of_differences() {
        let h = 1e-5;
        for load in [0.4, 1.7, 2.9] {
            let exact = chance(3, 9.0, Dual64::new(load, 1.0), &mut None).eps;
            let difference = (chance(3, 9.0, load + h, &mut None) - chance(3, 9.0, load - h, &mut None)) / (2.0 * h);
            assert!((exact - difference).abs() < 1e-8, "{load}: {exact}, not {difference}");
        }
    }
}
