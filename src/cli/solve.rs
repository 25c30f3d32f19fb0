//! `layerfit solve`.

use std::path::PathBuf;

use super::{Failure, OutputFormat, input};

/// Arguments of `layerfit solve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Model: .lqnx, .lqn or .json.
    model: PathBuf,
    /// Parameter values, `NAME=VALUE`.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Runs `layerfit solve`.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    let _ = (input::read_model(&args.model)?, input::bindings(&args.set)?, args.format);
    Err(Failure::input_text("not built yet"))
}
