//! What is extracted does not depend on the number of threads: of one source, its steps run beside each other.

use layerfit::{
    cli::record::{TraceForm, TraceOptions},
    structure::{ExtractOptions, Extraction, extract, spans::SpanOptions},
    trace::{BadRows, Format, Source},
};

use super::{Features, Ran};

const FORMS: [(TraceForm, Format); 7] = [
    (TraceForm::Same, Format::Same),
    (TraceForm::Angio, Format::Angio),
    (TraceForm::EventTrace, Format::EventTrace),
    (TraceForm::CallPath, Format::CallPath),
    (TraceForm::Otlp, Format::Otlp),
    (TraceForm::Jaeger, Format::Jaeger),
    (TraceForm::Zipkin, Format::Zipkin),
];

/// What all forms can tell.
const FEATURES: Features = Features { and_forks: false, open_arrivals: false, ..Features::ALL };

/// Cycles enough for several batches between all steps.
const CYCLES: u64 = 400;

fn extracted(bytes: &[u8], format: Format, threads: usize) -> Result<Extraction, String> {
    // Traces are completed while others are still read.
    let spans = SpanOptions { hold_spans: 100, idle_timeout_ns: 1_000_000_000, ..SpanOptions::default() };
    let options = ExtractOptions { bad_rows: BadRows::Reject, spans, threads, ..ExtractOptions::default() };
    extract(&[Source { name: "run", bytes }], format, &options).map_err(|error| error.to_string())
}

#[test]
fn steps_on_threads_of_their_own_find_what_one_thread_finds() {
    let ran = Ran::new(FEATURES, 3, CYCLES);
    for (form, format) in FORMS {
        let trace = ran.trace(form, &TraceOptions::default());
        let alone = extracted(&trace, format, 1).unwrap();
        assert!(alone.tasks.iter().flat_map(|task| &task.entries).map(|entry| entry.occurrences).sum::<u64>() > 8192, "{form:?}");
        for threads in [2, 5] {
            assert!(extracted(&trace, format, threads).as_ref() == Ok(&alone), "{form:?} on {threads} threads");
        }
    }
}

#[test]
fn a_source_that_breaks_off_ends_alike_on_any_number_of_threads() {
    let ran = Ran::new(FEATURES, 3, CYCLES);
    let mut n_failed = 0;
    for (form, format) in FORMS {
        let mut trace = ran.trace(form, &TraceOptions::default());
        trace.truncate(trace.len() * 2 / 3);
        let alone = extracted(&trace, format, 1);
        n_failed += usize::from(alone.is_err());
        assert!(extracted(&trace, format, 2) == alone, "{form:?}: {:?}", alone.err());
    }
    assert!(n_failed > 3, "{n_failed} fail");
}
