//! A simulator of the example's closed network: think, then visit single exponential servers in turn. Measured are the mean
//! residence at the first three and the throughput; the covariance of their means is taken from the batches of one long pilot run
//! at each population, since that of a short run says little and hangs on the very errors that it is to weigh.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use layerfit::{
    fit::{Measured, Trial, Trials, trials::ErrorCovariance},
    model::Bindings,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

use super::three_queue::measures;

/// Batches of a pilot run and the length of each, which must be long beside the correlation of the process.
const PILOT_BATCHES: usize = 150;
const PILOT_BATCH: f64 = 5e3;

/// Time discarded at the start of a run.
const WARM_UP: f64 = 1000.0;

/// What a trial is told of its errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// Covariances within the trial.
    Full,
    /// Standard errors only.
    Diagonal,
    /// Nothing.
    Unknown,
}

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// Demands at the servers; those beyond the third are not measured.
    pub demands: &'a [f64],
    /// Mean think time.
    pub think: f64,
    /// Length of a trial after its warm-up.
    pub length: f64,
}

#[derive(PartialEq)]
struct Time(f64);
impl Eq for Time {}
impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Means of `[T1, T2, T3, f]` by batch.
fn batches(network: &Network<'_>, customers: usize, n_batches: usize, rng: &mut ChaCha8Rng) -> Vec<[f64; 4]> {
    let n = network.demands.len();
    let mut draw = |mean: f64| -> f64 {
        let unit: f64 = Exp1.sample(rng);
        mean * unit
    };
    let (start, batch) = (WARM_UP, network.length / n_batches as f64);
    let mut queues: Vec<VecDeque<f64>> = vec![VecDeque::new(); n];
    // (time, server whose service ends, or n for the end of a think).
    let mut events: BinaryHeap<Reverse<(Time, usize)>> = (0..customers).map(|_| Reverse((Time(draw(network.think)), n))).collect();
    let mut sums = vec![[0.0; 4]; n_batches];
    let mut counts = vec![[0.0_f64; 3]; n_batches];
    while let Some(Reverse((Time(now), at))) = events.pop() {
        let place = ((now - start) / batch).floor();
        if place >= n_batches as f64 {
            break;
        }
        let next = if at == n {
            0
        } else {
            let arrived = queues[at].pop_front().unwrap();
            if !queues[at].is_empty() {
                events.push(Reverse((Time(now + draw(network.demands[at])), at)));
            }
            if place >= 0.0 {
                let b = place as usize;
                if at < 3 {
                    sums[b][at] += now - arrived;
                    counts[b][at] += 1.0;
                }
                sums[b][3] += f64::from(u8::from(at == n - 1)) / batch;
            }
            at + 1
        };
        if next == n {
            events.push(Reverse((Time(now + draw(network.think)), n)));
        } else {
            queues[next].push_back(now);
            if queues[next].len() == 1 {
                events.push(Reverse((Time(now + draw(network.demands[next])), next)));
            }
        }
    }
    for (sum, count) in sums.iter_mut().zip(&counts) {
        (0..3).for_each(|k| sum[k] /= count[k].max(1.0));
    }
    sums
}

/// Covariance of the means of a run of length 1 at each population.
pub struct Pilot(Vec<[[f64; 4]; 4]>);

/// Runs the pilot of `network` at `populations`.
pub fn pilot(network: &Network<'_>, populations: &[usize]) -> Pilot {
    pilot_of(network, populations, PILOT_BATCHES, PILOT_BATCH)
}

/// The same from `n_batches` batches of length `batch`.
pub fn pilot_of(network: &Network<'_>, populations: &[usize], n_batches: usize, batch: f64) -> Pilot {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let long = Network { length: batch * n_batches as f64, ..*network };
    let mut covariance = |customers: &usize| {
        let rows = batches(&long, *customers, n_batches, &mut rng);
        let n = rows.len() as f64;
        let mean = |k: usize| rows.iter().map(|r| r[k]).sum::<f64>() / n;
        let means: Vec<f64> = (0..4).map(mean).collect();
        let of = |i: usize, j: usize| rows.iter().map(|r| (r[i] - means[i]) * (r[j] - means[j])).sum::<f64>() / (n - 1.0);
        let per_time = batch;
        std::array::from_fn(|i| std::array::from_fn(|j| of(i, j) * per_time))
    };
    let mut known: Vec<(usize, [[f64; 4]; 4])> = Vec::new();
    for n in populations {
        if !known.iter().any(|(other, _)| other == n) {
            known.push((*n, covariance(n)));
        }
    }
    Pilot(populations.iter().filter_map(|n| known.iter().find(|(other, _)| other == n).map(|(_, c)| *c)).collect())
}

/// Trials at `populations`, one after the other from one seed, with the errors of `pilot`, which was run at the same ones.
pub fn simulated(network: &Network<'_>, populations: &[usize], errors: Errors, pilot: &Pilot, seed: u64) -> Trials {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut trial = |(index, &customers): (usize, &usize)| {
        let mean = batches(network, customers, 1, &mut rng)[0];
        let covariance = |i: usize, j: usize| pilot.0[index][i][j] / network.length;
        let std_error = |k: usize| (errors != Errors::Unknown).then(|| covariance(k, k).sqrt());
        let pairs = (0..4).flat_map(|i| (0..i).map(move |j| (i, j)));
        let covariances = pairs.map(|(i, j)| ErrorCovariance { first: i, second: j, value: covariance(i, j) }).collect();
        Trial {
            id: (index + 1).to_string(),
            duration: Some(network.length),
            time: None,
            controlled: [("users", customers as f64), ("think", network.think)].into_iter().collect::<Bindings>(),
            measured: (0..4).map(|k| Some(Measured { value: mean[k], std_error: std_error(k), weight: None })).collect(),
            covariances: if errors == Errors::Full { covariances } else { Vec::new() },
            ..Trial::default()
        }
    };
    Trials { measures: measures(), trials: populations.iter().enumerate().map(&mut trial).collect() }
}
