//! Profiles by calling context: the figures of Rohr et al. (SIPEW 2008), and what holds of every profile.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};

use layerfit::{
    structure::{
        interactions::Interactions,
        profile::{
            AtDepth, CallForm, CallStack, CallTree, DrawOptions, Level, LevelSpread, Linked, Metric, OperatorOptions, Profile,
            ProfileOptions, Siblings, TimingModel, call_trees,
        },
        same,
    },
    trace::{BadRows, Source, SourcesAre, Time, diagnostics::Diagnostics, same::ReadOptions},
};
use proptest::prelude::*;

fn seconds() -> ProfileOptions {
    ProfileOptions { seconds_per_tick: 1.0, ..ProfileOptions::default() }
}

fn at(ticks: f64) -> Time {
    Time::from_f64(ticks).unwrap()
}

fn span(start: f64, duration: f64) -> Option<[Time; 2]> {
    Some([at(start), at(start + duration)])
}

fn sync(tree: &mut CallTree, parent: Option<usize>, operation: &str, times: Option<[Time; 2]>) -> usize {
    tree.push(parent, operation, CallForm::Sync, times).unwrap()
}

/// Shares, standard deviations (two values each, around a mean) and means of the three trace-contexts of operation f.
struct F {
    n: [usize; 3],
    means: [f64; 3],
}

const SD_TRACE: [f64; 3] = [53.83, 2.20, 49.74];
const SD_STACK: f64 = 155.54;
const SD_ALL: f64 = 136.47;

impl F {
    /// Means such that the standard deviations of the first stack-context and of all observations are those of the paper.
    fn new(n: [usize; 3]) -> Self {
        let [a, b, c] = n.map(|n| n as f64);
        let within = (a * SD_TRACE[0].powi(2) + b * SD_TRACE[1].powi(2)) / (a + b);
        let apart = ((SD_STACK.powi(2) - within) * (a + b).powi(2) / (a * b)).sqrt();
        let (low, high) = (100.0, 100.0 + apart);
        let stack = (a * high + b * low) / (a + b);
        let share = (a + b) / (a + b + c);
        let within = share * SD_STACK.powi(2) + (1.0 - share) * SD_TRACE[2].powi(2);
        let third = stack - ((SD_ALL.powi(2) - within) / (share * (1.0 - share))).sqrt();
        Self { n, means: [high, low, third] }
    }

    /// One recording d(a(f, f)) for each of the first or second calls, the missing ones unobserved, and one f for each third.
    fn profile(&self) -> Profile {
        let mut profile = Profile::new(seconds());
        let value = |kind: usize, i: usize| self.means[kind] + if i.is_multiple_of(2) { SD_TRACE[kind] } else { -SD_TRACE[kind] };
        for i in 0..self.n[0].max(self.n[1]) {
            let mut tree = CallTree::default();
            let d = sync(&mut tree, None, "d", None);
            let a = sync(&mut tree, Some(d), "a", None);
            for kind in 0..2 {
                let times = if i < self.n[kind] { span(kind as f64 * 1e6, value(kind, i)) } else { None };
                sync(&mut tree, Some(a), "f", times);
            }
            profile.absorb(&tree);
        }
        for i in 0..self.n[2] {
            let mut tree = CallTree::default();
            sync(&mut tree, None, "f", span(0.0, value(2, i)));
            profile.absorb(&tree);
        }
        profile
    }

    fn levels(&self) -> Vec<LevelSpread> {
        self.profile().report(Metric::Response, &OperatorOptions::default()).operations[0].levels.clone()
    }
}

/// The shares that the paper's weighted deviations imply; they are known to some 10⁻⁴.
const PAPER: [usize; 3] = [3454, 3200, 3346];

#[test]
fn f_example_reductions_of_the_paper() {
    let levels = F::new(PAPER).levels();
    let [all, caller, stack, trace] = [0, 1, 2, 3].map(|level| levels[level]);
    assert!((all.mean_sd_s - SD_ALL).abs() < 1e-6, "{all:?}");
    assert_eq!([all, caller, stack, trace].map(|l| l.n_contexts), [1, 2, 2, 3]);
    // One unit of the last digit printed, as the shares are inferred.
    for (level, sd, reduction) in [(caller, 120.13, 0.1197), (stack, 120.13, 0.1197), (trace, 35.94, 0.7366)] {
        assert!((level.mean_sd_s - sd).abs() < 0.01, "{level:?}");
        assert!((level.sd_reduction - reduction).abs() < 0.0001, "{level:?}");
    }
}

#[test]
fn f_example_with_equal_shares() {
    let levels = F::new([3000; 3]).levels();
    assert!((levels[3].mean_sd_s - 35.3).abs() < 0.05, "{levels:?}");
    assert!((levels[2].mean_sd_s - 120.3).abs() < 0.05, "{levels:?}");
    assert!((levels[0].mean_sd_s - SD_ALL).abs() < 1e-6);
}

#[test]
fn f_example_ends_in_three_leaves() {
    let tree = F::new(PAPER).profile().context_tree(Metric::Response);
    let model = TimingModel::of(tree, &OperatorOptions::default());
    let leaves: Vec<_> = model.leaves.iter().map(|leaf| (model.tree.nodes[leaf.members[0]].level, leaf.sample.n())).collect();
    // The third has no siblings below its caller: the trace need not be known.
    assert_eq!(leaves, [(Level::Trace, 3454), (Level::Caller, 3346), (Level::Trace, 3200)]);
    let sds: Vec<f64> = model.leaves.iter().map(|leaf| leaf.sample.sd()).collect();
    assert!(sds.iter().zip([53.83, 49.74, 2.20]).all(|(sd, paper)| (sd - paper).abs() < 1e-6), "{sds:?}");
}

#[test]
fn f_example_first_and_second_call_differ() {
    let report = F::new(PAPER).profile().report(Metric::Response, &OperatorOptions::default());
    let [calls] = report.sibling_calls.as_slice() else { panic!("{:?}", report.sibling_calls) };
    assert_eq!((calls.operation.as_str(), calls.path.as_str()), ("f", "d > a > f"));
    assert_eq!(calls.calls.iter().map(|(nth, n, _)| (*nth, *n)).collect::<Vec<_>>(), [(1, 3454), (2, 3200)]);
    assert!(calls.ratio.unwrap() > 3.0);
}

/// A random recording: parents (earlier ones), operations and durations.
#[derive(Clone, Debug)]
struct Plan(Vec<(Option<usize>, usize, f64)>);

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let node = (any::<prop::sample::Index>(), 0..NAMES.len(), 0..6_u8, 1..40_u32);
    let plan = prop::collection::vec(node, 1..8).prop_map(|nodes| {
        let node = |(index, (parent, name, root, duration)): (usize, (prop::sample::Index, usize, u8, u32))| {
            ((index > 0 && root > 0).then(|| parent.index(index.max(1))), name, f64::from(duration))
        };
        Plan(nodes.into_iter().enumerate().map(node).collect())
    });
    prop::collection::vec(plan, 1..40)
}

impl Plan {
    fn tree(&self) -> CallTree {
        let mut tree = CallTree::default();
        for (index, (parent, name, duration)) in self.0.iter().enumerate() {
            sync(&mut tree, *parent, NAMES[*name], span(1000.0 * index as f64, *duration));
        }
        tree
    }

    fn children(&self, parent: Option<usize>) -> Vec<usize> {
        (0..self.0.len()).filter(|i| self.0[*i].0 == parent).collect()
    }

    fn path(&self, node: usize) -> Vec<usize> {
        let mut path = vec![self.0[node].1];
        let mut at = node;
        while let Some(parent) = self.0[at].0 {
            path.push(self.0[parent].1);
            at = parent;
        }
        path
    }

    fn text(&self, node: usize) -> String {
        let children: Vec<String> = self.children(Some(node)).iter().map(|c| self.text(*c)).collect();
        format!("{}({})", NAMES[self.0[node].1], children.join(","))
    }

    fn preorder(&self, node: usize, order: &mut Vec<usize>) {
        order.push(node);
        self.children(Some(node)).into_iter().for_each(|child| self.preorder(child, order));
    }

    /// Caller-, stack- and trace-context of every node, by the definitions.
    fn contexts(&self) -> Vec<[String; 3]> {
        let mut found = vec![Default::default(); self.0.len()];
        for root in self.children(None) {
            let mut order = Vec::new();
            self.preorder(root, &mut order);
            for (position, node) in order.into_iter().enumerate() {
                let path = self.path(node);
                let caller = format!("{}<{:?}", path[0], path.get(1));
                found[node] = [caller, format!("{path:?}"), format!("{}@{position}", self.text(root))];
            }
        }
        found
    }

    /// The recording without the executions of one operation: what they call is called by their callers.
    fn without(&self, name: usize) -> Self {
        let mut index_of = vec![None; self.0.len()];
        let mut kept = Vec::new();
        for (index, (parent, operation, duration)) in self.0.iter().enumerate() {
            let mut above = *parent;
            while let Some(parent) = above.filter(|parent| self.0[*parent].1 == name) {
                above = self.0[parent].0;
            }
            if *operation != name {
                index_of[index] = Some(kept.len());
                kept.push((above.and_then(|parent| index_of[parent]), *operation, *duration));
            }
        }
        Self(kept)
    }
}

fn profile_of<'p>(plans: impl IntoIterator<Item = &'p Plan>, options: ProfileOptions) -> Profile {
    let mut profile = Profile::new(options);
    plans.into_iter().for_each(|plan| profile.absorb(&plan.tree()));
    profile
}

/// Sizes of the contexts of each level.
fn sizes(profile: &Profile) -> [Vec<u64>; 3] {
    let tree = profile.context_tree(Metric::Response);
    [Level::Caller, Level::Stack, Level::Trace].map(|level| {
        let mut sizes: Vec<u64> = tree.partition(0, level).into_iter().map(|node| tree.nodes[node].sample.n()).collect();
        sizes.sort_unstable();
        sizes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// The levels hold exactly the classes that the three definitions give, each class in one of the coarser level.
    #[test]
    fn trace_context_implies_stack_context_implies_caller_context(plans in plans()) {
        let all: Vec<[String; 3]> = plans.iter().flat_map(Plan::contexts).collect();
        let mut defined: [BTreeMap<&str, u64>; 3] = Default::default();
        let mut implied: [BTreeMap<&str, &str>; 2] = Default::default();
        for context in &all {
            for level in 0..3 {
                *defined[level].entry(&context[level]).or_default() += 1;
            }
            for finer in 0..2 {
                let coarser = implied[finer].entry(&context[finer + 1]).or_insert(&context[finer]);
                prop_assert_eq!(*coarser, &context[finer]);
            }
        }
        let defined = defined.map(|classes| {
            let mut sizes: Vec<u64> = classes.into_values().collect();
            sizes.sort_unstable();
            sizes
        });
        let profile = profile_of(&plans, seconds());
        prop_assert_eq!(sizes(&profile), defined);
        let tree = profile.context_tree(Metric::Response);
        for node in &tree.nodes[1..] {
            prop_assert!(tree.nodes[node.parent.unwrap()].level < node.level);
        }
    }

    /// Every application of the operators ends in a partition of all observations, with few enough leaves, none of them too
    /// small without a link, none without siblings below the operation.
    #[test]
    fn operators_end_in_a_partition(plans in plans(), enough in 1..30_u64, max_leaves in 1..6_usize, tolerance in 0.0..0.5_f64) {
        let options = OperatorOptions { enough, max_leaves, median_tolerance: tolerance, iqr_ratio: 1.0 + tolerance };
        let model = TimingModel::of(profile_of(&plans, seconds()).context_tree(Metric::Response), &options);
        let tree = &model.tree;
        let mut covered = BTreeSet::new();
        for leaf in &model.leaves {
            let members: u64 = leaf.members.iter().map(|member| tree.nodes[*member].sample.n()).sum();
            prop_assert_eq!(members, leaf.sample.n());
            for member in &leaf.members {
                for finest in tree.partition(*member, Level::Trace) {
                    prop_assert!(covered.insert(finest), "in two leaves");
                }
            }
            let alone = leaf.members == [leaf.operation];
            prop_assert!(leaf.sample.n() >= enough || leaf.linked_to.is_some() || alone, "{leaf:?}");
            if let Some(linked) = leaf.linked_to {
                prop_assert!(tree.nodes[linked].sample.n() >= enough || linked == leaf.operation);
            }
            let parent = tree.nodes[leaf.members[0]].parent.unwrap();
            prop_assert!(alone || tree.nodes[parent].children.len() > leaf.members.len());
        }
        prop_assert_eq!(covered.len(), tree.partition(0, Level::Trace).len());
        for operation in tree.operations() {
            prop_assert!(model.leaves.iter().filter(|leaf| leaf.operation == *operation).count() <= max_leaves);
        }
    }

    /// Two parts of the recordings, merged in either order, are the whole.
    #[test]
    fn merged_halves_are_the_whole(plans in plans(), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(plans.len());
        let whole = profile_of(&plans, seconds());
        let (first, second) = (profile_of(&plans[..cut], seconds()), profile_of(&plans[cut..], seconds()));
        let (mut forth, mut back) = (first.clone(), second.clone());
        forth.merge(second);
        back.merge(first);
        for merged in [forth, back] {
            for metric in [Metric::Response, Metric::SelfTime] {
                let (merged, whole) = (merged.context_tree(metric), whole.context_tree(metric));
                prop_assert_eq!(merged.nodes.len(), whole.nodes.len());
                for (merged, whole) in merged.nodes.iter().zip(&whole.nodes) {
                    prop_assert_eq!((&merged.name, merged.sample.n()), (&whole.name, whole.sample.n()));
                    prop_assert_eq!(merged.sample.cumulated(), whole.sample.cumulated());
                    let scale = 1.0 + whole.sample.mean().unwrap();
                    prop_assert!((merged.sample.mean().unwrap() - whole.sample.mean().unwrap()).abs() < 1e-9 * scale);
                    prop_assert!((merged.sample.variance() - whole.sample.variance()).abs() < 1e-9 * scale * scale);
                }
            }
            prop_assert_eq!(merged.n_traces(), whole.n_traces());
        }
    }

    /// However tight the bounds, every execution is counted, and finer levels never explain less of the variance.
    #[test]
    fn bounds_keep_every_observation(plans in plans(), max_contexts in 1..20_usize, max_stacks in 1..10_usize) {
        let bounded = profile_of(&plans, ProfileOptions { max_contexts, max_stacks, ..seconds() });
        let n: u64 = plans.iter().map(|plan| plan.0.len() as u64).sum();
        prop_assert!(bounded.n_contexts() <= 2 * max_contexts + 1);
        let report = bounded.report(Metric::Response, &OperatorOptions::default());
        prop_assert_eq!(report.operations.iter().map(|o| o.times.n).sum::<u64>(), n);
        prop_assert_eq!(report.operations.iter().flat_map(|o| &o.leaves).map(|leaf| leaf.times.n).sum::<u64>(), n);
        let explained: Vec<f64> = report.levels.iter().map(|level| level.explained).collect();
        prop_assert!(explained.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9), "{explained:?}");
        let whole = profile_of(&plans, seconds());
        if whole.n_contexts() > 2 * max_contexts + 1 {
            prop_assert!(report.n_folded > 0);
        }
    }

    /// A monitoring point more never means fewer stack- or trace-contexts.
    #[test]
    fn a_monitoring_point_never_lowers_stack_or_trace_contexts(plans in plans(), name in 0..NAMES.len()) {
        let fewer: Vec<Plan> = plans.iter().map(|plan| plan.without(name)).collect();
        let (all, fewer) = (sizes(&profile_of(&plans, seconds())), sizes(&profile_of(&fewer, seconds())));
        prop_assert!(all[1].len() >= fewer[1].len() && all[2].len() >= fewer[2].len(), "{all:?} {fewer:?}");
    }
}

#[test]
fn a_monitoring_point_may_lower_caller_contexts() {
    // a, b and c call e only through d: with d monitored e has one caller, without it three.
    let chain = |name| Plan(vec![(None, name, 1.0), (Some(0), 3, 1.0), (Some(1), 0, 1.0)]);
    let mut plans = vec![chain(1), chain(2)];
    plans.push(Plan(vec![(None, 3, 1.0), (Some(0), 0, 1.0)]));
    let callers_of_a = |plans: &[Plan]| {
        let tree = profile_of(plans, seconds()).context_tree(Metric::Response);
        let a = *tree.operations().iter().find(|o| tree.nodes[**o].name == "a").unwrap();
        tree.nodes[a].children.len()
    };
    assert_eq!(callers_of_a(&plans), 1);
    assert_eq!(callers_of_a(&plans.iter().map(|plan| plan.without(3)).collect::<Vec<_>>()), 3);
}

#[test]
fn every_way_to_build_a_tree_gives_the_same() {
    let times = [("a", 0, 10), ("b", 1, 4), ("c", 2, 3), ("b", 5, 9)].map(|(o, s, e)| (o, [Time::from_ticks(s), Time::from_ticks(e)]));
    let mut none = Diagnostics::default();
    let depths = [0, 1, 2, 1].into_iter().zip(times);
    let by_depth =
        CallTree::from_depths(depths.map(|(depth, (operation, times))| AtDepth { depth, operation, times: Some(times) }), &mut none);
    let links = [(7, None), (3, Some(7)), (9, Some(3)), (1, Some(7))];
    let mut linked: Vec<Linked<'_>> = links
        .iter()
        .zip(times)
        .map(|((id, parent), (operation, times))| Linked { id: *id, parent: *parent, operation, form: CallForm::Sync, times: Some(times) })
        .collect();
    linked.reverse();
    let by_link = CallTree::from_links(&linked, &mut none);
    let mut stack = CallStack::default();
    for (operation, time) in [("a", 0), ("b", 1), ("c", 2), ("", 3), ("", 4), ("b", 5), ("", 9), ("", 10)] {
        match operation {
            "" => stack.exit(Time::from_ticks(time)).unwrap(),
            _ => stack.enter(operation, Time::from_ticks(time)),
        }
    }
    assert!(stack.is_complete());
    let by_events = stack.finish();
    assert_eq!(by_depth.executions(), by_link.executions());
    assert_eq!(by_depth.executions(), by_events.executions());
    assert_eq!(none.into_vec(), []);
    // Self times: a 10 - 3 - 4, the first b 3 - 1.
    let mut profile = Profile::new(seconds());
    profile.absorb(&by_link);
    let operations = profile.report(Metric::SelfTime, &OperatorOptions::default()).operations;
    let means: Vec<_> = operations.iter().map(|o| (o.operation.as_str(), o.times.mean_s)).collect();
    assert_eq!(means, [("a", 3.0), ("b", 3.0), ("c", 1.0)]);
}

#[test]
fn broken_links_are_counted() {
    let row = |id, parent| Linked { id, parent, operation: "x", form: CallForm::Sync, times: span(0.0, 1.0) };
    let mut diagnostics = Diagnostics::default();
    let rows = [row(1, None), row(2, Some(99)), row(3, Some(4)), row(4, Some(3)), row(1, None)];
    assert_eq!(CallTree::from_links(&rows, &mut diagnostics).executions().len(), 2);
    assert_eq!(["repeated_id", "missing_parent", "parent_circle"].map(|code| diagnostics.count(code)), [1, 1, 2]);
    let row = AtDepth { depth: 3, operation: "x", times: None };
    assert_eq!(CallTree::from_depths([row], &mut diagnostics).executions()[0].parent, None);
    assert_eq!(diagnostics.count("depth_gap"), 1);
    assert!(CallStack::default().exit(at(1.0)).is_err());
    assert!(CallTree::default().push(Some(0), "x", CallForm::Sync, None).is_err());
}

#[test]
fn parallel_siblings_have_no_order() {
    let run = |first: &str, second: &str| {
        let mut tree = CallTree::default();
        let root = sync(&mut tree, None, "root", span(0.0, 10.0));
        sync(&mut tree, Some(root), first, span(1.0, 5.0));
        sync(&mut tree, Some(root), second, span(2.0, 5.0));
        tree
    };
    let mut profile = Profile::new(seconds());
    profile.absorb(&run("x", "y"));
    profile.absorb(&run("y", "x"));
    assert_eq!(profile.n_contexts(), 3);
    let tree = profile.context_tree(Metric::SelfTime);
    let root = *tree.operations().iter().find(|o| tree.nodes[**o].name == "root").unwrap();
    // The children cover 1 to 7 together.
    assert_eq!(tree.nodes[root].sample.mean(), Some(4.0));
}

#[test]
fn runs_of_equal_calls_are_one_context_where_asked() {
    let looped = |n: usize| {
        let mut tree = CallTree::default();
        let root = sync(&mut tree, None, "root", span(0.0, 100.0));
        (0..n).for_each(|i| _ = sync(&mut tree, Some(root), "query", span(10.0 * i as f64, 1.0)));
        sync(&mut tree, Some(root), "render", span(90.0, 1.0));
        tree
    };
    let n_contexts = |siblings| {
        let mut profile = Profile::new(ProfileOptions { siblings, ..seconds() });
        (2..8).for_each(|n| profile.absorb(&looped(n)));
        profile.n_contexts()
    };
    assert_eq!(n_contexts(Siblings::CollapseRuns), 3);
    assert_eq!(n_contexts(Siblings::Exact), (2..8).map(|n| n + 2).sum::<usize>());
}

#[test]
fn asynchronous_parts_are_traces_of_their_own() {
    let mut tree = CallTree::default();
    let a = sync(&mut tree, None, "a", span(0.0, 5.0));
    let b = tree.push(Some(a), "b", CallForm::Async, span(2.0, 100.0)).unwrap();
    sync(&mut tree, Some(b), "c", span(3.0, 10.0));
    let mut profile = Profile::new(seconds());
    profile.absorb(&tree);
    assert_eq!(profile.n_traces(), 2);
    let tree = profile.context_tree(Metric::SelfTime);
    let stacks: Vec<_> =
        tree.partition(0, Level::Stack).into_iter().map(|n| (tree.nodes[n].name.as_str(), tree.nodes[n].sample.mean())).collect();
    assert_eq!(stacks, [("a", Some(5.0)), ("b", Some(90.0)), ("b > c", Some(10.0))]);
}

#[test]
fn recordings_too_deep_are_counted_by_operation() {
    let mut deep = CallTree::default();
    let mut parent = None;
    for i in 0..200_000 {
        parent = Some(sync(&mut deep, parent, "a", span(f64::from(i), 1e6)));
    }
    let mut profile = Profile::new(seconds());
    profile.absorb(&deep);
    let report = profile.report(Metric::Response, &OperatorOptions::default());
    assert_eq!((report.operations[0].times.n, report.n_folded), (200_000, 200_000));
    assert_eq!(profile.diagnostics().count("tree_too_large"), 1);
    // Within the bound of depth, nesting needs no recursion.
    let mut profile = Profile::new(ProfileOptions { max_depth: 1 << 20, ..seconds() });
    let mut short = CallTree::default();
    let mut parent = None;
    for i in 0..20_000 {
        parent = Some(sync(&mut short, parent, "a", if i == 19_999 { span(0.0, 1.0) } else { None }));
    }
    profile.absorb(&short);
    assert_eq!(profile.n_contexts(), 1);
}

#[test]
fn times_that_run_backwards_are_counted() {
    let mut tree = CallTree::default();
    sync(&mut tree, None, "a", Some([at(2.0), at(1.0)]));
    let mut profile = Profile::new(seconds());
    profile.absorb(&tree);
    assert_eq!((profile.n_executions(), profile.diagnostics().count("negative_response")), (0, 1));
}

/// A cache: the first look-up in a request takes 100, the second 10; 200 requests.
fn cache() -> Profile {
    let mut profile = Profile::new(seconds());
    for i in 0..200 {
        let jitter = f64::from(i % 5);
        let mut tree = CallTree::default();
        let request = sync(&mut tree, None, "request", span(0.0, 200.0 + jitter));
        sync(&mut tree, Some(request), "lookup", span(10.0, 100.0 + jitter));
        sync(&mut tree, Some(request), "lookup", span(150.0, 10.0 + jitter / 10.0));
        profile.absorb(&tree);
    }
    profile
}

#[test]
fn leaves_of_self_times_start_the_demands_of_entries() {
    let model = TimingModel::of(cache().context_tree(Metric::SelfTime), &OperatorOptions::default());
    let starts: Vec<_> = model.entry_starts().into_iter().map(|s| (s.entry, s.n, (s.demand_s * 1e6).round() / 1e6, s.share)).collect();
    let expected = [("lookup", 200, 102.0, 0.5), ("lookup#2", 200, 10.2, 0.5), ("request", 200, 89.8, 1.0)];
    assert_eq!(starts, expected.map(|(entry, n, demand, share)| (entry.to_owned(), n, demand, share)));
}

#[test]
fn report_is_read_back_and_shown() {
    let report = cache().report(Metric::Response, &OperatorOptions::default());
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<layerfit::structure::profile::ProfileReport>(&json).unwrap(), report);
    let text = report.to_text();
    for line in [
        "600 executions in 200 traces of 1 kinds",
        "lookup  n = 400  mean 56.1 s  sd 45.9 s  cv 0.82",
        "  trace             2     778 ms       98.31 %    99.95 %",
        "  - trace #1 of request(lookup, lookup)",
        "calls differ by their order: request > lookup in #1 of request(lookup, lookup)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// Elsewhere traces are recordings.
#[test]
fn recordings_with_asynchronous_parts_are_told() {
    let mut profile = Profile::new(seconds());
    for _ in 0..20 {
        let mut tree = CallTree::default();
        let order = sync(&mut tree, None, "order", span(0.0, 10.0));
        tree.push(Some(order), "mail", CallForm::Async, span(5.0, 10.0)).unwrap();
        profile.absorb(&tree);
    }
    let head = profile.report(Metric::Response, &OperatorOptions::default()).head();
    let expected = "40 executions in 40 traces of 2 kinds, from 20 recordings: asynchronous parts are traces of their own";
    assert!(head.starts_with(expected), "{head}");
}

#[test]
fn drawing_shows_time_by_context() {
    let drawn = cache().context_tree(Metric::SelfTime).draw(&DrawOptions { level: Level::Caller, ..DrawOptions::default() });
    let expected = "\
all         ████████████████████ 100.00 %  n = 600  mean 67.3 s  sd 40.7 s
├ lookup    ███████████▏          55.54 %  n = 400  mean 56.1 s  sd 45.9 s
│ └ request ███████████▏          55.54 %  n = 400  mean 56.1 s  sd 45.9 s
└ request   ████████▉             44.46 %  n = 200  mean 89.8 s  sd 141 ms
  └ $       ████████▉             44.46 %  n = 200  mean 89.8 s  sd 141 ms
";
    assert_eq!(drawn, expected);
    let few =
        cache().context_tree(Metric::SelfTime).draw(&DrawOptions { level: Level::Operation, most_children: 1, ..DrawOptions::default() });
    assert!(few.contains("└ … and 1 smaller"), "{few}");
}

#[test]
fn interactions_of_a_trace_become_call_trees() {
    let log = "sender,receiver,time,operation\nuser,web,1,buy\nweb,db,2,read\ndb,web,5,\nweb,db,6,read\ndb,web,8,\nweb,user,10,\n";
    let options =
        ReadOptions { bad_rows: BadRows::Reject, sources_are: SourcesAre::default(), limit_bytes: 1 << 20, ..ReadOptions::default() };
    let messages = layerfit::trace::same::read(&[Source { name: "log.csv", bytes: log.as_bytes() }], &options).unwrap();
    let interactions: Interactions = same::find_interactions(messages, Default::default(), Default::default());
    let mut profile = Profile::new(seconds());
    call_trees(&interactions).iter().for_each(|tree| profile.absorb(tree));
    let tree = profile.context_tree(Metric::SelfTime);
    let found: Vec<_> = tree
        .partition(0, Level::Stack)
        .into_iter()
        .map(|n| (tree.nodes[n].name.clone(), tree.nodes[n].sample.n(), tree.nodes[n].sample.mean()))
        .collect();
    assert_eq!(found, [("web.buy > db.read".to_owned(), 2, Some(2.5)), ("web.buy".to_owned(), 1, Some(4.0))]);
}
