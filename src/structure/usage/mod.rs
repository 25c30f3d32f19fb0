//! Usage models.
