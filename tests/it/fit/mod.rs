//! Fitting.

mod acceptance;
mod certified;
mod compare;
mod layered;
pub mod layered_model;
mod layered_simulated;
mod methods;
mod outcomes;
mod peers;
mod queues;
mod recovery;
mod report;
pub mod three_queue;
mod trials;
