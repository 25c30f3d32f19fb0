//! Solvers: the analytic ones against theory and one another, the simulator against the language's vectors.

mod build;
mod draw;
mod drawn;
mod features;
mod laws;
mod layered;
mod lqnx;
mod peers;
mod sensitivities;
mod simulate;
mod simulate_vectors;
