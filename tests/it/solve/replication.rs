//! Replicated models by the analytic solvers: the same as every copy written out, and measures over copies.

use layerfit::{
    model::{Bindings, Fan, Measure, Model, Task},
    solve::{SimulateOptions, Solution, SolveError, SolveOptions, Solver, measure, solve},
};

use super::build::*;

/// What two fixed points solved to 1e-9 leave.
const SAME: f64 = 1e-6;

#[track_caller]
fn near(got: f64, expected: f64, relative: f64) {
    assert!((got - expected).abs() <= relative * expected.abs().max(1e-12), "{got}, expected {expected}");
}

fn solved(model: &Model, solver: Solver) -> Solution {
    let solution = solve(model, &Bindings::new(), &SolveOptions { solver, ..SolveOptions::default() }).unwrap();
    assert!(solution.converged, "{:?}", solution.diagnostics);
    solution
}

fn fan(task: &str, value: u32) -> Vec<Fan> {
    vec![Fan { task: task.into(), value: f64::from(value).into() }]
}

fn copies(task: Task, n: u32) -> Task {
    Task { replication: f64::from(n).into(), ..task }
}

/// `clients` copies of customers, two of them at each of the `clients / 2` copies of a middle task with a second phase, all of which call one
/// task at the bottom.
fn tree(clients: u32) -> Model {
    let middle = clients / 2;
    let client = customers("c", 3, 2.0, work("c", 0.1).calls_about("e", 1.5));
    let work = [work("e", 0.1).calls_about("f", 1.0), work("after", 0.05)];
    let tasks = [
        Task { fan_out: fan("m", 1), ..copies(client, clients) },
        Task { fan_in: fan("c", 2), fan_out: fan("b", 1), ..copies(server("m", [entry("e", work)]), middle) },
        Task { fan_in: fan("m", middle), ..server("b", [serves("f", 0.06)]) },
    ];
    let mut model = model([], tasks);
    model.processors.iter_mut().filter(|p| p.name == "m").for_each(|p| p.replication = f64::from(middle).into());
    model
}

/// The same with every copy a task.
fn written_out(clients: u32) -> Model {
    let name = |what: &str, i: u32| format!("{what}{i}");
    let middle = clients / 2;
    let client = |i: u32| customers(&name("c", i), 3, 2.0, work(&name("c", i), 0.1).calls_about(&name("e", i % middle), 1.5));
    let second = |i: u32| server(&name("m", i), [entry(&name("e", i), [work("e", 0.1).calls_about("f", 1.0), work("after", 0.05)])]);
    let tasks: Vec<Task> = (0..clients).map(client).chain((0..middle).map(second)).chain([server("b", [serves("f", 0.06)])]).collect();
    model([], tasks)
}

#[test]
fn copies_are_solved_as_if_they_were_written_out() {
    for clients in [2, 4, 10] {
        let (short, long) = (solved(&tree(clients), Solver::Layered), solved(&written_out(clients), Solver::Layered));
        for (task, one) in [("c", "c1"), ("m", "m0"), ("b", "b")] {
            near(short.tasks[task].throughput, long.tasks[one].throughput, SAME);
            near(short.tasks[task].utilization, long.tasks[one].utilization, SAME);
        }
        for phase in 0..2 {
            near(short.entries["e"].service_times[phase].unwrap(), long.entries["e0"].service_times[phase].unwrap(), SAME);
        }
        near(short.processors["m"].utilization, long.processors["m0"].utilization, SAME);
        near(short.processors["b"].utilization, long.processors["b"].utilization, SAME);
        let wait = |solution: &Solution, from: &str, to: &str| {
            solution.calls.iter().find(|c| c.from == from && c.to == to).map(|c| c.waiting.unwrap()).unwrap()
        };
        near(wait(&short, "c", "e"), wait(&long, "c1", &format!("e{}", 1 % (clients / 2))), SAME);
        near(wait(&short, "e", "f"), wait(&long, "e0", "f"), SAME);
        assert_eq!((short.tasks.len(), short.entries.len(), short.calls.len()), (3, 3, 2));
        assert_eq!((short.tasks["c"].copies, short.tasks["b"].copies), (Some(clients), None));
    }
}

/// A fan-out above the number of copies reaches some of them more than once.
#[test]
fn one_copy_can_be_reached_several_times() {
    let client = customers("c", 2, 1.0, work("c", 0.2).calls_about("e", 1.0));
    let with = |out: u32, calls: f64| {
        let client = customers("c", 2, 1.0, work("c", 0.2).calls_about("e", calls));
        model([], [Task { fan_out: fan("s", out), ..client }, Task { fan_in: fan("c", out), ..server("s", [serves("e", 0.3)]) }])
    };
    for solver in [Solver::Exact, Solver::Layered, Solver::Markov] {
        let (several, one) = (solved(&with(2, 1.0), solver), solved(&with(1, 2.0), solver));
        near(several.tasks["c"].throughput, one.tasks["c"].throughput, SAME);
        assert_eq!((several.calls.len(), several.calls[0].fan_out), (1, Some(2)), "{solver:?}");
        near(several.calls[0].mean, 1.0, SAME);
        near(several.calls[0].waiting.unwrap(), one.calls[0].waiting.unwrap(), SAME);
    }
    let tasks =
        [Task { fan_out: fan("s", 3), ..copies(client, 2) }, Task { fan_in: fan("c", 3), ..copies(server("s", [serves("e", 0.3)]), 2) }];
    let solution = solved(&model([], tasks), Solver::Layered);
    assert_eq!((solution.calls.len(), solution.calls[0].fan_out), (1, Some(3)));
    near(solution.calls[0].mean, 1.0, SAME);
    near(solution.tasks["s"].throughput, 3.0 * solution.tasks["c"].throughput, SAME);
}

/// An element that is named as copies would be is not taken for one.
#[test]
fn names_of_copies_are_nobody_elses() {
    let tasks = |other: &str| {
        let client = customers("c", 2, 1.0, work("c", 0.2).calls_about("e", 1.0).calls_about(other, 1.0));
        [
            Task { fan_out: fan("s", 2), ..client },
            Task { fan_in: fan("c", 1), ..copies(server("s", [serves("e", 0.3)]), 2) },
            server("t", [serves(other, 0.01)]),
        ]
    };
    let (plain, named) = (solved(&model([], tasks("f")), Solver::Layered), solved(&model([], tasks("e (copy 2)")), Solver::Layered));
    near(named.tasks["c"].throughput, plain.tasks["c"].throughput, 1e-12);
    near(named.tasks["t"].throughput, plain.tasks["t"].throughput, 1e-12);
}

/// Little's law over all copies: a cycle of the customers is what they spend thinking and at every server.
#[test]
fn measures_count_every_copy() {
    let client = customers("c", 2, 1.0, work("c", 0.2).calls_about("e", 1.0));
    let client = Task { fan_out: fan("s", 2), ..copies(client, 3) };
    let task = Task { fan_in: fan("c", 3), ..copies(server("s", [serves("e", 0.3)]), 2) };
    let mut model = model([], [client, task]);
    model.processors.iter_mut().filter(|p| p.name == "s").for_each(|p| p.replication = 2.0.into());
    for (solver, error) in [(Solver::Layered, SAME), (Solver::Markov, SAME), (Solver::Simulate, 0.01)] {
        let solution = solved(&model, solver);
        let value = |text: &str| measure::value(&model, &solution, &text.parse::<Measure>().unwrap()).unwrap();
        let x = value("throughput(c)");
        near(value("residence_time(task:s)"), 2.0 / x - 1.2, error);
        near(value("residence_time(processor:s)"), 2.0 * 0.3, error);
        near(value("residence_time(processor:delay)"), 0.2, error);
        near(value("response_time(c)"), 2.0 / x - 1.0, error);
        near(value("response_time(s)"), (2.0 / x - 1.2) / 2.0, error);
        near(value("throughput(s)"), 3.0 * x, error);
        assert_eq!((solution.tasks["s"].copies, solution.calls[0].fan_out), (Some(2), Some(2)));
    }
}

/// Copies of a server that one customer visits in turn are a product-form network.
#[test]
fn the_exact_solver_takes_copies() {
    let client = customers("c", 5, 1.0, work("c", 0.0).calls_about("e", 1.0));
    let tasks = [Task { fan_out: fan("s", 3), ..client }, Task { fan_in: fan("c", 1), ..copies(server("s", [serves("e", 0.2)]), 3) }];
    let mut short = model([], tasks);
    short.processors.iter_mut().filter(|p| p.name == "s").for_each(|p| p.replication = 3.0.into());
    let client = customers("c", 5, 1.0, work("c", 0.0).calls_about("e0", 1.0).calls_about("e1", 1.0).calls_about("e2", 1.0));
    let long = model([], [client].into_iter().chain((0..3).map(|i| server(&format!("s{i}"), [serves(&format!("e{i}"), 0.2)]))));
    let (short, long) = (solved(&short, Solver::Exact), solved(&long, Solver::Exact));
    near(short.tasks["c"].throughput, long.tasks["c"].throughput, 1e-12);
    near(short.tasks["s"].utilization, long.tasks["s1"].utilization, 1e-12);
    near(short.calls[0].waiting.unwrap(), long.calls[0].waiting.unwrap(), 1e-12);
}

/// A hundred tasks of four threads each at one server that a load of 0.995 leaves little of: each thread's absence changes little, and
/// the fixed point is found. Throughput by simulation: 0.4952 to 0.3 per cent.
#[test]
fn many_pools_at_a_saturated_server_settle() {
    let pools = |clients: u32, middle: u32, servers: u32| {
        let client = customers("c", 3, 5.0, work("c", 0.1).calls_about("e", 1.0));
        let pool = server("m", [entry("e", [work("e", 0.2).calls_about("f", 2.0)])]).times(4.0);
        let tasks = [
            Task { fan_out: fan("m", 1), ..copies(client, clients) },
            Task { fan_in: fan("c", clients / middle), fan_out: fan("b", 1), ..copies(pool, middle) },
            Task { fan_in: fan("m", middle), ..server("b", [serves("f", 0.05)]).times(2.0 * f64::from(servers)) },
        ];
        let mut model = model([], tasks);
        model.processors.iter_mut().filter(|p| p.name == "m").for_each(|p| p.replication = f64::from(middle).into());
        model.processors.iter_mut().filter(|p| p.name == "b").for_each(|p| p.multiplicity = f64::from(servers).into());
        model
    };
    let solution = solved(&pools(100, 25, 5), Solver::Layered);
    near(solution.tasks["c"].throughput, 0.4952, 0.012);
    let utilization = solution.processors["b"].utilization;
    assert!(utilization <= 5.0 * (1.0 + SAME), "{utilization}");
    let solution = solved(&pools(100, 25, 6), Solver::Layered);
    near(solution.tasks["c"].throughput, 0.5343, 0.01);
}

#[test]
fn copies_that_do_not_fit_are_refused_in_words() {
    let refusal = |change: fn(&mut Model)| {
        let mut model = tree(4);
        change(&mut model);
        match solve(&model, &Bindings::new(), &SolveOptions { solver: Solver::Layered, ..SolveOptions::default() }) {
            Err(error @ SolveError::Unusable { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert!(refusal(|m| m.tasks[1].replication = 3.0.into()).contains("fan-in 2"));
    assert!(refusal(|m| m.processors.iter_mut().for_each(|p| p.replication = 3.0.into())).contains("not a multiple"));
    assert!(refusal(|m| m.tasks[0].replication = 1.5.into()).contains("expected an integer"));
    let forwarding = refusal(|m| {
        m.tasks[1].entries[0].forwarding.push(layerfit::model::Forwarding { dest: "f".into(), probability: 0.8.into() });
        m.tasks[1].fan_out = fan("b", 2);
        m.tasks[2].fan_in = fan("m", 4);
    });
    assert!(forwarding.contains("sum to 1.6"), "{forwarding}");
}

/// The work grows with the streams that meet, which fans multiply.
#[test]
fn too_many_connections_are_refused_before_they_are_made() {
    for n in [300, 100_000] {
        let client = customers("c", 1, 1.0, work("c", 0.1).calls_about("e", 0.01));
        let tasks = [
            Task { fan_out: fan("s", n), ..copies(client, n.min(300)) },
            Task { fan_in: fan("c", n), ..copies(server("s", [serves("e", 0.001)]), n.min(300)) },
        ];
        let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
        let error = solve(&model([], tasks), &Bindings::new(), &options).unwrap_err();
        assert!(matches!(error, SolveError::Unsupported { construct: "so many copies", .. }), "{error}");
    }
}

/// Beyond what the analytic solvers lay out a model is simulated, and the solution says so.
#[test]
fn more_copies_than_are_laid_out_are_simulated() {
    let mut model = tree(4);
    model.tasks[0].replication = 2_000.0.into();
    model.tasks[1].fan_in = fan("c", 1_000);
    let layered = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    assert!(matches!(solve(&model, &Bindings::new(), &layered), Err(SolveError::Unsupported { construct: "so many copies", .. })));
    let simulation = SimulateOptions { run_time: Some(20.0), precision: None, replications: 1, ..SimulateOptions::default() };
    let solution = solve(&model, &Bindings::new(), &SolveOptions { simulation, ..SolveOptions::default() }).unwrap();
    assert_eq!(solution.solver, "simulate");
    assert!(solution.diagnostics.iter().any(|d| d.contains("so many copies")), "{:?}", solution.diagnostics);
}
