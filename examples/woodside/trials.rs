//! Trials made by the simulator, and the covariances of their errors from independent pilot runs.

use std::thread;

use layerfit::{
    fit::{Measured, Trial, Trials, trials::ErrorCovariance},
    model::{Bindings, Measure, Model},
    solve::{SimulateOptions, measure, simulate},
};
use nalgebra::DMatrix;

/// Model time before a trial begins, on top of what the simulator drops as warm-up.
const WARM_UP: f64 = 200.0;

/// The system that is measured.
pub struct System {
    /// Its model.
    pub model: Model,
    /// Its true parameters.
    pub truth: Bindings,
    /// What is measured.
    pub measures: Vec<Measure>,
}

/// One operating point and how long it is measured.
#[derive(Clone)]
pub struct Run {
    /// Controlled values.
    pub controlled: Bindings,
    /// Model time measured.
    pub length: f64,
    /// Seed of the simulator.
    pub seed: u64,
}

/// Values that one run measures.
type Values = Vec<f64>;

impl System {
    fn measured(&self, run: &Run) -> Result<Values, String> {
        let mut values = self.truth.clone();
        run.controlled.iter().for_each(|(name, v)| values.set(name, v));
        let options = SimulateOptions {
            seed: run.seed,
            run_time: Some(run.length + WARM_UP),
            precision: None,
            max_events: u64::MAX,
            replications: 1,
            workers: 1,
            ..SimulateOptions::default()
        };
        let solution = simulate(&self.model, &values, &options).map_err(|e| e.to_string())?;
        self.measures.iter().map(|m| measure::value(&self.model, &solution, m).map_err(|e| e.to_string())).collect()
    }

    fn all(&self, runs: &[Run]) -> Result<Vec<Values>, String> {
        let n_threads = thread::available_parallelism().map_or(1, usize::from);
        let mut found: Vec<Result<Values, String>> = vec![Err("not run".into()); runs.len()];
        let work = |first: usize| -> Vec<(usize, Result<Values, String>)> {
            (first..runs.len()).step_by(n_threads).map(|i| (i, self.measured(&runs[i]))).collect()
        };
        let work = &work;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..n_threads).map(|first| scope.spawn(move || work(first))).collect();
            for (i, values) in workers.into_iter().filter_map(|w| w.join().ok()).flatten() {
                found[i] = values;
            }
        });
        found.into_iter().collect()
    }

    /// Trials of `runs`, without errors.
    pub fn trials(&self, runs: &[Run]) -> Result<Trials, String> {
        let trial = |(i, (run, values)): (usize, (&Run, Values))| Trial {
            id: (i + 1).to_string(),
            duration: Some(run.length),
            controlled: run.controlled.clone(),
            measured: values.into_iter().map(|value| Some(Measured { value, std_error: None, weight: None })).collect(),
            ..Trial::default()
        };
        let trials = runs.iter().zip(self.all(runs)?).enumerate().map(trial).collect();
        Ok(Trials { measures: self.measures.clone(), trials })
    }

    /// Covariances of the measured values of each of `runs`, `(n_measures, n_measures)`, over `n` independent runs.
    pub fn pilot(&self, runs: &[Run], n: usize) -> Result<Vec<DMatrix<f64>>, String> {
        let seeded =
            |run: &Run, k: usize| Run { seed: run.seed.wrapping_mul(0x9E37_79B9).wrapping_add(7919 * (k as u64 + 1)), ..run.clone() };
        let all: Vec<Run> = runs.iter().flat_map(|run| (0..n).map(move |k| seeded(run, k))).collect();
        Ok(self.all(&all)?.chunks(n).map(covariance).collect())
    }
}

fn covariance(samples: &[Values]) -> DMatrix<f64> {
    let (n, m) = (samples.len() as f64, samples.first().map_or(0, Vec::len));
    let means: Vec<f64> = (0..m).map(|k| samples.iter().map(|s| s[k]).sum::<f64>() / n).collect();
    DMatrix::from_fn(m, m, |i, j| samples.iter().map(|s| (s[i] - means[i]) * (s[j] - means[j])).sum::<f64>() / (n - 1.0))
}

/// Gives every trial its error covariances.
pub fn with_covariances(mut trials: Trials, covariances: &[DMatrix<f64>]) -> Trials {
    for (trial, r) in trials.trials.iter_mut().zip(covariances) {
        for (k, cell) in trial.measured.iter_mut().enumerate() {
            cell.iter_mut().for_each(|m| m.std_error = Some(r[(k, k)].sqrt()));
        }
        let pairs = (0..r.nrows()).flat_map(|i| (0..i).map(move |j| (i, j)));
        trial.covariances = pairs.map(|(first, second)| ErrorCovariance { first, second, value: r[(first, second)] }).collect();
    }
    trials
}

/// Makes errors relative: each value counts by how far it is missed as a share of itself.
pub fn with_relative_weights(mut trials: Trials) -> Trials {
    let cells = trials.trials.iter_mut().flat_map(|t| &mut t.measured).flatten();
    cells.for_each(|m| m.std_error = Some(m.value.abs()).filter(|e| *e > 0.0));
    trials
}
