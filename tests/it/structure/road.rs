//! The road that every technique's interactions go: forks, workloads, what is said beside.

use layerfit::{
    model::{Bindings, Entry, Number, Post, ProcessorScheduling, TaskScheduling},
    solve::{SolveOptions, solve},
    structure::{
        Demands, ExtractOptions, Extraction, MergeKey,
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
    let solution = solve(&extraction.model, &Bindings::default(), &SolveOptions::default()).unwrap();
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
    assert_eq!(entry.open_arrival_rate.as_ref().and_then(Number::literal), Some(3.0));
    let defects: Vec<String> = extraction.model.validate().iter().map(ToString::to_string).collect();
    assert!(defects.is_empty(), "{defects:?}");
}

/// An entry takes one kind of request: what others call and what arrives from outside has one for each, which work alike.
#[test]
fn entries_may_be_called_and_asked_from_outside() {
    let mut all = Interactions::default();
    all.scenarios.intern("s");
    let names = ["Client", "web", "api"];
    for (trace, asked) in [&[0, 1, 2][..], &[0, 2], &[0, 2]].into_iter().enumerate() {
        all.traces.push(Recording::new(trace.to_string(), 0));
        for (place, process) in asked.iter().enumerate() {
            let unit = all.units.intern(names[*process], "");
            let operation = Some(all.operations.intern("op"));
            let (number, trace, originator) = (place as u32 + 1, trace as u32, place == 0);
            all.occurrences.push(Occurrence { unit, number, trace, operation, originator, self_time_ticks: [None; 2] });
            let to = all.occurrences.len() - 1;
            if place > 0 {
                let times = vec![Time::default()].into();
                let (kind, from) = (InteractionKind::Sync, to - 1);
                all.interactions.push(Interaction { kind, phase: 1, from, via: Vec::new(), to, branch: None, times });
            }
        }
    }
    let demands = || [("op".to_owned(), [Some(0.125), None])].into_iter().collect();
    for server in ["web", "api"] {
        all.hints.processes.insert(server.into(), ProcessHints { demands: demands(), threads: Some(4), ..ProcessHints::default() });
    }
    let workload = Some(Workload::Open { rate: 3.0 });
    all.hints.processes.insert("Client".into(), ProcessHints { workload, ..ProcessHints::default() });
    let extraction = to_model("m", all, &ExtractOptions::default()).unwrap();
    let defects: Vec<String> = extraction.model.validate().iter().map(ToString::to_string).collect();
    assert!(defects.is_empty(), "{defects:?}");
    assert_eq!(super::count(&extraction, "entry_mixed_accept"), 1);
    let api = extraction.model.task("api").unwrap();
    let rate = |entry: &Entry| entry.open_arrival_rate.as_ref().and_then(Number::literal);
    let entries: Vec<_> = api.entries.iter().map(|entry| (entry.name.as_str(), rate(entry))).collect();
    assert_eq!(entries, [("api.op", None), ("api.op#2", Some(2.0))]);
    assert_eq!(rate(&extraction.model.task("web").unwrap().entries[0]), Some(1.0));
    let solution = solve(&extraction.model, &Bindings::default(), &SolveOptions::default()).unwrap();
    let throughput = solution.tasks["api"].throughput;
    assert!((throughput - 3.0).abs() < 1e-6, "{throughput}");
}

/// Self times hold the waits for the processor: there are as many cores as add hardly any at the rate seen, unless somebody says how many.
#[test]
fn processors_keep_up_with_what_arrived() {
    let extraction = |cores: Option<u64>| {
        let mut all = Interactions::default();
        all.scenarios.intern("s");
        for trace in 0..2 {
            all.traces.push(Recording::new(trace.to_string(), 0));
            for (place, process) in ["Client", "web", "db"].into_iter().enumerate() {
                let unit = all.units.intern(process, "");
                let self_time_ticks = [Some([0.0, 6e8, 1e8][place]), None];
                all.occurrences.push(Occurrence { unit, number: 1, trace, operation: None, originator: place == 0, self_time_ticks });
                let to = all.occurrences.len() - 1;
                if place > 0 {
                    let times = vec![Time::default()].into();
                    let (kind, from) = (InteractionKind::Sync, to - 1);
                    all.interactions.push(Interaction { kind, phase: 1, from, via: Vec::new(), to, branch: None, times });
                }
            }
        }
        let workload = Some(Workload::Open { rate: 3.0 });
        all.hints.processes.insert("Client".into(), ProcessHints { workload, ..ProcessHints::default() });
        for server in ["web", "db"] {
            all.hints.processes.insert(server.into(), ProcessHints { threads: Some(8), ..ProcessHints::default() });
        }
        if cores.is_some() {
            all.hints.processors.insert("web_cpu".into(), ProcessorHints { cores, ..ProcessorHints::default() });
        }
        let options = ExtractOptions { demands: Demands::SelfTimes, seconds_per_tick: 1e-9, ..ExtractOptions::default() };
        to_model("m", all, &options).unwrap()
    };
    let found = extraction(None);
    let cores = |extraction: &Extraction, name: &str| extraction.model.processor(name).unwrap().multiplicity.literal();
    // 3 × 0.6 s are 1.8 busy, 3 × 0.1 s are 0.3: Erlang's waits are 0.30 and 0.06 of the slices with 3 and 4 cores, 0.43 and 0.02 with 1 and 2.
    assert_eq!((cores(&found, "web_cpu"), cores(&found, "db_cpu")), (Some(4.0), Some(2.0)));
    assert_eq!(super::count(&found, "cores_assumed"), 2);
    let solution = solve(&found.model, &Bindings::default(), &SolveOptions::default()).unwrap();
    assert!(solution.converged && (solution.processors["web_cpu"].utilization - 1.8).abs() < 1e-6);
    let told = extraction(Some(1));
    assert_eq!((cores(&told, "web_cpu"), super::count(&told, "cores_assumed")), (Some(1.0), 1));
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
    hints
        .processors
        .insert("node".into(), ProcessorHints { cores: Some(4), scheduling: Some(ProcessorScheduling::Ps), ..ProcessorHints::default() });
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
