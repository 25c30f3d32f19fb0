//! `layerfit compare`.

use std::path::{Path, PathBuf};

use super::{Failure, OutputFormat, fit::read_fit, problem::named, write_stdout};
use crate::fit::{CompareError, Fit, compare, compare::CompareOptions, comparison::family::compare_family};

/// Arguments of `layerfit compare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A fit written by `layerfit fit --out`.
    fit_1: PathBuf,
    /// Another fit, of a structure nested in the first or containing it, to the same trials.
    fit_2: PathBuf,
    /// More fits: then all are ranked and every nested pair is tested.
    #[arg(value_name = "FIT")]
    more: Vec<PathBuf>,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Runs `layerfit compare`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    if !args.more.is_empty() {
        return run_family(&args);
    }
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

fn run_family(args: &Args) -> Result<(), Failure> {
    let paths: Vec<&Path> = [&args.fit_1, &args.fit_2].into_iter().chain(&args.more).map(PathBuf::as_path).collect();
    let fits = paths.iter().map(|path| read_fit(path)).collect::<Result<Vec<Fit>, _>>()?;
    let names = named(&paths);
    let members: Vec<(&str, &Fit)> = names.iter().map(|n| n.name.as_str()).zip(&fits).collect();
    let family = compare_family(&members, &CompareOptions::default()).map_err(|e| Failure::input(&e))?;
    match args.format {
        OutputFormat::Text => write_stdout(&family.to_text()),
        OutputFormat::Json => {
            let text = serde_json::to_string_pretty(&family).map_err(|e| Failure::internal(&e))?;
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
