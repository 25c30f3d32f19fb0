//! Sub-models to interactions: batches of finished recordings, and the sums of the report.
//!
//! An entry of a sub-model is one occurrence. Times are those of the receiving nodes; where a node has none, the counter of its
//! task stands for it. *Self time* is the demand of the activities of the entry's phase; where none has a demand but nodes have
//! times, the time between consecutive nodes of the task in the entry, without those that it waited in.

use super::{
    TaskCounters,
    control::{Control, EntryKind, Request},
    live::{Label, NONE},
    report::{Resources, Step},
    tasks::Tasks,
    toeg::Toeg,
};
use crate::{
    structure::interactions::{Interaction, InteractionKind, Interactions, Occurrence, Recording, Times},
    trace::{Time, names::Names},
};

/// Recordings handed over together.
const RECORDINGS_PER_BATCH: usize = 256;

/// Occurrences handed over together, about.
const OCCURRENCES_PER_BATCH: usize = 16_384;

/// What is known of a recording beside its graph.
pub(super) struct Header {
    pub(super) name: String,
    /// Number in the technique's scenarios.
    pub(super) scenario: u32,
    pub(super) weight: f64,
}

/// The names of the technique.
pub(super) struct NameTables<'n> {
    pub(super) tasks: &'n Tasks,
    pub(super) operations: &'n Names,
    pub(super) scenarios: &'n Names,
}

/// Finished recordings that were not handed over yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub(super) interactions: Interactions,
    /// Numbers in the batch of the technique's tasks and operations; [`NONE`] of those that are not in it.
    unit_of: Vec<u32>,
    operation_of: Vec<u32>,
    /// Occurrences of each unit of the batch in the recording at hand.
    n_of_unit: Vec<u32>,
    self_times: Vec<SelfTime>,
    /// Activities by entry and phase: nodes, and steps.
    activities: Vec<u32>,
    steps: Vec<Step>,
    /// Steps of entry `e` in phase `p` end at `ends[2e + p - 1]`.
    ends: Vec<u32>,
    n_requests: Vec<u32>,
}

/// Demand and elapsed time of an entry in phases 1 and 2; NaN where nothing is known.
#[derive(Clone, Copy, Debug)]
struct SelfTime {
    demand: [f64; 2],
    elapsed: [f64; 2],
}

impl SelfTime {
    fn ticks(&self) -> [Option<f64>; 2] {
        let known = |[first, second]: [f64; 2]| [first, second].map(|ticks| Some(ticks).filter(|ticks| !ticks.is_nan()));
        match known(self.demand) {
            [None, None] => known(self.elapsed),
            known => known,
        }
    }
}

fn add_to(sum: &mut f64, value: f64) {
    *sum = if sum.is_nan() { value } else { *sum + value };
}

impl Batch {
    /// Whether it is time to hand over.
    pub(super) fn is_full(&self) -> bool {
        self.interactions.traces.len() >= RECORDINGS_PER_BATCH || self.interactions.occurrences.len() >= OCCURRENCES_PER_BATCH
    }

    /// Hands over what there is; nothing is kept.
    pub(super) fn take(&mut self) -> Interactions {
        self.unit_of.clear();
        self.operation_of.clear();
        self.n_of_unit.clear();
        std::mem::take(&mut self.interactions)
    }

    /// Adds a sub-model.
    pub(super) fn add(&mut self, toeg: &Toeg, control: &Control, header: Header, names: &NameTables<'_>, counters: TaskCounters) {
        let trace = self.interactions.traces.len() as u32;
        let scenario_name = names.scenarios.name(header.scenario);
        let scenario = self.interactions.scenarios.intern(scenario_name);
        let weight = header.weight;
        self.interactions.traces.push(Recording { weight, ..Recording::new(header.name, scenario) });
        self.measure(toeg, control, counters);
        self.n_of_unit.fill(0);
        let base = self.interactions.occurrences.len();
        for (entry, self_time) in control.entries.iter().zip(0..) {
            let is_customer = entry.kind == EntryKind::Customer;
            let unit = if is_customer { self.customer(scenario_name) } else { self.unit(entry.task, names) };
            let operation = toeg.nodes.get(entry.node as usize).map_or(NONE, |node| node.operation);
            let n_of_unit = &mut self.n_of_unit[unit as usize];
            *n_of_unit += 1;
            let number = *n_of_unit;
            let operation = self.operation(operation, names);
            let self_time: &SelfTime = &self.self_times[self_time as usize];
            let self_time_ticks = self_time.ticks();
            self.interactions.occurrences.push(Occurrence { unit, number, trace, operation, originator: is_customer, self_time_ticks });
        }
        for request in &control.requests {
            let interaction = interaction(toeg, control, request, base);
            self.interactions.interactions.push(interaction);
        }
    }

    /// Adds the activities of the sub-model added last to the report.
    pub(super) fn add_resources(&mut self, toeg: &Toeg, control: &Control, tasks: &Tasks, resources: &mut Resources) {
        self.sort_steps(toeg, control);
        self.n_requests.clear();
        self.n_requests.resize(control.entries.len(), 0);
        for request in &control.requests {
            self.n_requests[request.from as usize] += 1;
            for forwarder in request.first..request.last {
                self.n_requests[forwarder as usize] += 1;
            }
        }
        let mut start = 0;
        for (index, entry) in control.entries.iter().enumerate() {
            let [first, second] = [self.ends[2 * index] as usize, self.ends[2 * index + 1] as usize];
            if entry.kind != EntryKind::Customer {
                let key = (tasks.process(entry.task), toeg.node(entry.node).operation, entry.kind);
                resources.add(key, self.n_requests[index], [&self.steps[start..first], &self.steps[first..second]]);
            }
            start = second;
        }
    }

    /// Activities by entry and phase, each in the order of its task.
    fn sort_steps(&mut self, toeg: &Toeg, control: &Control) {
        let slot = |node: u32| {
            let entry = control.entry_of[node as usize];
            let is_activity = entry != NONE && toeg.node(node).label == Label::Activity;
            is_activity.then(|| 2 * entry as usize + usize::from(control.phase(toeg, node, entry)) - 1)
        };
        let Self { activities, steps, ends, .. } = self;
        ends.clear();
        ends.resize(2 * control.entries.len(), 0);
        for slot in (0..toeg.nodes.len() as u32).filter_map(slot) {
            ends[slot] += 1;
        }
        let mut n_before = 0;
        for end in &mut *ends {
            (*end, n_before) = (n_before, n_before + *end);
        }
        activities.clear();
        activities.resize(n_before as usize, NONE);
        for node in 0..toeg.nodes.len() as u32 {
            if let Some(slot) = slot(node) {
                activities[ends[slot] as usize] = node;
                ends[slot] += 1;
            }
        }
        let (mut start, place) = (0, |node: &u32| toeg.place[*node as usize]);
        for end in &*ends {
            let own = &mut activities[start..*end as usize];
            if !own.is_sorted_by_key(place) {
                own.sort_unstable_by_key(place);
            }
            start = *end as usize;
        }
        steps.clear();
        steps.extend(activities.iter().map(|node| toeg.node(*node)).map(|node| (node.activity, node.demand)));
    }

    fn measure(&mut self, toeg: &Toeg, control: &Control, counters: TaskCounters) {
        self.self_times.clear();
        self.self_times.resize(control.entries.len(), SelfTime { demand: [f64::NAN; 2], elapsed: [f64::NAN; 2] });
        for (node, index) in toeg.nodes.iter().zip(0_u32..) {
            let entry = control.entry_of[index as usize];
            if entry == NONE {
                continue;
            }
            let phase = usize::from(control.phase(toeg, index, entry)) - 1;
            let self_time = &mut self.self_times[entry as usize];
            if node.label == Label::Activity && !node.demand.is_nan() {
                add_to(&mut self_time.demand[phase], node.demand);
            }
            let before = if node.has_time { toeg.earlier_in_task(index, counters) } else { None };
            let Some(before) = before else { continue };
            let (earlier, is_same) = (toeg.node(before), control.entry_of[before as usize] == entry);
            if is_same && earlier.has_time && !control.waits[before as usize] && earlier.time <= node.time {
                add_to(&mut self_time.elapsed[phase], node.time.ticks_since(earlier.time));
            }
        }
    }

    fn customer(&mut self, scenario: &str) -> u32 {
        let unit = self.interactions.units.intern(scenario, "");
        self.make_room(unit);
        unit
    }

    fn unit(&mut self, task: u32, names: &NameTables<'_>) -> u32 {
        let known = at(&mut self.unit_of, task);
        if *known == NONE {
            let (process, thread) = names.tasks.unit(task);
            *known = self.interactions.units.intern(process, thread);
        }
        let unit = *known;
        self.make_room(unit);
        unit
    }

    fn make_room(&mut self, unit: u32) {
        let n_units = self.n_of_unit.len().max(unit as usize + 1);
        self.n_of_unit.resize(n_units, 0);
    }

    fn operation(&mut self, operation: u32, names: &NameTables<'_>) -> Option<u32> {
        if operation == NONE {
            return None;
        }
        let known = at(&mut self.operation_of, operation);
        if *known == NONE {
            *known = self.interactions.operations.intern(names.operations.name(operation));
        }
        Some(*known)
    }
}

/// The number at `index`, [`NONE`] so far if there is none.
fn at(numbers: &mut Vec<u32>, index: u32) -> &mut u32 {
    let index = index as usize;
    if numbers.len() <= index {
        numbers.resize(index + 1, NONE);
    }
    &mut numbers[index]
}

fn interaction(toeg: &Toeg, control: &Control, request: &Request, base: usize) -> Interaction {
    let time = |node: u32| match toeg.nodes.get(node as usize) {
        Some(node) if node.has_time => node.time,
        Some(node) => Time::from_ticks(i64::try_from(node.task_node).unwrap_or(i64::MAX)),
        None => Time::default(),
    };
    let received = (request.first..=request.last).map(|entry| time(control.entries[entry as usize].node));
    let mut times: Times = received.collect();
    if request.kind != InteractionKind::Async {
        let accepted = control.entries[request.last as usize].node;
        times.push(time(if request.reply == NONE { accepted } else { request.reply }));
    }
    Interaction {
        kind: request.kind,
        phase: request.phase,
        from: base + request.from as usize,
        via: (request.first..request.last).map(|entry| base + entry as usize).collect(),
        to: base + request.last as usize,
        branch: None,
        times,
    }
}
