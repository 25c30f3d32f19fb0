//! `layerfit predict`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{Failure, fit::read_fit, input, write_stdout};
use crate::{
    fit::correction::SimulationOptions,
    model::Measure,
    predict::{PredictError, PredictOptions, Predictions, Scenarios, predict_with},
    solve,
};

/// Arguments of `layerfit predict`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A fit written by `layerfit fit --out`.
    fit: PathBuf,
    /// Controlled value or range of them; may be repeated, for all combinations.
    #[arg(long, value_name = "NAME=VALUE|NAME=FROM..TO[:STEP]", allow_hyphen_values = true)]
    at: Vec<String>,
    /// Measure to predict; those of the trials when none is named. May be repeated.
    #[arg(long, value_name = "M")]
    measure: Vec<String>,
    /// Simulate every operating point too, to the relative half-width PRECISION [default: 0.01], and show what the solver is off by apart
    /// from the bands.
    #[arg(long, value_name = "PRECISION", num_args = 0..=1, require_equals = true, default_missing_value = "0.01",
        value_parser = super::estimates::precision)]
    solver_error: Option<f64>,
    /// Seed of the simulations.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Level of the bands, between 0 and 1, whatever that of the fit was.
    #[arg(long, default_value_t = 0.95)]
    confidence: f64,
    /// How to print the predictions.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// A table for people.
    #[default]
    Text,
    /// One object with `rows`.
    Json,
    /// One line an operating point.
    Csv,
}

/// Runs `layerfit predict`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let fit = read_fit(&args.fit)?;
    let scenarios = Scenarios::parse(&args.at).map_err(|e| Failure::input_text(format!("--at {e}")))?;
    let measures = args.measure.iter().map(|m| m.parse::<Measure>()).collect::<Result<Vec<_>, _>>();
    let measures = measures.map_err(|e| Failure::input_text(format!("--measure {e}")))?;
    input::measures_once(&args.measure, &measures)?;
    let simulation = args.solver_error.map(|precision| SimulationOptions {
        precision,
        seed: args.seed,
        confidence: args.confidence,
        ..SimulationOptions::default()
    });
    let options = PredictOptions { simulation, ..PredictOptions::new(args.confidence) };
    let predictions = predict_with(&fit, &scenarios, &measures, &options, &solve::sensitivities).map_err(|e| failure(&e))?;
    if predictions.rows.iter().any(|row| row.extrapolated) {
        note!("warning: some operating points lie outside what was measured; see their notes");
    }
    match args.format {
        Format::Text => write_stdout(&predictions.to_text()),
        Format::Csv => write_stdout(&predictions.to_csv()),
        Format::Json => {
            let text = serde_json::to_string_pretty(&predictions).map_err(|e| Failure::internal(&e))?;
            write_stdout(&(text + "\n"));
        }
    }
    solved(&predictions)
}

/// Nothing where all operating points are solved, a warning where some are; an error where none is.
fn solved(predictions: &Predictions) -> Result<(), Failure> {
    let failures: Vec<&str> = predictions.rows.iter().filter_map(|row| row.failure.as_deref()).collect();
    let (n, of) = (failures.len(), predictions.rows.len());
    match failures.first() {
        None => Ok(()),
        Some(first) if n == of => Err(Failure::input_text(format!("no operating point has a solution: {first}"))),
        Some(first) => {
            note!("warning: {n} of {of} operating points have no solution; the first: {first}");
            Ok(())
        }
    }
}

fn failure(error: &PredictError) -> Failure {
    match error {
        PredictError::Missing { name, low, .. } => Failure::with_hint(super::chain(error), format!("add --at {name}={low}")),
        _ => Failure::input(error),
    }
}
