//! `layerfit simulate`.

use super::Failure;

/// Arguments of `layerfit simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `layerfit simulate`.
pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::input_text("not built yet"))
}
