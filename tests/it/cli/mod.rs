//! The command line, run as a process.

mod extract;
mod families;
mod simulate;
