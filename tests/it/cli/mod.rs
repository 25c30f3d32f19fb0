//! The command line, run as a process.

mod extract;
mod simulate;
