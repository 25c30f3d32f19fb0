//! Arbitrary sequences of well-written events, for each technique: `cargo +nightly fuzz run events`.
#![no_main]

#[allow(dead_code, reason = "shared with the other targets")]
mod whole;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| whole::extract_events(bytes));
