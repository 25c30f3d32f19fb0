//! The simulator and the Markov chain read the language alike: one model for each feature, solved by both.

use layerfit::{
    model::{Model, ProcessorScheduling, Task, TaskScheduling},
    solve::Solution,
};

use super::{
    build::*,
    markov::{read_write_lock, semaphore, solved},
    simulate::{check, run},
};

/// Model time of a run: half-widths of about one per cent.
const TIME: f64 = 12_000.0;

/// Compares every throughput, utilization, service time and wait that the simulation knows well enough.
#[track_caller]
fn agree(model: &Model) {
    let (exact, simulated) = (solved(model), run(model, TIME));
    for (name, task) in &simulated.tasks {
        check(task.throughput, task.throughput_half_width, exact.tasks[name].throughput, 0.0);
        check(task.utilization, task.utilization_half_width, exact.tasks[name].utilization, 0.0);
    }
    for (name, processor) in &simulated.processors {
        check(processor.utilization, processor.utilization_half_width, exact.processors[name].utilization, 0.0);
    }
    entries_agree(&exact, &simulated);
    for (call, truth) in simulated.calls.iter().map(|c| {
        (c, exact.calls.iter().find(|t| (&t.from, &t.to, t.phase, &t.activity) == (&c.from, &c.to, c.phase, &c.activity)).unwrap())
    }) {
        check(call.waiting.unwrap(), call.waiting_half_width, truth.waiting.unwrap(), 0.0);
    }
    for (task, activities) in &simulated.activities {
        for (name, activity) in activities {
            let truth = &exact.activities[task][name];
            check(activity.service_time.unwrap(), activity.service_time_half_width, truth.service_time.unwrap(), 0.0);
            check(activity.throughput, activity.throughput_half_width, truth.throughput, 0.0);
        }
    }
}

#[track_caller]
fn entries_agree(exact: &Solution, simulated: &Solution) {
    for (name, entry) in &simulated.entries {
        let truth = &exact.entries[name];
        check(entry.throughput, entry.throughput_half_width, truth.throughput, 0.0);
        assert_eq!(entry.service_times.len(), truth.service_times.len(), "phases of {name}");
        for (k, &time) in entry.service_times.iter().enumerate() {
            let half_width = entry.service_times_half_width.as_ref().and_then(|h| h[k]);
            match time {
                Some(time) => check(time, half_width, truth.service_times[k].unwrap(), 0.0),
                None => assert_eq!(truth.throughput, 0.0, "{name}"),
            }
        }
        if let Some(time) = entry.open_wait_time {
            check(time, entry.open_wait_time_half_width, truth.open_wait_time.unwrap(), 0.0);
        }
    }
}

/// Two classes of customers before one task of two threads before another.
fn layers(middle: impl FnOnce(Task) -> Task, processors: Vec<layerfit::model::Processor>) -> Model {
    let tasks = [
        customers("a", 2, 1.0, work("a", 0.1).calls_about("e1", 1.5)).priority(2.0),
        customers("b", 2, 2.0, work("b", 0.2).calls_about("e2", 1.0)).priority(1.0),
        middle(
            server("s", [entry("e1", [work("e1", 0.3).calls_about("f", 1.0)]), entry("e2", [work("e2", 0.6).calls("f", 1)])]).times(2.0),
        ),
        server("t", [serves("f", 0.25)]).on("u"),
        customers("z", 1, 0.5, work("z", 0.3)).on("u").priority(3.0),
    ];
    model(processors, tasks)
}

#[test]
fn disciplines_of_processors() {
    use ProcessorScheduling::{Fcfs, Hol, Lcfs, Pri, Ps, Rand};
    for discipline in [Fcfs, Hol, Pri, Ps, Lcfs, Rand] {
        agree(&layers(|t| t.priority(1.0), vec![processor("u", discipline, 1), processor("s", Ps, 2)]));
    }
    agree(&layers(|t| t.on("u").priority(1.0), vec![processor("u", Pri, 2)]));
    agree(&layers(|t| t.on("u").priority(1.0), vec![processor("u", Fcfs, 1)]));
}

#[test]
fn disciplines_of_tasks() {
    for scheduling in [TaskScheduling::Hol, TaskScheduling::Rand, TaskScheduling::Inf] {
        agree(&layers(|t| t.scheduled(scheduling).times(1.0), vec![]));
    }
}

#[test]
fn second_and_third_phases() {
    let phases = [work("e1", 0.2).calls_about("f", 1.0), work("e2", 0.3).calls("f", 1), work("e3", 0.1).thinks(0.2)];
    let tasks =
        [customers("c", 3, 1.0, work("c", 0.1).calls_about("e", 2.0)), server("s", [entry("e", phases)]), server("t", [serves("f", 0.2)])];
    agree(&model([], tasks.clone()));
    let [c, s, t] = tasks;
    agree(&model([], [c.on("one"), s.on("one").times(2.0), t.on("one")]));
}

/// Callers and their server, with a second phase, on one processor that others need too: who comes first at the instant of a reply decides
/// who is served at all.
#[test]
fn second_phases_on_shared_processors() {
    for discipline in [ProcessorScheduling::Rand, ProcessorScheduling::Hol, ProcessorScheduling::Fcfs] {
        for think_time in [0.0, 1.0] {
            let tasks = [
                customers("c", 2, 0.0, work("c", 0.5).calls_about("e", 1.0)).on("p").priority(2.0),
                server("s", [entry("e", [work("e1", 0.3), work("e2", 0.6)])]).on("p").priority(2.0),
                customers("d", 1, think_time, work("d", 0.0).calls("f", 1)),
                server("t", [serves("f", 1.0)]).on("p").priority(1.0),
            ];
            agree(&model([processor("p", discipline, 1)], tasks));
        }
    }
}

#[test]
fn forwarding_chains() {
    let tasks = [
        customers("c", 3, 1.0, work("c", 0.1).calls_about("e", 1.0)),
        server("s", [forwards(entry("e", [work("e1", 0.2), work("e2", 0.1)]), "f", 0.7)]),
        server("t", [forwards(forwards(serves("f", 0.3), "g", 0.4), "h", 0.3)]).times(2.0),
        server("u", [serves("g", 0.5), serves("h", 0.2)]).times(2.0).on("t"),
    ];
    agree(&model([], tasks));
}

#[test]
fn asynchronous_and_open_requests() {
    let mut lossy =
        server("s", [open(entry("o", [work("o", 0.3)]), 0.5), entry("e", [work("e1", 0.2).calls_about("f", 1.0), work("e2", 0.1)])]);
    lossy.queue_length = 4.0.into();
    let tasks = [customers("c", 2, 1.0, work("c", 0.2).sends("e", 1)), lossy, server("t", [serves("f", 0.3)])];
    let model = model([], tasks);
    agree(&model);
    let (exact, simulated) = (solved(&model), run(&model, TIME));
    let loss = |s: &Solution| (s.entries["o"].loss_probability.unwrap(), s.calls.iter().find_map(|c| c.loss_probability).unwrap());
    let ((open, sent), (open_simulated, sent_simulated)) = (loss(&exact), loss(&simulated));
    assert!(
        (open - open_simulated).abs() < 0.01 && (sent - sent_simulated).abs() < 0.01,
        "{open} {open_simulated} {sent} {sent_simulated}"
    );
    assert!(open > 0.01 && sent > 0.01, "{open} {sent}");
}

#[test]
fn laws_of_demand() {
    let slices = [work("e1", 0.4).cvsq(0.25).calls_about("f", 1.0), work("e2", 0.2).cvsq(3.0)];
    let tasks = |n| {
        [
            customers("c", n, 1.0, work("c", 0.1).calls_about("e", 1.0)),
            server("s", [entry("e", slices.clone())]),
            server("t", [entry("f", [work("f", 0.3).cvsq(4.0)])]),
        ]
    };
    agree(&model([], tasks(3)));
    let [c, s, t] = tasks(2);
    let pri = processor("one", ProcessorScheduling::Pri, 1);
    agree(&model([pri], [c.on("one"), s.on("one").priority(1.0).times(2.0), t.on("one").priority(2.0)]));
}

/// Customers that call a task with this graph.
fn graph(n: u32, task: Task) -> Model {
    let tasks = [customers("c", n, 1.0, work("c", 0.1).calls("e", 1)), task, server("t", [serves("f", 0.2)])];
    model([], tasks)
}

#[test]
fn activity_graphs() {
    let server = || server("s", [starts("e", "a")]).times(2.0);
    let activities =
        || [work("a", 0.1), work("b", 0.3).calls_about("f", 1.0), work("c", 0.2).calls("f", 1), work("d", 0.1), work("g", 0.2)];
    let forked = |quorum| [forks("a", &["b", "c"]), joins(&["b", "c"], quorum, "d"), then("d", "g")];
    agree(&graph(2, server().graph(activities(), forked(0)).replies("e", "d")));
    agree(&graph(2, server().graph(activities(), forked(1)).replies("e", "d")));
    let chosen = [chooses("a", &[(0.4, "b"), (0.6, "c")]), merges(&["b", "c"], "d"), then("d", "g")];
    agree(&graph(3, server().graph(activities(), chosen).replies("e", "d")));
    let looped = [repeats("a", &[(1.5, "b"), (0.5, "c")], "d"), then("d", "g")];
    agree(&graph(3, server().graph(activities(), looped).replies("e", "d")));
    let parts = [work("a", 0.1), work("p", 0.1), work("b", 0.3), work("c", 0.2), work("d", 0.1), work("g", 0.2)];
    let forked_in_loop = [repeats("a", &[(1.5, "p")], "g"), forks("p", &["b", "c"]), joins(&["b", "c"], 1, "d")];
    agree(&graph(1, server().graph(parts, forked_in_loop).replies("e", "g")));
}

#[test]
fn locks() {
    agree(&semaphore(2.0, 2.0, [0.2, 0.3]));
    agree(&read_write_lock(1.0, 0.1));
    agree(&read_write_lock(2.0, 0.2));
}
