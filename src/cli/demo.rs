//! `layerfit demo`.

use super::Failure;

/// Arguments of `layerfit demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `layerfit demo`.
pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::input_text("not built yet"))
}
