//! Sensitivities against Richardson-extrapolated differences of plain solutions.

use layerfit::{
    model::{Bindings, CallOrder, Fan, Group, Measure, Model, Number, ProcessorScheduling, Task},
    solve::{SolveOptions, Solver, sensitivities, solve},
};

use super::{
    build::*,
    draw::{Kind, draw},
    practice::infinite,
    referee::one_of_each_kind,
};

/// What two fixed points solved to 1e-12 leave in an extrapolated difference over a step of a thousandth.
const TOLERANCE: f64 = 2e-5;

fn tight(solver: Solver) -> SolveOptions {
    SolveOptions { solver, tolerance: 1e-12, ..SolveOptions::default() }
}

fn check(model: &Model, values: &[(&str, f64)], measures: &[&str], solver: Solver) {
    let values: Bindings = values.iter().copied().collect();
    let names: Vec<String> = values.iter().map(|(n, _)| n.to_owned()).collect();
    let measures: Vec<Measure> = measures.iter().map(|m| m.parse().unwrap()).collect();
    let got = sensitivities(model, &values, &names, &measures, &tight(solver)).unwrap();
    assert!(got.solution.converged);
    for (j, name) in names.iter().enumerate() {
        let at = values.get(name).unwrap();
        let difference = |step: f64| -> Vec<f64> {
            let side = |x: f64| {
                let mut moved = values.clone();
                moved.set(name.clone(), x);
                let solution = solve(model, &moved, &tight(solver)).unwrap();
                measures.iter().map(|m| layerfit::solve::measure::value(model, &solution, m).unwrap()).collect::<Vec<f64>>()
            };
            side(at + step).iter().zip(side(at - step)).map(|(up, down)| (up - down) / (2.0 * step)).collect()
        };
        let (wide, narrow) = (difference(2e-3 * at), difference(1e-3 * at));
        for (i, measure) in measures.iter().enumerate() {
            let expected = (4.0 * narrow[i] - wide[i]) / 3.0;
            let scale = expected.abs().max(1e-3 * got.values[i].abs() / at);
            let h = got.jacobian[(i, j)];
            assert!((h - expected).abs() <= TOLERANCE * scale, "d {measure} / d {name}: {h}, by differences {expected}");
        }
    }
}

fn parameter(name: &str) -> Number {
    Number::Parameter(name.into())
}

/// Woodside 2008, section 5: sensitivities at experiment B5, as printed there (its 3×3 block is transposed in print).
#[test]
fn golden_sensitivities_of_three_queues() {
    let mut cycle = work("use", 0.0);
    let mut tasks = Vec::new();
    for (name, p) in [("q1", "d1"), ("q2", "d2"), ("q3", "d3")] {
        cycle = cycle.calls_about(&format!("{name}e"), 1.0);
        let mut visit = work("v", 0.0);
        visit.host_demand = parameter(p);
        tasks.push(server(name, [entry(&format!("{name}e"), [visit])]));
    }
    tasks.insert(0, customers("Users", 10, 10.0, cycle));
    let model = model([], tasks);
    let values: Bindings = [("d1", 1.854), ("d2", 2.798), ("d3", 3.980)].into_iter().collect();
    let wrt = ["d1", "d2", "d3"].map(String::from);
    let measures = ["residence_time(q1)", "residence_time(q2)", "residence_time(q3)", "throughput(Users)"].map(|m| m.parse().unwrap());
    let got = sensitivities(&model, &values, &wrt, &measures, &SolveOptions::default()).unwrap();
    assert_eq!(got.solution.solver, "exact");
    let printed = [[2.9219, -0.1388, -0.4019], [-0.3164, 5.6991, -1.7367], [-1.8522, -3.5126, 10.3132], [-0.0044, -0.0119, -0.0474]];
    for (i, row) in printed.iter().enumerate() {
        for (j, expected) in row.iter().enumerate() {
            assert!((got.jacobian[(i, j)] - expected).abs() < 1e-3, "{i} {j}: {} {expected}", got.jacobian[(i, j)]);
        }
    }
}

#[test]
fn exact_sensitivities_are_derivatives() {
    let mut visit = work("v", 0.0);
    visit.host_demand = parameter("d");
    let mut users = customers("U", 8, 0.0, work("u", 0.1).calls_about("e", 2.0).calls_about("f", 1.0));
    users.think_time = parameter("z");
    let tasks = [users, server("s", [entry("e", [visit])]).times(2.0), server("t", [serves("f", 0.7)])];
    let model = model([processor("s", ProcessorScheduling::Fcfs, 2)], tasks);
    check(&model, &[("d", 0.4), ("z", 3.0)], &["throughput(U)", "response_time(U)", "utilization(s)", "residence_time(t)"], Solver::Exact);
}

/// Synchronous calls over three layers, two phases, a pool, processor sharing, forwarding, two classes, a speed, a mean
/// number of calls, an open arrival rate and a variance, all at once.
#[test]
fn layered_sensitivities_are_derivatives() {
    let mut first = work("a1", 0.0).calls_about("b", 1.5);
    first.host_demand = parameter("a");
    first.calls[0].mean = parameter("y");
    let mut served = work("b1", 0.0);
    served.host_demand = parameter("b");
    served.host_demand_cvsq = parameter("c");
    let mut arrives = serves("o", 0.05);
    arrives.open_arrival_rate = Some(parameter("rate"));
    let mut slow = customers("V", 3, 2.0, work("v", 0.1).calls_about("a", 1.0));
    slow.think_time = parameter("z");
    let tasks = [
        customers("U", 6, 4.0, work("u", 0.0).calls_about("a", 1.0)),
        slow,
        server("t", [entry("a", [first, work("a2", 0.1)])]).times(2.0).on("p"),
        server("w", [forwards(entry("b", [served]), "f", 0.5)]).on("q"),
        server("x", [serves("f", 0.2)]).on("q"),
        server("y", [arrives]).on("q"),
    ];
    let mut p = processor("p", ProcessorScheduling::Ps, 1);
    p.speed_factor = parameter("speed");
    let model = model([p, processor("q", ProcessorScheduling::Fcfs, 1)], tasks);
    let values = [("a", 0.2), ("b", 0.15), ("c", 2.0), ("y", 1.3), ("z", 3.0), ("rate", 0.8), ("speed", 1.5)];
    let measures = [
        "throughput(U)",
        "response_time(V)",
        "utilization(t)",
        "utilization(processor:q)",
        "service_time(a,2)",
        "waiting(a->b)",
        "residence_time(w)",
    ];
    check(&model, &values, &measures, Solver::Layered);
}

/// Short and long requests from outside, to as many threads as cores, and to more that call another.
#[test]
fn sensitivities_of_a_stream_are_derivatives() {
    let of = |name: &str, demand: &str, rate: &str, calls: f64| {
        let mut served = work(&format!("{name}1"), 0.0);
        served.host_demand = parameter(demand);
        let served = if calls > 0.0 { served.calls_about("d", calls) } else { served };
        let mut it = entry(name, [served]);
        it.open_arrival_rate = Some(parameter(rate));
        it
    };
    let values = [("s", 0.3), ("l", 2.2), ("r", 1.1), ("q", 0.2)];
    let measures = ["response_time(a)", "response_time(b)", "service_time(a)", "utilization(pool)"];
    for (threads, cores, calls) in [(2.0, 2, 0.0), (3.0, 1, 0.0), (5.0, 2, 1.0)] {
        let pool = server("pool", [of("a", "s", "r", calls), of("b", "l", "q", 2.0 * calls)]).times(threads).on("cpu");
        let other = infinite(server("other", [serves("d", 0.2)])).on("delay");
        let tasks = if calls > 0.0 { vec![pool, other] } else { vec![pool] };
        check(&model([processor("cpu", ProcessorScheduling::Fcfs, cores)], tasks), &values, &measures, Solver::Layered);
    }
}

/// Branches of a fork on one core and on two, of two classes: what slices find follows from what the slices before them found.
#[test]
fn sensitivities_of_what_comes_back_at_once_are_derivatives() {
    let branch = |name: &str, demand: &str, dest: &str| {
        let mut it = work(name, 0.0).calls_about(dest, 1.5);
        it.host_demand = parameter(demand);
        it
    };
    for cores in [1, 2] {
        let activities = [work("in", 0.05), branch("left", "l", "f"), branch("right", "r", "g"), work("out", 0.05)];
        let precedences = [forks("in", &["left", "right"]), joins(&["left", "right"], 0, "out")];
        let gate = server("s", [starts("e", "in")]).graph(activities, precedences).replies("e", "out").on("cpu");
        let mut slow = customers("V", 3, 4.0, work("v", 0.0).calls_about("e", 1.0));
        slow.think_time = parameter("z");
        let tasks = [
            customers("U", 2, 1.5, work("u", 0.0).calls_about("e", 1.0)),
            slow,
            infinite(gate),
            infinite(server("t", [serves("f", 0.1)])).on("cpu"),
            infinite(server("w", [serves("g", 0.2)])).on("cpu"),
        ];
        let values = [("l", 0.1), ("r", 0.15), ("z", 4.0)];
        let measures = ["throughput(U)", "response_time(V)", "service_time(f)", "utilization(s)"];
        check(&model([processor("cpu", ProcessorScheduling::Fcfs, cores)], tasks), &values, &measures, Solver::Layered);
    }
}

/// A processor held at its capacity: the bound is part of the fixed point, and so of its derivatives.
#[test]
fn sensitivities_hold_at_a_saturated_processor() {
    let mut one = work("a1", 0.0).calls_about("b", 1.0);
    one.host_demand = parameter("d");
    let tasks = [
        customers("U", 40, 0.05, work("u", 0.0).calls_about("a", 1.0)),
        server("t", [entry("a", [one])]).scheduled(layerfit::model::TaskScheduling::Inf).on("cpu"),
        server("log", [serves("b", 0.0002)]).on("cpu"),
    ];
    let model = model([processor("cpu", ProcessorScheduling::Ps, 1)], tasks);
    check(&model, &[("d", 0.005)], &["throughput(U)", "response_time(U)"], Solver::Layered);
}

/// Copies of customers, of a pool and of a server, one of whose parameters all copies share; saturated, too.
#[test]
fn sensitivities_of_copies_are_derivatives() {
    let fans = |task: &str, value: f64| vec![Fan { task: task.into(), value: value.into() }];
    let copies = |task: Task, n: f64| Task { replication: n.into(), ..task };
    let mut one = work("a1", 0.0).calls_about("b", 2.0);
    one.host_demand = parameter("d");
    let mut two = work("b1", 0.0);
    two.host_demand = parameter("s");
    let mut client = customers("U", 3, 5.0, work("u", 0.1).calls_about("a", 1.0));
    client.think_time = parameter("z");
    let tasks = [
        Task { fan_out: fans("t", 1.0), ..copies(client, 12.0) },
        Task { fan_in: fans("U", 3.0), fan_out: fans("w", 1.0), ..copies(server("t", [entry("a", [one])]).times(2.0), 4.0) },
        Task { fan_in: fans("t", 4.0), ..server("w", [entry("b", [two])]) },
    ];
    let mut model = model([], tasks);
    model.processors.iter_mut().filter(|p| p.name == "t").for_each(|p| p.replication = 4.0.into());
    let measures = ["throughput(U)", "response_time(U)", "residence_time(t)", "utilization(processor:w)", "waiting(a->b)"];
    for (s, n_measures, load) in [(0.02, 5, 0.27), (0.06, 5, 0.75), (0.12, 3, 1.0)] {
        let values = [("d", 0.2), ("s", s), ("z", 5.0)];
        let solution = solve(&model, &values.into_iter().collect(), &tight(Solver::Layered)).unwrap();
        assert!((solution.processors["w"].utilization - load).abs() < 0.02, "{}", solution.processors["w"].utilization);
        check(&model, &values, &measures[..n_measures], Solver::Layered);
    }
}

/// At the tolerance that nobody sets, a derivative is that of the exact fixed point to this part of the steepest of its measure.
const AS_EXACT_AS_ASKED: f64 = 1e-5;

/// Drawn models of every kind: as many parameters as share a pass and more, each as it is alone, and as at a tighter tolerance.
#[test]
fn derivatives_depend_neither_on_their_company_nor_on_the_tolerance() {
    let loose = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    for kind in Kind::ALL {
        let mut model = draw(kind, 12, 3);
        let mut values = Bindings::new();
        let entries = model.tasks.iter_mut().skip(2).filter_map(|t| t.entries[0].phases.first_mut());
        for (i, phase) in entries.take(9).enumerate() {
            let demand = &mut phase.activity.host_demand;
            values.set(format!("d{i}"), demand.literal().unwrap());
            *demand = parameter(&format!("d{i}"));
        }
        let names: Vec<String> = values.iter().map(|(n, _)| n.to_owned()).collect();
        assert!(names.len() > 5, "{kind:?}");
        let measures = ["throughput(c0)", "response_time(c1)"].map(|m| m.parse().unwrap());
        let get = |names: &[String], options: &SolveOptions| sensitivities(&model, &values, names, &measures, options).unwrap();
        let (together, exact) = (get(&names, &loose), get(&names, &tight(Solver::Layered)));
        assert!(exact.solution.converged && exact.solution.diagnostics.is_empty(), "{kind:?}: {:?}", exact.solution.diagnostics);
        for i in 0..measures.len() {
            let steepest = exact.jacobian.row(i).amax();
            assert!(steepest > 0.0);
            for j in 0..names.len() {
                let alone = get(&names[j..=j], &loose).jacobian[(i, 0)];
                for got in [alone, together.jacobian[(i, j)]] {
                    assert!(
                        (got - exact.jacobian[(i, j)]).abs() <= AS_EXACT_AS_ASKED * steepest,
                        "{kind:?} {i} {j}: {got} {}",
                        exact.jacobian[(i, j)]
                    );
                }
            }
        }
    }
}

/// How far from the fixed point a solution may end at the tolerance that nobody sets.
const SAME_VALUE: f64 = 1e-7;

/// To the last bit, whether derivatives are asked for or not; to the tolerance, whether the solution starts near another or not.
#[test]
fn values_that_come_with_derivatives_are_those_of_a_plain_solution() {
    for (kind, seed) in Kind::ALL.into_iter().flat_map(|kind| [(kind, 5), (kind, 6)]) {
        let mut model = draw(kind, 10, seed);
        let demand =
            model.tasks.iter_mut().skip(2).find_map(|t| t.entries[0].phases.first_mut()).map(|p| &mut p.activity.host_demand).unwrap();
        let at = demand.literal().unwrap();
        *demand = parameter("d");
        let measures: Vec<Measure> = ["throughput(c0)", "response_time(c1)"].map(|m| m.parse().unwrap()).into();
        let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
        let get = |d: f64, options: &SolveOptions| {
            let values: Bindings = [("d", d)].into_iter().collect();
            let plain = solve(&model, &values, options).unwrap();
            let plain: Vec<f64> = measures.iter().map(|m| layerfit::solve::measure::value(&model, &plain, m).unwrap()).collect();
            (plain, sensitivities(&model, &values, &["d".into()], &measures, options).unwrap())
        };
        let (plain, got) = get(at, &options);
        assert_eq!(got.values, plain, "{kind:?} {seed}");
        let (exact, _) = get(at, &tight(Solver::Layered));
        let near = SolveOptions { near: get(1.1 * at, &options).1.near, ..options };
        let (_, again) = get(at, &near);
        for i in 0..measures.len() {
            for value in [plain[i], again.values[i]] {
                assert!((value / exact[i] - 1.0).abs() < SAME_VALUE, "{kind:?} {seed}: {value} {}", exact[i]);
            }
            let (slope, slope_again) = (got.jacobian[(i, 0)], again.jacobian[(i, 0)]);
            assert!((slope_again - slope).abs() <= AS_EXACT_AS_ASKED * slope.abs(), "{kind:?} {seed}: {slope} {slope_again}");
        }
    }
}

/// Full stations, where the approximations may have several solutions, so that another rounding can lead to throughputs 1 to 5 % away; and
/// where derivatives are not reached with the values, or these in few sweeps.
#[test]
fn at_full_stations_values_are_those_of_a_plain_solution() {
    for (kind, n, seed) in
        [(Kind::Phase2, 3, 12), (Kind::Ps, 8, 44), (Kind::Ps, 20, 38), (Kind::Async, 20, 11), (Kind::Sync, 50, 20), (Kind::Mixed, 20, 72)]
    {
        let mut model = draw(kind, n, seed);
        for task in model.tasks.iter_mut().filter(|task| task.scheduling.is_reference()) {
            task.multiplicity = (task.multiplicity.literal().unwrap() * 10.0).into();
        }
        let demand = &mut model.tasks[0].entries[0].phases[0].activity.host_demand;
        let values: Bindings = [("d", demand.literal().unwrap())].into_iter().collect();
        *demand = parameter("d");
        let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
        let measure: Measure = format!("throughput({})", model.tasks[0].name).parse().unwrap();
        let plain = layerfit::solve::measure::value(&model, &solve(&model, &values, &options).unwrap(), &measure).unwrap();
        let got = sensitivities(&model, &values, &["d".into()], &[measure], &options).unwrap();
        assert_eq!(got.values, [plain], "{kind:?} {n} {seed}");
    }
}

/// Asynchronous messages that lead back up: rates depend on themselves, and their slopes settle after them.
#[test]
fn where_rates_go_in_a_circle_values_are_those_of_a_plain_solution() {
    let mut again = work("b", 0.01).sends_about("a", 0.0);
    again.calls[0].mean = parameter("back");
    let tasks = [
        customers("U", 4, 2.0, work("u", 0.1).calls_about("c", 1.0)),
        server("v", [entry("c", [work("c", 0.02).sends_about("a", 1.0)])]),
        server("t", [entry("a", [work("a", 0.03).sends_about("b", 1.5)])]).times(2.0),
        server("w", [entry("b", [again])]),
    ];
    let model = model([], tasks);
    let measures: Vec<Measure> = ["throughput(U)", "throughput(w)", "waiting(a->b)"].map(|m| m.parse().unwrap()).into();
    for back in [0.1, 0.3, 0.4, 0.5] {
        let values: Bindings = [("back", back)].into_iter().collect();
        let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
        let plain = solve(&model, &values, &options).unwrap();
        let plain: Vec<f64> = measures.iter().map(|m| layerfit::solve::measure::value(&model, &plain, m).unwrap()).collect();
        let got = sensitivities(&model, &values, &["back".into()], &measures, &options).unwrap();
        assert_eq!(got.values, plain, "{back}");
        let each = 1.5 / (1.0 - 1.5 * back);
        assert!((plain[1] / plain[0] / each - 1.0).abs() < 1e-12 && (got.jacobian[(1, 0)] / plain[0] / each / each - 1.0).abs() < 1e-9);
    }
}

/// Makes parameters of the demands of a model, up to three, of a mean number of calls, a think time and an open rate, where there are any.
fn with_parameters(model: &mut Model) -> Vec<(String, f64)> {
    let mut values: Vec<(String, f64)> = Vec::new();
    let mut name = |number: &mut Number, kind: &str, most: usize| {
        let n = values.iter().filter(|(name, _)| name.starts_with(kind)).count();
        if let Some(value) = number.literal().filter(|value| *value > 0.0 && n < most) {
            *number = parameter(&format!("{kind}{n}"));
            values.push((format!("{kind}{n}"), value));
        }
    };
    for task in &mut model.tasks {
        name(&mut task.think_time, "think", 1);
        let phases = task.entries.iter_mut().flat_map(|e| e.phases.iter_mut().map(|p| &mut p.activity));
        for work in phases.chain(&mut task.activities) {
            name(&mut work.host_demand, "demand", 3);
            let is_fixed = work.call_order == CallOrder::Deterministic;
            work.calls.iter_mut().filter(|_| !is_fixed).for_each(|call| name(&mut call.mean, "calls", 1));
        }
        task.entries.iter_mut().filter_map(|e| e.open_arrival_rate.as_mut()).for_each(|rate| name(rate, "rate", 1));
    }
    values
}

/// Every construct that has a model beside the exact chain, and fair shares: also where the approximation is poor, its derivatives are those
/// of the approximation.
#[test]
fn derivatives_of_every_construct() {
    let mut shared = processor("cpu", ProcessorScheduling::Cfs, 1);
    shared.quantum = 0.01.into();
    shared.groups = [("g1", 0.3), ("g2", 0.7)].map(|(name, share)| Group { name: name.into(), share: share.into(), cap: false }).into();
    let class = |name: &str, group: &str, demand: f64| {
        let e = format!("{name}e");
        let mut task = server(&format!("{name}s"), [serves(&e, demand)]).scheduled(layerfit::model::TaskScheduling::Inf).on("cpu");
        task.group = Some(group.into());
        [customers(name, 3, 1.0, work(name, 0.0).calls_about(&e, 1.0)), task]
    };
    let shares = model([shared], class("a", "g1", 0.4).into_iter().chain(class("b", "g2", 0.3)));
    let kinds = one_of_each_kind();
    assert!(kinds.len() > 20);
    for (kind, mut model) in kinds.into_iter().chain([("fair shares", shares)]) {
        let values = with_parameters(&mut model);
        assert!(!values.is_empty(), "{kind}");
        let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let measures: Vec<String> =
            (model.tasks.iter())
                .map(|task| {
                    if task.scheduling.is_reference() {
                        format!("throughput({})", task.name)
                    } else {
                        format!("utilization({})", task.name)
                    }
                })
                .collect();
        let measures: Vec<&str> = measures.iter().map(String::as_str).collect();
        check(&model, &values, &measures, Solver::Layered);
    }
}

/// Threads are whole: their sensitivity is the difference over one more and one less.
#[test]
fn multiplicities_have_differences_over_one() {
    let mut pool = server("s", [serves("e", 1.0)]);
    pool.multiplicity = parameter("m");
    let model = model([processor("s", ProcessorScheduling::Inf, 1)], [customers("U", 9, 2.0, work("u", 0.0).calls_about("e", 1.0)), pool]);
    let at = |m: f64| solve(&model, &[("m", m)].into_iter().collect(), &SolveOptions::default()).unwrap().tasks["U"].throughput;
    let values: Bindings = [("m", 3.0)].into_iter().collect();
    let got = sensitivities(&model, &values, &["m".into()], &["throughput(U)".parse().unwrap()], &SolveOptions::default()).unwrap();
    assert!((got.jacobian[(0, 0)] - (at(4.0) - at(2.0)) / 2.0).abs() < 1e-12);
    assert!(got.jacobian[(0, 0)] > 0.0);
}
