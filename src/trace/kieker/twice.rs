//! Executions that a log also has as operation events.
//!
//! Both forms may be recorded of one execution, by two probes around it, in traces with other ids. They are the same if they are
//! of one operation and the times of one enclose those of the other. A record is written when what it tells has happened, so
//! that the event of an execution's entry stands before the execution in the log: one pass tells. Each pair of events is the
//! same as one execution at most.

use std::{collections::VecDeque, hash::BuildHasher};

use foldhash::fast::RandomState;

use super::signature::Signature;
use crate::trace::{call_path::Key, names::Names, recent::Recent};

/// Most entries into one operation that are remembered, the last ones.
const MOST_ENTRIES: usize = 1024;

/// An entry into an operation that events tell.
#[derive(Clone, Copy, Debug)]
struct Entry {
    trace: u64,
    time_ns: i64,
    /// The exit, once it is known.
    until_ns: Option<i64>,
    /// Whether an execution was found to be the same.
    is_found: bool,
}

/// What events tell of each operation.
#[derive(Debug, Default)]
pub(super) struct Twice {
    numbers: Recent,
    operations: Names,
    /// Shape `(n_operations,)`, or shorter.
    entries: Vec<VecDeque<Entry>>,
    traces: RandomState,
}

impl Twice {
    /// Notes an event of entry.
    pub(super) fn enter(&mut self, signature: &str, trace: Key<'_>, time_ns: i64) {
        let trace = self.traces.hash_one(trace);
        let entries = self.entries_of(signature);
        while entries.front().is_some_and(|entry| entry.is_found && entry.until_ns.is_some()) || entries.len() >= MOST_ENTRIES {
            entries.pop_front();
        }
        entries.push_back(Entry { trace, time_ns, until_ns: None, is_found: false });
    }

    /// Notes an event of exit.
    pub(super) fn exit(&mut self, signature: &str, trace: Key<'_>, time_ns: i64) {
        let trace = self.traces.hash_one(trace);
        let entries = self.entries_of(signature);
        if let Some(entry) = entries.iter_mut().rev().find(|entry| entry.trace == trace && entry.until_ns.is_none()) {
            entry.until_ns = Some(time_ns);
        }
    }

    /// Whether events tell an execution from `from_ns` to `until_ns`, too; if so, they tell no other.
    pub(super) fn finds(&mut self, signature: &str, (from_ns, until_ns): (i64, i64)) -> bool {
        let entries = self.entries_of(signature);
        let is_inside = |entry: &Entry| {
            from_ns <= entry.time_ns && entry.time_ns <= until_ns && entry.until_ns.is_none_or(|exit_ns| exit_ns <= until_ns)
        };
        let is_around = |entry: &Entry| entry.time_ns <= from_ns && entry.until_ns.is_none_or(|exit_ns| exit_ns >= until_ns);
        let inside = entries.iter().position(|entry| !entry.is_found && is_inside(entry));
        let found = inside.or_else(|| entries.iter().rposition(|entry| !entry.is_found && is_around(entry)));
        let Some(entry) = found.and_then(|found| entries.get_mut(found)) else { return false };
        entry.is_found = true;
        true
    }

    fn entries_of(&mut self, signature: &str) -> &mut VecDeque<Entry> {
        let operations = &mut self.operations;
        let number = self.numbers.number(signature, "", || {
            let Signature { class, method } = Signature::of(signature);
            operations.intern(&format!("{class}.{method}"))
        });
        let at = number as usize;
        if at >= self.entries.len() {
            self.entries.resize_with(at + 1, VecDeque::new);
        }
        &mut self.entries[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "public void p.A.a(java.lang.String)";

    fn seen(events: &[(i64, i64, bool)]) -> Twice {
        let mut twice = Twice::default();
        for (trace, time_ns, is_entry) in events {
            let note = if *is_entry { Twice::enter } else { Twice::exit };
            note(&mut twice, A, Key::Number(*trace), *time_ns);
        }
        twice
    }

    #[test]
    fn an_execution_is_the_same_as_events_inside_of_it_or_around_it() {
        for times in [(9, 21), (10, 20), (12, 18), (10, 30)] {
            assert!(seen(&[(1, 10, true), (1, 20, false)]).finds(A, times), "{times:?}");
        }
        for times in [(11, 21), (9, 19), (0, 9), (21, 30)] {
            assert!(!seen(&[(1, 10, true), (1, 20, false)]).finds(A, times), "{times:?}");
        }
        assert!(!seen(&[(1, 10, true), (1, 20, false)]).finds("p.A.a()", (9, 21)));
        assert!(!seen(&[(1, 20, false)]).finds(A, (9, 21)));
        // Written between the events of the probe around it.
        assert!(seen(&[(1, 10, true)]).finds(A, (12, 18)));
    }

    #[test]
    fn events_are_the_same_as_one_execution() {
        let mut twice = seen(&[(1, 10, true), (1, 20, false)]);
        assert!(twice.finds(A, (9, 21)) && !twice.finds(A, (9, 21)));
        // Two at once, and one in the other.
        let mut twice = seen(&[(1, 1, true), (2, 6, true), (1, 9, false), (2, 14, false)]);
        assert!(twice.finds(A, (0, 10)) && twice.finds(A, (5, 15)));
        let mut twice = seen(&[(1, 1, true), (1, 4, true)]);
        assert!(twice.finds(A, (5, 5)));
        twice.exit(A, Key::Number(1), 6);
        assert!(twice.finds(A, (2, 8)));
    }

    #[test]
    fn entries_that_are_remembered_are_bounded() {
        let mut twice = Twice::default();
        for n in 0..5_000 {
            twice.enter(A, Key::Number(n), n);
        }
        assert_eq!(twice.entries[0].len(), MOST_ENTRIES);
    }
}
