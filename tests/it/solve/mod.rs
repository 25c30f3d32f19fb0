//! Solvers: the analytic ones against theory and one another, the simulator and the Markov chain against the language's vectors
//! and each other, the layered approximation against the exact answer.

mod activities;
mod alike;
pub mod build;
mod by_urgency;
mod draw;
mod drawn;
mod features;
mod forks_on_one_core;
mod from_outside;
mod goes_on;
mod laws;
mod layered;
mod lqnx;
mod markov;
mod markov_simulate;
mod messages;
mod one_core;
mod peers;
mod pools_in_pools;
mod practice;
mod referee;
mod replication;
mod sensitivities;
mod settling;
mod simulate;
mod simulate_times;
mod simulate_vectors;
mod unlike_calls;
mod unlike_classes;
