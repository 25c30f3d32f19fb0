//! `layerfit identify`.

use std::path::PathBuf;

use super::{Failure, OutputFormat, design::failure, input, plan::EstimateArguments, write_stdout};
use crate::fit::{
    Method, Problem, Trials, Weighting,
    design::{IdentifyOptions, identify},
};

/// Arguments of `layerfit identify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Model: .lqnx, .lqn or .json.
    model: PathBuf,
    /// Trials as for `layerfit fit`; the cells of their measures may be empty throughout.
    trials: PathBuf,
    #[command(flatten)]
    estimate: EstimateArguments,
    /// Relative error of a measured value without a standard error.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    relative_error: f64,
    /// Level of the half-widths, between 0 and 1.
    #[arg(long, default_value_t = 0.95)]
    confidence: f64,
    /// How to print what is to be expected.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Runs `layerfit identify`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let bytes = input::read_bytes(&args.trials)?;
    let trials =
        Trials::plan_from_csv(&bytes).map_err(|e| Failure::input_text(format!("{}: {}", args.trials.display(), super::chain(&e))))?;
    let problem = Problem {
        model: input::read_model(&args.model)?,
        estimate: args.estimate.estimated()?,
        assumed: input::bindings(&args.estimate.set)?,
        trials,
        weighting: Weighting::Auto,
        confidence: args.confidence,
        method: Method::default(),
    };
    let options = IdentifyOptions { relative_error: args.relative_error, ..IdentifyOptions::default() };
    let expected = identify(&problem, &options).map_err(|e| failure(&e))?;
    match args.format {
        OutputFormat::Text => write_stdout(&expected.to_text()),
        OutputFormat::Json => {
            let text = serde_json::to_string_pretty(&expected).map_err(|e| Failure::internal(&e))?;
            write_stdout(&(text + "\n"));
        }
    }
    Ok(())
}
