//! `layerfit profile`.

use super::{
    Failure, OutputFormat,
    traces::{TraceArgs, by_name},
    write_stdout,
};
use crate::{
    structure::{
        observations::Wanted,
        profile::{Level, Metric, OperatorOptions, ProfileOptions, Siblings, ViewOptions},
    },
    trace::diagnostics,
};

/// Arguments of `layerfit profile`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    traces: TraceArgs,
    /// The finest contexts that are told apart: operation, caller (who called), stack (the whole path to the root), trace (the
    /// whole tree of calls, and the position in it).
    #[arg(long, value_parser = by_name::<Level>, default_value = "stack")]
    by: Level,
    /// The time that is looked at: response (from entry to exit), self-time (without that of calls).
    #[arg(long, value_parser = by_name::<Metric>, default_value = "response")]
    metric: Metric,
    /// Most levels of calls that are shown.
    #[arg(long, value_name = "N", default_value_t = 12)]
    depth: usize,
    /// Calls, contexts and operations with a smaller part of all time are left out.
    #[arg(long, value_name = "SHARE", default_value_t = 0.001, value_parser = share)]
    min_share: f64,
    /// Equal calls after one another: exact (each has its own context), collapse-runs (they have one, as of a loop).
    #[arg(long, value_parser = by_name::<Siblings>, default_value = "exact")]
    repeats: Siblings,
    /// Fewest observations that describe a context: one with fewer is described by a coarser context.
    #[arg(long, value_name = "N", default_value_t = 50)]
    enough: u64,
    /// Most contexts of one operation that are told apart after merging similar ones.
    #[arg(long, value_name = "N", default_value_t = 16)]
    max_leaves: usize,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Runs `layerfit profile`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let options = ProfileOptions { siblings: args.repeats, ..ProfileOptions::default() };
    let observed = args.traces.observe(&Wanted { profile: Some(options), users: None }, &[])?;
    let Some(profile) = observed.profile else { return Err(Failure::Internal("no profile was made".to_owned())) };
    let operators = OperatorOptions { enough: args.enough, max_leaves: args.max_leaves, ..OperatorOptions::default() };
    let view = profile.view(&ViewOptions { metric: args.metric, by: args.by, depth: args.depth, least_share: args.min_share, operators });
    match args.format {
        OutputFormat::Text => {
            write_stdout(&(view.to_text() + &diagnostics::in_words(&view.report.diagnostics)));
        }
        OutputFormat::Json => {
            let json = serde_json::to_string_pretty(&view).map_err(|error| Failure::internal(&error))?;
            write_stdout(&(json + "\n"));
        }
    }
    Ok(())
}
