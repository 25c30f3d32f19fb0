//! The course of one event: what strands do until each waits for time to pass again.
//!
//! One execution of an activity with `Y = sum y_i` calls is: own think time, slice, call, slice, .., slice. After each
//! slice of a stochastic activity call `i` is made with probability `y_i / (1+Y)` and the activity ends with `1 / (1+Y)`;
//! a deterministic one makes all calls to its first destination, then to the next. Each slice queues afresh at the processor, save after
//! an asynchronous send.
//!
//! What is ready at one instant goes on in the order in which it became ready, all else at that instant in random order, in every way there
//! is: the rules of [`crate::solve::simulate`], where it says why.

use std::collections::VecDeque;

use super::{
    draws::Draws,
    network::{NONE, Network, Next},
    refused,
    rewards::Layout,
    state::{Doing, Frame, State},
};
use crate::{
    model::CallOrder,
    solve::{ResultCallKind, SolveError, bind::unusable},
};

/// Most steps in one course, beyond which the model is taken to go in circles without time passing.
const STEPS_LIMIT: usize = 20_000;

/// Most loops inside of one another.
const TURNS_LIMIT: usize = 100;

/// What can happen in a state after some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// When, at one instant, a strand goes on that is not ready at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// In random order.
    Once,
    /// The same, once its pool has passed its request on to it.
    Twice,
    /// In random order, with the server that it still has.
    WithServer,
}

/// When, at the instant of its acceptance, a request begins to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// With what is ready.
    Ready,
    /// With what goes on in random order.
    Later,
    /// The same, once the pool has passed it on to a thread.
    Dispatched,
}

/// How a strand that has a server goes from one activity to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// It queues at once.
    AtOnce,
    /// It gives way to what else happens at the same instant, and then queues.
    Yield,
    /// It keeps its server.
    Keep,
}

/// One course of an event, by the outcomes that `draws` gives.
pub(super) struct Course<'a> {
    pub(super) network: &'a Network,
    pub(super) layout: Layout,
    pub(super) state: State,
    pub(super) draws: &'a mut Draws,
    /// Strands to go on.
    pub(super) ready: VecDeque<u32>,
    /// Strands to go on in random order when none is ready.
    later: Vec<(u32, Late)>,
    /// The strand at hand, where its slice has ended and it still has its server, and how it goes on.
    holder: Option<u32>,
    turn: Turn,
    /// Whether the holder goes on with its server, or has given way with it.
    keeps_server: bool,
    /// What is counted on the way, by place in the rewards.
    pub(super) counts: Vec<usize>,
    failure: Option<SolveError>,
    steps: usize,
}

impl<'a> Course<'a> {
    /// From `state`, before its event.
    pub(super) fn new(network: &'a Network, state: State, draws: &'a mut Draws) -> Self {
        let (ready, later, counts) = Default::default();
        Self {
            network,
            layout: Layout::new(network),
            state,
            draws,
            ready,
            later,
            holder: None,
            turn: Turn::AtOnce,
            keeps_server: false,
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

    /// Runs every strand that is to go on at this instant.
    pub(super) fn settle(&mut self) -> Result<bool, SolveError> {
        loop {
            if let Some(strand) = self.ready.pop_front() {
                self.run(strand);
            } else if !self.later.is_empty() {
                let place = self.draws.choose_evenly(self.later.len());
                let (strand, how) = self.later.swap_remove(place);
                self.run_late(strand, how);
            } else {
                break;
            }
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
            self.later.clear();
        }
        is_over
    }

    /// A strand goes on with what is ready, or in random order.
    pub(super) fn wake(&mut self, strand: u32, order: Order) {
        match order {
            Order::Ready => self.ready.push_back(strand),
            Order::Later => self.later.push((strand, Late::Once)),
            Order::Dispatched => self.later.push((strand, Late::Twice)),
        }
    }

    fn run_late(&mut self, strand: u32, how: Late) {
        match how {
            Late::Once => self.run(strand),
            Late::Twice => self.wake(strand, Order::Later),
            Late::WithServer => {
                let processor = self.state.processor(self.network, strand);
                self.with_server(strand, processor, |this| this.run(strand));
            }
        }
    }

    /// Lets a strand that has a server of `processor` go on. Its server, unless it still needs it, goes to the most urgent, itself included.
    fn with_server(&mut self, strand: u32, processor: usize, goes_on: impl FnOnce(&mut Self)) {
        (self.holder, self.turn, self.keeps_server) = (Some(strand), Turn::AtOnce, false);
        goes_on(self);
        self.holder = None;
        if !self.keeps_server {
            self.release(processor);
        }
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
            self.reply(instance);
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
        if self.turn == Turn::Yield && self.holder == Some(strand) {
            self.keeps_server = true;
            self.later.push((strand, Late::WithServer));
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
        if self.turn == Turn::Keep && self.holder == Some(strand) {
            self.keeps_server = true;
            self.serve(strand);
        } else {
            self.arrive_at_processor(strand);
        }
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
                self.leave_processor(strand);
                self.with_server(strand, processor, |this| {
                    this.end_activity(strand);
                    this.run(strand);
                });
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
            None => {
                self.end_activity(strand);
                true
            }
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

    /// The activity ends: replies are sent.
    fn end_activity(&mut self, strand: u32) {
        let network = self.network;
        let this = &mut self.state.strands[strand as usize];
        this.doing = Doing::Continue;
        self.turn = Turn::Yield;
        let (instance, number) = (this.instance, this.activity);
        let activity = &network.activities[number as usize];
        if activity.phase > 0 {
            self.count_phase(instance, usize::from(activity.phase));
            if activity.phase == 1 {
                self.reply_from(strand, instance);
            }
            return;
        }
        self.counts.push(self.layout.activity_ends(number));
        for &entry in &activity.replies {
            let to = &self.state.instances[instance as usize];
            if to.entry == entry && !to.has_replied && !to.is_customer {
                self.count_phase(instance, 1);
                self.reply_from(strand, instance);
            }
        }
    }

    /// Replies for `instance`. Where the caller runs on the same processor, a fair coin decides whether a strand that has a server keeps it
    /// for what it does next.
    fn reply_from(&mut self, strand: u32, instance: u32) {
        let Some(caller) = self.reply(instance) else { return };
        let meets = self.holder == Some(strand) && self.state.processor(self.network, caller) == self.state.processor(self.network, strand);
        if meets && self.draws.choose_evenly(2) == 0 {
            self.turn = Turn::Keep;
        }
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
        self.turn = Turn::AtOnce;
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
        self.turn = Turn::AtOnce;
        self.follow(strand, &join.next)
    }
}
