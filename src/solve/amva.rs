//! Approximate mean value analysis of closed networks: Schweitzer's proportional estimate and the Linearizer.
//!
//! Input: the [`Network`] of [`super::mva`], of any population. Cost does not depend on the number of customers.
//!
//! The recursion of the exact analysis needs the queue that an arriving customer sees, `Q_ck(N - 1_j)`. With the fraction
//! `F_ck = Q_ck / N_c` and its change `δ_ckj = F_ck(N - 1_j) - F_ck(N)`:
//!
//! ```text
//! Q_ck(N - 1_j) = (N_c - [c = j]) (F_ck(N) + δ_ckj)
//! ```
//!
//! Schweitzer (1979) sets every `δ` to zero. The Linearizer (Chandy & Neuse 1982) solves the network at `N` and at every
//! `N - 1_j`, takes `δ` from the difference, and repeats, [`LINEARIZER_ROUNDS`] times.
//!
//! A station of `m` servers makes an arrival wait `W = s/m (q + Π)`, `s` its service time, `q` the customers seen waiting and
//! `Π` the Erlang-C probability that all servers are busy at the load seen; exact for Poisson arrivals.
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | `N_c` | `population[c]` | customers |
//! | `F_ck` | `queue / population` | – |
//! | `δ_ckj` | `delta[j][c][k]` | – |

use super::{
    erlang::erlang_c,
    mva::{MeanValues, Network, Station},
};
use crate::model::Scalar;

/// Which estimate of the arrival-instant queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approximation {
    /// Proportional: no change of the fractions.
    Schweitzer,
    /// Fractions at one customer less, by solving there too.
    Linearizer,
}

/// Rounds of the Linearizer; Chandy & Neuse found three enough.
const LINEARIZER_ROUNDS: usize = 3;
/// Relative change of the queues at which the core iteration stops; derivatives are iterated as far.
const TOLERANCE: f64 = 1e-13;
/// Bound on core iterations; each contracts by about the utilization of the bottleneck.
const MAX_ITERATIONS: usize = 100_000;

/// Mean values with the number of iterations and whether they sufficed.
#[derive(Clone, Debug, PartialEq)]
pub struct Approximate<S> {
    /// The mean values.
    pub means: MeanValues<S>,
    /// Core iterations in all.
    pub iterations: usize,
    /// Whether every core iteration reached its tolerance.
    pub converged: bool,
}

type Table<S> = Vec<Vec<S>>;

/// Solves `network` approximately.
pub fn solve_approximate<S: Scalar>(network: &Network<S>, approximation: Approximation) -> Approximate<S> {
    let n_classes = network.classes.len();
    let full: Vec<f64> = network.classes.iter().map(|c| f64::from(c.population)).collect();
    let zero_table = vec![vec![S::from(0.0); network.stations.len()]; n_classes];
    let mut delta: Vec<Table<S>> = vec![zero_table; n_classes];
    let mut core = Core { network, iterations: 0, converged: true };
    let mut at_full = core.solve(&full, &delta);
    if approximation == Approximation::Linearizer {
        for _ in 1..LINEARIZER_ROUNDS {
            let mut next = delta.clone();
            for j in (0..n_classes).filter(|&j| full[j] > 0.0) {
                let mut less = full.clone();
                less[j] -= 1.0;
                let at_less = core.solve(&less, &delta);
                for c in 0..n_classes {
                    for k in 0..network.stations.len() {
                        let fraction = |means: &MeanValues<S>, n: f64| {
                            if n > 0.0 { means.queue_lengths[c][k] / n } else { S::from(0.0) }
                        };
                        next[j][c][k] =
                            if less[c] > 0.0 { fraction(&at_less, less[c]) - fraction(&at_full, full[c]) } else { S::from(0.0) };
                    }
                }
            }
            delta = next;
            at_full = core.solve(&full, &delta);
        }
    }
    Approximate { means: at_full, iterations: core.iterations, converged: core.converged }
}

struct Core<'a, S> {
    network: &'a Network<S>,
    iterations: usize,
    converged: bool,
}

impl<S: Scalar> Core<'_, S> {
    /// The fixed point at `population` with the fractions' changes `delta`.
    fn solve(&mut self, population: &[f64], delta: &[Table<S>]) -> MeanValues<S> {
        let network = self.network;
        let (n_classes, n_stations) = (network.classes.len(), network.stations.len());
        let spread = |n: f64| vec![S::from(n / n_stations.max(1) as f64); n_stations];
        let mut queues: Table<S> = population.iter().map(|&n| spread(n)).collect();
        let mut residences = network.demands.clone();
        let mut throughputs = vec![S::from(0.0); n_classes];
        for iteration in 1..=MAX_ITERATIONS {
            let mut change: f64 = 0.0;
            for c in (0..n_classes).filter(|&c| population[c] > 0.0) {
                for k in 0..n_stations {
                    residences[c][k] = self.residence(population, delta, &queues, &throughputs, &residences, (c, k));
                }
                let cycle = residences[c].iter().fold(network.classes[c].think_time, |sum, &r| sum + r);
                throughputs[c] = S::from(population[c]) / cycle;
            }
            for c in 0..n_classes {
                for k in 0..n_stations {
                    let next = throughputs[c] * residences[c][k];
                    change = change.max(distance(next, queues[c][k]) / population[c].max(1.0));
                    queues[c][k] = next;
                }
            }
            self.iterations += 1;
            if change < TOLERANCE {
                break;
            }
            self.converged &= iteration < MAX_ITERATIONS;
        }
        MeanValues { throughputs, residence_times: residences, queue_lengths: queues }
    }

    fn residence(
        &self,
        population: &[f64],
        delta: &[Table<S>],
        queues: &Table<S>,
        throughputs: &[S],
        residences: &Table<S>,
        (c, k): (usize, usize),
    ) -> S {
        let demand = self.network.demands[c][k];
        let Station::Servers(m) = self.network.stations[k] else { return demand };
        let (mut seen, mut busy) = (S::from(0.0), S::from(0.0));
        for j in (0..population.len()).filter(|&j| population[j] > 0.0) {
            let others = population[j] - f64::from(u8::from(j == c));
            let queue = (queues[j][k] / population[j] + delta[c][j][k]) * others;
            seen += queue;
            if m > 1 && residences[j][k] > S::from(0.0) {
                // The share of those seen that is in service; throughputs lag one step behind and catch up.
                let in_service = throughputs[j] * self.network.demands[j][k];
                busy += if queues[j][k] > S::from(0.0) { queue * in_service / queues[j][k] } else { in_service };
            }
        }
        if m == 1 {
            return demand * (S::from(1.0) + seen);
        }
        let total: f64 = population.iter().sum();
        if total <= f64::from(m) {
            return demand;
        }
        let waiting = if seen > busy { seen - busy } else { S::from(0.0) };
        demand + demand / f64::from(m) * (waiting + erlang_c(m, busy))
    }
}

/// Largest distance between two scalars in value or in any derivative.
fn distance<S: Scalar>(a: S, b: S) -> f64 {
    let difference = a - b;
    difference.derivatives().iter().fold(difference.value().abs(), |most, d| most.max(d.abs()))
}

#[cfg(test)]
mod tests {
    use super::{
        super::mva::{Class, solve_exact},
        *,
    };

    /// Chandy & Neuse found the Linearizer's throughputs within 1 % of the exact ones; Schweitzer's are worst for few customers.
    const LINEARIZER: f64 = 0.01;
    const SCHWEITZER: f64 = 0.08;
    /// Several servers by the Erlang formula at the load seen, which takes arrivals for Poisson: pessimistic where few customers share them.
    const MULTISERVER: f64 = 0.06;

    fn network(populations: &[u32], stations: &[Station], demands: &[&[f64]]) -> Network<f64> {
        Network {
            classes: populations.iter().map(|&population| Class { population, think_time: 2.0 }).collect(),
            stations: stations.to_vec(),
            demands: demands.iter().map(|d| d.to_vec()).collect(),
        }
    }

    #[track_caller]
    fn check(network: &Network<f64>, approximation: Approximation, tolerance: f64) {
        let exact = solve_exact(network).unwrap().throughputs;
        let got = solve_approximate(network, approximation);
        assert!(got.converged);
        for (c, (x, expected)) in got.means.throughputs.iter().zip(exact).enumerate() {
            assert!((x - expected).abs() < tolerance * expected, "class {c}: {x}, exactly {expected}");
            let inside: f64 = got.means.queue_lengths[c].iter().sum();
            let customers = inside + x * network.classes[c].think_time;
            assert!((customers - f64::from(network.classes[c].population)).abs() < 1e-8 * customers, "Little's law: {customers}");
        }
    }

    #[test]
    fn both_are_near_the_exact_solution() {
        let one = Station::Servers(1);
        for populations in [[1, 1], [3, 5], [12, 4]] {
            let network = network(&populations, &[one, one, Station::Delay], &[&[0.4, 1.0, 0.5], &[0.9, 0.3, 0.0]]);
            check(&network, Approximation::Linearizer, LINEARIZER);
            check(&network, Approximation::Schweitzer, SCHWEITZER);
        }
    }

    #[test]
    fn several_servers_are_near_the_exact_solution() {
        for population in [2, 6, 20, 60] {
            check(
                &network(&[population], &[Station::Servers(3), Station::Servers(1)], &[&[2.0, 0.3]]),
                Approximation::Linearizer,
                MULTISERVER,
            );
        }
    }

    #[test]
    fn a_million_customers_cost_no_more_than_ten() {
        let network = network(&[1_000_000], &[Station::Servers(1), Station::Servers(1)], &[&[0.5, 0.25]]);
        let got = solve_approximate(&network, Approximation::Linearizer);
        assert!(got.converged);
        assert!((got.means.throughputs[0] - 2.0).abs() < 1e-3, "{:?}", got.means.throughputs);
    }
}
