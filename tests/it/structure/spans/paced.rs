//! Customers that make the requests that were seen, and recordings that were made one after another.

use layerfit::{
    model::{Bindings, Model},
    solve::{SolveOptions, solve},
    structure::interactions::{Evidence, SeenLoad, Workload},
};

use super::{load::Random, *};

fn load(run: &Run) -> (Workload, SeenLoad) {
    let client = run.hints.processes["Client"].clone();
    (client.workload.unwrap(), client.seen.unwrap())
}

fn throughput(mut run: Run, options: &ExtractOptions) -> f64 {
    run.interactions.hints = run.hints.clone();
    let model: Model = to_model("spans", run.interactions, options).unwrap().model;
    solve(&model, &Bindings::default(), &SolveOptions::default()).unwrap().entries["web.get"].throughput
}

fn by_operation() -> ExtractOptions {
    ExtractOptions { merge: MergeKey::Operation, demands: Demands::SelfTimes, seconds_per_tick: 1e-9, ..ExtractOptions::default() }
}

/// A session of `n` requests of web from `at` on, in milliseconds; they take 50 ms, and users think 2 s, in the mean.
fn session(b: &mut Build, random: &mut Random, name: &str, mut at: f64, n: usize) {
    for _ in 0..n {
        let (trace, lasts) = (b.spans.len() as u128 + 1, random.exponential(50.0));
        b.server((1, 0), "web", "get", (at, at + lasts)).trace(trace).with(Attribute::Session, name);
        at += lasts + random.exponential(2000.0);
    }
}

/// Users who come and go, one in the mean, and 25 of them who start at the same time.
fn with_a_burst() -> Build {
    let (mut b, mut random, mut at) = (Build::default(), Random(5), 0.0);
    for user in 0..300 {
        at += random.exponential(10_000.0);
        session(&mut b, &mut random, &format!("s{user}"), at, 6);
    }
    for user in 0..25 {
        session(&mut b, &mut random, &format!("b{user}"), 1_000_000.0 + f64::from(user), 6);
    }
    b
}

#[test]
fn sessions_that_start_together_do_not_make_a_rate() {
    let run = with_a_burst().run();
    let (workload, seen) = load(&run);
    let Workload::Closed { customers, think_time } = workload else { panic!("{workload:?}") };
    assert_eq!(seen.evidence, Some(Evidence::Sessions(325)));
    assert!(customers <= 3.0 && think_time > 0.5, "{workload:?}");
    let rate = throughput(run, &by_operation());
    assert!((rate / seen.rate - 1.0).abs() < 0.05, "{rate} {seen:?}");
}

/// Fewer than one session is active in the mean, and two now and then: one customer makes as many requests.
#[test]
fn less_than_one_active_session_keeps_its_rate() {
    let (mut b, mut random, mut at) = (Build::default(), Random(5), 0.0);
    for user in 0..200 {
        at += random.exponential(40_000.0);
        session(&mut b, &mut random, &format!("s{user}"), at, 6);
    }
    let run = b.run();
    let (workload, seen) = load(&run);
    assert!(matches!(workload, Workload::Closed { customers: 1.0, .. }), "{workload:?}");
    let rate = throughput(run, &by_operation());
    assert!((rate / seen.rate - 1.0).abs() < 0.02, "{rate} {seen:?}");
}

/// Of one in ten traces nothing is concluded on those who make the requests, but on how many there are.
#[test]
fn sampled_sessions_are_no_customers() {
    let mut b = with_a_burst();
    b.spans.iter_mut().for_each(|span| span.adjusted_count = Some(10.0));
    let (_, whole) = load(&with_a_burst().run());
    let run = b.run();
    let (workload, seen) = load(&run);
    assert_eq!(workload, Workload::Open { rate: seen.rate });
    assert!((seen.rate / whole.rate - 10.0).abs() < 1e-9, "{seen:?} {whole:?}");
    assert_eq!(run.count("sampled_sessions"), 1);
}

/// `n` requests of three users at random, ten a second, from each of these hours on.
fn recordings(hours: &[f64], n: u32) -> Vec<Build> {
    let one = |hour: &f64| {
        let (mut b, mut random, mut at) = (Build::default(), Random((hour * 10.0) as u64 + 3), hour * 3_600_000.0);
        for n in 0..n {
            at += random.exponential(100.0);
            let trace = u128::from(n) + 100_000 * (*hour as u128) + 1;
            b.server((1, 0), "web", "get", (at, at + 20.0)).trace(trace).with(Attribute::Session, &format!("u{}", n % 3));
        }
        b
    };
    hours.iter().map(one).collect()
}

fn without_sessions(builds: &mut [Build]) {
    builds.iter_mut().flat_map(|build| &mut build.spans).for_each(|span| span.attributes.clear());
}

/// Each read by itself, some of it worked off before they are merged if little is held.
fn run_merged(builds: &[Build], options: &SpanOptions) -> Run {
    let mut all = Interactions::default();
    let mut parts = builds.iter().map(|build| {
        let mut spans = Spans::new(options.clone());
        build.spans.iter().for_each(|span| spans.feed(span, &build.texts, &mut |batch| all.merge(batch)));
        spans
    });
    let mut whole = parts.next().unwrap();
    let others: Vec<Spans> = parts.collect();
    others.into_iter().for_each(|part| whole.merge(part));
    let outcome = whole.finish(&mut |batch| all.merge(batch));
    Run { interactions: all, quality: outcome.quality, hints: outcome.hints }
}

#[test]
fn time_between_recordings_does_not_count() {
    let mut builds = recordings(&[0.0, 10.0, 11.0, 40.0], 300);
    let run = run_merged(&builds, &SpanOptions::default());
    let (workload, seen) = load(&run);
    let Workload::Closed { think_time, .. } = workload else { panic!("{workload:?}") };
    assert!((seen.rate - 10.0).abs() < 1.0 && think_time < 1.0, "{workload:?} {seen:?}");
    assert_eq!(run.count("recording_pauses"), 3);
    without_sessions(&mut builds);
    let (workload, seen) = load(&run_merged(&builds, &SpanOptions::default()));
    assert_eq!(workload, Workload::Open { rate: seen.rate });
    assert!((seen.rate - 10.0).abs() < 1.0, "{seen:?}");
}

/// Recordings so long that each was summed up by itself before they are merged, in any order; and one with a pause that another fills.
#[test]
fn parts_that_were_summed_up_know_their_pauses() {
    let streamed = SpanOptions { hold_spans: 0, idle_timeout_ns: 1000 * MS, ..SpanOptions::default() };
    let mut builds = recordings(&[0.0, 20.0], 40_000);
    builds.reverse();
    without_sessions(&mut builds);
    let run = run_merged(&builds, &streamed);
    assert!((load(&run).1.rate - 10.0).abs() < 0.3, "{:?}", load(&run));
    assert_eq!(run.count("recording_pauses"), 1);
    // What was quiet in both has a third recording in it.
    let mut between = recordings(&[9.0], 40_000).remove(0);
    without_sessions(std::slice::from_mut(&mut between));
    builds.push(between);
    let run = run_merged(&builds, &streamed);
    assert!((load(&run).1.rate - 10.0).abs() < 0.3, "{:?}", load(&run));
    assert_eq!(run.count("recording_pauses"), 2);
}

/// What was recorded elsewhere meanwhile makes a pause of one file time in which nothing came.
#[test]
fn a_pause_of_one_file_is_none_where_another_goes_on() {
    let mut builds = recordings(&[0.0, 2.0], 300);
    let mut slow = Build::default();
    for n in 0..100_u32 {
        let at = 72_000.0 * f64::from(n);
        slow.server((1, 0), "cron", "run", (at, at + 72_000.0)).trace(u128::from(n) + 10_000_000);
    }
    builds.push(slow);
    let run = run_merged(&builds, &SpanOptions::default());
    assert_eq!(run.count("recording_pauses"), 0);
}

/// A system that has hundreds of requests within a second, and then none for nine, is idle for most of the time.
#[test]
fn bursts_by_a_clock_are_no_recordings() {
    let (mut b, mut random) = (Build::default(), Random(7));
    for burst in 0..40_u32 {
        for n in 0..400_u32 {
            let at = 10_000.0 * f64::from(burst) + 1000.0 * random.next();
            b.server((1, 0), "web", "get", (at, at + 1.0)).trace(u128::from(400 * burst + n) + 1);
        }
    }
    let run = b.run();
    let (_, seen) = load(&run);
    assert_eq!(run.count("recording_pauses"), 0);
    assert!((seen.rate - 16_000.0 / 391.0).abs() < 0.5, "{seen:?}");
}

#[test]
fn a_think_time_without_customers_is_told() {
    let mut b = recordings(&[0.0], 300).remove(0);
    without_sessions(std::slice::from_mut(&mut b));
    let mut run = b.run();
    run.interactions.hints = run.hints.clone();
    let extract = |options: &ExtractOptions| to_model("spans", run.interactions.clone(), options).unwrap();
    let think_time = 3.0.into();
    let with = ExtractOptions { think_time, ..by_operation() };
    assert_eq!(crate::structure::count(&extract(&with), "think_time_without_customers"), 1);
    assert_eq!(
        crate::structure::count(&extract(&ExtractOptions { customers: Some(4.0.into()), ..with }), "think_time_without_customers"),
        0
    );
    assert_eq!(crate::structure::count(&extract(&by_operation()), "think_time_without_customers"), 0);
}

/// One thread that is always busy has one core, whatever the rounding of its rate.
#[test]
fn cores_are_no_more_than_threads() {
    let (mut b, mut random) = (Build::default(), Random(9));
    let (mut ends, mut free) = ([0.0_f64; 5], 0.0_f64);
    for trace in 0..1500_u128 {
        let user = (0..5).min_by(|a, b| ends[*a].total_cmp(&ends[*b])).unwrap();
        let (at, start) = (ends[user], free.max(ends[user] + 0.5));
        free = start + random.exponential(10.0);
        ends[user] = free + 0.5;
        b.client((1, 0), "user", "get", (at, ends[user])).trace(trace + 1).on("h1", "u");
        b.server((2, 1), "web", "get", (start, free)).trace(trace + 1).on("h2", "w");
    }
    let mut run = b.run();
    assert_eq!(run.hints.processes["web"].threads, Some(1));
    run.interactions.hints = run.hints.clone();
    let found = run.model();
    let web = found.model.task("web").unwrap();
    assert_eq!(found.model.processor(&web.processor).unwrap().multiplicity.literal(), Some(1.0));
}
