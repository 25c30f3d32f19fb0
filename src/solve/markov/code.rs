//! A state as a string of bytes that is the same for all states that differ only in which of several like customers or
//! threads is which.
//!
//! Who works for whom makes a forest: an instance that nobody waits for is a root (a customer, an asynchronous request, a
//! thread past its reply), its children are its strands and loop turns, and a strand that waits for a reply has the instance
//! that serves it as its only child, or the request in a queue as its end. Places in ordered queues are written at the strands
//! and requests that have them. So a state is this forest, and two states are alike when their forests are; children
//! are written in the order of their own bytes, which makes equal forests equal strings (the classical canonical form of trees).

use super::{
    compile::index,
    network::{Discipline, Lock, NONE, Network, QueueOrder, Task},
    state::{Doing, Frame, Instance, Request, Server, State, Strand},
};
use crate::model::CallOrder;

const THINKS: u8 = 0;
const AT_PROCESSOR: u8 = 1;
const HAS_REQUEST: u8 = 2;
const HAS_INSTANCE: u8 = 3;

const STRAND: u8 = 0;
const FRAME: u8 = 1;
const REQUEST: u8 = 2;
const INSTANCE: u8 = 3;

/// Writes a number, seven bits a byte.
fn put(out: &mut Vec<u8>, mut n: u32) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Writes [`NONE`] as 0 and other numbers as one more.
fn put_optional(out: &mut Vec<u8>, n: u32) {
    put(out, n.wrapping_add(1));
}

/// Writes parts in the order of their bytes.
fn put_sorted(out: &mut Vec<u8>, mut parts: Vec<Vec<u8>>) {
    parts.sort_unstable();
    put(out, index(parts.len()));
    for part in parts {
        out.extend_from_slice(&part);
    }
}

/// The bytes of `state`, in which every strand waits for time to pass.
pub(super) fn encode(network: &Network, state: &State) -> Box<[u8]> {
    let places = Places::new(network, state);
    let encoder = Encoder { network, state, places };
    let mut out = Vec::with_capacity(64);
    for (task, server) in network.tasks.iter().zip(&state.servers) {
        if task.is_reference {
            put(&mut out, server.thinking);
        }
        if task.lock != Lock::None {
            put(&mut out, server.held);
            out.push(u8::from(server.is_written));
        }
    }
    let mut roots = Vec::new();
    for (i, instance) in state.instances.iter().enumerate() {
        if instance.n_strands > 0 && instance.caller == NONE {
            let mut part = vec![INSTANCE];
            encoder.instance(&mut part, i);
            roots.push(part);
        }
    }
    for (t, server) in state.servers.iter().enumerate() {
        for (i, request) in server.queue.iter().enumerate().filter(|(_, r)| r.caller == NONE) {
            let mut part = vec![REQUEST];
            encoder.request(&mut part, request, label(network, &network.tasks[t], &server.queue, i));
            roots.push(part);
        }
    }
    put_sorted(&mut out, roots);
    out.into_boxed_slice()
}

/// The place of a request among those that it has an order with.
fn label(network: &Network, task: &Task, queue: &[Request], place: usize) -> u32 {
    let role = |r: &Request| network.entries[r.entry as usize].role;
    match task.order {
        QueueOrder::Random => 0,
        _ if task.lock == Lock::Semaphore => index(queue[..place].iter().filter(|r| role(r) == role(&queue[place])).count()),
        _ => index(place),
    }
}

/// Where strands are: by strand, its place at the processor, the instance that serves it, or its request; and the strands of each
/// instance.
struct Places {
    strands: Vec<u32>,
    /// Where those of each instance begin, and the last end.
    first: Vec<usize>,
    at_processor: Vec<u32>,
    served_by: Vec<u32>,
    queued: Vec<Option<(Request, u32)>>,
}

impl Places {
    fn new(network: &Network, state: &State) -> Self {
        let n = state.strands.len();
        let (strands, first) = by_instance(state);
        let mut places = Self { strands, first, at_processor: vec![0; n], served_by: vec![NONE; n], queued: vec![None; n] };
        for (processor, station) in network.processors.iter().zip(&state.stations) {
            let is_ranked = processor.discipline == Discipline::Preemptive;
            for (i, &strand) in station.running.iter().enumerate() {
                places.at_processor[strand as usize] = if is_ranked { index(i) } else { 0 };
            }
            for (i, &strand) in station.waiting.iter().enumerate() {
                places.at_processor[strand as usize] = match processor.discipline {
                    Discipline::Preemptive => index(i + station.running.len()),
                    Discipline::Random => 1,
                    _ => index(i + 1),
                };
            }
        }
        for (i, instance) in state.instances.iter().enumerate() {
            if instance.n_strands > 0 && instance.caller != NONE {
                places.served_by[instance.caller as usize] = index(i);
            }
        }
        for (task, server) in network.tasks.iter().zip(&state.servers) {
            for (i, request) in server.queue.iter().enumerate().filter(|(_, r)| r.caller != NONE) {
                places.queued[request.caller as usize] = Some((*request, label(network, task, &server.queue, i)));
            }
        }
        places
    }
}

/// Strands that are there, those of an instance together, with where each instance's begin and the last end.
fn by_instance(state: &State) -> (Vec<u32>, Vec<usize>) {
    let there = || state.strands.iter().enumerate().filter(|(_, strand)| strand.doing != Doing::Gone);
    let mut first = vec![0; state.instances.len() + 1];
    there().for_each(|(_, strand)| first[strand.instance as usize + 1] += 1);
    for i in 0..state.instances.len() {
        first[i + 1] += first[i];
    }
    let mut next = first.clone();
    let mut strands = vec![0; first[state.instances.len()]];
    for (s, strand) in there() {
        let place = &mut next[strand.instance as usize];
        strands[*place] = index(s);
        *place += 1;
    }
    (strands, first)
}

struct Encoder<'a> {
    network: &'a Network,
    state: &'a State,
    places: Places,
}

impl Encoder<'_> {
    fn request(&self, out: &mut Vec<u8>, request: &Request, place: u32) {
        put_optional(out, request.route);
        if request.route == NONE {
            put(out, request.entry);
        }
        put(out, place);
    }

    fn instance(&self, out: &mut Vec<u8>, number: usize) {
        let instance = &self.state.instances[number];
        put(out, instance.entry);
        let flags = [instance.is_customer, instance.is_open, instance.is_async, instance.has_replied, instance.holds_lock];
        out.push(flags.iter().fold(0, |bits, &flag| 2 * bits + u8::from(flag)));
        if !self.network.entries[instance.entry as usize].has_phases {
            self.arrivals(out, instance.entry, instance.root);
        }
        self.inside(out, index(number), NONE);
    }

    fn arrivals(&self, out: &mut Vec<u8>, entry: u32, frame: u32) {
        let n_joins = self.network.tasks[self.network.entries[entry as usize].task as usize].n_joins;
        let first = frame as usize * self.network.joins_of_a_task;
        for slot in 0..n_joins {
            put(out, if frame == NONE { 0 } else { self.state.arrivals[first + slot] });
        }
    }

    /// The strands and loop turns of an instance that are directly inside of `frame`.
    fn inside(&self, out: &mut Vec<u8>, instance: u32, frame: u32) {
        let mut parts = Vec::new();
        let places = &self.places;
        for &s in &places.strands[places.first[instance as usize]..places.first[instance as usize + 1]] {
            if self.state.strands[s as usize].frame == frame {
                let mut part = vec![STRAND];
                self.strand(&mut part, s as usize);
                parts.push(part);
            }
        }
        for (f, inner) in self.state.frames.iter().enumerate() {
            if inner.turns != NONE && inner.instance == instance && inner.parent == frame {
                let mut part = vec![FRAME];
                put(&mut part, inner.turns);
                part.push(u8::from(inner.is_over));
                self.arrivals(&mut part, self.state.instances[instance as usize].entry, index(f));
                let head = part.len();
                self.inside(&mut part, instance, index(f));
                if part.get(head) != Some(&0) {
                    parts.push(part);
                }
            }
        }
        put_sorted(out, parts);
    }

    fn strand(&self, out: &mut Vec<u8>, number: usize) {
        let strand = &self.state.strands[number];
        let activity = &self.network.activities[strand.activity as usize];
        put(out, strand.activity);
        if activity.order == CallOrder::Deterministic {
            put(out, strand.call - activity.calls.start);
            put(out, strand.left);
        }
        match strand.doing {
            Doing::Thinking => out.push(THINKS),
            Doing::AtProcessor => {
                out.push(AT_PROCESSOR);
                put(out, self.places.at_processor[number]);
                put_optional(out, strand.stage);
            }
            _ => match self.places.queued[number] {
                Some((request, place)) => {
                    out.push(HAS_REQUEST);
                    self.request(out, &request, place);
                }
                None => {
                    out.push(HAS_INSTANCE);
                    self.instance(out, self.places.served_by[number] as usize);
                }
            },
        }
    }
}

/// The state that `bytes` stand for, written by [`encode`].
pub(super) fn decode(network: &Network, bytes: &[u8]) -> State {
    let mut decoder = Decoder {
        network,
        bytes,
        at: 0,
        state: State::empty(network),
        jobs: vec![Vec::new(); network.processors.len()],
        requests: Vec::new(),
    };
    decoder.requests.resize(network.tasks.len(), Vec::new());
    decoder.all();
    decoder.state
}

struct Decoder<'a> {
    network: &'a Network,
    bytes: &'a [u8],
    at: usize,
    state: State,
    /// Strands at each processor, with their places.
    jobs: Vec<Vec<(u32, u32)>>,
    /// Requests at each task, with their places.
    requests: Vec<Vec<(u32, Request)>>,
}

impl Decoder<'_> {
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.bytes[self.at - 1]
    }

    fn number(&mut self) -> u32 {
        let (mut n, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            n |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return n;
            }
            shift += 7;
        }
    }

    fn optional(&mut self) -> u32 {
        self.number().wrapping_sub(1)
    }

    fn all(&mut self) {
        for (t, task) in self.network.tasks.iter().enumerate() {
            if task.is_reference {
                self.state.servers[t].thinking = self.number();
            }
            if task.lock != Lock::None {
                self.state.servers[t].held = self.number();
                self.state.servers[t].is_written = self.byte() == 1;
            }
        }
        for _ in 0..self.number() {
            match self.byte() {
                REQUEST => self.request(NONE),
                _ => self.instance(NONE),
            }
        }
        for (p, jobs) in self.jobs.iter_mut().enumerate() {
            jobs.sort_by_key(|j| j.0);
            let spec = &self.network.processors[p];
            let station = &mut self.state.stations[p];
            for &mut (place, strand) in jobs {
                let runs = if spec.discipline == Discipline::Preemptive { (place as usize) < spec.servers } else { place == 0 };
                if runs { &mut station.running } else { &mut station.waiting }.push(strand);
            }
            station.busy = station.running.len();
        }
        for (server, requests) in self.state.servers.iter_mut().zip(&mut self.requests) {
            requests.sort_by_key(|r| r.0);
            server.queue = requests.iter().map(|r| r.1).collect();
        }
    }

    fn server(&mut self, entry: u32) -> &mut Server {
        &mut self.state.servers[self.network.entries[entry as usize].task as usize]
    }

    fn request(&mut self, caller: u32) {
        let route = self.optional();
        let entry = if route == NONE { self.number() } else { self.network.routes[route as usize].to };
        let place = self.number();
        let task = self.network.entries[entry as usize].task as usize;
        self.requests[task].push((place, Request { entry, caller, route }));
        self.state.servers[task].occupied += u32::from(caller == NONE);
    }

    fn instance(&mut self, caller: u32) {
        let entry = self.number();
        let bits = self.byte();
        let flag = |place: u8| bits >> place & 1 == 1;
        let outer = self.state.strands.get(caller as usize).map(|s| self.state.instances[s.instance as usize].depth);
        let instance = Instance {
            entry,
            caller,
            depth: outer.map_or(0, |depth| depth + 1),
            is_customer: flag(4),
            is_open: flag(3),
            is_async: flag(2),
            has_replied: flag(1),
            holds_lock: flag(0),
            n_strands: 0,
            root: NONE,
        };
        let number = State::add(&mut self.state.instances, instance);
        let server = self.server(entry);
        server.busy += usize::from(!instance.is_customer);
        server.occupied += u32::from(instance.is_async && !instance.has_replied);
        if !self.network.entries[entry as usize].has_phases {
            let arrivals = self.arrivals(entry);
            if arrivals.iter().any(|&n| n > 0) {
                let frame = Frame { turns: NONE, instance: number, parent: NONE, is_over: false };
                self.state.instances[number as usize].root = self.frame(frame, &arrivals);
            }
        }
        self.inside(number, NONE);
    }

    fn arrivals(&mut self, entry: u32) -> Vec<u32> {
        let n_joins = self.network.tasks[self.network.entries[entry as usize].task as usize].n_joins;
        (0..n_joins).map(|_| self.number()).collect()
    }

    fn frame(&mut self, frame: Frame, arrivals: &[u32]) -> u32 {
        let number = self.state.add_frame(self.network, frame);
        let first = number as usize * self.network.joins_of_a_task;
        self.state.arrivals[first..first + arrivals.len()].copy_from_slice(arrivals);
        number
    }

    fn inside(&mut self, instance: u32, frame: u32) {
        for _ in 0..self.number() {
            if self.byte() == STRAND {
                self.strand(instance, frame);
                continue;
            }
            let (turns, is_over) = (self.number(), self.byte() == 1);
            let arrivals = self.arrivals(self.state.instances[instance as usize].entry);
            let inner = self.frame(Frame { turns, instance, parent: frame, is_over }, &arrivals);
            self.inside(instance, inner);
        }
    }

    fn strand(&mut self, instance: u32, frame: u32) {
        let activity = self.number();
        let spec = &self.network.activities[activity as usize];
        let mut strand = Strand { instance, activity, doing: Doing::Thinking, frame, call: 0, left: 0, stage: NONE };
        if spec.order == CallOrder::Deterministic {
            strand.call = self.number() + spec.calls.start;
            strand.left = self.number();
        }
        let number = State::add(&mut self.state.strands, strand);
        self.state.instances[instance as usize].n_strands += 1;
        let kind = self.byte();
        let (doing, mut stage) = match kind {
            THINKS => (Doing::Thinking, NONE),
            AT_PROCESSOR => (Doing::AtProcessor, NONE),
            _ => (Doing::Blocked, NONE),
        };
        match kind {
            AT_PROCESSOR => {
                let place = self.number();
                stage = self.optional();
                let processor = self.network.tasks[spec.task as usize].processor as usize;
                self.jobs[processor].push((place, number));
            }
            HAS_REQUEST => self.request(number),
            HAS_INSTANCE => self.instance(number),
            _ => {}
        }
        let this = &mut self.state.strands[number as usize];
        this.doing = doing;
        this.stage = stage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Bindings, lqn_text},
        solve::{
            bind::Binder,
            markov::{MarkovOptions, chain::Chain, compile::compile},
        },
    };

    /// Two classes, pools, second phases, forwarding, priorities, a fork with a quorum in a loop, losses.
    const MODEL: &str = r#"G "all" -1
P 0 p Pd i p P1 p p P2 h m 2 p P3 s 0 -1
T 0 t Ca r ca -1 Pd 2 z 1 m 2 t Cb r cb -1 Pd 1 m 1
    t Se h ea eb -1 P1 3 t Po n fa -1 P1 1 m 2 t Gr n ga -1 P2 t As n ha -1 P3 q 2 -1
E 0 s ca 0.1 -1 y ca ea 1.5 -1 s cb 0.2 -1 y cb eb 1 -1 y cb ga 1 -1 f cb 1 -1
    s ea 0.1 0.2 -1 y ea fa 1 1 -1 s eb 0.3 -1 F eb fa 0.5 -1 s fa 0.2 -1 c fa 3 -1 z fa ha 0.5 -1 A ga aa s ha 0.1 0.1 -1 -1
A Gr s aa 0.1 s bb 0.1 s cc 0.2 s dd 0.1 s ee 0.1 s ff 0.3
: aa -> 1.5 * bb, ff; bb -> cc & dd; cc & dd (1) -> ee; ff[ga] -1
"#;

    #[test]
    fn states_are_read_as_they_are_written() {
        let model = lqn_text::parse(MODEL).unwrap();
        let network = compile(&model, &Binder::new(&model, &Bindings::new()).unwrap()).unwrap();
        let chain = Chain::explore(&network, &MarkovOptions::default()).unwrap();
        assert!(chain.len() > 1000, "{}", chain.len());
        for number in 0..chain.len() {
            let state = chain.state(&network, number);
            assert_eq!(encode(&network, &state), encode(&network, &decode(&network, &encode(&network, &state))));
            assert_eq!(chain.code(number), Some(&*encode(&network, &state)));
        }
    }
}
