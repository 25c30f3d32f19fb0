//! `layerfit compare`.

use super::Failure;

/// Arguments of `layerfit compare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `layerfit compare`.
pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::input_text("not built yet"))
}
