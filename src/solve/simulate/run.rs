//! One run: the state of every strand, request and server, and the event loop.
//!
//! A *strand* is a thread of control: a customer, a task's thread serving a request, or a branch of an and-fork. An
//! *instance* is one acceptance of a request, with all the strands that work for it. Strands, instances and the frames in
//! which joins count live in pools, so that the loop does not allocate once the pools have grown.
//!
//! At each event the strand concerned, and every strand that it wakes at the same instant, is run until it waits: for a
//! processor, for a reply, for its own think time, or at a join.
//!
//! What is ready at one instant and goes to a processor next does so in the order in which it became ready. All else at that
//! instant happens in random order: what callers without demand do with their replies, requests that pools pass to their
//! threads, a single thread that takes the next waiting request, and strands between two phases or activities, which give
//! way before they queue again at their processor. Where a reply goes to a caller on the same processor, a fair coin
//! decides whether the strand gives way or keeps its server for its next phase. None of this matters to utilizations and
//! throughputs; it does to the waits of second phases and forwarded requests. The LQN tools' simulator was found to do so.

use std::collections::VecDeque;

use rand::RngExt;

use super::{
    calendar::Calendar,
    law::{self, Stream},
    network::Network,
    processor::{Expiry, Floor, Job, Station},
    record::Recorder,
    server::{Request, Server},
    statistics::Statistics,
};
use crate::solve::{SolveError, bind::unusable};

/// No strand, instance or frame.
pub(super) const NONE: u32 = u32::MAX;

/// Stream numbers of open arrivals start here.
const FIRST_SOURCE_STREAM: u32 = 1 << 28;

/// Stream number of the order of what happens at one instant.
const TIES_STREAM: u32 = 1 << 30;

/// Most steps at one instant, beyond which the model is taken to go in circles without time passing.
const STEPS_LIMIT: u64 = 20_000_000;

/// Most asynchronous and open requests in the model, beyond which there is no steady state.
const POPULATION_LIMIT: f64 = 1_000_000.0;

/// What a strand does when it is run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
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
    /// In service: its timer ends the slice.
    Service,
    /// Waiting for a reply.
    Blocked,
    /// Between two activities, giving way before it queues for the next.
    Yielded,
    /// A thread of a pool, to which the pool is about to pass a request.
    Dispatched,
    /// The activity has ended and replied; what follows it.
    Continue,
}

/// How a strand goes from one activity to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It queues at once.
    AtOnce,
    /// It gives way to what else happens at the same instant, and then queues.
    Yield,
    /// It keeps its server.
    Keep,
}

/// A thread of control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strand {
    pub(super) instance: u32,
    pub(super) activity: u32,
    pub(super) resume: Resume,
    /// Turn of the innermost loop that it is inside of, if any.
    pub(super) frame: u32,
    /// Start of the activity.
    pub(super) started: f64,
    /// Next call, and how many of it are left, of a deterministic activity.
    pub(super) call: u32,
    pub(super) left: u32,
    /// How it begins its next activity.
    pub(super) turn: Turn,
    pub(super) is_live: bool,
}

/// The serving of a request, or a customer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) entry: u32,
    pub(super) task: u32,
    /// The strand that waits for the reply.
    pub(super) caller: u32,
    pub(super) is_customer: bool,
    pub(super) is_open: bool,
    /// Whether it takes one of the places for asynchronous requests.
    pub(super) is_async: bool,
    pub(super) has_replied: bool,
    /// Whether it gives a lock back when its service is over.
    pub(super) holds_lock: bool,
    pub(super) sent: f64,
    /// Start of the present phase.
    pub(super) since: f64,
    /// Strands at work.
    pub(super) n_strands: u32,
    /// Where joins outside of loops count their arrivals.
    pub(super) root: u32,
    /// Next of the instances joined with this one.
    pub(super) partner: u32,
}

/// One turn of a loop, or the whole of an instance: within it every join counts its arrivals once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The loop; [`NONE`] for the whole of an instance.
    pub(super) turns: u32,
    pub(super) parent: u32,
    /// Strands and frames directly inside.
    pub(super) n_inside: u32,
}

/// Elements with free places for reuse.
#[derive(Debug)]
pub(super) struct Pool<T> {
    pub(super) items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Pool<T> {
    pub(super) fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    /// Puts an item in a free place.
    #[inline]
    pub(super) fn insert(&mut self, item: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.items[place as usize] = item;
            return place;
        }
        self.items.push(item);
        #[expect(clippy::cast_possible_truncation, reason = "the population limit is far below 2^32")]
        let place = (self.items.len() - 1) as u32;
        place
    }

    /// Frees a place.
    #[inline]
    pub(super) fn remove(&mut self, place: u32) {
        self.free.push(place);
    }
}

/// Timers: processors, then open arrivals, then strands.
#[derive(Clone, Copy, Debug)]
struct Timers {
    first_source: u32,
    first_strand: u32,
}

/// The state of one replication.
#[derive(Debug)]
pub(super) struct Run<'n> {
    pub(super) network: &'n Network,
    pub(super) now: f64,
    pub(super) calendar: Calendar,
    pub(super) statistics: Statistics,
    pub(super) strands: Pool<Strand>,
    pub(super) instances: Pool<Instance>,
    pub(super) frames: Pool<Frame>,
    /// Arrivals at the joins of each frame.
    pub(super) arrivals: Vec<u32>,
    /// When the delays of these joins began; no number before that.
    pub(super) forked: Vec<f64>,
    /// Instances that wait at each join of several entries.
    pub(super) parked: Vec<Vec<u32>>,
    /// When the first of them arrived.
    pub(super) parked_since: Vec<f64>,
    /// Strands to be run at this instant.
    pub(super) ready: VecDeque<u32>,
    /// Strands to be run, in random order, when none is ready.
    pub(super) later: Vec<u32>,
    /// Random numbers for that order.
    ties: Stream,
    /// The strand that is run, where its slice has ended and it still has its server.
    pub(super) holder: u32,
    /// Whether `holder` goes on with its server, or has given way with it.
    pub(super) keeps_server: bool,
    pub(super) servers: Vec<Server>,
    /// Random numbers of each task.
    pub(super) streams: Vec<Stream>,
    /// Events so far.
    pub(super) events: u64,
    /// Branches of the fork at hand.
    pub(super) branches: Vec<u32>,
    /// Requests so far: the order of the last one.
    pub(super) requests: u64,
    /// What keeps a record of the run, if anything does.
    pub(super) recorder: Option<Box<Recorder>>,
    /// Why the run cannot go on.
    failure: Option<Box<SolveError>>,
    stations: Vec<Station>,
    jobs: Vec<Job>,
    source_streams: Vec<Stream>,
    timers: Timers,
    steps: u64,
}

#[expect(clippy::cast_possible_truncation, reason = "bounded by the limit of elements")]
fn number(n: usize) -> u32 {
    n as u32
}

impl<'n> Run<'n> {
    /// At time 0: customers think, servers are idle.
    pub(super) fn new(network: &'n Network, seed: u64, replication: u32) -> Self {
        let first_source = number(network.processors.len());
        let first_strand = first_source + number(network.sources.len());
        let mut run = Self {
            network,
            now: 0.0,
            calendar: Calendar::default(),
            statistics: Statistics::new(&network.origins),
            strands: Pool::new(),
            instances: Pool::new(),
            frames: Pool::new(),
            arrivals: Vec::new(),
            forked: Vec::new(),
            parked: vec![Vec::new(); network.joins.len()],
            parked_since: vec![0.0; network.joins.len()],
            ready: VecDeque::new(),
            later: Vec::new(),
            ties: law::stream(seed, replication, TIES_STREAM),
            holder: NONE,
            keeps_server: false,
            servers: network.tasks.iter().map(Server::new).collect(),
            streams: (0..number(network.tasks.len())).map(|t| law::stream(seed, replication, t)).collect(),
            events: 0,
            branches: Vec::new(),
            requests: 0,
            recorder: None,
            failure: None,
            stations: (0..first_source).map(|p| Station::new(network, p, seed, replication)).collect(),
            jobs: Vec::new(),
            source_streams: Vec::new(),
            timers: Timers { first_source, first_strand },
            steps: 0,
        };
        for (i, source) in network.sources.iter().enumerate() {
            let mut stream = law::stream(seed, replication, FIRST_SOURCE_STREAM + number(i));
            let first = law::exponential(&mut stream, source.mean_gap);
            run.calendar.set(first_source + number(i), first);
            run.source_streams.push(stream);
        }
        run.start_customers();
        run
    }

    /// Runs until `end` or `max_events` more events, whichever is first.
    ///
    /// # Errors
    /// [`SolveError::Deadlock`] when nothing can happen any more, [`SolveError::Unusable`] for cycles without time and
    /// unlocking what is not locked, [`SolveError::Unbounded`] when requests pile up.
    pub(super) fn advance(&mut self, end: f64, max_events: u64) -> Result<(), SolveError> {
        let last = self.events.saturating_add(max_events);
        while self.events < last {
            self.settle()?;
            match self.calendar.next_time() {
                Some(time) if time <= end => self.event(),
                Some(_) => {
                    self.now = end;
                    return Ok(());
                }
                None if self.has_closed() => return Ok(()),
                None => return Err(self.deadlock()),
            }
        }
        self.settle()
    }

    /// Runs every strand that is ready at this instant.
    #[inline]
    fn settle(&mut self) -> Result<(), SolveError> {
        loop {
            if let Some(strand) = self.ready.pop_front() {
                self.run(strand);
            } else if let Some(strand) = self.next_later() {
                self.run_yielded(strand);
            } else {
                break;
            }
        }
        match self.failure.take() {
            Some(failure) => Err(*failure),
            None => Ok(()),
        }
    }

    #[inline]
    fn next_later(&mut self) -> Option<u32> {
        match self.later.len() {
            0 | 1 => self.later.pop(),
            n => Some(self.later.swap_remove(self.ties.random_range(0..n))),
        }
    }

    #[inline]
    fn event(&mut self) {
        let Some((time, timer)) = self.calendar.pop() else { return };
        if time > self.now {
            self.steps = 0;
        }
        self.now = time;
        self.events += 1;
        self.steps += 1;
        if timer >= self.timers.first_strand {
            self.strand_timer(timer - self.timers.first_strand);
        } else if timer >= self.timers.first_source {
            self.open_arrival(timer - self.timers.first_source);
        } else if let Some(strand) = self.at_processor(timer, |station, floor| station.expire_timer(floor)) {
            self.end_slice(strand, timer);
        }
    }

    #[inline]
    fn strand_timer(&mut self, strand: u32) {
        if self.strands.items[strand as usize].resume != Resume::Service {
            return self.run(strand);
        }
        let processor = self.processor_of(strand);
        if self.at_processor(processor, |station, floor| station.expire(floor, strand)) == Expiry::Done {
            self.end_slice(strand, processor);
        }
    }

    /// Counts a step towards the limit at one instant. Whether the run has failed.
    #[inline]
    pub(super) fn step(&mut self) -> bool {
        self.steps += 1;
        if self.steps > STEPS_LIMIT {
            self.fail_circling();
            return true;
        }
        false
    }

    #[cold]
    fn fail_circling(&mut self) {
        self.ready.clear();
        self.later.clear();
        let reason = format!("at time {} it goes in circles that take no time: expected a demand or a think time in every cycle", self.now);
        self.fail(unusable("model", reason));
    }

    /// The run cannot go on; the first reason counts.
    #[cold]
    pub(super) fn fail(&mut self, error: SolveError) {
        self.failure.get_or_insert(Box::new(error));
    }

    fn open_arrival(&mut self, source: u32) {
        if self.has_closed() {
            return;
        }
        let spec = &self.network.sources[source as usize];
        let gap = law::exponential(&mut self.source_streams[source as usize], spec.mean_gap);
        self.calendar.set(self.timers.first_source + source, self.now + gap);
        let (origin, order) = (NONE, self.next_order());
        let urgency = self.network.entries[spec.entry as usize].priority;
        let request = Request { entry: spec.entry, caller: NONE, origin, sent: self.now, urgency, order, is_open: true };
        self.note_arrival(&request);
        self.deliver(request);
        if self.statistics.population() > POPULATION_LIMIT {
            let error = self.unbounded();
            self.fail(error);
        }
    }

    /// Does something at processor `processor`.
    #[inline]
    pub(super) fn at_processor<R>(&mut self, processor: u32, what: impl FnOnce(&mut Station, &mut Floor<'_>) -> R) -> R {
        let mut floor = Floor {
            now: self.now,
            calendar: &mut self.calendar,
            statistics: &mut self.statistics,
            jobs: &mut self.jobs,
            first_timer: self.timers.first_strand,
        };
        what(&mut self.stations[processor as usize], &mut floor)
    }

    /// Processor that the strand's task runs on.
    #[inline]
    pub(super) fn processor_of(&self, strand: u32) -> u32 {
        self.jobs[strand as usize].processor
    }

    /// Lets the strand be run after `delay`.
    #[inline]
    pub(super) fn wake_after(&mut self, strand: u32, delay: f64) {
        self.calendar.set(self.timers.first_strand + strand, self.now + delay);
    }

    /// A new strand for `instance`, inside of `frame`.
    #[inline]
    pub(super) fn new_strand(&mut self, instance: u32, frame: u32, resume: Resume) -> u32 {
        let task = self.instances.items[instance as usize].task;
        let strand =
            Strand { instance, activity: NONE, resume, frame, started: self.now, call: 0, left: 0, turn: Turn::AtOnce, is_live: true };
        let place = self.strands.insert(strand);
        if place as usize >= self.jobs.len() {
            self.jobs.push(Job::default());
        }
        let spec = &self.network.tasks[task as usize];
        let job = &mut self.jobs[place as usize];
        job.processor = spec.processor;
        job.rank = spec.rank;
        job.group = spec.group;
        self.note_strand(place);
        place
    }
}
