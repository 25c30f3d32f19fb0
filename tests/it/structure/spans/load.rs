//! Instances and hosts that come and go.

use super::*;

/// The model with what the spans say beside.
fn model(b: &Build) -> Extraction {
    let mut run = b.run();
    run.interactions.hints = run.hints.clone();
    run.model()
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
    assert!(model(&b).model.processor("web_cpu").unwrap().multiplicity.is(1.0));
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
