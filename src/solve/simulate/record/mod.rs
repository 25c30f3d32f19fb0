//! What happens in one run, event by event: the recorder of the simulator.
//!
//! Input: a model, values of its parameters, and how long to record; output: [`RecordedEvent`]s in order of time, those of one
//! instant in the order in which they happened. Nothing of a trace format is in here: events say what a tracer placed
//! anywhere could have seen, and each form is written from them elsewhere.
//!
//! | event | is | when (section 4 of the language's semantics: what executes when) |
//! |---|---|---|
//! | [`Event::Sent`] | a request, a forwarding, an arrival from outside, or the start of a customer's cycle | slice ended, reply due, arrival, think time over |
//! | [`Event::Lost`] | the request found the queue full | at the sending |
//! | [`Event::Accepted`] | a thread of the task takes it | a thread is free |
//! | [`Event::ActivityBegan`], [`Event::ActivityEnded`] | a phase or an activity, with what it used of the processor | |
//! | [`Event::BranchBegan`], [`Event::BranchEnded`], [`Event::Joined`] | and-forks | |
//! | [`Event::Replied`] | the reply reaches the client that waits | end of phase 1 of the last of the chain |
//! | [`Event::Ended`] | the thread is free again, or the cycle over | all phases and branches ended |
//!
//! A *request* is numbered from 1; the same number names its *execution* once it was accepted. Its *chain* is the request
//! that the waiting client sent, which forwardings pass on; its *cycle* is the request that all began with.
//!
//! *Branches* of an execution are numbered from 0, which is what runs outside of all forks. What follows a join runs as the
//! nearest branch around all that were joined: of a fork and its join, the branch that forked.
//!
//! A recording has no warm-up: customers begin with their think time at time 0. When its time or number of cycles is reached,
//! no further cycle begins and no further request arrives from outside, but everything begun is gone on with to its end, so
//! that every recorded cycle is whole. The events depend on the model, the seed and the length alone; a run that is recorded
//! goes exactly as one that is not.

mod hooks;
mod recorder;

use std::ops::ControlFlow;

use super::{compile, network::Network, run::Run};
use crate::{
    model::{Bindings, Model},
    solve::{
        SolveError,
        bind::{Binder, unusable},
    },
};
pub(super) use recorder::Recorder;

/// Events of the simulator's calendar between two times that recorded events are handed over.
const CHUNK_EVENTS: u64 = 1024;

/// Most events that a recording has unless asked otherwise.
const DEFAULT_MAX_EVENTS: u64 = 100_000_000;

/// How much to record.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordOptions {
    /// Seed of all streams of random numbers.
    pub seed: u64,
    /// Model time after which no cycle begins; `None` for no bound.
    pub run_time: Option<f64>,
    /// Cycles and arrivals from outside after which no further one begins; `None` for no bound.
    pub cycles: Option<u64>,
    /// Most recorded events, after which the recording stops short.
    pub max_events: u64,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self { seed: 1, run_time: None, cycles: None, max_events: DEFAULT_MAX_EVENTS }
    }
}

/// How a request came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// A call whose sender waits for the reply.
    Sync,
    /// A call whose sender goes on.
    Async,
    /// Passed on by an execution, in place of its reply.
    Forward,
    /// An arrival from outside of the model.
    Open,
    /// A customer begins a cycle.
    Cycle,
}

/// Where in an execution something is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The execution.
    pub request: u64,
    /// Its branch, 0 outside of forks.
    pub branch: u32,
    /// Its phase, from 1; what an activity graph does after its reply is phase 2.
    pub phase: u8,
    /// Processor time that the activity at hand has used so far, in the model's time unit.
    pub demand: f64,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A request was sent.
    Sent {
        /// How.
        kind: RequestKind,
        /// By whom; `None` of arrivals and cycles.
        by: Option<Place>,
        /// The request whose sender waits for the reply; the request itself where nobody does.
        chain: u64,
        /// The cycle or arrival that it belongs to.
        cycle: u64,
        /// Its entry (index into [`Legend::entries`]).
        entry: u32,
        /// Of a forwarding: whether the execution that sent it has ended with it.
        ends: bool,
    },
    /// The request found the queue of its task full.
    Lost,
    /// A thread takes the request; of a cycle, the customer does.
    Accepted {
        /// The thread or customer within its task, from 0; of several free ones the lowest.
        thread: u32,
    },
    /// An activity or phase begins.
    ActivityBegan {
        /// The branch that it runs in.
        branch: u32,
        /// Its phase, from 1.
        phase: u8,
        /// Index into [`Legend::activities`].
        activity: u32,
    },
    /// An activity or phase ends.
    ActivityEnded {
        /// The branch that it ran in.
        branch: u32,
        /// Its phase when it began, from 1.
        phase: u8,
        /// Index into [`Legend::activities`].
        activity: u32,
        /// Processor time that it used, in the model's time unit.
        demand: f64,
    },
    /// A branch of an and-fork begins.
    BranchBegan {
        /// Its number in the execution, from 1.
        branch: u32,
        /// The branch that forks.
        from: u32,
        /// Which fork of the execution this is, from 0 in order of time.
        fork: u32,
        /// Which branch of the fork, from 0 in the order of the model.
        position: u32,
    },
    /// A branch ends, at a join or without one.
    BranchEnded {
        /// The branch.
        branch: u32,
    },
    /// As many branches as a join waits for have ended.
    Joined {
        /// The branch that goes on.
        branch: u32,
    },
    /// The reply is sent, and reaches the client at once.
    Replied {
        /// The request that the client sent.
        chain: u64,
        /// Whether the execution has ended with it: there is no second phase.
        ends: bool,
    },
    /// The execution is over.
    Ended,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedEvent {
    /// When, in the model's time unit.
    pub time: f64,
    /// The request that it happened to, or in the execution of.
    pub request: u64,
    /// What.
    pub event: Event,
}

/// A task of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTask {
    /// Its name.
    pub name: String,
    /// Which copy of it, from 1; `None` where there is one only.
    pub copy: Option<u32>,
    /// Name of its processor.
    pub processor: String,
    /// Whether it is a reference task.
    pub is_reference: bool,
}

/// What the numbers in events stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Legend {
    /// Tasks, every copy for itself.
    pub tasks: Vec<RecordedTask>,
    /// Names of entries, with their task (index into `tasks`).
    pub entries: Vec<(String, u32)>,
    /// Names of activities; phases are called `phase 1` to `phase 3`.
    pub activities: Vec<String>,
}

impl Legend {
    /// Name of an entry, empty for a number that there is not.
    pub fn entry(&self, entry: u32) -> &str {
        self.entries.get(entry as usize).map_or("", |e| &e.0)
    }

    /// The task of an entry.
    ///
    /// # Panics
    /// For a number that is not of this recording.
    pub fn task_of(&self, entry: u32) -> &RecordedTask {
        &self.tasks[self.entries[entry as usize].1 as usize]
    }
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded {
    /// Number of events.
    pub n_events: u64,
    /// Cycles and arrivals that began.
    pub cycles: u64,
    /// Model time of the last event.
    pub time: f64,
    /// Whether all that began has ended: otherwise the limit of events was met, the sink wanted no more, or requests wait for
    /// what would come in later cycles only.
    pub is_complete: bool,
}

/// A model ready to be recorded.
#[derive(Debug)]
pub struct Recording {
    network: Network,
    options: RecordOptions,
    legend: Legend,
}

impl Recording {
    /// Prepares `model` with its `$parameters` bound to `values`.
    ///
    /// # Errors
    /// As [`super::simulate`]; [`SolveError::Unusable`] also where nothing bounds the recording.
    pub fn new(model: &Model, values: &Bindings, options: RecordOptions) -> Result<Self, SolveError> {
        let element = "recording options";
        if options.run_time.is_none() && options.cycles.is_none() {
            return Err(unusable(element, "neither a run time nor a number of cycles ends the recording"));
        }
        if let Some(time) = options.run_time.filter(|t| !(t.is_finite() && *t > 0.0)) {
            let reason =
                if time > 0.0 { "the run time is not finite".to_owned() } else { format!("the run time is {time}, expected more than 0") };
            return Err(unusable(element, reason));
        }
        if options.cycles == Some(0) {
            return Err(unusable(element, "the number of cycles is 0, expected at least 1"));
        }
        let network = compile::compile(model, &Binder::new(model, values)?)?;
        let legend = legend(&network);
        Ok(Self { network, options, legend })
    }

    /// What the numbers in events stand for.
    pub fn legend(&self) -> &Legend {
        &self.legend
    }

    /// Runs the model and hands every event over until all has ended or `sink` breaks. Memory does not grow with time.
    ///
    /// # Errors
    /// As [`super::simulate`], where the run cannot go on.
    pub fn run(&self, sink: &mut dyn FnMut(&RecordedEvent) -> ControlFlow<()>) -> Result<Recorded, SolveError> {
        let mut run = Run::new(&self.network, self.options.seed, 0);
        run.recorder = Some(Box::new(Recorder::new(&self.network, self.options.cycles)));
        let end = self.options.run_time.unwrap_or(f64::MAX);
        let mut recorded = Recorded { n_events: 0, cycles: 0, time: 0.0, is_complete: false };
        loop {
            let until = if run.has_closed() { f64::MAX } else { end };
            let before = run.events;
            run.advance(until, CHUNK_EVENTS)?;
            if run.now >= end {
                run.close();
            }
            let is_idle = run.events == before && run.has_closed() && until == f64::MAX;
            let Some(recorder) = &mut run.recorder else { return Ok(recorded) };
            recorded.cycles = recorder.cycles;
            let room = self.options.max_events - recorded.n_events;
            for event in recorder.take() {
                if recorded.n_events == self.options.max_events || sink(&event).is_break() {
                    return Ok(recorded);
                }
                recorded.n_events += 1;
                recorded.time = event.time;
            }
            let Some(recorder) = &run.recorder else { return Ok(recorded) };
            recorded.is_complete = recorder.is_drained();
            if recorded.is_complete || is_idle || room == 0 {
                return Ok(recorded);
            }
        }
    }
}

/// Records `model` as [`Recording`] does, and keeps all events.
///
/// # Errors
/// As [`Recording::new`] and [`Recording::run`].
pub fn record(model: &Model, values: &Bindings, options: RecordOptions) -> Result<(Legend, Vec<RecordedEvent>, Recorded), SolveError> {
    let recording = Recording::new(model, values, options)?;
    let mut events = Vec::new();
    let recorded = recording.run(&mut |event| {
        events.push(*event);
        ControlFlow::Continue(())
    })?;
    Ok((recording.legend, events, recorded))
}

fn legend(network: &Network) -> Legend {
    let origins = &network.origins;
    let mut copies = vec![0; origins.tasks.len()];
    let task = |task: &super::network::Task| {
        let origin = &origins.tasks[task.origin as usize];
        let copy = &mut copies[task.origin as usize];
        *copy += 1;
        RecordedTask {
            name: origin.name.clone(),
            copy: (origin.copies > 1).then_some(*copy),
            processor: origins.processors[network.processors[task.processor as usize].origin as usize].0.clone(),
            is_reference: origin.is_reference,
        }
    };
    let tasks = network.tasks.iter().map(task).collect();
    let entries = network.entries.iter().map(|e| (origins.entries[e.origin as usize].name.clone(), e.task)).collect();
    let activity = |a: &super::network::Activity| match a.phase {
        0 => origins.activities[a.origin as usize].name.clone(),
        phase => format!("phase {phase}"),
    };
    Legend { tasks, entries, activities: network.activities.iter().map(activity).collect() }
}
