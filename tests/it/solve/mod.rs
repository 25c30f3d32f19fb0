//! Solvers: the analytic ones against theory and one another, the simulator against the language's vectors.

mod build;
mod layered;
mod sensitivities;
mod simulate;
mod simulate_vectors;
