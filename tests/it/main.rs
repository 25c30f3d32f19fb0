//! Integration tests; folders mirror `src/`.

mod model;
mod tidy;
