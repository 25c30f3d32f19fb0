//! Fitting.

mod acceptance;
mod baseline;
mod certified;
mod compare;
mod family;
mod layered;
pub mod layered_model;
mod layered_simulated;
mod methods;
mod outcomes;
mod peers;
mod queues;
mod recovery;
mod report;
mod stepwise;
pub mod three_queue;
mod tracking;
mod trials;
