//! Integration tests; folders mirror `src/`.

mod cli;
mod structure;
mod tidy;
mod trace;
