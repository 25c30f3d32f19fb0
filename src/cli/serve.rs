//! `layerfit serve`.

use super::Failure;

/// Arguments of `layerfit serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `layerfit serve`.
pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::input_text("not built yet"))
}
