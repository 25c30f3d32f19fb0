//! `layerfit fit`.

use super::Failure;

/// Arguments of `layerfit fit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `layerfit fit`.
pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::input_text("not built yet"))
}
