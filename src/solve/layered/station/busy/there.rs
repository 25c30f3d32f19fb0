//! The queue of the parent module by how many are there, and what one source less leaves of it.
//!
//! With `a` such that `L` of `K` sources are there, waiting or served, an arrival, which is none of those it finds, sees the queue of the others:
//!
//! ```text
//! p(n; K-1) = p(n; K) (K - n) / (K - L)
//! d_w = K (1 - W(K-1) / W(K)),   d_u = K (1 - B(K-1) / B(K))            W(K) = Σ_{n > m} p(n; K) (n - m)
//! ```
//!
//! `a` is found by Newton's method in `ln a`, where `dL / d ln a` is the variance of `n`: unlike the load, the number there says where a
//! full queue is, too. As many as come are served, `a (K - L) = E[s(n)]` with `s(n) = min(n, m) / g(n)`, so that `a` is at most
//! `max s(n) / (K - L)`: no step goes further, to where nearly all of many sources would be there. Numbers above all that count are left out.
//! Where all servers are busy but for rounding, those that are away are Poisson, and whoever is missing is missing in the queue:
//! `d_w = K/(L - m)`, `d_u = 0`; otherwise `L - m` is at most nine times the root of the sources, and so, about, is what a distribution costs.
//!
//! Schweitzer's estimate is `d = 1`: each customer takes its own share of the queue away. One less takes more of those who wait, and less
//! of those that a full station serves.
//!
//! | symbol | is |
//! |---|---|
//! | `K`, `m`, `a`, `p`, `B` | of the parent module, but that `K` counts the arrival as well |
//! | `L`, `W` | how many are there, and how many wait |
//! | `d` | [`Lost`] |

use super::{FULL, LONGEST_STEP, NEARLY, NEARLY_AGAIN, NO_STEP, STEPS, Station};
use crate::{
    model::Scalar,
    solve::erlang::{LARGE, NEGLIGIBLE},
};

/// Minus the logarithm of a chance that rounding hides.
const CERTAIN: f64 = 40.0;

/// Of what waits and is in service the share that one source less takes away, times the number of sources: 1 where each takes its own share.
#[derive(Clone, Copy, Debug)]
pub(in crate::solve::layered) struct Lost<S> {
    pub waiting: S,
    pub first: S,
}

/// What one of so many sources less takes away, `there` of which are at the `servers` in the mean. `services` and `log` as for [`super::all_busy`].
pub(in super::super) fn lost<S: Scalar>(
    servers: u32,
    (sources, there): (f64, S),
    services: &[S],
    log: &mut Option<f64>,
) -> Option<Lost<S>> {
    let m = f64::from(servers);
    if there <= 0.0 || sources <= m {
        return None;
    }
    if is_full(m, sources, there.value()) {
        return Some(Lost { waiting: (there - m).recip() * sources, first: S::from(if sources - 1.0 < m { 1.0 } else { 0.0 }) });
    }
    let station = Station { m, n_servers: servers as usize, sources, coming: &[], services };
    let mut chances = Vec::new();
    station.find_there(there, log, &mut chances);
    let zero = S::from(0.0);
    let (mut waiting, mut waiting_less, mut busy, mut busy_less, mut away_of_all) = (zero, zero, zero, zero, zero);
    let mut n = 0.0;
    for chance in chances {
        let (waits, away) = (f64::max(n - m, 0.0), sources - n);
        waiting += chance * waits;
        waiting_less += chance * (waits * away);
        busy += chance * n.min(m);
        busy_less += chance * (n.min(m) * away);
        away_of_all += chance * away;
        n += 1.0;
    }
    let of = |full: S, less: S| if full > 0.0 { (-(less / (full * away_of_all)) + 1.0) * sources } else { S::from(1.0) };
    Some(Lost { waiting: of(waiting, waiting_less), first: of(busy, busy_less) })
}

/// Sets `found` to the chances that an arrival finds 0, 1 … `m - 1` and all of the servers busy, where so many of finitely many `sources`
/// are `there` in the mean, and `at_any_time` to those that they are.
pub(in super::super) fn chances_of_there<S: Scalar>(
    servers: u32,
    (sources, there): (f64, S),
    services: &[S],
    log: &mut Option<f64>,
    (found, at_any_time): (&mut Vec<S>, &mut Vec<S>),
) {
    let m = f64::from(servers);
    for chances in [&mut *found, &mut *at_any_time] {
        chances.clear();
        chances.resize(servers as usize + 1, S::from(0.0));
    }
    if there <= 0.0 || sources <= 1.0 {
        (found[0], at_any_time[0]) = (S::from(1.0), S::from(1.0));
        return;
    }
    if is_full(m, sources, there.value()) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the servers")]
        let busy = |sources: f64| m.min(sources).ceil() as usize;
        (found[busy(sources - 1.0)], at_any_time[busy(sources)]) = (S::from(1.0), S::from(1.0));
        return;
    }
    let station = Station { m, n_servers: servers as usize, sources, coming: &[], services };
    let mut chances = Vec::new();
    station.find_there(there, log, &mut chances);
    let (mut total, mut number) = (S::from(0.0), 0.0);
    for (n, chance) in chances.into_iter().enumerate() {
        let busy = n.min(servers as usize);
        at_any_time[busy] += chance;
        if sources > number {
            let weight = chance * (sources - number);
            found[busy] += weight;
            total += weight;
        }
        number += 1.0;
    }
    found.iter_mut().for_each(|chance| *chance /= total);
}

/// Sets `chances` to those of 0, 1 and so on of so many `sources` at the `servers`, where `there` of them are in the mean; those that follow and do not
/// count are left out.
pub(in super::super) fn chances_of_number<S: Scalar>(
    servers: f64,
    (sources, there): (f64, S),
    services: &[S],
    log: &mut Option<f64>,
    chances: &mut Vec<S>,
) {
    chances.clear();
    if there <= 0.0 {
        chances.push(S::from(1.0));
        return;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the threads of a pool")]
    if there >= sources * (1.0 - FULL) {
        chances.resize(sources as usize, S::from(0.0));
        chances.push(S::from(1.0));
        return;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a finite count of servers, checked when compiled")]
    let station = Station { m: servers, n_servers: servers as usize, sources, coming: &[], services };
    station.find_there(there, log, chances);
}

/// Whether all servers are busy, or all sources there, but for what rounding hides: those that are away would be Poisson (Chernoff's bound).
fn is_full(m: f64, sources: f64, there: f64) -> bool {
    let (away, room) = (sources - there, sources - m);
    there >= sources * (1.0 - FULL) || there > m && room * (room / away).ln() - (there - m) > CERTAIN
}

/// Mean of the number there, that of its square, and how many there are chances of.
fn moments(chances: &[f64]) -> (f64, f64, f64) {
    let (mut mean, mut square, mut n) = (0.0, 0.0, 0.0);
    for &chance in chances {
        mean += chance * n;
        square += chance * (n * n);
        n += 1.0;
    }
    (mean, square, n)
}

/// The chances after a short step in `ln a`: `d p(n) = (n - L) p(n) d ln a`.
fn step_on(chances: &mut [f64], mean: f64, step: f64) {
    let mut n = 0.0;
    for chance in chances {
        *chance *= 1.0 + step * (n - mean);
        n += 1.0;
    }
}

impl<S: Scalar> Station<'_, S> {
    /// The chances of all numbers at the `a` at which so many are there in the mean.
    fn find_there(&self, there: S, log: &mut Option<f64>, chances: &mut Vec<S>) {
        let aim = there.value();
        // From where `a` was found last a short step is the last one, as for the load.
        let mut nearly = if log.is_some() { NEARLY_AGAIN } else { NEARLY };
        let (mut low, mut high) = (f64::NEG_INFINITY, self.highest(aim));
        let mut found = log.unwrap_or_else(|| (aim / (self.sources - aim)).ln()).min(high);
        let mut at = Vec::new();
        let mut stepped = None;
        self.set_chances(found.exp(), &mut at);
        for _ in 0..STEPS {
            let (mean, square, most) = moments(&at);
            let step = ((aim - mean) / f64::max(square - mean * mean, f64::MIN_POSITIVE)).clamp(-LONGEST_STEP, LONGEST_STEP);
            if !step.is_finite() {
                break;
            }
            // The number grows with `a`: what was too little or too much is not tried again.
            *(if step > 0.0 { &mut low } else { &mut high }) = found;
            let next = found + step;
            found = if next == found || low < next && next < high { next } else { f64::midpoint(low, high) };
            if step.abs() * most < nearly {
                if !there.derivatives().is_empty() && step.abs() >= NO_STEP {
                    step_on(stepped.insert(at.clone()), mean, step);
                    // Derivatives are those beyond the step.
                    self.set_chances(found.exp(), &mut at);
                } else {
                    step_on(&mut at, mean, step);
                }
                break;
            }
            self.set_chances(found.exp(), &mut at);
            if step.abs() < NEARLY {
                break;
            }
            nearly = NEARLY;
        }
        *log = Some(found);
        chances.clear();
        chances.extend(stepped.as_ref().unwrap_or(&at).iter().map(|&chance| S::from(chance)));
        self.add_derivatives(&at, there, chances);
    }

    /// The `ln a` beyond which more than `aim` are there.
    fn highest(&self, aim: f64) -> f64 {
        let mut n = 0.0;
        let fastest = (1..self.services.len()).fold(self.m, |most, count| {
            n += 1.0;
            most.max(n / self.growth(count))
        });
        (fastest / (self.sources - aim)).ln()
    }

    /// Sets the chances of the numbers there, as far as they count.
    fn set_chances(&self, a: f64, chances: &mut Vec<f64>) {
        chances.clear();
        chances.push(1.0);
        let (mut weight, mut total, mut n, mut count) = (1.0, 1.0, 1.0, 1);
        while self.sources > n - 1.0 {
            let served = if count < self.n_servers { n / self.growth(count) } else { self.m };
            weight *= a * (self.sources - n + 1.0) / served;
            if weight > LARGE {
                chances.iter_mut().for_each(|chance| *chance /= weight);
                total /= weight;
                weight = 1.0;
            }
            chances.push(weight);
            total += weight;
            if weight < NEGLIGIBLE * total && a * (self.sources - n) < served {
                break;
            }
            n += 1.0;
            count += 1;
        }
        chances.iter_mut().for_each(|chance| *chance /= total);
    }

    /// `d ln p(n) = (n - L) d ln a + s(n) - E[s]` with `s(n) = Σ_{j ≤ n} d ln g(j)`, and `d ln a` such that `dL` is that of `there`.
    fn add_derivatives(&self, at: &[f64], there: S, chances: &mut [S]) {
        if there.derivatives().is_empty() {
            return;
        }
        let relative = |s: Option<&S>| s.map_or(S::from(0.0), |&s| s / s.value() - 1.0);
        let slowest = relative(self.services.last());
        let (mean, square, _) = moments(at);
        let (mut shift, mut mean_shift, mut moved) = (S::from(0.0), S::from(0.0), S::from(0.0));
        let mut shifts = Vec::with_capacity(at.len());
        let mut n = 0.0;
        for (count, &chance) in at.iter().enumerate() {
            if let Some(service) = count.checked_sub(1).and_then(|served| self.services.get(served)) {
                shift += relative(Some(service)) - slowest;
            }
            shifts.push(shift);
            mean_shift += shift * chance;
            moved += shift * (chance * (n - mean));
            n += 1.0;
        }
        let change = (there - there.value() - moved) / (square - mean * mean);
        n = 0.0;
        for ((chance, shift), &at) in chances.iter_mut().zip(shifts).zip(at) {
            *chance += (change * (n - mean) + shift - mean_shift) * at;
            n += 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use num_dual::Dual64;

    use super::*;

    /// Chances of all numbers by the balance equations, with weights as logarithms, which do not overflow.
    fn balanced(services: &[f64], sources: u32, rate: f64) -> Vec<f64> {
        let m = u32::try_from(services.len()).unwrap();
        let mut logs = vec![0.0_f64];
        for n in 1..=sources {
            let busy = m.min(n);
            let ratio = rate * f64::from(sources - n + 1) * services[busy as usize - 1] / f64::from(busy);
            logs.push(logs[n as usize - 1] + ratio.ln());
        }
        let most = logs.iter().copied().fold(f64::MIN, f64::max);
        let p: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let total: f64 = p.iter().sum();
        p.into_iter().map(|p| p / total).collect()
    }

    fn mean(p: &[f64], of: impl Fn(u32) -> u32) -> f64 {
        p.iter().zip(0..).map(|(p, n)| p * f64::from(of(n))).sum()
    }

    const RATES: [(u32, f64); 9] =
        [(9, 0.02), (9, 0.1), (9, 0.8), (9, 1e3), (40, 0.03), (40, 1.0), (3000, 1e-4), (3000, 9e-4), (3000, 3e-3)];

    fn stations() -> [Vec<f64>; 4] {
        [vec![1.0], vec![1.0, 2.0], vec![0.9, 1.5, 2.1], vec![1.0; 7]]
    }

    /// From both sides of a long queue the longest steps lead across it, to where the last one began.
    #[test]
    fn steps_across_a_long_queue_end() {
        let services = [0.0052, 0.0075];
        for there in [15.8, 42.0, 80.0] {
            for log in [-6.0, -5.0, -3.0, -2.0] {
                let station = Station { m: 2.0, n_servers: 2, sources: 167.0, coming: &[], services: &services };
                let mut chances: Vec<f64> = Vec::new();
                station.find_there(there, &mut Some(log), &mut chances);
                let found: f64 = chances.iter().zip(0..).map(|(chance, n)| chance * f64::from(n)).sum();
                assert!((found - there).abs() < 1e-6 * there, "{there} from {log}: {found}");
            }
        }
    }

    /// At the highest `a` no fewer are there than are sought, and where few threads do no more together than all, the distribution is as short as that
    /// of a queue that is not full.
    #[test]
    fn of_many_sources_no_step_leads_to_where_all_are_there() {
        let slower_alone = vec![2.0, 1.0, 1.5];
        let more_by_few = vec![0.1, 0.2, 2.0];
        let few = stations().into_iter().chain([slower_alone]).map(|services| (services, 1e6));
        for (services, sources) in few.chain([(more_by_few, 1e4)]) {
            let m = f64::from(u32::try_from(services.len()).unwrap());
            let station = Station { m, n_servers: services.len(), sources, coming: &[], services: &services };
            for there in [0.01, 0.5, 3.0, 40.0, 900.0, 5000.0] {
                let mut chances: Vec<f64> = Vec::new();
                station.set_chances(station.highest(there).exp(), &mut chances);
                let (mean, ..) = moments(&chances);
                assert!(mean > there * (1.0 - 1e-9), "{services:?} {there}: {mean}");
                assert!(chances.len() < 20_000, "{services:?} {there}: {}", chances.len());
                station.find_there(there, &mut Some(0.0), &mut chances);
                let (mean, ..) = moments(&chances);
                assert!((mean - there).abs() < 1e-6 * there, "{services:?} {there}: {mean}");
            }
        }
    }

    #[test]
    fn an_arrival_finds_the_queue_of_one_source_less() {
        for services in stations() {
            let m = services.len();
            for (sources, rate) in RATES.into_iter().chain([(2, 0.3)]) {
                let (all, less) = (balanced(&services, sources, rate), balanced(&services, sources - 1, rate));
                let (mut found, mut at_any_time): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
                let servers = u32::try_from(m).unwrap();
                let there = mean(&all, |n| n);
                chances_of_there(servers, (f64::from(sources), there), &services, &mut None, (&mut found, &mut at_any_time));
                for (chances, p) in [(&found, &less), (&at_any_time, &all)] {
                    for (n, chance) in chances.iter().enumerate() {
                        let expected: f64 = if n < m { p.get(n).copied().unwrap_or(0.0) } else { p.iter().skip(m).sum() };
                        assert!((chance - expected).abs() < 1e-9, "{services:?} {sources} {rate}: {n} {chance}, not {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_source_less_takes_what_its_network_says() {
        for services in stations() {
            let m = u32::try_from(services.len()).unwrap();
            for (sources, rate) in RATES {
                let (full, less) = (balanced(&services, sources, rate), balanced(&services, sources - 1, rate));
                let k = f64::from(sources);
                let found: Lost<f64> = lost(m, (k, mean(&full, |n| n)), &services, &mut None).unwrap();
                let lost = |of: &dyn Fn(u32) -> u32| k * (1.0 - mean(&less, of) / mean(&full, of));
                let expected = (lost(&|n| n.saturating_sub(m)), lost(&|n| n.min(m)));
                let is_near = |found: f64, expected: f64| (found - expected).abs() < 1e-6 * (1.0 + expected);
                assert!(
                    is_near(found.waiting, expected.0) && is_near(found.first, expected.1),
                    "{services:?} {sources} {rate}: {found:?}, not {expected:?}"
                );
            }
        }
    }

    #[test]
    fn all_that_are_there_lose_one() {
        let found: Lost<f64> = lost(3, (10.0, 10.0), &[], &mut None).unwrap();
        assert!((found.waiting - 10.0 / 7.0).abs() < 1e-15 && found.first == 0.0, "{found:?}");
        assert!(lost(3, (3.0, 1.0), &[], &mut None).is_none(), "nobody waits");
        let (mut found, mut at_any_time): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        chances_of_there(3, (2.0, 2.0), &[], &mut None, (&mut found, &mut at_any_time));
        assert_eq!((found, at_any_time), (vec![0.0, 1.0, 0.0, 0.0], vec![0.0, 0.0, 1.0, 0.0]));
    }

    /// Of as many as a thousand sources beyond those that count, too.
    #[test]
    fn derivatives_are_those_of_differences() {
        let at = |sources: f64, there: f64, moved: usize, by: f64| {
            let mut services = [0.9, 1.5, 2.1];
            if moved < 3 {
                services[moved] += by;
            }
            let there = there + if moved == 3 { by } else { 0.0 };
            let (mut found, mut at_any_time) = (Vec::new(), Vec::new());
            chances_of_there(3, (sources, there), &services, &mut None, (&mut found, &mut at_any_time));
            let lost = lost(3, (sources, there), &services, &mut None).unwrap();
            [vec![lost.waiting, lost.first], found, at_any_time].concat()
        };
        let h = 1e-5;
        let numbers = [0.4, 1.7, 2.9, 5.0, 8.5].map(|there| (9.0, there)).into_iter().chain([(1e3, 0.8), (1e3, 4.0), (1e3, 60.0)]);
        for (sources, there) in numbers {
            for moved in 0..4 {
                let of = |i: usize| if moved == i { 1.0 } else { 0.0 };
                let services = [(0, 0.9), (1, 1.5), (2, 2.1)].map(|(i, s)| Dual64::new(s, of(i)));
                let there_dual = Dual64::new(there, of(3));
                let (mut found, mut at_any_time) = (Vec::new(), Vec::new());
                chances_of_there(3, (sources, there_dual), &services, &mut None, (&mut found, &mut at_any_time));
                let lost = lost(3, (sources, there_dual), &services, &mut None).unwrap();
                let exact = [vec![lost.waiting, lost.first], found, at_any_time].concat();
                let (more, less) = (at(sources, there, moved, h), at(sources, there, moved, -h));
                for (i, (exact, (more, less))) in exact.iter().zip(more.iter().zip(&less)).enumerate() {
                    let difference = (more - less) / (2.0 * h);
                    assert!(
                        (exact.eps - difference).abs() < 3e-6 * (1.0 + difference.abs()),
                        "{sources} {there} {moved} {i}: {exact}, not {difference}"
                    );
                }
            }
        }
    }
}
