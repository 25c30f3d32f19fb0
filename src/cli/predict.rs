//! `layerfit predict`.

use super::Failure;

/// Arguments of `layerfit predict`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `layerfit predict`.
pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::input_text("not built yet"))
}
