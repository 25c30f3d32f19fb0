//! From sources to summaries, by format and technique.
//!
//! Each source is read and worked on by one thread; what the threads found is merged in the order of the sources.

use super::{
    ExtractError, ExtractOptions, Findings,
    call_path::CallPaths,
    cores::on_all_cores,
    execution_graph::ExecutionGraphs,
    interactions::Interactions,
    same,
    spans::Spans,
    summary::Summary,
    tlc::Tlc,
};
use crate::trace::{
    StreamSource, angio,
    diagnostics::Diagnostics,
    event_trace,
    span::SpanTexts,
    spans::{SpanFormat, SpanReadOptions, read_spans},
};
