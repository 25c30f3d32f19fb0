//! Numbers of calls that are always the same are exact in the model; others are means.

use layerfit::{
    model::{Activity, CallOrder, Model},
    structure::{
        interactions::{Branch, Interaction, Occurrence, Recording},
        summary::{Summary, SummaryOptions},
        summary_to_model,
    },
    trace::Time,
};

use super::*;

/// The same spans in `n` traces.
fn repeated(mut b: Build, n: u128) -> Build {
    for trace in 2..=n {
        b.repeat(trace, 200.0 * trace as f64);
    }
    b
}

/// All work that makes calls: `ACTIVITY = 2 B.read, 1 C.write` where numbers are exact, with `~` where they are means.
fn orders(model: &Model) -> Vec<String> {
    let phases = model.tasks.iter().flat_map(|t| &t.entries).flat_map(|e| &e.phases).map(|phase| &phase.activity);
    let work: Vec<&Activity> = phases.chain(model.tasks.iter().flat_map(|t| &t.activities)).filter(|work| !work.calls.is_empty()).collect();
    let of = |work: &&Activity| {
        let sign = if work.call_order == CallOrder::Deterministic { "=" } else { "~" };
        let calls: Vec<String> = work.calls.iter().map(|call| format!("{} {}", call.mean, call.dest)).collect();
        format!("{} {sign} {}", work.name, calls.join(", "))
    };
    work.iter().map(of).collect()
}

fn check(run: &Run, expected: &[&str]) {
    let extraction = run.model();
    let defects = extraction.model.validate();
    assert!(defects.is_empty(), "{defects:?}");
    assert_eq!(orders(&extraction.model), expected);
}

/// Two calls of one entry, one of another, one after the other.
fn sequence() -> Build {
    let mut b = Build::default();
    b.server((1, 0), "api", "get", (0.0, 100.0));
    b.request((2, 1), "api", "b", "x", (10.0, 20.0), 1.0);
    b.request((4, 1), "api", "b", "x", (30.0, 40.0), 1.0);
    b.request((6, 1), "api", "c", "y", (50.0, 60.0), 1.0);
    b
}

#[test]
fn what_thirty_executions_agree_on_is_exact() {
    check(&repeated(sequence(), 30).run(), &["Client.1_ph1 = 1 api.get", "api.get_ph1 = 2 b.x, 1 c.y"]);
    check(&repeated(sequence(), 29).run(), &["Client.1_ph1 ~ 1 api.get", "api.get_ph1 ~ 2 b.x, 1 c.y"]);
}

/// One call less in one of forty executions, or one more: none of the phase's numbers is exact.
#[test]
fn one_that_differs_makes_all_of_its_phase_means() {
    let mut b = repeated(sequence(), 40);
    let lost = b.spans.iter().position(|span| span.trace == TraceId(7) && span.id == SpanId(6)).unwrap();
    b.spans.drain(lost..=lost + 1);
    check(&b.run(), &["Client.1_ph1 = 1 api.get", "api.get_ph1 ~ 2 b.x, 0.975 c.y"]);
    let mut b = repeated(sequence(), 40);
    b.client((8, 1), "api", "x", (1470.0, 1480.0)).trace(7);
    b.server((9, 8), "b", "x", (1471.0, 1479.0)).trace(7);
    check(&b.run(), &["Client.1_ph1 = 1 api.get", "api.get_ph1 ~ 2.025 b.x, 1 c.y"]);
}

/// What is done after the reply is a phase of its own.
#[test]
fn phases_are_judged_apart() {
    let mut b = Build::default();
    b.server((1, 0), "web", "get", (0.0, 60.0));
    b.client((2, 1), "web", "put", (10.0, 40.0));
    b.server((3, 2), "api", "put", (11.0, 80.0));
    b.request((4, 3), "api", "b", "x", (15.0, 25.0), 1.0);
    b.request((6, 3), "api", "c", "y", (50.0, 60.0), 1.0);
    let mut b = repeated(b, 40);
    b.client((8, 3), "api", "y", (1465.0, 1475.0)).trace(7);
    b.server((9, 8), "c", "y", (1466.0, 1474.0)).trace(7);
    check(&b.run(), &["Client.1_ph1 = 1 web.get", "web.get_ph1 = 1 api.put", "api.put_ph1 = 1 b.x", "api.put_ph2 ~ 1.025 c.y"]);
}

/// Three at once after one alone.
fn scatter() -> Build {
    let mut b = Build::default();
    b.server((1, 0), "api", "get", (0.0, 100.0));
    b.request((2, 1), "api", "b", "x", (2.0, 8.0), 1.0);
    b.request((4, 1), "api", "c", "y", (10.0, 40.0), 1.0);
    b.request((6, 1), "api", "d", "z", (10.5, 41.0), 1.0);
    b.request((8, 1), "api", "e", "w", (11.0, 42.0), 1.0);
    b
}

#[test]
fn branches_of_one_call_each_are_exact() {
    let of = |b: Build| {
        let mut work = orders(&b.run().model().model);
        work.sort();
        work.iter().map(|text| text.split_once(' ').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let mut all = of(repeated(scatter(), 40));
    all.sort();
    assert_eq!(all, ["= 1 api.get", "= 1 b.x", "= 1 c.y", "= 1 d.z", "= 1 e.w"]);
    // A branch that is missing once has a mean; what the others do stays exact.
    let mut b = repeated(scatter(), 40);
    let lost = b.spans.iter().position(|span| span.trace == TraceId(7) && span.id == SpanId(8)).unwrap();
    b.spans.drain(lost..=lost + 1);
    let mut all = of(b);
    all.sort();
    assert_eq!(all, ["= 1 api.get", "= 1 b.x", "= 1 c.y", "= 1 d.z", "~ 0.975 e.w"]);
}

/// `n` cycles in each of which A asks B `asked` times, the last `forked` of these beside one request of C.
fn beside(n: u32, asked: &[usize], forked: &[usize]) -> Interactions {
    let mut all = Interactions::default();
    let units = ["A", "B", "C"].map(|name| all.units.intern(name, ""));
    all.scenarios.intern("s");
    for trace in 0..n {
        all.traces.push(Recording::new(trace.to_string(), 0));
        let (asked, forked) = (asked[trace as usize % asked.len()], forked[trace as usize % forked.len()]);
        let from = all.occurrences.len();
        let mut occurrence = |unit: u32, originator: bool, at: Option<Branch>| {
            all.occurrences.push(Occurrence { unit, number: 1, trace, operation: None, originator, self_time_ticks: [None; 2] });
            let to = all.occurrences.len() - 1;
            if !originator {
                let times = [Time::default(), Time::default()].into_iter().collect();
                let (kind, via) = (InteractionKind::Sync, Vec::new());
                all.interactions.push(Interaction { kind, phase: 1, from, via, to, branch: at, times });
            }
        };
        occurrence(units[0], true, None);
        let in_fork = |branch: u16| Some(Branch { fork: 0, branch });
        (0..asked).for_each(|k| occurrence(units[1], false, in_fork(0).filter(|_| k + forked >= asked && forked > 0)));
        occurrence(units[2], false, in_fork(1).filter(|_| forked > 0));
    }
    all
}

/// What is outside a fork is what is left of all calls, as long as that is the same in each execution.
#[test]
fn calls_beside_a_fork_are_what_is_left() {
    let client = |asked: &[usize], forked: &[usize]| {
        // One that is asked, so that it has forks.
        let mut all = beside(40, asked, forked);
        let user = all.units.intern("U", "");
        let n_before = all.occurrences.len();
        for at in (0..n_before).filter(|at| all.occurrences[*at].originator).collect::<Vec<_>>() {
            let trace = all.occurrences[at].trace;
            all.occurrences.push(Occurrence {
                unit: user,
                number: 1,
                trace,
                operation: None,
                originator: true,
                self_time_ticks: [None; 2],
            });
        }
        let moved = all.occurrences.split_off(n_before);
        let n = moved.len();
        all.occurrences.splice(0..0, moved);
        for interaction in &mut all.interactions {
            (interaction.from, interaction.to) = (interaction.from + n, interaction.to + n);
        }
        for user in 0..n {
            let to = (n..all.occurrences.len()).find(|o| all.occurrences[*o].originator).unwrap();
            all.occurrences[to].originator = false;
            let times = [Time::default(), Time::default()].into_iter().collect();
            all.interactions.push(Interaction {
                kind: InteractionKind::Sync,
                phase: 1,
                from: user,
                via: Vec::new(),
                to,
                branch: None,
                times,
            });
        }
        let options = ExtractOptions { merge: MergeKey::Operation, ..ExtractOptions::default() };
        let mut work = orders(&to_model("m", all, &options).unwrap().model);
        work.sort();
        work
    };
    assert_eq!(client(&[3], &[1]), ["A.1_fork1_1 = 1 C.1", "A.1_fork1_2 = 1 B.1", "A.1_ph1 = 2 B.1", "U.1_ph1 = 1 A.1"]);
    // In the fork once or twice, three in all: neither number is exact.
    assert_eq!(client(&[3], &[1, 2]), ["A.1_fork1_1 = 1 C.1", "A.1_fork1_2 ~ 1.5 B.1", "A.1_ph1 ~ 1.5 B.1", "U.1_ph1 = 1 A.1"]);
    // No fork at all in half of the executions.
    assert_eq!(client(&[3], &[1, 0]), ["A.1_fork1_1 ~ 0.5 C.1", "A.1_fork1_2 ~ 0.5 B.1", "A.1_ph1 ~ 2.5 B.1, 0.5 C.1", "U.1_ph1 = 1 A.1"]);
    // The fork is the same, what is beside it varies.
    assert_eq!(client(&[3, 2], &[1]), ["A.1_fork1_1 = 1 C.1", "A.1_fork1_2 = 1 B.1", "A.1_ph1 ~ 1.5 B.1", "U.1_ph1 = 1 A.1"]);
}

/// More calls than are told apart are not known to be equally many.
#[test]
fn very_many_calls_are_a_mean() {
    let calls = |n: u64| {
        let mut b = Build::default();
        b.server((1, 0), "api", "get", (0.0, 100.0));
        for k in 0..n {
            b.request((10 + 2 * k, 1), "api", "b", "x", (1.0 + k as f64, 1.9 + k as f64), 0.1);
        }
        repeated(b, 30)
    };
    check(&calls(63).run(), &["Client.1_ph1 = 1 api.get", "api.get_ph1 = 63 b.x"]);
    check(&calls(64).run(), &["Client.1_ph1 = 1 api.get", "api.get_ph1 ~ 64 b.x"]);
}

/// Traces that stand for several, of which only some were recorded, say no less how often each makes its calls.
#[test]
fn sampled_traces_are_as_exact() {
    let mut b = repeated(sequence(), 40);
    b.spans
        .iter_mut()
        .filter(|span| span.parent.is_none())
        .for_each(|span| span.adjusted_count = Some(if span.trace.0 % 2 == 0 { 3.0 } else { 7.0 }));
    check(&b.run(), &["Client.1_ph1 = 1 api.get", "api.get_ph1 = 2 b.x, 1 c.y"]);
}

/// Two halves of the traces, each too few to tell, say together what all say.
#[test]
fn halves_say_together_what_the_whole_says() {
    let (first, second) = (repeated(scatter(), 16).run(), {
        let mut b = repeated(scatter(), 16);
        b.spans.iter_mut().for_each(|span| span.trace.0 += 100);
        b.run()
    });
    let options =
        ExtractOptions { merge: MergeKey::Operation, demands: Demands::SelfTimes, seconds_per_tick: 1e-9, ..ExtractOptions::default() };
    let kept = SummaryOptions { merge: MergeKey::Operation, ..Default::default() };
    let mut merged = Summary::of(&first.interactions, kept.clone());
    merged.merge(Summary::of(&second.interactions, kept.clone()));
    let mut whole = Summary::of(&first.interactions, kept);
    whole.absorb(&second.interactions);
    let [merged, whole] = [merged, whole].map(|summary| summary_to_model("m", summary, &options).unwrap().model);
    assert_eq!(merged, whole);
    assert!(orders(&merged).iter().all(|work| work.contains(" = ")), "{:?}", orders(&merged));
    assert!(orders(&first.model().model).iter().all(|work| work.contains(" ~ ")));
}
