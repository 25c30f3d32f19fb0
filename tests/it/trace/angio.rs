//! Angio traces: forms, order of columns, bad input; and the whole way from a file to a model.

use std::io::{Read, Write};

use layerfit::{
    structure::{
        Demands, ExtractOptions,
        interactions::Interactions,
        tlc::{Tlc, TlcOptions},
        to_model,
    },
    trace::{
        BadRows,
        angio::{AngioEvent, AngioKind, ReadError, ReadOptions, read_angio},
        diagnostics::Diagnostics,
    },
};

/// Events in a short form, `a:1.4 Activity B.1`, with what else they say; and the diagnostics.
fn read(reader: impl Read, options: &ReadOptions) -> (Result<Vec<String>, ReadError>, Diagnostics) {
    let (mut events, mut diagnostics) = (Vec::new(), Diagnostics::default());
    let mut sink = |event: AngioEvent<'_>| {
        let AngioEvent { scenario, trace, thread, thread_node, task, task_node, service, operation, activity, .. } = event;
        let kind = match event.kind {
            AngioKind::Fork { child_thread } => format!("Fork{child_thread}"),
            kind => format!("{kind:?}"),
        };
        let time = event.time.map_or(String::new(), |time| time.to_string());
        let number = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
        let more = [trace, service, operation, activity, &time, &number(event.demand), &number(event.weight)].join("|");
        let more = if more == "||||||" { String::new() } else { format!(" {more}") };
        events.push(format!("{scenario}:{thread}.{thread_node} {kind} {task}.{task_node}{more}"));
    };
    let result = read_angio("log.csv", reader, options, &mut diagnostics, &mut sink);
    (result.map(|()| events), diagnostics)
}

fn check(text: &str, expected: &[&str]) -> Diagnostics {
    let (events, diagnostics) = read(text.as_bytes(), &ReadOptions::default());
    assert_eq!(events.unwrap(), expected, "{text}");
    diagnostics
}

/// The one row is bad; both ways of dealing with it.
fn check_bad(text: &str, expected: &str) {
    let (events, diagnostics) = read(text.as_bytes(), &ReadOptions::default());
    assert_eq!(events.unwrap().len(), 0, "{text}");
    assert_eq!(diagnostics.count("bad_row"), 1, "{text}");
    assert_eq!(diagnostics.into_vec()[0].examples, [expected]);
    let strict = ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() };
    assert_eq!(read(text.as_bytes(), &strict).0.unwrap_err().to_string(), expected);
}

fn check_error(text: &str, expected: &str) {
    let error = read(text.as_bytes(), &ReadOptions::default()).0.unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
}

const HEADER: &str = "scenario,thread,thread_node,kind,child_thread,task,task_node";

#[test]
fn csv_in_any_order_with_any_separator() {
    let expected = ["a:1.1 Begin A.1", "a:1.2 Fork2 A.2", "a:1.3 End A.3"];
    check(&format!("{HEADER}\na,1,1,begin,,A,1\na,1,2,fork,2,A,2\na,1,3,end,,A,3\n"), &expected);
    check(
        "# made by hand\n\nTask;Task Node;Thread;Thread-Node;KIND;Child;Scenario\r\nA;1;1;1;Be;;a\r\n\r\n# on\r\n A ; 2;1;2;FK;2;a\r\nA;3;1;3;Ed;;a",
        &expected,
    );
    let tabs = format!("\u{feff}{HEADER}\na,1,1,BEGIN,,A,1\na,1,2,Fork,2,A,2\na,1,3,END,,A,3").replace(',', "\t");
    check(&tabs, &expected);
}

#[test]
fn optional_columns_are_read() {
    let text =
        format!("{HEADER},trace,service,operation,activity,time,demand,weight\n\"a, b\",1,1,activity,,A,7,t1,S,get,look up,12.5,3e2,0.5\n");
    check(&text, &["a, b:1.1 Activity A.7 t1|S|get|look up|12.5|300|0.5"]);
}

#[test]
fn json_lines_are_the_same_events() {
    let text = "{\"scenario\":\"a\",\"thread\":1,\"thread_node\":2,\"kind\":\"fork\",\"child_thread\":2,\"task\":\"A\\u0042\",\"task_node\":\"3\"}\n\
                \n# a comment\n\
                {\"task_node\":18446744073709551615,\"scenario\":\"a\",\"thread\":1,\"thread_node\":3,\"kind\":\"Ac\",\"child_thread\":null,\"task\":\"A\",\"time\":1693412345123456789,\"demand\":0.25,\"trace\":\"t\"}\n";
    check(text, &["a:1.2 Fork2 AB.3", "a:1.3 Activity A.18446744073709551615 t||||1693412345123456789|0.25|"]);
}

#[test]
fn compressed_and_over_long_input() {
    let text = format!("{HEADER}\na,1,1,begin,,A,1\n");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    let bytes = encoder.finish().unwrap();
    assert_eq!(read(bytes.as_slice(), &ReadOptions::default()).0.unwrap(), ["a:1.1 Begin A.1"]);
    let short = ReadOptions { limit_bytes: text.len() as u64 - 1, ..ReadOptions::default() };
    for bytes in [bytes.as_slice(), text.as_bytes()] {
        assert!(matches!(read(bytes, &short).0, Err(ReadError::Unreadable { .. })));
    }
    let broken = &bytes[..bytes.len() - 4];
    assert!(matches!(read(broken, &ReadOptions::default()).0, Err(ReadError::Unreadable { .. })));
}

#[test]
fn bad_rows_name_line_and_field() {
    let row = |row: &str| format!("# one\n{HEADER}\n\n{row}\n");
    check_bad(&row("a,1,1,begin,,,1"), "log.csv, line 4: task is missing, expected the name of a task");
    check_bad(&row("a,x,1,begin,,A,1"), "log.csv, line 4: thread is \"x\", expected a whole number, 0 or more");
    check_bad(&row("a,1,0,begin,,A,1"), "log.csv, line 4: thread_node is \"0\", expected a whole number, 1 or more");
    check_bad(&row("a,1,1,begin,,A,-2"), "log.csv, line 4: task_node is \"-2\", expected a whole number, 1 or more");
    check_bad(&row("a,1,1,join,,A,1"), "log.csv, line 4: kind is \"join\", expected begin, activity, fork or end");
    check_bad(&row("a,1,1,fork,,A,1"), "log.csv, line 4: child_thread is missing, expected the thread that the fork starts");
    check_bad(&row("a,1,1,end,3,A,1"), "log.csv, line 4: child_thread is \"3\", expected nothing, as only a fork starts a thread");
    check_bad(
        &row("a,1,1,end"),
        "log.csv, line 4: row is 4 fields long, expected 7 fields (scenario, thread, thread_node, kind, child_thread, task, task_node)",
    );
    let timed = |values: &str| format!("{HEADER},time,demand,weight\na,1,1,begin,,A,1,{values}\n");
    check_bad(&timed("soon,,"), "log.csv, line 2: time is \"soon\", expected a time (a number of ticks)");
    check_bad(&timed(",-1,"), "log.csv, line 2: demand is \"-1\", expected a number of ticks, 0 or more");
    check_bad(&timed(",inf,"), "log.csv, line 2: demand is \"inf\", expected a number of ticks, 0 or more");
    check_bad(&timed(",,0"), "log.csv, line 2: weight is \"0\", expected a number above 0");
}

#[test]
fn bad_json_names_line_and_field() {
    let object = "{\"scenario\":\"a\",\"thread\":1,\"thread_node\":1,\"kind\":\"end\",\"task\":\"A\",\"task_node\":1";
    let line = |more: &str| format!("\n{object}{more}\n");
    check(&line("}"), &["a:1.1 End A.1"]);
    check_bad(&line(",\"time\":true}"), "log.csv, line 2: time is true or false, expected a text or a number");
    check_bad(&line(",\"demand\":[[1],{}]}"), "log.csv, line 2: demand is a list, expected a text or a number");
    check_bad(&line(",\"service\":{\"a\":{}}}"), "log.csv, line 2: service is an object, expected a text or a number");
    check_bad(&line(",\"task\":\"B\"}"), "log.csv, line 2: task is said twice, expected each field once");
    check_bad("{\"scenario\":\"a\"}\n", "log.csv, line 1: kind is missing, expected begin, activity, fork or end");
    let text = line("");
    let (events, diagnostics) = read(text.as_bytes(), &ReadOptions::default());
    assert_eq!((events.unwrap().len(), diagnostics.count("bad_row")), (0, 1));
    assert!(diagnostics.into_vec()[0].examples[0].starts_with("log.csv, line 2: row is \"{"));
}

#[test]
fn good_rows_around_bad_ones_are_read() {
    let text = format!("{HEADER}\na,1,1,begin,,A,1\na,1,oops,begin,,A,2\na,\"1\n\",1,fork,\"\n2\",A,3\na,1,3,end,,\"A\n,4\n");
    let (events, diagnostics) = read(text.as_bytes(), &ReadOptions::default());
    assert_eq!(events.unwrap(), ["a:1.1 Begin A.1", "a:1.1 Fork2 A.3"]);
    // A quote that is left open costs its line, and what follows is read on.
    assert_eq!(diagnostics.count("bad_row"), 3);
    let bad = diagnostics.into_vec();
    assert_eq!(bad[0].examples[1], "log.csv, line 7: row is open after a quote, expected a quote that closes it");
    assert!(bad[0].examples[2].starts_with("log.csv, line 8: row is 2 fields long"), "{:?}", bad[0].examples);
}

#[test]
fn unusable_input_is_an_error() {
    check_error("", "log.csv is empty: expected scenario, thread");
    check_error("# nothing\n\n", "log.csv is empty");
    check_error("1,2,3\n", "log.csv, line 1: \"1,2,3\" is not a header; expected scenario");
    check_error("\nscenario,thread,task\n", "log.csv, line 2: the header lacks thread_node, kind, task_node; expected");
    check_error("scenario,thread,thread_node,kind,task,task_node,entry,operation\n", "log.csv, line 1: column \"operation\" says the same");
    check_error("\u{fffd}\u{0}\n", "log.csv, line 1: \"");
}

#[test]
fn unknown_columns_are_told_or_refused() {
    let text = format!("{HEADER},colour\na,1,1,begin,,A,1,red\n");
    assert_eq!(check(&text, &["a:1.1 Begin A.1"]).count("unknown_column"), 1);
    let strict = ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() };
    let error = read(text.as_bytes(), &strict).0.unwrap_err().to_string();
    assert!(error.starts_with("log.csv, line 1: column \"colour\" is not known; expected"), "{error}");
}

/// From the example file to a model, as the documentation has it.
#[test]
fn figure_3_from_file_to_model() {
    let text = include_str!("../../../examples/angio/figure-3.csv");
    let (mut tlc, mut found, mut diagnostics) = (Tlc::new(TlcOptions::default()), Interactions::default(), Diagnostics::default());
    let mut sink = |event: AngioEvent<'_>| tlc.feed(&event, &mut |batch| found.merge(batch));
    read_angio("figure-3.csv", text.as_bytes(), &ReadOptions::default(), &mut diagnostics, &mut sink).unwrap();
    let report = tlc.finish(&mut |batch| found.merge(batch));
    assert_eq!((report.events.read, report.events.used), (11, 11));
    let options = ExtractOptions { demands: Demands::SelfTimes, ..ExtractOptions::default() };
    let model = to_model("figure-3", found, &options).unwrap().model;
    let said: Vec<String> = model
        .tasks
        .iter()
        .flat_map(|task| &task.entries)
        .map(|entry| {
            let activity = &entry.phases[0].activity;
            let calls: Vec<String> = activity.calls.iter().map(|call| format!(" {:?} {} {}", call.kind, call.mean, call.dest)).collect();
            format!("{} {}{}", entry.name, activity.host_demand, calls.concat())
        })
        .collect();
    assert_eq!(
        said,
        ["a.1 0.001 Sync 1 A.place_order", "A.place_order 0.0003 Sync 1 B.reserve", "B.reserve 0.0005 Async 1 C.notify", "C.notify 0.002"]
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["templates"]["i"], 1);
    assert_eq!(json["entries"][2]["phases"][0]["sequences"][0]["activities"][0], "send mail");
}
