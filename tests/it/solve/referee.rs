//! The layered approximation beside the exact answer, on small models of each kind.

use std::fmt::Write;

use layerfit::{
    model::{Activity, Bindings, Entry, Fan, Model, Processor, ProcessorScheduling, Task, TaskScheduling},
    solve::{SolveError, SolveOptions, Solver, solve},
};

use super::{
    build::*,
    markov::{read_write_lock, semaphore, solved},
};

/// What is asked of the layered solver on the models of a kind.
enum Expected {
    /// Mean and worst error of the tasks' throughputs and of the response times of open arrivals, per cent.
    Within(f64, f64),
    /// It refuses them all.
    Refused,
}
use Expected::{Refused, Within};

/// Each kind with its models and the layered solver's errors as measured, rounded up. A failure prints the measured table.
fn table() -> Vec<(&'static str, Vec<Model>, Expected)> {
    vec![
        ("synchronous calls", synchronous(), Within(0.3, 0.4)),
        ("deterministic calls", deterministic(), Within(0.4, 0.5)),
        ("two classes", two_classes(), Within(0.4, 1.3)),
        ("classes at shared tasks", classes_at_shared_tasks(), Within(0.6, 2.5)),
        ("unequal demands at a queue", unequal(), Within(0.5, 1.8)),
        ("variation of demand", variation(), Within(0.3, 0.5)),
        ("interlock", interlock(), Within(1.0, 1.6)),
        ("through a single thread", through_a_thread(), Within(1.6, 5.1)),
        ("threads on one processor", threads_on_one_processor(), Within(2.6, 7.6)),
        ("calls on one processor", calls_on_one_processor(), Within(0.8, 2.7)),
        ("customers with a thread each", customers_with_a_thread_each(), Within(0.5, 1.7)),
        ("thread pools", pools(), Within(0.4, 1.0)),
        ("tasks below a full pool", below_a_full_pool(), Within(1.3, 2.6)),
        ("unlike pools", unlike_pools(), Within(1.6, 3.5)),
        ("second phases", second_phases(), Within(0.4, 0.7)),
        ("second phases on one processor", second_phases_on_one_processor(), Within(1.1, 1.7)),
        ("second phases left behind", second_phases_left_behind(), Within(0.5, 1.7)),
        ("second phases below few threads", second_phases_below_few_threads(), Within(3.6, 9.3)),
        ("second phases below busy threads", second_phases_below_busy_threads(), Within(0.5, 0.9)),
        ("second phases of several threads", second_phases_of_several_threads(), Within(1.0, 2.2)),
        ("replies at once", replies_at_once(), Within(3.9, 7.0)),
        ("forwarding", forwarding(), Within(0.1, 0.1)),
        ("asynchronous requests", asynchronous(), Within(0.2, 0.3)),
        ("open arrivals", open_arrivals(), Within(0.7, 4.7)),
        ("customers beside open arrivals", open_beside_customers(), Within(2.5, 6.7)),
        ("processor sharing", sharing(), Within(0.9, 1.7)),
        ("choice and repetition", branches(), Within(0.9, 1.9)),
        ("priorities at processors", processor_priorities(), Within(0.2, 0.4)),
        ("priorities at tasks", task_priorities(), Within(0.1, 0.1)),
        ("priorities at full tasks", full_priorities(), Within(0.3, 2.2)),
        ("and-fork and join", parallel(), Within(0.8, 1.3)),
        ("branches on one processor", branches_on_one_processor(), Within(0.2, 0.8)),
        ("quorum join", quorums(), Within(1.8, 3.5)),
        ("replication", replication(), Within(0.7, 1.1)),
        ("locks", locks(), Refused),
    ]
}

fn pool_processor(name: &str, servers: u32) -> Processor {
    processor(name, ProcessorScheduling::Fcfs, servers)
}

/// Customers, a task of some threads that calls, and one that is called.
fn three_layers(n: u32, think: f64, first: Activity, second: Activity, threads: u32, last: Entry) -> Model {
    let middle = server("s", [entry("e", [second])]).times(f64::from(threads));
    model([pool_processor("s", threads)], [customers("c", n, think, first), middle, server("t", [last])])
}

fn synchronous() -> Vec<Model> {
    let of = |(n, think, y, s, z, t): (u32, f64, f64, f64, f64, f64)| {
        three_layers(n, think, work("c", 0.1).calls_about("e", y), work("e", s).calls_about("f", z), 1, serves("f", t))
    };
    [(2, 1.0, 1.0, 0.3, 1.0, 0.4), (4, 2.0, 1.0, 0.2, 2.0, 0.2), (3, 0.5, 2.0, 0.1, 1.0, 0.3), (6, 4.0, 1.0, 0.3, 1.5, 0.3)].map(of).into()
}

fn deterministic() -> Vec<Model> {
    let of = |(n, think, y, s, z, t): (u32, f64, u32, f64, u32, f64)| {
        three_layers(n, think, work("c", 0.1).calls("e", y), work("e", s).calls("f", z), 1, serves("f", t))
    };
    [(2, 1.0, 1, 0.3, 1, 0.4), (4, 2.0, 1, 0.2, 2, 0.2), (3, 0.5, 2, 0.1, 1, 0.3)].map(of).into()
}

fn two_classes() -> Vec<Model> {
    let of = |(n, m, share, t): (u32, u32, f64, f64)| {
        let tasks = [
            customers("a", n, 1.0, work("a", 0.1).calls_about("e", 1.0).calls_about("f", share)),
            customers("b", m, 2.0, work("b", 0.1).calls_about("f", 1.0)),
            server("s", [entry("e", [work("e", 0.3).calls_about("f", 1.0)])]),
            server("t", [serves("f", t)]),
        ];
        model([], tasks)
    };
    [(2, 1, 0.0, 0.5), (2, 2, 1.0, 0.3), (3, 2, 0.5, 0.2)].map(of).into()
}

/// Customers who think and ones who hardly do, before tasks that serve both on one processor.
fn classes_at_shared_tasks() -> Vec<Model> {
    let of = |(n, m, calls, first, second): (u32, u32, f64, f64, f64)| {
        let tasks = [
            customers("a", n, 0.0, work("a", 0.1).calls_about("e", 1.0)),
            customers("b", m, 4.0, work("b", 0.1).calls_about("e", 1.0).calls_about("f", 1.0)),
            server("s", [entry("e", [work("e", first).calls_about("f", calls)])]).times(4.0).on("cpu"),
            server("t", [serves("f", second)]).times(2.0).on("cpu"),
        ];
        model([pool_processor("cpu", 1)], tasks)
    };
    [(1, 1, 1.0, 0.3, 0.5), (1, 3, 2.0, 0.1, 0.2), (2, 2, 0.5, 0.4, 0.3), (2, 1, 1.0, 0.2, 0.4)].map(of).into()
}

fn unequal() -> Vec<Model> {
    let of = |(n, think, first, m, other, second): (u32, f64, f64, u32, f64, f64)| {
        let tasks = [
            customers("a", n, think, work("a", 0.0).calls("e", 1)),
            customers("b", m, other, work("b", 0.0).calls("f", 1)),
            server("s", [serves("e", first), serves("f", second)]),
        ];
        model([], tasks)
    };
    [(1, 0.2, 1.0, 1, 2.0, 2.0), (1, 2.0, 1.0, 1, 3.0, 3.0), (2, 1.0, 0.1, 1, 2.0, 2.0), (3, 3.0, 0.2, 2, 4.0, 1.0)].map(of).into()
}

fn variation() -> Vec<Model> {
    let of = |(n, think, demand, cvsq): (u32, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.1).calls_about("e", 1.0).calls_about("f", 1.0)),
            server("s", [entry("e", [work("e", demand).cvsq(cvsq)])]),
            server("t", [serves("f", 0.3)]),
        ];
        model([], tasks)
    };
    [(3, 1.0, 0.5, 0.25), (4, 2.0, 0.5, 0.5), (3, 1.0, 0.5, 3.0), (5, 3.0, 0.6, 5.0)].map(of).into()
}

fn interlock() -> Vec<Model> {
    let of = |(n, think, threads, t, direct): (u32, f64, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.0).calls_about("top", 1.0)),
            server("x", [entry("top", [work("top", 0.1).calls_about("a", 1.0).calls_about("b", 1.0).calls_about("f", direct)])])
                .times(threads),
            server("y", [entry("a", [work("a", 0.2).calls_about("f", 1.0)])]),
            server("z", [entry("b", [work("b", 0.1).calls_about("f", 2.0)])]),
            server("t", [serves("f", t)]),
        ];
        model([], tasks)
    };
    [(2, 0.5, 1.0, 0.2, 0.0), (4, 2.0, 2.0, 0.3, 0.5), (3, 1.0, 3.0, 0.2, 1.0), (4, 1.0, f64::INFINITY, 0.2, 0.0)].map(of).into()
}

/// Customers who call a single thread, and what it calls.
fn through_a_thread() -> Vec<Model> {
    let of = |(calls, of_thread, long, short, slices): (f64, f64, f64, f64, f64)| {
        let tasks = [
            customers("c", 5, 1.0, work("c", 0.0).calls_about("e", 1.0).calls_about("f", calls)),
            server("s", [entry("e", [work("e", slices).calls_about("g", of_thread)])]),
            server("t", [serves("f", long), serves("g", short)]),
        ];
        model([], tasks)
    };
    [
        (0.6, 0.4, 0.4, 0.07, 0.02),
        (1.5, 1.5, 0.4, 0.07, 0.02),
        (0.6, 1.5, 0.4, 0.07, 0.2),
        (1.5, 1.5, 0.2, 0.02, 0.2),
        (0.6, 0.4, 0.07, 0.4, 0.2),
        (1.5, 1.5, 0.3, 0.3, 0.02),
        (0.6, 1.5, 0.2, 0.02, 0.2),
    ]
    .map(of)
    .into()
}

/// Who waits for a thread has nothing at the processor of what that thread calls there in the meantime.
fn threads_on_one_processor() -> Vec<Model> {
    let of = |(n, think, m, threads, first, second): (u32, f64, u32, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.0).calls_about("e", 1.0)),
            customers("d", m, think, work("d", 0.0).calls_about("f", 1.0)),
            server("s", [entry("e", [work("e", 0.2).calls_about("g", 1.0).calls_about("h", 1.0)])]),
            server("t", [entry("f", [work("f", 0.1).calls_about("h", 1.0)])]),
            server("u", [serves("g", first)]).on("shared"),
            server("v", [serves("h", second)]).on("shared").times(threads),
        ];
        model([], tasks)
    };
    [(3, 1.0, 2, 1.0, 0.5, 0.5), (2, 0.5, 2, 2.0, 0.8, 0.4), (3, 0.1, 3, 1.0, 0.3, 0.8), (4, 2.0, 1, 3.0, 0.4, 0.4)].map(of).into()
}

/// Who comes back from a call to its own processor does not find there the thread that has just replied.
fn calls_on_one_processor() -> Vec<Model> {
    let of = |(n, m, think, calls, threads, second): (u32, u32, f64, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.0).calls_about("e", 1.0)),
            customers("d", m, think, work("d", 0.0).calls_about("f", 1.0)),
            server("s", [entry("e", [work("e", 0.4).calls_about("f", calls)])]).on("one"),
            server("t", [serves("f", second)]).on("one").times(threads),
        ];
        model([], tasks)
    };
    [(2, 2, 1.0, 2.0, 1.0, 0.3), (3, 1, 1.0, 3.0, 1.0, 0.1), (2, 3, 2.0, 1.0, 1.0, 0.5), (2, 2, 1.0, 2.0, 2.0, 0.3)].map(of).into()
}

/// A front, and what it calls, with a thread for every customer, all on one processor: services up to six times as long as others, one class or two.
fn customers_with_a_thread_each() -> Vec<Model> {
    let each = |task: Task| task.times(f64::INFINITY).on("one");
    let one_class = |(n, think, front, calls, back): (u32, f64, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.0).calls_about("e", 1.0)),
            each(server("s", [entry("e", [work("e", front).calls_about("f", calls)])])),
            each(server("t", [serves("f", back)])),
        ];
        model([], tasks)
    };
    let three_tasks = |n, m, think: (f64, f64), last: f64| {
        let tasks = [
            customers("c", n, think.0, work("c", 0.0).calls_about("e", 1.0)),
            customers("d", m, think.1, work("d", 0.0).calls_about("f", 1.0)),
            each(server("s", [entry("e", [work("e", 0.05).calls_about("f", 1.0)])])),
            each(server("t", [entry("f", [work("f", 0.2).calls_about("g", 2.0)])])),
            each(server("u", [serves("g", last)])),
        ];
        model([], tasks)
    };
    let mut models: Vec<Model> =
        [(3, 1.0, 0.05, 1.0, 0.25), (5, 2.0, 0.25, 1.0, 0.05), (8, 2.0, 0.05, 3.0, 0.1), (6, 0.5, 0.1, 2.0, 0.3)].map(one_class).into();
    models.extend([three_tasks(3, 2, (1.0, 2.0), 0.05), three_tasks(2, 3, (2.0, 0.5), 0.3)]);
    let in_turn = [
        customers("c", 4, 1.0, work("c", 0.0).calls("e", 1)),
        each(server("s", [entry("e", [work("e", 0.1).calls("f", 2).calls("g", 1)])])),
        each(server("t", [serves("f", 0.2)])),
        each(server("u", [serves("g", 0.05)])),
    ];
    models.push(model([], in_turn));
    models
}

fn pools() -> Vec<Model> {
    let of = |(n, think, s, z, t, threads): (u32, f64, f64, f64, f64, u32)| {
        three_layers(n, think, work("c", 0.1).calls_about("e", 1.0), work("e", s).calls_about("f", z), threads, serves("f", t))
    };
    let mut models: Vec<Model> =
        [(4, 1.0, 0.3, 1.0, 0.5, 2), (6, 1.0, 0.1, 2.0, 0.3, 3), (6, 2.0, 0.8, 1.0, 0.3, 3), (8, 4.0, 0.5, 1.0, 0.4, 2)].map(of).into();
    let tasks = [customers("c", 4, 1.0, work("c", 0.0).calls_about("e", 1.0)), server("s", [serves("e", 0.5)]).times(2.0)];
    models.push(model([], tasks));
    models
}

/// A web server's threads, all busy, before an application that calls a database and a directory on the application's processor.
fn below_a_full_pool() -> Vec<Model> {
    let of = |customers_who: (u32, f64), web: (u32, f64), application: (f64, f64), database: f64, directory: (f64, f64)| {
        let ((n, think), (threads, own), (work_there, asked), (looked_up, look_up)) = (customers_who, web, application, directory);
        let tasks = [
            customers("c", n, think, work("c", 0.0).calls_about("web", 1.0)),
            server("s", [entry("web", [work("web", own).calls_about("app", 1.0).calls_about("dir", looked_up)])]).times(f64::from(threads)),
            server("a", [entry("app", [work("app", work_there).calls_about("db", asked)])]),
            server("d", [serves("dir", look_up)]).on("a"),
            server("b", [serves("db", database)]),
        ];
        model([pool_processor("s", threads)], tasks)
    };
    vec![
        of((6, 0.5), (3, 0.3), (0.12, 2.0), 0.1, (0.2, 1.2)),
        of((6, 0.5), (2, 0.2), (0.1, 2.0), 0.1, (0.5, 0.4)),
        of((8, 1.0), (4, 0.3), (0.2, 1.0), 0.1, (0.3, 0.5)),
        of((5, 0.2), (3, 0.1), (0.3, 1.0), 0.1, (0.5, 0.3)),
        of((6, 0.5), (3, 0.4), (0.2, 3.0), 0.05, (0.4, 0.3)),
        of((6, 1.0), (3, 0.1), (0.1, 2.0), 0.15, (0.3, 0.6)),
    ]
}

/// As many threads as cores that are nearly always there, and one that is seldom.
fn unlike_pools() -> Vec<Model> {
    let of = |scheduling, cores: u32, (served, seldom): (f64, f64), busy: (u32, f64, f64), others: (u32, f64, f64)| {
        let ((n, think, own), (m, pause, visits)) = (busy, others);
        let tasks = [
            customers("c", n, think, work("c", own).calls_about("e", 1.0)),
            customers("d", m, pause, work("d", own).calls_about("f", 1.0).calls_about("e", visits)),
            server("s", [serves("e", served)]).on("one").times(f64::from(cores)),
            server("t", [serves("f", seldom)]).on("one"),
        ];
        model([processor("one", scheduling, cores)], tasks)
    };
    vec![
        of(ProcessorScheduling::Ps, 2, (0.4, 0.3), (4, 0.0, 0.1), (1, 1.0, 1.0)),
        of(ProcessorScheduling::Fcfs, 2, (1.6, 0.2), (3, 0.0, 0.5), (1, 1.0, 2.0)),
        of(ProcessorScheduling::Fcfs, 3, (0.5, 0.2), (5, 0.5, 0.1), (2, 3.0, 1.0)),
    ]
}

fn second_phases() -> Vec<Model> {
    let of = |(n, think, first, second, calls): (u32, f64, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.1).calls_about("e", calls)),
            server("s", [entry("e", [work("e1", first), work("e2", second).calls_about("f", 0.5)])]),
            server("t", [serves("f", 0.2)]),
        ];
        model([], tasks)
    };
    [(1, 0.0, 0.5, 0.5, 1.0), (2, 1.0, 0.3, 0.3, 1.0), (4, 3.0, 0.1, 0.6, 1.0), (3, 1.0, 0.2, 0.2, 2.0)].map(of).into()
}

fn second_phases_on_one_processor() -> Vec<Model> {
    let of = |(n, think, second, threads): (u32, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.0).calls_about("e", 1.0)),
            server("s", [entry("e", [work("e", 0.2).calls_about("f", 1.0)])]).on("one").times(threads),
            server("t", [entry("f", [work("f1", 0.2), work("f2", second)])]).on("one"),
        ];
        model([], tasks)
    };
    [(2, 1.0, 0.3, 1.0), (3, 2.0, 0.2, 2.0), (4, 3.0, 0.4, 2.0)].map(of).into()
}

/// Threads that come back to a processor while their last second phase goes on there: to a task that has a thread for each request, or two;
/// and to two tasks of one.
fn second_phases_below_few_threads() -> Vec<Model> {
    let of = |(n, think, [before, after], calls, threads, [first, second]): (u32, f64, [f64; 2], f64, f64, [f64; 2])| {
        let caller = work("s1", before).calls_about("e", calls);
        let late = (after > 0.0).then(|| work("s2", after));
        let tasks = [
            customers("c", n, think, work("c", 0.1).calls_about("s", 1.0)),
            server("s", [entry("s", [caller].into_iter().chain(late))]),
            server("t", [entry("e", [work("e1", first), work("e2", second)])]).times(threads),
        ];
        model([pool_processor("t", 1)], tasks)
    };
    let two = [
        customers("c", 3, 1.0, work("c", 0.05).calls_about("s", 1.0)),
        server("s", [entry("s", [work("s", 0.05).calls_about("e", 1.0).calls_about("f", 0.5)])]),
        server("t", [entry("e", [work("e1", 0.1), work("e2", 0.4)])]).on("p"),
        server("u", [entry("f", [work("f1", 0.1), work("f2", 0.2)])]).on("p"),
    ];
    let two = model([pool_processor("p", 1)], two);
    let infinite = f64::INFINITY;
    [
        (8, 1.0, [0.1, 0.0], 1.0, infinite, [0.1, 0.4]),
        (3, 0.0, [0.3, 0.0], 0.5, infinite, [0.13, 0.53]),
        (4, 0.5, [0.05, 0.18], 1.0, infinite, [0.07, 0.5]),
        (3, 3.0, [0.28, 0.0], 2.0, infinite, [0.06, 0.53]),
        (4, 1.0, [0.44, 0.06], 2.0, 2.0, [0.5, 0.5]),
    ]
    .map(of)
    .into_iter()
    .chain([two])
    .collect()
}

/// Pools of fewer threads than customers before one or two servers that go on after the reply.
fn second_phases_below_busy_threads() -> Vec<Model> {
    let of = |(n, think, threads, calls, servers): (u32, f64, f64, f64, &[[f64; 2]])| {
        let mut caller = work("s", 0.27);
        let mut tasks = vec![];
        for (server_name, &[first, second]) in ["t", "u"].into_iter().zip(servers) {
            let name = format!("{server_name}e");
            caller = caller.calls_about(&name, calls);
            tasks.push(server(server_name, [entry(&name, [work(&format!("{name}1"), first), work(&format!("{name}2"), second)])]));
        }
        tasks.insert(0, server("s", [entry("s", [caller])]).times(threads));
        tasks.insert(0, customers("c", n, think, work("c", 0.0).calls("s", 1)));
        model([], tasks)
    };
    let (one, two) = ([[0.34, 0.16]], [[0.35, 0.2]; 2]);
    [
        (6, 3.0, 4.0, 3.0, &one[..]),
        (4, 3.0, 2.0, 3.0, &one),
        (5, 6.0, 4.0, 1.0, &one),
        (5, 0.1, 4.0, 3.0, &one),
        (4, 3.0, 2.0, 3.0, &two),
        (4, 0.3, 2.0, 1.0, &two),
    ]
    .map(of)
    .into()
}

/// Several threads at a core of their own, of customers and of a pool, one or two such tasks.
fn second_phases_of_several_threads() -> Vec<Model> {
    let of = |(n, think, calls, threads, phases, cores): (u32, f64, f64, f64, &[[f64; 2]], u32)| {
        let mut caller = work("s", 0.1);
        let (mut tasks, mut processors) = (vec![], vec![]);
        for (server_name, &[first, second]) in ["t", "u"].into_iter().zip(phases) {
            let name = format!("{server_name}e");
            caller = caller.calls_about(&name, calls);
            let phases = [work(&format!("{name}1"), first), work(&format!("{name}2"), second)];
            tasks.push(server(server_name, [entry(&name, phases)]).times(threads).on(server_name));
            processors.push(processor(server_name, ProcessorScheduling::Fcfs, cores));
        }
        tasks.insert(0, server("s", [entry("s", [caller])]).times(3.0));
        tasks.insert(0, customers("c", n, think, work("c", 0.0).calls("s", 1)));
        model(processors, tasks)
    };
    let (one, late, two) = ([[0.4, 0.2]], [[0.2, 0.4]], [[0.4, 0.2], [0.36, 0.13]]);
    [
        (3, 1.0, 1.0, 2.0, &one[..], 1),
        (5, 3.0, 2.0, 3.0, &one, 1),
        (3, 0.3, 2.0, 3.0, &late, 1),
        (5, 3.0, 1.0, 3.0, &late, 2),
        (5, 1.0, 1.0, 2.0, &two, 1),
        (4, 3.0, 1.0, 2.0, &two, 1),
    ]
    .map(of)
    .into()
}

/// Customers that come back to a processor while their last second phase goes on there: to the same task, and to another one.
fn second_phases_left_behind() -> Vec<Model> {
    let of = |(n, think, threads, calls, other): (u32, f64, f64, f64, f64)| {
        let mut cycle = work("c", 0.1).calls_about("e", calls);
        let mut tasks = vec![server("s", [entry("e", [work("e", 0.3), work("l", 0.6)])]).times(threads).on("cpu")];
        if other > 0.0 {
            cycle = cycle.calls_about("f", 1.0);
            tasks.push(server("t", [serves("f", other)]).times(threads).on("cpu"));
        }
        tasks.insert(0, customers("c", n, think, cycle));
        model([pool_processor("cpu", 1)], tasks)
    };
    let infinite = f64::INFINITY;
    [
        (1, 2.0, infinite, 1.0, 0.0),
        (3, 2.0, infinite, 1.0, 0.0),
        (1, 2.0, infinite, 2.0, 0.0),
        (2, 2.0, infinite, 2.0, 0.0),
        (1, 2.0, 2.0, 2.0, 0.0),
        (3, 2.0, 2.0, 2.0, 0.0),
        (1, 2.0, 1.0, 1.0, 0.4),
        (3, 2.0, 1.0, 1.0, 0.4),
        (2, 2.0, infinite, 1.0, 0.4),
    ]
    .map(of)
    .into()
}

/// Tasks that reply before they do anything, alone, to two classes and between a task and its callee.
fn replies_at_once() -> Vec<Model> {
    let at_once = |name: &str, late: Activity| entry(name, [work(&format!("{name}1"), 0.0), late]);
    let of = |(n, think, second): (u32, f64, f64)| {
        model([], [customers("c", n, think, work("c", 0.0).calls_about("e", 1.0)), server("s", [at_once("e", work("e2", second))])])
    };
    let threads = [
        customers("a", 4, 1.0, work("a", 0.0).calls_about("e", 1.0)),
        customers("b", 1, 2.0, work("b", 0.0).calls_about("f", 1.0)),
        server("s", [at_once("e", work("e2", 0.3)), entry("f", [work("f1", 0.2), work("f2", 0.3)])]).times(3.0).on("cpu"),
    ];
    let between = [
        customers("c", 3, 1.0, work("c", 0.1).calls_about("e", 1.0)),
        server("s", [at_once("e", work("e2", 0.1).calls_about("f", 1.0))]),
        server("t", [serves("f", 0.2)]),
    ];
    [(1, 0.5, 0.5), (4, 1.0, 0.3)].map(of).into_iter().chain([model([pool_processor("cpu", 1)], threads), model([], between)]).collect()
}

fn forwarding() -> Vec<Model> {
    let of = |(n, think, probability, first, second): (u32, f64, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.1).calls_about("e", 1.0)),
            server("s", [forwards(serves("e", first), "f", probability)]),
            server("t", [serves("f", second)]),
        ];
        model([], tasks)
    };
    [(2, 1.0, 1.0, 0.3, 0.5), (2, 1.0, 0.6, 0.5, 0.8), (4, 2.0, 0.5, 0.4, 0.4), (5, 4.0, 0.9, 0.2, 0.6)].map(of).into()
}

/// Queues that hold so many requests that next to none is lost.
fn roomy(task: Task) -> Task {
    Task { queue_length: 60.0.into(), ..task }
}

fn asynchronous() -> Vec<Model> {
    let of = |(n, think, demand, below): (u32, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.2).calls_about("e", 1.0)),
            server("s", [entry("e", [work("e", 0.3).sends("f", 1)])]),
            roomy(server("t", [entry("f", [work("f", demand).calls_about("g", below)])])),
            server("u", [serves("g", 0.2)]),
        ];
        model([], tasks)
    };
    [(1, 1.0, 0.5, 0.0), (2, 2.0, 0.5, 0.5), (2, 3.0, 0.6, 1.0)].map(of).into()
}

fn open_arrivals() -> Vec<Model> {
    let of = |(rate, n, demand, second): (f64, u32, f64, f64)| {
        let tasks = [
            roomy(server("o", [open(entry("o", [work("o", demand).calls_about("f", 1.0)]), rate)])),
            customers("c", n, 2.0, work("c", 0.0).calls_about("f", 1.0)),
            server("t", [entry("f", [work("f1", 0.3), work("f2", second)])]),
        ];
        model([], tasks)
    };
    [(0.5, 1, 0.4, 0.0), (0.8, 2, 0.3, 0.0), (0.4, 2, 0.5, 0.3)].map(of).into()
}

/// Services of one length, where the arrival theorem holds; then open requests that are served much longer.
fn open_beside_customers() -> Vec<Model> {
    let of = |(n, think, demand, rate, longer): (u32, f64, f64, f64, f64)| {
        let tasks = [
            customers("c", n, think, work("c", 0.0).calls_about("e", 1.0)),
            roomy(server("s", [serves("e", demand), open(serves("f", longer), rate)])),
        ];
        model([], tasks)
    };
    [(2, 1.0, 0.5, 0.6, 0.5), (1, 0.2, 0.1, 0.05, 10.0), (1, 1.0, 0.1, 0.1, 5.0), (2, 1.0, 0.3, 0.2, 2.0), (2, 2.0, 0.5, 0.1, 4.0)]
        .map(of)
        .into()
}

fn sharing() -> Vec<Model> {
    let of = |(n, m, first, second, servers): (u32, u32, f64, f64, u32)| {
        let tasks = [
            customers("a", n, 1.0, work("a", 0.0).calls_about("e", 1.0)),
            customers("b", m, 2.0, work("b", 0.0).calls_about("f", 1.0)),
            server("s", [entry("e", [work("e", first).calls_about("g", 1.0)])]).times(2.0).on("ps"),
            server("t", [serves("f", second)]).times(2.0).on("ps"),
            server("u", [serves("g", 0.1)]),
        ];
        model([processor("ps", ProcessorScheduling::Ps, servers)], tasks)
    };
    [(2, 2, 0.3, 0.3, 1), (3, 1, 0.2, 1.0, 1), (3, 3, 0.5, 0.8, 2)].map(of).into()
}

fn graph(n: u32, task: Task) -> Model {
    let tasks = [customers("c", n, 1.0, work("c", 0.1).calls_about("e", 1.0)), task, server("t", [serves("f", 0.2)])];
    model([], tasks)
}

fn activities() -> [Activity; 4] {
    [work("a", 0.1), work("b", 0.3).calls_about("f", 1.0), work("c", 0.2), work("d", 0.1)]
}

fn branches() -> Vec<Model> {
    let task = || server("s", [starts("e", "a")]);
    let chosen = [chooses("a", &[(0.3, "b"), (0.7, "c")]), merges(&["b", "c"], "d")];
    let repeated = [repeats("a", &[(1.5, "b"), (0.5, "c")], "d")];
    vec![
        graph(3, task().graph(activities(), chosen.clone()).replies("e", "d")),
        graph(3, task().graph(activities(), chosen).replies("e", "d").times(2.0)),
        graph(3, task().graph(activities(), repeated).replies("e", "d")),
    ]
}

fn parallel() -> Vec<Model> {
    let task = |threads: f64| {
        let all = [forks("a", &["b", "c"]), joins(&["b", "c"], 0, "d")];
        server("s", [starts("e", "a")]).graph(activities(), all).replies("e", "d").times(threads)
    };
    vec![graph(1, task(1.0)), graph(3, task(1.0).on("delay")), graph(3, task(2.0))]
}

/// Forks whose branches need the processor at the same time, of one customer and of several, with and without time elsewhere.
fn branches_on_one_processor() -> Vec<Model> {
    let of = |(n, think, b, c, calls): (u32, f64, f64, f64, f64)| {
        let activities = [work("a", 0.2), work("b", b).calls_about("f", calls), work("c", c), work("d", 0.1)];
        let all = [forks("a", &["b", "c"]), joins(&["b", "c"], 0, "d")];
        let task = server("s", [starts("e", "a")]).graph(activities, all).replies("e", "d").times(f64::from(n));
        model([], [customers("c", n, think, work("c", 0.0).calls("e", 1)), task, server("t", [serves("f", 0.3)])])
    };
    let of_one = [(1, 0.0, 0.5, 0.5, 0.0), (1, 0.0, 0.9, 0.1, 0.0), (1, 0.5, 0.2, 0.4, 1.0)];
    let of_several =
        [(2, 0.0, 0.5, 0.5, 0.0), (2, 0.0, 0.9, 0.1, 0.0), (2, 1.0, 0.7, 0.3, 0.0), (2, 0.0, 0.3, 0.6, 1.0), (3, 3.0, 0.4, 0.4, 0.0)];
    of_one.into_iter().chain(of_several).map(of).collect()
}

fn quorums() -> Vec<Model> {
    let task = |threads: f64| {
        let first = [forks("a", &["b", "c"]), joins(&["b", "c"], 1, "d")];
        server("s", [starts("e", "a")]).graph(activities(), first).replies("e", "d").times(threads)
    };
    vec![graph(1, task(1.0)), graph(3, task(2.0))]
}

fn replication() -> Vec<Model> {
    let of = |(clients, out, servers, fan_in): (f64, f64, f64, f64)| {
        let fans = |task: &str, value: f64| vec![Fan { task: task.into(), value: value.into() }];
        let client = customers("c", 2, 1.0, work("c", 0.2).calls_about("e", 1.0));
        let client = Task { replication: clients.into(), fan_out: fans("s", out), ..client };
        let task = Task { replication: servers.into(), fan_in: fans("c", fan_in), ..server("s", [serves("e", 0.5)]) };
        let mut model = model([], [client, task]);
        model.processors.iter_mut().filter(|p| p.name == "s").for_each(|p| p.replication = servers.into());
        model
    };
    let mut models: Vec<Model> = [(1.0, 2.0, 2.0, 1.0), (2.0, 1.0, 1.0, 2.0), (2.0, 2.0, 2.0, 2.0)].map(of).into();
    models.extend([[1, 1], [2, 1], [2, 2]].map(|[upper, lower]| replicated_layers(upper, lower)));
    models
}

/// Four copies of a customer over two layers of two copies each, of which a copy calls `upper` and `lower` (case 4 of Pan's thesis, as in the
/// LQN tools' regression models).
fn replicated_layers(upper: u32, lower: u32) -> Model {
    let fans = |task: &str, value: u32| vec![Fan { task: task.into(), value: f64::from(value).into() }];
    let client = customers("c", 1, 0.0, work("c", 1.0).calls_about("e", 1.0));
    let middle = server("s", [entry("e", [work("e", 1.0).calls_about("f", 1.0)])]);
    let tasks = [
        Task { replication: 4.0.into(), fan_out: fans("s", upper), ..client },
        Task { replication: 2.0.into(), fan_in: fans("c", 2 * upper), fan_out: fans("t", lower), ..middle },
        Task { replication: 2.0.into(), fan_in: fans("s", lower), ..server("t", [serves("f", 1.0)]) },
    ];
    let mut model = model([], tasks);
    model.processors.iter_mut().filter(|p| p.name != "delay").for_each(|p| p.replication = 2.0.into());
    model
}

fn locks() -> Vec<Model> {
    vec![semaphore(1.0, 1.0, [0.2, 0.3]), semaphore(2.0, 2.0, [0.1, 0.1]), read_write_lock(2.0, 0.1)]
}

fn processor_priorities() -> Vec<Model> {
    let of = |(discipline, n, m): (ProcessorScheduling, u32, u32)| {
        let class = |name: &str, n, think, demand, priority| {
            let e = format!("{name}e");
            let task = server(&format!("{name}s"), [serves(&e, demand)]).scheduled(TaskScheduling::Inf).on("cpu").priority(priority);
            [customers(name, n, think, work(name, 0.0).calls_about(&e, 1.0)), task]
        };
        let tasks = class("high", n, 2.0, 0.5, 2.0).into_iter().chain(class("low", m, 1.0, 0.5, 1.0));
        model([processor("cpu", discipline, 1)], tasks)
    };
    [(ProcessorScheduling::Pri, 1, 2), (ProcessorScheduling::Pri, 3, 2), (ProcessorScheduling::Hol, 2, 2)].map(of).into()
}

fn task_priorities() -> Vec<Model> {
    let of = |(n, m, demand): (u32, u32, f64)| {
        let client = |name: &str, n, priority| customers(name, n, 2.0, work(name, 0.0).calls_about("e", 1.0)).priority(priority);
        model([], [client("a", n, 5.0), client("b", m, 1.0), server("s", [serves("e", demand)]).scheduled(TaskScheduling::Hol)])
    };
    [(3, 3, 0.5), (1, 3, 0.7)].map(of).into()
}

/// Queues that some customers never leave to the less urgent for long.
fn full_priorities() -> Vec<Model> {
    let of = |(urgent, middle, least, away): (u32, u32, u32, f64)| {
        let client = |name: &str, n, priority| customers(name, n, away, work(name, 0.0).calls_about("e", 1.0)).priority(priority);
        let clients = [client("a", urgent, 3.0), client("b", middle, 2.0), client("c", least, 1.0)];
        model([], clients.into_iter().chain([server("s", [serves("e", 1.0)]).scheduled(TaskScheduling::Hol)]))
    };
    [(1, 1, 1, 0.3), (1, 1, 4, 0.3), (2, 1, 3, 1.0), (1, 1, 2, 0.3)].map(of).into()
}

/// Part of the requests that a bound may lose without being seen in the errors.
const LOSS: f64 = 1e-5;

/// Relative errors of the layered solver; `None` where it refuses the model. The bounds that the chain needs are not for it.
fn errors(model: &Model) -> Option<Vec<f64>> {
    let exact = solved(model);
    let lost = exact.entries.values().filter_map(|e| e.loss_probability).chain(exact.calls.iter().filter_map(|c| c.loss_probability));
    assert!(lost.fold(0.0, f64::max) < LOSS, "a queue is too short");
    let mut unbounded = model.clone();
    unbounded.tasks.iter_mut().for_each(|t| t.queue_length = 0.0.into());
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    match solve(&unbounded, &Bindings::new(), &options) {
        Ok(solution) => {
            assert!(solution.converged, "{:?}", solution.diagnostics);
            let throughputs = exact
                .tasks
                .iter()
                .filter(|(_, task)| task.throughput > 0.0)
                .map(|(name, task)| solution.tasks[name].throughput / task.throughput);
            let responses = exact.entries.iter().filter_map(|(name, e)| Some(solution.entries[name].open_wait_time? / e.open_wait_time?));
            Some(throughputs.chain(responses).map(|ratio| (ratio - 1.0).abs()).collect())
        }
        Err(SolveError::Unsupported { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// A model of each kind that the layered solver takes, its queues without bounds.
pub fn one_of_each_kind() -> Vec<(&'static str, Model)> {
    let taken = table().into_iter().filter(|(.., expected)| !matches!(expected, Refused));
    taken
        .filter_map(|(kind, models, _)| {
            let mut model = models.into_iter().next_back()?;
            model.tasks.iter_mut().for_each(|t| t.queue_length = 0.0.into());
            Some((kind, model))
        })
        .collect()
}

#[test]
fn layered_errors_are_as_stated() {
    let (mut measured, mut wrong) = (String::from("kind, models, mean and worst error in per cent\n"), Vec::new());
    for (kind, models, expected) in table() {
        let found: Vec<Option<Vec<f64>>> = models.iter().map(errors).collect();
        let all: Vec<f64> = found.iter().flatten().flatten().copied().collect();
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let (mean, worst) =
            (100.0 * all.iter().fold(0.0, |a, b| a + b) / all.len().max(1) as f64, 100.0 * all.iter().fold(0.0_f64, |a, &b| a.max(b)));
        let refused = found.iter().filter(|f| f.is_none()).count();
        let _ = writeln!(measured, "{kind:<32} {:>2} {mean:6.2} {worst:6.2}  {refused} refused", models.len());
        let as_stated = match expected {
            Within(most, worst_of_all) => refused == 0 && mean <= most && worst <= worst_of_all,
            Refused => refused == models.len(),
        };
        if !as_stated {
            wrong.push(kind);
        }
    }
    assert!(wrong.is_empty(), "not as stated: {wrong:?}\n{measured}");
}
