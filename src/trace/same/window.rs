//! Putting into order what comes nearly in order.
//!
//! Input: items in any order; output: at each request the least item held. What is not less than all that is held is
//! appended to a run, what belongs a few places before its end is put there, and only what strays further goes through a
//! heap: O(1) an item of a log that is nearly in order, O(log n) at worst, n being the number of items held.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// Places from the end of the run within which an item is put by moving its neighbours.
const NEAR: usize = 16;

/// Items that are held back.
#[derive(Clone, Debug)]
pub(super) struct Window<T> {
    /// Ascending.
    run: VecDeque<T>,
    strays: BinaryHeap<Reverse<T>>,
}

impl<T: Ord> Default for Window<T> {
    fn default() -> Self {
        Self { run: VecDeque::new(), strays: BinaryHeap::new() }
    }
}

impl<T: Ord> Window<T> {
    /// Takes an item.
    #[inline]
    pub(super) fn push(&mut self, item: T) {
        match self.run.back() {
            Some(last) if item < *last => self.push_before(item),
            _ => self.run.push_back(item),
        }
    }

    /// Takes an item that is less than the last of the run.
    fn push_before(&mut self, item: T) {
        match self.run.iter().rev().take(NEAR).position(|held| *held <= item) {
            Some(places) => self.run.insert(self.run.len() - places, item),
            None if self.run.front().is_none_or(|first| item < *first) => self.run.push_front(item),
            None => self.strays.push(Reverse(item)),
        }
    }

    /// The least item held.
    #[inline]
    pub(super) fn peek(&self) -> Option<&T> {
        match (self.run.front(), self.strays.peek()) {
            (Some(first), Some(Reverse(stray))) => Some(first.min(stray)),
            (first, stray) => first.or(stray.map(|Reverse(stray)| stray)),
        }
    }

    /// Hands over the least item held.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        match (self.run.front(), self.strays.peek()) {
            (Some(first), Some(Reverse(stray))) if stray < first => self.strays.pop().map(|Reverse(stray)| stray),
            (None, _) => self.strays.pop().map(|Reverse(stray)| stray),
            _ => self.run.pop_front(),
        }
    }

    /// Changes all items, and with them their order.
    pub(super) fn move_all(&mut self, change: impl FnMut(&mut T)) {
        self.run.extend(self.strays.drain().map(|Reverse(stray)| stray));
        self.run.iter_mut().for_each(change);
        self.run.make_contiguous().sort_unstable();
    }

    /// How many items are held.
    pub(super) fn len(&self) -> usize {
        self.run.len() + self.strays.len()
    }

    /// Gives back memory that is not used.
    pub(super) fn shrink(&mut self) {
        self.run.shrink_to_fit();
        self.strays.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the order, items leave in the order that a sort gives, with any interleaving of pushes and pops.
        #[test]
        fn hands_over_the_least(items in prop::collection::vec((0..40_u32, 0..3_usize), 0..200)) {
            let mut window = Window::default();
            let mut held: Vec<(u32, usize)> = Vec::new();
            for (arrival, (item, n_pops)) in items.into_iter().enumerate() {
                window.push((item, arrival));
                held.push((item, arrival));
                if arrival % 50 == 49 {
                    let turned = |(item, _): &mut (u32, usize)| *item = item.wrapping_mul(7) % 40;
                    window.move_all(turned);
                    held.iter_mut().for_each(turned);
                }
                held.sort_unstable();
                for _ in 0..n_pops {
                    let least = (!held.is_empty()).then(|| held.remove(0));
                    prop_assert_eq!(window.peek().copied(), least);
                    prop_assert_eq!(window.pop(), least);
                }
                prop_assert_eq!(window.len(), held.len());
            }
        }
    }
}
