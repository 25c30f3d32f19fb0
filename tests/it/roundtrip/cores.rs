//! What is extracted does not depend on the number of threads: of one source, its steps run beside each other.

use layerfit::{
    cli::record::{TraceForm, TraceOptions},
    structure::{
        ExtractOptions, Extraction, call_path::CallPathOptions, execution_graph::ExecutionGraphOptions, extract, spans::SpanOptions,
        tlc::TlcOptions,
    },
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

fn options(threads: usize) -> ExtractOptions {
    // Traces are completed while others are still read.
    let spans = SpanOptions { hold_spans: 100, idle_timeout_ns: 1_000_000_000, ..SpanOptions::default() };
    ExtractOptions { bad_rows: BadRows::Reject, spans, threads, ..ExtractOptions::default() }
}

fn extracted_with(sources: &[Source<'_>], format: Format, options: &ExtractOptions) -> Result<Extraction, String> {
    extract(sources, format, options).map_err(|error| error.to_string())
}

fn extracted(bytes: &[u8], format: Format, threads: usize) -> Result<Extraction, String> {
    extracted_with(&[Source { name: "run", bytes }], format, &options(threads))
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

/// A Kieker log of as many traces as there are cycles: `Front` calls `Shop` and `Store` in turns, of servers and sessions that are new
/// every now and then; the executions of a trace come as they end, the last of every seventh trace is missing.
fn kieker_log() -> String {
    let mut log = String::new();
    for trace in 0..4 * CYCLES {
        let n_calls = trace % 5;
        for call in 0..n_calls {
            let (service, depth) = (["Shop.order", "Store.load"][(call % 2) as usize], 1 + u64::from(call > 2));
            let (start, end) = (1000 * trace + 10 * call, 1000 * trace + 10 * call + 7);
            let host = format!("host{}", trace / 300);
            log += &format!("$1;{end};public void app.{service}();s{};{trace};{start};{end};{host};{};{depth}\n", trace % 11, call + 1);
        }
        if trace % 7 != 6 {
            let (start, end) = (1000 * trace, 1000 * trace + 100);
            log += &format!("$1;{end};public void app.Front.page{}();<no-session-id>;{trace};{start};{end};web;0;0\n", trace / 500);
        }
    }
    log
}

#[test]
fn a_kieker_log_is_collected_beside_its_analysis() {
    let (log, map) = (kieker_log(), "$1=kieker.common.record.controlflow.OperationExecutionRecord\n");
    let sources = [("log/kieker.map", map), ("log/kieker-1.dat", &log)].map(|(name, text)| Source { name, bytes: text.as_bytes() });
    let alone = extracted_with(&sources, Format::Kieker, &options(1)).unwrap();
    assert!(alone.diagnostics.iter().any(|diagnostic| diagnostic.code == "requests_left_out"), "{:?}", alone.diagnostics);
    for threads in [2, 5] {
        assert!(extracted_with(&sources, Format::Kieker, &options(threads)).as_ref() == Ok(&alone), "{threads} threads");
    }
}

/// Where there is room for little, requests are analysed as they stand; what is told of it, and in which order, is the same.
#[test]
fn what_makes_room_is_told_alike_on_any_number_of_threads() {
    let ran = Ran::new(FEATURES, 3, CYCLES);
    let bounded = |threads| ExtractOptions {
        tlc: TlcOptions { live_events_limit: 20, ..TlcOptions::default() },
        execution_graph: ExecutionGraphOptions { max_live_events: 20, ..ExecutionGraphOptions::default() },
        call_path: CallPathOptions { most_live_records: 200, ..CallPathOptions::default() },
        ..options(threads)
    };
    let forms = [
        (TraceForm::Angio, Format::Angio, "live_events_limit"),
        (TraceForm::EventTrace, Format::EventTrace, "operation_cut"),
        (TraceForm::CallPath, Format::CallPath, "context_not_awaited"),
    ];
    for (form, format, code) in forms {
        let trace = ran.trace(form, &TraceOptions::default());
        let source = [Source { name: "run", bytes: &trace }];
        let alone = extracted_with(&source, format, &bounded(1)).unwrap();
        assert!(alone.diagnostics.iter().any(|diagnostic| diagnostic.code == code), "{form:?}: {:?}", alone.diagnostics);
        for threads in [2, 5] {
            assert!(extracted_with(&source, format, &bounded(threads)).as_ref() == Ok(&alone), "{form:?} on {threads} threads");
        }
    }
}
