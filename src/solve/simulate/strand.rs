//! What strands do: phases and activities, and what follows an activity in a graph.
//!
//! One execution of an activity of demand `d` with `Y = sum y_i` calls is: own think time, slice, call, slice, .., slice,
//! with slices of mean `d / (Y+1)`. After each slice of a stochastic activity, call `i` is made with probability
//! `y_i / (1+Y)` and the activity ends with `1 / (1+Y)`; a deterministic one makes all calls to its first destination, then
//! to the next. Each slice queues afresh at the processor, save after an asynchronous send.

use rand::seq::SliceRandom;

use super::{
    law,
    network::{Next, Watched},
    run::{Frame, NONE, Resume, Run, Strand, Turn},
};
use crate::model::CallOrder;

impl Run<'_> {
    /// Runs a strand until it waits or ends.
    pub(super) fn run(&mut self, strand: u32) {
        loop {
            if self.step() {
                return;
            }
            let goes_on = match self.strands.items[strand as usize].resume {
                Resume::Cycle => self.begin_cycle(strand),
                Resume::Begin => self.begin(strand),
                Resume::Start => self.start(strand),
                Resume::Slice => self.slice(strand),
                Resume::Call => self.call(strand),
                Resume::Continue => {
                    let network = self.network;
                    let activity = self.strands.items[strand as usize].activity;
                    self.follow(strand, &network.activities[activity as usize].next)
                }
                Resume::Service | Resume::Blocked | Resume::Yielded | Resume::Dispatched => false,
            };
            if !goes_on {
                return;
            }
        }
    }

    #[inline]
    fn set(&mut self, strand: u32, resume: Resume) {
        self.strands.items[strand as usize].resume = resume;
    }

    #[inline]
    fn enter(&mut self, strand: u32, activity: u32) {
        let strand = &mut self.strands.items[strand as usize];
        strand.activity = activity;
        strand.resume = Resume::Start;
    }

    /// The work of an instance begins.
    #[inline]
    fn begin(&mut self, strand: u32) -> bool {
        let instance = self.strands.items[strand as usize].instance;
        let network = self.network;
        let entry = &network.entries[self.instances.items[instance as usize].entry as usize];
        let Some(first) = entry.first else {
            self.end_phase(instance, 1);
            self.reply(instance);
            return self.end_strand(strand);
        };
        self.enter(strand, first);
        if entry.has_phases && network.activities[first as usize].phase > 1 {
            self.end_phase(instance, 1);
            self.reply(instance);
        }
        true
    }

    #[inline]
    fn start(&mut self, strand: u32) -> bool {
        self.note_start(strand);
        let network = self.network;
        let now = self.now;
        let this = &mut self.strands.items[strand as usize];
        let activity = &network.activities[this.activity as usize];
        this.started = now;
        this.resume = Resume::Slice;
        if activity.order == CallOrder::Deterministic {
            this.call = activity.calls.start;
            this.left = network.calls.get(this.call as usize).map_or(0, |c| c.count);
        }
        if activity.think > 0.0 {
            this.turn = Turn::AtOnce;
            let delay = law::exponential(&mut self.streams[activity.task as usize], activity.think);
            self.wake_after(strand, delay);
            return false;
        }
        if this.turn == Turn::Yield && self.holder == strand {
            this.turn = Turn::AtOnce;
            this.resume = Resume::Yielded;
            self.keeps_server = true;
            self.later.push(strand);
            return false;
        }
        true
    }

    /// Runs a strand that has given way. Its server, if it still has one, goes to the most urgent, itself included.
    pub(super) fn run_yielded(&mut self, strand: u32) {
        match self.strands.items[strand as usize].resume {
            Resume::Yielded => {}
            Resume::Dispatched => {
                self.set(strand, Resume::Begin);
                self.later.push(strand);
                return;
            }
            _ => return self.run(strand),
        }
        self.set(strand, Resume::Slice);
        self.run_with_server(strand, self.processor_of(strand));
    }

    /// Runs a strand that has a server of `processor`, and takes the server away unless it still needs it.
    #[inline]
    fn run_with_server(&mut self, strand: u32, processor: u32) {
        self.holder = strand;
        self.keeps_server = false;
        self.run(strand);
        self.holder = NONE;
        if !self.keeps_server {
            self.at_processor(processor, |station, floor| station.release(floor));
        }
    }

    #[inline]
    fn slice(&mut self, strand: u32) -> bool {
        let network = self.network;
        let this = &mut self.strands.items[strand as usize];
        let activity = &network.activities[this.activity as usize];
        if !activity.has_demand {
            this.resume = Resume::Call;
            return true;
        }
        this.resume = Resume::Service;
        let work = activity.slice.draw(&mut self.streams[activity.task as usize]);
        self.note_work(strand, work);
        let this = &mut self.strands.items[strand as usize];
        let processor = network.tasks[activity.task as usize].processor;
        if this.turn == Turn::Keep && self.holder == strand {
            this.turn = Turn::AtOnce;
            self.keeps_server = true;
            self.at_processor(processor, |station, floor| station.extend(floor, strand, work));
            return false;
        }
        self.at_processor(processor, |station, floor| station.arrive(floor, strand, work));
        false
    }

    /// The service of a slice ended on `processor`, whose server the strand still has.
    #[inline]
    pub(super) fn end_slice(&mut self, strand: u32, processor: u32) {
        let network = self.network;
        match self.next_call(strand) {
            Some(call) if !network.calls[call as usize].is_sync => {
                self.send(strand, call);
                let activity = self.strands.items[strand as usize].activity;
                let activity = &network.activities[activity as usize];
                let work = activity.slice.draw(&mut self.streams[activity.task as usize]);
                self.note_work(strand, work);
                self.at_processor(processor, |station, floor| station.extend(floor, strand, work));
            }
            Some(call) => {
                self.at_processor(processor, |station, floor| station.release(floor));
                self.set(strand, Resume::Blocked);
                self.send(strand, call);
            }
            None => {
                self.end_activity(strand);
                self.run_with_server(strand, processor);
            }
        }
    }

    /// A slice without demand ended: the next call.
    #[inline]
    fn call(&mut self, strand: u32) -> bool {
        match self.next_call(strand) {
            Some(call) => {
                let is_sync = self.network.calls[call as usize].is_sync;
                self.set(strand, if is_sync { Resume::Blocked } else { Resume::Slice });
                self.send(strand, call);
                !is_sync
            }
            None => {
                self.end_activity(strand);
                true
            }
        }
    }

    #[inline]
    fn next_call(&mut self, strand: u32) -> Option<u32> {
        let network = self.network;
        let this = &mut self.strands.items[strand as usize];
        let activity = &network.activities[this.activity as usize];
        if activity.calls.is_empty() {
            return None;
        }
        if activity.order == CallOrder::Deterministic {
            while this.left == 0 {
                this.call += 1;
                if this.call >= activity.calls.end {
                    return None;
                }
                this.left = network.calls[this.call as usize].count;
            }
            this.left -= 1;
            return Some(this.call);
        }
        let drawn = law::uniform(&mut self.streams[activity.task as usize]) * (1.0 + activity.n_calls);
        activity.calls.clone().find(|&c| drawn < network.calls[c as usize].cumulative)
    }

    /// The activity ends: its time is taken and replies are sent.
    #[inline]
    fn end_activity(&mut self, strand: u32) {
        self.note_end(strand);
        let network = self.network;
        let this = &mut self.strands.items[strand as usize];
        this.resume = Resume::Continue;
        this.turn = Turn::Yield;
        let (instance, started) = (this.instance, this.started);
        let activity = &network.activities[this.activity as usize];
        if activity.phase > 0 {
            self.end_phase(instance, usize::from(activity.phase));
            if activity.phase == 1 {
                self.reply_from(strand, instance);
            }
            return;
        }
        let place = self.statistics.layout.activity(activity.origin as usize);
        self.statistics.tally(place, self.now - started);
        self.statistics.watch(Watched::Activity { activity: activity.origin as usize }, self.now - started);
        for &entry in &activity.replies {
            if let Some(to) = self.expecting(instance, entry) {
                if to == instance {
                    self.end_phase(instance, 1);
                }
                self.reply_from(strand, to);
            }
        }
    }

    /// The instance, this or one joined with it, that is to reply for `entry`.
    fn expecting(&self, instance: u32, entry: u32) -> Option<u32> {
        let mut at = instance;
        while at != NONE {
            let candidate = &self.instances.items[at as usize];
            if candidate.entry == entry && !candidate.has_replied && !candidate.is_customer {
                return Some(at);
            }
            at = candidate.partner;
        }
        None
    }

    /// Replies for `instance`. Where the caller runs on the same processor, a fair coin decides whether the strand keeps its
    /// server for what it does next.
    #[inline]
    fn reply_from(&mut self, strand: u32, instance: u32) {
        let Some(caller) = self.reply(instance) else { return };
        if self.processor_of(caller) != self.processor_of(strand) {
            return;
        }
        let task = self.instances.items[instance as usize].task;
        if law::uniform(&mut self.streams[task as usize]) < 0.5 {
            self.strands.items[strand as usize].turn = Turn::Keep;
        }
    }

    /// What follows the activity. Whether the strand goes on at once.
    #[inline]
    pub(super) fn follow(&mut self, strand: u32, next: &Next) -> bool {
        match next {
            Next::Activity(activity) => self.enter(strand, *activity),
            Next::End => return self.end_branch(strand),
            Next::Or(choices) => {
                let drawn = self.draw(strand);
                let list = &self.network.choices[choices.start as usize..choices.end as usize];
                let chosen = list.iter().find(|c| drawn < c.0).or(list.last());
                if let Some(&(_, activity)) = chosen {
                    self.enter(strand, activity);
                }
            }
            Next::Fork(fork) => self.fork(strand, *fork),
            Next::Loop(number) => return self.turn(strand, *number),
            Next::Join(join) => return self.arrive_at_join(strand, *join),
        }
        true
    }

    fn draw(&mut self, strand: u32) -> f64 {
        let instance = self.strands.items[strand as usize].instance;
        let task = self.instances.items[instance as usize].task;
        law::uniform(&mut self.streams[task as usize])
    }

    fn new_frame(&mut self, frame: Frame) -> u32 {
        let place = self.frames.insert(frame);
        let width = self.network.joins_of_a_task;
        let first = place as usize * width;
        if self.arrivals.len() < first + width {
            self.arrivals.resize(first + width, 0);
            self.forked.resize(first + width, f64::NAN);
        }
        self.arrivals[first..first + width].fill(0);
        self.forked[first..first + width].fill(f64::NAN);
        place
    }

    /// All branches begin, in random order; the strand takes the one that begins first.
    fn fork(&mut self, strand: u32, fork: u32) {
        let network = self.network;
        let (frame, instance) = (self.strands.items[strand as usize].frame, self.strands.items[strand as usize].instance);
        let task = self.instances.items[instance as usize].task as usize;
        self.branches.clear();
        self.branches.extend_from_slice(&network.forks[fork as usize].branches);
        self.branches.shuffle(&mut self.streams[task]);
        self.strands.items[strand as usize].turn = Turn::AtOnce;
        self.note_fork(strand);
        if !network.forks[fork as usize].joins.is_empty() {
            let first = self.join_frame(strand) as usize * network.joins_of_a_task;
            for &slot in &network.forks[fork as usize].joins {
                self.forked[first + slot as usize] = self.now;
            }
        }
        for i in 0..self.branches.len() {
            let branch = self.branches[i];
            if i == 0 {
                self.note_branch(strand, fork, branch);
                self.enter(strand, branch);
                continue;
            }
            let new = self.new_strand(instance, frame, Resume::Start);
            self.instances.items[instance as usize].n_strands += 1;
            if frame != NONE {
                self.frames.items[frame as usize].n_inside += 1;
            }
            self.note_branch(new, fork, branch);
            self.enter(new, branch);
            self.ready.push_back(new);
        }
    }

    /// The next turn of a loop that the strand is before or between turns of: a body in a frame of its own, or the end.
    fn turn(&mut self, strand: u32, number: u32) -> bool {
        let network = self.network;
        let spec = &network.loops[number as usize];
        let drawn = self.draw(strand) * (1.0 + spec.total);
        let list = &network.choices[spec.bodies.start as usize..spec.bodies.end as usize];
        if let Some(&(_, body)) = list.iter().find(|c| drawn < c.0) {
            let parent = self.strands.items[strand as usize].frame;
            let frame = self.new_frame(Frame { turns: number, parent, n_inside: 1 });
            self.strands.items[strand as usize].frame = frame;
            self.enter(strand, body);
            return true;
        }
        match spec.end {
            Some(end) => self.enter(strand, end),
            None => return self.end_branch(strand),
        }
        true
    }

    /// A branch without successor ends: after a loop body the loop goes on, anything else ends its strand.
    #[inline]
    fn end_branch(&mut self, strand: u32) -> bool {
        let frame = self.strands.items[strand as usize].frame;
        let Some(&Frame { turns, parent, .. }) = self.frames.items.get(frame as usize) else {
            return self.end_strand(strand);
        };
        self.strands.items[strand as usize].frame = parent;
        if parent != NONE {
            self.frames.items[parent as usize].n_inside += 1;
        }
        self.release_frame(frame);
        self.turn(strand, turns)
    }

    /// The frame in which the joins that a strand comes to count their arrivals.
    fn join_frame(&mut self, strand: u32) -> u32 {
        let Strand { frame, instance, .. } = self.strands.items[strand as usize];
        if frame != NONE {
            return frame;
        }
        if self.instances.items[instance as usize].root == NONE {
            self.instances.items[instance as usize].root = self.new_frame(Frame { turns: NONE, parent: NONE, n_inside: 1 });
        }
        self.instances.items[instance as usize].root
    }

    fn arrive_at_join(&mut self, strand: u32, number: u32) -> bool {
        let network = self.network;
        let join = &network.joins[number as usize];
        if join.is_external {
            return self.arrive_at_external_join(strand, number);
        }
        let place = self.join_frame(strand) as usize * network.joins_of_a_task + join.slot as usize;
        let arrivals = &mut self.arrivals[place];
        *arrivals += 1;
        let goes_on = *arrivals == join.needed;
        self.note_join(strand, number, goes_on);
        if !goes_on {
            return self.end_strand(strand);
        }
        let since = self.forked[place];
        if !since.is_nan() {
            self.statistics.tally_join(join.origin as usize, self.now - since);
        }
        self.strands.items[strand as usize].turn = Turn::AtOnce;
        self.follow(strand, &join.next)
    }

    /// One strand or frame less is inside of `frame`.
    #[inline]
    pub(super) fn release_frame(&mut self, mut frame: u32) {
        while frame != NONE {
            let this = &mut self.frames.items[frame as usize];
            this.n_inside -= 1;
            if this.n_inside > 0 {
                return;
            }
            let parent = this.parent;
            self.frames.remove(frame);
            frame = parent;
        }
    }
}
