//! Threads of causes, as angio traces and event traces have them: a chain that goes with requests from task to task, forks
//! where a sender does not wait, and counts its events.
//!
//! What runs is a branch of an execution; each is on one thread at a time. The first branch of an and-fork stays on the thread
//! of what forked, every other one begins a thread of its own; what follows the join is on that of the first. The processor
//! time of a branch is kept until an event of it can carry it.

use std::collections::HashMap;

use crate::solve::simulate::record::{Event, RecordedEvent};

/// A branch of an execution.
pub(super) type Runner = (u64, u32);

#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    /// Of the activity at hand, as far as it was taken over.
    seen: f64,
    /// Not yet carried by an event.
    pending: f64,
}

#[derive(Debug, Default)]
struct Cycle {
    /// Events of each thread, shape `(n_threads,)`.
    n_events: Vec<u64>,
    n_live: u64,
}

/// The threads of all cycles under way.
#[derive(Debug, Default)]
pub(super) struct Threads {
    at: HashMap<Runner, u64>,
    demands: HashMap<Runner, Demand>,
    /// Threads of requests that were sent and not accepted.
    on_the_way: HashMap<u64, u64>,
    cycles: HashMap<u64, Cycle>,
    /// Where branches came from, and which of their fork they are.
    branches: HashMap<Runner, (u32, u32)>,
}

impl Threads {
    /// A new thread of a cycle.
    pub(super) fn fork(&mut self, cycle: u64) -> u64 {
        let cycle = self.cycles.entry(cycle).or_default();
        cycle.n_events.push(0);
        cycle.n_events.len() as u64
    }

    /// The number of the next event of a thread, from 1.
    pub(super) fn next(&mut self, cycle: u64, thread: u64) -> u64 {
        let Some(place) = usize::try_from(thread).ok().and_then(|t| t.checked_sub(1)) else { return 0 };
        let events = &mut self.cycles.entry(cycle).or_default().n_events;
        if events.len() <= place {
            events.resize(place + 1, 0);
        }
        events[place] += 1;
        events[place]
    }

    pub(super) fn of(&self, runner: Runner) -> u64 {
        self.at.get(&runner).copied().unwrap_or(1)
    }

    pub(super) fn put(&mut self, runner: Runner, thread: u64) {
        self.at.insert(runner, thread);
    }

    /// A request goes on its way on a thread.
    pub(super) fn send(&mut self, request: u64, thread: u64) {
        self.on_the_way.insert(request, thread);
    }

    /// A request is accepted: it runs on the thread that it came on, or on a new one.
    pub(super) fn accept(&mut self, request: u64, cycle: u64) -> u64 {
        let thread = self.on_the_way.remove(&request).unwrap_or_else(|| self.fork(cycle));
        self.put((request, 0), thread);
        thread
    }

    /// Where a branch came from, and which of its fork it is, from 0.
    pub(super) fn branch(&self, runner: Runner) -> (u32, u32) {
        self.branches.get(&runner).copied().unwrap_or_default()
    }

    /// Processor time that no event has carried yet.
    pub(super) fn take_demand(&mut self, runner: Runner) -> f64 {
        self.demands.get_mut(&runner).map_or(0.0, |d| std::mem::take(&mut d.pending))
    }

    fn account(&mut self, runner: Runner, demand: f64) {
        let of = self.demands.entry(runner).or_default();
        // Less than was taken over is of a further activity.
        of.pending += if demand >= of.seen { demand - of.seen } else { demand };
        of.seen = demand;
    }

    /// Whether anything of a cycle is under way.
    pub(super) fn is_under_way(&self, cycle: u64) -> bool {
        self.cycles.contains_key(&cycle)
    }

    /// Before an event is written.
    pub(super) fn before(&mut self, event: &RecordedEvent) {
        match event.event {
            Event::Sent { by, cycle, .. } => {
                self.cycles.entry(cycle).or_default().n_live += 1;
                if let Some(by) = by {
                    self.account((by.request, by.branch), by.demand);
                }
            }
            Event::ActivityBegan { branch, .. } => self.demands.entry((event.request, branch)).or_default().seen = 0.0,
            Event::ActivityEnded { branch, demand, .. } => self.account((event.request, branch), demand),
            Event::BranchBegan { branch, from, position, .. } => {
                self.branches.insert((event.request, branch), (from, position));
                if position == 0 {
                    let thread = self.of((event.request, from));
                    self.put((event.request, branch), thread);
                }
            }
            _ => {}
        }
    }

    /// After an event was written; `cycle` is that of its request.
    pub(super) fn after(&mut self, event: &RecordedEvent, cycle: u64) {
        match event.event {
            Event::BranchEnded { branch } => {
                let runner = (event.request, branch);
                let (from, position) = self.branches.remove(&runner).unwrap_or_default();
                let left = self.take_demand(runner);
                if position == 0 {
                    let thread = self.of(runner);
                    self.put((event.request, from), thread);
                    self.demands.entry((event.request, from)).or_default().pending += left;
                }
                self.at.remove(&runner);
                self.demands.remove(&runner);
            }
            Event::Ended | Event::Lost => {
                self.at.remove(&(event.request, 0));
                self.demands.remove(&(event.request, 0));
                self.on_the_way.remove(&event.request);
                let Some(of) = self.cycles.get_mut(&cycle) else { return };
                of.n_live -= 1;
                if of.n_live == 0 {
                    self.cycles.remove(&cycle);
                }
            }
            _ => {}
        }
    }
}
