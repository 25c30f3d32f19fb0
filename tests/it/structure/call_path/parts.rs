//! Logs in several files, of which any may hold a part of any request, and logs of which a part is missing.

use std::fmt::Write as _;

use layerfit::{
    structure::{ExtractOptions, Extraction, extract},
    trace::{Format, Source},
};

use super::super::{calls, check_calls, count};

fn extracted(files: &[(&str, &str)], format: Format) -> Extraction {
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| Source { name, bytes: text.as_bytes() }).collect();
    extract(&sources, format, &ExtractOptions::default()).unwrap()
}

fn assert_same(parts: &Extraction, whole: &Extraction) {
    assert_eq!(calls(&parts.model), calls(&whole.model));
    let self_times = |extraction: &Extraction| -> Vec<f64> {
        let entries = extraction.tasks.iter().flat_map(|task| &task.entries);
        entries.flat_map(|entry| entry.self_times.iter().flatten().copied()).collect()
    };
    for (a, b) in self_times(parts).iter().zip(self_times(whole)) {
        assert!((a - b).abs() <= 1e-12 * b, "{a} {b}");
    }
}

/// Requests that one server passes on to another twice, each with a log of its own. There are more of them than the records after which a
/// request that is quiet in one log counts as over.
#[test]
fn a_log_for_each_server_is_read_as_one() {
    let header = "time,kind,component,method,context_id,server\n";
    let (mut first, mut second, mut whole) = (header.to_owned(), header.to_owned(), header.to_owned());
    for k in 0..12_000 {
        let t = k * 1_000_000;
        let row = |time: i64, kind: &str, what: &str| format!("{},{kind},{what},c{k},", t + time);
        let rows = [
            (1, row(0, "entry", "A,x")),
            (2, row(100_000, "entry", "B,y")),
            (2, row(200_000, "exit", "B,y")),
            (2, row(250_000, "entry", "B,y")),
            (2, row(350_000, "exit", "B,y")),
            (1, row(500_000, "exit", "A,x")),
        ];
        for (server, row) in rows {
            let log = if server == 1 { &mut first } else { &mut second };
            [log, &mut whole].into_iter().for_each(|log| _ = writeln!(log, "{row}s{server}"));
        }
    }
    let parts = extracted(&[("s1.csv", &first), ("s2.csv", &second)], Format::CallPath);
    let whole = extracted(&[("all.csv", &whole)], Format::CallPath);
    assert!(calls(&parts.model).iter().any(|call| call.contains(" sync 2 ")), "{:?}", calls(&parts.model));
    assert_same(&parts, &whole);
}

const MAP: &str = "$0=kieker.common.record.misc.KiekerMetadataRecord\n\
                   $1=kieker.common.record.flow.trace.TraceMetadata\n\
                   $2=kieker.common.record.flow.trace.operation.BeforeOperationEvent\n\
                   $3=kieker.common.record.flow.trace.operation.AfterOperationEvent\n";

/// What a trace began may be read before it: files are read in the order of their names.
#[test]
fn a_log_of_the_called_may_come_before_that_of_the_caller() {
    let caller = "$1;1;100;11;s1;h1;-1;-1\n$2;10;10;100;0;public void a.A.x();a.A\n$3;50;50;100;1;public void a.A.x();a.A\n";
    let called = "$1;2;200;12;s1;h2;100;0\n$2;21;21;200;1;public void b.B.y();b.B\n$3;31;31;200;2;public void b.B.y();b.B\n";
    let logs = |of_caller: &str, of_called: &str| {
        let [a, b] = [of_caller, of_called].map(|folder| (format!("{folder}/kieker.map"), format!("{folder}/kieker-1.dat")));
        extracted(&[(&a.0, MAP), (&a.1, caller), (&b.0, MAP), (&b.1, called)], Format::Kieker)
    };
    let (in_order, reversed) = (logs("1", "2"), logs("2", "1"));
    assert_eq!(count(&reversed, "async_unmatched"), 0);
    check_calls(&reversed, &["Client.1 sync 1 h1::a.A.x()", "h1::a.A.x() async 1 h2::b.B.y()"]);
    assert_same(&reversed, &in_order);
}

/// An order index far beyond what there is says that executions are missing, however many, without being counted one by one.
#[test]
fn a_great_order_index_takes_no_time() {
    let map = "$1=kieker.common.record.controlflow.OperationExecutionRecord\n";
    let log = "$1;2;a.A.x();<no-session-id>;7;1;2;h;4294967294;1\n$1;9;b.B.y();<no-session-id>;8;1;9;h;0;0\n";
    let extraction = extracted(&[("l/kieker.map", map), ("l/kieker-1.dat", log)], Format::Kieker);
    assert_eq!(count(&extraction, "missing_execution"), 4_294_967_294);
}

/// Of a call whose return was not recorded, and whose callee left nothing, nobody knows how long it took: it takes nothing off its caller's time.
#[test]
fn a_call_without_return_takes_nothing_off() {
    let log = "time,kind,component,method,context_id\n0,entry,A,x,c\n10,call,B,y,c\n20,call,C,z,c\n30,return,C,z,c\n100,exit,A,x,c\n";
    let extraction = extracted(&[("l.csv", log)], Format::CallPath);
    let of_a = extraction.tasks.iter().find(|task| task.name == "A").unwrap();
    let self_time = of_a.entries[0].self_times[0].unwrap();
    assert!((self_time - 90e-9).abs() < 1e-15, "{self_time}");
}
