//! The Markov-chain solver against closed forms, the exact solver, and the vectors of the language; and what it refuses.

use layerfit::{
    model::{Bindings, Entry, Fan, Model, Number, ProcessorScheduling, RwLockRole, SemaphoreRole, Task, TaskScheduling},
    solve::{MarkovOptions, Solution, SolveError, SolveOptions, Solver, solve, solve_markov},
};

use super::build::*;

/// Closed forms are met to the digits that a balance within 1e-13 leaves.
const EXACT: f64 = 1e-9;

pub fn markov(model: &Model) -> Result<Solution, SolveError> {
    solve_markov(model, &Bindings::new(), &MarkovOptions::default())
}

pub fn solved(model: &Model) -> Solution {
    let solution = markov(model).unwrap();
    assert!(solution.converged && solution.solver == "markov", "{:?}", solution.diagnostics);
    solution
}

#[track_caller]
fn near(got: f64, want: f64, relative: f64) {
    assert!((got - want).abs() <= relative * want.abs().max(1e-6), "got {got}, want {want}");
}

fn wait(solution: &Solution, from: &str, to: &str) -> f64 {
    solution.calls.iter().find(|c| c.from == from && c.to == to).unwrap().waiting.unwrap()
}

/// Birth and death: probabilities of `0..=n` in the system.
fn birth_death(n: u32, up: impl Fn(u32) -> f64, down: impl Fn(u32) -> f64) -> Vec<f64> {
    let mut p = vec![1.0];
    for k in 1..=n {
        p.push(p[k as usize - 1] * up(k - 1) / down(k));
    }
    let sum: f64 = p.iter().sum();
    p.iter().map(|v| v / sum).collect()
}

/// Three customers on long ways, one step after the other, on one core: 120,100 states in cycles of more than a hundred. Swept over from one edge to the other, against the flow for half of them, with blocks of
/// unlike states, a fifth of the flow was out of balance after 20,016 sweeps.
#[test]
fn long_cycles_are_swept_as_they_flow() {
    let on_one = |name: &str, first: Entry| server(name, [first]).times(f64::INFINITY).on("one");
    let tasks = [
        customers("c", 3, 3.0, work("c", 0.0).calls("a", 1)),
        on_one("s", entry("a", [work("a", 0.03).calls("b", 3)])),
        on_one("t", entry("b", [work("b", 0.11).calls("d", 3).calls("f", 1)])),
        on_one("u", entry("d", [work("d", 0.07).calls("e", 1)])),
        on_one("v", serves("e", 0.12)),
        on_one("w", serves("f", 0.05)),
    ];
    let solution = solved(&model([], tasks));
    assert!(solution.iterations < 400, "{}", solution.iterations);
    for (task, times) in [("s", 1.0), ("t", 3.0), ("u", 9.0), ("v", 9.0), ("w", 3.0)] {
        near(solution.tasks[task].throughput, times * solution.tasks["c"].throughput, EXACT);
    }
}

#[test]
fn machine_repair_has_its_closed_form() {
    for (n, repairers, think, repair) in [(1, 1, 1.0, 1.0), (4, 1, 3.0, 1.0), (7, 3, 2.0, 0.9), (40, 5, 10.0, 1.0), (300, 2, 100.0, 0.7)] {
        let p = birth_death(n, |k| f64::from(n - k) / think, |k| f64::from(k.min(repairers)) / repair);
        let busy: f64 = (0..=n).map(|k| p[k as usize] * f64::from(k.min(repairers))).sum();
        let queue: f64 = (0..=n).map(|k| p[k as usize] * f64::from(k.saturating_sub(repairers))).sum();
        let tasks = || customers("c", n, think, work("c", 0.0).calls("e", 1));
        let threads = server("s", [serves("e", repair)]).times(f64::from(repairers)).on("many");
        let cores = server("s", [serves("e", repair)]).scheduled(TaskScheduling::Inf);
        let by_threads = solved(&model([processor("many", ProcessorScheduling::Inf, 1)], [tasks(), threads]));
        near(wait(&by_threads, "c", "e"), queue * repair / busy, EXACT);
        near(by_threads.tasks["s"].utilization, busy, EXACT);
        let by_cores = solved(&model([processor("s", ProcessorScheduling::Fcfs, repairers)], [tasks(), cores]));
        near(by_cores.entries["e"].service_times[0].unwrap(), repair + queue * repair / busy, EXACT);
        for solution in [by_threads, by_cores] {
            near(solution.tasks["c"].throughput, busy / repair, EXACT);
            near(solution.tasks["s"].throughput, busy / repair, EXACT);
        }
    }
}

#[test]
fn bounded_queue_loses_as_in_the_mmmk_queue() {
    for (servers, places, rate) in [(1, 3, 0.9), (2, 2, 1.5), (2, 9, 2.5), (5, 20, 4.0)] {
        let p = birth_death(places, |_| rate, |k| f64::from(k.min(servers)));
        let lost = p[places as usize];
        let inside: f64 = (0..=places).map(|k| p[k as usize] * f64::from(k)).sum();
        let mut task = server("s", [open(serves("e", 1.0), rate)]).times(f64::from(servers));
        task.queue_length = f64::from(places).into();
        let solution = solved(&model([processor("s", ProcessorScheduling::Fcfs, servers)], [task]));
        near(solution.tasks["s"].throughput, rate * (1.0 - lost), EXACT);
        near(solution.entries["e"].loss_probability.unwrap(), lost, EXACT);
        near(solution.entries["e"].open_wait_time.unwrap(), inside / (rate * (1.0 - lost)), EXACT);
    }
}

/// Two customers of unequal exponential service at one first-come server: five states, solved by hand. With both thinking as 1,
/// the balance gives `p_A = a (1 + p_B)`, `p_B = b (1 + p_A)` for one in service alone, and `p_AB = p_A z_B^-1 s_A` for B waiting.
#[test]
fn two_unequal_customers_wait_for_one_another() {
    for (za, sa, zb, sb) in [(0.2, 1.0, 2.0, 2.0), (2.0, 1.0, 3.0, 3.0), (1.0, 0.01, 5.0, 30.0)] {
        let (a, b) = (1.0 / za / (1.0 / sa + 1.0 / zb), 1.0 / zb / (1.0 / sb + 1.0 / za));
        let pa = a * (1.0 + b) / (1.0 - a * b);
        let pb = b * (1.0 + pa);
        let (b_waits, a_waits) = (pa * sa / zb, pb * sb / za);
        let tasks = [
            customers("A", 1, za, work("A", 0.0).calls("e1", 1)),
            customers("B", 1, zb, work("B", 0.0).calls("e2", 1)),
            server("s", [serves("e1", sa), serves("e2", sb)]),
        ];
        let solution = solved(&model([], tasks));
        near(wait(&solution, "A", "e1"), a_waits * sa / (pa + b_waits), EXACT);
        near(wait(&solution, "B", "e2"), b_waits * sb / (pb + a_waits), EXACT);
        if za == 0.2 {
            near(wait(&solution, "A", "e1"), 0.722, 5e-4);
            near(wait(&solution, "B", "e2"), 0.839, 5e-4);
        }
    }
}

/// One customer: nothing waits, whatever the laws; two phases: the caller meets its own second phase.
#[test]
fn overtaking_has_its_closed_form() {
    let second = || entry("e", [work("e1", 0.5), work("e2", 0.5)]);
    let exact = solved(&model([], [customers("c", 1, 0.0, work("c", 1.0).calls("e", 1)), server("s", [second()])]));
    near(wait(&exact, "c", "e"), 0.125, EXACT);
    near(exact.tasks["c"].throughput, 1.0 / 1.625, EXACT);
    let geometric = solved(&model([], [customers("c", 1, 0.0, work("c", 1.0).calls_about("e", 1.0)), server("s", [second()])]));
    near(wait(&geometric, "c", "e"), 1.0 / 6.0, EXACT);
    near(geometric.tasks["c"].throughput, 0.6, EXACT);
}

#[test]
fn preemption_hides_the_less_urgent() {
    let class = |name: &str, n, priority, demand| {
        let pool =
            server(&format!("{name}s"), [serves(&format!("{name}e"), demand)]).scheduled(TaskScheduling::Inf).on("cpu").priority(priority);
        [customers(name, n, 3.0, work(name, 0.0).calls(&format!("{name}e"), 1)), pool]
    };
    let solve = |low: bool| {
        let tasks = class("high", 3, 2.0, 0.8).into_iter().chain(class("low", 2, 1.0, 1.7).into_iter().filter(|_| low));
        solved(&model([processor("cpu", ProcessorScheduling::Pri, 1)], tasks))
    };
    let (both, alone) = (solve(true), solve(false));
    near(both.tasks["high"].throughput, alone.tasks["high"].throughput, EXACT);
    assert!(both.entries["lowe"].service_times[0].unwrap() > 2.5 * 1.7, "{:?}", both.entries["lowe"]);
}

/// Sharing with one class does not care for the law of the demand, and neither does a server without queue.
#[test]
fn laws_of_phase_type_have_their_effect_and_no_other() {
    let with = |discipline, cvsq: f64| {
        let pool = server("s", [entry("e", [work("e", 1.0).cvsq(cvsq)])]).scheduled(TaskScheduling::Inf);
        solved(&model([processor("s", discipline, 1)], [customers("c", 4, 2.0, work("c", 0.0).calls("e", 1)), pool])).tasks["c"].throughput
    };
    for discipline in [ProcessorScheduling::Ps, ProcessorScheduling::Inf] {
        let exponential = with(discipline, 1.0);
        for cvsq in [0.2, 0.5, 4.0] {
            near(with(discipline, cvsq), exponential, EXACT);
        }
    }
    let fcfs: Vec<f64> = [0.2, 0.5, 1.0, 4.0].iter().map(|&c| with(ProcessorScheduling::Fcfs, c)).collect();
    assert!(fcfs.windows(2).all(|w| w[0] > w[1] * 1.001), "{fcfs:?}");
}

/// M/Er/1/K by Pollaczek and Khinchine where the bound does not matter.
#[test]
fn erlang_and_hyperexponential_service_wait_as_pollaczek_and_khinchine_say() {
    for (cvsq, rate) in [(0.25, 0.5), (1.0, 0.4), (3.0, 0.25)] {
        let mut task = server("s", [open(entry("e", [work("e", 1.0).cvsq(cvsq)]), rate)]);
        task.queue_length = 120.0.into();
        let solution = solved(&model([], [task]));
        near(solution.entries["e"].open_wait_time.unwrap(), 1.0 + rate * (1.0 + cvsq) / 2.0 / (1.0 - rate), 1e-8);
    }
}

/// Product-form models, which mean value analysis solves exactly.
#[test]
fn product_form_models_agree_with_mean_value_analysis() {
    let client = |name: &str, n, think, visits: &[(&str, f64)]| {
        customers(name, n, think, visits.iter().fold(work(name, 0.0), |w, (to, mean)| w.calls_about(to, *mean)))
    };
    let pool =
        |name: &str, demands: &[(&str, f64)]| server(name, demands.iter().map(|(e, d)| serves(e, *d))).scheduled(TaskScheduling::Inf);
    let two = || [client("a", 3, 2.0, &[("x", 1.0), ("y", 2.0), ("u", 0.5)]), client("b", 2, 1.0, &[("x", 2.0), ("z", 1.0)])];
    let models = [
        model(
            [],
            two().into_iter().chain([
                server("t", [serves("x", 0.4)]),
                server("u", [serves("u", 0.7)]),
                pool("v", &[("y", 0.3), ("z", 0.3)]),
            ]),
        ),
        model(
            [processor("v", ProcessorScheduling::Ps, 1), processor("u", ProcessorScheduling::Fcfs, 2)],
            two().into_iter().chain([pool("v", &[("x", 0.4), ("y", 0.9), ("z", 0.2)]), server("u", [serves("u", 0.7)]).times(2.0)]),
        ),
        model(
            [],
            [
                client("a", 6, 4.0, &[("x", 1.0)]),
                client("b", 5, 2.0, &[("x", 1.0)]),
                server("t", [serves("x", 0.4)]).times(3.0).on("delay"),
            ],
        ),
    ];
    for model in models {
        let exact = solve(&model, &Bindings::new(), &SolveOptions { solver: Solver::Exact, ..SolveOptions::default() }).unwrap();
        let chain = solve(&model, &Bindings::new(), &SolveOptions { solver: Solver::Markov, ..SolveOptions::default() }).unwrap();
        for (name, task) in &exact.tasks {
            near(chain.tasks[name].throughput, task.throughput, 1e-8);
            near(chain.tasks[name].utilization, task.utilization, 1e-8);
        }
        for (name, entry) in &exact.entries {
            near(chain.entries[name].service_times[0].unwrap(), entry.service_times[0].unwrap(), 1e-8);
        }
        for call in &exact.calls {
            near(wait(&chain, &call.from, &call.to), call.waiting.unwrap(), 1e-8);
        }
        for (name, processor) in &exact.processors {
            near(chain.processors[name].utilization, processor.utilization, 1e-8);
        }
    }
}

/// Figures of the language's vectors, each with its 95 % half-width (0: theory).
#[track_caller]
fn vector(got: f64, want: f64, half_width: f64) {
    /// Half-widths that a figure may be off: one in 10^4 would be further off.
    const HALF_WIDTHS: f64 = 2.0;
    assert!((got - want).abs() <= HALF_WIDTHS * half_width + EXACT * want, "got {got}, want {want} ± {half_width}");
}

#[test]
fn v3_second_phases_and_pools() {
    let phases = [work("c1", 1.0).thinks(1.0), work("c2", 0.5)];
    let solution = solved(&model([], [reference("c", 1, 2.0, [entry("e", phases)])]));
    vector(solution.tasks["c"].throughput, 1.0 / 4.5, 0.0);
    vector(solution.entries["e"].service_times[0].unwrap(), 2.0, 0.0);
    vector(solution.tasks["c"].utilization, 2.5 / 4.5, 0.0);
    let three = || customers("c", 3, 1.0, work("c", 0.0).calls("e", 1));
    let two_cores = || processor("s", ProcessorScheduling::Fcfs, 2);
    let threads = solved(&model([two_cores()], [three(), server("s", [serves("e", 1.0)]).times(2.0)]));
    vector(threads.tasks["c"].throughput, 24.0 / 17.0, 0.0);
    vector(wait(&threads, "c", "e"), 0.125, 0.0);
    let one_core = solved(&model([], [three(), server("s", [serves("e", 1.0)]).times(2.0)]));
    vector(one_core.tasks["c"].throughput, 0.938, 0.002);
    vector(wait(&one_core, "c", "e"), 0.399, 0.002);
    vector(one_core.entries["e"].service_times[0].unwrap(), 1.797, 0.004);
    vector(one_core.tasks["s"].utilization, 1.686, 0.003);
}

#[test]
fn v4_to_v8_classes_forwarding_open_arrivals_priorities() {
    let forwarding = [
        customers("c", 2, 1.0, work("c", 0.0).calls("e1", 1)),
        server("s1", [forwards(entry("e1", [work("p1", 0.5), work("p2", 0.2)]), "e2", 0.6)]),
        server("s2", [serves("e2", 0.8)]),
    ];
    let solution = solved(&model([], forwarding));
    vector(solution.tasks["c"].throughput, 0.8615, 0.0015);
    vector(wait(&solution, "c", "e1"), 0.235, 0.001);
    vector(wait(&solution, "e1", "e2"), 0.175, 0.003);
    vector(solution.entries["c"].service_times[0].unwrap(), 1.319, 0.004);
    vector(solution.tasks["s1"].utilization, 0.603, 0.001);
    let mut two = server("s", [open(entry("e", [work("e1", 1.0), work("e2", 0.3)]), 0.5)]);
    two.queue_length = 100.0.into();
    vector(solved(&model([], [two])).entries["e"].open_wait_time.unwrap(), 2.986, 0.0005);
    let mut two = server("s", [entry("e", [work("e1", 1.0), work("e2", 0.3)])]);
    two.queue_length = 60.0.into();
    let solution = solved(&model([], [customers("c", 1, 1.0, work("c", 1.0).sends("e", 1)), two]));
    vector(wait(&solution, "c", "e"), 1.03, 0.02);
    vector(solution.tasks["c"].utilization, 0.5, 0.0);
    for (discipline, high, low) in [(ProcessorScheduling::Pri, 1.429, 3.571), (ProcessorScheduling::Hol, 1.857, 3.143)] {
        let task = |name: &str, priority| {
            let task = server(name, [open(serves(name, 1.0), 0.3)]).scheduled(TaskScheduling::Inf).on("cpu").priority(priority);
            Task { queue_length: 40.0.into(), ..task }
        };
        let solution = solved(&model([processor("cpu", discipline, 1)], [task("low", 1.0), task("high", 2.0)]));
        vector(solution.entries["high"].open_wait_time.unwrap(), high, 0.0005);
        vector(solution.entries["low"].open_wait_time.unwrap(), low, 0.0005);
    }
    let client = |name: &str, priority| customers(name, 3, 2.0, work(name, 0.0).calls("e", 1)).priority(priority);
    let tasks = [client("a", 5.0), client("b", 1.0), server("s", [serves("e", 0.5)]).scheduled(TaskScheduling::Hol)];
    let solution = solved(&model([], tasks));
    vector(wait(&solution, "a", "e"), 0.536, 0.003);
    vector(wait(&solution, "b", "e"), 1.351, 0.007);
}

/// A customer that calls a task with this graph.
fn graph_model(scheduling: ProcessorScheduling, task: Task) -> Model {
    model([processor("s", scheduling, 1)], [customers("c", 1, 1.0, work("c", 0.0).calls("e", 1)), task])
}

#[test]
fn v9_and_v10_graphs() {
    let graph = || server("s", [starts("e", "a")]);
    let parallel = || {
        let activities = [work("a", 1.0), work("b", 1.0), work("c", 1.0), work("d", 0.5)];
        graph().graph(activities, [forks("a", &["b", "c"]), joins(&["b", "c"], 0, "d")]).replies("e", "d")
    };
    vector(solved(&graph_model(ProcessorScheduling::Inf, parallel())).entries["e"].service_times[0].unwrap(), 3.0, 0.0);
    vector(solved(&graph_model(ProcessorScheduling::Fcfs, parallel())).entries["e"].service_times[0].unwrap(), 3.5, 0.0);
    let activities = [work("a", 1.0), work("b", 2.0), work("c", 1.0), work("d", 0.5)];
    let branches = [chooses("a", &[(0.3, "b"), (0.7, "c")]), merges(&["b", "c"], "d")];
    let solution = solved(&graph_model(ProcessorScheduling::Inf, graph().graph(activities, branches).replies("e", "d")));
    vector(solution.entries["e"].service_times[0].unwrap(), 2.8, 0.0);
    vector(solution.activities["s"]["b"].throughput, 0.3 * solution.tasks["s"].throughput, 0.0);
    vector(solution.activities["s"]["b"].service_time.unwrap(), 2.0, 0.0);
    let activities = [work("a", 0.1), work("b", 1.0), work("d", 0.4)];
    let task = graph().graph(activities, [repeats("a", &[(2.5, "b")], "d")]).replies("e", "d");
    vector(solved(&graph_model(ProcessorScheduling::Inf, task)).entries["e"].service_times[0].unwrap(), 3.0, 0.0);
    let activities = [work("a", 0.1), work("b", 1.0), work("c", 1.0), work("d", 0.5)];
    let task = graph().graph(activities, [forks("a", &["b", "c"]), joins(&["b", "c"], 1, "d")]).replies("e", "d");
    let solution = solved(&graph_model(ProcessorScheduling::Inf, task));
    vector(solution.tasks["c"].throughput, 0.4104, 0.0009);
    vector(wait(&solution, "c", "e"), 0.334, 0.003);
    vector(solution.entries["e"].service_times[0].unwrap(), 1.1, 0.0);
    vector(solution.entries["e"].service_times[1].unwrap(), 2.0 / 3.0, 0.0);
    vector(solution.tasks["s"].utilization, 0.726, 0.002);
    let activities = [work("a", 0.1), work("b", 0.5), work("c", 2.0)];
    let solution = solved(&graph_model(ProcessorScheduling::Inf, graph().graph(activities, [forks("a", &["b", "c"])]).replies("e", "b")));
    vector(solution.entries["e"].service_times[0].unwrap(), 0.6, 0.0);
    vector(solution.entries["e"].service_times[1].unwrap(), 1.6, 0.0);
    vector(wait(&solution, "c", "e"), 1.071, 0.008);
}

/// Customers that take a lock, work 1, and give it back.
fn lockers(name: &str, n: u32, think: f64, takes: &str, gives: &str) -> Task {
    let activities = [work("take", 0.0).calls(takes, 1), work("hold", 1.0), work("give", 0.0).calls(gives, 1)];
    reference(name, n, think, [starts(name, "take")]).graph(activities, [then("take", "hold"), then("hold", "give")])
}

/// Three customers before a semaphore of these tokens, of which some are there at the start.
pub fn semaphore(tokens: f64, free: f64, services: [f64; 2]) -> Model {
    let wait = Entry { semaphore: Some(SemaphoreRole::Wait), ..serves("wait", services[0]) };
    let signal = Entry { semaphore: Some(SemaphoreRole::Signal), ..serves("signal", services[1]) };
    let task = server("s", [wait, signal]).scheduled(TaskScheduling::Semaphore).times(tokens);
    model([], [lockers("c", 3, 2.0, "wait", "signal"), Task { initial_tokens: Some(free.into()), ..task }])
}

/// Three readers and two writers before a lock of at most so many readers.
pub fn read_write_lock(most: f64, service: f64) -> Model {
    let roles = [("rl", RwLockRole::RLock), ("ru", RwLockRole::RUnlock), ("wl", RwLockRole::WLock), ("wu", RwLockRole::WUnlock)];
    let entries = roles.map(|(name, role)| Entry { rwlock: Some(role), ..serves(name, service) });
    let lock = server("s", entries).scheduled(TaskScheduling::RwLock).times(most);
    model([], [lockers("readers", 3, 1.0, "rl", "ru"), lockers("writers", 2, 2.0, "wl", "wu"), lock])
}

#[test]
fn v11_and_v12_locks() {
    let solution = solved(&semaphore(1.0, 1.0, [0.0, 0.0]));
    let repair = birth_death(3, |k| f64::from(3 - k) / 2.0, |_| 1.0);
    vector(solution.tasks["c"].throughput, 1.0 - repair[0], 0.0);
    vector(solution.tasks["s"].throughput, 1.0 - repair[0], 0.0);
    vector(solution.entries["wait"].holding_time.unwrap(), 1.0, 0.0);
    vector(wait(&solution, "c", "wait"), 0.801, 0.005);
    vector(solved(&semaphore(2.0, 2.0, [0.0, 0.0])).tasks["c"].throughput, 0.982, 0.002);
    let solution = solved(&semaphore(1.0, 1.0, [0.2, 0.3]));
    vector(solution.tasks["c"].throughput, 0.608, 0.001);
    vector(solution.entries["wait"].holding_time.unwrap(), 1.5, 0.0);
    let solution = solved(&read_write_lock(1.0, 0.0));
    vector(solution.tasks["readers"].throughput, 0.602, 0.002);
    vector(solution.tasks["writers"].throughput, 0.391, 0.001);
    let solution = solved(&read_write_lock(3.0, 0.0));
    vector(solution.tasks["readers"].throughput, 0.834, 0.002);
    vector(solution.tasks["writers"].throughput, 0.4536, 0.001);
    vector(wait(&solution, "readers", "rl"), 1.595, 0.007);
    vector(wait(&solution, "writers", "wl"), 1.414, 0.007);
    let error = markov(&semaphore(2.0, 0.0, [0.0, 0.0])).unwrap_err();
    assert!(
        matches!(&error, SolveError::Deadlock { waits, .. } if waits == &["task \"c\" waits for entry \"wait\" of task \"s\""]),
        "{error}"
    );
    let mut unheld = semaphore(1.0, 1.0, [0.0, 0.0]);
    unheld.tasks[0].activities[0].calls[0].dest = "signal".into();
    assert!(markov(&unheld).unwrap_err().to_string().contains("gives back"));
}

#[test]
fn v15_layers() {
    let tasks = [
        customers("c", 4, 1.0, work("c", 0.0).calls("e1", 1)),
        server("s1", [entry("e1", [work("e1", 0.2).calls("e2", 1)])]).times(2.0),
        server("s2", [serves("e2", 0.4)]),
    ];
    let solution = solved(&model([processor("s1", ProcessorScheduling::Fcfs, 2)], tasks));
    vector(solution.tasks["c"].throughput, 1.946, 0.002);
    vector(wait(&solution, "c", "e1"), 0.24, 0.001);
    vector(wait(&solution, "e1", "e2"), 0.2145, 0.0005);
    vector(solution.tasks["s1"].utilization, 1.585, 0.002);
    vector(solution.processors["s1"].utilization, 0.389, 0.001);
    let activities = [work("in", 0.1), work("ll", 0.2).calls_about("read", 1.5), work("rr", 0.3).cvsq(0.5), work("out", 0.05)];
    let tasks = [
        customers("Users", 3, 2.0, work("use", 0.1).calls("get", 1)),
        server("Web", [starts("get", "in")])
            .on("Ps")
            .times(2.0)
            .graph(activities, [forks("in", &["ll", "rr"]), joins(&["ll", "rr"], 0, "out")])
            .replies("get", "out"),
        server("Disk", [entry("read", [work("r1", 0.2), work("r2", 0.1)])]),
    ];
    let solution = solved(&model([processor("Ps", ProcessorScheduling::Ps, 2)], tasks));
    vector(solution.tasks["Users"].throughput, 0.966, 0.002);
    vector(solution.tasks["Web"].utilization, 0.921, 0.002);
    vector(solution.tasks["Disk"].utilization, 0.434, 0.001);
    vector(solution.entries["get"].service_times[0].unwrap(), 0.953, 0.002);
    vector(solution.processors["Ps"].utilization, 0.628, 0.001);
}

#[test]
fn v16_copies_are_wired_and_results_are_per_copy() {
    for (clients, out, servers, fan_in, x) in [(2.0, 2.0, 4.0, 1.0, 0.82397), (4.0, 1.0, 2.0, 2.0, 0.86256), (3.0, 2.0, 2.0, 3.0, 0.52294)]
    {
        let fans = |task: &str, value: f64| vec![Fan { task: task.into(), value: value.into() }];
        let client = customers("c", 2, 1.0, work("c", 0.2).calls_about("e", 1.0));
        let client = Task { replication: clients.into(), fan_out: fans("s", out), ..client };
        let task = Task { replication: servers.into(), fan_in: fans("c", fan_in), ..server("s", [serves("e", 0.5)]) };
        let mut model = model([], [client, task]);
        model.processors.iter_mut().filter(|p| p.name == "s").for_each(|p| p.replication = servers.into());
        let solution = solved(&model);
        // The vectors are of an approximate solver to five digits and of simulations to a quarter of a per cent.
        near(solution.tasks["c"].throughput, x, 0.0025);
        let x = solution.tasks["c"].throughput;
        near(solution.tasks["s"].throughput, x * fan_in, EXACT);
        near(solution.processors["delay"].utilization, 0.2 * x * clients, EXACT);
        near(solution.processors["s"].utilization, 0.5 * x * fan_in, EXACT);
        near(solution.tasks["c"].utilization, 2.0 - x, EXACT);
        near(wait(&solution, "c", "e"), (2.0 / x - 1.2) / out - 0.5, EXACT);
        assert_eq!((solution.tasks.len(), solution.calls.len()), (2, 1));
    }
}

/// Little's law at customers, and flow balance.
#[test]
fn laws_hold_to_the_last_digits() {
    let tasks = [
        customers("c", 3, 1.0, work("c", 0.1).calls_about("e", 1.5)),
        server("s", [entry("e", [work("e1", 0.2).calls_about("f", 2.0), work("e2", 0.1)])]).times(2.0),
        server("t", [forwards(serves("f", 0.1), "g", 0.3)]),
        server("u", [serves("g", 0.3)]),
    ];
    let solution = solved(&model([], tasks));
    let x = solution.tasks["c"].throughput;
    near(solution.tasks["c"].utilization, 3.0 - x, EXACT);
    near(solution.tasks["s"].throughput, 1.5 * x, EXACT);
    near(solution.tasks["u"].throughput, 0.9 * x, EXACT);
    near(solution.processors["s"].utilization, 0.3 * 1.5 * x, EXACT);
    let e = &solution.entries["e"];
    near(e.utilization, e.throughput * e.service_times.iter().flatten().sum::<f64>(), EXACT);
    let f = wait(&solution, "e", "f") + solution.entries["f"].service_times[0].unwrap();
    let g = wait(&solution, "f", "g") + solution.entries["g"].service_times[0].unwrap();
    let at_processor = e.service_times[0].unwrap() - 2.0 * (f + 0.3 * g);
    assert!((0.2..0.3).contains(&at_processor), "time at the processor {at_processor}");
}

/// Work that takes no time is passed through, also where that is a random number of times.
#[test]
fn what_takes_no_time_is_eliminated() {
    let tasks = |think: f64, below: f64| {
        [
            customers("c", 2, think, work("c", 0.0).calls_about("e", 1.5)),
            server("s", [entry("e", [work("e", 0.0).calls_about("f", below)])]),
            server("t", [serves("f", 0.0)]),
        ]
    };
    near(solved(&model([], tasks(2.0, 0.0))).tasks["s"].throughput, 1.5, EXACT);
    let error = markov(&model([], tasks(2.0, 3.0))).unwrap_err();
    assert!(matches!(error, SolveError::Unsupported { construct: "so many choices that take no time", .. }), "{error}");
    let error = markov(&model([], [customers("c", 1, 0.0, work("c", 0.0).calls("e", 1)), server("s", [serves("e", 0.0)])])).unwrap_err();
    assert!(error.to_string().contains("circles that take no time"), "{error}");
}

/// More states than are asked for are a refusal, and a balance not reached is said.
#[test]
fn options_bound_the_work() {
    let tasks = [
        customers("c", 8, 1.0, work("c", 0.2).calls_about("e", 1.0)),
        server("s", [entry("e", [work("e", 0.3).calls_about("f", 1.0)])]).times(4.0),
        server("t", [serves("f", 0.5)]),
    ];
    let model = model([], tasks);
    let options = MarkovOptions { max_states: 50, ..MarkovOptions::default() };
    let error = solve_markov(&model, &Bindings::new(), &options).unwrap_err();
    assert!(matches!(error, SolveError::Unsupported { construct: "so large a state space", .. }), "{error}");
    let solution = solve_markov(&model, &Bindings::new(), &MarkovOptions { tolerance: 0.0, ..MarkovOptions::default() }).unwrap();
    assert!(!solution.converged && solution.residual > 0.0 && solution.residual < 1e-14, "{}", solution.residual);
}

/// Second phases of an infinite server pile up without end, each state larger than the one before.
#[test]
fn states_that_grow_without_end_are_refused() {
    let mut called = server("s", [entry("e", [work("e1", 0.31), work("e2", 0.19)])]).scheduled(TaskScheduling::Inf);
    called.processor = "cpu".into();
    let cpu = processor("cpu", ProcessorScheduling::Ps, 1);
    let model = model([cpu], [customers("c", 1, 2.56, work("c", 0.13).calls("e", 1)), called]);
    let options = MarkovOptions { max_work: 1_000_000, ..MarkovOptions::default() };
    let error = solve_markov(&model, &Bindings::new(), &options).unwrap_err();
    assert!(matches!(error, SolveError::Unsupported { construct: "so large a state space", .. }), "{error}");
    assert!(error.to_string().contains("task \"s\", at which nothing bounds what goes on after the reply"), "{error}");
}

#[test]
fn deadlock_is_found_and_named() {
    let tasks = [
        customers("c", 2, 1.0, work("c", 0.0).calls("a1", 1)),
        customers("d", 2, 1.0, work("d", 0.0).calls("b1", 1)),
        server("a", [entry("a1", [work("a1", 0.1).calls("b2", 1)]), serves("a2", 0.1)]),
        server("b", [entry("b1", [work("b1", 0.1).calls("a2", 1)]), serves("b2", 0.1)]),
    ];
    // Others that go on do not hide it.
    for others in [vec![], vec![customers("z", 1, 1.0, work("z", 1.0))]] {
        let error = markov(&model([], tasks.clone().into_iter().chain(others))).unwrap_err();
        let SolveError::Deadlock { waits, time } = &error else { panic!("{error}") };
        assert!(waits.iter().any(|w| w == "task \"a\" waits for entry \"b2\" of task \"b\"") && *time > 0.0, "{error}");
    }
}

#[test]
fn calls_without_end_are_refused() {
    let recursive = server("s", [entry("e", [work("e", 0.1).calls_about("e", 0.9)])]).scheduled(TaskScheduling::Inf).on("delay");
    let error = markov(&model([], [customers("c", 1, 1.0, work("c", 0.0).calls("e", 1)), recursive])).unwrap_err();
    assert!(matches!(error, SolveError::Unsupported { construct: "so deep a nesting of calls", .. }), "{error}");
}

/// The construct that a model is refused for.
fn refusal(change: impl FnOnce(&mut Model)) -> &'static str {
    let mut model = model([], [customers("c", 2, 1.0, work("c", 0.1).calls("e", 1)), server("s", [serves("e", 1.0)])]);
    change(&mut model);
    match markov(&model) {
        Err(SolveError::Unsupported { solver: "markov", construct, .. }) => construct,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_has_no_small_chain_is_refused_by_name() {
    let e = |m: &mut Model| m.tasks[1].entries[0].phases[0].activity.clone();
    assert!(refusal(|m| m.tasks[1].entries[0].phases[0].activity = e(m).cvsq(0.0)).contains("squared coefficient of variation"));
    assert!(refusal(|m| m.tasks[1].entries[0].phases[0].activity = e(m).cvsq(0.3)).contains("squared coefficient of variation"));
    assert_eq!(refusal(|m| m.tasks[0].scheduling = TaskScheduling::Burst), "customers whose think time is not exponential");
    assert_eq!(refusal(|m| m.tasks[1].entries[0].open_arrival_rate = Some(0.1.into())), "open arrivals at a queue without bound");
    assert_eq!(
        refusal(|m| m.tasks[0].entries[0].phases[0].activity.calls[0].kind = layerfit::model::CallKind::Async),
        "asynchronous requests to a queue without bound"
    );
    assert_eq!(refusal(|m| m.tasks[0].multiplicity = 400_000.0.into()), "so many customers");
    assert_eq!(refusal(|m| m.processors[1].scheduling = ProcessorScheduling::Cfs), "fair-share scheduling");
    let round_robin = |m: &mut Model| {
        m.processors[1].scheduling = ProcessorScheduling::Ps;
        m.processors[1].quantum = 0.3.into();
    };
    assert_eq!(refusal(round_robin), "a quantum");
    let joining = |m: &mut Model| {
        let task = server("x", [starts("e1", "a1"), starts("e2", "a2")]);
        let graph = task.graph([work("a1", 0.1), work("a2", 0.1), work("a3", 0.5)], [joins(&["a1", "a2"], 0, "a3")]);
        m.processors.push(processor("x", ProcessorScheduling::Fcfs, 1));
        m.tasks.push(graph.replies("e1", "a3").replies("e2", "a3"));
    };
    assert_eq!(refusal(joining), "a join of activities of several entries");
}

#[test]
fn values_that_cannot_be_used_are_named() {
    let refusal = |change: fn(&mut Model)| {
        let mut model = model([], [customers("c", 1, 1.0, work("c", 0.0).calls("e", 1)), server("s", [serves("e", 1.0)])]);
        change(&mut model);
        match markov(&model) {
            Err(error @ (SolveError::Unusable { .. } | SolveError::Unbound(_))) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refusal(|m| m.tasks[1].entries[0].phases[0].activity.host_demand = (-1.0).into()),
        "activity \"e\": its host demand is -1, expected a finite number of at least 0"
    );
    assert!(refusal(|m| m.tasks[1].entries[0].phases[0].activity.host_demand = Number::Parameter("d".into())).contains("$d"));
    assert!(refusal(|m| m.tasks[1].multiplicity = 1.5.into()).contains("multiplicity is 1.5"));
    assert!(refusal(|m| m.tasks[0].multiplicity = f64::INFINITY.into()).contains("reference task"));
    assert!(refusal(|m| m.processors[1].speed_factor = 0.0.into()).contains("speed factor"));
    assert!(refusal(|m| m.tasks[0].entries[0].phases[0].activity.calls[0].mean = 1.5.into()).contains("deterministic"));
    assert!(refusal(|m| m.tasks[0].entries[0].phases[0].activity.calls[0].dest = "x".into()).contains("\"x\""));
    assert!(refusal(|m| m.tasks[1].processor = "x".into()).contains("\"x\""));
    assert!(refusal(|m| drop(m.tasks.remove(0))).contains("no load"));
}
