//! Angio traces of any bytes, read and analysed: `cargo +nightly fuzz run angio`.
#![no_main]

#[allow(dead_code, reason = "shared with the other targets")]
mod whole;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| whole::extract_bytes(layerfit::trace::Format::Angio, bytes));
