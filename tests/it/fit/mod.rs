//! Fitting.

mod acceptance;
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
mod queues;
mod recovery;
mod report;
pub mod three_queue;
mod trials;
