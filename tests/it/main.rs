//! Integration tests; folders mirror `src/`.
#![expect(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod fit;
mod predict;
mod model;
mod tidy;
