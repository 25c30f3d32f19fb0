//! Traces: the wire formats.

mod same;
