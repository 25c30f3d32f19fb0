mod build;
mod simulate;
mod simulate_vectors;
