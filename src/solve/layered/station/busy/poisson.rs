//! How many servers are busy before Poisson arrivals, of the queue of the parent module: at any time, and as an arrival finds it (Wolff 1982).

use super::{FULL, Found, Station};
use crate::{model::Scalar, solve::erlang::LARGE};

/// Sets `chances` to those that 0, 1 … `m - 1` and all of the servers are busy, `load` of them in the mean; `services` and `log` as for
/// [`super::all_busy`].
pub(in super::super) fn chances_of_load<S: Scalar>(servers: u32, load: S, services: &[S], log: &mut Option<f64>, chances: &mut Vec<S>) {
    let m = f64::from(servers);
    chances.clear();
    chances.resize(servers as usize + 1, S::from(0.0));
    if load <= 0.0 {
        chances[0] = S::from(1.0);
        return;
    }
    if load >= m * (1.0 - FULL) {
        chances[servers as usize] = S::from(1.0);
        return;
    }
    let station = Station { m, n_servers: servers as usize, sources: f64::INFINITY, coming: &[], services };
    let Found { next, .. } = station.find(load.value(), log);
    let mut exact = S::from(next);
    if !load.derivatives().is_empty() {
        let at = station.state(next.exp());
        let (more_busy, _) = station.deviations(&at, next);
        exact += (load - load.value() - more_busy) / at.busy_slope;
    }
    station.set_chances_of_load(exact, chances);
}

impl<S: Scalar> Station<'_, S> {
    /// Sets the chances of fewer than all busy servers, and of all, at `ln a`.
    fn set_chances_of_load(&self, log: S, chances: &mut [S]) {
        let a = log.value().exp();
        let change = log - log.value();
        let relative = |s: Option<&S>| s.map_or(S::from(0.0), |&s| s / s.value() - 1.0);
        let slowest = relative(self.services.last());
        let (mut weight, mut shift, mut total, mut n) = (1.0, S::from(0.0), S::from(1.0), 1.0);
        chances[0] = S::from(1.0);
        for count in 1..self.n_servers {
            weight *= a / n * self.growth(count);
            if weight > LARGE {
                chances[..count].iter_mut().for_each(|chance| *chance /= weight);
                total /= weight;
                weight = 1.0;
            }
            shift += change + if self.services.is_empty() { S::from(0.0) } else { relative(self.services.get(count - 1)) - slowest };
            chances[count] = (shift + 1.0) * weight;
            total += chances[count];
            n += 1.0;
        }
        let each = a / self.m;
        let all = weight * each / (1.0 - each);
        let beyond = all / (1.0 - each);
        chances[self.n_servers] = (shift + 1.0) * all + change * beyond;
        total += chances[self.n_servers];
        chances.iter_mut().for_each(|chance| *chance /= total);
    }
}

#[cfg(test)]
mod tests {
    use num_dual::Dual64;

    use super::*;

    #[test]
    fn chances_are_those_of_the_balance_equations() {
        for services in [vec![1.0], vec![1.0, 2.0], vec![0.9, 1.5, 2.1], vec![1.0; 7]] {
            let m = services.len();
            for rate in [0.02, 0.3, 0.47] {
                let mut p = vec![1.0];
                for n in 1..=2000 {
                    let busy = n.min(m);
                    p.push(p[n - 1] * rate * services[busy - 1] / f64::from(u32::try_from(busy).unwrap()));
                }
                let total: f64 = p.iter().sum();
                let load = p.iter().zip(0..).map(|(p, n): (_, u32)| p / total * f64::from(n.min(u32::try_from(m).unwrap()))).sum();
                let mut chances: Vec<f64> = Vec::new();
                chances_of_load(u32::try_from(m).unwrap(), load, &services, &mut None, &mut chances);
                for (n, chance) in chances.iter().enumerate() {
                    let expected = if n < m { p[n] } else { p.iter().skip(m).sum() } / total;
                    assert!((chance - expected).abs() < 1e-9, "{services:?} {rate}: {n} {chance}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn servers_that_are_full_are_all_busy_and_those_without_load_are_not() {
        let mut chances: Vec<f64> = Vec::new();
        chances_of_load(2, 2.0, &[], &mut None, &mut chances);
        assert_eq!(chances, [0.0, 0.0, 1.0]);
        chances_of_load(2, 0.0, &[], &mut None, &mut chances);
        assert_eq!(chances, [1.0, 0.0, 0.0]);
    }

    #[test]
    fn derivatives_are_those_of_differences() {
        let at = |load: f64, moved: usize, by: f64| {
            let mut services = [0.9, 1.5, 2.1];
            if moved < 3 {
                services[moved] += by;
            }
            let (mut chances, load) = (Vec::new(), load + if moved == 3 { by } else { 0.0 });
            chances_of_load(3, load, &services, &mut None, &mut chances);
            chances
        };
        let h = 1e-5;
        for load in [0.4, 1.3, 2.7] {
            for moved in 0..4 {
                let of = |i: usize| if moved == i { 1.0 } else { 0.0 };
                let services = [(0, 0.9), (1, 1.5), (2, 2.1)].map(|(i, s)| Dual64::new(s, of(i)));
                let mut chances = Vec::new();
                chances_of_load(3, Dual64::new(load, of(3)), &services, &mut None, &mut chances);
                for (exact, (more, less)) in chances.iter().zip(at(load, moved, h).iter().zip(&at(load, moved, -h))) {
                    let difference = (more - less) / (2.0 * h);
                    assert!((exact.eps - difference).abs() < 1e-6 * (1.0 + difference.abs()), "{load} {moved}: {exact}, not {difference}");
                }
            }
        }
    }
}
