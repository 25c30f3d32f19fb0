//! Results of the activities of graphs: each as the exact answer has it, and the calls that they make.

use layerfit::{
    model::{Activity, Bindings, Measure, Model, Precedence, TaskScheduling},
    solve::{Solution, SolveOptions, Solver, measure, solve},
};

use super::build::*;

const SAME: f64 = 1e-6;

#[track_caller]
fn near(got: f64, expected: f64, relative: f64) {
    assert!((got - expected).abs() <= relative * expected.abs().max(1e-12), "{got}, expected {expected}");
}

pub fn solved(model: &Model, solver: Solver) -> Solution {
    solve(model, &Bindings::new(), &SolveOptions { solver, ..SolveOptions::default() }).unwrap()
}

/// After `in` a choice between `few` and `many`, of which `many` calls the other task twice; then `each` three times; a reply; `after`.
fn choice_and_loop() -> Model {
    let activities = [
        work("in", 0.1),
        work("few", 0.2),
        work("many", 0.05).calls_about("f", 2.0),
        work("then", 0.02),
        work("each", 0.03).calls_about("f", 0.5),
        work("out", 0.01),
        work("after", 0.04),
    ];
    let precedences = [
        chooses("in", &[(0.7, "few"), (0.3, "many")]),
        merges(&["few", "many"], "then"),
        repeats("then", &[(3.0, "each")], "out"),
        then("out", "after"),
    ];
    let task = server("s", [starts("e", "in")]).graph(activities, precedences).replies("e", "out");
    model([], [customers("c", 3, 2.0, work("c", 0.1).calls_about("e", 1.0)), task, server("t", [serves("f", 0.1)])])
}

/// Two branches side by side, one of which calls.
fn fork_and_join() -> Model {
    let activities = [work("in", 0.1), work("left", 0.2).calls_about("f", 1.5), work("right", 0.3), work("out", 0.05)];
    let precedences = [forks("in", &["left", "right"]), joins(&["left", "right"], 0, "out")];
    let task = server("s", [starts("e", "in")]).graph(activities, precedences).replies("e", "out");
    model([], [customers("c", 2, 3.0, work("c", 0.1).calls_about("e", 1.0)), task, server("t", [serves("f", 0.1)])])
}

/// Before a join of branches that each call an own task, `calls` times in the mean or exactly once, which calls one that all share.
fn scattered(n: usize, users: u32, once: bool, shared: f64) -> Model {
    let names: Vec<[String; 3]> = (0..n).map(|i| [format!("b{i}"), format!("t{i}"), format!("e{i}")]).collect();
    let call = |work: Activity, dest: &str| if once { work.calls(dest, 1) } else { work.calls_about(dest, 1.0) };
    let branches = names.iter().map(|[branch, _, entry]| call(work(branch, 0.0), entry));
    let activities = [work("in", 0.01), work("out", 0.01)].into_iter().chain(branches);
    let of_branches: Vec<&str> = names.iter().map(|[branch, ..]| branch.as_str()).collect();
    let precedences = [forks("in", &of_branches), joins(&of_branches, 0, "out")];
    let front = server("s", [starts("e", "in")]).scheduled(TaskScheduling::Inf).graph(activities, precedences).replies("e", "out");
    let called = names.iter().map(|[_, task, name]| {
        let serves = work(name, 0.5);
        server(task, [entry(name, [if shared > 0.0 { serves.calls("f", 1) } else { serves }])]).times(f64::from(users))
    });
    let below = (shared > 0.0).then(|| server("below", [serves("f", shared)]));
    let cycle = work("c", 0.0).calls("e", 1);
    model([], [customers("c", users, 1.0, cycle), front].into_iter().chain(called).chain(below))
}

/// Calls that may not be made at all, and branches that meet below the tasks that they call: 7 to 10 % fast, all of them, while branches were told by
/// two moments and met only at what they call themselves.
#[test]
fn what_is_scattered_is_gathered_when_the_last_is_there() {
    for (n, users, once, shared, error) in [
        (2, 1, false, 0.0, 1e-4),
        (3, 1, false, 0.0, 1e-4),
        (3, 3, false, 0.0, 0.015),
        (3, 3, true, 0.0, 0.01),
        (2, 1, true, 0.3, 0.04),
        (3, 1, true, 0.3, 0.06),
    ] {
        let model = scattered(n, users, once, shared);
        let response = |solver| f64::from(users) / solved(&model, solver).tasks["c"].throughput - 1.0;
        let (found, exact) = (response(Solver::Layered), response(Solver::Markov));
        assert!((found / exact - 1.0).abs() < error, "{n} {users} {once} {shared}: {found}, expected {exact}");
    }
}

/// Customers before fewer threads, each of which calls two tasks side by side, the first of so many threads.
fn forks_of_a_pool(customers_and_threads: (u32, f64), think: f64, demand: f64, called: [(f64, f64); 2], first_threads: f64) -> Model {
    let (users, threads) = customers_and_threads;
    let [left, right] = called;
    let branch = |name, dest, (calls, _): (f64, f64)| work(name, demand).calls_about(dest, calls);
    let activities = [work("in", demand), branch("left", "f", left), branch("right", "g", right), work("out", demand)];
    let precedences = [forks("in", &["left", "right"]), joins(&["left", "right"], 0, "out")];
    let pool = server("s", [starts("e", "in")]).graph(activities, precedences).replies("e", "out").times(threads);
    let first = server("t", [serves("f", left.1)]).times(first_threads);
    model([], [customers("c", users, think, work("c", 0.0).calls("e", 1)), pool, first, server("u", [serves("g", right.1)])])
}

/// 7.5 % fast while strands counted as customers that visit the branches one after the other; 4.6 % slow while each strand of a thread could be at any
/// task, though a thread is at one that only one of its branches calls once at most, and nobody waits for a thread there.
#[test]
fn threads_that_fork_are_waited_for_as_long_as_their_last_branch_takes() {
    for (model, error) in [
        (forks_of_a_pool((5, 3.0), 1.4893, 0.0442, [(2.0, 0.3383), (1.0, 0.594)], 1.0), 0.01),
        (forks_of_a_pool((4, 2.0), 2.0, 0.06, [(2.0, 0.9909), (2.0, 0.1569)], 2.0), 0.035),
    ] {
        let [found, exact] = [Solver::Layered, Solver::Markov].map(|solver| solved(&model, solver).tasks["c"].throughput);
        near(found, exact, error);
    }
}

/// Within the errors of waits.
#[test]
fn activities_are_as_in_the_exact_answer() {
    for (model, error) in [(choice_and_loop(), 0.04), (fork_and_join(), 0.02)] {
        let (got, exact) = (solved(&model, Solver::Layered), solved(&model, Solver::Markov));
        assert!(got.converged);
        let x = |solution: &Solution| solution.tasks["s"].throughput;
        assert_eq!(got.activities["s"].len(), model.tasks[1].activities.len());
        for (name, expected) in &exact.activities["s"] {
            let activity = &got.activities["s"][name];
            near(activity.service_time.unwrap(), expected.service_time.unwrap(), error);
            near(activity.throughput / x(&got), expected.throughput / x(&exact), SAME);
        }
        let calls = |solution: &Solution| {
            let mut calls: Vec<_> = solution.calls.iter().map(|c| (c.from.clone(), c.to.clone(), c.activity.clone(), c.phase)).collect();
            calls.sort();
            calls
        };
        assert_eq!(calls(&got), calls(&exact));
        for (got, exact) in
            got.calls.iter().filter_map(|c| Some((c, exact.calls.iter().find(|e| e.activity == c.activity && e.to == c.to)?)))
        {
            near(got.mean, exact.mean, SAME);
        }
    }
}

/// What an entry takes is what its activities take, where none runs beside another.
#[test]
fn times_of_activities_add_up() {
    let solution = solved(&choice_and_loop(), Solver::Layered);
    let (results, entry) = (&solution.activities["s"], &solution.entries["e"]);
    let time = |name: &str| results[name].throughput / entry.throughput * results[name].service_time.unwrap();
    near(["in", "few", "many", "then", "each", "out"].map(time).iter().sum(), entry.service_times[0].unwrap(), SAME);
    near(time("after"), entry.service_times[1].unwrap(), SAME);
}

/// Before a join is what comes before the fork, after it what follows; the delay is what the branches take together.
#[test]
fn delays_of_joins_are_between_what_comes_before_and_after() {
    let model = fork_and_join();
    let (solution, simulated) = (solved(&model, Solver::Layered), solved(&model, Solver::Simulate));
    let [join] = solution.joins.as_slice() else { panic!("{:?}", solution.joins) };
    assert_eq!((join.task.as_str(), join.activities.as_slice()), ("s", ["left".to_owned(), "right".to_owned()].as_slice()));
    let time = |name: &str| solution.activities["s"][name].service_time.unwrap();
    near(time("in") + join.delay.unwrap() + time("out"), solution.entries["e"].service_times[0].unwrap(), SAME);
    near(join.delay.unwrap(), simulated.joins[0].delay.unwrap(), 0.05);
    assert!(join.delay_half_width.is_none() && join.delay_variance.unwrap() > 0.0);
}

/// A body that forks is joined as often as it is repeated; copies of the task say what the task alone says.
#[test]
fn delays_of_joins_are_means_over_copies() {
    let activities = [work("in", 0.1), work("split", 0.0), work("left", 0.2), work("right", 0.3), work("out", 0.05)];
    let precedences = [repeats("in", &[(2.0, "split")], "out"), forks("split", &["left", "right"])];
    let ends = Precedence { pre: joins(&["left", "right"], 0, "out").pre, post: None };
    let task = server("s", [starts("e", "in")]).graph(activities, precedences.into_iter().chain([ends])).replies("e", "out");
    let one = model([], [customers("c", 2, 3.0, work("c", 0.1).calls_about("e", 1.0)), task]);
    let mut two = one.clone();
    two.processors.iter_mut().for_each(|p| p.replication = 2.0.into());
    two.tasks.iter_mut().for_each(|t| t.replication = 2.0.into());
    let [one, two] = [one, two].map(|model| solved(&model, Solver::Layered).joins);
    assert_eq!(one.len(), 1);
    near(two[0].delay.unwrap(), one[0].delay.unwrap(), SAME);
    near(two[0].delay_variance.unwrap(), one[0].delay_variance.unwrap(), SAME);
}

/// Residence times of solutions that give activities: each counts as often as it is executed, and branches side by side both count.
#[test]
fn measures_count_activities_as_often_as_they_are_executed() {
    for (solver, error) in [(Solver::Layered, SAME), (Solver::Markov, SAME), (Solver::Simulate, 0.02)] {
        let value = |model: &Model, text: &str| measure::value(model, &solved(model, solver), &text.parse::<Measure>().unwrap()).unwrap();
        let model = choice_and_loop();
        let solution = solved(&model, solver);
        let visit = |activity: &str| {
            let call = solution.calls.iter().find(|c| c.activity.as_deref() == Some(activity)).unwrap();
            call.waiting.unwrap() + solution.entries["f"].service_times[0].unwrap()
        };
        near(value(&model, "residence_time(t)"), 0.6 * visit("many") + 1.5 * visit("each"), error);
        let forked = fork_and_join();
        let host: f64 = {
            let solution = solved(&forked, solver);
            let own = |name: &str| solution.activities["s"][name].service_time.unwrap();
            let call = solution.calls.iter().find(|c| c.to == "f").unwrap();
            ["in", "left", "right", "out"].map(own).iter().sum::<f64>()
                - 1.5 * (call.waiting.unwrap() + solution.entries["f"].service_times[0].unwrap())
        };
        near(value(&forked, "residence_time(processor:s)"), host, error);
    }
}

/// Of an activity that two entries lead to, each counts its own executions.
#[test]
fn activities_of_two_entries_are_counted_once() {
    let activities = [work("one", 0.1), work("two", 0.2), work("tail", 0.05).calls_about("f", 1.0)];
    let task = server("s", [starts("e", "one"), starts("g", "two")])
        .graph(activities, [merges(&["one", "two"], "tail")])
        .replies("e", "tail")
        .replies("g", "tail");
    let client = customers("c", 1, 1.0, work("c", 0.1).calls_about("e", 0.5).calls_about("g", 1.5));
    let model = model([], [client, task, server("t", [serves("f", 0.3)])]);
    for (solver, error) in [(Solver::Layered, SAME), (Solver::Markov, SAME), (Solver::Simulate, 0.02)] {
        let solution = solved(&model, solver);
        let value = |text: &str| measure::value(&model, &solution, &text.parse::<Measure>().unwrap()).unwrap();
        near(value("residence_time(t)"), 2.0 * 0.3, error);
        near(value("residence_time(processor:s)"), 0.5 * 0.1 + 1.5 * 0.2 + 2.0 * 0.05, error);
    }
}

/// A request that is forwarded is no time at its sender's processor.
#[test]
fn forwarded_time_is_not_the_senders() {
    let tasks = [
        customers("c", 2, 1.0, work("c", 0.2).calls_about("e", 1.0)),
        server("s", [forwards(serves("e", 0.1), "f", 0.5)]),
        server("t", [serves("f", 0.4)]),
    ];
    let model = model([], tasks);
    for (solver, error) in [(Solver::Layered, SAME), (Solver::Markov, SAME), (Solver::Simulate, 0.01)] {
        let value =
            measure::value(&model, &solved(&model, solver), &"residence_time(processor:delay)".parse::<Measure>().unwrap()).unwrap();
        near(value, 0.2, error);
    }
}
