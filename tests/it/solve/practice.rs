//! Systems as they are run: pools before pools, full processors with priorities, open arrivals, mixed loads. Figures without a law beside them
//! are of long simulations, to a half-width of a per cent or less.

use layerfit::{
    model::{Bindings, Group, Measure, Model, Number, Processor, ProcessorScheduling, Task, TaskScheduling},
    solve::{Solution, SolveError, SolveOptions, Solver, sensitivities, solve},
};

use super::build::*;

pub(super) fn layered(model: &Model) -> Solution {
    let found = solve(model, &Bindings::new(), &SolveOptions { solver: Solver::Layered, ..SolveOptions::default() }).unwrap();
    assert!(found.converged, "{:?}", found.diagnostics);
    found
}

#[track_caller]
pub(super) fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found}, expected {expected}");
}

pub fn infinite(task: Task) -> Task {
    task.scheduled(TaskScheduling::Inf)
}

/// Requests from outside that are served slice by slice at one first-come first-served processor find what has come since their last slice.
#[test]
fn open_requests_that_come_back_find_what_has_come_since() {
    for (rate, own, called, servers, response) in
        [(1.0, 0.2, 0.5, 1, 2.705), (0.5, 0.2, 1.2, 1, 5.88), (0.35, 0.2, 0.5, 1, 0.986), (1.70128, 0.24572, 0.75353, 2, 4.277)]
    {
        let tasks = [
            infinite(server("a", [open(entry("e", [work("e", own).calls_about("f", 1.0)]), rate)]).on("cpu")),
            infinite(server("b", [serves("f", called)]).on("cpu")),
        ];
        let found = layered(&model([processor("cpu", ProcessorScheduling::Fcfs, servers)], tasks));
        assert_near(found.entries["e"].service_times[0].unwrap(), response, 0.05);
    }
    // Calls from another processor, after one another.
    let tasks = [
        infinite(server("a", [open(entry("e", [work("e", 0.13622).calls_about("f", 2.0).calls_about("g", 2.0)]), 0.364508)])),
        infinite(server("b", [serves("f", 0.57748)]).on("cpu")),
        infinite(server("c", [serves("g", 0.10838)]).on("cpu")),
    ];
    assert_near(layered(&model([], tasks)).entries["e"].service_times[0].unwrap(), 3.030, 0.03);
}

/// A task without bound that serves customers and requests from outside is the same as two, one for each.
#[test]
fn customers_and_requests_from_outside_in_one_task_are_as_in_two() {
    let [for_customers, for_others] = [serves("e", 0.16), open(serves("o", 0.4871), 0.6)];
    let behind = |servers: Vec<Task>| {
        let users = customers("c", 3, 0.0, work("c", 0.16).calls("x", 1));
        let front = server("front", [entry("x", [work("x", 0.21).calls_about("e", 2.0)])]);
        let servers = servers.into_iter().map(|task| infinite(task).on("cpu"));
        layered(&model([], [users, front].into_iter().chain(servers))).tasks["c"].throughput
    };
    let one = behind(vec![server("s", [for_customers.clone(), for_others.clone()])]);
    let two = behind(vec![server("s", [for_customers]), server("t", [for_others])]);
    assert_near(one, two, 0.002);
    assert_near(one, 1.413, 0.03);
}

/// One task without bound at a processor: a customer who comes back soon finds what was left, whatever the thread. The exact chain has .3647; with each
/// request taken for a stranger it was .286.
#[test]
fn requests_of_one_task_without_bound_are_of_customers() {
    let tasks = [
        customers("c", 2, 1.0, work("c", 0.3).calls("a", 1).calls("b", 1)),
        infinite(server("near", [entry("a", [work("a", 0.2).calls_about("b", 2.0)])])).on("delay"),
        infinite(server("last", [entry("b", [work("b", 0.8).cvsq(4.0)])])),
    ];
    assert_near(layered(&model([], tasks)).tasks["c"].throughput, 0.3647, 0.1);
}

/// Where services are alike the queue is of product form, and a request that comes back finds what any other does.
#[test]
fn open_requests_of_one_service_find_a_product_form() {
    let tasks = [
        infinite(server("a", [open(entry("e", [work("e", 0.2).calls_about("f", 1.0)]), 2.0)]).on("cpu")),
        infinite(server("b", [serves("f", 0.1)]).on("cpu")),
    ];
    let found = layered(&model([processor("cpu", ProcessorScheduling::Fcfs, 1)], tasks));
    assert_near(found.entries["e"].service_times[0].unwrap(), 0.3 / (1.0 - 0.6), 1e-6);
}

/// Entries that nobody calls, yet or at all, say nothing of those who are called.
#[test]
fn open_requests_that_call_nobody_find_one_another() {
    for calls in [0.0, 1e-9] {
        let tasks = [
            infinite(server("a", [open(entry("e", [work("e", 0.2).calls_about("f", calls)]), 1.0)]).on("cpu")),
            infinite(server("b", [entry("f", [work("f", 0.3).calls_about("g", 1.0)])]).on("cpu")),
            infinite(server("c", [serves("g", 0.1)]).on("cpu")),
        ];
        assert_near(layered(&model([], tasks)).entries["e"].service_times[0].unwrap(), 0.25, 1e-6);
    }
}

/// The urgent do not see the others where they interrupt them, however full the processor; where they do not, they wait for one service.
#[test]
fn urgent_customers_do_not_wait_for_a_full_processor() {
    for (scheduling, urgent, tolerance) in [(ProcessorScheduling::Pri, 1.0 / 1.818, 1e-3), (ProcessorScheduling::Hol, 0.4643, 0.015)] {
        for batch in [1, 2, 5, 10] {
            let tasks =
                [customers("U", 1, 1.8, work("u", 0.018)).on("cpu").priority(10.0), customers("B", batch, 0.0, work("b", 0.33)).on("cpu")];
            let found = layered(&model([processor("cpu", scheduling, 1)], tasks));
            assert_near(found.tasks["U"].throughput, urgent, tolerance);
            assert_near(found.processors["cpu"].utilization, 1.0, 1e-6);
        }
    }
    let tasks = [customers("U", 200, 3.0, work("u", 0.02)).on("cpu").priority(10.0), customers("B", 8, 0.0, work("b", 2.0)).on("cpu")];
    let found = layered(&model([processor("cpu", ProcessorScheduling::Pri, 4)], tasks));
    assert_near(found.tasks["U"].throughput, 66.25, 0.005);
    assert_near(found.tasks["B"].throughput, 1.3266, 0.02);
}

/// Customers that would wait for an idle pool: throughputs of 1.5e-4 and a third were taken for solutions.
#[test]
fn nobody_waits_for_idle_pools() {
    let balancer = |threads: [u32; 2], n| {
        let tasks = [
            customers("U", n, 5.0, work("u", 0.0).calls_about("lb", 1.0)),
            infinite(server("L", [entry("lb", [work("lb", 0.0).calls_about("web", 1.0)])]).on("delay")),
            server("W", [entry("web", [work("web", 0.001).calls_about("db", 1.0)])]).times(f64::from(threads[0])),
            server("D", [serves("db", 0.02)]).times(f64::from(threads[1])).on("db"),
        ];
        model([processor("W", ProcessorScheduling::Ps, 2), processor("db", ProcessorScheduling::Ps, 1)], tasks)
    };
    for n in [300, 560, 700] {
        assert_near(layered(&balancer([10, 5], n)).tasks["U"].throughput, 50.0, 0.005);
    }
    let gateway = |n| {
        let gusr = work("gusr", 0.004).calls_about("app", 1.0);
        let tasks = [
            customers("U", n, 1.0, work("u", 0.0).calls_about("gusr", 3.0)),
            server("G", [open(serves("gopen", 0.002), 400.0), entry("gusr", [gusr])]).times(50.0),
            server("A", [serves("app", 0.03)]).times(20.0),
        ];
        model([processor("G", ProcessorScheduling::Ps, 2), processor("A", ProcessorScheduling::Ps, 2)], tasks)
    };
    let throughputs: Vec<f64> = (13..18).map(|n| layered(&gateway(n)).tasks["U"].throughput).collect();
    assert_near(throughputs[2], 13.20, 0.01);
    assert!(throughputs.windows(2).all(|pair| pair[1] > pair[0]), "{throughputs:?}");
}

/// A pool of five threads before two processors holds ten, whatever the threads of those who serve there, and whatever waits before it: 100 · 5/6 a second.
#[test]
fn a_pool_bounds_what_its_callees_have_at_their_processors() {
    for (outer, servers, tolerance) in [(0, 0, 0.001), (0, 5, 0.001), (0, 2, 0.06), (5, 0, 0.001), (10, 0, 0.01), (10, 1, 0.03)] {
        let pool = |name: &str, entry_name: &str, threads: u32, work| {
            server(name, [entry(entry_name, [work])]).times(f64::from(threads)).on("delay")
        };
        let inner = pool("I", "inner", 5, work("inner", 0.0).calls("s", 1).calls("t", 1));
        let first = if outer > 0 { "outer" } else { "inner" };
        let mut tasks = vec![customers("U", 60, 0.001, work("u", 0.0).calls(first, 1)), inner];
        if outer > 0 {
            tasks.push(pool("O", "outer", outer, work("outer", 0.0).calls("inner", 1)));
        }
        for (task, entry) in [("S", "s"), ("T", "t")] {
            let task = server(task, [serves(entry, 0.01)]);
            tasks.push(if servers == 0 { infinite(task) } else { task.times(f64::from(servers)) });
        }
        assert_near(layered(&model([], tasks)).tasks["U"].throughput, 500.0 / 6.0, tolerance);
    }
}

/// How many are in M/M/c//N, and how many of them with one of so many threads, over the throughput: response time and how long a thread is held.
fn machine_repair(customers: u32, think: f64, cores: u32, demand: f64, threads: u32) -> [f64; 2] {
    let chances: Vec<f64> = (0..=customers)
        .scan(1.0, |p: &mut f64, k| {
            *p *= if k > 0 { f64::from(customers - k + 1) * demand / think / f64::from(k.min(cores)) } else { 1.0 };
            Some(*p)
        })
        .collect();
    let mean = |most: u32| chances.iter().zip(0..).map(|(p, k)| p * f64::from(k.min(most))).sum::<f64>();
    [customers, threads].map(|most| mean(most) / mean(cores) * demand)
}

/// Threads before cores that nobody else uses wait for them as customers without threads would: response times, and how long a thread is
/// held. With the number of busy threads taken as binomial and one customer less to leave its own share of every queue, responses were up
/// to 15 % short with two threads before one core, 11 % long with ten, and 35 % long with sixteen before two cores and 400 customers.
#[test]
fn threads_before_cores_wait_as_customers_do() {
    const DEMAND: f64 = 0.1;
    let of_one_core = [(5, 2), (5, 4), (10, 2), (10, 4), (10, 8), (50, 2), (50, 3), (50, 6), (50, 10), (50, 20)].map(|(n, m)| (n, 1, m));
    let of_several =
        [(10, 4, 8), (30, 2, 3), (30, 2, 8), (30, 4, 16), (100, 2, 8), (100, 8, 16), (400, 2, 3), (400, 4, 6), (400, 4, 32), (400, 8, 9)];
    let (mut sum, mut n_cases) = ([0.0; 2], 0.0);
    for (n, cores, threads) in of_one_core.into_iter().chain(of_several) {
        for load in [0.5, 0.8, 0.95, 1.0, 1.2] {
            let think = DEMAND * (f64::from(n) / (load * f64::from(cores)) - 1.0);
            let expected = machine_repair(n, think, cores, DEMAND, threads);
            let tasks =
                [customers("U", n, think, work("u", 0.0).calls("w", 1)), server("W", [serves("w", DEMAND)]).times(f64::from(threads))];
            let found = layered(&model([processor("W", ProcessorScheduling::Ps, cores)], tasks));
            for (i, entry) in ["U", "w"].into_iter().enumerate() {
                let found = found.entries[entry].service_times[0].unwrap();
                assert_near(found, expected[i], 0.04);
                sum[i] += (found / expected[i] - 1.0).abs();
            }
            n_cases += 1.0;
        }
    }
    let means = sum.map(|sum| sum / n_cases);
    assert!(means[0] < 0.002 && means[1] < 0.0045, "{means:?}");
}

/// The same of Poisson arrivals, M/M/c: with the rest of a thread's time taken for what the next one waits for, and the number of busy
/// threads as binomial, responses were 48 % short with two threads before one core at .95, and twice too long with eighteen before four.
#[test]
fn threads_before_cores_wait_as_requests_from_outside_do() {
    const DEMAND: f64 = 0.1;
    for (cores, threads) in [(1, 2), (1, 6), (2, 3), (2, 10), (4, 5), (4, 18)] {
        for load in [0.5, 0.8, 0.95] {
            let busy = load * f64::from(cores);
            let blocked = (1..=cores).fold(1.0, |b, k| busy * b / (f64::from(k) + busy * b));
            let all_busy = blocked / (1.0 - load * (1.0 - blocked));
            let expected = DEMAND * (1.0 + all_busy / (f64::from(cores) * (1.0 - load)));
            let mut of_pool = serves("w", DEMAND);
            of_pool.open_arrival_rate = Some((busy / DEMAND).into());
            let tasks = [server("W", [of_pool]).times(f64::from(threads))];
            let found = layered(&model([processor("W", ProcessorScheduling::Ps, cores)], tasks));
            assert_near(found.entries["w"].open_wait_time.unwrap(), expected, 0.05);
        }
    }
}

/// Threads whose time varies, since a call is slow and rare, or which is of many even parts, before customers who think: response times beside
/// the chain. With a quarter of what the variation adds to what arrivals find, and customers taken to come back within one cycle, one thread was 30 %
/// short and 20 % long, two threads 22 and 13 %.
#[test]
fn threads_whose_time_varies_hold_up_customers() {
    // Own time, calls, their time, and by how much the response of one thread, of two and of four may be wrong.
    let rare = (0.1, Calls::About(0.5), 1.8, [0.045, 0.06, 0.04]);
    let even = (0.25, Calls::Exactly(3), 0.25, [0.01, 0.03, 0.02]);
    for (own, calls, time, allowed) in [rare, even] {
        for ((threads, more), allowed) in [(1, 6), (2, 8), (4, 12)].into_iter().zip(allowed) {
            for load in [0.5, 0.8, 1.0, 1.3] {
                for n in [threads + 2, threads + more] {
                    let think = f64::from(n) / (f64::from(threads) * load) - 1.0;
                    let work_of = match calls {
                        Calls::About(mean) => work("w", own).calls_about("slow", mean),
                        Calls::Exactly(number) => work("w", own).calls("slow", number),
                    };
                    let tasks = [
                        customers("U", n, think, work("u", 0.0).calls("w", 1)),
                        server("W", [entry("w", [work_of])]).times(f64::from(threads)),
                        infinite(server("S", [serves("slow", time)])),
                    ];
                    let model = model(["W", "S"].map(|name| processor(name, ProcessorScheduling::Inf, 1)), tasks);
                    let response = |found: &Solution| found.entries["U"].service_times[0].unwrap();
                    let chain =
                        solve(&model, &Bindings::new(), &SolveOptions { solver: Solver::Markov, ..SolveOptions::default() }).unwrap();
                    assert_near(response(&layered(&model)), response(&chain), allowed);
                }
            }
        }
    }
}

/// Customers of short requests and of long ones, before one thread, and before one core in order of arrival with threads of their own:
/// response times beside the chain. Where nobody had who waits behind whom, short ones were up to 100 % long where long ones are many, up to
/// 22 % short where they are few, and long ones up to 16 % short.
#[test]
fn short_requests_wait_behind_long_ones() {
    let (mut sum, mut n_cases) = (0.0, 0.0);
    for (n, m) in [(2, 2), (4, 2), (2, 4), (8, 2)] {
        for longer in [2.0, 5.0, 15.0] {
            for load in [0.5, 0.9, 1.3] {
                let demands = [0.2, 0.2 * longer];
                let [think, other] = [(n, demands[0]), (m, demands[1])].map(|(n, demand)| f64::from(n) * demand / (load / 2.0) - demand);
                let users = |name: &str, n, think: f64, entry: &str| customers(name, n, think.max(0.05), work(name, 0.0).calls(entry, 1));
                let of = [("short", demands[0]), ("long", demands[1])];
                let callers = || [users("a", n, think, "short"), users("b", m, other, "long")];
                let one = server("s", of.map(|(name, demand)| serves(name, demand)));
                let two = of.map(|(name, demand)| infinite(server(name, [serves(name, demand)])).on("cpu"));
                let models = [
                    model([], callers().into_iter().chain([one])),
                    model([processor("cpu", ProcessorScheduling::Fcfs, 1)], callers().into_iter().chain(two)),
                ];
                for model in models {
                    let chain =
                        solve(&model, &Bindings::new(), &SolveOptions { solver: Solver::Markov, ..SolveOptions::default() }).unwrap();
                    let found = layered(&model);
                    for (name, allowed) in [("a", 0.09), ("b", 0.035)] {
                        let [found, expected] = [&found, &chain].map(|solution| solution.entries[name].service_times[0].unwrap());
                        assert_near(found, expected, allowed);
                        sum += (found / expected - 1.0).abs();
                        n_cases += 1.0;
                    }
                }
            }
        }
    }
    assert!(sum / n_cases < 0.015, "{}", sum / n_cases);
}

#[derive(Clone, Copy)]
enum Calls {
    /// A random number, of such mean.
    About(f64),
    Exactly(u32),
}

/// The threads of a pool hold each other up where their requests go, too, in tasks that have enough threads for them. Beside simulation to
/// .4 %; where these stood still they were 10 % short, and the queue between two small pools is what is left.
#[test]
fn threads_hold_each_other_up_in_tasks_that_they_bound() {
    for (demand, threads, inner, think, response, most) in [(0.06, 2, 4, 4.62, 0.771, 0.05), (0.03, 2, 2, 2.88, 0.682, 0.065)] {
        let tasks = [
            customers("U", 40, think, work("u", 0.0).calls_about("f", 1.0)),
            server("F", [entry("f", [work("f", demand).calls_about("a", 1.0)])]).times(f64::from(threads)),
            server("A", [entry("a", [work("a", demand).calls_about("d", 1.0)])]).times(f64::from(inner)),
            server("D", [serves("d", 0.06)]),
        ];
        let processors = ["F", "A"].map(|name| processor(name, ProcessorScheduling::Ps, 1));
        assert_near(layered(&model(processors, tasks)).entries["U"].service_times[0].unwrap(), response, most);
    }
}

/// And in a cache that others call as well, with threads enough for all: beside simulation to .4 %; 10 % short where it was taken to serve any
/// number of them alike.
#[test]
fn threads_hold_each_other_up_in_what_they_share_with_others() {
    let tasks = [
        customers("U", 8, 1.41, work("u", 0.0).calls_about("a", 1.0)),
        customers("V", 4, 1.41, work("v", 0.0).calls_about("a", 1.0).calls_about("c", 1.0)),
        server("A", [entry("a", [work("a", 0.04).calls_about("b", 2.0).calls_about("d", 1.0)])]).times(32.0),
        server("B", [entry("b", [work("b", 0.01).calls_about("c", 3.0)])]).times(4.0),
        server("C", [serves("c", 0.02)]).times(32.0),
        server("D", [serves("d", 0.01)]),
    ];
    let processors = [("A", 2), ("B", 1), ("C", 1)].map(|(name, cores)| processor(name, ProcessorScheduling::Ps, cores));
    let found = layered(&model(processors, tasks));
    for (entry, response) in [("U", 0.443), ("V", 0.4966)] {
        assert_near(found.entries[entry].service_times[0].unwrap(), response, 0.045);
    }
}

/// A few threads more than cores: the queue of the threads is that of the cores, M/M/4 with as many customers.
#[test]
fn threads_beyond_the_cores_wait_for_them() {
    let shop = |threads: f64, n| {
        let tasks = [customers("U", n, 5.0, work("u", 0.0).calls("w", 1)), server("W", [serves("w", 0.05)]).times(threads)];
        layered(&model([processor("W", ProcessorScheduling::Ps, 4)], tasks)).tasks["U"].throughput
    };
    let exact = |n: u32| {
        let weights = (1..=n).scan(1.0, |p: &mut f64, k| {
            *p *= f64::from(n - k + 1) * 0.05 / 5.0 / f64::from(k.min(4));
            Some((k, *p))
        });
        let (all, busy) = weights.fold((1.0, 0.0), |(all, busy), (k, p)| (all + p, busy + p * f64::from(k.min(4))));
        busy / all / 0.05
    };
    assert!((exact(404) - 77.17).abs() < 0.1, "{}", exact(404));
    for threads in [5.0, 6.0, 8.0, 16.0, 64.0] {
        assert_near(shop(threads, 485), exact(485), 0.001);
        assert_near(shop(threads, 404), exact(404), 0.002);
        assert_near(shop(threads, 200), exact(200), 0.001);
    }
}

/// Two coordinators whose branches ask two shards of two threads: 79.8 a second.
#[test]
fn coordinators_bound_what_their_shards_have_at_their_processors() {
    let branch = |name: &str, call: &str| work(name, 1e-4).calls(call, 1);
    let activities = [work("begin", 1e-4), branch("left", "s"), branch("right", "t"), work("end", 1e-4)];
    let precedences = [forks("begin", &["left", "right"]), joins(&["left", "right"], 0, "end")];
    let tasks = [
        customers("U", 20, 0.001, work("u", 0.0).calls("c", 1)),
        server("C", [starts("c", "begin")]).times(2.0).on("delay").graph(activities, precedences).replies("c", "end"),
        server("S", [serves("s", 0.01)]).times(2.0),
        server("T", [serves("t", 0.01)]).times(2.0),
    ];
    assert_near(layered(&model([], tasks)).tasks["U"].throughput, 79.8, 0.06);
}

/// What a literal may not be, a parameter may not be either: the analytic solvers would solve -1 customers' think time, or branches of 150 %.
#[test]
fn values_of_parameters_are_refused_where_literals_are() {
    let parameter = |name: &str| Number::Parameter(name.into());
    let mut thinker = customers("U", 2, 1.0, work("u", 0.0).thinks(0.1).calls_about("e", 1.0));
    thinker.think_time = parameter("think");
    thinker.entries[0].phases[0].activity.think_time = parameter("inside");
    thinker.entries[0].phases[0].activity.calls[0].mean = parameter("calls");
    let queue = model([], [thinker, server("s", [serves("e", 0.2)])]);
    let mut choice = chooses("a", &[(0.5, "b"), (0.5, "c")]);
    if let Some(layerfit::model::Post::Or(branches)) = &mut choice.post {
        branches[0].value = parameter("left");
        branches[1].value = parameter("right");
    }
    let activities = [work("a", 0.1), work("b", 0.1), work("c", 0.3), work("d", 0.05)];
    let chosen = server("s", [starts("e", "a")]).graph(activities, [choice, merges(&["b", "c"], "d")]).replies("e", "d");
    let graph = model([], [customers("U", 3, 1.0, work("u", 0.0).calls("e", 1)), chosen]);
    let good = [("think", 1.0), ("inside", 0.1), ("calls", 1.0), ("left", 0.5), ("right", 0.5)];
    let with = |name: &str, value: f64| -> Bindings { good.iter().map(|&(n, v)| (n, if n == name { value } else { v })).collect() };
    let measure: [Measure; 1] = ["throughput(U)".parse().unwrap()];
    for (model, name, value, said) in [
        (&queue, "think", -1.0, "think time"),
        (&queue, "think", f64::INFINITY, "think time"),
        (&queue, "inside", -0.5, "think time"),
        (&queue, "calls", -1.0, "calls"),
        (&graph, "left", 0.7, "sum"),
        (&graph, "right", -0.3, "is -0.3"),
    ] {
        for solver in [Solver::Auto, Solver::Layered] {
            let options = SolveOptions { solver, ..SolveOptions::default() };
            assert!(solve(model, &good.into_iter().collect(), &options).is_ok());
            let refused = solve(model, &with(name, value), &options).unwrap_err();
            let with_slopes = sensitivities(model, &with(name, value), &[name.to_owned()], &measure, &options).unwrap_err();
            for error in [refused, with_slopes] {
                assert!(matches!(&error, SolveError::Unusable { reason, .. } if reason.contains(said)), "{name}: {error}");
            }
        }
    }
}

/// A guaranteed share is a parameter like others.
#[test]
fn shares_of_groups_have_slopes() {
    let group = |name: &str, share: Number| Group { name: name.into(), share, cap: false };
    let cpu = Processor {
        groups: vec![group("g", Number::Parameter("share".into())), group("h", 0.4.into())],
        ..processor("cpu", ProcessorScheduling::Cfs, 1)
    };
    let member = |mut task: Task, group: &str| {
        task.group = Some(group.into());
        task.on("cpu")
    };
    let tasks = [
        customers("U", 3, 1.0, work("u", 0.0).calls_about("e", 1.0)),
        customers("V", 2, 2.0, work("v", 0.0).calls_about("f", 1.0)),
        member(server("s", [serves("e", 0.2)]), "g"),
        member(server("t", [serves("f", 0.4)]), "h"),
    ];
    let model = model([cpu], tasks);
    let measures: Vec<Measure> = ["throughput(U)", "throughput(V)"].map(|m| m.parse().unwrap()).into();
    let options = SolveOptions { solver: Solver::Layered, tolerance: 1e-11, ..SolveOptions::default() };
    let at = |share: f64| {
        let values: Bindings = [("share", share)].into_iter().collect();
        sensitivities(&model, &values, &["share".into()], &measures, &options).unwrap()
    };
    let (found, up, down) = (at(0.5), at(0.501), at(0.499));
    for i in 0..measures.len() {
        let difference = (up.values[i] - down.values[i]) / 2e-3;
        assert!(difference.abs() > 0.1);
        assert_near(found.jacobian[(i, 0)], difference, 1e-3);
    }
}

/// Long requests hold the threads of a pool, and short ones wait behind them: the exact chain has .517 and 3.743, with or without cores of the pool's own.
/// Without the chain of kinds the short ones had .847, and 1.24 to 1.42 on two to four cores of the pool's own.
#[test]
fn long_requests_hold_the_threads_of_a_pool() {
    for cores in [None, Some(2), Some(3), Some(4)] {
        let users = [customers("S", 2, 0.1, work("s", 0.0).calls("a", 1)), customers("L", 4, 6.2, work("l", 0.0).calls("b", 1))];
        let pool = server("pool", [serves("a", 0.2), serves("b", 3.0)]).times(2.0).on(if cores.is_some() { "cpu" } else { "delay" });
        let cpus = cores.map(|cores| processor("cpu", ProcessorScheduling::Fcfs, cores));
        let found = layered(&model(cpus, users.map(|task| task.on("delay")).into_iter().chain([pool])));
        assert_near(2.0 / found.tasks["S"].throughput - 0.1, 0.517, 0.06);
        assert_near(4.0 / found.tasks["L"].throughput - 6.2, 3.743, 0.02);
    }
}

/// Who calls time and again is back while those whom it met are still there: five customers with eight short calls in the mean and .1 of their own work
/// before and after each, and three with five long calls. The chain of the model has responses of 1.6156 and 12.532; without sources that are back at once
/// the waits were 41 and 19 % short.
#[test]
fn who_calls_time_and_again_waits_for_those_who_came_meanwhile() {
    let users =
        [customers("S", 5, 37.0, work("s", 0.9).calls_about("a", 8.0)), customers("L", 3, 320.0, work("l", 0.0).calls_about("b", 5.0))];
    let found =
        layered(&model([], users.into_iter().chain([server("db", [serves("a", 0.2), serves("b", 9.3)])]).map(|task| task.on("delay"))));
    assert_near((5.0 / found.tasks["S"].throughput - 37.0 - 0.9) / 8.0, 1.6156, 0.05);
    assert_near((3.0 / found.tasks["L"].throughput - 320.0) / 5.0, 12.532, 0.01);
}

/// A task and one that it calls ask the same database: no more can be there than the first has threads, however many the others have. Throughput is the exact
/// chain's; it was 14, .4, 3.5 and 6 % off.
#[test]
fn a_database_is_asked_by_as_many_as_the_first_that_asks_has_threads() {
    for (app, database, throughput, tolerance) in
        [(3.0, 2.0, 0.52129, 0.015), (3.0, 3.0, 0.52129, 0.015), (5.0, f64::INFINITY, 0.52129, 0.015), (1.0, 2.0, 0.49679, 0.025)]
    {
        let users = customers("users", 4, 1.8773, work("uu", 0.0).calls("ww", 1)).on("delay");
        let web = server("web", [entry("ww", [work("ww", 0.7508).calls_about("aa", 1.0).calls_about("d2", 1.0)])]);
        let app = server("app", [entry("aa", [work("aa", 0.1989).calls_about("dd", 1.0)])]).times(app);
        let db = server("db", [serves("dd", 0.9288), serves("d2", 0.722)]).on("disk");
        let db = if database.is_finite() { db.times(database) } else { infinite(db) };
        let cores = [processor("cpu", ProcessorScheduling::Fcfs, 2), processor("disk", ProcessorScheduling::Fcfs, 1)];
        let found = layered(&model(cores, [users, web.times(2.0).on("cpu"), app.on("cpu"), db]));
        assert_near(found.tasks["users"].throughput, throughput, tolerance);
    }
}

/// A caller and the thread that has replied to it go on at one processor at the same moment, the thread with a request that has waited for it. Throughput is the
/// exact chain's; it was 10, 8.5 and 8 % high.
#[test]
fn who_returns_and_what_is_taken_up_meet_at_their_processor() {
    for ((users, think), (own, calls), (app, asks, threads, database), throughput, tolerance) in [
        ((4, 0.8421), (0.8154, 1.0), (0.7911, 1.0, 2.0, 0.6289), 0.47438, 0.035),
        ((3, 1.5979), (0.5399, 2.0), (0.1194, 1.0, 1.0, 0.7558), 0.43832, 0.05),
        ((3, 2.8434), (0.8873, 2.0), (0.1057, 2.0, 2.0, 0.6143), 0.27965, 0.05),
    ] {
        let tasks = [
            customers("users", users, think, work("uu", 0.0).calls("ww", 1)).on("delay"),
            server("web", [entry("ww", [work("ww", own).calls_about("aa", calls)])]).times(3.0).on("cpu"),
            server("app", [entry("aa", [work("aa", app).calls_about("dd", asks)])]).on("cpu"),
            server("db", [serves("dd", database)]).times(threads).on("disk"),
        ];
        let found = layered(&model(["cpu", "disk"].map(|name| processor(name, ProcessorScheduling::Fcfs, 1)), tasks));
        assert_near(found.tasks["users"].throughput, throughput, tolerance);
    }
}
