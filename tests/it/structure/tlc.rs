//! TLC: the published cases and the vectors derived for its specification, each a test named after it.

mod call_set_up;

use std::collections::BTreeSet;

use layerfit::{
    structure::{
        Demands, ExtractOptions, Extraction, MergeKey,
        interactions::{InteractionKind, Interactions},
        tlc::{
            AsyncForwarding, EntryKind, SubModel, SubNode, TaskCounters, Template, Tlc, TlcOptions, TlcReport, Unanswered, WeightedEntry,
            merge_entries, sub_model,
        },
        to_model,
    },
    trace::{
        Time,
        angio::{AngioEvent, AngioKind},
    },
};

use super::{calls, check_calls, count, records, reference_tasks};

/// Events written `(k,m,l/i,v)` of scenario `a`, as Eq 4.1 of the paper has them; blanks and `;` between.
fn events(text: &'static str) -> Vec<AngioEvent<'static>> {
    let nodes = text.split(['(', ')', ';', '\n']).map(str::trim).filter(|node| !node.is_empty());
    let event = |node: &'static str| {
        let (operation, task) = node.split_once('/').unwrap();
        let [thread, thread_node, label] = operation.split(',').collect::<Vec<_>>()[..] else { panic!("{node}") };
        let (task, task_node) = task.split_once(',').unwrap();
        let kind = match label.strip_prefix("Fk") {
            Some(child) => AngioKind::Fork { child_thread: child.parse().unwrap() },
            None => match label {
                "Be" => AngioKind::Begin,
                "Ac" => AngioKind::Activity,
                "Ed" => AngioKind::End,
                _ => panic!("{node}"),
            },
        };
        AngioEvent::new("a", thread.parse().unwrap(), thread_node.parse().unwrap(), kind, task, task_node.parse().unwrap())
    };
    nodes.map(event).collect()
}

/// Figure 3 of the paper.
const FIG_3: &str = "(1,1,Be/A,1) (1,2,Ac/A,2) (1,3,Ac/A,3) (1,4,Ac/B,1) (1,5,Fk2/B,2) (1,6,Ac/B,3) (1,7,Ac/A,4) (1,8,Ed/A,5); \
                     (2,1,Be/C,1) (2,2,Ac/C,2) (2,3,Ed/C,3)";

/// Figure 4 of the paper, with the nodes that the text does not quote as they must be.
const FIG_4: &str = "(1,1,Be/A,1)(1,2,Ac/A,2)(1,3,Ac/A,3)(1,4,Ac/B,1)(1,5,Fk2/B,2)(1,6,Ed/B,3); \
                     (2,1,Be/C,1)(2,2,Ac/C,2)(2,3,Fk3/C,3)(2,4,Ac/C,4)(2,5,Ed/C,5); (3,1,Be/A,4)(3,2,Ac/A,5)(3,3,Ed/A,6)";

const PHASE_TWO: &str = "(1,1,Be/A,1)(1,2,Ac/A,2)(1,3,Ac/B,1)(1,4,Fk2/B,2)(1,5,Ac/B,3)(1,6,Fk3/B,4)(1,7,Ed/B,5); \
                         (2,1,Be/A,3)(2,2,Ac/A,4)(2,3,Ed/A,5);(3,1,Be/C,1)(3,2,Ed/C,2)";

const ASYNC_RPC: &str = "(1,1,Be/A,1)(1,2,Fk2/A,2)(1,3,Ed/A,3);(2,1,Be/B,1)(2,2,Ac/B,2)(2,3,Fk3/B,3)(2,4,Ed/B,4); \
                         (3,1,Be/A,4)(3,2,Ac/A,5)(3,3,Ed/A,6)";

const NESTED_ASYNC_RPC: &str = "(1,1,Be/A,1)(1,2,Fk2/A,2)(1,3,Ed/A,3);(2,1,Be/B,1)(2,2,Fk3/B,2)(2,3,Ed/B,3); \
                                (3,1,Be/C,1)(3,2,Fk4/C,2)(3,3,Ed/C,3);(4,1,Be/B,4)(4,2,Ac/B,5)(4,3,Fk5/B,6)(4,4,Ed/B,7); \
                                (5,1,Be/A,4)(5,2,Ed/A,5)";

const DEPTH_2: &str = "(1,1,Be/A,1)(1,2,Ac/A,2)(1,3,Ac/B,1)(1,4,Fk2/B,2)(1,5,Ed/B,3);(2,1,Be/C,1)(2,2,Fk3/C,2)(2,3,Ed/C,3); \
                       (3,1,Be/D,1)(3,2,Ac/D,2)(3,3,Fk4/D,3)(3,4,Ed/D,4);(4,1,Be/A,3)(4,2,Ed/A,4)";

/// (v) with B replaced by B → C, where C replies to A.
const GAP: &str = "(1,1,Be/A,1)(1,2,Fk2/A,2)(1,3,Ed/A,3);(2,1,Be/B,1)(2,2,Ac/B,2)(2,3,Fk3/B,3)(2,4,Ed/B,4); \
                   (3,1,Be/C,1)(3,2,Ac/C,2)(3,3,Fk4/C,3)(3,4,Ed/C,4);(4,1,Be/A,4)(4,2,Ac/A,5)(4,3,Ed/A,6)";

/// Entries in a short form: `R B [async/2 3] {1 | 3}` for type, task, requests (with their phase) and activities by phase.
fn shown(model: &SubModel) -> Vec<String> {
    let entry = |entry: &layerfit::structure::tlc::SubEntry| {
        let kind = match entry.kind {
            EntryKind::Customer => "Cu",
            EntryKind::Rpc => "R",
            EntryKind::Async => "A",
            EntryKind::Forwarding => "F",
        };
        let request = |request: &layerfit::structure::tlc::SubRequest| {
            let kind = match request.kind {
                InteractionKind::Sync => "sync",
                InteractionKind::Async => "async",
                InteractionKind::Forward => "fwd",
            };
            format!("{kind}{} {}", if request.phase == 2 { "/2" } else { "" }, request.to)
        };
        let requests: Vec<String> = entry.requests.iter().map(request).collect();
        let activities = |phase: usize| entry.activities[phase].iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        let second = if entry.activities[1].is_empty() { String::new() } else { format!(" | {}", activities(1)) };
        format!("{kind} {} [{}] {{{}{second}}}", entry.task, requests.join(", "), activities(0))
    };
    model.entries.iter().map(entry).collect()
}

fn template(template: Template) -> String {
    serde_json::to_value(template).unwrap().as_str().unwrap().to_owned()
}

/// Templates in the order found: `i (1,3)(1,4)(1,6)(1,7)`.
fn matches(model: &SubModel) -> Vec<String> {
    let node = |node: &SubNode| format!("({},{})", node.thread, node.thread_node);
    let found = model.matches.iter().map(|(t, nodes)| format!("{} {}", template(*t), nodes.iter().map(node).collect::<String>()));
    found.collect()
}

fn check(text: &'static str, options: &TlcOptions, expected: &[&str]) -> SubModel {
    let model = sub_model(&events(text), options).unwrap();
    assert_eq!(shown(&model), expected);
    assert_eq!(model.unmatched, []);
    model
}

/// Feeds events through the stream, and merges all recordings.
fn run(events: &[AngioEvent<'_>], options: &TlcOptions) -> (Interactions, TlcReport) {
    let mut all = Interactions::default();
    let mut tlc = Tlc::new(options.clone());
    for event in events {
        tlc.feed(event, &mut |batch| all.merge(batch));
    }
    let report = tlc.finish(&mut |batch| all.merge(batch));
    (all, report)
}

fn model_of(events: &[AngioEvent<'_>], options: &TlcOptions, extract: &ExtractOptions) -> (Extraction, TlcReport) {
    let (interactions, report) = run(events, options);
    assert_eq!(report.events.read, report.events.used + report.events.unmatched + report.events.duplicate);
    (to_model("tlc", interactions, extract).unwrap(), report)
}

/// The model of events, its calls and its records.
fn check_model(text: &'static str, options: &TlcOptions, expected_calls: &[&str], expected_records: &[&str]) -> Extraction {
    let (found, _) = model_of(&events(text), options, &ExtractOptions::default());
    check_calls(&found, expected_calls);
    let mut expected: Vec<String> = expected_records.iter().map(|record| (*record).to_owned()).collect();
    expected.sort();
    assert_eq!(records(&found), expected);
    assert_eq!(reference_tasks(&found.model), ["a"]);
    found
}

fn with_async_forwarding() -> TlcOptions {
    TlcOptions { async_forwarding: AsyncForwarding::Forwarded, ..TlcOptions::default() }
}

/// The order of matching is that of section 5.2, the sub-model W that of section 3.
#[test]
fn fig_3() {
    let expected = ["Cu a [sync 1] {}", "R A [sync 2] {2 3 4}", "R B [async 3] {1 3}", "A C [] {2}"];
    let model = check(FIG_3, &TlcOptions::default(), &expected);
    let order = ["ix (1,1)", "vii (1,2)", "i (1,3)(1,4)(1,6)(1,7)", "ii (1,5)(2,1)", "viii (1,8)", "vii (2,2)", "viii (2,3)"];
    assert_eq!(matches(&model), order);
    check_model(
        FIG_3,
        &TlcOptions::default(),
        &["a.1 sync 1 A.1", "A.1 sync 1 B.1", "B.1 async 1 C.1"],
        &["sync a.1@1 A.1@5", "sync A.1@1 B.1@4", "async B.1 C.1 @1"],
    );
}

/// Phase-two nodes are the three that the text names; the continuation of A, missing from Table 1 (iv), is analysed as the
/// specification has it.
#[test]
fn fig_4() {
    let expected = ["Cu a [sync 1] {}", "R A [sync 2] {2 3 5}", "R B [fwd 3] {1}", "F C [] {2 | 4}"];
    let model = check(FIG_4, &TlcOptions::default(), &expected);
    let order = [
        "ix (1,1)",
        "vii (1,2)",
        "iv (1,3)(1,4)(1,5)(2,1)(2,3)(3,1)",
        "viii (1,6)",
        "vii (2,2)",
        "vii (2,4)",
        "viii (2,5)",
        "vii (3,2)",
        "viii (3,3)",
    ];
    assert_eq!(matches(&model), order);
    let nodes = model.matches.iter().flat_map(|(_, nodes)| nodes);
    let second: BTreeSet<(u64, u32)> = nodes.filter(|n| n.second_phase).map(|n| (n.thread, n.thread_node)).collect();
    assert_eq!(second, BTreeSet::from([(1, 6), (2, 4), (2, 5)]));
    check_model(
        FIG_4,
        &TlcOptions::default(),
        &["a.1 sync 1 A.1", "A.1 sync 1 B.1", "B.1 forward 1 C.1"],
        &["sync a.1@1 A.1@6", "forward A.1@1 B.1@1 C.1@4"],
    );
}

#[test]
fn rpc_with_phase_two() {
    let expected = ["Cu a [sync 1] {}", "R A [sync 2] {2 4}", "R B [async/2 3] {1 | 3}", "A C [] {}"];
    check(PHASE_TWO, &TlcOptions::default(), &expected);
    let calls = ["a.1 sync 1 A.1", "A.1 sync 1 B.1", "B.1 async/2 1 C.1"];
    let found = check_model(PHASE_TWO, &TlcOptions::default(), &calls, &["sync a.1@1 A.1@5", "sync A.1@1 B.1@3", "async/2 B.1 C.1 @1"]);
    assert_eq!(found.interactions.sync, 2);
}

#[test]
fn rpc_from_asynchronous_primitives() {
    check(ASYNC_RPC, &TlcOptions::default(), &["Cu a [sync 1] {}", "R A [sync 2] {5}", "R B [] {2}"]);
    check_model(ASYNC_RPC, &TlcOptions::default(), &["a.1 sync 1 A.1", "A.1 sync 1 B.1"], &["sync a.1@1 A.1@6", "sync A.1@1 B.1@4"]);
}

/// The trigger on (4,1) finds its node in (v) already.
#[test]
fn nested_rpc_from_asynchronous_primitives() {
    let expected = ["Cu a [sync 1] {}", "R A [sync 2] {}", "R B [sync 3] {5}", "R C [] {}"];
    let model = check(NESTED_ASYNC_RPC, &TlcOptions::default(), &expected);
    let larger: Vec<String> = matches(&model).into_iter().filter(|found| found.starts_with('v') && found.len() > 20).collect();
    assert_eq!(larger, ["vi (1,2)(1,3)(2,1)(4,3)(5,1)", "v (2,2)(2,3)(3,1)(3,2)(4,1)"]);
}

/// The task of each forwarder's entry is that of its own begin: Table 1 has that of the task before it.
#[test]
fn depth_2_forward() {
    let expected = ["Cu a [sync 1] {}", "R A [sync 2] {2}", "R B [fwd 3] {1}", "F C [fwd 4] {}", "F D [] {2}"];
    check(DEPTH_2, &TlcOptions::default(), &expected);
    check_model(
        DEPTH_2,
        &TlcOptions::default(),
        &["a.1 sync 1 A.1", "A.1 sync 1 B.1", "B.1 forward 1 C.1", "C.1 forward 1 D.1"],
        &["sync a.1@1 A.1@4", "forward A.1@1 B.1@1 C.1@1 D.1@3"],
    );
}

/// The paper's rules read three chained messages; the optional template (iv′) of the specification a forwarded request.
#[test]
fn gap() {
    let chained = ["Cu a [sync 1] {}", "R A [async 2] {}", "A B [async 3] {2}", "A C [async 4] {2}", "A A [] {5}"];
    check(GAP, &TlcOptions::default(), &chained);
    let (found, _) = model_of(&events(GAP), &TlcOptions::default(), &ExtractOptions::default());
    assert_eq!(count(&found, "async_forward_detected"), 1);

    let forwarded = ["Cu a [sync 1] {}", "R A [sync 2] {5}", "R B [fwd 3] {2}", "F C [] {2}"];
    let model = check(GAP, &with_async_forwarding(), &forwarded);
    assert!(matches(&model).contains(&"iv' (1,2)(1,3)(2,1)(2,3)(3,1)(3,3)(4,1)".to_owned()));
    let calls = ["a.1 sync 1 A.1", "A.1 sync 1 B.1", "B.1 forward 1 C.1"];
    let found = check_model(GAP, &with_async_forwarding(), &calls, &["sync a.1@1 A.1@6", "forward A.1@1 B.1@1 C.1@4"]);
    assert_eq!((count(&found, "async_forward_detected"), count(&found, "async_forward_used")), (0, 1));
}

/// (iv′) leaves what the other templates find as it is.
#[test]
fn asynchronous_forwarding_changes_nothing_else() {
    for text in [FIG_3, FIG_4, PHASE_TWO, ASYNC_RPC, NESTED_ASYNC_RPC, DEPTH_2] {
        assert_eq!(sub_model(&events(text), &with_async_forwarding()), sub_model(&events(text), &TlcOptions::default()));
    }
}

fn weighted(frequency: f64, demand: f64, requests: &[(usize, f64)]) -> WeightedEntry {
    let requests = requests.iter().map(|(target, mean)| ((1, *target), *mean)).collect();
    WeightedEntry { frequency, demands: [demand, 0.0], requests }
}

#[test]
fn averaging() {
    let merged = merge_entries(&[weighted(1.0, 0.0, &[(2, 1.0)]), weighted(1.0, 0.0, &[]), weighted(1.0, 3.0, &[])], &[0, 0, 1]);
    assert_eq!(merged[0], weighted(2.0, 0.0, &[(1, 0.5)]));

    let (x, y) = (weighted(6.0, 1.0, &[]), weighted(2.0, 1.0, &[]));
    let merged = merge_entries(&[weighted(3.0, 2.0, &[(2, 1.0)]), weighted(1.0, 6.0, &[(2, 3.0), (3, 2.0)]), x, y], &[0, 0, 1, 2]);
    assert_eq!(merged[0], weighted(4.0, 3.0, &[(1, 1.5), (2, 0.5)]));
}

/// Requests of one source to entries that are merged add; frequencies add; flows are kept.
#[test]
fn averaging_adds_requests_of_one_source() {
    let merged = merge_entries(&[weighted(2.0, 1.0, &[(1, 1.0), (2, 1.0)]), weighted(2.0, 1.0, &[]), weighted(2.0, 5.0, &[])], &[0, 1, 1]);
    assert_eq!(merged, [weighted(2.0, 1.0, &[(1, 2.0)]), weighted(4.0, 3.0, &[])]);
    let never = merge_entries(&[weighted(0.0, 2.0, &[]), weighted(0.0, 4.0, &[])], &[0, 0]);
    assert_eq!(never, [weighted(0.0, 3.0, &[])]);
}

/// Averaging through the shared road: of two runs of B's operation one asks NumTrans.
#[test]
fn averaging_by_the_shared_road() {
    let text = "(1,1,Be/A,1)(1,2,Ac/A,2)(1,3,Ac/B,1)(1,4,Ac/B,2)(1,5,Ac/N,1)(1,6,Ac/N,2)(1,7,Ac/B,3)(1,8,Ac/B,4)(1,9,Ac/A,3)\
                (1,10,Ac/A,4)(1,11,Ac/B,5)(1,12,Ac/B,6)(1,13,Ac/A,5)(1,14,Ed/A,6)";
    let mut events = events(text);
    for event in &mut events {
        event.operation = if event.task == "B" { "route" } else { "" };
        event.demand = (event.kind == AngioKind::Activity).then_some(500.0);
    }
    let options = ExtractOptions { merge: MergeKey::Operation, demands: Demands::SelfTimes, ..ExtractOptions::default() };
    let (found, report) = model_of(&events, &TlcOptions::default(), &options);
    check_calls(&found, &["a.1 sync 1 A.1", "A.1 sync 2 B.route", "B.route sync 0.5 N.1"]);
    assert_eq!(count(&found, "merge_spread"), 1);
    let route = report.entries.iter().find(|entry| entry.operation.as_deref() == Some("route")).unwrap();
    assert_eq!((route.invocations, route.requests.mean(), route.phases[0].demand.mean()), (2, Some(0.5), Some(1500.0)));
    let entry = &found.model.task("B").unwrap().entries[0];
    assert_eq!(entry.phases[0].activity.host_demand.to_string(), "0.0015");
}

/// Section 6, first vector: spans api 0–100, its client span 10–60, db 20–50.
#[test]
fn spans_as_events() {
    let text = "(1,1,Be/api,1)(1,2,Ac/api,2)(1,3,Ac/db,1)(1,4,Ac/db,2)(1,5,Ac/api,3)(1,6,Ed/api,4)";
    check(text, &TlcOptions::default(), &["Cu a [sync 1] {}", "R api [sync 2] {2 3}", "R db [] {1 2}"]);
}

/// Section 6, second vector: db goes on to 90 and calls the cache from 67 to 80.
#[test]
fn spans_as_events_with_second_phase() {
    let text = "(1,1,Be/api,1)(1,2,Ac/api,2)(1,3,Ac/db,1)(1,4,Fk2/db,2)(1,5,Ac/db,3)(1,6,Ac/cache,1)(1,7,Ac/cache,2)(1,8,Ac/db,4)\
                (1,9,Ed/db,5);(2,1,Be/api,3)(2,2,Ed/api,4)";
    let expected = ["Cu a [sync 1] {}", "R api [sync 2] {2}", "R db [sync/2 3] {1 | 3 4}", "R cache [] {1 2}"];
    check(text, &TlcOptions::default(), &expected);
}

/// A task that worked for another scenario between sending and reply was not blocked by it.
#[test]
fn task_busy_elsewhere() {
    let text = "(1,1,Be/A,1)(1,2,Fk2/A,2)(1,3,Ed/A,3);(2,1,Be/B,1)(2,2,Fk3/B,2)(2,3,Ed/B,3);(3,1,Be/A,9)(3,2,Ac/A,10)(3,3,Ed/A,11)";
    check(text, &TlcOptions::default(), &["Cu a [sync 1] {}", "R A [async 2] {}", "A B [async 3] {}", "A A [] {10}"]);
    let (found, _) = model_of(&events(text), &TlcOptions::default(), &ExtractOptions::default());
    assert_eq!((count(&found, "task_busy_elsewhere"), count(&found, "task_counter_gap")), (1, 1));
    let within = TlcOptions { task_counters: TaskCounters::WithinRecording, ..TlcOptions::default() };
    check(text, &within, &["Cu a [sync 1] {}", "R A [sync 2] {10}", "R B [] {}"]);
}

/// A reply of another service of the same task does not make a request one that is waited for (guard of (vi)).
#[test]
fn ambiguous_reply() {
    let text = "(1,1,Be/X,1)(1,2,Fk2/X,2)(1,3,Fk3/X,3)(1,4,Ed/X,4);(2,1,Be/A,1)(2,2,Fk4/A,2)(2,3,Ed/A,3);(4,1,Be/B,1)(4,2,Ed/B,2); \
                (3,1,Be/B,3)(3,2,Fk5/B,4)(3,3,Ed/B,5);(5,1,Be/A,4)(5,2,Ed/A,5)";
    let expected = ["Cu a [sync 1] {}", "R X [async 2, async 3] {}", "A A [async 4] {}", "A B [async 5] {}", "A B [] {}", "A A [] {}"];
    let model = sub_model(&events(text), &TlcOptions::default()).unwrap();
    let kinds = |model: &[String]| model.iter().map(|e| e.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(kinds(&shown(&model)), kinds(&expected.map(str::to_owned)));
    let (found, _) = model_of(&events(text), &TlcOptions::default(), &ExtractOptions::default());
    assert_eq!(count(&found, "ambiguous_reply"), 1);
}

/// A request whose reply was lost: what it led to is found, or left unmatched as the paper would.
#[test]
fn unanswered_request() {
    let text = "(1,1,Be/A,1)(1,2,Ac/A,2)(1,3,Ac/B,1)(1,4,Ac/B,2)(1,5,Ac/C,1)";
    check(text, &TlcOptions::default(), &["Cu a [sync 1] {}", "R A [sync 2] {2}", "R B [sync 3] {1 2}", "R C [] {1}"]);
    let (found, report) = model_of(&events(text), &TlcOptions::default(), &ExtractOptions::default());
    assert_eq!((count(&found, "unanswered_request"), count(&found, "thread_without_end")), (2, 1));
    assert_eq!(count(&found, "incomplete_recording"), 1);
    assert_eq!(report.templates[&Template::Unanswered], 2);

    let paper = TlcOptions { unanswered: Unanswered::Unmatched, ..TlcOptions::default() };
    let model = sub_model(&events(text), &paper).unwrap();
    assert_eq!(shown(&model), ["Cu a [sync 1] {}", "R A [] {2}"]);
    assert_eq!(model.unmatched.len(), 3);
}

/// A thread that comes back to the task that it left is a return, even where the counters do not show that it waited.
#[test]
fn a_return_is_no_request() {
    let text = "(1,1,Be/A,1)(1,2,Ac/A,2)(1,3,Ac/B,1)(1,4,Ac/B,2)(1,5,Ac/A,7)(1,6,Ed/A,8)";
    check(text, &TlcOptions::default(), &["Cu a [sync 1] {}", "R A [sync 2] {2 7}", "R B [] {1 2}"]);
}

/// Receiving and replying may be one event.
#[test]
fn receiving_and_replying_at_once() {
    check(
        "(1,1,Be/A,1)(1,2,Ac/A,2)(1,3,Ac/B,1)(1,4,Ac/A,3)(1,5,Ed/A,4)",
        &TlcOptions::default(),
        &["Cu a [sync 1] {}", "R A [sync 2] {2 3}", "R B [] {1}"],
    );
}

/// A second phase goes on in another thread after a request made of messages: marks by thread, as in the paper, would end it.
#[test]
fn second_phase_across_threads() {
    let text = "(1,1,Be/A,1)(1,2,Ac/A,2)(1,3,Ac/B,1)(1,4,Fk2/B,2)(1,5,Ac/B,3)(1,6,Fk3/B,4)(1,7,Ed/B,5);(2,1,Be/A,3)(2,2,Ed/A,4); \
                (3,1,Be/C,1)(3,2,Fk4/C,2)(3,3,Ed/C,3);(4,1,Be/B,6)(4,2,Ac/B,7)(4,3,Ed/B,8)";
    let expected = ["Cu a [sync 1] {}", "R A [sync 2] {2}", "R B [sync/2 3] {1 | 3 7}", "R C [] {}"];
    check(text, &TlcOptions::default(), &expected);
}

/// Events in any order, and of several recordings at once, make the same models.
#[test]
fn order_of_rows_does_not_matter() {
    let mut rows: Vec<AngioEvent<'_>> = Vec::new();
    for (trace, text) in [("t1", FIG_3), ("t2", FIG_4), ("t3", NESTED_ASYNC_RPC)] {
        rows.extend(events(text).into_iter().map(|event| AngioEvent { trace, ..event }));
    }
    let (in_order, report) = run(&rows, &TlcOptions::default());
    assert_eq!((report.recordings, report.events.used), (3, rows.len() as u64));
    rows.reverse();
    let (reversed, again) = run(&rows, &TlcOptions::default());
    assert_eq!(report, again);
    let extract = |interactions| to_model("m", interactions, &ExtractOptions::default()).unwrap();
    let names = |e: &Extraction| calls(&e.model).into_iter().collect::<BTreeSet<_>>().len();
    assert_eq!(names(&extract(in_order)), names(&extract(reversed)));
}

/// Without a trace column one run of a scenario follows the other.
#[test]
fn runs_of_a_scenario_are_told_apart_by_their_end() {
    let rows = [events(FIG_3), events(FIG_3)].concat();
    let (found, report) = run(&rows, &TlcOptions::default());
    assert_eq!(found.traces.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["a", "a#2"]);
    assert_eq!((report.recordings, report.events.used), (2, 22));
}

/// Services are tasks of the model, their tasks its threads; demands and weights come through; so do resource functions.
#[test]
fn services_demands_and_weights() {
    let mut rows = events(FIG_3);
    for event in &mut rows {
        event.weight = (event.thread == 2).then_some(4.0);
        if event.task == "B" {
            (event.service, event.activity) = ("Pool", "look up");
        }
        if event.task == "A" && event.kind == AngioKind::Activity {
            event.demand = Some(1e6);
        }
    }
    let functions = [("look up", 250_000.0), ("look down", 1.0)].map(|(activity, ticks)| (activity.to_owned(), ticks));
    let options = TlcOptions { resource_functions: functions.into_iter().collect(), ..TlcOptions::default() };
    let (found, report) = run(&rows, &options);
    let told: Vec<_> = found.diagnostics.clone().into_vec().into_iter().filter(|d| d.code == "function_of_nothing").collect();
    assert_eq!(told[0].examples, ["look down"]);
    assert_eq!(found.traces[0].weight, 4.0);
    assert_eq!(found.units.names.iter().collect::<Vec<_>>(), ["a", "A", "Pool@B", "C"]);
    assert_eq!(found.occurrences[1].self_time_ticks, [Some(3e6), None]);
    assert_eq!(found.occurrences[2].self_time_ticks, [Some(5e5), None]);
    let pool = report.entries.iter().find(|entry| entry.task == "Pool").unwrap();
    assert_eq!(pool.phases[0].sequences[0].activities, ["look up", "look up"]);
    assert_eq!(pool.phases[0].activities[0].demand.mean(), Some(250_000.0));
}

/// Without demands, self times are what passes between nodes of a task, but for what it waits.
#[test]
fn self_times_from_times() {
    let times = [0, 10, 20, 40, 50, 60, 100, 130, 55, 57, 58];
    let mut rows = events(FIG_3);
    for (event, time) in rows.iter_mut().zip(times) {
        event.time = Some(Time::from_ticks(time));
    }
    let (found, _) = run(&rows, &TlcOptions::default());
    let self_times: Vec<[Option<f64>; 2]> = found.occurrences.iter().map(|o| o.self_time_ticks).collect();
    assert_eq!(self_times, [[None, None], [Some(50.0), None], [Some(20.0), None], [Some(3.0), None]]);
    let extraction = to_model("m", found, &ExtractOptions::default()).unwrap();
    assert!(records(&extraction).contains(&"sync A.1@40 B.1@100".to_owned()), "{:?}", records(&extraction));
}

/// Recordings beyond the limit are analysed as they stand; what comes of them later is told to be without a beginning.
#[test]
fn memory_is_bounded() {
    let traces: Vec<String> = (0..50).map(|n| format!("t{n}")).collect();
    let mut rows: Vec<AngioEvent<'_>> = Vec::new();
    for half in [0..6, 6..11] {
        for trace in &traces {
            rows.extend(events(FIG_3)[half.clone()].iter().map(|event| AngioEvent { trace, ..*event }));
        }
    }
    let options = TlcOptions { live_events_limit: 60, ..TlcOptions::default() };
    let mut tlc = Tlc::new(options);
    let mut all = Interactions::default();
    for row in &rows {
        tlc.feed(row, &mut |batch| all.merge(batch));
        assert!(tlc.n_live_events() <= 60);
    }
    let report = tlc.finish(&mut |batch| all.merge(batch));
    assert!(all.diagnostics.count("live_events_limit") > 0);
    assert_eq!(report.events.read, report.events.used + report.events.unmatched);
    assert!(all.diagnostics.count("unmatched_nodes") + all.diagnostics.count("no_first_node") > 0);
}
