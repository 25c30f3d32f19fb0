//! Fitting.

mod certified;
mod compare;
mod outcomes;
mod peers;
mod recovery;
mod report;
pub mod three_queue;
mod trials;
