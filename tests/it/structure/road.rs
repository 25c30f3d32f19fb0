//! The road that every technique's interactions go: forks, workloads, what is said beside.

use layerfit::{
    model::{Post, ProcessorScheduling, TaskScheduling},
    solve::{SolveOptions, solve},
    structure::{
        ExtractOptions, Extraction, MergeKey,
        entries::ArcKind,
        extract,
        interactions::{
            Branch, Hints, Interaction, InteractionKind, Interactions, Occurrence, ProcessHints, ProcessorHints, Recording, Workload,
        },
        to_model,
    },
    trace::{Format, Source, Time},
};

/// A client's request of `web`, which asks `a` and `b` at once.
fn fork_below_a_client(hints: Hints) -> Extraction {
    let mut all = Interactions { hints, ..Interactions::default() };
    all.scenarios.intern("s");
    all.traces.push(Recording::new("t", 0));
    for (index, process) in ["Client", "web", "a", "b"].into_iter().enumerate() {
        let unit = all.units.intern(process, "");
        let operation = Some(all.operations.intern("op"));
        let originator = index == 0;
        all.occurrences.push(Occurrence { unit, number: 1, trace: 0, operation, originator, self_time_ticks: [None; 2] });
    }
    let branch = |branch| Some(Branch { fork: 0, branch });
    for (from, to, branch) in [(0, 1, None), (1, 2, branch(0)), (1, 3, branch(1))] {
        let times = vec![Time::default()];
        all.interactions.push(Interaction {
            kind: InteractionKind::Sync,
            phase: 1,
            from,
            via: Vec::new(),
            to,
            branch,
            times: times.into(),
        });
    }
    to_model("m", all, &ExtractOptions { merge: MergeKey::Operation, ..ExtractOptions::default() }).unwrap()
}

fn has_fork(extraction: &Extraction) -> bool {
    let web = extraction.model.task("web").unwrap();
    web.precedences.iter().any(|p| matches!(&p.post, Some(Post::And(branches)) if branches.len() == 2))
}

#[test]
fn requests_made_at_once_are_a_fork_that_can_be_solved() {
    let extraction = fork_below_a_client(Hints::default());
    assert!(has_fork(&extraction));
    let defects: Vec<String> = extraction.model.validate().iter().map(ToString::to_string).collect();
    assert!(defects.is_empty(), "{defects:?}");
    let solution = solve(&extraction.model, &layerfit::model::Bindings::default(), &SolveOptions::default()).unwrap();
    assert!(solution.converged);
}

/// Nobody waits for the reply to an arrival from outside, fork or not.
#[test]
fn arrivals_from_outside_may_fork() {
    let mut hints = Hints::default();
    let workload = Some(Workload::Open { rate: 3.0 });
    hints.processes.insert("Client".into(), ProcessHints { workload, ..ProcessHints::default() });
    let extraction = fork_below_a_client(hints);
    assert!(has_fork(&extraction) && extraction.model.task("Client").is_none());
    let entry = &extraction.model.task("web").unwrap().entries[0];
    assert_eq!(entry.open_arrival_rate.as_ref().and_then(layerfit::model::Number::literal), Some(3.0));
    let defects: Vec<String> = extraction.model.validate().iter().map(ToString::to_string).collect();
    assert!(defects.is_empty(), "{defects:?}");
}

#[test]
fn what_is_said_beside_is_in_the_model() {
    let mut hints = Hints::default();
    let web = ProcessHints {
        processor: Some("node".into()),
        threads: Some(7),
        demands: [("op".to_owned(), [Some(0.25), None])].into_iter().collect(),
        ..ProcessHints::default()
    };
    hints.processes.insert("web".into(), web);
    hints.processes.insert("a".into(), ProcessHints { processor: Some("node".into()), infinite: true, ..ProcessHints::default() });
    hints.processors.insert("node".into(), ProcessorHints { cores: Some(4), scheduling: Some(ProcessorScheduling::Ps) });
    let workload = Some(Workload::Closed { customers: 9.0, think_time: 1.5 });
    hints.processes.insert("Client".into(), ProcessHints { workload, ..ProcessHints::default() });
    let model = fork_below_a_client(hints).model;
    let web = model.task("web").unwrap();
    assert!(web.multiplicity.is(7.0) && web.processor == "node" && web.activities[0].host_demand.is(0.25));
    assert_eq!(model.task("a").unwrap().scheduling, TaskScheduling::Inf);
    let node = model.processor("node").unwrap();
    assert!(node.multiplicity.is(4.0) && node.scheduling == ProcessorScheduling::Ps);
    assert_eq!(model.processors.iter().filter(|p| p.name == "node").count(), 1);
    let client = model.task("Client").unwrap();
    assert!(client.multiplicity.is(9.0) && client.think_time.is(1.5));
}

/// A asks B, which asks A again in one of four cases: a model whose customers load A as often as the trace shows, without a circle.
#[test]
fn recursion_is_cut_where_it_closes_and_loads_what_it_loaded() {
    let mut text = String::from("record_id,time,kind,component,method,context_id\n");
    let mut id = 0;
    let mut row = |kind: &str, component: &str, context: usize| {
        id += 1;
        text.push_str(&format!("{id},{},{kind},{component},run,c{context}\n", id * 10));
    };
    for context in 0..8 {
        row("entry", "A", context);
        row("entry", "B", context);
        if context % 4 == 0 {
            ["entry", "exit"].iter().for_each(|kind| row(kind, "A", context));
        }
        row("exit", "B", context);
        row("exit", "A", context);
    }
    let source = Source { name: "log", bytes: text.as_bytes() };
    let options = ExtractOptions { merge: MergeKey::Operation, ..ExtractOptions::default() };
    let found = extract(&[source], Format::CallPath, &options).unwrap();
    let defects = found.model.validate();
    assert!(defects.iter().all(|d| d.kind.severity() != layerfit::model::Severity::Error), "{defects:?}");
    assert!(found.diagnostics.iter().any(|d| d.code == "recursive_calls"), "{:?}", found.diagnostics);
    let entries: Vec<_> = found.tasks.iter().filter(|t| !t.reference).flat_map(|t| &t.entries).collect();
    let occurrences = |name: &str| entries.iter().filter(|e| e.name.contains(name)).map(|e| e.occurrences).collect::<Vec<_>>();
    assert_eq!(occurrences("A").iter().sum::<u64>(), 10, "{entries:?}");
    assert_eq!(occurrences("B"), [8]);
    let sent = entries.iter().flat_map(|e| &e.calls).filter(|c| c.kind == ArcKind::Async).map(|c| c.mean).sum::<f64>();
    assert!((sent - 0.25).abs() < 1e-12, "{sent}");
}
