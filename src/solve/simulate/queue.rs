//! Queues of waiting jobs or requests by discipline.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, VecDeque},
};

use rand::{Rng, RngExt};

/// A waiting item with its urgency: larger first, and in order of arrival among equals.
#[derive(Clone, Debug)]
struct Ranked<T> {
    urgency: f64,
    order: u64,
    item: T,
}

impl<T> PartialEq for Ranked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<T> Eq for Ranked<T> {}
impl<T> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Ranked<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.urgency.total_cmp(&other.urgency).then(other.order.cmp(&self.order))
    }
}

/// Waiting items.
#[derive(Clone, Debug)]
pub(super) struct Queue<T> {
    items: Items<T>,
}

#[derive(Clone, Debug)]
enum Items<T> {
    Fifo(VecDeque<T>),
    Lifo(Vec<T>),
    Random(Vec<T>),
    Ranked(BinaryHeap<Ranked<T>>),
}

impl<T> Queue<T> {
    /// First come, first served.
    pub(super) fn fifo() -> Self {
        Self { items: Items::Fifo(VecDeque::new()) }
    }

    /// Last come, first served.
    pub(super) fn lifo() -> Self {
        Self { items: Items::Lifo(Vec::new()) }
    }

    /// In random order.
    pub(super) fn random() -> Self {
        Self { items: Items::Random(Vec::new()) }
    }

    /// The most urgent first.
    pub(super) fn ranked() -> Self {
        Self { items: Items::Ranked(BinaryHeap::new()) }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        match &self.items {
            Items::Fifo(items) => items.len(),
            Items::Lifo(items) | Items::Random(items) => items.len(),
            Items::Ranked(items) => items.len(),
        }
    }

    /// Adds an item; `urgency` and `order` (of arrival) count for ranked queues.
    #[inline]
    pub(super) fn push(&mut self, item: T, urgency: f64, order: u64) {
        match &mut self.items {
            Items::Fifo(items) => items.push_back(item),
            Items::Lifo(items) | Items::Random(items) => items.push(item),
            Items::Ranked(items) => items.push(Ranked { urgency, order, item }),
        }
    }

    /// Puts an item back at the head of a first-come queue.
    pub(super) fn push_front(&mut self, item: T) {
        if let Items::Fifo(items) = &mut self.items {
            items.push_front(item);
        }
    }

    /// The next item of a first-come queue.
    pub(super) fn first(&self) -> Option<&T> {
        match &self.items {
            Items::Fifo(items) => items.front(),
            _ => None,
        }
    }

    /// Urgency of the most urgent item of a ranked queue.
    pub(super) fn top_urgency(&self) -> Option<f64> {
        match &self.items {
            Items::Ranked(items) => items.peek().map(|r| r.urgency),
            _ => None,
        }
    }

    /// Takes the next item.
    #[inline]
    pub(super) fn pop(&mut self, stream: &mut impl Rng) -> Option<T> {
        match &mut self.items {
            Items::Fifo(items) => items.pop_front(),
            Items::Lifo(items) => items.pop(),
            Items::Random(items) if items.is_empty() => None,
            Items::Random(items) => Some(items.swap_remove(stream.random_range(0..items.len()))),
            Items::Ranked(items) => items.pop().map(|r| r.item),
        }
    }

    /// Takes the first item of a first-come queue that `wanted` accepts.
    pub(super) fn take_first(&mut self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        match &mut self.items {
            Items::Fifo(items) => items.iter().position(wanted).and_then(|i| items.remove(i)),
            _ => None,
        }
    }

    /// Every item, in no particular order.
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = &T> + '_> {
        match &self.items {
            Items::Fifo(items) => Box::new(items.iter()),
            Items::Lifo(items) | Items::Random(items) => Box::new(items.iter()),
            Items::Ranked(items) => Box::new(items.iter().map(|r| &r.item)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::simulate::law::stream;

    fn order(mut queue: Queue<u32>) -> Vec<u32> {
        let mut numbers = stream(1, 0, 0);
        for (i, urgency) in [(0, 1.0), (1, 3.0), (2, 3.0), (3, 2.0)] {
            queue.push(i, urgency, u64::from(i));
        }
        std::iter::from_fn(|| queue.pop(&mut numbers)).collect()
    }

    #[test]
    fn disciplines_order_the_waiting() {
        assert_eq!(order(Queue::fifo()), [0, 1, 2, 3]);
        assert_eq!(order(Queue::lifo()), [3, 2, 1, 0]);
        assert_eq!(order(Queue::ranked()), [1, 2, 3, 0]);
        let mut random = order(Queue::random());
        random.sort_unstable();
        assert_eq!(random, [0, 1, 2, 3]);
    }
}
