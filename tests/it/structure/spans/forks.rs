//! Children that overlap are a fork with its join, reliably.

use super::*;

fn fan_out(first: (f64, f64), second: (f64, f64)) -> Build {
    let mut b = Build::default();
    b.server((1, 0), "api", "get", (0.0, 100.0));
    b.request((2, 1), "api", "c", "x", first, 0.5);
    b.request((4, 1), "api", "d", "y", second, 0.5);
    b
}

const SEQUENTIAL: [&str; 3] = ["Client sync api.get", "api.get sync c.x", "api.get sync d.y"];

#[test]
fn an_overlap_within_the_tolerance_is_none() {
    // 2 of 50 ms are less than 5 %, 4 are more.
    fan_out((10.0, 60.0), (58.0, 108.0 - 10.0)).run().check(&SEQUENTIAL);
    assert_ne!(fan_out((10.0, 60.0), (56.0, 98.0)).run().calls(), SEQUENTIAL);
}

/// Branches hold requests one after the other; forks are numbered in order of time.
#[test]
fn branches_are_sequences_and_forks_follow_one_another() {
    let mut b = Build::default();
    b.server((1, 0), "api", "get", (0.0, 200.0));
    b.request((2, 1), "api", "a", "long", (10.0, 80.0), 1.0);
    b.request((4, 1), "api", "b", "one", (12.0, 40.0), 1.0);
    b.request((6, 1), "api", "c", "two", (42.0, 70.0), 1.0);
    b.request((8, 1), "api", "d", "between", (90.0, 95.0), 1.0);
    b.request((10, 1), "api", "e", "left", (100.0, 150.0), 1.0);
    b.request((12, 1), "api", "f", "right", (101.0, 190.0), 1.0);
    b.run().check(&[
        "Client sync api.get",
        "api.get sync a.long [0:0]",
        "api.get sync b.one [0:1]",
        "api.get sync c.two [0:1]",
        "api.get sync d.between",
        "api.get sync e.left [1:0]",
        "api.get sync f.right [1:1]",
    ]);
}

/// What overlaps in nearly all occurrences is a fork in those where it did not happen to overlap, too.
#[test]
fn a_usual_fork_is_one_in_every_occurrence() {
    let mut b = fan_out((10.0, 60.0), (12.0, 70.0));
    for trace in 2..=20 {
        b.repeat(trace, 200.0 * trace as f64);
    }
    let mut odd = fan_out((10.0, 30.0), (31.0, 70.0));
    odd.spans.iter_mut().for_each(|span| span.trace = TraceId(99));
    b.spans.extend(odd.spans);
    let run = b.run();
    assert_eq!(run.calls().iter().filter(|call| call.ends_with(":1]")).count(), 21);
    let overlap = &run.quality.overlaps[0];
    assert_eq!((overlap.together, overlap.apart, overlap.called.clone()), (20, 1, ["c.x".to_owned(), "d.y".to_owned()]));
}

/// What overlaps in less than a tenth of the occurrences was jitter.
#[test]
fn a_rare_overlap_is_no_fork() {
    let mut b = fan_out((10.0, 30.0), (31.0, 70.0));
    for trace in 2..=20 {
        b.repeat(trace, 200.0 * trace as f64);
    }
    let mut odd = fan_out((10.0, 50.0), (31.0, 70.0));
    odd.spans.iter_mut().for_each(|span| span.trace = TraceId(99));
    b.spans.extend(odd.spans);
    let run = b.run();
    assert!(run.calls().iter().all(|call| !call.contains('[')), "{:?}", run.calls());
}

/// Between the two it is decided for each occurrence.
#[test]
fn a_mixed_pattern_is_decided_each_time() {
    let mut b = fan_out((10.0, 30.0), (31.0, 70.0));
    for trace in 2..=14 {
        b.repeat(trace, 200.0 * trace as f64);
    }
    for trace in 20..26 {
        let mut odd = fan_out((10.0, 50.0), (31.0, 70.0));
        odd.spans.iter_mut().for_each(|span| span.trace = TraceId(trace));
        b.spans.extend(odd.spans);
    }
    let run = b.run();
    assert_eq!(run.calls().iter().filter(|call| call.contains('[')).count(), 12);
}

/// Two chains side by side, the second of one call that is as often shorter than the first call of the other: what follows that one does not wait for it.
#[test]
fn chains_side_by_side_are_one_fork() {
    let chains = |short_ms: f64| {
        let mut b = Build::default();
        b.server((1, 0), "api", "get", (0.0, 100.0));
        b.request((2, 1), "api", "a", "one", (10.0, 40.0), 0.5);
        b.request((4, 1), "api", "a", "two", (41.0, 80.0), 0.5);
        b.request((6, 1), "api", "b", "beside", (12.0, 12.0 + short_ms), 0.5);
        b.request((8, 1), "api", "c", "last", (85.0, 90.0), 0.5);
        b
    };
    let mut all = chains(15.0);
    for trace in 2..=20 {
        let mut one = chains(if trace % 4 == 0 { 45.0 } else { 15.0 });
        one.spans.iter_mut().for_each(|span| span.trace = TraceId(trace));
        all.spans.extend(one.spans);
    }
    let run = all.run();
    let n = |of: &str| run.calls().iter().filter(|call| call.as_str() == of).count();
    let branch_of = |call: &str| run.calls().iter().filter(|c| c.starts_with(call)).cloned().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(branch_of("api.get sync a.one").len(), 1, "{:?}", run.calls());
    let suffix = |call: &str| branch_of(call).first().unwrap()[call.len()..].to_owned();
    assert_eq!(suffix("api.get sync a.one"), suffix("api.get sync a.two"));
    assert_ne!(suffix("api.get sync a.one"), suffix("api.get sync b.beside"));
    assert_eq!((branch_of("api.get sync a.two").len(), n("api.get sync c.last")), (1, 20), "{:?}", run.calls());
}

/// Many requests of one entry at once: as many branches as overlap.
#[test]
fn a_scatter_of_one_entry_is_a_fork() {
    let mut b = Build::default();
    b.server((1, 0), "api", "get", (0.0, 100.0));
    for n in 0..60_u64 {
        b.request((10 + 2 * n, 1), "api", "shard", "scan", (10.0 + n as f64 * 0.1, 90.0), 0.5);
    }
    let run = b.run();
    let branches: std::collections::BTreeSet<u16> =
        run.interactions.interactions.iter().filter_map(|i| i.branch).map(|b| b.branch).collect();
    assert!(branches.len() >= 48, "{}", branches.len());
    assert_eq!(run.quality.tasks["shard"].concurrency, 60);
}
