//! OTLP protobuf of any bytes, by itself and framed: `cargo +nightly fuzz run otlp_protobuf`.
#![no_main]

use std::ops::ControlFlow;

use layerfit::trace::{
    diagnostics::Diagnostics,
    otlp::decode_otlp_protobuf,
    span::SpanTexts,
    spans::{SpanFormat, SpanReadOptions, read_spans},
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (mut texts, mut diagnostics) = (SpanTexts::default(), Diagnostics::default());
    let options = SpanReadOptions { limit_bytes: 1 << 24, ..SpanReadOptions::default() };
    let sink = &mut |_, _: &mut SpanTexts| ControlFlow::Continue(());
    let _ = decode_otlp_protobuf("fuzz", bytes, &options, &mut texts, &mut diagnostics, sink);
    let _ = read_spans("fuzz", bytes, SpanFormat::Otlp, &options, &mut texts, &mut diagnostics, sink);
});
