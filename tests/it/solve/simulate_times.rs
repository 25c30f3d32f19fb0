//! What the simulator says beyond means: distributions, losses, sensitivities, the order of what happens at one instant.

use layerfit::{
    model::{Bindings, Entry, HistogramRequest, Measure, Model, Number, SemaphoreRole, TaskScheduling},
    solve::{Bin, Distribution, SimulateOptions, SolveError, SolveOptions, Solver, sensitivities, simulate, solve},
};

use super::{
    build::*,
    simulate::{check, near, run, service, short},
};

/// An exponential time's quantile.
fn exponential_quantile(mean: f64, p: f64) -> f64 {
    -mean * (1.0 - p).ln()
}

/// Checks the histogram and quantiles against `below`, the distribution function.
#[track_caller]
fn check_distribution(got: &Distribution, below: impl Fn(f64) -> f64) {
    let sum: f64 = got.histogram.iter().map(|b| b.probability).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    for q in &got.quantiles {
        let (lower, upper) = (q.lower.unwrap(), q.upper.unwrap());
        assert!(lower < q.value && q.value < upper, "{q:?}");
        // The seeds are fixed: 1.5 intervals of 95 % cover but one in 300.
        let slack = 0.25 * (upper - lower);
        let (low, high) = (below(lower - slack), below(upper + slack));
        assert!(low <= q.probability && q.probability <= high, "{q:?} is {}", below(q.value));
    }
    for bin in &got.histogram {
        let mass = below(bin.end.unwrap()) - below(bin.begin);
        // 40 bins in half a dozen tests.
        assert!((bin.probability - mass).abs() <= 2.5 * bin.probability_half_width.unwrap() + 1e-4, "{bin:?}: {mass}");
    }
}

#[test]
fn response_times_of_a_single_server_are_exponential() {
    let solution = run(&model([], [server("s", [open(serves("e", 1.0), 0.5)])]), 40_000.0);
    let response = solution.entries["e"].response_time.as_ref().unwrap();
    check(response.mean, response.mean_half_width, 2.0, 0.0);
    near(response.std_deviation, 2.0, 0.1);
    near(response.mean, solution.entries["e"].open_wait_time.unwrap(), 1e-12);
    assert_eq!(response.quantiles.iter().map(|q| q.probability).collect::<Vec<_>>(), [0.5, 0.9, 0.95, 0.99]);
    near(response.quantiles[1].value, exponential_quantile(2.0, 0.9), 0.08);
    check_distribution(response, |t| 1.0 - (-t.max(0.0) / 2.0).exp());
}

/// Times are counted in buckets: nothing is known of where in one they are, and the bounds say so.
#[test]
fn bounds_of_quantiles_hold_times_that_are_all_the_same() {
    let tasks = [customers("c", 1, 1.0, work("c", 1.0).cvsq(0.0).calls("e", 1)), server("s", [entry("e", [work("e", 1.0).cvsq(0.0)])])];
    let solution = run(&model([], tasks), 10_000.0);
    let response = solution.entries["c"].response_time.as_ref().unwrap();
    near(response.mean, 2.0, 1e-9);
    for q in &response.quantiles {
        assert!(q.lower.unwrap() <= 2.0 && 2.0 <= q.upper.unwrap(), "{q:?}");
        near(q.value, 2.0, 0.02);
    }
}

#[test]
fn customers_respond_in_the_time_of_their_cycle() {
    // One customer, two exponential services of 1 after another: Erlang.
    let tasks = [customers("c", 1, 3.0, work("c", 0.0).calls("e", 2)), server("s", [serves("e", 1.0)])];
    let solution = run(&model([], tasks), 40_000.0);
    let response = solution.entries["c"].response_time.as_ref().unwrap();
    check(response.mean, response.mean_half_width, 2.0, 0.0);
    check_distribution(response, |t| 1.0 - (1.0 + t.max(0.0)) * (-t.max(0.0)).exp());
    let called = solution.entries["e"].response_time.as_ref().unwrap();
    check_distribution(called, |t| 1.0 - (-t.max(0.0)).exp());
    near(called.count as f64, 2.0 * response.count as f64, 0.001);
}

#[test]
fn second_phases_do_not_count_as_response() {
    let tasks = [customers("c", 1, 50.0, work("c", 0.0).calls("e", 1)), server("s", [entry("e", [work("e1", 1.0), work("e2", 5.0)])])];
    let solution = run(&model([], tasks), 100_000.0);
    let response = solution.entries["e"].response_time.as_ref().unwrap();
    // The next cycle finds the second phase still at work with probability 1/11, for 5.
    check(response.mean, response.mean_half_width, 1.0 + 5.0 / 11.0, 0.0);
}

fn asked_model() -> Model {
    let mut phase = work("e", 1.0);
    phase.max_service_time = 2.0.into();
    phase.histogram = Some(HistogramRequest { min: 0.5, max: 2.5, bins: 4 });
    let mut graph = work("a", 0.5);
    graph.max_service_time = 1.0.into();
    let tasks = [
        customers("c", 1, 1.0, work("c", 0.0).calls("e", 1).calls("g", 1)),
        server("s", [entry("e", [phase])]),
        server("t", [starts("g", "a")]).graph([graph], []).replies("g", "a"),
    ];
    model([], tasks)
}

#[test]
fn solvers_that_find_no_distributions_say_what_was_asked() {
    let noted = |solver| {
        let simulation = SimulateOptions { max_events: 100_000, ..SimulateOptions::default() };
        let options = SolveOptions { solver, simulation, ..SolveOptions::default() };
        let solution = solve(&asked_model(), &Bindings::new(), &options).unwrap();
        solution.diagnostics.iter().filter(|note| note.contains("asked for of")).cloned().collect::<Vec<_>>()
    };
    let expected = "the distribution of times that is asked for of phase 1 of entry \"e\" and 1 more is found by simulation only";
    for solver in [Solver::Layered, Solver::Markov] {
        assert_eq!(noted(solver), [expected], "{solver:?}");
    }
    assert!(noted(Solver::Simulate).is_empty());
}

#[test]
fn what_the_model_asks_for_is_measured() {
    let solution = run(&asked_model(), 40_000.0);
    let [limit, bins] = solution.entries["e"].asked_times.as_slice() else { panic!("{:?}", solution.entries["e"].asked_times) };
    let exceeds = limit.exceeds.unwrap();
    assert_eq!((limit.phase, exceeds.limit, limit.histogram.len()), (Some(1), 2.0, 0));
    check(exceeds.probability, exceeds.probability_half_width, (-2.0_f64).exp(), 0.0);
    let ends: Vec<(f64, Option<f64>)> = bins.histogram.iter().map(|b| (b.begin, b.end)).collect();
    assert_eq!(ends, [(0.0, Some(0.5)), (0.5, Some(1.0)), (1.0, Some(1.5)), (1.5, Some(2.0)), (2.0, Some(2.5)), (2.5, None)]);
    let mass = |b: &Bin| (-b.begin).exp() - b.end.map_or(0.0, |e| (-e).exp());
    for bin in &bins.histogram {
        assert!((bin.probability - mass(bin)).abs() <= 2.5 * bin.probability_half_width.unwrap(), "{bin:?}: {}", mass(bin));
    }
    let of_activity = solution.activities["t"]["a"].asked_times[0].exceeds.unwrap();
    check(of_activity.probability, of_activity.probability_half_width, (-2.0_f64).exp(), 0.0);
}

#[test]
fn histograms_that_cannot_be_counted_are_named() {
    for request in [HistogramRequest { min: 1.0, max: 1.0, bins: 3 }, HistogramRequest { min: 0.0, max: 1.0, bins: 0 }] {
        let mut model = asked_model();
        model.tasks[1].entries[0].phases[0].activity.histogram = Some(request);
        let error = simulate(&model, &Bindings::new(), &short(10.0)).unwrap_err().to_string();
        assert!(error.contains("histogram") && error.contains("bins"), "{error}");
    }
}

#[test]
fn distributions_do_not_depend_on_the_workers() {
    let result =
        |workers| simulate(&asked_model(), &Bindings::new(), &SimulateOptions { workers, replications: 5, ..short(2_000.0) }).unwrap();
    let (one, many) = (result(1), result(4));
    assert!(one.entries["e"].response_time.is_some());
    assert_eq!(one, many);
}

#[test]
fn asked_quantiles_are_reported() {
    let options = SimulateOptions { quantiles: vec![0.25, 0.999], ..short(10_000.0) };
    let model = model([], [server("s", [open(serves("e", 1.0), 0.5)])]);
    let solution = simulate(&model, &Bindings::new(), &options).unwrap();
    let got = &solution.entries["e"].response_time.as_ref().unwrap().quantiles;
    assert_eq!(got.iter().map(|q| q.probability).collect::<Vec<_>>(), [0.25, 0.999]);
    for p in [0.0, 1.0, f64::NAN] {
        let error = simulate(&model, &Bindings::new(), &SimulateOptions { quantiles: vec![p], ..short(10.0) }).unwrap_err();
        assert!(error.to_string().contains("quantile"), "{error}");
    }
}

#[test]
fn lost_requests_are_counted_by_task_and_call() {
    // M/M/1/3 at load 0.9: blocked with probability rho^3 (1 - rho) / (1 - rho^4).
    let mut full = server("s", [open(serves("e", 1.0), 0.9)]);
    full.queue_length = 3.0.into();
    let solution = run(&model([], [full]), 40_000.0);
    let blocked = 0.9_f64.powi(3) * 0.1 / (1.0 - 0.9_f64.powi(4));
    let task = &solution.tasks["s"];
    check(task.loss_probability.unwrap(), task.loss_probability_half_width, blocked, 0.0);
    near(solution.entries["e"].loss_probability.unwrap(), blocked, 0.08);
    let lost = task.lost_requests.unwrap();
    near(lost as f64, blocked * 0.9 * solution.measured_time.unwrap(), 0.08);
    assert!(solution.diagnostics.iter().any(|d| d.contains(&format!("task \"s\" lost {lost} requests"))), "{:?}", solution.diagnostics);

    let mut full = server("s", [serves("e", 1.0)]);
    full.queue_length = 1.0.into();
    let tasks = [customers("c", 1, 1.0, work("c", 0.0).sends("e", 1)), full, server("idle", [serves("f", 1.0)])];
    let solution = run(&model([], tasks), 20_000.0);
    near(solution.calls[0].loss_probability.unwrap(), 0.5, 0.05);
    near(solution.tasks["s"].loss_probability.unwrap(), 0.5, 0.05);
    assert_eq!(solution.tasks["idle"].lost_requests, None);
}

fn locks(order: [&str; 2]) -> (Vec<layerfit::model::Activity>, Vec<layerfit::model::Precedence>) {
    let call = |name: &str, verb: &str, lock: &str| work(name, 0.0).calls(&format!("{verb}_{lock}"), 1);
    let activities = vec![
        call("first", "wait", order[0]),
        work("hold", 1.0),
        call("second", "wait", order[1]),
        call("free_second", "signal", order[1]),
        call("free_first", "signal", order[0]),
    ];
    let names = ["first", "hold", "second", "free_second", "free_first"];
    (activities, names.windows(2).map(|w| then(w[0], w[1])).collect())
}

#[test]
fn locks_taken_in_opposite_order_deadlock_though_others_go_on() {
    let semaphore = |name: &str| {
        let wait = Entry { semaphore: Some(SemaphoreRole::Wait), ..serves(&format!("wait_{name}"), 0.0) };
        let signal = Entry { semaphore: Some(SemaphoreRole::Signal), ..serves(&format!("signal_{name}"), 0.0) };
        server(name, [wait, signal]).scheduled(TaskScheduling::Semaphore)
    };
    let user = |name: &str, order| {
        let (activities, precedences) = locks(order);
        reference(name, 1, 1.0, [starts(name, "first")]).graph(activities, precedences)
    };
    let other = customers("z", 1, 1.0, work("z", 1.0));
    let shared = [semaphore("a"), semaphore("b"), other];
    let crossed = [user("u", ["a", "b"]), user("v", ["b", "a"])].into_iter().chain(shared.clone());
    let error = simulate(&model([], crossed), &Bindings::new(), &short(10_000.0)).unwrap_err();
    let SolveError::Deadlock { waits, .. } = &error else { panic!("{error}") };
    assert!(waits.iter().any(|w| w == "task \"u\" waits for entry \"wait_b\" of task \"b\""), "{error}");
    let ordered = [user("u", ["a", "b"]), user("v", ["a", "b"])].into_iter().chain(shared);
    assert!(simulate(&model([], ordered), &Bindings::new(), &short(2_000.0)).is_ok());
}

#[test]
fn second_phase_keeps_its_processor_half_the_time_where_the_caller_shares_it() {
    // A slice of 1, a call of 1 with a second phase of 1, and a slice of 1, all on one processor and of constant demand.
    let tasks = [
        customers("c", 1, 10.0, work("c", 2.0).calls("e", 1).cvsq(0.0)).on("cpu"),
        server("s", [entry("e", [work("e1", 1.0).cvsq(0.0), work("e2", 1.0).cvsq(0.0)])]).on("cpu"),
    ];
    let solution = run(&model([], tasks), 40_000.0);
    // Kept, the second phase takes 1 and the caller 4; given up, the second phase waits for the caller's slice.
    near(solution.entries["e"].service_times[0].unwrap(), 1.0, 1e-9);
    service(&solution, "e", 2, 1.5, 0.0);
    service(&solution, "c", 1, 3.5, 0.0);
}

#[test]
fn sensitivities_of_a_simulation_are_those_of_the_exact_solution() {
    let demand = Number::Parameter("d".into());
    let mut server = server("s", [serves("e", 0.0)]);
    server.entries[0].phases[0].activity.host_demand = demand;
    let mut users = customers("c", 4, 3.0, work("c", 0.0).calls("e", 1));
    users.multiplicity = Number::Parameter("n".into());
    let model = model([], [users, server]);
    let values: Bindings = [("d", 1.0), ("n", 4.0)].into_iter().collect();
    let wrt = ["d".to_owned(), "n".to_owned()];
    let measures: Vec<Measure> = ["throughput(c)", "utilization(s)"].iter().map(|m| m.parse().unwrap()).collect();
    let of = |solver| {
        let options =
            SolveOptions { solver, simulation: SimulateOptions { precision: Some(0.01), ..short(20_000.0) }, ..SolveOptions::default() };
        sensitivities(&model, &values, &wrt, &measures, &options).unwrap()
    };
    let (exact, got) = (of(Solver::Exact), of(Solver::Simulate));
    for i in 0..2 {
        near(got.values[i], exact.values[i], 0.02);
        for j in 0..2 {
            let (got, want) = (got.jacobian[(i, j)], exact.jacobian[(i, j)]);
            assert!((got - want).abs() <= 0.1 * want.abs(), "{i} {j}: {got}, exactly {want}");
        }
    }
    let again = of(Solver::Simulate);
    assert_eq!((again.values, again.jacobian), (got.values, got.jacobian));
}

#[test]
fn the_simulation_is_run_as_the_options_of_the_solver_say() {
    let model = model([], [customers("c", 2, 1.0, work("c", 0.0).calls("e", 1)), server("s", [serves("e", 1.0)])]);
    let simulation = SimulateOptions { replications: 3, ..short(300.0) };
    let options = SolveOptions { solver: Solver::Simulate, seed: 7, simulation: simulation.clone(), ..SolveOptions::default() };
    let got = solve(&model, &Bindings::new(), &options).unwrap();
    assert_eq!(got, simulate(&model, &Bindings::new(), &SimulateOptions { seed: 7, ..simulation }).unwrap());
}
