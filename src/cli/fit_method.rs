//! Options of `layerfit fit` that say how, and what else to infer.

use clap::ValueEnum;

use super::{Failure, estimates::finite};
use crate::fit::{
    Method,
    correction::{CorrectionOptions, SimulationOptions},
    engine::loss::Loss,
    problem::{Bootstrap, ErrorScale, Intervals, Resampling, Starts},
};

#[derive(Debug, clap::Args)]
pub(super) struct MethodArguments {
    /// Sum squares of residuals, or a loss that bounds outliers, with its threshold in standard deviations or without:
    /// squared, huber, soft-l1, cauchy.
    #[arg(long, value_name = "LOSS[=THRESHOLD]", default_value = "squared")]
    loss: String,
    /// Whether the errors in the trials count up to a common scale, or as they stand.
    #[arg(long, value_enum, default_value_t)]
    errors: ErrorsArgument,
    /// How intervals are made.
    #[arg(long, value_enum, default_value_t)]
    intervals: IntervalsArgument,
    /// More starts, by a Latin hypercube over the bounds.
    #[arg(long, value_name = "N")]
    starts: Option<usize>,
    /// Refits to so many sets of resampled data.
    #[arg(long, value_name = "N")]
    bootstrap: Option<usize>,
    /// What the bootstrap draws again.
    #[arg(long, value_enum, default_value_t, requires = "bootstrap")]
    resample: ResampleArgument,
    /// Seed of starts, bootstrap and the simulations of a correction.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Predict each trial by a fit to the others.
    #[arg(long)]
    leave_one_out: bool,
    /// Correct the fit for the solver's error: fit to what a simulation of the model would give, refitting until it settles. The
    /// simulations have the relative half-width PRECISION [default: 0.01].
    #[arg(long, value_name = "PRECISION", num_args = 0..=1, require_equals = true, default_missing_value = "0.01",
        value_parser = super::estimates::precision)]
    correct_solver: Option<f64>,
    /// Most events of the simulation of one operating point; with them used up the precision may not be reached
    /// [default: 40000000].
    #[arg(long, value_name = "N", requires = "correct_solver", value_parser = clap::value_parser!(u64).range(1..))]
    correct_events: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ErrorsArgument {
    /// Up to a scale, which the fit estimates.
    #[default]
    Estimated,
    /// As they stand.
    Known,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum IntervalsArgument {
    /// From standard errors.
    #[default]
    Wald,
    /// From the profile of the sum of squares.
    Profile,
    /// From standard errors that go by what trials scatter by, whatever the weights say of their errors: where measures of a
    /// trial have errors in common, as delays and throughput do. Needs more trials than parameters, better twice as many.
    Sandwich,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ResampleArgument {
    /// Residuals.
    #[default]
    Residuals,
    /// Whole trials.
    Trials,
}

impl MethodArguments {
    pub(super) fn method(&self) -> Result<Method, Failure> {
        let resampling = match self.resample {
            ResampleArgument::Residuals => Resampling::Residuals,
            ResampleArgument::Trials => Resampling::Trials,
        };
        Ok(Method {
            loss: loss(&self.loss)?,
            error_scale: match self.errors {
                ErrorsArgument::Estimated => ErrorScale::Estimated,
                ErrorsArgument::Known => ErrorScale::Known,
            },
            intervals: match self.intervals {
                IntervalsArgument::Wald => Intervals::Wald,
                IntervalsArgument::Profile => Intervals::Profile,
                IntervalsArgument::Sandwich => Intervals::Sandwich,
            },
            starts: self.starts.map(|n| Starts { n, seed: self.seed }),
            bootstrap: self.bootstrap.map(|n| Bootstrap { n, resampling, seed: self.seed }),
            leave_one_trial_out: self.leave_one_out,
            correct_solver: self.correct_solver.map(|precision| CorrectionOptions {
                simulation: SimulationOptions {
                    precision,
                    seed: self.seed,
                    max_events: self.correct_events.unwrap_or(SimulationOptions::default().max_events),
                    ..SimulationOptions::default()
                },
                ..CorrectionOptions::default()
            }),
        })
    }
}

fn loss(text: &str) -> Result<Loss, Failure> {
    let form = || Failure::input_text(format!("--loss {text}: expected squared, huber, soft-l1 or cauchy, as in huber or huber=2"));
    let (name, threshold) = match text.split_once('=') {
        Some((name, threshold)) => (name, Some(finite(threshold).ok_or_else(form)?)),
        None => (text, None),
    };
    match (name.trim(), threshold) {
        ("squared", None) => Ok(Loss::Squared),
        ("huber", threshold) => Ok(Loss::Huber { threshold }),
        ("soft-l1" | "soft_l1", threshold) => Ok(Loss::SoftL1 { threshold }),
        ("cauchy", threshold) => Ok(Loss::Cauchy { threshold }),
        _ => Err(form()),
    }
}
