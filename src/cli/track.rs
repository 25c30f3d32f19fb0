//! `layerfit track`.

use std::path::PathBuf;

use clap::ValueEnum;
use indexmap::IndexMap;

use super::{
    Failure,
    estimates::{finite, parameter_name},
    fit::{progress_bar, show},
    output::{check_outputs, write_file},
    problem::{ProblemArguments, named, read_trials},
    write_stdout,
};
use crate::{
    fit::{
        Method,
        problem::ErrorScale,
        tracking::{Drift, TrackError, TrackOptions, track},
    },
    predict::chart::{chart, track_panels},
};

/// Arguments of `layerfit track`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Model: .lqnx, .lqn or .json.
    model: PathBuf,
    /// Trials: .csv, or .json with {"trials": [...]}; in the order of their column `time`, else of their rows.
    trials: PathBuf,
    #[command(flatten)]
    problem: ProblemArguments,
    /// Standard deviation of a parameter's walk over one unit of time (one trial without times); relative for --log. Without a value, or where a
    /// parameter is not named, it is estimated; 0 holds the parameter constant. May be repeated.
    #[arg(long, value_name = "NAME[=STD]")]
    drift: Vec<String>,
    /// Take standard errors and covariances of the trials as they stand, not up to a factor.
    #[arg(long)]
    errors_known: bool,
    /// Trials in the running window of the innovations test.
    #[arg(long, value_name = "N", default_value_t = 5)]
    window: usize,
    /// Draw the parameters over time to this file.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// How to print the track.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// Tables for people.
    #[default]
    Text,
    /// One object.
    Json,
    /// One line a trial.
    Csv,
}

/// Runs `layerfit track`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    check_outputs(&[("--plot", args.plot.as_deref())], &[&args.model, &args.trials])?;
    let trials = read_trials(&args.trials)?;
    let models = named(&[args.model.as_path()]);
    let error_scale = if args.errors_known { ErrorScale::Known } else { ErrorScale::Estimated };
    let method = Method { error_scale, ..Method::default() };
    let problems = args.problem.problems(&models, &trials, method)?;
    let Some(problem) = problems.first() else { return Err(Failure::input_text("expected a model")) };
    let options = TrackOptions { drifts: drifts(&args.drift)?, window: args.window, ..TrackOptions::default() };
    let bar = progress_bar();
    let outcome = track(problem, &options, &mut |p| show(&bar, p));
    bar.finish_and_clear();
    let found = outcome.map_err(|e| failure(&e))?;
    if let Some(path) = &args.plot {
        write_file(path, &chart(&track_panels(&found)).map_err(|e| Failure::input(&e))?)?;
    }
    match args.format {
        Format::Text => write_stdout(&found.to_text()),
        Format::Csv => write_stdout(&found.to_csv()),
        Format::Json => {
            let text = serde_json::to_string_pretty(&found).map_err(|e| Failure::internal(&e))?;
            write_stdout(&(text + "\n"));
        }
    }
    Ok(())
}

fn drifts(texts: &[String]) -> Result<IndexMap<String, Drift>, Failure> {
    let mut found = IndexMap::new();
    for text in texts {
        let form = || Failure::input_text(format!("--drift {text}: expected NAME or NAME=STD with a number, 0 or more, as in dbD=0.01"));
        let (name, value) = text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
        let drift = match value {
            None => Drift::Estimated,
            Some(value) => Drift::Given(finite(value).filter(|v| *v >= 0.0).ok_or_else(form)?),
        };
        found.insert(parameter_name(name).ok_or_else(form)?, drift);
    }
    Ok(found)
}

fn failure(error: &TrackError) -> Failure {
    match error {
        TrackError::Undetermined { .. } => {
            Failure::with_hint(super::chain(error), "give a value with --set to what the trials do not determine, or measure more")
        }
        TrackError::NotEstimated { name, .. } => Failure::with_hint(super::chain(error), format!("add --estimate {name}")),
        _ => Failure::input(error),
    }
}
