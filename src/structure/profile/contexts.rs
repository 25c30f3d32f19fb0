//! Equal trees and equal paths, each held once.
//!
//! Input: operations and, bottom-up, the numbers of child trees (or, top-down, of the caller's path); output: one number
//! for each distinct ordered tree and each distinct path, and a digest of it that is the same in every run and shard.
//!
//! ```text
//! digest(tree) = SHA-256(operation, run?, digests of the children in order), cut to 128 bits
//! digest(path) = SHA-256(digest of the caller's path, operation), cut to 128 bits
//! ```
//!
//! Equal numbers mean equal trees exactly; equal digests do but for a chance below 10⁻¹⁸ in 10¹⁰ trees. The tables are
//! caches: contexts are keyed by digests, so that a full table may be emptied between recordings.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

/// What names a tree or a path wherever it is met.
pub type Digest = u128;

/// Longest drawing of a tree, bytes.
const LONGEST_SHAPE_BYTES: usize = 160;

fn sha(parts: impl FnOnce(&mut Sha256)) -> Digest {
    let mut hasher = Sha256::new();
    parts(&mut hasher);
    let mut first = [0; 16];
    first.copy_from_slice(&hasher.finalize()[..16]);
    u128::from_be_bytes(first)
}

/// A child tree; equal neighbours may be taken together as a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) tree: u32,
    pub(super) run: bool,
}

#[derive(Clone, Debug)]
struct Tree {
    operation: u32,
    children: Box<[Child]>,
    size: u32,
    digest: Digest,
}

/// Distinct trees.
#[derive(Clone, Debug, Default)]
pub(super) struct Trees {
    known: HashMap<Box<[u32]>, u32>,
    trees: Vec<Tree>,
    key: Vec<u32>,
}

impl Trees {
    /// The number of the tree of `operation` (called `name`) with `children`.
    pub(super) fn number(&mut self, operation: u32, name: &str, children: &[Child]) -> u32 {
        self.key.clear();
        self.key.push(operation);
        self.key.extend(children.iter().flat_map(|c| [c.tree, u32::from(c.run)]));
        if let Some(number) = self.known.get(self.key.as_slice()) {
            return *number;
        }
        let digest = sha(|hasher| {
            hasher.update(name.len().to_be_bytes());
            hasher.update(name);
            for child in children {
                hasher.update([u8::from(child.run)]);
                hasher.update(self.trees[child.tree as usize].digest.to_be_bytes());
            }
        });
        let size = children.iter().fold(1_u32, |sum, c| sum.saturating_add(self.trees[c.tree as usize].size));
        let number = u32::try_from(self.trees.len()).unwrap_or(u32::MAX);
        self.trees.push(Tree { operation, children: children.into(), size, digest });
        self.known.insert(self.key.as_slice().into(), number);
        number
    }

    pub(super) fn digest(&self, tree: u32) -> Digest {
        self.trees[tree as usize].digest
    }

    /// Nodes of a tree; a run counts as one child.
    pub(super) fn size(&self, tree: u32) -> u32 {
        self.trees[tree as usize].size
    }

    pub(super) fn len(&self) -> usize {
        self.trees.len()
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.trees.clear();
    }

    /// The tree as text, `a(b, c(d), e…)`; `…` marks a run, and where it was cut off.
    pub(super) fn draw<'n>(&self, tree: u32, name: impl Fn(u32) -> &'n str) -> String {
        enum Step<'t> {
            Tree(Child),
            Text(&'t str),
        }
        let mut drawn = String::new();
        let mut steps = vec![Step::Tree(Child { tree, run: false })];
        while let Some(step) = steps.pop() {
            if drawn.len() > LONGEST_SHAPE_BYTES {
                drawn.truncate(drawn.floor_char_boundary(LONGEST_SHAPE_BYTES));
                drawn.push('…');
                break;
            }
            match step {
                Step::Text(text) => drawn.push_str(text),
                Step::Tree(child) => {
                    let node = &self.trees[child.tree as usize];
                    drawn.push_str(name(node.operation));
                    if child.run {
                        steps.push(Step::Text("…"));
                    }
                    if !node.children.is_empty() {
                        steps.push(Step::Text(")"));
                        for (position, child) in node.children.iter().enumerate().rev() {
                            steps.push(Step::Tree(*child));
                            steps.push(Step::Text(if position == 0 { "(" } else { ", " }));
                        }
                    }
                }
            }
        }
        drawn
    }
}

/// Distinct paths from a root.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    known: HashMap<(Option<u32>, u32), u32>,
    paths: Vec<(Option<u32>, u32, Digest)>,
}

impl Paths {
    /// The number of the path that goes on from `caller` (`None` outside) to `operation`, called `name`.
    pub(super) fn number(&mut self, caller: Option<u32>, operation: u32, name: &str) -> u32 {
        if let Some(number) = self.known.get(&(caller, operation)) {
            return *number;
        }
        let above = caller.map_or(0, |caller| self.digest(caller));
        let digest = sha(|hasher| {
            hasher.update(above.to_be_bytes());
            hasher.update(name);
        });
        let number = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        self.paths.push((caller, operation, digest));
        self.known.insert((caller, operation), number);
        number
    }

    pub(super) fn digest(&self, path: u32) -> Digest {
        self.paths[path as usize].2
    }

    /// Operations from the last of the path back to its root.
    pub(super) fn operations(&self, path: u32) -> Box<[u32]> {
        let mut operations = Vec::new();
        let mut at = Some(path);
        while let Some(path) = at {
            let (caller, operation, _) = self.paths[path as usize];
            operations.push(operation);
            at = caller;
        }
        operations.into()
    }

    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.paths.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An ordered tree as it is, to compare with.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Plain(u8, Vec<Plain>);

    fn plain() -> impl Strategy<Value = Plain> {
        let leaf = (0..3_u8).prop_map(|name| Plain(name, Vec::new()));
        leaf.prop_recursive(4, 24, 3, |inner| (0..3_u8, prop::collection::vec(inner, 0..3)).prop_map(|(name, c)| Plain(name, c)))
    }

    fn enter(tree: &Plain, trees: &mut Trees) -> u32 {
        let children: Vec<Child> = tree.1.iter().map(|c| Child { tree: enter(c, trees), run: false }).collect();
        trees.number(u32::from(tree.0), ["a", "b", "c"][usize::from(tree.0)], &children)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Numbers and digests are equal if and only if the trees are, in one table and in two.
        #[test]
        fn digests_are_equal_iff_trees_are(a in plain(), b in plain()) {
            let (mut one, mut other) = (Trees::default(), Trees::default());
            let (first, second, elsewhere) = (enter(&a, &mut one), enter(&b, &mut one), enter(&b, &mut other));
            prop_assert_eq!(first == second, a == b);
            prop_assert_eq!(one.digest(first) == one.digest(second), a == b);
            prop_assert_eq!(one.digest(second), other.digest(elsewhere));
        }
    }

    #[test]
    fn trees_that_differ_only_in_shape_differ() {
        let mut trees = Trees::default();
        let leaf = |name| Plain(name, vec![]);
        let chain = Plain(0, vec![Plain(1, vec![leaf(2)])]);
        let fan = Plain(0, vec![leaf(1), leaf(2)]);
        let swapped = Plain(0, vec![leaf(2), leaf(1)]);
        let numbers = [&chain, &fan, &swapped].map(|tree| enter(tree, &mut trees));
        let drawn = numbers.map(|tree| trees.draw(tree, |o| ["a", "b", "c"][o as usize]));
        assert_eq!(drawn, ["a(b(c))", "a(b, c)", "a(c, b)"]);
        assert_eq!(numbers.map(|tree| trees.size(tree)), [3, 3, 3]);
    }

    #[test]
    fn drawings_are_cut() {
        let mut trees = Trees::default();
        let mut tree = trees.number(0, "operation", &[]);
        for _ in 0..10_000 {
            tree = trees.number(0, "operation", &[Child { tree, run: false }]);
        }
        assert!(trees.draw(tree, |_| "operation").len() < LONGEST_SHAPE_BYTES + 20);
    }
}
