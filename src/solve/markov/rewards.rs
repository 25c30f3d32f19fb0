//! What is measured: levels that a state has, and events counted on the way from state to state.
//!
//! Both are rewards a unit of time: a state's level while it lasts, and the rate of its events times what each counts. Weighted
//! with the states' probabilities they sum to the mean level and the mean rate.

use super::{
    network::{Discipline, Lock, NONE, Network},
    state::{Doing, State},
};
use crate::solve::role::Role;

/// Places of an entry: busy, completions, levels and ends of three phases, and level, replies, offers and losses of open
/// arrivals, level and returns of what is held of a lock.
const ENTRY: usize = 14;
/// Places of an activity: level, ends.
const ACTIVITY: usize = 2;
/// Places of a route: waiting, accepted, offered, lost.
const ROUTE: usize = 4;

/// The place of every reward in one row of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    entries: usize,
    activities: usize,
    routes: usize,
    /// Number of places.
    pub(super) width: usize,
}

impl Layout {
    /// The layout for a network; processors come first.
    pub(super) fn new(network: &Network) -> Self {
        let entries = network.processors.len();
        let activities = entries + ENTRY * network.entries.len();
        let routes = activities + ACTIVITY * network.activities.len();
        Self { entries, activities, routes, width: routes + ROUTE * network.routes.len() }
    }

    fn entry(&self, entry: u32, place: usize) -> usize {
        self.entries + ENTRY * entry as usize + place
    }

    /// All places of an entry.
    pub(super) fn of_entry(&self, entry: u32) -> std::ops::Range<usize> {
        self.entry(entry, 0)..self.entry(entry, ENTRY)
    }

    /// All places of an activity.
    pub(super) fn of_activity(&self, activity: u32) -> std::ops::Range<usize> {
        self.in_activity(activity)..self.in_activity(activity) + ACTIVITY
    }

    /// All places of a route.
    pub(super) fn of_route(&self, route: u32) -> std::ops::Range<usize> {
        self.waiting(route)..self.waiting(route) + ROUTE
    }

    /// Instances of an entry.
    pub(super) fn busy(&self, entry: u32) -> usize {
        self.entry(entry, 0)
    }

    /// Instances that ended.
    pub(super) fn completions(&self, entry: u32) -> usize {
        self.entry(entry, 1)
    }

    /// Instances in phase 1 to 3.
    pub(super) fn in_phase(&self, entry: u32, phase: usize) -> usize {
        self.entry(entry, 1 + phase)
    }

    /// Ends of phase 1 to 3.
    pub(super) fn phase_ends(&self, entry: u32, phase: usize) -> usize {
        self.entry(entry, 4 + phase)
    }

    /// Open requests queued or in phase 1.
    pub(super) fn open(&self, entry: u32) -> usize {
        self.entry(entry, 8)
    }

    /// Ends of phase 1 of open requests.
    pub(super) fn open_replies(&self, entry: u32) -> usize {
        self.entry(entry, 9)
    }

    /// Open arrivals.
    pub(super) fn open_offered(&self, entry: u32) -> usize {
        self.entry(entry, 10)
    }

    /// Open arrivals that found no place.
    pub(super) fn open_lost(&self, entry: u32) -> usize {
        self.entry(entry, 11)
    }

    /// What is held that was taken by an entry of a lock.
    pub(super) fn held(&self, entry: u32) -> usize {
        self.entry(entry, 12)
    }

    /// Returns of what was taken by an entry of a lock.
    pub(super) fn gives(&self, entry: u32) -> usize {
        self.entry(entry, 13)
    }

    /// Strands in an activity of a graph.
    pub(super) fn in_activity(&self, activity: u32) -> usize {
        self.activities + ACTIVITY * activity as usize
    }

    /// Ends of an activity of a graph.
    pub(super) fn activity_ends(&self, activity: u32) -> usize {
        self.in_activity(activity) + 1
    }

    /// Requests in a queue.
    pub(super) fn waiting(&self, route: u32) -> usize {
        self.routes + ROUTE * route as usize
    }

    /// Requests accepted.
    pub(super) fn accepted(&self, route: u32) -> usize {
        self.waiting(route) + 1
    }

    /// Requests sent.
    pub(super) fn offered(&self, route: u32) -> usize {
        self.waiting(route) + 2
    }

    /// Requests that found no place.
    pub(super) fn lost(&self, route: u32) -> usize {
        self.waiting(route) + 3
    }
}

/// The rewards of one state, collected place by place.
#[derive(Debug)]
pub(super) struct Row {
    values: Vec<f64>,
    touched: Vec<usize>,
}

impl Row {
    /// A row of zeros.
    pub(super) fn new(width: usize) -> Self {
        Self { values: vec![0.0; width], touched: Vec::new() }
    }

    /// Adds to a place.
    pub(super) fn add(&mut self, place: usize, value: f64) {
        if self.values[place] == 0.0 {
            self.touched.push(place);
        }
        self.values[place] += value;
    }

    /// Takes the places that are not 0, and leaves zeros.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let values = &mut self.values;
        self.touched.drain(..).map(|place| (place, std::mem::take(&mut values[place])))
    }
}

/// Adds the levels of `state`.
#[expect(clippy::cast_precision_loss, reason = "counts of servers")]
pub(super) fn add_levels(network: &Network, layout: &Layout, state: &State, row: &mut Row) {
    for (p, (spec, station)) in network.processors.iter().zip(&state.stations).enumerate() {
        row.add(p, n_busy(spec.discipline, spec.servers, station.running.len()) as f64);
    }
    for instance in state.instances.iter().filter(|i| i.n_strands > 0) {
        row.add(layout.busy(instance.entry), 1.0);
        if !network.entries[instance.entry as usize].has_phases {
            row.add(layout.in_phase(instance.entry, if instance.has_replied { 2 } else { 1 }), 1.0);
        }
        if instance.is_open && !instance.has_replied {
            row.add(layout.open(instance.entry), 1.0);
        }
    }
    for strand in state.strands.iter().filter(|s| s.doing != Doing::Gone) {
        match network.activities[strand.activity as usize].phase {
            0 => row.add(layout.in_activity(strand.activity), 1.0),
            phase => row.add(layout.in_phase(state.instances[strand.instance as usize].entry, usize::from(phase)), 1.0),
        }
    }
    for (t, server) in state.servers.iter().enumerate().filter(|(t, _)| network.tasks[*t].lock != Lock::None) {
        let shared = if network.tasks[t].lock == Lock::Semaphore { Role::Wait } else { Role::ReadLock };
        for (role, n) in [(shared, f64::from(server.held)), (Role::WriteLock, f64::from(u8::from(server.is_written)))] {
            if let Some(entry) = network.taker(t, role) {
                row.add(layout.held(entry), n);
            }
        }
    }
    for request in state.servers.iter().flat_map(|s| &s.queue) {
        row.add(if request.route == NONE { layout.open(request.entry) } else { layout.waiting(request.route) }, 1.0);
    }
}

/// Busy servers of a processor with this many jobs in service.
pub(super) fn n_busy(discipline: Discipline, servers: usize, n_running: usize) -> usize {
    if discipline == Discipline::Sharing { n_running.min(servers) } else { n_running }
}
