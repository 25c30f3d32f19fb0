//! What a recording keeps of a run: who is who among its strands and instances, and the events not yet handed over.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use super::{Event, Place, RecordedEvent, RequestKind};
use crate::solve::simulate::network::{Network, TaskKind};

/// A request between its sending and its acceptance.
#[derive(Clone, Copy, Debug)]
struct Pending {
    chain: u64,
    cycle: u64,
}

/// An execution, by the place of its instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Execution {
    pub(super) request: u64,
    pub(super) chain: u64,
    pub(super) cycle: u64,
    task: u32,
    thread: u32,
    n_forks: u32,
    /// The branch that each branch was forked by; 0 for branch 0.
    parents: Vec<u32>,
    /// Branches that have arrived at joins: join, branch.
    arrived: Vec<(u32, u32)>,
    /// Number of the event by which it replied or forwarded, while nothing has happened in it since.
    handover: Option<u64>,
}

/// A strand, by its place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    pub(super) branch: u32,
    /// Phase when its activity began.
    pub(super) phase: u8,
    /// Processor time that its activity has used.
    pub(super) demand: f64,
}

/// Threads of a task that are free below the highest ever used.
#[derive(Debug, Default)]
struct Threads {
    free: BinaryHeap<Reverse<u32>>,
    n_used: u32,
}

/// The recorder of a run.
#[derive(Debug)]
pub(in crate::solve::simulate) struct Recorder {
    events: Vec<RecordedEvent>,
    /// Events handed over before those in `events`.
    n_taken: u64,
    pub(super) cycles: u64,
    cycles_limit: Option<u64>,
    pub(super) is_closed: bool,
    /// Requests sent and not yet ended or lost.
    n_live: u64,
    pending: HashMap<u64, Pending>,
    executions: Vec<Execution>,
    controls: Vec<Control>,
    threads: Vec<Threads>,
    /// First instance of the customers of each task.
    first_customer: Vec<u32>,
    /// The branch that forks, and which of its execution's forks it is.
    forking: (u32, u32),
}

impl Recorder {
    /// Nothing has happened; no cycle begins after `cycles_limit`.
    pub(super) fn new(network: &Network, cycles_limit: Option<u64>) -> Self {
        let mut n_customers = 0;
        let first_customer = network.tasks.iter().map(|task| {
            let first = n_customers;
            if let (TaskKind::Reference, crate::solve::bind::Count::Finite(n)) = (task.kind, task.threads) {
                n_customers += n;
            }
            first
        });
        Self {
            events: Vec::new(),
            n_taken: 0,
            cycles: 0,
            cycles_limit,
            is_closed: false,
            n_live: 0,
            pending: HashMap::new(),
            executions: Vec::new(),
            controls: Vec::new(),
            first_customer: first_customer.collect(),
            threads: network.tasks.iter().map(|_| Threads::default()).collect(),
            forking: (0, 0),
        }
    }

    /// Hands the events over.
    pub(super) fn take(&mut self) -> Vec<RecordedEvent> {
        self.n_taken += self.events.len() as u64;
        std::mem::take(&mut self.events)
    }

    /// Whether nothing is under way and nothing will begin.
    pub(super) fn is_drained(&self) -> bool {
        self.is_closed && self.n_live == 0
    }

    pub(super) fn push(&mut self, time: f64, request: u64, event: Event) {
        self.events.push(RecordedEvent { time, request, event });
    }

    pub(super) fn execution(&mut self, instance: u32) -> &mut Execution {
        let place = instance as usize;
        if place >= self.executions.len() {
            self.executions.resize_with(place + 1, Execution::default);
        }
        &mut self.executions[place]
    }

    pub(super) fn control(&mut self, strand: u32) -> &mut Control {
        let place = strand as usize;
        if place >= self.controls.len() {
            self.controls.resize_with(place + 1, Control::default);
        }
        &mut self.controls[place]
    }

    /// A request is sent; `via` is the instance that it is sent from, where there is one.
    pub(super) fn sent(&mut self, time: f64, request: u64, kind: RequestKind, by: Option<Place>, via: Option<u32>, entry: u32) {
        let (chain, cycle) = match via.map(|instance| &*self.execution(instance)) {
            None => (request, request),
            Some(sender) => (if kind == RequestKind::Forward { sender.chain } else { request }, sender.cycle),
        };
        if via.is_none() {
            self.cycles += 1;
            self.is_closed |= self.cycles_limit.is_some_and(|limit| self.cycles >= limit);
        }
        self.n_live += 1;
        self.pending.insert(request, Pending { chain, cycle });
        if let (RequestKind::Forward, Some(instance)) = (kind, via) {
            self.hand_over(instance);
        }
        self.push(time, request, Event::Sent { kind, by, chain, cycle, entry, ends: false });
    }

    pub(super) fn lost(&mut self, time: f64, request: u64) {
        self.pending.remove(&request);
        self.n_live -= 1;
        self.push(time, request, Event::Lost);
    }

    /// An instance begins to serve a request of a task.
    pub(super) fn accepted(&mut self, time: f64, request: u64, instance: u32, task: u32, is_customer: bool) {
        let Some(Pending { chain, cycle }) = self.pending.remove(&request) else { return };
        let thread = if is_customer { instance - self.first_customer[task as usize] } else { self.threads[task as usize].lend() };
        let execution = self.execution(instance);
        (execution.request, execution.chain, execution.cycle) = (request, chain, cycle);
        (execution.task, execution.thread, execution.n_forks, execution.handover) = (task, thread, 0, None);
        execution.parents.clear();
        execution.parents.push(0);
        execution.arrived.clear();
        self.push(time, request, Event::Accepted { thread });
    }

    pub(super) fn replied(&mut self, time: f64, instance: u32) {
        self.hand_over(instance);
        let Execution { request, chain, .. } = *self.execution(instance);
        self.push(time, request, Event::Replied { chain, ends: false });
    }

    /// The next event is that by which the execution replies or forwards.
    fn hand_over(&mut self, instance: u32) {
        let number = self.n_taken + self.events.len() as u64;
        self.execution(instance).handover = Some(number);
    }

    /// Something happened in the execution after it replied.
    pub(super) fn goes_on(&mut self, instance: u32) {
        self.execution(instance).handover = None;
    }

    pub(super) fn ended(&mut self, time: f64, instance: u32, is_customer: bool) {
        let Execution { request, task, thread, handover, .. } = *self.execution(instance);
        let place = handover.and_then(|number| number.checked_sub(self.n_taken));
        if let Some(event) = place.and_then(|place| self.events.get_mut(place as usize))
            && event.time >= time
            && let Event::Sent { ends, .. } | Event::Replied { ends, .. } = &mut event.event
        {
            *ends = true;
        }
        if !is_customer {
            self.threads[task as usize].free.push(Reverse(thread));
        }
        self.n_live -= 1;
        self.push(time, request, Event::Ended);
    }

    /// A strand forks; its branches begin by [`Recorder::branch`].
    pub(super) fn fork(&mut self, strand: u32, instance: u32) {
        let from = self.control(strand).branch;
        let execution = self.execution(instance);
        execution.n_forks += 1;
        self.forking = (from, execution.n_forks - 1);
    }

    /// A strand begins the branch of the present fork at `position`.
    pub(super) fn branch(&mut self, time: f64, strand: u32, instance: u32, position: u32) {
        let (from, fork) = self.forking;
        let execution = self.execution(instance);
        execution.handover = None;
        let (request, branch) = (execution.request, execution.parents.len() as u32);
        execution.parents.push(from);
        *self.control(strand) = Control { branch, phase: 1, demand: 0.0 };
        self.push(time, request, Event::BranchBegan { branch, from, fork, position });
    }

    /// A strand's branch ends; nothing outside of forks.
    pub(super) fn branch_ended(&mut self, time: f64, strand: u32, instance: u32) {
        let branch = self.control(strand).branch;
        let request = self.execution(instance).request;
        if branch != 0 {
            self.push(time, request, Event::BranchEnded { branch });
        }
    }

    /// A strand arrives at a join, which it may be the last to do.
    pub(super) fn arrived(&mut self, time: f64, strand: u32, instance: u32, join: u32, goes_on: bool) {
        self.branch_ended(time, strand, instance);
        let branch = self.control(strand).branch;
        let execution = self.execution(instance);
        execution.arrived.push((join, branch));
        if !goes_on {
            return self.control(strand).branch = 0;
        }
        let joined: Vec<u32> = execution.arrived.extract_if(.., |(at, _)| *at == join).map(|(_, branch)| branch).collect();
        let (request, around) = (execution.request, around(&execution.parents, &joined));
        *self.control(strand) = Control { branch: around, phase: 1, demand: 0.0 };
        self.push(time, request, Event::Joined { branch: around });
    }
}

/// The innermost branch around all of `joined`: an ancestor of each, and none of them unless that is branch 0.
fn around(parents: &[u32], joined: &[u32]) -> u32 {
    let parent = |branch: u32| parents.get(branch as usize).copied().unwrap_or(0);
    let mut around = joined.last().map_or(0, |last| parent(*last));
    for &branch in joined {
        let is_ancestor = |candidate: u32| {
            let mut at = branch;
            while at > candidate {
                at = parent(at);
            }
            at == candidate && candidate != branch
        };
        while around != 0 && !is_ancestor(around) {
            around = parent(around);
        }
    }
    around
}

impl Threads {
    /// The lowest free thread.
    fn lend(&mut self) -> u32 {
        if let Some(Reverse(thread)) = self.free.pop() {
            return thread;
        }
        self.n_used += 1;
        self.n_used - 1
    }
}
