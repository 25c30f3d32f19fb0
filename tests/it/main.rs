//! Integration tests; folders mirror `src/`.
#![expect(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod api;
mod cli;
mod crash;
mod fit;
mod model;
mod predict;
mod roundtrip;
mod solve;
mod structure;
mod tidy;
mod trace;
