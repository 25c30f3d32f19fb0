//! Predictions of a fitted model, with confidence bands.
