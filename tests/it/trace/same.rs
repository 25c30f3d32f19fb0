//! Message logs: forms, pairing, bad input.

use std::io::Write;

use layerfit::trace::{
    BadRows, Source, SourcesAre,
    same::{MessageLog, ReadError, ReadOptions, read},
};

use crate::structure::TABLE_1;

fn read_bytes(bytes: &[u8], options: &ReadOptions) -> Result<MessageLog, ReadError> {
    read(&[Source { name: "dir/log.csv", bytes }], options)
}

fn lenient(text: &str) -> MessageLog {
    read_bytes(text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn strict(text: &str) -> Result<MessageLog, String> {
    let options = ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() };
    read_bytes(text.as_bytes(), &options).map_err(|error| error.to_string())
}

/// Messages of a log's traces: `A>B@received` (`A>B@sent-received` where the sending is known), with the message type.
fn shown(log: &MessageLog) -> Vec<String> {
    let name = |unit| log.units.names.name(unit);
    let messages = log.traces.iter().flat_map(|trace| &trace.messages).map(|m| {
        let sent = m.sent.map_or(String::new(), |sent| format!("{sent}-"));
        let operation = m.operation.map_or(String::new(), |o| format!(" {}", log.operations.name(o)));
        format!("{}>{}@{sent}{}{operation}", name(m.sender), name(m.receiver), m.received)
    });
    messages.collect()
}

fn check(text: &str, expected: &[&str]) -> MessageLog {
    let log = lenient(text);
    assert_eq!(shown(&log), expected, "{text}");
    log
}

const TABLE_1_MESSAGES: [&str; 8] = [
    "Client>Server@4052950-4053220 browse_STARTC",
    "Server>Inventory@4053500-4053720 display_START",
    "Inventory>Book@4053990-4054270 getName_START",
    "Book>Inventory@4054490-4054760 getName_END",
    "Inventory>Book2@4055030-4055310 getName_START",
    "Book2>Inventory@4055530-4055750 getName_END",
    "Inventory>Server@4056020-4056240 display_END",
    "Server>Client@4056460-4056740 browse_ENDC",
];

/// Table 1 as printed, as CSV in another order of columns, with other separators, line ends and a byte order mark.
#[test]
fn table_1_in_all_forms() {
    check(TABLE_1, &TABLE_1_MESSAGES);
    let rows: Vec<Vec<&str>> = TABLE_1.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect()).collect();
    let csv = |header: &str, order: [usize; 4], separator: &str| {
        let lines = rows.iter().map(|row| order.map(|i| row[i]).join(separator));
        [header.to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    };
    let plain = csv("", [0, 1, 2, 3], " ");
    let forms = [
        plain.clone(),
        format!("time kind process message_type{plain}"),
        csv("time,kind,process,message_type", [0, 1, 2, 3], ","),
        csv("Message Type;Process;Event;Time", [3, 2, 1, 0], ";"),
        csv("Time\tEvent\tProcess\tMessage Type", [0, 1, 2, 3], "\t"),
        csv("\u{feff}PROCESS, Time , kind, operation", [2, 0, 1, 3], " , "),
        csv("time,kind,process,message_type", [0, 1, 2, 3], ",").replace('\n', "\r\n\r\n"),
        csv("\"process\",\"time\",\"kind\",\"type\"", [2, 0, 1, 3], ","),
        csv("time,kind,process,message_type", [0, 1, 2, 3], ",").replace('\n', "\r\n"),
        plain.replace('\n', "\r\n"),
    ];
    for form in forms {
        let log = check(&form, &TABLE_1_MESSAGES);
        assert_eq!(log.traces[0].name, "log");
    }
}

#[test]
fn gzip_is_read_like_plain() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(TABLE_1.as_bytes()).unwrap();
    let bytes = encoder.finish().unwrap();
    assert_eq!(shown(&read_bytes(&bytes, &ReadOptions::default()).unwrap()), TABLE_1_MESSAGES);
    let error = read_bytes(&bytes, &ReadOptions { limit_bytes: 100, ..ReadOptions::default() }).unwrap_err();
    assert_eq!(chain(&error), "dir/log.csv cannot be read: longer than 100 bytes when decompressed");
    let error = read_bytes(&bytes[..40], &ReadOptions::default()).unwrap_err();
    assert!(chain(&error).starts_with("dir/log.csv cannot be read: "), "{}", chain(&error));
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        None => error.to_string(),
        Some(source) => format!("{error}: {}", chain(source)),
    }
}

#[test]
fn message_rows_with_one_or_both_times() {
    check("sender,receiver,time\nA,B,10\nB,A,20\n", &["A>B@10", "B>A@20"]);
    check("to,from,sent,received,operation,id\nB,A,1,2,get,7\nA,B,,3,,8\n", &["A>B@1-2 get", "B>A@3"]);
    check("sender,sender_thread,receiver,receiver_thread,time\nA,1,B,2,10\nB,2,A,,20\n", &["A@1>B@2@10", "B@2>A@20"]);
}

#[test]
fn times_may_have_fractions() {
    check(
        "sender,receiver,sent,received\nA,B,1693412345.000001,1693412345.000002\nB,A,1.5e3,1693412346\n",
        &["A>B@1693412345.000001-1693412345.000002", "B>A@1500-1693412346"],
    );
}

/// Messages are put in order of reception; of equal ones by `seq`, then as in the log.
#[test]
fn messages_are_ordered_by_reception() {
    let log = check("sender,receiver,time\nA,B,30\nA,C,10\nA,D,20\nA,E,10\n", &["A>C@10", "A>E@10", "A>D@20", "A>B@30"]);
    assert_eq!(log.diagnostics.count("unordered_time"), 2);
    check("sender,receiver,time,seq\nA,B,1,3\nA,C,1,1\nA,D,1,2\n", &["A>C@1", "A>D@1", "A>B@1"]);
}

/// Rule 1: by id, also where the clocks disagree or the reply has the id of the request.
#[test]
fn pairs_by_message_id() {
    let rows = "time,kind,process,message_type,msg_id\n1,send,A,x,1\n2,send,B,x,2\n3,receive,C,x,2\n4,receive,D,x,1\n";
    let log = check(rows, &["B>C@2-3 x", "A>D@1-4 x"]);
    assert_eq!(log.diagnostics.count("no_msg_id_fifo_assumed"), 0);
    check("time,kind,process,message_type,msg_id\n5,receive,B,x,1\n6,send,A,x,1\n", &["A>B@6-5 x"]);
    let correlated = "time,kind,process,message_type,msg_id\n1,send,A,,7\n2,receive,B,,7\n3,send,B,,7\n4,receive,A,,7\n";
    check(correlated, &["A>B@1-2", "B>A@3-4"]);
}

/// Rule 2: first in, first out for a sender, receiver and type, as far as the rows name their peers.
#[test]
fn pairs_by_peers() {
    let both = "time,kind,process,message_type,peer\n1,send,A,x,C\n2,send,B,x,D\n3,receive,D,x,B\n4,receive,C,x,A\n";
    let log = check(both, &["B>D@2-3 x", "A>C@1-4 x"]);
    assert_eq!(log.diagnostics.count("no_msg_id_fifo_assumed"), 2);
    let receivers = "time,kind,process,message_type,peer\n1,send,A,x,C\n2,send,B,x,D\n3,receive,D,x,\n4,receive,C,x,\n";
    check(receivers, &["B>D@2-3 x", "A>C@1-4 x"]);
    let senders = "time,kind,process,message_type,peer\n1,send,A,x,\n2,send,B,x,\n3,receive,D,x,B\n4,receive,C,x,A\n";
    check(senders, &["B>D@2-3 x", "A>C@1-4 x"]);
    let earliest = "time,kind,process,message_type,peer\n1,send,A,x,\n2,send,A,x,C\n3,receive,C,x,A\n4,receive,C,x,\n";
    check(earliest, &["A>C@1-3 x", "A>C@2-4 x"]);
}

/// Rule 3: first in, first out for a type; `seq` orders what happens at one time.
#[test]
fn pairs_by_type() {
    check("1 send A x\n2 send B y\n3 send C x\n4 receive D x\n5 receive E x\n6 receive F y\n", &["A>D@1-4 x", "C>E@3-5 x", "B>F@2-6 y"]);
    let same_time = "time,kind,process,message_type,seq\n1,receive,B,x,2\n1,send,A,x,1\n";
    check(same_time, &["A>B@1-1 x"]);
}

#[test]
fn pairs_within_a_trace_only() {
    let rows = "trace,time,kind,process,message_type,msg_id\na,1,send,A,x,1\nb,2,receive,B,x,1\nb,1,send,C,x,1\na,3,receive,D,x,1\n";
    let log = check(rows, &["A>D@1-3 x", "C>B@1-2 x"]);
    assert_eq!(log.traces.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn what_has_no_partner_is_counted() {
    let log = check("1 send A x\n2 receive B y\n3 send A z\n4 receive A z\n", &[]);
    assert_eq!(log.diagnostics.count("unpaired_send"), 1);
    assert_eq!(log.diagnostics.count("unpaired_receive"), 1);
    assert_eq!(log.diagnostics.count("self_message"), 1);
    let examples: Vec<String> =
        log.diagnostics.into_vec().into_iter().filter(|d| d.code.starts_with("unpaired")).flat_map(|d| d.examples).collect();
    assert_eq!(examples, ["log: A x at 1", "log: B y at 2"]);
}

#[test]
fn sources_are_scenarios_or_parts() {
    let sources = [Source { name: "a/x.log", bytes: b"1 send A m\n" }, Source { name: "b/x.log", bytes: b"2 receive B m\n" }];
    let apart = read(&sources, &ReadOptions::default()).unwrap();
    assert_eq!(apart.traces.iter().map(|t| (t.name.as_str(), t.scenario)).collect::<Vec<_>>(), [("x", 0), ("x#2", 0)]);
    assert_eq!(shown(&apart).len(), 0);
    let joined = read(&sources, &ReadOptions { sources_are: SourcesAre::Parts, ..ReadOptions::default() }).unwrap();
    assert_eq!(shown(&joined), ["A>B@1-2 m"]);
}

/// What cannot be used at all is an error in either mode.
#[test]
fn unusable_logs() {
    let expected_columns = "expected time, kind, process, message_type (and msg_id, peer, thread, seq, trace, scenario), \
                            or sender, receiver, time (and sent, message_type, msg_id, sender_thread, receiver_thread, seq, trace, scenario)";
    let cases = [
        ("", "dir/log.csv is empty: expected rows `time kind process message_type`, or a CSV with a header".to_owned()),
        ("\n# nothing\n\n", "dir/log.csv is empty: expected rows `time kind process message_type`, or a CSV with a header".to_owned()),
        ("10,send,A,x\n", format!("dir/log.csv, line 1: \"10,send,A,x\" is not a header; {expected_columns}")),
        ("# log\ntime,process\n", format!("dir/log.csv, line 2: the header lacks kind, message_type; {expected_columns}")),
        ("time,kind,process\n", format!("dir/log.csv, line 1: the header lacks message_type; {expected_columns}")),
        ("sender,receiver\n", format!("dir/log.csv, line 1: the header lacks time; {expected_columns}")),
        ("sender,receiver,time,kind\n", format!("dir/log.csv, line 1: column \"kind\" does not belong to the others; {expected_columns}")),
        (
            "time,kind,process,type,Operation\n",
            format!("dir/log.csv, line 1: column \"Operation\" says the same as an earlier column; {expected_columns}"),
        ),
    ];
    for (text, expected) in cases {
        for bad_rows in [BadRows::Count, BadRows::Reject] {
            let error = read_bytes(text.as_bytes(), &ReadOptions { bad_rows, ..ReadOptions::default() }).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text:?}");
        }
    }
    let long = "x".repeat(3 << 20);
    for (text, line) in [(long.clone(), 1), (format!("1 send A x\n\n2 receive B {long}\n"), 3)] {
        let error = read_bytes(text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert_eq!(chain(&error), format!("dir/log.csv cannot be read: line {line} is longer than 1048576 bytes"));
    }
}

/// A bad row is an error that names file, line, field and what was expected; or it is skipped and counted.
#[test]
fn bad_rows() {
    let events = "time,kind,process,message_type,seq\n1,send,A,x,\n2,receive,B,x,\n";
    let messages = "sender,receiver,sent,received\nA,B,1,2\n";
    let plain = "1 send A x\n2 receive B x\n";
    let cases: [(&str, &str, &str); 15] = [
        (plain, "soon send A x\n", "line 3: time is \"soon\", expected a time (a number of ticks)"),
        (plain, "3 sends A x\n", "line 3: kind is \"sends\", expected send, receive or event"),
        (plain, "3 send\n", "line 3: row is 2 fields long, expected 4 fields (time, kind, process, message_type)"),
        (plain, "3 send A\n", "line 3: message_type is missing, expected a message type (or a msg_id or peer)"),
        (plain, "# fine\n\n3 send A x y\n", "line 5: row is 5 fields long, expected 4 fields (time, kind, process, message_type)"),
        (events, ",send,A,x,\n", "line 4: time is missing, expected a time (a number of ticks)"),
        (events, "NaN,send,A,x,\n", "line 4: time is \"NaN\", expected a time (a number of ticks)"),
        (events, "3,,A,x,\n", "line 4: kind is missing, expected send, receive or event"),
        (events, "3,send, ,x,\n", "line 4: process is missing, expected the name of a process"),
        (events, "3,send,A,x,-1\n", "line 4: seq is \"-1\", expected a whole number, 0 or more"),
        (events, "3,send,A,x\n", "line 4: row is 4 fields long, expected 5 fields (time, kind, process, message_type, seq)"),
        (events, "\n# two lines\n3,send,A,,\n", "line 6: message_type is missing, expected a message type (or a msg_id or peer)"),
        (messages, ",B,1,2\n", "line 3: sender is missing, expected the name of a process"),
        (messages, "A,B,x,2\n", "line 3: sent is \"x\", expected a time (a number of ticks)"),
        (messages, "A,B,1,\n", "line 3: received is missing, expected a time (a number of ticks)"),
    ];
    for (good, bad, expected) in cases {
        for text in
            [format!("{good}{bad}"), format!("{good}{bad}").trim_end_matches('\n').to_owned(), format!("{good}{bad}").replace('\n', "\r\n")]
        {
            assert_eq!(strict(&text).unwrap_err(), format!("dir/log.csv, {expected}"), "{text:?}");
            let log = lenient(&text);
            assert_eq!(shown(&log).len(), 1, "{text:?}");
            let counted = log.diagnostics.into_vec().into_iter().find(|d| d.code == "bad_row").unwrap();
            assert_eq!((counted.count, counted.examples), (1, vec![format!("dir/log.csv, {expected}")]));
        }
    }
}

#[test]
fn bytes_that_are_not_text_are_a_bad_field() {
    let mut bytes = b"1 send A x\n2 receive B x\n3 send ".to_vec();
    bytes.extend([0xff, 0xfe, b' ', b'x', b'\n']);
    let options = ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() };
    let error = read_bytes(&bytes, &options).unwrap_err().to_string();
    assert_eq!(error, "dir/log.csv, line 3: process is \"\u{fffd}\u{fffd}\", expected UTF-8 text");
    assert_eq!(shown(&read_bytes(&bytes, &ReadOptions::default()).unwrap()), ["A>B@1-2 x"]);
}

/// A line number holds also where an earlier field has lines in quotes.
#[test]
fn quoted_line_ends_count_as_lines() {
    let text = "time,kind,process,message_type\n1,send,A,\"a\nb\"\n2,receive,B,\"a\nb\"\nx,send,A,y\n";
    assert!(strict(text).unwrap_err().starts_with("dir/log.csv, line 6: time is \"x\""), "{:?}", strict(text).unwrap_err());
}

#[test]
fn unknown_columns_are_ignored_and_counted_or_rejected() {
    let text = "time,kind,process,message_type,scenrio\n1,send,A,x,s\n2,receive,B,x,s\n";
    assert_eq!(lenient(text).diagnostics.count("unknown_column"), 1);
    assert!(strict(text).unwrap_err().starts_with("dir/log.csv, line 1: column \"scenrio\" is not known; expected time, kind,"));
}

#[test]
fn local_events_are_kept_in_order() {
    let log = lenient("time,kind,process,message_type\n9,event,A,\n3,event,B,note\n1,send,A,x\n2,receive,B,x\n");
    let times: Vec<String> = log.traces[0].local_events.iter().map(|e| format!("{}@{}", log.units.names.name(e.unit), e.time)).collect();
    assert_eq!(times, ["B@3", "A@9"]);
}
