//! From the calling-context tree to a timing model: remove, merge, link (Rohr et al., Section 4.3).
//!
//! Input: a [`ContextTree`] and [`OperatorOptions`]; output: a [`TimingModel`], a partition of all observations into leaves.
//!
//! The operators work on the leaves of one operation at a time and are repeated until none applies:
//! 1. **link**: a leaf with fewer observations than are enough is linked to its nearest ancestor with enough (else to the
//!    operation): the ancestor's sample is used in its place. Siblings linked to one ancestor have equal samples, and are
//!    merged.
//! 2. **merge**: sibling leaves that are not linked are merged where they are similar:
//!    |m₁ - m₂| ≤ tolerance × m for medians m₁, m₂ with mean m by weight (the pooled median lies between them too), and
//!    r₁ / r₂ within \[1 / ratio, ratio\] for inter-quartile ranges r.
//! 3. **remove**: a leaf without siblings goes; its parent, whose observations are the same, is the leaf.
//!
//! The largest leaf is looked at first and merged into the first similar one, where the paper has random order: equal
//! profiles give equal models. If more leaves are left than an operation may have, the two sibling leaves with the nearest
//! medians are merged until there are few enough (`forced`): the paper's first stop rule.
//!
//! Each application takes away a leaf or links one that was not linked, so that there are finitely many. The operation is
//! never removed, as leaves of different operations are not compared. An inter-quartile range below what the sketch can
//! tell (2 α × median) counts as that.

use super::{
    OperatorOptions, Sample,
    context_tree::{ContextTree, Level},
    sample::RELATIVE_ERROR,
};

/// A leaf of the model: contexts that are not told apart.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Its operation (index into [`ContextTree::nodes`]).
    pub operation: usize,
    /// Its contexts (likewise), largest first; one, unless leaves were merged.
    pub members: Vec<usize>,
    /// What was observed in them.
    pub sample: Sample,
    /// The ancestor whose sample is to be used instead, having enough observations.
    pub linked_to: Option<usize>,
    /// Whether unlike leaves were merged to keep the number of leaves.
    pub forced: bool,
}

/// A partition of all observations into leaves.
#[derive(Clone, Debug)]
pub struct TimingModel {
    /// The tree that it is of.
    pub tree: ContextTree,
    /// Leaves by operation, the largest of each first.
    pub leaves: Vec<Leaf>,
}

#[derive(Clone, Debug)]
struct Group {
    leaf: Leaf,
    parent: usize,
    median: f64,
    range: f64,
}

impl Group {
    fn new(tree: &ContextTree, operation: usize, node: usize) -> Self {
        let sample = tree.nodes[node].sample.clone();
        let leaf = Leaf { operation, members: vec![node], sample, linked_to: None, forced: false };
        let mut group = Self { leaf, parent: tree.nodes[node].parent.unwrap_or(0), median: 0.0, range: 0.0 };
        group.measure();
        group
    }

    fn measure(&mut self) {
        let at = |p| self.leaf.sample.quantile(p).unwrap_or(0.0);
        (self.median, self.range) = (at(0.5), (at(0.75) - at(0.25)).max(2.0 * RELATIVE_ERROR * at(0.5)));
    }

    fn absorb(&mut self, other: Self) {
        self.leaf.sample.merge(&other.leaf.sample);
        self.leaf.members.extend(other.leaf.members);
        self.leaf.forced |= other.leaf.forced;
        self.measure();
    }

    fn is_similar(&self, other: &Self, options: &OperatorOptions) -> bool {
        let (n, m) = (self.leaf.sample.weight(), other.leaf.sample.weight());
        let pooled = (n * self.median + m * other.median) / (n + m);
        let (small, large) = (self.range.min(other.range), self.range.max(other.range));
        (self.median - other.median).abs() <= options.median_tolerance * pooled && large <= options.iqr_ratio * small
    }

    fn n(&self) -> u64 {
        self.leaf.sample.n()
    }

    fn first(&self) -> usize {
        self.leaf.members.first().copied().unwrap_or(0)
    }
}

impl TimingModel {
    /// Applies the operators to all leaves of `tree`.
    pub fn of(tree: ContextTree, options: &OperatorOptions) -> Self {
        let mut leaves = Vec::new();
        for operation in tree.operations() {
            leaves.extend(Reduction::new(&tree, *operation, options).run());
        }
        Self { tree, leaves }
    }
}

/// The leaves of one operation while the operators are applied.
struct Reduction<'t> {
    tree: &'t ContextTree,
    options: &'t OperatorOptions,
    operation: usize,
    groups: Vec<Group>,
}

impl<'t> Reduction<'t> {
    fn new(tree: &'t ContextTree, operation: usize, options: &'t OperatorOptions) -> Self {
        let leaves = tree.partition(operation, Level::Trace);
        let groups = leaves.into_iter().map(|node| Group::new(tree, operation, node)).collect();
        Self { tree, options, operation, groups }
    }

    fn run(mut self) -> Vec<Leaf> {
        self.settle();
        while self.groups.len() > self.options.max_leaves.max(1) && self.force() {
            self.settle();
        }
        self.groups.sort_by_key(|group| (std::cmp::Reverse(group.n()), group.first()));
        self.groups.into_iter().map(|group| group.leaf).collect()
    }

    /// Applies the operators until none of them applies.
    fn settle(&mut self) {
        loop {
            let before = self.groups.len();
            self.link();
            self.merge();
            let removed = self.remove();
            if self.groups.len() == before && !removed {
                return;
            }
        }
    }

    fn link(&mut self) {
        for group in &mut self.groups {
            let node = group.first();
            if group.leaf.linked_to.is_some() || group.n() >= self.options.enough || node == self.operation {
                continue;
            }
            let mut ancestor = group.parent;
            while ancestor != self.operation && self.tree.nodes[ancestor].sample.n() < self.options.enough {
                ancestor = self.tree.nodes[ancestor].parent.unwrap_or(self.operation);
            }
            group.leaf.linked_to = Some(ancestor);
        }
    }

    fn merge(&mut self) {
        self.groups.sort_by_key(|group| (group.parent, std::cmp::Reverse(group.n()), group.first()));
        loop {
            let before = self.groups.len();
            let mut kept: Vec<Group> = Vec::with_capacity(before);
            let mut from = 0;
            for group in std::mem::take(&mut self.groups) {
                if kept.get(from).is_some_and(|first| first.parent != group.parent) {
                    from = kept.len();
                }
                let joins = |known: &&mut Group| match (known.leaf.linked_to, group.leaf.linked_to) {
                    (None, None) => known.is_similar(&group, self.options),
                    (known, linked) => known == linked,
                };
                match kept[from..].iter_mut().find(joins) {
                    Some(known) => known.absorb(group),
                    None => kept.push(group),
                }
            }
            self.groups = kept;
            if self.groups.len() == before {
                return;
            }
        }
    }

    /// Whether a parent took the place of its only leaf.
    fn remove(&mut self) -> bool {
        let mut removed = false;
        for index in 0..self.groups.len() {
            let (node, parent) = (self.groups[index].first(), self.groups[index].parent);
            let below = &self.tree.nodes[parent].children;
            // Members of a group are distinct children of one parent: as many as there are means all.
            if node != self.operation && self.groups[index].leaf.members.len() == below.len() {
                let forced = self.groups[index].leaf.forced;
                self.groups[index] = Group::new(self.tree, self.operation, parent);
                self.groups[index].leaf.forced = forced;
                removed = true;
            }
        }
        removed
    }

    /// Merges the two sibling leaves with the nearest medians, linked leaves only where there are no others, until there are
    /// few enough or no siblings; whether there were any.
    fn force(&mut self) -> bool {
        self.groups.sort_by(|a, b| {
            (a.parent, a.leaf.linked_to.is_some())
                .cmp(&(b.parent, b.leaf.linked_to.is_some()))
                .then(a.median.total_cmp(&b.median))
                .then(a.first().cmp(&b.first()))
        });
        let mut forced = false;
        while self.groups.len() > self.options.max_leaves.max(1) {
            let pairs = self.groups.windows(2).enumerate().filter_map(|(index, pair)| Some((index, distance(&pair[0], &pair[1])?)));
            let Some((index, _)) = pairs.min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))) else { break };
            let other = self.groups.remove(index + 1);
            let group = &mut self.groups[index];
            group.absorb(other);
            group.leaf.forced = true;
            group.leaf.linked_to = None;
            forced = true;
        }
        forced
    }
}

/// Whether one of two siblings is linked, and how far apart their medians are relatively; `None` unless they are siblings.
fn distance(a: &Group, b: &Group) -> Option<(bool, f64)> {
    let linked = a.leaf.linked_to.is_some() || b.leaf.linked_to.is_some();
    let middle = (a.median + b.median) / 2.0;
    let apart = if middle > 0.0 { (b.median - a.median).abs() / middle } else { 0.0 };
    (a.parent == b.parent).then_some((linked, apart))
}
