use proptest::prelude::*;

use super::*;
use crate::{
    structure::{
        entries::{Accepts, Merged},
        interactions::{Branch, Interaction, InteractionKind, Occurrence, Recording},
    },
    trace::{Time, units::Units},
};

/// A forest over tasks T0, T1, …: of each occurrence its task, its parent (an earlier one), and how that requested it.
#[derive(Clone, Debug)]
struct Plan(Vec<(u32, Option<Link>)>);

/// Parent, whether its request is asynchronous, and the parent's phase.
type Link = (usize, bool, u8);

fn plans() -> impl Strategy<Value = Plan> {
    let node = (0..3_u32, any::<prop::sample::Index>(), 0..10_u8, prop::bool::weighted(0.2), 1..=2_u8);
    prop::collection::vec(node, 1..60).prop_map(|nodes| {
        let link = |(index, (task, parent, root, is_async, phase)): (usize, (u32, prop::sample::Index, u8, bool, u8))| {
            let linked = index > 0 && root > 0;
            (task, linked.then(|| (parent.index(index.max(1)), is_async, phase)))
        };
        Plan(nodes.into_iter().enumerate().map(link).collect())
    })
}

impl Plan {
    fn interactions(&self) -> Interactions {
        let mut all = Interactions::default();
        let mut units = Units::default();
        for task in 0..3 {
            units.intern(&format!("T{task}"), "");
        }
        all.units = units;
        all.scenarios.intern("s");
        all.traces.push(Recording::new("s", 0));
        for (index, (unit, parent)) in self.0.iter().enumerate() {
            let originator = parent.is_none();
            let occurrence = Occurrence { unit: *unit, number: 0, trace: 0, operation: None, originator, self_time_ticks: [None; 2] };
            all.occurrences.push(occurrence);
            if let Some((from, is_async, phase)) = *parent {
                let kind = if is_async { InteractionKind::Async } else { InteractionKind::Sync };
                all.interactions.push(Interaction {
                    kind,
                    phase,
                    from,
                    via: Vec::new(),
                    to: index,
                    branch: None,
                    times: [Time::default()].into_iter().collect(),
                });
            }
        }
        all
    }
}

fn options(merge: MergeKey) -> SummaryOptions {
    SummaryOptions { merge, ..SummaryOptions::default() }
}

/// The entries, and the entry of each occurrence.
fn merged(all: &Interactions, key: MergeKey) -> (Merged, Vec<usize>) {
    let mut summary = Summary::new(options(key));
    let class_of = summary.absorb(all);
    let merged = summary.merged(&vec![1.0; summary.scenarios.len()]);
    let entry_of = class_of.iter().map(|class| merged.entry_of[*class]).collect();
    (merged, entry_of)
}

/// Part D as the paper has it: any two identical entries are merged, until there are none.
fn naive_fixpoint(all: &Interactions) -> Vec<usize> {
    let arcs = Arcs::of(all);
    let n = all.occurrences.len();
    let mut class_of: Vec<usize> = (0..n).collect();
    let signature = |o: usize, class_of: &[usize]| {
        let mut requests = Vec::new();
        put_requests(&mut requests, arcs.from(o), class_of);
        (all.occurrences[o].unit, arcs.accepts[o], requests)
    };
    loop {
        let pair = (0..n)
            .flat_map(|a| (a + 1..n).map(move |b| (a, b)))
            .find(|(a, b)| class_of[*a] != class_of[*b] && signature(*a, &class_of) == signature(*b, &class_of));
        let Some((a, b)) = pair else { return class_of };
        let (keep, gone) = (class_of[a], class_of[b]);
        class_of.iter_mut().filter(|class| **class == gone).for_each(|class| *class = keep);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The linear pass ends where repeated pairwise merging does.
    #[test]
    fn linear_pass_is_the_naive_fixpoint(plan in plans()) {
        let all = plan.interactions();
        prop_assert_eq!(merged(&all, MergeKey::Behaviour).1, in_order_of_first(naive_fixpoint(&all)));
    }

    /// Invocations are conserved: what the entries' means say, times their weights, is the number of requests there were.
    #[test]
    fn means_times_weights_are_the_requests(plan in plans()) {
        let all = plan.interactions();
        for key in [MergeKey::Behaviour, MergeKey::BehaviourOnly, MergeKey::Operation] {
            let (merged, _) = merged(&all, key);
            for (index, entry) in merged.entries.iter().enumerate().filter(|(_, e)| e.accepts != Accepts::Nothing) {
                let received: f64 = merged.entries.iter().flat_map(|source| {
                    source.arcs.iter().filter(|arc| arc.target == index).map(|arc| arc.mean * source.n_occurrences as f64)
                }).sum();
                prop_assert!((received - entry.n_occurrences as f64).abs() < 1e-9, "{received} {entry:?}");
            }
        }
    }

    /// By operation there is one entry for each task and manner of acceptance.
    #[test]
    fn by_operation_entries_are_few(plan in plans()) {
        let all = plan.interactions();
        let (merged, _) = merged(&all, MergeKey::Operation);
        let mut kinds: Vec<_> = merged.entries.iter().map(|e| (e.task, e.accepts)).collect();
        kinds.sort_unstable();
        let n = kinds.len();
        kinds.dedup();
        prop_assert_eq!(kinds.len(), n);
    }
}

fn entry_with_self_times(times: &[[Option<f64>; 2]]) -> [Option<f64>; 2] {
    let mut all = Plan(times.iter().map(|_| (0, None)).collect()).interactions();
    for (occurrence, time) in all.occurrences.iter_mut().zip(times) {
        occurrence.self_time_ticks = *time;
    }
    merged(&all, MergeKey::Behaviour).0.entries[0].self_times.map(|time| time.map(|t| t.mean_ticks))
}

#[test]
fn unknown_first_phases_do_not_count_and_absent_second_phases_are_zero() {
    assert_eq!(entry_with_self_times(&[[Some(4.0), None], [None, None], [Some(8.0), None]]), [Some(6.0), None]);
    assert_eq!(entry_with_self_times(&[[Some(4.0), Some(3.0)], [Some(4.0), None], [Some(4.0), None]]), [Some(4.0), Some(1.0)]);
    assert_eq!(entry_with_self_times(&[[None, None]]), [None, None]);
}

/// Recordings weigh in the means of entries that are merged by operation.
#[test]
fn weights_of_recordings_enter_means() {
    let mut all =
        Plan(vec![(0, None), (1, Some((0, false, 1))), (2, Some((1, false, 1))), (0, None), (1, Some((3, false, 1)))]).interactions();
    all.traces.push(Recording { weight: 3.0, ..Recording::new("u", 0) });
    all.occurrences[3].trace = 1;
    all.occurrences[4].trace = 1;
    let (merged, entry_of) = merged(&all, MergeKey::Operation);
    let entry = &merged.entries[entry_of[1]];
    assert_eq!((entry.n_occurrences, entry.arcs[0].mean), (2, 0.25));
}

/// So do the factors of scenarios.
#[test]
fn factors_of_scenarios_enter_means() {
    let mut all =
        Plan(vec![(0, None), (1, Some((0, false, 1))), (2, Some((1, false, 1))), (0, None), (1, Some((3, false, 1)))]).interactions();
    all.scenarios.intern("other");
    all.traces.push(Recording::new("u", 1));
    all.occurrences[3].trace = 1;
    all.occurrences[4].trace = 1;
    let mut summary = Summary::new(options(MergeKey::Operation));
    let class_of = summary.absorb(&all);
    let merged = summary.merged(&[1.0, 3.0]);
    assert_eq!(merged.entries[merged.entry_of[class_of[1]]].arcs[0].mean, 0.25);
}

/// An occurrence with a fork of `n` branches, each to a task of its own.
fn forked(targets: &[(u32, u16)]) -> Interactions {
    let links = std::iter::once((0, None)).chain(targets.iter().map(|(task, _)| (*task, Some((0, false, 1)))));
    let mut all = Plan(links.collect()).interactions();
    for (interaction, (_, branch)) in all.interactions.iter_mut().zip(targets) {
        interaction.branch = Some(Branch { fork: 0, branch: *branch });
    }
    all
}

/// Branches are told apart by what they request, whichever came first.
#[test]
fn forks_of_one_shape_are_one_fork() {
    let mut all = forked(&[(1, 0), (2, 1)]);
    all.merge(forked(&[(2, 0), (1, 1)]));
    for key in [MergeKey::Behaviour, MergeKey::Operation] {
        let (merged, entry_of) = merged(&all, key);
        assert_eq!(entry_of[0], entry_of[3]);
        let forks = &merged.entries[entry_of[0]].forks;
        assert_eq!(forks.len(), 1, "{key:?}");
        assert_eq!((forks[0].mean, forks[0].branches.len()), (1.0, 2));
        assert!(forks[0].branches.iter().all(|branch| branch.len() == 1 && branch[0].mean == 1.0));
    }
    let one_after_another = Plan(vec![(0, None), (1, Some((0, false, 1))), (2, Some((0, false, 1)))]).interactions();
    all.merge(one_after_another);
    let by_behaviour = merged(&all, MergeKey::Behaviour).1;
    assert_ne!(by_behaviour[0], by_behaviour[6]);
    let (by_operation, entry_of) = merged(&all, MergeKey::Operation);
    assert_eq!(entry_of[0], entry_of[6]);
    let entry = &by_operation.entries[entry_of[0]];
    assert!((entry.forks[0].mean - 2.0 / 3.0).abs() < 1e-12 && entry.arcs.iter().all(|arc| (arc.mean - 1.0).abs() < 1e-12));
}

/// A fork of which not all branches overlapped is the fork with all of them.
#[test]
fn a_part_of_a_fork_is_that_fork() {
    let mut all = forked(&[(1, 0), (2, 1), (0, 2)]);
    all.merge(forked(&[(1, 0), (2, 1)]));
    all.merge(forked(&[(2, 0), (0, 1)]));
    let (merged, entry_of) = merged(&all, MergeKey::Operation);
    let forks = &merged.entries[entry_of[0]].forks;
    assert_eq!((forks.len(), forks[0].branches.len()), (1, 3));
    assert!((forks[0].mean - 1.0).abs() < 1e-12);
    let means: Vec<f64> = forks[0].branches.iter().map(|branch| branch[0].mean * 3.0).collect();
    assert_eq!(means.iter().map(|m| m.round() as u64).sum::<u64>(), 7, "{means:?}");
    // Made twice in one invocation, they are two.
    let mut twice = forked(&[(1, 0), (2, 1), (0, 2)]);
    let Interactions { interactions, occurrences, .. } = &mut twice;
    for (task, branch) in [(1, 0), (2, 1)] {
        let to = occurrences.len();
        occurrences.push(Occurrence { unit: task, number: 9, trace: 0, operation: None, originator: false, self_time_ticks: [None; 2] });
        let branch = Some(Branch { fork: 1, branch });
        let times = vec![Time::default()];
        interactions.push(Interaction { kind: InteractionKind::Sync, phase: 1, from: 0, via: Vec::new(), to, branch, times: times.into() });
    }
    assert_eq!(self::merged(&twice, MergeKey::Operation).0.entries[0].forks.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Halves merged are the whole: entries, customers, counts, records.
    #[test]
    fn merged_summaries_equal_one_whole(first in plans(), second in plans()) {
        for key in [MergeKey::Behaviour, MergeKey::BehaviourOnly, MergeKey::Operation] {
            let (first, second) = (first.interactions(), second.interactions());
            let mut whole = Summary::of(&first, options(key));
            whole.absorb(&second);
            let mut halves = Summary::of(&first, options(key));
            halves.merge(Summary::of(&second, options(key)));
            prop_assert_eq!(halves.merged(&[1.0]).entries, whole.merged(&[1.0]).entries);
            prop_assert_eq!(halves.counts, whole.counts);
            prop_assert_eq!(&halves.kept, &whole.kept);
            prop_assert_eq!(&halves.n_traces, &whole.n_traces);
            prop_assert_eq!(halves.most_starters(None), whole.most_starters(None));
            prop_assert_eq!(halves.serving_units(), whole.serving_units());
            let (a, b) = (halves.merged(&[1.0]), whole.merged(&[1.0]));
            prop_assert_eq!(halves.starts(&[1.0], &a), whole.starts(&[1.0], &b));
        }
    }
}

/// Renumbers classes by their first occurrence.
fn in_order_of_first(mut class_of: Vec<usize>) -> Vec<usize> {
    let mut order: IndexMap<usize, ()> = IndexMap::new();
    for class in &mut class_of {
        *class = order.insert_full(*class, ()).0;
    }
    class_of
}
