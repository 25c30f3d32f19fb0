//! Integration tests; folders mirror `src/`.
