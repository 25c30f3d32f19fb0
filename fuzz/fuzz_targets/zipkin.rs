//! Zipkin JSON of any bytes: `cargo +nightly fuzz run zipkin`.
#![no_main]

use std::ops::ControlFlow;

use layerfit::trace::{
    diagnostics::Diagnostics,
    span::SpanTexts,
    spans::{SpanFormat, SpanReadOptions, read_spans},
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (mut texts, mut diagnostics) = (SpanTexts::default(), Diagnostics::default());
    let options = SpanReadOptions { limit_bytes: 1 << 24, ..SpanReadOptions::default() };
    let sink = &mut |_, _: &mut SpanTexts| ControlFlow::Continue(());
    let _ = read_spans("fuzz", bytes, SpanFormat::Zipkin, &options, &mut texts, &mut diagnostics, sink);
});
