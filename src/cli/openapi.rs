//! `layerfit openapi`.

use super::{Failure, write_stdout};

/// Arguments of `layerfit openapi`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `layerfit openapi`.
pub(super) fn run(_args: Args) -> Result<(), Failure> {
    write_stdout(&crate::api::openapi_json().map_err(|e| Failure::internal(&e))?);
    Ok(())
}
