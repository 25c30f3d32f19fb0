//! Integration tests; folders mirror `src/`.

mod structure;
mod tidy;
mod trace;
