//! Exact mean value analysis of closed product-form networks, one or several classes.
//!
//! Input: a [`Network`] of delay, single-server and multi-server stations. Output: [`MeanValues`] at the full
//! population, with derivatives when the scalar carries them.
//!
//! For every population vector `n` up to `N`, in order of increasing total (Reiser & Lavenberg 1980):
//!
//! ```text
//! R_ck(n) = D_ck                                                        delay
//! R_ck(n) = D_ck (1 + Q_k(n - 1_c))                                     one server
//! R_ck(n) = D_ck/m (1 + Q_k(n - 1_c) + Σ_{j<m-1} (m-1-j) p_k(j | n - 1_c))  m servers
//! X_c(n)  = n_c / (Z_c + Σ_k R_ck(n)),  Q_k(n) = Σ_c X_c(n) R_ck(n)
//! p_k(j | n) = Σ_c X_c(n) D_ck p_k(j-1 | n - 1_c) / j                   0 < j < m
//! p_k(0 | n) = p_k(0 | n - 1_c) X_c(n) / X'_c(n)                        any c with n_c > 0
//! ```
//!
//! `X'` is the throughput of the same network without station `k` (Reiser 1981). The usual `p(0) = 1 - …` loses all its
//! digits when the station saturates; this product of positive terms does not. Its price is one solution for every subset
//! of the multi-server stations.
//!
//! | symbol | field | unit | shape |
//! |---|---|---|---|
//! | `D_ck` | [`Network::demands`] | time | `(n_classes, n_stations)` |
//! | `Z_c` | [`Class::think_time`] | time | `(n_classes)` |
//! | `N_c` | [`Class::population`] | customers | `(n_classes)` |
//! | `R_ck` | [`MeanValues::residence_times`] | time | `(n_classes, n_stations)` |
//! | `X_c` | [`MeanValues::throughputs`] | 1/time | `(n_classes)` |
//! | `Q_ck` | [`MeanValues::queue_lengths`] | customers | `(n_classes, n_stations)` |
//!
//! Assumptions: those of BCMP networks; FCFS stations serve every class with the same mean. Cost: lattice points × classes ×
//! stations × 2^(multi-server stations).

use crate::model::Scalar;

/// A closed network of stations.
#[derive(Clone, Debug, PartialEq)]
pub struct Network<S> {
    /// Classes of customers.
    pub classes: Vec<Class<S>>,
    /// Kinds of the stations.
    pub stations: Vec<Station>,
    /// Total demand of a class-`c` cycle at station `k`: visits × service time, `demands[c][k]`.
    pub demands: Vec<Vec<S>>,
}

/// A class of customers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class<S> {
    /// Number of customers.
    pub population: u32,
    /// Mean think time between cycles.
    pub think_time: S,
}

/// Kind of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Station {
    /// No queueing.
    Delay,
    /// So many identical servers with one queue, ≥ 1.
    Servers(u32),
}

/// Mean values of a network at its full population.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanValues<S> {
    /// Cycles a unit of time by class.
    pub throughputs: Vec<S>,
    /// Time per cycle at a station, queueing included, `[class][station]`.
    pub residence_times: Vec<Vec<S>>,
    /// Mean customers at a station, `[class][station]`.
    pub queue_lengths: Vec<Vec<S>>,
}

/// Why a network is not solved exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MvaError {
    /// The recursion would take too many steps.
    #[error("the exact recursion would take {steps:.1e} steps, more than {STEP_LIMIT:.0e}", steps = *.0 as f64)]
    TooLarge(u128),
    /// The recursion would hold too much.
    #[error("the exact recursion would hold {numbers:.1e} numbers, more than {HELD_LIMIT:.0e}", numbers = *.0 as f64)]
    TooMuchHeld(u128),
    /// More multi-server stations than the recursion over their subsets can take.
    #[error("{0} multi-server stations, more than {MULTISERVER_LIMIT}")]
    TooManyMultiservers(usize),
}

/// Bound on lattice points × subsets × classes × (stations + servers of those with several): about a second.
const STEP_LIMIT: u128 = 200_000_000;
/// Bound on lattice points × subsets × (classes + stations + servers of those with several): some 240 MB, and as much for each direction
/// of derivatives.
const HELD_LIMIT: u128 = 30_000_000;
/// Bound on multi-server stations, since every subset of them is solved.
const MULTISERVER_LIMIT: usize = 8;

/// Solves `network` exactly.
///
/// # Errors
/// [`MvaError`] when the recursion would be too large.
pub fn solve_exact<S: Scalar>(network: &Network<S>) -> Result<MeanValues<S>, MvaError> {
    let multiservers: Vec<usize> =
        (0..network.stations.len()).filter(|&k| matches!(network.stations[k], Station::Servers(m) if m > 1)).collect();
    if multiservers.len() > MULTISERVER_LIMIT {
        return Err(MvaError::TooManyMultiservers(multiservers.len()));
    }
    let lattice = Lattice::new(network);
    let servers = |k: &usize| if let Station::Servers(m) = network.stations[*k] { u128::from(m) } else { 0 };
    let (n_classes, n_stations) = (network.classes.len() as u128, network.stations.len().max(1) as u128);
    let at_station = n_stations + multiservers.iter().map(servers).sum::<u128>();
    let points = lattice.points.saturating_mul(1 << multiservers.len());
    let work = points.saturating_mul(n_classes * at_station);
    if work > STEP_LIMIT {
        return Err(MvaError::TooLarge(work));
    }
    let held = points.saturating_mul(n_classes + at_station);
    if held > HELD_LIMIT {
        return Err(MvaError::TooMuchHeld(held));
    }
    Ok(Recursion { network, multiservers: &multiservers, lattice: &lattice }.run())
}

/// Population vectors in mixed-radix order, so that `n - 1_c` always comes before `n`.
struct Lattice {
    radix: Vec<usize>,
    stride: Vec<usize>,
    points: u128,
}

impl Lattice {
    fn new<S>(network: &Network<S>) -> Self {
        let radix: Vec<usize> = network.classes.iter().map(|c| c.population as usize + 1).collect();
        let mut stride = Vec::with_capacity(radix.len());
        let mut points: u128 = 1;
        for &r in &radix {
            stride.push(usize::try_from(points).unwrap_or(usize::MAX));
            points = points.saturating_mul(r as u128);
        }
        Self { radix, stride, points }
    }

    fn count(&self, point: usize, class: usize) -> usize {
        point / self.stride[class] % self.radix[class]
    }
}

struct Recursion<'a, S> {
    network: &'a Network<S>,
    multiservers: &'a [usize],
    lattice: &'a Lattice,
}

/// What the recursion keeps of every population for one subset of the stations.
struct Level<S> {
    throughputs: Vec<Vec<S>>,
    queues: Vec<Vec<S>>,
    marginals: Vec<Vec<Vec<S>>>,
    residences: Vec<Vec<S>>,
}

impl<S: Scalar> Recursion<'_, S> {
    fn run(&self) -> MeanValues<S> {
        let n_subsets = 1usize << self.multiservers.len();
        let mut levels: Vec<Level<S>> = Vec::with_capacity(n_subsets);
        for present in 0..n_subsets {
            let level = self.solve_subset(present, &levels);
            levels.push(level);
        }
        let Some(full) = levels.pop() else { unreachable!("there is always the subset of all stations") };
        let throughputs = full.throughputs.last().cloned().unwrap_or_default();
        let residence_times = full.residences;
        let queue_lengths = residence_times.iter().zip(&throughputs).map(|(row, &x)| row.iter().map(|&r| r * x).collect()).collect();
        MeanValues { throughputs, residence_times, queue_lengths }
    }

    /// Solves the network whose multi-server stations are those in the bit set `present`.
    fn solve_subset(&self, present: usize, smaller: &[Level<S>]) -> Level<S> {
        let network = self.network;
        let (n_classes, n_stations) = (network.classes.len(), network.stations.len());
        let n_points = usize::try_from(self.lattice.points).unwrap_or(usize::MAX);
        let zero = S::from(0.0);
        let start_marginals: Vec<Vec<S>> = self
            .multiservers
            .iter()
            .map(|&k| {
                let Station::Servers(m) = network.stations[k] else { return Vec::new() };
                let mut p = vec![zero; m as usize];
                p[0] = S::from(1.0);
                p
            })
            .collect();
        let mut level = Level {
            throughputs: vec![vec![zero; n_classes]; n_points],
            queues: vec![vec![zero; n_stations]; n_points],
            marginals: vec![start_marginals; n_points],
            residences: vec![vec![zero; n_stations]; n_classes],
        };
        for point in 1..n_points {
            for c in 0..n_classes {
                let n = self.lattice.count(point, c);
                if n == 0 {
                    continue;
                }
                let before = point - self.lattice.stride[c];
                let mut cycle = network.classes[c].think_time;
                for k in 0..n_stations {
                    let r = self.residence(&level, present, before, c, k);
                    level.residences[c][k] = r;
                    cycle += r;
                }
                let x = S::from(n as f64) / cycle;
                level.throughputs[point][c] = x;
                for k in 0..n_stations {
                    let add = x * level.residences[c][k];
                    level.queues[point][k] += add;
                }
            }
            self.update_marginals(&mut level, present, smaller, point);
        }
        level
    }

    fn residence(&self, level: &Level<S>, present: usize, before: usize, c: usize, k: usize) -> S {
        let demand = self.network.demands[c][k];
        let one = S::from(1.0);
        match self.network.stations[k] {
            Station::Delay => demand,
            Station::Servers(1) => demand * (one + level.queues[before][k]),
            Station::Servers(m) => {
                let slot = self.slot(k);
                if present & (1 << slot) == 0 {
                    return S::from(0.0);
                }
                let mut seen = one + level.queues[before][k];
                for j in 0..(m as usize - 1) {
                    seen += level.marginals[before][slot][j] * (m as usize - 1 - j) as f64;
                }
                demand * seen / f64::from(m)
            }
        }
    }

    fn slot(&self, k: usize) -> usize {
        self.multiservers.iter().position(|&s| s == k).unwrap_or(usize::MAX)
    }

    fn update_marginals(&self, level: &mut Level<S>, present: usize, smaller: &[Level<S>], point: usize) {
        for (slot, &k) in self.multiservers.iter().enumerate() {
            if present & (1 << slot) == 0 {
                continue;
            }
            let Station::Servers(m) = self.network.stations[k] else { continue };
            let mut p = vec![S::from(0.0); m as usize];
            for c in 0..self.network.classes.len() {
                if self.lattice.count(point, c) == 0 {
                    continue;
                }
                let before = point - self.lattice.stride[c];
                let x = level.throughputs[point][c];
                for j in 1..m as usize {
                    p[j] += x * self.network.demands[c][k] * level.marginals[before][slot][j - 1] / j as f64;
                }
                if p[0] == S::from(0.0) {
                    let without = smaller[present & !(1 << slot)].throughputs[point][c];
                    p[0] = level.marginals[before][slot][0] * x / without;
                }
            }
            level.marginals[point][slot] = p;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding of a few thousand operations.
    const TOLERANCE: f64 = 1e-10;

    fn one_class(population: u32, think_time: f64, stations: &[(Station, f64)]) -> MeanValues<f64> {
        solve_exact(&Network {
            classes: vec![Class { population, think_time }],
            stations: stations.iter().map(|s| s.0).collect(),
            demands: vec![stations.iter().map(|s| s.1).collect()],
        })
        .unwrap()
    }

    /// Woodside 2008, section 5: demands 2, 3, 4, as recomputed to five digits.
    #[test]
    fn three_queues_of_woodside() {
        let stations = [(Station::Servers(1), 2.0), (Station::Servers(1), 3.0), (Station::Servers(1), 4.0)];
        for (n, z, expected) in [
            (1, 0.0, [2.0, 3.0, 4.0, 0.11111]),
            (4, 0.0, [3.0807, 5.8737, 10.0070, 0.21095]),
            (20, 0.0, [3.9905, 11.7419, 64.3632, 0.24970]),
            (10, 10.0, [3.6383, 8.5154, 20.0950, 0.23669]),
        ] {
            let got = one_class(n, z, &stations);
            for k in 0..3 {
                assert!((got.residence_times[0][k] - expected[k]).abs() < 6e-5, "{n} {z} {k}: {got:?}");
            }
            assert!((got.throughputs[0] - expected[3]).abs() < 6e-6);
        }
    }

    /// Machine repair: N machines, m repairers, from the birth-death chain.
    #[test]
    fn machine_repair_has_its_closed_form() {
        for (n, m, z, s) in [(5u32, 1u32, 10.0, 2.0), (20, 3, 5.0, 1.0), (50, 8, 1.0, 1.0), (300, 20, 0.5, 1.0)] {
            let mut weight = 1.0f64;
            let (mut total, mut busy) = (0.0, 0.0);
            for k in 0..=n {
                if k > 0 {
                    weight *= f64::from(n - k + 1) / z * s / f64::from(k.min(m));
                }
                if weight > 1e200 {
                    (weight, total, busy) = (weight / 1e200, total / 1e200, busy / 1e200);
                }
                total += weight;
                busy += weight * f64::from(k.min(m));
            }
            let expected = busy / total / s;
            let got = one_class(n, z, &[(Station::Servers(m), s)]).throughputs[0];
            assert!((got - expected).abs() < TOLERANCE * expected, "{n} {m}: {got} {expected}");
        }
    }

    #[test]
    fn balanced_network_has_its_closed_form() {
        let stations = vec![(Station::Servers(1), 0.7); 6];
        let got = one_class(30, 0.0, &stations);
        assert!((got.throughputs[0] - 30.0 / (0.7 * 35.0)).abs() < TOLERANCE);
    }

    #[test]
    fn two_equal_classes_are_one_class() {
        let stations = vec![Station::Servers(1), Station::Servers(3), Station::Delay];
        let demands = vec![0.5, 2.0, 1.0];
        let two = solve_exact(&Network {
            classes: vec![Class { population: 4, think_time: 3.0 }, Class { population: 6, think_time: 3.0 }],
            stations: stations.clone(),
            demands: vec![demands.clone(), demands.clone()],
        })
        .unwrap();
        let one = one_class(10, 3.0, &stations.into_iter().zip(demands).collect::<Vec<_>>());
        assert!((two.throughputs[0] + two.throughputs[1] - one.throughputs[0]).abs() < TOLERANCE);
        for k in 0..3 {
            assert!((two.residence_times[0][k] - one.residence_times[0][k]).abs() < TOLERANCE);
        }
    }

    #[test]
    fn little_and_the_utilization_law_hold() {
        let got = solve_exact(&Network {
            classes: vec![Class { population: 3, think_time: 1.0 }, Class { population: 5, think_time: 0.0 }],
            stations: vec![Station::Servers(1), Station::Servers(2)],
            demands: vec![vec![0.4, 1.0], vec![0.9, 0.3]],
        })
        .unwrap();
        for (c, (n, z)) in [(3.0, 1.0), (5.0, 0.0)].into_iter().enumerate() {
            let inside: f64 = got.queue_lengths[c].iter().sum();
            assert!((inside + got.throughputs[c] * z - n).abs() < TOLERANCE);
        }
        let load = 0.4 * got.throughputs[0] + 0.9 * got.throughputs[1];
        assert!(load < 1.0);
    }

    #[test]
    fn asymptotic_bounds_hold() {
        for n in [1u32, 2, 5, 17, 80] {
            let got = one_class(n, 4.0, &[(Station::Servers(1), 1.0), (Station::Servers(1), 0.25), (Station::Delay, 0.5)]).throughputs[0];
            assert!(got <= 1.0 + TOLERANCE && got <= f64::from(n) / 5.75 + TOLERANCE);
        }
    }

    #[test]
    fn a_lattice_too_large_is_refused() {
        let network = Network {
            classes: vec![Class { population: 1000, think_time: 1.0 }; 4],
            stations: vec![Station::Servers(1)],
            demands: vec![vec![1.0]; 4],
        };
        assert!(matches!(solve_exact(&network), Err(MvaError::TooLarge(_))));
        // Few populations, but each with as many numbers as servers.
        let servers = |m: u32, n: u32| Network {
            classes: vec![Class { population: n, think_time: 1.0 }],
            stations: vec![Station::Servers(m)],
            demands: vec![vec![1.0]],
        };
        assert!(matches!(solve_exact(&servers(1_000_000_000, 3)), Err(MvaError::TooLarge(_))));
        assert!(matches!(solve_exact(&servers(1000, 40_000)), Err(MvaError::TooMuchHeld(_))));
        assert!(solve_exact(&servers(1000, 3)).is_ok());
    }
}
