//! Event traces: forms, names of fields, bad input.

use std::io::{Read, Write};

use layerfit::trace::{
    BadRows,
    diagnostics::Diagnostics,
    event_trace::{Event, EventKind, EventTraceError, ReadOptions, read_event_trace},
};
use proptest::prelude::*;

/// `1.2.3 Fo>4! A.a /0.5`: operation, thread, index, kind, spawned thread, reply, place, CPU.
fn shown(event: &Event<'_>) -> String {
    let Event { operation, thread, index, kind, task, entry, .. } = event;
    let next = event.next_thread.map_or(String::new(), |next| format!(">{next}"));
    let ack = event.ack.map_or("", |ack| if ack { "!" } else { "-" });
    let cpu = event.cpu_ticks.map_or(String::new(), |cpu| format!(" /{cpu}"));
    format!("{operation}.{thread}.{index} {}{next}{ack} {task}.{entry}{cpu}", kind.label())
}

fn read(bytes: &[u8], options: &ReadOptions) -> Result<(Vec<String>, Diagnostics), EventTraceError> {
    let (mut events, mut diagnostics) = (Vec::new(), Diagnostics::default());
    read_event_trace("dir/e.csv", bytes, options, &mut diagnostics, &mut |event| events.push(shown(event)))?;
    Ok((events, diagnostics))
}

fn lenient(text: &str) -> (Vec<String>, Diagnostics) {
    read(text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn strict(text: &str) -> Result<Vec<String>, String> {
    let options = ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() };
    read(text.as_bytes(), &options).map(|(events, _)| events).map_err(|error| error.to_string())
}

const HEADER: &str = "operation,thread,next_thread,event,type,task,entry,ack,cpu\n";

const EVENTS: [&str; 5] = ["7.1.1 Ex A.a", "7.1.2 Fo>2! A.a /0.25", "7.1.3 En A.a", "7.2.1 Be B.b", "7.2.2 En B.b /3"];

#[test]
fn all_forms_say_the_same() {
    let comma = format!("{HEADER}7,1,,1,Ex,A,a,,\n7,1,2,2,Fo,A,a,true,0.25\n7,1,,3,En,A,a,,\n7,2,,1,Be,B,b,,\n7,2,,2,En,B,b,,3\n");
    let tabs = comma.replace(',', "\t");
    let semicolons = comma.replace(',', ";").replace('\n', "\r\n");
    let reordered = "# instrumented run\n\nCPU , entry,Task,Thread.Next,thread-current,event type,Event Index,op,Ack\n\
                     , a, A,, 1, external, 1, 7,\n0.25,a,A,2,1,FORK,2,7,yes\n\n,a,A,9,1,End,3,7,1\n# in between\n,b,B,,2,begin,1,7,\n3,\"b\",B,,2,En,2,7,\n";
    let json = "{\"operation\":7,\"thread\":1,\"event\":1,\"type\":\"Ex\",\"task\":\"A\",\"entry\":\"a\"}\n\
                {\"operation\":\"7\",\"thread\":1,\"next_thread\":2,\"event\":2,\"type\":\"Fo\",\"task\":\"A\",\"entry\":\"a\",\"ack\":true,\"cpu\":0.25}\n\n\
                {\"op\":7,\"thread.current\":1,\"thread.next\":null,\"index\":3,\"kind\":\"End\",\"task\":\"\\u0041\",\"entry\":\"a\",\"ack\":null}\n\
                {\"operation\":7,\"thread\":2,\"next_thread\":\"\",\"event\":1,\"type\":\"Be\",\"task\":\"B\",\"entry\":\"b\",\"cpu\":null}\n\
                {\"operation\":7,\"thread\":2,\"event\":2,\"type\":\"En\",\"task\":\"B\",\"entry\":\"b\",\"cpu\":3}";
    for text in [comma.as_str(), &tabs, &semicolons, reordered, json, &format!("\u{feff}{comma}"), comma.trim_end()] {
        let (events, diagnostics) = lenient(text);
        assert_eq!(events, EVENTS, "{text}");
        assert_eq!(diagnostics, Diagnostics::default(), "{text}");
        assert_eq!(strict(text).unwrap(), EVENTS);
    }
}

#[test]
fn gzip_reads_as_plain_and_stops_at_the_limit() {
    let text = format!("{HEADER}{}", "7,1,,1,Ex,A,a,,\n".repeat(1000));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    let zipped = encoder.finish().unwrap();
    let options = |limit_bytes| ReadOptions { limit_bytes, ..ReadOptions::default() };
    assert_eq!(read(&zipped, &options(text.len() as u64)).unwrap().0.len(), 1000);
    assert!(matches!(read(&zipped, &options(text.len() as u64 - 1)), Err(EventTraceError::Unreadable { .. })));
    assert!(matches!(read(&zipped[..zipped.len() / 2], &options(1 << 20)), Err(EventTraceError::Unreadable { .. })));
}

#[test]
fn every_label_and_long_name_is_known_in_any_case() {
    let names = ["Ex External", "Be Begin", "Ac Activity", "Fo Fork", "Se Send", "Re Receive", "Sa SendAck", "Ra ReceiveAck", "En End"];
    for pair in names {
        let (label, name) = pair.split_once(' ').unwrap();
        let kind = EventKind::parse(label).unwrap();
        assert_eq!(kind.label(), label);
        for spelling in [name.to_owned(), name.to_uppercase(), label.to_lowercase(), format!("{}_", label)] {
            assert_eq!(EventKind::parse(&spelling), Some(kind), "{spelling}");
        }
    }
    assert_eq!(EventKind::parse("send_ack"), Some(EventKind::SendAck));
    for other in ["", "E", "Ext", "Sends", "Sé"] {
        assert_eq!(EventKind::parse(other), None, "{other}");
    }
}

#[track_caller]
fn bad(row: &str, message: &str) {
    let text = format!("{HEADER}1,1,,1,Ex,A,a,,\n{row}\n1,1,,2,En,A,a,,\n");
    assert_eq!(strict(&text).unwrap_err(), format!("dir/e.csv, line 3: {message}"));
    let (events, diagnostics) = lenient(&text);
    assert_eq!((events.len(), diagnostics.count("bad_row")), (2, 1));
    assert_eq!(diagnostics.into_vec()[0].examples, [format!("dir/e.csv, line 3: {message}")]);
}

#[test]
fn bad_rows_are_named_and_counted_or_refused() {
    bad("x,1,,1,Ex,A,a,,", "operation is \"x\", expected a whole number, 0 or more");
    bad("-1,1,,1,Ex,A,a,,", "operation is \"-1\", expected a whole number, 0 or more");
    bad("1,+1,,1,Ex,A,a,,", "thread is \"+1\", expected a whole number, 0 or more");
    bad("1,18446744073709551616,,1,Ex,A,a,,", "thread is \"18446744073709551616\", expected a whole number, 0 or more");
    bad("1,1,,0,Ex,A,a,,", "event is \"0\", expected a whole number, 1 or more");
    bad("1,1,,,Ex,A,a,,", "event is missing, expected a whole number, 1 or more");
    bad("1,1,,1,Xx,A,a,,", "type is \"Xx\", expected Ex, Be, Ac, Fo, Se, Re, Sa, Ra or En");
    bad("1,1,,1,,A,a,,", "type is missing, expected Ex, Be, Ac, Fo, Se, Re, Sa, Ra or En");
    bad("1,1,,1,Fo,A,a,,", "next_thread is missing, expected the whole number of the spawned thread");
    bad("1,1,2,1,Fo,A,a,maybe,", "ack is \"maybe\", expected true or false");
    bad("1,1,,1,Ac,,a,,", "task is missing, expected the name of a task");
    bad("1,1,,1,Ac,A,,,", "entry is missing, expected the name of an entry");
    bad("1,1,,1,Ac,A,a,,-1", "cpu is \"-1\", expected a number of ticks, 0 or more");
    bad("1,1,,1,Ac,A,a,,inf", "cpu is \"inf\", expected a number of ticks, 0 or more");
    bad("1,1,,1,Ac,A,a", "row is 7 fields long, expected 9 fields (operation, thread, next_thread, event, type, task, entry, ack, cpu)");
}

#[track_caller]
fn bad_json(row: &str, message: &str) {
    let good = "{\"operation\":1,\"thread\":1,\"event\":1,\"type\":\"Ex\",\"task\":\"A\",\"entry\":\"a\"}";
    let text = format!("{good}\n{row}\n{good}\n");
    assert_eq!(strict(&text).unwrap_err(), format!("dir/e.csv, line 2: {message}"));
    let (events, diagnostics) = lenient(&text);
    assert_eq!((events.len(), diagnostics.count("bad_row")), (2, 1));
}

#[test]
fn bad_json_lines_are_named_and_counted_or_refused() {
    bad_json("{\"operation\":1", "row, column 14 is \"{\"operation\":1\", expected a JSON object (EOF while parsing an object)");
    bad_json("[1]", "row, column 0 is \"[1]\", expected a JSON object (invalid type: sequence, expected an object)");
    bad_json(
        "{\"operation\":1.5,\"thread\":1,\"event\":1,\"type\":\"Ex\",\"task\":\"A\",\"entry\":\"a\"}",
        "operation is 1.5, expected a whole number, 0 or more",
    );
    bad_json(
        "{\"operation\":1,\"thread\":[1],\"event\":1,\"type\":\"Ex\",\"task\":\"A\",\"entry\":\"a\"}",
        "thread is a list, expected a whole number, 0 or more",
    );
    bad_json(
        "{\"operation\":1,\"thread\":1,\"event\":1,\"type\":\"Ac\",\"task\":5,\"entry\":\"a\"}",
        "task is 5, expected the name of a task",
    );
    bad_json(
        "{\"operation\":1,\"thread\":1,\"event\":1,\"type\":\"Ac\",\"task\":\"A\",\"entry\":\"a\",\"cpu\":true}",
        "cpu is true, expected a number of ticks, 0 or more",
    );
}

#[test]
fn unusable_headers_and_empty_traces_are_errors() {
    assert_eq!(strict("").unwrap_err(), "dir/e.csv is empty: expected a CSV with a header, or JSON lines");
    assert_eq!(strict("\n# nothing\n").unwrap_err(), "dir/e.csv is empty: expected a CSV with a header, or JSON lines");
    let error = strict("# c\n1,2,3\n").unwrap_err();
    assert!(error.starts_with("dir/e.csv, line 2: \"1,2,3\" is not a header; expected operation, thread"), "{error}");
    let error = strict("operation,thread,type,task\n").unwrap_err();
    assert!(error.starts_with("dir/e.csv, line 1: the header lacks event, entry; expected"), "{error}");
    let error = strict("operation,op,thread,event,type,task,entry\n").unwrap_err();
    assert!(error.contains("column \"op\" says the same as an earlier column"), "{error}");
    let with_host = HEADER.replace("cpu", "host");
    assert!(strict(&with_host).unwrap_err().contains("column \"host\" is not known"));
    let (events, diagnostics) = lenient(&format!("{with_host}1,1,,1,Ex,A,a,,here\n"));
    assert_eq!((events.len(), diagnostics.count("unknown_column")), (1, 1));
    assert!(read(&[b'{'; 2 << 20], &ReadOptions::default()).is_err(), "a line without an end");
}

/// A reader that hands over few bytes at a time, as a network does.
struct Slow<'b>(&'b [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = buffer.len().min(3).min(self.0.len());
        let (now, later) = self.0.split_at(n);
        buffer[..n].copy_from_slice(now);
        self.0 = later;
        Ok(n)
    }
}

#[test]
fn a_slow_stream_reads_alike() {
    let text = format!("{HEADER}7,1,,1,Ex,A,a,,\n7,1,,2,En,A,a,,\n");
    let mut n_events = 0;
    read_event_trace("e", Slow(text.as_bytes()), &ReadOptions::default(), &mut Diagnostics::default(), &mut |_| n_events += 1).unwrap();
    assert_eq!(n_events, 2);
}

proptest! {
    /// Any bytes are read, counted or refused; every row after a header is an event or a bad row.
    #[test]
    fn any_bytes_are_taken_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), with_header in any::<bool>()) {
        let bytes = if with_header { [HEADER.as_bytes(), &bytes].concat() } else { bytes };
        let _ = read(&bytes, &ReadOptions::default());
    }

    #[test]
    fn every_line_is_an_event_or_a_bad_row(lines in prop::collection::vec("[1-3a,]{0,3},[12]?,,[12],(Ex|En|Q),A,b,,[0-9.]{0,2}", 0..20)) {
        let (events, diagnostics) = lenient(&format!("{HEADER}{}\n", lines.join("\n")));
        prop_assert_eq!(events.len() as u64 + diagnostics.count("bad_row"), lines.len() as u64);
    }
}
