//! Reading Kieker logs.

use std::io::Write;

use layerfit::trace::{
    BadRows, Source,
    call_path::{Kind, Parent, ReadError, Texts, TimeUnit},
    kieker::{ReadOptions, ReadReport, Records, read},
};
use proptest::prelude::*;

const MAP: &str = "$0=kieker.common.record.misc.KiekerMetadataRecord\n$1=kieker.common.record.controlflow.OperationExecutionRecord\n\
    $2=kieker.common.record.flow.trace.TraceMetadata\n$3=kieker.common.record.flow.trace.operation.BeforeOperationEvent\n\
    $4=kieker.common.record.flow.trace.operation.AfterOperationFailedEvent\n$5=kieker.common.record.flow.trace.operation.CallOperationEvent\n\
    $6=kieker.common.record.flow.trace.concurrency.SplitEvent\n$7=kieker.common.record.flow.trace.BeforeReceivedRemoteEvent\n\
    $8=kieker.common.record.flow.trace.operation.constructor.object.BeforeConstructorObjectInterfaceEvent\n\
    $9=kieker.common.record.system.CPUUtilizationRecord\n";
const EXECUTION: &str = "$1;30;public void a.b.C.run(java.lang.String);<no-session-id>;77;10;20;host;1;1\n";

fn read_sources(sources: &[(&str, &[u8])], options: &ReadOptions) -> (Vec<String>, Result<ReadReport, ReadError>) {
    let sources: Vec<Source<'_>> = sources.iter().map(|(name, bytes)| Source { name, bytes }).collect();
    let (mut texts, mut events) = (Texts::default(), Vec::new());
    let report = read(&sources, options, &mut texts, &mut |texts, event| {
        let name = |number: Option<u32>| number.map_or("-", |number| texts.names.name(number)).to_owned();
        let service = |location: u32| format!("{}|{}", texts.service(location).0, texts.service(location).1);
        let what = match event.kind {
            Kind::Entry { location, .. } => format!("entry {}", service(location)),
            Kind::Exit { location } => format!("exit {}", service(location)),
            Kind::Call { location, returns } => format!("call {} {returns}", service(location)),
            Kind::Execution { location, until_ns, order_index, depth, is_elsewhere } => {
                let elsewhere = if is_elsewhere { " elsewhere" } else { "" };
                format!("execution {} to {until_ns} {order_index} {depth}{elsewhere}", service(location))
            }
            Kind::Begin { parent: None } => "begin".to_owned(),
            Kind::Begin { parent: Some(Parent { context, order, waits }) } => format!("begin by {context} at {order} {waits}"),
            other => format!("{other:?}"),
        };
        let order = event.order.map_or_else(|| "-".to_owned(), |order| order.to_string());
        events.push(format!("{} {order} @{} {} {}: {what}", event.context, event.time_ns, name(event.server), name(event.thread)));
    });
    (events, report)
}

fn read_log(log: &str, options: &ReadOptions) -> (Vec<String>, ReadReport) {
    let (events, report) = read_sources(&[("k/1.dat", log.as_bytes()), ("k/kieker.map", MAP.as_bytes())], options);
    (events, report.unwrap())
}

#[test]
fn executions_are_read_in_all_layouts() {
    // With parameters, without a host of its own, and with the experiment id of versions before 1.3.
    let log = format!(
        "$0;1;1.9;NAME;node;1;false;0;NANOSECONDS;1\n{EXECUTION}$1;30;a.b.C.run(int);N/A;-7;10;20;;0;0\n$1;30;0;a.b.C.run;S;77;10;20;vm;0;0\n"
    );
    let (events, report) = read_log(&log, &ReadOptions { records: Records::Executions, ..ReadOptions::default() });
    assert_eq!(
        events,
        [
            "77 - @10 host -: execution a.b.C|run(String) to 20 1 1",
            "-7 - @10 node -: execution a.b.C|run(int) to 20 0 0",
            "77 - @10 vm -: execution a.b.C|run to 20 0 0",
        ]
    );
    assert_eq!((report.n_records, report.diagnostics.into_vec().len()), (4, 0));
}

#[test]
fn flow_events_are_read_with_their_variants() {
    let log = "$2;1;5;13;<no-session-id>;host;5;-1\n$3;2;2;5;0;public void a.C.x();a.D\n$5;3;3;5;1;public void a.C.x();a.D;b.E.y(int);b.E\n\
        $8;4;4;5;2;public a.F.<init>();a.F;99;[]\n$4;5;5;5;3;public a.F.<init>();a.F;broken\\;very\n$6;6;6;5;4\n\
        $2;7;6;14;<no-session-id>;host;5;4\n$7;8;8;5;1;9;0\n$9;1;host;cpu;0.5\n";
    let (events, report) = read_log(log, &ReadOptions::default());
    assert_eq!(
        events,
        [
            "5 - @1 host 13: begin",
            "5 0 @2 - -: entry a.D|x()",
            "5 1 @3 - -: call b.E|y(int) false",
            "5 2 @4 - -: entry a.F|<init>()",
            "5 3 @5 - -: exit a.F|<init>()",
            "6 - @7 host 14: begin by 5 at 4 false",
            "9 - @8 - -: begin by 5 at 1 true",
        ]
    );
    assert_eq!((report.n_records, report.n_events, report.diagnostics.count("unknown_record")), (9, 7, 2));
    assert_eq!(report.records_by_type["kieker.common.record.system.CPUUtilizationRecord"], 1);
    assert_eq!(report.records_by_type.values().sum::<u64>(), 9);
}

#[test]
fn of_what_is_recorded_twice_the_events_are_read() {
    // x is told by both, run by its execution only, y by its events only.
    let log = "$3;2;2;5;0;public void a.C.x();a.CSub\n$3;3;3;5;1;public void a.C.y();a.C\n$4;5;5;5;2;public void a.C.y();a.C\n\
        $4;8;8;5;3;public void a.C.x();a.CSub\n$1;9;public void a.C.x();<no-session-id>;77;1;9;host;1;1\n"
        .to_owned()
        + EXECUTION;
    let of = |records| {
        let (events, report) = read_log(&log, &ReadOptions { records, ..ReadOptions::default() });
        (events, report.diagnostics.count("recorded_twice"), report.diagnostics.count("events_skipped"))
    };
    let (events, twice, skipped) = of(Records::Auto);
    let executions = ["77 - @1 host -: execution a.C|x() to 9 1 1 elsewhere", "77 - @10 host -: execution a.b.C|run(String) to 20 1 1"];
    assert_eq!((events.len(), twice, skipped), (6, 1, 0));
    assert_eq!(events[4..], executions);
    let n_of = |records| {
        let (events, twice, skipped) = of(records);
        (events.len(), twice, skipped)
    };
    assert_eq!(n_of(Records::Both), (6, 0, 0));
    assert_eq!(n_of(Records::Executions), (2, 0, 4));
    assert_eq!(n_of(Records::Events), (4, 2, 0));
}

/// Kieker 1.4 wrote no classes, and what is no Java may have no parameters.
#[test]
fn events_without_classes_or_parameters_are_read() {
    let log = "$3;2;2;5;0;public void a.C.x()\n$5;3;3;5;1;void a.C.x();int b.E.y(int)\n$3;4;4;5;2;some_function;example.some_function\n";
    let strict = ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() };
    let (events, _) = read_log(log, &strict);
    let expected = ["0 @2 - -: entry a.C|x()", "1 @3 - -: call b.E|y(int) false", "2 @4 - -: entry example.some_function|some_function"];
    assert_eq!(events, expected.map(|event| format!("5 {event}")));
}

#[test]
fn byte_order_marks_are_no_part_of_records() {
    let (log, map) = (format!("\u{feff}{EXECUTION}"), "\u{feff}$1=kieker.common.record.controlflow.OperationExecutionRecord\n");
    let strict = ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() };
    let (events, report) = read_sources(&[("k/1.dat", log.as_bytes()), ("k/kieker.map", map.as_bytes())], &strict);
    assert_eq!(events, ["77 - @10 host -: execution a.b.C|run(String) to 20 1 1"]);
    assert_eq!(report.unwrap().n_records, 1);
}

#[test]
fn executions_alone_are_read_whatever_else_the_map_names() {
    let (events, report) = read_log(EXECUTION, &ReadOptions::default());
    assert_eq!(events, ["77 - @10 host -: execution a.b.C|run(String) to 20 1 1"]);
    assert_eq!(report.diagnostics.into_vec().len(), 0);
}

#[test]
fn executions_without_a_place_in_their_trace_are_requests_of_their_own() {
    let log = EXECUTION.replace(";77;", ";-1;").replace(";1;1\n", ";-1;-1\n").repeat(2) + &EXECUTION.replace(";1;1\n", ";-1;-1\n");
    let strict = ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() };
    let (events, report) = read_log(&log, &strict);
    let expected = [1, 2, 3].map(|line| format!("k/1.dat, line {line} - @10 host -: execution a.b.C|run(String) to 20 0 0"));
    assert_eq!((events, report.diagnostics.count("execution_without_place")), (expected.to_vec(), 3));
}

#[test]
fn the_unit_of_times_is_that_of_the_metadata() {
    let log = format!("$0;1;1.9;NAME;node;1;false;0;MICROSECONDS;1\n{EXECUTION}");
    let options = ReadOptions { records: Records::Both, ..ReadOptions::default() };
    assert!(read_log(&log, &options).0[0].contains("@10000 "));
    let asked = ReadOptions { time_unit: Some(TimeUnit::Milliseconds), ..options };
    assert!(read_log(&log, &asked).0[0].contains("@10000000 "));
}

fn packed(name: &str, pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<String> {
    let map = MAP.replace("BeforeOperation", "Other").replace("AfterOperation", "Other").replace("BeforeConstructor", "Other");
    let log = EXECUTION.repeat(3);
    let (log, map_bytes) = (pack(log.as_bytes()), map.as_bytes());
    read_sources(&[(name, &log), ("k/kieker.map", map_bytes)], &ReadOptions::default()).0
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let method = if name.ends_with(".dat") { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
        zip.start_file(*name, zip::write::SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// [`EXECUTION`] three times, packed by `xz -0`.
#[rustfmt::skip]
const XZ: &[u8] = &[
    253, 55, 122, 88, 90, 0, 0, 4, 230, 214, 180, 70, 2, 0, 33, 1, 12, 0, 0, 0, 143, 152, 65, 156,
    224, 0, 239, 0, 85, 93, 0, 18, 12, 67, 214, 133, 14, 218, 90, 72, 57, 215, 192, 151, 203, 152, 234, 123,
    91, 76, 161, 116, 166, 168, 57, 247, 240, 52, 58, 126, 173, 158, 37, 102, 72, 141, 160, 74, 16, 157, 217, 99,
    61, 161, 54, 63, 164, 36, 150, 88, 62, 119, 72, 236, 134, 66, 193, 43, 135, 23, 234, 151, 144, 134, 179, 82,
    216, 0, 159, 70, 19, 233, 196, 242, 154, 100, 44, 181, 48, 112, 242, 47, 79, 156, 0, 0, 0, 0, 0, 0,
    240, 31, 69, 33, 119, 207, 227, 79, 0, 1, 113, 240, 1, 0, 0, 0, 129, 61, 163, 243, 177, 196, 103, 251,
    2, 0, 0, 0, 0, 4, 89, 90,
];

#[test]
fn every_packing_reads_alike() {
    let plain = packed("k/1.dat", <[u8]>::to_vec);
    assert_eq!(plain.len(), 3);
    assert_eq!(packed("k/1.dat.gz", gzip), plain);
    assert_eq!(packed("k/1.dat.df", zlib), plain);
    assert_eq!(packed("k/1.dat.xz", |_| XZ.to_vec()), plain);
    let map = "$1=kieker.common.record.controlflow.OperationExecutionRecord\n";
    let log = EXECUTION.repeat(3);
    let zip = zip_of(&[("log/1.dat", log.as_bytes()), ("log/kieker.map", map.as_bytes()), ("readme.txt", b"no log")]);
    assert_eq!(read_sources(&[("log.zip", &zip)], &ReadOptions::default()).0, plain);
    // As an upload has it, without an ending.
    assert_eq!(read_sources(&[("trace", &zip)], &ReadOptions::default()).0, plain);
}

#[test]
fn a_small_file_cannot_fill_the_memory() {
    let log = EXECUTION.repeat(10_000);
    let map = "$1=kieker.common.record.controlflow.OperationExecutionRecord\n";
    let small = ReadOptions { limit_bytes: 1000, ..ReadOptions::default() };
    let zip = zip_of(&[("log/1.dat", log.as_bytes()), ("log/kieker.map", map.as_bytes())]);
    for (name, bytes) in
        [("k/1.dat.gz", gzip(log.as_bytes())), ("k/1.dat.df", zlib(log.as_bytes())), ("k/1.zip", zip), ("k/1.xz", XZ.to_vec())]
    {
        let limit = if name == "k/1.xz" { ReadOptions { limit_bytes: 100, ..small } } else { small };
        let error = read_sources(&[(name, &bytes), ("k/kieker.map", map.as_bytes())], &limit).1.unwrap_err();
        assert!(matches!(error, ReadError::Unreadable { .. }), "{name}: {error}");
    }
    let no_dictionary = ReadOptions { limit_memory_bytes: 1 << 12, ..ReadOptions::default() };
    assert!(matches!(read_sources(&[("k/1.xz", XZ)], &no_dictionary).1.unwrap_err(), ReadError::Unreadable { .. }));
}

#[test]
fn several_folders_have_their_own_maps() {
    let other = "$1=kieker.common.record.flow.trace.operation.BeforeOperationEvent\n";
    let sources: [(&str, &[u8]); 4] = [
        ("a/1.dat", EXECUTION.as_bytes()),
        ("a/kieker.map", b"$1=kieker.common.record.controlflow.OperationExecutionRecord\n"),
        ("b/1.dat", b"$1;2;2;5;0;public void a.C.x();a.D\n"),
        ("b/kieker.map", other.as_bytes()),
    ];
    let (events, _) = read_sources(&sources, &ReadOptions::default());
    assert_eq!(events, ["77 - @10 host -: execution a.b.C|run(String) to 20 1 1", "5 0 @2 - -: entry a.D|x()"]);
}

#[test]
fn bad_records_are_told_by_line_and_field_or_counted() {
    let check = |record: &str, expected: &str| {
        let log = format!("{record}\n{EXECUTION}");
        let options = ReadOptions { records: Records::Both, ..ReadOptions::default() };
        let (events, report) = read_log(&log, &options);
        assert_eq!((events.len(), report.diagnostics.count("bad_row")), (1, 1), "{record}");
        let strict = ReadOptions { bad_rows: BadRows::Reject, ..options };
        let error = read_sources(&[("k/1.dat", log.as_bytes()), ("k/kieker.map", MAP.as_bytes())], &strict).1.unwrap_err();
        assert_eq!(error.to_string(), format!("k/1.dat, line 1: {expected}"));
    };
    check("$1;30;a.C.x();S;77;10;x;h;1;1", "field 7 of $1 is \"x\", expected a whole number of time units");
    check("$1;30;a.C.x();S;77;10;9;h;1;1", "field 7 of $1 is \"9\", expected a time of exit that is not before that of entry");
    check("$1;30;a.C.x();S;77;10;20;h;-2;0", "field 9 of $1 is \"-2\", expected an execution order index, 0 or more, or -1");
    check("$1;30;a.C.x();S;77;10;20;h;0;", "field 10 of $1 is missing, expected an execution stack size, 0 or more, or -1");
    check("$1;30;a.C.x()", "row is \"3 fields long\", expected 10 fields (or 11, with an experiment id)");
    check("$3;1;1;;0;a.C.x();a.C", "field 4 of $3 is missing, expected the ID of a trace");
    check("$1;30;nonsense;S;77;10;20;;0;0", "field 3 of $1 is \"nonsense\", expected an operation with its class, as no host is named");
    check("$1;30;;S;77;10;20;h;0;0", "field 3 of $1 is missing, expected the signature of an operation");
    // What is left of a record that was cut off.
    let parameters = "expected the class of the operation, whose parameters are missing, too";
    check("$3;1;20;7;1;void S.C", &format!("field 7 of $3 is missing, {parameters}"));
    check("$3;1;20;7;1;void S.C;", &format!("field 7 of $3 is missing, {parameters}"));
    check("$3;1;20;7;1;void S.C.g();S.", "field 7 of $3 is \"S.\", expected a class that may have the operation");
    check("$3;1;20;7;1;void a.S.C.g();a.S", "field 7 of $3 is \"a.S\", expected a class that may have the operation");
    check("$3;1;20;7;1;g()", "field 7 of $3 is missing, expected the class of the operation");
    check("$5;1;20;7;1;void S.B.s();S.B;public kie", &format!("field 9 of $5 is missing, {parameters}"));
    check("$5;1;20;7;1;void S.B.s();S.B", &format!("field 8 of $5 is missing, {parameters}"));
    check("$77;1", "field 1 of $77 is \"$77\", expected the ID of a type that kieker.map names");
}

proptest! {
    #[test]
    fn any_lines_are_read_or_counted(lines in prop::collection::vec("(\\$[0-9];)?[ -~]{0,60}", 1..20)) {
        let log = lines.join("\n");
        let (events, report) = read_sources(&[("k/1.dat", log.as_bytes()), ("k/kieker.map", MAP.as_bytes())], &ReadOptions::default());
        if let Ok(report) = report {
            prop_assert_eq!(report.n_events, events.len() as u64);
            let skipped = ["bad_row", "unknown_record"].map(|code| report.diagnostics.count(code)).iter().sum::<u64>();
            prop_assert!(report.n_events + skipped <= report.n_records, "{:?}", report);
        }
    }
}
