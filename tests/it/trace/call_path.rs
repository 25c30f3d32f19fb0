//! Reading call-path records.

use layerfit::trace::{
    BadRows, Source,
    call_path::{Boundaries, ReadError, ReadOptions, ReadReport, Texts, TimeUnit, read},
};
use proptest::prelude::*;

/// Events in short, one a line, and what was odd.
fn read_all(text: &[u8], options: &ReadOptions) -> (Vec<String>, Result<ReadReport, ReadError>) {
    let (mut texts, mut events) = (Texts::default(), Vec::new());
    let report = read(&[Source { name: "r.csv", bytes: text }], options, &mut texts, &mut |_, event| {
        let (transaction, order) = (event.transaction.map(|t| t.to_string()).unwrap_or_default(), event.order);
        events.push(format!(
            "{} {transaction} {order:?} {} {:?} {:?} {:?}",
            event.context, event.time_ns, event.server, event.thread, event.kind
        ));
    });
    (events, report)
}

fn strict() -> ReadOptions {
    ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() }
}

const CSV: &str = "record_id,time,kind,component,method,context_id,transaction_id,server,thread,params,action,message_id\n\
    1,10,entry,A,x,c1,t1,s,7,n=3|who=me,branch(2),\n2,12,send,B,y,c1,t1,s,7,,,m\n3,20,exit,A,x,c1,t1,s,7,,,\n";

#[test]
fn columns_stand_in_any_order_with_any_separator_and_json_lines_say_the_same() {
    let (plain, report) = read_all(CSV.as_bytes(), &strict());
    assert_eq!(report.unwrap().n_events, 3);
    assert_eq!(
        plain[0],
        "c1 t1 Some(1) 10 Some(4) Some(5) Entry { location: 0, action: Some(Branch(2)), params: [(\"n\", \"3\"), (\"who\", \"me\")] }"
            .replace("Some(4) Some(5)", "Some(2) Some(3)")
    );
    for separator in [";", "\t"] {
        assert_eq!(read_all(CSV.replace(',', separator).as_bytes(), &strict()).0, plain);
    }
    let turned: String = CSV.lines().map(|line| line.split(',').rev().collect::<Vec<_>>().join(",") + "\n").collect();
    assert_eq!(read_all(turned.as_bytes(), &strict()).0, plain);
    let json = "{\"record_id\":1,\"time\":10,\"kind\":\"entry\",\"component\":\"A\",\"method\":\"x\",\"context_id\":\"c1\",\"transaction_id\":\"t1\",\
        \"server\":\"s\",\"thread\":7,\"params\":{\"n\":3,\"who\":\"me\"},\"action\":\"branch(2)\"}\n\n\
        {\"record_id\":\"2\",\"time\":12,\"kind\":\"send\",\"component\":\"B\",\"method\":\"y\",\"context_id\":\"c1\",\"transaction_id\":\"t1\",\
        \"server\":\"s\",\"thread\":\"7\",\"message_id\":\"m\"}\n\
        {\"id\":null,\"seq\":3,\"time\":20,\"kind\":\"exit\",\"class\":\"A\",\"method\":\"x\",\"trace_id\":\"c1\",\"transaction\":\"t1\",\"host\":\"s\",\"thread\":7}\n";
    let json = json.replace("\"id\":null,", "");
    assert_eq!(read_all(json.as_bytes(), &strict()).0, plain);
}

#[test]
fn times_have_a_unit_and_may_have_a_fraction() {
    let csv = "time,kind,component,method,context_id\n1693412345.123456789,entry,A,x,1\n-1.5,exit,A,x,1\n";
    let (events, _) = read_all(csv.as_bytes(), &ReadOptions { time_unit: TimeUnit::Seconds, ..strict() });
    assert!(events[0].starts_with("1  None 1693412345123456789 "), "{}", events[0]);
    assert!(events[1].starts_with("1  None -1500000000 "), "{}", events[1]);
}

#[test]
fn bad_times_are_told_by_the_unit_that_they_are_in() {
    let csv = "time,kind,component,method,context_id\nsoon,entry,A,x,c\n";
    let (_, rejected) = read_all(csv.as_bytes(), &ReadOptions { time_unit: TimeUnit::Milliseconds, ..strict() });
    assert_eq!(rejected.unwrap_err().to_string(), "r.csv, line 2: time is \"soon\", expected a time (a number of milliseconds)");
}

/// The message about the one bad row of a log, which strict reading ends with and lenient reading counts.
fn check_bad(row: &str, expected: &str) {
    let csv = format!("record_id,time,kind,component,method,context_id,action,params\n1,10,entry,A,x,c,,\n{row}\n2,20,exit,A,x,c,,\n");
    let (_, rejected) = read_all(csv.as_bytes(), &strict());
    assert_eq!(rejected.unwrap_err().to_string(), format!("r.csv, line 3: {expected}"));
    let (events, counted) = read_all(csv.as_bytes(), &ReadOptions::default());
    let report = counted.unwrap();
    assert_eq!((events.len(), report.n_rows, report.diagnostics.count("bad_row")), (2, 3, 1));
}

#[test]
fn bad_rows_are_told_by_line_and_field_or_counted() {
    check_bad("1,soon,entry,A,x,c,,", "time is \"soon\", expected a time (a number of nanoseconds)");
    check_bad("1,10,begin,A,x,c,,", "kind is \"begin\", expected entry, exit, call, return, send or receive");
    check_bad("1,10,entry,A,x,,,", "context_id is missing, expected what the records of one system request share");
    check_bad("1,10,entry,,x,c,,", "component is missing, expected the name of a component class");
    check_bad("-1,10,entry,A,x,c,,", "record_id is \"-1\", expected a whole number, 0 or more");
    check_bad("1,10,entry,A,x,c,jump,", "action is \"jump\", expected internal, branch(I), loop or iteration");
    check_bad("1,10,entry,A,x,c,,7", "params is \"7\", expected name=value with | between them, or a JSON object");
    check_bad(
        "1,10,entry,A",
        "row is 4 fields long, expected 8 fields (record_id, time, kind, component, method, context_id, action, params)",
    );
}

#[test]
fn what_is_no_log_is_an_error() {
    let check = |text: &str, beginning: &str| {
        let error = read_all(text.as_bytes(), &ReadOptions::default()).1.unwrap_err().to_string();
        assert!(error.starts_with(beginning), "{error}");
    };
    check("", "r.csv is empty");
    check("# nothing\n", "r.csv is empty");
    check("time,kind,component\n", "r.csv, line 1: the header lacks method, context_id; expected time");
    check("hello\n", "r.csv, line 1: \"hello\" is not a header");
    check("time,timestamp,kind\n", "r.csv, line 1: column \"timestamp\" says the same as an earlier column");
}

#[test]
fn boundaries_are_given_or_guessed() {
    let mut boundaries = Boundaries::default();
    assert_eq!(boundaries.component("a.b.C$1", "f"), "a.b.C");
    boundaries.package_levels = Some(2);
    assert_eq!((boundaries.component("a.b.C", "f"), boundaries.component("C", "f")), ("a.b", "C"));
    for (pattern, component) in [("a.*", "Any"), ("a.b.*", "Near"), ("a.b.C.f", "Exact"), ("x.Y", "Class")] {
        boundaries.given.insert(pattern.to_owned(), component.to_owned());
    }
    assert_eq!((boundaries.component("a.z.C", "f"), boundaries.component("a.b.C", "g")), ("Any", "Near"));
    assert_eq!((boundaries.component("a.b.C", "f"), boundaries.component("x.Y", "f")), ("Exact", "Class"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(rows in prop::collection::vec("[ -~]{0,40}", 0..20), json in any::<bool>()) {
        let header = if json { "{\"time\":1}" } else { "time,kind,component,method,context_id" };
        let text = format!("{header}\n{}", rows.join("\n"));
        let (events, report) = read_all(text.as_bytes(), &ReadOptions::default());
        if let Ok(report) = report {
            prop_assert_eq!(report.n_events, events.len() as u64);
            prop_assert_eq!(report.n_rows, report.n_events + report.diagnostics.count("bad_row"));
        }
    }
}
