//! Integration tests; folders mirror `src/`.

mod tidy;
