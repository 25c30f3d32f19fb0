//! Fitting.

mod acceptance;
mod cancel;
mod certified;
mod compare;
mod correction;
mod design;
mod identify;
mod layered;
pub mod layered_model;
mod methods;
mod outcomes;
mod peers;
pub mod pool;
mod queues;
mod recovery;
mod report;
pub mod three_queue;
mod trials;
