//! `layerfit compare`.

use std::path::PathBuf;

use super::{Failure, OutputFormat, fit::read_fit, write_stdout};
use crate::fit::{CompareError, compare};

/// Arguments of `layerfit compare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A fit written by `layerfit fit --out`.
    fit_1: PathBuf,
    /// Another fit, of a structure nested in the first or containing it, to the same trials.
    fit_2: PathBuf,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Runs `layerfit compare`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let (first, second) = (read_fit(&args.fit_1)?, read_fit(&args.fit_2)?);
    let comparison = compare(&first, &second).map_err(|e| failure(&e))?;
    match args.format {
        OutputFormat::Text => write_stdout(&comparison.to_text()),
        OutputFormat::Json => {
            let text = serde_json::to_string_pretty(&comparison).map_err(|e| Failure::internal(&e))?;
            write_stdout(&(text + "\n"));
        }
    }
    Ok(())
}

fn failure(error: &CompareError) -> Failure {
    match error {
        CompareError::NotNested { .. } => Failure::with_hint(
            super::chain(error),
            "the F-test needs one structure to be the other with parameters held, as a fourth queue with demand 0",
        ),
        _ => Failure::input(error),
    }
}
