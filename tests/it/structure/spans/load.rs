//! What was going on at once: workloads, instances and hosts that come and go, and models that agree with the load that they are made from.

use layerfit::{
    model::{Bindings, Model, TaskScheduling},
    solve::{Solution, SolveOptions, solve},
    structure::interactions::{Evidence, ProcessHints, SeenLoad, Workload},
};

use super::*;

/// Numbers in [0, 1) by a fixed linear congruence.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }
}

fn load(b: &Build) -> (Workload, SeenLoad) {
    let client = b.run().hints.processes["Client"].clone();
    (client.workload.unwrap(), client.seen.unwrap())
}

/// The model with what the spans say beside.
fn model(b: &Build) -> Extraction {
    let mut run = b.run();
    run.interactions.hints = run.hints.clone();
    run.model()
}

fn solved(model: &Model) -> Solution {
    solve(model, &Bindings::default(), &SolveOptions::default()).unwrap()
}

/// Requests of `web`, one every so often, that last as long as is said, in milliseconds.
fn every(gap_ms: f64, n: u32, mut lasts_ms: impl FnMut() -> f64) -> Build {
    let mut b = Build::default();
    for trace in 0..n {
        let at = gap_ms * f64::from(trace);
        b.server((1, 0), "web", "get", (at, at + lasts_ms())).trace(u128::from(trace) + 1);
    }
    b
}

/// A load generator that keeps to its clock has several requests open at once, whatever the replies: no customers.
#[test]
fn a_constant_rate_is_open() {
    let mut random = Random(7);
    for b in [every(10.0, 500, || 55.0 + 5.0 * random.next()), every(10.0, 500, || 55.0)] {
        let (workload, seen) = load(&b);
        let Workload::Open { rate } = workload else { panic!("{workload:?}") };
        assert!((rate - 100.0).abs() < 1e-6 && matches!(seen.evidence, Some(Evidence::Clock(_))), "{rate} {seen:?}");
    }
}

/// Customers who do not think wait for one server that takes nearly the same time for each: they start as regularly, but where another ends.
#[test]
fn customers_before_a_regular_server_are_no_clock() {
    let mut random = Random(7);
    let mut b = Build::default();
    let (mut ends, mut now) = (vec![0.0; 8], 0.0);
    for trace in 0..500_usize {
        let start = ends[trace % 8];
        now += 9.5 + random.next();
        ends[trace % 8] = now;
        b.server((1, 0), "web", "get", (start, now)).trace(trace as u128 + 1);
    }
    let (workload, seen) = load(&b);
    let Workload::Closed { customers, think_time } = workload else { panic!("{workload:?}") };
    assert!(customers == 8.0 && think_time < 0.005, "{workload:?}");
    assert!(matches!(seen.evidence, Some(Evidence::Steady(_))), "{seen:?}");
}

/// Eight sessions whose requests take 40 ms, with as much to think as is said.
fn sessions(think_ms: f64) -> Build {
    let mut random = Random(3);
    let mut b = Build::default();
    for session in 0..8_u32 {
        let mut at = 10.0 * random.next();
        for n in 0..100_u32 {
            let lasts = 38.0 + 4.0 * random.next();
            b.server((1, 0), "web", "get", (at, at + lasts))
                .trace(u128::from(session * 100 + n) + 1)
                .with(Attribute::Session, &format!("s{session}"));
            at += lasts + random.exponential(think_ms);
        }
    }
    b
}

/// The model of customers has the throughput that they had, on cores that are more than the one which nothing says.
#[test]
fn a_closed_model_agrees_with_its_load() {
    let b = sessions(10.0);
    let (workload, seen) = load(&b);
    assert!(
        matches!(workload, Workload::Closed { customers: 8.0, .. }) && seen.evidence == Some(Evidence::Sessions(8)),
        "{workload:?} {seen:?}"
    );
    let extraction = model(&b);
    assert_eq!(crate::structure::count(&extraction, "closed_workload"), 1);
    assert_eq!(crate::structure::count(&extraction, "cores_assumed"), 1);
    let throughput = solved(&extraction.model).tasks["Client"].throughput;
    assert!((throughput / seen.rate - 1.0).abs() < 0.05, "{throughput} {}", seen.rate);
}

/// One core would be busy for less than all of the time, but self times hold the waits for it already.
#[test]
fn an_open_model_agrees_with_its_load() {
    let mut random = Random(5);
    let mut b = Build::default();
    let mut at = 0.0;
    for trace in 1..=2000_u128 {
        at += random.exponential(34.5);
        b.server((1, 0), "web", "get", (at, at + 30.0)).trace(trace);
    }
    let extraction = model(&b);
    assert_eq!(crate::structure::count(&extraction, "cores_assumed"), 1);
    let response_s = solved(&extraction.model).entries["web.get"].service_times[0].unwrap();
    assert!((response_s / 0.030 - 1.0).abs() < 0.1, "{response_s}");
}

/// Parallel requests of one caller come together: they find cores together, as if there were any number.
#[test]
fn branches_find_cores_together() {
    let mut random = Random(5);
    let mut b = Build::default();
    let mut at = 0.0;
    for trace in 1..=400_u128 {
        at += random.exponential(100.0);
        let lasts: Vec<f64> = (0..8).map(|_| random.exponential(10.0)).collect();
        let all = lasts.iter().fold(0.0, |most: f64, ms| most.max(*ms)) + 3.0;
        b.server((1, 0), "agg", "all", (at, at + all)).trace(trace);
        for (n, ms) in (1..).zip(lasts) {
            b.client((2 * n, 1), "agg", "get", (at + 1.0, at + 2.0 + ms)).trace(trace);
            b.server((2 * n + 1, 2 * n), "shard", "get", (at + 1.5, at + 1.5 + ms)).trace(trace);
        }
    }
    let mut found = model(&b).model;
    let cores = found.processor("shard_cpu").unwrap().multiplicity.literal().unwrap();
    assert!((9.0..=12.0).contains(&cores), "{cores}");
    let response_s = |model: &Model| solved(model).entries["agg.all"].service_times[0].unwrap();
    let response = response_s(&found);
    found.processors.iter_mut().for_each(|processor| processor.multiplicity = 100.0.into());
    let without_waits = response_s(&found);
    assert!((response / without_waits - 1.0).abs() < 0.05, "{response} {without_waits}");
}

/// Pods that replace one another are as many as are alive at the same time.
#[test]
fn pods_that_come_and_go_do_not_add_up() {
    let mut b = Build::default();
    for trace in 0..400_u32 {
        let (at, pod) = (100.0 * f64::from(trace), format!("pod-{}", trace / 20));
        b.server((1, 0), "web", "get", (at, at + 60.0)).trace(u128::from(trace) + 1).on(&pod, &pod);
    }
    let run = b.run();
    assert_eq!((run.hints.processes["web"].threads, run.hints.processors["web_cpu"].machines), (Some(1), Some(1)));
    let web = &run.quality.tasks["web"];
    assert_eq!((web.instances, web.instances_at_once, web.hosts, web.hosts_at_once, web.concurrency), (20, 1, 20, 1, 1));
    assert!(run.quality.text().contains("web: 20 instances (1 at the same time), 20 hosts (1 at the same time), up to 1 at once"));
    let cores = |b: &Build, processor: &str| model(b).model.processor(processor).unwrap().multiplicity.clone();
    assert_eq!(cores(&b, "web_cpu"), cores(&every(100.0, 400, || 60.0), "web_cpu"));
}

/// What is concluded of a lost span is of no instance where others of its task say theirs.
#[test]
fn lost_spans_are_no_instance() {
    let mut b = Build::default();
    for trace in 1..=40_u128 {
        let at = 100.0 * trace as f64;
        b.server((1, 0), "agg", "all", (at, at + 30.0)).trace(trace).on("h1", "agg-1");
        for (call, to) in [(2, "a"), (4, "b")] {
            let at = at + 5.0 * call as f64;
            b.client((call, 1), "agg", "get", (at, at + 8.0)).trace(trace).on("h1", "agg-1");
            b.server((call + 1, call), to, "get", (at + 1.0, at + 7.0)).trace(trace).on("h2", to);
        }
    }
    let whole = b.run();
    b.spans.retain(|span| !(span.trace.0 == 20 && span.id.0 == 3));
    let run = b.run();
    assert_eq!(run.count("client_half_alone"), 1);
    for task in ["agg", "a", "b"] {
        assert_eq!(run.hints.processes[task].threads, whole.hints.processes[task].threads, "{task}");
        assert_eq!((run.quality.tasks[task].instances, run.quality.tasks[task].concurrency), (1, 1), "{task}");
    }
}

/// Threads of web in the model; `None` for any number.
fn threads(extraction: &Extraction, task: &str) -> Option<f64> {
    let task = extraction.model.task(task).unwrap();
    (task.scheduling != TaskScheduling::Inf).then(|| task.multiplicity.literal().unwrap())
}

/// At a constant rate as many requests are open as the rate needs. As many threads would be busy nearly all of the time, and make requests wait
/// that arrive at random, but nothing tells that there are no more of them.
#[test]
fn threads_that_only_the_load_needed_are_no_limit() {
    let mut random = Random(7);
    let b = every(10.0, 500, || 55.0 + 5.0 * random.next());
    let found = model(&b);
    assert_eq!(b.run().hints.processes["web"].threads, Some(6));
    assert_eq!((threads(&found, "web"), crate::structure::count(&found, "threads_not_known")), (None, 1));
    let report = found.tasks.iter().find(|task| task.name == "web").unwrap();
    assert!(report.is_infinite && report.threads == 6, "{report:?}");
    let told = found.diagnostics.iter().find(|d| d.code == "threads_not_known").unwrap();
    assert_eq!(told.examples, ["web: 6 seen, 5.74 busy"]);
    let response_s = solved(&found.model).entries["web.get"].open_wait_time.unwrap();
    assert!((response_s / 0.0575 - 1.0).abs() < 0.1, "{response_s}");
}

/// What somebody says is so, whatever it makes of the model; and where hardly a request would wait, it is as many as were seen.
#[test]
fn threads_that_are_said_or_enough_are_kept() {
    let mut run = every(10.0, 500, || 55.0).run();
    run.interactions.hints = run.hints.clone();
    let said = ProcessHints { threads: Some(7), ..ProcessHints::default() };
    run.interactions.hints.overlay(&Hints { processes: [("web".to_owned(), said)].into_iter().collect(), ..Hints::default() });
    let found = run.model();
    assert_eq!((threads(&found, "web"), crate::structure::count(&found, "threads_not_known")), (Some(7.0), 0));
    // Two are open at once now and then.
    let mut random = Random(11);
    let mut at = 0.0;
    let mut b = Build::default();
    for trace in 1..=300_u128 {
        at += random.exponential(500.0);
        b.server((1, 0), "web", "get", (at, at + 20.0)).trace(trace);
    }
    let found = model(&b);
    assert_eq!((threads(&found, "web"), crate::structure::count(&found, "threads_not_known")), (Some(2.0), 0));
}

/// Requests that a gateway sends at random to `n` threads of a store, each of which takes 40 ms, first come, first served.
fn pool(n: usize, gap_ms: f64) -> Build {
    let mut random = Random(5);
    let (mut at, mut free) = (0.0, vec![0.0_f64; n]);
    let mut b = Build::default();
    for trace in 1..=1000_u128 {
        at += random.exponential(gap_ms);
        let thread = (0..n).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
        let start = free[thread].max(at + 0.2);
        free[thread] = start + 40.0;
        b.server((1, 0), "web", "get", (at, start + 40.4)).trace(trace).on("h1", "web");
        b.client((2, 1), "web", "read", (at + 0.1, start + 40.2)).trace(trace).on("h1", "web");
        b.server((3, 2), "store", "read", (start, start + 40.0)).trace(trace).on("h2", "store");
    }
    b
}

/// Where requests are seen to wait, the threads are those that there are; the same load on more of them is seen not to wait.
#[test]
fn threads_that_were_waited_for_are_a_limit() {
    let busy = pool(3, 16.0);
    let found = model(&busy);
    assert_eq!(threads(&found, "store"), Some(3.0));
    assert!(threads(&found, "web").is_some_and(|n| n > 5.0), "as many are open as wait below");
    let wait_s = busy.run().hints.processes["store"].seen_threads.unwrap().wait_s.unwrap();
    assert!(wait_s > 0.02, "{wait_s}");
    let found = model(&pool(30, 16.0));
    let wide = threads(&found, "store");
    assert!(wide.is_some_and(|n| n > 5.0), "{wide:?}");
}

/// Customers wait no longer than the others among them take.
#[test]
fn customers_bound_the_waits_for_threads() {
    // Eight who do not think, before three threads that are always busy.
    let (mut ends, mut free) = ([0.0_f64; 8], [0.0_f64; 3]);
    let mut random = Random(9);
    let mut b = Build::default();
    for trace in 0..800_u128 {
        let user = (0..8).min_by(|a, b| ends[*a].total_cmp(&ends[*b])).unwrap();
        let thread = (0..3).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
        let (at, start) = (ends[user], free[thread].max(ends[user]));
        let end = start + random.exponential(30.0);
        (ends[user], free[thread]) = (end, end);
        b.client((1, 0), "user", "read", (at, end)).trace(trace + 1).on("h1", "u").with(Attribute::Session, &format!("s{user}"));
        b.server((2, 1), "store", "read", (start, end)).trace(trace + 1).on("h2", "store");
    }
    let found = model(&b);
    assert!(matches!(b.run().hints.processes["user"].workload, Some(Workload::Closed { .. })));
    assert_eq!((threads(&found, "store"), crate::structure::count(&found, "threads_not_known")), (Some(3.0), 0));
}
