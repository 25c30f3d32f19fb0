//! Execution graphs: the cases of the paper's Table 1, the vectors derived for its specification, each a test named after it
//! and checked against the paper's own segments; traces of the Building Security System's shape; random operations.

mod bss;
mod nests;
mod segments;

use layerfit::{
    structure::{
        ExtractOptions, MergeKey,
        execution_graph::{AsyncRpc, ClassKind, CpuStamps, ExecutionGraphOptions, ExecutionGraphs, InteractionClass, WorkloadReport},
        extract,
        interactions::{InteractionKind, Interactions},
        resources::parse_resources,
        to_model,
    },
    trace::{
        Format, Source,
        diagnostics::Diagnostics,
        event_trace::{Event, EventKind, ReadOptions, read_event_trace},
    },
};
use nests::{Flags, nest};
use proptest::prelude::*;
use segments::identify;

use super::{calls, check_calls, reference_tasks};

/// An event that owns its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedEvent {
    operation: u64,
    thread: u64,
    next_thread: Option<u64>,
    index: u64,
    kind: EventKind,
    task: String,
    entry: String,
    ack: Option<bool>,
    cpu: Option<f64>,
}

impl OwnedEvent {
    fn key(&self) -> (&str, &str) {
        (&self.task, &self.entry)
    }

    fn event(&self) -> Event<'_> {
        let Self { operation, thread, next_thread, index, kind, ack, cpu, .. } = *self;
        Event { operation, thread, next_thread, index, kind, task: &self.task, entry: &self.entry, ack, cpu_ticks: cpu }
    }
}

/// Threads 1, 2, … of an operation: `Ex A, Fo A(2), En A`; `(2!)` says that the spawned thread carries a reply, `(2-)` that it
/// does not, `Ac A/5` that 5 ticks of CPU were used. Task A has the entry a, unless it is said: `A.x`.
fn operation(number: u64, threads: &[&str]) -> Vec<OwnedEvent> {
    let event = |thread: u64, index: u64, text: &str| {
        let (text, cpu) = text.split_once('/').map_or((text, None), |(text, cpu)| (text, Some(cpu.parse().unwrap())));
        let (text, spawned) = text.split_once('(').map_or((text, None), |(text, spawned)| (text, spawned.strip_suffix(')')));
        let (kind, place) = text.split_once(' ').unwrap();
        let lower = place.to_lowercase();
        let (task, entry) = place.split_once('.').unwrap_or((place, &lower));
        OwnedEvent {
            operation: number,
            thread,
            next_thread: spawned.map(|spawned| spawned.trim_end_matches(['!', '-']).parse().unwrap()),
            index,
            kind: EventKind::parse(kind).unwrap(),
            task: task.to_owned(),
            entry: entry.to_owned(),
            ack: spawned.and_then(|spawned| if spawned.ends_with('!') { Some(true) } else { spawned.ends_with('-').then_some(false) }),
            cpu,
        }
    };
    let thread = |(number, text): (u64, &&str)| -> Vec<OwnedEvent> {
        (1..).zip(text.split(',')).map(|(index, text)| event(number, index, text.trim())).collect()
    };
    (1..).zip(threads).flat_map(thread).collect()
}

struct Found {
    interactions: Interactions,
    report: WorkloadReport,
    batches: usize,
}

fn find(events: &[OwnedEvent], options: ExecutionGraphOptions) -> Found {
    let mut graphs = ExecutionGraphs::new(options);
    let mut batches = Vec::new();
    for event in events {
        graphs.feed(&event.event(), &mut |batch| batches.push(batch));
    }
    finish(graphs, batches)
}

fn finish(graphs: ExecutionGraphs, mut batches: Vec<Interactions>) -> Found {
    let report = graphs.finish(&mut |batch| batches.push(batch));
    let mut interactions = Interactions::default();
    let n_batches = batches.len();
    batches.into_iter().for_each(|batch| interactions.merge(batch));
    Found { interactions, report, batches: n_batches }
}

fn paper() -> ExecutionGraphOptions {
    ExecutionGraphOptions { async_rpc: AsyncRpc::Paper, ..ExecutionGraphOptions::default() }
}

impl Found {
    /// Interactions as [`segments::Identified`] shows them.
    fn shown(&self) -> Vec<String> {
        let all = &self.interactions;
        let name = |index: usize| {
            let occurrence = &all.occurrences[index];
            format!("{}.{}", all.units.names.name(occurrence.unit), occurrence.operation.map_or("", |o| all.operations.name(o)))
        };
        let mut shown: Vec<String> = all
            .interactions
            .iter()
            .map(|interaction| {
                let kind = match interaction.kind {
                    InteractionKind::Sync => "sync",
                    InteractionKind::Async => "async",
                    InteractionKind::Forward => "forward",
                };
                let chain = [interaction.from].into_iter().chain(interaction.via.iter().copied()).chain([interaction.to]);
                format!("{kind}/{} {}", interaction.phase, chain.map(name).collect::<Vec<_>>().join(" "))
            })
            .collect();
        shown.sort();
        shown
    }

    /// Classes: `sync/1 A.a B.b n=3 y=3`.
    fn classes(&self) -> Vec<String> {
        let classes = self.report.classes.iter().map(|class| {
            let kind = serde_json::to_value(class.kind).unwrap();
            let (from, to) = (class.from.join("."), class.to.join("."));
            format!("{}/{} {from} {to} n={} y={}", kind.as_str().unwrap(), class.phase, class.n, class.y)
        });
        classes.collect()
    }

    fn count(&self, code: &str) -> u64 {
        self.interactions.diagnostics.count(code)
    }

    fn total(&self, task: &str) -> u64 {
        self.report.entries.iter().filter(|entry| entry.task == task).map(|entry| entry.total).sum()
    }
}

/// Checks the classes, that the segments give the same interactions, and in how many iterations they do.
#[track_caller]
fn check(threads: &[&str], classes: &[&str], iterations: usize) -> Found {
    let events = operation(1, threads);
    let found = find(&events, ExecutionGraphOptions::default());
    assert_eq!(found.classes(), classes);
    let by_segments = identify(&events);
    assert_eq!(find(&events, paper()).shown(), by_segments.interactions, "stack form and segments");
    assert_eq!(by_segments.iterations, iterations, "{:?}", by_segments.by_iteration);
    found
}

/// The iteration in which the segments find an interaction.
#[track_caller]
fn check_iteration(threads: &[&str], iteration: usize, interaction: &str) {
    let found = identify(&operation(1, threads)).by_iteration;
    assert!(found.contains(&(iteration, interaction.to_owned())), "{found:?}");
}

fn model_calls(found: &Found) -> Vec<String> {
    calls(&to_model("m", found.interactions.clone(), &ExtractOptions::default()).unwrap().model)
}

#[test]
fn vector_1_simple_rpc() {
    let found = check(&["Ex A,Se A,Re B,Ac B,Sa B,Ra A,En A"], &["sync/1 A.a B.b n=1 y=1"], 1);
    let extraction = to_model("m", found.interactions, &ExtractOptions::default()).unwrap();
    check_calls(&extraction, &["A.1 sync 1 B.b"]);
    assert_eq!(reference_tasks(&extraction.model), ["A"]);
    assert_eq!(extraction.diagnostics.iter().map(|d| d.code.as_str()).collect::<Vec<_>>(), ["host_demand_defaulted"]);
    assert_eq!(found.report.events.used, 7);
}

#[test]
fn vector_2_rpc_with_second_phase() {
    let threads = ["Ex A,Se A,Re B,Se B,Re C,Sa C,Ra B,Fo B(2),Se B,Re D,Sa D,Ra B,En B", "Be A,En A"];
    let classes = ["sync/1 A.a B.b n=1 y=1", "sync/1 B.b C.c n=1 y=1", "sync/2 B.b D.d n=1 y=1"];
    let found = check(&threads, &classes, 2);
    check_iteration(&threads, 2, "sync/1 A.a B.b");
    check_iteration(&threads, 1, "sync/2 B.b D.d");
    assert_eq!(model_calls(&found), ["A.1 sync 1 B.b", "B.b sync 1 C.c", "B.b sync/2 1 D.d"]);
    assert_eq!((found.count("fork_ack_ambiguous"), found.count("join_not_modelled")), (0, 0));
    assert_eq!(found.report.entries[1].phases, 2);
}

#[test]
fn vector_3_async_rpc() {
    let threads = ["Ex A,Fo A(2),Ac A,En A", "Be B,Ac B/2,Fo B(3),Ac B/5,En B", "Be A,En A"];
    let found = check(&threads, &["async_rpc/1 A.a B.b n=1 y=1"], 1);
    assert_eq!(model_calls(&found), ["A.1 async 1 B.b"]);
    assert_eq!(found.report.entries[1].cpu_ticks, [Some(2.0), Some(5.0)], "what B does after its reply is its second phase");
    let literal = find(&operation(1, &threads), paper());
    assert_eq!(literal.classes(), ["sync/1 A.a B.b n=1 y=1"]);
    assert_eq!(model_calls(&literal), ["A.1 sync 1 B.b"]);
    assert_eq!(found.count("join_not_modelled"), 1, "two threads end in A");
}

#[test]
fn vector_4_forward() {
    let found = check(&["Ex A,Se A,Re B,Se B,Re C,Sa C,Ra A,En A"], &["sync/1 A.a B.b n=1 y=1", "forward/1 B.b C.c n=1 y=1"], 1);
    assert_eq!(found.shown(), ["forward/1 A.a B.b C.c"]);
    assert_eq!(model_calls(&found), ["A.1 sync 1 B.b", "B.b forward 1 C.c"]);
}

#[test]
fn vector_5_async() {
    let found = check(&["Ex A,Fo A(2),En A", "Be B,En B"], &["async/1 A.a B.b n=1 y=1"], 0);
    assert_eq!(model_calls(&found), ["A.1 async 1 B.b"]);
}

#[test]
fn vector_6_loop_of_rpc() {
    let found = check(&["Ex A,Se A,Re B,Sa B,Ra A,Se A,Re B,Sa B,Ra A,Se A,Re B,Sa B,Ra A,En A"], &["sync/1 A.a B.b n=3 y=3"], 1);
    assert_eq!((found.total("A"), found.total("B")), (1, 3));
    assert_eq!(model_calls(&found), ["A.1 sync 3 B.b"]);
}

#[test]
fn vector_7_loop_of_forwards() {
    let threads = ["Ex A,Se A,Re B,Se B,Re C,Sa C,Ra A,Se A,Re B,Se B,Re C,Sa C,Ra A,En A"];
    let found = check(&threads, &["sync/1 A.a B.b n=2 y=2", "forward/1 B.b C.c n=2 y=1"], 1);
    assert_eq!((found.total("B"), found.total("C")), (2, 2));
    assert_eq!(model_calls(&found), ["A.1 sync 2 B.b", "B.b forward 1 C.c"]);
}

#[test]
fn vector_8_nested() {
    let threads = ["Ex A,Se A,Re B,Se B,Re C,Sa C,Ra B,Se B,Re C,Sa C,Ra B,Sa B,Ra A,En A"];
    check(&threads, &["sync/1 A.a B.b n=1 y=1", "sync/1 B.b C.c n=2 y=2"], 2);
    check_iteration(&threads, 1, "sync/1 B.b C.c");
    check_iteration(&threads, 2, "sync/1 A.a B.b");
}

/// Layers are found from the lowest, one in each iteration: n − 1 of them.
#[test]
fn vector_9_four_layers() {
    let threads = ["Ex A,Se A,Re B,Se B,Re C,Se C,Re D,Sa D,Ra C,Sa C,Ra B,Sa B,Ra A,En A"];
    check(&threads, &["sync/1 A.a B.b n=1 y=1", "sync/1 B.b C.c n=1 y=1", "sync/1 C.c D.d n=1 y=1"], 3);
    for (iteration, interaction) in [(1, "sync/1 C.c D.d"), (2, "sync/1 B.b C.c"), (3, "sync/1 A.a B.b")] {
        check_iteration(&threads, iteration, interaction);
    }
}

#[test]
fn vector_10_forward_with_inner_rpc() {
    let threads = ["Ex A,Se A,Re B,Se B,Re D,Sa D,Ra B,Se B,Re C,Sa C,Ra A,En A"];
    check(&threads, &["sync/1 A.a B.b n=1 y=1", "forward/1 B.b C.c n=1 y=1", "sync/1 B.b D.d n=1 y=1"], 2);
    check_iteration(&threads, 1, "sync/1 B.b D.d");
    check_iteration(&threads, 2, "forward/1 A.a B.b C.c");
}

/// 10 operations of A with three calls to C each; 20 of B, every second one with a call to C.
#[test]
fn vector_11_ratios() {
    let mut events = Vec::new();
    for number in 0..10 {
        events.extend(operation(number, &["Ex A,Se A,Re C,Sa C,Ra A,Se A,Re C,Sa C,Ra A,Se A,Re C,Sa C,Ra A,En A"]));
        events.extend(operation(100 + number, &["Ex B,Se B,Re C,Sa C,Ra B,En B"]));
        events.extend(operation(200 + number, &["Ex B,En B"]));
    }
    let found = find(&events, ExecutionGraphOptions::default());
    assert_eq!(found.classes(), ["sync/1 A.a C.c n=30 y=3", "sync/1 B.b C.c n=10 y=0.5"]);
    assert_eq!(found.report.classes.iter().map(|class| class.share).collect::<Vec<_>>(), [0.75, 0.25]);
    assert_eq!(["A", "B", "C"].map(|task| found.total(task)), [10, 20, 40]);
    assert_eq!(found.report.operations, 30);
    assert_eq!(model_calls(&found), ["A.1 sync 3 C.c", "B.1 sync 0.5 C.c"]);
}

/// A client of which one entry calls another entry of its own task.
#[test]
fn entries_of_one_task_may_interact() {
    let found =
        check(&["Ex A,Se A,Re B.x,Se B.x,Re B.y,Sa B.y,Ra B.x,Sa B.x,Ra A,En A"], &["sync/1 A.a B.x n=1 y=1", "sync/1 B.x B.y n=1 y=1"], 2);
    assert_eq!(found.count("self_entry_call"), 1);
}

/// A forwarded request whose client is open twice: the youngest request is answered.
#[test]
fn forwarded_reply_to_a_client_that_is_open_twice() {
    let found = check(
        &["Ex A,Se A,Re B,Se B,Re A,Se A,Re B,Se B,Re C,Sa C,Ra A,Sa A,Ra B,Sa B,Ra A,En A"],
        &["sync/1 A.a B.b n=2 y=1", "sync/1 B.b A.a n=1 y=0.5", "forward/1 B.b C.c n=1 y=0.5"],
        3,
    );
    assert_eq!(found.count("forward_reply_to_outer"), 1);
    assert_eq!(found.shown(), ["forward/1 A.a B.b C.c", "sync/1 A.a B.b", "sync/1 B.b A.a"]);
}

/// A server that starts a thread in its client, and replies only later: the stack form looks ahead, the segments do so only
/// where nothing lies between.
#[test]
fn a_fork_to_the_client_before_the_reply_is_a_request() {
    let threads = ["Ex A,Se A,Re B,Fo B(2),Se B,Re C,Sa C,Ra B,Sa B,Ra A,En A", "Be A,En A"];
    let found = find(&operation(1, &threads), ExecutionGraphOptions::default());
    assert_eq!(found.shown(), ["async/1 B.b A.a", "sync/1 A.a B.b", "sync/1 B.b C.c"]);
    assert_eq!(found.count("fork_ack_ambiguous"), 1);
    let by_segments = identify(&operation(1, &threads)).interactions;
    assert_eq!(by_segments, ["async/2 B.b A.a", "sync/1 A.a B.b", "sync/2 B.b C.c"], "the fork is taken for the reply in iteration 1");
    let flagged = ["Ex A,Se A,Re B,Fo B(2-),Se B,Re C,Sa C,Ra B,Sa B,Ra A,En A", "Be A,En A"];
    check(&flagged, &["sync/1 A.a B.b n=1 y=0.5", "async/1 B.b A.a n=1 y=1", "sync/1 B.b C.c n=1 y=1"], 2);
}

/// A flagged thread may begin in the server and reply from there.
#[test]
fn a_reply_thread_may_begin_in_the_server() {
    let threads = ["Ex A,Se A,Re B,Fo B(2!),Se B,Re C,Sa C,Ra B,En B", "Be B,Sa B,Ra A,En A"];
    let found = find(&operation(1, &threads), ExecutionGraphOptions::default());
    assert_eq!(found.shown(), ["sync/1 A.a B.b", "sync/2 B.b C.c"]);
}

/// A request that nobody waits for is forwarded, and its reply comes back.
#[test]
fn asynchronous_request_forwarded() {
    let threads = ["Ex A,Fo A(2),En A", "Be B,Se B,Re C,Sa C,Ra A,En A"];
    let found = check(&threads, &["async_fwd/1 A.a B.b n=1 y=1", "async/1 B.b C.c n=1 y=1"], 1);
    assert_eq!(found.report.classes[0].kind, ClassKind::AsyncForward);
    assert_eq!(find(&operation(1, &threads), paper()).shown(), ["forward/1 A.a B.b C.c"]);
}

/// What does not fit is counted, and the rest is found.
#[test]
fn dirty_operations_are_counted() {
    let case = |threads: &[&str], code: &str, shown: &[&str]| {
        let found = find(&operation(1, threads), ExecutionGraphOptions::default());
        assert_eq!((found.count(code), found.shown()), (1, shown.iter().map(|s| (*s).to_owned()).collect()), "{code}: {threads:?}");
    };
    case(&["Ex A,Se A,Re B,En B"], "no_reply", &["async/1 A.a B.b"]);
    case(&["Ex A,Se A,Re B,Sa B,Ra C,En C"], "unmatched_ack", &["async/1 A.a B.b"]);
    case(&["Ex A,Se A,Re B,Sa B,Ra A,Sa A,Ra C,Se C,Re D,Sa D,Ra C,En C"], "unmatched_ack", &["sync/1 A.a B.b", "sync/1 C.c D.d"]);
    case(&["Ex A,Fo A(2),En A"], "missing_thread", &[]);
    case(&["Ex A,Fo A(2),Fo A(2),En A", "Be B,En B"], "forked_twice", &["async/1 A.a B.b"]);
    case(&["Re A,Se A,Re B,Sa B,Ra A,En A"], "no_external", &["sync/1 A.a B.b"]);
    case(&["Ex A,Fo A(2),En A", "Ex B,En B"], "several_externals", &[]);
    case(&["Ex A,Se A,Ac B,Sa B,Ra A,En A"], "types_disagree", &["sync/1 A.a B.b"]);
    case(&["Ex A,Se A,Re B,Ac A,En A"], "types_disagree", &["sync/1 A.a B.b"]);
    case(&["Ex A,Se A,Re B,Sa B,Ra A,Ac A"], "misplaced_event", &["sync/1 A.a B.b"]);
}

/// A thread that nothing leads to: left out, whether it comes before or after its operation is whole.
#[test]
fn threads_that_nothing_leads_to_are_left_out() {
    let mut events = operation(1, &["Ex A,En A", "Be B,Se B,Re C,En C"]);
    let after = find(&events, ExecutionGraphOptions::default());
    assert_eq!((after.count("late_event"), after.report.events.late, after.shown().len()), (4, 4, 0));
    events.reverse();
    let before = find(&events, ExecutionGraphOptions::default());
    assert_eq!((before.count("missing_thread"), before.report.events.unreachable, before.shown().len()), (1, 4, 0));
}

#[test]
fn gaps_and_repetitions_are_bridged() {
    let whole = operation(1, &["Ex A,Ac A,Se A,Re B,Sa B,Ra A,En A"]);
    for lost in 1..6 {
        let mut events = whole.clone();
        events.remove(lost);
        let found = find(&events, ExecutionGraphOptions::default());
        assert_eq!(found.count("index_gap"), 1);
        assert_eq!(found.shown(), ["sync/1 A.a B.b"], "without event {}", lost + 1);
    }
    let twice = [whole[..5].to_vec(), whole.clone()].concat();
    let found = find(&twice, ExecutionGraphOptions::default());
    assert_eq!((found.count("repeated_event"), found.report.events.repeated, found.report.events.used), (5, 5, 7));
    let late = [whole.clone(), whole[..5].to_vec()].concat();
    let found = find(&late, ExecutionGraphOptions::default());
    assert_eq!((found.count("late_event"), found.report.events.late, found.report.operations), (5, 5, 1));
}

/// CPU stamps: time used by each event, or readings of a clock of which only what passes within an execution counts.
#[test]
fn cpu_stamps_become_self_times() {
    let events = operation(1, &["Ex A/10,Se A/14,Re B/100,Ac B/103,Fo B(2)/108,Ac B/115,En B/115", "Be A/20,En A/21"]);
    let with = |cpu| {
        find(&events, ExecutionGraphOptions { cpu, ..ExecutionGraphOptions::default() })
            .interactions
            .occurrences
            .iter()
            .map(|o| o.self_time_ticks)
            .collect::<Vec<_>>()
    };
    assert_eq!(with(CpuStamps::Counter), [[Some(5.0), None], [Some(8.0), Some(7.0)]]);
    assert_eq!(with(CpuStamps::Used), [[Some(65.0), None], [Some(311.0), Some(230.0)]]);
}

/// An operation is handed over as soon as it is whole; nothing of it is kept.
#[test]
fn whole_operations_do_not_wait_for_the_end() {
    let mut graphs = ExecutionGraphs::new(ExecutionGraphOptions::default());
    let mut handed = 0;
    for number in 0..20_000 {
        for event in operation(number, &["Ex A,Fo A(2),En A", "Be B,En B"]).iter().rev() {
            graphs.feed(&event.event(), &mut |batch| handed += batch.traces.len());
        }
        assert_eq!(graphs.n_live_events(), 0);
    }
    assert!(handed >= 15_000, "{handed}");
    let report = graphs.finish(&mut |batch| handed += batch.traces.len());
    assert_eq!((handed, report.operations, report.events.used), (20_000, 20_000, 100_000));
}

/// With little room, the operation that began first is taken as it is.
#[test]
fn too_many_open_operations_are_cut() {
    let options = ExecutionGraphOptions { max_live_events: 9, ..ExecutionGraphOptions::default() };
    let operations: Vec<Vec<OwnedEvent>> = (1..4).map(|number| operation(number, &["Ex A,Se A,Re B,Sa B,Ra A,En A"])).collect();
    let interleaved: Vec<OwnedEvent> = (0..6).flat_map(|index| operations.iter().map(move |events| events[index].clone())).collect();
    let found = find(&interleaved, options);
    assert_eq!((found.count("operation_cut"), found.count("late_event")), (2, 3));
    assert_eq!(found.shown(), ["async/1 A.a B.b", "sync/1 A.a B.b", "sync/1 A.a B.b"]);
    let events = found.report.events;
    assert_eq!((events.fed, events.used, events.late), (18, 15, 3));
}

/// The resource database is held against what was found.
#[test]
fn resources_are_held_against_the_trace() {
    let found = find(&operation(1, &["Ex A,Se A,Re B,Sa B,Ra A,Se A,Re C/3,Sa C,Ra A,En A"]), ExecutionGraphOptions::default());
    let resources = "[task.A]\nprocessor = \"P\"\ncustomers = 5\n[task.A.demand]\na = 0.1\n[task.B]\nprocessor = \"P\"\n[task.X]\n[task.B.demand]\nq = 1\n[processor.Q]\ncores = 2\n";
    let mut diagnostics = Diagnostics::default();
    found.report.note_resources(&parse_resources("r.toml", resources).unwrap(), &mut diagnostics);
    let noted: Vec<(String, Vec<String>)> = diagnostics.into_vec().into_iter().map(|d| (d.code, d.examples)).collect();
    let expected = [
        ("missing_resource_info", vec!["B: threads", "C: a processor", "C: threads"]),
        ("unknown_resource", vec!["entry B.q", "task X", "processor Q"]),
    ];
    assert_eq!(noted.len(), expected.len(), "{noted:?}");
    for (code, examples) in expected {
        let found = noted.iter().find(|(known, _)| known == code).unwrap();
        let (mut found, mut examples) = (found.1.clone(), examples);
        found.sort();
        examples.sort_unstable();
        assert_eq!(found, examples);
    }
}

/// What the resource database says of the customers' task has its effect, and what it leaves open or says of nothing is told.
#[test]
fn resources_take_effect_in_the_model() {
    let text = "operation,thread,next_thread,event,type,task,entry,ack\n\
                1,1,,1,Ex,U,u,\n1,1,,2,Se,U,u,\n1,1,,3,Re,A,a,\n1,1,,4,Sa,A,a,\n1,1,,5,Ra,U,u,\n1,1,,6,En,U,u,\n";
    let resources = "[task.U]\nprocessor = \"People\"\ncustomers = 3\nthink_time = 2\n[task.U.demand]\nu = 0.25\n\
                     [task.A]\nprocessor = \"People\"\n[processor.People]\ncores = 2\n[task.Nobody]\n";
    let options = ExtractOptions { resources: parse_resources("r.toml", resources).unwrap(), ..ExtractOptions::default() };
    let extraction = extract(&[Source { name: "e.csv", bytes: text.as_bytes() }], Format::EventTrace, &options).unwrap();
    let model = &extraction.model;
    assert_eq!(model.processors.iter().map(|p| (p.name.as_str(), p.multiplicity.literal())).collect::<Vec<_>>(), [("People", Some(2.0))]);
    let customers = model.tasks.iter().find(|task| task.name == "U").unwrap();
    assert_eq!(customers.entries[0].phases[0].activity.host_demand.literal(), Some(0.25));
    let count = |code| super::count(&extraction, code);
    assert_eq!((count("missing_resource_info"), count("host_demand_defaulted"), count("unknown_resource")), (1, 1, 1));
}

/// The whole way, from a file to a model and a report.
#[test]
fn from_a_file_to_a_model() {
    let text = "operation;thread;next_thread;event;type;task;entry;ack;cpu\n\
                1;1;;1;Ex;Shop;buy;;2\n1;1;;2;Se;Shop;buy;;\n1;1;;3;Re;Stock;take;;\n1;1;2;4;Fo;Stock;take;yes;5\n1;1;;5;En;Stock;take;;1\n\
                1;2;;1;Be;Shop;buy;;\n1;2;;2;En;Shop;buy;;1\n";
    let mut graphs = ExecutionGraphs::new(ExecutionGraphOptions { scenario: "shop".into(), ..ExecutionGraphOptions::default() });
    let (mut batches, mut diagnostics) = (Vec::new(), Diagnostics::default());
    read_event_trace("shop.csv", text.as_bytes(), &ReadOptions::default(), &mut diagnostics, &mut |event| {
        graphs.feed(event, &mut |batch| batches.push(batch));
    })
    .unwrap();
    let found = finish(graphs, batches);
    assert_eq!(found.classes(), ["sync/1 Shop.buy Stock.take n=1 y=1"]);
    assert_eq!(
        found.interactions.occurrences.iter().map(|o| o.self_time_ticks).collect::<Vec<_>>(),
        [[Some(3.0), None], [Some(5.0), Some(1.0)]]
    );
    assert_eq!(diagnostics, Diagnostics::default());
    assert_eq!(model_calls(&found), ["Shop.1 sync 1 Stock.take"]);
}

/// A block of the section on event traces in the documentation.
fn documented(language: &str) -> &'static str {
    let section = include_str!("../../../docs/TRACES.md").split("\n## Event traces\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    section.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap()
}

/// The example of the documentation does what is said there.
#[test]
fn the_documented_example_runs() {
    let mut graphs = ExecutionGraphs::new(ExecutionGraphOptions::default());
    let (mut batches, mut diagnostics) = (Vec::new(), Diagnostics::default());
    read_event_trace("doors.csv", documented("csv").as_bytes(), &ReadOptions::default(), &mut diagnostics, &mut |event| {
        graphs.feed(event, &mut |batch| batches.push(batch));
    })
    .unwrap();
    let found = finish(graphs, batches);
    let classes = [
        "sync/1 Access.admit DB.rights n=1 y=1",
        "sync/1 Reader.read Access.admit n=1 y=1",
        "sync/1 User.card Reader.read n=1 y=1",
        "sync/2 Access.admit DB.log n=1 y=1",
    ];
    let mut sorted = found.classes();
    sorted.sort();
    assert_eq!(sorted, classes);
    found.report.note_resources(&parse_resources("doors.toml", documented("toml")).unwrap(), &mut diagnostics);
    let noted: Vec<(String, Vec<String>)> = diagnostics.into_vec().into_iter().map(|d| (d.code, d.examples)).collect();
    assert_eq!(noted, []);
    let mut kinds = Vec::new();
    read_event_trace("doors.json", documented("json").as_bytes(), &ReadOptions::default(), &mut Diagnostics::default(), &mut |event| {
        kinds.push((event.kind, event.ack, event.cpu_ticks));
    })
    .unwrap();
    assert_eq!(kinds, [(EventKind::Fork, Some(true), Some(100.0))]);
}

fn without_flags(events: &[OwnedEvent]) -> Vec<OwnedEvent> {
    events.iter().map(|event| OwnedEvent { ack: None, ..event.clone() }).collect()
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..160)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Stack form, segments and what the operation was made of agree, where forks say what they are.
    #[test]
    fn stack_form_and_segments_agree_on_random_nests(choices in choices()) {
        let nest = nest(1, &choices, Flags::Said);
        let found = find(&nest.events, paper());
        prop_assert_eq!(found.shown(), nest.interactions.clone());
        prop_assert_eq!(identify(&nest.events).interactions, nest.interactions);
        for code in ["no_reply", "unmatched_ack", "types_disagree", "misplaced_event", "index_gap", "missing_thread"] {
            prop_assert_eq!(found.count(code), 0, "{}", code);
        }
    }

    /// Where they do not say, the stack form still finds what the operation was made of.
    #[test]
    fn stack_form_tells_forks_apart_on_random_nests(choices in choices()) {
        let nest = nest(1, &choices, Flags::Unsaid);
        prop_assert_eq!(find(&without_flags(&nest.events), paper()).shown(), nest.interactions);
    }
}

/// Without flags the segments take some forks for what they are not, and only forks: with flags they agree on all.
#[test]
fn segments_misread_some_of_the_forks_without_flags() {
    let (mut agree, mut differ) = (0, 0);
    let mut state = 1_u64;
    for _ in 0..3000 {
        let choices: Vec<u8> = (0..120).map(|_| bss::next(&mut state) as u8).collect();
        let nest = nest(1, &choices, Flags::Unsaid);
        let (said, unsaid) = (identify(&nest.events), identify(&without_flags(&nest.events)));
        assert_eq!(said.interactions, nest.interactions);
        *(if unsaid.interactions == nest.interactions { &mut agree } else { &mut differ }) += 1;
    }
    assert!(differ > 0 && differ < agree, "{agree} agree, {differ} differ");
}
