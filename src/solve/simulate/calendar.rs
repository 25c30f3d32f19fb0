//! The event calendar: a four-ary heap of timers, each pending at most once.
//!
//! Timers at the same time fire in the order in which they were set, so that runs repeat exactly.

/// Position of a timer that is not pending.
const ABSENT: u32 = u32::MAX;
const ARITY: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Pending {
    time: f64,
    order: u64,
    timer: u32,
}

impl Pending {
    #[inline]
    fn before(&self, other: &Self) -> bool {
        self.time < other.time || (self.time <= other.time && self.order < other.order)
    }
}

/// Pending timers by time.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    heap: Vec<Pending>,
    /// Place of each timer in `heap`.
    place: Vec<u32>,
    order: u64,
}

impl Calendar {
    /// Time of the next timer.
    #[inline]
    pub(super) fn next_time(&self) -> Option<f64> {
        self.heap.first().map(|p| p.time)
    }

    /// Sets `timer` to fire at `time`, replacing an earlier setting.
    #[inline]
    pub(super) fn set(&mut self, timer: u32, time: f64) {
        let t = timer as usize;
        if t >= self.place.len() {
            self.place.resize(t + 1, ABSENT);
        }
        self.order += 1;
        let pending = Pending { time, order: self.order, timer };
        let place = self.place[t];
        if place == ABSENT {
            self.heap.push(pending);
            self.rise(self.heap.len() - 1, pending);
        } else {
            self.replace(place as usize, pending);
        }
    }

    /// Takes `timer` back if it is pending.
    pub(super) fn clear(&mut self, timer: u32) {
        let Some(&place) = self.place.get(timer as usize) else { return };
        if place != ABSENT {
            self.place[timer as usize] = ABSENT;
            self.remove(place as usize);
        }
    }

    /// Takes out the next timer.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(f64, u32)> {
        let first = *self.heap.first()?;
        self.place[first.timer as usize] = ABSENT;
        self.remove(0);
        Some((first.time, first.timer))
    }

    #[inline]
    fn remove(&mut self, place: usize) {
        if let Some(last) = self.heap.pop()
            && place < self.heap.len()
        {
            self.replace(place, last);
        }
    }

    #[inline]
    fn replace(&mut self, place: usize, pending: Pending) {
        if place > 0 && pending.before(&self.heap[(place - 1) / ARITY]) {
            self.rise(place, pending);
        } else {
            self.sink(place, pending);
        }
    }

    #[inline]
    fn put(&mut self, place: usize, pending: Pending) {
        self.heap[place] = pending;
        #[expect(clippy::cast_possible_truncation, reason = "timers are numbered in 32 bits and pending at most once")]
        let number = place as u32;
        self.place[pending.timer as usize] = number;
    }

    #[inline]
    fn rise(&mut self, mut place: usize, pending: Pending) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            let above = self.heap[parent];
            if !pending.before(&above) {
                break;
            }
            self.put(place, above);
            place = parent;
        }
        self.put(place, pending);
    }

    #[inline]
    fn sink(&mut self, mut place: usize, pending: Pending) {
        loop {
            let first = place * ARITY + 1;
            if first >= self.heap.len() {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(self.heap.len()) {
                if self.heap[child].before(&self.heap[least]) {
                    least = child;
                }
            }
            let below = self.heap[least];
            if !below.before(&pending) {
                break;
            }
            self.put(place, below);
            place = least;
        }
        self.put(place, pending);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain list: the same timers fire in the same order, whatever is set and cleared before.
        #[test]
        fn fires_in_order_of_time_then_setting(steps in proptest::collection::vec((0u32..40, 0u8..4, 0u32..8), 1..300)) {
            let mut calendar = Calendar::default();
            let mut list: Vec<(u32, f64, usize)> = Vec::new();
            for (i, &(timer, action, time)) in steps.iter().enumerate() {
                list.retain(|&(t, ..)| t != timer);
                if action == 0 {
                    calendar.clear(timer);
                } else {
                    calendar.set(timer, f64::from(time));
                    list.push((timer, f64::from(time), i));
                }
            }
            list.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.2.cmp(&b.2)));
            for (timer, time, _) in list {
                prop_assert_eq!(calendar.next_time(), Some(time));
                prop_assert_eq!(calendar.pop(), Some((time, timer)));
            }
            prop_assert_eq!(calendar.pop(), None);
        }
    }
}
