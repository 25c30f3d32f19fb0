//! The simulator against closed forms, and its errors. The vectors of the language are in `simulate_vectors`.

use layerfit::{
    model::{Bindings, Measure, Model, Number, ProcessorScheduling, TaskScheduling},
    solve::{SimulateOptions, Solution, SolveError, simulate},
};

use super::build::*;

/// A run that debug builds do in a moment.
pub fn short(run_time: f64) -> SimulateOptions {
    SimulateOptions { run_time: Some(run_time), precision: None, replications: 2, ..SimulateOptions::default() }
}

/// Simulates for this model time.
pub fn run(model: &Model, run_time: f64) -> Solution {
    simulate(model, &Bindings::new(), &short(run_time)).unwrap()
}

/// Half-widths (95 %) that a result may be off: with the seeds fixed, one in 10^4 correct results would be further off.
const HALF_WIDTHS: f64 = 2.5;

/// A half-width above this part of the value would let a wrong result pass.
const WIDEST: f64 = 0.08;

/// Checks a result with half-width against a value, known to `error`.
#[track_caller]
pub fn check(got: f64, half_width: Option<f64>, want: f64, error: f64) {
    let Some(half_width) = half_width else {
        return assert_eq!((got, want), (0.0, 0.0), "only of what never happened there is no half-width");
    };
    assert!(half_width <= WIDEST * want.abs().max(0.02), "half-width {half_width} of {want}");
    assert!((got - want).abs() <= HALF_WIDTHS * half_width.hypot(error) + 1e-9, "got {got} ± {half_width}, want {want} ± {error}");
}

/// Checks a result for which no half-width is given.
#[track_caller]
pub fn near(got: f64, want: f64, relative: f64) {
    assert!((got - want).abs() <= relative * want.abs().max(1e-3), "got {got}, want {want}");
}

#[track_caller]
pub fn throughput(solution: &Solution, task: &str, want: f64, error: f64) {
    let result = &solution.tasks[task];
    check(result.throughput, result.throughput_half_width, want, error);
}

#[track_caller]
pub fn busy(solution: &Solution, task: &str, want: f64, error: f64) {
    let result = &solution.tasks[task];
    check(result.utilization, result.utilization_half_width, want, error);
}

#[track_caller]
pub fn service(solution: &Solution, entry: &str, phase: usize, want: f64, error: f64) {
    let result = &solution.entries[entry];
    let half_width = result.service_times_half_width.as_ref().and_then(|h| h[phase - 1]);
    check(result.service_times[phase - 1].unwrap(), half_width, want, error);
}

#[track_caller]
pub fn waiting(solution: &Solution, from: &str, to: &str, want: f64, error: f64) {
    let call = solution.calls.iter().find(|c| c.from == from && c.to == to).unwrap();
    check(call.waiting.unwrap(), call.waiting_half_width, want, error);
}

#[track_caller]
pub fn open_wait(solution: &Solution, entry: &str, want: f64, error: f64) {
    let result = &solution.entries[entry];
    check(result.open_wait_time.unwrap(), result.open_wait_time_half_width, want, error);
}

/// Erlang's formula C by the recursion of formula B.
fn erlang_c(m: u32, load: f64) -> f64 {
    let b = (1..=m).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
    let m = f64::from(m);
    b / (1.0 - (load / m) * (1.0 - b))
}

#[test]
fn single_server_of_each_law_waits_as_pollaczek_and_khinchine_say() {
    for (cvsq, rate) in [(0.0, 0.5), (0.25, 0.6), (1.0, 0.6), (2.5, 0.4)] {
        let entry = open(entry("e", [work("e", 1.0).cvsq(cvsq)]), rate);
        let solution = run(&model([], [server("s", [entry])]), 60_000.0);
        open_wait(&solution, "e", 1.0 + rate * (1.0 + cvsq) / 2.0 / (1.0 - rate), 0.0);
        throughput(&solution, "s", rate, 0.0);
    }
}

#[test]
fn threads_and_cores_wait_as_erlang_says() {
    let (m, rate) = (3, 2.2);
    let wait = erlang_c(m, rate) / (f64::from(m) - rate);
    let threads = server("s", [open(serves("e", 1.0), rate)]).times(3.0).on("delay");
    open_wait(&run(&model([], [threads]), 20_000.0), "e", 1.0 + wait, 0.0);
    for discipline in [ProcessorScheduling::Fcfs, ProcessorScheduling::Lcfs, ProcessorScheduling::Rand, ProcessorScheduling::Ps] {
        let pool = server("s", [open(serves("e", 1.0), rate)]).scheduled(TaskScheduling::Inf);
        let solution = run(&model([processor("s", discipline, m)], [pool]), 20_000.0);
        open_wait(&solution, "e", 1.0 + wait, 0.0);
        let cpu = &solution.processors["s"];
        check(cpu.utilization, cpu.utilization_half_width, rate, 0.0);
    }
}

#[test]
fn shared_processor_does_not_care_for_the_law() {
    let rate = 0.5;
    for quantum in [0.0, 0.004, 0.2] {
        let mut cpu = processor("s", ProcessorScheduling::Ps, 1);
        cpu.quantum = quantum.into();
        let pool = server("s", [open(entry("e", [work("e", 1.0).cvsq(4.0)]), rate)]).scheduled(TaskScheduling::Inf);
        let solution = run(&model([cpu], [pool]), 40_000.0);
        // With a quantum of a fifth of the demand the response is that of sharing to about a tenth of the quantum.
        open_wait(&solution, "e", 1.0 / (1.0 - rate), if quantum > 0.1 { 0.02 } else { 0.0 });
    }
}

#[test]
fn machine_repair_has_its_closed_form() {
    // 4 machines, mean time up 3, repair 1: p(n) = p(0) 4!/(4-n)! (1/3)^n.
    let weights: Vec<f64> = (0..=4)
        .scan(1.0, |w, n| {
            let now = *w;
            *w *= f64::from(4 - n) / 3.0;
            Some(now)
        })
        .collect();
    let x = 1.0 - weights[0] / weights.iter().sum::<f64>();
    let solution = run(&model([], [customers("c", 4, 3.0, work("c", 0.0).calls("e", 1)), server("s", [serves("e", 1.0)])]), 40_000.0);
    throughput(&solution, "c", x, 0.0);
    throughput(&solution, "s", x, 0.0);
    busy(&solution, "s", x, 0.0);
    waiting(&solution, "c", "e", 4.0 / x - 3.0 - 1.0, 0.0);
}

#[test]
fn little_and_utilization_hold_between_results() {
    let tasks = [
        customers("c", 6, 1.0, work("c", 0.1).calls_about("e", 1.5)),
        server("s", [entry("e", [work("e1", 0.2).calls_about("f", 2.0), work("e2", 0.1)])]).times(2.0),
        server("t", [serves("f", 0.1)]),
    ];
    let solution = run(&model([], tasks), 20_000.0);
    let x = solution.tasks["c"].throughput;
    near(solution.tasks["c"].utilization, 6.0 - x, 0.01);
    near(solution.tasks["s"].throughput, 1.5 * x, 0.01);
    near(solution.processors["s"].utilization, 0.3 * 1.5 * x, 0.01);
    near(solution.processors["t"].utilization, 0.1 * 3.0 * x, 0.02);
    let e = &solution.entries["e"];
    near(e.utilization, e.throughput * e.service_times.iter().flatten().sum::<f64>(), 0.01);
}

#[test]
fn speed_divides_demands() {
    for discipline in [ProcessorScheduling::Fcfs, ProcessorScheduling::Ps, ProcessorScheduling::Inf] {
        let mut cpu = processor("s", discipline, 1);
        cpu.speed_factor = 4.0.into();
        let solution = run(&model([cpu], [server("s", [open(serves("e", 2.0), 1.0)]).times(f64::INFINITY)]), 20_000.0);
        check(solution.processors["s"].utilization, solution.processors["s"].utilization_half_width, 0.5, 0.0);
    }
}

#[test]
fn reached_precision_covers_the_truth() {
    let model = model([], [customers("c", 4, 3.0, work("c", 0.0).calls("e", 1)), server("s", [serves("e", 1.0)])]);
    let options = SimulateOptions { precision: Some(0.01), ..SimulateOptions::default() };
    let solution = simulate(&model, &Bindings::new(), &options).unwrap();
    assert!(solution.converged && solution.residual <= 0.01, "{:?}", solution.diagnostics);
    // 1 - p(0) of the machine repair model, with p(0) = 1 / (1 + 4/3 + 4/3 + 8/9 + 8/27).
    near(solution.tasks["c"].throughput, 104.0 / 131.0, 0.02);
}

/// A queue M/M/1 of utilization 0.8, empty at first and looked at for some fifty of its relaxation times: its intervals of 95 % hold the mean
/// response time of 5 about as often as they say. (Three times of four with a warm-up by MSER alone, and batches taken for independent.)
#[test]
fn intervals_of_short_runs_cover_the_truth() {
    let model = model([], [server("s", [open(serves("e", 1.0), 0.8)])]);
    let (mut covering, mut sum) = (0.0, 0.0);
    for seed in 0..100 {
        let options = SimulateOptions { seed, run_time: Some(5000.0), precision: None, ..SimulateOptions::default() };
        let entry = &simulate(&model, &Bindings::new(), &options).unwrap().entries["e"];
        let (mean, half_width) = (entry.open_wait_time.unwrap(), entry.open_wait_time_half_width.unwrap());
        covering += f64::from((mean - 5.0).abs() <= half_width);
        sum += mean;
    }
    assert!(covering >= 88.0, "{covering} of 100");
    near(sum / 100.0, 5.0, 0.02);
}

#[test]
fn same_seed_same_result_whatever_the_workers() {
    let model = model([], [customers("c", 4, 3.0, work("c", 0.0).calls("e", 1)), server("s", [serves("e", 1.0)])]);
    let result = |seed, workers| {
        let options = SimulateOptions { seed, workers, replications: 3, ..short(500.0) };
        simulate(&model, &Bindings::new(), &options).unwrap()
    };
    assert_eq!(result(1, 1), result(1, 3));
    assert_ne!(result(1, 1).tasks["c"].throughput, result(2, 1).tasks["c"].throughput);
}

#[test]
fn measures_come_with_standard_errors() {
    let model = model([], [customers("c", 4, 3.0, work("c", 0.0).calls("e", 1)), server("s", [serves("e", 1.0)])]);
    let measures: Vec<Measure> = ["throughput(c)", "response_time(c)"].iter().map(|m| m.parse().unwrap()).collect();
    let measured = simulate::measure(&model, &Bindings::new(), &short(60_000.0), &measures).unwrap();
    let std_errors = measured.std_errors();
    let (x, error) = (measured.values[0].unwrap(), std_errors[0].unwrap());
    // t of 29 degrees of freedom is 2.045; the jackknife of a mean is its standard error.
    near(2.045 * error, measured.solution.tasks["c"].throughput_half_width.unwrap(), 0.01);
    near(measured.values[1].unwrap(), 4.0 / x - 3.0, 0.02);
    assert!(std_errors[1].unwrap() > 0.0);
    let unknown = ["throughput(nobody)".parse().unwrap()];
    let error = simulate::measure(&model, &Bindings::new(), &short(10.0), &unknown).unwrap_err();
    assert!(matches!(error, SolveError::UnknownMeasure { .. }), "{error}");
}

#[test]
fn deadlock_is_found_and_named() {
    // Two single threads that call each other's task through a second entry.
    let tasks = [
        customers("c", 2, 1.0, work("c", 0.0).calls("a1", 1)),
        customers("d", 2, 1.0, work("d", 0.0).calls("b1", 1)),
        server("a", [entry("a1", [work("a1", 0.1).calls("b2", 1)]), serves("a2", 0.1)]),
        server("b", [entry("b1", [work("b1", 0.1).calls("a2", 1)]), serves("b2", 0.1)]),
    ];
    let error = simulate(&model([], tasks.clone()), &Bindings::new(), &short(10_000.0)).unwrap_err();
    let SolveError::Deadlock { waits, .. } = &error else { panic!("{error}") };
    assert!(waits.iter().any(|w| w == "task \"a\" waits for entry \"b2\" of task \"b\""), "{error}");
    // Others that go on do not hide it.
    let other = customers("z", 1, 1.0, work("z", 1.0));
    let error = simulate(&model([], tasks.into_iter().chain([other])), &Bindings::new(), &short(10_000.0)).unwrap_err();
    assert!(matches!(error, SolveError::Deadlock { .. }), "{error}");
}

#[test]
fn overload_is_an_error_and_not_a_number() {
    let model = model([], [server("s", [open(serves("e", 1.0), 5000.0)])]);
    let error = simulate(&model, &Bindings::new(), &short(1000.0)).unwrap_err();
    let SolveError::Unbounded { resource, .. } = &error else { panic!("{error}") };
    assert_eq!(resource, "task \"s\"");
}

/// What was 0 throughout has a half-width only where it can be nothing else.
#[test]
fn nothing_is_known_of_how_far_off_a_zero_is() {
    let solved = |scheduling, demand| {
        let mut phase = work("e", demand);
        phase.max_service_time = 100.0.into();
        let mut called = server("s", [entry("e", [phase])]).scheduled(scheduling);
        called.queue_length = 50.0.into();
        let tasks = [customers("c", 1, 1.0, work("c", 0.1).calls("e", 1)), called, server("t", [open(serves("f", 0.1), 0.1)])];
        let mut model = model([], tasks);
        model.tasks[2].queue_length = 50.0.into();
        run(&model, 5000.0)
    };
    let solution = solved(TaskScheduling::Fcfs, 1.0);
    assert!(solution.converged, "{:?}", solution.diagnostics);
    assert_eq!((solution.calls[0].waiting, solution.calls[0].waiting_half_width), (Some(0.0), None));
    let exceeds = solution.entries["e"].asked_times[0].exceeds.unwrap();
    assert_eq!((exceeds.probability, exceeds.probability_half_width), (0.0, None));
    let task = &solution.tasks["t"];
    assert_eq!((task.loss_probability, task.loss_probability_half_width), (Some(0.0), None));
    let solution = solved(TaskScheduling::Inf, 0.0);
    assert_eq!((solution.calls[0].waiting, solution.calls[0].waiting_half_width), (Some(0.0), Some(0.0)));
    assert_eq!(solution.entries["e"].service_times_half_width, Some(vec![Some(0.0)]));
}

#[test]
fn mild_overload_is_not_converged() {
    let model = model([], [server("s", [open(serves("e", 1.0), 1.3)])]);
    assert!(!run(&model, 5000.0).converged);
}

/// A thousand customers queue at a server: their waits grow for a thousand services while as many are under way and the server is never idle.
#[test]
fn the_waits_of_many_customers_have_grown_to_their_end() {
    let model = model([], [customers("U", 2000, 1.0, work("u", 0.0).calls("e", 1)), server("s", [serves("e", 0.1)])]);
    let found =
        simulate(&model, &Bindings::new(), &SimulateOptions { precision: Some(0.02), replications: 2, ..SimulateOptions::default() })
            .unwrap();
    assert!(found.converged, "{:?}", found.diagnostics);
    let response = found.entries["U"].service_times[0].unwrap();
    let little = 2000.0 / found.tasks["U"].throughput - 1.0;
    assert!((response / little - 1.0).abs() < 0.02, "{response} {little}");
    near(little, 199.0, 0.05);
    // A run that ends before says so.
    let early = run(&model, 150.0);
    assert!(!early.converged && early.diagnostics.iter().any(|note| note.contains("did not settle")), "{:?}", early.diagnostics);
}

#[test]
fn cycles_without_time_are_refused() {
    let model = model([], [customers("c", 1, 0.0, work("c", 0.0).calls("e", 1)), server("s", [serves("e", 0.0)])]);
    let error = simulate(&model, &Bindings::new(), &short(10.0)).unwrap_err();
    assert!(error.to_string().contains("take no time"), "{error}");
}

/// What an unusable model is told.
fn refusal(change: impl FnOnce(&mut Model)) -> String {
    let mut model = model([], [customers("c", 1, 1.0, work("c", 0.0).calls("e", 1)), server("s", [serves("e", 1.0)])]);
    change(&mut model);
    match simulate(&model, &Bindings::new(), &short(10.0)) {
        Err(error @ (SolveError::Unusable { .. } | SolveError::Unbound(_))) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_that_cannot_be_used_are_named() {
    let demand = |model: &mut Model, number: Number| model.tasks[1].entries[0].phases[0].activity.host_demand = number;
    assert_eq!(refusal(|m| demand(m, (-1.0).into())), "activity \"e\": its host demand is -1, expected a finite number of at least 0");
    assert!(refusal(|m| demand(m, f64::NAN.into())).contains("NaN"));
    assert!(refusal(|m| demand(m, Number::Parameter("d".into()))).contains("$d"));
    assert_eq!(refusal(|m| m.tasks[1].multiplicity = 1.5.into()), "task \"s\": its multiplicity is 1.5, expected an integer of at least 1");
    assert!(refusal(|m| m.tasks[0].multiplicity = f64::INFINITY.into()).contains("reference task"));
    assert!(refusal(|m| m.tasks[0].think_time = (-1.0).into()).contains("think time"));
    assert!(refusal(|m| m.processors[1].speed_factor = 0.0.into()).contains("speed factor"));
    assert!(refusal(|m| m.processors[1].replication = 2.0.into()).contains("multiple"));
    assert!(refusal(|m| m.tasks[0].entries[0].phases[0].activity.calls[0].mean = 1.5.into()).contains("deterministic"));
    assert!(refusal(|m| m.tasks[0].entries[0].phases[0].activity.calls[0].dest = "x".into()).contains("\"x\""));
    assert!(refusal(|m| m.tasks[1].processor = "x".into()).contains("\"x\""));
    assert!(refusal(|m| m.tasks.push(server("t", []))).contains("no entries"));
    assert!(refusal(|m| drop(m.tasks.remove(0))).contains("no load"));
}

#[test]
fn options_that_cannot_be_used_are_named() {
    let model = model([], [customers("c", 1, 1.0, work("c", 1.0))]);
    for options in [
        SimulateOptions { run_time: Some(-1.0), ..SimulateOptions::default() },
        SimulateOptions { precision: Some(0.0), ..SimulateOptions::default() },
        SimulateOptions { confidence: 1.0, ..SimulateOptions::default() },
        SimulateOptions { replications: 0, ..SimulateOptions::default() },
    ] {
        let error = simulate(&model, &Bindings::new(), &options).unwrap_err();
        assert!(matches!(&error, SolveError::Unusable { element, .. } if element == "simulation options"), "{error}");
    }
}
