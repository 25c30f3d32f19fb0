//! `layerfit extract`.

use super::Failure;

/// Arguments of `layerfit extract`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `layerfit extract`.
pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::input_text("not built yet"))
}
