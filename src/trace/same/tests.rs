//! What is held of logs is bounded.

use super::*;

fn windows(events: usize, all_events: usize, recordings: usize) -> Windows {
    Windows { events, all_events, recordings }
}

/// What was handed over, as text: `+t1`, `t1 A>B@5`, `-t1`; a recording that goes on is `+t1 again`.
fn read_through(log: &str, windows: Windows) -> (Vec<String>, Diagnostics) {
    let mut shown = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut reader = LogReader::new(&ReadOptions { times: Times::Reception, windows, ..ReadOptions::default() });
    let mut take = |vocabulary: &Vocabulary, step: LogStep<'_>| {
        names.resize(names.len().max(step.recording + 1), String::new());
        let name = &mut names[step.recording];
        let unit = |unit| vocabulary.units.names.name(unit);
        shown.push(match step.what {
            What::Begin { name: begun, continued, .. } => {
                begun.clone_into(name);
                format!("+{name}{}", if continued { " again" } else { "" })
            }
            What::Step(Step::Message(m)) => format!("{name} {}>{}@{}", unit(m.sender), unit(m.receiver), m.received),
            What::Step(step) => format!("{name} {step:?}"),
            What::End => format!("-{name}"),
        });
    };
    reader.read(vec![Source { name: "log.csv", bytes: log.as_bytes() }.stream()], &mut take).unwrap();
    let (_, diagnostics) = reader.finish(&mut take);
    (shown, diagnostics)
}

fn messages(rows: &[(&str, &str, &str, i64)]) -> String {
    let rows: Vec<String> = rows.iter().map(|(trace, from, to, time)| format!("{trace},{from},{to},{time}\n")).collect();
    format!("trace,sender,receiver,time\n{}", rows.concat())
}

/// A message has its place if fewer came before it than the window holds; else it is counted, and taken when it comes.
#[test]
fn late_messages_are_counted_and_kept() {
    let log = messages(&[("t", "A", "B", 30), ("t", "A", "C", 20), ("t", "A", "D", 40), ("t", "A", "E", 10)]);
    let (shown, diagnostics) = read_through(&log, windows(4, 100, 10));
    assert_eq!(shown, ["+t", "t A>E@10", "t A>C@20", "t A>B@30", "t A>D@40", "-t"]);
    assert_eq!((diagnostics.count("late_step"), diagnostics.count("unordered_time")), (0, 2));
    let (shown, diagnostics) = read_through(&log, windows(2, 100, 10));
    assert_eq!(shown, ["+t", "t A>C@20", "t A>B@30", "t A>E@10", "t A>D@40", "-t"]);
    assert_eq!(diagnostics.count("late_step"), 1);
}

/// The same for ends of messages, which are then paired when they come.
#[test]
fn late_events_are_counted_and_paired() {
    let log = "4 send A y\n5 send C x\n6 receive D x\n7 receive B y\n2 send E z\n3 receive F z\n";
    let (shown, diagnostics) = read_through(log, windows(3, 100, 10));
    assert_eq!(shown, ["+log", "log E>F@3", "log C>D@6", "log A>B@7", "-log"].map(str::to_owned), "{diagnostics:?}");
    assert_eq!((diagnostics.count("late_event"), diagnostics.count("unpaired_send")), (2, 0));
}

/// Of ends that wait for the other end too many are given up, the oldest first.
#[test]
fn ends_that_wait_too_long_are_given_up() {
    let sends: String = (0..20).map(|time| format!("{time} send A m{time}\n")).collect();
    let (shown, diagnostics) = read_through(&format!("{sends}30 receive B m2\n31 receive B m19\n"), windows(8, 100, 10));
    assert_eq!(shown, ["+log", "log A>B@31", "-log"]);
    assert_eq!((diagnostics.count("unpaired_send"), diagnostics.count("unpaired_receive")), (19, 1));
    let examples = diagnostics.into_vec().into_iter().find(|d| d.code == "unpaired_send").unwrap().examples;
    assert_eq!(examples[0], "log: A m0 at 0");
}

/// When all recordings together hold too much, the one that was quiet longest gives up first.
#[test]
fn quiet_recordings_give_up_what_they_hold() {
    let rows = [("a", "A", "B", 2), ("b", "A", "B", 5), ("b", "A", "C", 3), ("b", "A", "D", 4), ("a", "A", "C", 1), ("a", "B", "A", 7)];
    let (shown, diagnostics) = read_through(&messages(&rows), windows(100, 3, 10));
    assert_eq!(
        shown,
        ["+a", "+b", "a A>B@2", "b A>C@3", "b A>D@4", "b A>B@5", "a A>C@1", "a B>A@7", "-a", "-b"].map(str::to_owned),
        "{diagnostics:?}"
    );
    assert_eq!(diagnostics.count("late_step"), 1);
}

/// Recordings one after another are whole, however many; one that goes on after too many others is cut.
#[test]
fn only_so_many_recordings_are_open() {
    let names: Vec<String> = (0..1000).map(|n| format!("r{n}")).collect();
    let rows: Vec<(&str, &str, &str, i64)> = names.iter().flat_map(|name| [(name.as_str(), "A", "B", 1), (name, "B", "A", 2)]).collect();
    let (shown, diagnostics) = read_through(&messages(&rows), windows(100, 100, 3));
    assert_eq!(shown.len(), 4000);
    assert_eq!(shown[3..8], ["r0 A>B@1", "r0 B>A@2", "-r0", "+r3", "r1 A>B@1"].map(str::to_owned));
    assert_eq!(diagnostics.count("recording_cut"), 0);
    let rows = [("a", "A", "B", 1), ("b", "A", "B", 2), ("c", "A", "B", 3), ("a", "B", "A", 4)];
    let (shown, diagnostics) = read_through(&messages(&rows), windows(100, 100, 2));
    assert_eq!(shown[..5], ["+a", "+b", "a A>B@1", "-a", "+c"].map(str::to_owned));
    assert!(shown.contains(&"+a again".to_owned()), "{shown:?}");
    assert_eq!(diagnostics.count("recording_cut"), 1);
}

/// Queues are swept whose entries were all taken through others, and places are given out again.
#[test]
fn pairing_holds_only_what_waits() {
    let mut pairing = pairing::Pairing::default();
    let event = |time: i64, side, id| pairing::Event {
        time: Time::from_ticks(time),
        seq: 0,
        arrival: time as u64,
        id,
        unit: u32::from(side == pairing::Side::Receive),
        process: u32::from(side == pairing::Side::Receive),
        peer: None,
        operation: None,
        side,
    };
    for time in 0..100_000 {
        let id = if time % 3 == 0 { pairing::Id::of(time.to_string().as_bytes()) } else { pairing::Id::NONE };
        assert!(matches!(pairing.add(event(time, pairing::Side::Send, id)), pairing::Paired::Waits));
        assert!(matches!(pairing.add(event(time, pairing::Side::Receive, id)), pairing::Paired::Message(..)));
        let (n_places, n_entries) = pairing.size();
        assert!(n_places == 1 && n_entries < 1_100, "{n_places} {n_entries}");
    }
}

/// Short ids are held as they are, long ones by their hash; none is that of a row without.
#[test]
fn message_ids_are_told_apart() {
    let long = "0123456789abcdef0123456789abcdef";
    let ids = ["", "0", "00", "a", "a\0", "123456789012345", "1234567890123456", long, &long[1..]].map(|id| pairing::Id::of(id.as_bytes()));
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len());
    assert_eq!(ids[0], pairing::Id::NONE);
}

/// A quote that is left open neither fills the memory nor swallows what follows.
#[test]
fn a_row_with_an_open_quote_is_bad_and_no_other() {
    for n in [10, 400_000] {
        let log = format!("sender,receiver,time\nA,\"B,1\n{}", "C,D,2\n".repeat(n));
        let sources = [Source { name: "log.csv", bytes: log.as_bytes() }];
        let read_all = read(&sources, &ReadOptions::default()).unwrap();
        assert_eq!(read_all.traces[0].messages.len(), n);
        assert_eq!(read_all.diagnostics.count("bad_row"), 1);
        let error = read(&sources, &ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() }).unwrap_err();
        assert_eq!(error.to_string(), "log.csv, line 2: row is open after a quote, expected a quote that closes it");
    }
}

/// Comments before the header are not kept, but counted as lines.
#[test]
fn lines_before_the_header_count() {
    let log = format!("{}sender,receiver,time\nA,B,1\nA,B,x\n", "# comment\n".repeat(100));
    let strict = ReadOptions { bad_rows: BadRows::Reject, ..ReadOptions::default() };
    let error = read(&[Source { name: "log.csv", bytes: log.as_bytes() }], &strict).unwrap_err();
    assert!(error.to_string().starts_with("log.csv, line 103: time is \"x\""), "{error}");
}

/// An id stands for a message and its reply, or for one of another recording: only what is alike in all is a repetition.
#[test]
fn what_was_recorded_twice_is_taken_once() {
    let both = |header: &str, rows: &[&str], n: u64, examples: &[&str]| {
        let log = format!("{header}\n{}\n", rows.join("\n"));
        let log = read(&[Source { name: "log.csv", bytes: log.as_bytes() }], &ReadOptions::default()).unwrap();
        let of_code = |code| log.diagnostics.count(code);
        assert_eq!((of_code("duplicate_message"), of_code("unpaired_send"), of_code("unpaired_receive")), (n, 0, 0), "{rows:?}");
        let n_messages = log.traces.iter().map(|trace| trace.messages.len()).sum::<usize>();
        let all = log.diagnostics.into_vec();
        assert_eq!(all.iter().find(|d| d.code == "duplicate_message").map_or(&[][..], |d| &d.examples), examples);
        n_messages
    };
    let header = "sender,receiver,time,msg_id,trace";
    assert_eq!(both(header, &["A,B,1,m,x", "B,A,2,m,x", "A,B,1,m,x", "B,A,2.0,m,x"], 2, &["x: A at 1", "x: B at 2"]), 2);
    assert_eq!(both(header, &["A,B,1,m,x", "A,B,1,m,y", "A,C,1,m,x", "A,B,2,m,x", "A,B,1,n,x", "A,B,1,,x", "A,B,1,,x"], 0, &[]), 7);
    let header = "time,kind,process,message_type,msg_id";
    let rows = ["1,send,A,x,m", "1,receive,B,x,m", "2,send,B,y,m", "2,receive,A,y,m"];
    assert_eq!(both(header, &rows, 0, &[]), 2);
    assert_eq!(both(header, &[rows, rows].concat(), 4, &["log: A x at 1", "log: B x at 1", "log: B y at 2", "log: A y at 2"]), 2);
}

#[test]
fn a_process_with_and_without_threads_is_told() {
    let log = "sender,sender_thread,receiver,receiver_thread,time\nA,1,B,2,10\nB,2,A,,20\nC,,B,2,30\n";
    let log = read(&[Source { name: "log.csv", bytes: log.as_bytes() }], &ReadOptions::default()).unwrap();
    assert_eq!(log.diagnostics.count("thread_missing"), 1);
    assert_eq!(log.diagnostics.into_vec()[0].examples, ["A"]);
}
