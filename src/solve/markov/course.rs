//! The course of one event: what strands do until each waits for time to pass again.
//!
//! One execution of an activity with `Y = sum y_i` calls is: own think time, slice, call, slice, .., slice. After each
//! slice of a stochastic activity call `i` is made with probability `y_i / (1+Y)` and the activity ends with `1 / (1+Y)`;
//! a deterministic one makes all calls to its first destination, then to the next. Each slice queues afresh at the processor, save after
//! an asynchronous send. Strands that an event wakes go on one after the other, in the order in which they were woken.

use std::collections::VecDeque;

use super::{
    draws::Draws,
    network::{NONE, Network, Next},
    refused,
    rewards::Layout,
    state::{Doing, Frame, State},
    unusable,
};
use crate::{
    model::CallOrder,
    solve::{ResultCallKind, SolveError},
};

/// Most steps in one course, beyond which the model is taken to go in circles without time passing.
const STEPS_LIMIT: usize = 20_000;

/// Most loops inside of one another.
const TURNS_LIMIT: usize = 100;

/// What can happen in a state after some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A customer of the task has thought.
    Customer(usize),
    /// An open arrival at the entry.
    Arrival(u32),
    /// A strand's own think time is over.
    Thought(u32),
    /// A stage of a strand's slice is over.
    Stage(u32),
}

/// One course of an event, by the outcomes that `draws` gives.
pub(super) struct Course<'a> {
    pub(super) network: &'a Network,
    pub(super) layout: Layout,
    pub(super) state: State,
    pub(super) draws: &'a mut Draws,
    /// Strands to go on.
    pub(super) ready: VecDeque<u32>,
    /// Strands to go on after the one at hand and what it makes ready.
    pub(super) behind: Vec<u32>,
    /// A strand that keeps its server for what it does next, and whether it has done so.
    pub(super) keeper: Option<u32>,
    pub(super) is_kept: bool,
    /// What is counted on the way, by place in the rewards.
    pub(super) counts: Vec<usize>,
    failure: Option<SolveError>,
    steps: usize,
}

impl<'a> Course<'a> {
    /// From `state`, before its event.
    pub(super) fn new(network: &'a Network, state: State, draws: &'a mut Draws) -> Self {
        let (ready, behind, counts) = Default::default();
        Self {
            network,
            layout: Layout::new(network),
            state,
            draws,
            ready,
            behind,
            keeper: None,
            is_kept: false,
            counts,
            failure: None,
            steps: 0,
        }
    }

    /// Lets `event` happen and all that follows at the same instant; false where that is too improbable to be followed.
    pub(super) fn after(&mut self, event: Event) -> Result<bool, SolveError> {
        match event {
            Event::Customer(task) => {
                self.state.servers[task].thinking -= 1;
                let strand = self.new_customer(task);
                self.ready.push_back(strand);
            }
            Event::Arrival(entry) => self.arrive(entry),
            Event::Thought(strand) => {
                self.set(strand, Doing::Slice);
                self.ready.push_back(strand);
            }
            Event::Stage(strand) => {
                let this = self.state.strands[strand as usize];
                match &self.network.activities[this.activity as usize].slice {
                    Some(law) if !law.stages[this.stage as usize].is_last => self.state.strands[strand as usize].stage += 1,
                    _ => self.end_slice(strand),
                }
            }
        }
        self.settle()
    }

    /// Runs every strand that is ready.
    pub(super) fn settle(&mut self) -> Result<bool, SolveError> {
        self.ready.extend(self.behind.drain(..));
        while let Some(strand) = self.ready.pop_front() {
            self.run(strand);
            self.ready.extend(self.behind.drain(..));
        }
        if self.draws.is_negligible() {
            return Ok(false);
        }
        self.failure.take().map_or(Ok(true), Err)
    }

    /// The course cannot go on; the first reason counts.
    pub(super) fn fail(&mut self, error: SolveError) {
        self.failure.get_or_insert(error);
    }

    fn step(&mut self) -> bool {
        self.steps += 1;
        if self.steps > STEPS_LIMIT {
            let reason = "it goes in circles that take no time: expected a demand or a think time in every cycle";
            self.fail(unusable("model", reason));
        }
        let is_over = self.failure.is_some() || self.draws.is_negligible();
        if is_over {
            self.ready.clear();
            self.behind.clear();
        }
        is_over
    }

    /// Runs a strand until it waits or ends.
    fn run(&mut self, strand: u32) {
        loop {
            if self.step() {
                return;
            }
            let goes_on = match self.state.strands[strand as usize].doing {
                Doing::Cycle => self.begin_cycle(strand),
                Doing::Begin => self.begin(strand),
                Doing::Start => self.start(strand),
                Doing::Slice => self.slice(strand),
                Doing::Call => self.call(strand),
                Doing::Continue => {
                    let network = self.network;
                    let activity = self.state.strands[strand as usize].activity;
                    self.follow(strand, &network.activities[activity as usize].next)
                }
                Doing::Thinking | Doing::AtProcessor | Doing::Blocked | Doing::Gone => false,
            };
            if !goes_on {
                return;
            }
        }
    }

    pub(super) fn set(&mut self, strand: u32, doing: Doing) {
        self.state.strands[strand as usize].doing = doing;
    }

    fn enter(&mut self, strand: u32, activity: u32) {
        let strand = &mut self.state.strands[strand as usize];
        strand.activity = activity;
        strand.doing = Doing::Start;
    }

    /// The work of an instance begins.
    fn begin(&mut self, strand: u32) -> bool {
        let instance = self.state.strands[strand as usize].instance;
        let entry = &self.network.entries[self.state.instances[instance as usize].entry as usize];
        let Some(first) = entry.first else {
            self.count_phase(instance, 1);
            self.reply(instance);
            return self.end_strand(strand);
        };
        self.enter(strand, first);
        if entry.has_phases && self.network.activities[first as usize].phase > 1 {
            self.count_phase(instance, 1);
            return !self.reply_and_yield(strand, instance);
        }
        true
    }

    fn start(&mut self, strand: u32) -> bool {
        let this = &mut self.state.strands[strand as usize];
        let activity = &self.network.activities[this.activity as usize];
        this.doing = Doing::Slice;
        (this.call, this.left) = (activity.calls.start, 0);
        if activity.order == CallOrder::Deterministic && !activity.calls.is_empty() {
            this.left = self.network.routes[this.call as usize].count;
        }
        if activity.think > 0.0 {
            this.doing = Doing::Thinking;
            return false;
        }
        true
    }

    fn slice(&mut self, strand: u32) -> bool {
        let this = &mut self.state.strands[strand as usize];
        if self.network.activities[this.activity as usize].slice.is_none() {
            this.doing = Doing::Call;
            return true;
        }
        this.doing = Doing::AtProcessor;
        this.stage = NONE;
        self.arrive_at_processor(strand);
        false
    }

    /// The service of a slice ended; the strand still has its server.
    fn end_slice(&mut self, strand: u32) {
        let processor = self.state.processor(self.network, strand);
        self.state.strands[strand as usize].stage = NONE;
        match self.next_call(strand) {
            Some(call) if self.network.routes[call as usize].kind == ResultCallKind::Async => {
                self.send(strand, call);
                self.begin_stage(strand);
            }
            Some(call) => {
                self.leave_processor(strand);
                self.release(processor);
                self.set(strand, Doing::Blocked);
                self.send(strand, call);
            }
            None => {
                // The strand comes before those who wait: what it has next at this processor competes with them.
                self.leave_processor(strand);
                if self.end_activity(strand) {
                    self.run(strand);
                }
                self.keeper = None;
                if !std::mem::take(&mut self.is_kept) {
                    self.release(processor);
                }
            }
        }
    }

    /// A slice without demand ended: the next call.
    fn call(&mut self, strand: u32) -> bool {
        match self.next_call(strand) {
            Some(call) => {
                let is_sync = self.network.routes[call as usize].kind == ResultCallKind::Sync;
                self.set(strand, if is_sync { Doing::Blocked } else { Doing::Slice });
                self.send(strand, call);
                !is_sync
            }
            None => self.end_activity(strand),
        }
    }

    fn next_call(&mut self, strand: u32) -> Option<u32> {
        let network = self.network;
        let this = &mut self.state.strands[strand as usize];
        let activity = &network.activities[this.activity as usize];
        if activity.calls.is_empty() {
            return None;
        }
        if activity.order == CallOrder::Deterministic {
            while this.left == 0 {
                if this.call >= activity.calls.end - 1 {
                    return None;
                }
                this.call += 1;
                this.left = network.routes[this.call as usize].count;
            }
            this.left -= 1;
            return Some(this.call);
        }
        let routes = &network.routes[activity.calls.start as usize..activity.calls.end as usize];
        let total = 1.0 + routes.iter().map(|r| r.mean).sum::<f64>();
        let probabilities: Vec<f64> = routes.iter().map(|r| r.mean / total).chain([1.0 / total]).collect();
        let chosen = self.draws.choose(&probabilities);
        (chosen < routes.len()).then(|| activity.calls.start + super::compile::index(chosen))
    }

    /// The activity ends: replies are sent. Whether the strand goes on at once.
    fn end_activity(&mut self, strand: u32) -> bool {
        let network = self.network;
        let this = &mut self.state.strands[strand as usize];
        this.doing = Doing::Continue;
        let (instance, number) = (this.instance, this.activity);
        let activity = &network.activities[number as usize];
        if activity.phase > 0 {
            self.count_phase(instance, usize::from(activity.phase));
            return activity.phase > 1 || !self.reply_and_yield(strand, instance);
        }
        self.counts.push(self.layout.activity_ends(number));
        let mut first = true;
        for &entry in &activity.replies {
            let to = &self.state.instances[instance as usize];
            if to.entry == entry && !to.has_replied && !to.is_customer {
                self.count_phase(instance, 1);
                first &= !self.reply_behind(strand, instance);
            }
        }
        if !first {
            self.ready.push_back(strand);
        }
        first
    }

    /// Replies for `instance`. Where the caller runs on the same processor, a fair coin decides who goes on first: true
    /// where the strand is to go on behind the caller; else it keeps its server.
    fn reply_behind(&mut self, strand: u32, instance: u32) -> bool {
        let Some(caller) = self.reply(instance) else { return false };
        if self.state.processor(self.network, caller) != self.state.processor(self.network, strand) {
            return false;
        }
        let is_behind = self.draws.choose_evenly(2) == 0;
        self.keeper = (!is_behind).then_some(strand);
        is_behind
    }

    /// As [`Course::reply_behind`], and puts the strand behind there.
    fn reply_and_yield(&mut self, strand: u32, instance: u32) -> bool {
        let behind = self.reply_behind(strand, instance);
        if behind {
            self.ready.push_back(strand);
        }
        behind
    }

    /// What follows the activity. Whether the strand goes on at once.
    fn follow(&mut self, strand: u32, next: &Next) -> bool {
        match next {
            Next::Activity(activity) => self.enter(strand, *activity),
            Next::End => return self.end_branch(strand),
            Next::Or(choices) => {
                let probabilities: Vec<f64> = choices.iter().map(|c| c.0).collect();
                let chosen = self.draws.choose(&probabilities);
                self.enter(strand, choices[chosen].1);
            }
            Next::Fork(fork) => self.fork(strand, *fork),
            Next::Loop(number) => return self.turn(strand, *number),
            Next::Join(join) => return self.arrive_at_join(strand, *join),
        }
        true
    }

    /// All branches begin, in random order; the strand takes the one that begins first.
    fn fork(&mut self, strand: u32, fork: u32) {
        let (frame, instance) = (self.state.strands[strand as usize].frame, self.state.strands[strand as usize].instance);
        let mut branches = self.network.forks[fork as usize].clone();
        for first in [true].into_iter().chain(std::iter::repeat(false)) {
            if branches.is_empty() {
                return;
            }
            let branch = branches.remove(self.draws.choose_evenly(branches.len()));
            if first {
                self.enter(strand, branch);
                continue;
            }
            let new = self.state.add_strand(instance, frame, Doing::Start);
            self.state.instances[instance as usize].n_strands += 1;
            self.enter(new, branch);
            self.ready.push_back(new);
        }
    }

    /// The next turn of a loop that the strand is before or between turns of: a body in a frame of its own, or the end.
    fn turn(&mut self, strand: u32, number: u32) -> bool {
        let spec = &self.network.loops[number as usize];
        let total = 1.0 + spec.bodies.iter().map(|b| b.0).sum::<f64>();
        let probabilities: Vec<f64> = spec.bodies.iter().map(|b| b.0 / total).chain([1.0 / total]).collect();
        let chosen = self.draws.choose(&probabilities);
        if let Some(&(_, body)) = spec.bodies.get(chosen) {
            let this = self.state.strands[strand as usize];
            self.check_turns(this.frame);
            let frame = Frame { turns: number, instance: this.instance, parent: this.frame, is_over: false };
            self.state.strands[strand as usize].frame = self.state.add_frame(self.network, frame);
            self.enter(strand, body);
            return true;
        }
        match spec.end {
            Some(end) => self.enter(strand, end),
            None => return self.end_branch(strand),
        }
        true
    }

    /// Checks that the loops which a strand is inside of are not too many.
    fn check_turns(&mut self, mut frame: u32) {
        let mut depth = 0;
        while let Some(outer) = self.state.frames.get(frame as usize) {
            frame = outer.parent;
            depth += 1;
        }
        if depth > TURNS_LIMIT {
            self.fail(refused("so deep a nesting of loops", format!("more than {TURNS_LIMIT} levels")));
        }
    }

    /// A branch without successor ends: after a loop body the loop goes on, anything else ends its strand.
    fn end_branch(&mut self, strand: u32) -> bool {
        let number = self.state.strands[strand as usize].frame;
        let Some(frame) = self.state.frames.get_mut(number as usize) else {
            return self.end_strand(strand);
        };
        let turns = frame.turns;
        if std::mem::replace(&mut frame.is_over, true) {
            let task = &self.network.activities[self.state.strands[strand as usize].activity as usize];
            let reason = "it is in a loop that forks branches and does not join them, expected all of them to be joined";
            self.fail(unusable(format!("activity \"{}\"", task.name), reason));
            return false;
        }
        self.state.strands[strand as usize].frame = frame.parent;
        self.turn(strand, turns)
    }

    fn arrive_at_join(&mut self, strand: u32, number: u32) -> bool {
        let network = self.network;
        let join = &network.joins[number as usize];
        let this = self.state.strands[strand as usize];
        let mut frame = this.frame;
        if frame == NONE {
            if self.state.instances[this.instance as usize].root == NONE {
                let root = Frame { turns: NONE, instance: this.instance, parent: NONE, is_over: false };
                self.state.instances[this.instance as usize].root = self.state.add_frame(network, root);
            }
            frame = self.state.instances[this.instance as usize].root;
        }
        let arrivals = &mut self.state.arrivals[frame as usize * network.joins_of_a_task + join.slot as usize];
        *arrivals += 1;
        if *arrivals != join.needed {
            return self.end_strand(strand);
        }
        self.follow(strand, &join.next)
    }
}
