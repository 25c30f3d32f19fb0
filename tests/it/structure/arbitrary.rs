//! Every technique on events in any order, and on what its fuzz target starts from.

use std::{fs, path::Path};

use layerfit::trace::Format;
use proptest::prelude::*;

#[path = "../../../fuzz/fuzz_targets/whole.rs"]
mod whole;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Message logs of ends and of messages, angio traces, event traces and call paths: a valid model or an error in words.
    #[test]
    fn events_in_any_order_end_in_a_model_or_an_error(form in 0_u8..5, events in prop::collection::vec(any::<u8>(), 0..1200)) {
        let bytes: Vec<u8> = std::iter::once(form).chain(events).collect();
        whole::extract_events(&bytes);
    }

    /// Sequences that are nearly right get further than arbitrary ones: one byte of a seed is another.
    #[test]
    fn seeds_with_a_wrong_byte_end_in_a_model_or_an_error(seed in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let seeds = seeds();
        let (format, bytes) = &seeds[seed.index(seeds.len())];
        let mut bytes = bytes.clone();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        whole::extract_bytes(*format, &bytes);
    }
}

/// Seeds of the fuzz targets, with their format.
fn seeds() -> Vec<(Format, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let of = |(name, format): (&str, Format)| -> Vec<(Format, Vec<u8>)> {
        let files = fs::read_dir(folder.join(name)).unwrap().map(|f| f.unwrap().path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        files.iter().map(|f| (format, fs::read(f).unwrap())).collect()
    };
    let formats = [
        ("same", Format::Same),
        ("angio", Format::Angio),
        ("event_trace", Format::EventTrace),
        ("call_path", Format::CallPath),
        ("kieker", Format::Kieker),
        ("spans", Format::Auto),
    ];
    formats.into_iter().flat_map(of).collect()
}

#[test]
fn seeds_are_extracted_whole() {
    let seeds = seeds();
    assert!(seeds.len() >= 9);
    for (format, bytes) in seeds {
        let source = layerfit::trace::Source { name: "seed", bytes: &bytes };
        let options = layerfit::structure::ExtractOptions { bad_rows: layerfit::trace::BadRows::Reject, ..Default::default() };
        let extraction = layerfit::structure::extract(&[source], format, &options);
        assert!(extraction.is_ok(), "{format:?}: {:?}", extraction.err());
    }
}
