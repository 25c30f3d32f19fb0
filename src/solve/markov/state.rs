//! A state of the model between events, as a working copy that an event changes.
//!
//! A *strand* is a thread of control: a customer in its cycle, a thread serving a request, or a branch of an and-fork. An
//! *instance* is one acceptance of a request (or one cycle of a customer) with all strands that work for it. A *frame* is
//! one turn of a loop, or the whole of an instance: within it every join counts its arrivals once.

use super::network::{Discipline, NONE, Network};

/// What a strand does, or does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// A customer picks an entry.
    Cycle,
    /// The work of the instance begins.
    Begin,
    /// The activity begins.
    Start,
    /// The next slice of the activity.
    Slice,
    /// The slice ended: the next call.
    Call,
    /// The activity has ended and replied; what follows it.
    Continue,
    /// Own think time of the activity.
    Thinking,
    /// Queued or served at the processor.
    AtProcessor,
    /// Waiting for a reply.
    Blocked,
    /// It has ended.
    Gone,
}

/// A thread of control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strand {
    pub(super) instance: u32,
    pub(super) activity: u32,
    pub(super) doing: Doing,
    /// Turn of the innermost loop that it is inside of; [`NONE`] outside of loops.
    pub(super) frame: u32,
    /// Next call, and how many of it are left, of a deterministic activity.
    pub(super) call: u32,
    pub(super) left: u32,
    /// Stage of the slice's law; [`NONE`] before its service begins.
    pub(super) stage: u32,
}

/// The serving of a request, or a customer's cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) entry: u32,
    /// The strand that waits for the reply.
    pub(super) caller: u32,
    /// Instances that wait for its reply, directly or not.
    pub(super) depth: u32,
    pub(super) is_customer: bool,
    pub(super) is_open: bool,
    /// Whether it takes one of the places for asynchronous requests.
    pub(super) is_async: bool,
    pub(super) has_replied: bool,
    /// Whether it gives a lock back when its service is over.
    pub(super) holds_lock: bool,
    /// Strands at work; 0 when it is over.
    pub(super) n_strands: u32,
    /// Where joins outside of loops count; [`NONE`] before the first arrival.
    pub(super) root: u32,
}

/// One turn of a loop, or the whole of an instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The loop; [`NONE`] for the whole of an instance.
    pub(super) turns: u32,
    pub(super) instance: u32,
    pub(super) parent: u32,
    /// Whether the turn is over, and only branches that a join did not wait for are left in it.
    pub(super) is_over: bool,
}

/// A request in the queue of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) entry: u32,
    /// The strand that waits for the reply, if any does.
    pub(super) caller: u32,
    /// The call or forwarding that it came by; [`NONE`] for an open arrival.
    pub(super) route: u32,
}

/// A processor: its running jobs (strands) and the waiting ones, in the order of its discipline.
#[derive(Clone, Debug, Default)]
pub(super) struct Station {
    /// Servers taken.
    pub(super) busy: usize,
    pub(super) running: Vec<u32>,
    pub(super) waiting: Vec<u32>,
}

/// A task: its threads and queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    pub(super) busy: usize,
    /// Requests in the order in which they will be taken; any order where that is random.
    pub(super) queue: Vec<Request>,
    /// Asynchronous requests queued or in phase 1.
    pub(super) occupied: u32,
    /// Tokens or read locks that are held.
    pub(super) held: u32,
    /// Whether the write lock is held.
    pub(super) is_written: bool,
    /// Customers that think.
    pub(super) thinking: u32,
}

/// A state.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) strands: Vec<Strand>,
    pub(super) instances: Vec<Instance>,
    pub(super) frames: Vec<Frame>,
    /// Arrivals at the joins of each frame.
    pub(super) arrivals: Vec<u32>,
    pub(super) stations: Vec<Station>,
    pub(super) servers: Vec<Server>,
}

impl State {
    /// All servers idle, no customers.
    pub(super) fn empty(network: &Network) -> Self {
        Self {
            stations: vec![Station::default(); network.processors.len()],
            servers: network.tasks.iter().map(|t| Server { held: t.lent, ..Server::default() }).collect(),
            ..Self::default()
        }
    }

    /// Adds an item to a list and returns its number.
    pub(super) fn add<T>(list: &mut Vec<T>, item: T) -> u32 {
        list.push(item);
        super::compile::index(list.len() - 1)
    }

    /// A new strand of `instance` in `frame`.
    pub(super) fn add_strand(&mut self, instance: u32, frame: u32, doing: Doing) -> u32 {
        let strand = Strand { instance, activity: NONE, doing, frame, call: 0, left: 0, stage: NONE };
        Self::add(&mut self.strands, strand)
    }

    /// A new frame with joins at which nothing has arrived.
    pub(super) fn add_frame(&mut self, network: &Network, frame: Frame) -> u32 {
        self.arrivals.resize(self.arrivals.len() + network.joins_of_a_task, 0);
        Self::add(&mut self.frames, frame)
    }

    /// The processor of a strand.
    pub(super) fn processor(&self, network: &Network, strand: u32) -> usize {
        network.tasks[self.task(network, strand)].processor as usize
    }

    /// The task of a strand.
    pub(super) fn task(&self, network: &Network, strand: u32) -> usize {
        let entry = self.instances[self.strands[strand as usize].instance as usize].entry;
        network.entries[entry as usize].task as usize
    }
}

impl Station {
    /// The speed at which each running job is served.
    #[expect(clippy::cast_precision_loss, reason = "counts of jobs")]
    pub(super) fn speed(&self, discipline: Discipline, servers: usize) -> f64 {
        match discipline {
            Discipline::Sharing if self.running.len() > servers => servers as f64 / self.running.len() as f64,
            _ => 1.0,
        }
    }
}
