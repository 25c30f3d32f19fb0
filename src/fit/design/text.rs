//! Designs in words.
