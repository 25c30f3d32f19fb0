//! `layerfit openapi`.

use super::Failure;

/// Arguments of `layerfit openapi`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `layerfit openapi`.
pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::input_text("not built yet"))
}
