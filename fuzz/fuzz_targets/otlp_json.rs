//! OTLP JSON of any bytes: `cargo +nightly fuzz run otlp_json`.
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
    let _ = read_spans("fuzz", bytes, SpanFormat::Otlp, &options, &mut texts, &mut diagnostics, sink);
});
