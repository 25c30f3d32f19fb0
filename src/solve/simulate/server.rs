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
mod join;

use std::collections::VecDeque;

use super::{
    bind::{Count, unusable},
    law,
    network::{Entry, Role, Task, TaskKind},
    queue::Queue,
    run::{Instance, NONE, Resume, Run},
};

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
    /// Order in which requests began to wait.
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
    /// Changes the number of busy threads of a task and of an entry.
    fn shift_busy(&mut self, task: u32, entry: u32, change: f64) {
        let level = self.statistics.layout.task_level(self.network.tasks[task as usize].origin as usize);
        self.statistics.shift(level, self.now, change);
        self.shift_entry(entry, change);
    }

    fn shift_entry(&mut self, entry: u32, change: f64) {
        let level = self.statistics.layout.entry_level(self.network.entries[entry as usize].origin as usize);
        self.statistics.shift(level, self.now, change);
    }

    /// A strand makes call number `call`.
    pub(super) fn send(&mut self, strand: u32, call: u32) {
        let network = self.network;
        let spec = &network.calls[call as usize];
        let caller = if spec.is_sync { strand } else { NONE };
        let urgency = self.urgency(strand, spec.entry);
        let (entry, origin) = (spec.entry, spec.origin);
        self.deliver(Request { entry, caller, origin, sent: self.now, urgency, order: 0, is_open: false });
    }

    /// Sum of the sender's and the entry's priority.
    fn urgency(&self, strand: u32, entry: u32) -> f64 {
        let instance = self.strands.items[strand as usize].instance;
        let task = self.instances.items[instance as usize].task;
        self.network.entries[entry as usize].priority + self.network.tasks[task as usize].priority
    }

    /// A request arrives at its task.
    pub(super) fn deliver(&mut self, mut request: Request) {
        let network = self.network;
        let entry = &network.entries[request.entry as usize];
        if request.caller == NONE && self.is_lost(&request, entry) {
            return;
        }
        let server = &mut self.servers[entry.task as usize];
        if server.admit(request.entry, entry, self.now) {
            return self.accept(&request);
        }
        if matches!(&server.state, State::Semaphore { lent, .. } if entry.role == Role::Signal && lent.is_empty()) {
            return self.fail_unheld(entry.task);
        }
        self.requests += 1;
        request.order = self.requests;
        if let Some(queue) = server.queue(entry.role) {
            queue.push(request, request.urgency, request.order);
        }
    }

    /// Counts an asynchronous or open request, and whether it found no place.
    fn is_lost(&mut self, request: &Request, entry: &Entry) -> bool {
        let layout = self.statistics.layout;
        let place = if request.is_open { layout.open_lost(entry.origin as usize) } else { layout.lost(request.origin as usize) };
        self.statistics.count(place + 1);
        let server = &mut self.servers[entry.task as usize];
        if server.occupied >= self.network.tasks[entry.task as usize].places {
            self.statistics.count(place);
            return true;
        }
        server.occupied += 1;
        self.statistics.shift(layout.population(), self.now, 1.0);
        false
    }

    /// The service of a request begins.
    fn accept(&mut self, request: &Request) {
        let task = self.network.entries[request.entry as usize].task;
        if !request.is_open {
            let place = self.statistics.layout.waiting(request.origin as usize);
            self.statistics.tally(place, self.now - request.sent);
        }
        if self.network.tasks[task as usize].kind != TaskKind::Synchronizing {
            self.shift_busy(task, request.entry, 1.0);
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
        let strand = self.new_strand(instance, NONE, Resume::Begin);
        let role = self.network.entries[request.entry as usize].role;
        if role == Role::ReadUnlock {
            self.give_back(task, role);
            self.serve_after_reader(task);
        }
        self.ready.push_back(strand);
        if role == Role::WriteUnlock {
            self.accept_write_unlock(instance, task);
        }
    }

    /// A writer's unlock lets the readers in at once, where no writer waits.
    fn accept_write_unlock(&mut self, instance: u32, task: u32) {
        let State::RwLock { writes, .. } = &self.servers[task as usize].state else { return };
        if writes.len() > 0 {
            self.instances.items[instance as usize].holds_lock = true;
            return;
        }
        self.give_back(task, Role::WriteUnlock);
        self.serve_role(task, Role::ReadLock);
    }

    /// Accepts who waits for a read-write lock in order of arrival.
    fn serve_after_reader(&mut self, task: u32) {
        loop {
            let State::RwLock { limit, readers, writer, reads, writes } = &self.servers[task as usize].state else { return };
            let order = |queue: &Queue<Request>| queue.first().map_or(u64::MAX, |r| r.order);
            let reader_is_next = order(reads) < order(writes);
            let is_free = writer.is_none() && if reader_is_next { readers.len() < *limit } else { readers.is_empty() };
            let role = if reader_is_next { Role::ReadLock } else { Role::WriteLock };
            let Some(queue) = self.servers[task as usize].queue(role).filter(|_| is_free) else { return };
            let Some(request) = queue.pop(&mut self.streams[task as usize]) else { return };
            let State::RwLock { readers, writer, .. } = &mut self.servers[task as usize].state else { return };
            if reader_is_next {
                readers.push_back(self.now);
            } else {
                *writer = Some(self.now);
            }
            self.accept(&request);
        }
    }

    /// A synchronizing task is busy from the first acceptance until the joined work ends.
    fn open_synchronizing(&mut self, task: u32, entry: u32) {
        self.shift_entry(entry, 1.0);
        if let State::Synchronizing { closed, .. } = &self.servers[task as usize].state
            && closed.is_empty()
        {
            let level = self.statistics.layout.task_level(self.network.tasks[task as usize].origin as usize);
            self.statistics.shift(level, self.now, 1.0);
        }
    }

    /// Takes the time of a phase of an instance, and begins the next.
    pub(super) fn end_phase(&mut self, instance: u32, phase: usize) {
        let this = &mut self.instances.items[instance as usize];
        let time = self.now - this.since;
        this.since = self.now;
        let origin = self.network.entries[this.entry as usize].origin as usize;
        self.statistics.tally_phase(origin, phase, time);
    }

    /// Phase 1 of an instance is over: the caller goes on, or the request is forwarded. Returns the caller that goes on.
    pub(super) fn reply(&mut self, instance: u32) -> Option<u32> {
        let network = self.network;
        let this = &mut self.instances.items[instance as usize];
        this.has_replied = true;
        let Instance { entry, task, caller, is_open, is_async, sent, .. } = *this;
        let spec = &network.entries[entry as usize];
        if is_open {
            let place = self.statistics.layout.open(spec.origin as usize);
            self.statistics.tally(place, self.now - sent);
        }
        if is_async {
            self.servers[task as usize].occupied -= 1;
            self.statistics.shift(self.statistics.layout.population(), self.now, -1.0);
        }
        if caller == NONE {
            return None;
        }
        self.instances.items[instance as usize].caller = NONE;
        if !spec.forwardings.is_empty() {
            let drawn = law::uniform(&mut self.streams[task as usize]);
            let list = &network.forwardings[spec.forwardings.start as usize..spec.forwardings.end as usize];
            if let Some(forwarding) = list.iter().find(|f| drawn < f.cumulative) {
                let urgency = network.entries[forwarding.entry as usize].priority + network.tasks[task as usize].priority;
                let (entry, origin) = (forwarding.entry, forwarding.origin);
                self.deliver(Request { entry, caller, origin, sent: self.now, urgency, order: 0, is_open: false });
                return None;
            }
        }
        self.strands.items[caller as usize].resume = Resume::Slice;
        self.ready.push_back(caller);
        Some(caller)
    }

    /// A strand ends, and with the last one its instance. Whether it goes on at once, as a customer in its next cycle.
    pub(super) fn end_strand(&mut self, strand: u32) -> bool {
        let this = self.strands.items[strand as usize];
        self.release_frame(this.frame);
        let instance = &mut self.instances.items[this.instance as usize];
        instance.n_strands -= 1;
        let is_last = instance.n_strands == 0;
        if is_last && instance.is_customer {
            self.end_instance(this.instance);
            let task = self.instances.items[this.instance as usize].task;
            let next = &mut self.strands.items[strand as usize];
            next.resume = Resume::Cycle;
            next.frame = NONE;
            return self.think(strand, task);
        }
        self.strands.items[strand as usize].is_live = false;
        self.strands.remove(strand);
        if is_last {
            self.end_instance(this.instance);
        }
        false
    }

    /// The work of an instance is over.
    fn end_instance(&mut self, number: u32) {
        let network = self.network;
        let this = self.instances.items[number as usize];
        let spec = &network.entries[this.entry as usize];
        self.release_frame(this.root);
        self.instances.items[number as usize].root = NONE;
        if !spec.has_phases {
            self.end_phase(number, if this.has_replied { 2 } else { 1 });
            if !this.has_replied {
                self.end_without_reply(number);
            }
        }
        let task = &network.tasks[this.task as usize];
        let completions = self.statistics.layout.completions(spec.origin as usize);
        self.statistics.count(completions);
        if task.kind == TaskKind::Synchronizing {
            return self.end_synchronizing(number);
        }
        self.shift_busy(this.task, this.entry, -1.0);
        if !matches!(task.kind, TaskKind::Semaphore { .. } | TaskKind::RwLock) {
            self.count_cycle(this.task);
        }
        if this.is_customer {
            return;
        }
        self.instances.remove(number);
        self.end_service(this.task, spec);
        if this.holds_lock {
            self.give_back(this.task, spec.role);
        }
        self.serve_waiting(this.task);
    }

    /// The activities of an instance ended without a reply: right only where nobody waits for one.
    fn end_without_reply(&mut self, number: u32) {
        let Instance { entry, caller, .. } = self.instances.items[number as usize];
        if caller != NONE {
            let name = &self.network.origins.entries[self.network.entries[entry as usize].origin as usize].name;
            let reason = format!("at time {} its activities ended without a reply to the caller", self.now);
            self.failure = Some(unusable(format!("entry \"{name}\""), reason));
        }
        self.reply(number);
    }

    fn count_cycle(&mut self, task: u32) {
        let place = self.statistics.layout.cycles(self.network.tasks[task as usize].origin as usize);
        self.statistics.count(place);
    }

    /// The service of a request to `entry` is over: frees what it took, or lets go the token that it gives back.
    fn end_service(&mut self, task: u32, entry: &Entry) {
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

    /// A request of `role` gives back a token or lock.
    fn give_back(&mut self, task: u32, role: Role) {
        let returned = match (&mut self.servers[task as usize].state, role) {
            (State::Semaphore { free, lent, .. }, _) => {
                *free += usize::from(!lent.is_empty());
                lent.pop_front().map(|s| (Role::Wait, s))
            }
            (State::RwLock { readers, .. }, Role::ReadUnlock) => readers.pop_front().map(|s| (Role::ReadLock, s)),
            (State::RwLock { writer, .. }, _) => writer.take().map(|s| (Role::WriteLock, s)),
            _ => return,
        };
        let Some((role, since)) = returned else { return self.fail_unheld(task) };
        self.count_cycle(task);
        let entries = self.network.tasks[task as usize].entries.clone();
        if let Some(taker) = entries.map(|e| &self.network.entries[e as usize]).find(|e| e.role == role) {
            let place = self.statistics.layout.holding(taker.origin as usize);
            self.statistics.tally(place, self.now - since);
        }
    }

    fn fail_unheld(&mut self, task: u32) {
        let element = format!("task \"{}\"", self.network.task_name(task));
        self.failure = Some(unusable(element, format!("at time {} it is given back a lock that nobody holds", self.now)));
    }

    /// Accepts every waiting request that can be.
    fn serve_waiting(&mut self, task: u32) {
        let network = self.network;
        match network.tasks[task as usize].kind {
            TaskKind::Fifo | TaskKind::Priority | TaskKind::Random => {
                let server = &mut self.servers[task as usize];
                let State::Pool { busy, limit, queue } = &mut server.state else { return };
                if *busy < *limit
                    && let Some(request) = queue.pop(&mut self.streams[task as usize])
                {
                    *busy += 1;
                    self.accept(&request);
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
    fn serve_role(&mut self, task: u32, role: Role) {
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
            self.accept(&request);
        }
    }

    fn serve_synchronizing(&mut self, task: u32) {
        let State::Synchronizing { is_busy, closed, queue } = &mut self.servers[task as usize].state else { return };
        if *is_busy {
            return;
        }
        if let Some(request) = queue.take_first(|r| !closed.contains(&r.entry)) {
            *is_busy = true;
            self.accept(&request);
        }
    }
}
