//! The passes over one trace, each timed in processor time.

use std::{
    fs::{self, File},
    hint::black_box,
    ops::ControlFlow,
    time::Instant,
};

use layerfit::{
    structure::{ExtractOptions, extract_streams},
    trace::{
        Format, StreamSource, angio, call_path,
        diagnostics::Diagnostics,
        event_trace, kieker, same,
        span::SpanTexts,
        spans::{SpanFormat, SpanReadOptions, read_spans},
    },
};

use super::{baseline, json};

const KIEKER_MAP: &[u8] =
    b"$0=kieker.common.record.misc.KiekerMetadataRecord\n$1=kieker.common.record.controlflow.OperationExecutionRecord\n";

/// `MODE FORM ROUNDS FILE…`: prints, for `passes`, seconds of processor time to skip, parse, read and extract (0 for a pass that there
/// is not), least of the rounds; for `extract` (on as many threads as rounds are given) seconds that pass, and the peak of the
/// resident set in bytes. `skip`, `parse` and `read` make one pass alone, for tools that count instructions.
pub(super) fn measure(arguments: Vec<String>) {
    let [mode, form, rounds, paths @ ..] = &arguments[..] else { panic!("MODE FORM ROUNDS FILE… are expected") };
    let rounds: usize = rounds.parse().unwrap();
    if mode == "extract" {
        let start = Instant::now();
        extract(form, paths, rounds);
        println!("{} {}", start.elapsed().as_secs_f64(), peak_bytes());
        return;
    }
    let alone = match mode.as_str() {
        "skip" => Some(skip(form, &paths[0])),
        "parse" => Some(parse(form, &paths[0])),
        "read" => Some(read(form, paths)),
        _ => None,
    };
    if let Some(n) = alone {
        return println!("{n}");
    }
    let mut least = [f64::INFINITY; 4];
    for _ in 0..rounds {
        let passes: [&dyn Fn(); 4] = [
            &|| _ = black_box(skip(form, &paths[0])),
            &|| _ = black_box(parse(form, &paths[0])),
            &|| _ = black_box(read(form, paths)),
            &|| _ = black_box(extract(form, paths, 1)),
        ];
        for (pass, least) in passes.iter().zip(&mut least) {
            let start = processor_seconds();
            pass();
            *least = least.min(processor_seconds() - start);
        }
    }
    if form == "otlp-protobuf" {
        least[0] = 0.0;
    }
    println!("{} {} {} {}", least[0], least[1], least[2], least[3]);
}

/// Processor time of this thread, seconds (Linux's `schedstat`; elsewhere time that passes).
fn processor_seconds() -> f64 {
    let of_thread = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = of_thread.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(
        || {
            static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
            START.get_or_init(Instant::now).elapsed().as_secs_f64()
        },
        |ns| ns * 1e-9,
    )
}

/// Largest resident set so far, bytes; 0 where that is not told.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn skip(form: &str, path: &str) -> u64 {
    match form {
        "otlp-protobuf" => 0,
        "otlp" | "jaeger" | "zipkin" => json::skip(path),
        "kieker" => baseline::skip_lines(path),
        _ => baseline::skip_csv(path),
    }
}

fn parse(form: &str, path: &str) -> u64 {
    match form {
        "otlp-protobuf" => baseline::parse_protobuf(path),
        "otlp" => json::parse_otlp(path),
        "jaeger" => json::parse_jaeger(path),
        "zipkin" => json::parse_zipkin(path),
        "kieker" => baseline::parse_kieker(path),
        _ => baseline::parse_csv(path),
    }
}

fn format_of(form: &str) -> Format {
    match form {
        "same" | "same-ends" | "same-recordings" => Format::Same,
        "angio" | "angio-one" => Format::Angio,
        "otlp-protobuf" => Format::Otlp,
        form => form.parse().unwrap(),
    }
}

fn streams(form: &str, paths: &[String]) -> Vec<StreamSource<'static>> {
    let stream = |path: &String| StreamSource { name: path.clone(), reader: Box::new(File::open(path).unwrap()) };
    let mut streams: Vec<_> = paths.iter().map(stream).collect();
    if form == "kieker" {
        let name = std::path::Path::new(&paths[0]).with_file_name("kieker.map").display().to_string();
        streams.push(StreamSource { name, reader: Box::new(KIEKER_MAP) });
    }
    streams
}

fn read(form: &str, paths: &[String]) -> u64 {
    let limit_bytes = u64::MAX;
    let mut n = 0_u64;
    let mut diagnostics = Diagnostics::default();
    let mut sources = streams(form, paths);
    match format_of(form) {
        Format::Same => {
            let mut reader = same::LogReader::new(&same::ReadOptions { limit_bytes, ..same::ReadOptions::default() });
            reader.read(sources, &mut |_, _| n += 1).unwrap();
            reader.finish(&mut |_, _| n += 1);
        }
        Format::Angio => {
            let options = angio::ReadOptions { limit_bytes, ..angio::ReadOptions::default() };
            let StreamSource { name, reader } = sources.remove(0);
            angio::read_angio(&name, reader, &options, &mut diagnostics, &mut |event| n += event.task_node).unwrap();
        }
        Format::EventTrace => {
            let options = event_trace::ReadOptions { limit_bytes, ..event_trace::ReadOptions::default() };
            let StreamSource { name, reader } = sources.remove(0);
            event_trace::read_event_trace(&name, reader, &options, &mut diagnostics, &mut |event| n += event.index).unwrap();
        }
        Format::CallPath => {
            let options = call_path::ReadOptions { limit_bytes, ..call_path::ReadOptions::default() };
            call_path::read_streams(sources, &options, &mut call_path::Texts::default(), &mut |_, _| n += 1).unwrap();
        }
        Format::Kieker => {
            let options = kieker::ReadOptions { limit_bytes, ..kieker::ReadOptions::default() };
            kieker::read_streams(sources, &options, &mut kieker::Texts::default(), &mut |_, _| n += 1).unwrap();
        }
        Format::Otlp | Format::Jaeger | Format::Zipkin | Format::Auto => {
            let options = SpanReadOptions { limit_bytes, ..SpanReadOptions::default() };
            let StreamSource { name, reader } = sources.remove(0);
            let mut sink = |_, _: &mut SpanTexts| {
                n += 1;
                ControlFlow::Continue(())
            };
            read_spans(&name, reader, SpanFormat::Auto, &options, &mut SpanTexts::default(), &mut diagnostics, &mut sink).unwrap();
        }
    }
    n
}

fn extract(form: &str, paths: &[String], threads: usize) -> u64 {
    let options = ExtractOptions { limit_bytes: u64::MAX, threads, ..ExtractOptions::default() };
    let extraction = extract_streams(streams(form, paths), format_of(form), &options).unwrap();
    assert!(!extraction.model.tasks.is_empty());
    extraction.tasks.len() as u64
}
