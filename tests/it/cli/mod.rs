//! The command line, run as a process.

mod design;
mod extract;
mod families;
mod observe;
mod simulate;
