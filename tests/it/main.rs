//! Integration tests; folders mirror `src/`.

mod api;
mod crash;
mod tidy;
