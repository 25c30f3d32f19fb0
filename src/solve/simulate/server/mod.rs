//! Tasks as servers: who is accepted when, replies and forwarding, locks, joins of several entries, customers.
//!
//! A pool serves at most `m` requests at once from one queue; a thread is held from acceptance until the last phase and
//! every branch has ended. A semaphore lends its tokens to `wait` requests and takes back the one lent longest when the
//! service of a `signal` ends; a signal is accepted once there is a token whose `wait` has been served and that no other
//! signal is for, and signals are served one at a time.
//!
//! A read-write lock admits up to `m` readers or one writer; a waiting writer keeps new readers out. A reader's unlock lets
//! in those who wait in order of arrival, a writer's unlock the next writer, else all readers. What is let in begins at the
//! acceptance of the unlock, beside the unlock's own service; a writer after a writer begins when that service is over.

mod customer;
mod instance;
mod lock;
mod synchronize;

use std::collections::VecDeque;

use super::{
    network::{Entry, Task, TaskKind},
    queue::Queue,
    run::{Instance, NONE, Resume, Run},
};
use crate::solve::{bind::Count, role::Role};

/// A request on its way to, or in the queue of, a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) entry: u32,
    /// The strand that waits for the reply, if any does.
    pub(super) caller: u32,
    /// The call that it is counted under.
    pub(super) origin: u32,
    pub(super) sent: f64,
    pub(super) urgency: f64,
    /// Order in which requests were sent, from 1.
    pub(super) order: u64,
    pub(super) is_open: bool,
}

/// The state of a task.
#[derive(Debug)]
pub(super) struct Server {
    state: State,
    /// Asynchronous requests queued or in phase 1.
    occupied: u32,
}

#[derive(Debug)]
enum State {
    Customers,
    Pool {
        busy: usize,
        limit: usize,
        queue: Queue<Request>,
    },
    Synchronizing {
        is_busy: bool,
        closed: Vec<u32>,
        queue: Queue<Request>,
    },
    /// `returnable` tokens of those lent have had their wait served, and no signal is for them.
    Semaphore {
        free: usize,
        lent: VecDeque<f64>,
        returnable: usize,
        waits: Queue<Request>,
        signals: Unlocks,
    },
    RwLock {
        limit: usize,
        readers: VecDeque<f64>,
        writer: Option<f64>,
        reads: Queue<Request>,
        writes: Queue<Request>,
    },
}

/// When, at the instant of its acceptance, a request begins to be served: the order of [`super::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::solve::simulate) enum Order {
    /// With what is ready.
    Ready,
    /// With what happens in random order.
    Later,
    /// The same, once the pool has passed it on to a thread.
    Dispatched,
}

/// Requests that give a lock back, served one at a time.
#[derive(Debug)]
struct Unlocks {
    is_busy: bool,
    queue: Queue<Request>,
}

impl Unlocks {
    fn new() -> Self {
        Self { is_busy: false, queue: Queue::fifo() }
    }

    fn admit(&mut self) -> bool {
        !std::mem::replace(&mut self.is_busy, true)
    }
}

fn limit(threads: Count) -> usize {
    match threads {
        Count::Finite(n) => n as usize,
        Count::Infinite => usize::MAX,
    }
}

impl Server {
    /// A task without requests.
    pub(super) fn new(task: &Task) -> Self {
        let limit = limit(task.threads);
        let pool = |queue| State::Pool { busy: 0, limit, queue };
        let state = match task.kind {
            TaskKind::Reference => State::Customers,
            TaskKind::Fifo => pool(Queue::fifo()),
            TaskKind::Priority => pool(Queue::ranked()),
            TaskKind::Random => pool(Queue::random()),
            TaskKind::Synchronizing => State::Synchronizing { is_busy: false, closed: Vec::new(), queue: Queue::fifo() },
            TaskKind::Semaphore { free } => State::Semaphore {
                free: free as usize,
                lent: std::iter::repeat_n(0.0, limit - free as usize).collect(),
                returnable: limit - free as usize,
                waits: Queue::fifo(),
                signals: Unlocks::new(),
            },
            TaskKind::RwLock => {
                State::RwLock { limit, readers: VecDeque::new(), writer: None, reads: Queue::fifo(), writes: Queue::fifo() }
            }
        };
        Self { state, occupied: 0 }
    }

    /// Takes what a request to `entry` needs, if that is free.
    #[inline]
    fn admit(&mut self, number: u32, entry: &Entry, now: f64) -> bool {
        match &mut self.state {
            State::Customers => false,
            State::Pool { busy, limit, .. } => {
                let is_free = *busy < *limit;
                *busy += usize::from(is_free);
                is_free
            }
            State::Synchronizing { is_busy, closed, .. } => {
                let is_free = !*is_busy && !closed.contains(&number);
                *is_busy |= is_free;
                is_free
            }
            State::Semaphore { free, lent, returnable, signals, .. } => match entry.role {
                Role::Signal if *returnable == 0 => false,
                Role::Signal => {
                    let is_free = signals.admit();
                    *returnable -= usize::from(is_free);
                    is_free
                }
                _ if *free > 0 => {
                    *free -= 1;
                    lent.push_back(now);
                    true
                }
                _ => false,
            },
            State::RwLock { limit, readers, writer, writes, .. } => match entry.role {
                Role::ReadLock if writer.is_none() && writes.len() == 0 && readers.len() < *limit => {
                    readers.push_back(now);
                    true
                }
                Role::WriteLock if writer.is_none() && readers.is_empty() => {
                    *writer = Some(now);
                    true
                }
                Role::ReadUnlock | Role::WriteUnlock => true,
                _ => false,
            },
        }
    }

    fn queue(&mut self, role: Role) -> Option<&mut Queue<Request>> {
        match &mut self.state {
            State::Customers => None,
            State::Pool { queue, .. } | State::Synchronizing { queue, .. } => Some(queue),
            State::Semaphore { waits, signals, .. } => Some(if role == Role::Signal { &mut signals.queue } else { waits }),
            State::RwLock { reads, writes, .. } => Some(if role == Role::ReadLock { reads } else { writes }),
        }
    }

    /// Every waiting request.
    pub(super) fn waiting(&self) -> Vec<&Request> {
        match &self.state {
            State::Customers => Vec::new(),
            State::Pool { queue, .. } | State::Synchronizing { queue, .. } => queue.iter().collect(),
            State::Semaphore { waits, signals, .. } => waits.iter().chain(signals.queue.iter()).collect(),
            State::RwLock { reads, writes, .. } => reads.iter().chain(writes.iter()).collect(),
        }
    }
}

impl Run<'_> {
    /// Changes the number of busy threads of an entry.
    #[inline]
    pub(in crate::solve::simulate) fn shift_entry(&mut self, entry: u32, change: f64) {
        let level = self.statistics.layout.entry_level(self.network.entries[entry as usize].origin as usize);
        self.statistics.shift(level, self.now, change);
    }

    /// A strand makes call number `call`.
    #[inline]
    pub(in crate::solve::simulate) fn send(&mut self, strand: u32, call: u32) {
        let network = self.network;
        let spec = &network.calls[call as usize];
        let caller = if spec.is_sync { strand } else { NONE };
        let urgency = self.urgency(strand, spec.entry);
        let (entry, origin) = (spec.entry, spec.origin);
        let request = Request { entry, caller, origin, sent: self.now, urgency, order: self.next_order(), is_open: false };
        self.note_call(strand, &request);
        self.deliver(request);
    }

    /// The order of a request that is sent now.
    #[inline]
    pub(in crate::solve::simulate) fn next_order(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// Sum of the sender's and the entry's priority.
    #[inline]
    pub(in crate::solve::simulate) fn urgency(&self, strand: u32, entry: u32) -> f64 {
        let instance = self.strands.items[strand as usize].instance;
        let task = self.instances.items[instance as usize].task;
        self.network.entries[entry as usize].priority + self.network.tasks[task as usize].priority
    }

    /// A request arrives at its task.
    #[inline]
    pub(in crate::solve::simulate) fn deliver(&mut self, request: Request) {
        let network = self.network;
        let entry = &network.entries[request.entry as usize];
        if request.caller == NONE && self.is_lost(&request, entry) {
            return self.note_lost(&request);
        }
        let server = &mut self.servers[entry.task as usize];
        if server.admit(request.entry, entry, self.now) {
            let is_pool = matches!(server.state, State::Pool { limit, .. } if limit > 1);
            return self.accept(&request, if is_pool { Order::Dispatched } else { Order::Ready });
        }
        if matches!(&server.state, State::Semaphore { lent, .. } if entry.role == Role::Signal && lent.is_empty()) {
            return self.fail_unheld(entry.task);
        }
        if let Some(queue) = server.queue(entry.role) {
            queue.push(request, request.urgency, request.order);
        }
    }

    /// Counts an asynchronous or open request, and whether it found no place.
    #[inline]
    pub(in crate::solve::simulate) fn is_lost(&mut self, request: &Request, entry: &Entry) -> bool {
        let layout = self.statistics.layout;
        let place = if request.is_open { layout.open_lost(entry.origin as usize) } else { layout.lost(request.origin as usize) };
        self.statistics.count(place + 1);
        let server = &mut self.servers[entry.task as usize];
        let task = &self.network.tasks[entry.task as usize];
        if task.places != u32::MAX {
            let total = layout.task_lost(task.origin as usize);
            self.statistics.count(total + 1);
            if server.occupied >= task.places {
                self.statistics.count(place);
                self.statistics.count(total);
                return true;
            }
        }
        server.occupied += 1;
        self.statistics.shift(layout.population(), self.now, 1.0);
        false
    }

    /// The service of a request begins.
    #[inline]
    pub(in crate::solve::simulate) fn accept(&mut self, request: &Request, order: Order) {
        let task = self.network.entries[request.entry as usize].task;
        if !request.is_open {
            let place = self.statistics.layout.waiting(request.origin as usize);
            self.statistics.tally_with_square(place, self.now - request.sent);
        }
        if self.network.tasks[task as usize].kind != TaskKind::Synchronizing {
            self.shift_entry(request.entry, 1.0);
        } else {
            self.open_synchronizing(task, request.entry);
        }
        let instance = self.instances.insert(Instance {
            entry: request.entry,
            task,
            caller: request.caller,
            is_customer: false,
            is_open: request.is_open,
            is_async: request.caller == NONE,
            has_replied: false,
            holds_lock: false,
            sent: request.sent,
            since: self.now,
            n_strands: 1,
            root: NONE,
            partner: NONE,
        });
        let resume = if order == Order::Dispatched { Resume::Dispatched } else { Resume::Begin };
        self.note_accepted(request, instance, task);
        let strand = self.new_strand(instance, NONE, resume);
        let role = self.network.entries[request.entry as usize].role;
        if role == Role::ReadUnlock {
            self.give_back(task, role);
            self.serve_after_reader(task);
        }
        match order {
            Order::Ready => self.ready.push_back(strand),
            Order::Later | Order::Dispatched => self.later.push(strand),
        }
        if role == Role::WriteUnlock {
            self.accept_write_unlock(instance, task);
        }
    }

    /// The service of a request to `entry` is over: frees what it took, or lets go the token that it gives back.
    #[inline]
    pub(in crate::solve::simulate) fn end_service(&mut self, task: u32, entry: &Entry) {
        match &mut self.servers[task as usize].state {
            State::Pool { busy, .. } => *busy -= 1,
            State::Customers | State::Synchronizing { .. } => {}
            State::Semaphore { returnable, signals, .. } => {
                if entry.role == Role::Signal {
                    signals.is_busy = false;
                    self.give_back(task, entry.role);
                } else {
                    *returnable += 1;
                }
            }
            State::RwLock { .. } => {}
        }
    }

    /// Accepts every waiting request that can be.
    #[inline]
    pub(in crate::solve::simulate) fn serve_waiting(&mut self, task: u32) {
        let network = self.network;
        match network.tasks[task as usize].kind {
            TaskKind::Fifo | TaskKind::Priority | TaskKind::Random => {
                let server = &mut self.servers[task as usize];
                let State::Pool { busy, limit, queue } = &mut server.state else { return };
                if *busy < *limit
                    && let Some(request) = queue.pop(&mut self.streams[task as usize])
                {
                    *busy += 1;
                    let order = if *limit > 1 { Order::Dispatched } else { Order::Later };
                    self.accept(&request, order);
                }
            }
            TaskKind::Synchronizing => self.serve_synchronizing(task),
            TaskKind::Semaphore { .. } => {
                self.serve_role(task, Role::Signal);
                self.serve_role(task, Role::Wait);
            }
            TaskKind::RwLock => self.serve_role(task, Role::WriteLock),
            TaskKind::Reference => {}
        }
    }

    /// Accepts the requests waiting in a lock's queue of `role` while they can be.
    pub(in crate::solve::simulate) fn serve_role(&mut self, task: u32, role: Role) {
        let network = self.network;
        loop {
            let server = &mut self.servers[task as usize];
            let Some(queue) = server.queue(role) else { return };
            let Some(request) = queue.pop(&mut self.streams[task as usize]) else { return };
            let entry = &network.entries[request.entry as usize];
            if !server.admit(request.entry, entry, self.now) {
                if let Some(queue) = server.queue(role) {
                    queue.push_front(request);
                }
                return;
            }
            self.accept(&request, Order::Ready);
        }
    }
}
