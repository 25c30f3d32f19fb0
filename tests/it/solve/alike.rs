//! What all solvers read alike, and where `auto` does not rest on one of them.

use layerfit::{
    model::{Bindings, Entry, Group, Measure, Model, Number, ProcessorScheduling, Task, TaskScheduling},
    solve::{MarkovOptions, SimulateOptions, Solution, SolveError, SolveOptions, Solver, sensitivities, solve, solve_markov},
};

use super::build::*;

fn by(solver: Solver, model: &Model) -> Solution {
    let simulation = SimulateOptions { max_events: 400_000, ..SimulateOptions::default() };
    solve(model, &Bindings::new(), &SolveOptions { solver, simulation, ..SolveOptions::default() }).unwrap()
}

/// Customers of two entries: those without a probability share what the others leave, and what is given counts in proportion.
#[test]
fn visits_of_customers_are_shared_out() {
    for (given, expected) in [
        ([None, None], [0.5, 0.5]),
        ([Some(0.3), None], [0.3, 0.7]),
        ([Some(0.0), None], [0.0, 1.0]),
        ([Some(0.3), Some(0.3)], [0.5, 0.5]),
        ([Some(1.5), None], [1.0, 0.0]),
    ] {
        let mut task = reference("U", 1, 1.0, [serves("a", 1.0), serves("b", 3.0)]);
        for (entry, given) in task.entries.iter_mut().zip(given) {
            entry.visit_probability = given.map(Number::Value);
        }
        let model = model([], [task.on("cpu")]);
        let cycle = 1.0 + expected[0] + 3.0 * expected[1];
        for solver in [Solver::Layered, Solver::Auto, Solver::Markov] {
            let found = by(solver, &model);
            assert!((found.tasks["U"].throughput * cycle - 1.0).abs() < 1e-9, "{given:?} {solver:?}");
            for (entry, share) in ["a", "b"].iter().zip(expected) {
                assert!((found.entries[*entry].throughput * cycle - share).abs() < 1e-9, "{given:?} {solver:?}");
            }
        }
    }
    let mut task = reference("U", 1, 1.0, [serves("a", 1.0)]);
    task.entries[0].visit_probability = Some(Number::Value(0.0));
    let never = model([], [task.on("cpu")]);
    for solver in [Solver::Layered, Solver::Markov, Solver::Simulate] {
        let error = solve(&never, &Bindings::new(), &SolveOptions { solver, ..SolveOptions::default() }).unwrap_err();
        assert!(error.to_string().contains("the visit probabilities of its entries sum to 0"), "{solver:?}: {error}");
    }
}

/// In which order an entry's calls are written means nothing; of two customers at one server, the second leaves it after either service.
#[test]
fn the_order_of_calls_means_nothing() {
    let with = |calls: [(&str, f64); 2]| {
        let user = calls.into_iter().fold(work("u", 0.1), |entry, (called, mean)| entry.calls_about(called, mean));
        model([], [customers("U", 2, 1.0, user), server("s", [serves("short", 0.01), serves("long", 0.5)])])
    };
    let [one, other] = [[("short", 1.0), ("long", 2.0)], [("long", 2.0), ("short", 1.0)]].map(with);
    let [x, y] = [&one, &other].map(|model| by(Solver::Layered, model).tasks["U"].throughput);
    let exact = by(Solver::Markov, &one).tasks["U"].throughput;
    assert!((x / y - 1.0).abs() < 1e-6, "{x} {y}");
    assert!((x / exact - 1.0).abs() < 0.05, "{x} {exact}");
}

/// A single thread that several customers wait for finds as long a queue as those who fill it.
#[test]
fn a_thread_before_a_full_queue_waits_as_those_who_fill_it() {
    let filling = customers("U", 12, 0.5, work("u", 0.5).calls_about("q", 1.0));
    let others = customers("V", 3, 5.0, work("v", 0.2).calls_about("a", 1.0));
    let before = server("A", [entry("a", [work("a1", 0.4).calls_about("q", 1.0)])]);
    let model = model([], [filling, others, before, server("Q", [serves("q", 0.2)])]);
    let [layered, exact] = [Solver::Layered, Solver::Markov].map(|solver| by(solver, &model));
    for task in ["U", "V"] {
        let (x, y) = (layered.tasks[task].throughput, exact.tasks[task].throughput);
        assert!((x / y - 1.0).abs() < 0.02, "{task}: {x} {y}");
    }
}

/// The LQN tools keep priorities at a task by `hol` alone.
#[test]
fn pri_at_a_task_is_first_come_first_served() {
    let client = |name: &str, priority: f64| customers(name, 3, 2.0, work(name, 0.0).calls("e", 1)).priority(priority);
    let with = |scheduling| model([], [client("A", 5.0), client("B", 1.0), server("s", [serves("e", 0.5)]).scheduled(scheduling)]);
    for solver in [Solver::Layered, Solver::Markov, Solver::Simulate] {
        let [pri, fcfs] = [TaskScheduling::Pri, TaskScheduling::Fcfs].map(|scheduling| by(solver, &with(scheduling)));
        assert_eq!(pri.tasks["A"].throughput, fcfs.tasks["A"].throughput, "{solver:?}");
        assert!(pri.diagnostics.iter().any(|note| note.starts_with("task \"s\": priority")), "{solver:?}: {:?}", pri.diagnostics);
    }
}

#[test]
fn rates_beyond_numbers_are_refused_by_the_chain() {
    for demand in [1e-320, 1e308] {
        let model = model([], [customers("U", 2, 1.0, work("u", 0.0).calls("e", 1)), server("s", [serves("e", demand)])]);
        let error = solve_markov(&model, &Bindings::new(), &MarkovOptions::default()).unwrap_err();
        assert!(error.to_string().contains("happens at a rate of"), "{error}");
    }
}

#[test]
fn a_chain_without_a_steady_state_in_so_many_sweeps_says_so() {
    let tasks = [customers("U", 30, 1.0, work("u", 0.0).calls("e", 1)), server("s", [serves("e", 0.1)]).times(3.0)];
    let found = solve_markov(&model([], tasks), &Bindings::new(), &MarkovOptions { tolerance: 0.0, ..MarkovOptions::default() }).unwrap();
    assert!(!found.converged && found.diagnostics.iter().any(|note| note.starts_with("the steady state was not found")));
}

/// A group below its share goes first; the other has what is left (V13: 1.003 of a service of 1).
#[test]
fn groups_below_their_share_go_first() {
    let mut cpu = processor("cpu", ProcessorScheduling::Cfs, 1);
    cpu.quantum = 0.01.into();
    cpu.groups = [("ga", 0.75), ("gb", 0.25)].map(|(name, share)| Group { name: name.into(), share: share.into(), cap: false }).into();
    let task = |name: &str, think, group: &str| Task { group: Some(group.into()), ..customers(name, 1, think, work(name, 1.0)).on("cpu") };
    let found = by(Solver::Layered, &model([cpu], [task("A", 2.0, "ga"), task("B", 0.0, "gb")]));
    let service = found.entries["A"].service_times[0].unwrap();
    assert!((service / 1.003 - 1.0).abs() < 0.02, "{service}");
    assert!((found.tasks["B"].throughput / 0.666 - 1.0).abs() < 0.01, "{}", found.tasks["B"].throughput);
    assert!(found.processors["cpu"].utilization > 0.99);
}

/// Open requests whose threads come back to their own processor: the waits that are estimated for them add up to more than one thread, and do
/// not in truth (utilization .793).
#[test]
fn saturation_by_estimated_waits_is_simulated() {
    let caller = |rate: f64| {
        let tasks = [
            server("t", [open(entry("e", [work("e", 1.0).calls_about("f", 2.0)]), rate)]).on("cpu"),
            server("u", [serves("f", 0.1)]).on("cpu"),
            server("v", [open(serves("g", 1.4), 0.24)]).on("cpu"),
        ];
        model([], tasks)
    };
    let stable = caller(0.42);
    let layered = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    let error = solve(&stable, &Bindings::new(), &layered).unwrap_err();
    let SolveError::Saturated { capacity, at_least, .. } = &error else { panic!("{error}") };
    assert!(at_least < capacity);
    let simulation = SimulateOptions { max_events: 4_000_000, ..SimulateOptions::default() };
    let found = solve(&stable, &Bindings::new(), &SolveOptions { simulation, ..SolveOptions::default() }).unwrap();
    assert!((found.tasks["t"].utilization - 0.793).abs() < 0.03, "{}", found.tasks["t"].utilization);
    assert!(
        found
            .diagnostics
            .iter()
            .any(|note| note.starts_with("simulated: the layered solver finds no steady state") && note.ends_with("as it is estimated")),
        "{:?}",
        found.diagnostics
    );
    // Just below that it is said what the answer rests on; far below there is nothing to say.
    let is_said = |found: &Solution| found.diagnostics.iter().any(|note| note.contains("waits that are estimated: whether it keeps up"));
    let rates = (0..120).map(|k| 0.3 + 0.001 * f64::from(k));
    let near = rates.rev().find_map(|rate| solve(&caller(rate), &Bindings::new(), &layered).ok()).unwrap();
    assert!(near.tasks["t"].utilization > 0.95 && is_said(&near), "{} {:?}", near.tasks["t"].utilization, near.diagnostics);
    assert!(!is_said(&solve(&caller(0.2), &Bindings::new(), &layered).unwrap()));
    // Work alone is too much here.
    let error = solve(&caller(0.9), &Bindings::new(), &SolveOptions::default()).unwrap_err();
    assert!(matches!(&error, SolveError::Saturated { capacity, at_least, .. } if at_least >= capacity), "{error}");
}

/// Customers that never think, and their server on the same processor.
fn on_one_processor(served: Entry) -> [Task; 2] {
    [customers("U", 2, 0.0, work("u", 0.123).calls_about("e", 1.0)).on("cpu"), server("s", [served]).times(3.0).on("cpu")]
}

/// They find what began while they were away, whichever of the two tasks they were in: the processor is always busy, however much the demand varies.
#[test]
fn customers_and_their_server_keep_one_processor_busy() {
    for cvsq in [1.0, 4.0, 16.0] {
        let found = by(Solver::Layered, &model([], on_one_processor(entry("e", [work("e", 2.83).cvsq(cvsq)]))));
        assert!(found.converged && (found.tasks["U"].throughput * (0.123 + 2.83) - 1.0).abs() < 1e-6, "{}", found.tasks["U"].throughput);
    }
}

/// Customers that never think keep a processor busy: where the layered solver finds it idle, it says so.
#[test]
fn idle_processors_of_customers_that_never_think_are_told() {
    // Beside requests from outside, who was where is not followed past second phases.
    let from_outside = server("o", [open(serves("g", 0.1), 0.1)]);
    let [users, served] = on_one_processor(entry("e", [work("e", 2.83), work("e2", 0.1)]));
    let model = model([], [users, served.times(1.0), from_outside]);
    let layered = by(Solver::Layered, &model);
    assert!(!layered.converged && layered.diagnostics.iter().any(|note| note.contains("keep servers busy for")));
    let found = by(Solver::Auto, &model);
    assert!((found.tasks["U"].throughput * (0.123 + 2.83 + 0.1) - 1.0).abs() < 0.02, "{}", found.tasks["U"].throughput);
}

/// Calls that begin with a parameter at 0: who would make them is known, and how they would make times vary, so that the slope is that of the
/// next numbers.
#[test]
fn slopes_where_a_flow_begins_are_those_of_what_follows() {
    let mut nested = work("e", 0.5).calls_about("f", 0.0);
    nested.calls[0].mean = Number::Parameter("x".into());
    let tasks = [
        customers("U", 3, 1.0, work("u", 0.1).calls_about("e", 1.0)),
        server("s", [entry("e", [nested])]).on("cpu"),
        server("t", [serves("f", 0.3)]).on("cpu"),
    ];
    let model = model([], tasks);
    let measure: Measure = "throughput(U)".parse().unwrap();
    let options = SolveOptions { solver: Solver::Layered, tolerance: 1e-11, ..SolveOptions::default() };
    let at = |x: f64| {
        let values: Bindings = [("x", x)].into_iter().collect();
        let slope = sensitivities(&model, &values, &["x".into()], std::slice::from_ref(&measure), &options).unwrap();
        (slope.values[0], slope.jacobian[(0, 0)])
    };
    let difference = (at(1e-4).0 - at(0.0).0) / 1e-4;
    assert!((at(0.0).1 / difference - 1.0).abs() < 1e-3, "{} {difference}", at(0.0).1);
    assert!((at(1e-4).1 / difference - 1.0).abs() < 1e-3);
}

/// Cobham: of two classes from outside before one server the urgent one waits `ρ/(1 - ρ1)` services, the other `1/(1 - ρ)` times as long.
#[test]
fn requests_from_outside_have_the_priority_of_their_entry() {
    let from_outside = |name: &str, priority: f64| Entry { priority: Some(priority.into()), ..open(serves(name, 1.0), 0.3) };
    // A bounded queue is a chain; of this length it loses next to nothing.
    let task = |bound: f64| {
        let task = server("s", [from_outside("urgent", 5.0), from_outside("other", 1.0)]).scheduled(TaskScheduling::Hol);
        Task { queue_length: bound.into(), ..task }
    };
    let (urgent, other) = (1.0 + 0.6 / 0.7, 1.0 + 0.6 / (0.7 * 0.4));
    for (solver, bound, error) in [(Solver::Layered, 0.0, 1e-6), (Solver::Markov, 40.0, 1e-3), (Solver::Simulate, 0.0, 0.03)] {
        let found = by(solver, &model([], [task(bound)]));
        for (name, response) in [("urgent", urgent), ("other", other)] {
            let measured = found.entries[name].open_wait_time.unwrap();
            assert!((measured / response - 1.0).abs() < error, "{solver:?} {name}: {measured} {response}");
        }
    }
}

/// Of customers in the same state it does not matter which goes on: a chain of hundreds is as short as their number.
#[test]
fn like_customers_go_on_as_one() {
    let alone = model([], [customers("c", 400, 10.0, work("c", 1.0)).on("delay")]);
    let found = by(Solver::Markov, &alone);
    assert!((found.tasks["c"].throughput / (400.0 / 11.0) - 1.0).abs() < 1e-9, "{}", found.tasks["c"].throughput);
    let served = model([], [customers("c", 60, 100.0, work("c", 1.0).calls("e", 1)).on("delay"), server("s", [serves("e", 0.5)])]);
    let [exact, chain] = [Solver::Exact, Solver::Markov].map(|solver| by(solver, &served).tasks["c"].throughput);
    assert!((chain / exact - 1.0).abs() < 1e-9, "{chain} {exact}");
}

/// More than can be laid out in a while are a refusal, not a wait.
#[test]
fn chains_of_too_much_work_are_refused() {
    let task = server("s", [entry("e", [work("e", 0.5).calls_about("f", 1.0)])]).times(30.0);
    let model = model([], [customers("c", 60, 1.0, work("c", 1.0).calls("e", 1)), task, server("t", [serves("f", 0.1)]).times(30.0)]);
    let options = MarkovOptions { max_work: 20_000, ..MarkovOptions::default() };
    let error = solve_markov(&model, &Bindings::new(), &options).unwrap_err();
    assert!(matches!(error, SolveError::Unsupported { construct: "so large a state space", .. }), "{error}");
    assert!(error.to_string().contains("strands of control"), "{error}");
}

/// Two customers of one server whose times and calls are exact never meet there; one exponential time, and they do.
#[test]
fn requests_that_run_in_step_are_said_to() {
    let says = |cvsq: f64, n: u32| {
        let model = model(
            [],
            [customers("U", n, 0.0, work("u", 1.0).cvsq(0.0).calls("e", 1)), server("s", [entry("e", [work("e", 0.5).cvsq(cvsq)])])],
        );
        by(Solver::Layered, &model).diagnostics.iter().any(|said| said.contains("in step"))
    };
    assert!(says(0.0, 2) && !says(1.0, 2) && !says(0.0, 1));
}
