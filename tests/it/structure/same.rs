//! The published cases of SAME and the vectors derived for its specification, each a test named after it.

use layerfit::{
    structure::{
        ExtractOptions, MergeKey, Timing,
        interactions::{InteractionKind, Interactions},
        same::{Same, SameOptions},
    },
    trace::{Source, SourcesAre, StreamSource, same::Windows},
};

use super::{
    TABLE_1, calls, check_calls, check_records, count, extract_text, literal, messages, reference_tasks, timed_messages, two_point,
};

/// A synchronous request.
#[test]
fn case_1() {
    let found = check_records(&messages(&[("A", "B", 10), ("B", "A", 100)]), &literal(), &["sync A.1@10 B.1@100"]);
    check_calls(&found, &["A.1 sync 1 B.1"]);
    assert_eq!(reference_tasks(&found.model), ["A"]);
}

/// An asynchronous message.
#[test]
fn case_2() {
    let found = check_records(&messages(&[("A", "B", 10)]), &literal(), &["async A.1 B.1 @10"]);
    check_calls(&found, &["A.1 async 1 B.1"]);
    assert_eq!(count(&found, "unpaced_customers"), 1);
}

/// A forwarded request.
#[test]
fn case_3() {
    let log = messages(&[("A", "B", 10), ("B", "C", 100), ("C", "A", 150)]);
    let found = check_records(&log, &literal(), &["forward A.1@10 B.1@100 C.1@150"]);
    check_calls(&found, &["A.1 sync 1 B.1", "B.1 forward 1 C.1"]);
}

/// A synchronous request with an asynchronous message inside.
#[test]
fn case_4() {
    let log = messages(&[("A", "B", 10), ("B", "C", 100), ("B", "A", 200)]);
    let found = check_records(&log, &literal(), &["sync A.1@10 B.1@200", "async B.1 C.1 @100"]);
    check_calls(&found, &["A.1 sync 1 B.1", "B.1 async 1 C.1"]);
}

/// A forwarded request inside a synchronous one. The paper's "B sends to B" is read as D sends to B.
#[test]
fn case_5() {
    let log = messages(&[("A", "B", 1), ("B", "C", 2), ("C", "D", 3), ("D", "B", 4), ("B", "A", 5)]);
    let found = check_records(&log, &literal(), &["forward B.1@2 C.1@3 D.1@4", "sync A.1@1 B.1@5"]);
    check_calls(&found, &["A.1 sync 1 B.1", "B.1 sync 1 C.1", "C.1 forward 1 D.1"]);
}

/// A concurrent system. The paper's "B received from B" is read as B received from A.
#[test]
fn case_6() {
    let log = messages(&[("A", "B", 10), ("C", "D", 20), ("D", "E", 100), ("B", "D", 110), ("E", "C", 150), ("D", "A", 160)]);
    let found = check_records(&log, &literal(), &["forward C.1@20 D.1@100 E.1@150", "forward A.1@10 B.1@110 D.2@160"]);
    check_calls(&found, &["A.1 sync 1 B.1", "B.1 forward 1 D.2", "C.1 sync 1 D.1", "D.1 forward 1 E.1"]);
    assert_eq!(reference_tasks(&found.model), ["A", "C"]);
    assert_eq!(found.model.task("D").unwrap().entries.len(), 2, "the entries of D forward differently");
    assert_eq!(count(&found, "zombie_on_pending"), 1);
}

/// The trace fragment with all three interactions. The paper lists Async before Fwd; the order is not significant.
#[test]
fn figure_3a() {
    let log = messages(&[("A", "B", 1), ("B", "C", 2), ("C", "B", 3), ("B", "D", 4), ("B", "E", 5), ("E", "A", 6)]);
    let found = check_records(&log, &literal(), &["sync B.1@2 C.1@3", "async B.1 D.1 @4", "forward A.1@1 B.1@5 E.1@6"]);
    // Figure 6
    check_calls(&found, &["A.1 sync 1 B.1", "B.1 sync 1 C.1", "B.1 async 1 D.1", "B.1 forward 1 E.1"]);
    assert_eq!((found.interactions.sync, found.interactions.asynchronous, found.interactions.forward), (1, 1, 1));
}

/// A message from a task without live occurrence to one with: a new tree, and the former occurrence is a zombie.
#[test]
fn figure_5_step() {
    let found = check_records(&messages(&[("A", "B", 1), ("E", "B", 7)]), &literal(), &["async A.1 B.1 @1", "async E.1 B.2 @7"]);
    check_calls(&found, &["A.1 async 1 B.1", "E.1 async 1 B.1"]);
    let b = found.tasks.iter().find(|task| task.name == "B").unwrap();
    assert_eq!((b.entries.len(), b.entries[0].occurrences), (1, 2), "B.1 and B.2 merge");
}

/// The immediate candidate of a root is its last live child in the paper; else what it sent to last, which may have handed that on.
#[test]
fn the_child_that_a_root_waits_for() {
    let log =
        messages(&[("E", "B", 1), ("B", "C", 2), ("B", "D", 3), ("D", "A", 4), ("C", "D", 5), ("D", "C", 6), ("E", "D", 7), ("C", "B", 8)]);
    let expected = ["sync C.1@5 D.2@6", "async E.1 B.1 @1", "async B.1 D.1 @3", "async D.1 A.1 @4", "sync B.1@2 C.1@8", "async E.1 D.3 @7"];
    check_records(&log, &literal(), &expected);
    let ours = extract_text(&log, &ExtractOptions { timing: Timing::Reception, ..ExtractOptions::default() });
    assert_eq!((ours.interactions.sync, ours.interactions.asynchronous), (1, 6));
}

const TABLE_1_RECORDS: [&str; 4] = [
    "sync Inventory.1@4054270 Book.1@4054760",
    "sync Inventory.1@4055310 Book2.1@4055750",
    "sync Server.1@4053720 Inventory.1@4056240",
    "sync Client.1@4053220 Server.1@4056740",
];

#[test]
fn table_1() {
    for options in [ExtractOptions::default(), literal(), two_point()] {
        let found = check_records(TABLE_1, &options, &TABLE_1_RECORDS);
        check_calls(
            &found,
            &[
                "Client.1 sync 1 Server.browse_STARTC",
                "Server.browse_STARTC sync 1 Inventory.display_START",
                "Inventory.display_START sync 1 Book.getName_START",
                "Inventory.display_START sync 1 Book2.getName_START",
            ],
        );
        assert_eq!(reference_tasks(&found.model), ["Client"]);
        assert_eq!(count(&found, "no_msg_id_fifo_assumed"), 8);
    }
}

#[test]
fn table_1_book2_of_class_book() {
    let mut options = ExtractOptions::default();
    options.task_names.insert("Book2".into(), "Book".into());
    let found = check_records(TABLE_1, &options, &TABLE_1_RECORDS);
    check_calls(
        &found,
        &[
            "Client.1 sync 1 Server.browse_STARTC",
            "Server.browse_STARTC sync 1 Inventory.display_START",
            "Inventory.display_START sync 2 Book.getName_START",
        ],
    );
    let book = found.tasks.iter().find(|task| task.name == "Book").unwrap();
    assert_eq!((book.entries[0].occurrences, book.threads), (2, 2));
}

/// Self times: gaps from a reception to the next sending, in seconds at 1 µs a tick; with the transit they make up the whole.
#[test]
fn table_1_self_times() {
    let options = ExtractOptions { demands: layerfit::structure::Demands::SelfTimes, ..ExtractOptions::default() };
    let found = extract_text(TABLE_1, &options);
    let self_time = |entry: &str| found.tasks.iter().flat_map(|t| &t.entries).find(|e| e.name == entry).unwrap().self_times[0];
    let ticks = [
        ("Server.browse_STARTC", 500.0),
        ("Inventory.display_START", 810.0),
        ("Book.getName_START", 220.0),
        ("Book2.getName_START", 220.0),
    ];
    for (entry, ticks) in ticks {
        assert!((self_time(entry).unwrap() - ticks * 1e-6).abs() < 1e-12, "{entry}");
        let demand = found.model.entry(entry).unwrap().1.phase(1).unwrap().host_demand.literal().unwrap();
        assert!((demand - ticks * 1e-6).abs() < 1e-12, "{entry}");
    }
    assert_eq!(self_time("Client.1"), None);
    let client = found.model.entry("Client.1").unwrap().1.phase(1).unwrap();
    assert!(client.host_demand.is(1e-3), "the default where the trace does not tell");
}

fn part_d_log() -> String {
    let cycle = [("A", "B"), ("B", "C"), ("C", "B"), ("B", "C"), ("C", "B"), ("B", "A")];
    let rows: Vec<(&str, &str, i64)> = cycle.iter().cycle().take(12).zip(1..).map(|((from, to), time)| (*from, *to, time)).collect();
    messages(&rows)
}

/// A calls B twice in sequence, each B calls C twice.
#[test]
fn part_d() {
    let found = extract_text(&part_d_log(), &literal());
    check_calls(&found, &["A.1 sync 1 B.1", "B.1 sync 2 C.1"]);
    let weights: Vec<(&str, u64)> = found.tasks.iter().flat_map(|t| &t.entries).map(|e| (e.name.as_str(), e.occurrences)).collect();
    assert_eq!(weights, [("A.1", 2), ("B.1", 2), ("C.1", 4)]);
    assert_eq!(count(&found, "originator_split"), 1);
}

#[test]
fn part_d_async_loop() {
    let log = messages(&[("A", "B", 1), ("A", "B", 2), ("A", "B", 3)]);
    let found = check_records(&log, &literal(), &["async A.1 B.1 @1", "async A.1 B.2 @2", "async A.1 B.3 @3"]);
    check_calls(&found, &["A.1 async 3 B.1"]);
    assert_eq!(count(&found, "zombie_on_pending"), 0, "the sender itself shows that it does not wait");
}

/// Nested fan-out: both branches are found, one after the other.
#[test]
fn v_f() {
    let log = messages(&[("A", "B", 1), ("B", "C", 2), ("B", "D", 3), ("C", "B", 4), ("D", "B", 5), ("B", "A", 6)]);
    let found = check_records(&log, &literal(), &["sync B.1@2 C.1@4", "sync B.1@3 D.1@5", "sync A.1@1 B.1@6"]);
    check_calls(&found, &["A.1 sync 1 B.1", "B.1 sync 1 C.1", "B.1 sync 1 D.1"]);
}

/// Root fan-out: all is read as asynchronous, and said so.
#[test]
fn v_r() {
    let log = messages(&[("A", "B", 1), ("A", "C", 2), ("B", "A", 3), ("C", "A", 4)]);
    let found = check_records(&log, &literal(), &["async A.1 B.1 @1", "async A.1 C.1 @2", "async B.1 A.2 @3", "async C.1 A.3 @4"]);
    assert_eq!(count(&found, "root_fanout_async"), 1);
    check_calls(&found, &["A(client).1 async 1 B.1", "A(client).1 async 1 C.1", "B.1 async 1 A.1", "C.1 async 1 A.1"]);
    assert_eq!((reference_tasks(&found.model), count(&found, "reference_task_split")), (vec!["A(client)"], 1));
}

/// The same below a synthetic originator: a request that nobody waits for stays one, those inside are answered.
#[test]
fn v_r_below_a_synthetic_originator() {
    let log = messages(&[("X", "A", 0), ("A", "B", 1), ("A", "C", 2), ("B", "A", 3), ("C", "A", 4), ("A", "X", 5)]);
    let found = check_records(&log, &literal(), &["sync A.1@1 B.1@3", "sync A.1@2 C.1@4", "sync X.1@0 A.1@5"]);
    assert_eq!(count(&found, "root_fanout_async"), 0);
    check_calls(&found, &["X.1 sync 1 A.1", "A.1 sync 1 B.1", "A.1 sync 1 C.1"]);
}

/// Times of arrival in a queue instead of acceptance: the literal result is wrong, and said so.
#[test]
fn v_h1() {
    let log = messages(&[
        ("u1", "api", 0),
        ("u2", "api", 5),
        ("api", "db", 10),
        ("db", "api", 20),
        ("api", "u1", 30),
        ("api", "db", 32),
        ("db", "api", 40),
        ("api", "u2", 50),
    ]);
    let found = check_records(
        &log,
        &literal(),
        &["async u1.1 api.1 @0", "sync api.2@10 db.1@20", "sync api.2@32 db.2@40", "sync u2.1@5 api.2@50", "async api.2 u1.2 @30"],
    );
    assert_eq!(count(&found, "zombie_on_pending"), 1);
}

const V_H2: [(&str, &str, i64, i64); 4] = [("A", "B", 1, 2), ("C", "B", 3, 7), ("B", "A", 6, 9), ("B", "C", 8, 10)];

/// Latency: right only with both times of each message, which are used by default where they are there.
#[test]
fn v_h2() {
    let right = ["sync A.1@2 B.1@9", "sync C.1@7 B.2@10"];
    check_records(&timed_messages(&V_H2), &two_point(), &right);
    check_records(&timed_messages(&V_H2), &ExtractOptions::default(), &right);
    check_records(&timed_messages(&V_H2), &literal(), &["async A.1 B.1 @2", "sync C.1@7 B.2@10", "async B.2 A.2 @9"]);
}

/// An occurrence that was invoked and set apart goes on with what it sends next: D.1 calls F and G.
#[test]
fn v_h3() {
    let log = messages(&[("A", "D", 1), ("A", "X", 2), ("X", "A", 3), ("D", "F", 4), ("F", "D", 5), ("D", "G", 6), ("G", "D", 7)]);
    let found = check_records(&log, &literal(), &["async A.1 D.1 @1", "sync A.1@2 X.1@3", "sync D.1@4 F.1@5", "sync D.1@6 G.1@7"]);
    check_calls(&found, &["A.1 async 1 D.1", "A.1 sync 1 X.1", "D.1 sync 1 F.1", "D.1 sync 1 G.1"]);
}

/// Work after the reply.
#[test]
fn v_p2() {
    let log = messages(&[("A", "B", 1), ("B", "A", 2), ("B", "C", 3), ("C", "B", 4)]);
    check_records(&log, &literal(), &["sync A.1@1 B.1@2", "sync B.2@3 C.1@4"]);
    let found = check_records(&log, &ExtractOptions::default(), &["sync A.1@1 B.1@2", "sync/2 B.1@3 C.1@4"]);
    check_calls(&found, &["A.1 sync 1 B.1", "B.1 sync/2 1 C.1"]);
    assert_eq!(reference_tasks(&found.model), ["A"]);
}

/// A second phase ends when something new is accepted.
#[test]
fn second_phase_ends_with_the_next_request() {
    let rows = [("A", "B"), ("B", "A"), ("B", "C"), ("C", "B"), ("A", "B"), ("B", "C"), ("C", "B"), ("B", "A"), ("B", "D")];
    let rows: Vec<_> = rows.into_iter().zip(1..).map(|((from, to), time)| (from, to, time)).collect();
    let found = check_records(
        &messages(&rows),
        &ExtractOptions::default(),
        &["sync A.1@1 B.1@2", "sync/2 B.1@3 C.1@4", "sync B.2@6 C.2@7", "sync A.2@5 B.2@8", "async/2 B.2 D.1 @9"],
    );
    check_calls(&found, &["A.1 sync 0.5 B.1", "A.1 sync 0.5 B.2", "B.1 sync/2 1 C.1", "B.2 sync 1 C.1", "B.2 async/2 1 D.1"]);
}

/// A local event shows that its task does not wait.
#[test]
fn v_nb() {
    let log = "5 send A x\n10 receive B x\n15 event A\n18 send B y\n20 receive A y\n";
    for options in [literal(), two_point()] {
        check_records(log, &options, &["async A.1 B.1 @10", "async B.1 A.2 @20"]);
    }
    check_records(&log.replace("15 event A\n", ""), &literal(), &["sync A.1@10 B.1@20"]);
}

/// In two-point mode the event also marks a message that is under way.
#[test]
fn v_nb_while_the_message_is_under_way() {
    let log = "5 send A x\n7 event A\n10 receive B x\n18 send B y\n20 receive A y\n";
    check_records(log, &two_point(), &["async A.1 B.1 @10", "async B.1 A.2 @20"]);
}

/// A local event does not keep an arc from being inside a forward.
#[test]
fn v_nb_inside_a_forward() {
    let log = "1 send A x\n2 receive B x\n3 send B f\n4 receive C f\n5 event B\n6 send C r\n7 receive A r\n";
    check_records(log, &two_point(), &["forward A.1@2 B.1@4 C.1@7"]);
}

/// Spans as messages: the server span of the database within the client span of the service.
#[test]
fn spans_nested() {
    let log = messages(&[("ext", "api", 0), ("api", "db", 20), ("db", "api", 60), ("api", "ext", 100)]);
    let found = check_records(&log, &ExtractOptions::default(), &["sync api.1@20 db.1@60", "sync ext.1@0 api.1@100"]);
    check_calls(&found, &["ext.1 sync 1 api.1", "api.1 sync 1 db.1"]);
}

/// The database's span outlives its reply, and calls the cache in what is left of it.
#[test]
fn spans_that_outlive_the_reply() {
    let rows = [("ext", "api", 0), ("api", "db", 20), ("db", "api", 60), ("db", "cache", 67), ("cache", "db", 80), ("api", "ext", 100)];
    let found = check_records(
        &messages(&rows),
        &ExtractOptions::default(),
        &["sync api.1@20 db.1@60", "sync/2 db.1@67 cache.1@80", "sync ext.1@0 api.1@100"],
    );
    check_calls(&found, &["ext.1 sync 1 api.1", "api.1 sync 1 db.1", "db.1 sync/2 1 cache.1"]);
}

/// Producer and consumer (spans) with latency: the message is on its way when its sender's request ends.
#[test]
fn asynchronous_message_received_after_the_reply() {
    let log = timed_messages(&[("client", "api", 0, 0), ("api", "worker", 30, 40), ("api", "client", 35, 36)]);
    let found = check_records(&log, &two_point(), &["sync client.1@0 api.1@36", "async api.1 worker.1 @40"]);
    check_calls(&found, &["client.1 sync 1 api.1", "api.1 async 1 worker.1"]);
    check_records(&log, &literal(), &["sync client.1@0 api.1@36", "async api.2 worker.1 @40"]);
    let by_reception = ExtractOptions { timing: layerfit::structure::Timing::Reception, ..ExtractOptions::default() };
    check_records(&log, &by_reception, &["sync client.1@0 api.1@36", "async/2 api.1 worker.1 @40"]);
}

/// The paper's key has no operation: leaf entries of a task collapse into one.
#[test]
fn operations_keep_entries_apart_unless_behaviour_only() {
    let log = "sender,receiver,time,operation\nA,B,1,get\nB,A,2,ok\nA,B,3,put\nB,A,4,ok\n";
    check_calls(&extract_text(log, &ExtractOptions::default()), &["A.1 sync 0.5 B.get", "A.1 sync 0.5 B.put"]);
    let behaviour_only = ExtractOptions { merge: MergeKey::BehaviourOnly, ..ExtractOptions::default() };
    check_calls(&extract_text(log, &behaviour_only), &["A.1 sync 1 B.1"]);
}

/// By operation, entries that differ in what they do are one, with mean numbers of calls.
#[test]
fn merging_by_operation_takes_means() {
    let log = "sender,receiver,time,operation\nA,B,1,get\nB,C,2,read\nC,B,3,ok\nB,A,4,ok\nA,B,5,get\nB,A,6,ok\nA,B,7,get\nB,C,8,fetch\nC,A,9,ok\n";
    let found = extract_text(log, &ExtractOptions { merge: MergeKey::Operation, ..ExtractOptions::default() });
    let third = 1.0 / 3.0;
    check_calls(&found, &["A.1 sync 1 B.get", &format!("B.get sync {third} C.read"), &format!("B.get forward {third} C.fetch")]);
}

/// The same operation with and without a reply: two entries, as an entry accepts one kind.
#[test]
fn mixed_acceptance_is_split() {
    let log = "sender,receiver,time,operation\nA,B,1,put\nB,A,2,ok\nA,C,3,go\nC,B,4,put\nC,A,5,ok\n";
    let found = extract_text(log, &ExtractOptions::default());
    check_calls(&found, &["A.1 sync 0.5 B.put", "A.1 sync 0.5 C.go", "C.go async 1 B.put#2"]);
    assert_eq!(count(&found, "entry_mixed_accept"), 1);
}

/// Threads of one process are units of their own, and one task with as many threads.
#[test]
fn threads_are_part_of_the_unit() {
    let log = "sender,sender_thread,receiver,receiver_thread,time\n\
               u,1,api,a,0\nu,2,api,b,5\napi,a,db,,10\ndb,,api,a,20\napi,a,u,1,30\napi,b,db,,32\ndb,,api,b,40\napi,b,u,2,50\n";
    let found = check_records(
        log,
        &literal(),
        &["sync api@a.1@10 db.1@20", "sync u@1.1@0 api@a.1@30", "sync api@b.1@32 db.2@40", "sync u@2.1@5 api@b.1@50"],
    );
    check_calls(&found, &["u.1 sync 1 api.1", "api.1 sync 1 db.1"]);
    assert!(found.model.task("u").unwrap().multiplicity.is(2.0));
    assert!(found.model.task("api").unwrap().multiplicity.is(2.0));
    assert!(found.model.task("db").unwrap().multiplicity.is(1.0));
}

/// Branches of one flow that meet in a task.
#[test]
fn joins_are_said_not_to_be_seen() {
    let log = messages(&[("S", "A", 1), ("A", "B", 2), ("A", "C", 3), ("B", "D", 4), ("C", "D", 5)]);
    let found = extract_text(&log, &literal());
    assert_eq!(count(&found, "join_not_detected"), 1);
    assert_eq!(calls(&found.model).len(), 5, "both branches are kept");
}

/// A message that its receiver also takes as a request is read as a reply, and said so.
#[test]
fn callbacks_are_read_as_replies() {
    let log = "sender,receiver,time,operation\nX,A,1,notify\nA,X,2,ok\nA,B,3,subscribe\nB,A,4,notify\n";
    let found = extract_text(log, &literal());
    assert_eq!(count(&found, "callback_as_reply"), 1);
}

/// Clocks that disagree: in two-point mode such messages count as sent when they were received, and none is lost.
#[test]
fn messages_received_before_they_were_sent_are_clamped() {
    let log = timed_messages(&[("A", "B", 1, 2), ("B", "C", 9, 4), ("C", "B", 5, 6), ("B", "A", 7, 8)]);
    let expected = ["sync A.1@2 B.1@8", "sync B.1@4 C.1@6"];
    let found = check_records(&log, &two_point(), &expected);
    assert_eq!((count(&found, "clock_skew"), count(&found, "sending_time_clamped")), (1, 1));
    let by_default = check_records(&log, &ExtractOptions::default(), &expected);
    assert_eq!((count(&by_default, "clock_skew"), count(&by_default, "sending_time_clamped")), (1, 0));
}

/// Parts of one recording of which each is a whole log are read side by side, however long.
#[test]
fn parts_are_read_side_by_side() {
    let rows = |first: i64| {
        (first..40_000).step_by(2).map(|n| {
            let (from, to) = [("A", "B"), ("B", "C"), ("C", "B"), ("B", "A")][(n % 4) as usize];
            (from, to, n)
        })
    };
    let logs = [0, 1].map(|first| messages(&rows(first).collect::<Vec<_>>()));
    let sources: Vec<StreamSource<'_>> = logs.iter().map(|log| Source { name: "part.csv", bytes: log.as_bytes() }.stream()).collect();
    let mut options = SameOptions::of(&ExtractOptions { sources_are: SourcesAre::Parts, ..literal() });
    options.read.windows = Windows { events: 4, ..Windows::default() };
    options.batch = 100;
    let mut same = Same::new(&options);
    let mut all = Interactions::default();
    let mut n_batches = 0;
    let mut found = |batch| {
        all.merge(batch);
        n_batches += 1;
    };
    same.feed(sources, &mut found).unwrap();
    same.finish(&mut found);
    assert_eq!((all.count(InteractionKind::Sync), all.interactions.len()), (20_000, 20_000));
    assert_eq!((all.diagnostics.count("late_step"), all.diagnostics.count("unordered_time")), (0, 0));
    assert!(n_batches > 100, "{n_batches}");
    assert_eq!(all.traces.iter().filter(|trace| !trace.continued).count(), 1);
}
