//! layerfit: what will happen at a load that was not measured, and how sure are we?
//!
//! Traces of a running system become a layered queueing network ([`trace`], [`structure`], [`model`]); measurement
//! trials fit its unknown parameters ([`solve`], [`fit`]); the fitted model predicts, with bands ([`predict`]).
//! The folders are the pipeline: data flows down it once.

pub mod api;
pub mod cli;
mod error_chain;
pub mod fit;
pub mod jobs;
pub mod model;
pub mod predict;
pub mod solve;
pub mod store;
pub mod structure;
pub mod trace;
pub mod web;
