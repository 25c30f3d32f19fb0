//! Tasks and processors in the course of an event: who is accepted when, replies and forwarding, customers, slices.

use super::{
    course::{Course, Order},
    network::{Discipline, Lock, NONE, QueueOrder},
    refused,
    state::{Doing, Instance, Request, State},
};
use crate::solve::{bind::unusable, role::Role};

/// Most instances that wait for one another in a row.
const DEPTH_LIMIT: u32 = 200;

impl Course<'_> {
    /// A customer begins to cycle.
    pub(super) fn new_customer(&mut self, task: usize) -> u32 {
        let instance = Instance {
            entry: self.network.tasks[task].entries.start,
            caller: NONE,
            depth: 0,
            is_customer: true,
            is_open: false,
            is_async: false,
            has_replied: false,
            holds_lock: false,
            n_strands: 1,
            root: NONE,
        };
        let instance = State::add(&mut self.state.instances, instance);
        self.state.add_strand(instance, NONE, Doing::Cycle)
    }

    /// A customer picks an entry.
    pub(super) fn begin_cycle(&mut self, strand: u32) -> bool {
        let instance = self.state.strands[strand as usize].instance as usize;
        let task = &self.network.tasks[self.state.task(self.network, strand)];
        let chosen = self.draws.choose(&task.visits);
        let this = &mut self.state.instances[instance];
        this.entry = task.entries.start + super::compile::index(chosen);
        this.has_replied = false;
        this.n_strands = 1;
        this.root = NONE;
        self.set(strand, Doing::Begin);
        true
    }

    /// A customer has ended a cycle. Whether it begins the next at once.
    fn end_cycle(&mut self, strand: u32) -> bool {
        let task = self.state.task(self.network, strand);
        let this = &mut self.state.strands[strand as usize];
        this.frame = NONE;
        if self.network.tasks[task].think > 0.0 {
            this.doing = Doing::Gone;
            self.state.servers[task].thinking += 1;
            return false;
        }
        this.doing = Doing::Cycle;
        true
    }

    /// An open arrival at `entry`.
    pub(super) fn arrive(&mut self, entry: u32) {
        self.counts.push(self.layout.open_offered(entry));
        self.deliver(Request { entry, caller: NONE, route: NONE });
    }

    /// A strand makes call number `route`.
    pub(super) fn send(&mut self, strand: u32, route: u32) {
        let spec = &self.network.routes[route as usize];
        let is_sync = spec.kind == crate::solve::ResultCallKind::Sync;
        self.counts.push(self.layout.offered(route));
        self.deliver(Request { entry: spec.to, caller: if is_sync { strand } else { NONE }, route });
    }

    /// A request arrives at its task.
    fn deliver(&mut self, request: Request) {
        let number = self.network.entries[request.entry as usize].task as usize;
        let task = &self.network.tasks[number];
        let server = &mut self.state.servers[number];
        if request.caller == NONE {
            if server.occupied >= task.places {
                let place = if request.route == NONE { self.layout.open_lost(request.entry) } else { self.layout.lost(request.route) };
                return self.counts.push(place);
            }
            server.occupied += 1;
        }
        if task.lock != Lock::None {
            return self.deliver_to_lock(number, request);
        }
        if server.busy < task.threads {
            server.busy += 1;
            return self.accept(&request, if task.threads > 1 { Order::Dispatched } else { Order::Ready });
        }
        let of_entry = |r: &Request| self.network.entries[r.entry as usize].priority;
        let urgency = |r: &Request| if r.route == NONE { of_entry(r) } else { self.network.routes[r.route as usize].urgency };
        let place = match task.order {
            QueueOrder::Fifo | QueueOrder::Random => server.queue.len(),
            QueueOrder::Priority => server.queue.partition_point(|r| urgency(r) >= urgency(&request)),
        };
        server.queue.insert(place, request);
    }

    /// The service of a request begins, by a thread that is counted busy.
    pub(super) fn accept(&mut self, request: &Request, order: Order) {
        if request.route != NONE {
            self.counts.push(self.layout.accepted(request.route));
        }
        let depth = match self.state.strands.get(request.caller as usize) {
            Some(caller) => self.state.instances[caller.instance as usize].depth + 1,
            None => 0,
        };
        if depth > DEPTH_LIMIT {
            self.fail(refused("so deep a nesting of calls", format!("more than {DEPTH_LIMIT} levels")));
        }
        let instance = Instance {
            entry: request.entry,
            caller: request.caller,
            depth,
            is_customer: false,
            is_open: request.route == NONE,
            is_async: request.caller == NONE,
            has_replied: false,
            holds_lock: false,
            n_strands: 1,
            root: NONE,
        };
        let instance = State::add(&mut self.state.instances, instance);
        let strand = self.state.add_strand(instance, NONE, Doing::Begin);
        let entry = &self.network.entries[request.entry as usize];
        if entry.role == Role::ReadUnlock {
            self.unlock_reader(entry.task as usize, request.entry);
        }
        self.wake(strand, order);
        if entry.role == Role::WriteUnlock {
            self.unlock_writer(entry.task as usize, instance);
        }
    }

    /// Counts the end of a phase of an instance.
    pub(super) fn count_phase(&mut self, instance: u32, phase: usize) {
        let entry = self.state.instances[instance as usize].entry;
        self.counts.push(self.layout.phase_ends(entry, phase));
    }

    /// Phase 1 of an instance is over: the caller goes on, or the request is forwarded. Returns the caller that goes on.
    pub(super) fn reply(&mut self, instance: u32) -> Option<u32> {
        let network = self.network;
        let this = &mut self.state.instances[instance as usize];
        this.has_replied = true;
        let Instance { entry, caller, is_open, is_async, .. } = *this;
        this.caller = NONE;
        let spec = &network.entries[entry as usize];
        if is_open {
            self.counts.push(self.layout.open_replies(entry));
        }
        if is_async {
            self.state.servers[spec.task as usize].occupied -= 1;
        }
        if caller == NONE {
            return None;
        }
        let forwardings = &network.routes[spec.forwardings.start as usize..spec.forwardings.end as usize];
        let rest = 1.0 - forwardings.iter().map(|f| f.mean).sum::<f64>();
        let probabilities: Vec<f64> = forwardings.iter().map(|f| f.mean).chain([rest.max(0.0)]).collect();
        let chosen = self.draws.choose(&probabilities);
        if let Some(forwarding) = forwardings.get(chosen) {
            let route = spec.forwardings.start + super::compile::index(chosen);
            self.counts.push(self.layout.offered(route));
            self.deliver(Request { entry: forwarding.to, caller, route });
            return None;
        }
        self.set(caller, Doing::Slice);
        let has_demand = network.activities[self.state.strands[caller as usize].activity as usize].slice.is_some();
        self.wake(caller, if has_demand { Order::Ready } else { Order::Later });
        Some(caller)
    }

    /// A strand ends, and with the last one its instance. Whether it goes on at once, as a customer in its next cycle.
    pub(super) fn end_strand(&mut self, strand: u32) -> bool {
        let number = self.state.strands[strand as usize].instance;
        let instance = &mut self.state.instances[number as usize];
        instance.n_strands -= 1;
        let (is_last, is_customer) = (instance.n_strands == 0, instance.is_customer);
        self.set(strand, Doing::Gone);
        if is_last {
            self.end_instance(number);
        }
        is_last && is_customer && self.end_cycle(strand)
    }

    /// The work of an instance is over.
    fn end_instance(&mut self, number: u32) {
        let this = self.state.instances[number as usize];
        let spec = &self.network.entries[this.entry as usize];
        if !spec.has_phases {
            self.count_phase(number, if this.has_replied { 2 } else { 1 });
            if !this.has_replied && this.caller != NONE {
                let element = format!("activity \"{}\"", spec.first.map_or("", |a| &self.network.activities[a as usize].name));
                self.fail(unusable(element, "the activities that it starts end without a reply to the caller"));
            }
            if !this.has_replied && !this.is_customer {
                self.reply(number);
            }
        }
        self.counts.push(self.layout.completions(this.entry));
        if self.network.tasks[spec.task as usize].lock != Lock::None {
            self.end_lock_service(spec.task as usize, this.entry, this.holds_lock);
        } else if !this.is_customer {
            self.serve_waiting(spec.task as usize);
        }
    }

    /// A thread of the task is free: accepts the next request.
    fn serve_waiting(&mut self, number: usize) {
        let server = &mut self.state.servers[number];
        let place = match self.network.tasks[number].order {
            QueueOrder::Random => self.draws.choose_evenly(server.queue.len()),
            _ => 0,
        };
        if server.queue.is_empty() {
            server.busy -= 1;
            return;
        }
        let request = server.queue.remove(place);
        self.accept(&request, if self.network.tasks[number].threads > 1 { Order::Dispatched } else { Order::Later });
    }

    /// A strand's slice arrives at its processor.
    pub(super) fn arrive_at_processor(&mut self, strand: u32) {
        let number = self.state.processor(self.network, strand);
        let spec = &self.network.processors[number];
        let station = &mut self.state.stations[number];
        if spec.discipline == Discipline::Sharing || station.busy < spec.servers {
            station.busy += 1;
            return self.serve(strand);
        }
        let rank = self.rank(strand);
        let waiting = &self.state.stations[number].waiting;
        let place = match spec.discipline {
            Discipline::HeadOfLine | Discipline::Preemptive => waiting.partition_point(|&s| self.rank(s) <= rank),
            _ => waiting.len(),
        };
        self.state.stations[number].waiting.insert(place, strand);
        if spec.discipline == Discipline::Preemptive {
            self.preempt(number);
        }
    }

    fn rank(&self, strand: u32) -> u32 {
        self.network.tasks[self.state.task(self.network, strand)].rank
    }

    /// Begins or resumes the service of a slice, on a server that is counted busy.
    pub(super) fn serve(&mut self, strand: u32) {
        let number = self.state.processor(self.network, strand);
        let running = &self.state.stations[number].running;
        let place = match self.network.processors[number].discipline {
            Discipline::Preemptive => running.partition_point(|&s| self.rank(s) <= self.rank(strand)),
            _ => running.len(),
        };
        self.state.stations[number].running.insert(place, strand);
        if self.state.strands[strand as usize].stage == NONE {
            self.begin_stage(strand);
        }
    }

    /// Draws the first stage of a slice.
    pub(super) fn begin_stage(&mut self, strand: u32) {
        let activity = &self.network.activities[self.state.strands[strand as usize].activity as usize];
        let stage = activity.slice.as_ref().map_or(0, |law| self.draws.choose(&law.start));
        self.state.strands[strand as usize].stage = super::compile::index(stage);
    }

    /// Lets the most urgent waiting slice take the server of the least urgent running one, if that is less urgent. Both
    /// lists are in order of urgency and, within it, of arrival: the one that gives way is the last, and is then the first of its rank
    /// to wait.
    fn preempt(&mut self, number: usize) {
        let station = &self.state.stations[number];
        let (Some(&next), Some(&victim)) = (station.waiting.first(), station.running.last()) else { return };
        if self.rank(next) >= self.rank(victim) {
            return;
        }
        let place = station.waiting[1..].partition_point(|&s| self.rank(s) < self.rank(victim));
        let station = &mut self.state.stations[number];
        station.running.pop();
        station.waiting.remove(0);
        station.waiting.insert(place, victim);
        self.serve(next);
    }

    /// A strand whose slice is done is served no more; its server is still taken.
    pub(super) fn leave_processor(&mut self, strand: u32) {
        let number = self.state.processor(self.network, strand);
        self.state.stations[number].running.retain(|&s| s != strand);
    }

    /// A server of a processor goes to the next in its queue.
    pub(super) fn release(&mut self, number: usize) {
        let discipline = self.network.processors[number].discipline;
        let waiting = &mut self.state.stations[number].waiting;
        let next = match discipline {
            _ if waiting.is_empty() => None,
            Discipline::Lifo => waiting.pop(),
            Discipline::Random => {
                let place = self.draws.choose_evenly(waiting.len());
                Some(waiting.remove(place))
            }
            _ => Some(waiting.remove(0)),
        };
        match next {
            Some(strand) => self.serve(strand),
            None => self.state.stations[number].busy -= 1,
        }
    }
}
