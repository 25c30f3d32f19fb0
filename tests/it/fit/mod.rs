//! Fitting.

mod acceptance;
mod baseline;
mod cancel;
mod certified;
mod columns;
mod compare;
mod correction;
mod correction_rounds;
mod design;
mod family;
mod honest;
mod identify;
mod layered;
pub mod layered_model;
mod layered_simulated;
mod methods;
mod outcomes;
mod peers;
mod pool;
mod queues;
mod recovery;
mod report;
mod stepwise;
pub mod three_queue;
mod tracking;
mod trials;
pub mod unequal;
